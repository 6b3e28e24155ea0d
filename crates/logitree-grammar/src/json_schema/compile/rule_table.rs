//! The tables of one schema: its normal forms, lexemes, objects and arrays, each built once.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::normalize::{ArrayFacts, NormalForms, ObjectFacts, SchemaId};
use super::super::options::KeyOrder;
use super::super::schema::Schema;
use super::array::ArrayRule;
use super::lexemes::Lexemes;
use super::liveness::{Liveness, LivenessQuery};
use super::object::ObjectRule;
use super::remembered::Memory;
use super::transitions::{Composite, KeyTags};
use super::JsonState;
use crate::expr::{ExprId, Exprs};
use crate::rules::TokenNames;
use crate::{Chunks, IdTable, Result};

/// The tables of one schema.
pub(super) struct RuleTable {
    pub number: u32,
    pub forms: NormalForms,
    pub lexemes: Lexemes,
    pub order: KeyOrder,
    pub objects: Vec<ObjectRule>,
    pub arrays: Vec<ArrayRule>,
    pub sets: ListInterner,
    pub memory: Memory,
    pub key_tags: KeyTags,
    /// The tokens that values are written with, and the numbers of these sets.
    pub token_sets: Vec<(TokenNames, u32)>,
    object_ids: FxHashMap<Arc<ObjectFacts>, u32>,
    array_ids: FxHashMap<Arc<ArrayFacts>, u32>,
    pub composites: FxHashMap<SchemaId, Arc<[Composite]>>,
    pub scalars: FxHashMap<SchemaId, ExprId>,
    /// The texts and scalars of values of pairs, by schema and types.
    pub pair_values: FxHashMap<(SchemaId, u8), [ExprId; 2]>,
    pub verdicts: FxHashMap<LivenessQuery, Liveness>,
    /// How many queries are open.
    pub depth: u32,
    /// The depth of the outermost open query that the answer so far depends on; `u32::MAX` for none.
    pub oldest_dependency: u32,
    /// The arrays with unique items that are being built, each with its depth as an open query.
    pub building: Vec<(ArrayFacts, u32)>,
    /// Queries since the outermost one that is open.
    pub asked: u64,
}

impl RuleTable {
    /// Tables that nothing is in yet; `like` are others.
    pub(super) fn new(
        schema: Arc<Schema>,
        number: u32,
        like: Option<&RuleTable>,
        exprs: &mut Exprs,
    ) -> Result<RuleTable> {
        let like = like.filter(|like| like.forms.schema.options.writes_as(&schema.options));
        let lexemes = match like {
            Some(like) => like.lexemes.fresh(),
            None => Lexemes::new(&schema.options, exprs)?,
        };
        let order = schema.options.order;
        Ok(RuleTable {
            number,
            forms: NormalForms::new(schema),
            lexemes,
            order,
            objects: Vec::new(),
            arrays: Vec::new(),
            sets: ListInterner::default(),
            memory: Memory::default(),
            key_tags: KeyTags::default(),
            token_sets: Vec::new(),
            object_ids: FxHashMap::default(),
            array_ids: FxHashMap::default(),
            composites: FxHashMap::default(),
            scalars: FxHashMap::default(),
            pair_values: FxHashMap::default(),
            verdicts: FxHashMap::default(),
            depth: 0,
            oldest_dependency: u32::MAX,
            building: Vec::new(),
            asked: 0,
        })
    }

    /// The state before the whole value.
    pub(super) fn root(&mut self) -> Result<JsonState> {
        let schema = self.forms.schema_of(self.forms.schema.root)?;
        let has_margin = self.lexemes.margin.is_some() || self.forms.schema.options.pairs.is_some();
        Ok(if has_margin { JsonState::Document(schema) } else { JsonState::Value(schema) })
    }

    /// About how many bytes the states hold that are made while a text is read.
    pub(super) fn byte_size(&self) -> usize {
        let verdicts = 2 * self.verdicts.len() * std::mem::size_of::<(LivenessQuery, Liveness)>();
        self.memory.byte_size() + self.sets.bytes + verdicts
    }

    /// The number of the objects that fulfil `facts`.
    pub(super) fn object_id(&mut self, facts: Option<&Arc<ObjectFacts>>, exprs: &mut Exprs) -> Result<u32> {
        let facts = facts.map_or_else(|| Arc::new(ObjectFacts::any()), Arc::clone);
        if let Some(&known) = self.object_ids.get(&facts) {
            return Ok(known);
        }
        let object = self.new_object(&facts, exprs)?;
        let id = self.objects.len() as u32;
        self.objects.push(object);
        self.object_ids.insert(facts, id);
        Ok(id)
    }

    /// The number of the arrays that fulfil `facts`.
    pub(super) fn array_id(&mut self, facts: Option<&Arc<ArrayFacts>>, exprs: &mut Exprs) -> Result<u32> {
        let facts = facts.map_or_else(|| Arc::new(ArrayFacts::any()), Arc::clone);
        if let Some(&known) = self.array_ids.get(&facts) {
            return Ok(known);
        }
        let array = self.new_array(&facts, exprs)?;
        let id = self.arrays.len() as u32;
        self.arrays.push(array);
        self.array_ids.insert(facts, id);
        Ok(id)
    }
}

/// Entries by number.
pub(super) struct Interner<T> {
    all: Chunks<T>,
    ids: IdTable,
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of `entry`, in order of first occurrence.
    pub(super) fn id(&mut self, entry: T) -> u32 {
        let hash = FxBuildHasher.hash_one(&entry);
        if let Some(known) = self.ids.find(hash, |id| self.all[id as usize] == entry) {
            return known;
        }
        let id = self.all.len() as u32;
        self.all.push(entry);
        self.ids.insert(hash, id);
        id
    }

    pub(super) fn get(&self, id: u32) -> &T {
        &self.all[id as usize]
    }

    pub(super) fn byte_size(&self) -> usize {
        self.all.len() * 3 * std::mem::size_of::<T>()
    }
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { all: Chunks::default(), ids: IdTable::default() }
    }
}

/// Short lists of numbers, interned. The empty list is 0.
#[derive(Default)]
pub(super) struct ListInterner {
    all: Vec<Box<[u32]>>,
    ids: IdTable,
    /// About how many bytes it holds.
    bytes: usize,
}

impl ListInterner {
    pub(super) fn id(&mut self, list: &[u32]) -> u32 {
        if list.is_empty() {
            return 0;
        }
        let hash = FxBuildHasher.hash_one(list);
        if let Some(place) = self.ids.find(hash, |place| *self.all[place as usize] == *list) {
            return place + 1;
        }
        self.bytes += 80 + size_of_val(list);
        self.ids.insert(hash, self.all.len() as u32);
        self.all.push(list.into());
        self.all.len() as u32
    }

    pub(super) fn get(&self, id: u32) -> &[u32] {
        match id.checked_sub(1) {
            Some(place) => &self.all[place as usize],
            None => &[],
        }
    }

    /// The sorted list `id` with `more` in it.
    pub(super) fn with(&mut self, id: u32, more: u32) -> u32 {
        let mut list = self.get(id).to_vec();
        if let Err(at) = list.binary_search(&more) {
            list.insert(at, more);
        }
        self.id(&list)
    }
}
