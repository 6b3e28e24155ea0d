//! Configurations: the lexemes that are being read, each with what follows it, and the set that was just entered where
//! the text may end or a whole token may come. It refuses to know items.

use rustc_hash::FxHashSet;

use super::super::expr::{ByteSet, ExprId, Tag, NOTHING};
use super::close::{Item, Set};
use super::{too_many, ContinuationId, Machine, SetId};
use crate::{id, Result};

id!(
    /// A configuration. Equal ids have equal futures.
    pub struct ConfigId
);

/// The configuration that no byte and no token leads out of.
pub const DEAD: ConfigId = ConfigId(0);

/// A configuration, by what is interned.
pub(super) struct Config {
    threads: u32,
    boundary: u32,
    steps: Steps,
    first: Option<Box<ByteSet>>,
}

/// Steps that were made before.
enum Steps {
    /// A few bytes, in the order in which they were first read.
    Few(Vec<(u8, ConfigId)>),
    /// By byte.
    Row(Box<[ConfigId; 256]>),
}

/// How many steps make a list longer to search than a row is to look up.
const FEW: usize = 12;

/// More threads than this are looked through for equal ones.
const MANY: usize = 16;

/// Not made yet.
const UNKNOWN: ConfigId = ConfigId(u32::MAX);

impl Steps {
    #[inline]
    fn get(&self, byte: u8) -> Option<ConfigId> {
        match self {
            Steps::Few(few) => few.iter().find(|step| step.0 == byte).map(|step| step.1),
            Steps::Row(row) => Some(row[usize::from(byte)]).filter(|&to| to != UNKNOWN),
        }
    }

    /// Remembers a step that is not yet there; how many bytes of memory that took.
    fn put(&mut self, byte: u8, to: ConfigId) -> usize {
        match self {
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
    /// The configuration after `byte`; [`DEAD`] if no text goes on so.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if it takes more memory, sets or items than allowed, or more work than the fuel of
    /// the expressions. The machine stays usable; what was remembered stays right.
    #[inline]
    pub fn step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId> {
        match self.configs[config.index()].steps.get(byte) {
            Some(to) => Ok(to),
            None => self.first_step(config, byte),
        }
    }

    /// [`Machine::step`], for the first time.
    fn first_step(&mut self, config: ConfigId, byte: u8) -> Result<ConfigId> {
        self.room()?;
        let list = self.configs[config.index()].threads;
        let mut threads = Vec::new();
        let mut entered = Vec::new();
        for n in 0..self.threads.get(list).len() {
            let (expr, continuation) = self.threads.get(list)[n];
            let expr = self.exprs.derive(expr, byte)?;
            if expr == NOTHING {
                continue;
            }
            for outcome in 0..self.exprs.outcomes(expr).len() {
                let tag = self.exprs.outcomes(expr)[outcome];
                entered.push(self.after(continuation, tag)?);
            }
            if self.exprs.can_continue(expr)? {
                threads.push((expr, continuation));
            }
        }
        let to = self.join(threads, entered)?;
        self.boxed += self.configs[config.index()].steps.put(byte, to);
        Ok(to)
    }

    /// The configuration after a whole token: `holds(set, id)` says whether set `set` of the grammar has it.
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

    /// The configuration that goes on as either of the two does.
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

    /// The configuration at the beginning of what follows a lexeme that was complete with `tag`.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn enter(&mut self, continuation: ContinuationId, tag: Tag) -> Result<ConfigId> {
        let set = self.after(continuation, tag)?;
        self.enter_set(set)
    }

    /// The configuration at the beginning of a set.
    pub(super) fn enter_set(&mut self, set: SetId) -> Result<ConfigId> {
        self.join(Vec::new(), vec![set])
    }

    /// The configuration that reads on in `threads`, or enters the sets. The sets become one, as Earley has one for
    /// each position: what is entered apart would stay apart, and grow without end.
    fn join(
        &mut self,
        mut threads: Vec<(ExprId, ContinuationId)>,
        mut entered: Vec<SetId>,
    ) -> Result<ConfigId> {
        entered.sort_unstable();
        entered.dedup();
        let set = match entered[..] {
            [] => return self.config(&mut threads, &[]),
            [set] => set,
            _ => self.union_of(&entered)?,
        };
        let closed = self.closed(set)?;
        threads.extend_from_slice(&closed.threads);
        let boundary: &[SetId] = if closed.accepting || !closed.tokens.is_empty() { &[set] } else { &[] };
        self.config(&mut threads, boundary)
    }

    /// The configuration of these threads in any order, and these sets, sorted. Threads that read the same become one.
    pub(super) fn config(
        &mut self,
        threads: &mut Vec<(ExprId, ContinuationId)>,
        boundary: &[SetId],
    ) -> Result<ConfigId> {
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
        if let Some(&config) = self.config_ids.get(&key) {
            return Ok(config);
        }
        if self.configs.len() >= self.limits.configs {
            return Err(too_many("configurations", self.limits.configs));
        }
        let config = ConfigId::new(self.configs.len());
        self.configs.push(Config {
            threads: key.0,
            boundary: key.1,
            steps: Steps::Few(Vec::new()),
            first: None,
        });
        self.config_ids.insert(key, config);
        Ok(config)
    }

    /// The continuation that leads where any of these does.
    fn merged_continuation(&mut self, threads: &[(ExprId, ContinuationId)]) -> Result<ContinuationId> {
        if let [(_, continuation)] = threads {
            return Ok(*continuation);
        }
        let mut successors: Vec<_> = threads
            .iter()
            .flat_map(|&(_, continuation)| self.continuations.get(continuation))
            .copied()
            .collect();
        successors.sort_unstable_by_key(|successor| successor.key());
        successors.dedup();
        if successors.len() > self.limits.items {
            return Err(too_many("items in one set", self.limits.items));
        }
        self.continuations.intern(&successors)
    }

    /// Appends to `threads` what may be read at the beginning of what follows a lexeme that was complete with `tag`.
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
        threads.extend_from_slice(&self.closed(set)?.threads);
        Ok(())
    }

    /// Appends to `threads` what its part `from` becomes by `byte`, and says whether some text goes on so. As
    /// [`Machine::step`], for whoever looks once at a short text: nothing is interned.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn follow(
        &mut self,
        threads: &mut Vec<(ExprId, ContinuationId)>,
        from: std::ops::Range<usize>,
        byte: u8,
    ) -> Result<bool> {
        let start = threads.len();
        let mut viable = false;
        self.exprs.spend(1 + from.len() as u64 / 16)?;
        for n in from {
            let (e, continuation) = threads[n];
            let next = self.exprs.derive(e, byte)?;
            if next == NOTHING {
                continue;
            }
            viable = true;
            if self.exprs.can_continue(next)? {
                threads.push((next, continuation));
            }
            if self.exprs.is_complete(next) {
                for at in 0..self.exprs.outcomes(next).len() {
                    let tag = self.exprs.outcomes(next)[at];
                    self.begin(continuation, tag, threads)?;
                }
            }
        }
        if threads.len() > start + MANY {
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

    /// The lexemes that are being read: what is left of each, and where it leads. Ascending, each expression once.
    pub fn threads(&self, config: ConfigId) -> &[(ExprId, ContinuationId)] {
        self.threads.get(self.configs[config.index()].threads)
    }

    /// The sets that were just entered, where the text may end or whole tokens may come.
    pub fn boundary(&self, config: ConfigId) -> &[SetId] {
        self.boundaries.get(self.configs[config.index()].boundary)
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self, config: ConfigId) -> bool {
        self.entered(config).any(|set| set.accepting)
    }

    /// The sets of the boundary: they were closed when the configuration was made.
    fn entered(&self, config: ConfigId) -> impl Iterator<Item = &Set> {
        self.boundary(config).iter().filter_map(|&set| self.sets[set.index()].as_deref())
    }

    /// Which whole tokens may come: the numbers of their sets in the grammar, ascending, each once.
    pub fn token_sets(&self, config: ConfigId) -> Vec<u32> {
        let mut sets: Vec<u32> =
            self.entered(config).flat_map(|set| set.tokens.iter().map(|t| t.0)).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// The bytes that lead on.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn first_bytes(&mut self, config: ConfigId) -> Result<ByteSet> {
        if let Some(first) = &self.configs[config.index()].first {
            return Ok(**first);
        }
        let mut first = ByteSet::NONE;
        for n in 0..self.threads(config).len() {
            let expr = self.threads(config)[n].0;
            first = first.or(&self.exprs.first_bytes(expr)?);
        }
        self.configs[config.index()].first = Some(Box::new(first));
        self.boxed += std::mem::size_of::<ByteSet>();
        Ok(first)
    }

    /// What is expected, in words: lexemes that are being read or may begin, and tokens, each once, in the order of
    /// the states.
    pub fn describe(&self, config: ConfigId) -> Vec<String> {
        let successors =
            self.threads(config).iter().flat_map(|&(_, continuation)| self.continuations.get(continuation));
        let tokens = self.entered(config).flat_map(|set| set.tokens.iter().map(|token| token.2));
        let mut states: Vec<_> = successors.map(|successor| successor.from).chain(tokens).collect();
        states.sort_unstable();
        states.dedup();
        let mut seen = FxHashSet::default();
        let said = states.into_iter().map(|state| self.source.describe(state));
        said.filter(|text| seen.insert(text.clone())).collect()
    }
}
