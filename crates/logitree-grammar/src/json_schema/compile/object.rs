//! Objects as states: which keys may come next, and whether the object can still be completed.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::normalize::{KeyClass, ObjectFacts, PropertyRulesId, ScalarId, SchemaId, FALSE};
use super::super::options::KeyOrder;
use super::liveness::LivenessQuery;
use super::other_keys::OtherKeys;
use super::rule_table::RuleTable;
use crate::expr::{ExprId, Exprs};
use crate::{Error, ErrorKind, Result};

/// Maximum number of `exists` constraints of one object.
const MAX_EXISTS: usize = 12;

/// A position in an object: after its opening bracket or after a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ObjectState {
    /// Which object.
    pub object: u32,
    /// Whether no key was written.
    pub first: bool,
    /// In the schema's order: the first named key that may still come.
    pub next: u32,
    /// Keys written, up to the largest count that matters.
    pub count: u32,
    /// `exists` constraints that are not met, one bit each.
    pub open: u32,
    /// Named keys written, as far as they matter: an interned list.
    pub seen: u32,
}

/// A key that the schema names.
#[derive(Debug, Clone)]
pub(super) struct NamedKey {
    pub id: ScalarId,
    pub required: bool,
    /// Whether other keys depend on it, or it on them.
    pub bound: bool,
    /// The schema of its value, computed on first use.
    schema: Option<SchemaId>,
    /// The `exists` constraints that it may meet.
    meets: Option<u32>,
}

/// Objects that fulfil certain facts.
pub(super) struct ObjectRule {
    pub facts: Arc<ObjectFacts>,
    pub keys: Vec<NamedKey>,
    /// The place of each in `keys`.
    pub places: FxHashMap<ScalarId, u32>,
    /// Whether only named keys are allowed.
    pub closed: bool,
    pub others: Option<Arc<[OtherKeys]>>,
    /// Keys that it does not name, but another alternative of the same value does ([`RuleTable::share_names`]).
    pub foreign: Arc<[ScalarId]>,
    /// The characters of keys that are neither named nor foreign, once asked for.
    pub beside_foreign: Option<ExprId>,
    /// Pairs of places in `keys`, sorted: where the first is, the second must be.
    pub dependent: Vec<(u32, u32)>,
    /// For each place in `keys` how many of those from there on are required.
    required_from: Vec<u32>,
    /// Keys are counted up to here.
    counted: u32,
}

/// A key that may come next, with one choice for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextMember {
    /// A place in the named keys, or that plus their number for the others.
    pub key: u32,
    /// What the value fulfils.
    pub schema: SchemaId,
    /// What follows it.
    pub next: ObjectState,
}

impl ObjectRule {
    /// Whether only counts and named keys decide whether it can be completed.
    fn is_plain(&self) -> bool {
        self.facts.exists.is_empty() && self.dependent.is_empty()
    }
}

impl RuleTable {
    pub(super) fn new_object(&mut self, facts: &Arc<ObjectFacts>, exprs: &mut Exprs) -> Result<ObjectRule> {
        if facts.exists.len() > MAX_EXISTS {
            let message =
                format!("an object must have more than {MAX_EXISTS} keys of several classes at once");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut ids = Vec::new();
        let mut known: FxHashMap<ScalarId, u32> = FxHashMap::default();
        let mut name = |id: ScalarId| {
            known.entry(id).or_insert_with(|| {
                ids.push(id);
                ids.len() as u32 - 1
            });
        };
        let uncovered = facts.exists.iter().filter_map(|exists| match exists.keys {
            KeyClass::Uncovered(part) => Some(part),
            KeyClass::Matching(_) | KeyClass::Unlike(_) => None,
        });
        for part in self.with_covers(facts.parts.iter().copied().chain(uncovered)) {
            self.forms.part(part).named.iter().for_each(|&(id, _)| name(id));
        }
        facts.keys.iter().for_each(|&(id, _)| name(id));
        facts.required.iter().for_each(|&id| name(id));
        facts.dependent.iter().for_each(|&(a, b)| [a, b].into_iter().for_each(&mut name));
        let finite = self.finite_names(facts.names, exprs)?;
        finite.iter().flatten().for_each(|&id| name(id));
        let place = |id: &ScalarId| known[id];
        let mut dependent: Vec<_> = facts.dependent.iter().map(|(a, b)| (place(a), place(b))).collect();
        dependent.sort_unstable();
        let mut keys: Vec<NamedKey> = ids
            .into_iter()
            .map(|id| NamedKey { id, required: false, bound: false, schema: None, meets: None })
            .collect();
        facts.required.iter().for_each(|id| keys[place(id) as usize].required = true);
        dependent.iter().flat_map(|&(a, b)| [a, b]).for_each(|at| keys[at as usize].bound = true);
        let mut required_from = vec![0; keys.len() + 1];
        for at in (0..keys.len()).rev() {
            required_from[at] = required_from[at + 1] + u32::from(keys[at].required);
        }
        let counted = u32::try_from(facts.max.unwrap_or(facts.min)).unwrap_or(u32::MAX);
        let facts = Arc::clone(facts);
        let closed = finite.is_some();
        Ok(ObjectRule {
            facts,
            keys,
            places: known,
            closed,
            others: None,
            foreign: Arc::new([]),
            beside_foreign: None,
            dependent,
            required_from,
            counted,
        })
    }

    /// These parts, each followed by those that it builds on; each part once, although many may build on the same.
    pub(super) fn with_covers(
        &self,
        parts: impl IntoIterator<Item = PropertyRulesId>,
    ) -> Vec<PropertyRulesId> {
        /// Parts that are compared one by one.
        const FEW: usize = 8;
        let mut open: Vec<PropertyRulesId> = parts.into_iter().collect();
        if open.len() <= FEW && open.iter().all(|&part| self.forms.part(part).covers.is_empty()) {
            let mut found = Vec::with_capacity(open.len());
            for part in open {
                if !found.contains(&part) {
                    found.push(part);
                }
            }
            return found;
        }
        open.reverse();
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        while let Some(part) = open.pop() {
            if seen.insert(part) {
                found.push(part);
                open.extend(self.forms.part(part).covers.iter().rev());
            }
        }
        found
    }

    pub(super) fn object_start(&self, object: u32) -> ObjectState {
        let demands = self.objects[object as usize].facts.exists.len();
        ObjectState { object, first: true, next: 0, count: 0, open: (1 << demands) - 1, seen: 0 }
    }

    /// What the value of a named key fulfils.
    pub(super) fn named_schema(&mut self, object: u32, key: u32, exprs: &mut Exprs) -> Result<SchemaId> {
        let known = &self.objects[object as usize].keys[key as usize];
        if let Some(schema) = known.schema {
            return Ok(schema);
        }
        let (id, facts) = (known.id, Arc::clone(&self.objects[object as usize].facts));
        let schema = self.forms.key_schema(&facts, id, exprs)?;
        self.objects[object as usize].keys[key as usize].schema = Some(schema);
        Ok(schema)
    }

    /// Which demands a named key may meet.
    fn named_meets(&mut self, object: u32, key: u32, exprs: &mut Exprs) -> Result<u32> {
        let known = &self.objects[object as usize].keys[key as usize];
        if let Some(meets) = known.meets {
            return Ok(meets);
        }
        let (id, facts) = (known.id, Arc::clone(&self.objects[object as usize].facts));
        let mut meets = 0;
        for (bit, exists) in facts.exists.iter().enumerate() {
            let in_class = match exists.keys {
                KeyClass::Matching(regex) => self.forms.key_matches(regex, id, exprs)?,
                KeyClass::Uncovered(part) => self.forms.uncovered(part, id, exprs)?,
                KeyClass::Unlike(schema) => !self.forms.string_fulfils(schema, id, exprs)?,
            };
            meets |= u32::from(in_class) << bit;
        }
        self.objects[object as usize].keys[key as usize].meets = Some(meets);
        Ok(meets)
    }

    /// What the value of a key fulfils, and which demands it may meet; `key` counts the named keys, then the others.
    pub(super) fn key_demands(
        &mut self,
        object: u32,
        key: u32,
        exprs: &mut Exprs,
    ) -> Result<(SchemaId, u32)> {
        let named = self.objects[object as usize].keys.len() as u32;
        if key < named {
            return Ok((self.named_schema(object, key, exprs)?, self.named_meets(object, key, exprs)?));
        }
        let other = &self.others(object, exprs)?[(key - named) as usize];
        Ok((other.schema, other.meets))
    }

    /// Whether the object may end here.
    pub(super) fn object_may_end(&self, s: &ObjectState) -> bool {
        let object = &self.objects[s.object as usize];
        let seen = self.sets.get(s.seen);
        let has = |key: u32| seen.binary_search(&key).is_ok();
        self.required_left(s) == 0
            && u64::from(s.count) >= object.facts.min
            && s.open == 0
            && object.dependent.iter().all(|&(key, needed)| !has(key) || has(needed))
    }

    /// Required keys that are still to come.
    fn required_left(&self, s: &ObjectState) -> u32 {
        let object = &self.objects[s.object as usize];
        match self.order {
            KeyOrder::Schema => object.required_from[s.next as usize],
            KeyOrder::Any => {
                let seen = self.sets.get(s.seen).iter();
                object.required_from[0]
                    - seen.filter(|&&key| object.keys[key as usize].required).count() as u32
            }
        }
    }

    /// The named keys that may come next as far as order goes.
    pub(super) fn named_next(&self, s: &ObjectState) -> Vec<u32> {
        let object = &self.objects[s.object as usize];
        let keys = object.keys.len() as u32;
        match self.order {
            KeyOrder::Schema => {
                let required = (s.next..keys).find(|&key| object.keys[key as usize].required);
                (s.next..required.map_or(keys, |key| key + 1)).collect()
            }
            KeyOrder::Any => {
                let seen = self.sets.get(s.seen);
                (0..keys).filter(|key| seen.binary_search(key).is_err()).collect()
            }
        }
    }

    /// Whether keys that are not named may come next as far as order goes.
    pub(super) fn others_next(&self, s: &ObjectState) -> bool {
        let object = &self.objects[s.object as usize];
        !object.closed && (self.order == KeyOrder::Any || object.required_from[s.next as usize] == 0)
    }

    fn after_named(&mut self, s: &ObjectState, key: u32) -> ObjectState {
        let matters = self.order == KeyOrder::Any || self.objects[s.object as usize].keys[key as usize].bound;
        let seen = if matters { self.sets.with(s.seen, key) } else { s.seen };
        let next = if self.order == KeyOrder::Any { 0 } else { key + 1 };
        ObjectState { first: false, next, count: self.counted_on(s), seen, ..*s }
    }

    fn after_other(&self, s: &ObjectState) -> ObjectState {
        let keys = self.objects[s.object as usize].keys.len() as u32;
        let next = if self.order == KeyOrder::Any { 0 } else { keys };
        ObjectState { first: false, next, count: self.counted_on(s), ..*s }
    }

    fn counted_on(&self, s: &ObjectState) -> u32 {
        s.count.saturating_add(1).min(self.objects[s.object as usize].counted)
    }

    /// Whether one more key would be too many.
    fn is_full(&self, s: &ObjectState) -> bool {
        self.objects[s.object as usize].facts.max.is_some_and(|max| u64::from(s.count) >= max)
    }

    /// The choices for the value of a key after which the object can be completed. Each `exists` constraint that the
    /// key may meet is met or left open.
    pub(super) fn moves(&mut self, s: &ObjectState, key: u32, exprs: &mut Exprs) -> Result<Vec<NextMember>> {
        if self.is_full(s) {
            return Ok(Vec::new());
        }
        exprs.spend(4)?;
        let (schema, meets) = self.key_demands(s.object, key, exprs)?;
        let named = self.objects[s.object as usize].keys.len() as u32;
        let next = if key < named { self.after_named(s, key) } else { self.after_other(s) };
        let mut found = Vec::new();
        if schema == FALSE {
            return Ok(found);
        }
        let may_meet = meets & s.open;
        let facts = Arc::clone(&self.objects[s.object as usize].facts);
        let mut met = may_meet;
        loop {
            let mut schemas = vec![schema];
            schemas.extend(
                facts.exists.iter().enumerate().filter(|&(b, _)| met >> b & 1 == 1).map(|(_, e)| e.schema),
            );
            let all = self.forms.all(&schemas)?;
            let next = ObjectState { open: s.open & !met, ..next };
            if self.alive(all, exprs)? && self.object_can_complete(next, exprs)? {
                found.push(NextMember { key, schema: all, next });
            }
            if met == 0 {
                return Ok(found);
            }
            met = (met - 1) & may_meet;
        }
    }

    /// Whether [`RuleTable::moves`] has any.
    pub(super) fn may_move(&mut self, s: &ObjectState, key: u32, exprs: &mut Exprs) -> Result<bool> {
        if self.is_full(s) {
            return Ok(false);
        }
        let (schema, meets) = self.key_demands(s.object, key, exprs)?;
        if schema == FALSE {
            return Ok(false);
        }
        if meets & s.open != 0 {
            return Ok(!self.moves(s, key, exprs)?.is_empty());
        }
        exprs.spend(4)?;
        let named = self.objects[s.object as usize].keys.len() as u32;
        let next = if key < named { self.after_named(s, key) } else { self.after_other(s) };
        Ok(self.alive(schema, exprs)? && self.object_can_complete(next, exprs)?)
    }

    /// Whether the object can be completed from here.
    pub(super) fn object_can_complete(&mut self, s: ObjectState, exprs: &mut Exprs) -> Result<bool> {
        let object = &self.objects[s.object as usize];
        let (min, max) = (object.facts.min, object.facts.max);
        if !object.is_plain() || s.first {
            if self.object_may_end(&s) {
                return Ok(true);
            }
            if !s.first {
                if let Some(known) = self.keys_complete(&s, exprs)? {
                    return Ok(known);
                }
            }
            return self.ask(LivenessQuery::Object(s), exprs);
        }
        // The required keys were proven live when the object was entered.
        let (count, left) = (u64::from(s.count), u64::from(self.required_left(&s)));
        if max.is_some_and(|max| count + left > max) {
            return Ok(false);
        }
        if count + left >= min {
            return Ok(true);
        }
        self.ask(LivenessQuery::Object(s), exprs)
    }

    /// The uncached form of [`RuleTable::object_can_complete`].
    pub(super) fn object_completes(&mut self, s: ObjectState, exprs: &mut Exprs) -> Result<bool> {
        if let Some(known) = self.keys_complete(&s, exprs)? {
            return Ok(known);
        }
        if self.object_may_end(&s) {
            return Ok(true);
        }
        let mut keys = self.named_next(&s);
        // First the keys that must come: often nothing else must.
        let object = &self.objects[s.object as usize];
        let seen = self.sets.get(s.seen);
        let has = |key: u32| seen.binary_search(&key).is_ok();
        let missing = object.dependent.iter().filter(|pair| has(pair.0)).map(|pair| pair.1);
        let missing: FxHashSet<u32> = missing.filter(|&key| !has(key)).collect();
        let must = |key: u32| object.keys[key as usize].required || missing.contains(&key);
        keys.sort_by_key(|&key| (!must(key), std::cmp::Reverse(key)));
        // In any order a key that must come may as well come now: whether it does decides.
        if let (KeyOrder::Any, Some(&key)) = (self.order, keys.first().filter(|&&key| must(key))) {
            return self.may_move(&s, key, exprs);
        }
        for key in keys {
            if self.may_move(&s, key, exprs)? {
                return Ok(true);
            }
        }
        if self.others_next(&s) {
            let named = self.objects[s.object as usize].keys.len() as u32;
            for other in 0..self.others(s.object, exprs)?.len() as u32 {
                if self.may_move(&s, named + other, exprs)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether the object can be completed from here, where that follows from its keys one by one: those that must come,
    /// and how many others may. `None` if it takes a search: some key of a class must be there, or keys that need others
    /// are too many for the maximum.
    fn keys_complete(&mut self, s: &ObjectState, exprs: &mut Exprs) -> Result<Option<bool>> {
        let facts = Arc::clone(&self.objects[s.object as usize].facts);
        if !facts.exists.is_empty() {
            return Ok(None);
        }
        let Some(missing) = self.missing_keys(s, exprs)? else { return Ok(Some(false)) };
        let mut count = u64::from(s.count) + missing.len() as u64;
        if facts.max.is_some_and(|max| max < count.max(facts.min)) {
            return Ok(Some(false));
        }
        for &key in &missing {
            let schema = self.named_schema(s.object, key, exprs)?;
            if !self.alive(schema, exprs)? {
                return Ok(Some(false));
            }
        }
        if count < facts.min && !self.objects[s.object as usize].closed {
            for other in self.others(s.object, exprs)?.iter() {
                if self.alive(other.schema, exprs)? {
                    return Ok(Some(true));
                }
            }
        }
        // The others one by one; at last those that need further keys, or that others need.
        let seen = self.sets.get(s.seen).to_vec();
        let keys = self.objects[s.object as usize].keys.len() as u32;
        let mut bound = FxHashSet::default();
        for key in s.next..keys {
            if count >= facts.min {
                return Ok(Some(true));
            }
            exprs.charge(1)?;
            if seen.binary_search(&key).is_ok() || missing.contains(&key) {
                continue;
            }
            let schema = self.named_schema(s.object, key, exprs)?;
            if !self.alive(schema, exprs)? {
                continue;
            }
            if self.objects[s.object as usize].keys[key as usize].bound {
                bound.insert(key);
            } else {
                count += 1;
            }
        }
        self.drop_lacking(s, &mut bound, &missing, exprs)?;
        let most = count + bound.len() as u64;
        Ok(match (most >= facts.min, facts.max) {
            (true, Some(_)) if count < facts.min => None,
            (enough, _) => Some(enough),
        })
    }

    /// Leaves those of the keys `bound` that may all be there, beside the written ones and the `missing` ones.
    fn drop_lacking(
        &self,
        s: &ObjectState,
        bound: &mut FxHashSet<u32>,
        missing: &FxHashSet<u32>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        let dependent = &self.objects[s.object as usize].dependent;
        let seen = self.sets.get(s.seen);
        let has = |bound: &FxHashSet<u32>, key: &u32| {
            bound.contains(key) || seen.binary_search(key).is_ok() || missing.contains(key)
        };
        loop {
            exprs.charge(dependent.len() as u64)?;
            let lacks = dependent.iter().filter(|(key, needed)| bound.contains(key) && !has(bound, needed));
            let lacks: FxHashSet<u32> = lacks.map(|pair| pair.0).collect();
            if lacks.is_empty() {
                return Ok(());
            }
            bound.retain(|key| !lacks.contains(key));
        }
    }

    /// The keys that must still come: those that are required, and those that they and the written ones need. `None` if one
    /// of them cannot come any more.
    fn missing_keys(&self, s: &ObjectState, exprs: &mut Exprs) -> Result<Option<FxHashSet<u32>>> {
        let object = &self.objects[s.object as usize];
        let seen = self.sets.get(s.seen);
        let mut found = FxHashSet::default();
        if self.required_left(s) > 0 {
            let required =
                (s.next..object.keys.len() as u32).filter(|&key| object.keys[key as usize].required);
            found.extend(required.filter(|key| seen.binary_search(key).is_err()));
        }
        if object.dependent.is_empty() {
            return Ok(Some(found));
        }
        let mut open: Vec<u32> = seen.iter().chain(&found).copied().collect();
        while let Some(key) = open.pop() {
            exprs.charge(1)?;
            let from = object.dependent.partition_point(|pair| pair.0 < key);
            for &(_, needed) in object.dependent[from..].iter().take_while(|pair| pair.0 == key) {
                exprs.charge(1)?;
                if seen.binary_search(&needed).is_ok() || !found.insert(needed) {
                    continue;
                }
                if needed < s.next {
                    return Ok(None);
                }
                open.push(needed);
            }
        }
        Ok(Some(found))
    }
}
