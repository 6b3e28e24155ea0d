//! adaptive_p: prefers candidates whose probability is near a target, which is corrected by the running mean of the
//! picked tokens' probabilities. Selects.
//!
//! llama.cpp, src/llama-sampler.cpp (MrJackSpade and ddh0, llama.cpp #17927). The mean is of the probabilities that
//! the picked tokens had before the change; it moves when the token that was selected is accepted, and not when
//! another is. The distribution has a long tail: put min_p before it.

use crate::reference::{libstdcxx, Reference, TokenArray};
use crate::rng::{Draws, Seed};
use crate::undo::Undo;
use crate::{arguments, check, Arguments, Candidates, Sampler, StateReader, StateWriter};
use crate::{Error, ErrorKind, Result, TokenId};

/// The logit of a candidate on target, and how it falls with the distance in units of a width.
const PEAK: f32 = 5.0;
const SHARPNESS: f32 = 10.0;
const INVERSE_WIDTH: f32 = 1.0 / 0.3;

/// The selected token, until one is accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pending {
    Nothing,
    /// A token and the probability it had.
    Token(TokenId, f32),
    /// Any token: there was one candidate only.
    Forced,
}

/// A target probability and the running mean that steers towards it.
#[derive(Debug, Clone)]
pub struct AdaptiveP {
    target: f32,
    decay: f32,
    draws: Draws,
    weighted: Undo,
    weight: Undo,
    pending: Pending,
    original: Vec<f32>,
    cumulative: Vec<f64>,
}

impl AdaptiveP {
    /// Which of a seed's counter-based streams is adaptive_p's.
    const STREAM: u32 = 4;

    /// Aims at probability `target` (above 1 is 1; below 0 only draws); the mean forgets by `decay` a token, held
    /// to 0 to 0.99.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if a number is not finite, or for a seed that the generator does not take.
    pub fn new(target: f32, decay: f32, seed: Seed) -> Result<Self> {
        check("adaptive_p", [target.into(), decay.into()])?;
        let (target, decay) = (target.clamp(-1e30, 1e30), decay.clamp(0.0, 0.99));
        Ok(AdaptiveP {
            target,
            decay,
            draws: Draws::new(seed.checked()?, Self::STREAM),
            weighted: Undo::new(target / (1.0 - decay)),
            weight: Undo::new(1.0 / (1.0 - decay)),
            pending: Pending::Nothing,
            original: Vec::new(),
            cumulative: Vec::new(),
        })
    }

    /// The probability to aim at now.
    fn adapted(&self) -> f32 {
        let target = self.target.clamp(0.0, 1.0);
        (2.0 * target - self.weighted.now / self.weight.now).clamp(0.0, 1.0)
    }

    /// The logit of a candidate of probability `p`; what is at -inf stays there.
    fn transformed(logit: f32, p: f32, aim: f32) -> f32 {
        if logit == f32::NEG_INFINITY {
            return logit;
        }
        let distance = ((p - aim) * INVERSE_WIDTH).abs();
        PEAK - SHARPNESS * distance * distance / (1.0 + distance)
    }
}

arguments! {
    AdaptiveP, s => s.target, s.decay, s.draws.seed();

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        let new = AdaptiveP::from_arguments(a)?;
        (self.target, self.decay) = (new.target, new.decay);
        // The mean starts over if nothing was accepted.
        self.weighted.set_initial(new.weighted.now);
        self.weight.set_initial(new.weight.now);
        Ok(())
    }
}

impl Sampler for AdaptiveP {
    fn name(&self) -> &'static str {
        "adaptive_p"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let target = self.target >= 0.0;
        let (mut sum, mut exact) = (0.0f32, 0.0f64);
        let mut probabilities = candidates.exponentials(|e| (sum, exact) = (sum + e, exact + f64::from(e)));
        // The transform reads llama.cpp's f32 probabilities; a plain draw uses the ones that the caller sees.
        let whole = if target { f64::from(sum) } else { exact };
        probabilities.iter_mut().for_each(|p| *p = (f64::from(*p) / whole) as f32);
        if target {
            self.original.clear();
            self.original.extend_from_slice(probabilities);
            let aim = self.adapted();
            for (x, &p) in candidates.logits_mut().iter_mut().zip(&self.original) {
                *x = AdaptiveP::transformed(*x, p, aim);
            }
            candidates.logits_written(false);
            candidates.unsort();
            // These are what the caller sees: one f32 sum of many small terms would be off by more than 1e-6.
            let mut sum = 0.0f64;
            probabilities = candidates.exponentials(|e| sum += f64::from(e));
            probabilities.iter_mut().for_each(|p| *p = (f64::from(*p) / sum) as f32);
        }
        let weights = probabilities.iter().copied();
        let at = libstdcxx::discrete(weights, &mut self.cumulative, || self.draws.double());
        candidates.normalised();
        candidates.select(at);
        if let (true, Some(id)) = (self.target >= 0.0, candidates.id_at(at)) {
            self.pending = Pending::Token(id, self.original[at]);
        }
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn accept(&mut self, token: TokenId) {
        let p = match self.pending {
            Pending::Token(id, p) if id == token => Some(p),
            Pending::Forced => Some(1.0),
            _ => None,
        };
        if let Some(p) = p {
            self.weighted.now = p + self.decay * self.weighted.now;
            self.weight.now = 1.0 + self.decay * self.weight.now;
        }
        self.pending = Pending::Nothing;
        self.weighted.accept();
        self.weight.accept();
        self.draws.accept();
    }

    fn rollback(&mut self, n: usize) {
        self.pending = Pending::Nothing;
        self.weighted.rollback(n);
        self.weight.rollback(n);
        self.draws.rollback(n);
    }

    fn forced(&mut self) {
        if self.target >= 0.0 {
            self.pending = Pending::Forced;
        }
    }

    fn reset(&mut self) {
        self.pending = Pending::Nothing;
        self.weighted.reset();
        self.weight.reset();
        self.draws.reset();
    }

    fn selects(&self) -> bool {
        true
    }

    fn seed(&self) -> Option<Seed> {
        Some(self.draws.seed())
    }

    fn resequence(&mut self, sequence: u32) {
        self.draws.resequence(sequence);
    }

    fn save(&self, state: &mut StateWriter) {
        self.draws.save(state);
        self.weighted.save(state);
        self.weight.save(state);
        let (kind, id, p) = match self.pending {
            Pending::Nothing => (0, 0, 0.0),
            Pending::Token(id, p) => (1, id, p),
            Pending::Forced => (2, 0, 0.0),
        };
        state.word(kind);
        state.ids(&[id]);
        state.float(p);
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.draws.load(state)?;
        self.weighted.load(state)?;
        self.weight.load(state)?;
        let (kind, ids, p) = (state.word()?, state.ids()?, state.finite()?);
        if self.weight.now <= 0.0 || !(0.0..=1.0).contains(&p) {
            return Err(Error::new(ErrorKind::State, "the snapshot's running mean is not valid"));
        }
        self.pending = match (kind, ids.first()) {
            (1, Some(&id)) => Pending::Token(id, p),
            (2, _) => Pending::Forced,
            _ => Pending::Nothing,
        };
        Ok(())
    }
}

impl Reference for AdaptiveP {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.softmax(false);
        if array.fault.is_some() {
            return;
        }
        if self.target >= 0.0 {
            self.original.clear();
            self.original.extend(array.data.iter().map(|c| c.p));
            let aim = self.adapted();
            for c in &mut array.data {
                c.logit = AdaptiveP::transformed(c.logit, c.p, aim);
            }
            // The order flag stays, so llama.cpp then takes the first logit for the highest.
            array.softmax(false);
        }
        let weights = array.data.iter().map(|c| c.p);
        let at = libstdcxx::discrete(weights, &mut array.cumulative, || self.draws.double());
        array.selected = Some(at);
        if self.target >= 0.0 {
            self.pending = Pending::Token(array.data[at].id, self.original[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_no_step_leaves_is_refused() {
        let new = || AdaptiveP::new(0.5, 0.9, Seed::mt19937(1)).unwrap();
        let mut state = StateWriter::default();
        new().save(&mut state);
        // Draws, then the mean's two parts with nothing accepted, then a token and the probability it had.
        let word = |x: f32| u64::from(x.to_bits());
        let load = |at: usize, word: u64| {
            let mut words = state.words().to_vec();
            words[at] = word;
            new().load(&mut StateReader::new(&words))
        };
        assert_eq!(state.words().len(), 11);
        assert!(load(10, word(0.5)).is_ok());
        for (at, x) in [(3, f32::NAN), (5, f32::INFINITY), (5, 0.0), (10, f32::NAN), (10, 1.5)] {
            assert_eq!(load(at, word(x)).unwrap_err().kind, ErrorKind::State, "{at} {x}");
        }
    }
}
