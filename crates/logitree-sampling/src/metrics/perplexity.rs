//! Rolling perplexity of a growing text, and a gate that opens when it is too high.

use std::collections::VecDeque;

use logitree_tokens::{Error, ErrorKind, Result};

/// exp of the mean surprisal, over all of a text or the last of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RollingPerplexity {
    sum: f64,
    count: u64,
    /// The surprisals in the window, if there is one, and its length.
    window: Option<(VecDeque<f64>, usize)>,
}

impl RollingPerplexity {
    /// Over the last `n` surprisals.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for 0.
    pub fn windowed(n: usize) -> Result<Self> {
        if n == 0 {
            return Err(Error::new(ErrorKind::Sampling, "the window of a perplexity is 0")
                .help("give the number of surprisals to look back at, or no window for all"));
        }
        Ok(RollingPerplexity { window: Some((VecDeque::new(), n)), ..RollingPerplexity::default() })
    }

    /// Adds a surprisal in nats; what is not finite is passed over.
    pub fn add(&mut self, surprisal: f64) {
        if !surprisal.is_finite() {
            return;
        }
        match &mut self.window {
            None => {
                self.sum += surprisal;
                self.count += 1;
            }
            Some((last, n)) => {
                if last.len() == *n {
                    last.pop_front();
                }
                last.push_back(surprisal);
                // Summed again: subtracting the values that leave would accumulate rounding errors.
                self.sum = last.iter().sum();
                self.count = last.len() as u64;
            }
        }
    }

    /// exp(sum / count); +inf before the first.
    pub fn value(&self) -> f64 {
        if self.count == 0 {
            return f64::INFINITY;
        }
        (self.sum / self.count as f64).exp()
    }

    /// How many surprisals it is the mean of.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The length of the window; `None`: all of the text.
    pub fn window(&self) -> Option<usize> {
        self.window.as_ref().map(|w| w.1)
    }

    /// Back to none.
    pub fn reset(&mut self) {
        (self.sum, self.count) = (0.0, 0);
        self.window.iter_mut().for_each(|w| w.0.clear());
    }
}

/// Open while the perplexity has been above a limit for longer than one has patience.
#[derive(Debug, Clone, PartialEq)]
pub struct PerplexityGate {
    perplexity: RollingPerplexity,
    limit: f64,
    patience: u64,
    /// Surprisals in a row after which the perplexity was above the limit.
    above: u64,
}

impl PerplexityGate {
    /// Opens with the surprisal after which the perplexity was above `limit` for `patience + 1` times in a row,
    /// and closes with the first after which it is not.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a limit that is not a finite number of at least 1, which every perplexity is.
    pub fn new(perplexity: RollingPerplexity, limit: f64, patience: u64) -> Result<Self> {
        if !limit.is_finite() || limit < 1.0 {
            return Err(Error::new(ErrorKind::Sampling, format!("the limit of a perplexity is {limit}"))
                .help("a perplexity is 1 or more: give a finite number of at least 1"));
        }
        Ok(PerplexityGate { perplexity, limit, patience, above: 0 })
    }

    /// Adds a surprisal in nats; whether the gate is open then. What is not finite is passed over.
    pub fn add(&mut self, surprisal: f64) -> bool {
        if surprisal.is_finite() {
            self.perplexity.add(surprisal);
            let above = self.perplexity.value() > self.limit;
            self.above = if above { self.above.saturating_add(1) } else { 0 };
        }
        self.is_open()
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.above > self.patience
    }

    /// The current perplexity.
    pub fn perplexity(&self) -> &RollingPerplexity {
        &self.perplexity
    }

    /// The limit.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// How many times in a row above the limit are let pass.
    pub fn patience(&self) -> u64 {
        self.patience
    }

    /// Back to the beginning, closed.
    pub fn reset(&mut self) {
        self.perplexity.reset();
        self.above = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_forgets() {
        let mut rolling = RollingPerplexity::windowed(3).unwrap();
        assert_eq!((rolling.value(), rolling.window()), (f64::INFINITY, Some(3)));
        for (surprisal, count, mean) in
            [(6.0, 1, 6.0), (f64::NAN, 1, 6.0), (2.0, 2, 4.0), (1.0, 3, 3.0), (3.0, 3, 2.0), (5.0, 3, 3.0)]
        {
            rolling.add(surprisal);
            assert_eq!((rolling.count(), rolling.value()), (count, f64::exp(mean)));
        }
        rolling.reset();
        assert_eq!((rolling.count(), rolling.window()), (0, Some(3)));
        assert!(RollingPerplexity::windowed(0).is_err());
    }

    #[test]
    fn a_gate_has_patience_and_closes() {
        let open = |patience| {
            let rolling = RollingPerplexity::windowed(1).unwrap();
            let mut gate = PerplexityGate::new(rolling, 2f64.exp(), patience).unwrap();
            [2.0, 3.0, f64::INFINITY, 4.0, 1.0, 3.0, 3.0, 3.0].map(|s| gate.add(s))
        };
        assert_eq!(open(0), [false, true, true, true, false, true, true, true]);
        assert_eq!(open(1), [false, false, false, true, false, false, true, true]);
        assert_eq!(open(9), [false; 8]);
        for limit in [f64::NAN, f64::INFINITY, 0.5] {
            assert!(PerplexityGate::new(RollingPerplexity::default(), limit, 0).is_err());
        }
    }
}
