//! Triggers as pairs of regular languages: the text before the grammar starts, and the grammar's text up to the
//! end of the trigger.

use super::super::pattern::{self, PatternOptions};
use super::super::{CharSet, Regex};
use super::quotient::is_nullable;
use crate::{Error, ErrorKind, Result};

/// A trigger.
pub(super) struct Trigger {
    /// The text before the grammar starts.
    pub(super) before: Regex,
    /// The trigger itself, from where the grammar starts.
    pub(super) from: Regex,
    /// The word, if it is one.
    pub(super) word: Option<String>,
    /// Its name in messages.
    pub(super) said: String,
}

impl Trigger {
    /// A word, anywhere.
    pub(super) fn word(word: &str) -> Result<Trigger> {
        if word.is_empty() {
            let error = Error::new(ErrorKind::Constraint, "a trigger is an empty word");
            return Err(error.help("use the grammar as it is"));
        }
        let said = format!("{word:?}");
        Ok(Trigger { before: Regex::anything(), from: Regex::text(word), word: Some(word.into()), said })
    }
}

/// The triggers of a pattern, one per alternative.
pub(super) fn pattern(text: &str) -> Result<Vec<Trigger>> {
    let said = format!("/{text}/");
    let refuse = |what: &str, help: &str| {
        Err(Error::new(ErrorKind::Constraint, format!("the trigger {said} has {what}")).help(help))
    };
    let scan = Scan::of(text);
    if scan.looks {
        return refuse("an assertion about its context", "write the context, or remove the assertion");
    }
    if scan.flags {
        return refuse("flags for the rest of it", "write (?i:...) around what they mean");
    }
    let mut triggers = Vec::new();
    for alternative in &scan.alternatives {
        if alternative.nested {
            return refuse("a group inside another group", "make the outer one (?:...), or take it out");
        }
        let whole = &text[alternative.from..alternative.to];
        let (anchored, start) = match whole.strip_prefix('^') {
            Some(_) => (true, alternative.from + 1),
            None => (false, alternative.from),
        };
        let end = alternative.to - usize::from(alternative.ends);
        let read = |from: usize, to: usize| {
            pattern::parse(&text[from..to], &PatternOptions::WHOLE)
                .map_err(|error| error.within(&format!("the trigger {said}")))
        };
        let any = if anchored { Regex::Empty } else { Regex::anything() };
        let (before, from) = match alternative.group {
            None => (any, read(start, end)?),
            Some((open, close)) => {
                let group = read(open, close + 1)?;
                if is_nullable(&group) {
                    return refuse(
                        "a group that may be empty",
                        "let the group match where the grammar starts",
                    );
                }
                (Regex::concat([any, read(start, open)?]), Regex::concat([group, read(close + 1, end)?]))
            }
        };
        if is_nullable(&from) {
            return refuse("an empty match", "let it match the text that triggers");
        }
        triggers.push(Trigger { before, from, word: None, said: said.clone() });
    }
    Ok(triggers)
}

/// An alternative of a pattern, by byte offsets.
#[derive(Default)]
struct Alternative {
    from: usize,
    to: usize,
    /// The parentheses of its first group.
    group: Option<(usize, usize)>,
    /// Whether a group is nested in other parentheses or repeated.
    nested: bool,
    /// Whether it ends with `$`.
    ends: bool,
}

/// What is found in a pattern without parsing it; its parser reports syntax errors.
#[derive(Default)]
struct Scan {
    alternatives: Vec<Alternative>,
    looks: bool,
    flags: bool,
}

impl Scan {
    fn of(text: &str) -> Scan {
        let bytes = text.as_bytes();
        let mut scan = Scan::default();
        let mut now = Alternative::default();
        let (mut at, mut deep, mut class) = (0, 0_usize, false);
        // The start of the open group at the top level.
        let mut open = None;
        while at < bytes.len() {
            let rest = &text[at..];
            now.ends = false;
            match bytes[at] {
                b'\\' => {
                    scan.looks |= !class && (rest.starts_with("\\b") || rest.starts_with("\\B"));
                    at += 1;
                }
                b']' => class = false,
                b'[' => class = true,
                _ if class => {}
                b'(' => {
                    let special = rest.starts_with("(?");
                    let named = rest.starts_with("(?<") || rest.starts_with("(?P<");
                    let behind = rest.starts_with("(?<=") || rest.starts_with("(?<!");
                    scan.looks |= behind;
                    scan.flags |= special && is_flags(&rest[2..]);
                    if !special || (named && !behind) {
                        now.nested |= deep > 0 && now.group.is_none();
                        if deep == 0 && now.group.is_none() {
                            open = Some(at);
                        }
                    }
                    deep += 1;
                }
                b')' => {
                    deep = deep.saturating_sub(1);
                    if let (0, Some(from)) = (deep, open) {
                        now.group = Some((from, at));
                        now.nested |= bytes.get(at + 1).is_some_and(|next| b"*+?{".contains(next));
                        open = None;
                    }
                }
                b'|' if deep == 0 => {
                    now.to = at;
                    scan.alternatives.push(std::mem::take(&mut now));
                    now.from = at + 1;
                }
                b'$' => now.ends = deep == 0,
                _ => {}
            }
            at += 1;
        }
        now.to = text.len();
        scan.alternatives.push(now);
        scan
    }
}

/// Whether letters and a parenthesis follow: `i)`.
fn is_flags(rest: &str) -> bool {
    let letters = rest.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'-').count();
    letters > 0 && rest[letters..].starts_with(')')
}

/// Two characters that no text contains, used to mark positions.
const MARKS: [u32; 2] = [0x10_fffe, 0x10_ffff];

/// Languages whose intersection is empty if no text triggers both and lets the grammar start at two positions,
/// that of `first` before that of `second`: texts with both positions marked.
pub(super) fn ambiguous(first: &Trigger, second: &Trigger) -> Vec<Regex> {
    let mark = |place: usize| Regex::Set(CharSet::from_ranges([(MARKS[place], MARKS[place])]));
    let plain = Regex::Set(CharSet::from_ranges([(MARKS[0], MARKS[1])]).not());
    let any = || plain.clone().repeat(0, None);
    let form = [any(), mark(0), plain.clone().repeat(1, None), mark(1), any()];
    vec![
        Regex::concat(form),
        Regex::concat([blind(&first.before, None), mark(0), blind(&first.from, Some(1))]),
        Regex::concat([blind(&second.before, Some(0)), mark(1), blind(&second.from, None)]),
    ]
}

/// The language without marks in its characters; the mark `mark`, if given, may occur anywhere.
fn blind(of: &Regex, mark: Option<usize>) -> Regex {
    let marks = || {
        mark.map_or(Regex::Empty, |place| {
            Regex::Set(CharSet::from_ranges([(MARKS[place], MARKS[place])])).repeat(0, None)
        })
    };
    let plain = |set: &CharSet| set.and(&CharSet::from_ranges([(MARKS[0], MARKS[1])]).not());
    let one = |set: &CharSet| Regex::concat([Regex::Set(plain(set)), marks()]);
    fn inner(of: &Regex, one: &dyn Fn(&CharSet) -> Regex) -> Regex {
        let all = |parts: &[Regex]| parts.iter().map(|part| inner(part, one)).collect();
        match of {
            Regex::Nothing | Regex::Empty => of.clone(),
            Regex::Set(set) => one(set),
            Regex::Text(text) => Regex::Concat(text.chars().map(|c| one(&CharSet::one(c))).collect()),
            Regex::Concat(parts) => Regex::Concat(all(parts)),
            Regex::Or(parts) => Regex::Or(all(parts)),
            Regex::And(parts) => Regex::And(all(parts)),
            Regex::Not(of) => inner(of, one).not(),
            Regex::Repeat { of, min, max } => inner(of, one).repeat(*min, *max),
            // Patterns contain no automata; approximating one by any text can only find more.
            Regex::Automaton(_) | Regex::Computed(_) => one(&CharSet::all()).repeat(0, None),
        }
    }
    Regex::concat([marks(), inner(of, &one)])
}
