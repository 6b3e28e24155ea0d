//! Constraints.
#![allow(unsafe_code)] // exported names and pointers of the caller

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use logitree::constraint::token_tree::cache::{cached, token_trees, Key};
use logitree::constraint::{TokenTree, TreeSpan};
use logitree::{form, Constraint};

use crate::handles::{handle, remove, shared};
use crate::library::LOGITREE_NUL_TERMINATED;
use crate::memory::{bytes, create, put_all, slice, text, texts, LogitreeText};
use crate::status::{run, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};
use crate::LogitreeStatus;

/// Any constraint.
pub type SharedConstraint = Arc<dyn Constraint>;

handle! {
    /// What may be generated: a value that knows no vocabulary. It never changes: any number of threads may use it at once.
    LogitreeConstraint, SharedConstraint, 2, "constraint"
}

/// The constraint that a JSON text describes: {"type": "json_schema", "schema": {...}} and so on; docs/c.md has all types.
///
/// # Safety
/// `length` bytes may be read at `json`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_from_json(
    json: *const c_char,
    length: usize,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(form::read(bytes(json, length, "json")?)?)) })
}

/// A leaf of a token-tree payload {"modelId": ..., "descriptors": [{"path": ..., "leaves": [{"name": ..., "tokens":
/// [...]}]}]}.
///
/// `path`: which descriptor; NULL where there is one. `vocabulary`: NULL, or the one that the ids and names must fit.
/// `following`: NULL, or a text that comes after the leaf. Built trees are cached by content.
///
/// # Safety
/// `length` bytes may be read at `payload`; `path` is NULL or ends in a byte of 0; a text may be read at `following`, if it
/// is not NULL; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_token_tree(
    payload: *const c_char,
    length: usize,
    path: *const c_char,
    vocabulary: *const LogitreeVocabulary,
    following: *const LogitreeText,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            let known = if vocabulary.is_null() { None } else { Some(vocabulary_of(vocabulary)?) };
            // SAFETY: the caller's promise.
            let (payload, path, after) = unsafe {
                let one = usize::from(!following.is_null());
                (bytes(payload, length, "payload")?, name(path, "path")?, texts(following, one, "following")?)
            };
            let span = TreeSpan::at(cached(payload, known.as_deref())?, path)?;
            let following = after.first().map(|text| text.to_vec());
            Ok(Arc::new(TreeSpan { following, ..span }) as SharedConstraint)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// A leaf of a descriptor in its binary form.
///
/// # Safety
/// `length` bytes may be read at `data`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_token_tree_binary(
    data: *const u8,
    length: usize,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let content = unsafe { slice(data, length, "data") }?;
            let key = Key { content, context: b"binary" };
            let tree = token_trees().get_or_build(key, || TokenTree::from_binary(content))?;
            Ok(Arc::new(TreeSpan::at(tree, None)?) as SharedConstraint)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// The binary form of a descriptor of a payload. Names of leaves are not part of it.
///
/// # Safety
/// `length` bytes may be read at `payload`; `path` is NULL or ends in a byte of 0; `capacity` bytes may be written at `out`,
/// and a number at `written`.
#[no_mangle]
pub unsafe extern "C" fn logitree_token_tree_to_binary(
    payload: *const c_char,
    length: usize,
    path: *const c_char,
    out: *mut u8,
    capacity: usize,
    written: *mut usize,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let (payload, path) = unsafe { (bytes(payload, length, "payload")?, name(path, "path")?) };
        let span = TreeSpan::at(cached(payload, None)?, path)?;
        let binary = span.tree.descriptor(&span.path)?.to_binary();
        // SAFETY: the caller's promise.
        unsafe { put_all(&binary, out, capacity, written) }
    })
}

/// Forgets the built token trees that are cached by content, 128 at most. Those in use live on.
#[no_mangle]
pub extern "C" fn logitree_token_tree_cache_clear() {
    token_trees().clear();
}

/// The constraint as JSON, which logitree_constraint_from_json reads. LOGITREE_ERROR_CONSTRAINT for one that a program makes, such
/// as a catalogue's handle.
///
/// # Safety
/// `capacity` bytes may be written at `out`, and a number at `written`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_to_json(
    constraint: *const LogitreeConstraint,
    out: *mut u8,
    capacity: usize,
    written: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let form = shared(constraint)?.form()?.to_string();
        // SAFETY: the caller's promise.
        unsafe { put_all(form.as_bytes(), out, capacity, written) }
    })
}

/// Frees a constraint. Matchers of it live on. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_constraint_free(constraint: *mut LogitreeConstraint) -> LogitreeStatus {
    run(|| remove(constraint))
}

/// A constraint's value, for as long as a call needs it.
pub(crate) fn constraint_of(constraint: *const LogitreeConstraint) -> Outcome<Arc<dyn Constraint>> {
    Ok(Arc::clone(&*shared(constraint)?))
}

/// A text that may be NULL.
///
/// # Safety
/// `text` is NULL or ends in a byte of 0.
pub(crate) unsafe fn name<'a>(name: *const c_char, called: &str) -> Outcome<Option<&'a str>> {
    if ptr::eq(name, ptr::null()) {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { text(name, LOGITREE_NUL_TERMINATED, called) }.map(Some)
}
