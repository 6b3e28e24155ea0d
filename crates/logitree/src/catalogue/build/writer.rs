//! Writes rows in ascending order as sections: each row's tokens, how many it shares with the row before, and a record
//! for every node with more than [`NARROW`] rows, written after its last row.

use super::super::format::header::{self, IndexHeader, SECTIONS};
use super::super::{WalkState, NARROW};
use super::sink::{Room, Sink};
use crate::catalogue::keys::KeyWriter;
use crate::{Error, ErrorKind, Result, TokenId};

/// What must be known of all rows before the first is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shape {
    pub weighted: bool,
    longest: usize,
    shortest: Option<usize>,
    largest: TokenId,
    pub largest_item: Option<u64>,
}

impl Shape {
    pub fn new(weighted: bool) -> Shape {
        Shape { weighted, ..Shape::default() }
    }

    pub fn see(&mut self, tokens: &[TokenId], item: u64) {
        self.longest = self.longest.max(tokens.len());
        self.shortest = Some(self.shortest.map_or(tokens.len(), |shortest| shortest.min(tokens.len())));
        self.largest = tokens.iter().fold(self.largest, |largest, &token| largest.max(token));
        self.largest_item = self.largest_item.max(Some(item));
    }
}

/// A node on the way to the last row.
#[derive(Default)]
struct Open {
    first: u64,
    items: u64,
    children: Vec<(TokenId, WalkState, f32)>,
}

pub(super) struct Writer {
    header: IndexHeader,
    sections: Vec<Sink>,
    /// One a depth, up to that of the last row.
    open: Vec<Open>,
    tokens: Vec<TokenId>,
    weights: Vec<f32>,
    item: u64,
    repeated: u64,
    /// One row's tokens on their way.
    bytes: Vec<u8>,
    /// One node's marks on their way.
    marks: Vec<u64>,
}

impl Writer {
    pub fn new(shape: Shape, room: &Room) -> Result<Writer> {
        let bytes = |largest: u64| [1, 2, 4].into_iter().find(|n| largest >> (8 * n) == 0);
        let header = IndexHeader {
            version: header::VERSION,
            token_bytes: bytes(shape.largest.into()).unwrap_or(4),
            shared_bytes: if shape.longest < 256 { 1 } else { 2 },
            item_bytes: if shape.largest_item.unwrap_or(0) >> 32 == 0 { 4 } else { 8 },
            weighted: shape.weighted,
            ragged: shape.shortest.is_some_and(|shortest| shortest != shape.longest),
            nested: false,
            keyed: false,
            rows: 0,
            tokens: 0,
            wide: 0,
            children: 0,
            keys: 0,
            key_bytes: 0,
            marks: 0,
            largest_item: shape.largest_item,
            longest: shape.longest as u32,
            largest: shape.largest,
            root: WalkState::narrow(0, 0),
            file: 0,
            sums: 0,
            at: [0; SECTIONS + 1],
        };
        let sections = (0..SECTIONS).map(|_| Sink::new(room)).collect::<Result<_>>()?;
        let open = (0..=shape.longest).map(|_| Open::default()).collect();
        Ok(Writer {
            header,
            sections,
            open,
            tokens: Vec::new(),
            weights: Vec::new(),
            item: 0,
            repeated: 0,
            bytes: Vec::new(),
            marks: Vec::new(),
        })
    }

    /// The next row.
    pub fn row(&mut self, tokens: &[TokenId], weights: &[f32], item: u64) -> Result<()> {
        let shared = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        if let Some(at) = (0..shared.min(weights.len())).find(|&at| self.weights[at] != weights[at]) {
            let message = format!("two weights for one token: {} and {}", self.weights[at], weights[at]);
            return Err(Error::new(ErrorKind::Constraint, message)
                .at(format!("token {at} of {tokens:?}"))
                .help("items that begin alike must have the same weights there"));
        }
        let same = shared == tokens.len() && shared == self.tokens.len();
        if self.header.rows > 0 && same && self.item == item {
            self.repeated += 1;
            return Ok(());
        }
        self.header.nested |= self.header.rows > 0 && shared == self.tokens.len() && !same;
        self.close(shared)?;
        for open in &mut self.open[if self.header.rows == 0 { 0 } else { shared + 1 }..=tokens.len()] {
            open.first = self.header.rows;
        }
        self.open[tokens.len()].items += 1;
        self.write_row(tokens, weights, shared, item)?;
        self.tokens.clear();
        self.tokens.extend_from_slice(tokens);
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.item = item;
        Ok(())
    }

    fn write_row(&mut self, tokens: &[TokenId], weights: &[f32], shared: usize, item: u64) -> Result<()> {
        let header = &mut self.header;
        let sections = &mut self.sections[..];
        if header.ragged {
            sections[header::STARTS].write(&header.tokens.to_le_bytes())?;
        }
        self.bytes.clear();
        tokens
            .iter()
            .for_each(|token| self.bytes.extend_from_slice(&token.to_le_bytes()[..header.token_bytes]));
        sections[header::TOKENS].write(&self.bytes)?;
        if header.weighted {
            for weight in weights {
                sections[header::WEIGHTS].write(&weight.to_le_bytes())?;
            }
        }
        sections[header::SHARED].write(&(shared as u16).to_le_bytes()[..header.shared_bytes])?;
        sections[header::ITEMS].write(&item.to_le_bytes()[..header.item_bytes])?;
        header.rows += 1;
        header.tokens += tokens.len() as u64;
        Ok(())
    }

    /// The nodes of more than `depth` tokens on the way to the last row are complete.
    fn close(&mut self, depth: usize) -> Result<()> {
        for at in (depth + 1..=self.tokens.len()).rev() {
            let state = self.node(at)?;
            let weight = self.weights.get(at - 1).copied().unwrap_or(0.0);
            self.open[at - 1].children.push((self.tokens[at - 1], state, weight));
        }
        Ok(())
    }

    /// The complete node at this depth: its record, if it is a wide one, and its state.
    fn node(&mut self, depth: usize) -> Result<WalkState> {
        let open = &mut self.open[depth];
        let (first, end, items) = (open.first, self.header.rows, std::mem::take(&mut open.items));
        if end - first <= NARROW as u64 {
            open.children.clear();
            return Ok(WalkState::narrow(first, depth as u32));
        }
        let sections = &mut self.sections[..];
        for number in [first, end, self.header.children, items] {
            sections[header::RECORDS].write(&number.to_le_bytes())?;
        }
        let token = |child: Option<&(TokenId, WalkState, f32)>| child.map_or(0, |child| child.0);
        let (first, last) = (token(open.children.first()), token(open.children.last()));
        for number in [open.children.len() as u32, depth as u32, first, last] {
            sections[header::RECORDS].write(&number.to_le_bytes())?;
        }
        for number in [self.header.marks, 0] {
            sections[header::RECORDS].write(&number.to_le_bytes())?;
        }
        if self.header.is_marked(open.children.len(), (first, last)) {
            self.marks.clear();
            self.marks.resize(header::words_of_marks((first, last)), 0u64);
            for child in &open.children {
                let at = (child.0 - first) as usize;
                self.marks[at / 64] |= 1 << (at % 64);
            }
            self.marks
                .iter()
                .try_for_each(|word| sections[header::CHILD_MARKS].write(&word.to_le_bytes()))?;
            self.header.marks += self.marks.len() as u64;
        }
        self.header.children += open.children.len() as u64;
        for (token, state, weight) in open.children.drain(..) {
            sections[header::CHILD_TOKENS].write(&token.to_le_bytes()[..self.header.token_bytes])?;
            sections[header::CHILD_STATES].write(&state.0.to_le_bytes())?;
            if self.header.weighted {
                sections[header::CHILD_WEIGHTS].write(&weight.to_le_bytes())?;
            }
        }
        self.header.wide += 1;
        Ok(WalkState::wide(self.header.wide - 1))
    }

    /// What the first page says but the checksums, the sections, and how many items came again.
    pub fn finish(mut self, keys: Option<KeyWriter>) -> Result<(IndexHeader, Vec<Sink>, u64)> {
        self.close(0)?;
        self.header.root = self.node(0)?;
        if self.header.ragged {
            self.sections[header::STARTS].write(&self.header.tokens.to_le_bytes())?;
        }
        if let Some(keys) = keys {
            self.header.keyed = true;
            (self.header.keys, self.header.key_bytes) = (keys.count, keys.written);
            self.sections[header::KEY_ENDS] = keys.ends;
            self.sections[header::KEY_BYTES] = keys.bytes;
        }
        self.header.lay();
        Ok((self.header, self.sections, self.repeated))
    }
}
