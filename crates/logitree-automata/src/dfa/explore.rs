//! Builds an automaton from a step function: explores the reachable states, then minimises.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

use super::{minimal, Dfa, NONE};
use crate::IdTable;

/// A deterministic automaton given by its step function. It may have dead and equivalent states.
pub trait Walk {
    /// A state.
    type State: Clone + Eq + Hash;
    /// The start state.
    fn start(&self) -> Self::State;
    /// The state after `byte`, if there is one.
    fn step(&mut self, state: &Self::State, byte: u8) -> Option<Self::State>;
    /// Whether the state accepts.
    fn accepts(&self, state: &Self::State) -> bool;
}

/// The result of exploring.
pub enum Explored {
    /// The automaton.
    Dfa(Dfa),
    /// The language is empty.
    Nothing,
    /// There are more states than allowed.
    TooMany,
}

/// States by number. They may be large: each is held once, and found by its hash.
struct States<S> {
    all: Vec<S>,
    numbers: IdTable,
}

impl<S: Eq + Hash> States<S> {
    /// The number of `state`, a new one if it is new.
    fn number(&mut self, state: S) -> u32 {
        let hash = FxBuildHasher.hash_one(&state);
        if let Some(known) = self.numbers.find(hash, |at| self.all[at as usize] == state) {
            return known;
        }
        let next = self.all.len() as u32;
        self.numbers.insert(hash, next);
        self.all.push(state);
        next
    }
}

/// The minimal automaton of `walk` over `alphabet`: classes of bytes that it never distinguishes, queried by
/// their first byte. Explores at most `most` states, and returns how many it explored.
pub fn explore<W: Walk>(walk: &mut W, alphabet: &[&[u8]], most: usize) -> (Explored, usize) {
    let mut states = States { all: Vec::new(), numbers: IdTable::default() };
    states.number(walk.start());
    let mut next = Vec::new();
    let mut at = 0;
    while let Some(state) = states.all.get(at).cloned() {
        // Neighbouring digits mostly have the same target, which saves a lookup.
        let mut last = NONE;
        for class in alphabet {
            let Some(to) = walk.step(&state, class[0]) else {
                next.push(NONE);
                continue;
            };
            if last == NONE || states.all[last as usize] != to {
                last = states.number(to);
            }
            next.push(last);
        }
        if states.all.len() > most {
            return (Explored::TooMany, at);
        }
        at += 1;
    }
    let states = states.all;
    let accepting = states.iter().map(|state| walk.accepts(state)).collect();
    let mut classes = vec![alphabet.len() as u8; 256];
    for (class, bytes) in alphabet.iter().enumerate() {
        bytes.iter().for_each(|&byte| classes[usize::from(byte)] = class as u8);
    }
    let all = Dfa::new(classes.into(), alphabet.len(), next, accepting);
    let explored = match minimal::minimal(&all) {
        Some(dfa) => Explored::Dfa(dfa),
        None => Explored::Nothing,
    };
    (explored, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of a and b; walks the set of `texts` that what came so far starts, with a count that means nothing.
    struct Texts<'a>(&'a [&'a str]);

    impl Walk for Texts<'_> {
        type State = String;
        fn start(&self) -> String {
            String::new()
        }
        fn step(&mut self, state: &String, byte: u8) -> Option<String> {
            let next = format!("{state}{}", char::from(byte));
            (next.len() < 6).then_some(next)
        }
        fn accepts(&self, state: &String) -> bool {
            self.0.contains(&state.as_str())
        }
    }

    fn dfa(texts: &[&str]) -> Option<Dfa> {
        match explore(&mut Texts(texts), &[b"aA", b"b"], 100).0 {
            Explored::Dfa(dfa) => Some(dfa),
            Explored::Nothing => None,
            Explored::TooMany => panic!("63 states are not many"),
        }
    }

    #[test]
    fn automata_are_minimal_and_trimmed() {
        let found = dfa(&["ab", "bb", "abab"]).unwrap();
        // "", a, b with aba, ab, bb with abab
        assert_eq!(found.len(), 5);
        assert!(found.is_end(4) && !found.is_end(3) && found.is_accepting(3));
        let read = |text: &str| {
            text.bytes()
                .try_fold(Dfa::START, |q, byte| found.next(q, byte))
                .is_some_and(|q| found.is_accepting(q))
        };
        assert!(read("ab") && read("Ab") && read("bb") && read("abAb"));
        assert!(!read("") && !read("aba") && !read("aB") && !read("ba") && !read("é"));
        assert_eq!(found.next(Dfa::START, b'c'), None);
        assert_eq!(dfa(&[]), None);
        assert_eq!(dfa(&["aaaaaaa"]), None);
    }

    #[test]
    fn residuals_of_equal_languages_are_equal() {
        let (one, other) = (dfa(&["aab", "aa", "b"]).unwrap(), dfa(&["bb", "b", "aaa"]).unwrap());
        let after =
            |dfa: &Dfa, text: &str| dfa.residual(text.bytes().fold(0, |q, byte| dfa.next(q, byte).unwrap()));
        assert_eq!(after(&one, "aa"), after(&other, "b"));
        assert_eq!(after(&one, ""), one);
        assert_ne!(after(&one, "a"), after(&other, "a"));
        assert_eq!(after(&one, "b"), after(&other, "aaa"));
    }

    #[test]
    fn too_many_states_are_said() {
        assert!(matches!(explore(&mut Texts(&["a"]), &[b"a", b"b"], 10), (Explored::TooMany, 0..=10)));
    }
}
