//! The candidates: what may still be picked, with logits, in the order that later samplers see.
//!
//! Two forms, and samplers need not care which:
//! - *dense*: ids 0..n in order. The logits stay borrowed from the caller, never copied and never written; the
//!   few that a sampler changed stand aside as edits. The maximum of each block of 256 is known, so that the
//!   best k, the first maximum, or all above a threshold are found by looking into few blocks.
//! - *list*: ids and logits, one entry each, in any order. With a mask it starts as the legal ids, ascending.
//!
//! The file refuses to know any sampler's rule.

use super::TokenArray;
use crate::kernel::{self, Floats, BLOCK};
use crate::{Error, Result, TokenId};

mod begin;

/// The candidates of one step. `'l` is the caller's logits; `'static` once a step is over and all are listed.
#[derive(Debug, Clone, Default)]
pub struct Candidates<'l> {
    form: Form,
    /// Borrowed logits (dense form).
    base: &'l [f32],
    /// Changed logits by ascending id (dense form, while `base` is what is read).
    edits: Vec<(TokenId, f32)>,
    /// Maximum of each block, edits included (dense form).
    maxima: Vec<f32>,
    /// Ids (list form).
    ids: Vec<TokenId>,
    /// Logits of `ids` (list form), or of all ids (owned dense form).
    logits: Vec<f32>,
    probabilities: Vec<f32>,
    /// Whether `probabilities` is one for each candidate and sums to one.
    has_probabilities: bool,
    order: Order,
    /// Whether the first candidate has the highest logit.
    best_first: bool,
    selected: Option<usize>,
    keys: Vec<u64>,
    fault: Option<Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Form {
    /// Dense, read from `base` and `edits`.
    Borrowed,
    /// Dense, read from `logits`.
    Owned,
    #[default]
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Order {
    /// By ascending id.
    ById,
    /// Descending, or held to be so as llama.cpp's flag says.
    Sorted,
    #[default]
    None,
}

/// Above this many edits at once the dense logits are copied.
const MOST_EDITS: usize = 4096;

impl<'l> Candidates<'l> {
    /// Lists what an array of llama.cpp's holds.
    pub(super) fn take(&mut self, array: &TokenArray) {
        self.form = Form::List;
        self.ids.clear();
        self.logits.clear();
        self.ids.extend(array.data.iter().map(|c| c.id));
        self.logits.extend(array.data.iter().map(|c| c.logit));
        self.order = if array.sorted { Order::Sorted } else { Order::None };
        self.best_first = false;
        self.has_probabilities = false;
        self.selected = array.selected;
    }

    /// Ends a step: the borrow ends, the buffers stay. What was not listed is gone.
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
            base: &[],
            edits: self.edits,
            maxima: self.maxima,
            ids: self.ids,
            logits: self.logits,
            probabilities: self.probabilities,
            has_probabilities: self.has_probabilities,
            order: self.order,
            best_first: self.best_first,
            selected: self.selected,
            keys: self.keys,
            fault: self.fault,
        }
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

    /// Whether there is none, which is so only before the first step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the candidates stand in descending order of logit (llama.cpp's flag: kept by samplers that do not
    /// look at it).
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

    /// Where in the order the selected candidate stands.
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

    pub(super) fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    /// Notes an error if no candidate is left above -inf; the chain stops there.
    pub(super) fn fail_unless_alive(&mut self, message: &str) {
        if let Err(error) = self.check_alive(message) {
            self.fault = Some(error);
        }
    }

    /// The highest logit.
    pub fn max(&self) -> f32 {
        match self.form {
            Form::List if self.best_first => self.logits.first().copied().unwrap_or(f32::NEG_INFINITY),
            Form::List => plain_max(&self.logits),
            _ => kernel::max(&self.maxima),
        }
    }

    /// Position of the first candidate with the highest logit.
    pub fn first_max(&self) -> usize {
        let max = self.max();
        let (start, found) = match self.form {
            Form::List => (0, self.logits.iter().position(|&x| x == max)),
            _ => {
                let block = self.maxima.iter().position(|&x| x == max).unwrap_or(0);
                let mut patched = [0.0; BLOCK];
                (block * BLOCK, self.block(block, &mut patched).iter().position(|&x| x == max))
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
        if self.form == Form::Borrowed && !self.edits.is_empty() {
            let mut patched = [0.0; BLOCK];
            for block in 0..self.maxima.len() {
                self.block(block, &mut patched).iter().for_each(|&x| f(x));
            }
        } else {
            self.values().iter().for_each(|&x| f(x));
        }
    }

    /// The logits in one piece: right only if there are no edits.
    fn values(&self) -> &[f32] {
        match self.form {
            Form::Borrowed => self.base,
            _ => &self.logits,
        }
    }

    /// The logits of one block of the dense form, edits included.
    fn block<'a>(&'a self, block: usize, patched: &'a mut [f32; BLOCK]) -> &'a [f32] {
        let start = block * BLOCK;
        let values = self.values();
        let plain = &values[start..values.len().min(start + BLOCK)];
        let first = self.edits.partition_point(|e| (e.0 as usize) < start);
        let edits = &self.edits[first..];
        if edits.first().is_none_or(|e| e.0 as usize >= start + BLOCK) {
            return plain;
        }
        let patched = &mut patched[..plain.len()];
        patched.copy_from_slice(plain);
        for &(id, x) in edits.iter().take_while(|e| (e.0 as usize) < start + BLOCK) {
            patched[id as usize - start] = x;
        }
        patched
    }

    /// All logits for writing, in order: copied from the borrowed ones if need be. Call
    /// [`Candidates::logits_written`] afterwards.
    pub fn logits_mut(&mut self) -> &mut [f32] {
        if self.form == Form::Borrowed {
            self.logits.clear();
            self.logits.extend_from_slice(self.base);
            for &(id, x) in &self.edits {
                self.logits[id as usize] = x;
            }
            self.edits.clear();
            self.form = Form::Owned;
        }
        self.has_probabilities = false;
        &mut self.logits
    }

    /// Takes note of what was written through [`Candidates::logits_mut`]: `monotone` if no two changed order.
    pub fn logits_written(&mut self, monotone: bool) {
        self.best_first &= monotone;
        if self.form == Form::Owned {
            kernel::block_maxima(Floats::F32(&self.logits), &mut self.maxima);
        }
    }

    /// Changes the logits of the candidates that `table` (ascending ids) names: `f(logit, entry)`. The order flag
    /// stays, but see [`Candidates::unsort`].
    pub fn update<T>(&mut self, table: &[(TokenId, T)], f: impl Fn(f32, &T) -> f32) {
        self.has_probabilities = false;
        self.best_first = false;
        match self.form {
            Form::List if self.order == Order::ById => {
                // Both ascend: one merge, without a branch that depends on which is ahead.
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
            }
            Form::Borrowed if table.len() <= MOST_EDITS => self.update_borrowed(table, f),
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

    fn update_borrowed<T>(&mut self, table: &[(TokenId, T)], f: impl Fn(f32, &T) -> f32) {
        let old = self.edits.len();
        for (id, entry) in table {
            match self.edits[..old].binary_search_by_key(id, |e| e.0) {
                Ok(at) => self.edits[at].1 = f(self.edits[at].1, entry),
                Err(_) => {
                    if let Some(&x) = self.base.get(*id as usize) {
                        self.edits.push((*id, f(x, entry)));
                    }
                }
            }
        }
        if old > 0 {
            self.edits.sort_unstable_by_key(|e| e.0);
        }
        let mut patched = [0.0; BLOCK];
        let mut last = usize::MAX;
        for at in 0..self.edits.len() {
            let block = self.edits[at].0 as usize / BLOCK;
            if block != last {
                self.maxima[block] = kernel::max(self.block(block, &mut patched));
                last = block;
            }
        }
    }

    /// Takes the order flag away, so that samplers which need the order sort again.
    pub fn unsort(&mut self) {
        if self.order == Order::Sorted {
            self.order = Order::None;
        }
    }

    /// Turns the dense form into the list form.
    pub fn list(&mut self) {
        if self.form == Form::List {
            return;
        }
        if self.form == Form::Borrowed {
            let had = self.has_probabilities;
            self.logits_mut();
            self.has_probabilities = had;
        }
        self.ids.clear();
        self.ids.extend(0..self.logits.len() as TokenId);
        self.form = Form::List;
    }

    /// Keeps the `k` (at least 1) candidates with the highest logits, in descending order; equal logits keep
    /// their order. Sorted candidates are only cut.
    pub fn top(&mut self, k: usize) {
        let k = k.clamp(1, self.len().max(1));
        if self.order == Order::Sorted {
            return self.truncate(k);
        }
        self.rank(k);
        self.keep_ranked(k);
    }

    /// Sorts all candidates in descending order of logit.
    pub fn sort(&mut self) {
        self.top(self.len());
    }

    /// Ranks the `k` best (1 to all) without changing anything: read them with [`Candidates::ranked`], keep them
    /// with [`Candidates::keep_ranked`].
    pub(super) fn rank(&mut self, k: usize) {
        let mut keys = self.take_scratch();
        if self.form != Form::List && k <= self.maxima.len() {
            self.collect_top(k, &mut keys);
        } else {
            let mut at = 0;
            self.for_each_logit(|x| {
                keys.push(kernel::descending_key(x, at));
                at += 1;
            });
        }
        if k < keys.len() {
            keys.select_nth_unstable(k);
            keys.truncate(k);
        }
        keys.sort_unstable();
        self.keys = keys;
    }

    /// The logits of the ranked candidates, descending.
    pub(super) fn ranked(&self) -> impl Iterator<Item = f32> + '_ {
        self.keys.iter().map(|&key| kernel::from_key(key).0)
    }

    /// Keeps the first `n` of the ranked candidates, sorted.
    pub(super) fn keep_ranked(&mut self, n: usize) {
        self.keys.truncate(n);
        if self.form == Form::List {
            for key in &mut self.keys {
                let at = kernel::from_key(*key).1;
                *key = *key & !0xffff_ffff | u64::from(self.ids[at as usize]);
            }
        }
        self.take_keys();
        self.order = Order::Sorted;
        self.best_first = true;
    }

    /// Collects the keys of at least the best `k` of the dense form, `k` not above the number of blocks: the k-th
    /// highest block maximum is a bound that k elements reach.
    fn collect_top(&self, k: usize, keys: &mut Vec<u64>) {
        keys.extend(self.maxima.iter().map(|&x| kernel::descending_key(x, 0)));
        let bound = kernel::from_key(*keys.select_nth_unstable(k - 1).1).0;
        keys.clear();
        self.collect_at_least(bound, keys);
    }

    /// Collects the keys, by id, of the elements of the dense form that are `>= threshold`.
    fn collect_at_least(&self, threshold: f32, keys: &mut Vec<u64>) {
        let mut patched = [0.0; BLOCK];
        for (block, &max) in self.maxima.iter().enumerate() {
            if max >= threshold {
                let first = (block * BLOCK) as TokenId;
                kernel::collect_keys(self.block(block, &mut patched), threshold, first, keys);
            }
        }
    }

    /// Makes the list from the keys, whose low half is an id.
    fn take_keys(&mut self) {
        self.ids.clear();
        self.logits.clear();
        for &key in &self.keys {
            let (x, id) = kernel::from_key(key);
            self.ids.push(id);
            self.logits.push(x);
        }
        self.edits.clear();
        self.form = Form::List;
        self.has_probabilities = false;
    }

    /// Keeps the first `k` of the list.
    pub fn truncate(&mut self, k: usize) {
        self.list();
        self.ids.truncate(k);
        self.logits.truncate(k);
        self.has_probabilities = false;
    }

    /// How many candidates have a logit `>= threshold`.
    pub fn count_at_least(&self, threshold: f32) -> usize {
        let mut n = 0;
        self.for_each_logit(|x| n += usize::from(x >= threshold));
        n
    }

    /// Keeps the candidates with a logit `>= threshold`, in their order.
    pub fn keep_at_least(&mut self, threshold: f32) {
        self.has_probabilities = false;
        if self.form == Form::List {
            let mut kept = 0;
            for at in 0..self.ids.len() {
                if self.logits[at] >= threshold {
                    self.ids[kept] = self.ids[at];
                    self.logits[kept] = self.logits[at];
                    kept += 1;
                }
            }
            return self.truncate(kept);
        }
        let mut keys = self.take_scratch();
        self.collect_at_least(threshold, &mut keys);
        self.keys = keys;
        self.take_keys();
    }

    /// Makes the list from keys whose low half is a position in the present list, in that order; it counts as
    /// unsorted.
    pub(super) fn rearrange(&mut self, mut keys: Vec<u64>) {
        self.list();
        for key in &mut keys {
            let at = *key as u32 as usize;
            *key = kernel::descending_key(self.logits[at], self.ids[at]);
        }
        self.keys = keys;
        self.take_keys();
        self.best_first = false;
        self.order = Order::None;
    }

    /// The scratch that samplers sort in; [`Candidates::rearrange`] takes it back.
    pub(super) fn take_scratch(&mut self) -> Vec<u64> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys
    }

    /// A buffer for one probability a candidate, and the way to fill it: exp(logit - max), in order, each passed
    /// to `f`.
    pub(super) fn exponentials(&mut self, mut f: impl FnMut(f32)) -> &mut Vec<f32> {
        let max = self.max();
        let mut p = std::mem::take(&mut self.probabilities);
        p.clear();
        p.reserve(self.len());
        self.for_each_logit(|x| {
            let e = (x - max).exp();
            f(e);
            p.push(e);
        });
        self.probabilities = p;
        self.has_probabilities = false;
        &mut self.probabilities
    }

    /// Declares that the buffer of [`Candidates::exponentials`] now holds probabilities.
    pub(super) fn normalised(&mut self) {
        self.has_probabilities = true;
    }

    /// Computes the probabilities of what is left, if no sampler has: softmax with f32 sums, in order.
    pub fn normalise(&mut self) {
        if self.has_probabilities || self.is_empty() {
            return;
        }
        let mut sum = 0.0f32;
        for p in self.exponentials(|e| sum += e) {
            *p /= sum;
        }
        self.has_probabilities = true;
    }
}

/// Maximum of a short list.
fn plain_max(xs: &[f32]) -> f32 {
    if xs.len() > BLOCK {
        return kernel::max(xs);
    }
    xs.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
}
