//! Plain decimals: digits, optionally a point and more digits.
//!
//! A comparison needs the position of the first non-zero digit: how many digits are before the point, or how many zeros
//! after it. Both are counted no further than they matter.

use std::cmp::Ordering;

use super::compare::{Comparand, Comparisons};
use super::divisor::Divisor;
use super::few::Few;
use super::walk::OneSign;

/// The position in a plain decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PlainPosition {
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
pub(super) struct PlainState {
    spot: PlainPosition,
    /// Digits before the point, or after it once it came, counted no further than they matter.
    count: u32,
    so: Comparisons,
    remainders: Few<u64, 2>,
}

impl PlainState {
    pub fn new(side: &OneSign, divisors: &[Divisor]) -> PlainState {
        PlainState {
            spot: PlainPosition::Start,
            count: 0,
            so: Comparisons::new(&side.targets),
            remainders: divisors.iter().map(|_| 0).collect(),
        }
    }

    pub fn step(&self, byte: u8, side: &OneSign, divisors: &mut [Divisor]) -> Option<PlainState> {
        if !matches!(byte, b'0'..=b'9' | b'.') {
            return None;
        }
        let mut next = self.clone();
        match (self.spot, byte) {
            (PlainPosition::Start, b'0') => next.spot = PlainPosition::Zero,
            (PlainPosition::Start, b'1'..=b'9') if side.open => next.whole(byte - b'0', side, divisors)?,
            (PlainPosition::Whole, b'0'..=b'9') => next.whole(byte - b'0', side, divisors)?,
            (PlainPosition::Whole, b'.') => {
                next.point(side)?;
                (next.spot, next.count) = (PlainPosition::Point, 0);
                for (divisor, remainder) in divisors.iter().zip(next.remainders.iter_mut()) {
                    *remainder = divisor.past(*remainder, 0)?;
                }
            }
            (PlainPosition::Zero, b'.') => next.spot = PlainPosition::ZeroPoint,
            (PlainPosition::ZeroPoint | PlainPosition::Zeros, b'0') => {
                next.spot = PlainPosition::Zeros;
                next.count = (self.count + 1).min(side.most_zeros.max(most_places(divisors)));
            }
            (PlainPosition::ZeroPoint | PlainPosition::Zeros, b'1'..=b'9') if side.open => {
                let point = -(self.count as i32);
                next.digit(byte - b'0', side, |target| point.cmp(&target.point))?;
                next.fraction(byte - b'0', divisors)?;
            }
            (PlainPosition::Point | PlainPosition::Fraction, b'0'..=b'9') => {
                next.digit(byte - b'0', side, |_| Ordering::Equal)?;
                next.fraction(byte - b'0', divisors)?;
            }
            _ => return None,
        }
        Some(next)
    }

    pub fn ends(&self, side: &OneSign, divisors: &[Divisor]) -> bool {
        match self.spot {
            PlainPosition::Start | PlainPosition::ZeroPoint | PlainPosition::Point => false,
            PlainPosition::Zero | PlainPosition::Zeros => side.zero,
            PlainPosition::Whole => {
                let mut all = self.clone();
                all.point(side).is_some() && all.so.ends(&side.targets) && self.divides(divisors, 0)
            }
            PlainPosition::Fraction => self.so.ends(&side.targets) && self.divides(divisors, self.count),
        }
    }

    /// Whether its sign matters no more.
    pub fn is_settled(&self) -> bool {
        matches!(self.spot, PlainPosition::Whole | PlainPosition::Point | PlainPosition::Fraction)
            && self.so.is_settled()
    }

    fn divides(&self, divisors: &[Divisor], places: u32) -> bool {
        divisors
            .iter()
            .zip(self.remainders.iter())
            .all(|(divisor, &remainder)| divisor.ends(remainder, places))
    }

    /// A digit before the point.
    fn whole(&mut self, digit: u8, side: &OneSign, divisors: &mut [Divisor]) -> Option<()> {
        self.spot = PlainPosition::Whole;
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
        for (divisor, remainder) in divisors.iter_mut().zip(self.remainders.iter_mut()) {
            *remainder = divisor.digit(*remainder, digit);
        }
        Some(())
    }

    /// The end of the digits before the point.
    fn point(&mut self, side: &OneSign) -> Option<()> {
        let count = self.count as i32;
        self.so.advance(&side.targets, |target, so| target.settle(count.cmp(&target.point), so))
    }

    /// A digit after the point, or the first that is not 0: how the places of the points compare is known.
    fn digit(&mut self, digit: u8, side: &OneSign, points: impl Fn(&Comparand) -> Ordering) -> Option<()> {
        self.so.advance(&side.targets, |target, so| target.settle(points(target), target.digit(so, digit)))
    }

    /// The same digit's part in the remainders.
    fn fraction(&mut self, digit: u8, divisors: &mut [Divisor]) -> Option<()> {
        self.spot = PlainPosition::Fraction;
        for (divisor, remainder) in divisors.iter_mut().zip(self.remainders.iter_mut()) {
            *remainder = divisor.fraction(*remainder, digit, self.count)?;
        }
        self.count = (self.count + 1).min(most_places(divisors));
        Some(())
    }
}

fn most_places(divisors: &[Divisor]) -> u32 {
    divisors.iter().map(|divisor| divisor.places).max().unwrap_or(0)
}
