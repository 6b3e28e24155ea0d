//! A cursor over untrusted bytes: every read is checked, and an error has the field and the byte offset.

use crate::{Error, ErrorKind, Result};
use std::fmt::Display;

/// Reads forward over `bytes`. The caller names the fields; names are formatted only when a read fails.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at `at` (clamped to the end).
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Cursor { bytes, at: at.min(bytes.len()) }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: u64, field: impl Display) -> Result<&'a [u8]> {
        let left = &self.bytes[self.at..];
        match usize::try_from(n).ok().and_then(|n| left.get(..n)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.fail(format!("{n} bytes expected, {} left", left.len()), field)),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: impl Display) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64, field)?);
        Ok(out)
    }

    /// The next byte.
    pub fn u8(&mut self, field: impl Display) -> Result<u8> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, field: impl Display) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, field: impl Display) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self, field: impl Display) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// An error at this place.
    pub fn fail(&self, message: impl Into<String>, field: impl Display) -> Error {
        malformed(message, self.at, field)
    }
}

/// An error that names the field and the byte offset.
pub(crate) fn malformed(message: impl Into<String>, offset: usize, field: impl Display) -> Error {
    Error::new(ErrorKind::Vocabulary, message).at(format!("offset {offset}, field {field}"))
}
