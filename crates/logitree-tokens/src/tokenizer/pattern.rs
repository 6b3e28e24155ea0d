//! Reads the regular expressions of pre-tokenizers in Oniguruma's syntax, as far as they are regular. Alternatives are ordered
//! and repetitions take as much as they can, as in a backtracking engine.

use crate::{Error, ErrorKind, Result};
use logitree_automata::{pattern, CharSet};

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
    /// Between so many and so many times, rather more, or rather less where it is lazy.
    Repeat { one: Box<Pattern>, least: u32, most: Option<u32>, lazy: bool },
    /// The next character is of the set, or the text ends, if that is allowed.
    Next { set: CharSet, end: bool },
    /// What follows begins with the pattern, or does not.
    Ahead { inner: Box<Pattern>, not: bool },
    /// A word begins or ends here, or does not.
    Border { not: bool },
}

/// Reads `text`.
///
/// # Errors
/// [`ErrorKind::Vocabulary`] with the place for syntax that is not read.
pub(super) fn parse(text: &str) -> Result<Pattern> {
    read(text, None)
}

/// As [`parse`], with the properties as Unicode 15.1 had them: llama.cpp's tables. What was assigned later has none.
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_as_llama_cpp(text: &str) -> Result<Pattern> {
    read(text, pattern::property("Age=V15_1"))
}

fn read(text: &str, assigned: Option<CharSet>) -> Result<Pattern> {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { chars, at: 0, fold: false, depth: 0, assigned };
    if reader.chars.len() > MAX_LENGTH {
        return reader.fail(&format!("more than {MAX_LENGTH} characters"));
    }
    let mut pattern = reader.alternatives()?;
    if reader.at < reader.chars.len() {
        return reader.fail("a parenthesis that closes no group");
    }
    if resolve(&mut pattern, None).is_err() {
        return reader.fail("a word boundary after what may be of a word or not");
    }
    Ok(cuts(pattern))
}

/// A pattern that only looks ahead matches no characters: a text is cut where it does. The pieces between are one character and
/// those before the next such place.
fn cuts(pattern: Pattern) -> Pattern {
    let looks = match &pattern {
        Pattern::All(all) => matches!(&all[..], [Pattern::Ahead { .. } | Pattern::Next { .. }]),
        _ => false,
    };
    let (Pattern::All(mut all), true) = (pattern.clone(), looks) else { return pattern };
    match &mut all[0] {
        Pattern::Ahead { not, .. } => *not = !*not,
        Pattern::Next { set, end } => (*set, *end) = (set.not(), !*end),
        _ => {}
    }
    all.push(Pattern::Set(CharSet::all()));
    let rest = Pattern::Repeat { one: Box::new(Pattern::All(all)), least: 0, most: None, lazy: false };
    Pattern::All(vec![Pattern::Set(CharSet::all()), rest])
}

/// What is read before a place is of words, or not, or not known.
type Before = Option<bool>;

/// Turns word boundaries into the next character that each needs. `before` is whether the character before is of a word, and so
/// is the result.
///
/// # Errors
/// Where that is not certain at a word boundary.
fn resolve(pattern: &mut Pattern, before: Before) -> std::result::Result<Before, ()> {
    match pattern {
        Pattern::Set(set) => {
            let inside = set.and(&word());
            Ok(if inside.is_empty() { Some(false) } else { (inside == *set).then_some(true) })
        }
        Pattern::All(all) => all.iter_mut().try_fold(before, |before, one| resolve(one, before)),
        Pattern::First(all) => {
            let mut ends = all.iter_mut().map(|one| resolve(one, before));
            let first = ends.next().unwrap_or(Ok(before))?;
            ends.try_fold(first, |all, one| Ok(if one? == all { all } else { None }))
        }
        Pattern::Repeat { one, least, most, .. } => {
            // What a round begins after: what is before, or what another ended with.
            let once = resolve(&mut one.clone(), before).or_else(|()| resolve(&mut one.clone(), None))?;
            let start = if once == before || *most == Some(1) { before } else { None };
            let end = resolve(one, start)?;
            Ok(if *least > 0 || end == before { end } else { None })
        }
        Pattern::Next { .. } => Ok(before),
        Pattern::Ahead { inner, .. } => resolve(inner, before).map(|_| before),
        Pattern::Border { not } => {
            let differs = before.ok_or(())? == *not;
            let set = if differs { word() } else { word().not() };
            *pattern = Pattern::Next { set, end: !differs };
            Ok(before)
        }
    }
}

/// Letters, marks, digits and connectors, and six numbers of Latin-1, as Oniguruma has them.
fn word() -> CharSet {
    let latin = CharSet::from_ranges([(0xb2, 0xb3), (0xb9, 0xb9), (0xbc, 0xbe)]);
    ["Alphabetic", "M", "Nd", "Pc"].iter().fold(latin, |all, name| all.or(&named(name)))
}

fn named(name: &str) -> CharSet {
    pattern::property(name).unwrap_or_default()
}

/// What a look-ahead of one character asks for: a character of the set, or the end.
fn one_ahead(pattern: &Pattern) -> Option<(CharSet, bool)> {
    match pattern {
        Pattern::Set(set) => Some((set.clone(), false)),
        Pattern::Next { set, end } => Some((set.clone(), *end)),
        Pattern::All(all) => match &all[..] {
            [one] => one_ahead(one),
            _ => None,
        },
        Pattern::First(all) => all.iter().try_fold((CharSet::none(), false), |(set, end), one| {
            let (more, also) = one_ahead(one)?;
            Some((set.or(&more), end || also))
        }),
        _ => None,
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    /// Whether upper and lower case are the same here.
    fold: bool,
    depth: usize,
    /// The characters that have properties, where those are not all.
    assigned: Option<CharSet>,
}

impl Reader {
    fn fail<T>(&self, what: &str) -> Result<T> {
        let text: String = self.chars.iter().take(80).collect();
        Err(Error::new(ErrorKind::Vocabulary, format!("the pre-tokenizer's pattern {text:?} has {what}"))
            .at(format!("character {}", self.at))
            .help("classes, groups, repetitions, alternatives, (?i:...), look-aheads, \\b after a class, $ and \\z are read"))
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
        let fold = self.fold;
        let mut all = vec![self.sequence()?];
        while self.eat("|") {
            all.push(self.sequence()?);
        }
        self.fold = fold;
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Pattern::First(all) })
    }

    fn sequence(&mut self) -> Result<Pattern> {
        let mut all = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            if self.eat("(?i)") {
                self.fold = true;
                continue;
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
            '\\' => match self.peek() {
                Some('z') => {
                    self.at += 1;
                    Ok(Pattern::Next { set: CharSet::none(), end: true })
                }
                Some(c @ ('b' | 'B')) => {
                    self.at += 1;
                    Ok(Pattern::Border { not: c == 'B' })
                }
                _ => {
                    let set = self.escape()?;
                    Ok(Pattern::Set(if only(&set).is_some() { self.folded(set) } else { set }))
                }
            },
            // The end of a line.
            '$' => Ok(Pattern::Next { set: CharSet::one('\n'), end: true }),
            '.' => Ok(Pattern::Set(CharSet::one('\n').not())),
            '^' | '*' | '+' | '?' => {
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
        let ahead = not || self.eat("?=");
        if !ahead && self.eat("?i:") {
            self.fold = true;
        } else if !ahead && !self.eat("?:") && self.peek() == Some('?') {
            return self.fail("a group that is not read");
        }
        let inner = self.alternatives()?;
        if !self.eat(")") {
            return self.fail("a group that is not closed");
        }
        self.fold = fold;
        self.depth -= 1;
        if !ahead {
            return Ok(inner);
        }
        Ok(match one_ahead(&inner) {
            Some((set, end)) if not => Pattern::Next { set: set.not(), end: !end },
            Some((set, end)) => Pattern::Next { set, end },
            None => Pattern::Ahead { inner: Box::new(inner), not },
        })
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
            let least = if self.peek() == Some(',') { Some(0) } else { self.number() };
            let Some(least) = least else { return self.fail("a repetition that is not read") };
            let most = if self.eat(",") { self.number() } else { Some(least) };
            if !self.eat("}") || least.max(most.unwrap_or(0)) > MAX_REPEAT || most.is_some_and(|m| m < least)
            {
                return self.fail("a repetition that is not read");
            }
            if self.peek() == Some('+') {
                return self.fail("a repetition of a repetition");
            }
            (least, most)
        } else {
            return Ok(one);
        };
        let lazy = self.eat("?");
        if !lazy && self.peek() == Some('+') {
            return self.possessive(one, least, most);
        }
        if matches!(self.peek(), Some('+' | '?' | '*' | '{')) {
            return self.fail("a repetition of a repetition");
        }
        Ok(Pattern::Repeat { one: Box::new(one), least, most, lazy })
    }

    /// A repetition that gives nothing back: of one class, none of it follows.
    fn possessive(&mut self, one: Pattern, least: u32, most: Option<u32>) -> Result<Pattern> {
        let Pattern::Set(set) = &one else {
            return self.fail("a possessive repetition of more than one class");
        };
        self.at += 1;
        let none = Pattern::Next { set: set.not(), end: true };
        Ok(match most {
            Some(_) => Pattern::First(vec![one, none]),
            None => {
                Pattern::All(vec![Pattern::Repeat { one: Box::new(one), least, most, lazy: false }, none])
            }
        })
    }

    fn escape(&mut self) -> Result<CharSet> {
        let Some(c) = self.peek() else { return self.fail("a backslash at its end") };
        self.at += 1;
        Ok(match c {
            's' => named("White_Space"),
            'S' => named("White_Space").not(),
            'd' => named("Nd"),
            'D' => named("Nd").not(),
            'w' => word(),
            'W' => word().not(),
            'n' => CharSet::one('\n'),
            'r' => CharSet::one('\r'),
            't' => CharSet::one('\t'),
            'f' => CharSet::one('\x0c'),
            'v' => CharSet::one('\x0b'),
            'x' if self.eat("{") => {
                let code = self.code(8)?;
                if !self.eat("}") {
                    return self.fail("a code that is not closed");
                }
                code
            }
            'x' => self.code(2)?,
            'u' => self.code(4)?,
            'p' | 'P' => {
                if !self.eat("{") {
                    return self.fail("a property without braces");
                }
                let negated = self.eat("^") != (c == 'P');
                let start = self.at;
                while self.peek().is_some_and(|c| c != '}') {
                    self.at += 1;
                }
                let name: String = self.chars[start..self.at].iter().collect();
                let Some(set) = pattern::property(&name).filter(|_| self.eat("}")) else {
                    return self.fail(&format!("the property {name:?}, which is not known"));
                };
                let set = self.assigned.as_ref().map_or(set.clone(), |assigned| set.and(assigned));
                if negated {
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

    /// A character by its number, of at most so many digits.
    fn code(&mut self, digits: usize) -> Result<CharSet> {
        let start = self.at;
        while self.at - start < digits && self.peek().is_some_and(|c| c.is_ascii_hexdigit()) {
            self.at += 1;
        }
        let text: String = self.chars[start..self.at].iter().collect();
        match u32::from_str_radix(&text, 16).ok().and_then(char::from_u32) {
            Some(c) => Ok(CharSet::one(c)),
            None => self.fail("a code that is no character"),
        }
    }

    fn class(&mut self) -> Result<CharSet> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(&format!("classes nested more than {MAX_DEPTH} deep"));
        }
        let negated = self.eat("^");
        let (mut all, mut both) = (CharSet::none(), None::<CharSet>);
        let mut first = true;
        loop {
            let Some(c) = self.peek() else { return self.fail("a class that is not closed") };
            self.at += 1;
            let set = match c {
                ']' if !first => break,
                '[' if self.peek() == Some(':') => self.posix()?,
                '[' => self.class()?,
                '&' if self.eat("&") => {
                    both = Some(both.map_or(all.clone(), |both| both.and(&all)));
                    all = CharSet::none();
                    continue;
                }
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
            all = all.or(&self.folded(set));
        }
        self.depth -= 1;
        let all = both.map_or(all.clone(), |both| both.and(&all));
        Ok(if negated { all.not() } else { all })
    }

    /// What `[:name:]` within a class stands for.
    fn posix(&mut self) -> Result<CharSet> {
        for (name, set) in [
            ("alpha", "Alphabetic"),
            ("digit", "Nd"),
            ("lower", "Lowercase"),
            ("punct", "P"),
            ("space", "White_Space"),
            ("upper", "Uppercase"),
        ] {
            if self.eat(&format!(":{name}:]")) {
                let set = named(set);
                return Ok(if name == "punct" { set.or(&named("S")) } else { set });
            }
        }
        self.fail("a class by a name that is not known")
    }

    /// The set with both cases of its letters, where case does not matter.
    fn folded(&self, set: CharSet) -> CharSet {
        if self.fold {
            pattern::fold(&set)
        } else {
            set
        }
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
            ("(?:ab)++", 7),
            ("a{2}+", 4),
            ("a**", 2),
            ("(?<=a)", 1),
            ("a{2,1}", 6),
            ("a{2000}", 7),
            (r"\y", 2),
            (r"\p{Nonsense}", 11),
            ("[z-a]", 4),
            ("*a", 0),
            ("^a", 0),
            ("\\", 1),
            (r"\ba", 3),
            (r".\b", 3),
            ("[[:nothing:]]", 2),
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
        assert!(parse(&"[".repeat(1000)).is_err());
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
        assert_eq!(set("(?i)s"), set("[sS\u{17f}]"));
        assert_eq!(set("(?i)[a-b]"), set("[a-bA-B]"));
        assert_eq!(set(r"[\w&&[^\d_]&&\x{41}-z]"), set("[A-Za-z]"));
        assert_eq!(set("[[:punct:]]"), set(r"[\p{Punct}\p{S}]"));
        assert_eq!(set(r"\P{L}"), set(r"\p{^L}"));
        assert_eq!(parse(r"a(?!b|\z)").unwrap(), parse("a(?=[^b])").unwrap());
        assert_eq!(parse(r"[a-c]+\b").unwrap(), parse(r"[a-c]+(?!\w)").unwrap());
        assert_eq!(parse(r"(?: |,)\b").unwrap(), parse(r"(?: |,)(?=\w)").unwrap());
    }

    #[test]
    fn characters_of_later_versions_have_no_properties_in_llama_cpp() {
        // The last is of CJK extension I, which came with 15.1.
        let cases =
            [("L", 0x10d50, false), ("N", 0x11bf5, false), ("S", 0x2427, false), ("L", 0x2ebf0, true)];
        for (name, code, known) in cases {
            let holds = |read: fn(&str) -> Result<Pattern>| {
                let one = CharSet::from_ranges([(code, code)]);
                match read(&format!(r"\p{{{name}}}")).unwrap() {
                    Pattern::All(all) => matches!(&all[..], [Pattern::Set(set)] if set.and(&one) == one),
                    other => panic!("{other:?}"),
                }
            };
            assert!(holds(parse));
            assert_eq!(holds(parse_as_llama_cpp), known, "{code:x}");
        }
    }
}
