//! One trie node in eight bytes.

/// Bits of the subtree size: at most 2^22 - 1 nodes.
const SIZE_BITS: u32 = 22;
/// Bits of the depth: tokens of at most 1,023 bytes.
const DEPTH_BITS: u32 = 10;
/// Bits of the slot: at most 2^24 ids, the bogus ones included.
const SLOT_BITS: u32 = 24;

/// Most nodes a trie can have, the root included.
pub const MAX_NODES: usize = (1 << SIZE_BITS) - 1;
/// Longest token in bytes.
pub const MAX_DEPTH: usize = (1 << DEPTH_BITS) - 1;
/// Largest slot, so that vocabulary size plus bogus slots stay below it.
pub(super) const MAX_SLOT: usize = (1 << SLOT_BITS) - 1;

/// `size` (22 bits) | `depth` (10) | `slot` (24) | `byte` (8), most significant first.
///
/// The slot is the id of the token that ends here, or, where none ends, a bogus id past the vocabulary's
/// last word: a walk can then set the slot's bit without asking whether a token ends here.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Packed(u64);

impl Packed {
    /// All fields must be within the limits above; the builder checks them.
    pub(super) const fn new(byte: u8, slot: u32, depth: usize) -> Self {
        Packed(byte as u64 | (slot as u64) << 8 | (depth as u64) << 32)
    }

    #[inline(always)]
    pub(super) const fn byte(self) -> u8 {
        self.0 as u8
    }

    #[inline(always)]
    pub(super) const fn slot(self) -> u32 {
        self.0 as u32 >> 8
    }

    /// Number of bytes from the root to here, this node's included; 0 for the root.
    #[inline(always)]
    pub(super) const fn depth(self) -> usize {
        (self.0 >> 32) as usize & MAX_DEPTH
    }

    /// Number of nodes in the subtree, this one included.
    #[inline(always)]
    pub(super) const fn size(self) -> usize {
        (self.0 >> (32 + DEPTH_BITS)) as usize
    }

    pub(super) fn set_slot(&mut self, slot: u32) {
        self.0 = self.0 & !((MAX_SLOT as u64) << 8) | (slot as u64) << 8;
    }

    pub(super) fn set_size(&mut self, size: usize) {
        self.0 = self.0 & ((1 << (32 + DEPTH_BITS)) - 1) | (size as u64) << (32 + DEPTH_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        assert_eq!(size_of::<Packed>(), 8);
        let mut node = Packed::new(0xff, 0, MAX_DEPTH);
        node.set_size(MAX_NODES);
        node.set_slot(5);
        assert_eq!((node.byte(), node.slot(), node.depth(), node.size()), (0xff, 5, MAX_DEPTH, MAX_NODES));
        node.set_slot(MAX_SLOT as u32);
        node.set_size(1);
        assert_eq!(
            (node.byte(), node.slot(), node.depth(), node.size()),
            (0xff, MAX_SLOT as u32, MAX_DEPTH, 1)
        );
        let node = Packed::new(0, 7, 1);
        assert_eq!((node.byte(), node.slot(), node.depth(), node.size()), (0, 7, 1, 0));
    }
}
