//! Counts the values of a schema up to a number that is enough: whether items that must differ can run out.

use rustc_hash::FxHashMap;

use super::super::normalize::{Facts, ScalarId, SchemaId, TRUE};
use super::super::schema::TypeSet;
use super::lexemes::Spelling;
use super::object::ObjectState;
use super::remembered::Memory;
use super::rule_table::RuleTable;
use super::values::{JsonValue, TextId, TextTable, ValueId};
use crate::expr::{Encoding, ExprId, Exprs};
use crate::{CharSet, Regex, Result};

/// Maximum number of values that are listed. No value is kept from more: an array remembers a quarter of it, and no more
/// than that are forbidden to a part of its items.
const MAX_LISTED: usize = 4_096;
/// Maximum number of arrays or objects that are listed.
const MAX_COMBINED: usize = 512;
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

/// Counts the values of `facts` that are of one kind.
type CountKind = fn(&mut RuleTable, &Facts, usize, u32, &mut Exprs) -> Result<Count>;

impl RuleTable {
    /// Whether `schema` certainly has a value that is not forbidden, whatever was written before it.
    pub(super) fn is_unbounded(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(&known) = self.memory.unbounded.get(&schema) {
            return Ok(known);
        }
        // What depends on an open query is not kept.
        if self.depth > 0 {
            return Ok(false);
        }
        // An item may be of the same schema.
        self.memory.unbounded.insert(schema, false);
        let found = matches!(self.count_values(schema, MAX_LISTED, 0, exprs)?, Count::Many);
        self.memory.unbounded.insert(schema, found);
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
        let kinds: [CountKind; 3] =
            [RuleTable::count_scalars, RuleTable::count_arrays, RuleTable::count_objects];
        for facts in &*self.forms.normal(schema, exprs)? {
            for count in kinds {
                match count(self, facts, enough, depth, exprs)? {
                    Count::Many => return Ok(Count::Many),
                    Count::Few(values) => found.extend(values),
                    Count::Unknown => unknown = true,
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(match found.len() {
            len if len >= enough => Count::Many,
            _ if unknown => Count::Unknown,
            _ => Count::Few(found),
        })
    }

    fn count_scalars(&mut self, facts: &Facts, enough: usize, _: u32, exprs: &mut Exprs) -> Result<Count> {
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
            if let Some(only) = facts.string.as_ref().and_then(|string| string.only.as_ref()) {
                exprs.charge(4 * only.len() as u64)?;
                for &id in only.iter().take(enough) {
                    found.push(self.memory.values.text(self.forms.texts.text(id))?);
                }
                return Ok(if only.len() < enough { Count::Few(found) } else { Count::Many });
            }
            let texts =
                self.lexemes.chars(&self.forms, facts.string.as_deref(), Spelling::Canonical, exprs)?;
            match list_texts(texts, b"\"", enough, &mut self.memory, exprs)? {
                Count::Few(values) => found.extend(values),
                other => return Ok(other),
            }
        }
        Ok(Count::Few(found))
    }

    /// Arrays are many if the first item has many values, or if there may be endlessly many items; they are few if they are few
    /// combinations of few items.
    fn count_arrays(&mut self, facts: &Facts, enough: usize, depth: u32, exprs: &mut Exprs) -> Result<Count> {
        if !self.array_alive(facts, exprs)? {
            return Ok(Count::Few(Vec::new()));
        }
        let Some(array) = facts.array.clone() else { return Ok(Count::Many) };
        if depth >= MAX_DEPTH {
            return Ok(Count::Unknown);
        }
        let id = self.array_id(Some(&array), exprs)?;
        if array.max.is_none() && array.contains.is_empty() && !array.unique {
            let mut endless = self.alive(array.rest, exprs)?;
            for &item in &array.prefix {
                endless = endless && self.alive(item, exprs)?;
            }
            if endless {
                return Ok(Count::Many);
            }
        }
        let start = self.array_start(id);
        for item in self.items(&start, exprs)? {
            if let Count::Many = self.count_values(item.schema, enough, depth + 1, exprs)? {
                return Ok(Count::Many);
            }
        }
        if !array.contains.is_empty() {
            return Ok(Count::Unknown);
        }
        let mut found = Vec::new();
        let mut all: Vec<Vec<ValueId>> = vec![Vec::new()];
        for place in 0..=MAX_COMBINED as u64 {
            if place >= array.min {
                for items in &all {
                    found.push(self.memory.values.id(JsonValue::Array(items[..].into()))?);
                }
            }
            if all.is_empty() || array.max.is_some_and(|max| place >= max) {
                return Ok(Count::Few(found));
            }
            let Some(items) = self.list_values(array.item(place), depth + 1, exprs)? else { break };
            let mut more = Vec::new();
            for before in &all {
                for item in items.iter().filter(|item| !array.unique || !before.contains(item)) {
                    exprs.charge(2 * place + 16)?;
                    more.push(before.iter().chain([item]).copied().collect());
                }
                if found.len() + more.len() > MAX_COMBINED {
                    return Ok(Count::Unknown);
                }
            }
            all = more;
        }
        Ok(Count::Unknown)
    }

    /// Objects are many if a key that may come first has many values or is one of many; they are few if they are combinations
    /// of few values of named keys.
    fn count_objects(
        &mut self,
        facts: &Facts,
        enough: usize,
        depth: u32,
        exprs: &mut Exprs,
    ) -> Result<Count> {
        if !self.object_alive(facts, exprs)? {
            return Ok(Count::Few(Vec::new()));
        }
        let Some(object) = facts.object.clone() else { return Ok(Count::Many) };
        if depth >= MAX_DEPTH {
            return Ok(Count::Unknown);
        }
        let id = self.object_id(Some(&object), exprs)?;
        let start = self.object_start(id);
        if self.are_many_objects(&start, enough, depth, exprs)? {
            return Ok(Count::Many);
        }
        if !object.exists.is_empty() {
            return Ok(Count::Unknown);
        }
        if !self.objects[id as usize].closed {
            for other in self.others(id, exprs)?.iter() {
                if self.alive(other.schema, exprs)? {
                    return Ok(Count::Unknown);
                }
            }
        }
        let keys: Vec<(ScalarId, bool)> =
            self.objects[id as usize].keys.iter().map(|key| (key.id, key.required)).collect();
        let dependent = self.objects[id as usize].dependent.clone();
        // Whether each combination is an object.
        let free = dependent.is_empty() && object.max.is_none() && object.min <= object.required.len() as u64;
        let mut all: Vec<Vec<(u32, ValueId)>> = vec![Vec::new()];
        for (key, &(_, required)) in (0..).zip(&keys) {
            let schema = self.named_schema(id, key, exprs)?;
            let Some(values) = self.list_values(schema, depth + 1, exprs)? else { return Ok(Count::Unknown) };
            let mut more = if required { Vec::new() } else { all.clone() };
            for before in &all {
                for &value in &values {
                    exprs.charge(u64::from(2 * key) + 16)?;
                    more.push(before.iter().copied().chain([(key, value)]).collect());
                }
                if more.len() > MAX_COMBINED {
                    return Ok(if free && more.len() >= enough { Count::Many } else { Count::Unknown });
                }
            }
            all = more;
        }
        let mut names = Vec::with_capacity(keys.len());
        for (name, _) in keys {
            names.push(self.memory.values.text(self.forms.texts.text(name))?);
        }
        let mut found = Vec::with_capacity(all.len());
        for members in all {
            let count = members.len() as u64;
            let has = |key: u32| members.iter().any(|member| member.0 == key);
            exprs.charge(dependent.len() as u64 * count)?;
            let lacks = dependent.iter().any(|&(key, needed)| has(key) && !has(needed));
            if count >= object.min && object.max.is_none_or(|max| count <= max) && !lacks {
                let mut members: Vec<_> =
                    members.into_iter().map(|(key, value)| (names[key as usize], value)).collect();
                members.sort_unstable();
                found.push(self.memory.values.id(JsonValue::Object(members.into()))?);
            }
        }
        Ok(Count::Few(found))
    }

    /// Whether a key that may come first has many values or is one of many.
    fn are_many_objects(
        &mut self,
        start: &ObjectState,
        enough: usize,
        depth: u32,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        for key in self.named_next(start) {
            for way in self.moves(start, key, exprs)? {
                if let Count::Many = self.count_values(way.schema, enough, depth + 1, exprs)? {
                    return Ok(true);
                }
            }
        }
        let named = self.objects[start.object as usize].keys.len() as u32;
        if self.others_next(start) {
            for (place, other) in (named..).zip(self.others(start.object, exprs)?.iter()) {
                if self.moves(start, place, exprs)?.is_empty() {
                    continue;
                }
                if let Count::Many = list_texts(other.chars, b"\"", enough, &mut self.memory, exprs)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The values of `schema`, if that are few and all are known.
    fn list_values(
        &mut self,
        schema: SchemaId,
        depth: u32,
        exprs: &mut Exprs,
    ) -> Result<Option<Vec<ValueId>>> {
        exprs.spend(8)?;
        if !self.alive(schema, exprs)? {
            return Ok(Some(Vec::new()));
        }
        match self.count_values(schema, MAX_COMBINED, depth, exprs)? {
            Count::Few(values) => Ok(Some(values)),
            Count::Many | Count::Unknown => Ok(None),
        }
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
    let mut texts = TextTable::default();
    // Beginnings of the same length, by what is left after them: one state is often left after thousands. Each is the beginning
    // of one text at least, and of none that another is the beginning of.
    let mut open = FxHashMap::from_iter([(e, vec![TextTable::EMPTY])]);
    let (mut found, mut more, mut visited) = (Vec::new(), 1, 0);
    while !open.is_empty() {
        if found.len() + more >= enough {
            return Ok(Count::Many);
        }
        if visited > MAX_VISITED {
            return Ok(Count::Unknown);
        }
        visited += more;
        more = 0;
        let mut longer: FxHashMap<ExprId, Vec<TextId>> = FxHashMap::default();
        for (e, begun) in open {
            if exprs.is_complete(e) {
                found.extend_from_slice(&begun);
            }
            for (class, next) in exprs.transitions(e)? {
                more += begun.len() * class.len();
                // It may come again and again.
                if next == e || found.len() + more >= enough {
                    return Ok(Count::Many);
                }
                let longer = longer.entry(next).or_default();
                for (byte, &text) in class.iter().flat_map(|byte| begun.iter().map(move |text| (byte, text)))
                {
                    longer.push(texts.with(text, byte)?);
                }
            }
        }
        open = longer;
    }
    let value = |text| memory.values.scalar(&[quote, &texts.bytes(text), quote].concat());
    found.into_iter().map(value).collect::<Result<_>>().map(Count::Few)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts, one by one.
    fn all_texts(e: ExprId, exprs: &mut Exprs) -> usize {
        let texts = usize::from(exprs.is_complete(e));
        let bytes: Vec<u8> = exprs.first_bytes(e).unwrap().iter().collect();
        let nexts: Vec<ExprId> = bytes.iter().map(|&byte| exprs.derive(e, byte).unwrap()).collect();
        nexts.into_iter().fold(texts, |all, next| all + all_texts(next, exprs))
    }

    #[test]
    fn texts_are_counted_as_if_listed() {
        let letters =
            |from: char, to: char| Regex::Set(CharSet::from_ranges([(u32::from(from), u32::from(to))]));
        let cases = [
            letters('a', 'd').repeat(1, Some(3)),
            Regex::concat([letters('a', 'b').repeat(0, Some(2)), letters('b', 'c').repeat(0, Some(3))]),
            Regex::or([Regex::text("abc"), Regex::text("ab"), Regex::text("x"), letters('a', 'z')]),
            Regex::concat([Regex::text("abcdef"), letters('0', '9').optional()]),
        ];
        for regex in &cases {
            let mut exprs = Exprs::new(1 << 16);
            let e = exprs.compile(regex, Encoding::Utf8).unwrap();
            let count = all_texts(e, &mut exprs);
            for enough in [1, 2, count, count + 1, 4_096] {
                let found = list_texts(e, b"\"", enough, &mut Memory::default(), &mut exprs).unwrap();
                match found {
                    Count::Many => assert!(count >= enough, "{regex:?} has {count}, not {enough}"),
                    Count::Few(values) => {
                        assert!(count < enough && values.len() == count, "{regex:?}: {count}")
                    }
                    Count::Unknown => panic!("{regex:?} is small"),
                }
            }
        }
        let mut exprs = Exprs::new(1 << 16);
        for (regex, is_many) in [
            (letters('0', 'f').repeat(36, Some(36)), true),
            (Regex::concat([Regex::text("ab"), letters('a', 'b').repeat(0, None)]), true),
            (Regex::concat([letters('0', '9').repeat(3, Some(3)), Regex::text("x".repeat(40))]), false),
        ] {
            let e = exprs.compile(&regex, Encoding::Utf8).unwrap();
            let found = list_texts(e, b"\"", 4_096, &mut Memory::default(), &mut exprs).unwrap();
            assert_eq!(matches!(found, Count::Many), is_many, "{regex:?}");
            assert_eq!(matches!(found, Count::Unknown), !is_many, "{regex:?}");
        }
    }
}
