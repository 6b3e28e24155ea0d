//! Scientific decimals: one non-zero digit, an optional fraction, an exponent.
//!
//! The mantissa comes first; its comparison with the bounds determines which exponents are allowed.

use std::cmp::Ordering::{Greater, Less};

use super::compare::Comparisons;
use super::divisor::Divisor;
use super::exponent::{ExponentState, Exponents};
use super::few::Few;
use super::walk::OneSign;

/// Most digits of a mantissa's fraction where multiples are asked for: as many as writers of doubles write.
const MAX_FRACTION: u32 = 16;

/// The position in a mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum MantissaPosition {
    Start,
    /// The digit before the point.
    Lead,
    Point,
    /// A 0 right after the point, as long as nothing follows.
    FirstZero,
    /// A fraction that may end here.
    Fraction,
    /// A fraction that may not end here.
    Unfinished,
}

/// A scientific decimal that is being read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ScientificState {
    Mantissa(Mantissa),
    Exponent(ExponentState),
}

/// Its first part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Mantissa {
    spot: MantissaPosition,
    /// Digits of fraction, where they matter.
    count: u32,
    so: Comparisons,
    /// What is left of the digits without their point; a first 0 of the fraction is taken in with the digit after it.
    remainders: Few<u64, 2>,
}

impl ScientificState {
    pub fn new(side: &OneSign, divisors: &[Divisor]) -> Option<ScientificState> {
        let start = Mantissa {
            spot: MantissaPosition::Start,
            count: 0,
            so: Comparisons::new(&side.targets),
            remainders: divisors.iter().map(|_| 0).collect(),
        };
        (side.open && divisors.iter().all(Divisor::is_small)).then_some(ScientificState::Mantissa(start))
    }

    pub fn step(&self, byte: u8, side: &OneSign, divisors: &mut [Divisor]) -> Option<ScientificState> {
        match (self, byte) {
            (ScientificState::Exponent(reading), _) => reading.step(byte).map(ScientificState::Exponent),
            (ScientificState::Mantissa(mantissa), b'e') => {
                ExponentState::new(mantissa.exponents(side, divisors)).map(ScientificState::Exponent)
            }
            (ScientificState::Mantissa(mantissa), _) => {
                mantissa.step(byte, side, divisors).map(ScientificState::Mantissa)
            }
        }
    }

    pub fn ends(&self) -> bool {
        matches!(self, ScientificState::Exponent(reading) if reading.ends())
    }

    /// Whether its sign matters no more, as long as both signs have the same largest exponent.
    pub fn is_settled(&self) -> bool {
        match self {
            ScientificState::Mantissa(mantissa) => {
                mantissa.spot != MantissaPosition::Start && mantissa.so.is_settled()
            }
            ScientificState::Exponent(_) => true,
        }
    }
}

impl Mantissa {
    fn step(&self, byte: u8, side: &OneSign, divisors: &mut [Divisor]) -> Option<Mantissa> {
        if !matches!(byte, b'0'..=b'9' | b'.') {
            return None;
        }
        let mut next = self.clone();
        match (self.spot, byte) {
            (MantissaPosition::Start, b'1'..=b'9') => {
                next.spot = MantissaPosition::Lead;
                next.digit(byte - b'0', side, divisors)?;
            }
            (MantissaPosition::Lead, b'.') => next.spot = MantissaPosition::Point,
            (
                MantissaPosition::Point
                | MantissaPosition::Fraction
                | MantissaPosition::FirstZero
                | MantissaPosition::Unfinished,
                b'0'..=b'9',
            ) => {
                next.fraction(byte - b'0', side, divisors)?;
            }
            _ => return None,
        }
        Some(next)
    }

    fn fraction(&mut self, digit: u8, side: &OneSign, divisors: &mut [Divisor]) -> Option<()> {
        let first = self.spot == MantissaPosition::Point;
        if divisors.is_empty() {
            self.spot = MantissaPosition::Fraction;
            return self.digit(digit, side, divisors);
        }
        self.count += 1;
        let most = side.most_exponent;
        let never = |divisor: &Divisor| divisor.wanted && self.count as i32 - divisor.places as i32 > most;
        if self.count > MAX_FRACTION || (digit > 0 && divisors.iter().any(never)) {
            return None;
        }
        if first && digit == 0 {
            self.spot = MantissaPosition::FirstZero;
            return self.so.digit(&side.targets, 0);
        }
        if self.spot == MantissaPosition::FirstZero {
            for (divisor, remainder) in divisors.iter_mut().zip(self.remainders.iter_mut()) {
                *remainder = divisor.digit(*remainder, 0);
            }
        }
        self.spot = if digit == 0 { MantissaPosition::Unfinished } else { MantissaPosition::Fraction };
        self.digit(digit, side, divisors)
    }

    fn digit(&mut self, digit: u8, side: &OneSign, divisors: &mut [Divisor]) -> Option<()> {
        for (divisor, remainder) in divisors.iter_mut().zip(self.remainders.iter_mut()) {
            *remainder = divisor.digit(*remainder, digit);
        }
        self.so.digit(&side.targets, digit)
    }

    /// The exponents that are wanted if the mantissa ends here.
    fn exponents(&self, side: &OneSign, divisors: &[Divisor]) -> Exponents {
        let count = match self.spot {
            MantissaPosition::Start | MantissaPosition::Point | MantissaPosition::Unfinished => {
                return Exponents::all().within([])
            }
            // The value of the digits before it: `1.0e5` is `1e5`.
            MantissaPosition::FirstZero => 0,
            MantissaPosition::Lead | MantissaPosition::Fraction => self.count as i32,
        };
        let mut wanted = Exponents::all();
        for (target, order) in self.so.orders(&side.targets) {
            // One digit precedes the point: with exponent x the point is x + 1 places after the first digit.
            let same = target.point - 1;
            let parts = [(Less, i32::MIN, same - 1), (order, same, same), (Greater, same + 1, i32::MAX)];
            let ranges =
                parts.into_iter().filter(|part| target.wants(part.0)).map(|(_, from, to)| (from, to));
            wanted = wanted.within(ranges);
        }
        for (divisor, &remainder) in divisors.iter().zip(self.remainders.iter()) {
            // The digits end in no 0 (or are one digit), so they are only a multiple with zeros after them, not less.
            let least = divisor.zeros(remainder).map(|zeros| count - divisor.places as i32 + zeros as i32);
            wanted = match (divisor.wanted, least) {
                (true, Some(least)) => wanted.within([(least, i32::MAX)]),
                (true, None) => wanted.within([]),
                (false, Some(least)) => wanted.within([(i32::MIN, least - 1)]),
                (false, None) => wanted,
            };
        }
        wanted
    }
}
