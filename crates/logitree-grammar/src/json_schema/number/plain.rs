//! Plain decimals: digits, perhaps a point and more digits. It refuses to know exponents.
//!
//! Comparing needs the place of the first digit that is not 0: how many digits stand before the point, or how many
//! zeros after it. Both are counted no further than it matters.

use std::cmp::Ordering;

use super::bound::{Progress, Target};
use super::divisor::Divisor;
use super::walk::Side;

/// Where a plain decimal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
    Start,
    /// A 0 before the point.
    Zero,
    /// Digits before the point, the first not 0.
    Whole,
    /// Right after the point of a number that starts with 0.
    ZeroPoint,
    /// Only zeros so far, some after the point.
    Zeros,
    /// Right after the point of any other number.
    Point,
    /// After the point, something other than 0 came.
    Fraction,
}

/// A plain decimal that is being read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Plain {
    spot: Spot,
    /// Digits before the point, or after it once it came, counted no further than they matter.
    count: u32,
    so: Progress,
    remainders: Vec<u64>,
}

impl Plain {
    pub fn new(side: &Side, divisors: &[Divisor]) -> Plain {
        Plain {
            spot: Spot::Start,
            count: 0,
            so: Progress::new(&side.targets),
            remainders: vec![0; divisors.len()],
        }
    }

    pub fn step(&self, byte: u8, side: &Side, divisors: &mut [Divisor]) -> Option<Plain> {
        let mut next = self.clone();
        match (self.spot, byte) {
            (Spot::Start, b'0') => next.spot = Spot::Zero,
            (Spot::Start, b'1'..=b'9') if side.open => next.whole(byte - b'0', side, divisors)?,
            (Spot::Whole, b'0'..=b'9') => next.whole(byte - b'0', side, divisors)?,
            (Spot::Whole, b'.') => {
                next.point(side)?;
                (next.spot, next.count) = (Spot::Point, 0);
                for (divisor, remainder) in divisors.iter().zip(&mut next.remainders) {
                    *remainder = divisor.past(*remainder, 0)?;
                }
            }
            (Spot::Zero, b'.') => next.spot = Spot::ZeroPoint,
            (Spot::ZeroPoint | Spot::Zeros, b'0') => {
                next.spot = Spot::Zeros;
                next.count = (self.count + 1).min(side.most_zeros.max(most_places(divisors)));
            }
            (Spot::ZeroPoint | Spot::Zeros, b'1'..=b'9') if side.open => {
                let point = -(self.count as i32);
                next.digit(byte - b'0', side, |target| point.cmp(&target.point))?;
                next.fraction(byte - b'0', divisors)?;
            }
            (Spot::Point | Spot::Fraction, b'0'..=b'9') => {
                next.digit(byte - b'0', side, |_| Ordering::Equal)?;
                next.fraction(byte - b'0', divisors)?;
            }
            _ => return None,
        }
        Some(next)
    }

    pub fn ends(&self, side: &Side, divisors: &[Divisor]) -> bool {
        match self.spot {
            Spot::Start | Spot::ZeroPoint | Spot::Point => false,
            Spot::Zero | Spot::Zeros => side.zero,
            Spot::Whole => {
                let mut all = self.clone();
                all.point(side).is_some() && all.so.ends(&side.targets) && self.divides(divisors, 0)
            }
            Spot::Fraction => self.so.ends(&side.targets) && self.divides(divisors, self.count),
        }
    }

    /// Whether its sign matters no more.
    pub fn is_settled(&self) -> bool {
        matches!(self.spot, Spot::Whole | Spot::Point | Spot::Fraction) && self.so.is_settled()
    }

    fn divides(&self, divisors: &[Divisor], places: u32) -> bool {
        divisors.iter().zip(&self.remainders).all(|(divisor, &remainder)| divisor.ends(remainder, places))
    }

    /// A digit before the point.
    fn whole(&mut self, digit: u8, side: &Side, divisors: &mut [Divisor]) -> Option<()> {
        self.spot = Spot::Whole;
        self.count += 1;
        let count = self.count as i32;
        self.so.advance(&side.targets, |target, so| {
            let so = target.digit(so, digit);
            if count > target.point {
                target.settle(Ordering::Greater, so)
            } else {
                Some(so)
            }
        })?;
        if self.so.is_settled() {
            self.count = 0;
        }
        for (divisor, remainder) in divisors.iter_mut().zip(&mut self.remainders) {
            *remainder = divisor.digit(*remainder, digit);
        }
        Some(())
    }

    /// The end of the digits before the point.
    fn point(&mut self, side: &Side) -> Option<()> {
        let count = self.count as i32;
        self.so.advance(&side.targets, |target, so| target.settle(count.cmp(&target.point), so))
    }

    /// A digit after the point, or the first that is not 0: how the places of the points compare is known.
    fn digit(&mut self, digit: u8, side: &Side, points: impl Fn(&Target) -> Ordering) -> Option<()> {
        self.so.advance(&side.targets, |target, so| target.settle(points(target), target.digit(so, digit)))
    }

    /// The same digit's part in the remainders.
    fn fraction(&mut self, digit: u8, divisors: &mut [Divisor]) -> Option<()> {
        self.spot = Spot::Fraction;
        for (divisor, remainder) in divisors.iter_mut().zip(&mut self.remainders) {
            *remainder = divisor.fraction(*remainder, digit, self.count)?;
        }
        self.count = (self.count + 1).min(most_places(divisors));
        Some(())
    }
}

fn most_places(divisors: &[Divisor]) -> u32 {
    divisors.iter().map(|divisor| divisor.places).max().unwrap_or(0)
}
