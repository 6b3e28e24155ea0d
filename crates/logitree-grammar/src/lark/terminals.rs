//! Compiles terminals to regular languages.

use serde_json::Value as Json;

use super::super::pattern::{self, LineEnds, MatchScope, PatternFlags};
use super::super::problems::Problems;
use super::super::weight::weight;
use super::super::{substrings, Regex};
use super::ast::{Choice, Expr, Value};
use super::scope::{Read, Scope, Source};

/// Maximum nesting of a terminal; the compiler of expressions allows 600.
const MAX_DEEP: usize = 300;
/// Maximum number of nodes of all terminals of a text, inlined copies included.
const MAX_WEIGHT: usize = 1 << 21;

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
            if let Some((_, at)) = alternative.condition {
                let message = "a condition where texts are one terminal";
                self.problems.add(
                    at,
                    message,
                    "write the rule without lazy, suffix and stop, and in lower case",
                );
                return None;
            }
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
            Value::Instance(name, _) => format!("the rule {name} and its parameter"),
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
        match substrings::runs(&pieces) {
            Ok(runs) => self.weighed(sized(runs), at),
            Err(error) => {
                self.problems.take(at, &error);
                None
            }
        }
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
    let (weight, depth) = weight(&regex);
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
