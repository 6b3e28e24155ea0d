//! Regular languages that end at the first chance: free text up to a trigger, lazy terminals, texts before a stop. It
//! refuses to know which syntax wants them.

use super::{CharSet, Regex};

/// One character or more.
fn more() -> Regex {
    Regex::Set(CharSet::all()).repeat(1, None)
}

/// The texts of `of` no shorter part of which, from the start on, is one too: what a lazy reader takes.
pub fn shortest(of: Regex) -> Regex {
    let longer = Regex::concat([of.clone(), more()]);
    Regex::and([of, longer.not()])
}

/// The texts of `of` that end where `stop` comes for the first time after any text of `of`, without `stop` itself.
///
/// These are the texts x of `of` such that no shorter text of `of` followed by `stop` starts x `stop`. That one either
/// ends within x, or it overlaps the `stop` behind x; the latter needs a `stop` that starts as it ends.
pub fn before(of: Regex, stop: &str) -> Regex {
    let mut earlier = vec![Regex::concat([of.clone(), Regex::text(stop), Regex::anything()])];
    let starts = stop.char_indices().skip(1).map(|(at, _)| at);
    earlier.extend(starts.filter(|&at| stop.starts_with(&stop[at..])).map(|at| {
        let shifted = Regex::text(&stop[..at]);
        Regex::concat([of.clone(), shifted])
    }));
    Regex::and([of, Regex::or(earlier).not()])
}

/// Every text in which none of `texts` stands.
pub fn free_of(texts: impl IntoIterator<Item = Regex>) -> Regex {
    Regex::concat([Regex::anything(), Regex::or(texts), Regex::anything()]).not()
}

/// Any text of at most `most` characters in which none of `texts` stands.
pub fn free(texts: &[&str], most: Option<u32>) -> Regex {
    let any = Regex::Set(CharSet::all()).repeat(0, most);
    match (texts.is_empty(), most) {
        (true, _) => any,
        (false, None) => free_of(texts.iter().map(|text| Regex::text(*text))),
        (false, Some(_)) => Regex::and([any, free_of(texts.iter().map(|text| Regex::text(*text)))]),
    }
}

/// Any text of at most `most` characters followed by `end`, where `end` is what ends first among `all`. Of two that
/// end together the longer one counts.
pub fn until(end: &str, all: &[&str], most: Option<u32>) -> Regex {
    let any = Regex::Set(CharSet::all()).repeat(0, most);
    let earlier =
        Regex::concat([Regex::anything(), Regex::or(all.iter().map(|text| Regex::text(*text))), more()]);
    let mut not = vec![earlier];
    let longer = all.iter().filter(|text| text.len() > end.len() && text.ends_with(end));
    not.extend(longer.map(|text| Regex::concat([Regex::anything(), Regex::text(*text)])));
    Regex::and([Regex::concat([any, Regex::text(end)]), Regex::or(not).not()])
}
