//! Sets of bytes as four machine words.

/// A set of bytes, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteSet(pub [u64; 4]);

impl ByteSet {
    /// No byte.
    pub const NONE: ByteSet = ByteSet([0; 4]);
    /// Every byte.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// One byte.
    #[inline]
    pub fn one(byte: u8) -> ByteSet {
        let mut set = ByteSet::NONE;
        set.insert(byte);
        set
    }

    /// The bytes from `from` to `to`, both included.
    pub fn range(from: u8, to: u8) -> ByteSet {
        let mut set = ByteSet::NONE;
        (from..=to).for_each(|byte| set.insert(byte));
        set
    }

    /// Inserts a byte.
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Whether the set contains `byte`.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The union.
    #[must_use]
    #[inline]
    pub fn or(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|n| self.0[n] | other.0[n]))
    }

    /// The intersection.
    #[must_use]
    #[inline]
    pub fn and(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|n| self.0[n] & other.0[n]))
    }

    /// The difference.
    #[must_use]
    #[inline]
    pub fn without(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|n| self.0[n] & !other.0[n]))
    }

    /// The bytes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..4usize).flat_map(move |word| {
            let mut bits = self.0[word];
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then(|| (word * 64) as u8 + bit as u8)
            })
        })
    }
}
