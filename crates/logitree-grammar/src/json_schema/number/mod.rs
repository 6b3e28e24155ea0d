//! Regular languages of JSON numbers: which texts are numbers within bounds, with or without a fraction, multiples of
//! something. Every comparison is made on decimal digits; nothing is rounded.
//!
//! Which spellings are taken:
//!
//! - An unconstrained number: all of JSON's, `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`.
//! - Otherwise plain decimals of any length, `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, and scientific ones with one digit before
//!   the point and up to three of exponent, `-?[1-9](\.[0-9]+)?[eE][+-]?[0-9]{1,3}`, what writers of doubles write:
//!   `1e+16`, `1.5e-07`, `1.5E7`. Where it matters whether something is a multiple (integers are multiples of 1), the
//!   scientific ones have at most 16 digits of fraction, and the last is not 0 unless it is the only one; past a
//!   certain size of what they are multiples of there are only plain ones.
//!
//! Multiples with too many remainders for a table are computed digit by digit ([`arithmetic`]); these are plain ones too.
//!
//! A text of such a spelling is in the language exactly if its value is in the set. `1.0` and `1e2` have no fraction;
//! `-0` and `-0.0` are zero.

mod arithmetic;
mod compare;
mod divisor;
mod exponent;
mod few;
mod plain;
mod product;
mod scientific;
mod spelling;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::super::dfa::{explore, Explored};
use super::super::{CharSet, Dfa, Regex};
use super::NumberBound;
use crate::{Error, ErrorKind, Result};

use divisor::Divisor;
use spelling::PlainNumber;
pub(super) use spelling::MAX_WHOLE;
use walk::{AnyNumber, NumberWalk};

pub(super) use arithmetic::lcm;

/// Most states of an automaton of numbers, counted before it is made minimal.
const MAX_STATES: usize = 50_000;

/// More remainders than this of what numbers are multiples of are computed where they are needed.
const MANY_REMAINDERS: u128 = 2_000;

/// The bytes of numbers; both spellings of the exponent's letter are equivalent.
const ALPHABET: [&[u8]; 14] =
    [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"-", b"+", b".", b"eE"];

/// The digits and the minus come first.
const DIGITS: usize = 11;

/// A set of numbers. Decimals are the text of the document: never rounded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct NumberSet {
    /// Whether the value has no fraction (1.0 has none); `None` is either.
    pub integer: Option<bool>,
    /// Whether it is written in digits only, without point and exponent.
    pub digits_only: bool,
    /// The least value.
    pub minimum: Option<NumberBound>,
    /// The greatest value.
    pub maximum: Option<NumberBound>,
    /// What the value is a multiple of, all of them.
    pub multiples: Vec<String>,
    /// What the value is not a multiple of, none of them.
    pub not_multiples: Vec<String>,
    /// Values that are left out.
    pub excluded: Vec<String>,
}

/// The texts of the numbers in the set: [`Regex::Nothing`] exactly if the set is empty, an automaton otherwise, a
/// computed one if it has many states. And how many states were explored for it, now or when it was remembered.
///
/// # Errors
/// [`ErrorKind::Constraint`] if a decimal is not a number of JSON, or a multiple is not of something positive.
/// [`ErrorKind::Limit`] if a decimal has more than a thousand digits or places, or if values and divisors have too many
/// digits together.
pub(super) fn regex(numbers: &NumberSet) -> Result<(Regex, usize)> {
    static PLAIN: [OnceLock<Regex>; 3] = [const { OnceLock::new() }; 3];
    let is_plain = *numbers == NumberSet { integer: numbers.integer, ..NumberSet::default() };
    if !is_plain {
        return remembered(numbers);
    }
    let known = &PLAIN[numbers.integer.map_or(0, |integer| 1 + usize::from(integer))];
    if let Some(regex) = known.get() {
        return Ok((regex.clone(), 0));
    }
    let (made, _) = if numbers.integer.is_none() {
        made(explore(&mut AnyNumber, &ALPHABET, MAX_STATES))?
    } else {
        constrained(numbers)?
    };
    Ok((known.get_or_init(|| made).clone(), 0))
}

/// All numbers, in the spellings of constrained ones: every value has few of them.
///
/// # Errors
/// As [`regex`].
pub(super) fn comparable() -> Result<Regex> {
    static ALL: OnceLock<Regex> = OnceLock::new();
    match ALL.get() {
        Some(known) => Ok(known.clone()),
        None => {
            let (made, _) = constrained(&NumberSet::default())?;
            Ok(ALL.get_or_init(|| made).clone())
        }
    }
}

/// All numbers as [`super::NumberSpelling::Plain`] writes those that may have a fraction: integers of up to 100 digits, up
/// to 17 significant digits with a point or an exponent, and nothing beyond the doubles. All are spelled as constrained ones.
///
/// # Errors
/// As [`regex`].
pub(super) fn plain() -> Result<Regex> {
    static PLAIN: OnceLock<Regex> = OnceLock::new();
    match PLAIN.get() {
        Some(known) => Ok(known.clone()),
        None => {
            let (made, _) = made(explore(&mut PlainNumber, &ALPHABET, MAX_STATES))?;
            Ok(PLAIN.get_or_init(|| made).clone())
        }
    }
}

/// All integers as [`super::NumberSpelling::Plain`] writes them: a sign and up to 100 digits. The 0 has no sign.
pub(super) fn plain_integer() -> Regex {
    let digits = |from: char| Regex::Set(CharSet::from_ranges([(u32::from(from), u32::from('9'))]));
    let rest = digits('0').repeat(0, Some(u32::from(MAX_WHOLE) - 1));
    Regex::or([Regex::text("0"), Regex::concat([Regex::text("-").optional(), digits('1'), rest])])
}

/// Whether multiples of this are spelled with exponents too.
pub(super) fn is_small(divisor: &str) -> bool {
    Divisor::new(divisor, true).is_ok_and(|divisor| divisor.is_small())
}

/// [`constrained`] with a cache: schemas use the same few ranges repeatedly.
fn remembered(numbers: &NumberSet) -> Result<(Regex, usize)> {
    const MAX: usize = 256;
    const MAX_SIZE: usize = 2_000;
    static MADE: LazyLock<Mutex<FxHashMap<NumberSet, (Regex, usize)>>> = LazyLock::new(Mutex::default);
    if let Some(known) = MADE.lock().unwrap_or_else(PoisonError::into_inner).get(numbers) {
        return Ok(known.clone());
    }
    let made = match product::multiplied(numbers)? {
        Some(made) => made,
        None => match product::complemented(numbers)? {
            Some(made) => made,
            None => constrained(numbers)?,
        },
    };
    if matches!(&made, (Regex::Automaton(dfa), _) if dfa.len() <= MAX_SIZE) {
        let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX {
            all.clear();
        }
        all.insert(numbers.clone(), made.clone());
    }
    Ok(made)
}

fn constrained(numbers: &NumberSet) -> Result<(Regex, usize)> {
    let alphabet = if numbers.digits_only { &ALPHABET[..DIGITS] } else { &ALPHABET[..] };
    let has_many = arithmetic::remainders(numbers)? > MANY_REMAINDERS;
    let mut explored = 0;
    let error = match NumberWalk::new(numbers) {
        Ok(walk) if has_many && !walk.reads_exponents() => too_many("the numbers asked for"),
        Ok(mut walk) => {
            // Without exponents the table says the same as what is computed.
            let few = has_many || (!walk.reads_exponents() && arithmetic::computed(numbers)?.is_some());
            let found = explore(&mut walk, alphabet, if few { MAX_STATES / 5 } else { MAX_STATES });
            explored = found.1;
            match made(found) {
                Err(error) if error.kind == ErrorKind::Limit => error,
                made => return made,
            }
        }
        Err(error) if error.kind == ErrorKind::Limit => error,
        Err(error) => return Err(error),
    };
    match arithmetic::computed(numbers)? {
        Some(Some(dfa)) => Ok((Regex::Computed(Arc::new(dfa)), explored)),
        Some(None) => Ok((Regex::Nothing, explored)),
        None => Err(error),
    }
}

fn made((found, explored): (Explored, usize)) -> Result<(Regex, usize)> {
    match found {
        Explored::Dfa(dfa) => Ok((Regex::Automaton(Arc::<Dfa>::new(dfa)), explored)),
        Explored::Nothing => Ok((Regex::Nothing, explored)),
        Explored::TooMany => Err(too_many("the numbers asked for")),
    }
}

fn too_many(what: &str) -> Error {
    Error::new(ErrorKind::Limit, format!("{what} have too many digits to be compared exactly"))
        .help("ask for multiples of numbers with fewer digits, or for less far bounds")
}
