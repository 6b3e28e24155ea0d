//! Decimals as JSON writes them, compared and brought into one form without rounding. It refuses to know binary floats.

use std::cmp::Ordering;

/// `0.DIGITS * 10^exponent`: digits without zeros at either end, none for zero. Equal numbers are equal here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// The number that a JSON text writes; `None` where its exponent is past all use (nine digits and more).
    pub fn new(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let negative = whole.starts_with('-');
        let whole = whole.trim_start_matches('-');
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let zeros = all.len() - digits.len();
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Decimal { negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent: i64 = exponent.parse().ok().filter(|e| (-999_999_999..=999_999_999).contains(e))?;
        let exponent = exponent + whole.len() as i64 - zeros as i64;
        Some(Decimal { negative, digits: digits.into(), exponent })
    }

    /// Whether it is above zero.
    pub fn is_positive(&self) -> bool {
        !self.negative && !self.digits.is_empty()
    }

    /// The number as a count, at most `u64::MAX`; `None` where it is negative or has a fraction.
    pub fn count(&self) -> Option<u64> {
        if self.negative || self.exponent < self.digits.len() as i64 {
            return None;
        }
        if self.exponent > 20 {
            return Some(u64::MAX);
        }
        let zeros = "0".repeat(self.exponent as usize - self.digits.len());
        Some(format!("0{}{zeros}", self.digits).parse().unwrap_or(u64::MAX))
    }

    /// One text for all ways to write the number.
    pub fn write(&self, out: &mut String) {
        out.push_str(if self.negative { "#-" } else { "#" });
        out.push_str(&self.digits);
        out.push_str(&format!("e{}", self.exponent));
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |d: &Decimal| i8::from(!d.digits.is_empty()) * if d.negative { -1 } else { 1 };
        let sizes = || (self.exponent, &self.digits).cmp(&(other.exponent, &other.digits));
        sign(self).cmp(&sign(other)).then_with(|| if self.negative { sizes().reverse() } else { sizes() })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_one() {
        for group in [
            &["1", "1.0", "10e-1", "0.1E1", "1.000e+0"][..],
            &["0", "-0", "0.00", "0e5"],
            &["-120", "-1.2e2"],
        ] {
            let all: Vec<_> = group.iter().map(|t| Decimal::new(t).unwrap()).collect();
            assert!(all.windows(2).all(|w| w[0] == w[1]), "{group:?}");
        }
        assert_eq!(Decimal::new("1e9999999999"), None);
        assert!(Decimal::new("0e99999999999999999999").is_some());
    }

    #[test]
    fn numbers_have_their_order() {
        let rising = [
            "-1e30",
            "-20",
            "-3.5",
            "-3.25",
            "-0.001",
            "0",
            "1e-9",
            "0.5",
            "0.51",
            "3",
            "20",
            "123456789012345678901",
        ];
        let rising: Vec<_> = rising.iter().map(|t| Decimal::new(t).unwrap()).collect();
        assert!(rising.windows(2).all(|w| w[0] < w[1] && w[1] > w[0]));
    }

    #[test]
    fn counts_are_whole() {
        let count = |text: &str| Decimal::new(text).unwrap().count();
        assert_eq!(count("2.0"), Some(2));
        assert_eq!(count("1.5e1"), Some(15));
        assert_eq!(count("0"), Some(0));
        assert_eq!(count("1e30"), Some(u64::MAX));
        assert_eq!(count("18446744073709551615"), Some(u64::MAX));
        assert_eq!((count("-1"), count("0.5"), count("1e-3")), (None, None, None));
    }
}
