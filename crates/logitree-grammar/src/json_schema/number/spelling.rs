//! Numbers as programs write them that print integers and doubles: no more digits than a double has, and no value beyond it.

use super::super::super::dfa::Walk;

/// Most digits of a number without point and exponent. Numbers in use have fewer, and a model that repeats a digit ends
/// before the tokens of a generation do.
pub(in super::super) const MAX_WHOLE: u16 = 100;
/// Most significant digits of any other.
const MAX_DIGITS: u16 = 17;
/// Most zeros between the point and the first other digit.
const MAX_ZEROS: u16 = 16;
/// The digits of the largest double, which is 1.7976931348623157e308.
const LARGEST: &[u8; MAX_DIGITS as usize] = b"17976931348623157";
/// The largest exponent.
const MAX_EXPONENT: u16 = 308;
/// The least exponent without its sign: 5e-324 is the least double.
const MIN_EXPONENT: u16 = 324;

/// Plain numbers that may have a fraction.
pub(super) struct PlainNumber;

/// What a mantissa of one digit before the point says about the exponents it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lead {
    /// So far the digits of the largest double.
    Largest,
    /// Less than the largest double's, with a first digit below 5.
    Below,
    /// Greater, with a first digit below 5.
    Above,
    /// With a first digit from 5 on.
    FromFive,
    /// There is more than one digit before the point, and no exponent.
    Many,
}

/// The position in a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PlainNumberState {
    Start,
    Minus,
    Zero {
        negative: bool,
    },
    /// So many digits before the point.
    Whole {
        count: u16,
        lead: Lead,
    },
    /// After the point of a number that starts with 0: so many zeros.
    Zeros(u16),
    /// After the point; `count` digits so far, the zeros in front not counted.
    Fraction {
        count: u16,
        lead: Lead,
        begun: bool,
    },
    /// After the exponent's letter.
    Letter(Lead),
    /// In the exponent: what it may be at most, what it is, in how many digits.
    Exponent {
        most: u16,
        value: u16,
        read: u8,
    },
}

impl Lead {
    fn first(digit: u8) -> Lead {
        match digit {
            b'1' => Lead::Largest,
            b'2'..=b'4' => Lead::Above,
            _ => Lead::FromFive,
        }
    }

    /// After one more digit, the one with this index.
    fn with(self, digit: u8, index: u16) -> Lead {
        let Lead::Largest = self else { return self };
        match digit.cmp(&LARGEST[usize::from(index)]) {
            std::cmp::Ordering::Less => Lead::Below,
            std::cmp::Ordering::Equal => Lead::Largest,
            std::cmp::Ordering::Greater => Lead::Above,
        }
    }

    /// The largest exponent of a sign, its sign left out.
    fn most(self, negative: bool) -> u16 {
        match (self, negative) {
            (Lead::Largest | Lead::Below, false) => MAX_EXPONENT,
            (_, false) => MAX_EXPONENT - 1,
            (Lead::FromFive, true) => MIN_EXPONENT,
            (_, true) => MIN_EXPONENT - 1,
        }
    }
}

impl Walk for PlainNumber {
    type State = PlainNumberState;

    fn start(&self) -> PlainNumberState {
        PlainNumberState::Start
    }

    fn step(&mut self, state: &PlainNumberState, byte: u8) -> Option<PlainNumberState> {
        use PlainNumberState::{Exponent, Fraction, Letter, Minus, Start, Whole, Zero, Zeros};
        match (*state, byte) {
            (Start, b'-') => Some(Minus),
            (Start | Minus, b'0') => Some(Zero { negative: *state == Minus }),
            (Start | Minus, b'1'..=b'9') => Some(Whole { count: 1, lead: Lead::first(byte) }),
            (Zero { .. }, b'.') => Some(Zeros(0)),
            (Whole { count, .. }, b'0'..=b'9') if count < MAX_WHOLE => {
                Some(Whole { count: count + 1, lead: Lead::Many })
            }
            (Whole { count, lead }, b'.') if count < MAX_DIGITS => {
                Some(Fraction { count, lead, begun: false })
            }
            (Zeros(count), b'0') if count < MAX_ZEROS => Some(Zeros(count + 1)),
            (Zeros(_), b'1'..=b'9') => Some(Fraction { count: 1, lead: Lead::Many, begun: true }),
            (Fraction { count, lead, .. }, b'0'..=b'9') if count < MAX_DIGITS => {
                Some(Fraction { count: count + 1, lead: lead.with(byte, count), begun: true })
            }
            (Whole { lead, .. } | Fraction { lead, begun: true, .. }, b'e') if lead != Lead::Many => {
                Some(Letter(lead))
            }
            (Letter(lead), b'+' | b'-') => {
                Some(Exponent { most: lead.most(byte == b'-'), value: 0, read: 0 })
            }
            (Letter(lead), b'0'..=b'9') => {
                self.step(&Exponent { most: lead.most(false), value: 0, read: 0 }, byte)
            }
            (Exponent { most, value, read }, b'0'..=b'9') if read < 3 => {
                let value = value * 10 + u16::from(byte - b'0');
                (value <= most).then_some(Exponent { most, value, read: read + 1 })
            }
            _ => None,
        }
    }

    fn accepts(&self, state: &PlainNumberState) -> bool {
        use PlainNumberState::{Exponent, Fraction, Letter, Minus, Start, Whole, Zero, Zeros};
        match *state {
            Start | Minus | Letter(_) => false,
            Zero { negative } => !negative,
            Whole { .. } => true,
            Zeros(count) => count > 0,
            Fraction { begun, .. } => begun,
            Exponent { read, .. } => read > 0,
        }
    }
}
