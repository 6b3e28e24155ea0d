//! The bytes of an index. Each page is compared with its checksum when it is first read: opening a file costs
//! nothing, and damage is an error and never a wrong token.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, ErrorKind, Result};
use logitree_tokens::file::Mapped;
use logitree_tokens::simd;

/// Bytes that have one checksum.
pub const PAGE: usize = 4096;

/// Where the bytes are.
pub(in crate::catalogue) enum IndexBytes {
    Owned(Vec<u8>),
    Mapped(Mapped),
}

impl IndexBytes {
    pub fn all(&self) -> &[u8] {
        match self {
            IndexBytes::Owned(bytes) => bytes,
            IndexBytes::Mapped(map) => map.bytes(),
        }
    }
}

/// The bytes of an index after its header.
pub(in crate::catalogue) struct CheckedPages {
    bytes: IndexBytes,
    /// Where the checksums of the pages after the header begin.
    sums: usize,
    /// One bit a page: it was as its checksum says. `None` where nothing need be compared.
    good: Option<Box<[AtomicU64]>>,
}

impl CheckedPages {
    /// Bytes just written: nothing to compare.
    pub fn trusted(bytes: IndexBytes) -> CheckedPages {
        CheckedPages { bytes, sums: 0, good: None }
    }

    /// Bytes from outside: the checksums of the pages from the second on begin at `sums`.
    pub fn checked(bytes: IndexBytes, sums: usize) -> CheckedPages {
        let words = (sums / PAGE).div_ceil(64);
        CheckedPages { bytes, sums, good: Some((0..words).map(|_| AtomicU64::new(0)).collect()) }
    }

    /// All bytes, unchecked.
    pub fn all(&self) -> &[u8] {
        self.bytes.all()
    }

    /// Has the machine fetch the byte `at`, because it will be read soon.
    #[inline]
    pub fn prefetch(&self, at: u64) {
        simd::prefetch(self.all(), at as usize);
    }

    /// `len` bytes from `at`.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if they are not there, or a page is not as its checksum says.
    #[inline]
    pub fn slice(&self, at: usize, len: usize) -> Result<&[u8]> {
        let end = at.checked_add(len).filter(|&end| end <= self.all().len());
        let Some(end) = end else { return Err(damaged("a place outside of it")) };
        let (first, last) = (at / PAGE, end.saturating_sub(1).max(at) / PAGE);
        if first != last || !self.is_good(first) {
            self.compare_all(first..=last)?;
        }
        Ok(&self.all()[at..end])
    }

    /// Whether the page was as its checksum says, or need not be.
    #[inline]
    fn is_good(&self, page: usize) -> bool {
        let Some(good) = &self.good else { return true };
        good.get(page / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 == 1)
    }

    #[inline(never)]
    fn compare_all(&self, mut pages: RangeInclusive<usize>) -> Result<()> {
        pages.try_for_each(|page| if self.is_good(page) { Ok(()) } else { self.compare(page) })
    }

    #[cold]
    fn compare(&self, page: usize) -> Result<()> {
        let at = page * PAGE;
        let content = self.all().get(at..(at + PAGE).min(self.sums)).filter(|c| !c.is_empty());
        let sum = page.checked_sub(1).and_then(|page| self.all().get(self.sums + page * 8..)?.first_chunk());
        let (Some(content), Some(sum)) = (content, sum) else { return Err(damaged("a page outside of it")) };
        if xxh3_64(content) != u64::from_le_bytes(*sum) {
            return Err(damaged(&format!("page {page} is not as its checksum says")));
        }
        if let Some(word) = self.good.as_ref().and_then(|good| good.get(page / 64)) {
            word.fetch_or(1 << (page % 64), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Compares every page.
    ///
    /// # Errors
    /// As [`CheckedPages::slice`].
    pub fn check(&self) -> Result<()> {
        let pages = if self.good.is_some() { self.sums.div_ceil(PAGE) } else { 1 };
        (1..pages).try_for_each(|page| self.compare(page))
    }
}

/// An error of the index's bytes.
pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Payload, format!("the index is damaged: {what}")).help(
        "build it again, or copy it again; an open index must not be written to: replace it by renaming",
    )
}
