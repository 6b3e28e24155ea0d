//! Finite automata over ASCII as tables: what a regular language is handed over as where a regular expression of it
//! would be large, multiples of a number for instance. It refuses to know what its texts mean.

mod explore;
mod minimal;

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

pub use explore::{explore, Explored, Walk};

/// No way on, in a table.
const NONE: u32 = u32::MAX;

/// Bytes of ASCII.
const ASCII: usize = 128;

/// A deterministic automaton over ASCII: minimal, every state on the way to an accepting one, numbered in breadth
/// first order. So two automata over the same classes of bytes are equal exactly if their languages are, and there is
/// none for the empty language.
#[derive(Debug, Clone)]
pub struct Dfa {
    /// The class of each byte of ASCII; `width` for bytes that lead nowhere.
    classes: Box<[u8]>,
    /// Number of classes.
    width: usize,
    /// `width` next states for each state.
    next: Vec<u32>,
    accepting: Vec<bool>,
    /// Stands for the content, once it was asked for.
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
    /// Where it starts.
    pub const START: u32 = 0;

    /// Number of states, at least one.
    #[allow(clippy::len_without_is_empty)] // it never is
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// The state after `byte`; `None` exactly if nothing that starts so matches.
    pub fn next(&self, state: u32, byte: u8) -> Option<u32> {
        let class = usize::from(*self.classes.get(usize::from(byte))?);
        if class == self.width {
            return None;
        }
        Some(self.next[state as usize * self.width + class]).filter(|&to| to != NONE)
    }

    /// Whether the text may end at `state`.
    pub fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Whether the text must end at `state`: nothing but the empty text may follow.
    pub fn is_end(&self, state: u32) -> bool {
        self.row(state).iter().all(|&to| to == NONE)
    }

    /// What may follow `state`, as an automaton of its own: equal for equal residual languages, whichever automata
    /// over these classes they are residuals of.
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

    /// 128 bits that stand for the content, keyed anew in each process.
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
