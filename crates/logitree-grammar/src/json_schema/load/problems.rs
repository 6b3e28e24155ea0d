//! Collects the problems of a schema into one error, or into warnings if loading is lenient.

use super::super::super::problems::{Problems, LISTED};
use super::document::ValueId;
use crate::{Error, ErrorKind};

/// How many problems become warnings. Listing a place searches for it from the root, so this also bounds the time.
const WARNED: usize = 1000;

/// Something wrong at a value of a document.
#[derive(Debug, Clone)]
pub(super) struct SchemaProblem {
    pub document: u32,
    pub at: ValueId,
    pub fault: SchemaFault,
}

/// What is wrong, and how to fix it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SchemaFault {
    pub message: String,
    pub help: String,
    /// Places that the message ends with, document and value each.
    pub trail: Vec<(u32, ValueId)>,
}

impl SchemaFault {
    /// A fault without help.
    pub fn new(message: impl Into<String>) -> SchemaFault {
        SchemaFault { message: message.into(), ..SchemaFault::default() }
    }

    /// The same, with help.
    pub fn help(mut self, help: &str) -> SchemaFault {
        self.help = help.into();
        self
    }

    fn text(&self, place: &impl Fn(u32, ValueId) -> String) -> String {
        let trail: Vec<String> = self.trail.iter().map(|&(document, at)| place(document, at)).collect();
        format!("{}{}{}", self.message, if trail.is_empty() { "" } else { " " }, trail.join(" -> "))
    }
}

/// All, in the order of documents and of places in them, without repetitions.
fn ordered(mut all: Vec<SchemaProblem>) -> Vec<SchemaProblem> {
    all.sort_by_key(|p| (p.document, p.at));
    all.dedup_by(|a, b| (a.document, a.at, &a.fault) == (b.document, b.at, &b.fault));
    all
}

/// One error that lists them; `None` where nothing is wrong.
pub(super) fn error(all: Vec<SchemaProblem>, place: impl Fn(u32, ValueId) -> String) -> Option<Error> {
    let all = ordered(all);
    if let [SchemaProblem { document, at, fault }] = &all[..] {
        let error = Error::new(ErrorKind::Constraint, fault.text(&place));
        return Some(error.at(place(*document, *at)).help(fault.help.clone()));
    }
    let mut problems = Problems::default();
    for SchemaProblem { document, at, fault } in all.iter().take(LISTED) {
        problems.add_at(&place(*document, *at), fault.text(&place), &fault.help);
    }
    problems.add_unlisted(all.len().saturating_sub(LISTED));
    problems.finish_pointers("the schema").err()
}

/// Each as a warning.
pub(super) fn warnings(all: Vec<SchemaProblem>, place: impl Fn(u32, ValueId) -> String) -> Vec<String> {
    let all = ordered(all);
    let one = |p: &SchemaProblem| format!("{}: {}, dropped", place(p.document, p.at), p.fault.text(&place));
    let mut warnings: Vec<String> = all.iter().take(WARNED).map(one).collect();
    if all.len() > WARNED {
        warnings.push(format!("and {} more problems, dropped too", all.len() - WARNED));
    }
    warnings
}
