//! The dense form: blocks of borrowed logits with the samplers' changes applied as they are read.

use super::{Candidates, Form};
use logitree_tokens::mask::bit;
use logitree_tokens::simd::{self, Floats, BLOCK};
use logitree_tokens::TokenId;

/// Above this many edits at once the dense logits are copied.
pub(super) const MAX_EDITS: usize = 4096;

/// A change of every borrowed logit, applied as it is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Divided.
    Divide(f32),
    /// -inf if below.
    Floor(f32),
    /// -inf for every other id.
    Only(TokenId),
    /// -inf where the mask has no bit.
    Allowed,
}

impl Shape {
    fn apply(self, block: &mut [f32], start: usize, mask: &[u32]) {
        match self {
            Shape::Allowed if start.is_multiple_of(32) => {
                simd::ban_f32(&mask[start / 32..(start + block.len()).div_ceil(32)], block);
            }
            Shape::Allowed => {
                for (x, at) in block.iter_mut().zip(start..) {
                    if !bit(mask, at as TokenId) {
                        *x = f32::NEG_INFINITY;
                    }
                }
            }
            Shape::Divide(by) => simd::divide(block, by),
            Shape::Floor(least) => simd::reject_below(block, least),
            Shape::Only(id) => {
                for (x, at) in block.iter_mut().zip(start..) {
                    if at != id as usize {
                        *x = f32::NEG_INFINITY;
                    }
                }
            }
        }
    }
}

impl Candidates<'_> {
    /// Calls `f` with the number of each block of 256 candidates and its logits, in order, whatever the form.
    pub(crate) fn for_each_block(&self, mut f: impl FnMut(usize, &[f32])) {
        if self.form != Form::Borrowed {
            return self.logits.chunks(BLOCK).enumerate().for_each(|(at, block)| f(at, block));
        }
        let mut buffer = [0.0; BLOCK];
        for at in 0..self.maxima.len() {
            f(at, self.block(at, &mut buffer));
        }
    }

    /// As [`Candidates::for_each_block`], of at least the blocks in which a logit reaches `least`.
    pub(super) fn for_each_block_reaching(&self, least: f32, mut f: impl FnMut(usize, &[f32])) {
        if self.form == Form::List {
            return self.for_each_block(f);
        }
        let mut buffer = [0.0; BLOCK];
        for (at, _) in self.maxima.iter().enumerate().filter(|(_, &max)| max >= least) {
            f(at, self.block(at, &mut buffer));
        }
    }

    /// The logits of one block of 256 candidates as they now are, whatever the form.
    pub(super) fn block<'a>(&'a self, at: usize, buffer: &'a mut [f32; BLOCK]) -> &'a [f32] {
        let start = at * BLOCK;
        if self.form != Form::Borrowed {
            return &self.logits[start..self.logits.len().min(start + BLOCK)];
        }
        let first = self.edits.partition_point(|e| (e.0 as usize) < start);
        let edits = &self.edits[first..];
        let edited = edits.first().is_some_and(|e| (e.0 as usize) < start + BLOCK);
        if !edited && self.shapes.is_empty() {
            return self.base.block(at, buffer);
        }
        let mut plain = [0.0; BLOCK];
        let plain = self.base.block(at, &mut plain);
        let block = &mut buffer[..plain.len()];
        block.copy_from_slice(plain);
        self.shapes.iter().for_each(|shape| shape.apply(block, start, &self.mask));
        for &(id, x) in edits.iter().take_while(|e| (e.0 as usize) < start + BLOCK) {
            block[id as usize - start] = x;
        }
        block
    }

    /// All logits of a dense form as one slice, as they now are but for the edits; `None` if they are read in blocks.
    pub(super) fn unshaped(&self) -> Option<&[f32]> {
        match (self.form, self.base) {
            (Form::Owned, _) => Some(&self.logits),
            (Form::Borrowed, Floats::F32(xs)) if self.shapes.is_empty() => Some(xs),
            _ => None,
        }
    }

    /// Applies `shape` to all borrowed logits: to edits and maxima now, to the others as they are read.
    pub(super) fn shape(&mut self, shape: Shape) {
        self.shapes.push(shape);
        for (id, x) in &mut self.edits {
            shape.apply(std::slice::from_mut(x), *id as usize, &self.mask);
        }
        match shape {
            Shape::Divide(by) => simd::divide(&mut self.maxima, by),
            Shape::Floor(least) => simd::reject_below(&mut self.maxima, least),
            Shape::Only(id) => {
                let block = id as usize / BLOCK;
                for (max, at) in self.maxima.iter_mut().zip(0..) {
                    *max = if at == block { *max } else { f32::NEG_INFINITY };
                }
            }
            // It is the first shape; the maxima are found with it.
            Shape::Allowed => {}
        }
    }

    /// The logit of one id, which is below the number of borrowed logits, unless it is an edit.
    fn shaped(&self, id: TokenId) -> Option<f32> {
        let mut x = [self.base.get(id as usize)?];
        self.shapes.iter().for_each(|shape| shape.apply(&mut x, id as usize, &self.mask));
        Some(x[0])
    }

    pub(super) fn update_borrowed<T>(&mut self, table: &[(TokenId, T)], f: impl Fn(f32, &T) -> f32) {
        let old = self.edits.len();
        for (id, entry) in table {
            let known = self.edits[..old].binary_search_by_key(id, |e| e.0);
            let x = match known {
                Ok(at) => self.edits[at].1,
                Err(_) => match self.shaped(*id) {
                    Some(x) => x,
                    None => continue,
                },
            };
            let changed = f(x, entry);
            match known {
                Ok(at) => self.edits[at].1 = changed,
                Err(_) => self.edits.push((*id, changed)),
            }
            // A block that loses its maximum has none until it is looked for below: it is NaN.
            let max = &mut self.maxima[*id as usize / BLOCK];
            if changed >= *max {
                *max = changed;
            } else if x >= *max {
                *max = f32::NAN;
            }
        }
        if old > 0 {
            self.edits.sort_unstable_by_key(|e| e.0);
        }
        let mut buffer = [0.0; BLOCK];
        for at in 0..self.edits.len() {
            let block = self.edits[at].0 as usize / BLOCK;
            if self.maxima[block].is_nan() {
                self.maxima[block] = simd::max(self.block(block, &mut buffer));
            }
        }
    }

    /// Copies the borrowed logits, changes applied; from now on the copy is read.
    pub(super) fn copy_base(&mut self) {
        let mut logits = std::mem::take(&mut self.logits);
        logits.clear();
        self.for_each_block(|_, block| logits.extend_from_slice(block));
        self.logits = logits;
        self.edits.clear();
        self.shapes.clear();
        self.form = Form::Owned;
    }
}
