//! A value that changes from step to step and is rolled back with the tokens: mirostat's mu, a running mean.

use super::state::{StateReader, StateWriter};
use crate::Result;

/// The present value, the initial one, and that after each accepted token.
#[derive(Debug, Clone)]
pub struct Undo {
    initial: f32,
    /// The present value.
    pub now: f32,
    accepted: Vec<f32>,
}

impl Undo {
    /// A value that is `initial` before the first step.
    pub fn new(initial: f32) -> Self {
        Undo { initial, now: initial, accepted: Vec::new() }
    }

    /// A token was accepted: the present value belongs to it.
    pub fn accept(&mut self) {
        super::follow(&mut self.accepted, self.now);
    }

    /// Takes back the last `n` accepted tokens, and what changed since.
    pub fn rollback(&mut self, n: usize) {
        self.accepted.truncate(self.accepted.len().saturating_sub(n));
        self.now = self.accepted.last().copied().unwrap_or(self.initial);
    }

    /// Returns to the initial value.
    pub fn reset(&mut self) {
        *self = Undo::new(self.initial);
    }

    /// Sets another initial value; the values of accepted tokens, and a change since the start, stay.
    pub fn set_initial(&mut self, initial: f32) {
        if self.accepted.is_empty() && self.now == self.initial {
            self.now = initial;
        }
        self.initial = initial;
    }

    /// Writes what [`Undo::load`] needs.
    pub fn save(&self, state: &mut StateWriter) {
        state.float(self.now);
        state.floats(&self.accepted);
    }

    /// Takes a saved state.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.now = state.finite()?;
        self.accepted = state.floats()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_initial_value_undoes_nothing() {
        let mut mu = Undo::new(10.0);
        mu.set_initial(6.0);
        assert_eq!(mu.now, 6.0);
        // A step changed it, and the parameters that held for this step are put back before the token is accepted.
        mu.now = 5.5;
        mu.set_initial(10.0);
        assert_eq!(mu.now, 5.5);
        mu.accept();
        mu.now = 4.0;
        mu.accept();
        mu.set_initial(8.0);
        mu.rollback(1);
        assert_eq!(mu.now, 5.5);
        mu.rollback(1);
        assert_eq!(mu.now, 8.0);
    }
}
