//! Counts the values of a schema up to a number that is enough: whether items that must differ can run out.

use super::super::normalize::{Facts, SchemaId, TRUE};
use super::super::schema::TypeSet;
use super::remembered::Memory;
use super::rule_table::RuleTable;
use super::values::{JsonValue, ValueId};
use crate::expr::{Encoding, ExprId, Exprs};
use crate::{CharSet, Regex, Result};

/// Maximum number of values that are listed. No value is kept from more: an array remembers a quarter of it, and no more
/// than that are forbidden to a part of its items.
const MAX_LISTED: usize = 4_096;
/// Maximum number of states that are looked at to list the texts of a lexeme.
const MAX_VISITED: usize = 20_000;
/// Maximum depth of parts that are looked into.
const MAX_DEPTH: u32 = 6;

/// How many values there are.
pub(super) enum Count {
    /// As many as are enough, or more.
    Many,
    /// These only.
    Few(Vec<ValueId>),
    /// That is not decided.
    Unknown,
}

impl RuleTable {
    /// Whether `schema` certainly has a value that is not forbidden, whatever was written before it.
    pub(super) fn is_plentiful(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(&known) = self.memory.plentiful.get(&schema) {
            return Ok(known);
        }
        // What leans on an open query is not kept.
        if self.depth > 0 {
            return Ok(false);
        }
        // An item may be of the same schema.
        self.memory.plentiful.insert(schema, false);
        let found = matches!(self.count_values(schema, MAX_LISTED, 0, exprs)?, Count::Many);
        self.memory.plentiful.insert(schema, found);
        Ok(found)
    }

    /// The values of `schema`, if they are fewer than `enough`.
    pub(super) fn count_values(
        &mut self,
        schema: SchemaId,
        enough: usize,
        depth: u32,
        exprs: &mut Exprs,
    ) -> Result<Count> {
        if schema == TRUE {
            return Ok(Count::Many);
        }
        let enough = enough.min(MAX_LISTED);
        let mut found = Vec::new();
        let mut unknown = false;
        for facts in &*self.forms.normal(schema, exprs)? {
            match self.count_scalars(facts, enough, exprs)? {
                Count::Many => return Ok(Count::Many),
                Count::Few(values) => found.extend(values),
                Count::Unknown => unknown = true,
            }
            let arrays = self.array_alive(facts, exprs)?;
            if arrays && self.are_many_arrays(facts, enough, depth, exprs)? {
                return Ok(Count::Many);
            }
            let objects = self.object_alive(facts, exprs)?;
            if objects && self.are_many_objects(facts, enough, depth, exprs)? {
                return Ok(Count::Many);
            }
            unknown |= arrays || objects;
        }
        found.sort_unstable();
        found.dedup();
        Ok(match found.len() {
            len if len >= enough => Count::Many,
            _ if unknown => Count::Unknown,
            _ => Count::Few(found),
        })
    }

    fn count_scalars(&mut self, facts: &Facts, enough: usize, exprs: &mut Exprs) -> Result<Count> {
        let mut found = Vec::new();
        if facts.any_of(TypeSet::NULL) {
            found.push(self.memory.values.id(JsonValue::Null)?);
        }
        for (bit, value) in [(1, false), (2, true)] {
            if facts.bools & bit != 0 {
                found.push(self.memory.values.id(JsonValue::Bool(value))?);
            }
        }
        if facts.any_of(TypeSet::NUMBER) {
            // Every number has one spelling of this form.
            let numbers = self.lexemes.number(&self.forms, facts.types, facts.number.as_ref(), exprs)?;
            let plain = exprs.compile(&shortest_decimals(), Encoding::Utf8)?;
            let texts = exprs.and(&[numbers, plain])?;
            match list_texts(texts, b"", enough, &mut self.memory, exprs)? {
                Count::Few(values) => found.extend(values),
                other => return Ok(other),
            }
        }
        if facts.any_of(TypeSet::STRING) {
            let texts = self.lexemes.chars(&self.forms, facts.string.as_deref(), exprs)?;
            match list_texts(texts, b"\"", enough, &mut self.memory, exprs)? {
                Count::Few(values) => found.extend(values),
                other => return Ok(other),
            }
        }
        Ok(Count::Few(found))
    }

    /// Whether it is certain that there are enough arrays.
    fn are_many_arrays(
        &mut self,
        facts: &Facts,
        enough: usize,
        depth: u32,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        let Some(array) = facts.array.clone().filter(|_| depth < MAX_DEPTH) else {
            return Ok(facts.array.is_none());
        };
        let id = self.array_id(Some(&array), exprs)?;
        if array.max.is_none() && array.contains.is_empty() && !array.unique {
            let mut endless = self.alive(array.rest, exprs)?;
            for &item in &array.prefix {
                endless = endless && self.alive(item, exprs)?;
            }
            if endless {
                return Ok(true);
            }
        }
        let start = self.array_start(id);
        for item in self.items(&start, exprs)? {
            if let Count::Many = self.count_values(item.schema, enough, depth + 1, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it is certain that there are enough objects.
    fn are_many_objects(
        &mut self,
        facts: &Facts,
        enough: usize,
        depth: u32,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        let Some(object) = facts.object.clone().filter(|_| depth < MAX_DEPTH) else {
            return Ok(facts.object.is_none());
        };
        let id = self.object_id(Some(&object), exprs)?;
        let start = self.object_start(id);
        let named = self.objects[id as usize].keys.len() as u32;
        for key in self.named_next(&start) {
            for way in self.moves(&start, key, exprs)? {
                if let Count::Many = self.count_values(way.schema, enough, depth + 1, exprs)? {
                    return Ok(true);
                }
            }
        }
        if self.others_next(&start) {
            for (place, other) in self.others(id, exprs)?.iter().enumerate() {
                if self.moves(&start, named + place as u32, exprs)?.is_empty() {
                    continue;
                }
                if let Count::Many = list_texts(other.chars, b"\"", enough, &mut self.memory, exprs)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Decimals without exponent, and without zeros at the end of a fraction.
fn shortest_decimals() -> Regex {
    let set = |ranges: &[(u32, u32)]| Regex::Set(CharSet::from_ranges(ranges.iter().copied()));
    let (zero, nine) = (u32::from(b'0'), u32::from(b'9'));
    let digits = set(&[(zero, nine)]).repeat(0, None);
    let positive = || set(&[(zero + 1, nine)]);
    let fraction = || Regex::concat([Regex::text("."), digits.clone(), positive()]);
    let whole = Regex::concat([positive(), digits.clone()]);
    let sign = || Regex::text("-").optional();
    Regex::or([
        Regex::text("0"),
        Regex::concat([sign(), Regex::text("0"), fraction()]),
        Regex::concat([sign(), whole, fraction().optional()]),
    ])
}

/// The values of these texts, each between two `quote`s, if they are fewer than `enough`.
fn list_texts(
    e: ExprId,
    quote: &[u8],
    enough: usize,
    memory: &mut Memory,
    exprs: &mut Exprs,
) -> Result<Count> {
    if !exprs.is_alive(e)? {
        return Ok(Count::Few(Vec::new()));
    }
    // Each text that is open is the beginning of one at least, and of none that another is the beginning of.
    let mut open = std::collections::VecDeque::from([(e, Vec::new())]);
    let mut found = Vec::new();
    let mut visited = 0;
    while let Some((e, text)) = open.pop_front() {
        visited += 1;
        if found.len() + open.len() + 1 >= enough {
            return Ok(Count::Many);
        }
        if visited > MAX_VISITED {
            return Ok(Count::Unknown);
        }
        if exprs.is_complete(e) {
            found.push(memory.values.scalar(&[quote, &text, quote].concat())?);
        }
        for byte in exprs.first_bytes(e)?.iter() {
            let next = exprs.derive(e, byte)?;
            // It may come again and again.
            if next == e {
                return Ok(Count::Many);
            }
            if exprs.is_alive(next)? {
                open.push_back((next, [&text[..], &[byte]].concat()));
            }
        }
    }
    Ok(Count::Few(found))
}
