//! One immutable index: rows in ascending order, and records of its wide nodes.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::format::checksum::{damaged, CheckedPages, IndexBytes};
use super::format::header::{self, IndexHeader};
use super::row_set::RowSet;
use super::state::StateKind;
use super::{Continuations, WalkState};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::file;
use logitree_tokens::simd::{self, PackedIds};

/// An index, in memory or in a mapped file.
pub struct ItemIndex {
    pages: CheckedPages,
    header: IndexHeader,
    /// See [`ItemIndex::largest_item`].
    largest_item: OnceLock<Option<u64>>,
}

/// A wide node.
pub(super) struct WideRecord {
    pub first: u64,
    pub end: u64,
    pub children: usize,
    pub at: usize,
    /// Rows that end here.
    pub items: u64,
    /// The first and the last child's token.
    pub tokens: (TokenId, TokenId),
    /// Its first word of marks.
    marks: u64,
}

/// The children of a wide node in the index.
pub(crate) struct WideChildren<'s> {
    tokens: &'s [u8],
    token_bytes: usize,
    states: &'s [u8],
    weights: &'s [u8],
    marks: &'s [u8],
}

impl<'s> WideChildren<'s> {
    pub fn len(&self) -> usize {
        self.states.len() / 8
    }

    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    #[inline]
    pub fn token(&self, at: usize) -> TokenId {
        number(self.tokens, at, self.token_bytes)
    }

    /// A bit for each token from the first child's to the last one's, whole words: whether it is a child. Empty where
    /// children are few, or have weights.
    #[inline]
    pub fn marks(&self) -> &'s [u8] {
        self.marks
    }

    /// Some of the tokens, in the index's encoding.
    pub fn tokens(&self, of: Range<usize>) -> PackedIds<'s> {
        let width = self.token_bytes;
        let bytes = self.tokens.get(of.start * width..of.end * width).unwrap_or_default();
        PackedIds { bytes, width }
    }

    #[inline]
    pub fn state(&self, at: usize) -> WalkState {
        WalkState(long(self.states, at) as i64)
    }

    #[inline]
    pub fn weight(&self, at: usize) -> Option<f32> {
        self.weights.get(at * 4..)?.first_chunk().map(|bytes| f32::from_le_bytes(*bytes))
    }

    /// Where the token would be if the tokens were spread evenly over this span, which they nearly are in a node that has
    /// many of them.
    #[inline]
    fn guess(&self, token: TokenId, (first, last): (TokenId, TokenId)) -> usize {
        let (gone, all) = (u64::from(token.saturating_sub(first)), u64::from(last.saturating_sub(first)));
        let top = self.len().saturating_sub(1);
        ((gone * top as u64 / all.max(1)) as usize).min(top)
    }

    /// Prefetches what [`WideChildren::find_near`] will read.
    #[inline]
    pub fn prefetch_near(&self, token: TokenId, span: (TokenId, TokenId)) {
        const LINE: usize = 64;
        let at = self.guess(token, span) * self.token_bytes;
        [at.saturating_sub(LINE), at, at + LINE].into_iter().for_each(|at| simd::prefetch(self.tokens, at));
    }

    /// Prefetches the state at this position.
    #[inline]
    pub fn prefetch_state(&self, at: usize) {
        simd::prefetch(self.states, at * 8);
    }

    /// The position of the token, as [`WideChildren::find`] finds it. The guess is corrected by the token that is there,
    /// after which it is nearly always in a window of so many, where those below it are counted.
    #[inline]
    pub fn find_near(&self, token: TokenId, span: (TokenId, TokenId)) -> Option<usize> {
        const WINDOW: usize = 32;
        let n = self.len();
        if n < WINDOW {
            return self.find(token).ok();
        }
        let (guess, all) = (self.guess(token, span), i64::from(span.1) - i64::from(span.0));
        let off = (i64::from(token) - i64::from(self.token(guess))) * (n as i64 - 1) / all.max(1);
        let from = (guess as i64 + off - WINDOW as i64 / 2).clamp(0, (n - WINDOW) as i64) as usize;
        let (mut below, width) = (0, self.token_bytes);
        let window = self.tokens.get(from * width..(from + WINDOW) * width).unwrap_or_default();
        match width {
            1 => window.iter().for_each(|&x| below += u16::from(u32::from(x) < token)),
            2 => {
                let token = u16::try_from(token).ok()?;
                let each = window.as_chunks().0.iter();
                each.for_each(|&x| below += u16::from(u16::from_le_bytes(x) < token));
            }
            _ => {
                let each = window.as_chunks().0.iter();
                each.for_each(|&x| below += u16::from(u32::from_le_bytes(x) < token));
            }
        }
        let below = usize::from(below);
        if below == 0 && from > 0 || below == WINDOW && from + WINDOW < n {
            return self.find(token).ok();
        }
        let at = from + below;
        (at < n && self.token(at) == token).then_some(at)
    }

    /// The position of the token, or where it would be inserted.
    pub fn find(&self, token: TokenId) -> std::result::Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.token(middle).cmp(&token) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

/// Number `at` of a list of numbers of `width` bytes each; 0 outside the list.
#[inline]
pub(super) fn number(bytes: &[u8], at: usize, width: usize) -> u32 {
    match width {
        1 => bytes.get(at).map_or(0, |&b| b.into()),
        2 => bytes.get(at * 2..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_le_bytes(*b).into()),
        _ => bytes.get(at * 4..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b)),
    }
}

#[inline]
fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at * 8..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

impl ItemIndex {
    /// Opens the index at `path`. Reads only its first page and its checksums.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be opened; [`ErrorKind::Payload`] if it is not an index, or damaged.
    pub fn open(path: &Path) -> Result<ItemIndex> {
        ItemIndex::new(IndexBytes::Mapped(file::map(path)?)).map_err(|error| file::naming(path, error))
    }

    /// The index with these bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if it is not an index, or damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<ItemIndex> {
        ItemIndex::new(IndexBytes::Owned(bytes))
    }

    fn new(bytes: IndexBytes) -> Result<ItemIndex> {
        let index = ItemIndex::with_journal(bytes)?;
        let len = index.all_bytes().len() as u64;
        match index.header.file {
            file if file == len => Ok(index),
            file => Err(damaged(&format!("it has {len} bytes, not {file}"))),
        }
    }

    /// The index at the beginning of these bytes.
    pub(super) fn with_journal(bytes: IndexBytes) -> Result<ItemIndex> {
        let header = IndexHeader::read(bytes.all())?;
        let sums = header.at[header::SECTIONS] as usize;
        if xxh3_64(bytes.all().get(sums..header.file as usize).unwrap_or_default()) != header.sums {
            return Err(damaged("its checksums are not as their checksum says"));
        }
        Ok(ItemIndex { pages: CheckedPages::checked(bytes, sums), header, largest_item: OnceLock::new() })
    }

    /// The index that was just written to these bytes.
    pub(super) fn trusted(bytes: Vec<u8>) -> Result<ItemIndex> {
        let header = IndexHeader::read(&bytes)?;
        Ok(ItemIndex {
            pages: CheckedPages::trusted(IndexBytes::Owned(bytes)),
            header,
            largest_item: OnceLock::new(),
        })
    }

    /// What its first page says.
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let all = self.pages.all();
        all.get(..self.header.file as usize).unwrap_or(all)
    }

    /// Its bytes and those that follow it in the file.
    pub(super) fn all_bytes(&self) -> &[u8] {
        self.pages.all()
    }

    /// Compares all of it with its checksums.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] that names the page.
    pub fn check(&self) -> Result<()> {
        self.pages.check()?;
        let mut tokens = Vec::new();
        for row in 0..self.header.rows {
            let shared = self.shared(row)? as usize;
            let before = std::mem::take(&mut tokens);
            self.row(row, &mut tokens)?;
            let same = before.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
            if row > 0 && (same != shared || before.get(same) > tokens.get(same)) {
                return Err(damaged(&format!("row {row} is out of order")));
            }
        }
        (0..self.header.wide).try_for_each(|number| self.check_marks(&self.record(number)?))
    }

    /// Whether a wide node's marks are its children.
    fn check_marks(&self, record: &WideRecord) -> Result<()> {
        let wide = self.wide(record)?;
        let marked = |token: TokenId| {
            let at = token.wrapping_sub(record.tokens.0) as usize;
            wide.marks.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
        };
        let count: u32 = wide.marks.iter().map(|byte| byte.count_ones()).sum();
        let right = count as usize == wide.len() && (0..wide.len()).all(|at| marked(wide.token(at)));
        if wide.marks.is_empty() || right {
            Ok(())
        } else {
            Err(damaged("marks of children that are others"))
        }
    }

    /// `len` entries of a section from number `at` on, `width` bytes each.
    #[inline(always)]
    pub(super) fn section(&self, section: usize, at: u64, len: usize, width: usize) -> Result<&[u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        let begin = self.header.at[section].saturating_add(at.saturating_mul(width as u64));
        let end = begin.saturating_add(len as u64 * width as u64);
        if end > self.header.at[section + 1] {
            return Err(damaged("an entry outside of its section"));
        }
        self.pages.slice(begin as usize, len * width)
    }

    /// Prefetches what [`ItemIndex::children`] will read first.
    #[inline]
    pub(super) fn prefetch(&self, state: WalkState) {
        let (header, at) = (&self.header, &self.header.at);
        match state.kind() {
            StateKind::Narrow { row, .. } if header.ragged => {
                self.pages.prefetch(at[header::SHARED] + row * header.shared_bytes as u64);
                self.pages.prefetch(at[header::STARTS] + row * 8);
            }
            StateKind::Narrow { row, depth } => {
                let token = row * u64::from(header.longest) + u64::from(depth);
                self.pages.prefetch(at[header::SHARED] + row * header.shared_bytes as u64);
                self.pages.prefetch(at[header::TOKENS] + token * header.token_bytes as u64);
            }
            StateKind::Wide(number) => {
                self.pages.prefetch(at[header::RECORDS] + number * self.header.record_bytes() as u64)
            }
            _ => {}
        }
    }

    /// Where the row's tokens begin, and how many it has.
    #[inline]
    pub(super) fn span(&self, row: u64) -> Result<(u64, u32)> {
        if !self.header.ragged {
            return Ok((row * u64::from(self.header.longest), self.header.longest));
        }
        let both = self.section(header::STARTS, row, 2, 8)?;
        let (from, to) = (long(both, 0), long(both, 1));
        match to.checked_sub(from).filter(|&len| len <= u64::from(self.header.longest)) {
            Some(len) => Ok((from, len as u32)),
            None => Err(damaged("a row that ends before it begins")),
        }
    }

    /// How many tokens the row shares with the one before it.
    pub(super) fn shared(&self, row: u64) -> Result<u32> {
        let width = self.header.shared_bytes;
        Ok(number(self.section(header::SHARED, row, 1, width)?, 0, width))
    }

    /// The row's token at `depth`.
    #[inline]
    pub(super) fn token(&self, row: u64, depth: u32) -> Result<TokenId> {
        let (start, len) = self.span(row)?;
        if depth >= len {
            return Err(damaged("a row that is too short"));
        }
        let width = self.header.token_bytes;
        Ok(number(self.section(header::TOKENS, start.saturating_add(depth.into()), 1, width)?, 0, width))
    }

    /// The row's tokens, written over `out`.
    pub(super) fn row(&self, row: u64, out: &mut Vec<TokenId>) -> Result<()> {
        out.clear();
        let (start, len) = self.span(row)?;
        let width = self.header.token_bytes;
        let bytes = self.section(header::TOKENS, start, len as usize, width)?;
        out.extend((0..len as usize).map(|at| number(bytes, at, width)));
        Ok(())
    }

    /// The row's weights, appended to `out`; nothing where the tree has no weights.
    pub(super) fn row_weights(&self, row: u64, out: &mut Vec<f32>) -> Result<()> {
        if self.header.weighted {
            let (start, len) = self.span(row)?;
            let bytes = self.section(header::WEIGHTS, start, len as usize, 4)?;
            out.extend((0..len as usize).map(|at| f32::from_bits(number(bytes, at, 4))));
        }
        Ok(())
    }

    pub(super) fn weight(&self, row: u64, depth: u32) -> Result<Option<f32>> {
        if !self.header.weighted {
            return Ok(None);
        }
        let (start, _) = self.span(row)?;
        let bytes = self.section(header::WEIGHTS, start.saturating_add(depth.into()), 1, 4)?;
        Ok(Some(f32::from_bits(number(bytes, 0, 4))))
    }

    /// The number of the row's item.
    pub(super) fn item(&self, row: u64) -> Result<u64> {
        let width = self.header.item_bytes;
        let bytes = self.section(header::ITEMS, row, 1, width)?;
        Ok(if width == 8 { long(bytes, 0) } else { number(bytes, 0, 4).into() })
    }

    /// Calls `each` with every row and its item number, in the order of the index.
    pub(super) fn for_each_item(&self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        const AT_ONCE: u64 = 1 << 16;
        let width = self.header.item_bytes;
        for first in (0..self.header.rows).step_by(AT_ONCE as usize) {
            let count = AT_ONCE.min(self.header.rows - first) as usize;
            let bytes = self.section(header::ITEMS, first, count, width)?;
            for at in 0..count {
                let item = if width == 8 { long(bytes, at) } else { number(bytes, at, 4).into() };
                each(first + at as u64, item);
            }
        }
        Ok(())
    }

    /// The largest item number; `None` if there is no row. The first call reads all rows of an index of an old version.
    pub(super) fn largest_item(&self) -> Result<Option<u64>> {
        if self.header.version >= header::MARKED_VERSION {
            return Ok(self.header.largest_item);
        }
        if let Some(&known) = self.largest_item.get() {
            return Ok(known);
        }
        let mut largest = None;
        self.for_each_item(|_, item| largest = largest.max(Some(item)))?;
        Ok(*self.largest_item.get_or_init(|| largest))
    }

    pub(super) fn record(&self, number: u64) -> Result<WideRecord> {
        if number >= self.header.wide {
            return Err(no_such(WalkState::wide(number)));
        }
        let bytes = self.section(header::RECORDS, number, 1, self.header.record_bytes())?;
        Ok(WideRecord {
            first: long(bytes, 0),
            end: long(bytes, 1),
            at: long(bytes, 2) as usize,
            items: long(bytes, 3),
            children: self::number(&bytes[32..], 0, 4) as usize,
            tokens: (self::number(&bytes[40..], 0, 4), self::number(&bytes[40..], 1, 4)),
            marks: long(bytes, 6),
        })
    }

    pub(super) fn wide(&self, record: &WideRecord) -> Result<WideChildren<'_>> {
        let (at, n, width) = (record.at as u64, record.children, self.header.token_bytes);
        let weights = if self.header.weighted { n } else { 0 };
        Ok(WideChildren {
            tokens: self.section(header::CHILD_TOKENS, at, n, width)?,
            token_bytes: width,
            states: self.section(header::CHILD_STATES, at, n, 8)?,
            weights: self.section(header::CHILD_WEIGHTS, at, weights, 4)?,
            marks: if self.header.is_marked(n, record.tokens) {
                self.section(header::CHILD_MARKS, record.marks, header::words_of_marks(record.tokens), 8)?
            } else {
                &[]
            },
        })
    }

    /// The children of `state`, appended to `out`; only those with a row in `live`.
    pub(super) fn children(
        &self,
        state: WalkState,
        live: Option<&RowSet>,
        out: &mut Continuations,
    ) -> Result<()> {
        let from = out.tokens.len();
        self.append(state, live, out)?;
        let tokens = &out.tokens[from..];
        if tokens.windows(2).any(|pair| pair[0] >= pair[1]) || tokens.last() > Some(&self.header.largest) {
            return Err(damaged("children out of order"));
        }
        Ok(())
    }

    fn append(&self, state: WalkState, live: Option<&RowSet>, out: &mut Continuations) -> Result<()> {
        match state.kind() {
            StateKind::Narrow { row, depth } if row < self.header.rows => {
                self.append_narrow(row, depth, live, out)
            }
            StateKind::Wide(number) => {
                let record = self.record(number)?;
                let wide = self.wide(&record)?;
                let first = record.first;
                out.is_item = record.items > 0
                    && live.is_none_or(|live| live.any(first, first.saturating_add(record.items)));
                for at in 0..wide.len() {
                    if let Some(state) = self.child(&record, &wide, at, live)? {
                        out.push(wide.token(at), state, wide.weight(at));
                    }
                }
                Ok(())
            }
            _ => self.known(state).map(drop),
        }
    }

    /// The state, if it is one of this index; the root is, even of an empty index.
    #[inline]
    pub(super) fn known(&self, state: WalkState) -> Result<WalkState> {
        let there = match state.kind() {
            StateKind::Narrow { row, .. } => {
                row < self.header.rows || state == self.header.root && self.header.rows == 0
            }
            StateKind::Wide(number) => number < self.header.wide,
            _ => false,
        };
        if there {
            Ok(state)
        } else {
            Err(no_such(state))
        }
    }

    /// The state after `token`, if there is one with a row in `live`.
    pub(super) fn step(
        &self,
        state: WalkState,
        token: TokenId,
        live: Option<&RowSet>,
    ) -> Result<Option<WalkState>> {
        match state.kind() {
            StateKind::Narrow { row, depth } if row < self.header.rows => {
                let narrow = self.narrow(row, depth)?;
                let mut found = None;
                narrow.groups(narrow.items()?, |from, to| {
                    let here = self.token(from, depth)?;
                    if here == token && live.is_none_or(|live| live.any(from, to)) {
                        found = Some(WalkState::narrow(from, depth + 1));
                    }
                    Ok(here < token)
                })?;
                Ok(found)
            }
            StateKind::Wide(number) => {
                let record = self.record(number)?;
                let wide = self.wide(&record)?;
                let Ok(at) = wide.find(token) else { return Ok(None) };
                self.child(&record, &wide, at, live)
            }
            _ => self.known(state).map(|_| None),
        }
    }

    /// The weight of a child; 0 where the tree has no weights.
    pub(super) fn weight_of(&self, state: WalkState, token: TokenId) -> Result<f32> {
        if !self.header.weighted {
            return Ok(0.0);
        }
        let mut children = Continuations::default();
        self.children(state, None, &mut children)?;
        let at = children.tokens.binary_search(&token);
        Ok(at.ok().and_then(|at| children.weights.get(at)).copied().unwrap_or(0.0))
    }

    /// The rows that end at `state`.
    pub(super) fn items(&self, state: WalkState) -> Result<Range<u64>> {
        match state.kind() {
            StateKind::Narrow { row, depth } if row < self.header.rows => {
                Ok(row..row + self.narrow(row, depth)?.items()?)
            }
            StateKind::Wide(number) => {
                let record = self.record(number)?;
                Ok(record.first..record.first.saturating_add(record.items).min(self.header.rows))
            }
            _ => self.known(state).map(|_| 0..0),
        }
    }

    /// A child of a wide node, if it has a row in `live`.
    #[inline]
    pub(super) fn child(
        &self,
        record: &WideRecord,
        wide: &WideChildren<'_>,
        at: usize,
        live: Option<&RowSet>,
    ) -> Result<Option<WalkState>> {
        let lives = match live {
            Some(live) => self.child_lives(record, wide, at, live)?,
            None => true,
        };
        if lives {
            self.known(wide.state(at)).map(Some)
        } else {
            Ok(None)
        }
    }

    fn child_lives(
        &self,
        record: &WideRecord,
        wide: &WideChildren<'_>,
        at: usize,
        live: &RowSet,
    ) -> Result<bool> {
        let from = self.first_row(wide.state(at))?;
        let to = if at + 1 < wide.len() { self.first_row(wide.state(at + 1))? } else { record.end };
        Ok(live.any(from, to))
    }

    fn first_row(&self, state: WalkState) -> Result<u64> {
        match state.kind() {
            StateKind::Narrow { row, .. } => Ok(row),
            StateKind::Wide(number) => Ok(self.record(number)?.first),
            _ => Err(damaged("a child that is no place")),
        }
    }
}

impl std::fmt::Debug for ItemIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ItemIndex({} rows)", self.header.rows)
    }
}

/// An error for a node that cannot exist.
pub(super) fn no_such(state: WalkState) -> Error {
    Error::new(ErrorKind::State, format!("the state {} belongs to another tree", state.0))
        .help("states are good for the snapshot that gave them")
}
