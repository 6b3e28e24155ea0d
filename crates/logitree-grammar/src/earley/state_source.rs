//! The interface between a grammar and the recogniser: states that are expanded on demand.

use super::super::expr::{ExprId, Exprs, Tag};
use crate::{id, Result};

id!(
    /// A state of a [`StateSource`].
    pub struct StateId
);

/// Where a lexeme leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LexemeTarget {
    /// This state, whatever the tag.
    State(StateId),
    /// The state that [`StateSource::target`] gives for the tag.
    ByTag,
    /// What the text leads to. The lexeme is read from this state on: [`StateSource::read`] gives the state after each of
    /// its bytes, and [`StateSource::finish`] the target when it is complete. Other lexemes cost nothing more for it.
    Read(StateId),
}

/// A transition of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// A string that matches `expr`.
    Lexeme {
        /// The lexeme. It may be nullable.
        expr: ExprId,
        /// The target.
        to: LexemeTarget,
    },
    /// A string that matches `expr`, which ends as soon as it can after so many tokens ([`Machine::end_token`]).
    ///
    /// [`Machine::end_token`]: super::Machine::end_token
    Counted {
        /// The lexeme.
        expr: ExprId,
        /// The target.
        to: StateId,
        /// How many tokens.
        most: u32,
    },
    /// Runs `callee` until it accepts, then continues at `back`.
    Call {
        /// The callee's start state.
        callee: StateId,
        /// The state to resume at.
        back: StateId,
    },
    /// One whole token of a set of the grammar.
    Tokens {
        /// The index of the set.
        set: u32,
        /// The target state.
        to: StateId,
    },
    /// An epsilon transition.
    Jump {
        /// The target state.
        to: StateId,
    },
}

/// An expanded state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateEdges {
    /// Whether the caller may resume here.
    pub accepting: bool,
    /// The transitions.
    pub edges: Vec<Edge>,
}

/// Which texts of a lexeme that is read lead to states that allow the same, up to the next lexeme that depends on the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SameAfter {
    /// All.
    All,
    /// All but these; the rest is given.
    AllBut(Vec<Vec<u8>>),
    /// Perhaps none.
    Unknown,
}

impl SameAfter {
    /// What is the same for both.
    #[must_use]
    pub fn and(self, other: SameAfter) -> SameAfter {
        match (self, other) {
            (SameAfter::All, one) | (one, SameAfter::All) => one,
            (SameAfter::AllBut(mut texts), SameAfter::AllBut(more)) => {
                texts.extend(more);
                SameAfter::AllBut(texts)
            }
            _ => SameAfter::Unknown,
        }
    }
}

/// A grammar as states. Every state is productive: some finite string leads from it to an accepting state, and
/// no lexeme is [`super::super::expr::NOTHING`]. This makes masks exact.
pub trait StateSource: Send {
    /// Expands `state`; the result is the same at every call.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if it takes more than the fuel allows.
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges>;

    /// The target of the lexeme `edge` (its index in the edges of `state`) when it is complete with `tag`.
    ///
    /// # Errors
    /// As [`StateSource::expand`].
    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId>;

    /// The state after `byte` in a lexeme that leads to [`LexemeTarget::Read`]. The default forgets the text.
    ///
    /// # Errors
    /// As [`StateSource::expand`].
    fn read(&mut self, state: StateId, _byte: u8) -> Result<StateId> {
        Ok(state)
    }

    /// The target of a lexeme that was read up to `state` and is complete with `tag`.
    ///
    /// # Errors
    /// As [`StateSource::expand`].
    fn finish(&mut self, state: StateId, _tag: Tag, _exprs: &mut Exprs) -> Result<StateId> {
        Ok(state)
    }

    /// A state that allows everything that [`StateSource::finish`] may lead to, whatever text is read up to `state` and
    /// from there on; and for which texts that is all the same.
    ///
    /// # Errors
    /// As [`StateSource::expand`].
    fn finish_any(&mut self, state: StateId, tag: Tag, exprs: &mut Exprs) -> Result<(StateId, SameAfter)> {
        Ok((self.finish(state, tag, exprs)?, SameAfter::All))
    }

    /// Whether the lexeme that leads to `state`, or is read from there on, is the same whatever texts were read before that
    /// [`StateSource::finish_any`] calls the same. What follows the lexeme may differ.
    fn is_same_lexeme(&self, _state: StateId) -> bool {
        true
    }

    /// Whether there is a lexeme that counts tokens.
    fn counts_tokens(&self) -> bool {
        false
    }

    /// Whether some state has a temperature.
    fn has_temperatures(&self) -> bool {
        false
    }

    /// The temperature of the part that `state` waits for: all that runs before it is entered has it.
    fn temperature(&self, _state: StateId) -> Option<f32> {
        None
    }

    /// About how many bytes the states hold that are made while a text is read.
    fn byte_size(&self) -> usize {
        0
    }

    /// A short description of `state` for people: "the value of \"age\"".
    fn describe(&self, state: StateId) -> String;
}
