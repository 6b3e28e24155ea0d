//! dist: draws one candidate by its probability, one double a step, even when only one candidate is left.
//!
//! The draw is llama.cpp's: the first candidate in order at which the running sum of exponentials reaches
//! `sum * draw`.

use crate::reference::{Reference, TokenArray};
use crate::rng::{Draws, Generator, Seed};
use crate::Result;
use crate::{arguments, state, Candidates, OnRejected, Sampler, Step};

/// Draws from a generator, with rollback.
#[derive(Debug, Clone)]
pub struct Dist {
    draws: Draws,
}

impl Dist {
    /// Which of a seed's counter-based streams is dist's.
    const STREAM: u32 = 0;

    /// Draws from `seed`; with mt19937 as llama.cpp does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] for a seed that the generator does not take.
    pub fn new(seed: Seed) -> Result<Self> {
        Ok(Dist { draws: Draws::new(seed.checked()?, Self::STREAM) })
    }
}

arguments!(Dist, s => s.draws.seed());

impl Sampler for Dist {
    fn name(&self) -> &'static str {
        "dist"
    }

    state!(draws);

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let draw = self.draws.double();
        if !candidates.is_short() {
            let position = candidates.position_of(draw);
            return candidates.select(position);
        }
        let mut sum = 0.0f64;
        let probabilities = candidates.exponentials(|e| sum += f64::from(e));
        let target = sum * draw;
        let mut running = 0.0f64;
        let mut selected = None;
        for (p, at) in probabilities.iter_mut().zip(0..) {
            if selected.is_none() {
                running += f64::from(*p);
                // A draw of exactly 0 must not select what has no probability.
                if running >= target && *p > 0.0 {
                    selected = Some(at);
                }
            }
            *p = (f64::from(*p) / sum) as f32;
        }
        candidates.normalised();
        candidates.select(selected.unwrap_or(candidates.len() - 1));
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn step(&self) -> Option<Step> {
        let Seed { generator, seed: key, sequence } = self.draws.seed();
        let position = self.draws.position();
        (generator == Generator::Philox).then_some(Step::Draw { key, sequence, position })
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn forced(&mut self) {
        self.draws.double();
    }

    fn selects(&self) -> bool {
        true
    }
}

impl Reference for Dist {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.selected = Some(0);
        if let [one] = &mut array.data[..] {
            self.draws.double();
            one.p = 1.0;
            return;
        }
        let Some(max) = array.finite_max() else { return };
        let mut sum = 0.0f64;
        for c in &mut array.data {
            c.p = (c.logit - max).exp();
            sum += f64::from(c.p);
        }
        if !array.check_sum(sum) {
            return;
        }
        let target = sum * self.draws.double();
        let mut running = 0.0f64;
        let mut selected = None;
        for (c, at) in array.data.iter_mut().zip(0..) {
            if selected.is_none() {
                running += f64::from(c.p);
                selected = (running >= target).then_some(at);
            }
            c.p = (f64::from(c.p) / sum) as f32;
        }
        array.selected = selected.or(Some(array.data.len() - 1));
    }
}
