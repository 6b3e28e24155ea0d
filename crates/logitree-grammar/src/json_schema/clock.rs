//! Times of RFC 3339 as one automaton, leap seconds exactly: a leap second is 23:59:60 in UTC, so the offset that must
//! follow is known from the local time. It refuses to know dates: which days had a leap second is not asked.

use std::sync::{Arc, OnceLock};

use super::super::dfa::{explore, Explored, Walk};
use super::super::{Dfa, Regex};

/// More states than the walk has.
const MOST_STATES: usize = 100_000;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Next {
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
struct Clock {
    next: Next,
    /// The digit before, where the next one depends on it.
    tens: u8,
    /// In a leap second: the local time, behind the sign the offset that must follow.
    hour: u8,
    minute: u8,
    leap: bool,
}

struct Times;

impl Clock {
    /// At `next`; where no leap second is read the time is forgotten.
    fn at(self, next: Next) -> Option<Clock> {
        let past_second = next > Next::SecondUnit;
        let (hour, minute) = if past_second && !self.leap { (0, 0) } else { (self.hour, self.minute) };
        Some(Clock { next, tens: 0, hour, minute, ..self })
    }

    fn tens(self, digit: u8, most: u8, next: Next) -> Option<Clock> {
        let at = self.at(next)?;
        (digit <= most).then_some(Clock { tens: digit, ..at })
    }

    fn offset(self, sign: u8) -> Option<Clock> {
        let local = i32::from(self.hour) * 60 + i32::from(self.minute);
        let last = 23 * 60 + 59;
        let offset = if sign == b'+' { local - last } else { last - local }.rem_euclid(24 * 60);
        let (hour, minute) = if self.leap { (offset / 60, offset % 60) } else { (0, 0) };
        Clock { hour: hour as u8, minute: minute as u8, ..self }.at(Next::OffsetHour)
    }

    fn digit(self, digit: u8) -> Option<Clock> {
        let number = self.tens * 10 + digit;
        match self.next {
            Next::Hour => self.tens(digit, 2, Next::HourUnit),
            Next::HourUnit if number < 24 => Clock { hour: number, ..self }.at(Next::HourColon),
            Next::Minute => self.tens(digit, 5, Next::MinuteUnit),
            Next::MinuteUnit => Clock { minute: number, ..self }.at(Next::MinuteColon),
            Next::Second => Clock { leap: digit == 6, ..self }.tens(digit, 6, Next::SecondUnit),
            Next::SecondUnit if number <= 60 => self.at(Next::AfterSecond),
            Next::Fraction | Next::AfterFraction => self.at(Next::AfterFraction),
            Next::OffsetHour => self.tens(digit, 2, Next::OffsetHourUnit),
            Next::OffsetHourUnit if number < 24 && (!self.leap || number == self.hour) => {
                self.at(Next::OffsetColon)
            }
            Next::OffsetMinute => self.tens(digit, 5, Next::OffsetMinuteUnit),
            Next::OffsetMinuteUnit if !self.leap || number == self.minute => self.at(Next::Nothing),
            _ => None,
        }
    }
}

impl Walk for Times {
    type State = Clock;

    fn start(&self) -> Clock {
        Clock { next: Next::Hour, tens: 0, hour: 0, minute: 0, leap: false }
    }

    fn step(&mut self, clock: &Clock, byte: u8) -> Option<Clock> {
        match (clock.next, byte) {
            (_, b'0'..=b'9') => clock.digit(byte - b'0'),
            (Next::HourColon, b':') => clock.at(Next::Minute),
            (Next::MinuteColon, b':') => clock.at(Next::Second),
            (Next::OffsetColon, b':') => clock.at(Next::OffsetMinute),
            (Next::AfterSecond, b'.') => clock.at(Next::Fraction),
            (Next::AfterSecond | Next::AfterFraction, b'+' | b'-') => clock.offset(byte),
            (Next::AfterSecond | Next::AfterFraction, b'Z') => {
                let is_last = (clock.hour, clock.minute) == (23, 59);
                (!clock.leap || is_last).then_some(())?;
                Clock { leap: false, ..*clock }.at(Next::Nothing)
            }
            _ => None,
        }
    }

    fn accepts(&self, clock: &Clock) -> bool {
        clock.next == Next::Nothing
    }
}

/// `full-time` of RFC 3339. Made once.
pub(super) fn time() -> Regex {
    static TIME: OnceLock<Option<Arc<Dfa>>> = OnceLock::new();
    let made = TIME.get_or_init(|| {
        let alphabet: [&[u8]; 15] =
            [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b":", b".", b"+", b"-", b"Zz"];
        match explore(&mut Times, &alphabet, MOST_STATES) {
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
