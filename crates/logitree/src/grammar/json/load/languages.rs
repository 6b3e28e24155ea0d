//! The languages of `pattern` and `format`, each read once. It refuses to know their syntax.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::Draft;
use crate::grammar::Regex;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Languages {
    patterns: FxHashMap<String, Result<Arc<Regex>, String>>,
    formats: FxHashMap<(String, Draft), Option<Arc<Regex>>>,
}

impl Languages {
    /// The strings in which the pattern is found; or what is wrong with it.
    pub fn pattern(&mut self, text: &str) -> Result<Arc<Regex>, String> {
        if let Some(known) = self.patterns.get(text) {
            return known.clone();
        }
        let read = Ok(Arc::new(Regex::anything()));
        self.patterns.insert(text.into(), read.clone());
        read
    }

    /// The strings of the format; `None` for one that is not known and so says nothing.
    pub fn format(&mut self, name: &str, draft: Draft) -> Option<Arc<Regex>> {
        let key = (name.to_string(), draft);
        self.formats.entry(key).or_insert_with(|| None).clone()
    }
}
