//! Items that must differ, while they are written: what was written so far is part of the state.
//!
//! ```text
//! array with unique items --item--> Remembered(place, schema): a value that is read, then remembered
//!     a scalar    one lexeme without the forbidden values; its text is read
//!     [ or {      RememberedPart(partial): an array or object whose parts are remembered in turn; no calls
//! ```
//!
//! Each place of a value has forbidden values: those after which nothing could be completed without a repetition. For an item
//! of an outermost array these are the items before it. For a part of an array or object that is written in such a place, they
//! are the parts that a forbidden value has there, if nothing else could follow.
//!
//! The naive version is the plain validator on the whole text (`json_schema/tests/rules.rs`).

mod edges;
mod same_after;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::normalize::SchemaId;
use super::array::{ArrayState, NextItem};
use super::object::ObjectState;
use super::rule_table::{Interner, RuleTable};
use super::transitions::Composite;
use super::unique::UniqueItems;
use super::values::{member, JsonValue, TextId, TextTable, ValueId, ValueSets, ValueTable};
use super::JsonState;
use crate::expr::{ExprId, Exprs, NOTHING};
use crate::{id, Error, ErrorKind, Result};

id!(
    /// A [`ValuePlace`].
    pub(super) struct PlaceId
);
id!(
    /// A [`PartialValue`].
    pub(super) struct PartialId
);

/// Maximum number of values of one array that are remembered.
const MAX_REMEMBERED: usize = 1_024;
/// Maximum depth of searches for a value that differs from others.
const MAX_DEPTH: u32 = 200;
/// Forbidden values are excluded in groups of so many, so that one more value changes one small group.
const GROUPS: [usize; 2] = [256, 16];

/// The place of a value that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ValuePlace {
    /// An item of an array that no remembered value contains; the array after it, the item not remembered yet.
    Item(ArrayState),
    /// A part of a remembered array or object: before it, its key, and the position after it.
    Part { of: PartialId, key: Option<ValueId>, next: Position },
}

/// A position in an array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Position {
    Array(ArrayState),
    Object(ObjectState),
}

/// A partly written array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PartialValue {
    /// What it will fill.
    place: PlaceId,
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
    places: Interner<ValuePlace>,
    partials: Interner<PartialValue>,
    forbidden: FxHashMap<PlaceId, Arc<[ValueId]>>,
    /// Whether arrays and objects can be completed to a value that is not forbidden.
    live: FxHashMap<PartialId, bool>,
    /// The languages of groups of numbers or strings.
    groups: FxHashMap<Box<[ValueId]>, ExprId>,
    /// Whether schemas have more values than can be forbidden.
    pub unbounded: FxHashMap<SchemaId, bool>,
    /// Whether objects can be completed in more ways than can be forbidden, whatever named key is written first.
    spare_completions: FxHashMap<u32, bool>,
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
            + self.places.byte_size()
            + self.partials.byte_size()
            + self.bytes
    }

    /// The text after one more byte.
    pub(super) fn read(&mut self, text: TextId, byte: u8) -> Result<TextId> {
        self.texts.with(text, byte)
    }

    fn place_id(&mut self, place: ValuePlace) -> PlaceId {
        PlaceId(self.places.id(place))
    }

    fn place(&self, id: PlaceId) -> ValuePlace {
        *self.places.get(id.0)
    }

    fn partial_id(&mut self, partial: PartialValue) -> PartialId {
        PartialId(self.partials.id(partial))
    }

    fn partial(&self, id: PartialId) -> PartialValue {
        *self.partials.get(id.0)
    }
}

impl RuleTable {
    /// The state before an item that is remembered.
    pub(super) fn remembered_item(&mut self, item: &NextItem) -> JsonState {
        let place = self.memory.place_id(ValuePlace::Item(item.next));
        JsonState::Remembered(place, item.schema)
    }

    /// Whether some value of the item's schema differs from the items before it, and leaves a way to complete the array.
    pub(super) fn remembered_alive(&mut self, item: &NextItem, exprs: &mut Exprs) -> Result<bool> {
        let place = self.memory.place_id(ValuePlace::Item(item.next));
        Ok(self.array_can_complete(item.next, exprs)? && self.differs(item.schema, place, exprs)?)
    }

    /// The values that must not be written in `place`, sorted.
    fn forbidden(&mut self, place: PlaceId, exprs: &mut Exprs) -> Result<Arc<[ValueId]>> {
        if let Some(known) = self.memory.forbidden.get(&place) {
            return Ok(Arc::clone(known));
        }
        let mut found = match self.memory.place(place) {
            ValuePlace::Item(next) => return Ok(self.repeated(next, exprs)?.into()),
            ValuePlace::Part { of, key, next } => {
                let mut found = match next {
                    Position::Array(next) if self.is_kept_apart(of) => self.repeated(next, exprs)?,
                    _ => Vec::new(),
                };
                let rivals = self.rivals(of, exprs)?;
                for value in self.parts_at(of, key, &rivals) {
                    if !found.contains(&value) {
                        let after = self.with_part(of, key, next, Some(value))?;
                        if !self.partial_can_complete(after, exprs)? {
                            found.push(value);
                        }
                    }
                }
                found
            }
        };
        found.sort_unstable();
        let found: Arc<[ValueId]> = found.into();
        // While a query is open its answer counts as negative: what depends on that is not kept.
        if self.depth == 0 {
            self.memory.bytes += 64 + size_of_val(&*found);
            self.memory.forbidden.insert(place, Arc::clone(&found));
        }
        Ok(found)
    }

    /// The items that must not come before `next`: those that came, and those that another item needs.
    fn repeated(&mut self, next: ArrayState, exprs: &mut Exprs) -> Result<Vec<ValueId>> {
        let mut found = self.used_values(&next);
        if !self.array_may_end(&next) && self.enough_left(&next, 1) != Some(true) {
            for value in self.exhaustible_values(next.array) {
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

    /// Whether `partial` is an array whose next item must differ from its other items.
    fn is_kept_apart(&self, partial: PartialId) -> bool {
        match self.memory.partial(partial).position {
            Position::Array(s) => {
                self.arrays[s.array as usize].unique.as_ref().is_some_and(|unique| unique.concerns(s.index))
            }
            Position::Object(_) => false,
        }
    }

    /// The forbidden values that begin as `partial` does.
    fn rivals(&mut self, partial: PartialId, exprs: &mut Exprs) -> Result<Vec<ValueId>> {
        let PartialValue { place, parts, .. } = self.memory.partial(partial);
        let Some(parts) = parts else { return Ok(Vec::new()) };
        let forbidden = self.forbidden(place, exprs)?;
        exprs.charge(forbidden.len() as u64)?;
        Ok(self.memory.values.beginning_as(parts, &forbidden))
    }

    /// What `values`, which begin as `partial` does, have at its next place, or at `key`.
    fn parts_at(&self, partial: PartialId, key: Option<ValueId>, values: &[ValueId]) -> Vec<ValueId> {
        let Some(parts) = self.memory.partial(partial).parts else { return Vec::new() };
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

    /// The array or object with one more part; `None` is a part that is not known.
    fn with_part(
        &mut self,
        partial: PartialId,
        key: Option<ValueId>,
        next: Position,
        value: Option<ValueId>,
    ) -> Result<PartialId> {
        let PartialValue { place, parts, .. } = self.memory.partial(partial);
        let (Some(value), Some(parts)) = (value, parts) else {
            return Ok(self.memory.partial_id(PartialValue { place, position: next, parts: None }));
        };
        let position = match next {
            Position::Array(next) if self.is_kept_apart(partial) => {
                Position::Array(self.with_item(next, value)?)
            }
            other => other,
        };
        let parts = Some(self.memory.values.with_part(parts, key, value)?);
        Ok(self.memory.partial_id(PartialValue { place, position, parts }))
    }

    /// The array with an item that must not come again.
    fn with_item(&mut self, next: ArrayState, value: ValueId) -> Result<ArrayState> {
        if self.arrays[next.array as usize].is_full(&next) {
            return Ok(next);
        }
        let remembers = self.arrays[next.array as usize].unique.as_ref().is_some_and(UniqueItems::remembers);
        if !remembers {
            let index = self.index_of(next.array, value);
            return Ok(index.map_or(next, |index| self.with_used(next, index)));
        }
        if self.memory.sets.len(next.used) < MAX_REMEMBERED {
            return Ok(ArrayState { used: self.memory.sets.with(next.used, value), ..next });
        }
        let message = format!("an array with unique items has more than {MAX_REMEMBERED} of them");
        Err(Error::new(ErrorKind::Limit, message).help("set maxItems, or leave uniqueItems out"))
    }

    /// Whether `partial` may end here and is then not forbidden.
    fn partial_may_end(&mut self, partial: PartialId, exprs: &mut Exprs) -> Result<bool> {
        let PartialValue { place, position, parts } = self.memory.partial(partial);
        let may_end = match position {
            Position::Array(s) => self.array_may_end(&s),
            Position::Object(s) => self.object_may_end(&s),
        };
        if !may_end {
            return Ok(false);
        }
        let Some(value) = parts else { return Ok(true) };
        Ok(self.forbidden(place, exprs)?.binary_search(&value).is_err())
    }

    /// Whether `partial` can be completed to a value that is not forbidden.
    fn partial_can_complete(&mut self, partial: PartialId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(&known) = self.memory.live.get(&partial) {
            return Ok(known);
        }
        exprs.spend(8)?;
        if self.memory.depth >= MAX_DEPTH {
            let message = "finding an item that differs from those before it takes too long: they are nested too deeply";
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.memory.depth += 1;
        let found = self.partial_completes(partial, exprs);
        self.memory.depth -= 1;
        let live = found?;
        if self.depth == 0 {
            self.memory.bytes += 16;
            self.memory.live.insert(partial, live);
        }
        Ok(live)
    }

    fn partial_completes(&mut self, partial: PartialId, exprs: &mut Exprs) -> Result<bool> {
        let position = self.memory.partial(partial).position;
        let rivals = self.rivals(partial, exprs)?;
        match position {
            Position::Array(s) if rivals.is_empty() => return self.array_can_complete(s, exprs),
            Position::Object(s) if rivals.is_empty() => return self.object_can_complete(s, exprs),
            _ => {}
        }
        if self.partial_may_end(partial, exprs)? {
            return Ok(true);
        }
        match position {
            Position::Array(_) => Ok(!self.differing_items(partial, exprs)?.is_empty()),
            Position::Object(s) => {
                for key in self.named_next(&s) {
                    if !self.differing_moves(partial, key, None, exprs)?.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(self.differing_keys(partial, &rivals, exprs)? != NOTHING)
            }
        }
    }

    /// Whether some value of `schema` may be written in `place`.
    fn differs(&mut self, schema: SchemaId, place: PlaceId, exprs: &mut Exprs) -> Result<bool> {
        if self.is_unbounded(schema, exprs)? {
            return Ok(true);
        }
        if self.forbidden(place, exprs)?.is_empty() {
            return self.alive(schema, exprs);
        }
        if self.scalars_in(schema, place, exprs)? != NOTHING {
            return Ok(true);
        }
        Ok(!self.partials_in(schema, place, exprs)?.is_empty())
    }

    /// The values of `schema` other than arrays and objects that may be written in `place`.
    fn scalars_in(&mut self, schema: SchemaId, place: PlaceId, exprs: &mut Exprs) -> Result<ExprId> {
        let forbidden = self.forbidden(place, exprs)?;
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

    /// The arrays and objects of `schema` that may be written in `place`, before their first part.
    fn partials_in(&mut self, schema: SchemaId, place: PlaceId, exprs: &mut Exprs) -> Result<Vec<PartialId>> {
        let is_known = match self.memory.place(place) {
            ValuePlace::Item(_) => true,
            ValuePlace::Part { of, .. } => self.memory.partial(of).parts.is_some(),
        };
        let mut found = Vec::new();
        for &composite in &*self.composites(schema, exprs)? {
            let (position, empty) = match composite {
                Composite::Array(s) => (Position::Array(s), JsonValue::Array([].into())),
                Composite::Object(s) => (Position::Object(s), JsonValue::Object([].into())),
            };
            let parts = is_known.then(|| self.memory.values.id(empty)).transpose()?;
            let partial = self.memory.partial_id(PartialValue { place, position, parts });
            if self.partial_can_complete(partial, exprs)? {
                found.push(partial);
            }
        }
        Ok(found)
    }

    /// The value at a place, for messages.
    pub(super) fn describe_place(&self, place: PlaceId) -> String {
        match self.memory.place(place) {
            ValuePlace::Item(_) => "an item that did not come yet".into(),
            ValuePlace::Part { key: None, .. } => "an item".into(),
            ValuePlace::Part { key: Some(key), .. } => match self.memory.values.get(key) {
                JsonValue::Text(text) => format!("the value of {text:?}"),
                _ => "a value".into(),
            },
        }
    }

    /// What may come in an array or object, for messages.
    pub(super) fn describe_partial(&self, partial: PartialId) -> String {
        match self.memory.partial(partial).position {
            Position::Array(s) => self.describe(&JsonState::Array(s)),
            Position::Object(s) => self.describe(&JsonState::Object(s)),
        }
    }
}
