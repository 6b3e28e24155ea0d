//! Items that must differ, while they are written: what was written so far is part of the state.
//!
//! ```text
//! array with unique items --item--> Remembered(slot, schema): a value that is read, then remembered
//!     a scalar    one lexeme without the forbidden values; its text is read
//!     [ or {      RememberedPart(frame): an array or object whose parts are remembered in turn; no calls
//! ```
//!
//! A slot is a place for a value, and knows which values it must not have: those after which nothing could be completed
//! without a repetition. For an item of an outermost array these are the items before it. For a part of an array or object
//! that is written in such a place, they are the parts that a forbidden value has there, if nothing else could follow.
//!
//! The naive version is the plain validator on the whole text (`json_schema/tests/rules.rs`).

mod same_after;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::normalize::SchemaId;
use super::array::{ArrayState, NextItem};
use super::lexemes::{spellings, LeftOut};
use super::object::ObjectState;
use super::rule_table::{Interner, RuleTable};
use super::transitions::{Composite, CLOSE};
use super::unique::UniqueItems;
use super::values::{member, JsonValue, TextId, TextTable, ValueId, ValueSets, ValueTable};
use super::{JsonState, JsonStates};
use crate::earley::{Edge, LexemeTarget, StateEdges, StateId};
use crate::expr::{ExprId, Exprs, Tag, NOTHING};
use crate::{id, Error, ErrorKind, Result};

id!(
    /// A [`Slot`].
    pub(super) struct SlotId
);
id!(
    /// A [`Frame`].
    pub(super) struct FrameId
);

/// Maximum number of values of one array that are remembered.
const MAX_REMEMBERED: usize = 1_024;
/// Maximum depth of searches for a value that differs from others.
const MAX_DEPTH: u32 = 200;
/// Forbidden values are excluded in groups of so many, so that one more value changes one small group.
const GROUPS: [usize; 2] = [256, 16];

/// Where a value that is remembered is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    /// An item of an array that no remembered value contains; the array after it, the item not remembered yet.
    Item(ArrayState),
    /// A part of a remembered array or object: before it, its key, and the position after it.
    Part { of: FrameId, key: Option<ValueId>, next: Position },
}

/// A position in an array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Position {
    Array(ArrayState),
    Object(ObjectState),
}

/// An array or object of which some parts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    /// What it will fill.
    slot: SlotId,
    position: Position,
    /// The array or object of the parts; `None` if not all are known.
    parts: Option<ValueId>,
}

/// What is remembered of the values that are written.
#[derive(Default)]
pub(super) struct Memory {
    pub values: ValueTable,
    texts: TextTable,
    pub sets: ValueSets,
    slots: Interner<Slot>,
    frames: Interner<Frame>,
    forbidden: FxHashMap<SlotId, Arc<[ValueId]>>,
    /// Whether frames can be completed to a value that is not forbidden.
    live: FxHashMap<FrameId, bool>,
    /// The languages of groups of numbers or strings.
    groups: FxHashMap<Box<[ValueId]>, ExprId>,
    /// Whether schemas have more values than can be forbidden.
    pub plentiful: FxHashMap<SchemaId, bool>,
    /// Whether objects can be completed in more ways than can be forbidden, whatever named key is written first.
    roomy: FxHashMap<u32, bool>,
    /// The scalars of a schema where nothing is forbidden.
    free_scalars: FxHashMap<SchemaId, ExprId>,
    /// The keys of an object where nothing is forbidden, by its state and the keys that were written.
    free_keys: FxHashMap<(ObjectState, ValueId), [ExprId; 2]>,
    depth: u32,
    bytes: usize,
}

impl Memory {
    /// About how many bytes it holds.
    pub(super) fn byte_size(&self) -> usize {
        self.values.byte_size()
            + self.texts.byte_size()
            + self.sets.byte_size()
            + self.slots.byte_size()
            + self.frames.byte_size()
            + self.bytes
    }

    /// The text after one more byte.
    pub(super) fn read(&mut self, text: TextId, byte: u8) -> Result<TextId> {
        self.texts.with(text, byte)
    }

    fn slot_id(&mut self, slot: Slot) -> SlotId {
        SlotId(self.slots.id(slot))
    }

    fn slot(&self, id: SlotId) -> Slot {
        *self.slots.get(id.0)
    }

    fn frame_id(&mut self, frame: Frame) -> FrameId {
        FrameId(self.frames.id(frame))
    }

    fn frame(&self, id: FrameId) -> Frame {
        *self.frames.get(id.0)
    }
}

impl RuleTable {
    /// The state before an item that is remembered.
    pub(super) fn remembered_item(&mut self, item: &NextItem) -> JsonState {
        let slot = self.memory.slot_id(Slot::Item(item.next));
        JsonState::Remembered(slot, item.schema)
    }

    /// Whether some value of the item's schema differs from the items before it, and leaves a way to complete the array.
    pub(super) fn remembered_alive(&mut self, item: &NextItem, exprs: &mut Exprs) -> Result<bool> {
        let slot = self.memory.slot_id(Slot::Item(item.next));
        Ok(self.array_can_complete(item.next, exprs)? && self.differs(item.schema, slot, exprs)?)
    }

    /// The values that must not be written in `slot`, sorted.
    fn forbidden(&mut self, slot: SlotId, exprs: &mut Exprs) -> Result<Arc<[ValueId]>> {
        if let Some(known) = self.memory.forbidden.get(&slot) {
            return Ok(Arc::clone(known));
        }
        let mut found = match self.memory.slot(slot) {
            Slot::Item(next) => return Ok(self.repeated(next, exprs)?.into()),
            Slot::Part { of, key, next } => {
                let mut found = match next {
                    Position::Array(next) if self.is_kept_apart(of) => self.repeated(next, exprs)?,
                    _ => Vec::new(),
                };
                let rivals = self.rivals(of, exprs)?;
                for value in self.parts_at(of, key, &rivals) {
                    if !found.contains(&value) {
                        let after = self.with_part(of, key, next, Some(value))?;
                        if !self.frame_live(after, exprs)? {
                            found.push(value);
                        }
                    }
                }
                found
            }
        };
        found.sort_unstable();
        let found: Arc<[ValueId]> = found.into();
        // While a query is open its answer counts as negative: what leans on that is not kept.
        if self.depth == 0 {
            self.memory.bytes += 64 + size_of_val(&*found);
            self.memory.forbidden.insert(slot, Arc::clone(&found));
        }
        Ok(found)
    }

    /// The items that must not come before `next`: those that came, and those that another item needs.
    fn repeated(&mut self, next: ArrayState, exprs: &mut Exprs) -> Result<Vec<ValueId>> {
        let mut found = self.used_values(&next);
        if !self.array_may_end(&next) && self.enough_left(&next, 1) != Some(true) {
            for value in self.scarce_values(next.array) {
                if !found.contains(&value) {
                    let with = self.with_item(next, value)?;
                    if !self.array_can_complete(with, exprs)? {
                        found.push(value);
                    }
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Whether the next item of a frame, an array, must differ from its other items.
    fn is_kept_apart(&self, frame: FrameId) -> bool {
        match self.memory.frame(frame).position {
            Position::Array(s) => {
                self.arrays[s.array as usize].unique.as_ref().is_some_and(|unique| unique.concerns(s.index))
            }
            Position::Object(_) => false,
        }
    }

    /// The forbidden values that begin as `frame` does.
    fn rivals(&mut self, frame: FrameId, exprs: &mut Exprs) -> Result<Vec<ValueId>> {
        let Frame { slot, parts, .. } = self.memory.frame(frame);
        let Some(parts) = parts else { return Ok(Vec::new()) };
        let forbidden = self.forbidden(slot, exprs)?;
        exprs.charge(forbidden.len() as u64)?;
        Ok(self.memory.values.beginning_as(parts, &forbidden))
    }

    /// What `values`, which begin as `frame` does, have at its next place, or at `key`.
    fn parts_at(&self, frame: FrameId, key: Option<ValueId>, values: &[ValueId]) -> Vec<ValueId> {
        let Some(parts) = self.memory.frame(frame).parts else { return Vec::new() };
        let part =
            |&value: &ValueId| match (self.memory.values.get(value), self.memory.values.get(parts), key) {
                (JsonValue::Array(items), JsonValue::Array(parts), None) => items.get(parts.len()).copied(),
                (JsonValue::Object(members), _, Some(key)) => member(members, key),
                _ => None,
            };
        let mut found: Vec<ValueId> = values.iter().filter_map(part).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The frame with one more part; `None` is a part that is not known.
    fn with_part(
        &mut self,
        frame: FrameId,
        key: Option<ValueId>,
        next: Position,
        value: Option<ValueId>,
    ) -> Result<FrameId> {
        let Frame { slot, parts, .. } = self.memory.frame(frame);
        let (Some(value), Some(parts)) = (value, parts) else {
            return Ok(self.memory.frame_id(Frame { slot, position: next, parts: None }));
        };
        let position = match next {
            Position::Array(next) if self.is_kept_apart(frame) => {
                Position::Array(self.with_item(next, value)?)
            }
            other => other,
        };
        let parts = Some(self.memory.values.with_part(parts, key, value)?);
        Ok(self.memory.frame_id(Frame { slot, position, parts }))
    }

    /// The array with an item that must not come again.
    fn with_item(&mut self, next: ArrayState, value: ValueId) -> Result<ArrayState> {
        if self.arrays[next.array as usize].is_full(&next) {
            return Ok(next);
        }
        let remembers = self.arrays[next.array as usize].unique.as_ref().is_some_and(UniqueItems::remembers);
        if !remembers {
            let place = self.place_of(next.array, value);
            return Ok(place.map_or(next, |place| self.with_used(next, place)));
        }
        if self.memory.sets.len(next.used) < MAX_REMEMBERED {
            return Ok(ArrayState { used: self.memory.sets.with(next.used, value), ..next });
        }
        let message = format!("an array with unique items has more than {MAX_REMEMBERED} of them");
        Err(Error::new(ErrorKind::Limit, message).help("set maxItems, or leave uniqueItems out"))
    }

    /// Whether a frame may end here and is then not forbidden.
    fn frame_may_end(&mut self, frame: FrameId, exprs: &mut Exprs) -> Result<bool> {
        let Frame { slot, position, parts } = self.memory.frame(frame);
        let may_end = match position {
            Position::Array(s) => self.array_may_end(&s),
            Position::Object(s) => self.object_may_end(&s),
        };
        if !may_end {
            return Ok(false);
        }
        let Some(value) = parts else { return Ok(true) };
        Ok(self.forbidden(slot, exprs)?.binary_search(&value).is_err())
    }

    /// Whether a frame can be completed to a value that is not forbidden.
    fn frame_live(&mut self, frame: FrameId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(&known) = self.memory.live.get(&frame) {
            return Ok(known);
        }
        exprs.spend(8)?;
        if self.memory.depth >= MAX_DEPTH {
            let message = "finding an item that differs from those before it takes too long: they are nested too deeply";
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.memory.depth += 1;
        let found = self.frame_completes(frame, exprs);
        self.memory.depth -= 1;
        let live = found?;
        if self.depth == 0 {
            self.memory.bytes += 16;
            self.memory.live.insert(frame, live);
        }
        Ok(live)
    }

    fn frame_completes(&mut self, frame: FrameId, exprs: &mut Exprs) -> Result<bool> {
        let position = self.memory.frame(frame).position;
        let rivals = self.rivals(frame, exprs)?;
        match position {
            Position::Array(s) if rivals.is_empty() => return self.array_can_complete(s, exprs),
            Position::Object(s) if rivals.is_empty() => return self.object_can_complete(s, exprs),
            _ => {}
        }
        if self.frame_may_end(frame, exprs)? {
            return Ok(true);
        }
        match position {
            Position::Array(_) => Ok(!self.differing_items(frame, exprs)?.is_empty()),
            Position::Object(s) => {
                for key in self.named_next(&s) {
                    if !self.differing_moves(frame, key, None, exprs)?.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(self.differing_keys(frame, &rivals, exprs)? != NOTHING)
            }
        }
    }

    /// Whether some value of `schema` may be written in `slot`.
    fn differs(&mut self, schema: SchemaId, slot: SlotId, exprs: &mut Exprs) -> Result<bool> {
        if self.is_plentiful(schema, exprs)? {
            return Ok(true);
        }
        if self.forbidden(slot, exprs)?.is_empty() {
            return self.alive(schema, exprs);
        }
        if self.scalars_in(schema, slot, exprs)? != NOTHING {
            return Ok(true);
        }
        Ok(!self.frames_in(schema, slot, exprs)?.is_empty())
    }

    /// The values of `schema` other than arrays and objects that may be written in `slot`.
    fn scalars_in(&mut self, schema: SchemaId, slot: SlotId, exprs: &mut Exprs) -> Result<ExprId> {
        let forbidden = self.forbidden(slot, exprs)?;
        let known = self.memory.free_scalars.get(&schema);
        if let Some(&known) = known.filter(|_| forbidden.is_empty()) {
            return Ok(known);
        }
        let left_out = self.left_out(&forbidden, exprs)?;
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            all.push(self.lexemes.scalars(&self.forms, facts, Some(&left_out), exprs)?);
        }
        let made = exprs.or(&all)?;
        if forbidden.is_empty() {
            self.memory.free_scalars.insert(schema, made);
        }
        Ok(made)
    }

    /// The arrays and objects of `schema` that may be written in `slot`, before their first part.
    fn frames_in(&mut self, schema: SchemaId, slot: SlotId, exprs: &mut Exprs) -> Result<Vec<FrameId>> {
        let is_known = match self.memory.slot(slot) {
            Slot::Item(_) => true,
            Slot::Part { of, .. } => self.memory.frame(of).parts.is_some(),
        };
        let mut found = Vec::new();
        for &composite in &*self.composites(schema, exprs)? {
            let (position, empty) = match composite {
                Composite::Array(s) => (Position::Array(s), JsonValue::Array([].into())),
                Composite::Object(s) => (Position::Object(s), JsonValue::Object([].into())),
            };
            let parts = is_known.then(|| self.memory.values.id(empty)).transpose()?;
            let frame = self.memory.frame_id(Frame { slot, position, parts });
            if self.frame_live(frame, exprs)? {
                found.push(frame);
            }
        }
        Ok(found)
    }

    /// The languages of these values, in groups.
    fn left_out(&mut self, values: &[ValueId], exprs: &mut Exprs) -> Result<LeftOut> {
        exprs.charge(4 * values.len() as u64)?;
        let mut left_out = LeftOut::default();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for &value in values {
            match self.memory.values.get(value) {
                JsonValue::Null => left_out.null = true,
                JsonValue::Bool(value) => left_out.bools |= 1 << u8::from(*value),
                JsonValue::Number(_) => numbers.push(value),
                JsonValue::Text(_) => strings.push(value),
                JsonValue::Array(_) | JsonValue::Object(_) => {}
            }
        }
        left_out.numbers = self.groups(&numbers, exprs)?;
        left_out.strings = self.groups(&strings, exprs)?;
        Ok(left_out)
    }

    fn groups(&mut self, mut values: &[ValueId], exprs: &mut Exprs) -> Result<Vec<ExprId>> {
        let mut found = Vec::new();
        while !values.is_empty() {
            let size = GROUPS.into_iter().find(|&size| values.len() >= size).unwrap_or(values.len());
            let (group, others) = values.split_at(size);
            values = others;
            let known = match self.memory.groups.get(group) {
                Some(&known) => known,
                None => {
                    let made = self.language_of(group, exprs)?;
                    self.memory.bytes += 32 + size_of_val(group);
                    self.memory.groups.insert(group.into(), made);
                    made
                }
            };
            found.push(known);
        }
        Ok(found)
    }

    /// The language of numbers, or of strings without quotes.
    fn language_of(&mut self, group: &[ValueId], exprs: &mut Exprs) -> Result<ExprId> {
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for &value in group {
            match self.memory.values.get(value) {
                JsonValue::Number(number) => numbers.push(number.clone()),
                JsonValue::Text(text) => strings.push(Arc::clone(text)),
                _ => {}
            }
        }
        match &strings[..] {
            [] => spellings(&numbers, exprs),
            strings => self.lexemes.texts(strings, exprs),
        }
    }

    /// The edge of a lexeme that is read in `state`; none if it is empty.
    fn read_edge(&self, expr: ExprId, state: JsonState, states: &mut JsonStates) -> Result<Option<Edge>> {
        if expr == NOTHING {
            return Ok(None);
        }
        let of = states.id(self.number, state)?;
        let text = states.id(self.number, JsonState::Reading(of, TextTable::EMPTY))?;
        Ok(Some(Edge::Lexeme { expr, to: LexemeTarget::Read(text) }))
    }

    /// The edges of a value that is remembered.
    pub(super) fn remembered_edges(
        &mut self,
        slot: SlotId,
        schema: SchemaId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let mut edges = Vec::new();
        let expr = self.scalars_in(schema, slot, exprs)?;
        edges.extend(self.read_edge(expr, JsonState::Remembered(slot, schema), states)?);
        for frame in self.frames_in(schema, slot, exprs)? {
            edges.push(match self.memory.frame(frame).position {
                Position::Object(_) => {
                    let to = states.id(self.number, JsonState::RememberedPart(frame))?;
                    Edge::Lexeme { expr: exprs.bytes(b"{")?, to: LexemeTarget::State(to) }
                }
                Position::Array(_) => {
                    let inner = self.frame_separator(frame, self.lexemes.open, exprs)?;
                    let open = exprs.bytes(b"[")?;
                    Edge::Lexeme { expr: exprs.concat(&[open, inner])?, to: LexemeTarget::ByTag }
                }
            });
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Where the lexeme `edge` of a value that is remembered leads, if it opens an array.
    pub(super) fn remembered_target(
        &mut self,
        (slot, schema): (SlotId, SchemaId),
        edge: u32,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let scalars = self.scalars_in(schema, slot, exprs)? != NOTHING;
        let frame = self.frames_in(schema, slot, exprs)?[edge as usize - usize::from(scalars)];
        self.part_target(frame, tag, states, exprs)
    }

    /// The edges of an array or object that is remembered.
    pub(super) fn part_edges(
        &mut self,
        frame: FrameId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let mut edges = Vec::new();
        match self.memory.frame(frame).position {
            Position::Array(_) => {
                let expr = self.frame_separator(frame, self.lexemes.comma, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            Position::Object(s) => {
                // A named key is known by its tag; only other keys are read.
                let [named, others] = self.frame_keys(frame, &s, exprs)?;
                if named != NOTHING {
                    edges.push(Edge::Lexeme { expr: named, to: LexemeTarget::ByTag });
                }
                edges.extend(self.read_edge(others, JsonState::RememberedPart(frame), states)?);
            }
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Where the separator of an array, or a named key or the bracket of an object, leads.
    pub(super) fn part_target(
        &mut self,
        frame: FrameId,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let Frame { slot, position, parts } = self.memory.frame(frame);
        if tag == CLOSE {
            return self.filled(slot, parts, states);
        }
        if let Position::Object(s) = position {
            let key = self.key_of(s.object, tag);
            return self.value_in(frame, key, None, states, exprs);
        }
        let parts = self.differing_items(frame, exprs)?;
        self.any_of(parts, states)
    }

    /// The value of a key, then the rest of the object. `text` is the key where it is not named.
    fn value_in(
        &mut self,
        frame: FrameId,
        key: u32,
        text: Option<ValueId>,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let parts = self.differing_moves(frame, key, text, exprs)?;
        self.any_of(parts, states)
    }

    /// Any of these parts.
    fn any_of(&mut self, parts: Vec<(SchemaId, SlotId)>, states: &mut JsonStates) -> Result<StateId> {
        let state = |(schema, slot)| states.id(self.number, JsonState::Remembered(slot, schema));
        let all = parts.into_iter().map(state).collect::<Result<_>>()?;
        self.either(all, states)
    }

    /// The state after `value` was written in `slot`; `None` is a value that is not known.
    fn filled(&mut self, slot: SlotId, value: Option<ValueId>, states: &mut JsonStates) -> Result<StateId> {
        match self.memory.slot(slot) {
            Slot::Item(next) => {
                let next = value.map_or(Ok(next), |value| self.with_item(next, value))?;
                states.id(self.number, JsonState::Array(next))
            }
            Slot::Part { of, key, next } => {
                let frame = self.with_part(of, key, next, value)?;
                states.id(self.number, JsonState::RememberedPart(frame))
            }
        }
    }

    /// Where a text of `state` leads that is complete with `tag`; `None` is any text.
    pub(super) fn after_text(
        &mut self,
        state: &JsonState,
        text: Option<TextId>,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let text = text.map(|text| self.memory.texts.bytes(text));
        exprs.charge(text.as_ref().map_or(0, Vec::len) as u64)?;
        match *state {
            JsonState::Remembered(slot, _) => {
                let value = text.map(|text| self.memory.values.scalar(&text)).transpose()?;
                self.filled(slot, value, states)
            }
            JsonState::RememberedPart(frame) => {
                let Frame { slot, position, .. } = self.memory.frame(frame);
                let Position::Object(s) = position else { return Ok(super::END) };
                let key = self.key_of(s.object, tag);
                let (frame, id) = match text {
                    Some(text) => {
                        let quote = |&byte: &u8| byte == b'"';
                        let from = text.iter().position(quote).unwrap_or(0);
                        let to = text.iter().rposition(quote).map_or(text.len(), |last| last + 1);
                        (frame, self.memory.values.scalar(&text[from..to])?)
                    }
                    None => {
                        let any = self.memory.values.text("")?;
                        (self.memory.frame_id(Frame { slot, position, parts: None }), any)
                    }
                };
                self.value_in(frame, key, Some(id), states, exprs)
            }
            _ => Ok(super::END),
        }
    }

    /// What follows the opening bracket or an item of an array.
    fn frame_separator(&mut self, frame: FrameId, before: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
        let may_end = self.frame_may_end(frame, exprs)?;
        let items = !self.differing_items(frame, exprs)?.is_empty();
        self.separator_of(before, may_end, items, exprs)
    }

    /// The choices for the next item after which the array can be completed to a value that is not forbidden.
    fn differing_items(&mut self, frame: FrameId, exprs: &mut Exprs) -> Result<Vec<(SchemaId, SlotId)>> {
        let Position::Array(s) = self.memory.frame(frame).position else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for item in self.items(&s, exprs)? {
            let part = Slot::Part { of: frame, key: None, next: Position::Array(item.next) };
            let slot = self.memory.slot_id(part);
            if self.differs(item.schema, slot, exprs)? {
                found.push((item.schema, slot));
            }
        }
        Ok(found)
    }

    /// The choices for the value of a key after which the object can be completed to a value that is not forbidden. `text`
    /// is the key as a value; for a named key it is not needed.
    fn differing_moves(
        &mut self,
        frame: FrameId,
        key: u32,
        text: Option<ValueId>,
        exprs: &mut Exprs,
    ) -> Result<Vec<(SchemaId, SlotId)>> {
        let Position::Object(s) = self.memory.frame(frame).position else {
            return Ok(Vec::new());
        };
        let named = self.objects[s.object as usize].keys.get(key as usize).map(|key| key.id);
        let text = match (named, text) {
            (Some(id), _) => {
                let text = Arc::clone(self.forms.texts.text(id));
                self.memory.values.id(JsonValue::Text(text))?
            }
            (None, Some(text)) => text,
            (None, None) => return Ok(Vec::new()),
        };
        let mut found = Vec::new();
        for way in self.moves(&s, key, exprs)? {
            let part = Slot::Part { of: frame, key: Some(text), next: Position::Object(way.next) };
            let slot = self.memory.slot_id(part);
            if self.differs(way.schema, slot, exprs)? {
                found.push((way.schema, slot));
            }
        }
        Ok(found)
    }

    /// What may come in an object: the closing bracket or a named key, and the keys that are not named.
    fn frame_keys(&mut self, frame: FrameId, s: &ObjectState, exprs: &mut Exprs) -> Result<[ExprId; 2]> {
        let rivals = self.rivals(frame, exprs)?;
        let written = self.written_keys(frame);
        let known = (*s, self.memory.values.id(JsonValue::Array(written.into()))?);
        if let Some(&known) = self.memory.free_keys.get(&known).filter(|_| rivals.is_empty()) {
            return Ok(known);
        }
        let mut ways = Vec::new();
        if self.frame_may_end(frame, exprs)? {
            ways.push(self.closing(b"}", exprs)?);
        }
        let mut named = Vec::new();
        for key in self.named_next(s) {
            let possible = if rivals.is_empty() {
                !self.moves(s, key, exprs)?.is_empty()
            } else {
                !self.differing_moves(frame, key, None, exprs)?.is_empty()
            };
            if possible {
                named.push(key);
            }
        }
        let before = if s.first { self.lexemes.open } else { self.lexemes.comma };
        let named = self.named_lexeme(s.object, &named, exprs)?;
        ways.push(exprs.concat(&[before, named])?);
        let others = self.differing_keys(frame, &rivals, exprs)?;
        let made = [exprs.or(&ways)?, exprs.concat(&[before, others])?];
        if rivals.is_empty() && self.depth == 0 {
            self.memory.bytes += 48;
            self.memory.free_keys.insert(known, made);
        }
        Ok(made)
    }

    /// The keys of an object that were written and that its schema does not name, sorted.
    fn written_keys(&self, frame: FrameId) -> Vec<ValueId> {
        let Frame { position: Position::Object(s), parts: Some(parts), .. } = self.memory.frame(frame) else {
            return Vec::new();
        };
        let JsonValue::Object(members) = self.memory.values.get(parts) else { return Vec::new() };
        if !self.others_next(&s) {
            return Vec::new();
        }
        let named = &self.objects[s.object as usize].keys;
        let is_other = |key: &ValueId| match self.memory.values.get(*key) {
            JsonValue::Text(text) => !named.iter().any(|named| self.forms.texts.text(named.id) == text),
            _ => true,
        };
        members.iter().map(|member| member.0).filter(is_other).collect()
    }

    /// The keys that are not named, were not written, and leave a way to complete the object to a value that is not
    /// forbidden, each with its colon and tag.
    fn differing_keys(&mut self, frame: FrameId, rivals: &[ValueId], exprs: &mut Exprs) -> Result<ExprId> {
        let Position::Object(s) = self.memory.frame(frame).position else { return Ok(NOTHING) };
        if !self.others_next(&s) {
            return Ok(NOTHING);
        }
        let written = self.written_keys(frame);
        let mut theirs = Vec::new();
        for &rival in rivals {
            if let JsonValue::Object(members) = self.memory.values.get(rival) {
                theirs.extend(members.iter().map(|member| member.0));
            }
        }
        theirs.sort_unstable();
        theirs.dedup();
        theirs.retain(|key| written.binary_search(key).is_err());
        let named = self.objects[s.object as usize].keys.len() as u32;
        let mut found = Vec::new();
        for (place, other) in self.others(s.object, exprs)?.iter().enumerate() {
            let key = named + place as u32;
            if self.moves(&s, key, exprs)?.is_empty() {
                continue;
            }
            let mut without = written.clone();
            for &text in &theirs {
                if self.differing_moves(frame, key, Some(text), exprs)?.is_empty() {
                    without.push(text);
                }
            }
            without.sort_unstable();
            // What is remembered is written in one way.
            let mut parts = vec![other.chars, self.lexemes.canonical];
            for group in self.groups(&without, exprs)? {
                parts.push(exprs.not(group)?);
            }
            let chars = exprs.and(&parts)?;
            if exprs.is_alive(chars)? {
                let text = self.lexemes.quoted(chars, exprs)?;
                let tail = self.key_end(s.object, key, exprs)?;
                found.push(exprs.concat(&[text, tail])?);
            }
        }
        exprs.or(&found)
    }

    /// What a slot is, for messages.
    pub(super) fn describe_slot(&self, slot: SlotId) -> String {
        match self.memory.slot(slot) {
            Slot::Item(_) => "an item that did not come yet".into(),
            Slot::Part { key: None, .. } => "an item".into(),
            Slot::Part { key: Some(key), .. } => match self.memory.values.get(key) {
                JsonValue::Text(text) => format!("the value of {text:?}"),
                _ => "a value".into(),
            },
        }
    }

    /// What may come in an array or object, for messages.
    pub(super) fn describe_frame(&self, frame: FrameId) -> String {
        match self.memory.frame(frame).position {
            Position::Array(s) => self.describe(&JsonState::Array(s)),
            Position::Object(s) => self.describe(&JsonState::Object(s)),
        }
    }
}
