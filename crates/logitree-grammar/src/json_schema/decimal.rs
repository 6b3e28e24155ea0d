//! Exact decimals: read from JSON, compared and divided without rounding.

use std::cmp::Ordering;

use crate::{Error, ErrorKind, Result};

/// Digits that a remainder is computed with; a longer number counts as no multiple.
const MAX_DIGITS: i64 = 4_096;

/// Significant digits of a bounded decimal, and the distance of its first digit from the point. Doubles need at most
/// 767 and 324.
const MAX_PLACES: usize = 1000;

/// A decimal 0.d1d2d3... times ten to the power `point`. Neither the first nor the last digit is 0; zero has no digits,
/// its point is 0 and it is not negative.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    pub negative: bool,
    pub digits: Vec<u8>,
    pub point: i64,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { negative: false, digits: Vec::new(), point: 0 };

    /// The value of a JSON number, or `None` for any other text.
    pub fn read(text: &str) -> Option<Decimal> {
        let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, power(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if leading_zero || !are_digits(whole) || !fraction.is_none_or(are_digits) {
            return None;
        }
        let all = whole.bytes().chain(fraction.unwrap_or("").bytes()).map(|byte| byte - b'0');
        let leading = all.clone().take_while(|&digit| digit == 0).count();
        let mut digits: Vec<u8> = all.skip(leading).collect();
        digits.truncate(digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Some(Decimal::ZERO);
        }
        Some(Decimal { negative, digits, point: power + whole.len() as i64 - leading as i64 })
    }

    /// The value of a JSON number that is not extreme.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other text, [`ErrorKind::Limit`] for too many digits or too large an exponent.
    pub fn read_bounded(text: &str) -> Result<Decimal> {
        let value = Decimal::read(text).ok_or_else(|| {
            Error::new(ErrorKind::Constraint, format!("{} is not a JSON number", shown(text)))
        })?;
        if value.is_extreme() {
            let message =
                format!("{} has more than {MAX_PLACES} significant digits or decimal places", shown(text));
            return Err(
                Error::new(ErrorKind::Limit, message).help("leave the keyword out if it means no limit")
            );
        }
        Ok(value)
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether it is greater than zero.
    pub fn is_positive(&self) -> bool {
        !self.negative && !self.is_zero()
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent() >= 0
    }

    /// Whether it has more digits, or a larger exponent, than any schema needs.
    pub fn is_extreme(&self) -> bool {
        self.digits.len() > MAX_PLACES || self.point.unsigned_abs() > MAX_PLACES as u64
    }

    /// The number of digits after the point.
    pub fn places(&self) -> u64 {
        self.exponent().min(0).unsigned_abs()
    }

    /// The power of ten of the last digit.
    fn exponent(&self) -> i64 {
        self.point - self.digits.len() as i64
    }

    /// The number as a count, saturating at `u64::MAX`; `None` if it is negative or has a fraction.
    pub fn count(&self) -> Option<u64> {
        if self.negative || !self.is_integer() {
            return None;
        }
        if self.point > 20 {
            return Some(u64::MAX);
        }
        let zeros = std::iter::repeat_n(&0, self.exponent() as usize);
        let next = |count: u64, &digit: &u8| count.checked_mul(10)?.checked_add(digit.into());
        Some(self.digits.iter().chain(zeros).try_fold(0, next).unwrap_or(u64::MAX))
    }

    /// The spelling that all equal numbers share.
    pub fn canonical(&self) -> String {
        let digits: String = self.digits.iter().map(|digit| char::from(digit + b'0')).collect();
        let sign = if self.negative { "-" } else { "" };
        match (digits.is_empty(), self.exponent()) {
            (true, _) => "0".into(),
            (false, 0) => format!("{sign}{digits}"),
            (false, 1..=20) => format!("{sign}{digits}{}", "0".repeat(self.exponent() as usize)),
            (false, exponent) => format!("{sign}{digits}e{exponent}"),
        }
    }

    /// The number without an exponent, with as many zeros as that takes.
    pub fn in_digits(&self) -> String {
        let digits: String = self.digits.iter().map(|digit| char::from(digit + b'0')).collect();
        let sign = if self.negative { "-" } else { "" };
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        match usize::try_from(self.point) {
            _ if digits.is_empty() => "0".into(),
            Ok(point) if point >= digits.len() => format!("{sign}{digits}{}", zeros(self.exponent())),
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => format!("{sign}0.{}{digits}", zeros(-self.point)),
        }
    }

    /// Whether this is an integer multiple of `of`.
    pub fn is_multiple(&self, of: &Decimal) -> bool {
        if self.digits.is_empty() || of.digits.is_empty() {
            return self.digits.is_empty();
        }
        let lowest = self.exponent().min(of.exponent());
        let (more, divisor) = (self.exponent() - lowest, of.exponent() - lowest);
        if more > MAX_DIGITS || divisor > MAX_DIGITS {
            return false;
        }
        let mut divisor_digits = of.digits.clone();
        divisor_digits.resize(divisor_digits.len() + divisor as usize, 0);
        let mut rest: Vec<u8> = Vec::new();
        for &digit in self.digits.iter().chain(std::iter::repeat_n(&0, more as usize)) {
            if !rest.is_empty() || digit != 0 {
                rest.push(digit);
            }
            while at_least(&rest, &divisor_digits) {
                subtract(&mut rest, &divisor_digits);
            }
        }
        rest.is_empty()
    }

    fn cmp_size(&self, other: &Decimal) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (false, false) => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
            (zero, other_zero) => other_zero.cmp(&zero),
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_size(other),
            (true, true) => other.cmp_size(self),
            (negative, other_negative) => other_negative.cmp(&negative),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether the number of the digits `a` is at least that of `b`; neither has leading zeros.
fn at_least(a: &[u8], b: &[u8]) -> bool {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b)) != Ordering::Less
}

/// Subtracts `b` from `a`, which is not less, and removes leading zeros.
fn subtract(a: &mut Vec<u8>, b: &[u8]) {
    let shift = a.len() - b.len();
    let mut borrow = 0;
    for place in (0..a.len()).rev() {
        let taken = borrow + if place >= shift { b[place - shift] } else { 0 };
        borrow = u8::from(a[place] < taken);
        a[place] = a[place] + 10 * borrow - taken;
    }
    a.drain(..a.iter().take_while(|&&digit| digit == 0).count());
}

/// An exponent, `[+-]?[0-9]+`, clamped to a size that no document has enough digits to make up for.
fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !are_digits(digits) {
        return None;
    }
    let max = i64::MAX / 4;
    let size =
        digits.bytes().fold(
            0i64,
            |size, byte| {
                if size > max / 16 {
                    max
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

/// The text, shortened for a message.
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

    fn read(text: &str) -> Decimal {
        Decimal::read(text).unwrap()
    }

    #[test]
    fn equal_numbers_are_equal() {
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("-0", "0"), ("0.5", "5e-1"), ("0e9", "0")] {
            assert_eq!(read(a), read(b));
            assert_eq!(read(a).canonical(), read(b).canonical());
        }
        assert!(Decimal::read("x").is_none() && Decimal::read("").is_none() && Decimal::read("-").is_none());
    }

    #[test]
    fn they_are_ordered() {
        let texts = [
            "-1e40", "-1e3", "-10", "-9.5", "-2", "-1.5", "-0.5", "-0.1", "0", "1e-9", "1e-3", "0.0011",
            "0.1", "0.5", "1", "1.5e0", "2", "10", "1e40", "1e300",
        ];
        for (i, a) in texts.iter().enumerate() {
            for (j, b) in texts.iter().enumerate() {
                assert_eq!(read(a).cmp(&read(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn counts_are_whole() {
        let counts =
            [("2.0", 2), ("1.5e1", 15), ("0", 0), ("1e30", u64::MAX), ("18446744073709551615", u64::MAX)];
        for (text, count) in
            counts.into_iter().chain([("99999999999999999999", u64::MAX), ("1e19", 10_u64.pow(19))])
        {
            assert_eq!(read(text).count(), Some(count), "{text}");
        }
        assert!(["-1", "0.5", "1e-3"].iter().all(|text| read(text).count().is_none()));
        assert!(read("1e1001").is_extreme() && read("-1e-1002").is_extreme() && !read("5e-324").is_extreme());
        assert!(read("0.1").is_positive() && !read("0.0").is_positive() && !read("-1").is_positive());
    }

    #[test]
    fn multiples_are_exact() {
        for (a, of) in [("0.3", "0.1"), ("1e30", "7e28"), ("19.99", "0.01"), ("0", "7"), ("-6", "3")] {
            let exact = a != "1e30";
            assert_eq!(read(a).is_multiple(&read(of)), exact, "{a} {of}");
        }
        assert!(!read("0.35").is_multiple(&read("0.1")) && !read("1").is_multiple(&read("2")));
    }

    #[test]
    fn values_have_one_form() {
        assert_eq!(read("1200"), Decimal { negative: false, digits: vec![1, 2], point: 4 });
        assert_eq!(read("1200"), read("1.20e+3"));
        assert_eq!(read("-0.00150"), Decimal { negative: true, digits: vec![1, 5], point: -2 });
        assert_eq!(read("-0.0e7"), read("0"));
        assert_eq!(read("0e99999999999999999999"), read("0"));
        assert_eq!((read("1.25").places(), read("1200").places(), read("1e-8").places()), (2, 0, 8));
    }

    #[test]
    fn hostile_texts_end_in_errors() {
        for wrong in
            ["", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "1e5.0", "NaN", "1 ", "１", "1.-5", "--1"]
        {
            assert_eq!(Decimal::read_bounded(wrong).unwrap_err().kind, ErrorKind::Constraint, "{wrong}");
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
            let error = Decimal::read_bounded(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Limit);
            assert!(error.message.len() < 120, "{}", error.message);
        }
        assert_eq!(
            Decimal::read_bounded(&format!("1{zeros}e-1000000")).unwrap(),
            Decimal::read_bounded("1").unwrap()
        );
    }
}
