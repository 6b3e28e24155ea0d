//! Random numbers without a chain: those that a `dist` of the same seed draws, for callers that pick tokens themselves.

use super::{Generator, Seed, Words};
use crate::{Error, ErrorKind, Result};

/// Beyond this many numbers a counted generator does not seek, because that would take seconds.
const FARTHEST: u64 = 1 << 27;

/// Numbers from a seed, counted.
#[derive(Debug, Clone)]
pub struct Random {
    seed: Seed,
    words: Words,
}

impl Random {
    /// Numbers from `seed`.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a seed that the generator does not take.
    pub fn new(seed: Seed) -> Result<Random> {
        Ok(Random { seed: seed.checked()?, words: Words::new(seed, 0) })
    }

    /// What it started from.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The next number in [0, 1), of 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let value = self.words.double();
        if self.seed.generator == Generator::Philox {
            self.words.seek(self.words.count().wrapping_add(1));
        }
        value
    }

    /// How many numbers were drawn.
    pub fn drawn(&self) -> u64 {
        self.words.count() / self.each()
    }

    /// Goes back or forward so that `n` numbers count as drawn: a step for each between, but none with philox.
    ///
    /// # Errors
    /// [`ErrorKind::State`] beyond 2^27 numbers with another generator than philox; nothing is changed then.
    pub fn seek(&mut self, n: u64) -> Result<()> {
        if self.seed.generator != Generator::Philox && n > FARTHEST {
            let message = format!("number {n} of {} is too far", self.seed.generator.name());
            return Err(Error::new(ErrorKind::State, message).help("philox reaches any position in one step"));
        }
        self.words.seek(n.saturating_mul(self.each()));
        Ok(())
    }

    /// Words that one number takes.
    fn each(&self) -> u64 {
        if self.seed.generator == Generator::Mt19937 {
            2
        } else {
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Draws;
    use super::*;

    #[test]
    fn are_the_draws_of_a_sampler_and_can_be_sought() {
        for generator in Generator::ALL {
            let seed = Seed { generator, seed: 99, sequence: 0 };
            let (mut random, mut draws) = (Random::new(seed).unwrap(), Draws::new(seed, 0));
            let numbers: Vec<f64> = (0..50).map(|_| random.uniform()).collect();
            for &number in &numbers {
                assert_eq!(draws.double(), number, "{generator:?}");
                draws.accept();
            }
            assert_eq!(random.drawn(), 50);
            for n in [7, 0, 49, 30] {
                random.seek(n).unwrap();
                assert_eq!((random.drawn(), random.uniform()), (n, numbers[n as usize]), "{generator:?}");
            }
            let far = random.seek(1 << 60);
            assert_eq!(far.is_ok(), generator == Generator::Philox);
            if far.is_ok() {
                random.seek(u64::MAX).unwrap();
                assert!((0.0..1.0).contains(&random.uniform()));
            }
            assert!(Random::new(Seed { seed: 1 << 40, ..seed }).is_ok() == (generator != Generator::Mt19937));
        }
    }
}
