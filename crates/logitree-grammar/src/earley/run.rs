//! Configurations and their transitions: the lexemes being read, each with its continuation, and the set just
//! entered if the text may end or a whole token may follow there.

use std::hash::BuildHasher;

use logitree_automata::stack::with_call_room;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::super::expr::{ByteSet, ExprId, Tag, NOTHING};
use super::close::{Item, Set};
use super::{too_many, ContinuationId, Machine, SameAfter, SetId};
use crate::{id, Result};

id!(
    /// A configuration. Equal ids have equal futures.
    pub struct ConfigId
);

/// The configuration that no byte and no token leads out of.
pub const DEAD: ConfigId = ConfigId(0);

/// A configuration, by the ids of its parts.
pub(super) struct Config {
    threads: u32,
    boundary: u32,
    steps: Steps,
    first: Option<Box<ByteSet>>,
}

/// Cached transitions.
enum Steps {
    None,
    /// One byte: most have no more.
    One(u8, ConfigId),
    /// A few bytes, in order of first use.
    Few(Vec<(u8, ConfigId)>),
    /// Indexed by byte.
    Row(Box<[ConfigId; 256]>),
}

/// Past this length a list is slower to search than a row is to index.
const FEW: usize = 12;

/// Past this number of threads duplicates are removed.
const MANY: usize = 16;

/// Not computed yet.
const UNKNOWN: ConfigId = ConfigId(u32::MAX);

/// What [`Machine::follow`] does with lexemes whose text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// Reads them.
    Read,
    /// Takes them for any text: what follows is at least what may follow some text.
    Any,
    /// Takes them for any text, and does not follow them past their ends.
    UpToEnd,
}

impl Steps {
    #[inline]
    fn get(&self, byte: u8) -> Option<ConfigId> {
        match self {
            Steps::None => None,
            &Steps::One(known, to) => (known == byte).then_some(to),
            Steps::Few(few) => few.iter().find(|step| step.0 == byte).map(|step| step.1),
            Steps::Row(row) => Some(row[usize::from(byte)]).filter(|&to| to != UNKNOWN),
        }
    }

    /// Caches a new transition. Returns the bytes of memory it takes.
    fn put(&mut self, byte: u8, to: ConfigId) -> usize {
        match self {
            Steps::None => {
                *self = Steps::One(byte, to);
                0
            }
            &mut Steps::One(known, before) => {
                let few = vec![(known, before), (byte, to)];
                *self = Steps::Few(few);
                2 * std::mem::size_of::<(u8, ConfigId)>()
            }
            Steps::Row(row) => {
                row[usize::from(byte)] = to;
                0
            }
            Steps::Few(few) if few.len() < FEW => {
                few.push((byte, to));
                std::mem::size_of::<(u8, ConfigId)>()
            }
            Steps::Few(few) => {
                let mut row = Box::new([UNKNOWN; 256]);
                few.iter().for_each(|&(byte, to)| row[usize::from(byte)] = to);
                row[usize::from(byte)] = to;
                *self = Steps::Row(row);
                std::mem::size_of::<[ConfigId; 256]>()
            }
        }
    }
}

impl Machine {
    /// The configuration after `byte`; [`DEAD`] if no string continues so.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if it takes more memory, sets or items than allowed, or more work than the
    /// fuel of the expressions. The machine stays usable and its caches stay valid.
    #[inline]
    pub fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId> {
        match self.configs[config.index()].steps.get(byte) {
            Some(to) => Ok(to),
            None => with_call_room(|| self.first_step(config, byte)),
        }
    }

    /// [`Machine::step`] at first use.
    fn first_step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId> {
        self.room()?;
        let list = self.configs[config.index()].threads;
        let (mut threads, mut entered) = std::mem::take(&mut self.scratch);
        threads.clear();
        entered.clear();
        self.exprs.charge(16 + 8 * self.threads.get(list).len() as u64)?;
        for n in 0..self.threads.get(list).len() {
            let (expr, mut continuation) = self.threads.get(list)[n];
            let expr = self.exprs.derive(expr, byte)?;
            if expr == NOTHING {
                continue;
            }
            if continuation.reads() {
                continuation = self.read(continuation, byte)?;
            }
            for outcome in 0..self.exprs.outcomes(expr).len() {
                let tag = self.exprs.outcomes(expr)[outcome];
                entered.push(self.after(continuation, tag)?);
            }
            if self.exprs.can_continue(expr)? {
                threads.push((expr, continuation));
            }
        }
        let to = self.join(&mut threads, &mut entered)?;
        self.scratch = (threads, entered);
        self.boxed += self.configs[config.index()].steps.put(byte, to);
        Ok(to)
    }

    /// The configuration after a whole token. `holds(set, id)` is whether token set `set` of the grammar
    /// contains the token.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn step_token(
        &mut self,
        config: ConfigId,
        id: crate::TokenId,
        holds: &dyn Fn(u32, crate::TokenId) -> bool,
    ) -> Result<ConfigId> {
        let mut items: Vec<Item> = Vec::new();
        for n in 0..self.boundary(config).len() {
            let set = self.boundary(config)[n];
            let tokens = &self.closed(set)?.tokens;
            items.extend(tokens.iter().filter(|token| holds(token.0, id)).map(|token| token.1));
        }
        items.sort_unstable();
        items.dedup();
        let set = self.set_of(&items)?;
        self.enter_set(set)
    }

    /// The token sets that may follow where `set` is entered, ascending, each with the set that is entered after a token of
    /// it; and whether the text may end there. Those sets are not looked at before they are asked for.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn tokens_after(&mut self, set: SetId) -> Result<(Vec<(u32, SetId)>, bool)> {
        let closed = self.closed(set)?;
        let accepting = closed.accepting;
        let mut items: Vec<(u32, Item)> = closed.tokens.iter().map(|token| (token.0, token.1)).collect();
        items.sort_unstable();
        items.dedup();
        let mut sets = Vec::new();
        for same in items.chunk_by(|a, b| a.0 == b.0) {
            let kernel: Vec<Item> = same.iter().map(|&(_, item)| item).collect();
            sets.push((same[0].0, self.set_of(&kernel)?));
        }
        Ok((sets, accepting))
    }

    /// The configuration at the end of a token, which is one less for each lexeme that counts them: one that has none left is
    /// over where it may end, and else as soon as it may.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn end_token(&mut self, config: ConfigId) -> Result<ConfigId> {
        if !self.threads(config).iter().any(|thread| thread.1.counts()) {
            return Ok(config);
        }
        self.room()?;
        let mut threads = Vec::new();
        for n in 0..self.threads(config).len() {
            let (expr, continuation) = self.threads(config)[n];
            let may_end = self.exprs.is_complete(expr);
            threads.extend(self.one_token_less(continuation, may_end)?.map(|left| (expr, left)));
        }
        let boundary = self.boundary(config).to_vec();
        self.config(&mut threads, &boundary)
    }

    /// The union of two configurations.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn either(&mut self, a: ConfigId, b: ConfigId) -> Result<ConfigId> {
        let mut threads = [self.threads(a), self.threads(b)].concat();
        let mut boundary = [self.boundary(a), self.boundary(b)].concat();
        boundary.sort_unstable();
        boundary.dedup();
        self.config(&mut threads, &boundary)
    }

    /// The configuration after a lexeme that was complete with `tag`.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn enter(&mut self, continuation: ContinuationId, tag: Tag) -> Result<ConfigId> {
        let set = self.after(continuation, tag)?;
        self.enter_set(set)
    }

    /// The configuration at the start of a set.
    pub(super) fn enter_set(&mut self, set: SetId) -> Result<ConfigId> {
        self.join(&mut Vec::new(), &mut vec![set])
    }

    /// The configuration that continues `threads` or enters the sets. The sets are merged into one, as Earley
    /// has one set per position; kept apart, their number would grow without bound.
    fn join(
        &mut self,
        threads: &mut Vec<(ExprId, ContinuationId)>,
        entered: &mut Vec<SetId>,
    ) -> Result<ConfigId> {
        entered.sort_unstable();
        entered.dedup();
        let set = match entered[..] {
            [] => return self.config(threads, &[]),
            [set] => set,
            _ => self.union_of(entered)?,
        };
        let closed = self.closed(set)?;
        threads.extend_from_slice(&closed.threads);
        let boundary: &[SetId] = if closed.accepting || !closed.tokens.is_empty() { &[set] } else { &[] };
        self.config(threads, boundary)
    }

    /// The configuration of these threads, in any order, and these sets, sorted. Threads with the same
    /// expression are merged.
    pub(super) fn config(
        &mut self,
        threads: &mut Vec<(ExprId, ContinuationId)>,
        boundary: &[SetId],
    ) -> Result<ConfigId> {
        self.exprs.charge(8)?;
        self.exprs.charge_list(threads.len())?;
        threads.sort_unstable();
        threads.dedup();
        if threads.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            let mut merged = Vec::with_capacity(threads.len());
            for same in threads.chunk_by(|a, b| a.0 == b.0) {
                merged.push((same[0].0, self.merged_continuation(same)?));
            }
            *threads = merged;
        }
        let key = (self.threads.intern(threads)?, self.boundaries.intern(boundary)?);
        let hash = FxBuildHasher.hash_one(key);
        let is_same = |id: u32| {
            let config = &self.configs[id as usize];
            (config.threads, config.boundary) == key
        };
        if let Some(known) = self.config_ids.find(hash, is_same) {
            return Ok(ConfigId(known));
        }
        if self.configs.len() >= self.limits.configs {
            return Err(too_many("configurations", self.limits.configs));
        }
        let config = ConfigId::new(self.configs.len());
        self.configs.push(Config { threads: key.0, boundary: key.1, steps: Steps::None, first: None });
        self.config_ids.insert(hash, config.0);
        Ok(config)
    }

    /// The union of the threads' continuations.
    fn merged_continuation(&mut self, threads: &[(ExprId, ContinuationId)]) -> Result<ContinuationId> {
        if let [(_, continuation)] = threads {
            return Ok(*continuation);
        }
        let mut successors: Vec<_> =
            threads.iter().flat_map(|&(_, continuation)| self.successors(continuation)).copied().collect();
        self.exprs.charge_list(2 * successors.len())?;
        successors.sort_unstable_by_key(|successor| successor.key());
        successors.dedup();
        if successors.len() > self.limits.items {
            return Err(too_many("items in one set", self.limits.items));
        }
        self.continuation(&successors)
    }

    /// Appends to `threads` the lexemes that may start after a lexeme that was complete with `tag`.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn begin(
        &mut self,
        continuation: ContinuationId,
        tag: Tag,
        threads: &mut Vec<(ExprId, ContinuationId)>,
    ) -> Result<()> {
        let set = self.after(continuation, tag)?;
        self.begin_set(set, threads)
    }

    /// [`Machine::begin`] where the text of the lexeme is not known: appends at least what may start after some text.
    /// Returns for which texts that is the same, up to the end of the next lexeme that is read.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn begin_any(
        &mut self,
        continuation: ContinuationId,
        tag: Tag,
        threads: &mut Vec<(ExprId, ContinuationId)>,
    ) -> Result<SameAfter> {
        let (set, same) = self.after_any(continuation, tag)?;
        self.begin_set(set, threads)?;
        Ok(same)
    }

    fn begin_set(&mut self, set: SetId, threads: &mut Vec<(ExprId, ContinuationId)>) -> Result<()> {
        let closed = &self.closed(set)?.threads;
        threads.extend_from_slice(closed);
        let more = closed.len() as u64;
        self.exprs.charge(2 * more)
    }

    /// Appends to `threads` the successors of its range `from` by `byte`. Returns whether some string continues
    /// so. As [`Machine::step`] without interning, for short strings that are checked once.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn follow(
        &mut self,
        threads: &mut Vec<(ExprId, ContinuationId)>,
        from: std::ops::Range<usize>,
        byte: u8,
        texts: Texts,
    ) -> Result<bool> {
        let start = threads.len();
        let mut viable = false;
        self.exprs.charge(8 + 6 * from.len() as u64)?;
        for n in from {
            let (e, mut continuation) = threads[n];
            let next = self.exprs.derive(e, byte)?;
            if next == NOTHING {
                continue;
            }
            viable = true;
            let reads = continuation.reads();
            if reads && texts == Texts::Read {
                continuation = self.read(continuation, byte)?;
            }
            if self.exprs.can_continue(next)? {
                threads.push((next, continuation));
            }
            if self.exprs.is_complete(next) && !(reads && texts == Texts::UpToEnd) {
                for at in 0..self.exprs.outcomes(next).len() {
                    let tag = self.exprs.outcomes(next)[at];
                    match texts {
                        Texts::Any => drop(self.begin_any(continuation, tag, threads)?),
                        Texts::Read | Texts::UpToEnd => self.begin(continuation, tag, threads)?,
                    }
                }
            }
        }
        if threads.len() > start + MANY {
            self.exprs.charge_list(threads.len() - start)?;
            threads[start..].sort_unstable();
            let mut kept = start;
            for n in start..threads.len() {
                if n == start || threads[n] != threads[kept - 1] {
                    threads[kept] = threads[n];
                    kept += 1;
                }
            }
            threads.truncate(kept);
        }
        Ok(viable)
    }

    /// Drops from `threads[from..]` the lexemes that are read and depend on the text before them.
    pub fn drop_depending(&self, threads: &mut Vec<(ExprId, ContinuationId)>, from: usize) {
        let mut kept = from;
        for n in from..threads.len() {
            if self.is_same_lexeme(threads[n].1) {
                threads[kept] = threads[n];
                kept += 1;
            }
        }
        threads.truncate(kept);
    }

    /// Whether `byte` continues one of `threads`: what [`Machine::follow`] returns, without the successors.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn takes(&mut self, threads: &[(ExprId, ContinuationId)], byte: u8) -> Result<bool> {
        self.exprs.charge(8 + 4 * threads.len() as u64)?;
        for &(e, _) in threads {
            if self.exprs.derive(e, byte)? != NOTHING {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The lexemes being read: the rest of each and its continuation, sorted, each expression once.
    #[inline]
    pub fn threads(&self, config: ConfigId) -> &[(ExprId, ContinuationId)] {
        self.threads.get(self.configs[config.index()].threads)
    }

    /// The sets just entered, if the text may end or whole tokens may follow there.
    #[inline]
    pub fn boundary(&self, config: ConfigId) -> &[SetId] {
        self.boundaries.get(self.configs[config.index()].boundary)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self, config: ConfigId) -> bool {
        self.entered(config).any(|set| set.accepting)
    }

    /// The sets of the boundary. They were closed when the configuration was made.
    fn entered(&self, config: ConfigId) -> impl Iterator<Item = &Set> {
        self.boundary(config).iter().filter_map(|&set| self.sets[set.index()].as_deref())
    }

    /// The token sets that may follow: their indices in the grammar, sorted, without duplicates.
    pub fn token_sets(&self, config: ConfigId) -> Vec<u32> {
        let mut sets: Vec<u32> =
            self.entered(config).flat_map(|set| set.tokens.iter().map(|t| t.0)).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// The bytes with a transition.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn first_bytes(&mut self, config: ConfigId) -> Result<ByteSet> {
        if let Some(first) = &self.configs[config.index()].first {
            return Ok(**first);
        }
        let first = with_call_room(|| self.find_first_bytes(config))?;
        self.configs[config.index()].first = Some(Box::new(first));
        self.boxed += std::mem::size_of::<ByteSet>();
        Ok(first)
    }

    fn find_first_bytes(&mut self, config: ConfigId) -> Result<ByteSet> {
        let mut first = ByteSet::NONE;
        for n in 0..self.threads(config).len() {
            let expr = self.threads(config)[n].0;
            first = first.or(&self.exprs.first_bytes(expr)?);
        }
        Ok(first)
    }

    /// The bytes with a transition, by where they lead. As [`Machine::step`] for each byte, but once for bytes that no lexeme
    /// distinguishes.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn ways(&mut self, config: ConfigId) -> Result<Vec<(ByteSet, ConfigId)>> {
        with_call_room(|| self.find_ways(config))
    }

    fn find_ways(&mut self, config: ConfigId) -> Result<Vec<(ByteSet, ConfigId)>> {
        let mut classes = vec![ByteSet::ALL];
        let mut reads = false;
        for n in 0..self.threads(config).len() {
            let (expr, continuation) = self.threads(config)[n];
            reads |= continuation.reads();
            let sets = self.exprs.transitions(expr)?.into_iter().map(|(class, _)| class);
            classes = self.exprs.split_classes(classes, sets)?;
        }
        if reads {
            classes = (0..=u8::MAX).map(ByteSet::one).collect();
        }
        let first = self.first_bytes(config)?;
        let mut ways: Vec<(ByteSet, ConfigId)> = Vec::new();
        for class in classes {
            let class = class.and(&first);
            let Some(byte) = class.iter().next() else { continue };
            let to = self.step(config, byte)?;
            match ways.iter_mut().find(|way| way.1 == to) {
                Some(way) => way.0 = way.0.or(&class),
                None if to != DEAD => ways.push((class, to)),
                None => {}
            }
        }
        Ok(ways)
    }

    /// Descriptions of the expected lexemes and tokens, without duplicates, in the order of the states.
    pub fn describe(&self, config: ConfigId) -> Vec<String> {
        let successors =
            self.threads(config).iter().flat_map(|&(_, continuation)| self.successors(continuation));
        let tokens = self.entered(config).flat_map(|set| set.tokens.iter().map(|token| token.2));
        let mut states: Vec<_> = successors.map(|successor| successor.from).chain(tokens).collect();
        states.sort_unstable();
        states.dedup();
        let mut seen = FxHashSet::default();
        let said = states.into_iter().map(|state| self.source.describe(state));
        said.filter(|text| seen.insert(text.clone())).collect()
    }
}
