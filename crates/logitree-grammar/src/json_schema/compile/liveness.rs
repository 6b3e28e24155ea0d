//! Decides whether a schema has a valid value and whether an object or array can be completed: the least fixpoint, found by
//! depth-first search. A schema that requires itself without end is empty.
//!
//! A positive answer depends only on proven facts and is always kept. A negative answer may depend on a query that is
//! still open and counted as negative; it is kept only if it does not.

use super::super::normalize::witness;
use super::super::normalize::{Facts, SchemaId, FALSE, TRUE};
use super::super::schema::{SchemaNode, TypeSet};
use super::array::ArrayState;
use super::object::ObjectState;
use super::rule_table::RuleTable;
use crate::expr::{Exprs, NOTHING};
use crate::{Error, ErrorKind, Result};
use logitree_automata::stack::with_call_room;

/// Maximum depth of open queries: two for each required part inside another.
const MAX_DEPTH: u32 = 10_000;
/// Maximum number of queries that one question leads to.
const MAX_ASKED: u64 = 1_000_000;

/// A liveness query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LivenessQuery {
    /// Whether some value fulfils it.
    Schema(SchemaId),
    /// Whether the object can be completed.
    Object(ObjectState),
    /// Whether the array can be completed.
    Array(ArrayState),
}

/// The state of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    Yes,
    No,
    /// Still open, at this depth.
    Open(u32),
}

impl RuleTable {
    /// Whether some value fulfils `schema`.
    pub(super) fn alive(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        match schema {
            TRUE => Ok(true),
            FALSE => Ok(false),
            _ => self.ask(LivenessQuery::Schema(schema), exprs),
        }
    }

    pub(super) fn ask(&mut self, query: LivenessQuery, exprs: &mut Exprs) -> Result<bool> {
        match self.verdicts.get(&query) {
            Some(Liveness::Yes) => return Ok(true),
            Some(Liveness::No) => return Ok(false),
            Some(&Liveness::Open(depth)) => {
                self.oldest_dependency = self.oldest_dependency.min(depth);
                return Ok(false);
            }
            None => {}
        }
        self.asked = if self.depth == 0 { 1 } else { self.asked + 1 };
        exprs.spend(8)?;
        if self.depth >= MAX_DEPTH || self.asked > MAX_ASKED {
            let message =
                "deciding whether the schema has a valid value takes too long: too many required parts are nested";
            return Err(Error::new(ErrorKind::Limit, message)
                .help("nest required properties and items less deeply, or drop limits on counts"));
        }
        let depth = self.depth;
        let waiting = std::mem::replace(&mut self.oldest_dependency, u32::MAX);
        self.verdicts.insert(query, Liveness::Open(depth));
        self.depth += 1;
        let answer = with_call_room(|| self.find_liveness(query, exprs));
        self.depth -= 1;
        let depends = self.oldest_dependency < depth;
        match answer {
            Ok(true) => self.verdicts.insert(query, Liveness::Yes),
            Ok(false) if !depends => self.verdicts.insert(query, Liveness::No),
            _ => self.verdicts.remove(&query),
        };
        let oldest_dependency =
            if depends && answer == Ok(false) { self.oldest_dependency } else { u32::MAX };
        self.oldest_dependency = waiting.min(oldest_dependency);
        answer
    }

    fn find_liveness(&mut self, query: LivenessQuery, exprs: &mut Exprs) -> Result<bool> {
        match query {
            LivenessQuery::Schema(schema) => self.schema_alive(schema, exprs),
            LivenessQuery::Object(state) => self.object_completes(state, exprs),
            LivenessQuery::Array(state) => self.array_completes(state, exprs),
        }
    }

    fn schema_alive(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(node) = self.forms.lone_node(schema) {
            if let SchemaNode::Keywords(keywords) = &self.forms.schema.nodes[node.index()] {
                if witness::has_value(keywords) {
                    return Ok(true);
                }
            }
        }
        let normal = self.forms.normal(schema, exprs)?;
        // Lexemes last: an automaton is expensive, and another type often decides.
        if normal.iter().any(|facts| self.forms.has_plain_value(facts)) {
            return Ok(true);
        }
        for facts in &*normal {
            if self.array_alive(facts, exprs)? || self.object_alive(facts, exprs)? {
                return Ok(true);
            }
        }
        Ok(self.scalars(schema, exprs)? != NOTHING)
    }

    /// Whether some array fulfils `facts`.
    pub(super) fn array_alive(&mut self, facts: &Facts, exprs: &mut Exprs) -> Result<bool> {
        if !facts.any_of(TypeSet::ARRAY) {
            return Ok(false);
        }
        let Some(array) = &facts.array else { return Ok(true) };
        if let Some(&(_, depth)) = self.building.iter().find(|(other, _)| *other == **array) {
            self.oldest_dependency = self.oldest_dependency.min(depth);
            return Ok(false);
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
