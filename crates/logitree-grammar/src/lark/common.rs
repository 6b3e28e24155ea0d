//! The terminals of `%import common`, under the names of Lark's own library.
//! imports them.

use super::super::{CharSet, Regex};

/// The names, for messages.
pub(super) const NAMES: &str = "DIGIT, HEXDIGIT, INT, SIGNED_INT, DECIMAL, _EXP, FLOAT, SIGNED_FLOAT, NUMBER, \
    SIGNED_NUMBER, ESCAPED_STRING, LCASE_LETTER, UCASE_LETTER, LETTER, WORD, CNAME, WS_INLINE, WS, CR, LF, NEWLINE, \
    SH_COMMENT, CPP_COMMENT, C_COMMENT, SQL_COMMENT";

/// The language of the terminal `name`.
pub(super) fn terminal(name: &str) -> Option<Regex> {
    Some(match name {
        "DIGIT" => digit(),
        "HEXDIGIT" => set(&[('0', '9'), ('a', 'f'), ('A', 'F')]),
        "INT" => digits(),
        "SIGNED_INT" => signed(digits()),
        "DECIMAL" => decimal(),
        "_EXP" => exponent(),
        "FLOAT" => float(),
        "SIGNED_FLOAT" => signed(float()),
        "NUMBER" => Regex::or([float(), digits()]),
        "SIGNED_NUMBER" => signed(Regex::or([float(), digits()])),
        "ESCAPED_STRING" => {
            let plain = but(&['"', '\\']);
            let escaped = Regex::concat([Regex::text("\\"), but(&['\n'])]);
            quoted("\"", Regex::or([plain, escaped]).repeat(0, None), "\"")
        }
        "LCASE_LETTER" => set(&[('a', 'z')]),
        "UCASE_LETTER" => set(&[('A', 'Z')]),
        "LETTER" => letter(),
        "WORD" => letter().repeat(1, None),
        "CNAME" => {
            let first = set(&[('a', 'z'), ('A', 'Z'), ('_', '_')]);
            let later = set(&[('a', 'z'), ('A', 'Z'), ('_', '_'), ('0', '9')]);
            Regex::concat([first, later.repeat(0, None)])
        }
        "WS_INLINE" => set(&[(' ', ' '), ('\t', '\t')]).repeat(1, None),
        "WS" => {
            set(&[(' ', ' '), ('\t', '\t'), ('\n', '\n'), ('\r', '\r'), ('\u{c}', '\u{c}')]).repeat(1, None)
        }
        "CR" => Regex::text("\r"),
        "LF" => Regex::text("\n"),
        "NEWLINE" => Regex::concat([Regex::text("\r").optional(), Regex::text("\n")]).repeat(1, None),
        "SH_COMMENT" => Regex::concat([Regex::text("#"), line()]),
        "CPP_COMMENT" => Regex::concat([Regex::text("//"), line()]),
        "SQL_COMMENT" => Regex::concat([Regex::text("--"), line()]),
        "C_COMMENT" => quoted("/*", super::super::endings::free_of([Regex::text("*/")]), "*/"),
        _ => return None,
    })
}

fn set(ranges: &[(char, char)]) -> Regex {
    Regex::Set(CharSet::from_ranges(ranges.iter().map(|&(from, to)| (from.into(), to.into()))))
}

fn but(characters: &[char]) -> Regex {
    Regex::Set(CharSet::from_ranges(characters.iter().map(|&c| (c.into(), c.into()))).not())
}

fn quoted(open: &str, inside: Regex, close: &str) -> Regex {
    Regex::concat([Regex::text(open), inside, Regex::text(close)])
}

fn line() -> Regex {
    but(&['\n']).repeat(0, None)
}

fn letter() -> Regex {
    set(&[('a', 'z'), ('A', 'Z')])
}

fn digit() -> Regex {
    set(&[('0', '9')])
}

fn digits() -> Regex {
    digit().repeat(1, None)
}

fn sign() -> Regex {
    set(&[('+', '+'), ('-', '-')]).optional()
}

fn signed(number: Regex) -> Regex {
    Regex::concat([sign(), number])
}

fn decimal() -> Regex {
    let dot = || Regex::text(".");
    Regex::or([Regex::concat([digits(), dot(), digit().repeat(0, None)]), Regex::concat([dot(), digits()])])
}

fn exponent() -> Regex {
    Regex::concat([set(&[('e', 'e'), ('E', 'E')]), sign(), digits()])
}

fn float() -> Regex {
    Regex::or([Regex::concat([digits(), exponent()]), Regex::concat([decimal(), exponent().optional()])])
}
