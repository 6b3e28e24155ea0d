//! Reads the regular expressions of pre-tokenizers: the part of the syntax that they use. Alternatives are ordered and
//! repetitions take as much as they can, as in a backtracking engine.

use crate::{Error, ErrorKind, Result};
use logitree_automata::{pattern::property, CharSet};

/// The most copies of a repeated part.
const MAX_REPEAT: u32 = 1_000;
/// The deepest nesting of groups.
const MAX_DEPTH: usize = 32;
/// The longest expression, in characters.
const MAX_LENGTH: usize = 16_384;

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    /// One character of a set.
    Set(CharSet),
    /// One after the other.
    All(Vec<Pattern>),
    /// The first that leads to a match.
    First(Vec<Pattern>),
    /// Between so many and so many times, rather more.
    Repeat(Box<Pattern>, u32, Option<u32>),
    /// The next character, if there is one, is not of the set.
    NotBefore(CharSet),
    /// The text ends.
    End,
}

/// Reads `text`.
///
/// # Errors
/// [`ErrorKind::Vocabulary`] with the place for syntax that is not read.
pub(super) fn parse(text: &str) -> Result<Pattern> {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { chars, at: 0, fold: false, depth: 0 };
    if reader.chars.len() > MAX_LENGTH {
        return reader.fail(&format!("more than {MAX_LENGTH} characters"));
    }
    let pattern = reader.alternatives()?;
    if reader.at < reader.chars.len() {
        return reader.fail("a parenthesis that closes no group");
    }
    Ok(pattern)
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    /// Whether upper and lower case are the same here.
    fold: bool,
    depth: usize,
}

impl Reader {
    fn fail<T>(&self, what: &str) -> Result<T> {
        let text: String = self.chars.iter().take(80).collect();
        Err(Error::new(ErrorKind::Vocabulary, format!("the pre-tokenizer's pattern {text:?} has {what}"))
            .at(format!("character {}", self.at))
            .help("classes, groups, greedy repetitions, alternatives, (?i:...), (?!...) of one class and $ are read"))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(n, c)| self.chars.get(self.at + n) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn alternatives(&mut self) -> Result<Pattern> {
        let mut all = vec![self.sequence()?];
        while self.eat("|") {
            all.push(self.sequence()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Pattern::First(all) })
    }

    fn sequence(&mut self) -> Result<Pattern> {
        let mut all = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let one = self.one()?;
            all.push(self.repeated(one)?);
        }
        Ok(Pattern::All(all))
    }

    fn one(&mut self) -> Result<Pattern> {
        let c = self.chars[self.at];
        self.at += 1;
        match c {
            '(' => self.group(),
            '[' => self.class().map(Pattern::Set),
            '\\' => self.escape().map(Pattern::Set),
            '$' => Ok(Pattern::End),
            '.' | '^' | '*' | '+' | '?' | '{' => {
                self.at -= 1;
                self.fail(&format!("{c:?}, which is not read here"))
            }
            _ => Ok(Pattern::Set(self.folded(CharSet::one(c)))),
        }
    }

    fn group(&mut self) -> Result<Pattern> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(&format!("groups nested more than {MAX_DEPTH} deep"));
        }
        let fold = self.fold;
        let not = self.eat("?!");
        if !not && self.eat("?i:") {
            self.fold = true;
        } else if !not && !self.eat("?:") && self.peek() == Some('?') {
            return self.fail("a group that is not read");
        }
        let inner = self.alternatives()?;
        if !self.eat(")") {
            return self.fail("a group that is not closed");
        }
        self.fold = fold;
        self.depth -= 1;
        if !not {
            return Ok(inner);
        }
        match inner {
            Pattern::All(one) => match &one[..] {
                [Pattern::Set(set)] => Ok(Pattern::NotBefore(set.clone())),
                _ => self.fail("a (?!...) of more than one class"),
            },
            _ => self.fail("a (?!...) of more than one class"),
        }
    }

    fn number(&mut self) -> Option<u32> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect::<String>().parse().ok()
    }

    fn repeated(&mut self, one: Pattern) -> Result<Pattern> {
        let (least, most) = if self.eat("?") {
            (0, Some(1))
        } else if self.eat("*") {
            (0, None)
        } else if self.eat("+") {
            (1, None)
        } else if self.eat("{") {
            let Some(least) = self.number() else { return self.fail("a repetition that is not read") };
            let most = if self.eat(",") { self.number() } else { Some(least) };
            if !self.eat("}") || least.max(most.unwrap_or(0)) > MAX_REPEAT || most.is_some_and(|m| m < least)
            {
                return self.fail("a repetition that is not read");
            }
            (least, most)
        } else {
            return Ok(one);
        };
        if matches!(self.peek(), Some('+' | '?' | '*' | '{')) {
            return self.fail("a possessive or lazy repetition");
        }
        Ok(Pattern::Repeat(Box::new(one), least, most))
    }

    fn escape(&mut self) -> Result<CharSet> {
        let Some(c) = self.peek() else { return self.fail("a backslash at its end") };
        self.at += 1;
        let named = |name: &str| property(name).unwrap_or_default();
        Ok(match c {
            's' => named("White_Space"),
            'S' => named("White_Space").not(),
            'd' => named("Nd"),
            'n' => CharSet::one('\n'),
            'r' => CharSet::one('\r'),
            't' => CharSet::one('\t'),
            'p' | 'P' => {
                if !self.eat("{") {
                    return self.fail("a property without braces");
                }
                let start = self.at;
                while self.peek().is_some_and(|c| c != '}') {
                    self.at += 1;
                }
                let name: String = self.chars[start..self.at].iter().collect();
                let Some(set) = property(&name).filter(|_| self.eat("}")) else {
                    return self.fail(&format!("the property {name:?}, which is not known"));
                };
                if c == 'P' {
                    set.not()
                } else {
                    set
                }
            }
            c if c.is_ascii_alphanumeric() => {
                return self.fail(&format!("the escape \\{c}, which is not read"))
            }
            c => CharSet::one(c),
        })
    }

    fn class(&mut self) -> Result<CharSet> {
        let negated = self.eat("^");
        let mut all = CharSet::none();
        let mut first = true;
        loop {
            let Some(c) = self.peek() else { return self.fail("a class that is not closed") };
            self.at += 1;
            let set = match c {
                ']' if !first => break,
                '[' => return self.fail("a class in a class"),
                '&' if self.peek() == Some('&') => return self.fail("an intersection of classes"),
                '\\' => self.escape()?,
                c => CharSet::one(c),
            };
            first = false;
            let is_range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|&c| c != ']');
            let set = match (only(&set), is_range) {
                (Some(from), true) => {
                    self.at += 1;
                    let c = self.chars[self.at];
                    self.at += 1;
                    let to = if c == '\\' { only(&self.escape()?) } else { Some(c) };
                    match to {
                        Some(to) if from <= to => CharSet::range(from, to),
                        _ => return self.fail("a range that is not read"),
                    }
                }
                _ => set,
            };
            all = all.or(&set);
        }
        let all = self.folded(all);
        Ok(if negated { all.not() } else { all })
    }

    /// The set with both cases of its letters, where case does not matter.
    fn folded(&self, set: CharSet) -> CharSet {
        if !self.fold || set.len() > 256 {
            return set;
        }
        let mut ranges = set.ranges().to_vec();
        for &(from, to) in set.ranges() {
            for c in (from..=to).filter_map(char::from_u32) {
                for other in [c.to_ascii_lowercase(), c.to_ascii_uppercase()] {
                    ranges.push((other.into(), other.into()));
                }
            }
        }
        CharSet::from_ranges(ranges)
    }
}

/// The only character of a set.
fn only(set: &CharSet) -> Option<char> {
    match set.ranges() {
        &[(from, to)] if from == to => char::from_u32(from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_an_error_with_its_place() {
        let wrong = [
            ("a)", 1),
            ("(a", 2),
            ("[a", 2),
            ("a++", 2),
            ("a*?", 2),
            ("(?=a)", 1),
            ("(?!ab)", 6),
            ("a{2,1}", 6),
            ("a{2000}", 7),
            (r"\w", 2),
            (r"\p{Nonsense}", 11),
            ("[a&&b]", 3),
            ("[z-a]", 4),
            ("*a", 0),
            ("\\", 1),
        ];
        for (text, at) in wrong {
            let error = parse(text).unwrap_err();
            assert_eq!(
                (error.kind, error.place),
                (ErrorKind::Vocabulary, format!("character {at}")),
                "{text}"
            );
        }
        assert!(parse(&"(".repeat(1000)).is_err());
    }

    #[test]
    fn classes_and_groups_are_read() {
        let set = |text: &str| match parse(text).unwrap() {
            Pattern::All(all) => match &all[..] {
                [Pattern::Set(set)] => set.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(set(r"[^\r\n]"), CharSet::from_ranges([(13, 13), (10, 10)]).not());
        assert_eq!(set(r"[!-/:-~]"), CharSet::from_ranges([(0x21, 0x2f), (0x3a, 0x7e)]));
        assert_eq!(set("[a-]"), CharSet::from_ranges([(0x61, 0x61), (0x2d, 0x2d)]));
        assert_eq!(set("[]]"), CharSet::one(']'));
        assert_eq!(parse("(?i:s)").unwrap(), parse("(?:[sS])").unwrap());
    }
}
