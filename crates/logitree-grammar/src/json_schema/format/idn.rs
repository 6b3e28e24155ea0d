//! Hosts and mail addresses with letters of other scripts, as far as they are regular (RFC 5890 to 5893, RFC 6531).
//!
//! A subset, so that nothing invalid is accepted:
//!
//! - labels in Punycode (`xn--`) are refused, for whether one decodes is not regular;
//! - letters are those of Latin, Greek, Cyrillic, Georgian, Hebrew, Arabic, Devanagari, Thai, Kana, Han and Hangul that
//!   normalisation leaves alone, and a letter has at most one mark (the order of several would matter);
//! - the length of a label in Punycode, 63 at most, is not regular: one with other letters than ASCII's has 22 characters
//!   of one small script, or 13 of any, at most, and a name with such a label has four labels at most;
//! - what is valid only beside certain characters occurs once in a label.

use std::fmt::Write;

use super::{dot_atoms, hosts, read, ATEXT, SUBDOMAIN};
use crate::pattern::property;
use crate::{CharSet, Regex};

/// Full stops: the ASCII one, and those that RFC 3490 has beside it.
const DOTS: &str = "[.\\u3002\\uFF0E\\uFF61]";
/// Small letters of one script each that every normal form leaves unchanged.
const SMALL: [&[(u32, u32)]; 3] = [
    &[
        (0xdf, 0x132),
        (0x134, 0x13f),
        (0x141, 0x148),
        (0x14a, 0x17e),
        (0x180, 0x1c5),
        (0x1ce, 0x1f2),
        (0x1f4, 0x24f),
    ],
    &[(0x390, 0x390), (0x3ac, 0x3cf), (0x3d7, 0x3ef)],
    &[(0x430, 0x52f)],
];
/// Georgian; Hiragana and Katakana.
const PLAIN: [&str; 2] = ["\\u10D0-\\u10FA", "\\u3041-\\u3096\\u309D\\u309E\\u30A1-\\u30FA\\u30FC-\\u30FE"];
/// Han and Hangul, and what is valid by name though its category is not.
const LARGE: &str = "\\u0F0B\\u3005\\u3007\\u3400-\\u4DBF\\u4E00-\\u9FFC\\uAC00-\\uD7A3";
const HEBREW: &str = "\\u05D0-\\u05EA";
const ARABIC: &str = "\\u0620-\\u063F\\u0641-\\u064A\\u0671-\\u0674\\u0679-\\u06D3\\u06FD\\u06FE";
/// Arabic letters that join on both sides: a zero width non-joiner may follow them.
const JOINING: &str = "\\u0628\\u062A-\\u062E\\u0633-\\u063A\\u0641-\\u0647\\u064A";
const DEVANAGARI: &str = "\\u0904-\\u0939\\u093D\\u0950";
const THAI: &str = "\\u0E01-\\u0E30\\u0E32\\u0E40-\\u0E46";

/// `idn-hostname`.
pub(super) fn hostname() -> Regex {
    let letters = rightwards().join("|");
    let ascii = |most: u32| label("A-Za-z", "0-9", most);
    let name = |labels: &str| read(&format!("(?:{labels})(?:{DOTS}(?:{labels})){{0,3}}"));
    Regex::or([
        hosts(&format!("(?:{}|{})", ascii(63), digit_first(63)), DOTS),
        name(&format!("{}|{}|{letters}|[0-9\\u06F0-\\u06F9]{{1,9}}", ascii(61), digit_first(61))),
        // RFC 5893: where anything is written from right to left, no other label begins with a digit.
        name(&format!("{}|{letters}|{}", ascii(61), leftwards().join("|"))),
    ])
}

/// `idn-email`: the domain's labels have no lengths, as those of `email`.
pub(super) fn email(literal: &str) -> Regex {
    let foreign = "\\u{80}-\\u{10FFFF}";
    let quoted = format!("\"(?:[ !#-\\[\\]-~{foreign}]|\\\\[ -~])*\"");
    let local = format!("(?:{}|{quoted})", dot_atoms(&format!("{ATEXT}{foreign}")));
    let (letters, marks) = (all_letters(), "\\u0300-\\u033F\\u0342\\u0346-\\u034E\\u0901-\\u0903\\u093E-\\u094D\\u0E31\\u0E34-\\u0E3A\\u0E47-\\u0E4E");
    let letter = format!("[A-Za-z0-9{letters}{HEBREW}{ARABIC}{DEVANAGARI}{THAI}][{marks}]?");
    let label = format!("(?:{SUBDOMAIN}|{letter}(?:-*{letter})*)");
    read(&format!("{local}@(?:{literal}|{label}(?:\\.{label})*)"))
}

/// Labels written from left to right, with letters of other scripts; none begins with a digit.
fn rightwards() -> Vec<String> {
    let mut labels: Vec<String> = SMALL.map(small).iter().map(|script| mixed(script, 22)).collect();
    labels.extend(PLAIN.map(|script| mixed(script, 22)));
    labels.push(mixed(&all_letters(), 13));
    labels.push("[a-z]{0,5}l\\u00B7l[a-z]{0,5}".into());
    labels.push("[\\u03B1-\\u03C9]{0,5}\\u0375[\\u03B1-\\u03C9]{1,5}".into());
    let kana = format!("{}{LARGE}", PLAIN[1]).replace("\\u0F0B", "");
    labels.push(format!("[{kana}\\u30FB]{{0,4}}[{kana}][{kana}\\u30FB]{{0,4}}"));
    let vowel = "[\\u0901-\\u0903\\u093E-\\u094C]|\\u094D[\\u200C\\u200D]?";
    labels.push(format!("[{DEVANAGARI}](?:{vowel})?(?:[{DEVANAGARI}](?:{vowel})?|[\\u0966-\\u096F]){{0,4}}"));
    labels.push(format!(
        "[{THAI}](?:[{THAI}0-9\\u0E50-\\u0E59]|[{THAI}][\\u0E31\\u0E34-\\u0E3A\\u0E47-\\u0E4E]){{0,7}}"
    ));
    labels
}

/// Labels written from right to left.
fn leftwards() -> Vec<String> {
    vec![
        label(HEBREW, "0-9", 22),
        label(ARABIC, "0-9\\u06F0-\\u06F9", 22),
        label(ARABIC, "\\u0660-\\u0669", 22),
        format!("[{HEBREW}]{{1,6}}[\\u05F3\\u05F4][{HEBREW}]{{0,6}}"),
        format!("[{ARABIC}]{{0,5}}[{JOINING}]\\u200C[{ARABIC}]{{1,6}}"),
    ]
}

/// A label of a script's letters and those of ASCII.
fn mixed(script: &str, most: u32) -> String {
    label(&format!("{script}a-z"), "0-9", most)
}

/// A label of ASCII that begins with a digit.
fn digit_first(most: u32) -> String {
    label("0-9", "A-Za-z", most)
}

/// A label of at most `most` characters that begins with one of `letters`: no hyphen at its ends, no two at its third
/// and fourth place.
fn label(letters: &str, others: &str, most: u32) -> String {
    let inner = format!("[{letters}{others}-]");
    let end = format!("[{letters}{others}]");
    let long = format!("{inner}(?:{end}{inner}|-{end}){inner}{{0,{}}}{end}", most - 5);
    format!("[{letters}](?:{inner}{{0,2}}{end}|{long})?")
}

/// Letters that are written from left to right and need no marks, for use in a class.
fn all_letters() -> String {
    format!("{}{}{LARGE}", SMALL.map(small).concat(), PLAIN.concat())
}

/// The small letters of some ranges, for use in a class.
fn small(ranges: &[(u32, u32)]) -> String {
    let letters = property("Ll").unwrap_or_default().and(&CharSet::from_ranges(ranges.iter().copied()));
    letters.ranges().iter().fold(String::new(), |mut class, (from, to)| {
        // Writing to a string cannot fail.
        let _ = write!(class, "\\u{{{from:x}}}-\\u{{{to:x}}}");
        class
    })
}
