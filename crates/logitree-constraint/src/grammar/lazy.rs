//! A table automaton that grows while a trie is walked: only the transitions that some token needs are derived, and each
//! once. The naive version is [`super::walk::narrow`], which asks the expressions at every node.

use rustc_hash::FxHashMap;

use crate::Error;
use logitree_grammar::expr::{ExprId, Exprs, NOTHING};
use logitree_tokens::trie::Loops;

/// No token continues so.
pub(super) const DEAD: u32 = u32::MAX - 1;
/// Not derived yet.
const UNKNOWN: u32 = u32::MAX;
/// Set in the number of a state that is complete.
const COMPLETE: u32 = 1 << 31;
/// Steps between two charges for them.
const BLOCK: u32 = 1 << 12;

/// The states that a walk has met.
pub(super) struct LazyTable<'a> {
    exprs: &'a mut Exprs,
    /// `next[state * 256 + byte]`.
    next: Vec<u32>,
    states: Vec<ExprId>,
    numbers: FxHashMap<ExprId, u32>,
    /// What loops on each state, found when it is first asked for.
    loops: Vec<Option<Loops>>,
    /// Steps until the next charge.
    left: u32,
    /// Why all further steps are dead ends.
    pub failed: Option<Error>,
}

impl<'a> LazyTable<'a> {
    pub fn new(exprs: &'a mut Exprs) -> LazyTable<'a> {
        let numbers = FxHashMap::default();
        let (next, states, loops) = (Vec::new(), Vec::new(), Vec::new());
        LazyTable { exprs, next, states, numbers, loops, left: BLOCK, failed: None }
    }

    /// The number of a state.
    pub fn number(&mut self, e: ExprId) -> u32 {
        if e == NOTHING {
            return DEAD;
        }
        let complete = if self.exprs.is_complete(e) { COMPLETE } else { 0 };
        let number = *self.numbers.entry(e).or_insert_with(|| {
            self.states.push(e);
            self.next.resize(self.states.len() << 8, UNKNOWN);
            self.states.len() as u32 - 1
        });
        number | complete
    }

    /// The state after `byte`; [`DEAD`] if no text continues so, or once something failed.
    #[inline]
    pub fn step(&mut self, state: u32, byte: u8) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            self.charge();
        }
        let next = self.next[((state & !COMPLETE) as usize) << 8 | usize::from(byte)];
        if next != UNKNOWN {
            return next;
        }
        self.derive(state, byte)
    }

    /// What loops on a state.
    pub fn loops(&mut self, state: u32) -> Loops {
        let at = (state & !COMPLETE) as usize;
        if let Some(Some(known)) = self.loops.get(at) {
            return *known;
        }
        let found =
            Loops::found(state, |state, byte| Some(self.step(state, byte)).filter(|&next| next != DEAD));
        self.loops.resize(self.states.len(), None);
        self.loops[at] = Some(found);
        found
    }

    pub fn is_complete(state: u32) -> bool {
        state & COMPLETE != 0
    }

    /// The number of the list of tags with which a state is complete.
    pub fn outcome(&self, state: u32) -> u32 {
        self.exprs.outcome_number(self.states[(state & !COMPLETE) as usize])
    }

    #[cold]
    fn charge(&mut self) {
        self.left = BLOCK;
        if let Err(error) = self.exprs.charge(u64::from(BLOCK)) {
            self.failed.get_or_insert(error);
        }
    }

    #[cold]
    fn derive(&mut self, state: u32, byte: u8) -> u32 {
        if self.failed.is_some() {
            return DEAD;
        }
        let at = (state & !COMPLETE) as usize;
        match self.exprs.visit(self.states[at], byte) {
            Ok(next) => {
                let next = self.number(next);
                self.next[at << 8 | usize::from(byte)] = next;
                next
            }
            Err(error) => {
                self.failed = Some(error);
                DEAD
            }
        }
    }
}
