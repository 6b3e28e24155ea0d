//! Scientific decimals: one digit other than 0, perhaps a fraction, an exponent. It refuses to know plain ones.
//!
//! The mantissa comes first, so what it is compared with says which exponents are wanted after it.

use std::cmp::Ordering::{Greater, Less};

use super::bound::Progress;
use super::divisor::Divisor;
use super::exponent::{Exponents, Reading};
use super::walk::Side;

/// Most digits of a mantissa's fraction where multiples are asked for: as many as writers of doubles write.
const MOST_FRACTION: u32 = 16;

/// Where a mantissa stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
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
pub(super) enum Scientific {
    Mantissa(Mantissa),
    Exponent(Reading),
}

/// Its first part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Mantissa {
    spot: Spot,
    /// Digits of fraction, where they matter.
    count: u32,
    so: Progress,
    /// What is left of the digits without their point; a first 0 of the fraction is taken in with the digit after it.
    remainders: Vec<u64>,
}

impl Scientific {
    pub fn new(side: &Side, divisors: &[Divisor]) -> Option<Scientific> {
        let start = Mantissa {
            spot: Spot::Start,
            count: 0,
            so: Progress::new(&side.targets),
            remainders: vec![0; divisors.len()],
        };
        (side.open && divisors.iter().all(Divisor::is_small)).then_some(Scientific::Mantissa(start))
    }

    pub fn step(&self, byte: u8, side: &Side, divisors: &mut [Divisor]) -> Option<Scientific> {
        match (self, byte) {
            (Scientific::Exponent(reading), _) => reading.step(byte).map(Scientific::Exponent),
            (Scientific::Mantissa(mantissa), b'e') => {
                Reading::new(mantissa.exponents(side, divisors)).map(Scientific::Exponent)
            }
            (Scientific::Mantissa(mantissa), _) => {
                mantissa.step(byte, side, divisors).map(Scientific::Mantissa)
            }
        }
    }

    pub fn ends(&self) -> bool {
        matches!(self, Scientific::Exponent(reading) if reading.ends())
    }

    /// Whether its sign matters no more, as long as both signs have the same largest exponent.
    pub fn is_settled(&self) -> bool {
        match self {
            Scientific::Mantissa(mantissa) => mantissa.spot != Spot::Start && mantissa.so.is_settled(),
            Scientific::Exponent(_) => true,
        }
    }
}

impl Mantissa {
    fn step(&self, byte: u8, side: &Side, divisors: &mut [Divisor]) -> Option<Mantissa> {
        let mut next = self.clone();
        match (self.spot, byte) {
            (Spot::Start, b'1'..=b'9') => {
                next.spot = Spot::Lead;
                next.digit(byte - b'0', side, divisors)?;
            }
            (Spot::Lead, b'.') => next.spot = Spot::Point,
            (Spot::Point | Spot::Fraction | Spot::FirstZero | Spot::Unfinished, b'0'..=b'9') => {
                next.fraction(byte - b'0', side, divisors)?;
            }
            _ => return None,
        }
        Some(next)
    }

    fn fraction(&mut self, digit: u8, side: &Side, divisors: &mut [Divisor]) -> Option<()> {
        let first = self.spot == Spot::Point;
        if divisors.is_empty() {
            self.spot = Spot::Fraction;
            return self.digit(digit, side, divisors);
        }
        self.count += 1;
        let most = side.most_exponent;
        let never = |divisor: &Divisor| divisor.wanted && self.count as i32 - divisor.places as i32 > most;
        if self.count > MOST_FRACTION || (digit > 0 && divisors.iter().any(never)) {
            return None;
        }
        if first && digit == 0 {
            self.spot = Spot::FirstZero;
            return self.so.digit(&side.targets, 0);
        }
        if self.spot == Spot::FirstZero {
            for (divisor, remainder) in divisors.iter_mut().zip(&mut self.remainders) {
                *remainder = divisor.digit(*remainder, 0);
            }
        }
        self.spot = if digit == 0 { Spot::Unfinished } else { Spot::Fraction };
        self.digit(digit, side, divisors)
    }

    fn digit(&mut self, digit: u8, side: &Side, divisors: &mut [Divisor]) -> Option<()> {
        for (divisor, remainder) in divisors.iter_mut().zip(&mut self.remainders) {
            *remainder = divisor.digit(*remainder, digit);
        }
        self.so.digit(&side.targets, digit)
    }

    /// The exponents that are wanted if the mantissa ends here.
    fn exponents(&self, side: &Side, divisors: &[Divisor]) -> Exponents {
        let count = match self.spot {
            Spot::Start | Spot::Point | Spot::Unfinished => return Exponents::all().within([]),
            // The value of the digits before it: `1.0e5` is `1e5`.
            Spot::FirstZero => 0,
            Spot::Lead | Spot::Fraction => self.count as i32,
        };
        let mut wanted = Exponents::all();
        for (target, order) in self.so.orders(&side.targets) {
            // One digit stands before the point: with exponent x the point is x + 1 places after the first digit.
            let same = target.point - 1;
            let parts = [(Less, i32::MIN, same - 1), (order, same, same), (Greater, same + 1, i32::MAX)];
            let ranges =
                parts.into_iter().filter(|part| target.wants(part.0)).map(|(_, from, to)| (from, to));
            wanted = wanted.within(ranges);
        }
        for (divisor, &remainder) in divisors.iter().zip(&self.remainders) {
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
