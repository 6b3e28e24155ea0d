//! A grammar's bindings to vocabularies: made on demand; the last few are kept, so that requests share
//! their caches.

use std::sync::{Arc, Mutex, PoisonError};

use logitree::constraint::{Grammar, GrammarLimits};
use logitree::grammar::ast::GrammarNode;
use logitree::vocabulary::Vocabulary;
use logitree::{Error, Result, TokenId};
use pyo3::PyErr;

use crate::errors::to_py;

/// How many bindings one grammar keeps.
const MAX_KEPT: usize = 4;

/// The bindings of one grammar, the one last used at the end.
#[derive(Default)]
pub struct Bounds(Mutex<Vec<Bound>>);

struct Bound {
    ends: Option<Vec<TokenId>>,
    limits: GrammarLimits,
    grammar: Arc<Grammar>,
}

impl Bounds {
    /// The grammar `part` over `vocabulary`. It is made without the lock: two threads may make it at once.
    pub fn get(
        &self,
        part: &GrammarNode,
        vocabulary: &Arc<Vocabulary>,
        ends: Option<&[TokenId]>,
        limits: GrammarLimits,
    ) -> Result<Arc<Grammar>> {
        let fits = |bound: &Bound| {
            let known = bound.grammar.vocabulary();
            bound.limits == limits
                && bound.ends.as_deref() == ends
                && (Arc::ptr_eq(known, vocabulary) || known.fingerprint() == vocabulary.fingerprint())
        };
        if let Some(found) = self.look(fits) {
            return Ok(found);
        }
        let grammar = Arc::new(Grammar::new(part.rules()?, vocabulary, ends, limits)?);
        if let Some(found) = self.look(fits) {
            return Ok(found);
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push(Bound { ends: ends.map(<[TokenId]>::to_vec), limits, grammar: Arc::clone(&grammar) });
        Ok(grammar)
    }

    fn look(&self, fits: impl Fn(&Bound) -> bool) -> Option<Arc<Grammar>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(fits)?;
        let found = kept.remove(at);
        let grammar = Arc::clone(&found.grammar);
        kept.push(found);
        Some(grammar)
    }
}

/// An exception on its way through the core, which knows none.
pub struct Raised(pub PyErr);

impl From<Error> for Raised {
    fn from(error: Error) -> Raised {
        Raised(to_py(error))
    }
}
