//! What was found wrong, collected until the end: one error that lists all, or warnings. It refuses to know schemas.

use super::document::At;
use crate::{Error, ErrorKind};

/// How many problems an error lists, and how many become warnings. A place is sought from the root when it is listed,
/// so this also bounds the time.
const LISTED: usize = 20;
const WARNED: usize = 1000;

/// Something wrong at a value of a document.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub document: u32,
    pub at: At,
    pub fault: Fault,
}

/// What is wrong, and the way out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fault {
    pub message: String,
    pub help: String,
    /// Places that the message ends with, document and value each.
    pub trail: Vec<(u32, At)>,
}

impl Fault {
    /// A fault without a way out.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), ..Fault::default() }
    }

    /// The same, with the way out.
    pub fn help(mut self, help: &str) -> Fault {
        self.help = help.into();
        self
    }

    /// The same, with places that the message ends with.
    pub fn trail(mut self, trail: Vec<(u32, At)>) -> Fault {
        self.trail = trail;
        self
    }

    fn text(&self, place: &impl Fn(u32, At) -> String) -> String {
        let trail: Vec<String> = self.trail.iter().map(|&(document, at)| place(document, at)).collect();
        format!("{}{}{}", self.message, if trail.is_empty() { "" } else { " " }, trail.join(" -> "))
    }
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
        self.0.dedup_by(|a, b| (a.document, a.at, &a.fault) == (b.document, b.at, &b.fault));
        self.0
    }

    /// One error that lists them; `None` where nothing is wrong.
    pub fn error(self, place: impl Fn(u32, At) -> String) -> Option<Error> {
        let all = self.ordered();
        let first = all.first()?;
        let at = place(first.document, first.at);
        let mut message = first.fault.text(&place);
        if all.len() > 1 {
            let one = |p: &Problem| format!("{} (at {})", p.fault.text(&place), place(p.document, p.at));
            let listed: Vec<String> = all.iter().take(LISTED).map(one).collect();
            message = format!("{} problems in the schema: {}", all.len(), listed.join("; "));
            if all.len() > LISTED {
                message = format!("{message}; and {} more", all.len() - LISTED);
            }
        }
        Some(Error::new(ErrorKind::Constraint, message).at(at).help(first.fault.help.clone()))
    }

    /// Each as a warning.
    pub fn warnings(self, place: impl Fn(u32, At) -> String) -> Vec<String> {
        let all = self.ordered();
        let one = |p: &Problem| format!("{}: {}, dropped", place(p.document, p.at), p.fault.text(&place));
        let mut warnings: Vec<String> = all.iter().take(WARNED).map(one).collect();
        if all.len() > WARNED {
            warnings.push(format!("and {} more problems, dropped too", all.len() - WARNED));
        }
        warnings
    }
}
