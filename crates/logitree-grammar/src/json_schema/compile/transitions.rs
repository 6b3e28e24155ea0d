//! The edges of states: the lexeme that comes next and the state after it.

use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::normalize::{ScalarId, SchemaId};
use super::super::schema::TypeSet;
use super::array::{ArrayState, NextItem};
use super::object::ObjectState;
use super::pairs::PairState;
use super::rule_table::RuleTable;
use super::unique::UniqueItems;
use super::{JsonState, JsonStates, MemberLabel, END};
use crate::earley::{Edge, LexemeTarget, StateEdges, StateId};
use crate::expr::{ExprId, Exprs, Tag, NOTHING};
use crate::Result;

/// The tag of a closing bracket.
pub(super) const CLOSE: Tag = 1;
/// The tag that leads to the next item.
const ITEM: Tag = 2;
/// The tag of the first class of keys that are not named. They take even tags, the same in every object, so that the
/// automata of such keys are the same; named keys take odd ones.
const KEYS: Tag = 2;

/// The tags of named keys. A key has the same tag in every object, and in most schemas: objects that allow the same keys next
/// share one lexeme, and its tables.
#[derive(Default)]
pub(super) struct KeyTags {
    of: FxHashMap<ScalarId, Tag>,
    keys: FxHashMap<Tag, ScalarId>,
    /// The last tag that was given to a key whose own was taken.
    spare: Tag,
}

impl KeyTags {
    /// The tag of the key `id`, which is spelled so.
    pub(super) fn tag(&mut self, id: ScalarId, text: &str) -> Tag {
        if let Some(&known) = self.of.get(&id) {
            return known;
        }
        let mut tag = FxBuildHasher.hash_one(text) as Tag | CLOSE;
        while tag == CLOSE || self.keys.contains_key(&tag) {
            self.spare += 2;
            tag = self.spare | CLOSE;
        }
        self.of.insert(id, tag);
        self.keys.insert(tag, id);
        tag
    }
}

/// An array or object that a schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Composite {
    Object(ObjectState),
    Array(ArrayState),
}

impl RuleTable {
    /// The edges of `state`.
    pub(super) fn edges(
        &mut self,
        state: &JsonState,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let mut edges = Vec::new();
        match *state {
            JsonState::End => return Ok(StateEdges { accepting: true, edges }),
            JsonState::Root => {
                let to = states.id(self.number, self.root()?)?;
                edges.push(Edge::Jump { to });
            }
            JsonState::Document(schema) if self.forms.schema.options.pairs.is_some() => {
                return self.pairs_document(schema, states, exprs);
            }
            JsonState::Document(schema) => {
                let next = states.id(self.number, JsonState::Margin)?;
                let whole = JsonState::Member { schema, next, label: MemberLabel::Whole };
                let to = states.id(self.number, whole)?;
                edges.push(Edge::Jump { to });
                edges.extend(self.margin(to));
            }
            JsonState::Margin => {
                return Ok(StateEdges { accepting: true, edges: self.margin(END).into_iter().collect() });
            }
            JsonState::Value(schema) => {
                let expr = self.scalars(schema, exprs)?;
                if expr != NOTHING {
                    edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(END) });
                }
                edges.extend(self.brackets(schema, states, exprs)?);
            }
            JsonState::Composite(schema) => edges = self.brackets(schema, states, exprs)?,
            JsonState::Member { schema, next, .. } => {
                let expr = self.scalars(schema, exprs)?;
                if expr != NOTHING {
                    edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(next) });
                }
                if !self.composites(schema, exprs)?.is_empty() {
                    let callee = states.id(self.number, JsonState::Composite(schema))?;
                    edges.push(Edge::Call { callee, back: next });
                }
            }
            JsonState::Either(ref all) => edges.extend(all.iter().map(|&to| Edge::Jump { to })),
            JsonState::Object(ref s) => {
                let expr = self.keys(s, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            JsonState::Array(ref s) => {
                let expr = self.separator(s, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            JsonState::Differing(next, schema) => {
                let expr = self.differing_lexeme(&NextItem { schema, next }, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            JsonState::Remembered(place, schema) => {
                return self.remembered_edges(place, schema, states, exprs)
            }
            JsonState::RememberedPart(partial) => return self.part_edges(partial, states, exprs),
            JsonState::Reading(..) => {}
            JsonState::Paired(state) => return self.pair_edges(state, states, exprs),
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// White space before or after the whole value.
    pub(super) fn margin(&self, to: StateId) -> Option<Edge> {
        self.lexemes.margin.map(|expr| Edge::Lexeme { expr, to: LexemeTarget::State(to) })
    }

    /// Where the lexeme `edge` of `state` leads when it is complete with `tag`.
    pub(super) fn target(
        &mut self,
        state: &JsonState,
        edge: u32,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        match *state {
            JsonState::Object(_) | JsonState::Array(_) if tag == CLOSE => Ok(END),
            JsonState::Object(ref s) => self.value_of(s, self.key_of(s.object, tag), states, exprs),
            JsonState::Array(ref s) => self.next_item(s, states, exprs),
            JsonState::Differing(next, _) => {
                let next = self.with_used(next, tag);
                states.id(self.number, JsonState::Array(next))
            }
            JsonState::Value(schema) | JsonState::Composite(schema) => {
                let scalars = matches!(state, JsonState::Value(_)) && self.scalars(schema, exprs)? != NOTHING;
                let place = edge as usize - usize::from(scalars);
                let composite = self.composites(schema, exprs)?[place];
                self.opened(composite, tag, states, exprs)
            }
            JsonState::Paired(PairState::Only(composite)) => self.opened(composite, tag, states, exprs),
            JsonState::Paired(PairState::Pairs(ref s) | PairState::Key(ref s)) => {
                self.pair_of(s, self.key_of(s.object, tag), states, exprs)
            }
            JsonState::Remembered(place, schema) => {
                self.remembered_target((place, schema), edge, tag, states, exprs)
            }
            JsonState::RememberedPart(partial) => self.part_target(partial, tag, states, exprs),
            JsonState::End
            | JsonState::Root
            | JsonState::Document(_)
            | JsonState::Margin
            | JsonState::Member { .. }
            | JsonState::Either(_)
            | JsonState::Reading(..)
            | JsonState::Paired(_) => Ok(END),
        }
    }

    /// The state after the bracket that opens an array or object.
    fn opened(
        &mut self,
        composite: Composite,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        match composite {
            Composite::Array(_) if tag == CLOSE => Ok(END),
            Composite::Array(s) => self.next_item(&s, states, exprs),
            Composite::Object(s) => states.id(self.number, JsonState::Object(s)),
        }
    }

    /// The values of `schema` other than arrays and objects.
    pub(super) fn scalars(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<ExprId> {
        if let Some(&known) = self.scalars.get(&schema) {
            return Ok(known);
        }
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            all.push(self.lexemes.scalars(&self.forms, facts, None, exprs)?);
        }
        let made = exprs.or(&all)?;
        self.scalars.insert(schema, made);
        Ok(made)
    }

    /// The arrays and objects of `schema` that can be completed.
    pub(super) fn composites(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Arc<[Composite]>> {
        if let Some(known) = self.composites.get(&schema) {
            return Ok(Arc::clone(known));
        }
        let mut found = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
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
        self.share_names(found.iter().filter_map(|composite| match composite {
            Composite::Object(s) => Some(s.object),
            Composite::Array(_) => None,
        }));
        let found: Arc<[Composite]> = found.into();
        // What depends on an open query is not kept.
        if self.depth == 0 {
            self.composites.insert(schema, Arc::clone(&found));
        }
        Ok(found)
    }

    /// The edges that open arrays and objects.
    fn brackets(
        &mut self,
        schema: SchemaId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        for &composite in &*self.composites(schema, exprs)? {
            edges.push(self.bracket(composite, states, exprs)?);
        }
        Ok(edges)
    }

    pub(super) fn bracket(
        &mut self,
        composite: Composite,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Edge> {
        Ok(match composite {
            Composite::Object(s) => {
                let to = LexemeTarget::State(states.id(self.number, JsonState::Object(s))?);
                Edge::Lexeme { expr: exprs.bytes(b"{")?, to }
            }
            Composite::Array(s) => {
                let inner = self.first_separator(&s, exprs)?;
                let open = exprs.bytes(b"[")?;
                Edge::Lexeme { expr: exprs.concat(&[open, inner])?, to: LexemeTarget::ByTag }
            }
        })
    }

    /// The closing bracket and the keys that may come in an object.
    fn keys(&mut self, s: &ObjectState, exprs: &mut Exprs) -> Result<ExprId> {
        let mut ways = Vec::new();
        if self.object_may_end(s) {
            ways.push(self.closing(b"}", exprs)?);
        }
        let mut named = Vec::new();
        for key in self.named_next(s) {
            if self.may_move(s, key, exprs)? {
                named.push(key);
            }
        }
        let mut keys = Vec::new();
        let mut foreign: Arc<[ScalarId]> = Arc::new([]);
        if self.others_next(s) {
            let count = self.objects[s.object as usize].keys.len() as u32;
            let others = self.others(s.object, exprs)?;
            for (place, other) in others.iter().enumerate() {
                let key = count + place as u32;
                if self.may_move(s, key, exprs)? {
                    let mut chars = other.chars;
                    if others.len() == 1 && !self.objects[s.object as usize].foreign.is_empty() {
                        foreign = Arc::clone(&self.objects[s.object as usize].foreign);
                        chars = self.beside_foreign(s.object, exprs)?;
                    }
                    let text = self.lexemes.in_quotes(chars, exprs)?;
                    let tail = self.key_end(s.object, key, exprs)?;
                    keys.push(exprs.concat(&[text, tail])?);
                }
            }
        }
        let named = named.into_iter().map(|key| self.objects[s.object as usize].keys[key as usize].id);
        let named: Vec<ScalarId> = named.chain(foreign.iter().copied()).collect();
        let mut texts = Vec::with_capacity(named.len());
        for &id in &named {
            let tail = self.named_end(id, exprs)?;
            texts.extend(self.lexemes.spelled(self.forms.texts.text(id)).map(|text| (text, tail)));
        }
        keys.insert(0, listed(&texts, exprs)?);
        let keys = exprs.or(&keys)?;
        let before = if s.first { self.lexemes.open } else { self.lexemes.comma };
        ways.push(exprs.concat(&[before, keys])?);
        exprs.or(&ways)
    }

    /// These named keys of an object that is remembered, each with its colon and tag.
    pub(super) fn named_lexeme(&mut self, object: u32, keys: &[u32], exprs: &mut Exprs) -> Result<ExprId> {
        let mut texts = Vec::with_capacity(keys.len());
        for &key in keys {
            let id = self.objects[object as usize].keys[key as usize].id;
            let tail = self.named_end(id, exprs)?;
            texts.extend(self.lexemes.written(self.forms.texts.text(id)).map(|text| (text, tail)));
        }
        listed(&texts, exprs)
    }

    /// The colon and the tag of a key; `key` counts the named keys, then the others.
    pub(super) fn key_end(&mut self, object: u32, key: u32, exprs: &mut Exprs) -> Result<ExprId> {
        let keys = &self.objects[object as usize].keys;
        if let Some(named) = keys.get(key as usize) {
            return self.named_end(named.id, exprs);
        }
        let tag = exprs.tag(self.other_key_tag(object, key))?;
        exprs.concat(&[self.lexemes.colon, tag])
    }

    /// The tag of a key that no name is for.
    pub(super) fn other_key_tag(&self, object: u32, key: u32) -> Tag {
        KEYS + 2 * (key - self.objects[object as usize].keys.len() as u32)
    }

    /// The colon and the tag of a key that some object names.
    fn named_end(&mut self, id: ScalarId, exprs: &mut Exprs) -> Result<ExprId> {
        let tag = exprs.tag(self.key_tags.tag(id, self.forms.texts.text(id)))?;
        exprs.concat(&[self.lexemes.colon, tag])
    }

    /// The key of an object that a tag is of; it counts the named keys, then the others.
    pub(super) fn key_of(&self, object: u32, tag: Tag) -> u32 {
        let object = &self.objects[object as usize];
        if tag.is_multiple_of(2) {
            return object.keys.len() as u32 + (tag - KEYS) / 2;
        }
        // A foreign key is one of the others.
        object.places.get(&self.key_tags.keys[&tag]).copied().unwrap_or(object.keys.len() as u32)
    }

    pub(super) fn closing(&mut self, bracket: &[u8], exprs: &mut Exprs) -> Result<ExprId> {
        let bracket = exprs.bytes(bracket)?;
        let tag = exprs.tag(CLOSE)?;
        exprs.concat(&[self.lexemes.close, bracket, tag])
    }

    /// The value of a key, then the rest of the object.
    fn value_of(
        &mut self,
        s: &ObjectState,
        key: u32,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let label = match self.objects[s.object as usize].keys.get(key as usize) {
            Some(named) => MemberLabel::Key(named.id),
            None => MemberLabel::OtherKey,
        };
        let mut all = Vec::new();
        for way in self.moves(s, key, exprs)? {
            let next = states.id(self.number, JsonState::Object(way.next))?;
            all.push(states.id(self.number, JsonState::Member { schema: way.schema, next, label })?);
        }
        self.either(all, states)
    }

    /// What follows an opening bracket: the first item, or the closing bracket.
    fn first_separator(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<ExprId> {
        let before = self.lexemes.open;
        self.separated(s, before, exprs)
    }

    /// What follows an item: the next item, or the closing bracket.
    fn separator(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<ExprId> {
        let before = self.lexemes.comma;
        self.separated(s, before, exprs)
    }

    fn separated(&mut self, s: &ArrayState, before: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
        let items = !self.items(s, exprs)?.is_empty();
        self.separator_of(before, self.array_may_end(s), items, exprs)
    }

    /// The closing bracket, or the next item after `before`, as far as they may come.
    pub(super) fn separator_of(
        &mut self,
        before: ExprId,
        may_end: bool,
        items: bool,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let mut ways = Vec::new();
        if may_end {
            ways.push(self.closing(b"]", exprs)?);
        }
        if items {
            let tag = exprs.tag(ITEM)?;
            ways.push(exprs.concat(&[before, tag])?);
        }
        exprs.or(&ways)
    }

    /// The next item, then the rest of the array.
    fn next_item(&mut self, s: &ArrayState, states: &mut JsonStates, exprs: &mut Exprs) -> Result<StateId> {
        let unique = self.arrays[s.array as usize].unique.as_ref();
        let apart = unique.filter(|unique| unique.concerns(s.index)).map(UniqueItems::remembers);
        let mut all = Vec::new();
        for item in self.items(s, exprs)? {
            let NextItem { schema, next } = item;
            let state = match apart {
                Some(true) => self.remembered_item(&item),
                Some(false) => JsonState::Differing(next, schema),
                None => {
                    let next = states.id(self.number, JsonState::Array(next))?;
                    JsonState::Member { schema, next, label: MemberLabel::Item }
                }
            };
            all.push(states.id(self.number, state)?);
        }
        self.either(all, states)
    }

    pub(super) fn either(&mut self, mut all: Vec<StateId>, states: &mut JsonStates) -> Result<StateId> {
        all.sort_unstable();
        all.dedup();
        match *all {
            [one] => Ok(one),
            _ => states.id(self.number, JsonState::Either(all.into())),
        }
    }
}

/// Texts, each with what follows it.
fn listed(texts: &[(Vec<u8>, ExprId)], exprs: &mut Exprs) -> Result<ExprId> {
    let texts: Vec<_> = texts.iter().map(|(text, tail)| (text.as_slice(), *tail)).collect();
    exprs.literals(&texts)
}
