//! What was found wrong, collected until the end: one error that lists all, or warnings. It refuses to know schemas.

use super::document::At;
use crate::{Error, ErrorKind};

/// How many problems an error lists.
const LISTED: usize = 20;

/// Something wrong at a value of a document.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub document: u32,
    pub at: At,
    pub message: String,
    pub help: String,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Takes one.
    pub fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All in the order of documents and of places in them, each said once.
    fn ordered(mut self) -> Vec<Problem> {
        self.0.sort_by_key(|p| (p.document, p.at));
        self.0.dedup_by(|a, b| (a.document, a.at, &a.message) == (b.document, b.at, &b.message));
        self.0
    }

    /// One error that lists them; `None` where nothing is wrong.
    pub fn error(self, place: impl Fn(u32, At) -> String) -> Option<Error> {
        let all = self.ordered();
        let first = all.first()?;
        let at = place(first.document, first.at);
        if all.len() == 1 {
            return Some(
                Error::new(ErrorKind::Constraint, first.message.clone()).at(at).help(first.help.clone()),
            );
        }
        let mut message = format!("{} problems in the schema", all.len());
        for (n, problem) in all.iter().take(LISTED).enumerate() {
            let sign = if n == 0 { ':' } else { ';' };
            message =
                format!("{message}{sign} {} (at {})", problem.message, place(problem.document, problem.at));
        }
        if all.len() > LISTED {
            message = format!("{message}; and {} more", all.len() - LISTED);
        }
        Some(Error::new(ErrorKind::Constraint, message).at(at).help(first.help.clone()))
    }

    /// Each as a warning.
    pub fn warnings(self, place: impl Fn(u32, At) -> String) -> Vec<String> {
        let all = self.ordered();
        all.iter().map(|p| format!("{}: {}, dropped", place(p.document, p.at), p.message)).collect()
    }
}
