//! Numbers read byte by byte, in all spellings at once. It refuses to know how automata are stored.

use std::cmp::Ordering;

use super::super::super::dfa::Walk;
use super::super::Bound;
use super::bound::Target;
use super::decimal::Decimal;
use super::divisor::Divisor;
use super::plain::Plain;
use super::scientific::Scientific;
use super::Numbers;
use crate::Result;

/// What is asked of numbers of one sign, their sign left out.
#[derive(Default)]
pub(super) struct Side {
    /// What they are compared with.
    pub targets: Vec<Target>,
    /// Whether zero is wanted.
    pub zero: bool,
    /// Whether others may be.
    pub open: bool,
    /// How many zeros after a point matter.
    pub most_zeros: u32,
    /// The largest exponent of scientific ones that may be wanted.
    pub most_exponent: i32,
}

/// Numbers with something asked of them.
pub(super) struct Signed {
    /// Positive ones, negative ones.
    sides: [Side; 2],
    divisors: Vec<Divisor>,
}

/// A number that is being read: every spelling that it may turn out to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Number {
    /// Whether anything came.
    begun: bool,
    negative: bool,
    plain: Option<Plain>,
    scientific: Option<Scientific>,
}

/// Everything that numbers are asked, read.
struct Asked {
    minimum: Option<(Decimal, bool)>,
    maximum: Option<(Decimal, bool)>,
    divisors: Vec<Divisor>,
    excluded: Vec<Decimal>,
}

impl Asked {
    fn read(numbers: &Numbers) -> Result<Asked> {
        let bound = |bound: &Option<Bound>| -> Result<Option<(Decimal, bool)>> {
            bound.as_ref().map(|bound| Ok((Decimal::read(&bound.value)?, bound.exclusive))).transpose()
        };
        let one = numbers.integer.map(|integer| Divisor::new("1", integer));
        let multiples = numbers.multiples.iter().map(|text| Divisor::new(text, true));
        let others = numbers.not_multiples.iter().map(|text| Divisor::new(text, false));
        Ok(Asked {
            minimum: bound(&numbers.minimum)?,
            maximum: bound(&numbers.maximum)?,
            divisors: one.into_iter().chain(multiples).chain(others).collect::<Result<_>>()?,
            excluded: numbers.excluded.iter().map(|text| Decimal::read(text)).collect::<Result<_>>()?,
        })
    }

    fn contains(&self, value: &Decimal) -> bool {
        let within = |bound: &Option<(Decimal, bool)>, side| {
            bound.as_ref().is_none_or(|(bound, exclusive)| match value.compare(bound) {
                Ordering::Equal => !exclusive,
                order => order == side,
            })
        };
        let divides = |divisor: &Divisor| {
            let mut divisor = divisor.clone();
            let remainder = value.digits.iter().fold(0, |remainder, &digit| divisor.digit(remainder, digit));
            let zeros = value.point - value.digits.len() as i32 + divisor.places as i32;
            let is_multiple = divisor.zeros(remainder).is_some_and(|needed| needed as i32 <= zeros);
            divisor.wanted == (is_multiple || value.is_zero())
        };
        within(&self.minimum, Ordering::Greater)
            && within(&self.maximum, Ordering::Less)
            && !self.excluded.contains(value)
            && self.divisors.iter().all(divides)
    }

    fn side(&self, negative: bool) -> Side {
        let zero = Decimal { negative: false, digits: Vec::new(), point: 0 };
        let mut side = Side { zero: self.contains(&zero), open: true, ..Side::default() };
        let (near, far) =
            if negative { (&self.maximum, &self.minimum) } else { (&self.minimum, &self.maximum) };
        let is_beyond = |bound: &Decimal| !bound.is_zero() && bound.negative == negative;
        if let Some((bound, exclusive)) = near {
            // Nearer to zero than any number of this sign, it asks nothing.
            if is_beyond(bound) {
                side.targets.push(Target::new(bound, [false, !exclusive, true]));
            }
        }
        if let Some((bound, exclusive)) = far {
            side.open = is_beyond(bound);
            if side.open {
                side.targets.push(Target::new(bound, [true, !exclusive, false]));
            }
        }
        let others = self.excluded.iter().filter(|value| is_beyond(value));
        side.targets.extend(others.map(|value| Target::new(value, [true, false, true])));
        side.most_zeros = side.targets.iter().map(|target| 1 - target.point).max().unwrap_or(0).max(0) as u32;
        let uppers = side.targets.iter().filter(|target| !target.wants(Ordering::Greater));
        side.most_exponent = uppers.map(|target| target.point - 1).min().unwrap_or(i32::MAX);
        side
    }
}

/// Whether `value` is in the set.
pub(super) fn contains(numbers: &Numbers, value: &Decimal) -> Result<bool> {
    Ok(Asked::read(numbers)?.contains(value))
}

impl Signed {
    pub fn new(numbers: &Numbers) -> Result<Signed> {
        let asked = Asked::read(numbers)?;
        Ok(Signed { sides: [asked.side(false), asked.side(true)], divisors: asked.divisors })
    }

    fn side(&self, negative: bool) -> Number {
        let side = &self.sides[usize::from(negative)];
        Number {
            begun: negative,
            negative,
            plain: Some(Plain::new(side, &self.divisors)),
            scientific: Scientific::new(side, &self.divisors),
        }
    }
}

impl Walk for Signed {
    type State = Number;

    fn start(&self) -> Number {
        self.side(false)
    }

    fn step(&mut self, state: &Number, byte: u8) -> Option<Number> {
        if byte == b'-' && !state.begun {
            return Some(self.side(true));
        }
        let side = &self.sides[usize::from(state.negative)];
        let plain = state.plain.as_ref().and_then(|plain| plain.step(byte, side, &mut self.divisors));
        let scientific =
            state.scientific.as_ref().and_then(|number| number.step(byte, side, &mut self.divisors));
        let alive = plain.is_some() || scientific.is_some();
        let same = self.sides[0].most_exponent == self.sides[1].most_exponent;
        let is_settled = plain.as_ref().is_none_or(Plain::is_settled)
            && scientific.as_ref().is_none_or(|number| same && number.is_settled());
        alive.then_some(Number { begun: true, negative: state.negative && !is_settled, plain, scientific })
    }

    fn accepts(&self, state: &Number) -> bool {
        let side = &self.sides[usize::from(state.negative)];
        state.plain.as_ref().is_some_and(|plain| plain.ends(side, &self.divisors))
            || state.scientific.as_ref().is_some_and(Scientific::ends)
    }
}

/// Numbers about which nothing is said: all of JSON's.
pub(super) struct Free;

/// Where such a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FreeNumber {
    Start,
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Letter,
    Sign,
    Exponent,
}

impl Walk for Free {
    type State = FreeNumber;

    fn start(&self) -> FreeNumber {
        FreeNumber::Start
    }

    fn step(&mut self, state: &FreeNumber, byte: u8) -> Option<FreeNumber> {
        use FreeNumber::{Exponent, Fraction, Letter, Minus, Point, Sign, Start, Whole, Zero};
        match (state, byte) {
            (Start, b'-') => Some(Minus),
            (Start | Minus, b'0') => Some(Zero),
            (Start | Minus | Whole, b'0'..=b'9') => Some(Whole),
            (Zero | Whole, b'.') => Some(Point),
            (Point | Fraction, b'0'..=b'9') => Some(Fraction),
            (Zero | Whole | Fraction, b'e') => Some(Letter),
            (Letter, b'+' | b'-') => Some(Sign),
            (Letter | Sign | Exponent, b'0'..=b'9') => Some(Exponent),
            _ => None,
        }
    }

    fn accepts(&self, state: &FreeNumber) -> bool {
        matches!(state, FreeNumber::Zero | FreeNumber::Whole | FreeNumber::Fraction | FreeNumber::Exponent)
    }
}
