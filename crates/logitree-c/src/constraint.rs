//! Constraints.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;
use std::sync::Arc;

use logitree::constraint::token_tree::cache::{cached, token_trees, Key};
use logitree::constraint::{TokenTree, TreeSpan};
use logitree::{form, Constraint};

use crate::handles::{handle, remove, shared};
use crate::memory::{export, In, LogitreeText, Out};
use crate::status::Outcome;
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};

/// Any constraint.
pub type SharedConstraint = Arc<dyn Constraint>;

handle! {
    /// What may be generated: a value that knows no vocabulary. It never changes: any number of threads may use it at
    /// once.
    LogitreeConstraint, SharedConstraint, 2, "constraint"
}

export! {
    /// The constraint that a JSON text describes: {"type": "json_schema", "schema": {...}} and so on; docs/c.md has all
    /// types.
    fn logitree_constraint_from_json(json: In<c_char>, length: usize, out: Out<*mut LogitreeConstraint>) {
        out.create(|| Ok(form::read(json.bytes(length)?)?))
    }

    /// A leaf of a token-tree payload {"modelId": ..., "descriptors": [{"path": ..., "leaves": [{"name": ..., "tokens":
    /// [...]}]}]}.
    ///
    /// `path`: which descriptor; NULL where there is one. `vocabulary`: NULL, or the one that the ids and names must
    /// fit. `following`: NULL, or a text that comes after the leaf. Built trees are cached by content.
    ///
    /// Pointers: `length` bytes may be read at `payload`; `path` is NULL or ends in a byte of 0; a text may be read at
    /// `following`, if it is not NULL.
    fn logitree_constraint_token_tree(
        payload: In<c_char>,
        length: usize,
        path: In<c_char>,
        vocabulary: *const LogitreeVocabulary,
        following: In<LogitreeText>,
        out: Out<*mut LogitreeConstraint>,
    ) {
        let make = || {
            let known = if vocabulary.is_null() { None } else { Some(vocabulary_of(vocabulary)?) };
            let (payload, path, after) = {
                let one = usize::from(!following.is_null());
                (payload.bytes(length)?, path.name()?, following.texts(one)?)
            };
            let span = TreeSpan::at(cached(payload, known.as_deref())?, path)?;
            let following = after.first().map(|text| text.to_vec());
            Ok(Arc::new(TreeSpan { following, ..span }) as SharedConstraint)
        };
        out.create(make)
    }

    /// A leaf of a descriptor in its binary form.
    fn logitree_constraint_token_tree_binary(data: In<u8>, length: usize, out: Out<*mut LogitreeConstraint>) {
        let make = || {
            let content = data.slice(length)?;
            let key = Key { content, context: b"binary" };
            let tree = token_trees().get_or_build(key, || TokenTree::from_binary(content))?;
            Ok(Arc::new(TreeSpan::at(tree, None)?) as SharedConstraint)
        };
        out.create(make)
    }

    /// The binary form of a descriptor of a payload. Names of leaves are not part of it.
    ///
    /// Pointers: `length` bytes may be read at `payload`; `path` is NULL or ends in a byte of 0; `capacity` bytes may
    /// be written at `out`, and a number at `written`.
    fn logitree_token_tree_to_binary(
        payload: In<c_char>,
        length: usize,
        path: In<c_char>,
        out: Out<u8>,
        capacity: usize,
        written: Out<usize>,
    ) {
        let (payload, path) = (payload.bytes(length)?, path.name()?);
        let span = TreeSpan::at(cached(payload, None)?, path)?;
        let binary = span.tree.descriptor(&span.path)?.to_binary();
        out.put_all(&binary, capacity, written)
    }
}

/// Forgets the built token trees that are cached by content, 128 at most. Those in use live on.
#[no_mangle]
pub extern "C" fn logitree_token_tree_cache_clear() {
    token_trees().clear();
}

export! {
    /// The constraint as JSON, which logitree_constraint_from_json reads. LOGITREE_ERROR_CONSTRAINT for one that a
    /// program makes, such as a catalogue's handle.
    fn logitree_constraint_to_json(
        constraint: *const LogitreeConstraint,
        out: Out<u8>,
        capacity: usize,
        written: Out<usize>,
    ) {
        let form = shared(constraint)?.form()?.to_string();
        out.put_all(form.as_bytes(), capacity, written)
    }

    /// Frees a constraint. Matchers of it live on. NULL is no error.
    fn logitree_constraint_free(constraint: *mut LogitreeConstraint) {
        remove(constraint)
    }
}

/// A constraint's value, for as long as a call needs it.
pub(crate) fn constraint_of(constraint: *const LogitreeConstraint) -> Outcome<Arc<dyn Constraint>> {
    Ok(Arc::clone(&*shared(constraint)?))
}
