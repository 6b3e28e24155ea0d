//! Random numbers: the generators, their seeds, and the doubles and floats made of their words.
//!
//! A generator can return to any earlier count of draws ([`Draws`] keeps the counts); a counter-based one need not.

mod draws;
mod mt19937;
mod philox;
mod random;
mod xoroshiro128plus;

pub use draws::Draws;
pub use random::Random;

use crate::{Error, ErrorKind, Result};
use mt19937::Mt19937;
use xoroshiro128plus::Xoroshiro128Plus;

/// Which generator draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generator {
    /// llama.cpp's: the tokens of a seed are llama.cpp's.
    #[default]
    Mt19937,
    /// tsampler's, and its preset's: small and quick to copy.
    Xoroshiro128Plus,
    /// Counter-based: a draw depends on seed, sequence and position alone.
    Philox,
}

impl Generator {
    /// Every generator.
    pub const ALL: [Generator; 3] = [Generator::Mt19937, Generator::Xoroshiro128Plus, Generator::Philox];

    /// Its name, as in `dist(seed=1, rng="philox")`.
    pub fn name(self) -> &'static str {
        match self {
            Generator::Mt19937 => "mt19937",
            Generator::Xoroshiro128Plus => "xoroshiro128plus",
            Generator::Philox => "philox",
        }
    }

    /// The generator of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for any other name.
    pub fn parse(name: &str) -> Result<Generator> {
        Generator::ALL.into_iter().find(|g| g.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::Sampling, format!("there is no generator rng={name:?}"))
                .help("known: mt19937, xoroshiro128plus, philox")
        })
    }
}

/// What a generator starts from. Every seed, including 0, is a literal seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// The generator.
    pub generator: Generator,
    /// Its seed; below 2^32 for mt19937.
    pub seed: u64,
    /// Which of many sequences of one seed; only philox distinguishes them.
    pub sequence: u32,
}

impl Seed {
    /// llama.cpp's generator from `seed`.
    pub fn mt19937(seed: u32) -> Seed {
        Seed { generator: Generator::Mt19937, seed: u64::from(seed), sequence: 0 }
    }

    /// A seed of fresh entropy for llama.cpp's generator.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the operating system has no random numbers.
    pub fn fresh() -> Result<Seed> {
        fresh_seed().map(Seed::mt19937)
    }

    /// The same, checked.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a seed of 2^32 or more with mt19937.
    pub fn checked(self) -> Result<Seed> {
        if self.generator == Generator::Mt19937 && self.seed > u64::from(u32::MAX) {
            return Err(Error::new(
                ErrorKind::Sampling,
                format!("the seed {} has more than 32 bits", self.seed),
            )
            .help("mt19937 takes seeds below 2**32; xoroshiro128plus and philox take 64 bits"));
        }
        Ok(self)
    }

    /// As descriptions show it: `seed=7`, `seed=7, rng="philox", sequence=3`.
    pub fn describe(&self) -> String {
        match (self.generator, self.sequence) {
            (Generator::Mt19937, 0) => format!("seed={}", self.seed),
            (generator, 0) => format!("seed={}, rng={:?}", self.seed, generator.name()),
            (generator, n) => format!("seed={}, rng={:?}, sequence={n}", self.seed, generator.name()),
        }
    }
}

/// A seed from the operating system's random numbers.
///
/// # Errors
/// [`ErrorKind::Io`] if it has none.
pub fn fresh_seed() -> Result<u32> {
    getrandom::u32().map_err(|error| {
        Error::new(ErrorKind::Io, format!("no random numbers for a seed: {error}")).help("name the seed")
    })
}

/// A running generator that counts its words.
#[derive(Debug, Clone)]
enum Words {
    Mt19937(Mt19937),
    Xoroshiro128Plus(Xoroshiro128Plus),
    /// Key and (sequence, stream); the count is of accepted tokens.
    Philox {
        key: [u32; 2],
        sequence: u32,
        stream: u32,
        position: u64,
    },
}

impl Words {
    fn new(seed: Seed, stream: u32) -> Words {
        match seed.generator {
            Generator::Mt19937 => Words::Mt19937(Mt19937::new(seed.seed as u32)),
            Generator::Xoroshiro128Plus => Words::Xoroshiro128Plus(Xoroshiro128Plus::new(seed.seed)),
            Generator::Philox => Words::Philox {
                key: [seed.seed as u32, (seed.seed >> 32) as u32],
                sequence: seed.sequence,
                stream,
                position: 0,
            },
        }
    }

    /// A double in [0, 1). mt19937's is libstdc++'s `generate_canonical<double, 53>`: two words, the low one
    /// first; the others' is 53 bits times 2^-53.
    fn double(&mut self) -> f64 {
        match self {
            Words::Mt19937(rng) => {
                let (low, high) = (rng.next_word(), rng.next_word());
                let value =
                    (f64::from(low) + f64::from(high) * 4_294_967_296.0) / 18_446_744_073_709_551_616.0;
                // Rounding up to 1 is possible; libstdc++ then takes the double just below.
                value.min(1.0 - f64::EPSILON / 2.0)
            }
            _ => (self.wide() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0),
        }
    }

    /// A float in [0, 1). mt19937's is libstdc++'s `generate_canonical<float, 24>`: one word.
    fn float(&mut self) -> f32 {
        match self {
            Words::Mt19937(rng) => (rng.next_word() as f32 / 4_294_967_296.0).min(1.0 - f32::EPSILON / 2.0),
            _ => (self.wide() >> 40) as f32 * (1.0 / 16_777_216.0),
        }
    }

    /// 64 bits of a generator that is not mt19937.
    fn wide(&mut self) -> u64 {
        match self {
            Words::Mt19937(rng) => u64::from(rng.next_word()) | u64::from(rng.next_word()) << 32,
            Words::Xoroshiro128Plus(rng) => rng.next_word(),
            Words::Philox { key, sequence, stream, position } => {
                let counter = [*position as u32, (*position >> 32) as u32, *sequence, *stream];
                let [a, b, ..] = philox::philox4x32(counter, *key);
                u64::from(a) | u64::from(b) << 32
            }
        }
    }

    /// How many words were drawn; for philox the position.
    fn count(&self) -> u64 {
        match self {
            Words::Mt19937(rng) => rng.drawn(),
            Words::Xoroshiro128Plus(rng) => rng.drawn(),
            Words::Philox { position, .. } => *position,
        }
    }

    fn seek(&mut self, count: u64) {
        match self {
            Words::Mt19937(rng) => rng.seek(count),
            Words::Xoroshiro128Plus(rng) => rng.seek(count),
            Words::Philox { position, .. } => *position = count,
        }
    }
}
