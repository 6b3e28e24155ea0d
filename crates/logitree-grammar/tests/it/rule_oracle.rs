//! A slow recogniser of rules for ASCII: tables of the spans of each rule, filled up to a fixpoint.

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
        };
        loop {
            let before = (oracle.ends.clone(), oracle.begins.clone(), oracle.productive.clone());
            for rule in 0..count {
                let body = &rules.rules[rule].body;
                oracle.productive[rule] = oracle.says_something(body);
                for from in 0..places {
                    oracle.ends[rule][from] = oracle.ends(body, from);
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
            RuleBody::Tokens(_) | RuleBody::Json(_) => unreachable!("the oracle reads text"),
        }
    }

    fn ends(&self, node: &RuleBody, from: usize) -> Ends {
        match node {
            RuleBody::Lexeme(regex) => regex_ends(regex, self.text, from),
            RuleBody::Ref(rule) => self.ends[rule.index()][from],
            RuleBody::Seq(parts) => {
                let whole = |at, part| each(at).fold(0, |all, place| all | self.ends(part, place));
                parts.iter().fold(1 << from, whole)
            }
            RuleBody::Alt(parts) => parts.iter().fold(0, |all, part| all | self.ends(part, from)),
            RuleBody::Repeat { of, min, max } => rounds(from, *min, *max, |place| self.ends(of, place)),
            RuleBody::Tokens(_) | RuleBody::Json(_) => unreachable!("the oracle reads text"),
        }
    }

    fn begins(&self, node: &RuleBody, from: usize) -> bool {
        if !self.says_something(node) {
            return false;
        }
        match node {
            _ if from == self.text.len() => true,
            RuleBody::Lexeme(regex) => regex_begins(regex, self.text, from),
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
            RuleBody::Tokens(_) | RuleBody::Json(_) => unreachable!("the oracle reads text"),
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

fn regex_ends(regex: &Regex, text: &[u8], from: usize) -> Ends {
    match regex {
        Regex::Nothing => 0,
        Regex::Empty => 1 << from,
        Regex::Set(set) => {
            let here = text.get(from).is_some_and(|&byte| set.contains(byte.into()));
            u32::from(here) << (from + 1)
        }
        Regex::Text(word) => u32::from(text[from..].starts_with(word.as_bytes())) << (from + word.len()),
        Regex::Concat(parts) => parts
            .iter()
            .fold(1 << from, |at, part| each(at).fold(0, |all, place| all | regex_ends(part, text, place))),
        Regex::Or(parts) => parts.iter().fold(0, |all, part| all | regex_ends(part, text, from)),
        Regex::Repeat { of, min, max } => rounds(from, *min, *max, |place| regex_ends(of, text, place)),
        Regex::And(_) | Regex::Not(_) | Regex::Automaton(_) | Regex::Computed(_) => {
            unreachable!("the rules have no such")
        }
    }
}

fn regex_begins(regex: &Regex, text: &[u8], from: usize) -> bool {
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
                let here = each(at).any(|place| regex_begins(part, text, place));
                at = each(at).fold(0, |all, place| all | regex_ends(part, text, place));
                here
            }) || at >> len & 1 == 1
        }
        Regex::Or(parts) => parts.iter().any(|part| regex_begins(part, text, from)),
        Regex::Repeat { of, max, .. } => {
            let (begins, ends) = (|place| regex_begins(of, text, place), |place| regex_ends(of, text, place));
            rounds_begin(from, len, *max, begins, ends)
        }
        _ => regex_ends(regex, text, from) >> len & 1 == 1,
    }
}
