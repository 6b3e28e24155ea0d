//! Compiles terminals to regular languages.

use std::sync::Arc;

use serde_json::Value as Json;

use super::super::dfa::{explore, Explored, Walk};
use super::super::pattern::{self, LineEnds, MatchScope, PatternFlags};
use super::super::problems::Problems;
use super::super::Regex;
use super::ast::{Choice, Expr, Value};
use super::scope::{Read, Scope, Source};

/// Maximum nesting of a terminal; the compiler of expressions allows 600.
const MAX_DEEP: usize = 300;
/// Maximum number of nodes of all terminals of a text, inlined copies included.
const MAX_WEIGHT: usize = 1 << 21;

/// Texts of more pieces are quoted by an automaton.
const FEW_PIECES: usize = 2_048;

/// A regular language with its weight and its depth.
pub(super) type Sized = (Regex, usize, usize);

/// Reads terminals.
pub(super) struct Terminals<'p> {
    pub(super) problems: &'p mut Problems,
    /// The total weight of all terminals so far.
    pub(super) weight: &'p mut usize,
    /// How many terminals are being read, each referenced by the previous one.
    pub(super) nested: usize,
}

impl Terminals<'_> {
    /// The language of the terminal `name` at `at`.
    pub(super) fn named(&mut self, name: &str, at: usize, scope: &mut Scope) -> Option<Sized> {
        let Some(terminal) = scope.terminals.get_mut(name) else {
            if scope.rules.contains_key(name) {
                let message = format!("the rule \"{name}\" cannot stand in a terminal");
                self.problems.add(at, message, "write it in upper case");
            } else {
                scope.unknown(name, at, self.problems);
            }
            return None;
        };
        if self.nested > MAX_DEEP {
            let message = format!("terminals refer to each other more than {MAX_DEEP} deep");
            self.problems.add(at, message, "write the outer ones in lower case");
            return None;
        }
        match std::mem::replace(&mut terminal.read, Read::Now) {
            Read::Done(done) => {
                terminal.read = Read::Done(done.clone());
                return self.weighed(done?, at);
            }
            Read::Now => {
                let message = format!("the terminal {name} refers to itself");
                self.problems.add(at, message, "terminals are regular: write it in lower case");
                return None;
            }
            Read::Not => {}
        }
        let read = match &terminal.source {
            Source::Common(regex) => Some(sized(regex.clone())),
            Source::Written(choice) => {
                let choice = *choice;
                self.nested += 1;
                let read = self.choice(choice, scope);
                self.nested -= 1;
                read
            }
        };
        if let Some(terminal) = scope.terminals.get_mut(name) {
            terminal.read = Read::Done(read.clone());
        }
        self.weighed(read?, at)
    }

    /// The language, if it is not too large.
    fn weighed(&mut self, (regex, weight, depth): Sized, at: usize) -> Option<Sized> {
        *self.weight += weight;
        if *self.weight > MAX_WEIGHT {
            if *self.weight - weight <= MAX_WEIGHT {
                let message = "the terminals are too large, with all they copy from each other";
                self.problems.add(
                    at,
                    message,
                    "write the outer ones in lower case: rules share what they refer to",
                );
            }
            return None;
        }
        if depth > MAX_DEEP {
            let message = format!("a terminal nests more than {MAX_DEEP} deep");
            self.problems.add(at, message, "write the outer ones in lower case");
            return None;
        }
        Some((regex, weight, depth))
    }

    /// The language of a body. Every part is read, so that all problems are reported.
    pub(super) fn choice(&mut self, choice: &Choice, scope: &mut Scope) -> Option<Sized> {
        let mut whole = true;
        let mut alternatives = Vec::with_capacity(choice.alternatives.len());
        for alternative in &choice.alternatives {
            let mut all = Vec::with_capacity(alternative.all.len());
            for sequence in &alternative.all {
                let parts: Vec<Option<Sized>> = sequence.iter().map(|part| self.part(part, scope)).collect();
                let parts: Option<Vec<Sized>> = parts.into_iter().collect();
                all.extend(parts.map(|parts| join(parts, Regex::Empty, Regex::Concat)));
            }
            whole &= all.len() == alternative.all.len();
            alternatives.push(join(all, Regex::Empty, Regex::And));
        }
        let joined = join(alternatives, Regex::Nothing, Regex::Or);
        if !whole {
            return None;
        }
        self.weighed(joined, choice.at)
    }

    fn part(&mut self, part: &Expr, scope: &mut Scope) -> Option<Sized> {
        let (mut regex, mut weight, mut depth) = self.value(&part.value, part.at, scope)?;
        if part.negated {
            (regex, weight, depth) = (regex.not(), weight + 1, depth + 1);
        }
        if let Some((min, max)) = part.times {
            (regex, weight, depth) = (regex.repeat(min, max), weight + 1, depth + 1);
        }
        Some((regex, weight, depth))
    }

    /// The language of one value; reports values that have none.
    pub(super) fn value(&mut self, value: &Value, at: usize, scope: &mut Scope) -> Option<Sized> {
        let what = match value {
            Value::Group(choice) => return self.choice(choice, scope),
            Value::Optional(choice) => {
                let (regex, weight, depth) = self.choice(choice, scope)?;
                return Some((regex.optional(), weight + 1, depth + 1));
            }
            Value::Name(name) => return self.named(name, at, scope),
            Value::Text { text, fold: false } => {
                let length = text.len();
                return self.weighed((Regex::text(&**text), 1 + length / 16, 1), at);
            }
            Value::Text { text, fold: true } => return self.folded(text, at),
            Value::Pattern { pattern, flags } => return self.pattern(pattern, flags, at),
            Value::Range(from, to) => return Some((Regex::range(*from, *to), 1, 1)),
            Value::Structured(json) => return self.structured(json, at),
            Value::Token(token) => format!("the token {token}"),
            Value::Grammar(name) => format!("the grammar @{name}"),
            Value::Json(_) => "%json".to_string(),
            Value::Nested(_) => "%lark".to_string(),
        };
        self.problems.add(at, format!("{what} cannot stand in a terminal"), "write the name in lower case");
        None
    }

    /// The text in any case.
    fn folded(&mut self, text: &str, at: usize) -> Option<Sized> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c.is_whitespace() || c.is_control();
        let escape = |c: char| if is_word(c) { c.to_string() } else { format!("\\{c}") };
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            // Escapes of other characters do not mean the characters themselves in every dialect.
            escaped.push_str(&if c.is_ascii() { escape(c) } else { c.to_string() });
        }
        self.pattern(&escaped, "i", at)
    }

    fn pattern(&mut self, text: &str, letters: &str, at: usize) -> Option<Sized> {
        let mut flags = PatternFlags::default();
        for letter in letters.chars() {
            match letter {
                'i' => flags.ignore_case = true,
                'm' => flags.multi_line = true,
                's' => flags.dot_all = true,
                'x' => flags.extended = true,
                'u' => {}
                _ => {
                    let message = format!("unknown flag `{letter}` of a regular expression");
                    self.problems.add(at, message, "known are i, m, s, u, x");
                    return None;
                }
            }
        }
        let options = pattern::PatternOptions { scope: MatchScope::Whole, lines: LineEnds::LineFeed, flags };
        match pattern::parse(text, &options) {
            Ok(regex) => self.weighed(sized(regex), at),
            Err(error) => {
                self.problems.take(at, &error);
                None
            }
        }
    }

    /// `%regex`: any run of consecutive chunks of a text.
    fn structured(&mut self, json: &str, at: usize) -> Option<Sized> {
        let value: Json = serde_json::from_str(json).unwrap_or_default();
        let entry =
            value.as_object().filter(|entries| entries.len() == 1).and_then(|entries| entries.iter().next());
        let pieces: Option<Vec<&str>> = match entry.map(|(key, value)| (key.as_str(), value)) {
            Some(("substring_chunks", Json::Array(chunks))) => chunks.iter().map(Json::as_str).collect(),
            Some(("substring_words", Json::String(text))) => Some(words(text)),
            Some(("substring_chars", Json::String(text))) => {
                Some(text.split("").filter(|c| !c.is_empty()).collect())
            }
            _ => None,
        };
        let Some(pieces) = pieces else {
            let help = "it has one of \"substring_chunks\": [texts], \"substring_words\": text, \"substring_chars\": text";
            self.problems.add(at, "this %regex is not known", help);
            return None;
        };
        if pieces.len() > MAX_WEIGHT / 64 {
            self.problems.add(
                at,
                format!("%regex has {} pieces", pieces.len()),
                "give it fewer, larger ones",
            );
            return None;
        }
        // Of few pieces the masks of halves are found faster.
        let many = Some(&pieces).filter(|pieces| pieces.len() > FEW_PIECES);
        let runs = many.and_then(|pieces| runs_as_automaton(pieces)).unwrap_or_else(|| runs(&pieces));
        self.weighed(sized(runs), at)
    }
}

/// The parts as one, and their weight.
fn join(mut parts: Vec<Sized>, none: Regex, kind: fn(Vec<Regex>) -> Regex) -> Sized {
    if parts.len() == 1 {
        if let Some(only) = parts.pop() {
            return only;
        }
    }
    if parts.is_empty() {
        return (none, 1, 1);
    }
    let weight = parts.iter().map(|part| part.1).sum::<usize>() + 1;
    let depth = parts.iter().map(|part| part.2).max().unwrap_or(0) + 1;
    (kind(parts.into_iter().map(|part| part.0).collect()), weight, depth)
}

/// A language with its weight and depth, which its maker bounds.
fn sized(regex: Regex) -> Sized {
    fn measure(regex: &Regex) -> (usize, usize) {
        let all = |parts: &[Regex]| {
            parts.iter().map(measure).fold((1, 1), |(weight, depth), (w, d)| (weight + w, depth.max(d + 1)))
        };
        match regex {
            Regex::Nothing | Regex::Empty | Regex::Computed(_) => (1, 1),
            Regex::Set(set) => (1 + set.ranges().len() / 8, 1),
            Regex::Text(text) => (1 + text.len() / 16, 1),
            Regex::Concat(parts) | Regex::Or(parts) | Regex::And(parts) => all(parts),
            Regex::Automaton(dfa) => (1 + dfa.len(), 1),
            Regex::Not(of) | Regex::Repeat { of, .. } => all(std::slice::from_ref(of)),
        }
    }
    let (weight, depth) = measure(&regex);
    (regex, weight, depth)
}

/// Words and the text between them.
fn words(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut before = None;
    for (at, c) in text.char_indices() {
        let word = c.is_alphanumeric() || c == '_';
        // Other characters are chunks of their own.
        if at > 0 && !(word && before == Some(true)) {
            pieces.push(&text[from..at]);
            from = at;
        }
        before = Some(word);
    }
    if from < text.len() {
        pieces.push(&text[from..]);
    }
    pieces
}

/// Any run of consecutive chunks, the empty one included: the automaton that remembers where in the text a run may have got
/// to. In a text that says different things these are few places, and the automaton is hardly longer than the text; `None`
/// if it is not.
pub(super) fn runs_as_automaton(pieces: &[&str]) -> Option<Regex> {
    let text = pieces.concat();
    let mut bounds = vec![false; text.len() + 1];
    bounds[0] = true;
    pieces.iter().fold(0, |at, piece| {
        bounds[at + piece.len()] = true;
        at + piece.len()
    });
    let mut alphabet = text.as_bytes().to_vec();
    alphabet.sort_unstable();
    alphabet.dedup();
    let alphabet: Vec<&[u8]> = alphabet.chunks(1).collect();
    if text.is_empty() || text.len() * alphabet.len() > MAX_TABLE {
        return None;
    }
    let mut walk = Places { text: text.as_bytes(), bounds, left: MANY_PLACES * (text.len() + 1) };
    let (explored, _) = explore(&mut walk, &alphabet, usize::MAX);
    match explored {
        Explored::Dfa(dfa) if walk.left > 0 => Some(Regex::Automaton(Arc::new(dfa))),
        _ => None,
    }
}

/// Maximum size of the table of such an automaton.
const MAX_TABLE: usize = 1 << 22;
/// So many times a text's length is the most that all states of its automaton remember together.
const MANY_PLACES: usize = 64;

/// The places in a text that a run of its chunks may have got to, ascending.
struct Places<'t> {
    text: &'t [u8],
    /// Whether a chunk begins or ends here.
    bounds: Vec<bool>,
    /// How many places may still be remembered.
    left: usize,
}

impl Walk for Places<'_> {
    type State = Vec<u32>;

    fn start(&self) -> Vec<u32> {
        (0..self.bounds.len()).filter(|&at| self.bounds[at]).map(|at| at as u32).collect()
    }

    fn step(&mut self, places: &Vec<u32>, byte: u8) -> Option<Vec<u32>> {
        let goes_on = |&&at: &&u32| self.text.get(at as usize) == Some(&byte);
        let next: Vec<u32> = places.iter().filter(goes_on).map(|&at| at + 1).collect();
        self.left = self.left.saturating_sub(next.len());
        (!next.is_empty() && self.left > 0).then_some(next)
    }

    fn accepts(&self, places: &Vec<u32>) -> bool {
        places.iter().any(|&at| self.bounds[at as usize])
    }
}

/// Any run of consecutive chunks, the empty one included. Split in halves to keep depth and size small: a run
/// is inside one half, or a suffix of the first and a prefix of the second.
pub(super) fn runs(pieces: &[&str]) -> Regex {
    match pieces {
        [] => Regex::Empty,
        [only] => Regex::text(*only).optional(),
        _ => {
            let (first, second) = pieces.split_at(pieces.len() / 2);
            Regex::or([runs(first), runs(second), Regex::concat([ends(first), starts(second)])])
        }
    }
}

/// Any number of the first pieces.
fn starts(pieces: &[&str]) -> Regex {
    match pieces {
        [] => Regex::Empty,
        [only] => Regex::text(*only).optional(),
        _ => {
            let (first, second) = pieces.split_at(pieces.len() / 2);
            Regex::or([starts(first), Regex::concat([Regex::text(first.concat()), starts(second)])])
        }
    }
}

/// Any number of the last pieces.
fn ends(pieces: &[&str]) -> Regex {
    match pieces {
        [] => Regex::Empty,
        [only] => Regex::text(*only).optional(),
        _ => {
            let (first, second) = pieces.split_at(pieces.len() / 2);
            Regex::or([ends(second), Regex::concat([ends(first), Regex::text(second.concat())])])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Encoding, Exprs};

    #[test]
    fn the_automaton_of_runs_matches_what_they_match() {
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..60 {
            let pieces: Vec<&str> = (0..draw(9)).map(|_| ["a", "b", "ab", "é", "", "aé"][draw(6)]).collect();
            let Some(automaton) = runs_as_automaton(&pieces) else {
                assert!(pieces.concat().is_empty());
                continue;
            };
            let mut exprs = Exprs::new(1 << 16);
            let [one, other] =
                [automaton, runs(&pieces)].map(|regex| exprs.compile(&regex, Encoding::Utf8).unwrap());
            for (one, other) in [(one, other), (other, one)] {
                let not = exprs.not(other).unwrap();
                let both = exprs.and(&[one, not]).unwrap();
                assert!(!exprs.is_alive(both).unwrap(), "{pieces:?}");
            }
        }
        // A text that repeats itself has too many places.
        assert!(runs_as_automaton(&vec!["a"; 3_000]).is_none());
    }
}
