//! The edges of states: what is written next, and where that leads. It refuses to decide what is alive.

use std::sync::Arc;

use super::super::normal::{spell, GoalId};
use super::super::schema::TypeSet;
use super::array::{ArrayState, Item};
use super::board::Board;
use super::object::ObjectState;
use super::{Label, State, States, END};
use crate::earley::{Edge, LexemeTarget, StateEdges, StateId};
use crate::expr::{ExprId, Exprs, Tag, NOTHING};
use crate::Result;

/// The tag of a closing bracket.
const CLOSE: Tag = 1;
/// The tag of what leads to the next item.
const ITEM: Tag = 2;
/// The tag of the first class of keys that are not named. They take even tags, the same in every object, so that the
/// automata of such keys are the same; named keys take odd ones.
const KEYS: Tag = 2;

fn tag_of(key: u32, named: u32) -> Tag {
    match key.checked_sub(named) {
        Some(other) => KEYS + 2 * other,
        None => KEYS + 2 * key + 1,
    }
}

fn key_of(tag: Tag, named: u32) -> u32 {
    let place = (tag - KEYS) / 2;
    if tag.is_multiple_of(2) {
        named + place
    } else {
        place
    }
}

/// An array or object that a goal allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Composite {
    Object(ObjectState),
    Array(ArrayState),
}

impl Board {
    /// The ways on from `state`.
    pub(super) fn edges(
        &mut self,
        state: &State,
        states: &mut States,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let mut edges = Vec::new();
        match *state {
            State::End => return Ok(StateEdges { accepting: true, edges }),
            State::Value(goal) => {
                let expr = self.scalars(goal, exprs)?;
                if expr != NOTHING {
                    edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(END) });
                }
                edges.extend(self.brackets(goal, states, exprs)?);
            }
            State::Composite(goal) => edges = self.brackets(goal, states, exprs)?,
            State::Slot { goal, next, .. } => {
                let expr = self.scalars(goal, exprs)?;
                if expr != NOTHING {
                    edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(next) });
                }
                if !self.composites(goal, exprs)?.is_empty() {
                    let callee = states.id(self.number, State::Composite(goal))?;
                    edges.push(Edge::Call { callee, back: next });
                }
            }
            State::Either(ref all) => edges.extend(all.iter().map(|&to| Edge::Jump { to })),
            State::Object(ref s) => {
                let expr = self.keys(s, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            State::Array(ref s) => {
                let expr = self.separator(s, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            State::Differing(next, goal) => {
                let expr = self.differing_lexeme(&Item { goal, next }, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Where the lexeme `edge` of `state` leads when it is complete with `tag`.
    pub(super) fn target(
        &mut self,
        state: &State,
        edge: u32,
        tag: Tag,
        states: &mut States,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        match *state {
            State::Object(_) | State::Array(_) if tag == CLOSE => Ok(END),
            State::Object(ref s) => {
                let named = self.objects[s.object as usize].keys.len() as u32;
                self.value_of(s, key_of(tag, named), states, exprs)
            }
            State::Array(ref s) => self.next_item(s, states, exprs),
            State::Differing(next, _) => {
                let next = self.with_used(next, tag);
                states.id(self.number, State::Array(next))
            }
            State::Value(goal) | State::Composite(goal) => {
                let scalars = matches!(state, State::Value(_)) && self.scalars(goal, exprs)? != NOTHING;
                let place = edge as usize - usize::from(scalars);
                match self.composites(goal, exprs)?[place] {
                    Composite::Array(_) if tag == CLOSE => Ok(END),
                    Composite::Array(s) => self.next_item(&s, states, exprs),
                    Composite::Object(s) => states.id(self.number, State::Object(s)),
                }
            }
            State::End | State::Slot { .. } | State::Either(_) => Ok(END),
        }
    }

    /// The values of `goal` that are no array and no object.
    pub(super) fn scalars(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<ExprId> {
        if let Some(&known) = self.scalars.get(&goal) {
            return Ok(known);
        }
        let mut all = Vec::new();
        for facts in &*self.forms.normal(goal, exprs)? {
            all.push(self.lexemes.scalars(&self.forms, facts, exprs)?);
        }
        let made = exprs.or(&all)?;
        self.scalars.insert(goal, made);
        Ok(made)
    }

    /// The arrays and objects of `goal` that some text completes.
    fn composites(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<Arc<[Composite]>> {
        if let Some(known) = self.composites.get(&goal) {
            return Ok(Arc::clone(known));
        }
        let mut found = Vec::new();
        for facts in &*self.forms.normal(goal, exprs)? {
            if facts.any_of(TypeSet::OBJECT) && self.object_alive(facts, exprs)? {
                let object = self.object_id(facts.object.as_ref(), exprs)?;
                found.push(Composite::Object(self.object_start(object)));
            }
            if facts.any_of(TypeSet::ARRAY) && self.array_alive(facts, exprs)? {
                let array = self.array_id(facts.array.as_ref(), exprs)?;
                found.push(Composite::Array(self.array_start(array)));
            }
        }
        found.dedup();
        let found: Arc<[Composite]> = found.into();
        self.composites.insert(goal, Arc::clone(&found));
        Ok(found)
    }

    /// The edges that open arrays and objects.
    fn brackets(&mut self, goal: GoalId, states: &mut States, exprs: &mut Exprs) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        for &composite in &*self.composites(goal, exprs)? {
            edges.push(match composite {
                Composite::Object(s) => {
                    let to = LexemeTarget::State(states.id(self.number, State::Object(s))?);
                    Edge::Lexeme { expr: exprs.bytes(b"{")?, to }
                }
                Composite::Array(s) => {
                    let inner = self.first_separator(&s, exprs)?;
                    let open = exprs.bytes(b"[")?;
                    Edge::Lexeme { expr: exprs.concat(&[open, inner])?, to: LexemeTarget::ByTag }
                }
            });
        }
        Ok(edges)
    }

    /// The closing bracket and the keys that may come in an object.
    fn keys(&mut self, s: &ObjectState, exprs: &mut Exprs) -> Result<ExprId> {
        let mut ways = Vec::new();
        if self.object_may_end(s) {
            ways.push(self.closing(b"}", exprs)?);
        }
        let mut named = Vec::new();
        for key in self.named_next(s) {
            if !self.moves(s, key, exprs)?.is_empty() {
                let id = self.objects[s.object as usize].keys[key as usize].id;
                let tail = self.key_end(s.object, key, exprs)?;
                named.push((spell(self.forms.texts.text(id), self.lexemes.ascii), tail));
            }
        }
        let texts: Vec<_> = named.iter().map(|(text, tail)| (text.as_slice(), *tail)).collect();
        let mut keys = vec![exprs.literals(&texts)?];
        if self.others_next(s) {
            let count = self.objects[s.object as usize].keys.len() as u32;
            let others = self.others(s.object, exprs)?;
            for (place, other) in others.iter().enumerate() {
                let key = count + place as u32;
                if !self.moves(s, key, exprs)?.is_empty() {
                    let text = self.lexemes.quoted(other.chars, exprs)?;
                    let tail = self.key_end(s.object, key, exprs)?;
                    keys.push(exprs.concat(&[text, tail])?);
                }
            }
        }
        let keys = exprs.or(&keys)?;
        let before = if s.first { self.lexemes.open } else { self.lexemes.comma };
        ways.push(exprs.concat(&[before, keys])?);
        exprs.or(&ways)
    }

    fn key_end(&mut self, object: u32, key: u32, exprs: &mut Exprs) -> Result<ExprId> {
        let named = self.objects[object as usize].keys.len() as u32;
        let tag = exprs.tag(tag_of(key, named))?;
        exprs.concat(&[self.lexemes.colon, tag])
    }

    fn closing(&mut self, bracket: &[u8], exprs: &mut Exprs) -> Result<ExprId> {
        let bracket = exprs.bytes(bracket)?;
        let tag = exprs.tag(CLOSE)?;
        exprs.concat(&[self.lexemes.close, bracket, tag])
    }

    /// The value of a key, then the rest of the object.
    fn value_of(
        &mut self,
        s: &ObjectState,
        key: u32,
        states: &mut States,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let label = match self.objects[s.object as usize].keys.get(key as usize) {
            Some(named) => Label::Key(named.id),
            None => Label::OtherKey,
        };
        let mut all = Vec::new();
        for way in self.moves(s, key, exprs)? {
            let next = states.id(self.number, State::Object(way.next))?;
            all.push(states.id(self.number, State::Slot { goal: way.goal, next, label })?);
        }
        self.either(all, states)
    }

    /// What stands behind an opening bracket: the first item follows, or nothing.
    fn first_separator(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<ExprId> {
        let before = self.lexemes.open;
        self.separated(s, before, exprs)
    }

    /// What stands behind an item: the next one follows, or nothing.
    fn separator(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<ExprId> {
        let before = self.lexemes.comma;
        self.separated(s, before, exprs)
    }

    fn separated(&mut self, s: &ArrayState, before: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
        let mut ways = Vec::new();
        if self.array_may_end(s) {
            ways.push(self.closing(b"]", exprs)?);
        }
        if !self.items(s, exprs)?.is_empty() {
            let tag = exprs.tag(ITEM)?;
            ways.push(exprs.concat(&[before, tag])?);
        }
        exprs.or(&ways)
    }

    /// The next item, then the rest of the array.
    fn next_item(&mut self, s: &ArrayState, states: &mut States, exprs: &mut Exprs) -> Result<StateId> {
        let apart = self.arrays[s.array as usize].unique.as_ref().is_some_and(|u| u.concerns(s.index));
        let mut all = Vec::new();
        for Item { goal, next } in self.items(s, exprs)? {
            if apart {
                all.push(states.id(self.number, State::Differing(next, goal))?);
                continue;
            }
            let next = states.id(self.number, State::Array(next))?;
            all.push(states.id(self.number, State::Slot { goal, next, label: Label::Item })?);
        }
        self.either(all, states)
    }

    fn either(&mut self, mut all: Vec<StateId>, states: &mut States) -> Result<StateId> {
        all.sort_unstable();
        all.dedup();
        match *all {
            [one] => Ok(one),
            _ => states.id(self.number, State::Either(all.into())),
        }
    }
}
