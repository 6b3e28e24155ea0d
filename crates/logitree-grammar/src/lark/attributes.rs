//! Reads the attributes of a rule: `name[lazy, max_tokens=20]: ..`.

use super::super::problems::excerpt;
use super::super::rules::temperature;
use super::ast::{Attributes, Ending, Expr, Value};
use super::lexer::Kind;
use super::parser::{Parser, Read};

impl<'t> Parser<'t, '_> {
    /// Attributes up to their `]`.
    pub(super) fn attributes(&mut self) -> Read<Attributes<'t>> {
        let mut read = Attributes::default();
        let mut seen: Vec<&str> = Vec::new();
        while !self.eat(b']') {
            let token = self.advance();
            let (key, at) = (self.said(token), token.at as usize);
            if seen.contains(&key) {
                self.problems.add(at, format!("`{key}` is given twice"), "keep one of them");
            }
            seen.push(key);
            let new = self.attribute(key, at, &mut read)?;
            if new.is_some() && matches!(read.ending, Some(Ending::Stop(_) | Ending::Suffix(_))) {
                self.problems.add(at, "a second stop or suffix", "keep one of them");
            }
            read.ending = new.or(read.ending);
            if !self.eat(b',') {
                self.expect(b']', "the attributes")?;
                break;
            }
        }
        if seen.contains(&"stop_capture") && !seen.contains(&"stop") && !seen.contains(&"suffix") {
            self.problems.add(
                self.at(),
                "`stop_capture` without a stop",
                "add stop=\"...\" or suffix=\"...\"",
            );
        }
        Some(read)
    }

    /// The attribute `key`, at `at`, with its value. What ends the rule is given, the rest is kept in `read`.
    fn attribute(&mut self, key: &'t str, at: usize, read: &mut Attributes<'t>) -> Read<Option<Ending<'t>>> {
        let has_value = self.eat(b'=');
        let (value, number) = if has_value { self.attribute_value()? } else { (None, None) };
        let new = match (key, value) {
            ("capture", None) if !has_value => {
                read.capture = Some(String::new());
                None
            }
            ("capture" | "stop_capture", value) => {
                let name = self.capture_name(key, value, at);
                match key {
                    "capture" => read.capture = name,
                    _ => read.end_capture = name,
                }
                None
            }
            ("lazy", None) if !has_value => read.ending.is_none().then_some(Ending::Lazy),
            ("stop" | "suffix", Some(value)) => self.ending(key, value, at),
            ("max_tokens", _) => {
                read.max_tokens = number.and_then(|most| most.parse().ok()).map(|most| (most, at));
                if read.max_tokens.is_none() {
                    self.problems.add(at, "`max_tokens` is no number", "write max_tokens=100");
                }
                None
            }
            ("temperature", _) => {
                read.temperature = number.and_then(temperature);
                if read.temperature.is_none() {
                    self.problems.add(at, "`temperature` is no number from 0 on", "write temperature=0.7");
                }
                None
            }
            _ => {
                let help =
                    "known are capture, lazy, max_tokens=, suffix=, stop=, stop_capture=, temperature=";
                self.problems.add(at, format!("unknown attribute {}", excerpt(self.text, at)), help);
                return None;
            }
        };
        Some(new)
    }

    /// The name in `capture=` or `stop_capture=`.
    fn capture_name(&mut self, key: &str, value: Option<Value<'t>>, at: usize) -> Option<String> {
        match value {
            Some(Value::Text { text, .. }) if !text.is_empty() => Some(text.to_string()),
            _ => {
                let help = format!("write {key}=\"name\"");
                self.problems.add(at, format!("`{key}` has no name"), help);
                None
            }
        }
    }

    /// What follows the `=` of an attribute: a value or a number.
    fn attribute_value(&mut self) -> Read<(Option<Value<'t>>, Option<&'t str>)> {
        if self.kind() != Kind::Number {
            return Some((Some(self.value()?), None));
        }
        let token = self.advance();
        Some((None, Some(self.said(token))))
    }

    /// `stop=` or `suffix=` with this value.
    fn ending(&mut self, key: &str, value: Value<'t>, at: usize) -> Option<Ending<'t>> {
        let is_stop = key == "stop";
        if matches!(&value, Value::Text { text, .. } if text.is_empty()) {
            let help = match is_stop {
                true => "leave it out: where nothing follows a rule, it may end at the end token",
                false => "leave it out, or write lazy",
            };
            self.problems.add(at, format!("an empty {key} is not read"), help);
            return None;
        }
        let expr = Expr { at, value, negated: false, times: None };
        Some(if is_stop { Ending::Stop(expr) } else { Ending::Suffix(expr) })
    }
}
