//! The interface that every constraint implements, and its laws (held by `tests/it/constraint/laws.rs`).
//!
//! Laws, for every matcher and every reachable state:
//! 1. `allowed` is a pure function of the accepted tokens: asking twice gives the same set, and nothing else changes.
//! 2. `accept(t)` succeeds exactly when `allowed` contains `t`, and `take(t)` says so; on an error or a refusal the
//!    matcher is unchanged.
//! 3. `allowed` is empty in no reachable state: a dead end is refused before it is entered. At the end of a constraint
//!    that no token follows, it is an error ([`ErrorKind::State`]).
//! 4. After `accept` of n tokens, `rollback(n)` is as if they had never been; `rollback` past the start is an
//!    error that changes nothing.
//! 5. A fork and its parent give equal answers and then live apart.
//! 6. `reset` gives the state the matcher was born with.
//! 7. `forced` is the longest run t1..tn such that each is the only allowed token after those before it and the
//!    matcher is neither finished nor accepting before it; asking changes nothing. Runs past 1,000 tokens may be given
//!    in pieces.
//! 8. Once `is_finished`, `is_accepting` holds too and `allowed` is what [`Matcher::after_end`] says, whatever comes: the
//!    end tokens alone, so that a loop which only masks stays within the constraint; everything only where the
//!    constraint is of a kind that free text follows (a token tree).
//! 9. `bias` is a pure function of the accepted tokens; it names an allowed token and a finite number.
//! 10. `certain` is a pure function of the accepted tokens; where it gives bytes, every sequence of allowed tokens spells
//!     them first, or a beginning of them.

use std::sync::Arc;

use super::after_end::AfterEnd;
use super::binding::Key;
use super::language::{ByteWalk, Bytewise};
use super::query::Certain;
use super::skeleton::SpanProgress;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{words_for, AllowedTokens};
use logitree_tokens::vocabulary::Vocabulary;
use serde_json::Value;

/// What may be generated: a value that knows no vocabulary, no model and no prompt.
pub trait Constraint: Send + Sync {
    /// A matcher at the beginning of a sequence, for the tokens of `vocabulary`. Matchers of constraints with equal keys share
    /// what they find out: the vocabulary keeps it.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the constraint cannot be honoured with this vocabulary.
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>>;

    /// What is equal for constraints that allow the same with every vocabulary; `None`: it cannot be compared, and
    /// nothing made of it is kept.
    fn key(&self) -> Option<Key> {
        None
    }

    /// The constraint as JSON, which [`form::read`](crate::form::read) reads.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] where it, or a part of it, has no form: it is a program, or bound to something.
    fn form(&self) -> Result<Value> {
        Err(Error::new(ErrorKind::Constraint, "a constraint of this kind has no JSON form")
            .help("it is made by a program: make it again there"))
    }
}

/// The highest of the temperatures that matchers of one text have.
pub(crate) fn highest_temperature<'m>(of: impl IntoIterator<Item = &'m dyn Matcher>) -> Option<f32> {
    of.into_iter().filter_map(Matcher::temperature).reduce(f32::max)
}

/// A constraint bound to a vocabulary and running for one sequence.
pub trait Matcher: Send + Sync {
    /// Number of token ids that masks cover.
    fn vocabulary_size(&self) -> usize;

    /// The allowed next tokens. `&mut` so that an implementation may fill its own buffers.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if finding the set takes more work than the matcher's fuel allows;
    /// [`crate::ErrorKind::State`] if the constraint is over and no token ends it. The matcher is unchanged. Never an
    /// open mask.
    fn allowed(&mut self) -> Result<AllowedTokens<'_>>;

    /// More tokens than the allowed ones, where those take longer to find: which of them is allowed,
    /// [`Matcher::is_allowed`] says one by one. `None`: [`Matcher::allowed`] is as fast.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn allowed_superset(&mut self) -> Result<Option<AllowedTokens<'_>>> {
        Ok(None)
    }

    /// Writes the allowed tokens over `words`, at least as many as the vocabulary needs; what lies past it is cleared.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        let size = self.vocabulary_size();
        let covered = words_for(size).min(words.len());
        words[covered..].fill(0);
        self.allowed()?.write(size, &mut words[..covered]);
        Ok(())
    }

    /// Whether `token` is allowed here.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        if self.is_finished() {
            return Ok(self.after_end().takes(token));
        }
        Ok(self.allowed()?.contains(token))
    }

    /// Takes one token.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Token`] if it is not allowed here; the matcher is unchanged.
    fn accept(&mut self, token: TokenId) -> Result<()>;

    /// Takes one token if it is allowed here; whether it was. As [`Matcher::accept`], with no words for a refusal.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn take(&mut self, token: TokenId) -> Result<bool> {
        match self.accept(token) {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::Token => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Forgets the last `n` accepted tokens.
    ///
    /// # Errors
    /// [`crate::ErrorKind::State`] if fewer than `n` were accepted; the matcher is unchanged.
    fn rollback(&mut self, n: usize) -> Result<()>;

    /// An independent copy in the same state.
    fn fork(&self) -> Box<dyn Matcher>;

    /// Back to the state it was born with.
    fn reset(&mut self);

    /// Appends the forced tokens to `out`: the run of tokens that are each the only one allowed. Changes nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if finding them takes more work than the matcher's fuel allows; the matcher and
    /// `out` are unchanged.
    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()>;

    /// Whether what was accepted so far is complete (more may still be allowed).
    fn is_accepting(&self) -> bool;

    /// Whether the constraint is over: complete, and with nothing more to say.
    fn is_finished(&self) -> bool;

    /// What may follow once the constraint is over: the end tokens, or anything.
    fn after_end(&self) -> &AfterEnd;

    /// A number that is equal for two matchers of one constraint exactly where they are in the same state, so that the
    /// same continuations lead to the same answers; `None` where states are not numbered.
    fn state(&self) -> Option<u64> {
        None
    }

    /// The matcher that allows the same texts in tokens of any spelling, where this one allows fewer spellings.
    fn in_any_spelling(&self) -> Option<&dyn Matcher> {
        None
    }

    /// What may still be written, where tokens matter only by their bytes and the vocabulary's end-of-generation ids end
    /// it; `None` elsewhere. Compositions join such constraints inside tokens.
    fn bytewise(&self) -> Option<Bytewise> {
        None
    }

    /// A walk byte by byte from the numbered states of [`Matcher::state`], for the length of a call, where tokens matter only
    /// by their bytes and all states have numbers; `None` elsewhere.
    fn byte_walk(&self) -> Option<ByteWalk<'_>> {
        None
    }

    /// Appends the tokens that matter here as themselves, not by their bytes: those that a grammar names. A search
    /// that spells texts byte by byte tries these too. Some of them may not be allowed.
    fn named(&self, _out: &mut Vec<TokenId>) {}

    /// What this constraint would have added to the logit of one allowed token here, so that it comes sooner, such as
    /// the end of what must not grow too long. What becomes of it is the decoder's business.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn bias(&mut self) -> Result<Option<(TokenId, f32)>> {
        Ok(None)
    }

    /// The temperature at which the next token is to be sampled, where the constraint says so: a rule of its grammar has one.
    /// What becomes of it is the decoder's business.
    fn temperature(&self) -> Option<f32> {
        None
    }

    /// Whether what comes here is free text, with only a few tokens banned: the model may end its turn, and
    /// stop strings count, as if there were no constraint.
    fn is_free(&self) -> bool {
        false
    }

    /// Where the output is in the spans of a skeleton; `None` where no skeleton has begun.
    fn spans(&self) -> Option<&SpanProgress> {
        None
    }

    /// What is expected here, in words; empty if unknown.
    fn expected(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is expected after these bytes, which are all allowed; empty if unknown.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        Ok(if bytes.is_empty() { self.expected() } else { Vec::new() })
    }

    /// How many of these bytes may come from here on, one after the other, however they are cut into tokens; all of
    /// them where the constraint does not look at bytes.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn accepted_prefix(&mut self, bytes: &[u8]) -> Result<usize> {
        let is_closed = self.is_finished() && !self.after_end().is_free();
        Ok(if is_closed { 0 } else { bytes.len() })
    }

    /// The bytes, at most `most`, that are certain here, where the constraint knows them without a look at the tokens;
    /// `None`: [`query::certain`](crate::query::certain) looks.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn certain(&mut self, most: usize) -> Result<Option<Certain>> {
        let _ = most;
        Ok(None)
    }

    /// Whether asking for the allowed tokens, or taking a token, takes about a microsecond here: nothing must be
    /// computed first, and no other thread is computing it. A hint: callers who hold a lock of their own let go of it
    /// where not.
    fn is_ready(&self) -> bool {
        true
    }

    /// Number of tokens accepted since birth or reset, less those rolled back.
    fn accepted(&self) -> usize;
}
