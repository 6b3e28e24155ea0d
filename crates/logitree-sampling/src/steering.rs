//! Steering: what the application adds to single logits before the first sampler, from step to step.
//!
//! The slow version that it must equal: copy the logits, add each edit to its token's, and run the chain over the copy.

use super::{none_left, within, Candidates};
use crate::{Error, ErrorKind, Result, TokenId};

/// Additions by ascending token id; -inf vetoes.
///
/// ```
/// use logitree_sampling::{presets, Steering};
/// use logitree_tokens::mask::AllowedTokens;
///
/// let mut steering = Steering::new();
/// steering.add(1, f32::NEG_INFINITY)?;
/// steering.add(0, 1.5)?;
/// let mut chain = presets::greedy();
/// chain.steer(&steering);
/// assert_eq!(chain.draw(&[0.5, 4.0, 1.0], AllowedTokens::All)?, 0);
/// # Ok::<(), logitree_sampling::Error>(())
/// ```
#[derive(Debug, Default, PartialEq)]
pub struct Steering {
    edits: Vec<(TokenId, f32)>,
    vetoes: usize,
}

impl Clone for Steering {
    fn clone(&self) -> Self {
        Steering { edits: self.edits.clone(), vetoes: self.vetoes }
    }

    /// Keeps the buffer, so that a chain whose steering changes at each token allocates nothing.
    fn clone_from(&mut self, other: &Self) {
        self.edits.clone_from(&other.edits);
        self.vetoes = other.vetoes;
    }
}

impl Steering {
    /// No edits.
    pub fn new() -> Self {
        Steering::default()
    }

    /// Adds `by` to the logit of `id`, on top of earlier additions. -inf vetoes the token, until [`Steering::clear`].
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if `by` is NaN or +inf, or the sum is not finite; nothing is changed then.
    pub fn add(&mut self, id: TokenId, by: f32) -> Result<()> {
        if by.is_nan() || by == f32::INFINITY {
            return Err(Error::new(ErrorKind::Sampling, format!("the steering of token {id} is {by}"))
                .help("an edit is finite, or -inf to veto the token; to force tokens use a mask"));
        }
        let veto = by == f32::NEG_INFINITY;
        // Ids usually come in ascending order.
        let at = match self.edits.last() {
            Some(&(last, _)) if last >= id => self.edits.binary_search_by_key(&id, |e| e.0),
            _ => Err(self.edits.len()),
        };
        match at {
            Ok(at) => {
                let old = self.edits[at].1;
                let sum = old + by;
                if !sum.is_finite() && !veto && old.is_finite() {
                    let message = format!("the edits of token {id} add up to {sum}");
                    return Err(Error::new(ErrorKind::Sampling, message).help("add less, or veto the token"));
                }
                self.vetoes += usize::from(veto && old.is_finite());
                self.edits[at].1 = sum;
            }
            Err(at) => {
                self.vetoes += usize::from(veto);
                self.edits.insert(at, (id, by));
            }
        }
        Ok(())
    }

    /// Bans a token.
    pub fn veto(&mut self, id: TokenId) {
        // Cannot fail: -inf is an edit, and so is what it adds up to.
        drop(self.add(id, f32::NEG_INFINITY));
    }

    /// Takes all edits away; the buffer stays.
    pub fn clear(&mut self) {
        self.edits.clear();
        self.vetoes = 0;
    }

    /// The edits by ascending id; -inf is a veto.
    pub fn edits(&self) -> &[(TokenId, f32)] {
        &self.edits
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Whether it bans this token.
    pub fn is_vetoed(&self, id: TokenId) -> bool {
        let edit = self.edits.binary_search_by_key(&id, |e| e.0).map(|at| self.edits[at].1);
        self.vetoes > 0 && edit == Ok(f32::NEG_INFINITY)
    }

    /// Makes the edits. Tokens that are not candidates are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Logits`] if it vetoes every candidate that is above -inf.
    pub(super) fn apply(&self, candidates: &mut Candidates<'_>) -> Result<()> {
        candidates
            .update(&self.edits, |x, &by| within(x + by, x == f32::NEG_INFINITY || by == f32::NEG_INFINITY));
        if self.vetoes > 0 {
            candidates.fail_unless_alive("the steering vetoes every allowed token");
        }
        candidates.take_fault().map_or(Ok(()), Err)
    }

    /// The error for a token that is vetoed and the only allowed one.
    pub(crate) fn vetoed(id: TokenId) -> Error {
        none_left("the steering vetoes every allowed token").at(format!("token {id}, the only allowed one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_add_up_and_vetoes_stay() {
        let mut s = Steering::new();
        for (id, by) in [(7, 1.0), (3, 2.0), (7, 0.5), (9, 1.0), (3, f32::NEG_INFINITY), (3, 4.0)] {
            s.add(id, by).unwrap();
        }
        assert_eq!(s.edits(), [(3, f32::NEG_INFINITY), (7, 1.5), (9, 1.0)]);
        assert!(s.is_vetoed(3) && !s.is_vetoed(7) && !s.is_vetoed(4));
        s.veto(3);
        s.veto(1);
        assert_eq!((s.vetoes, s.edits().len()), (2, 4));
        s.clear();
        assert!(s.is_empty() && !s.is_vetoed(3) && s == Steering::new());
    }

    #[test]
    fn invalid_edits_are_refused_and_change_nothing() {
        let mut s = Steering::new();
        s.add(2, f32::MAX).unwrap();
        for by in [f32::NAN, f32::INFINITY, f32::MAX] {
            let error = s.add(2, by).unwrap_err();
            assert!(error.kind == ErrorKind::Sampling && error.message.contains("token 2"), "{error}");
        }
        assert_eq!(s.edits(), [(2, f32::MAX)]);
    }
}
