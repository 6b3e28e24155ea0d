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

/// Collects [`Below`] while the subtree is being built.
#[derive(Clone, Copy)]
pub(super) struct Gathering {
    bytes: ByteSet,
    /// The decoder states from which every path below is UTF-8.
    decodes: u8,
}

impl Gathering {
    /// Of a node without children.
    pub(super) const LEAF: Gathering = Gathering { bytes: ByteSet::NONE, decodes: u8::MAX };

    /// Adds a child that `byte` leads to, with all that is below it.
    #[inline]
    pub(super) fn add(&mut self, byte: u8, child: &Gathering) {
        self.bytes = self.bytes.or(&child.bytes);
        self.bytes.insert(byte);
        self.decodes &= before(byte, child.decodes);
    }

    pub(super) fn below(&self) -> Below {
        Below { bytes: self.bytes, text: self.decodes & BOUNDARY != 0 }
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

    fn one_path(bytes: &[u8]) -> Below {
        let mut under = Gathering::LEAF;
        for &byte in bytes.iter().rev() {
            let mut here = Gathering::LEAF;
            here.add(byte, &under);
            under = here;
        }
        under.below()
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
            assert_eq!(one_path(&path).text, want, "{path:x?}");
        }
    }

    #[test]
    fn one_bad_path_spoils_all_and_bytes_are_united() {
        let mut both = Gathering::LEAF;
        both.add(b'a', &Gathering::LEAF);
        assert!(both.below().text);
        both.add(0xff, &Gathering::LEAF);
        assert!(!both.below().text);
        assert_eq!(both.below().bytes.iter().collect::<Vec<_>>(), [b'a', 0xff]);
    }
}
