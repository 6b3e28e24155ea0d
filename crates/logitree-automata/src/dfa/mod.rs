//! Automata over ASCII for regular languages whose expressions would be large, such as multiples of a number: minimal
//! ones as tables, and larger ones whose states are computed.

mod computed;
mod explore;
mod minimal;

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

pub use computed::{ComputedDfa, ComputedState, Steps};
pub use explore::{explore, Explored, Walk};

/// No transition.
const NONE: u32 = u32::MAX;

/// Number of ASCII bytes.
const ASCII: usize = 128;

/// A deterministic minimal automaton over ASCII without dead states, numbered in breadth-first order. Two
/// automata over the same byte classes are equal exactly if their languages are. The empty language has no
/// automaton.
#[derive(Debug, Clone)]
pub struct Dfa {
    /// The class of each ASCII byte; `width` for bytes without transitions.
    classes: Box<[u8]>,
    /// Number of classes.
    width: usize,
    /// `width` targets for each state.
    next: Vec<u32>,
    accepting: Vec<bool>,
    /// A hash of the content, computed on demand.
    digest: OnceLock<u128>,
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
        let class = usize::from(*self.classes.get(usize::from(byte))?);
        if class == self.width {
            return None;
        }
        Some(self.next[state as usize * self.width + class]).filter(|&to| to != NONE)
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
        Dfa { classes: self.classes.clone(), width: self.width, next, accepting, digest: OnceLock::new() }
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
