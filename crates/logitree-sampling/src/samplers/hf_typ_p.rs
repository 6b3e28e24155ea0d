//! hf_typ_p: locally typical sampling as transformers does it: keeps all candidates whose surprisal is as near to the
//! entropy as that of the last one needed.
//!
//! Meister, Pimentel, Wiher, Cotterell: "Locally Typical Sampling", TACL 2023, arXiv:2202.00666. Source:
//! `TypicalLogitsWarper` of transformers 5.23. llama.cpp's `typ_p` stops at a sum above p, not at p, and cuts between
//! candidates that are equally near.

use crate::distribution::{as_written, Weight};
use crate::Result;
use crate::{arguments, check, Arguments, Candidates, OnRejected, Sampler};

/// How many candidates are sorted at first; 8 times as many at each further try.
const FIRST: usize = 1024;

/// Keeps the most typical candidates until their probabilities reach `p`, what is equally near to the last of them,
/// and at least `min_keep`, in their order.
#[derive(Debug, Clone)]
pub struct HfTypP {
    p: f32,
    /// p as it is written, for transformers computes with doubles.
    share: f64,
    min_keep: usize,
    /// Distance from the entropy, as sortable bits, and position.
    nearest: Vec<(u64, u32)>,
}

impl HfTypP {
    /// `p == 1` keeps all. `min_keep` counts as 1 if it is 0.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `p` is NaN or above 1.
    pub fn new(p: f32, min_keep: usize) -> Result<Self> {
        check("hf_typ_p", [p.into()])?;
        Ok(HfTypP { p, share: as_written(p), min_keep, nearest: Vec::new() })
    }

    /// The distance at which the nearest ones reach the target, their first `min_keep` in order before all others.
    fn bar(&mut self, logits: &[f32], max: f32, target: f64) -> u64 {
        let all = self.nearest.len();
        let mut sorted = FIRST.max(self.min_keep).min(all);
        loop {
            if sorted < all {
                self.nearest.select_nth_unstable(sorted - 1);
            }
            self.nearest[..sorted].sort_unstable();
            let mut running = 0.0;
            let last = self.nearest[..sorted].iter().position(|&(_, at)| {
                running += f64::from(logits[at as usize] - max).exp();
                running >= target
            });
            if let Some(last) = last.or((sorted == all).then_some(all - 1)) {
                return self.nearest[last].0;
            }
            sorted = (sorted * 8).min(all);
        }
    }
}

arguments! {
    HfTypP, s => s.p, s.min_keep;

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        (self.p, self.min_keep) = (a.read(0)?, a.read(1)?);
        self.share = as_written(self.p);
        Ok(())
    }
}

impl Sampler for HfTypP {
    fn name(&self) -> &'static str {
        "hf_typ_p"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        let weight = Weight::of(candidates);
        let typical = weight.log_sum() - weight.entropy();
        candidates.list();
        let logits = candidates.logits();
        self.nearest.clear();
        self.nearest.extend(logits.iter().zip(0u32..).filter(|(&x, _)| x > f32::NEG_INFINITY).map(
            // Non-negative floats sort as their bits do.
            |(&x, at)| ((typical - f64::from(x)).abs().to_bits(), at),
        ));
        let bar = self.bar(logits, weight.max, self.share * weight.sum);
        let mut kept = 0;
        let least = self.min_keep.max(1);
        self.nearest.retain(|&(distance, _)| {
            kept += 1;
            distance <= bar || kept <= least
        });
        let mut keys = candidates.take_scratch();
        keys.extend(self.nearest.iter().map(|&(_, at)| u64::from(at)));
        keys.sort_unstable();
        candidates.rearrange(keys);
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn is_noop(&self) -> bool {
        self.p >= 1.0
    }
}
