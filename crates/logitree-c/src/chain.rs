//! Chains of samplers.
#![allow(unsafe_code)] // exported names

use std::ffi::{c_char, c_void};

use logitree::mask::AllowedTokens;
use logitree::sampling::Steering;
use logitree::{Chain, Mode};

use crate::chain_params;
use crate::handles::{exclusive, handle, shared};
use crate::matcher::LogitreeMatcher;
use crate::memory::{export, In, Out};
use crate::status::Outcome;

handle! {
    /// Samplers in order, with their random numbers and histories. For one thread at a time.
    LogitreeChain, Chain, 4, "chain"
}

export! {
    /// The chain of a notation of llama.cpp: "penalties;top_k;temperature", or its letters, "ekt"; "greedy" picks the
    /// likeliest. NULL: llama.cpp's default chain.
    ///
    /// `parameters`: NULL, or a JSON object {"temp": 0.8, "top_k": 40, "seed": 42}; docs/samplers.md lists the names.
    /// Without a "seed" the chain takes a fresh one. Instead of a notation: "preset", which is "llama_cpp", "tsampler"
    /// or "transformers"; or "samplers" alone, a list of samplers in order with their own parameters: [{"name":
    /// "top_k", "k": 40}, {"name": "dist", "seed": 42, "rng": "xoroshiro128plus"}]. A chain that does not select can be
    /// applied.
    ///
    /// Pointers: `notation` is NULL or ends in a byte of 0; `length` bytes may be read at `parameters`, if it is not
    /// NULL.
    fn logitree_chain_new(
        notation: In<c_char>,
        parameters: In<c_char>,
        length: usize,
        out: Out<*mut LogitreeChain>,
    ) {
        let make = || {
            let (notation, parameters) = {
                let given = !parameters.is_null();
                let json = if given { Some(parameters.bytes(length)?) } else { None };
                (notation.name()?, json)
            };
            Ok(chain_params::chain(notation, parameters)?)
        };
        out.create(make)
    }

    /// An independent copy in the same state.
    fn logitree_chain_clone(chain: *const LogitreeChain, out: Out<*mut LogitreeChain>) {
        out.create(|| Ok(shared(chain)?.clone()))
    }
}

/// Calls with the tokens that `matcher` allows, or with all where it is NULL.
fn with_allowed<T>(
    matcher: *mut LogitreeMatcher,
    call: impl FnOnce(AllowedTokens<'_>) -> logitree::Result<T>,
) -> Outcome<T> {
    if matcher.is_null() {
        return Ok(call(AllowedTokens::All)?);
    }
    Ok(call(exclusive(matcher)?.allowed()?)?)
}

export! {
    /// Picks a token, which is not accepted. `matcher`: NULL, or what allows tokens. `dtype`: LOGITREE_F32, LOGITREE_F16
    /// or LOGITREE_BF16.
    fn logitree_chain_draw(
        chain: *mut LogitreeChain,
        logits: In<c_void>,
        dtype: u32,
        count: usize,
        matcher: *mut LogitreeMatcher,
        token: Out<u32>,
    ) {
        let logits = logits.floats(dtype, count)?;
        let mut chain = exclusive(chain)?;
        token.put(with_allowed(matcher, |allowed| chain.draw(logits, allowed))?)
    }

    /// Applies the chain, which need not select, and writes the candidates that are left, in the chain's order:
    /// `written` ids, logits and probabilities. Nothing is accepted; a sampler that draws has drawn. `matcher` and
    /// `dtype` as for logitree_chain_draw. LOGITREE_ERROR_BUFFER if they do not fit: `count` elements always do.
    fn logitree_chain_apply(
        chain: *mut LogitreeChain,
        logits: In<c_void>,
        dtype: u32,
        count: usize,
        matcher: *mut LogitreeMatcher,
        ids: Out<u32>,
        left: Out<f32>,
        probabilities: Out<f32>,
        capacity: usize,
        written: Out<usize>,
    ) {
        let logits = logits.floats(dtype, count)?;
        let mut chain = exclusive(chain)?;
        with_allowed(matcher, |allowed| chain.apply(logits, allowed, None))?;
        let found = chain.candidates();
        ids.put_all(found.ids(), capacity, written)?;
        left.put_all(found.logits(), capacity, written)?;
        probabilities.put_all(found.probabilities(), capacity, written)
    }

    /// Adds to the logits of `count` tokens at every step from the next one on, before the first sampler; -inf vetoes a
    /// token. In place of former additions; with a count of 0 none is left.
    fn logitree_chain_steer(chain: *mut LogitreeChain, ids: In<u32>, additions: In<f32>, count: usize) {
        let (ids, additions) = (ids.slice(count)?, additions.slice(count)?);
        let mut steering = Steering::new();
        ids.iter().zip(additions).try_for_each(|(&id, &by)| steering.add(id, by))?;
        exclusive(chain)?.steer(&steering);
        Ok(())
    }

    /// The state as bytes, without samplers and parameters: generators, histories, running means.
    fn logitree_chain_snapshot(chain: *const LogitreeChain, out: Out<u8>, capacity: usize, length: Out<usize>) {
        out.put_all(&shared(chain)?.snapshot(), capacity, length)
    }

    /// Takes the state that a chain of the same samplers and parameters gave.
    fn logitree_chain_restore(chain: *mut LogitreeChain, snapshot: In<u8>, length: usize) {
        Ok(exclusive(chain)?.restore(snapshot.slice(length)?)?)
    }

    /// Changes a numeric parameter from the next step on. "parity" is one: 1 computes as llama.cpp does, rounding and
    /// ties included, 0 as fast as possible.
    ///
    /// Pointers: `parameter` is NULL or ends in a byte of 0.
    fn logitree_chain_set(chain: *mut LogitreeChain, parameter: In<c_char>, value: f64) {
        let name = parameter.text()?;
        let mut chain = exclusive(chain)?;
        if name == "parity" {
            *chain = chain.clone().with_mode(if value == 0.0 { Mode::Fast } else { Mode::Parity })?;
            return Ok(());
        }
        Ok(chain.set_parameter(name, value)?)
    }
}
