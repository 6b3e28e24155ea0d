//! What a grammar is to the machine: states, made when they are first asked for. It refuses to know who asks.

use super::super::expr::{ExprId, Exprs, Tag};
use crate::{id, Result};

id!(
    /// A state of a [`StateSource`].
    pub struct StateId
);

/// Where a lexeme leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LexemeTarget {
    /// LexemeTarget this state, whatever its tag.
    State(StateId),
    /// LexemeTarget what [`StateSource::target`] says of its tag.
    ByTag,
}

/// One way on from a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Text that matches `expr`.
    Lexeme {
        /// What matches. It may match the empty text.
        expr: ExprId,
        /// Where it leads.
        to: LexemeTarget,
    },
    /// What `callee` says until it accepts, then `back`.
    Call {
        /// Where it starts.
        callee: StateId,
        /// Where it goes on.
        back: StateId,
    },
    /// One whole token of a set of the grammar.
    Tokens {
        /// Which set.
        set: u32,
        /// Where it leads.
        to: StateId,
    },
    /// Nothing: `to` is as good as here.
    Jump {
        /// Where it leads.
        to: StateId,
    },
}

/// A state, seen from the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateEdges {
    /// Whether what called may go on from here.
    pub accepting: bool,
    /// The ways on.
    pub edges: Vec<Edge>,
}

/// A grammar as states. Everything handed out is productive: from every state some finite text leads to an accepting
/// one, and no lexeme is [`super::super::expr::NOTHING`]. That is what makes masks exact.
pub trait StateSource: Send {
    /// The ways on from `state`; the same answer at every call.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if making the state takes more than the fuel allows.
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges>;

    /// Where the lexeme `edge` (its place in the edges of `state`) leads when it is complete with `tag`.
    ///
    /// # Errors
    /// As [`StateSource::expand`].
    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId>;

    /// What stands at `state`, in a few words a person understands: "the value of \"age\"".
    fn describe(&self, state: StateId) -> String;
}
