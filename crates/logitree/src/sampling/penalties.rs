//! penalties: makes the tokens of the last n steps less likely: repeat, then frequency and presence.

use super::logit_bias::within;
use super::reference::{Reference, TokenArray};
use super::{finite, follow, whole, Candidates, Sampler, StateReader, StateWriter};
use crate::{Error, ErrorKind, Result, TokenId};

/// The three penalties over a window of accepted tokens.
#[derive(Debug, Clone)]
pub struct Penalties {
    last_n: usize,
    repeat: f32,
    frequency: f32,
    presence: f32,
    /// Every accepted token, so that a rollback finds what slides back into the window.
    history: Vec<TokenId>,
    /// How often each token stands in the window, by ascending id.
    counts: Vec<(TokenId, u32)>,
}

impl Penalties {
    /// Looks at the last `last_n` accepted tokens (0 or less: none). A logit above 0 is divided by `repeat`, any
    /// other multiplied; then `count * frequency + presence` is subtracted. 1, 0, 0 change nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if a number is not finite or `repeat` is not above 0.
    pub fn new(last_n: i32, repeat: f32, frequency: f32, presence: f32) -> Result<Self> {
        if finite("penalties", "repeat", repeat)? <= 0.0 {
            return Err(Error::new(ErrorKind::Sampling, format!("repeat of penalties is {repeat}"))
                .help("repeat must be above 0; 1 changes nothing"));
        }
        Ok(Penalties {
            last_n: usize::try_from(last_n).unwrap_or(0),
            repeat,
            frequency: finite("penalties", "freq", frequency)?,
            presence: finite("penalties", "present", presence)?,
            history: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// The same history under other parameters.
    fn renew(&mut self, last_n: i32, repeat: f32, frequency: f32, presence: f32) -> Result<()> {
        let mut new = Penalties::new(last_n, repeat, frequency, presence)?;
        std::mem::swap(&mut new.history, &mut self.history);
        *self = new;
        self.recount();
        Ok(())
    }

    fn recount(&mut self) {
        self.counts.clear();
        for at in self.history.len().saturating_sub(self.last_n)..self.history.len() {
            self.enter(self.history[at]);
        }
    }

    fn enter(&mut self, token: TokenId) {
        match self.counts.binary_search_by_key(&token, |c| c.0) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (token, 1)),
        }
    }

    fn leave(&mut self, token: TokenId) {
        if let Ok(at) = self.counts.binary_search_by_key(&token, |c| c.0) {
            self.counts[at].1 -= 1;
            if self.counts[at].1 == 0 {
                self.counts.remove(at);
            }
        }
    }
}

impl Sampler for Penalties {
    fn name(&self) -> &'static str {
        "penalties"
    }

    fn describe(&self) -> String {
        let Penalties { last_n, repeat, frequency, presence, .. } = self;
        format!("penalties(last_n={last_n}, repeat={repeat}, freq={frequency}, present={presence})")
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.update(&self.counts, |x, &count| {
            let repeated = if x <= 0.0 { x * self.repeat } else { x / self.repeat };
            let taken = count as f32 * self.frequency + self.presence;
            within(repeated - taken, x == f32::NEG_INFINITY)
        });
        candidates.unsort();
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn accept(&mut self, token: TokenId) {
        // Kept even while the penalties change nothing, for they may be changed between two tokens.
        if self.last_n > 0 {
            if self.history.len() >= self.last_n {
                self.leave(self.history[self.history.len() - self.last_n]);
            }
            self.enter(token);
        }
        follow(&mut self.history, token);
    }

    fn rollback(&mut self, n: usize) {
        for _ in 0..n {
            let Some(token) = self.history.pop() else { return };
            if self.last_n == 0 {
                continue;
            }
            self.leave(token);
            if self.history.len() >= self.last_n {
                self.enter(self.history[self.history.len() - self.last_n]);
            }
        }
    }

    fn reset(&mut self) {
        self.history.clear();
        self.counts.clear();
    }

    fn parameter(&self, name: &str) -> Option<f64> {
        match name {
            "penalty_last_n" => Some(self.last_n as f64),
            "penalty_repeat" => Some(f64::from(self.repeat)),
            "penalty_freq" => Some(f64::from(self.frequency)),
            "penalty_present" => Some(f64::from(self.presence)),
            _ => None,
        }
    }

    fn set_parameter(&mut self, name: &str, value: f64) -> Result<bool> {
        let (last_n, repeat, frequency, presence) =
            (self.last_n as i32, self.repeat, self.frequency, self.presence);
        match name {
            "penalty_last_n" => {
                self.renew(whole("penalties", "last_n", value)?, repeat, frequency, presence)?
            }
            "penalty_repeat" => self.renew(last_n, value as f32, frequency, presence)?,
            "penalty_freq" => self.renew(last_n, repeat, value as f32, presence)?,
            "penalty_present" => self.renew(last_n, repeat, frequency, value as f32)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn save(&self, state: &mut StateWriter) {
        state.ids(&self.history);
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.history = state.ids()?;
        self.recount();
        Ok(())
    }

    fn is_noop(&self) -> bool {
        self.last_n == 0 || (self.repeat == 1.0 && self.frequency == 0.0 && self.presence == 0.0)
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl Reference for Penalties {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        for c in &mut array.data {
            if let Ok(at) = self.counts.binary_search_by_key(&c.id, |entry| entry.0) {
                let count = self.counts[at].1;
                if c.logit <= 0.0 {
                    c.logit *= self.repeat;
                } else {
                    c.logit /= self.repeat;
                }
                c.logit -= count as f32 * self.frequency + self.presence;
            }
        }
        array.sorted = false;
    }
}
