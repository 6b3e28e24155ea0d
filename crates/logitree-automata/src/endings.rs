//! Regular languages that end as early as possible: free text up to a trigger, lazy terminals, text before a
//! stop string.

use super::{CharSet, Regex};

/// One character or more.
fn more() -> Regex {
    Regex::Set(CharSet::all()).repeat(1, None)
}

/// The strings of `of` that have no proper prefix in `of`: what a lazy lexeme matches.
pub fn shortest(of: Regex) -> Regex {
    let longer = Regex::concat([of.clone(), more()]);
    Regex::and([of, longer.not()])
}

/// The strings of `of` that end at the first `stop` that follows a string of `of`, without that `stop`.
///
/// These are the strings x of `of` such that no shorter string of `of` followed by `stop` is a prefix of x
/// `stop`. Such a prefix either ends within x or overlaps the `stop` after x. It can overlap only if a prefix
/// of `stop` is also a suffix of it.
pub fn before(of: Regex, stop: &str) -> Regex {
    let mut earlier = vec![Regex::concat([of.clone(), Regex::text(stop), Regex::anything()])];
    let starts = stop.char_indices().skip(1).map(|(at, _)| at);
    earlier.extend(starts.filter(|&at| stop.starts_with(&stop[at..])).map(|at| {
        let shifted = Regex::text(&stop[..at]);
        Regex::concat([of.clone(), shifted])
    }));
    Regex::and([of, Regex::or(earlier).not()])
}

/// The strings that contain none of `texts`.
pub fn free_of(texts: impl IntoIterator<Item = Regex>) -> Regex {
    Regex::concat([Regex::anything(), Regex::or(texts), Regex::anything()]).not()
}

/// The strings of at most `most` characters that contain none of `texts`.
pub fn free(texts: &[&str], most: Option<u32>) -> Regex {
    let any = Regex::Set(CharSet::all()).repeat(0, most);
    match (texts.is_empty(), most) {
        (true, _) => any,
        (false, None) => free_of(texts.iter().map(|text| Regex::text(*text))),
        (false, Some(_)) => Regex::and([any, free_of(texts.iter().map(|text| Regex::text(*text)))]),
    }
}

/// What [`until`] has before `end`.
pub fn free_before(end: &str, ends: &[&str], excludes: &[&str], most: Option<u32>) -> Regex {
    // A string of `ends` that is complete within `end`, or with it and is longer, began before it.
    let begun = ends.iter().flat_map(|text| {
        let starts = text.char_indices().map(|(at, _)| at).skip(1);
        let inside = move |&at: &usize| end.starts_with(&text[at..]);
        starts.filter(inside).map(|at| Regex::concat([Regex::anything(), Regex::text(&text[..at])]))
    });
    Regex::and([free(&[ends, excludes].concat(), most), Regex::or(begun).not()])
}

/// At most `most` characters that contain none of `excludes`, then `end`, where no string of `ends` ends earlier. If two of
/// them end at the same place, the longer one wins. What is excluded may be a part of `end`, or of the text around its
/// beginning.
pub fn until(end: &str, ends: &[&str], excludes: &[&str], most: Option<u32>) -> Regex {
    let earlier =
        Regex::concat([Regex::anything(), Regex::or(ends.iter().map(|text| Regex::text(*text))), more()]);
    let mut not = vec![earlier];
    let longer = ends.iter().filter(|text| text.len() > end.len() && text.ends_with(end));
    not.extend(longer.map(|text| Regex::concat([Regex::anything(), Regex::text(*text)])));
    Regex::and([Regex::concat([free(excludes, most), Regex::text(end)]), Regex::or(not).not()])
}
