//! Numbers that are, or are not, multiples of numbers of many digits: what the digits amount to is computed, so that no
//! table of remainders is needed.
//!
//! Values are scaled by ten to the power `places`, which makes the divisors whole. Those that are multiples of all that
//! is asked for are the multiples of one `step`. The digits read so far leave an interval of values for each number of
//! digits that may follow; a state is kept exactly if one of these intervals holds a number of the set. Only plain
//! decimals are read, no exponents.
//!
//! The naive version is the table of [`super::walk`], explored without exponents.

use std::sync::Arc;

use super::super::decimal::Decimal;
use super::super::NumberBound;
use super::divisor::divisor;
use super::NumberSet;
use crate::dfa::{ComputedDfa, ComputedState, Steps};
use crate::Result;

/// Scaled values are below this: ten times as much is still exact.
const MAX_VALUE: u128 = 10u128.pow(36);
/// Most divisors that a set may exclude. Of 24 divisors at most 235 multiples of `step` in a row are excluded
/// (the function of Jacobsthal, OEIS A048670), so that a search for one that is not ends soon.
const MAX_AVOIDED: usize = 24;

const ALPHABET: &[u8] = b"0123456789-.";

/// What is asked of numbers of one sign, their sign left out. Values are scaled.
#[derive(Debug, Clone)]
struct OneSign {
    /// The least and the greatest value that is a whole number when it is scaled.
    least: u128,
    most: Option<u128>,
    /// Values with more digits lie between these, both excluded.
    above: u128,
    below: Option<u128>,
    /// Values that are left out, sorted.
    excluded: Vec<u128>,
    /// Numbers with more than this before the point are compared with nothing.
    compare_limit: u128,
}

/// A set of numbers.
#[derive(Debug, Clone)]
struct Arithmetic {
    places: u32,
    /// Whether numbers of more places are in the set: no multiples are asked for.
    any_fraction: bool,
    digits_only: bool,
    step: u128,
    excluded_divisors: Vec<u128>,
    /// Whether no multiple of `step` is left by the excluded divisors.
    none: bool,
    /// Whether zero is in the set.
    zero: bool,
    /// Positive ones, negative ones; `None` if there are none.
    by_sign: [Option<OneSign>; 2],
    /// Numbers before the point that differ by a multiple of this are alike, past `compare_limit`.
    period: u128,
}

/// The position in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    Minus,
    /// A 0 before the point.
    Zero,
    /// Digits before the point, the first not 0.
    Whole,
    /// Right after the point.
    Point,
    /// So many digits after the point, counted no further than `places`.
    Fraction(u32),
    /// More digits than `places`, not all of them 0.
    Fine,
}

/// A number that is being read.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Position,
    negative: bool,
    /// The digits that were read, up to `places` of them after the point.
    value: u128,
}

impl Reading {
    fn packed(self) -> ComputedState {
        let at = match self.at {
            Position::Start => 0,
            Position::Minus => 1,
            Position::Zero => 2,
            Position::Whole => 3,
            Position::Point => 4,
            Position::Fine => 5,
            Position::Fraction(count) => 6 + u64::from(count),
        };
        [self.value as u64, (self.value >> 64) as u64, at << 1 | u64::from(self.negative)]
    }

    fn unpacked([low, high, rest]: ComputedState) -> Reading {
        let at = match rest >> 1 {
            0 => Position::Start,
            1 => Position::Minus,
            2 => Position::Zero,
            3 => Position::Whole,
            4 => Position::Point,
            5 => Position::Fine,
            more => Position::Fraction((more - 6) as u32),
        };
        Reading { at, negative: rest & 1 == 1, value: u128::from(low) | u128::from(high) << 64 }
    }
}

/// The numbers of the set as a computed automaton: `Some(None)` if there are none, `None` if values or divisors have too
/// many digits for it.
///
/// # Errors
/// If a decimal is not a number of JSON, or has more than a thousand digits or places.
pub(super) fn computed(numbers: &NumberSet) -> Result<Option<Option<ComputedDfa>>> {
    let Some(arithmetic) = Arithmetic::new(numbers)? else { return Ok(None) };
    let start = Reading { at: Position::Start, negative: false, value: 0 };
    if !arithmetic.has_any(start) {
        return Ok(Some(None));
    }
    let description = format!("{numbers:?}");
    Ok(Some(Some(ComputedDfa::new(Arc::new(arithmetic), description, ALPHABET, start.packed()))))
}

/// How many remainders a table would tell apart, as far as they can be counted.
pub(super) fn remainders(numbers: &NumberSet) -> Result<u128> {
    let divisors = numbers.multiples.iter().chain(&numbers.not_multiples);
    let divisors = divisors.map(|text| divisor(text)).collect::<Result<Vec<_>>>()?;
    let places = divisors.iter().map(Decimal::places).max().unwrap_or(0);
    let rest = |value: &Decimal| {
        let mut rest = scaled(value, places)?.0;
        for prime in [2, 5] {
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
        }
        Some(rest)
    };
    Ok(divisors.iter().try_fold(1, |all, value| lcm(all, rest(value)?)).unwrap_or(u128::MAX))
}

/// The size of `value` times ten to the power `places`, rounded down, and whether it was whole; `None` if it has too many
/// digits.
fn scaled(value: &Decimal, places: u64) -> Option<(u128, bool)> {
    let length = value.point + places as i64;
    if length > 36 {
        return None;
    }
    let kept = usize::try_from(length).unwrap_or(0);
    let digits = value.digits.iter().chain(std::iter::repeat(&0)).take(kept);
    let whole = digits.fold(0, |whole, &digit| whole * 10 + u128::from(digit));
    Some((whole, value.digits.len() <= kept))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// The least common multiple of two positive numbers, if it is small enough.
pub(in super::super) fn lcm(a: u128, b: u128) -> Option<u128> {
    (a / gcd(a, b)).checked_mul(b).filter(|&both| both < MAX_VALUE)
}

impl Arithmetic {
    fn new(numbers: &NumberSet) -> Result<Option<Arithmetic>> {
        let read = |texts: &[String]| -> Result<Vec<Decimal>> {
            texts.iter().map(|text| Decimal::read_bounded(text)).collect()
        };
        let one = |wanted| numbers.integer == Some(wanted) || (wanted && numbers.digits_only);
        let whole = Decimal { negative: false, digits: vec![1], point: 1 };
        let divisors = |texts: &[String]| texts.iter().map(|text| divisor(text)).collect::<Result<Vec<_>>>();
        let (mut wanted, mut excluded_divisors) =
            (divisors(&numbers.multiples)?, divisors(&numbers.not_multiples)?);
        wanted.extend(one(true).then(|| whole.clone()));
        excluded_divisors.extend(one(false).then_some(whole));
        let bounds = [&numbers.minimum, &numbers.maximum];
        let [minimum, maximum] = bounds.map(|bound| {
            let read = |bound: &NumberBound| Ok((Decimal::read_bounded(&bound.value)?, bound.exclusive));
            bound.as_ref().map(read).transpose()
        });
        let asked = Asked {
            wanted,
            excluded_divisors,
            bounds: [minimum?, maximum?],
            excluded: read(&numbers.excluded)?,
        };
        Ok(asked.arithmetic(numbers.digits_only))
    }

    fn side(&self, negative: bool) -> Option<&OneSign> {
        self.by_sign[usize::from(negative)].as_ref()
    }

    /// Whether a whole scaled value, not zero, is in the set.
    fn has(&self, side: &OneSign, value: u128) -> bool {
        value >= side.least
            && side.most.is_none_or(|most| value <= most)
            && value.is_multiple_of(self.step)
            && !self.excluded_divisors.iter().any(|&divisor| value.is_multiple_of(divisor))
            && side.excluded.binary_search(&value).is_err()
    }

    /// Whether values between `value` and the one after it are in the set.
    fn has_fine(&self, side: &OneSign, value: u128) -> bool {
        self.any_fraction && value >= side.above && side.below.is_none_or(|below| value < below)
    }

    /// Whether a value of the set, not zero, is in the interval, both ends included, or has more digits after one that
    /// is.
    fn has_between(&self, side: &OneSign, from: u128, to: u128) -> bool {
        if self.any_fraction {
            let last = side.below.map_or(to, |below| to.min(below.saturating_sub(1)));
            if from.max(side.above) <= last {
                return true;
            }
        }
        if self.none {
            return false;
        }
        let (from, to) = (from.max(side.least), side.most.map_or(to, |most| to.min(most)));
        let mut value = from.div_ceil(self.step) * self.step;
        while value <= to {
            if self.has(side, value) {
                return true;
            }
            value += self.step;
        }
        false
    }

    /// Whether a number of the set begins so.
    fn has_any(&self, reading: Reading) -> bool {
        let unit = 10u128.pow(self.places);
        let side = self.side(reading.negative);
        let between = |from, to| side.is_some_and(|side| self.has_between(side, from, to));
        match reading.at {
            Position::Start => {
                let begins = |at, negative| self.has_any(Reading { at, negative, value: 0 });
                begins(Position::Minus, false) || begins(Position::Minus, true)
            }
            Position::Minus => {
                let begins = |value| self.has_any(Reading { at: Position::Whole, value, ..reading });
                self.zero || between(0, unit - 1) || (1..10).any(begins)
            }
            Position::Zero => self.zero || (!self.digits_only && between(0, unit - 1)),
            Position::Whole => {
                let Some(side) = side else { return false };
                let Some(most) = side.most.max(side.below) else { return self.any_fraction || !self.none };
                let (mut from, mut count) = (reading.value * unit, unit);
                while from <= most {
                    if self.has_between(side, from, from + count - 1) {
                        return true;
                    }
                    (from, count) = (from * 10, count * 10);
                }
                false
            }
            Position::Point => self.has_fraction(reading, 0),
            Position::Fraction(count) => self.has_fraction(reading, count),
            Position::Fine => side.is_some_and(|side| self.has_fine(side, reading.value)),
        }
    }

    fn has_fraction(&self, reading: Reading, count: u32) -> bool {
        let unit = 10u128.pow(self.places - count);
        let from = reading.value * unit;
        let side = self.side(reading.negative);
        (reading.value == 0 && self.zero)
            || side.is_some_and(|side| self.has_between(side, from, from + unit - 1))
    }

    /// The same number before the point, or a smaller one that is alike.
    fn reduced(&self, negative: bool, value: u128) -> u128 {
        match self.side(negative) {
            Some(OneSign { most: None, below: None, compare_limit, .. }) if value > *compare_limit => {
                compare_limit + 1 + (value - compare_limit - 1) % self.period
            }
            _ => value,
        }
    }

    fn step(&self, reading: Reading, byte: u8) -> Option<Reading> {
        let digit = u128::from(byte.wrapping_sub(b'0'));
        let longer = reading.value * 10 + digit;
        let to = |at, value| Reading { at, value, ..reading };
        let next = match (reading.at, byte) {
            (Position::Start, b'-') => Reading { at: Position::Minus, negative: true, value: 0 },
            (Position::Start | Position::Minus, b'0') => to(Position::Zero, 0),
            (Position::Start | Position::Minus | Position::Whole, b'0'..=b'9') => {
                to(Position::Whole, self.reduced(reading.negative, longer))
            }
            (Position::Zero | Position::Whole, b'.') if !self.digits_only => {
                to(Position::Point, reading.value)
            }
            (Position::Point, b'0'..=b'9') => self.fraction(reading, 0, longer),
            (Position::Fraction(count), b'0'..=b'9') => self.fraction(reading, count, longer),
            (Position::Fine, b'0'..=b'9') => reading,
            _ => return None,
        };
        self.has_any(next).then_some(next)
    }

    fn fraction(&self, reading: Reading, count: u32, longer: u128) -> Reading {
        if count < self.places {
            Reading { at: Position::Fraction(count + 1), value: longer, ..reading }
        } else if longer == reading.value * 10 {
            Reading { at: Position::Fraction(count), ..reading }
        } else {
            Reading { at: Position::Fine, ..reading }
        }
    }

    fn ends(&self, reading: Reading) -> bool {
        let is_in = |value| match value {
            0 => self.zero,
            value => self.side(reading.negative).is_some_and(|side| self.has(side, value)),
        };
        match reading.at {
            Position::Start | Position::Minus | Position::Point => false,
            Position::Zero => self.zero,
            Position::Whole => is_in(reading.value * 10u128.pow(self.places)),
            Position::Fraction(count) => is_in(reading.value * 10u128.pow(self.places - count)),
            Position::Fine => {
                self.side(reading.negative).is_some_and(|side| self.has_fine(side, reading.value))
            }
        }
    }
}

impl Steps for Arithmetic {
    fn next(&self, state: ComputedState, byte: u8) -> Option<ComputedState> {
        self.step(Reading::unpacked(state), byte).map(Reading::packed)
    }

    fn is_accepting(&self, state: ComputedState) -> bool {
        self.ends(Reading::unpacked(state))
    }
}

/// What is asked of numbers, read.
struct Asked {
    wanted: Vec<Decimal>,
    excluded_divisors: Vec<Decimal>,
    /// The least and the greatest value, and whether it is excluded.
    bounds: [Option<(Decimal, bool)>; 2],
    excluded: Vec<Decimal>,
}

impl Asked {
    /// `None` if something has too many digits.
    fn arithmetic(&self, digits_only: bool) -> Option<Arithmetic> {
        let any_fraction = self.wanted.is_empty();
        let values = self.bounds.iter().flatten().map(|(bound, _)| bound).chain(&self.excluded);
        let divisors = self.wanted.iter().chain(&self.excluded_divisors);
        let places = if any_fraction {
            divisors.chain(values).map(Decimal::places).max()
        } else {
            divisors.map(Decimal::places).max()
        };
        let places = places.unwrap_or(0);
        if places > 30 || self.excluded_divisors.len() > MAX_AVOIDED {
            return None;
        }
        let whole = |value: &Decimal| scaled(value, places).map(|(value, _)| value);
        let step = self.wanted.iter().try_fold(1, |all, value| lcm(all, whole(value)?))?;
        let mut excluded_divisors =
            self.excluded_divisors.iter().map(whole).collect::<Option<Vec<u128>>>()?;
        excluded_divisors.sort_unstable();
        excluded_divisors.dedup();
        let unit = 10u128.pow(places as u32);
        let all = excluded_divisors.iter().try_fold(step, |all, &divisor| lcm(all, divisor))?;
        let zero = Decimal::ZERO;
        let is_within =
            |bound: &Option<(Decimal, bool)>, negative: bool| {
                bound.as_ref().is_none_or(|(bound, exclusive)| {
                    if bound.is_zero() {
                        !exclusive
                    } else {
                        bound.negative == negative
                    }
                })
            };
        let [minimum, maximum] = &self.bounds;
        let made = Arithmetic {
            places: places as u32,
            any_fraction,
            digits_only,
            step,
            none: excluded_divisors.iter().any(|&divisor| step.is_multiple_of(divisor)),
            zero: excluded_divisors.is_empty()
                && is_within(minimum, true)
                && is_within(maximum, false)
                && !self.excluded.contains(&zero),
            excluded_divisors,
            by_sign: [self.side(false, places)?, self.side(true, places)?],
            period: all / gcd(all, unit),
        };
        let compare_limit = made.by_sign.iter().flatten().map(|side| side.compare_limit).max().unwrap_or(0);
        let largest = (compare_limit + made.period + 2).checked_mul(unit)?;
        (largest < MAX_VALUE).then_some(made)
    }

    /// What is asked of one sign: `Some(None)` if there are no numbers of it.
    fn side(&self, negative: bool, places: u64) -> Option<Option<OneSign>> {
        let [minimum, maximum] = &self.bounds;
        let (near, far) = if negative { (maximum, minimum) } else { (minimum, maximum) };
        let is_beyond = |value: &Decimal| !value.is_zero() && value.negative == negative;
        let mut side =
            OneSign { least: 1, most: None, above: 0, below: None, excluded: Vec::new(), compare_limit: 0 };
        if let Some((bound, exclusive)) = near.as_ref().filter(|(bound, _)| is_beyond(bound)) {
            let (value, exact) = scaled(bound, places)?;
            side.least = (value + u128::from(!exact || *exclusive)).max(1);
            side.above = value;
        }
        if let Some((bound, exclusive)) = far {
            if !is_beyond(bound) {
                return Some(None);
            }
            let (value, exact) = scaled(bound, places)?;
            side.most = Some(if exact && *exclusive { value - 1 } else { value });
            side.below = Some(value);
        }
        for value in self.excluded.iter().filter(|value| is_beyond(value)) {
            if let (value, true) = scaled(value, places)? {
                side.excluded.push(value);
            }
        }
        side.excluded.sort_unstable();
        let largest = side.excluded.iter().copied().chain([side.least, side.above]).max().unwrap_or(0);
        side.compare_limit = largest / 10u128.pow(places as u32) + 1;
        Some(Some(side))
    }
}
