//! xoroshiro128+ with splitmix64 seeding, which can go back: small state, a nanosecond a draw.
//!
//! Blackman and Vigna: "Scrambled Linear Pseudorandom Number Generators", 2018; rotations 24, 16 and 37.

/// The generator, counted in 64-bit words drawn. Every step can be undone, for the state's map is a bijection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xoroshiro128Plus {
    seed: u64,
    drawn: u64,
    state: [u64; 2],
}

impl Xoroshiro128Plus {
    /// The generator whose two words of state are the first two of splitmix64 from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        let state = [splitmix64(&mut x), splitmix64(&mut x)];
        Xoroshiro128Plus { seed, drawn: 0, state }
    }

    /// How many words were drawn since the seed.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// The next word.
    pub fn next_word(&mut self) -> u64 {
        let [a, b] = self.state;
        let mixed = a ^ b;
        self.state = [a.rotate_left(24) ^ mixed ^ mixed << 16, mixed.rotate_left(37)];
        self.drawn += 1;
        a.wrapping_add(b)
    }

    /// Goes back (or forward) so that the next word is word number `drawn`: one step for each word between.
    pub fn seek(&mut self, drawn: u64) {
        if drawn == 0 {
            *self = Xoroshiro128Plus::new(self.seed);
        }
        while self.drawn > drawn {
            let mixed = self.state[1].rotate_right(37);
            let a = (self.state[0] ^ mixed ^ mixed << 16).rotate_right(24);
            self.state = [a, a ^ mixed];
            self.drawn -= 1;
        }
        while self.drawn < drawn {
            self.next_word();
        }
    }
}

/// The next output of splitmix64 (Steele, Lea, Flood, 2014).
fn splitmix64(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_outputs() {
        // splitmix64 from 0, as its reference program prints it.
        let mut x = 0;
        assert_eq!(splitmix64(&mut x), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(&mut x), 0x6e78_9e6a_a1b9_65f4);
        // The first output is the sum of the two words of state.
        let mut rng = Xoroshiro128Plus::new(0);
        assert_eq!(rng.next_word(), 0xe220_a839_7b1d_cdaf_u64.wrapping_add(0x6e78_9e6a_a1b9_65f4));
    }

    #[test]
    fn seek_equals_drawing_again_from_the_seed() {
        let mut rng = Xoroshiro128Plus::new(42);
        let all: Vec<u64> = (0..500).map(|_| rng.next_word()).collect();
        for to in [499, 0, 250, 249, 1, 499, 17] {
            rng.seek(to);
            assert_eq!((rng.drawn(), rng.next_word()), (to, all[to as usize]));
        }
    }
}
