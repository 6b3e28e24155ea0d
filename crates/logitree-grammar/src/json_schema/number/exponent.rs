//! Sets of exponents, and their spelling: an optional sign and one to three digits.

use super::few::Few;

/// The largest exponent that is spelled, and the least without its sign.
const MAX: i32 = 999;

/// Most digits of a spelled exponent.
const DIGITS: u8 = 3;

/// A set of exponents from -999 to 999: inclusive ranges, ascending, neither overlapping nor touching.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Exponents(Few<(i32, i32), 2>);

/// An exponent that is being read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ExponentState {
    /// Neither sign nor digit came.
    Sign(Exponents),
    /// Some digits came; the sign is known and taken out of the set.
    Digits { wanted: Exponents, value: i32, read: u8 },
    /// Every exponent is wanted that may still be spelled with this many more digits; `ends` if it may stop here.
    Any { left: u8, ends: bool },
}

impl Exponents {
    /// All of them.
    pub fn all() -> Exponents {
        Exponents([(-MAX, MAX)].into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that are in one of `ranges`: ascending, not overlapping.
    #[must_use]
    pub fn within(&self, ranges: impl IntoIterator<Item = (i32, i32)> + Clone) -> Exponents {
        let mut both: Few<(i32, i32), 2> = Few::new();
        for &(from, to) in self.0.iter() {
            for (other_from, other_to) in ranges.clone() {
                let (from, to) = (from.max(other_from), to.min(other_to));
                match both.last_mut() {
                    _ if from > to => {}
                    Some(last) if last.1 + 1 == from => last.1 = to,
                    _ => both.push((from, to)),
                }
            }
        }
        Exponents(both)
    }

    /// Those from 0 on.
    fn positive(&self) -> Exponents {
        self.within([(0, MAX)])
    }

    /// The same with the other sign.
    fn negated(&self) -> Exponents {
        Exponents(self.0.iter().rev().map(|&(from, to)| (-to, -from)).collect())
    }

    fn has_all(&self, from: i32, to: i32) -> bool {
        self.0.iter().any(|range| range.0 <= from && to <= range.1)
    }

    fn has_any(&self, from: i32, to: i32) -> bool {
        self.0.iter().any(|range| range.0 <= to && from <= range.1)
    }
}

impl ExponentState {
    /// After the letter.
    pub fn new(wanted: Exponents) -> Option<ExponentState> {
        (!wanted.is_empty()).then_some(ExponentState::Sign(wanted))
    }

    pub fn step(&self, byte: u8) -> Option<ExponentState> {
        match (self, byte) {
            (ExponentState::Sign(wanted), b'+') => ExponentState::digits(wanted.positive(), 0, 0),
            (ExponentState::Sign(wanted), b'-') => ExponentState::digits(wanted.negated().positive(), 0, 0),
            (ExponentState::Sign(wanted), b'0'..=b'9') => {
                ExponentState::digits(wanted.positive(), 0, 0)?.step(byte)
            }
            (ExponentState::Digits { wanted, value, read }, b'0'..=b'9') if *read < DIGITS => {
                ExponentState::digits(wanted.clone(), value * 10 + i32::from(byte - b'0'), read + 1)
            }
            (ExponentState::Any { left: 1.., .. }, b'0'..=b'9') => self.after_any(),
            _ => None,
        }
    }

    pub fn ends(&self) -> bool {
        match self {
            ExponentState::Sign(_) => false,
            ExponentState::Digits { wanted, value, read } => *read > 0 && wanted.has_all(*value, *value),
            ExponentState::Any { ends, .. } => *ends,
        }
    }

    fn after_any(&self) -> Option<ExponentState> {
        let ExponentState::Any { left, .. } = self else { return None };
        Some(ExponentState::Any { left: left - 1, ends: true })
    }

    /// `value` was read in `read` digits.
    fn digits(wanted: Exponents, value: i32, read: u8) -> Option<ExponentState> {
        let left = DIGITS - read;
        let ends = read > 0 && wanted.has_all(value, value);
        // What may be reached with one more digit, two, ...
        let mut reached = (1..=u32::from(left)).map(|more| {
            let ten = 10i32.pow(more);
            (value * ten, value * ten + ten - 1)
        });
        if !reached.clone().any(|(from, to)| wanted.has_any(from, to)) {
            return ends.then_some(ExponentState::Any { left: 0, ends });
        }
        if reached.all(|(from, to)| wanted.has_all(from, to)) {
            return Some(ExponentState::Any { left, ends });
        }
        Some(ExponentState::Digits { wanted, value, read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_wanted_ones_are_read() {
        let sets = [vec![(16, MAX)], vec![(-MAX, -5), (0, 0), (7, 123)], vec![(-40, 308)], vec![(-MAX, MAX)]];
        for ranges in sets {
            let wanted = Exponents::all().within(ranges.clone());
            for value in 0..=MAX {
                let spelled = [format!("{value}"), format!("{value:02}"), format!("{value:03}")];
                for (sign, text) in
                    ["", "+", "-"].iter().flat_map(|sign| spelled.iter().map(move |t| (sign, t)))
                {
                    let signed = if *sign == "-" { -value } else { value };
                    let read = format!("{sign}{text}")
                        .bytes()
                        .try_fold(ExponentState::new(wanted.clone()).unwrap(), |reading, byte| {
                            reading.step(byte)
                        });
                    let expected = ranges.iter().any(|range| range.0 <= signed && signed <= range.1);
                    assert_eq!(
                        read.is_some_and(|reading| reading.ends()),
                        expected,
                        "{sign}{text} {ranges:?}"
                    );
                }
            }
            let reading = ExponentState::new(wanted).unwrap();
            assert!(!reading.ends() && "0000".bytes().try_fold(reading, |r, byte| r.step(byte)).is_none());
        }
        assert!(ExponentState::new(Exponents::all().within([])).is_none());
    }
}
