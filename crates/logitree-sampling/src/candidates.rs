//! The candidates: the tokens that may still be picked, with logits, in the order that later samplers see.
//!
//! Two forms with the same methods:
//! - *dense*: ids 0..n in order. The logits, 32 or 16 bits wide, are borrowed from the caller, never copied and never
//!   written. A change of all of them (a division, a floor) is applied as blocks are read; changes of single logits are
//!   kept in a separate list of edits. The maximum of each block of 256 is known, so that the best k, the first
//!   maximum, or all above a threshold are found in few blocks (`dense.rs`).
//! - *list*: ids and logits, one entry each, in any order. With a mask it starts as the allowed ids, ascending.
//!
//! A mask of many ids may leave the dense form, too: what is not allowed is at -inf as blocks are read
//! (`begin_wide`).
//!
//! Ranking is in `rank.rs`, sums of exponentials are in `mass.rs`.

use super::TokenArray;
use crate::{Error, Result, TokenId};
use logitree_tokens::simd::{self, Floats, BLOCK};

mod begin;
pub use begin::{bad_logit, no_logit};
mod cut;
use cut::Between;
mod dense;
mod lend;
mod mass;
mod rank;
mod typical;

use dense::Shape;

/// The candidates of one step. `'l` is the caller's logits; `'static` once a step is over and all are listed.
#[derive(Debug, Clone)]
pub struct Candidates<'l> {
    form: Form,
    /// Borrowed logits (dense form).
    base: Floats<'l>,
    /// Changes of all borrowed logits, in order.
    shapes: Vec<Shape>,
    /// The bits of the allowed ids, for [`Shape::Allowed`].
    mask: Vec<u32>,
    /// Logits of single ids as they now are, by ascending id (borrowed form).
    edits: Vec<(TokenId, f32)>,
    /// Maximum of each block as it now is (dense form).
    maxima: Vec<f32>,
    /// Ids (list form).
    ids: Vec<TokenId>,
    /// Logits of `ids` (list form), or of all ids (owned dense form).
    logits: Vec<f32>,
    probabilities: Vec<f32>,
    /// Whether `probabilities` is one for each candidate and sums to one.
    has_probabilities: bool,
    /// Sum of the exponentials of each block of 256 candidates in order, if `weight` is known; empty where only their
    /// sum is known.
    sums: Vec<f64>,
    /// Sum of all exponentials, until a logit changes.
    weight: Option<f64>,
    /// The highest logit of the list, if it is known, until a logit changes.
    highest: Option<f32>,
    order: Order,
    /// With [`Order::Later`]: candidates below this are removed when the rest is sorted.
    floor: f32,
    /// Whether the first candidate has the highest logit.
    best_first: bool,
    selected: Option<usize>,
    scratch: Scratch,
    fault: Option<Error>,
}

/// Buffers that hold nothing between two calls and stay from step to step.
#[derive(Debug, Clone, Default)]
struct Scratch {
    /// What is ranked.
    keys: Vec<u64>,
    /// What the sort needs.
    spare: Vec<u64>,
    /// Keys by nearness, while `keys` has them by logit.
    nearest: Vec<u64>,
    /// Logits of keys.
    values: Vec<f32>,
    /// Candidates near a cut.
    between: Between,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Form {
    /// Dense, read from `base`, `shapes` and `edits`.
    Borrowed,
    /// Dense, read from `logits`.
    Owned,
    #[default]
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Order {
    /// By ascending id.
    ById,
    /// Descending, or taken for descending as llama.cpp's flag says.
    Sorted,
    /// To be read in descending order, equal logits in their present order; sorted when the order is first read.
    Later,
    /// To be read by nearness to this logit, equally near ones in their present order; sorted as above.
    Nearest(f64),
    #[default]
    None,
}

impl Default for Candidates<'_> {
    fn default() -> Self {
        Candidates {
            form: Form::List,
            base: Floats::F32(&[]),
            shapes: Vec::new(),
            mask: Vec::new(),
            edits: Vec::new(),
            maxima: Vec::new(),
            ids: Vec::new(),
            logits: Vec::new(),
            probabilities: Vec::new(),
            has_probabilities: false,
            sums: Vec::new(),
            weight: None,
            highest: None,
            order: Order::None,
            floor: f32::NEG_INFINITY,
            best_first: false,
            selected: None,
            scratch: Scratch::default(),
            fault: None,
        }
    }
}

impl Candidates<'_> {
    /// Lists what an array of llama.cpp's holds.
    pub(super) fn take(&mut self, array: &TokenArray) {
        self.form = Form::List;
        self.ids.clear();
        self.logits.clear();
        self.ids.extend(array.data.iter().map(|c| c.id));
        self.logits.extend(array.data.iter().map(|c| c.logit));
        self.order = if array.sorted { Order::Sorted } else { Order::None };
        self.best_first = false;
        self.changed();
        self.recheck_order();
        self.selected = array.selected;
    }

    /// Ends a step: the borrow ends, the buffers stay. Candidates in the dense form are dropped.
    pub(super) fn end(mut self) -> Candidates<'static> {
        if self.form != Form::List {
            self.ids.clear();
            self.logits.clear();
            self.form = Form::List;
            self.selected = None;
            self.has_probabilities = false;
        }
        Candidates {
            form: self.form,
            base: Floats::F32(&[]),
            shapes: self.shapes,
            mask: self.mask,
            edits: self.edits,
            maxima: self.maxima,
            ids: self.ids,
            logits: self.logits,
            probabilities: self.probabilities,
            has_probabilities: self.has_probabilities,
            sums: self.sums,
            weight: None,
            highest: None,
            order: self.order,
            floor: self.floor,
            best_first: self.best_first,
            selected: self.selected,
            scratch: self.scratch,
            fault: self.fault,
        }
    }

    /// Invalidates what was computed from the logits.
    fn changed(&mut self) {
        self.has_probabilities = false;
        self.weight = None;
        self.highest = None;
    }

    /// An error with `message` if no candidate has a logit above -inf.
    fn check_alive(&self, message: &str) -> Result<()> {
        let alive = match self.form {
            Form::List => self.logits.iter().any(|&x| x > f32::NEG_INFINITY),
            _ => self.maxima.iter().any(|&x| x > f32::NEG_INFINITY),
        };
        if alive {
            return Ok(());
        }
        Err(super::none_left(message))
    }

    /// How many candidates there are, those at -inf included.
    pub fn len(&self) -> usize {
        match self.form {
            Form::Borrowed => self.base.len(),
            Form::Owned => self.logits.len(),
            Form::List => self.ids.len(),
        }
    }

    /// Whether there are no candidates, which is so only before the first step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the candidates are in descending order of logit (llama.cpp's flag, which samplers that do not read it
    /// leave as it is).
    pub fn is_sorted(&self) -> bool {
        self.order == Order::Sorted
    }

    /// The ids, in order. Empty in the dense form: see [`Candidates::list`].
    pub fn ids(&self) -> &[TokenId] {
        if self.form == Form::List {
            &self.ids
        } else {
            &[]
        }
    }

    /// The logits, in the order of [`Candidates::ids`]. Empty in the dense form.
    pub fn logits(&self) -> &[f32] {
        if self.form == Form::List {
            &self.logits
        } else {
            &[]
        }
    }

    /// The probabilities, in the order of the ids, if they were computed for what is left.
    pub fn probabilities(&self) -> &[f32] {
        if self.has_probabilities {
            &self.probabilities
        } else {
            &[]
        }
    }

    /// The position of the selected candidate.
    pub fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Selects the candidate at `position`.
    pub fn select(&mut self, position: usize) {
        self.selected = Some(position);
    }

    /// The id of the candidate at `position`.
    pub fn id_at(&self, position: usize) -> Option<TokenId> {
        match self.form {
            Form::List => self.ids.get(position).copied(),
            _ if position < self.len() => Some(position as TokenId),
            _ => None,
        }
    }

    /// The logit of the candidate at `position`.
    pub fn logit_at(&self, position: usize) -> Option<f32> {
        if position >= self.len() {
            return None;
        }
        let mut buffer = [0.0; BLOCK];
        self.block(position / BLOCK, &mut buffer).get(position % BLOCK).copied()
    }

    pub(super) fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    /// Records a sampler's error; the chain stops there with it.
    pub fn fail(&mut self, error: Error) {
        self.fault = Some(error);
    }

    /// Records an error if no candidate is left above -inf; the chain stops there.
    pub(super) fn fail_unless_alive(&mut self, message: &str) {
        if let Err(error) = self.check_alive(message) {
            self.fault = Some(error);
        }
    }

    /// The highest logit.
    pub fn max(&self) -> f32 {
        match self.form {
            Form::List if self.best_first => self.logits.first().copied().unwrap_or(f32::NEG_INFINITY),
            Form::List => self.highest.unwrap_or_else(|| plain_max(&self.logits)),
            _ => simd::max(&self.maxima),
        }
    }

    /// Position of the first candidate with the highest logit.
    pub fn first_max(&self) -> usize {
        let max = self.max();
        let (start, found) = match self.form {
            Form::List => (0, self.logits.iter().position(|&x| x == max)),
            _ => {
                let block = self.maxima.iter().position(|&x| x == max).unwrap_or(0);
                let mut buffer = [0.0; BLOCK];
                (block * BLOCK, self.block(block, &mut buffer).iter().position(|&x| x == max))
            }
        };
        start + found.unwrap_or(0)
    }

    /// Calls `f` with the id and the logit of each candidate, in order.
    pub fn for_each(&self, mut f: impl FnMut(TokenId, f32)) {
        let mut at = 0;
        self.for_each_logit(|x| {
            f(self.id_at(at).unwrap_or(TokenId::MAX), x);
            at += 1;
        });
    }

    /// Calls `f` with each logit, in order.
    pub fn for_each_logit(&self, mut f: impl FnMut(f32)) {
        self.for_each_block(|_, block| block.iter().for_each(|&x| f(x)));
    }

    /// Divides every logit by `t`, which is above 0 and small enough to leave them finite.
    pub(super) fn divide(&mut self, t: f32) {
        self.settle_nearest();
        self.changed();
        match self.form {
            Form::Borrowed => self.shape(Shape::Divide(t)),
            _ => {
                simd::divide(&mut self.logits, t);
                simd::divide(&mut self.maxima, t);
            }
        }
    }

    /// Sets to -inf every logit below `least`.
    pub(super) fn reject_below(&mut self, least: f32) {
        self.settle_nearest();
        self.changed();
        match self.form {
            Form::Borrowed => self.shape(Shape::Floor(least)),
            _ => {
                simd::reject_below(&mut self.logits, least);
                simd::reject_below(&mut self.maxima, least);
                self.recheck_order();
            }
        }
    }

    /// Sets to -inf every logit but the first highest.
    pub(super) fn keep_only_best(&mut self) {
        self.settle_nearest();
        let best = self.first_max();
        self.changed();
        match self.form {
            Form::Borrowed => self.shape(Shape::Only(best as TokenId)),
            _ => {
                let value = self.logits[best];
                self.logits.fill(f32::NEG_INFINITY);
                self.logits[best] = value;
                self.logits_written(best == 0);
            }
        }
    }

    /// All logits for writing, in order: copied from the borrowed ones if need be. Call
    /// [`Candidates::logits_written`] afterwards.
    pub fn logits_mut(&mut self) -> &mut [f32] {
        self.sort_now();
        if self.form == Form::Borrowed {
            self.copy_base();
        }
        self.changed();
        &mut self.logits
    }

    /// Declares that logits were written through [`Candidates::logits_mut`]: `monotone` if no two changed order.
    pub fn logits_written(&mut self, monotone: bool) {
        self.best_first &= monotone;
        self.recheck_order();
        if self.form == Form::Owned {
            simd::block_maxima(Floats::F32(&self.logits), &mut self.maxima);
        }
    }

    /// Changes the logits of the candidates that `table` (ascending ids) names: `f(logit, entry)`. The order flag
    /// stays, but see [`Candidates::unsort`].
    pub fn update<T>(&mut self, table: &[(TokenId, T)], f: impl Fn(f32, &T) -> f32) {
        self.sort_now();
        self.changed();
        self.best_first = false;
        match self.form {
            Form::List if self.order == Order::ById => {
                // Both ascend: a merge without a branch on which id is lower.
                let (mut at, mut row) = (0, 0);
                while at < self.ids.len() && row < table.len() {
                    let (id, named) = (self.ids[at], table[row].0);
                    if id == named {
                        self.logits[at] = f(self.logits[at], &table[row].1);
                    }
                    at += usize::from(id <= named);
                    row += usize::from(named <= id);
                }
            }
            Form::List => {
                for (id, x) in self.ids.iter().zip(&mut self.logits) {
                    if let Ok(at) = table.binary_search_by_key(id, |e| e.0) {
                        *x = f(*x, &table[at].1);
                    }
                }
                self.recheck_order();
            }
            Form::Borrowed if table.len() <= dense::MAX_EDITS => self.update_borrowed(table, f),
            _ => {
                let logits = self.logits_mut();
                for (id, entry) in table {
                    if let Some(x) = logits.get_mut(*id as usize) {
                        *x = f(*x, entry);
                    }
                }
                self.logits_written(false);
            }
        }
    }

    /// Clears the order flag, so that samplers that need the order sort again.
    pub fn unsort(&mut self) {
        self.sort_now();
        if self.order == Order::Sorted {
            self.order = Order::None;
        }
    }

    /// Clears the order flag for a sampler that llama.cpp lacks and that needs the true order: the first candidate may
    /// no longer be the best.
    pub(super) fn require_order(&mut self) {
        if self.order == Order::Sorted && !self.best_first {
            self.order = Order::None;
        }
    }

    /// Clears the order flag if the first candidate is at -inf: a sampler that takes it for the best would keep it
    /// alone. llama.cpp computes NaN then.
    fn recheck_order(&mut self) {
        let first = self.logits.first();
        if self.form == Form::List && self.order == Order::Sorted && first == Some(&f32::NEG_INFINITY) {
            self.order = Order::None;
        }
    }

    /// Turns the dense form into the list form.
    pub fn list(&mut self) {
        self.sort_now();
        self.list_in_order();
    }

    /// Turns the dense form into the list form, in the present order.
    fn list_in_order(&mut self) {
        if self.form == Form::List {
            return;
        }
        if self.form == Form::Borrowed {
            self.copy_base();
        }
        self.ids.clear();
        self.ids.extend(0..self.logits.len() as TokenId);
        self.form = Form::List;
    }

    /// Keeps the first `k` of the list.
    pub fn truncate(&mut self, k: usize) {
        self.list();
        if k < self.ids.len() {
            self.ids.truncate(k);
            self.logits.truncate(k);
            self.changed();
        }
    }

    /// How many candidates have a logit `>= threshold`.
    pub fn count_at_least(&self, threshold: f32) -> usize {
        let mut n = 0;
        self.for_each_block(|_, block| n += block.iter().filter(|&&x| x >= threshold).count());
        n
    }

    /// Keeps the candidates with a logit `>= threshold`, in their order.
    pub fn keep_at_least(&mut self, threshold: f32) {
        self.settle_nearest();
        self.changed();
        if self.form == Form::List {
            let mut kept = 0;
            for at in 0..self.ids.len() {
                if self.logits[at] >= threshold {
                    self.ids[kept] = self.ids[at];
                    self.logits[kept] = self.logits[at];
                    kept += 1;
                }
            }
            self.ids.truncate(kept);
            self.logits.truncate(kept);
            return;
        }
        let (mut ids, mut values) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.scratch.values));
        ids.clear();
        values.clear();
        let mut collect = |start: usize, xs: &[f32]| {
            simd::collect_reached(xs, threshold, start as TokenId, &mut ids, &mut values);
        };
        match self.base {
            Floats::F32(base)
                if self.form == Form::Borrowed && self.edits.is_empty() && self.shapes.is_empty() =>
            {
                // Blocks that follow each other are one run.
                let mut start = 0;
                for run in self.maxima.chunk_by(|a, b| (*a >= threshold) == (*b >= threshold)) {
                    let end = base.len().min(start + run.len() * BLOCK);
                    if run[0] >= threshold {
                        collect(start, &base[start..end]);
                    }
                    start = end;
                }
            }
            _ => self.for_each_block_reaching(threshold, |at, block| collect(at * BLOCK, block)),
        }
        self.keep_listed(ids, values);
    }

    /// Makes the list from ids and logits.
    fn keep_listed(&mut self, ids: Vec<TokenId>, logits: Vec<f32>) {
        self.ids = ids;
        self.scratch.values = std::mem::replace(&mut self.logits, logits);
        self.edits.clear();
        self.shapes.clear();
        self.form = Form::List;
        self.changed();
    }

    /// Keeps the candidates at these positions of the list, in that order; they count as unsorted.
    pub fn keep(&mut self, positions: impl Iterator<Item = usize>) {
        self.list();
        let mut keys = self.take_scratch();
        keys.extend(positions.map(|at| simd::descending_key(self.logits[at], self.ids[at])));
        self.scratch.keys = keys;
        self.take_keys();
        self.best_first = false;
        self.order = Order::None;
    }
}

/// Maximum of a short list.
fn plain_max(xs: &[f32]) -> f32 {
    if xs.len() > BLOCK {
        return simd::max(xs);
    }
    xs.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
}
