//! Status codes, and the last error of each thread.
#![allow(unsafe_code)] // exported names

use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;

use logitree::{Error, ErrorKind};

/// What a function returns: LOGITREE_OK, or what went wrong. logitree_error_message() says more.
///
/// The list is closed, and its numbers stay: a kind of error that logitree learns later has the number of the nearest one
/// here, and its own name in logitree_error_kind().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum LogitreeStatus {
    /// Success.
    Ok = 0,
    /// A vocabulary is malformed, truncated or of an unsupported format.
    ErrorVocabulary = 1,
    /// A token-tree payload or an index file is malformed, or does not fit the vocabulary.
    ErrorPayload = 2,
    /// A constraint cannot be built or cannot be satisfied.
    ErrorConstraint = 3,
    /// A mask has the wrong length.
    ErrorMask = 4,
    /// Logits have the wrong length, contain NaN, or allow no token.
    ErrorLogits = 5,
    /// A chain has invalid parameters, or selects nothing.
    ErrorSampling = 6,
    /// A token is not allowed here, or is not in the vocabulary.
    ErrorToken = 7,
    /// The call is invalid in the present state: a step after the end, a rollback past the start.
    ErrorState = 8,
    /// A limit of size, depth or time was reached.
    ErrorLimit = 9,
    /// The operating system refused.
    ErrorIo = 10,
    /// An argument is NULL, has an impossible length or value, or is not UTF-8.
    ErrorArgument = 11,
    /// A handle is NULL, was freed, or is of another kind.
    ErrorHandle = 12,
    /// Another call uses the handle at this moment, or the same handle is given twice.
    ErrorBusy = 13,
    /// The output does not fit; the count says how much room is needed. Nothing has changed.
    ErrorBuffer = 14,
    /// A defect of logitree. Free the handles of this call.
    ErrorInternal = 15,
}

/// An error on its way to C.
#[derive(Debug)]
pub struct Failure {
    /// What the function returns.
    pub status: LogitreeStatus,
    /// What it says.
    pub error: Error,
}

/// What functions work with.
pub type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error.kind {
            ErrorKind::Vocabulary => LogitreeStatus::ErrorVocabulary,
            ErrorKind::Payload => LogitreeStatus::ErrorPayload,
            ErrorKind::Constraint => LogitreeStatus::ErrorConstraint,
            ErrorKind::Mask => LogitreeStatus::ErrorMask,
            ErrorKind::Logits => LogitreeStatus::ErrorLogits,
            ErrorKind::Sampling => LogitreeStatus::ErrorSampling,
            ErrorKind::Token => LogitreeStatus::ErrorToken,
            ErrorKind::State => LogitreeStatus::ErrorState,
            ErrorKind::Limit => LogitreeStatus::ErrorLimit,
            ErrorKind::Io => LogitreeStatus::ErrorIo,
        };
        Failure { status, error }
    }
}

/// A failure of what a caller gives as options.
pub fn invalid(error: Error) -> Failure {
    Failure { status: LogitreeStatus::ErrorArgument, error }
}

/// A failure of the interface itself, which no kind of the core describes.
pub fn failure(status: LogitreeStatus, message: impl Into<String>) -> Failure {
    Failure { status, error: Error::new(ErrorKind::State, message) }
}

/// [`LogitreeStatus::ErrorArgument`] about the argument `place`.
pub fn argument(message: impl Into<String>, place: &str) -> Failure {
    let mut made = failure(LogitreeStatus::ErrorArgument, message);
    made.error.place = place.to_string();
    made
}

impl Failure {
    /// The same failure, within a larger place.
    pub fn within(self, place: &str) -> Failure {
        Failure { status: self.status, error: self.error.within(place) }
    }
}

#[derive(Default)]
struct LastError {
    kind: CString,
    message: CString,
    place: CString,
    help: CString,
}

/// The first status that is not a kind of the core.
const OWN: i32 = LogitreeStatus::ErrorArgument as i32;

thread_local! {
    static LAST: RefCell<LastError> = RefCell::default();
}

/// Keeps a failure as the thread's last error, and gives its status.
pub fn report(failed: Failure) -> LogitreeStatus {
    let text = |text: String| CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    let Error { kind, message, place, help, .. } = failed.error;
    // The statuses from the first of the interface's own on have no kind of the core.
    let kind = match failed.status as i32 {
        OWN.. => format!("{:?}", failed.status).replace("Error", ""),
        _ => format!("{kind:?}"),
    };
    let last = LastError {
        kind: text(kind.to_lowercase()),
        message: text(message),
        place: text(place),
        help: text(help),
    };
    // A thread that ends has no last error any more.
    drop(LAST.try_with(|cell| cell.replace(last)));
    failed.status
}

/// Runs the body of an exported function: a failure becomes the thread's last error, a panic
/// [`LogitreeStatus::ErrorInternal`].
pub fn run(body: impl FnOnce() -> Outcome) -> LogitreeStatus {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => LogitreeStatus::Ok,
        Ok(Err(failed)) => report(failed),
        Err(_) => {
            let failed = failure(LogitreeStatus::ErrorInternal, "a panic inside logitree");
            catch_unwind(AssertUnwindSafe(|| report(failed))).unwrap_or(LogitreeStatus::ErrorInternal)
        }
    }
}

fn last(read: impl FnOnce(&LastError) -> *const c_char) -> *const c_char {
    LAST.try_with(|cell| read(&cell.borrow())).unwrap_or(ptr::null())
}

/// The kind of this thread's last error, in one word: "token", "argument", "buffer". A success does not change it. UTF-8; ""
/// if there was none. It belongs to logitree and is valid until the thread's next call that fails.
#[no_mangle]
pub extern "C" fn logitree_error_kind() -> *const c_char {
    last(|error| error.kind.as_ptr())
}

/// What is wrong, in one sentence. As logitree_error_kind.
#[no_mangle]
pub extern "C" fn logitree_error_message() -> *const c_char {
    last(|error| error.message.as_ptr())
}

/// Where it is wrong: the name of an argument, a line and a column, a JSON pointer, a row. As logitree_error_kind.
#[no_mangle]
pub extern "C" fn logitree_error_place() -> *const c_char {
    last(|error| error.place.as_ptr())
}

/// The way out; "" if none is known. As logitree_error_kind.
#[no_mangle]
pub extern "C" fn logitree_error_help() -> *const c_char {
    last(|error| error.help.as_ptr())
}

/// Forgets this thread's last error.
#[no_mangle]
pub extern "C" fn logitree_error_clear() {
    drop(LAST.try_with(|cell| cell.replace(LastError::default())));
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last_kind() -> String {
        // SAFETY: a text of this thread, read at once.
        unsafe { CStr::from_ptr(logitree_error_kind()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn every_kind_has_a_status_and_a_name_of_its_own() {
        let status = |kind| report(Failure::from(Error::new(kind, "")));
        let all = ErrorKind::ALL.map(|kind| (status(kind) as i32, last_kind()));
        let names = "vocabulary payload constraint mask logits sampling token state limit io".split(' ');
        assert_eq!(all.to_vec(), (1..=10).zip(names.map(String::from)).collect::<Vec<_>>());
        report(argument("", ""));
        assert_eq!(last_kind(), "argument");
    }

    #[test]
    fn a_panic_ends_here() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let status = run(|| panic!("on purpose"));
        std::panic::set_hook(hook);
        assert_eq!((status, last_kind().as_str()), (LogitreeStatus::ErrorInternal, "internal"));
        logitree_error_clear();
        assert_eq!(last_kind(), "");
    }
}
