//! Reads numbers byte by byte, in all spellings at once.

use std::cmp::Ordering;

use super::super::super::dfa::Walk;
use super::super::decimal::Decimal;
use super::super::NumberBound;
use super::compare::Comparand;
use super::divisor::Divisor;
use super::plain::PlainState;
use super::scientific::ScientificState;
use super::NumberSet;
use crate::Result;

/// What is asked of numbers of one sign, their sign left out.
#[derive(Default)]
pub(super) struct OneSign {
    /// What they are compared with.
    pub targets: Vec<Comparand>,
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
pub(super) struct NumberWalk {
    /// Positive ones, negative ones.
    sides: [OneSign; 2],
    divisors: Vec<Divisor>,
}

/// A number that is being read: every spelling that it may turn out to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NumberState {
    /// Whether anything came.
    begun: bool,
    negative: bool,
    plain: Option<PlainState>,
    scientific: Option<ScientificState>,
}

/// Everything that numbers are asked, read.
pub(super) struct Constraints {
    minimum: Option<(Decimal, bool)>,
    maximum: Option<(Decimal, bool)>,
    divisors: Vec<Divisor>,
    excluded: Vec<Decimal>,
}

impl Constraints {
    pub fn read(numbers: &NumberSet) -> Result<Constraints> {
        let bound = |bound: &Option<NumberBound>| -> Result<Option<(Decimal, bool)>> {
            bound
                .as_ref()
                .map(|bound| Ok((Decimal::read_bounded(&bound.value)?, bound.exclusive)))
                .transpose()
        };
        let one = numbers.integer.map(|integer| Divisor::new("1", integer));
        let multiples = numbers.multiples.iter().map(|text| Divisor::new(text, true));
        let others = numbers.not_multiples.iter().map(|text| Divisor::new(text, false));
        Ok(Constraints {
            minimum: bound(&numbers.minimum)?,
            maximum: bound(&numbers.maximum)?,
            divisors: one.into_iter().chain(multiples).chain(others).collect::<Result<_>>()?,
            excluded: numbers
                .excluded
                .iter()
                .map(|text| Decimal::read_bounded(text))
                .collect::<Result<_>>()?,
        })
    }

    pub fn contains(&self, value: &Decimal) -> bool {
        let within = |bound: &Option<(Decimal, bool)>, side| {
            bound.as_ref().is_none_or(|(bound, exclusive)| match value.cmp(bound) {
                Ordering::Equal => !exclusive,
                order => order == side,
            })
        };
        let divides = |divisor: &Divisor| {
            let mut divisor = divisor.clone();
            let remainder = value.digits.iter().fold(0, |remainder, &digit| divisor.digit(remainder, digit));
            let zeros = value.point as i32 - value.digits.len() as i32 + divisor.places as i32;
            let is_multiple = divisor.zeros(remainder).is_some_and(|needed| needed as i32 <= zeros);
            divisor.wanted == (is_multiple || value.is_zero())
        };
        within(&self.minimum, Ordering::Greater)
            && within(&self.maximum, Ordering::Less)
            && !self.excluded.contains(value)
            && self.divisors.iter().all(divides)
    }

    fn side(&self, negative: bool) -> OneSign {
        let mut side = OneSign { zero: self.contains(&Decimal::ZERO), open: true, ..OneSign::default() };
        let (near, far) =
            if negative { (&self.maximum, &self.minimum) } else { (&self.minimum, &self.maximum) };
        let is_beyond = |bound: &Decimal| !bound.is_zero() && bound.negative == negative;
        if let Some((bound, exclusive)) = near {
            // Nearer to zero than any number of this sign, it asks nothing.
            if is_beyond(bound) {
                side.targets.push(Comparand::new(bound, [false, !exclusive, true]));
            }
        }
        if let Some((bound, exclusive)) = far {
            side.open = is_beyond(bound);
            if side.open {
                side.targets.push(Comparand::new(bound, [true, !exclusive, false]));
            }
        }
        let others = self.excluded.iter().filter(|value| is_beyond(value));
        side.targets.extend(others.map(|value| Comparand::new(value, [true, false, true])));
        side.most_zeros = side.targets.iter().map(|target| 1 - target.point).max().unwrap_or(0).max(0) as u32;
        let uppers = side.targets.iter().filter(|target| !target.wants(Ordering::Greater));
        side.most_exponent = uppers.map(|target| target.point - 1).min().unwrap_or(i32::MAX);
        side
    }
}

impl NumberWalk {
    pub fn new(numbers: &NumberSet) -> Result<NumberWalk> {
        let asked = Constraints::read(numbers)?;
        Ok(NumberWalk { sides: [asked.side(false), asked.side(true)], divisors: asked.divisors })
    }

    /// Whether exponents are read too.
    pub fn reads_exponents(&self) -> bool {
        self.divisors.iter().all(Divisor::is_small)
    }

    fn side(&self, negative: bool) -> NumberState {
        let side = &self.sides[usize::from(negative)];
        NumberState {
            begun: negative,
            negative,
            plain: Some(PlainState::new(side, &self.divisors)),
            scientific: ScientificState::new(side, &self.divisors),
        }
    }
}

impl Walk for NumberWalk {
    type State = NumberState;

    fn start(&self) -> NumberState {
        self.side(false)
    }

    fn step(&mut self, state: &NumberState, byte: u8) -> Option<NumberState> {
        if byte == b'-' && !state.begun {
            return Some(self.side(true));
        }
        let side = &self.sides[usize::from(state.negative)];
        let plain = state.plain.as_ref().and_then(|plain| plain.step(byte, side, &mut self.divisors));
        let scientific =
            state.scientific.as_ref().and_then(|number| number.step(byte, side, &mut self.divisors));
        let alive = plain.is_some() || scientific.is_some();
        let same = self.sides[0].most_exponent == self.sides[1].most_exponent;
        let is_settled = plain.as_ref().is_none_or(PlainState::is_settled)
            && scientific.as_ref().is_none_or(|number| same && number.is_settled());
        alive.then_some(NumberState {
            begun: true,
            negative: state.negative && !is_settled,
            plain,
            scientific,
        })
    }

    fn accepts(&self, state: &NumberState) -> bool {
        let side = &self.sides[usize::from(state.negative)];
        state.plain.as_ref().is_some_and(|plain| plain.ends(side, &self.divisors))
            || state.scientific.as_ref().is_some_and(ScientificState::ends)
    }
}

/// Unconstrained numbers: all of JSON's.
pub(super) struct AnyNumber;

/// The position in an unconstrained number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AnyNumberState {
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

impl Walk for AnyNumber {
    type State = AnyNumberState;

    fn start(&self) -> AnyNumberState {
        AnyNumberState::Start
    }

    fn step(&mut self, state: &AnyNumberState, byte: u8) -> Option<AnyNumberState> {
        use AnyNumberState::{Exponent, Fraction, Letter, Minus, Point, Sign, Start, Whole, Zero};
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

    fn accepts(&self, state: &AnyNumberState) -> bool {
        matches!(
            state,
            AnyNumberState::Zero
                | AnyNumberState::Whole
                | AnyNumberState::Fraction
                | AnyNumberState::Exponent
        )
    }
}
