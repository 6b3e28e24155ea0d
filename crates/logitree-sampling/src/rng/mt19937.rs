//! The 32-bit Mersenne twister that can go back: the words of `std::mt19937`.
//!
//! Matsumoto and Nishimura: "Mersenne Twister", 1998.

/// Words of state, and outputs between two twists.
const WORDS: usize = 624;
const SHIFT: usize = 397;

/// mt19937, counted in 32-bit words drawn, which can return to any earlier count.
#[derive(Debug, Clone)]
pub struct Mt19937 {
    seed: u32,
    drawn: u64,
    /// The words that the outputs are made of.
    state: Box<[u32; WORDS]>,
    /// An earlier state, usually that of one twist before, so that short rollbacks are free.
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
            drawn: 0,
            state: Box::new([0; WORDS]),
            earlier: Box::new([0; WORDS]),
            twists: 0,
            earlier_twists: 0,
        };
        rng.restart();
        rng
    }

    /// How many words were drawn since the seed.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// The next word.
    pub fn next_word(&mut self) -> u32 {
        let block = self.drawn / WORDS as u64;
        while self.twists <= block {
            self.advance();
        }
        let at = (self.drawn % WORDS as u64) as usize;
        self.drawn += 1;
        temper(self.state[at])
    }

    /// Goes back (or forward) so that the next word is word number `drawn`.
    ///
    /// Free within the last 624 words; beyond that the states are made again from the seed, a microsecond for
    /// each 624 words.
    pub fn seek(&mut self, drawn: u64) {
        let needed = drawn / WORDS as u64 + 1;
        if self.twists > needed {
            if self.earlier_twists == needed {
                self.state.copy_from_slice(&self.earlier[..]);
                self.twists = needed;
            } else {
                self.restart();
            }
        }
        while self.twists < needed && drawn > 0 {
            self.advance();
        }
        self.drawn = drawn;
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
        self.drawn = 0;
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
        let outputs: Vec<u32> = (0..10_000).map(|_| rng.next_word()).collect();
        assert_eq!(outputs[..5], [3_499_211_612, 581_869_302, 3_890_346_734, 3_586_334_585, 545_404_204]);
        // The C++ standard's own check.
        assert_eq!(outputs[9_999], 4_123_659_995);
    }

    #[test]
    fn seek_equals_drawing_again_from_the_seed() {
        let mut rng = Mt19937::new(0);
        let all: Vec<u32> = (0..3000).map(|_| rng.next_word()).collect();
        for to in [2999, 2600, 2496, 2495, 1872, 1871, 625, 624, 623, 1248, 1, 0, 2800, 626, 624, 0] {
            rng.seek(to);
            assert_eq!(rng.drawn(), to);
            assert_eq!(rng.next_word(), all[to as usize], "word {to}");
        }
        rng.seek(0);
        let again: Vec<u32> = (0..3000).map(|_| rng.next_word()).collect();
        assert_eq!(again, all);
    }
}
