//! Lends the candidates to a sampler outside the core, as owned lists, and checks them when they are returned.

use super::{bad_logit, Candidates, Form, Order};
use crate::{Result, TokenId};

impl Candidates<'_> {
    /// Moves the candidates out as ids and logits, in order. The list here is empty until
    /// [`Candidates::take_back`], and the caller's logits are no longer borrowed.
    pub fn lend(&mut self) -> (Vec<TokenId>, Vec<f32>) {
        self.list();
        self.logits_mut();
        (std::mem::take(&mut self.ids), std::mem::take(&mut self.logits))
    }

    /// Takes ids and logits, one each, as the candidates. `in_order`: no two changed places.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Logits`] for NaN or +inf, and if no logit is above -inf; the candidates must not be used then.
    pub fn take_back(&mut self, ids: Vec<TokenId>, logits: Vec<f32>, in_order: bool) -> Result<()> {
        let good = logits.iter().fold(true, |good, &x| good & (x < f32::INFINITY));
        if !good {
            let bad = bad_logit(logits.into_iter().zip(ids));
            return Err(bad.help("-inf is the only value allowed beside finite ones"));
        }
        self.form = Form::List;
        self.ids = ids;
        self.logits = logits;
        self.order = if in_order && self.order == Order::ById { Order::ById } else { Order::None };
        self.best_first = false;
        self.changed();
        self.check_alive("no candidate is left above -inf")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use logitree_tokens::mask::AllowedTokens;

    fn begun(logits: &[f32]) -> Candidates<'_> {
        Candidates::begin(Candidates::default(), logits, AllowedTokens::All).unwrap()
    }

    #[test]
    fn returned_lists_become_the_candidates() {
        let logits = [1.0, 3.0, 2.0];
        let mut c = begun(&logits);
        c.update(&[(0, 4.0f32)], |x, add| x + add);
        let (mut ids, mut xs) = c.lend();
        assert_eq!((&ids[..], &xs[..]), (&[0, 1, 2][..], &[5.0, 3.0, 2.0][..]));
        ids.swap(0, 2);
        xs.swap(0, 2);
        c.take_back(ids, xs, false).unwrap();
        assert_eq!((c.ids(), c.logits(), c.is_sorted()), (&[2, 1, 0][..], &[2.0, 3.0, 5.0][..], false));
        assert_eq!((c.max(), c.first_max()), (5.0, 2));
        c.sort();
        assert_eq!(c.ids(), [0, 1, 2]);
    }

    #[test]
    fn bad_logits_are_refused() {
        let logits = [1.0, 3.0];
        for (x, says) in [(f32::NAN, "NaN"), (f32::INFINITY, "+inf")] {
            let error = begun(&logits).take_back(vec![4, 9], vec![0.0, x], true).unwrap_err();
            assert!(error.message.starts_with(says) && error.place == "id 9", "{error}");
        }
        for (ids, xs) in [(vec![], vec![]), (vec![1], vec![f32::NEG_INFINITY])] {
            assert_eq!(begun(&logits).take_back(ids, xs, true).unwrap_err().kind, ErrorKind::Logits);
        }
    }
}
