//! Reads alternatives, sequences and quantifiers; groups, escapes and classes have files of their own.

use rustc_hash::FxHashMap;

use super::escape::Escape;
use super::node::{Assertion, PatternNode};
use super::terms::{Terms, EMPTY, NOTHING};
use super::{unicode, LineEnds, PatternFlags, PatternOptions, MAX_CHARACTERS, MAX_NESTED};
use crate::problems::Problem;
use crate::CharSet;

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 20;
/// Maximum number of class ranges in one pattern, repeats included.
const MAX_RANGES: usize = 1 << 21;

/// The reader's state.
pub(super) struct Reader<'t> {
    pub(super) terms: &'t mut Terms,
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) flags: PatternFlags,
    lines: LineEnds,
    problems: Vec<Problem>,
    stopped: bool,
    nested: usize,
    ranges: usize,
    folded: FxHashMap<char, CharSet>,
    pub(super) properties: FxHashMap<String, Option<CharSet>>,
}

/// Reads all of `text`, or returns its problems.
pub(super) fn read(
    terms: &mut Terms,
    text: &str,
    options: &PatternOptions,
) -> Result<PatternNode, Vec<Problem>> {
    let chars: Vec<char> = text.chars().take(MAX_CHARACTERS + 1).collect();
    if chars.len() > MAX_CHARACTERS {
        return Err(vec![Problem::limit(
            Some(0),
            format!("a pattern has {MAX_CHARACTERS} characters at most"),
        )]);
    }
    let mut reader = Reader {
        terms,
        chars,
        at: 0,
        flags: options.flags,
        lines: options.lines,
        problems: Vec::new(),
        stopped: false,
        nested: 0,
        ranges: 0,
        folded: FxHashMap::default(),
        properties: FxHashMap::default(),
    };
    let mut parts = Vec::new();
    loop {
        parts.push(reader.alternatives());
        if reader.at >= reader.chars.len() {
            break;
        }
        reader.problem(reader.at, "`)` closes no group");
        reader.at += 1;
    }
    if reader.problems.is_empty() {
        return Ok(PatternNode::concat(terms, parts));
    }
    Err(reader.problems)
}

impl Reader<'_> {
    /// Reports a problem at an offset.
    pub(super) fn problem(&mut self, at: usize, message: impl Into<String>) {
        self.note(Problem::new(at, message));
    }

    pub(super) fn note(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS && !self.stopped {
            self.problems.push(problem);
        }
    }

    /// Reports that a limit was reached; the rest is not read.
    fn stop(&mut self, message: String) {
        self.note(Problem::limit(Some(self.at), message));
        self.stopped = true;
        self.at = self.chars.len();
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Skips `text` if it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let fits = text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if fits {
            self.at += text.chars().count();
        }
        fits
    }

    /// Skips characters while `fine` holds.
    pub(super) fn take_while(&mut self, fine: impl Fn(char) -> bool) -> String {
        let taken: String = self.chars[self.at..].iter().copied().take_while(|&c| fine(c)).collect();
        self.at += taken.chars().count();
        taken
    }

    /// Alternatives up to `)` or the end. PatternFlags set inside apply up to there.
    pub(super) fn alternatives(&mut self) -> PatternNode {
        let flags = self.flags;
        self.nested += 1;
        if self.nested > MAX_NESTED + 1 {
            self.stop(format!("groups are nested {MAX_NESTED} deep at most"));
        }
        let mut ways = Vec::new();
        let mut parts = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(')') => break,
                Some('|') => {
                    self.at += 1;
                    ways.push(PatternNode::concat(self.terms, std::mem::take(&mut parts)));
                }
                Some(c) => {
                    let atom = self.atom(c);
                    let part = self.quantified(atom);
                    parts.push(part);
                }
            }
        }
        ways.push(PatternNode::concat(self.terms, parts));
        self.nested -= 1;
        self.flags = flags;
        PatternNode::or(self.terms, ways)
    }

    fn atom(&mut self, c: char) -> PatternNode {
        let start = self.at;
        if self.is_quantifier() {
            self.problem(start, format!("nothing to repeat before `{c}`"));
            return PatternNode::Plain(EMPTY);
        }
        self.at += 1;
        match c {
            '(' => self.group(),
            '[' => {
                let set = self.class();
                self.plain(set)
            }
            '.' if self.flags.dot_all => self.plain(CharSet::all()),
            '.' => self.plain(self.line_ends().not()),
            '^' => self.assert(start, Assertion::Start(self.line_mode())),
            '$' => self.assert(start, Assertion::End(self.line_mode())),
            '\\' => match self.escape(start, false) {
                Escape::Code(code) => self.code(start, code),
                Escape::Set(set) => self.plain(set),
                Escape::Assert(what) => self.assert(start, what),
                Escape::Wrong => PatternNode::Plain(EMPTY),
            },
            _ => {
                let set = self.cased(c);
                self.plain(set)
            }
        }
    }

    pub(super) fn assert(&self, at: usize, what: Assertion) -> PatternNode {
        PatternNode::Assert { what, at }
    }

    fn code(&mut self, at: usize, code: u32) -> PatternNode {
        match char::from_u32(code) {
            Some(c) => {
                let set = self.cased(c);
                self.plain(set)
            }
            None => {
                self.problem(at, format!("U+{code:04X} is half of a character: no text has it"));
                PatternNode::Plain(NOTHING)
            }
        }
    }

    pub(super) fn plain(&mut self, set: CharSet) -> PatternNode {
        self.spend(set.ranges().len());
        PatternNode::Plain(self.terms.set(set))
    }

    /// Counts ranges. Past the limit every further class is empty, and one problem is reported.
    pub(super) fn spend(&mut self, ranges: usize) {
        let before = self.ranges;
        self.ranges += ranges + 1;
        if before <= MAX_RANGES && self.ranges > MAX_RANGES {
            self.stop(format!("classes have {MAX_RANGES} ranges in all at most"));
        }
    }

    /// The character, with its case variants if case is ignored.
    pub(super) fn cased(&mut self, c: char) -> CharSet {
        let set = CharSet::one(c);
        if !self.flags.ignore_case {
            return set;
        }
        self.folded.entry(c).or_insert_with(|| unicode::fold(&set)).clone()
    }

    /// The set, with its case variants if case is ignored.
    pub(super) fn folded(&mut self, set: CharSet) -> CharSet {
        if self.flags.ignore_case {
            self.spend(set.ranges().len() * 8);
            unicode::fold(&set)
        } else {
            set
        }
    }

    fn line_ends(&self) -> CharSet {
        match self.lines {
            LineEnds::Ecma => CharSet::from_ranges([(10, 10), (13, 13), (0x2028, 0x2029)]),
            LineEnds::LineFeed => CharSet::one('\n'),
        }
    }

    fn line_mode(&self) -> Option<CharSet> {
        self.flags.multi_line.then(|| self.line_ends())
    }

    fn skip_space(&mut self) {
        while self.flags.extended {
            match self.peek() {
                Some(c) if c.is_whitespace() => self.at += 1,
                Some('#') => {
                    self.take_while(|c| c != '\n');
                }
                _ => break,
            }
        }
    }

    // -- quantifiers

    fn is_quantifier(&mut self) -> bool {
        let at = self.at;
        let found = self.quantifier().is_some();
        self.at = at;
        found
    }

    /// Reads `*`, `+`, `?`, `{m}`, `{m,}` or `{m,n}`. Any other brace is a character.
    fn quantifier(&mut self) -> Option<(String, Option<String>)> {
        let (min, max) = match self.peek()? {
            '*' => ("0", None),
            '+' => ("1", None),
            '?' => ("0", Some("1")),
            '{' => return self.counted(),
            _ => return None,
        };
        self.at += 1;
        Some((min.into(), max.map(Into::into)))
    }

    fn counted(&mut self) -> Option<(String, Option<String>)> {
        let start = self.at;
        self.at += 1;
        let min = self.take_while(|c| c.is_ascii_digit());
        let max = match self.eat(",") {
            false => Some(min.clone()),
            true => Some(self.take_while(|c| c.is_ascii_digit())).filter(|max| !max.is_empty()),
        };
        if min.is_empty() || !self.eat("}") {
            self.at = start;
            return None;
        }
        Some((min, max))
    }

    fn quantified(&mut self, atom: PatternNode) -> PatternNode {
        self.skip_space();
        let start = self.at;
        let Some((min, max)) = self.quantifier() else { return atom };
        if !self.eat("?") && self.eat("+") {
            self.problem(
                self.at - 1,
                "possessive quantifiers are not supported: they change how text is matched",
            );
        }
        while self.is_quantifier() {
            self.problem(self.at, "a quantifier follows a quantifier");
            self.quantifier();
        }
        let min = self.count(start, &min);
        let max = max.map(|max| self.count(start, &max));
        if max.is_some_and(|max| max < min) {
            self.problem(start, "the counts are out of order");
        }
        PatternNode::repeat(self.terms, atom, min, max, start)
    }

    fn count(&mut self, at: usize, digits: &str) -> u32 {
        digits.parse().unwrap_or_else(|_| {
            self.note(Problem::limit(Some(at), format!("a count is {} at most", u32::MAX)));
            0
        })
    }

    /// A part of the pattern's text, for messages.
    pub(super) fn text(&self, from: usize) -> String {
        self.chars[from.min(self.at)..self.at].iter().take(30).collect()
    }
}
