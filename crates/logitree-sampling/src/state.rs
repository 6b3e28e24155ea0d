//! The words in which samplers write their state for a snapshot, and read it back. Every length is checked against the
//! words that are there.

use crate::{Error, ErrorKind, Result, TokenId};

/// Collects a sampler's state.
#[derive(Debug, Clone, Default)]
pub struct StateWriter {
    words: Vec<u64>,
}

impl StateWriter {
    /// Appends one word.
    pub fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    /// Appends a float, bit for bit.
    pub fn float(&mut self, x: f32) {
        self.word(u64::from(x.to_bits()));
    }

    /// Appends a list of ids and its length.
    pub fn ids(&mut self, ids: &[TokenId]) {
        self.word(ids.len() as u64);
        self.words.extend(ids.iter().map(|&id| u64::from(id)));
    }

    /// Appends a list of floats and its length, bit for bit.
    pub fn floats(&mut self, xs: &[f32]) {
        self.word(xs.len() as u64);
        self.words.extend(xs.iter().map(|x| u64::from(x.to_bits())));
    }

    /// All that was written.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// Reads what a [`StateWriter`] wrote, in the same order.
#[derive(Debug)]
pub struct StateReader<'a> {
    words: std::slice::Iter<'a, u64>,
}

impl<'a> StateReader<'a> {
    /// Reads from the first word on.
    pub fn new(words: &'a [u64]) -> Self {
        StateReader { words: words.iter() }
    }

    /// The next word.
    ///
    /// # Errors
    /// [`ErrorKind::State`] past the end, as do all that follow.
    pub fn word(&mut self) -> Result<u64> {
        self.words.next().copied().ok_or_else(truncated)
    }

    /// The next float.
    pub fn float(&mut self) -> Result<f32> {
        let word = self.word()?;
        u32::try_from(word).map(f32::from_bits).map_err(|_| truncated())
    }

    /// A number of tokens or draws, small enough to be counted on from.
    ///
    /// # Errors
    /// [`ErrorKind::State`] past the end and for more than 2^48.
    pub fn count(&mut self) -> Result<u64> {
        Some(self.word()?).filter(|&n| n <= 1 << 48).ok_or_else(truncated)
    }

    /// A float that is neither infinite nor NaN.
    ///
    /// # Errors
    /// [`ErrorKind::State`] past the end and for any other.
    pub fn finite(&mut self) -> Result<f32> {
        Some(self.float()?).filter(|x| x.is_finite()).ok_or_else(truncated)
    }

    /// The length of a list whose entries are `each` words long, none of them missing.
    pub fn length(&mut self, each: usize) -> Result<usize> {
        let n = self.word()?;
        let there = self.words.len() / each;
        usize::try_from(n).ok().filter(|&n| n <= there).ok_or_else(truncated)
    }

    /// A list of ids.
    pub fn ids(&mut self) -> Result<Vec<TokenId>> {
        let n = self.length(1)?;
        (0..n).map(|_| TokenId::try_from(self.word()?).map_err(|_| truncated())).collect()
    }

    /// A list of floats, none of them infinite or NaN.
    pub fn floats(&mut self) -> Result<Vec<f32>> {
        let n = self.length(1)?;
        (0..n).map(|_| self.finite()).collect()
    }

    /// The next `n` words.
    pub fn take(&mut self, n: usize) -> Result<&'a [u64]> {
        let (taken, rest) = self.words.as_slice().split_at_checked(n).ok_or_else(truncated)?;
        self.words = rest.iter();
        Ok(taken)
    }

    /// Whether all was read.
    pub fn is_done(&self) -> bool {
        self.words.len() == 0
    }
}

/// The methods of [`Sampler`](crate::Sampler) about draws and state, by those of the field that has all of it.
macro_rules! state {
    ($field:ident) => {
        fn accept(&mut self, _token: $crate::TokenId) {
            self.$field.accept();
        }

        fn rollback(&mut self, n: usize) {
            self.$field.rollback(n);
        }

        fn reset(&mut self) {
            self.$field.reset();
        }

        fn seed(&self) -> Option<$crate::Seed> {
            Some(self.$field.seed())
        }

        fn resequence(&mut self, sequence: u32) {
            self.$field.resequence(sequence);
        }

        fn save(&self, state: &mut $crate::StateWriter) {
            self.$field.save(state);
        }

        fn load(&mut self, state: &mut $crate::StateReader<'_>) -> $crate::Result<()> {
            self.$field.load(state)
        }
    };
}
pub(crate) use state;

fn truncated() -> Error {
    Error::new(ErrorKind::State, "the snapshot is damaged or of another chain")
        .help("restore what Chain.snapshot gave, unchanged, into a chain of the same samplers")
}
