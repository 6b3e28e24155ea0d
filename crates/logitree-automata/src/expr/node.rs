//! The arena of expressions: hash-consed nodes and cached facts about each.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::computed::Reached;
use super::derive::Row;
use super::literals::LiteralSet;
use super::{ByteSet, Contained, Encoding, ExprId, Tag, EMPTY, NOTHING};
use crate::interrupt;
use crate::{CharSet, Dfa, IdTable};
use crate::{Error, ErrorKind, Result};

/// A 128-bit hash of an expression's structure, the same in every arena of this process. The key is random, so
/// that an input cannot be prepared to collide.
pub type StructureHash = u128;

/// The maximum of an unbounded repetition.
pub(super) const ENDLESS: u32 = u32::MAX;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ExprNode {
    Nothing,
    /// The empty string, complete with a tag.
    Tag(Tag),
    /// One byte of the set.
    Class(ByteSet),
    /// The non-empty range of the pool between the two offsets.
    Bytes(u32, u32),
    Concat(ExprId, ExprId),
    /// Two or more, sorted.
    Or(Arc<[ExprId]>),
    And(Arc<[ExprId]>),
    Not(ExprId),
    Repeat {
        of: ExprId,
        min: u32,
        max: u32,
    },
    /// Literals `from..to` of a set after their first `depth` bytes.
    Literals {
        set: u32,
        from: u32,
        to: u32,
        depth: u32,
    },
    /// An automaton of the arena, in this state.
    Dfa(u32, u32),
    /// A computed automaton of the arena, in this state.
    Computed(u32, u32),
}

/// Cached facts about a node.
#[derive(Clone, Copy)]
pub(super) struct NodeFacts {
    pub hash: StructureHash,
    /// An index into `Exprs::outcome_lists`.
    pub outcomes: u32,
    /// Whether it contains an intersection or complement, so that testing for emptiness needs a search.
    pub boolean: bool,
    /// A lower bound of the length in bytes of its strings.
    pub shortest: u32,
    /// Whether its language is known not to be empty.
    pub alive: bool,
    /// The hash without the counts of the repetitions in its concatenation; the low half of `hash` if it has none.
    pub shape: u64,
}

/// An arena of expressions.
#[derive(Clone)]
pub struct Exprs {
    pub(super) nodes: Vec<ExprNode>,
    pub(super) facts: Vec<NodeFacts>,
    ids: IdTable,
    /// The bytes of all [`ExprNode::Bytes`].
    pub(super) pool: Vec<u8>,
    /// The offset of each string in the pool.
    pub(super) texts: FxHashMap<Box<[u8]>, u32>,
    pub(super) literal_sets: Vec<LiteralSet>,
    /// The set of each hash.
    pub(super) literal_ids: FxHashMap<StructureHash, u32>,
    /// Their size in bytes.
    pub(super) literal_bytes: usize,
    /// Each automaton with the hash of its content.
    pub(super) dfas: Vec<(Arc<Dfa>, StructureHash)>,
    pub(super) dfa_ids: FxHashMap<Arc<Dfa>, u32>,
    pub(super) computed: Vec<Reached>,
    outcome_lists: Vec<Arc<[Tag]>>,
    outcome_ids: FxHashMap<Arc<[Tag]>, u32>,
    /// For each expression 0, or one more than the index of its row of derivatives; or its only derivative, marked.
    pub(super) row_of: Vec<u32>,
    pub(super) rows: Vec<Row>,
    /// How many rows have a table.
    pub(super) tables: usize,
    pub(super) first: FxHashMap<ExprId, ByteSet>,
    /// Byte classes of loop bodies.
    pub(super) bodies: FxHashMap<ExprId, Box<[ByteSet]>>,
    /// Their size in bytes.
    pub(super) body_bytes: usize,
    pub(super) classes: FxHashMap<(CharSet, Encoding), ExprId>,
    /// The characters of each of them.
    pub(super) class_sets: FxHashMap<ExprId, (CharSet, Encoding)>,
    /// Expressions with intersection or complement whose language is empty.
    pub(super) dead: FxHashSet<ExprId>,
    /// The bytes of the strings of expressions that were searched for.
    pub(super) contained: FxHashMap<ExprId, Contained>,
    /// The nesting of common prefixes being factored out.
    pub(super) joining: u32,
    /// The byte that led to the result of the last emptiness search.
    pub(super) last_byte: u8,
    /// For an automaton and a loop the states of the automaton whose languages are known to lie within the loop's.
    pub(super) dfas_within: FxHashMap<(u32, ExprId), FxHashSet<u32>>,
    /// For each loop body whether its iterations are delimited.
    pub(super) delimited_bodies: FxHashMap<ExprId, bool>,
    most: usize,
    /// What may be consumed before the next check of the interrupts, in units: [`UNITS`] are one step.
    fuel: u64,
    /// The rest of the fuel, in units.
    reserve: u64,
}

/// Units of fuel in a step.
pub(super) const UNITS: u64 = 16;
/// Units of fuel between two checks of the interrupts: some ten milliseconds.
const SLICE: u64 = 1 << 21;

/// Approximate size in bytes of an expression, of a row of derivatives, and of a row's table.
const NODE_BYTES: usize = 2 * size_of::<ExprNode>() + size_of::<NodeFacts>() + 24;
const ROW_BYTES: usize = size_of::<Row>();
const TABLE_BYTES: usize = 1032;
/// The average size in bytes that an expression may take when the arena is full.
const BYTES_EACH: usize = 80;
/// Maximum size of all literals.
const LITERAL_BYTES: usize = 256 << 20;

/// No arena has more expressions: a bit of their numbers marks something else.
const MAX_NUMBERED: usize = (1 << 31) - 2;

/// Not complete.
pub(super) const NO_OUTCOME: u32 = 0;
/// Complete with tag 0.
pub(super) const PLAIN_OUTCOME: u32 = 1;

impl Exprs {
    /// An arena for at most `most` expressions, with unlimited fuel.
    pub fn new(most: usize) -> Exprs {
        let mut exprs = Exprs {
            nodes: Vec::new(),
            facts: Vec::new(),
            ids: IdTable::default(),
            pool: Vec::new(),
            texts: FxHashMap::default(),
            dead: FxHashSet::default(),
            last_byte: 0,
            contained: FxHashMap::default(),
            joining: 0,
            dfas_within: FxHashMap::default(),
            delimited_bodies: FxHashMap::default(),
            literal_sets: Vec::new(),
            literal_ids: FxHashMap::default(),
            literal_bytes: 0,
            dfas: Vec::new(),
            dfa_ids: FxHashMap::default(),
            computed: Vec::new(),
            outcome_lists: Vec::new(),
            outcome_ids: FxHashMap::default(),
            row_of: Vec::new(),
            rows: Vec::new(),
            tables: 0,
            first: FxHashMap::default(),
            bodies: FxHashMap::default(),
            body_bytes: 0,
            classes: FxHashMap::default(),
            class_sets: FxHashMap::default(),
            most: most.clamp(16, MAX_NUMBERED),
            fuel: u64::MAX,
            reserve: 0,
        };
        exprs.number_outcomes(&[]);
        exprs.number_outcomes(&[0]);
        // These two always fit.
        let nothing = exprs.intern(ExprNode::Nothing);
        let empty = exprs.intern(ExprNode::Tag(0));
        debug_assert_eq!((nothing, empty), (Ok(NOTHING), Ok(EMPTY)));
        exprs.fuel = u64::MAX;
        exprs
    }

    /// Number of expressions.
    #[allow(clippy::len_without_is_empty)] // there are always two
    #[inline]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Approximate size in bytes.
    pub fn memory(&self) -> usize {
        let facts = self.first.len() * 48 + self.contained.len() * 80 + self.dead.len() * 8;
        let beside = 2 * self.pool.len() + facts + self.body_bytes;
        let reached: usize = self.computed.iter().map(Reached::memory).sum();
        self.node_bytes() + self.literal_bytes + beside + reached
    }

    fn node_bytes(&self) -> usize {
        self.nodes.len() * NODE_BYTES + self.rows.len() * ROW_BYTES + self.tables * TABLE_BYTES
    }

    /// Sets how much work may be done from now on, in steps of at most about a tenth of a microsecond.
    pub fn set_fuel(&mut self, steps: u64) {
        self.reserve = steps.saturating_mul(UNITS);
        // A call under a deadline checks it before it begins.
        self.fuel = if interrupt::is_watched() { 0 } else { self.reserve.min(SLICE) };
        self.reserve -= self.fuel;
    }

    /// The remaining fuel in steps.
    #[inline]
    pub fn fuel(&self) -> u64 {
        self.fuel.saturating_add(self.reserve) / UNITS
    }

    /// Takes over what `prepared` holds, at the fuel that it cost to make. `prepared` was made with unlimited fuel.
    /// Returns whether it did: the arena must be a new one.
    ///
    /// # Errors
    /// As [`Exprs::charge`].
    pub fn take_over(&mut self, prepared: &Exprs) -> Result<bool> {
        const NEW: usize = 2;
        // What most grammars add: lists that are as long as what they hold would be copied at once.
        const ROOM: usize = 1_024;
        let has_room =
            prepared.len() < self.most && prepared.node_bytes() < self.most.saturating_mul(BYTES_EACH);
        if self.len() != NEW || !has_room {
            return Ok(false);
        }
        self.charge(u64::MAX - prepared.fuel)?;
        let Exprs { most, fuel, reserve, .. } = *self;
        *self = Exprs { most, fuel, reserve, ..prepared.clone() };
        self.nodes.reserve(ROOM);
        self.facts.reserve(ROOM);
        self.row_of.reserve(ROOM);
        self.rows.reserve(ROOM / 2);
        Ok(true)
    }

    /// Consumes `steps` of the fuel.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if less fuel is left.
    #[inline]
    pub fn spend(&mut self, steps: u64) -> Result<()> {
        self.charge(steps.saturating_mul(UNITS))
    }

    /// Consumes sixteenths of a step, each about six nanoseconds: a node visited, a word compared.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if less fuel is left, or if an [`interrupt`] applies. No fuel is left then.
    #[inline]
    pub fn charge(&mut self, units: u64) -> Result<()> {
        match self.fuel.checked_sub(units) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => self.next_slice(units),
        }
    }

    #[cold]
    fn next_slice(&mut self, units: u64) -> Result<()> {
        let left = self.fuel.saturating_add(self.reserve);
        (self.fuel, self.reserve) = (0, 0);
        interrupt::check()?;
        let Some(left) = left.checked_sub(units) else { return Err(out_of_fuel()) };
        self.fuel = left.min(SLICE);
        self.reserve = left - self.fuel;
        Ok(())
    }

    /// Consumes the fuel for sorting or hashing a list of this length.
    ///
    /// # Errors
    /// As [`Exprs::charge`].
    #[inline]
    pub fn charge_list(&mut self, length: usize) -> Result<()> {
        self.charge(length as u64 * u64::from(2 + length.max(1).ilog2() / 2))
    }

    /// # Errors
    /// [`ErrorKind::Limit`] if there are too many expressions, or if the arena takes too much memory.
    pub(super) fn has_room(&self) -> Result<()> {
        let bytes = self.node_bytes();
        let message = if self.nodes.len() >= self.most || bytes >= self.most.saturating_mul(BYTES_EACH) {
            format!("more than {} expressions", self.nodes.len())
        } else if self.literal_bytes > LITERAL_BYTES {
            format!("more than {LITERAL_BYTES} bytes of listed texts")
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Limit, message)
            .help("the grammar needs an automaton that is too large: make its patterns simpler"))
    }

    /// The id of `node`, which must be in normal form.
    pub(super) fn intern(&mut self, node: ExprNode) -> Result<ExprId> {
        let size = match &node {
            ExprNode::Or(parts) | ExprNode::And(parts) => parts.len() as u64,
            _ => 0,
        };
        self.charge(4 + size / 2)?;
        let hash = FxBuildHasher.hash_one(&node);
        if let Some(id) = self.ids.find(hash, |id| self.nodes[id as usize] == node) {
            return Ok(ExprId(id));
        }
        self.charge(72 + 10 * size)?;
        self.has_room()?;
        let known = self.analyse(&node);
        let id = ExprId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.facts.push(known);
        self.row_of.push(0);
        self.ids.insert(hash, id.0);
        Ok(id)
    }

    #[inline]
    pub(super) fn node(&self, e: ExprId) -> &ExprNode {
        &self.nodes[e.0 as usize]
    }

    #[inline]
    pub(super) fn facts(&self, e: ExprId) -> &NodeFacts {
        &self.facts[e.0 as usize]
    }

    pub(super) fn bytes_of(&self, from: u32, to: u32) -> &[u8] {
        &self.pool[from as usize..to as usize]
    }

    /// The tags with which `e` is complete, sorted; empty if it is not complete.
    #[inline]
    pub fn outcomes(&self, e: ExprId) -> &[Tag] {
        &self.outcome_lists[self.facts(e).outcomes as usize]
    }

    /// The id of the list of tags with which `e` is complete. Equal lists have equal ids.
    #[inline]
    pub fn outcome_number(&self, e: ExprId) -> u32 {
        self.facts(e).outcomes
    }

    /// The list with this id.
    pub fn outcome_list(&self, number: u32) -> Arc<[Tag]> {
        Arc::clone(&self.outcome_lists[number as usize])
    }

    /// Whether `e` is complete: it matches the empty string.
    #[inline]
    pub fn is_complete(&self, e: ExprId) -> bool {
        self.facts(e).outcomes != NO_OUTCOME
    }

    /// The structural hash of `e`, the same in every arena of this process.
    #[inline]
    pub fn structure(&self, e: ExprId) -> StructureHash {
        self.facts(e).hash
    }

    fn number_outcomes(&mut self, tags: &[Tag]) -> u32 {
        if let Some(&at) = self.outcome_ids.get(tags) {
            return at;
        }
        let at = self.outcome_lists.len() as u32;
        let tags: Arc<[Tag]> = tags.into();
        self.outcome_lists.push(Arc::clone(&tags));
        self.outcome_ids.insert(tags, at);
        at
    }

    fn union_of_outcomes(&mut self, parts: impl Iterator<Item = ExprId>) -> u32 {
        let mut lists: Vec<u32> =
            parts.map(|e| self.facts(e).outcomes).filter(|&o| o != NO_OUTCOME).collect();
        lists.sort_unstable();
        lists.dedup();
        match lists[..] {
            [] => NO_OUTCOME,
            [only] => only,
            _ => {
                let mut tags: Vec<Tag> =
                    lists.iter().flat_map(|&l| self.outcome_lists[l as usize].iter().copied()).collect();
                tags.sort_unstable();
                tags.dedup();
                self.number_outcomes(&tags)
            }
        }
    }

    fn analyse(&mut self, node: &ExprNode) -> NodeFacts {
        let complete = |exprs: &Exprs, e: ExprId| exprs.is_complete(e);
        let plain = |yes: bool| if yes { PLAIN_OUTCOME } else { NO_OUTCOME };
        let (outcomes, boolean) = match node {
            ExprNode::Nothing | ExprNode::Class(_) | ExprNode::Bytes(..) => (NO_OUTCOME, false),
            ExprNode::Tag(tag) => (self.number_outcomes(&[*tag]), false),
            ExprNode::Concat(a, b) => {
                let outcomes = if complete(self, *a) { self.facts(*b).outcomes } else { NO_OUTCOME };
                (outcomes, self.facts(*a).boolean || self.facts(*b).boolean)
            }
            ExprNode::Or(parts) => {
                let boolean = parts.iter().any(|&e| self.facts(e).boolean);
                (self.union_of_outcomes(parts.iter().copied()), boolean)
            }
            ExprNode::And(parts) => (plain(parts.iter().all(|&e| complete(self, e))), true),
            ExprNode::Not(of) => (plain(!complete(self, *of)), true),
            ExprNode::Repeat { of, min, .. } => {
                (plain(*min == 0 || complete(self, *of)), self.facts(*of).boolean)
            }
            &ExprNode::Dfa(dfa, state) => (plain(self.dfas[dfa as usize].0.is_accepting(state)), false),
            &ExprNode::Computed(dfa, state) => {
                (plain(self.computed[dfa as usize].is_accepting(state)), false)
            }
            &ExprNode::Literals { set, from, to, depth } => {
                let ended = self.literal_sets[set as usize].ended(from, to, depth);
                (self.union_of_outcomes(ended.into_iter()), self.literal_sets[set as usize].boolean)
            }
        };
        let shortest = self.shortest(node);
        let hash = self.hash(node);
        NodeFacts {
            hash,
            shape: self.shape(node, hash),
            outcomes,
            boolean,
            shortest,
            alive: !boolean && *node != ExprNode::Nothing,
        }
    }

    fn shortest(&self, node: &ExprNode) -> u32 {
        let of = |e: ExprId| self.facts(e).shortest;
        match node {
            ExprNode::Class(_) => 1,
            ExprNode::Bytes(from, to) => to - from,
            ExprNode::Concat(a, b) => of(*a).saturating_add(of(*b)),
            ExprNode::Or(parts) => parts.iter().map(|&e| of(e)).min().unwrap_or(0),
            ExprNode::And(parts) => parts.iter().map(|&e| of(e)).max().unwrap_or(0),
            ExprNode::Repeat { of: body, min, .. } => of(*body).saturating_mul(*min),
            ExprNode::Dfa(dfa, state) => self.dfas[*dfa as usize].0.shortest(*state),
            ExprNode::Nothing
            | ExprNode::Tag(_)
            | ExprNode::Not(_)
            | ExprNode::Literals { .. }
            | ExprNode::Computed(..) => 0,
        }
    }

    fn shape(&self, node: &ExprNode, hash: StructureHash) -> u64 {
        match *node {
            ExprNode::Repeat { of, .. } => mix(self.facts(of).hash, 18) as u64,
            ExprNode::Concat(a, b) if self.is_counted(a) || self.is_counted(b) => {
                let both = u128::from(self.facts(a).shape) | u128::from(self.facts(b).shape) << 64;
                mix(both, 19) as u64
            }
            _ => hash as u64,
        }
    }

    /// Whether a repetition is among the parts of its concatenation.
    pub(super) fn is_counted(&self, e: ExprId) -> bool {
        let facts = self.facts(e);
        facts.shape != facts.hash as u64
    }

    fn hash(&self, node: &ExprNode) -> StructureHash {
        let of = |e: ExprId| self.facts(e).hash;
        let many = |parts: &[ExprId]| parts.iter().fold(0u128, |sum, &e| sum.wrapping_add(mix(of(e), 11)));
        match node {
            ExprNode::Nothing => mix(0, 1),
            ExprNode::Tag(tag) => mix(u128::from(*tag), 2),
            ExprNode::Class(set) => {
                let [a, b, c, d] = set.0.map(u128::from);
                mix(a | b << 64, 3).wrapping_add(mix(c | d << 64, 4))
            }
            ExprNode::Bytes(from, to) => mix(digest(self.bytes_of(*from, *to)), 17),
            ExprNode::Concat(a, b) => {
                let mut bytes = [6; 33];
                bytes[..16].copy_from_slice(&of(*a).to_le_bytes());
                bytes[16..32].copy_from_slice(&of(*b).to_le_bytes());
                digest(&bytes)
            }
            ExprNode::Or(parts) => mix(many(parts), 7),
            ExprNode::And(parts) => mix(many(parts), 8),
            ExprNode::Not(e) => mix(of(*e), 9),
            ExprNode::Repeat { of: e, min, max } => {
                mix(of(*e).wrapping_add(mix(u128::from(*min) | u128::from(*max) << 32, 10)), 12)
            }
            ExprNode::Dfa(dfa, state) => {
                mix(self.dfas[*dfa as usize].1.wrapping_add(mix(u128::from(*state), 15)), 16)
            }
            ExprNode::Computed(dfa, state) => mix(self.computed[*dfa as usize].hash(*state), 20),
            ExprNode::Literals { set, from, to, depth } => {
                let place = u128::from(*from) | u128::from(*to) << 32 | u128::from(*depth) << 64;
                mix(self.literal_sets[*set as usize].hash.wrapping_add(mix(place, 13)), 14)
            }
        }
    }
}

pub(super) fn out_of_fuel() -> Error {
    Error::new(ErrorKind::Limit, "the grammar takes more work than its fuel allows")
        .help("make its patterns simpler, or give it more fuel")
}

fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(0u8))
}

/// A keyed hash of bytes.
pub(crate) fn digest(bytes: &[u8]) -> StructureHash {
    xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed())
}

fn mix(value: u128, kind: u8) -> StructureHash {
    let mut bytes = [0; 17];
    bytes[..16].copy_from_slice(&value.to_le_bytes());
    bytes[16] = kind;
    digest(&bytes)
}
