//! Sorts rows in memory and merges them with sorted runs. Rows are compared by a key of their first tokens, and by all
//! tokens only where the keys are equal.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::runs::Reader;
use crate::{Result, TokenId};

/// Rows as they came.
#[derive(Default)]
pub(super) struct Buffer {
    tokens: Vec<TokenId>,
    /// Where each row's tokens end.
    ends: Vec<usize>,
    items: Vec<u64>,
    /// One a token, or none at all.
    weights: Vec<f32>,
    largest: TokenId,
}

/// Rows in order, as parts that are each in order.
pub(super) struct Sorted {
    buffer: Buffer,
    parts: Vec<Vec<(u128, u32)>>,
}

impl Buffer {
    pub fn push(&mut self, tokens: &[TokenId], weights: &[f32], weighted: bool, item: u64) {
        self.tokens.extend_from_slice(tokens);
        self.ends.push(self.tokens.len());
        self.items.push(item);
        self.largest = self.largest.max(tokens.iter().copied().max().unwrap_or(0));
        if weighted {
            self.weights.extend_from_slice(weights);
            self.weights.resize(self.tokens.len(), 0.0);
        }
    }

    /// What the rows take, once they are sorted. Never so little that their number does not fit.
    pub fn bytes(&self) -> usize {
        if self.items.len() >= u32::MAX as usize {
            return usize::MAX;
        }
        self.tokens.len() * 4 + self.weights.len() * 4 + self.items.len() * (8 + 8 + 32)
    }

    fn span(&self, row: u32) -> std::ops::Range<usize> {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        start..self.ends[row]
    }

    fn compare(&self, a: &(u128, u32), b: &(u128, u32)) -> Ordering {
        let rest = || {
            let order = self.tokens[self.span(a.1)].cmp(&self.tokens[self.span(b.1)]);
            order.then_with(|| self.items[a.1 as usize].cmp(&self.items[b.1 as usize]))
        };
        a.0.cmp(&b.0).then_with(rest)
    }

    /// The rows in as many parts as there are threads, each in order.
    pub fn sorted(self, threads: usize) -> Sorted {
        // As many of the first tokens as fit, each in as many bits as the largest needs.
        let bits = 32 - self.largest.max(1).leading_zeros();
        let fit = (128 / bits) as usize;
        let key = |row: u32| {
            let tokens = &self.tokens[self.span(row)];
            let first = tokens.iter().take(fit).fold(0u128, |key, &token| key << bits | u128::from(token));
            first << (bits as usize * (fit - tokens.len().min(fit)))
        };
        let rows = self.items.len();
        let each = rows.div_ceil(threads).max(1);
        let mut parts: Vec<Vec<(u128, u32)>> = Vec::new();
        std::thread::scope(|scope| {
            let (buffer, key) = (&self, &key);
            let sort = move |from: usize| {
                let rows = from as u32..(from + each).min(rows) as u32;
                let mut part: Vec<(u128, u32)> = rows.map(|row| (key(row), row)).collect();
                part.sort_unstable_by(|a, b| buffer.compare(a, b));
                part
            };
            let handles: Vec<_> =
                (0..rows).step_by(each).map(|from| scope.spawn(move || sort(from))).collect();
            let done = handles.into_iter().zip((0..rows).step_by(each));
            parts.extend(done.map(|(handle, from)| handle.join().unwrap_or_else(|_| sort(from))));
        });
        Sorted { buffer: self, parts }
    }
}

/// One row on its way.
#[derive(Default)]
pub(super) struct Row {
    pub tokens: Vec<TokenId>,
    pub weights: Vec<f32>,
    pub item: u64,
}

/// Where the next row of a source comes from.
enum Source<'s> {
    Part { sorted: &'s Sorted, part: usize, next: usize },
    Run(Reader),
}

impl Source<'_> {
    /// The next row, written over `row`; whether there was one.
    fn next(&mut self, row: &mut Row) -> Result<bool> {
        match self {
            Source::Run(reader) => reader.next(row),
            Source::Part { sorted, part, next } => {
                let Some(&(_, number)) = sorted.parts[*part].get(*next) else { return Ok(false) };
                *next += 1;
                let span = sorted.buffer.span(number);
                row.tokens.clear();
                row.tokens.extend_from_slice(&sorted.buffer.tokens[span.clone()]);
                row.weights.clear();
                row.weights.extend_from_slice(sorted.buffer.weights.get(span).unwrap_or_default());
                row.item = sorted.buffer.items[number as usize];
                Ok(true)
            }
        }
    }
}

/// A row that waits, and the source it came from. The greatest is the first row.
struct Waiting {
    row: Row,
    source: usize,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.row, &other.row);
        // Which of two equal rows is first decides nothing but which of two weights is named first.
        b.tokens.cmp(&a.tokens).then(b.item.cmp(&a.item)).then(other.source.cmp(&self.source))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// All rows of several sources in one order.
pub(super) struct Merge<'s> {
    sources: Vec<Source<'s>>,
    heap: BinaryHeap<Waiting>,
}

impl<'s> Merge<'s> {
    pub fn new(sorted: &'s Sorted, runs: Vec<Reader>) -> Result<Merge<'s>> {
        let parts = (0..sorted.parts.len()).map(|part| Source::Part { sorted, part, next: 0 });
        let mut sources: Vec<Source<'s>> = parts.chain(runs.into_iter().map(Source::Run)).collect();
        let mut heap = BinaryHeap::new();
        for (number, source) in sources.iter_mut().enumerate() {
            let mut row = Row::default();
            if source.next(&mut row)? {
                heap.push(Waiting { row, source: number });
            }
        }
        Ok(Merge { sources, heap })
    }

    /// The first row that was not passed.
    pub fn row(&self) -> Option<&Row> {
        self.heap.peek().map(|waiting| &waiting.row)
    }

    /// Passes the first row.
    pub fn advance(&mut self) -> Result<()> {
        if let Some(mut first) = self.heap.peek_mut() {
            let source = first.source;
            if !self.sources[source].next(&mut first.row)? {
                std::collections::binary_heap::PeekMut::pop(first);
            }
        }
        Ok(())
    }
}

impl Sorted {
    /// Calls `each` with every row, in order.
    pub fn for_each(&self, mut each: impl FnMut(&Row) -> Result<()>) -> Result<()> {
        let mut merge = Merge::new(self, Vec::new())?;
        while let Some(row) = merge.row() {
            each(row)?;
            merge.advance()?;
        }
        Ok(())
    }
}
