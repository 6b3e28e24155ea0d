//! A sampler's draws: a generator that can be rolled back together with the accepted tokens.

use super::{Generator, Seed, Words};
use crate::state::{StateReader, StateWriter};
use crate::{Error, ErrorKind, Result};

/// Beyond this many words a snapshot is refused, because going back from there would take seconds.
const MAX_WORDS: u64 = 1 << 28;

/// A generator with the number of words drawn for each accepted token.
///
/// With philox there is nothing to count: each draw of a step gives the number of (seed, sequence, position),
/// however often it is asked for, and the position is the number of accepted tokens.
#[derive(Debug, Clone)]
pub struct Draws {
    seed: Seed,
    stream: u32,
    words: Words,
    /// Words drawn for each accepted token, as runs of (words, how many tokens).
    steps: Vec<(u64, usize)>,
    /// Words drawn when the last token was accepted.
    accepted_at: u64,
}

impl Draws {
    /// Draws from `seed`; `stream` keeps samplers of one seed apart where draws are counter-based.
    pub fn new(seed: Seed, stream: u32) -> Self {
        Draws { seed, stream, words: Words::new(seed, stream), steps: Vec::new(), accepted_at: 0 }
    }

    /// What it started from.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// How many words were drawn; with philox the number of accepted tokens.
    pub fn position(&self) -> u64 {
        self.words.count()
    }

    /// The next double in [0, 1).
    pub fn double(&mut self) -> f64 {
        self.words.double()
    }

    /// The next float in [0, 1).
    pub fn float(&mut self) -> f32 {
        self.words.float()
    }

    fn is_counted(&self) -> bool {
        self.seed.generator != Generator::Philox
    }

    /// A token was accepted: what was drawn since the last one was drawn for it.
    pub fn accept(&mut self) {
        if !self.is_counted() {
            return self.words.seek(self.words.count() + 1);
        }
        let drawn = self.words.count() - self.accepted_at;
        self.accepted_at += drawn;
        match self.steps.last_mut() {
            Some((words, tokens)) if *words == drawn => *tokens += 1,
            _ => crate::follow(&mut self.steps, (drawn, 1)),
        }
    }

    /// Takes back the last `n` accepted tokens and all that was drawn for them and since.
    pub fn rollback(&mut self, mut n: usize) {
        if !self.is_counted() {
            return self.words.seek(self.words.count().saturating_sub(n as u64));
        }
        while let (Some((words, tokens)), 1..) = (self.steps.last_mut(), n) {
            let back = n.min(*tokens);
            self.accepted_at -= *words * back as u64;
            *tokens -= back;
            n -= back;
            if *tokens == 0 {
                self.steps.pop();
            }
        }
        self.words.seek(self.accepted_at);
    }

    /// Back to the seed.
    pub fn reset(&mut self) {
        self.words.seek(0);
        self.steps.clear();
        self.accepted_at = 0;
    }

    /// Continues as sequence `sequence` of the same seed would after accepting as many tokens without a draw.
    /// Generators without sequences add `sequence` to the seed, so that rows differ in any case.
    pub fn resequence(&mut self, sequence: u32) {
        match self.seed.generator {
            Generator::Philox => self.seed.sequence = sequence,
            Generator::Mt19937 => {
                self.seed.seed = u64::from((self.seed.seed as u32).wrapping_add(sequence));
            }
            Generator::Xoroshiro128Plus => {
                self.seed.seed = self.seed.seed.wrapping_add(u64::from(sequence));
            }
        }
        let position = if self.is_counted() { 0 } else { self.words.count() };
        let tokens = self.steps.iter().map(|&(_, tokens)| tokens).sum();
        *self = Draws::new(self.seed, self.stream);
        self.words.seek(position);
        if tokens > 0 {
            self.steps.push((0, tokens));
        }
    }

    /// Writes what [`Draws::load`] needs.
    pub fn save(&self, state: &mut StateWriter) {
        state.word(self.words.count());
        state.word(self.accepted_at);
        state.word(self.steps.len() as u64);
        for &(words, tokens) in &self.steps {
            state.word(words);
            state.word(tokens as u64);
        }
    }

    /// Takes the state of a generator of the same seed.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if it is not one that [`Draws::save`] wrote, or was drawn from too often to go back.
    pub fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        let (count, accepted_at) = (state.count()?, state.count()?);
        let runs = state.length(2)?;
        let mut steps = Vec::with_capacity(runs);
        let mut sum = 0u64;
        for _ in 0..runs {
            let (words, tokens) = (state.count()?, state.count()?);
            sum = words.checked_mul(tokens).and_then(|n| sum.checked_add(n)).ok_or_else(wrong)?;
            steps.push((words, tokens as usize));
        }
        let fits = !self.is_counted() || (sum == accepted_at && accepted_at <= count && count <= MAX_WORDS);
        if !fits {
            return Err(wrong());
        }
        self.words.seek(count);
        (self.steps, self.accepted_at) = (steps, accepted_at);
        Ok(())
    }
}

fn wrong() -> Error {
    Error::new(ErrorKind::State, "the snapshot's draws do not add up")
        .help("restore what Chain.snapshot gave, unchanged; at most 2**28 words may have been drawn")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds() -> Vec<Seed> {
        Generator::ALL.iter().map(|&generator| Seed { generator, seed: 7, sequence: 2 }).collect()
    }

    #[test]
    fn the_low_word_comes_first() {
        let mut draws = Draws::new(Seed::mt19937(5489), 0);
        let expected = (3_499_211_612.0 + 581_869_302.0 * 2f64.powi(32)) / 2f64.powi(64);
        assert_eq!(draws.double(), expected);
        assert_eq!(draws.float(), 3_890_346_734_u32 as f32 / 2f32.powi(32));
    }

    #[test]
    fn rollback_repeats_the_draws() {
        for seed in seeds() {
            let mut draws = Draws::new(seed, 1);
            let mut drawn = Vec::new();
            for step in 0..200 {
                drawn.push((0..step % 3).map(|_| draws.double()).collect::<Vec<_>>());
                draws.accept();
            }
            for back in [1, 5, 194] {
                draws.double();
                draws.rollback(back);
                for (step, expected) in drawn.iter().enumerate().skip(200 - back) {
                    let again: Vec<f64> = (0..step % 3).map(|_| draws.double()).collect();
                    assert_eq!(&again, expected, "{seed:?} step {step}");
                    draws.accept();
                }
            }
        }
    }

    #[test]
    fn philox_depends_on_seed_sequence_position_and_stream_alone() {
        let seed = Seed { generator: Generator::Philox, seed: 1 << 40, sequence: 3 };
        let at = |seed, stream, position: usize| {
            let mut draws = Draws::new(seed, stream);
            (0..position).for_each(|_| draws.accept());
            draws.double()
        };
        let one = at(seed, 0, 5);
        assert_eq!(one, at(seed, 0, 5));
        let mut draws = Draws::new(seed, 0);
        for _ in 0..5 {
            draws.double();
            draws.double();
            draws.accept();
        }
        assert_eq!(draws.double(), one);
        assert_eq!(draws.double(), one);
        let others = [
            at(seed, 1, 5),
            at(seed, 0, 6),
            at(Seed { sequence: 4, ..seed }, 0, 5),
            at(Seed { seed: 0, ..seed }, 0, 5),
        ];
        assert!(others.iter().all(|&o| o != one), "{others:?}");
    }

    #[test]
    fn a_saved_state_continues_alike() {
        for seed in seeds() {
            let mut draws = Draws::new(seed, 0);
            for step in 0..50 {
                for _ in 0..step % 4 {
                    draws.double();
                }
                draws.accept();
            }
            draws.float();
            let mut writer = StateWriter::default();
            draws.save(&mut writer);
            let words = writer.words().to_vec();
            let mut other = Draws::new(seed, 0);
            other.load(&mut StateReader::new(&words)).unwrap();
            assert_eq!(other.double(), draws.double());
            other.rollback(20);
            draws.rollback(20);
            assert_eq!(other.double(), draws.double());
            for cut in 0..words.len() {
                assert!(Draws::new(seed, 0).load(&mut StateReader::new(&words[..cut])).is_err());
            }
        }
        let hostile = [1 << 60, 1 << 60, 1, 1 << 60, 1];
        assert!(Draws::new(Seed::mt19937(0), 0).load(&mut StateReader::new(&hostile)).is_err());
    }
}
