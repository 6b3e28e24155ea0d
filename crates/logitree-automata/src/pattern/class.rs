//! Reads bracketed character classes.

use super::escape::{digits, space, word, Escape};
use super::read::Reader;
use crate::CharSet;

/// A member of a class.
enum Item {
    Code(u32),
    Set(CharSet),
}

impl Reader<'_> {
    /// After the opening bracket.
    pub(super) fn class(&mut self) -> CharSet {
        let start = self.at - 1;
        let negated = self.eat("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            let at = self.at;
            let Some(c) = self.peek() else {
                self.problem(start, "this class is not closed");
                break;
            };
            if self.eat("]") {
                break;
            }
            let Some(item) = self.item(c) else { continue };
            let from = match item {
                Item::Code(from) => from,
                Item::Set(set) => {
                    ranges.extend_from_slice(set.ranges());
                    continue;
                }
            };
            let to = self.upper().unwrap_or(from);
            if to < from {
                let text = self.text(at);
                self.problem(at, format!("the range `{text}` is out of order"));
            }
            ranges.push((from, to.max(from)));
        }
        self.spend(ranges.len());
        let halves = !ranges.is_empty() && ranges.iter().all(|(from, to)| *from >= 0xd800 && *to <= 0xdfff);
        if halves && !negated {
            self.problem(
                start,
                "this class has only halves of characters: no text has one; write whole code points",
            );
        }
        let set = self.folded(CharSet::from_ranges(ranges));
        if negated {
            set.not()
        } else {
            set
        }
    }

    /// Reads the end of a range after `-`. A `-` that makes no range is a character of its own.
    fn upper(&mut self) -> Option<u32> {
        let at = self.at;
        if self.eat("-") && self.peek().is_some_and(|c| c != ']') {
            match self.peek().and_then(|c| self.item(c)) {
                Some(Item::Code(to)) => return Some(to),
                None => return None,
                Some(Item::Set(_)) => {}
            }
        }
        self.at = at;
        None
    }

    fn item(&mut self, c: char) -> Option<Item> {
        let start = self.at;
        if c == '[' {
            if let Some(set) = self.posix() {
                return Some(Item::Set(set));
            }
        }
        self.at += 1;
        if c != '\\' {
            return Some(Item::Code(c.into()));
        }
        match self.escape(start, true) {
            Escape::Code(code) => Some(Item::Code(code)),
            Escape::Set(set) => Some(Item::Set(set)),
            Escape::Assert(_) | Escape::Wrong => None,
        }
    }

    /// `[:name:]`, `[:^name:]`.
    fn posix(&mut self) -> Option<CharSet> {
        let start = self.at;
        if !self.eat("[:") {
            return None;
        }
        let negated = self.eat("^");
        let name = self.take_while(|c| c.is_ascii_alphanumeric());
        if name.is_empty() || !self.eat(":]") {
            self.at = start;
            return None;
        }
        let Some(set) = posix_set(&name) else {
            self.problem(start, format!("`[:{name}:]` is not a class of POSIX"));
            return Some(CharSet::none());
        };
        Some(if negated { set.not() } else { set })
    }
}

fn posix_set(name: &str) -> Option<CharSet> {
    let ranges: &[(u32, u32)] = match name {
        "alnum" => &[(48, 57), (65, 90), (97, 122)],
        "alpha" => &[(65, 90), (97, 122)],
        "ascii" => &[(0, 127)],
        "blank" => &[(9, 9), (32, 32)],
        "cntrl" => &[(0, 31), (127, 127)],
        "graph" => &[(33, 126)],
        "lower" => &[(97, 122)],
        "print" => &[(32, 126)],
        "punct" => &[(33, 47), (58, 64), (91, 96), (123, 126)],
        "upper" => &[(65, 90)],
        "xdigit" => &[(48, 57), (65, 70), (97, 102)],
        "digit" => return Some(digits()),
        "space" => return Some(space()),
        "word" => return Some(word()),
        _ => return None,
    };
    Some(CharSet::from_ranges(ranges.iter().copied()))
}
