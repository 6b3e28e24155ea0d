//! The first page of an index and the layout of the file, byte by byte.
//!
//! All numbers are little-endian; every section begins at a multiple of 4,096 bytes, in this order, and the rest of its
//! last page is zero. The same rows give the same bytes.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `logitpfx` |
//! | 8..12 | version of the layout: 3; 1 and, where items have keys, 2 are read |
//! | 12 | bytes of a token: 1, 2 or 4 |
//! | 13 | bytes of a count of shared tokens: 1 or 2 |
//! | 14 | bytes of an item's number: 4 or 8 |
//! | 15 | flags: 1 = tokens have weights, 2 = items differ in length, 4 = an item is the beginning of another, 8 = items have keys |
//! | 16..24 | rows |
//! | 24..32 | tokens of all rows together |
//! | 32..40 | wide nodes |
//! | 40..48 | children of all wide nodes together |
//! | 48..52 | tokens of the longest item |
//! | 52..56 | the largest token |
//! | 56..64 | the root: its state |
//! | 64..72 | length of the file |
//! | 72..80 | XXH3 (64 bits) of the checksums at the file's end |
//! | 80..184 | where each section begins, the checksums last |
//! | 192..200 | keys |
//! | 200..208 | bytes of all keys |
//! | 208..216 | words of child marks |
//! | 216..224 | the largest item's number; 0 if there is no row |
//! | 4088..4096 | XXH3 of the bytes before it |
//!
//! | section | an entry | entries |
//! |---|---|---|
//! | 0 tokens | a token, row by row | tokens |
//! | 1 shared | how many tokens the row shares with the row before it; 0 for the first | rows |
//! | 2 starts | u64: where the row's tokens begin; only if items differ in length | rows + 1 |
//! | 3 items | the item's number; rows of the same tokens ascend by it | rows |
//! | 4 weights | f32: the weight of the token in its place; only with weights | tokens |
//! | 5 records | a wide node: u64 first row, u64 the row after its last, u64 first child, u64 rows that end here, u32 children, u32 depth, u32 first child's token, u32 last child's token, u64 first word of its marks, u64 zero | wide nodes |
//! | 6 child tokens | a token, ascending within a node | children |
//! | 7 child states | u64 ([`crate::catalogue::WalkState`]): a record's number with bit 56 set, or first row x 65,536 + depth | children |
//! | 8 child weights | f32; only with weights | children |
//! | 9 child marks | u64: a bit for each token from the node's first child's to its last one's, set where it is a child; of nodes where one in eight is, without weights | words |
//! | 10 key ends | u64: where the key of each item number ends | keys |
//! | 11 key bytes | UTF-8 | bytes |
//! | checksums | u64: XXH3 of each page from 4,096 to here | pages |
//!
//! Versions 1 and 2 have no marks and records of 48 bytes, version 1 no keys; their places begin at 80 as well, without
//! those of the sections that they lack, and the keys of version 2 are counted at 176.

use xxhash_rust::xxh3::xxh3_64;

use super::checksum::{damaged, PAGE};
use crate::catalogue::{WalkState, MAX_KEY_BYTES, MAX_LENGTH, MAX_ROWS, MAX_TOKEN};
use crate::{Error, ErrorKind, Result};

/// How an index begins.
pub const MAGIC: &[u8; 8] = b"logitpfx";
/// The layout that is written.
pub(in crate::catalogue) const VERSION: u32 = 3;
/// The old layout of an index without keys.
const PLAIN_VERSION: u32 = 1;
/// The old layout of an index whose items have keys.
const KEYED_VERSION: u32 = 2;
/// The first layout with marks, wider records, the largest item's number and a flag for keys.
pub(in crate::catalogue) const MARKED_VERSION: u32 = 3;
/// Bytes of a wide node's record.
const RECORD: usize = 64;
/// Bytes of a wide node's record in the old layouts.
const OLD_RECORD: usize = 48;
/// A node's children have marks if at least one in so many tokens of their span is a child.
pub(in crate::catalogue) const MARKED: usize = 8;

pub(in crate::catalogue) const TOKENS: usize = 0;
pub(in crate::catalogue) const SHARED: usize = 1;
pub(in crate::catalogue) const STARTS: usize = 2;
pub(in crate::catalogue) const ITEMS: usize = 3;
pub(in crate::catalogue) const WEIGHTS: usize = 4;
pub(in crate::catalogue) const RECORDS: usize = 5;
pub(in crate::catalogue) const CHILD_TOKENS: usize = 6;
pub(in crate::catalogue) const CHILD_STATES: usize = 7;
pub(in crate::catalogue) const CHILD_WEIGHTS: usize = 8;
pub(in crate::catalogue) const CHILD_MARKS: usize = 9;
pub(in crate::catalogue) const KEY_ENDS: usize = 10;
pub(in crate::catalogue) const KEY_BYTES: usize = 11;
/// Sections before the checksums.
pub(in crate::catalogue) const SECTIONS: usize = 12;
const OFFSETS: usize = 80;
const KEYS_AT: usize = 192;
const OLD_KEYS_AT: usize = 176;
const SUM_AT: usize = PAGE - 8;

/// What the first page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexHeader {
    /// Version of the layout.
    pub version: u32,
    /// Bytes of a token: 1, 2 or 4.
    pub token_bytes: usize,
    /// Bytes of a count of shared tokens: 1 or 2.
    pub shared_bytes: usize,
    /// Bytes of an item's number: 4 or 8.
    pub item_bytes: usize,
    /// Whether tokens have weights.
    pub weighted: bool,
    /// Whether items differ in length.
    pub ragged: bool,
    /// Whether an item is the beginning of another.
    pub nested: bool,
    /// Whether items have keys.
    pub keyed: bool,
    /// Rows: an item that is given with several numbers has several.
    pub rows: u64,
    /// Tokens of all rows together.
    pub tokens: u64,
    /// Nodes of more rows than are walked one by one.
    pub wide: u64,
    /// Continuations of all wide nodes together.
    pub children: u64,
    /// Keys: every item number is below this.
    pub keys: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Words of the marks of all wide nodes' children.
    pub marks: u64,
    /// The largest item's number; `None` if there is no row, or the version does not say.
    pub largest_item: Option<u64>,
    /// Tokens of the longest item.
    pub longest: u32,
    /// The largest token.
    pub largest: u32,
    /// Where every sequence begins.
    pub root: WalkState,
    /// Length of the file in bytes.
    pub file: u64,
    /// The checksum of the checksums.
    pub sums: u64,
    /// Where each section begins, the checksums last.
    pub(in crate::catalogue) at: [u64; SECTIONS + 1],
}

/// Words of the marks of children whose tokens have this span.
pub(in crate::catalogue) fn words_of_marks((first, last): (u32, u32)) -> usize {
    (last.saturating_sub(first) as usize + 1).div_ceil(64)
}

impl IndexHeader {
    /// Bytes of each section.
    pub(in crate::catalogue) fn lengths(&self) -> [u64; SECTIONS] {
        let weights = if self.weighted { 4 } else { 0 };
        let starts = if self.ragged { (self.rows + 1) * 8 } else { 0 };
        [
            self.tokens * self.token_bytes as u64,
            self.rows * self.shared_bytes as u64,
            starts,
            self.rows * self.item_bytes as u64,
            self.tokens * weights,
            self.wide * self.record_bytes() as u64,
            self.children * self.token_bytes as u64,
            self.children * 8,
            self.children * weights,
            self.marks * 8,
            self.keys * 8,
            self.key_bytes,
        ]
    }

    /// Bytes of a wide node's record.
    #[inline]
    pub(in crate::catalogue) fn record_bytes(&self) -> usize {
        if self.version < MARKED_VERSION {
            OLD_RECORD
        } else {
            RECORD
        }
    }

    /// Whether a wide node with so many children, whose tokens have this span, has marks.
    #[inline]
    pub(in crate::catalogue) fn is_marked(&self, children: usize, (first, last): (u32, u32)) -> bool {
        let span = (u64::from(last) + 1).saturating_sub(first.into());
        self.version >= MARKED_VERSION
            && !self.weighted
            && (1..=children as u64 * MARKED as u64).contains(&span)
    }

    /// Lays the sections out one after the other, and computes the length of the file.
    pub(in crate::catalogue) fn lay(&mut self) {
        let mut at = PAGE as u64;
        let lengths = self.lengths();
        for (place, length) in self.at.iter_mut().zip(lengths) {
            *place = at;
            at += length.next_multiple_of(PAGE as u64);
        }
        self.at[SECTIONS] = at;
        self.file = at + (at / PAGE as u64 - 1) * 8;
    }

    /// Where each section of this version begins, the checksums last.
    fn sections_at(&self) -> impl Iterator<Item = u64> + '_ {
        let has = |section: &usize| match *section {
            CHILD_MARKS => self.version >= MARKED_VERSION,
            KEY_ENDS | KEY_BYTES => self.version >= KEYED_VERSION,
            _ => true,
        };
        (0..=SECTIONS).filter(has).map(|section| self.at[section])
    }

    /// The first page.
    pub(in crate::catalogue) fn write(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&self.version.to_le_bytes());
        page[12..15].copy_from_slice(&[
            self.token_bytes as u8,
            self.shared_bytes as u8,
            self.item_bytes as u8,
        ]);
        page[15] = u8::from(self.weighted)
            | u8::from(self.ragged) << 1
            | u8::from(self.nested) << 2
            | u8::from(self.keyed) << 3;
        let longs = [self.rows, self.tokens, self.wide, self.children];
        let ends = [self.root.0 as u64, self.file, self.sums];
        page[48..52].copy_from_slice(&self.longest.to_le_bytes());
        page[52..56].copy_from_slice(&self.largest.to_le_bytes());
        let places = (16..48).step_by(8).chain((56..80).step_by(8)).chain((OFFSETS..).step_by(8));
        for (place, value) in places.zip(longs.into_iter().chain(ends).chain(self.sections_at())) {
            page[place..place + 8].copy_from_slice(&value.to_le_bytes());
        }
        let counts = [self.keys, self.key_bytes, self.marks, self.largest_item.unwrap_or(0)];
        let (from, counts) = match self.version {
            PLAIN_VERSION => (KEYS_AT, &[][..]),
            KEYED_VERSION => (OLD_KEYS_AT, &counts[..2]),
            _ => (KEYS_AT, &counts[..]),
        };
        for (place, value) in (from..).step_by(8).zip(counts) {
            page[place..place + 8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = xxh3_64(&page[..SUM_AT]);
        page[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        page
    }

    /// Reads the first page of a file, which may have more after the index.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if it is no index, of another version, cut short or damaged.
    pub fn read(bytes: &[u8]) -> Result<IndexHeader> {
        IndexHeader::read_up_to(VERSION, bytes)
    }

    /// The same for a logitree whose newest layout is `newest`.
    ///
    /// # Errors
    /// As [`IndexHeader::read`].
    pub(in crate::catalogue) fn read_up_to(newest: u32, bytes: &[u8]) -> Result<IndexHeader> {
        if bytes.get(..8) != Some(MAGIC) {
            let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(8)]).into_owned();
            let message = format!("not an index of a catalogue: it begins with {begins:?}");
            return Err(Error::new(ErrorKind::Payload, message).help("build one from a table or texts"));
        }
        let Some(page) = bytes.get(..PAGE) else { return Err(damaged("it ends in its first page")) };
        let long = |at: usize| page[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let int = |at: usize| page[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        let version = int(8);
        if !(PLAIN_VERSION..=newest).contains(&version) {
            let message =
                format!("an index of version {version}; versions {PLAIN_VERSION} to {newest} are read");
            return Err(Error::new(ErrorKind::Payload, message).help("build it again with this logitree"));
        }
        if xxh3_64(&page[..SUM_AT]) != long(SUM_AT) {
            return Err(damaged("its first page is not as its checksum says"));
        }
        let flag = |bit: u8| page[15] & bit != 0;
        let marked = version >= MARKED_VERSION;
        let (keyed, rows) = (if marked { flag(8) } else { version == KEYED_VERSION }, long(16));
        let keys_at = if marked { KEYS_AT } else { OLD_KEYS_AT };
        let mut header = IndexHeader {
            version,
            token_bytes: page[12].into(),
            shared_bytes: page[13].into(),
            item_bytes: page[14].into(),
            weighted: flag(1),
            ragged: flag(2),
            nested: flag(4),
            keyed,
            rows,
            tokens: long(24),
            wide: long(32),
            children: long(40),
            keys: if keyed { long(keys_at) } else { 0 },
            key_bytes: if keyed { long(keys_at + 8) } else { 0 },
            marks: if marked { long(KEYS_AT + 16) } else { 0 },
            largest_item: (marked && rows > 0).then(|| long(KEYS_AT + 24)),
            longest: int(48),
            largest: int(52),
            root: WalkState(long(56) as i64),
            file: long(64),
            sums: long(72),
            at: [0; SECTIONS + 1],
        };
        header.check()?;
        let file = header.file;
        header.lay();
        let laid = header.sections_at().zip((OFFSETS..).step_by(8)).all(|(at, from)| at == long(from));
        if header.file != file || !laid {
            return Err(damaged("its sections do not fit its counts"));
        }
        if (bytes.len() as u64) < file {
            return Err(damaged(&format!("it has {} bytes, not {file}", bytes.len())));
        }
        Ok(header)
    }

    /// What the numbers must be for their sums not to overflow, and for a row to have a meaning.
    fn check(&self) -> Result<()> {
        let most = MAX_ROWS * MAX_LENGTH as u64;
        let fits = matches!(self.token_bytes, 1 | 2 | 4)
            && matches!(self.shared_bytes, 1 | 2)
            && matches!(self.item_bytes, 4 | 8)
            && self.rows <= MAX_ROWS
            && self.tokens <= most
            && self.longest as usize <= MAX_LENGTH
            && self.wide <= self.rows * u64::from(self.longest) + 1
            && self.children <= most
            && self.marks <= self.children
            && self.keys <= MAX_ROWS
            && self.key_bytes <= self.keys * MAX_KEY_BYTES as u64
            && self.largest <= MAX_TOKEN
            && (self.ragged || self.rows * u64::from(self.longest) == self.tokens);
        if fits {
            Ok(())
        } else {
            Err(damaged("its counts make no sense"))
        }
    }
}
