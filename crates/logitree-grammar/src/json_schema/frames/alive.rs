//! Whether some value fulfils a goal, and whether an object or array can be completed: the least fixpoint over all of
//! them, found by a search in depth. A schema that needs itself for ever is empty.
//!
//! "Yes" is proven by what was found before it, so it is always kept. "No" may lean on something that is still being
//! looked at and was taken as "no" there; it is kept only where it does not.

use super::super::normal::plain;
use super::super::normal::{Facts, GoalId, FALSE, TRUE};
use super::super::schema::{SchemaNode, TypeSet};
use super::array::ArrayState;
use super::board::Board;
use super::object::ObjectState;
use crate::expr::{Exprs, NOTHING};
use crate::{Error, ErrorKind, Result};

/// Questions that wait for each other at most.
const MOST_DEPTH: u32 = 300;
/// Questions at most, of one schema.
const MOST_ASKED: u64 = 1_000_000;

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Query {
    /// Whether some value fulfils it.
    Goal(GoalId),
    /// Whether the object can be completed.
    Object(ObjectState),
    /// Whether the array can be completed.
    Array(ArrayState),
}

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Yes,
    No,
    /// It is being looked at, this deep.
    Open(u32),
}

impl Board {
    /// Whether some value fulfils `goal`.
    pub(super) fn alive(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<bool> {
        match goal {
            TRUE => Ok(true),
            FALSE => Ok(false),
            _ => self.ask(Query::Goal(goal), exprs),
        }
    }

    pub(super) fn ask(&mut self, query: Query, exprs: &mut Exprs) -> Result<bool> {
        match self.verdicts.get(&query) {
            Some(Verdict::Yes) => return Ok(true),
            Some(Verdict::No) => return Ok(false),
            Some(&Verdict::Open(depth)) => {
                self.lowest = self.lowest.min(depth);
                return Ok(false);
            }
            None => {}
        }
        self.asked += 1;
        if self.depth >= MOST_DEPTH || self.asked > MOST_ASKED {
            let message =
                "whether some value is valid takes too long to find out: too much requires each other";
            return Err(Error::new(ErrorKind::Limit, message)
                .help("nest required properties and items less deeply, or drop limits on counts"));
        }
        let depth = self.depth;
        let waiting = std::mem::replace(&mut self.lowest, u32::MAX);
        self.verdicts.insert(query, Verdict::Open(depth));
        self.depth += 1;
        let answer = match query {
            Query::Goal(goal) => self.goal_alive(goal, exprs),
            Query::Object(state) => self.object_completes(state, exprs),
            Query::Array(state) => self.array_completes(state, exprs),
        };
        self.depth -= 1;
        let leans = self.lowest < depth;
        match answer {
            Ok(true) => self.verdicts.insert(query, Verdict::Yes),
            Ok(false) if !leans => self.verdicts.insert(query, Verdict::No),
            _ => self.verdicts.remove(&query),
        };
        let lowest = if leans && answer == Ok(false) { self.lowest } else { u32::MAX };
        self.lowest = waiting.min(lowest);
        answer
    }

    fn goal_alive(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(node) = self.forms.lone_node(goal) {
            if let SchemaNode::Keywords(keywords) = &self.forms.schema.nodes[node as usize] {
                if plain::has_value(keywords) {
                    return Ok(true);
                }
            }
        }
        let normal = self.forms.normal(goal, exprs)?;
        // Lexemes last: an automaton is dear, and another type often decides.
        if normal.iter().any(|facts| self.forms.has_plain_value(facts)) {
            return Ok(true);
        }
        for facts in &*normal {
            if self.array_alive(facts, exprs)? || self.object_alive(facts, exprs)? {
                return Ok(true);
            }
        }
        Ok(self.scalars(goal, exprs)? != NOTHING)
    }

    /// Whether some array fulfils `facts`.
    pub(super) fn array_alive(&mut self, facts: &Facts, exprs: &mut Exprs) -> Result<bool> {
        if !facts.any_of(TypeSet::ARRAY) {
            return Ok(false);
        }
        if facts.array.is_none() {
            return Ok(true);
        }
        let array = self.array_id(facts.array.as_ref(), exprs)?;
        let start = self.array_start(array);
        self.array_can_complete(start, exprs)
    }

    /// Whether some object fulfils `facts`.
    pub(super) fn object_alive(&mut self, facts: &Facts, exprs: &mut Exprs) -> Result<bool> {
        if !facts.any_of(TypeSet::OBJECT) {
            return Ok(false);
        }
        if facts.object.is_none() {
            return Ok(true);
        }
        let object = self.object_id(facts.object.as_ref(), exprs)?;
        let start = self.object_start(object);
        self.object_can_complete(start, exprs)
    }
}
