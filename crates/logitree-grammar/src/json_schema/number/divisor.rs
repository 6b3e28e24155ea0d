//! `multipleOf`: remainders of digits that are read from left to right.

use rustc_hash::FxHashMap;

use super::super::decimal::{shown, Decimal};
use super::{too_many, MAX_STATES};
use crate::{Error, ErrorKind, Result};

/// A remainder that is known to stay other than 0.
pub(super) const NEVER: u64 = u64::MAX;

/// Most digits of a divisor, its point left out: remainders times ten are whole words.
const MAX_DIGITS: i32 = 17;

/// Most remainders that matter and twos and fives that are kept track of, for scientific spellings.
const SCIENTIFIC: (u64, u32) = (40, 6);

/// What numbers are multiples of.
///
/// # Errors
/// [`ErrorKind::Constraint`] if it is not a number of JSON greater than 0, [`ErrorKind::Limit`] if it has too many digits.
pub(super) fn divisor(text: &str) -> Result<Decimal> {
    let value = Decimal::read_bounded(text)?;
    if !value.is_positive() {
        let message = format!("multiples of {}", shown(text));
        return Err(Error::new(ErrorKind::Constraint, message).help("give a number greater than 0"));
    }
    Ok(value)
}

#[derive(Clone)]
/// What numbers are, or are not, multiples of: `whole / 10^places`.
pub(super) struct Divisor {
    whole: u64,
    /// Whether it has neither twos nor fives: every remainder is unlike all others then.
    is_coprime: bool,
    /// Digits of fraction that multiples have at most.
    pub places: u32,
    /// Whether multiples are wanted, or everything else.
    pub wanted: bool,
    /// Remainders that were seen, and the first one that is as good.
    known: FxHashMap<u64, u64>,
    /// Maps what distinguishes remainders to the first remainder with it.
    kinds: FxHashMap<Vec<u64>, u64>,
}

impl Divisor {
    /// Reads a divisor.
    pub fn new(text: &str, wanted: bool) -> Result<Divisor> {
        let value = divisor(text)?;
        let length = value.digits.len() as i32;
        let zeros = (value.point as i32 - length).max(0);
        if length + zeros > MAX_DIGITS {
            return Err(too_many(&format!("multiples of {}", shown(text))));
        }
        let whole = value.digits.iter().fold(0u64, |whole, &digit| whole * 10 + u64::from(digit));
        let whole = whole * 10u64.pow(zeros as u32);
        let (known, kinds) = Default::default();
        let places = value.places() as u32;
        let mut divisor = Divisor { whole, is_coprime: false, places, wanted, known, kinds };
        // Each remainder by what is left without twos and fives is a state of its own.
        let rest = divisor.coprime().0;
        if rest > MAX_STATES as u64 {
            return Err(too_many(&format!("multiples of {}", shown(text))));
        }
        divisor.is_coprime = rest == whole;
        Ok(divisor)
    }

    /// What it is without its twos and fives, and the larger of their two counts.
    fn coprime(&self) -> (u64, u32) {
        let mut rest = self.whole;
        let mut count = |prime| {
            let mut times = 0;
            while rest.is_multiple_of(prime) {
                rest /= prime;
                times += 1;
            }
            times
        };
        let (twos, fives) = (count(2), count(5));
        (rest, twos.max(fives))
    }

    /// Whether it is small enough to follow through scientific spellings too.
    pub fn is_small(&self) -> bool {
        let (rest, power) = self.coprime();
        rest <= SCIENTIFIC.0 && power <= SCIENTIFIC.1
    }

    /// The remainder after one more digit.
    pub fn digit(&mut self, remainder: u64, digit: u8) -> u64 {
        if remainder == NEVER || self.whole == 1 {
            return remainder;
        }
        let next = (remainder * 10 + u64::from(digit)) % self.whole;
        if self.is_coprime {
            next
        } else {
            self.representative(next)
        }
    }

    /// The remainder after a digit of the fraction, before which there were `places`; `None` if the number is not
    /// wanted, whatever comes.
    pub fn fraction(&mut self, remainder: u64, digit: u8, places: u32) -> Option<u64> {
        if places < self.places {
            let next = self.digit(remainder, digit);
            self.past(next, places + 1)
        } else if digit == 0 {
            Some(remainder)
        } else {
            (!self.wanted).then_some(NEVER)
        }
    }

    /// The remainder after `places` digits of fraction; `None` if it already excludes the number.
    pub fn past(&self, remainder: u64, places: u32) -> Option<u64> {
        if places < self.places || remainder == 0 {
            Some(remainder)
        } else {
            (!self.wanted).then_some(NEVER)
        }
    }

    /// How many zeros must follow at least to make a multiple; `None` if no number of them does.
    pub fn zeros(&self, remainder: u64) -> Option<u32> {
        if remainder == NEVER {
            return None;
        }
        let mut remainder = remainder;
        // No divisor has more twos or fives than it has bits.
        for zeros in 0..=u64::BITS {
            if remainder == 0 {
                return Some(zeros);
            }
            remainder = remainder * 10 % self.whole;
        }
        None
    }

    /// Whether a number that ends after `places` digits of fraction is wanted.
    pub fn ends(&self, remainder: u64, places: u32) -> bool {
        let left = self.places.saturating_sub(places);
        self.wanted == self.zeros(remainder).is_some_and(|zeros| zeros <= left)
    }

    /// The first remainder seen that is as good as this one. With `t` more digits `y`, `remainder * 10^t + y` has to
    /// be a multiple: while 10^t is less than the divisor at most one `y` makes it one, later every remainder has one.
    /// So these `y` are all that distinguishes remainders: multiples of 10^9 need 10 of them.
    fn representative(&mut self, remainder: u64) -> u64 {
        if let Some(&known) = self.known.get(&remainder) {
            return known;
        }
        let mut kind = Vec::new();
        let (mut shifted, mut power) = (remainder, 1u64);
        loop {
            let missing = (self.whole - shifted) % self.whole;
            kind.push(if missing < power { missing } else { NEVER });
            if power >= self.whole {
                break;
            }
            shifted = shifted * 10 % self.whole;
            power *= 10;
        }
        let representative = *self.kinds.entry(kind).or_insert(remainder);
        self.known.insert(remainder, representative);
        representative
    }
}
