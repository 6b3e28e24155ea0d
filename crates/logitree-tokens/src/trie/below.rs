//! Summaries of subtrees: which bytes occur below a node, and whether they are UTF-8. A recogniser that accepts them all
//! accepts the whole subtree without walking it.

use logitree_automata::expr::ByteSet;

/// Bits of the UTF-8 decoder's states: between characters; 1, 2, 3 continuation bytes to come; after E0, ED,
/// F0 and F4, whose next byte is restricted.
const BOUNDARY: u8 = 1;
const ONE: u8 = 1 << 1;
const TWO: u8 = 1 << 2;
const THREE: u8 = 1 << 3;
const E0: u8 = 1 << 4;
const ED: u8 = 1 << 5;
const F0: u8 = 1 << 6;
const F4: u8 = 1 << 7;

/// What occurs below one node, itself not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    /// Every byte on some path below.
    pub bytes: ByteSet,
    /// Whether every path below, read from a character boundary, is UTF-8, the last character of a path perhaps
    /// unfinished.
    pub text: bool,
}

/// The decoder states from which every path below a node is UTF-8, while the trie is being built.
#[derive(Clone, Copy)]
pub(super) struct Decodes(u8);

impl Decodes {
    /// Of a node without children.
    pub(super) const LEAF: Decodes = Decodes(u8::MAX);

    /// Adds a child that `byte` leads to, with what is below it.
    #[inline]
    pub(super) fn add(&mut self, byte: u8, child: Decodes) {
        self.0 &= before(byte, child.0);
    }

    /// [`Below::text`].
    pub(super) fn is_text(self) -> bool {
        self.0 & BOUNDARY != 0
    }
}

/// The bytes seen, one flag for each: setting one never waits for another.
pub(super) struct Bytes([u8; 256]);

impl Default for Bytes {
    fn default() -> Self {
        Bytes([0; 256])
    }
}

impl Bytes {
    #[inline]
    pub(super) fn see(&mut self, byte: u8) {
        self.0[usize::from(byte)] = 1;
    }

    /// The bytes seen since the last call.
    pub(super) fn take(&mut self) -> ByteSet {
        // The product brings the lowest bits of eight bytes together in the highest byte.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let (eights, _) = self.0.as_chunks::<8>();
        let mut set = ByteSet::NONE;
        for (n, eight) in eights.iter().enumerate() {
            set.0[n / 8] |= u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56 << (n % 8 * 8);
        }
        self.0 = [0; 256];
        set
    }
}

/// The decoder states from which `byte` leads to a state in `after`.
#[inline]
fn before(byte: u8, after: u8) -> u8 {
    let lead = |state: u8| if after & state != 0 { BOUNDARY } else { 0 };
    match byte {
        0x00..=0x7f => lead(BOUNDARY),
        0xc2..=0xdf => lead(ONE),
        0xe0 => lead(E0),
        0xed => lead(ED),
        0xe1..=0xef => lead(TWO),
        0xf0 => lead(F0),
        0xf1..=0xf3 => lead(THREE),
        0xf4 => lead(F4),
        0xc0..=0xc1 | 0xf5..=0xff => 0,
        0x80..=0xbf => {
            let mut from = (after & (BOUNDARY | ONE | TWO)) << 1;
            if after & ONE != 0 {
                from |= if byte >= 0xa0 { E0 } else { ED };
            }
            if after & TWO != 0 {
                from |= if byte >= 0x90 { F0 } else { F4 };
            }
            from
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_path(bytes: &[u8]) -> Decodes {
        bytes.iter().rev().fold(Decodes::LEAF, |below, &byte| {
            let mut here = Decodes::LEAF;
            here.add(byte, below);
            here
        })
    }

    #[test]
    fn text_is_what_the_standard_library_calls_utf8() {
        let edges = [
            0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
            0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
        ];
        for n in 0..edges.len().pow(4) {
            let path: Vec<u8> = (0..4).map(|i| edges[n / edges.len().pow(i) % edges.len()]).collect();
            let want = match std::str::from_utf8(&path) {
                Ok(_) => true,
                Err(error) => error.error_len().is_none(),
            };
            assert_eq!(one_path(&path).is_text(), want, "{path:x?}");
        }
    }

    #[test]
    fn one_bad_path_spoils_all() {
        let mut both = Decodes::LEAF;
        both.add(b'a', Decodes::LEAF);
        assert!(both.is_text());
        both.add(0xff, Decodes::LEAF);
        assert!(!both.is_text());
    }

    #[test]
    fn the_bytes_seen_are_taken_once() {
        for step in 1..=255u8 {
            let mut bytes = Bytes::default();
            let seen: Vec<u8> = (0..=255).step_by(usize::from(step)).collect();
            seen.iter().for_each(|&byte| bytes.see(byte));
            assert_eq!(bytes.take().iter().collect::<Vec<_>>(), seen);
            assert!(bytes.take().is_empty());
        }
    }
}
