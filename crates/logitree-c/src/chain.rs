//! Chains of samplers.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;

use logitree::mask::AllowedTokens;
use logitree::sampling::Steering;
use logitree::{Chain, Mode, TokenId};

use crate::chain_params;
use crate::handles::{exclusive, handle, remove, shared};
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

    /// Frees a chain. NULL is no error.
    fn logitree_chain_free(chain: *mut LogitreeChain) {
        remove(chain)
    }

    /// Computes as llama.cpp does from the next step on, rounding and ties included, or as fast as possible.
    fn logitree_chain_set_parity(chain: *mut LogitreeChain, parity: bool) {
        let mut chain = exclusive(chain)?;
        *chain = chain.clone().with_mode(if parity { Mode::Parity } else { Mode::Fast })?;
        Ok(())
    }
}

/// Picks a token with `matcher`'s allowed tokens, or with all where it is NULL.
fn pick(
    chain: *mut LogitreeChain,
    logits: &[f32],
    matcher: *mut LogitreeMatcher,
    token: Out<u32>,
    choose: fn(&mut Chain, &[f32], AllowedTokens<'_>) -> logitree::Result<TokenId>,
) -> Outcome {
    let mut chain = exclusive(chain)?;
    let picked = if matcher.is_null() {
        choose(&mut chain, logits, AllowedTokens::All)?
    } else {
        choose(&mut chain, logits, exclusive(matcher)?.allowed()?)?
    };
    token.put(picked)
}

export! {
    /// Picks a token and accepts it in the chain (not in the matcher). `matcher`: NULL, or what allows tokens.
    fn logitree_chain_sample(
        chain: *mut LogitreeChain,
        logits: In<f32>,
        count: usize,
        matcher: *mut LogitreeMatcher,
        token: Out<u32>,
    ) {
        pick(chain, logits.slice(count)?, matcher, token, |chain, logits, set| chain.sample(logits, set))
    }

    /// As logitree_chain_sample, without accepting the token.
    fn logitree_chain_draw(
        chain: *mut LogitreeChain,
        logits: In<f32>,
        count: usize,
        matcher: *mut LogitreeMatcher,
        token: Out<u32>,
    ) {
        pick(chain, logits.slice(count)?, matcher, token, |chain, logits, set| chain.draw(logits, set))
    }

    /// Applies the chain, which need not select, and writes the candidates that are left, in the chain's order:
    /// `written` ids, logits and probabilities. Nothing is accepted; a sampler that draws has drawn. `matcher`: NULL,
    /// or what allows tokens. LOGITREE_ERROR_BUFFER if they do not fit: `count` elements always do.
    fn logitree_chain_apply(
        chain: *mut LogitreeChain,
        logits: In<f32>,
        count: usize,
        matcher: *mut LogitreeMatcher,
        ids: Out<u32>,
        left: Out<f32>,
        probabilities: Out<f32>,
        capacity: usize,
        written: Out<usize>,
    ) {
        let logits = logits.slice(count)?;
        let mut chain = exclusive(chain)?;
        if matcher.is_null() {
            chain.apply(logits, AllowedTokens::All, None)?;
        } else {
            chain.apply(logits, exclusive(matcher)?.allowed()?, None)?;
        }
        let found = chain.candidates();
        {
            ids.put_all(found.ids(), capacity, written)?;
            left.put_all(found.logits(), capacity, written)?;
            probabilities.put_all(found.probabilities(), capacity, written)
        }
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

    /// Records an accepted token, of the output or of the prompt.
    fn logitree_chain_accept(chain: *mut LogitreeChain, token: u32) {
        exclusive(chain)?.accept(token);
        Ok(())
    }

    /// Forgets the last `count` accepted tokens and all that was drawn for them.
    fn logitree_chain_rollback(chain: *mut LogitreeChain, count: usize) {
        Ok(exclusive(chain)?.rollback(count)?)
    }

    /// Back to the initial state: same seed, nothing accepted.
    fn logitree_chain_reset(chain: *mut LogitreeChain) {
        exclusive(chain)?.reset();
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

    /// The samplers with their parameters, "->" between them: UTF-8 without a byte of 0 after it.
    fn logitree_chain_describe(chain: *const LogitreeChain, out: Out<u8>, capacity: usize, length: Out<usize>) {
        out.put_all(shared(chain)?.describe().as_bytes(), capacity, length)
    }

    /// Changes a numeric parameter from the next step on.
    ///
    /// Pointers: `parameter` is NULL or ends in a byte of 0.
    fn logitree_chain_set(chain: *mut LogitreeChain, parameter: In<c_char>, value: f64) {
        let name = parameter.text()?;
        Ok(exclusive(chain)?.set_parameter(name, value)?)
    }
}
