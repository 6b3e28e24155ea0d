//! The edges of values that are remembered: lexemes without the forbidden values, and the states after them.

use std::sync::Arc;

use super::super::super::normalize::SchemaId;
use super::super::lexemes::LeftOut;
use super::super::number_lexemes::spellings;
use super::super::object::ObjectState;
use super::super::rule_table::RuleTable;
use super::super::transitions::CLOSE;
use super::super::values::{JsonValue, TextId, TextTable, ValueId};
use super::super::{JsonState, JsonStates, END};
use super::{PartialId, PartialValue, PlaceId, Position, ValuePlace, GROUPS};
use crate::earley::{Edge, LexemeTarget, StateEdges, StateId};
use crate::expr::{ExprId, Exprs, Tag, NOTHING};
use crate::Result;

impl RuleTable {
    /// The languages of these values, in groups.
    pub(super) fn left_out(&mut self, values: &[ValueId], exprs: &mut Exprs) -> Result<LeftOut> {
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
    pub(in crate::json_schema::compile) fn remembered_edges(
        &mut self,
        place: PlaceId,
        schema: SchemaId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let mut edges = Vec::new();
        let expr = self.scalars_in(schema, place, exprs)?;
        edges.extend(self.read_edge(expr, JsonState::Remembered(place, schema), states)?);
        for partial in self.partials_in(schema, place, exprs)? {
            edges.push(match self.memory.partial(partial).position {
                Position::Object(_) => {
                    let to = states.id(self.number, JsonState::RememberedPart(partial))?;
                    Edge::Lexeme { expr: exprs.bytes(b"{")?, to: LexemeTarget::State(to) }
                }
                Position::Array(_) => {
                    let inner = self.partial_separator(partial, self.lexemes.open, exprs)?;
                    let open = exprs.bytes(b"[")?;
                    Edge::Lexeme { expr: exprs.concat(&[open, inner])?, to: LexemeTarget::ByTag }
                }
            });
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Where the lexeme `edge` of a value that is remembered leads, if it opens an array.
    pub(in crate::json_schema::compile) fn remembered_target(
        &mut self,
        (place, schema): (PlaceId, SchemaId),
        edge: u32,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let scalars = self.scalars_in(schema, place, exprs)? != NOTHING;
        let partial = self.partials_in(schema, place, exprs)?[edge as usize - usize::from(scalars)];
        self.part_target(partial, tag, states, exprs)
    }

    /// The edges of an array or object that is remembered.
    pub(in crate::json_schema::compile) fn part_edges(
        &mut self,
        partial: PartialId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let mut edges = Vec::new();
        match self.memory.partial(partial).position {
            Position::Array(_) => {
                let expr = self.partial_separator(partial, self.lexemes.comma, exprs)?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            Position::Object(s) => {
                // A named key is known by its tag; only other keys are read.
                let [named, others] = self.partial_keys(partial, &s, exprs)?;
                if named != NOTHING {
                    edges.push(Edge::Lexeme { expr: named, to: LexemeTarget::ByTag });
                }
                edges.extend(self.read_edge(others, JsonState::RememberedPart(partial), states)?);
            }
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Where the separator of an array, or a named key or the bracket of an object, leads.
    pub(in crate::json_schema::compile) fn part_target(
        &mut self,
        partial: PartialId,
        tag: Tag,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let PartialValue { place, position, parts } = self.memory.partial(partial);
        if tag == CLOSE {
            return self.filled(place, parts, states);
        }
        if let Position::Object(s) = position {
            let key = self.key_of(s.object, tag);
            return self.value_in(partial, key, None, states, exprs);
        }
        let parts = self.differing_items(partial, exprs)?;
        self.any_of(parts, states)
    }

    /// The value of a key, then the rest of the object. `text` is the key where it is not named.
    fn value_in(
        &mut self,
        partial: PartialId,
        key: u32,
        text: Option<ValueId>,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let parts = self.differing_moves(partial, key, text, exprs)?;
        self.any_of(parts, states)
    }

    /// Any of these parts.
    fn any_of(&mut self, parts: Vec<(SchemaId, PlaceId)>, states: &mut JsonStates) -> Result<StateId> {
        let state = |(schema, place)| states.id(self.number, JsonState::Remembered(place, schema));
        let all = parts.into_iter().map(state).collect::<Result<_>>()?;
        self.either(all, states)
    }

    /// The state after `value` was written in `place`; `None` is a value that is not known.
    fn filled(&mut self, place: PlaceId, value: Option<ValueId>, states: &mut JsonStates) -> Result<StateId> {
        match self.memory.place(place) {
            ValuePlace::Item(next) => {
                let next = value.map_or(Ok(next), |value| self.with_item(next, value))?;
                states.id(self.number, JsonState::Array(next))
            }
            ValuePlace::Part { of, key, next } => {
                let partial = self.with_part(of, key, next, value)?;
                states.id(self.number, JsonState::RememberedPart(partial))
            }
        }
    }

    /// Where a text of `state` leads that is complete with `tag`; `None` is any text.
    pub(in crate::json_schema::compile) fn after_text(
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
            JsonState::Remembered(place, _) => {
                let value = text.map(|text| self.memory.values.scalar(&text)).transpose()?;
                self.filled(place, value, states)
            }
            JsonState::RememberedPart(partial) => {
                let PartialValue { place, position, .. } = self.memory.partial(partial);
                let Position::Object(s) = position else { return Ok(END) };
                let key = self.key_of(s.object, tag);
                let (partial, id) = match text {
                    Some(text) => {
                        let quote = |&byte: &u8| byte == b'"';
                        let from = text.iter().position(quote).unwrap_or(0);
                        let to = text.iter().rposition(quote).map_or(text.len(), |last| last + 1);
                        (partial, self.memory.values.scalar(&text[from..to])?)
                    }
                    None => {
                        let any = self.memory.values.text("")?;
                        (self.memory.partial_id(PartialValue { place, position, parts: None }), any)
                    }
                };
                self.value_in(partial, key, Some(id), states, exprs)
            }
            _ => Ok(END),
        }
    }

    /// What follows the opening bracket or an item of an array.
    fn partial_separator(&mut self, partial: PartialId, before: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
        let may_end = self.partial_may_end(partial, exprs)?;
        let items = !self.differing_items(partial, exprs)?.is_empty();
        self.separator_of(before, may_end, items, exprs)
    }

    /// The choices for the next item after which the array can be completed to a value that is not forbidden.
    pub(super) fn differing_items(
        &mut self,
        partial: PartialId,
        exprs: &mut Exprs,
    ) -> Result<Vec<(SchemaId, PlaceId)>> {
        let Position::Array(s) = self.memory.partial(partial).position else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for item in self.items(&s, exprs)? {
            let part = ValuePlace::Part { of: partial, key: None, next: Position::Array(item.next) };
            let place = self.memory.place_id(part);
            if self.differs(item.schema, place, exprs)? {
                found.push((item.schema, place));
            }
        }
        Ok(found)
    }

    /// The choices for the value of a key after which the object can be completed to a value that is not forbidden. `text`
    /// is the key as a value; for a named key it is not needed.
    pub(super) fn differing_moves(
        &mut self,
        partial: PartialId,
        key: u32,
        text: Option<ValueId>,
        exprs: &mut Exprs,
    ) -> Result<Vec<(SchemaId, PlaceId)>> {
        let Position::Object(s) = self.memory.partial(partial).position else {
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
            let part = ValuePlace::Part { of: partial, key: Some(text), next: Position::Object(way.next) };
            let place = self.memory.place_id(part);
            if self.differs(way.schema, place, exprs)? {
                found.push((way.schema, place));
            }
        }
        Ok(found)
    }

    /// What may come in an object: the closing bracket or a named key, and the keys that are not named.
    fn partial_keys(
        &mut self,
        partial: PartialId,
        s: &ObjectState,
        exprs: &mut Exprs,
    ) -> Result<[ExprId; 2]> {
        let rivals = self.rivals(partial, exprs)?;
        let written = self.written_keys(partial);
        let known = (*s, self.memory.values.id(JsonValue::Array(written.into()))?);
        if let Some(&known) = self.memory.free_keys.get(&known).filter(|_| rivals.is_empty()) {
            return Ok(known);
        }
        let mut ways = Vec::new();
        if self.partial_may_end(partial, exprs)? {
            ways.push(self.closing(b"}", exprs)?);
        }
        let mut named = Vec::new();
        for key in self.named_next(s) {
            let possible = if rivals.is_empty() {
                !self.moves(s, key, exprs)?.is_empty()
            } else {
                !self.differing_moves(partial, key, None, exprs)?.is_empty()
            };
            if possible {
                named.push(key);
            }
        }
        let before = if s.first { self.lexemes.open } else { self.lexemes.comma };
        let named = self.named_lexeme(s.object, &named, exprs)?;
        ways.push(exprs.concat(&[before, named])?);
        let others = self.differing_keys(partial, &rivals, exprs)?;
        let made = [exprs.or(&ways)?, exprs.concat(&[before, others])?];
        if rivals.is_empty() && self.depth == 0 {
            self.memory.bytes += 48;
            self.memory.free_keys.insert(known, made);
        }
        Ok(made)
    }

    /// The keys of an object that were written and that its schema does not name, sorted.
    fn written_keys(&self, partial: PartialId) -> Vec<ValueId> {
        let PartialValue { position: Position::Object(s), parts: Some(parts), .. } =
            self.memory.partial(partial)
        else {
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
    pub(super) fn differing_keys(
        &mut self,
        partial: PartialId,
        rivals: &[ValueId],
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let Position::Object(s) = self.memory.partial(partial).position else { return Ok(NOTHING) };
        if !self.others_next(&s) {
            return Ok(NOTHING);
        }
        let written = self.written_keys(partial);
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
        for (key, other) in (named..).zip(self.others(s.object, exprs)?.iter()) {
            if self.moves(&s, key, exprs)?.is_empty() {
                continue;
            }
            let mut without = written.clone();
            for &text in &theirs {
                if self.differing_moves(partial, key, Some(text), exprs)?.is_empty() {
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
}
