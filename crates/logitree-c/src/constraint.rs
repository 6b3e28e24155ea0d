//! Constraints.
#![allow(unsafe_code)] // exported names and pointers of the caller

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use logitree::constraint::reasoning::ReasoningStart;
use logitree::constraint::token_tree::cache::{token_trees, Key};
use logitree::constraint::{PayloadCheck, ReasoningOptions, TokenTree, TreeSpan};
use logitree::grammar::json_schema::SchemaOptions;
use logitree::{Constraint, GrammarNode, OneOf, Reasoning, Result, Syntax, Vocabulary};

use crate::constraint_json::{self, SharedConstraint};
use crate::handles::{handle, remove, shared};
use crate::library::{LOGITREE_NO_LIMIT, LOGITREE_NUL_TERMINATED};
use crate::memory::{bytes, create, put_all, slice, text, texts, LogitreeText};
use crate::status::{run, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};
use crate::LogitreeStatus;

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
    run(|| unsafe { create(out, || Ok(constraint_json::read(bytes(json, length, "json")?)?)) })
}

/// One of `count` texts, in any tokens that spell it; `following`, unless it is NULL, comes after every one of them and is
/// generated too.
///
/// # Safety
/// `count` texts may be read at `list` and, if it is not NULL, one at `following`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_choices(
    list: *const LogitreeText,
    count: usize,
    following: *const LogitreeText,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let (choices, after) = unsafe {
                let one = usize::from(!following.is_null());
                (texts(list, count, "texts")?, texts(following, one, "following")?)
            };
            let made = OneOf::new(choices);
            let made = after.first().map_or(made.clone(), |text| made.followed_by(*text));
            Ok(Arc::new(made) as SharedConstraint)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// A grammar from one text.
unsafe fn grammar(
    source: *const c_char,
    length: usize,
    name: &str,
    out: *mut *mut LogitreeConstraint,
    syntax: impl FnOnce(String) -> Syntax,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let source = unsafe { text(source, length, name) }?;
            Ok(Arc::new(GrammarNode::read(syntax(source.to_string()))?) as SharedConstraint)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// Texts that match a regular expression as a whole (ECMA-262's syntax and common additions).
///
/// # Safety
/// `length` bytes may be read at `pattern`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_regex(
    pattern: *const c_char,
    length: usize,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    unsafe { grammar(pattern, length, "pattern", out, Syntax::Regex) }
}

/// A grammar in llama.cpp's notation, from the rule `root`; NULL: from "root".
///
/// # Safety
/// `length` bytes may be read at `source`; `root` is NULL or ends in a byte of 0; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_gbnf(
    source: *const c_char,
    length: usize,
    root: *const c_char,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    let start = match unsafe { name(root, "root") } {
        Ok(start) => start.unwrap_or("root").to_string(),
        Err(failed) => return run(|| Err(failed)),
    };
    // SAFETY: the caller's promise.
    unsafe { grammar(source, length, "source", out, |text| Syntax::Gbnf { text, root: start }) }
}

/// A grammar in llguidance's Lark, from its rule `start`.
///
/// # Safety
/// `length` bytes may be read at `source`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_lark(
    source: *const c_char,
    length: usize,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    let syntax = |text| Syntax::Lark { text, grammars: Vec::new() };
    // SAFETY: the caller's promise.
    unsafe { grammar(source, length, "source", out, syntax) }
}

/// JSON that is valid under a schema, keys in the schema's order. Options: logitree_constraint_from_json.
///
/// # Safety
/// `length` bytes may be read at `schema`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_json_schema(
    schema: *const c_char,
    length: usize,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    let options = SchemaOptions::default();
    let syntax = |text| Syntax::JsonSchema { text, options, documents: Vec::new() };
    // SAFETY: the caller's promise.
    unsafe { grammar(schema, length, "schema", out, syntax) }
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
            let tree = cached_tree(payload, known.as_deref())?;
            let span = span_of(tree, path)?;
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
            let tree = token_trees().get_or_build(key, || constraint_json::tree_of_binary(content))?;
            Ok(Arc::new(span_of(tree, None)?) as SharedConstraint)
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
        let span = span_of(cached_tree(payload, None)?, path)?;
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

/// A bounded reasoning block and then `then`; NULL: then anything.
///
/// `begin`, `end`: the tokens that begin and end the block. `budget`: the most tokens between them; LOGITREE_NO_LIMIT.
/// Other options: logitree_constraint_from_json.
///
/// # Safety
/// `begin_count` ids may be read at `begin`, `end_count` at `end`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_constraint_reasoning_budget(
    begin: *const u32,
    begin_count: usize,
    end: *const u32,
    end_count: usize,
    budget: usize,
    then: *const LogitreeConstraint,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let (begin, end) =
                unsafe { (slice(begin, begin_count, "begin")?, slice(end, end_count, "end")?) };
            let then = if then.is_null() { None } else { Some(constraint_of(then)?) };
            let options = ReasoningOptions {
                begin: vec![begin.to_vec()],
                end: vec![end.to_vec()],
                budget: (budget != LOGITREE_NO_LIMIT).then_some(budget),
                ..ReasoningOptions::default()
            };
            let start = ReasoningStart::Outside;
            Ok(Arc::new(Reasoning { options, start, then }) as SharedConstraint)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
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

/// The tree of a payload, from the cache where it is there.
pub(crate) fn cached_tree(payload: &[u8], vocabulary: Option<&Vocabulary>) -> Result<Arc<TokenTree>> {
    let check = PayloadCheck { vocabulary, ..PayloadCheck::default() };
    let mut context = b"c".to_vec();
    context.extend(vocabulary.map_or([0; 16], |known| known.fingerprint().to_le_bytes()));
    token_trees()
        .get_or_build(Key { content: payload, context: &context }, || TokenTree::from_json(payload, &check))
}

pub(crate) fn span_of(tree: Arc<TokenTree>, path: Option<&str>) -> Result<TreeSpan> {
    constraint_json::span(tree, path)
}
