//! The languages of `pattern` and `format`, each read once. It refuses to know their syntax.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::super::{format, Draft};
use crate::grammar::{pattern, Regex};

/// The formats that any schema of this process asked for: they are few, and the same ones again and again.
static FORMATS: LazyLock<Mutex<FxHashMap<(String, Draft), Arc<Regex>>>> = LazyLock::new(Mutex::default);

/// The patterns that were read so far.
#[derive(Debug, Default)]
pub(super) struct Languages {
    patterns: FxHashMap<String, Result<Arc<Regex>, String>>,
}

/// The strings of the format; `None` for one that is not known and so says nothing.
pub(super) fn format(name: &str, draft: Draft) -> Option<Arc<Regex>> {
    let key = (name.to_string(), draft);
    if let Some(known) = FORMATS.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Some(Arc::clone(known));
    }
    // Made without the lock: some take long, and others go on meanwhile. Unknown names are not kept: there is no end
    // to them.
    let made = Arc::new(format::regex(name, draft)?);
    let mut formats = FORMATS.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Arc::clone(formats.entry(key).or_insert(made)))
}

impl Languages {
    /// The strings in which the pattern is found; or what is wrong with it.
    pub fn pattern(&mut self, text: &str) -> Result<Arc<Regex>, String> {
        if let Some(known) = self.patterns.get(text) {
            return known.clone();
        }
        let read = match pattern::parse(text, &pattern::Options::SEARCH) {
            Ok(regex) => Ok(Arc::new(regex)),
            Err(error) if error.place.is_empty() => Err(error.message),
            Err(error) => Err(format!("{} ({})", error.message, error.place)),
        };
        self.patterns.insert(text.into(), read.clone());
        read
    }
}
