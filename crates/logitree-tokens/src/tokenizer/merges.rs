//! Byte-pair encoding: the pair of neighbours of the lowest rank is joined, the leftmost of equals first, until no pair can be
//! joined.
//!
//! A SentencePiece vocabulary is the same with the scores of tokens as ranks: a pair can be joined if it makes a token.
//! Merges are found with a heap: n log n steps for n characters. The naive version looks for the best pair again after
//! every merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::{Error, ErrorKind, Result, TokenId};

/// Not a token.
pub(super) const NO_TOKEN: TokenId = TokenId::MAX;

/// Which pieces of the pre-tokenizer are one token if the vocabulary has it, whatever the merges say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Never,
    Always,
    /// Pieces of line feeds only.
    LineFeeds,
}

impl Whole {
    /// Whether it is about this piece.
    pub fn is_about(self, piece: &[u8]) -> bool {
        match self {
            Whole::Never => false,
            Whole::Always => true,
            Whole::LineFeeds => piece.iter().all(|&byte| byte == b'\n'),
        }
    }
}

/// What a piece consists of before the first merge.
pub(super) enum Units {
    /// Bytes, each a token or none.
    Bytes(Box<[TokenId; 256]>),
    /// Characters; those that are no token are spelled in tokens of one byte.
    Chars(FxHashMap<char, TokenId>, Box<[TokenId; 256]>),
}

/// Which pairs become what.
pub(super) struct Merges {
    pub units: Units,
    /// The pair as `left << 32 | right` -> rank and joined token.
    pub pairs: FxHashMap<u64, (u32, TokenId)>,
}

/// The key of a pair.
#[inline]
pub(super) const fn pair(left: TokenId, right: TokenId) -> u64 {
    (left as u64) << 32 | right as u64
}

/// One unit or what it was joined to.
#[derive(Clone, Copy)]
struct Symbol {
    token: TokenId,
    before: u32,
    after: u32,
    /// Where it begins in the piece.
    start: u32,
}

const NOTHING: u32 = u32::MAX;

/// A merge that may be next: rank, place, and what is joined there.
type Candidate = Reverse<(u32, u32, TokenId, TokenId)>;

/// Room for one piece at a time.
#[derive(Default)]
pub(super) struct Scratch {
    symbols: Vec<Symbol>,
    candidates: BinaryHeap<Candidate>,
    /// The ranks and parts of the merges, in order, where they are asked for.
    pub last: Option<(TokenId, TokenId, u32)>,
}

impl Merges {
    /// Appends the tokens of `piece`.
    ///
    /// # Errors
    /// [`ErrorKind::Token`] if a byte of it is no token; [`ErrorKind::Limit`] for more than 4 GiB.
    pub fn encode(&self, piece: &str, scratch: &mut Scratch, out: &mut Vec<TokenId>) -> Result<()> {
        if piece.len() >= NOTHING as usize {
            return Err(Error::new(ErrorKind::Limit, "a text of more than 4 GiB"));
        }
        scratch.symbols.clear();
        match &self.units {
            Units::Bytes(tokens) => {
                for (at, &byte) in piece.as_bytes().iter().enumerate() {
                    let token = tokens[usize::from(byte)];
                    if token == NO_TOKEN {
                        return Err(no_token(byte));
                    }
                    push(scratch, token, at);
                }
            }
            Units::Chars(tokens, _) => {
                for (at, c) in piece.char_indices() {
                    let c = if c == '\u{2581}' { ' ' } else { c };
                    push(scratch, tokens.get(&c).copied().unwrap_or(NO_TOKEN), at);
                }
            }
        }
        self.join(scratch);
        let mut at = 0;
        while let Some(&symbol) = scratch.symbols.get(at as usize) {
            match (&self.units, symbol.token) {
                (Units::Chars(_, bytes), NO_TOKEN) => {
                    let end =
                        scratch.symbols.get(symbol.after as usize).map_or(piece.len(), |s| s.start as usize);
                    for &byte in &piece.as_bytes()[symbol.start as usize..end] {
                        match bytes[usize::from(byte)] {
                            NO_TOKEN => return Err(no_token(byte)),
                            token => out.push(token),
                        }
                    }
                }
                (_, token) => out.push(token),
            }
            at = symbol.after;
        }
        Ok(())
    }

    /// The token that tokens become when they are all joined, with its last merge; `None` if they do not become one.
    pub fn whole(
        &self,
        units: &[TokenId],
        scratch: &mut Scratch,
    ) -> Option<(TokenId, (TokenId, TokenId, u32))> {
        scratch.symbols.clear();
        units.iter().enumerate().for_each(|(at, &unit)| push(scratch, unit, at));
        self.join(scratch);
        let first = scratch.symbols.first()?;
        (first.after == NOTHING).then_some((first.token, scratch.last?))
    }

    /// The units of `text`; `None` if one is no token.
    pub fn units(&self, text: &[u8], out: &mut Vec<TokenId>) -> Option<()> {
        out.clear();
        match &self.units {
            Units::Bytes(tokens) => out.extend(text.iter().map(|&byte| tokens[usize::from(byte)])),
            Units::Chars(tokens, _) => {
                let text = std::str::from_utf8(text).ok()?;
                out.extend(text.chars().map(|c| tokens.get(&c).copied().unwrap_or(NO_TOKEN)));
            }
        }
        (!out.contains(&NO_TOKEN)).then_some(())
    }

    fn join(&self, scratch: &mut Scratch) {
        let Scratch { symbols, candidates, last } = scratch;
        candidates.clear();
        *last = None;
        if let Some(end) = symbols.last_mut() {
            end.after = NOTHING;
        }
        let offer = |candidates: &mut BinaryHeap<Candidate>, at: u32, left: TokenId, right: TokenId| {
            if let Some(&(rank, _)) = self.pairs.get(&pair(left, right)) {
                candidates.push(Reverse((rank, at, left, right)));
            }
        };
        for at in 1..symbols.len() {
            offer(candidates, at as u32 - 1, symbols[at - 1].token, symbols[at].token);
        }
        while let Some(Reverse((rank, at, left, right))) = candidates.pop() {
            let here = symbols[at as usize];
            // What was joined meanwhile has other tokens, or none.
            if here.token != left || here.after == NOTHING || symbols[here.after as usize].token != right {
                continue;
            }
            let Some(&(_, joined)) = self.pairs.get(&pair(left, right)) else { continue };
            *last = Some((left, right, rank));
            let next = symbols[here.after as usize];
            symbols[here.after as usize].token = NO_TOKEN;
            symbols[at as usize] = Symbol { token: joined, after: next.after, ..here };
            if let Some(after) = symbols.get_mut(next.after as usize) {
                after.before = at;
                let after = after.token;
                offer(candidates, at, joined, after);
            }
            if let Some(before) = symbols.get(here.before as usize) {
                offer(candidates, here.before, before.token, joined);
            }
        }
    }
}

fn push(scratch: &mut Scratch, token: TokenId, start: usize) {
    let at = scratch.symbols.len() as u32;
    scratch.symbols.push(Symbol { token, before: at.wrapping_sub(1), after: at + 1, start: start as u32 });
}

fn no_token(byte: u8) -> Error {
    Error::new(ErrorKind::Token, format!("the vocabulary has no token for the byte {byte:#04x}"))
        .help("the tokenizer cannot spell this text")
}
