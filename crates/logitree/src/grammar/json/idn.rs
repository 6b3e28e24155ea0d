//! Hosts and mail addresses with letters of other scripts, as far as they are regular (RFC 5890 to 5893, RFC 6531).
//!
//! A subset, so that nothing invalid is accepted:
//!
//! - labels in Punycode (`xn--`) are refused, for whether one decodes is not regular;
//! - letters are those of Latin, Greek, Cyrillic, Georgian, Hebrew, Arabic, Devanagari, Thai, Hangul, Kana and Han that
//!   normalisation leaves alone, and marks never stand beside each other (their order would matter);
//! - a label's length in Punycode, 63 at most, is not regular: labels with other letters than ASCII's have 16 characters
//!   of one small script, or 9 of any, at most; a name has three such labels and 60 characters at most.
//!
//! It refuses to know what the names are used for.

use super::super::pattern::property;
use super::super::{CharSet, Regex};
use super::format::{dot_atoms, read, ATEXT};

/// Full stops: the ASCII one, and those that RFC 3490 has beside it.
const DOTS: &str = ".\\u3002\\uFF0E\\uFF61";
/// Letters of one small script each: ranges, and the categories that are taken of them.
const SMALL: [(&[(u32, u32)], &[&str]); 7] = [
    (
        &[
            (0xdf, 0x132),
            (0x134, 0x13f),
            (0x141, 0x148),
            (0x14a, 0x17e),
            (0x180, 0x1c5),
            (0x1ce, 0x1f2),
            (0x1f4, 0x24f),
        ],
        &["Ll"],
    ),
    (&[(0x390, 0x390), (0x3ac, 0x3ce), (0x3d7, 0x3ef)], &["Ll"]),
    (&[(0x430, 0x52f)], &["Ll"]),
    (&[(0x10d0, 0x10fa)], &["L"]),
    (&[(0x904, 0x939), (0x93d, 0x94d), (0x950, 0x950), (0x966, 0x96f)], &["Lo", "M", "Nd"]),
    (&[(0xe01, 0xe32), (0xe34, 0xe4e), (0xe50, 0xe59)], &["L", "Mn", "Nd"]),
    (&[(0x3041, 0x3096), (0x309d, 0x309e), (0x30a1, 0x30fa), (0x30fc, 0x30fe)], &["L"]),
];
/// Letters written from right to left.
const HEBREW: &[(u32, u32)] = &[(0x5d0, 0x5ea)];
const ARABIC: &[(u32, u32)] =
    &[(0x620, 0x63f), (0x641, 0x64a), (0x671, 0x674), (0x679, 0x6d3), (0x6fd, 0x6fe)];
/// Arabic letters that join on both sides: a zero width non-joiner may stand behind them.
const JOINING: &str = "[\\u0628\\u062A-\\u062E\\u0633-\\u063A\\u0641-\\u0647\\u064A]";
/// Han and Hangul, and what is valid by name though its category is not.
const LARGE: &[(u32, u32)] = &[
    (0xf0b, 0xf0b),
    (0x3005, 0x3005),
    (0x3007, 0x3007),
    (0x3400, 0x4dbf),
    (0x4e00, 0x9ffc),
    (0xac00, 0xd7a3),
];
/// What is valid beside certain characters only.
const CONTEXT: &[(u32, u32)] = &[
    (0xb7, 0xb7),
    (0x375, 0x375),
    (0x5f3, 0x5f4),
    (0x30fb, 0x30fb),
    (0x200c, 0x200d),
    (0x660, 0x669),
    (0x6f0, 0x6f9),
];

/// `idn-hostname`.
pub(super) fn hostname() -> Regex {
    let ascii = read("(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?");
    let label = Regex::or([ascii, label()]);
    let names = separated(&label);
    let foreign = format!("[^\\0-\\x7F{DOTS}]");
    let four = format!("[^]*{foreign}[^]*(?:[{DOTS}][^]*{foreign}[^]*){{3}}");
    let other = Regex::or([
        read(&format!("[\\0-\\x7F{DOTS}]{{1,253}}")),
        Regex::and([read("[^]{1,60}"), read(&four).not()]),
    ]);
    Regex::and([names, other, directions()])
}

/// `idn-email`: the domain's labels have no lengths, as those of `email`.
pub(super) fn email(literal: &str) -> Regex {
    let foreign = "\\u{80}-\\u{10FFFF}";
    let quoted = format!("\"(?:[ !#-\\[\\]-~{foreign}]|\\\\[ -~])*\"");
    let local = read(&format!("(?:{}|{quoted})@", dot_atoms(&format!("{ATEXT}{foreign}"))));
    let marks = CharSet::from_ranges([(0x300, 0x33f), (0x342, 0x342), (0x346, 0x34e)]);
    let inner = letters().or(&ascii("A-Za-z0-9-")).or(&marks);
    let label = Regex::and([Regex::Set(inner).repeat(1, None), read("[^]*(?<!-)"), faults().not()]);
    let ascii = read("[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?");
    let labels = Regex::or([ascii, label]);
    let more = Regex::concat([Regex::text("."), labels.clone()]).repeat(0, None);
    Regex::concat([local, Regex::or([read(literal), Regex::concat([labels, more])])])
}

/// Labels with full stops between them.
fn separated(label: &Regex) -> Regex {
    let more = Regex::concat([read(&format!("[{DOTS}]")), label.clone()]);
    Regex::concat([label.clone(), more.repeat(0, None)])
}

/// A label with letters of other scripts.
fn label() -> Regex {
    let own = ascii("a-z0-9-").or(&CharSet::from_ranges(CONTEXT.iter().copied()));
    let mut ways = vec![Regex::Set(letters().or(&own)).repeat(1, Some(9))];
    let others = [HEBREW, ARABIC].map(|ranges| CharSet::from_ranges(ranges.iter().copied()));
    for script in SMALL.iter().map(|(ranges, categories)| taken(ranges, categories)).chain(others) {
        ways.push(Regex::Set(script.or(&ascii("a-z0-9-"))).repeat(1, Some(16)));
    }
    let some = read("[^]*[^\\0-\\x7F][^]*");
    Regex::and([Regex::or(ways), some, faults().not()])
}

/// All letters and digits past ASCII.
fn letters() -> CharSet {
    let small = SMALL.iter().map(|(ranges, categories)| taken(ranges, categories));
    let plain = [HEBREW, ARABIC, LARGE].map(|ranges| CharSet::from_ranges(ranges.iter().copied()));
    small.chain(plain).fold(CharSet::none(), |all, set| all.or(&set))
}

/// What is of these categories in these ranges.
fn taken(ranges: &[(u32, u32)], categories: &[&str]) -> CharSet {
    let of =
        categories.iter().filter_map(|name| property(name)).fold(CharSet::none(), |all, set| all.or(&set));
    CharSet::from_ranges(ranges.iter().copied()).and(&of)
}

fn ascii(class: &str) -> CharSet {
    match read(&format!("[{class}]")) {
        Regex::Set(set) => set,
        _ => CharSet::none(),
    }
}

/// Labels with something in the wrong place: RFC 5891, section 4.2.3, and RFC 5892, appendix A.
fn faults() -> Regex {
    let places = [
        "^[-\\p{M}]",
        "-$",
        "^..--",
        "\\p{Mn}\\p{Mn}",
        "(?<!l)\\u00B7",
        "\\u00B7(?!l)",
        "\\u0375(?!\\p{Greek})",
        "(?<!\\p{Hebrew})[\\u05F3\\u05F4]",
        "(?<!\\u094D)\\u200D",
        "\\u200C(?![\\u0620-\\u064A])(?<!\\u094D\\u200C)",
    ];
    let joiner = format!("(?<!\\u094D)(?<!{JOINING})\\u200C");
    let places = read(&format!("[^]*(?:{}|{joiner})[^]*", places.join("|")));
    let kana = read("[^]*[\\p{Hiragana}\\p{Katakana}\\p{Han}][^]*");
    Regex::or([
        places,
        Regex::and([read("[^]*\\u30FB[^]*"), kana.not()]),
        Regex::and([read("[^]*[\\u0660-\\u0669][^]*"), read("[^]*[\\u06F0-\\u06F9][^]*")]),
    ])
}

/// RFC 5893: where anything is written from right to left, every label has one direction.
fn directions() -> Regex {
    let right = "\\u05D0-\\u05EA\\u05F3\\u05F4\\u0620-\\u064A\\u0671-\\u06D3\\u06FD\\u06FE";
    let (digits, arabic) = ("0-9\\u06F0-\\u06F9", "\\u0660-\\u0669");
    let leftwards = format!(
        "[{right}](?:[{right}{digits}\\u200C\\u200D-]*[{right}{digits}]|[{right}{arabic}\\u200C\\u200D-]*[{right}{arabic}])?"
    );
    let rightwards = format!("[^{right}{digits}{arabic}{DOTS}-][^{right}{arabic}{DOTS}]*");
    let label = format!("(?:{leftwards}|{rightwards})");
    let all = format!("{label}(?:[{DOTS}]{label})*");
    Regex::or([read(&format!("[^{right}{arabic}]*")), read(&all)])
}
