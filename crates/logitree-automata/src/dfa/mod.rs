//! Automata over bytes for regular languages whose expressions would be large, such as multiples of a number: minimal
//! ones as tables, and larger ones whose states are computed.

mod computed;
mod explore;
mod levels;
mod minimal;

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use crate::expr::{ByteSet, Contained};

pub use computed::{ComputedDfa, ComputedState, Steps};
pub use explore::{explore, Explored, Walk};

/// No transition.
const NONE: u32 = u32::MAX;

/// A deterministic minimal automaton over bytes without dead states, numbered in breadth-first order. Two
/// automata over the same byte classes are equal exactly if their languages are. The empty language has no
/// automaton.
#[derive(Debug, Clone)]
pub struct Dfa {
    /// The class of each byte; `width` for bytes without transitions.
    classes: Box<[u8]>,
    /// Number of classes.
    width: usize,
    /// `width` targets for each state.
    next: Vec<u32>,
    accepting: Vec<bool>,
    /// A hash of the content, computed on demand.
    digest: OnceLock<u128>,
    /// The bytes of each class, computed on demand.
    sets: OnceLock<Box<[ByteSet]>>,
    /// For each state how many bytes it takes at least to accept, computed on demand.
    shortest: OnceLock<Box<[u32]>>,
    /// For each state the bytes of the strings from there on, computed on demand.
    contained: OnceLock<Box<[Contained]>>,
}

impl PartialEq for Dfa {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

impl Eq for Dfa {}

impl Hash for Dfa {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest().hash(state);
    }
}

impl Dfa {
    /// `width` targets for each state.
    fn new(classes: Box<[u8]>, width: usize, next: Vec<u32>, accepting: Vec<bool>) -> Dfa {
        let (digest, sets, shortest) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Dfa { classes, width, next, accepting, digest, sets, shortest, contained: OnceLock::new() }
    }

    /// The start state.
    pub const START: u32 = 0;

    /// Number of states, at least one.
    #[allow(clippy::len_without_is_empty)] // it never is
    #[inline]
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// The state after `byte`; `None` exactly if no string continues so.
    #[inline]
    pub fn next(&self, state: u32, byte: u8) -> Option<u32> {
        let class = usize::from(self.classes[usize::from(byte)]);
        if class == self.width {
            return None;
        }
        Some(self.next[state as usize * self.width + class]).filter(|&to| to != NONE)
    }

    /// The targets of `state` and the bytes that lead to each, every target once.
    pub fn targets(&self, state: u32) -> Vec<(ByteSet, u32)> {
        let mut found: Vec<(ByteSet, u32)> = Vec::new();
        for (set, &to) in self.sets().iter().zip(self.row(state)).filter(|(_, &to)| to != NONE) {
            match found.iter_mut().find(|known| known.1 == to) {
                Some((known, _)) => *known = known.or(set),
                None => found.push((*set, to)),
            }
        }
        found
    }

    /// The bytes that have the same target as `byte`.
    pub(crate) fn alike(&self, state: u32, byte: u8) -> ByteSet {
        let to = self.next(state, byte).unwrap_or(NONE);
        let (mut same, mut known) = (ByteSet::NONE, ByteSet::NONE);
        for (set, &other) in self.sets().iter().zip(self.row(state)) {
            known = known.or(set);
            if other == to {
                same = same.or(set);
            }
        }
        if to == NONE {
            same.or(&ByteSet::ALL.without(&known))
        } else {
            same
        }
    }

    /// The bytes with a transition.
    pub(crate) fn first_bytes(&self, state: u32) -> ByteSet {
        let live = self.sets().iter().zip(self.row(state)).filter(|(_, &to)| to != NONE);
        live.fold(ByteSet::NONE, |all, (set, _)| all.or(set))
    }

    /// The bytes of each class.
    fn sets(&self) -> &[ByteSet] {
        self.sets.get_or_init(|| {
            let mut sets = vec![ByteSet::NONE; self.width];
            for (byte, &class) in self.classes.iter().enumerate() {
                if let Some(set) = sets.get_mut(usize::from(class)) {
                    set.insert(byte as u8);
                }
            }
            sets.into()
        })
    }

    /// The least number of bytes from `state` to an accepting one.
    pub(crate) fn shortest(&self, state: u32) -> u32 {
        let all = self.shortest.get_or_init(|| minimal::distances(self));
        all[state as usize]
    }

    /// Whether the bytes of its strings were asked for.
    pub(crate) fn knows_contained(&self) -> bool {
        self.contained.get().is_some()
    }

    /// The bytes of the strings from `state` on.
    pub(crate) fn contained(&self, state: u32) -> Contained {
        self.contained.get_or_init(|| minimal::contained(self))[state as usize]
    }

    /// The minimal automaton of these states, by class of bytes. The first state is the start; `None` if it accepts
    /// nothing. All states can be reached.
    pub(crate) fn minimal(classes: &[ByteSet], next: Vec<Option<u32>>, accepting: Vec<bool>) -> Option<Dfa> {
        let mut class_of = vec![0u8; 256];
        for (class, bytes) in classes.iter().enumerate() {
            bytes.iter().for_each(|byte| class_of[usize::from(byte)] = class as u8);
        }
        let width = classes.len();
        let next = next.into_iter().map(|to| to.unwrap_or(NONE)).collect();
        minimal::minimal(&Dfa::new(class_of.into(), width, next, accepting))
    }

    /// Whether `state` accepts.
    #[inline]
    pub fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Whether only the empty string may follow `state`.
    pub fn is_end(&self, state: u32) -> bool {
        self.row(state).iter().all(|&to| to == NONE)
    }

    /// The language from `state` on as an automaton of its own. Equal residual languages over the same byte
    /// classes give equal automata.
    #[must_use]
    pub fn residual(&self, state: u32) -> Dfa {
        let mut order = vec![state];
        let mut number = vec![NONE; self.len()];
        number[state as usize] = 0;
        let mut next = Vec::new();
        let mut at = 0;
        while let Some(&from) = order.get(at) {
            for &to in self.row(from) {
                if to != NONE && number[to as usize] == NONE {
                    number[to as usize] = order.len() as u32;
                    order.push(to);
                }
                next.push(if to == NONE { NONE } else { number[to as usize] });
            }
            at += 1;
        }
        let accepting = order.iter().map(|&old| self.is_accepting(old)).collect();
        Dfa::new(self.classes.clone(), self.width, next, accepting)
    }

    fn content(&self) -> (&[u8], usize, &[u32], &[bool]) {
        (&self.classes, self.width, &self.next, &self.accepting)
    }

    /// A 128-bit hash of the content, with a random key per process.
    pub fn digest(&self) -> u128 {
        *self.digest.get_or_init(|| {
            let mut bytes = self.classes.to_vec();
            bytes.extend((self.width as u64).to_le_bytes());
            bytes.extend(self.next.iter().flat_map(|to| to.to_le_bytes()));
            bytes.extend(self.accepting.iter().map(|&yes| u8::from(yes)));
            crate::expr::digest(&bytes)
        })
    }

    fn row(&self, state: u32) -> &[u32] {
        let at = state as usize * self.width;
        &self.next[at..at + self.width]
    }
}
