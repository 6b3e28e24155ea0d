//! What fuzz targets make of the bytes that they get.

/// Bytes, taken from the front; zeros when they are used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub fn word(&mut self) -> [u8; 4] {
        std::array::from_fn(|_| self.byte())
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }
}
