//! Sampling: the chain of samplers, with llama.cpp's names, formulas and order.
//!
//! ```
//! use logitree::mask::Legal;
//! use logitree::sampling::{presets, Params};
//!
//! let mut chain = presets::llama_cpp(&Params { seed: Some(42), ..Params::default() })?;
//! let logits = [0.5, 2.0, -1.0, 1.5];
//! let token = chain.sample(&logits, Legal::Few(&[1, 2, 3]))?;
//! assert!(token != 0);
//! chain.accept(token);
//! # Ok::<(), logitree::Error>(())
//! ```
//!
//! One sampler, one file, named after it. The naive version of everything here is: copy the legal logits, sort
//! them, and do what the formula says; `tests/sampling_oracle.rs` holds the room to it. The steps away from it:
//! with a mask only the legal logits are gathered; without one the logits stay borrowed and are looked at in
//! blocks, with the few edited ones aside, until a sampler has cut them down to a list (`candidates.rs`).
//!
//! The room refuses to know what made the mask, and what a token's text is.
//!
//! Where llama.cpp leaves the order of equal logits to the standard library, equal logits keep the order they
//! stood in (by id, in the beginning).

pub mod candidates;
pub mod chain;
pub mod dist;
pub mod greedy;
pub mod logit_bias;
pub mod min_p;
pub mod params;
pub mod parse;
pub mod penalties;
pub mod presets;
pub mod rng;
pub mod temp;
pub mod top_k;
pub mod top_n_sigma;
pub mod top_p;
pub mod typ_p;

pub use candidates::Candidates;
pub use chain::{Chain, Effect};
pub use dist::Dist;
pub use greedy::Greedy;
pub use logit_bias::LogitBias;
pub use min_p::MinP;
pub use params::Params;
pub use penalties::Penalties;
pub use temp::Temp;
pub use top_k::TopK;
pub use top_n_sigma::TopNSigma;
pub use top_p::TopP;
pub use typ_p::TypP;

use crate::{Error, ErrorKind, Result, TokenId};

/// One step of shaping: looks at the candidates, cuts or changes some, or selects one.
///
/// What breaks if an implementation lies: `is_noop` must hold only if `apply` would leave candidates and sampler
/// as they are (the chain then skips it); `rollback` must undo `accept` and every draw of the steps it takes back,
/// or a decoder that goes back does not repeat itself; `forced` must leave the state that `apply` on a single
/// candidate leaves, or skipping a forced token changes the tokens after it.
pub trait Sampler: Send + Sync {
    /// llama.cpp's name of it.
    fn name(&self) -> &'static str;

    /// The name with its parameters, as in `top_k(40)`.
    fn describe(&self) -> String;

    /// Shapes the candidates. Never called with none.
    fn apply(&mut self, candidates: &mut Candidates<'_>);

    /// Takes note of an accepted token.
    fn accept(&mut self, _token: TokenId) {}

    /// Forgets the last `n` accepted tokens, and what was drawn for them. The chain never asks for more than
    /// were accepted.
    fn rollback(&mut self, _n: usize) {}

    /// Advances as `apply` would on one sole candidate, without looking at any.
    fn forced(&mut self) {}

    /// Back to the state it was born with.
    fn reset(&mut self) {}

    /// An independent copy in the same state.
    fn clone_box(&self) -> Box<dyn Sampler>;

    /// Whether `apply` selects a candidate.
    fn selects(&self) -> bool {
        false
    }

    /// Whether `apply` changes nothing, whatever the candidates.
    fn is_noop(&self) -> bool {
        false
    }

    /// The seed of its generator, if it draws.
    fn seed(&self) -> Option<u32> {
        None
    }
}

impl Clone for Box<dyn Sampler> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

impl std::fmt::Debug for dyn Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
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
