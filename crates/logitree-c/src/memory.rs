//! Exported functions and the caller's memory: `export!` makes the functions, whose pointers are [`In`] and [`Out`]. That a
//! pointer leads to what the header says is the caller's promise, made where the arguments are taken; NULL, alignment and
//! lengths are checked here.
#![allow(unsafe_code)] // reads and writes at pointers of the caller

use std::ffi::{c_char, c_void, CStr};
use std::path::PathBuf;

use crate::handles::{insert, Handle};
use crate::library::LOGITREE_NUL_TERMINATED;
use crate::status::{argument, failure, invalid, Outcome};
use crate::LogitreeStatus;
use logitree::constraint::form::{parse, Fields};
use logitree::{ErrorKind, Floats};

/// A text or bytes of the caller: `length` bytes at `data`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LogitreeText {
    /// The first byte; NULL only with a length of 0.
    pub data: *const c_char,
    /// Number of bytes; LOGITREE_NUL_TERMINATED: up to the first byte of 0.
    pub length: usize,
}

/// Logits of 32 bits: float.
pub const LOGITREE_F32: u32 = 0;
/// Logits of 16 bits: IEEE binary16.
pub const LOGITREE_F16: u32 = 1;
/// Logits of 16 bits: bfloat16.
pub const LOGITREE_BF16: u32 = 2;

/// Whether `len` values of a type may lie at an address.
fn check<T>(pointer: *const T, len: usize, name: &str) -> Outcome {
    if pointer.is_null() {
        return Err(argument(format!("{name} is NULL"), name));
    }
    if !pointer.is_aligned() {
        return Err(argument(format!("{name} is not aligned to {} bytes", align_of::<T>()), name));
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    if bytes.and_then(|bytes| pointer.addr().checked_add(bytes)).is_none() {
        return Err(argument(format!("{name} cannot have {len} elements"), name));
    }
    Ok(())
}

/// Defines exported functions: takes their arguments, fences panics off, and makes a status of the outcome. A body is an
/// [`Outcome`].
macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers are NULL or lead to what the header says, for the length of the call.
        #[no_mangle]
        pub unsafe extern "C" fn $name(
            $($argument: <$type as $crate::memory::Argument>::Raw),*
        ) -> $crate::LogitreeStatus {
            $crate::status::run(|| {
                $(
                    // SAFETY: the caller's promise.
                    let $argument = unsafe { <$type as $crate::memory::Argument>::take($argument, stringify!($argument)) };
                )*
                $body
            })
        }
    )*};
}
pub(crate) use export;

/// An argument of an exported function.
pub trait Argument {
    /// What C gives.
    type Raw;

    /// The argument that is called `name`.
    ///
    /// # Safety
    /// A pointer is NULL or leads to as many initialised values as the call says. During the call nothing else writes them,
    /// or, where they are written, reads them.
    unsafe fn take(raw: Self::Raw, name: &'static str) -> Self;
}

macro_rules! plain {
    ($([$($handle:ident)?] $type:ty),*) => {$(
        impl$(<$handle: Handle>)? Argument for $type {
            type Raw = $type;

            unsafe fn take(raw: $type, _: &'static str) -> $type {
                raw
            }
        }
    )*};
}
plain!([] bool, [] u32, [] usize, [] i64, [] f64, [] *const c_void, [] *mut c_void, [H] *const H, [H] *mut H);

/// A pointer to values that are read.
pub struct In<T> {
    pointer: *const T,
    name: &'static str,
}

/// A pointer to values that are written.
pub struct Out<T> {
    pointer: *mut T,
    name: &'static str,
}

impl<T> Copy for In<T> {}
impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Argument for In<T> {
    type Raw = *const T;

    unsafe fn take(pointer: *const T, name: &'static str) -> Self {
        In { pointer, name }
    }
}

impl<T> Argument for Out<T> {
    type Raw = *mut T;

    unsafe fn take(pointer: *mut T, name: &'static str) -> Self {
        Out { pointer, name }
    }
}

impl<T> In<T> {
    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// `count` values; the pointer may be NULL where there are none.
    pub fn slice<'a>(self, count: usize) -> Outcome<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        check(self.pointer, count, self.name)?;
        // SAFETY: not NULL, aligned, not too long; the rest is the promise to `Argument::take`.
        Ok(unsafe { std::slice::from_raw_parts(self.pointer, count) })
    }
}

/// The bytes of a text.
///
/// # Safety
/// If it is not NULL, `length` bytes are there; with [`LOGITREE_NUL_TERMINATED`] a byte of 0 ends them.
pub unsafe fn bytes<'a>(data: *const c_char, length: usize, name: &str) -> Outcome<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if length != LOGITREE_NUL_TERMINATED {
        check(data, length, name)?;
        // SAFETY: not NULL, not too long; the rest is the caller's promise.
        return Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) });
    }
    check(data, 1, name)?;
    // SAFETY: not NULL; a byte of 0 ends it: the caller's promise.
    Ok(unsafe { CStr::from_ptr(data) }.to_bytes())
}

impl In<c_char> {
    /// The bytes of a text.
    pub fn bytes<'a>(self, length: usize) -> Outcome<&'a [u8]> {
        // SAFETY: the promise to `Argument::take`.
        unsafe { bytes(self.pointer, length, self.name) }
    }

    /// A text up to a byte of 0, which must be UTF-8.
    pub fn text<'a>(self) -> Outcome<&'a str> {
        let name = self.name;
        std::str::from_utf8(self.bytes(LOGITREE_NUL_TERMINATED)?).map_err(|error| {
            argument(format!("{name} is not UTF-8"), &format!("{name}, byte {}", error.valid_up_to()))
        })
    }

    /// The same; `None` for NULL.
    pub fn name<'a>(self) -> Outcome<Option<&'a str>> {
        if self.is_null() {
            return Ok(None);
        }
        self.text().map(Some)
    }

    /// A path: bytes of any encoding on Unix, UTF-8 elsewhere, up to a byte of 0.
    pub fn path(self) -> Outcome<PathBuf> {
        let bytes = self.bytes(LOGITREE_NUL_TERMINATED)?;
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            Ok(std::ffi::OsStr::from_bytes(bytes).into())
        }
        #[cfg(not(unix))]
        {
            Ok(std::str::from_utf8(bytes).map_err(|_| argument("the path is not UTF-8", "path"))?.into())
        }
    }
}

impl In<c_char> {
    /// A JSON object of options; an empty one for NULL.
    ///
    /// # Errors
    /// [`LogitreeStatus::ErrorArgument`] for another text.
    pub fn options(self, length: usize) -> Outcome<Fields> {
        let text = if self.is_null() { b"{}" } else { self.bytes(length)? };
        let json = parse(text, ErrorKind::State).map_err(invalid)?;
        Fields::new(json, "", ErrorKind::State).map_err(invalid)
    }
}

impl In<c_void> {
    /// `count` logits of a type.
    pub fn floats<'a>(self, dtype: u32, count: usize) -> Outcome<Floats<'a>> {
        let In { pointer, name } = self;
        match dtype {
            LOGITREE_F32 => In { pointer: pointer.cast(), name }.slice(count).map(Floats::F32),
            LOGITREE_F16 => In { pointer: pointer.cast(), name }.slice(count).map(Floats::F16),
            LOGITREE_BF16 => In { pointer: pointer.cast(), name }.slice(count).map(Floats::Bf16),
            _ => Err(no_dtype(dtype)),
        }
    }
}

/// The error for a number that names no type of logits.
pub fn no_dtype(dtype: u32) -> crate::status::Failure {
    argument(format!("there is no type {dtype} of logits"), "dtype")
}

impl In<LogitreeText> {
    /// The texts of a list.
    pub fn texts<'a>(self, count: usize) -> Outcome<Vec<&'a [u8]>> {
        let each = self.slice(count)?.iter().enumerate().map(|(at, one)| {
            // SAFETY: the promise to `Argument::take`.
            unsafe { bytes(one.data, one.length, &format!("{}[{at}]", self.name)) }
        });
        each.collect()
    }
}

impl<T: Copy> In<T> {
    /// A struct that begins with its own size; `None` for NULL.
    ///
    /// # Errors
    /// [`LogitreeStatus::ErrorArgument`] if the size is not that of the library's struct.
    pub fn sized(self, size: fn(&T) -> usize) -> Outcome<Option<T>> {
        let In { pointer, name } = self;
        if pointer.is_null() {
            return Ok(None);
        }
        check(pointer, 1, name)?;
        // SAFETY: not NULL, aligned; every such struct begins with its size.
        let struct_size = unsafe { pointer.cast::<usize>().read() };
        if struct_size != size_of::<T>() {
            let message = format!("{name} has {struct_size} bytes, expected {}", size_of::<T>());
            let mut failed = argument(message, name);
            failed.error.help = "begin with the INIT macro of the struct".into();
            return Err(failed);
        }
        // SAFETY: the struct is as long as the library's, which has numbers and pointers only.
        let read = unsafe { pointer.read() };
        debug_assert_eq!(size(&read), struct_size);
        Ok(Some(read))
    }
}

impl<T> Out<T> {
    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// The same memory as values of another type.
    pub fn cast<U>(self) -> Out<U> {
        Out { pointer: self.pointer.cast(), name: self.name }
    }

    /// Writes one value.
    pub fn put(self, value: T) -> Outcome {
        check(self.pointer, 1, self.name)?;
        // SAFETY: not NULL, aligned; the rest is the promise to `Argument::take`. What was there is no value that needs a
        // drop.
        unsafe { self.pointer.write(value) };
        Ok(())
    }

    /// `count` values to be written; the pointer may be NULL where there are none.
    pub fn slice<'a>(self, count: usize) -> Outcome<&'a mut [T]> {
        if count == 0 {
            return Ok(&mut []);
        }
        check(self.pointer, count, self.name)?;
        // SAFETY: not NULL, aligned, not too long; the rest is the promise to `Argument::take`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.pointer, count) })
    }

    /// Writes all values, and their number to `count`, which may not be NULL. With a capacity of 0 the pointer may be NULL:
    /// that asks for the number alone.
    ///
    /// # Errors
    /// [`LogitreeStatus::ErrorBuffer`] if they do not fit; the number is written all the same.
    pub fn put_all(self, values: &[T], capacity: usize, count: Out<usize>) -> Outcome
    where
        T: Copy,
    {
        count.put(values.len())?;
        if values.len() > capacity {
            let message = format!("there are {} elements, and room for {capacity}", values.len());
            return Err(failure(LogitreeStatus::ErrorBuffer, message));
        }
        self.slice(values.len())?.copy_from_slice(values);
        Ok(())
    }
}

impl<H: Handle> Out<*mut H> {
    /// Makes a handle and writes it; NULL is written first, so that nothing else is there after an error.
    pub fn create(self, make: impl FnOnce() -> Outcome<H::Value>) -> Outcome {
        self.put(std::ptr::null_mut())?;
        self.put(insert::<H>(make()?)?)
    }
}
