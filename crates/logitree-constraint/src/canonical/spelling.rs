//! Canonical spelling as a constraint.

use std::sync::Arc;

use serde_json::{json, Value};

use super::Canonical;
use crate::binding::copied;
use crate::form::written;
use crate::{Constraint, Key, Matcher, Result, TokenId};
use logitree_tokens::tokenizer::Tokenizer;
use logitree_tokens::vocabulary::Vocabulary;

/// A constraint in a tokenizer's own spelling.
#[derive(Clone)]
pub struct CanonicalSpelling {
    /// What is spelled.
    pub of: Arc<dyn Constraint>,
    /// Whose spelling it is.
    pub tokenizer: Arc<Tokenizer>,
    /// The tokenizer's name in the JSON form.
    pub name: String,
    /// The tokens before the output.
    pub before: Vec<TokenId>,
}

impl Constraint for CanonicalSpelling {
    /// # Errors
    /// Those of the constraint and of [`Canonical::new`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        // A tokenizer holds its vocabulary, which would keep itself alive through what it keeps.
        let is_own = Arc::ptr_eq(vocabulary, self.tokenizer.vocabulary());
        // Tokens before the output are a prompt's, which seldom comes again.
        let key = if is_own || !self.before.is_empty() { None } else { self.content() };
        copied(vocabulary, key, self, |vocabulary| {
            let inner = self.of.matcher(vocabulary)?;
            Ok(Box::new(Canonical::new(&*inner, &self.tokenizer, &self.before)?))
        })
    }

    fn form(&self) -> Result<Value> {
        let before = (!self.before.is_empty()).then_some(&self.before);
        let fields = [("of", self.of.form()?), ("tokenizer", json!(self.name)), ("before", json!(before))];
        Ok(written("canonical", fields))
    }
}

impl CanonicalSpelling {
    /// By the tokenizer's address. It is no key: what contains this constraint may be bound to the tokenizer's own vocabulary.
    fn content(&self) -> Option<Key> {
        let tokenizer = Arc::as_ptr(&self.tokenizer) as usize;
        Key::nested::<CanonicalSpelling>(&self.of.key()?, &tokenizer)
    }
}
