//! Proves cheaply that a schema has a valid value, without building an automaton. A negative answer proves nothing.

use super::super::decimal::Decimal;
use super::super::number::MAX_WHOLE;
use super::super::schema::{keywords, Keywords, NumberBound, TypeSet};
use super::{Facts, NormalForms, NumberFacts, StringFacts};
use crate::Regex;

/// Maximum depth of regular languages that are searched.
const DEPTH: u32 = 40;
/// Most ranges of lengths that are kept of a language.
const MAX_RANGES: usize = 8;

/// Whether some value fulfils the keywords.
pub(crate) fn has_value(k: &Keywords) -> bool {
    keywords! { k;
        read types, values, minimum, maximum, multiple_of, min_length, max_length, pattern, format,
             min_items, contains, required, min_properties, all_of, any_of, one_of, not, conditional;
        leave digits_only, items, max_items, unique_items, contains_evaluates, unevaluated_items,
              properties, pattern_properties, additional_properties, unevaluated_properties, property_names,
              max_properties, dependent_required, dependent_schemas, reading
    }
    let types = types.unwrap_or(TypeSet::ALL);
    let applies = !(all_of.is_empty() && any_of.is_empty() && one_of.is_empty())
        || not.is_some()
        || conditional.is_some()
        || values.is_some();
    let languages = [pattern, format];
    let string =
        || has_string(languages.into_iter().flatten().map(|regex| &**regex), *min_length, *max_length);
    let number = || multiple_of.is_none() && has_whole(minimum.as_ref(), maximum.as_ref());
    let array = *min_items == 0 && contains.is_none();
    let object = required.is_empty() && *min_properties == 0;
    !applies
        && (types.has(TypeSet::NULL)
            || types.has(TypeSet::BOOLEAN)
            || (array && types.has(TypeSet::ARRAY))
            || (object && types.has(TypeSet::OBJECT))
            || (types.has(TypeSet::STRING) && string())
            || (types.has(TypeSet::INTEGER) && number()))
}

impl NormalForms {
    /// Whether some scalar, or any array or object, fulfils `facts`.
    pub(crate) fn has_plain_value(&self, facts: &Facts) -> bool {
        facts.bools != 0
            || facts.any_of(TypeSet::NULL)
            || (facts.any_of(TypeSet::ARRAY) && facts.array.is_none())
            || (facts.any_of(TypeSet::OBJECT) && facts.object.is_none())
            || (facts.any_of(TypeSet::STRING)
                && facts.string.as_ref().is_none_or(|s| self.has_plain_string(s)))
            || (facts.any_of(TypeSet::NUMBER)
                && facts.number.as_ref().is_none_or(|n| has_plain_number(facts.types, n)))
    }

    fn has_plain_string(&self, facts: &StringFacts) -> bool {
        if let Some(only) = &facts.only {
            return !only.is_empty();
        }
        let languages = || facts.languages.iter().map(|&(regex, _)| &**self.regex(regex));
        facts.not.is_empty()
            && facts.choices.is_empty()
            && facts.languages.iter().all(|&(_, wanted)| wanted)
            && has_string(languages(), facts.min, facts.max)
    }
}

fn has_plain_number(types: TypeSet, facts: &NumberFacts) -> bool {
    if let Some(only) = &facts.only {
        return !only.is_empty();
    }
    let bare = facts.multiples.is_empty() && facts.not_multiples.is_empty() && facts.not.is_empty();
    bare && facts.choices.is_empty()
        && types.has(TypeSet::INTEGER)
        && has_whole(facts.min.as_ref(), facts.max.as_ref())
}

/// Whether some string of a length is in all the languages.
fn has_string<'a>(mut languages: impl Iterator<Item = &'a Regex>, min: u64, max: Option<u64>) -> bool {
    if max.is_some_and(|max| max < min) {
        return false;
    }
    match (languages.next(), languages.next()) {
        (None, _) => true,
        (Some(one), None) if min == 0 && max.is_none() => has_text(one, DEPTH),
        (Some(one), None) => {
            let within = |&(from, to): &Lengths| from <= max.unwrap_or(u64::MAX) && min <= to;
            lengths(one, DEPTH).iter().any(within)
        }
        (Some(_), Some(_)) => false,
    }
}

/// Whether an integer of usual size evidently lies between the bounds: one of them is missing, or is itself an integer in
/// range.
fn has_whole(min: Option<&NumberBound>, max: Option<&NumberBound>) -> bool {
    /// Integers of fewer digits are written in every spelling that the options have.
    const USUAL: i64 = MAX_WHOLE as i64;
    let usual = |bound: &NumberBound| Decimal::read(&bound.value).filter(|value| value.point < USUAL);
    let (low, high) = (min.map(usual), max.map(usual));
    if low == Some(None) || high == Some(None) {
        return false;
    }
    let (Some((min, low)), Some((max, high))) = (min.zip(low.flatten()), max.zip(high.flatten())) else {
        return true;
    };
    (low.is_integer() && !min.exclusive && (low < high || (low == high && !max.exclusive)))
        || (high.is_integer() && !max.exclusive && low < high)
}

/// Whether some text is in the language.
fn has_text(regex: &Regex, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match regex {
        Regex::Nothing | Regex::And(_) | Regex::Not(_) => false,
        Regex::Empty | Regex::Text(_) | Regex::Automaton(_) | Regex::Computed(_) => true,
        Regex::Set(set) => !set.is_empty(),
        Regex::Concat(parts) => parts.iter().all(|part| has_text(part, depth)),
        Regex::Or(parts) => parts.iter().any(|part| has_text(part, depth)),
        Regex::Repeat { of, min, max } => {
            max.is_none_or(|max| max >= *min) && (*min == 0 || has_text(of, depth))
        }
    }
}

/// Numbers of characters, both ends included; without an end it is [`u64::MAX`].
type Lengths = (u64, u64);

/// Ranges of lengths: the language has texts of each of them, and may have others.
fn lengths(regex: &Regex, depth: u32) -> Vec<Lengths> {
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    match regex {
        Regex::Nothing | Regex::And(_) | Regex::Not(_) | Regex::Automaton(_) | Regex::Computed(_) => {
            Vec::new()
        }
        Regex::Empty => vec![(0, 0)],
        Regex::Text(text) => {
            let count = text.chars().count() as u64;
            vec![(count, count)]
        }
        Regex::Set(set) if set.is_empty() => Vec::new(),
        Regex::Set(_) => vec![(1, 1)],
        Regex::Concat(parts) => parts.iter().fold(vec![(0, 0)], |all, part| {
            let part = lengths(part, depth);
            let sums = all.iter().flat_map(|a| part.iter().map(|b| (plus(a.0, b.0), plus(a.1, b.1))));
            joined(sums.collect())
        }),
        Regex::Or(parts) => joined(parts.iter().flat_map(|part| lengths(part, depth)).collect()),
        Regex::Repeat { of, min, max } => {
            let (min, max) = (u64::from(*min), max.map_or(u64::MAX, u64::from));
            let times = |length: u64, count: u64| length.saturating_mul(count);
            let mut found: Vec<Lengths> = (min == 0).then_some((0, 0)).into_iter().collect();
            let least = min.max(1);
            for (from, to) in lengths(of, depth).into_iter().filter(|_| least <= max) {
                // Once a count reaches as far as one more begins, so do all greater ones.
                let touch = plus(times(to, least), 1) >= times(from, plus(least, 1));
                let most = if touch { max } else { least };
                found.push((times(from, least), times(to, most)));
            }
            joined(found)
        }
    }
}

/// Sums of lengths; what is without an end stays so.
fn plus(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

/// The same lengths in few ranges; where there are too many, the longest are left out.
fn joined(mut all: Vec<Lengths>) -> Vec<Lengths> {
    all.sort_unstable();
    let mut found: Vec<Lengths> = Vec::with_capacity(all.len().min(MAX_RANGES));
    for (from, to) in all {
        let is_full = found.len() == MAX_RANGES;
        match found.last_mut() {
            Some(last) if from <= plus(last.1, 1) => last.1 = last.1.max(to),
            _ if is_full => break,
            _ => found.push((from, to)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Encoding, Exprs};
    use crate::pattern::{self, PatternOptions};
    use crate::CharSet;

    #[test]
    fn languages_have_texts_of_their_lengths() {
        let cases: [(&str, &[Lengths]); 9] = [
            ("abc|de?", &[(1, 3)]),
            ("(?:[^ ]+ +){0,9}[^ ]+", &[(1, u64::MAX)]),
            ("(?:abc){2,3}", &[(6, 6)]),
            ("(?:abc){2,}", &[(6, 6)]),
            ("(?:ab|abc){2,5}", &[(4, 15)]),
            ("(?:ab?){3,4}", &[(3, 8)]),
            ("[0-9]{8}(?:-[0-9]{4}){3}", &[(23, 23)]),
            ("(?:abcd)*", &[(0, 0), (4, 4)]),
            ("a{0}|[^]", &[(0, 1)]),
        ];
        for (text, expected) in cases {
            let regex = pattern::parse(text, &PatternOptions::WHOLE).unwrap();
            let found = lengths(&regex, DEPTH);
            assert_eq!(found, expected, "{text}");
            let mut exprs = Exprs::new(1 << 16);
            let any = exprs.compile(&regex, Encoding::Utf8).unwrap();
            for count in found.iter().flat_map(|&(from, to)| [from, to.min(from + 20)]) {
                let all = exprs.chars(&CharSet::all(), Encoding::Utf8).unwrap();
                let counted = exprs.repeat(all, count as u32, Some(count as u32)).unwrap();
                let both = exprs.and(&[any, counted]).unwrap();
                assert!(exprs.is_alive(both).unwrap(), "{text} {count}");
            }
        }
        let bounded = |min, max| {
            let regex = pattern::parse("(?:[a-z]{2} ){3}", &PatternOptions::WHOLE).unwrap();
            has_string(std::iter::once(&regex), min, max)
        };
        assert!(bounded(9, Some(9)) && bounded(0, Some(10)) && bounded(8, None));
        assert!(!bounded(10, None) && !bounded(0, Some(8)) && !bounded(9, Some(8)));
    }

    #[test]
    fn bounds_hold_a_whole_number() {
        let bound = |value: &str, exclusive| Some(NumberBound { value: value.into(), exclusive });
        let has = |min: Option<NumberBound>, max: Option<NumberBound>| has_whole(min.as_ref(), max.as_ref());
        assert!(has(None, bound("0", true)) && has(bound("0", false), bound("7", true)));
        assert!(has(bound("0.5", false), bound("1", false)) && has(bound("2", false), bound("2", false)));
        assert!(!has(bound("0.5", false), bound("0.7", false)) && !has(bound("2", false), bound("1", false)));
        assert!(!has(bound("0", true), bound("1", true)) && !has(bound("2", true), bound("2", false)));
    }
}
