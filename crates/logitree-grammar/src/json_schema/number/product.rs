//! Sets with several conditions, as the product of each condition's automaton: these are small, and schemas share them.
//!
//! ```text
//! at least 100, a multiple of 3, none of 4      product of: at least 100, a multiple of 3, not a multiple of 4
//! ```
//!
//! Numbers that are no multiples are the rest of all numbers with the same spellings.
//!
//! The naive version is the walk that reads everything at once ([`super::walk`]).

use std::sync::Arc;

use super::{is_small, regex, NumberSet, ALPHABET, DIGITS};
use crate::dfa::{explore, Explored, Walk};
use crate::{Dfa, ErrorKind, Regex, Result};

/// Most automata that are multiplied.
const MAX_PARTS: usize = 6;
/// Products of more states are not made.
const MAX_PRODUCT: usize = 4_000;
/// About how many states of a product are explored in the time that one of a walk takes.
const PER_WALK: usize = 6;

/// The states of the automata, side by side; unused places are 0.
type States = [u32; MAX_PARTS];

/// Automata that read a text together.
struct Product(Vec<Arc<Dfa>>);

impl Walk for Product {
    type State = States;

    fn start(&self) -> States {
        [Dfa::START; MAX_PARTS]
    }

    fn step(&mut self, states: &States, byte: u8) -> Option<States> {
        let mut next = *states;
        for (dfa, state) in self.0.iter().zip(&mut next) {
            *state = dfa.next(*state, byte)?;
        }
        Some(next)
    }

    fn accepts(&self, states: &States) -> bool {
        self.0.iter().zip(states).all(|(dfa, &state)| dfa.is_accepting(state))
    }
}

/// The texts of the numbers in the set, and how many states were explored for it, as [`regex`]; `None` if one thing only is
/// asked of them, or if the product is too large.
///
/// # Errors
/// As [`regex`], where a part is not honoured; those of limits are left to the walk.
pub(super) fn multiplied(numbers: &NumberSet) -> Result<Option<(Regex, usize)>> {
    let parts = parts(numbers);
    if parts.len() < 2 || parts.len() > MAX_PARTS {
        return Ok(None);
    }
    let (mut automata, mut explored) = (Vec::with_capacity(parts.len()), 0);
    for part in &parts {
        match regex(part) {
            Ok((Regex::Automaton(dfa), cost)) => {
                automata.push(dfa);
                explored += cost;
            }
            Ok((Regex::Nothing, cost)) => return Ok(Some((Regex::Nothing, explored + cost))),
            Ok(_) => return Ok(None),
            Err(error) if error.kind == ErrorKind::Limit => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let alphabet = if numbers.digits_only { &ALPHABET[..DIGITS] } else { &ALPHABET[..] };
    let (found, states) = explore(&mut Product(automata), alphabet, MAX_PRODUCT);
    explored += states.div_ceil(PER_WALK);
    Ok(match found {
        Explored::Dfa(dfa) => Some((Regex::Automaton(Arc::new(dfa)), explored)),
        Explored::Nothing => Some((Regex::Nothing, explored)),
        Explored::TooMany => None,
    })
}

/// A text that is read by an automaton no more.
const DEAD: u32 = u32::MAX;

/// What one of the first two automata accepts, and the third does not.
struct Difference([Arc<Dfa>; 3]);

impl Walk for Difference {
    type State = [u32; 3];

    fn start(&self) -> [u32; 3] {
        [Dfa::START; 3]
    }

    fn step(&mut self, states: &[u32; 3], byte: u8) -> Option<[u32; 3]> {
        let mut next = *states;
        for (dfa, state) in self.0.iter().zip(&mut next) {
            *state = if *state == DEAD { DEAD } else { dfa.next(*state, byte).unwrap_or(DEAD) };
        }
        (next[0] != DEAD || next[1] != DEAD).then_some(next)
    }

    fn accepts(&self, states: &[u32; 3]) -> bool {
        let [one, other, without] =
            std::array::from_fn(|n| states[n] != DEAD && self.0[n].is_accepting(states[n]));
        (one || other) && !without
    }
}

/// The texts of the numbers that are no multiple of something small, and how many states were explored for it, as
/// [`regex`]; `None` if something else is asked of them.
///
/// # Errors
/// As [`regex`].
pub(super) fn complemented(numbers: &NumberSet) -> Result<Option<(Regex, usize)>> {
    let [of] = &numbers.not_multiples[..] else { return Ok(None) };
    let only = NumberSet { not_multiples: numbers.not_multiples.clone(), ..NumberSet::default() };
    // Multiples of what is not small have fewer spellings than integers and fractions.
    if *numbers != only || !is_small(of) {
        return Ok(None);
    }
    let [whole, parts] = [true, false].map(|integer| {
        let integer = Some(integer);
        regex(&NumberSet { integer, ..NumberSet::default() })
    });
    let multiples = regex(&NumberSet { multiples: vec![of.clone()], ..NumberSet::default() })?;
    let ((Regex::Automaton(whole), _), (Regex::Automaton(parts), _), (Regex::Automaton(multiples), explored)) =
        (whole?, parts?, multiples)
    else {
        return Ok(None);
    };
    let (found, states) = explore(&mut Difference([whole, parts, multiples]), &ALPHABET, MAX_PRODUCT);
    let explored = explored + states.div_ceil(PER_WALK);
    Ok(match found {
        Explored::Dfa(dfa) => Some((Regex::Automaton(Arc::new(dfa)), explored)),
        Explored::Nothing => Some((Regex::Nothing, explored)),
        Explored::TooMany => None,
    })
}

/// The set split by condition: bounds and single values, and each divisor.
fn parts(numbers: &NumberSet) -> Vec<NumberSet> {
    let one = || NumberSet { digits_only: numbers.digits_only, ..NumberSet::default() };
    let bounds = NumberSet {
        integer: numbers.integer,
        minimum: numbers.minimum.clone(),
        maximum: numbers.maximum.clone(),
        excluded: numbers.excluded.clone(),
        ..one()
    };
    let mut parts: Vec<NumberSet> = (bounds != one()).then_some(bounds).into_iter().collect();
    let wanted = numbers.multiples.iter().map(|of| NumberSet { multiples: vec![of.clone()], ..one() });
    let others =
        numbers.not_multiples.iter().map(|of| NumberSet { not_multiples: vec![of.clone()], ..one() });
    parts.extend(wanted.chain(others));
    parts
}

#[cfg(test)]
mod tests {
    use super::super::super::NumberBound;
    use super::super::constrained;
    use super::*;

    #[test]
    fn complements_are_what_a_walk_finds() {
        let mut made = 0;
        for of in (1..=64u32)
            .map(|n| n.to_string())
            .chain(["0.1", "2.5", "0.01", "12.5", "1e1", "3.0"].map(String::from))
        {
            let numbers = NumberSet { not_multiples: vec![of], ..NumberSet::default() };
            let Some((found, _)) = complemented(&numbers).unwrap() else { continue };
            assert_eq!(found, constrained(&numbers).unwrap().0, "{numbers:?}");
            made += 1;
        }
        assert!(made > 40, "{made}");
        for integer in [None, Some(true)] {
            let numbers = NumberSet {
                integer,
                digits_only: integer.is_none(),
                not_multiples: vec!["3".into()],
                ..NumberSet::default()
            };
            assert!(complemented(&numbers).unwrap().is_none());
        }
    }

    #[test]
    fn products_are_what_a_walk_finds() {
        let bounds = [None, Some("1"), Some("-12.5"), Some("100"), Some("0")];
        let divisors = [&["3"][..], &["4", "7"], &["2.5"], &["0.1", "8"], &["1000"], &[]];
        let (mut made, mut empty, mut seen) = (0, 0, 0u64);
        for minimum in bounds {
            for (multiples, not_multiples) in divisors.iter().flat_map(|of| divisors.map(|not| (*of, not))) {
                seen += 1;
                let bound = |value: Option<&str>, exclusive| {
                    value.map(|value| NumberBound { value: value.into(), exclusive })
                };
                let numbers = NumberSet {
                    integer: [None, Some(true), Some(false)][(seen % 3) as usize],
                    digits_only: seen % 7 == 0,
                    minimum: bound(minimum, seen % 2 == 0),
                    maximum: bound((seen % 4 == 0).then_some("1050"), seen % 8 == 0),
                    multiples: multiples.iter().map(ToString::to_string).collect(),
                    not_multiples: not_multiples.iter().map(ToString::to_string).collect(),
                    excluded: if seen % 5 == 0 { vec!["105".into(), "7.5".into()] } else { Vec::new() },
                };
                let Some((product, _)) = multiplied(&numbers).unwrap() else { continue };
                let Ok((walked, _)) = constrained(&numbers) else { continue };
                assert_eq!(product, walked, "{numbers:?}");
                made += 1;
                empty += usize::from(product == Regex::Nothing);
            }
        }
        assert!(made > 100 && empty > 10, "{made} products, {empty} of them empty");
    }
}
