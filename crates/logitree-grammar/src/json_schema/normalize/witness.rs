//! Proves cheaply that a schema has a valid value, without building an automaton. A negative answer proves nothing.

use super::super::decimal::Decimal;
use super::super::schema::{Keywords, NumberBound, TypeSet};
use super::{Facts, NormalForms, NumberFacts, StringFacts};
use crate::Regex;

/// Maximum depth of regular languages that are searched.
const DEPTH: u32 = 40;

/// Whether some value fulfils the keywords.
pub(crate) fn has_value(k: &Keywords) -> bool {
    let types = k.types.unwrap_or(TypeSet::ALL);
    let applies = !(k.all_of.is_empty() && k.any_of.is_empty() && k.one_of.is_empty())
        || k.not.is_some()
        || k.conditional.is_some()
        || k.values.is_some();
    let languages = [&k.pattern, &k.format];
    let string =
        || has_string(languages.into_iter().flatten().map(|regex| &**regex), k.min_length, k.max_length);
    let number = || k.multiple_of.is_none() && has_whole(k.minimum.as_ref(), k.maximum.as_ref());
    let array = k.min_items == 0 && k.contains.is_none();
    let object = k.required.is_empty() && k.min_properties == 0;
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
        (Some(one), None) => min == 0 && max.is_none() && has_text(one, DEPTH),
        (Some(_), Some(_)) => false,
    }
}

/// Whether an integer evidently lies between the bounds: one of them is missing, or is itself an integer in range.
fn has_whole(min: Option<&NumberBound>, max: Option<&NumberBound>) -> bool {
    let (Some(min), Some(max)) = (min, max) else { return true };
    let (Some(low), Some(high)) = (Decimal::read(&min.value), Decimal::read(&max.value)) else {
        return false;
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

#[cfg(test)]
mod tests {
    use super::*;

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
