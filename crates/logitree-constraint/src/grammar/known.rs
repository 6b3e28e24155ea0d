//! What is known of an engine's configurations: masks, transitions by token, whether the text may end. Matchers in many
//! threads read it while one of them finds something new, so what is known never waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use logitree_automata::stack::with_call_room;
use logitree_tokens::mask::TokenSet;
use rustc_hash::FxHashMap;

use super::engine::Engine;
use super::memory::{MemoryBudget, MemoryShare};
use crate::AfterEnd;
use crate::{interrupt, Error, ErrorKind, Result, TokenId};
use logitree_grammar::earley::{ConfigId, DEAD};

/// Whether a text may end in a configuration, and whether it must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    pub accepting: bool,
    pub over: bool,
}

#[derive(Default)]
struct Tables {
    /// Shared by pointer: what a copy of a set does depends on its form, and a processor guesses the form wrong.
    masks: FxHashMap<ConfigId, Arc<TokenSet>>,
    steps: FxHashMap<(ConfigId, TokenId), ConfigId>,
    endings: FxHashMap<ConfigId, Ending>,
}

/// How many parts of a grammar the error of a limit names.
const MAX_NAMED: usize = 3;
/// About how many bytes an entry of the tables takes.
const ENTRY_BYTES: usize = 40;

/// An engine that matchers share.
pub(super) struct SharedEngine {
    /// The tokens that end a complete text, ascending.
    pub ends: Arc<[TokenId]>,
    /// What may follow the end of the grammar.
    pub after: AfterEnd,
    /// The start of a text.
    pub start: ConfigId,
    /// The number of tokens of the vocabulary.
    pub size: usize,
    /// Whether only the bytes of tokens matter, and the vocabulary's own tokens end a text.
    pub is_bytewise: bool,
    /// Whether rules of the grammar have temperatures.
    has_temperatures: bool,
    engine: Mutex<Engine>,
    known: RwLock<Tables>,
    share: MemoryShare,
    /// Whether what was read so far leaves little room for another text.
    crowded: AtomicBool,
    /// The steps that all calls consumed.
    steps: AtomicU64,
}

/// The engine for the length of a call, locked when something is asked that is not known. The call has one allowance of
/// fuel.
pub(super) struct Session<'a> {
    pub shared: &'a SharedEngine,
    engine: Option<MutexGuard<'a, Engine>>,
}

impl SharedEngine {
    /// Shares `engine`, whose memory counts towards `budget`.
    pub fn new(engine: Engine, budget: &Arc<MemoryBudget>) -> SharedEngine {
        let share = budget.share();
        share.set(engine.memory());
        SharedEngine {
            ends: Arc::clone(&engine.ends),
            after: AfterEnd::tokens(&engine.ends, engine.vocabulary.end_tokens()),
            start: engine.machine.start(),
            size: engine.vocabulary.len(),
            is_bytewise: engine.is_bytewise(),
            has_temperatures: engine.machine.has_temperatures(),
            steps: AtomicU64::new(engine.steps()),
            engine: Mutex::new(engine),
            known: RwLock::default(),
            share,
            crowded: AtomicBool::new(false),
        }
    }

    /// About how many bytes of memory the automata and masks hold.
    pub fn memory(&self) -> usize {
        self.share.get()
    }

    /// Whether a new matcher had better start with an engine of its own: states of texts that were read are never forgotten.
    pub fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    /// The steps that all calls consumed.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Counts steps that a request consumed, also from the allowance of its call.
    fn count(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
        interrupt::consume(steps);
    }

    /// The temperature in `config`, as [`Machine::temperature`](logitree_grammar::earley::Machine::temperature) has it.
    pub fn temperature(&self, config: ConfigId) -> Option<f32> {
        self.has_temperatures.then(|| self.lock().machine.temperature(config)).flatten()
    }

    /// The engine itself. A poisoned one only lacks memos: every table is written when it is whole.
    pub fn lock(&self) -> MutexGuard<'_, Engine> {
        interrupt::lock(&self.engine)
    }

    pub fn session(&self) -> Session<'_> {
        Session { shared: self, engine: None }
    }

    /// The mask of `config`, if it is known.
    pub fn known_mask(&self, config: ConfigId) -> Option<Arc<TokenSet>> {
        self.read(|tables| tables.masks.get(&config).cloned())
    }

    /// What is known of `config`: its ending and its mask.
    pub fn known(&self, config: ConfigId) -> (Option<Ending>, Option<Arc<TokenSet>>) {
        self.read(|tables| (tables.endings.get(&config).copied(), tables.masks.get(&config).cloned()))
    }

    fn read<R>(&self, from: impl FnOnce(&Tables) -> R) -> R {
        from(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps something new; everything is forgotten first if the engine forgot its masks.
    fn keep(&self, engine: &mut Engine, put: impl FnOnce(&mut Tables)) {
        let mut tables = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if engine.make_room(ENTRY_BYTES) {
            *tables = Tables::default();
        }
        put(&mut tables);
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(engine) = &self.engine {
            let memory = engine.memory();
            self.shared.share.set(memory);
            self.shared.crowded.store(engine.is_crowded(memory), Ordering::Relaxed);
            self.shared.count(engine.steps());
        }
    }
}

impl Session<'_> {
    /// The engine, with the call's fuel.
    pub fn engine(&mut self) -> &mut Engine {
        let shared = self.shared;
        self.engine.get_or_insert_with(|| {
            let mut engine = shared.lock();
            engine.refuel();
            engine
        })
    }

    /// Gives a call of several parts the fuel for its next part.
    pub fn refuel(&mut self) {
        if let Some(engine) = &mut self.engine {
            self.shared.count(engine.steps());
            engine.refuel();
        }
    }

    /// Finds the mask of the start, so that a grammar whose first mask exceeds the limits fails when it is bound.
    ///
    /// # Errors
    /// As [`Session::mask`].
    pub fn probe(&mut self) -> Result<()> {
        self.mask(self.shared.start).map(drop)
    }

    /// The mask of `config`.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if finding it takes more than the limits; the error names what is expected there.
    pub fn mask(&mut self, config: ConfigId) -> Result<Arc<TokenSet>> {
        let shared = self.shared;
        if let Some(known) = shared.known_mask(config) {
            return Ok(known);
        }
        shared.share.check()?;
        let engine = self.engine();
        // Another thread may have found it while this one waited.
        if let Some(known) = shared.known_mask(config) {
            return Ok(known);
        }
        let made = with_call_room(|| engine.mask(config)).map_err(|error| named(error, engine, config))?;
        let made = Arc::new(made);
        shared.keep(engine, |tables| {
            tables.masks.insert(config, Arc::clone(&made));
        });
        Ok(made)
    }

    /// The configuration after `token`; [`DEAD`] if it is not allowed. An end token is one that the grammar names.
    ///
    /// # Errors
    /// As [`Session::mask`].
    pub fn after(&mut self, config: ConfigId, token: TokenId) -> Result<ConfigId> {
        let shared = self.shared;
        if let Some(known) = shared.read(|tables| tables.steps.get(&(config, token)).copied()) {
            return Ok(known);
        }
        shared.share.check()?;
        let engine = self.engine();
        let next =
            with_call_room(|| engine.after(config, token)).map_err(|error| named(error, engine, config))?;
        if next != DEAD {
            // The ending of the state after it is asked for next.
            let ending = ending_of(engine, next);
            shared.keep(engine, |tables| {
                tables.steps.insert((config, token), next);
                tables.endings.insert(next, ending);
            });
        }
        Ok(next)
    }

    /// The configuration after as many of `bytes` as may come, and how many those are.
    ///
    /// # Errors
    /// As [`Session::mask`].
    pub fn walked(&mut self, mut config: ConfigId, bytes: &[u8]) -> Result<(ConfigId, usize)> {
        // What this engine holds is counted when it is unlocked.
        if self.engine.is_none() {
            self.shared.share.check()?;
        }
        let engine = self.engine();
        for (taken, &byte) in bytes.iter().enumerate() {
            match engine.machine.step(config, byte) {
                Ok(DEAD) => return Ok((config, taken)),
                Ok(next) => config = next,
                Err(error) => return Err(named(error, engine, config)),
            }
        }
        Ok((config, bytes.len()))
    }

    /// Whether a text may end in `config`. An engine that is locked is asked itself.
    pub fn is_accepting(&mut self, config: ConfigId) -> bool {
        match &self.engine {
            Some(engine) => engine.machine.is_accepting(config),
            None => self.ending(config).accepting,
        }
    }

    /// Whether a text may end in `config`, and whether it must.
    pub fn ending(&mut self, config: ConfigId) -> Ending {
        let shared = self.shared;
        if let Some(known) = shared.read(|tables| tables.endings.get(&config).copied()) {
            return known;
        }
        let engine = self.engine();
        let ending = ending_of(engine, config);
        shared.keep(engine, |tables| {
            tables.endings.insert(config, ending);
        });
        ending
    }
}

/// Whether a text may end in `config`, and whether it must.
fn ending_of(engine: &Engine, config: ConfigId) -> Ending {
    Ending { accepting: engine.machine.is_accepting(config), over: engine.is_over(config) }
}

/// The error of a limit with the part of the grammar that reached it.
fn named(error: Error, engine: &mut Engine, config: ConfigId) -> Error {
    if interrupt::must_end() || error.kind != ErrorKind::Limit || !error.place.is_empty() {
        return error;
    }
    let mut parts = engine.machine.describe(config);
    if parts.len() > MAX_NAMED {
        let others = parts.len() - MAX_NAMED;
        parts.truncate(MAX_NAMED);
        parts.push(format!("{others} others"));
    }
    error.at(parts.join("; or "))
}
