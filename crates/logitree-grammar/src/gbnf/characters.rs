//! Reads the characters of GBNF and EBNF: escapes and character classes.

use std::ops::RangeInclusive;

use super::super::problems::Problems;
use super::super::CharSet;
use super::Dialect;

const ESCAPES: &str = r#"known are \n \t \r \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH"#;
const EBNF_ESCAPES: &str =
    r#"known are \n \t \r \b \f \a \v \0 \e \xH.., \uHHHH, \UHHHHHHHH, and signs, as in \" or \/"#;
/// The signs that EBNF escapes.
const EBNF_SIGNS: &str = "\\\"/'?^$.*+()[]{}|-";

/// Reads a character of a literal or a class at the byte offset `at`: its code point and the offset of the next
/// one. `None` at the end of the text.
pub(super) fn character(
    text: &str,
    at: usize,
    dialect: Dialect,
    problems: &mut Problems,
) -> Option<(u32, usize)> {
    let c = text[at..].chars().next()?;
    if c != '\\' {
        return Some((c.into(), at + c.len_utf8()));
    }
    let escape = text[at + 1..].chars().next()?;
    let after = at + 1 + escape.len_utf8();
    let is_ebnf = dialect == Dialect::Ebnf;
    let plain = match escape {
        'x' if is_ebnf => return Some(hex(text, at, 1..=text.len(), problems)),
        'x' => return Some(hex(text, at, 2..=2, problems)),
        'u' => return Some(hex(text, at, 4..=4, problems)),
        'U' => return Some(hex(text, at, 8..=8, problems)),
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '\\' | '"' | '[' | ']' | '-' => escape,
        'b' if is_ebnf => '\u{8}',
        'f' if is_ebnf => '\u{c}',
        'a' if is_ebnf => '\u{7}',
        'v' if is_ebnf => '\u{b}',
        '0' if is_ebnf => '\0',
        'e' if is_ebnf => '\u{1b}',
        sign if is_ebnf && EBNF_SIGNS.contains(sign) => sign,
        _ => {
            let help = if is_ebnf { EBNF_ESCAPES } else { ESCAPES };
            problems.add(at, format!("unknown escape `\\{}`", escape.escape_debug()), help);
            escape
        }
    };
    Some((plain.into(), after))
}

/// The number of an escape with so many digits whose backslash is at `at`.
fn hex(text: &str, at: usize, digits: RangeInclusive<usize>, problems: &mut Problems) -> (u32, usize) {
    let from = at + 2;
    let found = text[from..].bytes().take(*digits.end()).take_while(u8::is_ascii_hexdigit).count();
    let written = &text[from..from + found];
    if found < *digits.start() {
        let (kind, digits) = (&text[at..from], digits.start());
        let zeros = "0".repeat(digits - found);
        problems.add(
            at,
            format!("`{kind}` needs {digits} hexadecimal digits and has {found}"),
            format!("write {kind}{zeros}{written}"),
        );
    }
    let code = if written.is_empty() { 0 } else { u32::from_str_radix(written, 16).unwrap_or(u32::MAX) };
    (code, from + found)
}

/// The character of a code point, if it is one.
pub(super) fn scalar(code: u32, at: usize, problems: &mut Problems) -> Option<char> {
    let c = char::from_u32(code);
    if c.is_none() {
        let help = if code <= super::super::charset::LAST {
            "write the character itself, or one \\UHHHHHHHH, instead of two surrogates"
        } else {
            "the last one is \\U0010FFFF"
        };
        problems.add(at, format!("U+{code:04X} is no character"), help);
    }
    c
}

/// The class whose `[` is at `open`, and the offset after it; `None` if it is not closed.
pub(super) fn class(
    text: &str,
    open: usize,
    dialect: Dialect,
    problems: &mut Problems,
) -> Option<(CharSet, usize)> {
    let bytes = text.as_bytes();
    let mut at = open + 1;
    let negated = bytes.get(at) == Some(&b'^');
    at += usize::from(negated);
    let inside = at;
    let mut ranges = Vec::new();
    while *bytes.get(at)? != b']' {
        let first = at;
        let (from, next) = character(text, at, dialect, problems)?;
        at = next;
        // A hyphen before the bracket is a literal.
        if bytes.get(at) == Some(&b'-') && *bytes.get(at + 1)? != b']' {
            let (to, next) = character(text, at + 1, dialect, problems)?;
            at = next;
            if to < from {
                let range = &text[first..at];
                problems.add(first, format!("the range `{range}` runs from back to front"), "turn it round");
            }
            ranges.push((from, to));
        } else {
            scalar(from, first, problems);
            ranges.push((from, from));
        }
    }
    // `[^]` is any character in EBNF.
    if at == inside && !(negated && dialect == Dialect::Ebnf) {
        let help = if negated { "write . for any character" } else { "write \"\" for the empty text" };
        problems.add(open, "a class without characters", help);
    }
    let set = CharSet::from_ranges(ranges);
    Some((if negated { set.not() } else { set }, at + 1))
}
