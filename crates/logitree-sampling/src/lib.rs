//! Sampling: the chain of samplers, with llama.cpp's names, formulas and order.
//!
//! ```
//! use logitree_tokens::mask::AllowedTokens;
//! use logitree_sampling::{presets, Params};
//!
//! let mut chain = presets::llama_cpp(&Params::default().seed(42))?;
//! let logits = [0.5, 2.0, -1.0, 1.5];
//! let token = chain.draw(&logits, AllowedTokens::Ids(&[1, 2, 3]))?;
//! assert!(token != 0);
//! chain.accept(token);
//! # Ok::<(), logitree_sampling::Error>(())
//! ```
//!
//! One sampler, one file, named after it. The naive version of every sampler copies the allowed logits, sorts them and
//! follows the formula; `tests/it/oracle.rs` compares each sampler with it. The optimisations: with a mask
//! only the allowed logits are gathered; without one the logits stay borrowed and are read in blocks, edits kept apart,
//! until a sampler has cut them down to a list (`candidates.rs`).
//!
//! An application can change single logits before the first sampler (`steering.rs`) and choose parameters for one step
//! by a rule (`adapt.rs`).
//!
//! Where llama.cpp leaves the order of equal logits to the standard library, equal logits keep their order (by id, at
//! the start of a step).

mod adapt;
pub mod batch;
mod candidates;
mod chain;
mod distribution;
mod history;
mod measures;
pub mod metrics;
mod parameter;
mod params;
mod parse;
pub mod presets;
#[doc(hidden)] // its sorts are compared with libstdc++'s
pub mod reference;
pub mod registry;
mod rng;
mod samplers;
mod state;
mod steering;
mod undo;
mod vocabulary;

pub use adapt::{checked_settings, Adapt, Burst, Distribution, EntropyRule, Setting};
pub use batch::{BatchOptions, Picked, Row};
pub use candidates::Candidates;
#[doc(hidden)] // the beams have the same errors
pub use candidates::{bad_logit, no_logit};
pub use chain::{step_words, Chain, Effect, Mode, Step};
pub use history::TokenHistory;
pub use logitree_tokens::simd::Floats;
pub use measures::{Level, Measures};
pub use parameter::{Arguments, Value};
pub use params::Params;
pub use reference::{Reference, TokenArray};
#[doc(hidden)] // tests compare what is drawn
pub use rng::Draws;
pub use rng::{Generator, Random, Seed};
pub use samplers::*;
pub use state::{StateReader, StateWriter};
pub use steering::Steering;
pub use vocabulary::{dry_breakers, VocabularyPieces, DRY_BREAKERS};

use parameter::arguments;
use registry::{check, FromArguments};
use state::state;

pub use logitree_tokens::error::{Error, ErrorKind, Result};
pub use logitree_tokens::TokenId;

/// One step of a chain: removes candidates, changes their logits, or selects one.
///
/// Laws. `is_noop` is true only if `apply` would leave candidates and sampler as they are: the chain then skips it.
/// `rollback` undoes `accept` and every draw of the steps it takes back; otherwise a decoder that is rolled back picks
/// other tokens. `forced` leaves the state that `apply` on a single candidate leaves; otherwise skipping a forced token
/// changes the tokens after it.
pub trait Sampler: SamplerObject + std::any::Any + Send + Sync {
    /// Its name, llama.cpp's where llama.cpp has it.
    fn name(&self) -> &'static str;

    /// The name with its parameters, as in `top_k(40)`: from its row, if it has one.
    fn describe(&self) -> String {
        registry::describe(self.as_dyn())
    }

    /// Does its work on the candidates. There is at least one.
    fn apply(&mut self, candidates: &mut Candidates<'_>);

    /// The sampler as llama.cpp computes it, for parity mode; `None` if llama.cpp lacks it.
    fn reference(&mut self) -> Option<&mut dyn Reference> {
        None
    }

    /// Records an accepted token.
    fn accept(&mut self, _token: TokenId) {}

    /// Forgets the last `n` accepted tokens, and what was drawn for them and since; with 0 the latter alone. The chain
    /// never asks for more than were accepted.
    fn rollback(&mut self, _n: usize) {}

    /// Advances as `apply` would on one sole candidate, without looking at any.
    fn forced(&mut self) {}

    /// Returns to the initial state.
    fn reset(&mut self) {}

    /// Whether `apply` selects a candidate.
    fn selects(&self) -> bool {
        false
    }

    /// Whether `apply` may add a candidate. The chain then checks that it is allowed.
    fn adds(&self) -> bool {
        false
    }

    /// Whether `apply` changes nothing, whatever the candidates.
    fn is_noop(&self) -> bool {
        false
    }

    /// What it makes of candidates at -inf, as tokens that are not allowed may be.
    fn on_rejected(&self) -> OnRejected {
        OnRejected::Counts
    }

    /// What it does to the greatest logit, the first of equal ones, whatever the other candidates are.
    fn on_greatest(&self) -> OnGreatest {
        OnGreatest::Unknown
    }

    /// What it does, as a number; `None` if that is not all, or it is no step of [`Chain::steps`].
    fn step(&self) -> Option<Step> {
        None
    }

    /// Whether it calls code of the host program, which must stay on the caller's thread.
    fn is_foreign(&self) -> bool {
        false
    }

    /// The seed of its generator, if it draws.
    fn seed(&self) -> Option<Seed> {
        None
    }

    /// From here on draws as sequence `sequence` of its seed, so that rows of a batch draw independently
    /// ([`Seed`]).
    fn resequence(&mut self, _sequence: u32) {}

    /// Writes its state: all that [`Sampler::load`] needs beside the parameters.
    fn save(&self, _state: &mut StateWriter) {}

    /// Takes the state that a sampler of the same parameters saved.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if the words were not saved by such a sampler; its state is then any valid one.
    fn load(&mut self, _state: &mut StateReader<'_>) -> Result<()> {
        Ok(())
    }
}

/// What a sampler makes of candidates at -inf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRejected {
    /// They may make a difference to the others, or be selected.
    Counts,
    /// They make no difference to the others and are never selected.
    Ignores,
    /// As [`OnRejected::Ignores`], and others may get there.
    Adds,
    /// As [`OnRejected::Ignores`], and none is left where [`MANY`] are above -inf.
    Removes,
    /// None is left where [`MANY`] are above -inf; elsewhere as [`OnRejected::Counts`].
    RemovesFromMany,
}

/// At most this many candidates above -inf are kept by a sampler that removes those at -inf, for their number alone.
pub const MANY: usize = 4096;

/// What a sampler does to the greatest logit, the first of equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnGreatest {
    /// It may remove it, or raise another above it.
    Unknown,
    /// It stays the greatest.
    Keeps,
    /// It is picked, or alone above -inf.
    Leaves,
}

/// Copies and references of a sampler without its type; every sampler that can be cloned has it.
pub trait SamplerObject {
    /// An independent copy in the same state.
    fn clone_box(&self) -> Box<dyn Sampler>;

    /// The sampler without its type.
    fn as_dyn(&self) -> &dyn Sampler;
}

impl<S: Sampler + Clone> SamplerObject for S {
    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }

    fn as_dyn(&self) -> &dyn Sampler {
        self
    }
}

impl dyn Sampler {
    /// The value of a numeric parameter, by its keyword in [`Params`]; `None` if it has no such parameter.
    pub fn parameter(&self, keyword: &str) -> Option<f64> {
        registry::find(self.name())?.parameter(self, registry::keyword(keyword))
    }

    /// Changes a numeric parameter between two tokens, by its keyword in [`Params`]; `false` if it has no such
    /// parameter.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a value that the sampler could not be built with; nothing is changed.
    pub fn set_parameter(&mut self, keyword: &str, value: f64) -> Result<bool> {
        registry::find(self.name()).map_or(Ok(false), |row| row.set(self, registry::keyword(keyword), value))
    }
}

impl Clone for Box<dyn Sampler> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl std::fmt::Debug for dyn Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Entries by which a list with one entry for each accepted token grows, so that hardly any step allocates.
const GROWTH: usize = 1024;

/// Appends to a list with one entry for each accepted token.
fn follow<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(GROWTH.max(list.len() / 2));
    }
    list.push(value);
}

/// `x`, kept below +inf, and above -inf unless it `may_end`. NaN (from -inf less -inf) is -inf.
fn within(x: f32, may_end: bool) -> f32 {
    if x.is_nan() || (x == f32::NEG_INFINITY && may_end) {
        f32::NEG_INFINITY
    } else {
        x.clamp(f32::MIN, f32::MAX)
    }
}

/// The error where no candidate is above -inf.
fn none_left(message: &str) -> Error {
    Error::new(ErrorKind::Logits, message).help("at least one candidate needs a finite logit")
}

/// A whole-number parameter from the double that [`Sampler::set_parameter`] is given.
///
/// # Errors
/// [`ErrorKind::Sampling`], naming the parameter, if it is not whole or out of range.
fn whole(sampler: &str, parameter: &str, value: f64) -> Result<i32> {
    if value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value) {
        return Ok(value as i32);
    }
    Err(Error::new(ErrorKind::Sampling, format!("{parameter} of {sampler} is {value}"))
        .help(format!("{parameter} must be a whole number of at most 31 bits")))
}

/// `value`, unless it is NaN or infinite.
///
/// # Errors
/// [`ErrorKind::Sampling`], naming the parameter.
fn finite(sampler: &str, parameter: &str, value: f32) -> Result<f32> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::new(ErrorKind::Sampling, format!("{parameter} of {sampler} is {value}"))
        .help(format!("{parameter} must be a finite number")))
}
