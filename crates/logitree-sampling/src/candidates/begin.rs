//! Starts a step's candidates: reads and checks the allowed logits in one pass.
//!
//! Logits that are not allowed are neither read nor checked. A bad logit is located by a second pass, only after the
//! first has found that there is one.

use super::{Candidates, Form, Order, Shape};
use crate::MANY;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{words_for, AllowedTokens};
use logitree_tokens::simd::{self, Floats, BLOCK};

/// Mask words that are tested together, to skip runs without an allowed token.
const GROUP: usize = 16;

impl<'l> Candidates<'l> {
    /// As [`Candidates::begin`], but where a mask allows many ids the others are candidates too, at -inf: for samplers to
    /// which that makes no difference ([`OnRejected`](crate::OnRejected)).
    ///
    /// # Errors
    /// As [`Candidates::begin`].
    pub(crate) fn begin_wide(
        buffers: Candidates<'static>,
        logits: Floats<'l>,
        allowed: AllowedTokens<'_>,
    ) -> Result<Self> {
        let covering = words_for(logits.len());
        match allowed {
            AllowedTokens::Mask(words) if words.len() == covering && is_wide(words, logits.len()) => {
                let mut c = Candidates::opened(buffers, logits)?;
                match c.begin_masked(logits, words)? {
                    true => Ok(c),
                    false => Candidates::begin(c.end(), logits, allowed),
                }
            }
            allowed => Candidates::begin(buffers, logits, allowed),
        }
    }

    /// Starts a step with the allowed logits, reusing the buffers of an earlier step.
    ///
    /// # Errors
    /// [`ErrorKind::Logits`] for no logits, NaN or +inf among the allowed ones, no allowed id, or all -inf;
    /// [`ErrorKind::Mask`] for an allowed id without a logit.
    pub fn begin(
        buffers: Candidates<'static>,
        logits: impl Into<Floats<'l>>,
        allowed: AllowedTokens<'_>,
    ) -> Result<Self> {
        let logits = logits.into();
        let mut c = Candidates::opened(buffers, logits)?;
        match allowed {
            AllowedTokens::All => c.begin_dense(logits)?,
            AllowedTokens::Ids(ids) => c.begin_few(logits, ids)?,
            AllowedTokens::Mask(words) => c.begin_words(logits, words)?,
        }
        Ok(c)
    }

    /// The buffers without an earlier step's candidates.
    fn opened(buffers: Candidates<'static>, logits: Floats<'l>) -> Result<Self> {
        let mut c: Candidates<'l> = buffers;
        c.edits.clear();
        c.shapes.clear();
        c.ids.clear();
        c.logits.clear();
        c.changed();
        c.selected = None;
        c.fault = None;
        c.best_first = false;
        c.order = Order::ById;
        c.floor = f32::NEG_INFINITY;
        if logits.is_empty() || logits.len() > i32::MAX as usize {
            return Err(Error::new(ErrorKind::Logits, format!("there are {} logits", logits.len()))
                .help("pass one logit for each token of the vocabulary"));
        }
        Ok(c)
    }

    fn begin_dense(&mut self, logits: Floats<'l>) -> Result<()> {
        self.form = Form::Borrowed;
        self.base = logits;
        self.maxima.resize(logits.len().div_ceil(BLOCK), 0.0);
        if !simd::block_maxima(logits, &mut self.maxima) {
            let all = (0..logits.len()).filter_map(|at| Some((logits.get(at)?, at as TokenId)));
            return Err(bad_logit(all));
        }
        self.check_alive("every logit is -inf")
    }

    /// The dense form, with what `words` does not allow at -inf; whether [`MANY`] are above that.
    fn begin_masked(&mut self, logits: Floats<'l>, words: &[u32]) -> Result<bool> {
        self.form = Form::Borrowed;
        self.base = logits;
        self.mask.clear();
        self.mask.extend_from_slice(words);
        self.shapes.push(Shape::Allowed);
        self.maxima.resize(logits.len().div_ceil(BLOCK), 0.0);
        let alive = match logits {
            Floats::F32(xs) => simd::allowed_maxima(xs, words, &mut self.maxima),
            narrow => {
                let (mut alive, mut buffer) = (Some(0), [0.0; BLOCK]);
                for (at, words) in words.chunks(BLOCK / 32).enumerate() {
                    let block = narrow.block(at, &mut buffer);
                    let more = simd::allowed_maxima(block, words, &mut self.maxima[at..=at]);
                    alive = alive.zip(more).map(|(alive, more)| alive + more);
                }
                alive
            }
        };
        let Some(alive) = alive else {
            let allowed = logitree_tokens::mask::ids(words).take_while(|&id| (id as usize) < logits.len());
            return Err(bad_logit(allowed.filter_map(|id| Some((logits.get(id as usize)?, id)))));
        };
        Ok(alive >= MANY)
    }

    fn begin_few(&mut self, logits: Floats<'l>, ids: &[TokenId]) -> Result<()> {
        self.form = Form::List;
        let mut good = true;
        self.ids.extend_from_slice(ids);
        for &id in ids {
            let Some(x) = logits.get(id as usize) else {
                return Err(no_logit(id, logits.len()));
            };
            good &= x < f32::INFINITY;
            self.logits.push(x);
        }
        self.end_begin(good)
    }

    fn begin_words(&mut self, logits: Floats<'l>, words: &[u32]) -> Result<()> {
        self.form = Form::List;
        let covering = words_for(logits.len());
        if let Some((at, word)) = words.iter().enumerate().skip(covering).find(|(_, &w)| w != 0) {
            return Err(no_logit((at * 32) as TokenId + word.trailing_zeros(), logits.len()));
        }
        let mut good = true;
        for (lines, group) in words[..words.len().min(covering)].chunks(GROUP).zip(0..) {
            if lines.iter().fold(0, |any, word| any | word) == 0 {
                continue;
            }
            for (&word, at) in lines.iter().zip(group * GROUP..) {
                good &= self.gather(logits, word, at * 32);
            }
        }
        self.end_begin(good)
    }

    /// Adds the allowed ids of one word, from `first` on, with their logits; whether all are below +inf.
    fn gather(&mut self, logits: Floats<'_>, mut word: u32, first: usize) -> bool {
        let mut good = true;
        while word != 0 {
            let id = first + word.trailing_zeros() as usize;
            word &= word - 1;
            // Bits past the last logit have no meaning.
            let Some(x) = logits.get(id) else { break };
            good &= x < f32::INFINITY;
            self.ids.push(id as TokenId);
            self.logits.push(x);
        }
        good
    }

    fn end_begin(&mut self, good: bool) -> Result<()> {
        if !good {
            return Err(bad_logit(self.logits.iter().copied().zip(self.ids.iter().copied())));
        }
        if self.ids.is_empty() {
            return Err(Error::new(ErrorKind::Logits, "the mask is empty: no token is allowed")
                .help("a matcher never hands out an empty mask; check how this one was made"));
        }
        self.check_alive("every allowed logit is -inf")
    }
}

/// Whether so many ids are allowed that the others are read past rather than left out.
fn is_wide(words: &[u32], logits: usize) -> bool {
    let allowed = simd::count(words);
    allowed >= MANY && allowed * 8 >= logits
}

/// The error of the first logit that is NaN or +inf.
pub fn bad_logit(logits: impl Iterator<Item = (f32, TokenId)>) -> Error {
    for (x, id) in logits {
        if x.is_nan() || x == f32::INFINITY {
            let what = if x.is_nan() { "NaN" } else { "+inf" };
            return Error::new(ErrorKind::Logits, format!("{what} among the logits"))
                .at(format!("id {id}"))
                .help(
                    "the model's output is broken there; -inf is the only value allowed beside finite ones",
                );
        }
    }
    Error::new(ErrorKind::Logits, "a logit is neither finite nor -inf")
}

/// The error of an allowed id that no logit belongs to.
pub fn no_logit(id: TokenId, n: usize) -> Error {
    Error::new(ErrorKind::Mask, format!("id {id} is allowed, but there are {n} logits"))
        .help("mask and logits must be of the same vocabulary")
}
