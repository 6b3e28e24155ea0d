//! Reads escapes, in classes and outside.

use super::node::Assertion;
use super::read::Reader;
use super::unicode;
use crate::CharSet;

/// The meaning of an escape.
pub(super) enum Escape {
    /// One code point, or an unpaired surrogate.
    Code(u32),
    /// A set of characters.
    Set(CharSet),
    /// An assertion.
    Assert(Assertion),
    /// Nothing: a problem was reported.
    Wrong,
}

/// `\d`.
pub(super) fn digits() -> CharSet {
    CharSet::range('0', '9')
}

/// `\w`.
pub(super) fn word() -> CharSet {
    CharSet::from_ranges([(48, 57), (65, 90), (95, 95), (97, 122)])
}

/// `\s`: WhiteSpace and LineTerminator of ECMA-262.
pub(super) fn space() -> CharSet {
    let others = [0x20, 0xa0, 0x1680, 0x202f, 0x205f, 0x3000, 0xfeff];
    let ranges = [(9, 13), (0x2000, 0x200a), (0x2028, 0x2029)];
    CharSet::from_ranges(ranges.into_iter().chain(others.map(|c| (c, c))))
}

impl Reader<'_> {
    /// Reads on after the backslash at `start`.
    pub(super) fn escape(&mut self, start: usize, in_class: bool) -> Escape {
        let Some(c) = self.peek() else {
            self.problem(start, "nothing follows the backslash");
            return Escape::Wrong;
        };
        self.at += 1;
        match c {
            'd' => Escape::Set(digits()),
            'D' => Escape::Set(digits().not()),
            's' => Escape::Set(space()),
            'S' => Escape::Set(space().not()),
            'w' => Escape::Set(self.folded(word())),
            'W' => Escape::Set(self.folded(word()).not()),
            'p' | 'P' => self.property(start, c == 'P'),
            't' => Escape::Code(9),
            'n' => Escape::Code(10),
            'v' => Escape::Code(11),
            'f' => Escape::Code(12),
            'r' => Escape::Code(13),
            'b' if in_class => Escape::Code(8),
            'b' | 'B' if !in_class => {
                let word = self.folded(word());
                Escape::Assert(Assertion::Word { word, negated: c == 'B' })
            }
            'A' if !in_class => Escape::Assert(Assertion::Start(None)),
            'z' | 'Z' if !in_class => Escape::Assert(Assertion::End(None)),
            'c' => self.control(start),
            'x' => self.hexadecimal(start, 2),
            'u' => self.hexadecimal(start, 4),
            '0' => self.octal(),
            '1'..='9' => {
                self.take_while(|c| c.is_ascii_digit());
                let text = self.text(start);
                self.wrong(start, format!("the backreference `{text}` is not a regular language"))
            }
            'k' | 'g' => {
                let text = self.text(start);
                self.wrong(start, format!("the backreference `{text}` is not a regular language"))
            }
            _ if c.is_ascii_alphabetic() => {
                let what = format!("`\\{c}` is not an escape of ECMA-262; write `{c}` for the letter");
                self.wrong(start, what)
            }
            _ => Escape::Code(c.into()),
        }
    }

    fn wrong(&mut self, start: usize, message: String) -> Escape {
        self.problem(start, message);
        Escape::Wrong
    }

    fn control(&mut self, start: usize) -> Escape {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() => {
                self.at += 1;
                Escape::Code(u32::from(c) % 32)
            }
            _ => self.wrong(start, "`\\c` wants a letter".into()),
        }
    }

    /// `\0`, and up to two more octal digits as in annex B.
    fn octal(&mut self) -> Escape {
        let mut code = 0;
        for _ in 0..2 {
            match self.peek().and_then(|c| c.to_digit(8)) {
                Some(digit) => code = code * 8 + digit,
                None => break,
            }
            self.at += 1;
        }
        Escape::Code(code)
    }

    /// A fixed number of digits, or any number in braces. Two `\u` that form a surrogate pair are one code
    /// point.
    fn hexadecimal(&mut self, start: usize, digits: usize) -> Escape {
        let code = if self.eat("{") {
            let text = self.take_while(|c| c.is_ascii_hexdigit());
            let code = u32::from_str_radix(&text, 16).ok().filter(|&code| code <= 0x10ffff);
            code.filter(|_| self.eat("}"))
        } else {
            self.digits(digits)
        };
        match code {
            Some(high @ 0xd800..=0xdbff) => Escape::Code(self.pair(high).unwrap_or(high)),
            Some(code) => Escape::Code(code),
            None => {
                let c = if digits == 2 { 'x' } else { 'u' };
                let what = format!("`\\{c}` wants {digits} hexadecimal digits, or a code point in braces");
                self.wrong(start, what)
            }
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.chars.get(self.at..self.at + count)?;
        let code = digits.iter().try_fold(0, |code, c| Some(code * 16 + c.to_digit(16)?))?;
        self.at += count;
        Some(code)
    }

    fn pair(&mut self, high: u32) -> Option<u32> {
        let at = self.at;
        let low = if self.eat("\\u") { self.digits(4) } else { None };
        match low {
            Some(low @ 0xdc00..=0xdfff) => Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
            _ => {
                self.at = at;
                None
            }
        }
    }

    /// `\pL`, `\p{..}`, `\p{^..}`.
    fn property(&mut self, start: usize, mut negated: bool) -> Escape {
        let name = if self.eat("{") {
            negated ^= self.eat("^");
            let name = self.take_while(|c| c != '}');
            if self.eat("}") {
                name
            } else {
                String::new()
            }
        } else {
            self.peek()
                .map(|c| {
                    self.at += 1;
                    c.to_string()
                })
                .unwrap_or_default()
        };
        let known = self.properties.entry(name).or_insert_with_key(|name| unicode::property(name)).clone();
        let Some(set) = known else {
            let text = self.text(start);
            return self.wrong(start, format!("`{text}` is not a property of Unicode"));
        };
        self.spend(set.ranges().len());
        let set = self.folded(set);
        Escape::Set(if negated { set.not() } else { set })
    }
}
