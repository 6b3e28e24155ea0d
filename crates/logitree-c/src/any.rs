//! What handles of several kinds can: to be freed, to be described, and, those of one sequence, to take tokens and give them back.
#![allow(unsafe_code)] // exported names

use std::ffi::c_void;

use logitree::constraint::token_tree::cache::token_trees;
use logitree::constraint::{accept_all, binding_count, clear_bindings};
use logitree::Mode;
use serde_json::{json, Value};

use crate::catalogue::LogitreeWalk;
use crate::chain::LogitreeChain;
use crate::constraint::{constraint_of, LogitreeConstraint};
use crate::decoder::LogitreeDecoder;
use crate::handles::{kind, live, remove, shared, take, Exclusive, Handle};
use crate::library::{FEATURES, LOGITREE_ABI_VERSION};
use crate::llama::LogitreeLlamaRecord;
use crate::matcher::LogitreeMatcher;
use crate::memory::{export, In, Out};
use crate::status::{failure, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};
use crate::LogitreeStatus;

/// What has the state of one sequence, for one call alone.
enum Sequence {
    Matcher(Exclusive<LogitreeMatcher>),
    Chain(Exclusive<LogitreeChain>),
    Decoder(Exclusive<LogitreeDecoder>),
}

fn sequence(handle: *mut c_void) -> Outcome<Sequence> {
    let matcher = take(handle)?.of().map(Sequence::Matcher);
    let chain = matcher.or_else(|taken| taken.of().map(Sequence::Chain));
    let decoder = chain.or_else(|taken| taken.of().map(Sequence::Decoder));
    decoder.map_err(|taken| taken.is_no("matcher, chain or decoder"))
}

export! {
    /// Frees a handle of any kind. What was made with it lives on. NULL is no error.
    fn logitree_free(handle: *mut c_void) {
        remove(handle)
    }

    /// Accepts all of `count` tokens in a matcher, a chain or a decoder, or none. LOGITREE_ERROR_TOKEN, and nothing
    /// changes, if one is not allowed. A chain takes any, of the output or of the prompt.
    fn logitree_accept(handle: *mut c_void, tokens: In<u32>, count: usize) {
        let tokens = tokens.slice(count)?;
        match sequence(handle)? {
            Sequence::Matcher(mut matcher) => accept_all(&mut **matcher, tokens)?,
            Sequence::Chain(mut chain) => tokens.iter().for_each(|&token| chain.accept(token)),
            Sequence::Decoder(mut decoder) => {
                for (at, &token) in tokens.iter().enumerate() {
                    if let Err(error) = decoder.accept(token) {
                        decoder.rollback(at)?;
                        return Err(error.within(&format!("tokens[{at}]")).into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Forgets the last `count` tokens of a matcher, a chain or a decoder: it is as before them, what was drawn for them
    /// too. LOGITREE_ERROR_STATE, and nothing changes, if fewer were accepted.
    fn logitree_rollback(handle: *mut c_void, count: usize) {
        let done = match sequence(handle)? {
            Sequence::Matcher(mut matcher) => matcher.rollback(count),
            Sequence::Chain(mut chain) => chain.rollback(count),
            Sequence::Decoder(mut decoder) => decoder.rollback(count),
        };
        Ok(done?)
    }

    /// Brings a matcher, a chain or a decoder back to the state it was made with: the same seed, nothing accepted.
    fn logitree_reset(handle: *mut c_void) {
        match sequence(handle)? {
            Sequence::Matcher(mut matcher) => matcher.reset(),
            Sequence::Chain(mut chain) => chain.reset(),
            Sequence::Decoder(mut decoder) => decoder.reset(),
        }
        Ok(())
    }

    /// A handle as a JSON object, without a byte of 0 after it.
    ///
    /// NULL: the library's "version", "abi_version", "features", "structs" with their sizes and "live_handles". A
    /// vocabulary: "size", "end_tokens", "fingerprint" (equal for equal tokens, kinds and end ids, whatever they were read
    /// from), "source", "name" and "bindings", the number of constraints that it keeps. A constraint: its form, which
    /// logitree_constraint_from_json reads; LOGITREE_ERROR_CONSTRAINT for one that has none. A matcher:
    /// "vocabulary_size", "accepted", "accepting", "finished", "open_ended". A chain: "samplers" with their parameters,
    /// "parity", "accepted". A decoder: "accepted", "finish". A walk: "items", "start", "end_token". A record: sums over
    /// the steps of a sampler and its clones in which the constraint decided: "steps", "sole" (those with one allowed
    /// candidate), "candidates", "kept", and "skip_ratio" and "skip_ratio_squared" of (candidates - kept) / candidates.
    fn logitree_describe(handle: *const c_void, out: Out<u8>, capacity: usize, length: Out<usize>) {
        out.put_all(described(handle)?.to_string().as_bytes(), capacity, length)
    }

    /// Forgets what is kept by content: built token trees, 128 at most, and, unless it is NULL, the 256 constraints last
    /// used with the vocabulary, which share their masks. What is in use lives on.
    fn logitree_clear_caches(vocabulary: *const LogitreeVocabulary) {
        if !vocabulary.is_null() {
            clear_bindings(&vocabulary_of(vocabulary)?);
        }
        token_trees().clear();
        Ok(())
    }
}

/// What is known without a handle.
fn library() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "abi_version": LOGITREE_ABI_VERSION,
        "features": FEATURES,
        "structs": {
            "logitree_text": size_of::<crate::memory::LogitreeText>(),
            "logitree_beam": size_of::<crate::catalogue::LogitreeBeam>(),
            "logitree_llama_library": size_of::<crate::llama::LogitreeLlamaLibrary>(),
        },
        "live_handles": live(),
    })
}

fn described(handle: *const c_void) -> Outcome<Value> {
    if handle.is_null() {
        return Ok(library());
    }
    Ok(match kind(handle)? {
        LogitreeVocabulary::KIND => {
            let known = vocabulary_of(handle.cast())?;
            json!({
                "size": known.len(),
                "end_tokens": known.end_tokens(),
                "fingerprint": format!("{:032x}", known.fingerprint()),
                "source": known.about().source,
                "name": known.about().name,
                "bindings": binding_count(&known),
            })
        }
        LogitreeConstraint::KIND => constraint_of(handle.cast())?.form()?,
        LogitreeMatcher::KIND => {
            let matcher = shared::<LogitreeMatcher>(handle.cast())?;
            json!({
                "vocabulary_size": matcher.vocabulary_size(),
                "accepted": matcher.accepted(),
                "accepting": matcher.is_accepting(),
                "finished": matcher.is_finished(),
                "open_ended": matcher.after_end().is_free(),
            })
        }
        LogitreeChain::KIND => {
            let chain = shared::<LogitreeChain>(handle.cast())?;
            json!({
                "samplers": chain.samplers().iter().map(|one| one.describe()).collect::<Vec<_>>(),
                "parity": chain.mode() == Mode::Parity,
                "accepted": chain.accepted(),
            })
        }
        LogitreeDecoder::KIND => {
            let decoder = shared::<LogitreeDecoder>(handle.cast())?;
            json!({ "accepted": decoder.tokens().len(), "finish": decoder.finish().map(|finish| finish.name()) })
        }
        LogitreeWalk::KIND => {
            let walk = shared::<LogitreeWalk>(handle.cast())?;
            json!({ "items": walk.snapshot.len(), "start": walk.snapshot.root().0, "end_token": walk.end })
        }
        LogitreeLlamaRecord::KIND => {
            let sums = shared::<LogitreeLlamaRecord>(handle.cast())?.counts();
            json!({
                "steps": sums.steps,
                "sole": sums.sole,
                "candidates": sums.candidates,
                "kept": sums.kept,
                "skip_ratio": sums.skip_ratio,
                "skip_ratio_squared": sums.skip_ratio_squared,
            })
        }
        _ => return Err(failure(LogitreeStatus::ErrorHandle, "the handle is of no kind")),
    })
}
