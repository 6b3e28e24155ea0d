//! Intersections inside of rules: their states, numbered together.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::{Exprs, Tag};
use super::super::rules::Intersected;
use super::intersection::{intersect, Common, Intersection};
use super::{Edge, LexemeTarget, RulesSource, StateEdges, StateId, StateSource, ValueSource};
use crate::{Error, ErrorKind, Result};

/// The first state of an intersection; those of JSON values come after all of them.
pub(super) const FIRST: StateId = StateId(1 << 30);
/// States that intersections may have together.
const MAX_STATES: usize = 1 << 24;

/// The intersections of some rules.
#[derive(Default)]
pub(super) struct Embedded {
    sources: Vec<Intersection>,
    /// By the address of what is intersected, which the roots keep alive: the first state, and whether there is an empty
    /// text.
    roots: FxHashMap<usize, (Option<StateId>, bool)>,
    kept: Vec<Arc<Intersected>>,
    /// For each state its source, and its number there.
    states: Vec<(u32, StateId)>,
    ids: FxHashMap<(u32, StateId), StateId>,
}

impl Embedded {
    /// The first state of the non-empty texts of both, `None` if there are none; and whether the empty text is in both.
    ///
    /// # Errors
    /// As [`intersect`], and those of the rules.
    pub fn root(
        &mut self,
        both: &Arc<Intersected>,
        exprs: &mut Exprs,
        json: Option<Box<dyn ValueSource>>,
    ) -> Result<(Option<StateId>, bool)> {
        let key = Arc::as_ptr(both) as usize;
        if let Some(&known) = self.roots.get(&key) {
            return Ok(known);
        }
        let common = match RulesSource::productive(&both.rules, exprs, json)? {
            Some(rules) => intersect(rules, &both.regex, exprs)?,
            None => Common { texts: None, empty: false },
        };
        let mut start = None;
        if let Some((source, first)) = common.texts {
            self.sources.push(source);
            start = Some(self.id(self.sources.len() as u32 - 1, first)?);
        }
        self.kept.push(Arc::clone(both));
        self.roots.insert(key, (start, common.empty));
        Ok((start, common.empty))
    }

    fn id(&mut self, source: u32, state: StateId) -> Result<StateId> {
        if let Some(&known) = self.ids.get(&(source, state)) {
            return Ok(known);
        }
        if self.states.len() >= MAX_STATES {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("more than {MAX_STATES} states of intersections"),
            ));
        }
        let id = StateId::new(FIRST.index() + self.states.len());
        self.states.push((source, state));
        self.ids.insert((source, state), id);
        Ok(id)
    }

    fn at(&self, state: StateId) -> Result<(u32, StateId)> {
        let place = state.index().checked_sub(FIRST.index());
        place.and_then(|place| self.states.get(place).copied()).ok_or_else(|| {
            Error::new(ErrorKind::Constraint, format!("state {} belongs to no intersection", state.0))
        })
    }

    /// As [`StateSource::expand`].
    ///
    /// # Errors
    /// As [`StateSource::expand`].
    pub fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges> {
        let (source, inner) = self.at(state)?;
        let StateEdges { accepting, mut edges } = self.sources[source as usize].expand(inner, exprs)?;
        for edge in &mut edges {
            match edge {
                Edge::Jump { to } | Edge::Tokens { to, .. } | Edge::Counted { to, .. } => {
                    *to = self.id(source, *to)?;
                }
                Edge::Call { callee, back } => {
                    *callee = self.id(source, *callee)?;
                    *back = self.id(source, *back)?;
                }
                Edge::Lexeme { to: LexemeTarget::State(to) | LexemeTarget::Read(to), .. } => {
                    *to = self.id(source, *to)?;
                }
                Edge::Lexeme { to: LexemeTarget::ByTag, .. } => {}
            }
        }
        Ok(StateEdges { accepting, edges })
    }

    /// As [`StateSource::target`].
    ///
    /// # Errors
    /// As [`StateSource::target`].
    pub fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        let (source, inner) = self.at(state)?;
        let to = self.sources[source as usize].target(inner, edge, tag, exprs)?;
        self.id(source, to)
    }

    /// As [`StateSource::byte_size`].
    pub fn byte_size(&self) -> usize {
        let inside: usize = self.sources.iter().map(StateSource::byte_size).sum();
        inside + self.states.len() * 32
    }

    /// As [`StateSource::describe`].
    pub fn describe(&self, state: StateId) -> String {
        match self.at(state) {
            Ok((source, inner)) => self.sources[source as usize].describe(inner),
            Err(_) => "the end of the text".into(),
        }
    }
}
