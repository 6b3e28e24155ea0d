//! Groups the texts of a captured lexeme by their continuation: masks then need not look at each text. The naive version follows
//! every token byte by byte.

use super::super::super::normalize::{spell, SchemaId};
use super::super::object::ObjectState;
use super::super::rule_table::RuleTable;
use super::super::transitions::Composite;
use super::super::values::{JsonValue, TextId, ValueId};
use super::super::JsonState;
use super::{PartialId, PartialValue, PlaceId, Position, ValuePlace};
use crate::earley::SameAfter;
use crate::expr::Exprs;
use crate::Result;

impl RuleTable {
    /// Which texts of `state`, after this one, lead to what allows the same, up to the end of the next lexeme that is read.
    pub(in crate::json_schema::compile) fn same_after(
        &mut self,
        state: &JsonState,
        text: TextId,
        exprs: &mut Exprs,
    ) -> Result<SameAfter> {
        let (mut place, apart) = match *state {
            JsonState::Remembered(place, _) => (place, self.watched_in(place, exprs)?),
            JsonState::RememberedPart(partial) => {
                let watched = self.watched(partial, exprs)?;
                let keys = |&value: &ValueId| match self.memory.values.get(value) {
                    JsonValue::Object(members) => members.iter().map(|member| member.0).collect(),
                    _ => Vec::new(),
                };
                let mut keys: Vec<ValueId> = watched.iter().flat_map(keys).collect();
                keys.sort_unstable();
                keys.dedup();
                (self.memory.partial(partial).place, keys)
            }
            _ => return Ok(SameAfter::Unknown),
        };
        loop {
            exprs.charge(4)?;
            let position = match self.memory.place(place) {
                ValuePlace::Item(next) => Some(next),
                ValuePlace::Part { of, next: Position::Array(next), .. } if self.is_kept_apart(of) => {
                    Some(next)
                }
                ValuePlace::Part { .. } => None,
            };
            if let Some(next) = position {
                if !self.exhaustible_values(next.array).is_empty() {
                    return Ok(SameAfter::Unknown);
                }
                for item in self.items(&next, exprs)? {
                    if !self.is_unbounded(item.schema, exprs)? {
                        return Ok(SameAfter::Unknown);
                    }
                    self.find_spare_completions(item.schema, exprs)?;
                }
            }
            match self.memory.place(place) {
                ValuePlace::Item(_) => return self.rests_of(state, &apart, text, exprs),
                ValuePlace::Part { of, .. } => place = self.memory.partial(of).place,
            }
        }
    }

    /// What is left of the texts of these values after `text`.
    fn rests_of(
        &self,
        state: &JsonState,
        values: &[ValueId],
        text: TextId,
        exprs: &mut Exprs,
    ) -> Result<SameAfter> {
        if values.is_empty() {
            return Ok(SameAfter::All);
        }
        let written = self.memory.texts.bytes(text);
        exprs.charge(written.len() as u64 + 8 * values.len() as u64)?;
        // A comma and white space may precede a key.
        let is_value = matches!(state, JsonState::Remembered(..));
        let from = if is_value { Some(0) } else { written.iter().position(|&byte| byte == b'"') };
        let Some(written) = from.map(|from| &written[from..]) else { return Ok(SameAfter::Unknown) };
        let mut rests = Vec::new();
        for &value in values {
            let spelled = match self.memory.values.get(value) {
                JsonValue::Null => b"null".to_vec(),
                JsonValue::Bool(false) => b"false".to_vec(),
                JsonValue::Bool(true) => b"true".to_vec(),
                JsonValue::Text(text) => spell(text, self.lexemes.ascii),
                // It has several spellings.
                JsonValue::Number(_) if matches!(written.first(), None | Some(b'-' | b'0'..=b'9')) => {
                    return Ok(SameAfter::Unknown);
                }
                JsonValue::Number(_) | JsonValue::Array(_) | JsonValue::Object(_) => continue,
            };
            exprs.charge(spelled.len() as u64 / 2)?;
            if let Some(rest) = spelled.strip_prefix(written) {
                rests.push(rest.to_vec());
            } else if written.starts_with(&spelled) {
                return Ok(SameAfter::Unknown);
            }
        }
        Ok(if rests.is_empty() { SameAfter::All } else { SameAfter::AllBut(rests) })
    }

    /// The remembered values that begin as `partial` does and must not come again where it is, or that are parts of such values.
    fn watched(&mut self, partial: PartialId, exprs: &mut Exprs) -> Result<Vec<ValueId>> {
        let PartialValue { place, parts, .. } = self.memory.partial(partial);
        let Some(parts) = parts else { return Ok(Vec::new()) };
        let values = self.watched_in(place, exprs)?;
        exprs.charge(values.len() as u64)?;
        Ok(self.memory.values.beginning_as(parts, &values))
    }

    /// The values that must not come again in `place`, or only together with others.
    fn watched_in(&mut self, place: PlaceId, exprs: &mut Exprs) -> Result<Vec<ValueId>> {
        match self.memory.place(place) {
            ValuePlace::Item(next) => self.repeated(next, exprs),
            ValuePlace::Part { of, key, next } => {
                let watched = self.watched(of, exprs)?;
                let mut found = self.parts_at(of, key, &watched);
                if let Position::Array(next) = next {
                    if self.is_kept_apart(of) {
                        found.extend(self.repeated(next, exprs)?);
                    }
                }
                Ok(found)
            }
        }
    }

    /// Whether the lexeme of `state`, or the one of it that `is_read` now, is the same whatever texts were read before that
    /// [`RuleTable::same_after`] calls the same: where not all parts are known, nothing is forbidden.
    pub(in crate::json_schema::compile) fn is_same_lexeme(&self, state: &JsonState, is_read: bool) -> bool {
        let is_unknown = |partial: PartialId| self.memory.partial(partial).parts.is_none();
        match *state {
            JsonState::Remembered(place, _) => match self.memory.place(place) {
                ValuePlace::Item(_) => false,
                // The text of a value after its key; the bracket of an array.
                ValuePlace::Part { of, key, .. } => {
                    is_unknown(of) && if is_read { key.is_some() } else { !self.is_kept_apart(of) }
                }
            },
            JsonState::RememberedPart(_) if is_read => false,
            // The bracket of an object that was just begun, and the keys after it that are named.
            JsonState::RememberedPart(partial) => match self.memory.partial(partial) {
                PartialValue { place, position: Position::Object(s), .. }
                    if s.first && self.is_item_apart(place) =>
                {
                    self.memory.spare_completions.get(&s.object) == Some(&true)
                }
                _ => is_unknown(partial),
            },
            _ => !is_read,
        }
    }

    /// Whether `place` is an item that must differ from others.
    fn is_item_apart(&self, place: PlaceId) -> bool {
        match self.memory.place(place) {
            ValuePlace::Item(_) => true,
            ValuePlace::Part { of, .. } => self.is_kept_apart(of),
        }
    }

    /// Notes of the objects of `schema` whether they can be completed in more ways than can be forbidden, whatever named key is
    /// written first.
    fn find_spare_completions(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<()> {
        for &composite in &*self.composites(schema, exprs)? {
            let Composite::Object(start) = composite else { continue };
            if !self.memory.spare_completions.contains_key(&start.object) {
                let has_spare = self.has_spare_completions(&start, exprs)?;
                self.memory.spare_completions.insert(start.object, has_spare);
            }
        }
        Ok(())
    }

    fn has_spare_completions(&mut self, start: &ObjectState, exprs: &mut Exprs) -> Result<bool> {
        let keys = self.named_next(start);
        // A key that always has values left.
        let mut ample = None;
        for &key in &keys {
            if self.has_unbounded(start, key, exprs)? {
                ample = Some(key);
            }
        }
        let Some(ample) = ample else { return Ok(false) };
        for key in keys {
            let ways = self.moves(start, key, exprs)?;
            let mut has_spare = ways.is_empty();
            for way in ways {
                has_spare = has_spare
                    || self.is_unbounded(way.schema, exprs)?
                    || (self.named_next(&way.next).contains(&ample)
                        && self.has_unbounded(&way.next, ample, exprs)?);
            }
            if !has_spare {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `key` may come next with a value of a schema that is unbounded.
    fn has_unbounded(&mut self, s: &ObjectState, key: u32, exprs: &mut Exprs) -> Result<bool> {
        for way in self.moves(s, key, exprs)? {
            if self.is_unbounded(way.schema, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
