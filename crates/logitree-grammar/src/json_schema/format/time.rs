//! RFC 3339 times as one automaton with exact leap seconds: a leap second is 23:59:60 in UTC, so the local time determines
//! the offset. Dates are not checked: any day may have a leap second.

use std::sync::{Arc, OnceLock};

use crate::dfa::{explore, Explored, Walk};
use crate::{Dfa, Regex};

/// More states than the walk has.
const MAX_STATES: usize = 100_000;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum TimeField {
    Hour,
    HourUnit,
    HourColon,
    Minute,
    MinuteUnit,
    MinuteColon,
    Second,
    SecondUnit,
    AfterSecond,
    Fraction,
    AfterFraction,
    OffsetHour,
    OffsetHourUnit,
    OffsetColon,
    OffsetMinute,
    OffsetMinuteUnit,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TimeState {
    next: TimeField,
    /// The digit before, where the next one depends on it.
    tens: u8,
    /// The local time while a leap second may come, and in it; after the sign, what is left of the offset that must follow.
    hour: u8,
    minute: u8,
    leap: bool,
}

struct TimeWalk;

impl TimeState {
    /// At `next`.
    fn at(self, next: TimeField) -> Option<TimeState> {
        Some(TimeState { next, tens: 0, ..self })
    }

    /// In a second that begins with this digit. Only a leap second depends on the time, and only its unit on the digit.
    fn second(self, digit: u8) -> Option<TimeState> {
        match digit {
            0..6 => TimeState { hour: 0, minute: 0, leap: false, ..self }.at(TimeField::SecondUnit),
            6 => TimeState { leap: true, ..self }.at(TimeField::SecondUnit),
            _ => None,
        }
    }

    fn tens(self, digit: u8, most: u8, next: TimeField) -> Option<TimeState> {
        let at = self.at(next)?;
        (digit <= most).then_some(TimeState { tens: digit, ..at })
    }

    fn offset(self, sign: u8) -> Option<TimeState> {
        let local = i32::from(self.hour) * 60 + i32::from(self.minute);
        let last = 23 * 60 + 59;
        let offset = if sign == b'+' { local - last } else { last - local }.rem_euclid(24 * 60);
        let (hour, minute) = if self.leap { (offset / 60, offset % 60) } else { (0, 0) };
        TimeState { hour: hour as u8, minute: minute as u8, ..self }.at(TimeField::OffsetHour)
    }

    fn digit(self, digit: u8) -> Option<TimeState> {
        let number = self.tens * 10 + digit;
        // In a leap second the digits of the offset are known: what is written is forgotten.
        let is_due = |due: u8| !self.leap || digit == due;
        match self.next {
            TimeField::Hour => self.tens(digit, 2, TimeField::HourUnit),
            TimeField::HourUnit if number < 24 => TimeState { hour: number, ..self }.at(TimeField::HourColon),
            TimeField::Minute => self.tens(digit, 5, TimeField::MinuteUnit),
            TimeField::MinuteUnit => TimeState { minute: number, ..self }.at(TimeField::MinuteColon),
            TimeField::Second => self.second(digit),
            TimeField::SecondUnit if digit == 0 || !self.leap => self.at(TimeField::AfterSecond),
            TimeField::Fraction | TimeField::AfterFraction => self.at(TimeField::AfterFraction),
            TimeField::OffsetHour if is_due(self.hour / 10) => {
                let hour = if self.leap { self.hour % 10 } else { 0 };
                TimeState { hour, ..self }.tens(digit, 2, TimeField::OffsetHourUnit)
            }
            TimeField::OffsetHourUnit if number < 24 && is_due(self.hour) => {
                TimeState { hour: 0, ..self }.at(TimeField::OffsetColon)
            }
            TimeField::OffsetMinute if digit < 6 && is_due(self.minute / 10) => {
                let minute = if self.leap { self.minute % 10 } else { 0 };
                TimeState { minute, ..self }.at(TimeField::OffsetMinuteUnit)
            }
            TimeField::OffsetMinuteUnit if is_due(self.minute) => {
                TimeState { minute: 0, leap: false, ..self }.at(TimeField::Nothing)
            }
            _ => None,
        }
    }
}

impl Walk for TimeWalk {
    type State = TimeState;

    fn start(&self) -> TimeState {
        TimeState { next: TimeField::Hour, tens: 0, hour: 0, minute: 0, leap: false }
    }

    fn step(&mut self, clock: &TimeState, byte: u8) -> Option<TimeState> {
        match (clock.next, byte) {
            (_, b'0'..=b'9') => clock.digit(byte - b'0'),
            (TimeField::HourColon, b':') => clock.at(TimeField::Minute),
            (TimeField::MinuteColon, b':') => clock.at(TimeField::Second),
            (TimeField::OffsetColon, b':') => clock.at(TimeField::OffsetMinute),
            (TimeField::AfterSecond, b'.') => clock.at(TimeField::Fraction),
            (TimeField::AfterSecond | TimeField::AfterFraction, b'+' | b'-') => clock.offset(byte),
            (TimeField::AfterSecond | TimeField::AfterFraction, b'Z') => {
                let is_last = (clock.hour, clock.minute) == (23, 59);
                (!clock.leap || is_last).then_some(())?;
                TimeState { hour: 0, minute: 0, leap: false, ..*clock }.at(TimeField::Nothing)
            }
            _ => None,
        }
    }

    fn accepts(&self, clock: &TimeState) -> bool {
        clock.next == TimeField::Nothing
    }
}

/// `full-time` of RFC 3339. Made once.
pub(super) fn time() -> Regex {
    static TIME: OnceLock<Option<Arc<Dfa>>> = OnceLock::new();
    let made = TIME.get_or_init(|| {
        let alphabet: [&[u8]; 15] =
            [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b":", b".", b"+", b"-", b"Zz"];
        match explore(&mut TimeWalk, &alphabet, MAX_STATES).0 {
            Explored::Dfa(dfa) => Some(Arc::new(dfa)),
            Explored::Nothing | Explored::TooMany => None,
        }
    });
    made.as_ref().map_or(Regex::Nothing, |dfa| Regex::Automaton(Arc::clone(dfa)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_time(text: &str) -> bool {
        let Regex::Automaton(dfa) = time() else { panic!("there is an automaton") };
        let end = text.bytes().try_fold(Dfa::START, |state, byte| dfa.next(state, byte));
        end.is_some_and(|state| dfa.is_accepting(state))
    }

    #[test]
    fn leap_seconds_are_one_instant() {
        for minutes in 0..24 * 60 {
            let (hour, minute) = (minutes / 60, minutes % 60);
            for sign in ["+", "-"] {
                let local = if sign == "+" { 1439 + minutes } else { 1439 + 1440 - minutes } % 1440;
                let text =
                    |local: i32| format!("{:02}:{:02}:60{sign}{hour:02}:{minute:02}", local / 60, local % 60);
                assert!(is_time(&text(local)), "{}", text(local));
                assert!(!is_time(&text((local + 1) % 1440)) && !is_time(&text((local + 60) % 1440)));
            }
        }
        for text in ["00:00:00Z", "23:59:60z", "23:59:60.5Z", "12:34:56.789+23:59", "01:29:60+01:30"] {
            assert!(is_time(text), "{text}");
        }
        for text in
            ["24:00:00Z", "22:59:60Z", "12:00:61Z", "12:00:00", "12:00:00.Z", "12:00:00+24:00", "1:00:00Z"]
        {
            assert!(!is_time(text), "{text}");
        }
    }
}
