//! The pushdown machine: grammars run byte by byte, every reading kept.
//!
//! The naive version is Earley's recogniser over bytes. Three steps lead away from it:
//!
//! - An item knows *who waits* for it, not the position where it was entered (`origins.rs`). Sets of items are interned
//!   by what they start from, so the same situation at another position is the same set, closed once (`close.rs`).
//! - Text between two sets is read by expressions (lazy automata): a configuration is the lexemes that are being read,
//!   each with the sets it may lead to (`run.rs`).
//! - Configurations are interned and steps remembered: reading a byte again is looking it up.
//!
//! A [`StateSource`] gives states; [`RulesSource`] makes them from context-free rules. The machine refuses to know tokens'
//! bytes.

mod close;
mod interner;
mod lower;
mod lowered;
mod origins;
mod productivity;
mod rules_source;
mod run;
mod state_source;

use rustc_hash::FxHashMap;

use super::expr::{ExprId, Exprs, Tag};
use crate::{Error, ErrorKind, Result};
use close::{Agenda, Item, Set, Successor};
use interner::SliceInterner;
use origins::{Origins, START};
use run::Config;

pub use close::{ContinuationId, SetId};
pub use rules_source::{RulesSource, ValueSource};
pub use run::{ConfigId, DEAD};
pub use state_source::{Edge, LexemeTarget, StateEdges, StateId, StateSource};

/// How much a machine may hold. What is past a limit is an error that names it; the machine stays usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Most sets, over the whole life of the machine.
    pub sets: usize,
    /// Most items in one set, and a sixteenth of the most ways by which items may be found.
    pub items: usize,
    /// Most configurations, over the whole life of the machine.
    pub configs: usize,
    /// Most bytes of memory, the expressions' not counted; the last set may go past it by its own size.
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
    /// Where each state that was asked for lies in `states`.
    state_indices: FxHashMap<StateId, u32>,
    states: Vec<StateEdges>,
    origins: Origins,
    kernels: SliceInterner<Item, SetId>,
    /// For each kernel its closure, once it was used.
    sets: Vec<Option<Box<Set>>>,
    continuations: SliceInterner<Successor, ContinuationId>,
    after: FxHashMap<(ContinuationId, Tag), SetId>,
    threads: SliceInterner<(ExprId, ContinuationId)>,
    boundaries: SliceInterner<SetId>,
    config_ids: FxHashMap<(u32, u32), ConfigId>,
    configs: Vec<Config>,
    start: ConfigId,
    agenda: Agenda,
    /// Bytes of what is in boxes; the flat tables count themselves.
    boxed: usize,
}

impl Machine {
    /// The machine that runs `source` from `start`. `exprs` is the arena that the source's lexemes are in.
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
            source,
            exprs,
            limits,
            state_indices: FxHashMap::default(),
            states: Vec::new(),
            origins: Origins::new(),
            kernels: SliceInterner::new(),
            sets: vec![None],
            continuations: SliceInterner::new(),
            after: FxHashMap::default(),
            threads: SliceInterner::new(),
            boundaries: SliceInterner::new(),
            config_ids: FxHashMap::default(),
            configs: Vec::new(),
            start: DEAD,
            agenda: Agenda::default(),
            boxed: 0,
        };
        machine.config(&mut Vec::new(), &[])?;
        let set = machine.set_of(&[Item { state: start, origin: START }])?;
        machine.start = machine.enter_set(set)?;
        Ok(machine)
    }

    /// Where every text begins.
    pub fn start(&self) -> ConfigId {
        self.start
    }

    /// The expressions.
    pub fn exprs(&self) -> &Exprs {
        &self.exprs
    }

    /// The expressions, to look at what follows them.
    pub fn exprs_mut(&mut self) -> &mut Exprs {
        &mut self.exprs
    }

    /// Number of configurations, the dead one included.
    pub fn config_count(&self) -> usize {
        self.configs.len()
    }

    /// Number of sets, the empty one included.
    pub fn set_count(&self) -> usize {
        self.sets.len()
    }

    /// About how many bytes of memory it holds, the expressions' not counted.
    pub fn byte_size(&self) -> usize {
        let tables = 16 * (self.state_indices.len() + self.after.len() + self.config_ids.len());
        let lists = self.kernels.byte_size()
            + self.continuations.byte_size()
            + self.threads.byte_size()
            + self.boundaries.byte_size();
        let rows = self.configs.len() * std::mem::size_of::<Config>() + self.sets.len() * 8;
        self.boxed + tables + lists + rows + self.origins.byte_size()
    }

    /// An error if there is no room for more.
    fn room(&self) -> Result<()> {
        let held = self.byte_size();
        if held > self.limits.bytes {
            return Err(too_many("bytes of memory", self.limits.bytes));
        }
        Ok(())
    }

    /// The place of `state` in `self.states`; the source is asked once.
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

/// A limit was reached.
fn too_many(what: &str, most: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("the grammar needs more than {most} {what} here"))
        .help("make it less ambiguous or less deep, or raise the limit")
}

#[cfg(test)]
mod tests;
