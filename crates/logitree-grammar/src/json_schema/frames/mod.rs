//! JSON values as states of the machine: made when a text reaches them, from the normal forms of the schema's goals.
//!
//! ```text
//! Composite(goal) --{--> Object(seen, counts) --,"key":--> Slot(goal of its value, next object) --value--> Object ...
//!                 --[--> Slot(goal of the first item, next array) --item--> Array --,--> Slot ...
//! ```
//!
//! A key is offered only if some value may follow it and the object can then be completed: nothing dead is handed out.
//! The naive version is the plain validator on the whole text (`tests/json_frames.rs`).
//!
//! Two keys that no schema names may be equal: a regular language cannot tell. Where keys are counted, both count.
//!
//! It refuses to know tokens, and what keywords mean: that is [`super::normal`]'s.

mod alive;
mod array;
mod board;
mod check;
mod describe;
mod lexemes;
mod numbers;
mod object;
mod others;
mod unique;
mod value;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::normal::{GoalId, ScalarId};
use super::schema::Schema;
use crate::earley::{StateEdges, StateId, StateSource, ValueSource};
use crate::expr::{Exprs, Tag};
use crate::{Error, ErrorKind, Result};
use array::ArrayState;
use board::Board;
use object::ObjectState;

/// The first of JSON's states.
const FIRST: StateId = StateId(1 << 31);
/// The end of a value.
const END: StateId = FIRST;
/// States of one [`Frames`] at most.
const MOST_STATES: usize = 1 << 24;

/// What a value stands for, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Label {
    /// The value of this key.
    Key(ScalarId),
    /// The value of a key that the schema does not name.
    OtherKey,
    /// An item.
    Item,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    /// The end of a value.
    End,
    /// A value that fulfils a goal, then the end.
    Value(GoalId),
    /// An array or object that fulfils a goal, then the end.
    Composite(GoalId),
    /// A value that fulfils a goal, then another state.
    Slot { goal: GoalId, next: StateId, label: Label },
    /// Any of these states.
    Either(Arc<[StateId]>),
    /// In an object, behind its bracket or a value.
    Object(ObjectState),
    /// In an array, behind an item.
    Array(ArrayState),
    /// In an array, before an item that differs from those before it.
    Differing(ArrayState, GoalId),
}

/// The states of all schemas, by number.
struct States {
    /// For each the schema it is of.
    all: Vec<(u32, State)>,
    ids: FxHashMap<(u32, State), StateId>,
}

impl States {
    fn id(&mut self, board: u32, state: State) -> Result<StateId> {
        let next = self.all.len();
        match self.ids.entry((board, state)) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(*known.get()),
            std::collections::hash_map::Entry::Vacant(_) if next >= MOST_STATES => {
                Err(Error::new(ErrorKind::Limit, format!("more than {MOST_STATES} states of JSON values")))
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                self.all.push(place.key().clone());
                Ok(*place.insert(StateId(FIRST.0 + next as u32)))
            }
        }
    }

    fn get(&self, id: StateId) -> (u32, &State) {
        let (board, state) = &self.all[(id.0 - FIRST.0) as usize];
        (*board, state)
    }
}

/// JSON values of one or more schemas, as a source of the machine's states.
pub struct Frames {
    boards: Vec<Board>,
    roots: FxHashMap<usize, Option<StateId>>,
    states: States,
}

impl Default for Frames {
    fn default() -> Self {
        Frames::new()
    }
}

impl Frames {
    /// No schema yet.
    pub fn new() -> Frames {
        let end = (0, State::End);
        let states = States { all: vec![end.clone()], ids: FxHashMap::from_iter([(end, END)]) };
        Frames { boards: Vec::new(), roots: FxHashMap::default(), states }
    }

    /// What was dropped because a schema is lenient, beside what its reader dropped.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.boards.iter().flat_map(|board| board.forms.warnings.iter().map(String::as_str))
    }
}

impl ValueSource for Frames {
    fn root(&mut self, schema: &Arc<Schema>, exprs: &mut Exprs) -> Result<Option<StateId>> {
        let key = Arc::as_ptr(schema) as usize;
        if let Some(&known) = self.roots.get(&key) {
            return Ok(known);
        }
        let number = self.boards.len() as u32;
        let mut board = Board::new(Arc::clone(schema), number, exprs)?;
        let goal = board.forms.goal(schema.root)?;
        let alive = board.alive(goal, exprs)?;
        board.check(goal, exprs)?;
        self.boards.push(board);
        let root = alive.then(|| self.states.id(number, State::Value(goal))).transpose()?;
        self.roots.insert(key, root);
        Ok(root)
    }
}

impl StateSource for Frames {
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges> {
        let (board, state) = self.states.get(state);
        if *state == State::End {
            return Ok(StateEdges { accepting: true, edges: Vec::new() });
        }
        let state = state.clone();
        self.boards[board as usize].edges(&state, &mut self.states, exprs)
    }

    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        let (board, state) = self.states.get(state);
        let state = state.clone();
        self.boards[board as usize].target(&state, edge, tag, &mut self.states, exprs)
    }

    fn describe(&self, state: StateId) -> String {
        let (board, state) = self.states.get(state);
        match self.boards.get(board as usize) {
            Some(board) => board.describe(state),
            None => "the end of the value".into(),
        }
    }
}
