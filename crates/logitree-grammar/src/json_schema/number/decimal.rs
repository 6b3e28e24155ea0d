//! Decimals as digits and the place of their point. It refuses to know doubles.

use std::cmp::Ordering;

use crate::{Error, ErrorKind, Result};

/// Most digits of a decimal, zeros at its ends left out, and how far off they may stand from the point.
const MOST_PLACES: usize = 1000;

/// A decimal: 0.d1d2d3... times ten to `point`. Neither the first nor the last digit is 0; zero has no digits, its
/// point is 0 and it is not negative.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    pub negative: bool,
    pub digits: Vec<u8>,
    pub point: i32,
}

impl Decimal {
    /// The value of a number of JSON.
    pub fn read(text: &str) -> Result<Decimal> {
        let wrong = || Error::new(ErrorKind::Constraint, format!("{} is not a number of JSON", shown(text)));
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let led = whole.len() > 1 && whole.starts_with('0');
        if led || !are_digits(whole) || !fraction.is_none_or(are_digits) {
            return Err(wrong());
        }
        let power = exponent.map_or(Ok(0), |exponent| power(exponent).ok_or_else(wrong))?;
        Decimal::from_parts(negative, whole, fraction.unwrap_or(""), power).ok_or_else(|| {
            Error::new(
                ErrorKind::Limit,
                format!("{} has more than {MOST_PLACES} digits or places", shown(text)),
            )
            .help("leave the limit out if it is to mean no limit")
        })
    }

    fn from_parts(negative: bool, whole: &str, fraction: &str, power: i64) -> Option<Decimal> {
        let all = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0');
        let zeros = all.clone().take_while(|&digit| digit == 0).count();
        let length = whole.len() + fraction.len();
        if zeros == length {
            return Some(Decimal { negative: false, digits: Vec::new(), point: 0 });
        }
        let ending = all.clone().rev().take_while(|&digit| digit == 0).count();
        let point = power.saturating_add(whole.len() as i64 - zeros as i64);
        let most = MOST_PLACES as i64;
        if length - zeros - ending > MOST_PLACES || !(-most..=most).contains(&point) {
            return None;
        }
        let digits = all.skip(zeros).take(length - zeros - ending).collect();
        Some(Decimal { negative, digits, point: point as i32 })
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// How many digits of fraction it has.
    pub fn places(&self) -> u32 {
        (self.digits.len() as i32 - self.point).max(0) as u32
    }

    /// Orders the values without their signs.
    pub fn compare_size(&self, other: &Decimal) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (false, false) => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
            (zero, other_zero) => other_zero.cmp(&zero),
        }
    }

    /// Orders the values.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
            (negative, other_negative) => other_negative.cmp(&negative),
        }
    }
}

/// An exponent: `[+-]?[0-9]+`. What is larger than a document could outweigh is cut there.
fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !are_digits(digits) {
        return None;
    }
    let most = i64::MAX / 4;
    let size =
        digits.bytes().fold(
            0i64,
            |size, byte| {
                if size > most / 16 {
                    most
                } else {
                    size * 10 + i64::from(byte - b'0')
                }
            },
        );
    Some(if text.starts_with('-') { -size } else { size })
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text as a message shows it: not more than its beginning.
pub(super) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() {
        format!("{start}...")
    } else {
        format!("{start:?}").trim_matches('"').into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_form() {
        let read = |text| Decimal::read(text).unwrap();
        assert_eq!(read("1200"), Decimal { negative: false, digits: vec![1, 2], point: 4 });
        assert_eq!(read("1200"), read("1.20e+3"));
        assert_eq!(read("-0.00150"), Decimal { negative: true, digits: vec![1, 5], point: -2 });
        assert_eq!(read("-0.0e7"), read("0"));
        assert_eq!(read("0e99999999999999999999"), read("0"));
        assert_eq!((read("1.25").places(), read("1200").places(), read("1e-8").places()), (2, 0, 8));
    }

    #[test]
    fn order_is_that_of_values() {
        let sorted =
            ["-1e40", "-10", "-9.5", "-0.5", "0", "1e-3", "0.0011", "0.5", "1", "1.5e0", "10", "1e40"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(
                    Decimal::read(a).unwrap().compare(&Decimal::read(b).unwrap()),
                    i.cmp(&j),
                    "{a} {b}"
                );
            }
        }
    }

    #[test]
    fn hostile_texts_end_in_errors() {
        for wrong in
            ["", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1e5.0", "NaN", "1 ", "１", "1.-5", "--1"]
        {
            assert_eq!(Decimal::read(wrong).unwrap_err().kind, ErrorKind::Constraint, "{wrong}");
        }
        let ones = "1".repeat(1_000_000);
        let zeros = "0".repeat(1_000_000);
        let long = [
            ones.clone(),
            format!("1{zeros}"),
            format!("0.{zeros}1"),
            format!("1e{ones}"),
            format!("1e-{ones}"),
        ];
        for text in long.iter().map(String::as_str).chain(["1e1000000", "1e-1000000"]) {
            let error = Decimal::read(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Limit);
            assert!(error.message.len() < 120, "{}", error.message);
        }
        assert_eq!(Decimal::read(&format!("1{zeros}e-1000000")).unwrap(), Decimal::read("1").unwrap());
    }
}
