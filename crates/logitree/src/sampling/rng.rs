//! The 32-bit Mersenne twister with the doubles that libstdc++ makes of it, and a way back.
//!
//! Same seed, same numbers as `std::mt19937` under `std::uniform_real_distribution<double>(0, 1)` of libstdc++:
//! two 32-bit outputs a double, the low word first. It refuses to know what the numbers decide.

/// Words of state, and outputs between two twists.
const WORDS: usize = 624;
const SHIFT: usize = 397;
/// Doubles that one state gives before the next twist.
const DRAWS: u64 = WORDS as u64 / 2;

/// mt19937, counted in doubles drawn, with rollback to any earlier count.
#[derive(Debug, Clone)]
pub struct Mt19937 {
    seed: u32,
    draws: u64,
    /// The words that the outputs are made of.
    state: Box<[u32; WORDS]>,
    /// An earlier state, mostly that one twist before, so that short rollbacks cost nothing.
    earlier: Box<[u32; WORDS]>,
    /// Number of twists that made `state`.
    twists: u64,
    /// Number of twists that made `earlier`; 0 if it was not made yet.
    earlier_twists: u64,
}

impl Mt19937 {
    /// The generator as `std::mt19937(seed)`; every seed is taken as it is, 0 too.
    pub fn new(seed: u32) -> Self {
        let mut rng = Mt19937 {
            seed,
            draws: 0,
            state: Box::new([0; WORDS]),
            earlier: Box::new([0; WORDS]),
            twists: 0,
            earlier_twists: 0,
        };
        rng.restart();
        rng
    }

    /// The seed it was made from.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// How many doubles were drawn since the seed.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// The next double in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        let block = self.draws / DRAWS;
        while self.twists <= block {
            self.advance();
        }
        let at = (self.draws % DRAWS) as usize * 2;
        self.draws += 1;
        let (low, high) = (temper(self.state[at]), temper(self.state[at + 1]));
        let value = (f64::from(low) + f64::from(high) * 4_294_967_296.0) / 18_446_744_073_709_551_616.0;
        // Rounding up to 1 is possible; libstdc++ then takes the double just below.
        if value < 1.0 {
            value
        } else {
            1.0 - f64::EPSILON / 2.0
        }
    }

    /// Goes back (or forward) so that the next draw is draw number `draws`.
    ///
    /// Free within the last 312 draws; beyond that the states are made again from the seed, a microsecond for
    /// each 312 draws.
    pub fn seek(&mut self, draws: u64) {
        let needed = draws / DRAWS + 1;
        if self.twists > needed {
            if self.earlier_twists == needed {
                self.state.copy_from_slice(&self.earlier[..]);
                self.twists = needed;
            } else {
                self.restart();
            }
        }
        while self.twists < needed && draws > 0 {
            self.advance();
        }
        self.draws = draws;
    }

    fn advance(&mut self) {
        self.earlier.copy_from_slice(&self.state[..]);
        self.earlier_twists = self.twists;
        twist(&mut self.state);
        self.twists += 1;
    }

    /// Fills the state from the seed.
    fn restart(&mut self) {
        let mut x = self.seed;
        for (i, word) in self.state.iter_mut().enumerate() {
            if i > 0 {
                x = 1_812_433_253u32.wrapping_mul(x ^ x >> 30).wrapping_add(i as u32);
            }
            *word = x;
        }
        self.twists = 0;
        self.earlier_twists = 0;
        self.draws = 0;
    }

    /// The next two 32-bit outputs, for the known vectors.
    #[cfg(test)]
    fn next_pair(&mut self) -> [u32; 2] {
        let at = (self.draws % DRAWS) as usize * 2;
        self.uniform();
        [temper(self.state[at]), temper(self.state[at + 1])]
    }
}

fn twist(state: &mut [u32; WORDS]) {
    for i in 0..WORDS {
        let y = state[i] & 0x8000_0000 | state[(i + 1) % WORDS] & 0x7fff_ffff;
        let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
        state[i] = state[(i + SHIFT) % WORDS] ^ y >> 1 ^ odd;
    }
}

fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c_5680;
    y ^= y << 15 & 0xefc6_0000;
    y ^ y >> 18
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_outputs_of_the_default_seed() {
        let mut rng = Mt19937::new(5489);
        let mut outputs = Vec::new();
        while outputs.len() < 10_000 {
            outputs.extend(rng.next_pair());
        }
        assert_eq!(outputs[..5], [3_499_211_612, 581_869_302, 3_890_346_734, 3_586_334_585, 545_404_204]);
        // The C++ standard's own check.
        assert_eq!(outputs[9_999], 4_123_659_995);
    }

    #[test]
    fn the_low_word_comes_first() {
        let mut rng = Mt19937::new(5489);
        let expected = (3_499_211_612.0 + 581_869_302.0 * 2f64.powi(32)) / 2f64.powi(64);
        assert_eq!(rng.uniform(), expected);
    }

    #[test]
    fn seek_equals_drawing_again_from_the_seed() {
        let mut rng = Mt19937::new(0);
        let all: Vec<f64> = (0..1500).map(|_| rng.uniform()).collect();
        for to in [1499, 1300, 1248, 1247, 936, 935, 312, 311, 624, 1, 0, 1400, 313, 312, 0] {
            rng.seek(to);
            assert_eq!(rng.draws(), to);
            assert_eq!(rng.uniform(), all[to as usize], "draw {to}");
        }
        rng.seek(0);
        let again: Vec<f64> = (0..1500).map(|_| rng.uniform()).collect();
        assert_eq!(again, all);
    }
}
