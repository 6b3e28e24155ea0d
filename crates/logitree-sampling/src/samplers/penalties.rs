//! penalties: makes the tokens of the last n steps less likely: repeat, then frequency and presence.

use crate::reference::{Reference, TokenArray};
use crate::{
    arguments, check, within, Arguments, Candidates, OnRejected, Sampler, StateReader, StateWriter,
    TokenHistory,
};
use crate::{Result, TokenId};

/// The three penalties over a window of accepted tokens.
#[derive(Debug, Clone)]
pub struct Penalties {
    repeat: f32,
    frequency: f32,
    presence: f32,
    history: TokenHistory,
}

impl Penalties {
    /// Looks at the last `last_n` accepted tokens (0 or less: none). A logit above 0 is divided by `repeat`, any
    /// other multiplied; then `count * frequency + presence` is subtracted. 1, 0, 0 change nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if a number is not finite or `repeat` is not above 0.
    pub fn new(last_n: i32, repeat: f32, frequency: f32, presence: f32) -> Result<Self> {
        check("penalties", [last_n.into(), repeat.into(), frequency.into(), presence.into()])?;
        let history = TokenHistory::new(usize::try_from(last_n).unwrap_or(0));
        Ok(Penalties { repeat, frequency, presence, history })
    }

    /// Whether penalties of these numbers change any logit of the window.
    pub fn penalises(repeat: f32, frequency: f32, presence: f32) -> bool {
        repeat != 1.0 || frequency != 0.0 || presence != 0.0
    }

    /// The logit `x` after the penalties, for a token that occurs `count` times in the window.
    pub fn penalised(&self, x: f32, count: u32) -> f32 {
        if count == 0 {
            return x;
        }
        let repeated = if x <= 0.0 { x * self.repeat } else { x / self.repeat };
        // Bounded on its own, because what is subtracted may be infinite, too.
        let repeated = within(repeated, x == f32::NEG_INFINITY);
        let taken = count as f32 * self.frequency + self.presence;
        within(repeated - taken, x == f32::NEG_INFINITY)
    }
}

arguments! {
    Penalties, s => s.history.last_n(), s.repeat, s.frequency, s.presence;

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        self.history.set_last_n(a.read(0)?);
        (self.repeat, self.frequency, self.presence) = (a.read(1)?, a.read(2)?, a.read(3)?);
        Ok(())
    }
}

impl Sampler for Penalties {
    fn name(&self) -> &'static str {
        "penalties"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.update(self.history.counts(), |x, &count| self.penalised(x, count));
        candidates.unsort();
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn accept(&mut self, token: TokenId) {
        // Kept even while the penalties change nothing, because they may be changed between two tokens.
        self.history.accept(token);
    }

    fn rollback(&mut self, n: usize) {
        self.history.rollback(n);
    }

    fn reset(&mut self) {
        self.history.reset();
    }

    fn save(&self, state: &mut StateWriter) {
        self.history.save(state);
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.history.load(state)
    }

    fn is_noop(&self) -> bool {
        self.history.last_n() == 0 || !Penalties::penalises(self.repeat, self.frequency, self.presence)
    }
}

impl Reference for Penalties {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        for c in &mut array.data {
            let count = self.history.count(c.id);
            if count > 0 {
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
