//! llama.cpp's array of candidates: keeps those that are allowed, in their order, and selects among them.
//!
//! The naive version of [`Candidates::keep`] asks of every candidate whether it is allowed (`keep_each`), and the tests
//! compare the two. The step away from it: `llama_sampler_sample` fills the array so that the candidate at `i` has the id
//! `i`; where that still holds for every allowed id, a short list of ids is gathered without a look at the others.

use logitree::{AllowedTokens, TokenId};

use crate::split::split;

/// `llama_token_data`: a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct TokenData {
    /// The token.
    pub id: i32,
    /// Its logit.
    pub logit: f32,
    /// Its probability, where a sampler has computed it.
    pub p: f32,
}

/// The candidates of one step: `llama_token_data_array` with its pointer resolved.
#[derive(Debug)]
pub struct Candidates<'a> {
    /// The memory of the array; the first `size` are candidates.
    pub data: &'a mut [TokenData],
    /// Number of candidates.
    pub size: usize,
    /// Position of the selected candidate; negative: none is selected.
    pub selected: i64,
    /// Whether logits descend.
    pub is_sorted: bool,
}

impl<'a> Candidates<'a> {
    /// All of `data`, unsorted, with no candidate selected: what `llama_sampler_sample` hands to a chain.
    pub fn new(data: &'a mut [TokenData]) -> Candidates<'a> {
        Candidates { size: data.len(), data, selected: -1, is_sorted: false }
    }

    /// The candidates.
    pub fn list(&self) -> &[TokenData] {
        &self.data[..self.size]
    }

    /// Removes every candidate that is not allowed or has an id of `vocabulary_size` or more. The others keep their order.
    pub fn keep(&mut self, allowed: AllowedTokens<'_>, vocabulary_size: usize) {
        match allowed {
            AllowedTokens::Ids(ids) if self.is_at_its_id(ids, vocabulary_size) => self.gather(ids),
            AllowedTokens::All if self.size <= vocabulary_size && self.is_in_place() => {}
            allowed => self.keep_each(|id| (id as usize) < vocabulary_size && allowed.contains(id)),
        }
    }

    /// Writes -inf over the logit of every candidate that [`Candidates::keep`] would remove, and leaves the rest of the array
    /// as it is; gives the number of the others.
    pub fn mask(&mut self, allowed: AllowedTokens<'_>, vocabulary_size: usize) -> usize {
        let (is_gathered, mut kept, mut next) = match allowed {
            AllowedTokens::Ids(ids) => (self.is_at_its_id(ids, vocabulary_size), 0, ids.iter().peekable()),
            _ => (false, 0, [].iter().peekable()),
        };
        for (at, candidate) in self.data[..self.size].iter_mut().enumerate() {
            let is_allowed = if is_gathered {
                next.next_if(|&&id| id as usize == at).is_some()
            } else {
                let known = |id: &TokenId| (*id as usize) < vocabulary_size && allowed.contains(*id);
                u32::try_from(candidate.id).ok().as_ref().is_some_and(known)
            };
            if is_allowed {
                kept += 1;
                continue;
            }
            candidate.logit = f32::NEG_INFINITY;
            if self.selected == at as i64 {
                self.selected = -1;
            }
        }
        self.is_sorted &= kept == self.size;
        kept
    }

    /// Whether each id is below the size and is the candidate at that position.
    fn is_at_its_id(&self, ids: &[TokenId], vocabulary_size: usize) -> bool {
        let here = |id: &TokenId| self.list().get(*id as usize).is_some_and(|found| found.id as u32 == *id);
        ids.iter().all(|id| (*id as usize) < vocabulary_size && here(id))
    }

    /// Whether the candidate at each position has that id.
    fn is_in_place(&self) -> bool {
        self.list().iter().zip(0..).all(|(candidate, at)| candidate.id == at)
    }

    /// Keeps the candidates at these ascending positions. What is written was read before: the k-th position is at
    /// least k.
    fn gather(&mut self, positions: &[TokenId]) {
        let before = self.selected;
        self.selected = -1;
        for (at, &position) in positions.iter().enumerate() {
            if before == i64::from(position) {
                self.selected = at as i64;
            }
            self.data[at] = self.data[position as usize];
        }
        self.size = positions.len();
    }

    /// Keeps the candidates whose ids `is_kept` keeps.
    fn keep_each(&mut self, is_kept: impl Fn(TokenId) -> bool) {
        let before = self.selected;
        self.selected = -1;
        let mut kept = 0;
        for at in 0..self.size {
            let candidate = self.data[at];
            if u32::try_from(candidate.id).is_ok_and(&is_kept) {
                if before == at as i64 {
                    self.selected = kept as i64;
                }
                self.data[kept] = candidate;
                kept += 1;
            }
        }
        self.size = kept;
    }

    /// Adds to the logit of a candidate, if it is one.
    pub fn add(&mut self, id: TokenId, by: f32) {
        if let Some(at) = self.position(id) {
            self.data[at].logit += by;
            self.is_sorted = false;
        }
    }

    /// Leaves the candidate with the largest logit, the first of equal ones, and selects it; NaN is below every number.
    pub fn select_largest(&mut self) {
        let mut best = 0;
        for (at, candidate) in self.list().iter().enumerate() {
            let is_number = !candidate.logit.is_nan();
            if candidate.logit > self.data[best].logit || (is_number && self.data[best].logit.is_nan()) {
                best = at;
            }
        }
        if self.size > 0 {
            self.select_only(self.data[best]);
        }
    }

    /// Leaves this candidate alone and selects it.
    pub fn select_only(&mut self, candidate: TokenData) {
        self.data[0] = TokenData { p: 1.0, ..candidate };
        (self.size, self.selected, self.is_sorted) = (1, 0, true);
    }

    /// The candidate with this id; a candidate with a logit of 0 if there is none.
    pub fn find(&self, id: TokenId) -> TokenData {
        let missing = TokenData { id: id as i32, logit: 0.0, p: 0.0 };
        self.position(id).map_or(missing, |at| self.data[at])
    }

    fn position(&self, id: TokenId) -> Option<usize> {
        match self.list().get(id as usize) {
            Some(found) if found.id as u32 == id => Some(id as usize),
            _ => self.list().iter().position(|found| found.id as u32 == id),
        }
    }

    /// Writes the logits by id over `out`; -inf where an id below `vocabulary_size` is no candidate.
    pub fn logits(&self, vocabulary_size: usize, out: &mut Vec<f32>) {
        // What was written before is written over: nothing is cleared first.
        out.resize(vocabulary_size, f32::NEG_INFINITY);
        if self.size >= vocabulary_size && split(&self.data[..vocabulary_size], out) {
            return;
        }
        out.fill(f32::NEG_INFINITY);
        for candidate in self.list() {
            let id = usize::try_from(candidate.id).unwrap_or(usize::MAX);
            if let Some(logit) = out.get_mut(id) {
                *logit = candidate.logit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed number for each id.
    fn logit_of(id: i32) -> f32 {
        (id % 13 * 7 % 13) as f32
    }

    fn with_ids(ids: &[i32]) -> Vec<TokenData> {
        ids.iter().map(|&id| TokenData { id, logit: logit_of(id), p: 0.0 }).collect()
    }

    /// What is left after `keep`: ids, and the id that is selected.
    fn kept(ids: &[i32], selected: i64, allowed: AllowedTokens<'_>, size: usize) -> (Vec<i32>, Option<i32>) {
        let mut data = with_ids(ids);
        let mut candidates = Candidates::new(&mut data);
        candidates.selected = selected;
        candidates.keep(allowed, size);
        let left = candidates.list().iter().map(|candidate| candidate.id).collect();
        let at = usize::try_from(candidates.selected).ok();
        (left, at.map(|at| candidates.list()[at].id))
    }

    /// The same of `mask`: what still has its logit.
    fn masked(
        ids: &[i32],
        selected: i64,
        allowed: AllowedTokens<'_>,
        size: usize,
    ) -> (Vec<i32>, Option<i32>) {
        let mut data = with_ids(ids);
        let mut candidates = Candidates::new(&mut data);
        candidates.selected = selected;
        let kept = candidates.mask(allowed, size);
        assert_eq!(candidates.size, ids.len());
        let at = usize::try_from(candidates.selected).ok();
        let chosen = at.map(|at| candidates.list()[at].id);
        let has_logit = |found: &&TokenData| found.logit == logit_of(found.id);
        let left: Vec<i32> = candidates.list().iter().filter(has_logit).map(|found| found.id).collect();
        assert_eq!(left.len(), kept);
        (left, chosen)
    }

    #[test]
    fn every_path_keeps_what_the_naive_version_keeps() {
        let orders: [&[i32]; 4] =
            [&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[9, 3, 0, 5, 1, 7], &[0, 1, 2], &[-1, 4, 2_000_000_000, 3]];
        let lists: [&[u32]; 5] = [&[], &[3], &[0, 2, 5, 9], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[3, 40]];
        for ids in orders {
            for list in lists {
                for size in [4, 10, 64] {
                    for selected in [-1, 0, 1, 2] {
                        let naive = |id: &i32| {
                            u32::try_from(*id)
                                .is_ok_and(|id| (id as usize) < size && list.binary_search(&id).is_ok())
                        };
                        let expected: Vec<i32> = ids.iter().copied().filter(|id| naive(id)).collect();
                        let chosen = usize::try_from(selected).ok().map(|at| ids[at]).filter(naive);
                        let mut words = [0u32; 2];
                        AllowedTokens::Ids(list).write(64, &mut words);
                        for allowed in [AllowedTokens::Ids(list), AllowedTokens::Mask(&words)] {
                            let got = kept(ids, selected, allowed, size);
                            assert_eq!(got, (expected.clone(), chosen), "{ids:?} {list:?} {size} {selected}");
                            let got = masked(ids, selected, allowed, size);
                            assert_eq!(got, (expected.clone(), chosen), "{ids:?} {list:?} {size} {selected}");
                        }
                    }
                }
            }
            let expected: Vec<i32> = ids.iter().copied().filter(|id| (0..4).contains(id)).collect();
            assert_eq!(kept(ids, -1, AllowedTokens::All, 4).0, expected);
        }
    }

    #[test]
    fn the_largest_is_the_first_of_equal_ones_and_nan_is_below_all() {
        for (logits, best) in [
            (vec![1.0, 5.0, 5.0], 1),
            (vec![f32::NAN, f32::NEG_INFINITY, 0.5], 2),
            (vec![f32::NAN, f32::NAN], 0),
            (vec![f32::NEG_INFINITY, f32::NEG_INFINITY], 0),
        ] {
            let data = logits.iter().zip(0..).map(|(&logit, id)| TokenData { id, logit, p: 0.0 });
            let mut data: Vec<TokenData> = data.collect();
            let mut candidates = Candidates::new(&mut data);
            candidates.select_largest();
            assert_eq!((candidates.size, candidates.selected, candidates.data[0].id), (1, 0, best));
        }
        let mut empty = Candidates::new(&mut []);
        empty.select_largest();
        assert_eq!((empty.size, empty.selected), (0, -1));
    }

    #[test]
    fn logits_come_by_id_whatever_the_order() {
        let mut logits = Vec::new();
        for (ids, n) in [(vec![0, 1, 2, 3], 4), (vec![0, 1, 2, 3], 3), (vec![3, 1, -5, 90], 5), (vec![0], 3)]
        {
            let mut data = with_ids(&ids);
            Candidates::new(&mut data).logits(n, &mut logits);
            let naive: Vec<f32> = (0..n as i32)
                .map(|id| if ids.contains(&id) { logit_of(id) } else { f32::NEG_INFINITY })
                .collect();
            assert_eq!(logits, naive, "{ids:?}");
        }
    }

    #[test]
    fn a_bias_goes_to_its_candidate_alone() {
        let mut data = with_ids(&[5, 1]);
        let mut candidates = Candidates { is_sorted: true, ..Candidates::new(&mut data) };
        candidates.add(9, 1.0);
        assert!(candidates.is_sorted);
        candidates.add(1, 2.5);
        assert_eq!((candidates.data[1].logit, candidates.is_sorted), (9.5, false));
        assert_eq!(candidates.find(1).logit, 9.5);
        assert_eq!(candidates.find(77), TokenData { id: 77, logit: 0.0, p: 0.0 });
    }
}
