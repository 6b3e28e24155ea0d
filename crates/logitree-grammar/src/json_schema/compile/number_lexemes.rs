//! Numbers as expressions over bytes: sets of numbers with bounds and multiples, listed values, and all their spellings.

use super::super::decimal::Decimal;
use super::super::normalize::{NormalForms, NumberFacts, Scalar, ScalarId};
use super::super::number::{self, NumberSet};
use super::super::schema::{NumberBound, TypeSet};
use super::divisibility::Literal;
use crate::expr::{Encoding, ExprId, Exprs, NOTHING};
use crate::{Regex, Result};

/// All spellings of these numbers among those of [`number::comparable`].
pub(super) fn spellings(numbers: &[Decimal], exprs: &mut Exprs) -> Result<ExprId> {
    let fraction = Regex::concat([Regex::text("."), Regex::text("0").repeat(1, None)]).optional();
    let zeros = [fraction, Regex::text("0").repeat(0, None)];
    let [fraction, more] = [0, 1].map(|n| exprs.compile(&zeros[n], Encoding::Utf8));
    let (fraction, more) = (fraction?, more?);
    let mut all: Vec<(String, ExprId)> = Vec::new();
    for number in numbers {
        if number.is_zero() {
            all.extend([("0".into(), fraction), ("-0".into(), fraction)]);
            continue;
        }
        let sign = if number.negative { "-" } else { "" };
        let digits: String = number.digits.iter().map(|digit| char::from(digit + b'0')).collect();
        let point = usize::try_from(number.point).unwrap_or(0);
        all.push(match point {
            0 => (format!("{sign}0.{}{digits}", "0".repeat(number.point.unsigned_abs() as usize)), more),
            _ if point >= digits.len() => {
                (format!("{sign}{digits}{}", "0".repeat(point - digits.len())), fraction)
            }
            _ => (format!("{sign}{}.{}", &digits[..point], &digits[point..]), more),
        });
        let Some(power) = power(number.point - 1) else { continue };
        let power = exprs.compile(&power, Encoding::Utf8)?;
        let (lead, rest) = digits.split_at(1);
        all.push(match rest {
            "" => (format!("{sign}{lead}"), exprs.concat(&[fraction, power])?),
            _ => (format!("{sign}{lead}.{rest}"), exprs.concat(&[more, power])?),
        });
    }
    let texts: Vec<_> = all.iter().map(|(text, tail)| (text.as_bytes(), *tail)).collect();
    exprs.literals(&texts)
}

/// An exponent of up to three digits with its letter, if it has no more.
fn power(power: i64) -> Option<Regex> {
    let digits = power.unsigned_abs().to_string();
    let zeros = 3usize.checked_sub(digits.len())?;
    let sign = match power {
        0 => Regex::or([Regex::text("+"), Regex::text("-")]).optional(),
        1.. => Regex::text("+").optional(),
        _ => Regex::text("-"),
    };
    let zeros = Regex::text("0").repeat(0, Some(zeros as u32));
    Some(Regex::concat([Regex::or([Regex::text("e"), Regex::text("E")]), sign, zeros, Regex::text(digits)]))
}

/// The language of a set of numbers. What was explored for it is charged: a state takes 2.6 microseconds.
fn numbers_of(numbers: &NumberSet, exprs: &mut Exprs) -> Result<Regex> {
    let (regex, explored) = number::regex(numbers)?;
    exprs.spend(26 * explored as u64)?;
    Ok(regex)
}

/// The numbers that satisfy all literals of one of `ways`. What all ways ask for is asked once.
pub(super) fn one_of(ways: &[Vec<Literal>], digits_only: bool, exprs: &mut Exprs) -> Result<ExprId> {
    let mut numbers = |literal: &Literal| {
        let regex = numbers_of(&literal.numbers(digits_only), exprs)?;
        exprs.compile(&regex, Encoding::Utf8)
    };
    let Some((first, others)) = ways.split_first() else { return Ok(NOTHING) };
    let is_common = |literal: &Literal| others.iter().all(|way| way.contains(literal));
    let common: Vec<&Literal> = first.iter().filter(|literal| is_common(literal)).collect();
    let mut all = common.iter().map(|literal| numbers(literal)).collect::<Result<Vec<_>>>()?;
    let mut any = Vec::with_capacity(ways.len());
    for way in ways {
        let rest = way.iter().filter(|literal| !common.contains(literal));
        any.push(rest.map(&mut numbers).collect::<Result<Vec<_>>>()?);
    }
    let any = any.iter().map(|way| exprs.and(way)).collect::<Result<Vec<_>>>()?;
    all.push(exprs.or(&any)?);
    exprs.and(&all)
}

/// The numbers of `types` that fulfil `facts`, in digits only where that is asked for.
pub(super) fn number_regex(
    forms: &NormalForms,
    types: TypeSet,
    facts: Option<&NumberFacts>,
    only_digits: bool,
    exprs: &mut Exprs,
) -> Result<Regex> {
    let integer = match types {
        TypeSet::INTEGER => Some(true),
        TypeSet::FRACTION => Some(false),
        _ => None,
    };
    let Some(facts) = facts else {
        return numbers_of(&NumberSet { integer, ..NumberSet::default() }, exprs);
    };
    let digits_only = only_digits || facts.digits_only;
    if let Some(only) = &facts.only {
        return listed(forms, only, digits_only, exprs);
    }
    let set = NumberSet {
        integer,
        digits_only,
        minimum: facts.min.clone(),
        maximum: facts.max.clone(),
        multiples: facts.multiples.clone(),
        not_multiples: facts.not_multiples.clone(),
        excluded: facts.not.iter().map(|&id| text(forms, id)).collect(),
    };
    numbers_of(&set, exprs)
}

fn text(forms: &NormalForms, id: ScalarId) -> String {
    match forms.texts.get(id) {
        Scalar::Number(number) => number.canonical(),
        Scalar::Text(text) => text.to_string(),
    }
}

/// These numbers: whole ones of usual size are `7` or `7.0`, which needs no automaton of its own.
fn listed(forms: &NormalForms, only: &[ScalarId], digits_only: bool, exprs: &mut Exprs) -> Result<Regex> {
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
            let bound = Some(NumberBound { value: text, exclusive: false });
            let set =
                NumberSet { minimum: bound.clone(), maximum: bound, digits_only, ..NumberSet::default() };
            others.push(numbers_of(&set, exprs)?);
        }
    }
    if !whole.is_empty() {
        let zeros = Regex::concat([Regex::text("."), Regex::text("0").repeat(1, None)]).optional();
        others.push(Regex::concat([Regex::or(whole), if digits_only { Regex::Empty } else { zeros }]));
    }
    Ok(Regex::or(others))
}
