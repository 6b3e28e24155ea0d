//! Decimals as documents write them, compared and divided without rounding. It refuses to know how a number is spelled
//! in a text that a grammar allows.

use std::cmp::Ordering;

/// Digits that a remainder is worked out with; longer numbers count as no multiple.
const MOST_DIGITS: i64 = 4_096;

/// Digits of a decimal of use, and how far its first one stands from the point. Doubles have at most 767 and 324.
const MOST_PLACES: usize = 1000;

/// An exact decimal: digits without zeros at either end, times a power of ten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// The number that `text` spells in JSON; `None` if it spells none.
    pub(crate) fn read(text: &str) -> Option<Decimal> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = whole.bytes().chain(fraction.bytes());
        if whole.is_empty() || !all.clone().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut digits: Vec<u8> = all.map(|byte| byte - b'0').collect();
        let mut exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        while digits.last() == Some(&0) {
            digits.pop();
            exponent = exponent.checked_add(1)?;
        }
        digits.drain(..digits.iter().take_while(|&&digit| digit == 0).count());
        if digits.is_empty() {
            return Some(Decimal { negative: false, digits, exponent: 0 });
        }
        Some(Decimal { negative, digits, exponent })
    }

    /// Whether it has no fraction.
    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether its digits are so many, or so far from the point, that nobody means them.
    pub(crate) fn is_extreme(&self) -> bool {
        self.digits.len() > MOST_PLACES || self.magnitude().unsigned_abs() > MOST_PLACES as u64
    }

    /// Whether it is above zero.
    pub(crate) fn is_positive(&self) -> bool {
        !self.negative && !self.digits.is_empty()
    }

    /// The number as a count, at most `u64::MAX`; `None` where it is negative or has a fraction.
    pub(crate) fn count(&self) -> Option<u64> {
        if self.negative || !self.is_integer() {
            return None;
        }
        if self.magnitude() > 20 {
            return Some(u64::MAX);
        }
        let zeros = std::iter::repeat_n(&0, self.exponent as usize);
        let next = |count: u64, &digit: &u8| count.checked_mul(10)?.checked_add(digit.into());
        Some(self.digits.iter().chain(zeros).try_fold(0, next).unwrap_or(u64::MAX))
    }

    /// The one spelling that equal numbers share.
    pub(crate) fn canonical(&self) -> String {
        let digits: String = self.digits.iter().map(|digit| char::from(digit + b'0')).collect();
        let sign = if self.negative { "-" } else { "" };
        match (digits.is_empty(), self.exponent) {
            (true, _) => "0".into(),
            (false, 0) => format!("{sign}{digits}"),
            (false, 1..=20) => format!("{sign}{digits}{}", "0".repeat(self.exponent as usize)),
            (false, exponent) => format!("{sign}{digits}e{exponent}"),
        }
    }

    /// Whether this is a whole number of times `of`.
    pub(crate) fn is_multiple(&self, of: &Decimal) -> bool {
        if self.digits.is_empty() || of.digits.is_empty() {
            return self.digits.is_empty();
        }
        let least = self.exponent.min(of.exponent);
        let (more, divisor) = (self.exponent - least, of.exponent - least);
        if more > MOST_DIGITS || divisor > MOST_DIGITS {
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

    /// The place of the first digit: the number is below ten to this power.
    fn magnitude(&self) -> i64 {
        self.exponent.saturating_add(self.digits.len() as i64)
    }

    fn cmp_size(&self, other: &Decimal) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_size(other),
            (true, true) => other.cmp_size(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether the digits `a` (no leading zeros) are a number at least as great as `b` (likewise).
fn at_least(a: &[u8], b: &[u8]) -> bool {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b)) != Ordering::Less
}

/// Takes `b` from the greater or equal `a`, leading zeros removed.
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
        let texts = ["-1e3", "-2", "-1.5", "-0.1", "0", "1e-9", "0.1", "1", "1.5", "2", "10", "1e300"];
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
}
