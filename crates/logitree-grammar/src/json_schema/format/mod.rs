//! The formats of JSON Schema as languages of whole strings. An unknown format asserts nothing: it is an
//! annotation, as the specification has it.
//!
//! Each is written as the regular expression that its RFC's grammar amounts to. What is not regular is narrowed, never
//! widened, so that nothing invalid is accepted:
//!
//! - `hostname` refuses labels that begin with `xn--` (whether such a label decodes is not regular), but for drafts 4 and 6,
//!   where any label of letters, digits and hyphens will do.
//! - `idn-hostname` has its own file, which lists what it leaves out.
//! - `email` takes no address literals but IPv4's and IPv6's, `uri-template` no operators that are reserved, and
//!   `relative-json-pointer` no index manipulation.
//! - `duration` wants capital letters.
//! - A leap second may occur at the end of any day in UTC.
//! - `regex` is a part of ECMA-262: groups three inside each other at most, no backreferences, at most one named group
//!   and that at the top, ranges and counts only where their order can be seen from a few characters.

pub(super) mod content;
mod idn;
mod time;

use super::Draft;
use crate::pattern::{self, PatternOptions};
use crate::Regex;

/// The strings of a format; `None` where nothing is asserted.
pub(super) fn regex(name: &str, draft: Draft) -> Option<Regex> {
    let pattern = match name {
        "date" => date(),
        "time" => return Some(time::time()),
        "date-time" => return Some(Regex::concat([read(&format!("{}[Tt]", date())), time::time()])),
        "duration" => duration(),
        "email" => {
            format!("(?:{}|{QUOTED})@(?:{SUBDOMAIN}(?:\\.{SUBDOMAIN})*|{})", dot_atoms(ATEXT), literal())
        }
        "idn-email" => return Some(idn::email(&literal())),
        "hostname" => return Some(hostname(draft)),
        "idn-hostname" => return Some(idn::hostname()),
        "ipv4" => IPV4.into(),
        "ipv6" => ipv6(),
        "uri" => uri("", ""),
        "uri-reference" => format!("(?:{}|{})", uri("", ""), relative("", "")),
        "iri" => uri(UCSCHAR, IPRIVATE),
        "iri-reference" => format!("(?:{}|{})", uri(UCSCHAR, IPRIVATE), relative(UCSCHAR, IPRIVATE)),
        "uri-template" => uri_template(),
        "uuid" => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".into(),
        "json-pointer" => POINTER.into(),
        "relative-json-pointer" => format!("(?:0|[1-9]\\d*)(?:#|{POINTER})"),
        "regex" => return Some(ecma_regex()),
        _ => return None,
    };
    Some(read(&pattern))
}

/// One of the drafts in which the format is the same as in this one.
pub(super) fn edition(name: &str, draft: Draft) -> Draft {
    match name {
        "hostname" if draft < Draft::Draft7 => Draft::Draft4,
        _ => Draft::Draft2020,
    }
}

/// Reads one of the patterns here; a test reads every one of them.
pub(super) fn read(pattern: &str) -> Regex {
    pattern::parse(pattern, &PatternOptions::WHOLE).unwrap_or(Regex::Nothing)
}

// -- RFC 3339

/// `full-date`, months' lengths and leap years included.
fn date() -> String {
    let long = "(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])";
    let short = "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)";
    let february = "02-(?:0[1-9]|1\\d|2[0-8])";
    let leap = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!("(?:\\d{{4}}-(?:{long}|{short}|{february})|{leap}-02-29)")
}

/// RFC 3339, appendix A.
fn duration() -> String {
    let second = "\\d+S";
    let minute = format!("\\d+M(?:{second})?");
    let hour = format!("\\d+H(?:{minute})?");
    let time = format!("T(?:{hour}|{minute}|{second})");
    let day = "\\d+D";
    let month = format!("\\d+M(?:{day})?");
    let year = format!("\\d+Y(?:{month})?");
    format!("P(?:(?:{day}|{month}|{year})(?:{time})?|{time}|\\d+W)")
}

// -- mail and hosts

/// `atext` of RFC 5322, for use in a class.
pub(super) const ATEXT: &str = "A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-";
const QUOTED: &str = "\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\"";
/// `sub-domain` of RFC 5321. Its grammar, which the specification of formats names, sets no lengths.
pub(super) const SUBDOMAIN: &str = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
/// `dotted-quad` with no leading zeros.
const IPV4: &str = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)(?:\\.(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)){3}";

/// `Dot-string`, of characters of a class.
pub(super) fn dot_atoms(class: &str) -> String {
    format!("[{class}]+(?:\\.[{class}]+)*")
}

/// `address-literal`.
fn literal() -> String {
    format!("\\[(?:{IPV4}|[Ii][Pp][Vv]6:{})\\]", ipv6())
}

/// RFC 4291, section 2.2.
fn ipv6() -> String {
    let h = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{h}:{h}|{IPV4})");
    let mut ways = vec![format!("(?:{h}:){{6}}{last}")];
    for before in 0..8usize {
        let front = match before {
            0 => String::new(),
            _ => format!("(?:(?:{h}:){{0,{}}}{h})?", before - 1),
        };
        let back = match 7usize.saturating_sub(before + 2) {
            _ if before == 7 => String::new(),
            _ if before == 6 => h.to_string(),
            pieces => format!("(?:{h}:){{{pieces}}}{last}"),
        };
        ways.push(format!("{front}::{back}"));
    }
    format!("(?:{})", ways.join("|"))
}

fn hostname(draft: Draft) -> Regex {
    let rest = |most: u32| format!("(?:[A-Za-z0-9-]{{0,{most}}}[A-Za-z0-9])?");
    if draft < Draft::Draft7 {
        return hosts(&format!("[A-Za-z0-9]{}", rest(61)), "\\.");
    }
    // Letter by letter what does not begin with `xn--`: cheaper to compile than the same as a lookahead.
    let no_hyphen = format!("[A-Za-z0-9]{}|-[A-Za-z0-9]{}", rest(59), rest(58));
    let no_n = format!("[A-MO-Za-mo-z0-9]{}|-[A-Za-z0-9-]{{0,60}}[A-Za-z0-9]", rest(60));
    let x = format!("[Xx](?:{no_n}|[Nn](?:{no_hyphen})?)?");
    hosts(&format!("(?:[A-WYZa-wyz0-9]{}|{x})", rest(61)), "\\.")
}

/// Labels of RFC 1123 with dots between them: 253 characters at most.
pub(super) fn hosts(label: &str, dot: &str) -> Regex {
    Regex::and([read(&format!("{label}(?:{dot}{label})*")), read("[^]{1,253}")])
}

// -- RFC 3986, RFC 3987, RFC 6570

/// `ucschar` of RFC 3987, for use in a class.
const UCSCHAR: &str = concat!(
    "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}",
    "\\u{30000}-\\u{3FFFD}\\u{40000}-\\u{4FFFD}\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}\\u{70000}-\\u{7FFFD}",
    "\\u{80000}-\\u{8FFFD}\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}",
    "\\u{D0000}-\\u{DFFFD}\\u{E1000}-\\u{EFFFD}"
);
/// `iprivate` of RFC 3987, for use in a class.
const IPRIVATE: &str = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";
const PERCENT: &str = "%[0-9A-Fa-f]{2}";
const SUB: &str = "!$&'()*+,;=";

/// One character of a class that has the unreserved ones, those of `more` and of `others`; or an escaped byte.
fn uri_character(more: &str, others: &str) -> String {
    format!("(?:[A-Za-z0-9\\-._~{more}{others}]|{PERCENT})")
}

/// `URI`; an IRI where more characters are unreserved (`more`) and more are allowed in queries (`private`).
fn uri(more: &str, private: &str) -> String {
    let segment = uri_character(more, &format!("{SUB}:@"));
    let path = uri_character(more, &format!("{SUB}:@/"));
    let rootless = format!("{segment}{path}*");
    format!("[A-Za-z][A-Za-z0-9+.-]*:{}", hierarchy(more, private, &rootless))
}

/// `relative-ref`: no colon in the first segment of a relative path.
fn relative(more: &str, private: &str) -> String {
    let first = uri_character(more, &format!("{SUB}@"));
    let path = uri_character(more, &format!("{SUB}:@/"));
    let noscheme = format!("{first}+(?:/{path}*)?");
    hierarchy(more, private, &noscheme)
}

fn hierarchy(more: &str, private: &str, rootless: &str) -> String {
    let segment = uri_character(more, &format!("{SUB}:@"));
    let path = uri_character(more, &format!("{SUB}:@/"));
    let query = uri_character(more, &format!("{SUB}:@/?{private}"));
    let fragment = uri_character(more, &format!("{SUB}:@/?"));
    let user = uri_character(more, &format!("{SUB}:"));
    let name = uri_character(more, SUB);
    let future = format!("[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9\\-._~{SUB}:]+");
    let host = format!("(?:\\[(?:{}|{future})\\]|{name}*)", ipv6());
    let authority = format!("(?:{user}*@)?{host}(?::\\d*)?");
    format!(
        "(?://{authority}(?:/{path}*)?|/(?:{segment}{path}*)?|{rootless}|)(?:\\?{query}*)?(?:#{fragment}*)?"
    )
}

fn uri_template() -> String {
    let literal = format!("(?:[!#$&'()-;=?-\\[\\]_a-z~{UCSCHAR}{IPRIVATE}]|{PERCENT})");
    let character = format!("(?:\\w|{PERCENT})");
    let variable = format!("{character}+(?:\\.{character}+)*(?::[1-9]\\d{{0,3}}|\\*)?");
    format!("(?:{literal}|\\{{[+#./;?&]?{variable}(?:,{variable})*\\}})*")
}

/// RFC 6901.
const POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

// -- ECMA-262

/// Groups inside each other in a string of format `regex`.
const NESTED: usize = 3;

fn ecma_regex() -> Regex {
    let character = "[^\\\\^$.*+?()\\[\\]{}|\\n\\r\\u2028\\u2029]";
    let hex = "[0-9A-Fa-f]";
    let unit = format!("u(?:[0-9A-CEFa-cef]{hex}{{3}}|[Dd][0-7]{hex}{{2}})");
    let common = format!("[dDwWsStnvfr]|c[A-Za-z]|x{hex}{{2}}|{unit}");
    let escape = format!("\\\\(?:{common}|[\\^$\\\\.*+?()\\[\\]{{}}|/])");
    let ordered =
        |from: char, to: char| (from..=to).map(|c| format!("{c}-[{c}-{to}]")).collect::<Vec<_>>().join("|");
    let range = format!("{}|{}|{}", ordered('0', '9'), ordered('A', 'Z'), ordered('a', 'z'));
    let inner = "[^\\\\\\]\\-\\n\\r\\u2028\\u2029]";
    let class_escape = format!("\\\\(?:{common}|[b\\-\\^$\\\\.*+?()\\[\\]{{}}|/])");
    // A literal hyphen comes first: elsewhere it might make a range.
    let class = format!("\\[\\^?-?(?:{range}|{inner}|{class_escape})*\\]");
    let narrow = (0..=9).map(|n| format!("{n},[{n}-9]")).collect::<Vec<_>>().join("|");
    let counts = format!("(?:\\d{{1,4}},?|{narrow}|\\d,[1-9]\\d{{1,3}}|\\d\\d,[1-9]\\d{{2,3}})");
    let quantifier = format!("(?:(?:[*+?]|\\{{{counts}\\}})\\??)?");
    let mut inside = String::new();
    for nested in 0..=NESTED {
        let (group, look) = match nested {
            0 => (String::new(), String::new()),
            _ => (format!("|\\((?:\\?:)?{inside}\\)"), format!("|\\(\\?<?[=!]{inside}\\)")),
        };
        let atom = format!("(?:{character}|\\.|{escape}|{class}{group}){quantifier}");
        inside = format!("(?:{atom}|\\^|\\$|\\\\[bB]|\\|{look})*");
    }
    let inside = read(&inside);
    let named =
        Regex::concat([read("\\(\\?<[A-Za-z_]\\w*>"), inside.clone(), read(&format!("\\){quantifier}"))]);
    Regex::concat([inside.clone(), Regex::concat([named, inside]).optional()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_be_read() {
        for draft in [Draft::Draft4, Draft::Draft2020] {
            for name in [
                "date",
                "time",
                "date-time",
                "duration",
                "email",
                "idn-email",
                "hostname",
                "idn-hostname",
                "ipv4",
                "ipv6",
                "uri",
                "uri-reference",
                "iri",
                "iri-reference",
                "uri-template",
                "uuid",
                "json-pointer",
                "relative-json-pointer",
                "regex",
            ] {
                let regex = regex(name, draft).unwrap_or(Regex::Nothing);
                assert!(!has_nothing(&regex), "{name}: {regex:?}");
            }
        }
        assert!(regex("color", Draft::Draft2020).is_none());
        for draft in [Draft::Draft4, Draft::Draft6, Draft::Draft7, Draft::Draft2019] {
            for name in ["hostname", "idn-hostname", "email", "uri", "date-time"] {
                assert_eq!(regex(name, draft), regex(name, edition(name, draft)), "{name}");
            }
        }
    }

    fn has_nothing(regex: &Regex) -> bool {
        match regex {
            Regex::Nothing => true,
            Regex::Concat(parts) | Regex::Or(parts) | Regex::And(parts) => parts.iter().any(has_nothing),
            Regex::Not(of) => has_nothing(of),
            Regex::Repeat { of, .. } => has_nothing(of),
            _ => false,
        }
    }
}
