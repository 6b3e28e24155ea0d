//! A slow recogniser of rules for ASCII: tables of the spans of each rule, filled up to a fixpoint.

use std::cell::RefCell;
use std::collections::HashMap;

use logitree_grammar::rules::{RuleBody, Rules};
use logitree_grammar::Regex;

/// The ends of a node's spans from a position, one bit each.
type Ends = u32;

/// Rules, and their tables for one text.
pub struct Oracle<'a> {
    rules: &'a Rules,
    text: &'a [u8],
    /// For each rule and position, where it may end.
    ends: Vec<Vec<Ends>>,
    /// For each rule and position, whether the rest of the text is a proper prefix of a match.
    begins: Vec<Vec<bool>>,
    /// Whether each rule is productive.
    productive: Vec<bool>,
    /// What is known of nodes until the tables change, and of expressions for good. Without it, each repetition asks for
    /// its part as often as it has rounds and positions, and nested repetitions take exponential time.
    node_ends: Answers<Ends>,
    node_begins: Answers<bool>,
    regex_ends: Answers<Ends>,
    regex_begins: Answers<bool>,
}

/// Answers by the address of what was asked, and the position.
type Answers<T> = RefCell<HashMap<(usize, usize), T>>;

/// The answer, found at the first time.
fn once<N, T: Copy>(known: &Answers<T>, node: &N, from: usize, find: impl FnOnce() -> T) -> T {
    let key = (std::ptr::from_ref(node).addr(), from);
    let answer = known.borrow().get(&key).copied();
    answer.unwrap_or_else(|| {
        let found = find();
        known.borrow_mut().insert(key, found);
        found
    })
}

impl<'a> Oracle<'a> {
    /// Fills the tables for `text`.
    pub fn new(rules: &'a Rules, text: &'a [u8]) -> Oracle<'a> {
        let (count, places) = (rules.rules.len(), text.len() + 1);
        let mut oracle = Oracle {
            rules,
            text,
            ends: vec![vec![0; places]; count],
            begins: vec![vec![false; places]; count],
            productive: vec![false; count],
            node_ends: RefCell::default(),
            node_begins: RefCell::default(),
            regex_ends: RefCell::default(),
            regex_begins: RefCell::default(),
        };
        loop {
            let before = (oracle.ends.clone(), oracle.begins.clone(), oracle.productive.clone());
            for rule in 0..count {
                let body = &rules.rules[rule].body;
                oracle.productive[rule] = oracle.says_something(body);
                for from in 0..places {
                    oracle.node_ends.get_mut().clear();
                    oracle.ends[rule][from] = oracle.ends(body, from);
                    oracle.node_ends.get_mut().clear();
                    oracle.node_begins.get_mut().clear();
                    oracle.begins[rule][from] = oracle.begins(body, from);
                }
            }
            if before == (oracle.ends.clone(), oracle.begins.clone(), oracle.productive.clone()) {
                return oracle;
            }
        }
    }

    /// Whether the text matches.
    pub fn accepts(&self) -> bool {
        self.ends[self.rules.start.index()][0] >> self.text.len() & 1 == 1
    }

    /// Whether the text is a prefix of a match.
    pub fn is_viable(&self) -> bool {
        self.begins[self.rules.start.index()][0]
    }

    fn says_something(&self, node: &RuleBody) -> bool {
        match node {
            RuleBody::Lexeme(regex) => regex_says_something(regex),
            RuleBody::Ref(rule) => self.productive[rule.index()],
            RuleBody::Seq(parts) => parts.iter().all(|part| self.says_something(part)),
            RuleBody::Alt(parts) => parts.iter().any(|part| self.says_something(part)),
            RuleBody::Repeat { of, min, max } => {
                max.is_none_or(|max| *min <= max) && (*min == 0 || self.says_something(of))
            }
            RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {
                unreachable!("the oracle reads text")
            }
        }
    }

    fn ends(&self, node: &RuleBody, from: usize) -> Ends {
        once(&self.node_ends, node, from, || self.find_ends(node, from))
    }

    fn begins(&self, node: &RuleBody, from: usize) -> bool {
        once(&self.node_begins, node, from, || self.find_begins(node, from))
    }

    fn find_ends(&self, node: &RuleBody, from: usize) -> Ends {
        match node {
            RuleBody::Lexeme(regex) => self.regex_ends(regex, from),
            RuleBody::Ref(rule) => self.ends[rule.index()][from],
            RuleBody::Seq(parts) => {
                let whole = |at, part| each(at).fold(0, |all, place| all | self.ends(part, place));
                parts.iter().fold(1 << from, whole)
            }
            RuleBody::Alt(parts) => parts.iter().fold(0, |all, part| all | self.ends(part, from)),
            RuleBody::Repeat { of, min, max } => rounds(from, *min, *max, |place| self.ends(of, place)),
            RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {
                unreachable!("the oracle reads text")
            }
        }
    }

    fn find_begins(&self, node: &RuleBody, from: usize) -> bool {
        if !self.says_something(node) {
            return false;
        }
        match node {
            _ if from == self.text.len() => true,
            RuleBody::Lexeme(regex) => self.regex_begins(regex, from),
            RuleBody::Ref(rule) => self.begins[rule.index()][from],
            RuleBody::Seq(parts) => {
                let mut at: Ends = 1 << from;
                parts.iter().any(|part| {
                    let here = each(at).any(|place| self.begins(part, place));
                    at = each(at).fold(0, |all, place| all | self.ends(part, place));
                    here
                }) || at >> self.text.len() & 1 == 1
            }
            RuleBody::Alt(parts) => parts.iter().any(|part| self.begins(part, from)),
            RuleBody::Repeat { of, max, .. } => {
                let (begins, ends) = (|place| self.begins(of, place), |place| self.ends(of, place));
                rounds_begin(from, self.text.len(), *max, begins, ends)
            }
            RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {
                unreachable!("the oracle reads text")
            }
        }
    }
}

/// The positions in a set.
fn each(ends: Ends) -> impl Iterator<Item = usize> {
    (0..32).filter(move |place| ends >> place & 1 == 1)
}

/// More iterations change nothing: a text has fewer letters.
const ENOUGH: u32 = 40;

fn rounds(from: usize, min: u32, max: Option<u32>, ends: impl Fn(usize) -> Ends) -> Ends {
    let (mut at, mut all) = (1 << from, 0);
    for round in 0..=max.unwrap_or(ENOUGH).min(ENOUGH) {
        if round >= min {
            all |= at;
        }
        at = each(at).fold(0, |all, place| all | ends(place));
    }
    all
}

fn rounds_begin(
    from: usize,
    len: usize,
    max: Option<u32>,
    begins: impl Fn(usize) -> bool,
    ends: impl Fn(usize) -> Ends,
) -> bool {
    let mut at: Ends = 1 << from;
    for round in 0..=max.unwrap_or(ENOUGH).min(ENOUGH) {
        if at >> len & 1 == 1 {
            return true;
        }
        if max.is_none_or(|max| round < max) && each(at).any(&begins) {
            return true;
        }
        at = each(at).fold(0, |all, place| all | ends(place));
    }
    false
}

fn regex_says_something(regex: &Regex) -> bool {
    match regex {
        Regex::Nothing => false,
        Regex::Empty | Regex::Text(_) => true,
        Regex::Set(set) => !set.is_empty(),
        Regex::Concat(parts) => parts.iter().all(regex_says_something),
        Regex::Or(parts) => parts.iter().any(regex_says_something),
        Regex::Repeat { of, min, max } => {
            max.is_none_or(|max| *min <= max) && (*min == 0 || regex_says_something(of))
        }
        Regex::And(_) | Regex::Not(_) | Regex::Automaton(_) | Regex::Computed(_) => {
            unreachable!("the rules have no such")
        }
    }
}

impl Oracle<'_> {
    fn regex_ends(&self, regex: &Regex, from: usize) -> Ends {
        once(&self.regex_ends, regex, from, || self.find_regex_ends(regex, from))
    }

    fn regex_begins(&self, regex: &Regex, from: usize) -> bool {
        once(&self.regex_begins, regex, from, || self.find_regex_begins(regex, from))
    }

    fn find_regex_ends(&self, regex: &Regex, from: usize) -> Ends {
        let text = self.text;
        match regex {
            Regex::Nothing => 0,
            Regex::Empty => 1 << from,
            Regex::Set(set) => {
                let here = text.get(from).is_some_and(|&byte| set.contains(byte.into()));
                u32::from(here) << (from + 1)
            }
            Regex::Text(word) => u32::from(text[from..].starts_with(word.as_bytes())) << (from + word.len()),
            Regex::Concat(parts) => parts.iter().fold(1 << from, |at, part| {
                each(at).fold(0, |all, place| all | self.regex_ends(part, place))
            }),
            Regex::Or(parts) => parts.iter().fold(0, |all, part| all | self.regex_ends(part, from)),
            Regex::Repeat { of, min, max } => rounds(from, *min, *max, |place| self.regex_ends(of, place)),
            Regex::And(_) | Regex::Not(_) | Regex::Automaton(_) | Regex::Computed(_) => {
                unreachable!("the rules have no such")
            }
        }
    }

    fn find_regex_begins(&self, regex: &Regex, from: usize) -> bool {
        let text = self.text;
        if !regex_says_something(regex) {
            return false;
        }
        let len = text.len();
        match regex {
            _ if from == len => true,
            Regex::Text(word) => word.as_bytes().starts_with(&text[from..]),
            Regex::Concat(parts) => {
                let mut at: Ends = 1 << from;
                parts.iter().any(|part| {
                    let here = each(at).any(|place| self.regex_begins(part, place));
                    at = each(at).fold(0, |all, place| all | self.regex_ends(part, place));
                    here
                }) || at >> len & 1 == 1
            }
            Regex::Or(parts) => parts.iter().any(|part| self.regex_begins(part, from)),
            Regex::Repeat { of, max, .. } => {
                let (begins, ends) =
                    (|place| self.regex_begins(of, place), |place| self.regex_ends(of, place));
                rounds_begin(from, len, *max, begins, ends)
            }
            _ => self.regex_ends(regex, from) >> len & 1 == 1,
        }
    }
}
