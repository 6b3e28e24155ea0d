//! Compiles the regular languages of `pattern` and `format`, each once.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::super::{format, Draft};
use crate::{pattern, Regex};

/// The formats that any schema of this process asked for: they are few, and the same ones again and again.
static FORMATS: LazyLock<Mutex<Formats>> = LazyLock::new(Mutex::default);

type Formats = FxHashMap<(String, Draft), Arc<Regex>>;

/// Maximum number of different patterns of one schema.
const MAX_PATTERNS: usize = 20_000;

/// Maximum work for all patterns of one schema.
const MAX_WORK: usize = 3 * pattern::MAX_WORK / 2;

/// What this schema asked for so far.
#[derive(Debug)]
pub(super) struct StringLanguages {
    /// What may still be spent on patterns.
    work: usize,
    patterns: FxHashMap<String, Result<Arc<Regex>, String>>,
    formats: FxHashMap<String, (Draft, Option<Arc<Regex>>)>,
}

impl Default for StringLanguages {
    fn default() -> StringLanguages {
        StringLanguages { work: MAX_WORK, patterns: FxHashMap::default(), formats: FxHashMap::default() }
    }
}

impl StringLanguages {
    /// The strings in which the pattern is found; or what is wrong with it.
    pub fn pattern(&mut self, text: &str) -> Result<Arc<Regex>, String> {
        if let Some(known) = self.patterns.get(text) {
            return known.clone();
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} different patterns"));
        }
        let read = match pattern::parse_within(text, &pattern::PatternOptions::SEARCH, &mut self.work) {
            Ok(regex) => Ok(Arc::new(regex)),
            Err(error) if error.place.is_empty() => Err(error.message),
            Err(error) => Err(format!("{} ({})", error.message, error.place)),
        };
        self.patterns.insert(text.into(), read.clone());
        read
    }
    /// The strings of the format; `None` for an unknown format, which asserts nothing.
    pub fn format(&mut self, name: &str, draft: Draft) -> Option<Arc<Regex>> {
        if let Some((_, known)) = self.formats.get(name).filter(|(of, _)| *of == draft) {
            return known.clone();
        }
        let found = shared(name, draft);
        self.formats.insert(name.into(), (draft, found.clone()));
        found
    }
}

/// A format as all schemas of the process share it.
fn shared(name: &str, draft: Draft) -> Option<Arc<Regex>> {
    let key = (name.to_string(), format::edition(name, draft));
    if let Some(known) = FORMATS.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Some(Arc::clone(known));
    }
    // Compiled without the lock, since some formats take long. Unknown names are not cached: there are infinitely many.
    let made = Arc::new(format::regex(name, draft)?);
    let mut formats = FORMATS.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Arc::clone(formats.entry(key).or_insert(made)))
}
