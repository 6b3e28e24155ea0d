//! Constraints.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;
use std::sync::Arc;

use logitree::constraint::token_tree::cache::cached;
use logitree::constraint::TreeSpan;
use logitree::{form, Constraint};

use crate::handles::{handle, shared};
use crate::memory::{export, In, Out};
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
    /// types. logitree_describe writes it again.
    ///
    /// `vocabulary`: NULL, or the one that token trees must fit: their ids are in it, and each leaf's tokens spell its
    /// name. Built token trees are kept by content.
    fn logitree_constraint_from_json(
        json: In<c_char>,
        length: usize,
        vocabulary: *const LogitreeVocabulary,
        out: Out<*mut LogitreeConstraint>,
    ) {
        let make = || {
            let known = if vocabulary.is_null() { None } else { Some(vocabulary_of(vocabulary)?) };
            Ok(form::read_for(json.bytes(length)?, known.as_deref())?)
        };
        out.create(make)
    }

    /// The binary form of a descriptor of a token-tree payload {"modelId": ..., "descriptors": [{"path": ..., "leaves":
    /// [{"name": ..., "tokens": [...]}]}]}, whose base64 is the field "binary" of the JSON form. Names of leaves are not
    /// part of it.
    ///
    /// Pointers: `length` bytes may be read at `payload`; `path` is NULL, where there is one, or ends in a byte of 0;
    /// `capacity` bytes may be written at `out`, and a number at `written`.
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

/// A constraint's value, for as long as a call needs it.
pub(crate) fn constraint_of(constraint: *const LogitreeConstraint) -> Outcome<Arc<dyn Constraint>> {
    Ok(Arc::clone(&*shared(constraint)?))
}
