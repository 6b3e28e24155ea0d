//! Facts about numbers as a regular language. It refuses to know digits, but for the plain spellings of single values.

use super::super::normal::{Forms, NumberFacts, Scalar, ScalarId};
use super::super::number::{self, Numbers};
use super::super::schema::{Bound, TypeSet};
use crate::Regex;
use crate::Result;

/// The numbers of `types` that fulfil `facts`.
pub(super) fn regex(forms: &Forms, types: TypeSet, facts: Option<&NumberFacts>) -> Result<Regex> {
    let integer = match types {
        TypeSet::INTEGER => Some(true),
        TypeSet::FRACTION => Some(false),
        _ => None,
    };
    let Some(facts) = facts else { return number::regex(&Numbers { integer, ..Numbers::default() }) };
    if let Some(only) = &facts.only {
        return listed(forms, only, facts.digits_only);
    }
    number::regex(&Numbers {
        integer,
        digits_only: facts.digits_only,
        minimum: facts.min.clone(),
        maximum: facts.max.clone(),
        multiples: facts.multiples.clone(),
        not_multiples: facts.not_multiples.clone(),
        excluded: facts.not.iter().map(|&id| text(forms, id)).collect(),
    })
}

fn text(forms: &Forms, id: ScalarId) -> String {
    match forms.texts.get(id) {
        Scalar::Number(number) => number.canonical(),
        Scalar::Text(text) => text.to_string(),
    }
}

/// These numbers: whole ones of usual size are `7` or `7.0`, which needs no automaton of its own.
fn listed(forms: &Forms, only: &[ScalarId], digits_only: bool) -> Result<Regex> {
    let mut whole = Vec::new();
    let mut others = Vec::new();
    for &id in only {
        let text = text(forms, id);
        if text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) && text.len() < 16 {
            if text == "0" {
                whole.push(Regex::text("-0"));
            }
            whole.push(Regex::text(text));
        } else {
            let bound = Some(Bound { value: text, exclusive: false });
            others.push(number::regex(&Numbers {
                minimum: bound.clone(),
                maximum: bound,
                digits_only,
                ..Numbers::default()
            })?);
        }
    }
    if !whole.is_empty() {
        let zeros = Regex::concat([Regex::text("."), Regex::text("0").repeat(1, None)]).optional();
        others.push(Regex::concat([Regex::or(whole), if digits_only { Regex::Empty } else { zeros }]));
    }
    Ok(Regex::or(others))
}
