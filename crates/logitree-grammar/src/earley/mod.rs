//! An Earley recogniser over bytes that follows every parse (Earley 1970).
//!
//! The naive version is Earley's recogniser over bytes. This one differs in four ways:
//!
//! - An item stores the callers that wait for it, not the position where it was entered (`origins.rs`). Item
//!   sets are interned by their kernels, so the same situation at another position is the same set, closed once
//!   (`close.rs`).
//! - Expressions (lazy automata) read the text between two sets: a configuration is the lexemes being read,
//!   each with the sets it may lead to (`run.rs`).
//! - Configurations are interned and their transitions cached: reading a byte again is a lookup (`run.rs`).
//! - The text of a lexeme may be captured ([`LexemeTarget::Read`]): its continuation then changes with every byte, so that
//!   what follows may depend on the text (`state_source.rs`).
//!
//! A [`StateSource`] provides states; [`RulesSource`] makes them from context-free rules.

mod close;
mod embedded;
mod interner;
mod intersection;
mod lower;
mod lowered;
mod origins;
mod productivity;
mod rules_source;
mod run;
mod state_source;

use logitree_automata::IdTable;
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{ExprId, Exprs, Tag};
use crate::{Chunks, Error, ErrorKind, Result};
use close::{Agenda, Item, Set, Successor};
use interner::SliceInterner;
use origins::{Origins, START};
use run::Config;

pub use close::{ContinuationId, SetId};
pub use lowered::TokenSets;
pub use rules_source::{RulesSource, ValueSource};
pub use run::{ConfigId, Texts, DEAD};
pub use state_source::{Edge, LexemeTarget, SameAfter, StateEdges, StateId, StateSource};

/// Limits of a machine. Reaching one is an error that names it; the machine stays usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Maximum number of sets over the life of the machine.
    pub sets: usize,
    /// Maximum number of items in one set, and a sixteenth of the maximum number of times items may be added.
    pub items: usize,
    /// Maximum number of configurations over the life of the machine.
    pub configs: usize,
    /// Maximum size in bytes without the expressions; the last set may exceed it by its own size.
    pub bytes: usize,
}

impl Default for MachineLimits {
    fn default() -> Self {
        MachineLimits { sets: 1 << 21, items: 50_000, configs: 1 << 22, bytes: 256 << 20 }
    }
}

/// A grammar that can be run.
pub struct Machine {
    source: Box<dyn StateSource>,
    exprs: Exprs,
    limits: MachineLimits,
    /// The index of each expanded state in `states`.
    state_indices: FxHashMap<StateId, u32>,
    states: Chunks<StateEdges>,
    origins: Origins,
    kernels: SliceInterner<Item, SetId>,
    /// The closure of each kernel, computed on demand.
    sets: Vec<Option<Box<Set>>>,
    continuations: SliceInterner<Successor, ContinuationId>,
    after: FxHashMap<(ContinuationId, Tag), SetId>,
    /// Where lexemes lead whose text is not known.
    after_any: FxHashMap<(ContinuationId, Tag), (SetId, SameAfter)>,
    threads: SliceInterner<(ExprId, ContinuationId)>,
    boundaries: SliceInterner<SetId>,
    config_ids: IdTable,
    configs: Vec<Config>,
    start: ConfigId,
    agenda: Agenda,
    /// Buffers of a step, reused from step to step.
    scratch: (Vec<(ExprId, ContinuationId)>, Vec<SetId>),
    /// Whether the text of some lexeme was read.
    has_read: bool,
    /// Whether some part has a temperature.
    has_temperatures: bool,
    /// Size in bytes of boxed data; flat tables are measured on demand.
    boxed: usize,
}

impl Machine {
    /// A machine that runs `source` from `start`. `exprs` is the arena that holds the source's lexemes.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn new(
        source: Box<dyn StateSource>,
        start: StateId,
        exprs: Exprs,
        limits: MachineLimits,
    ) -> Result<Machine> {
        let mut machine = Machine {
            has_temperatures: source.has_temperatures(),
            source,
            exprs,
            limits,
            state_indices: FxHashMap::default(),
            states: Chunks::default(),
            origins: Origins::new(),
            kernels: SliceInterner::new(),
            sets: vec![None],
            continuations: SliceInterner::new(),
            after: FxHashMap::default(),
            after_any: FxHashMap::default(),
            threads: SliceInterner::new(),
            boundaries: SliceInterner::new(),
            config_ids: IdTable::default(),
            configs: Vec::new(),
            start: DEAD,
            agenda: Agenda::default(),
            scratch: Default::default(),
            has_read: false,
            boxed: 0,
        };
        machine.config(&mut Vec::new(), &[])?;
        let set = machine.set_of(&[Item { state: start, origin: START }])?;
        let start = machine.enter_set(set)?;
        machine.start = machine.end_token(start)?;
        Ok(machine)
    }

    /// The start configuration.
    #[inline]
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// The arena of expressions.
    #[inline]
    pub fn exprs(&self) -> &Exprs {
        &self.exprs
    }

    /// The arena of expressions, for taking derivatives.
    #[inline]
    pub fn exprs_mut(&mut self) -> &mut Exprs {
        &mut self.exprs
    }

    /// Number of configurations, the dead one included.
    #[cfg(test)]
    pub(crate) fn config_count(&self) -> usize {
        self.configs.len()
    }

    /// Number of sets, the empty one included.
    #[cfg(test)]
    pub(crate) fn set_count(&self) -> usize {
        self.sets.len()
    }

    /// Approximate size in bytes, without the expressions. The source counts with the texts that it remembers.
    pub fn byte_size(&self) -> usize {
        let tables = 16 * (self.state_indices.len() + self.after.len() + self.configs.len())
            + 48 * self.after_any.len();
        let lists = self.kernels.byte_size()
            + self.continuations.byte_size()
            + self.threads.byte_size()
            + self.boundaries.byte_size();
        let rows = self.configs.len() * std::mem::size_of::<Config>() + self.sets.len() * 8;
        self.boxed + tables + lists + rows + self.origins.byte_size() + self.source.byte_size()
    }

    /// Whether the text of some lexeme was read: such states are not met again by other texts.
    pub fn has_read(&self) -> bool {
        self.has_read
    }

    /// Whether what may come depends on where tokens ended: see [`Machine::end_token`].
    pub fn counts_tokens(&self) -> bool {
        self.source.counts_tokens()
    }

    /// Whether some part has a temperature.
    pub fn has_temperatures(&self) -> bool {
        self.has_temperatures
    }

    /// The temperature at which the next token is to be sampled: that of the innermost part that has one, the highest where the
    /// text may be in several. `None`: it is in no such part.
    pub fn temperature(&self, config: ConfigId) -> Option<f32> {
        if !self.has_temperatures {
            return None;
        }
        let mut open: Vec<Item> = Vec::new();
        for &(_, continuation) in self.threads(config) {
            open.extend(self.successors(continuation).iter().map(Successor::item));
        }
        for set in self.boundary(config) {
            let closed = self.sets[set.index()].as_ref();
            open.extend(closed.iter().flat_map(|closed| closed.tokens.iter().map(|&(_, item, _)| item)));
        }
        let (mut highest, mut seen) = (None::<f32>, FxHashSet::default());
        while let Some(Item { state, origin }) = open.pop() {
            match self.source.temperature(state) {
                Some(found) => highest = Some(highest.map_or(found, |known| known.max(found))),
                None if seen.insert(origin) => open.extend_from_slice(self.origins.callers(origin)),
                None => {}
            }
        }
        highest
    }

    /// Fails if the machine has reached its memory limit.
    fn room(&self) -> Result<()> {
        let held = self.byte_size();
        if held > self.limits.bytes {
            return Err(too_many("bytes of memory", self.limits.bytes));
        }
        Ok(())
    }

    /// The index of `state` in `self.states`; expands it at first use.
    fn state_index(&mut self, state: StateId) -> Result<usize> {
        if let Some(&place) = self.state_indices.get(&state) {
            return Ok(place as usize);
        }
        let edges = self.source.expand(state, &mut self.exprs)?;
        self.boxed += std::mem::size_of::<StateEdges>() + edges.edges.len() * std::mem::size_of::<Edge>();
        self.state_indices.insert(state, self.states.len() as u32);
        self.states.push(edges);
        Ok(self.states.len() - 1)
    }
}

/// The error for a limit that was reached.
fn too_many(what: &str, most: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("the grammar needs more than {most} {what} here"))
        .help("make it less ambiguous or less deep, or raise the limit")
}

#[cfg(test)]
mod tests;
