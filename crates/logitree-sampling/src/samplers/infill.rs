//! infill (fill in the middle): ends the text if its end is likely, merges tokens where one is a prefix of the
//! other, and keeps the likely ones.
//!
//! For use after top_k and top_p, as llama.cpp (src/llama-sampler.cpp) says: no token of a flat distribution is
//! likely. If no text is left, the end-of-text token is the one candidate, at logit 1, whether it was one before or
//! not. The tokens' texts come through [`Pieces`].

use crate::reference::{Reference, TokenArray, TokenData};
use crate::TokenId;
use crate::{arguments, Candidates, Sampler};
use std::fmt;
use std::sync::Arc;

/// Text tokens less likely than this are dropped first.
const FIRST_THRESHOLD: f32 = 0.2;

/// What infill needs to know of a vocabulary.
pub trait Pieces: Send + Sync {
    /// The token's bytes in a text; none for a token that is not text.
    fn piece(&self, token: TokenId) -> &[u8];

    /// Whether the token ends a generation.
    fn is_end(&self, token: TokenId) -> bool;

    /// The end-of-text token, or else the end-of-sequence token.
    fn end(&self) -> TokenId;

    /// The Python expression by which the sampler describes it.
    fn describe(&self) -> String;
}

/// A shared vocabulary's pieces. Equal if they are the same ones.
#[derive(Clone)]
pub struct SharedPieces(pub Arc<dyn Pieces>);

impl PartialEq for SharedPieces {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe())
    }
}

/// The sampler. It has no state between tokens, only scratch.
#[derive(Debug, Clone)]
pub struct Infill {
    pieces: SharedPieces,
    /// The candidates of the step, sorted, with probabilities that merging adds up; merged ones have logit -inf.
    work: Vec<TokenData>,
    /// Positions in `work`, by their pieces.
    by_piece: Vec<u32>,
    alike: Vec<u32>,
}

/// What is left of a step.
enum Left {
    /// The candidates at these positions, ascending.
    These,
    /// The end of the text alone.
    End,
}

impl Infill {
    /// Reads the tokens' texts from `pieces`.
    pub fn new(pieces: SharedPieces) -> Self {
        Infill { pieces, work: Vec::new(), by_piece: Vec::new(), alike: Vec::new() }
    }

    /// Narrows `work`, whose probabilities are set, to what is left. `merge` is one way to merge or the other.
    fn narrow(&mut self, merge: fn(&mut Infill)) -> Left {
        let pieces = Arc::clone(&self.pieces.0);
        let (mut text, mut end) = (0.0f32, 0.0f32);
        for c in &self.work {
            *(if pieces.is_end(c.id) { &mut end } else { &mut text }) += c.p;
        }
        if 3.0 * end * self.work.len() as f32 > text {
            self.work.retain(|c| pieces.is_end(c.id));
            return Left::These;
        }
        merge(self);
        self.work.retain(|c| c.p >= FIRST_THRESHOLD || pieces.is_end(c.id));
        let texts = self.work.iter().filter(|c| !pieces.is_end(c.id)).count();
        if texts == 0 {
            return Left::End;
        }
        let sum = self.work.iter().fold(0.0f32, |sum, c| sum + c.p);
        let threshold = (1.0 / (texts as f64 + 1.0)) as f32;
        self.work.retain(|c| c.p / sum >= threshold || pieces.is_end(c.id));
        Left::These
    }

    /// Merges as llama.cpp does: every token with every other, O(n^2).
    fn merge_all(&mut self) {
        let pieces = Arc::clone(&self.pieces.0);
        for i in 0..self.work.len() {
            for j in 0..self.work.len() {
                if self.work[i].logit == f32::NEG_INFINITY {
                    break;
                }
                let begins = |c: TokenData, with: TokenData| {
                    let start = pieces.piece(with.id);
                    !start.is_empty() && pieces.piece(c.id).starts_with(start)
                };
                if i != j && self.work[j].logit != f32::NEG_INFINITY && begins(self.work[j], self.work[i]) {
                    self.merge_pair(i, j);
                }
            }
        }
    }

    /// The same over the sorted pieces: those that begin with a piece come right after it.
    fn merge_sorted(&mut self) {
        let pieces = Arc::clone(&self.pieces.0);
        let Infill { mut work, mut by_piece, mut alike, .. } =
            std::mem::replace(self, Infill::new(self.pieces.clone()));
        by_piece.clear();
        by_piece.extend(0..work.len() as u32);
        by_piece.sort_unstable_by_key(|&at| (pieces.piece(work[at as usize].id), at));
        std::mem::swap(&mut self.work, &mut work);
        for i in 0..self.work.len() {
            let start = pieces.piece(self.work[i].id);
            if start.is_empty() || self.work[i].logit == f32::NEG_INFINITY {
                continue;
            }
            let of = |at: u32| pieces.piece(self.work[at as usize].id);
            let first = by_piece.partition_point(|&at| of(at) < start);
            alike.clear();
            let group = by_piece[first..].iter().take_while(|&&at| of(at).starts_with(start));
            alike.extend(group.filter(|&&at| self.work[at as usize].logit != f32::NEG_INFINITY));
            alike.sort_unstable();
            for &j in &alike {
                if self.work[i].logit == f32::NEG_INFINITY {
                    break;
                }
                if j as usize != i {
                    self.merge_pair(i, j as usize);
                }
            }
        }
        (self.by_piece, self.alike) = (by_piece, alike);
    }

    /// Adds the less probable of two to the other; of equals the second to the first.
    fn merge_pair(&mut self, i: usize, j: usize) {
        let (to, from) = if self.work[j].p > self.work[i].p { (j, i) } else { (i, j) };
        self.work[to].p += self.work[from].p;
        self.work[from].logit = f32::NEG_INFINITY;
        self.work[from].p = 0.0;
    }
}

arguments!(Infill, s => s.pieces.clone());

impl Sampler for Infill {
    fn name(&self) -> &'static str {
        "infill"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.sort();
        let mut sum = 0.0f32;
        candidates.exponentials(|e| sum += e);
        let max = candidates.max();
        self.work.clear();
        let all = candidates.ids().iter().zip(candidates.logits());
        self.work.extend(all.map(|(&id, &logit)| TokenData { id, logit, p: (logit - max).exp() / sum }));
        let mut array = TokenArray::default();
        if let Left::End = self.narrow(Infill::merge_sorted) {
            self.work.clear();
            self.work.push(TokenData { id: self.pieces.0.end(), logit: 1.0, p: 1.0 });
        }
        std::mem::swap(&mut array.data, &mut self.work);
        array.sorted = true;
        candidates.take(&array);
        std::mem::swap(&mut array.data, &mut self.work);
        candidates.fail_unless_alive("infill leaves no candidate above -inf");
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn adds(&self) -> bool {
        true
    }
}

impl Reference for Infill {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.softmax(true);
        if array.fault.is_some() {
            return;
        }
        std::mem::swap(&mut array.data, &mut self.work);
        if let Left::End = self.narrow(Infill::merge_all) {
            self.work.clear();
            self.work.push(TokenData { id: self.pieces.0.end(), logit: 1.0, p: 1.0 });
        }
        std::mem::swap(&mut array.data, &mut self.work);
    }
}
