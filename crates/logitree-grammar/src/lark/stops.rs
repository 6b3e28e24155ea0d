//! Texts that end where a stop begins that is a regular expression.

use std::sync::Arc;

use super::super::dfa::{explore, Dfa, Explored, Walk};
use super::super::endings::shortest;
use super::super::expr::{Encoding, Exprs};
use super::super::lazy::is_nullable;
use super::super::Regex;
use crate::{Error, ErrorKind, Result};

/// Limits for finding where a stop may begin.
const MAX_EXPRS: usize = 1 << 18;
const MAX_FUEL: u64 = 2_500_000;
const MAX_STATES: usize = 1 << 14;
/// The bytes of UTF-8 are all below this.
const BYTES: usize = 0xf5;

/// The strings of `of` that a string of `stop` follows, where no string of `stop` ends earlier after a string of `of`;
/// without that stop. [`before`](super::super::endings::before) is the same for one text.
///
/// These are the strings of `of` from which a string of `stop` leads to the end of the automaton of the shortest strings of
/// `of` and `stop`.
///
/// # Errors
/// [`ErrorKind::Constraint`] for a stop that may be empty; [`ErrorKind::Limit`] if the automaton is too large.
pub(super) fn before_any(of: Regex, stop: Regex) -> Result<Regex> {
    if is_nullable(&stop) {
        let error = Error::new(ErrorKind::Constraint, "a stop that may be empty");
        return Err(error.help("let it match what ends the text"));
    }
    let mut exprs = Exprs::new(MAX_EXPRS);
    exprs.set_fuel(MAX_FUEL);
    let whole = exprs.compile(&shortest(Regex::concat([of.clone(), stop.clone()])), Encoding::Utf8)?;
    let stop = exprs.compile(&stop, Encoding::Utf8)?;
    let Some(dfa) = exprs.to_dfa(whole)? else { return Ok(Regex::Nothing) };
    let mut ends = Vec::with_capacity(dfa.len());
    for state in 0..dfa.len() as u32 {
        let met = exprs.meeting(stop, &dfa, state)?;
        ends.push(met.ends().iter().any(|&(_, end)| dfa.is_accepting(end)));
    }
    let bytes: Vec<u8> = (0..BYTES).map(|byte| byte as u8).collect();
    let alphabet: Vec<&[u8]> = bytes.chunks(1).collect();
    match explore(&mut Cut { dfa: &dfa, ends: &ends }, &alphabet, MAX_STATES).0 {
        Explored::Dfa(dfa) => Ok(Regex::and([of, Regex::Automaton(Arc::new(dfa))])),
        Explored::Nothing => Ok(Regex::Nothing),
        Explored::TooMany => {
            let message = format!("a stop whose automaton has more than {MAX_STATES} states");
            Err(Error::new(ErrorKind::Limit, message).help("use a stop that is one text"))
        }
    }
}

/// An automaton that ends in other states.
struct Cut<'d> {
    dfa: &'d Dfa,
    ends: &'d [bool],
}

impl Walk for Cut<'_> {
    type State = u32;

    fn start(&self) -> u32 {
        Dfa::START
    }

    fn step(&mut self, state: &u32, byte: u8) -> Option<u32> {
        self.dfa.next(*state, byte)
    }

    fn accepts(&self, state: &u32) -> bool {
        self.ends[*state as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::endings::before;
    use super::*;

    #[test]
    fn a_stop_of_one_text_is_the_same_as_the_text() {
        let some = || Regex::Set(crate::CharSet::from_ranges([(97, 98), (233, 233)])).repeat(0, None);
        for stop in ["a", "ab", "aba", "é", "aa", "bé"] {
            for of in
                [some(), Regex::concat([some(), Regex::text("a")]), Regex::text("aab").repeat(0, Some(4))]
            {
                let mut exprs = Exprs::new(1 << 16);
                let made = [before(of.clone(), stop), before_any(of, Regex::text(stop)).unwrap()];
                let [one, other] = made.map(|regex| exprs.compile(&regex, Encoding::Utf8).unwrap());
                for (one, other) in [(one, other), (other, one)] {
                    let not = exprs.not(other).unwrap();
                    let both = exprs.and(&[one, not]).unwrap();
                    assert!(!exprs.is_alive(both).unwrap(), "{stop}");
                }
            }
        }
        assert_eq!(before_any(some(), Regex::text("a").optional()).unwrap_err().kind, ErrorKind::Constraint);
    }
}
