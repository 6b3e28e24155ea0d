//! Builds expressions in normal form: the simplifications that give equal languages equal ids often enough to
//! keep automata small.

use std::sync::Arc;

use super::counts::nested_counts;
use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs, Tag, EMPTY, NOTHING};
use crate::Result;

/// Depth and length limits of the search that decides whether a loop contains an expression; past them the
/// answer is "unknown".
pub(super) const WITHIN_DEPTH: u32 = 6;
const WITHIN_BYTES: usize = 64;
const WITHIN_PARTS: usize = 64;
/// Alternatives whose first parts are compared one by one.
const FEW_HEADS: usize = 6;
/// Limit on nested common prefixes that are factored out of alternatives.
const MAX_JOINED: u32 = 100;

impl Exprs {
    /// This string of bytes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel. The same holds for every method that
    /// makes expressions.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<ExprId> {
        if bytes.is_empty() {
            return Ok(EMPTY);
        }
        let from = self.pooled(bytes)?;
        self.pool_slice(from, from + bytes.len() as u32)
    }

    pub(super) fn pool_slice(&mut self, from: u32, to: u32) -> Result<ExprId> {
        if from == to {
            return Ok(EMPTY);
        }
        self.intern(ExprNode::Bytes(from, to))
    }

    /// The empty string, complete with `tag`.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn tag(&mut self, tag: Tag) -> Result<ExprId> {
        self.intern(ExprNode::Tag(tag))
    }

    /// One byte of the set.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn class(&mut self, set: ByteSet) -> Result<ExprId> {
        if set.is_empty() {
            return Ok(NOTHING);
        }
        self.intern(ExprNode::Class(set))
    }

    /// Every string of bytes.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn anything(&mut self) -> Result<ExprId> {
        self.not(NOTHING)
    }

    /// Concatenation. Only the last part may have tags.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn concat(&mut self, parts: &[ExprId]) -> Result<ExprId> {
        let Some((&last, before)) = parts.split_last() else { return Ok(EMPTY) };
        before.iter().rev().try_fold(last, |rest, &part| self.pair(part, rest))
    }

    pub(super) fn pair(&mut self, a: ExprId, b: ExprId) -> Result<ExprId> {
        match (a, b) {
            (NOTHING, _) | (_, NOTHING) => Ok(NOTHING),
            (EMPTY, other) | (other, EMPTY) => Ok(other),
            _ => self.intern(ExprNode::Concat(a, b)),
        }
    }

    /// `of` repeated at least `min` and at most `max` times; without tags inside.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn repeat(&mut self, of: ExprId, min: u32, max: Option<u32>) -> Result<ExprId> {
        // Decrementing an unbounded count leaves it unbounded.
        self.repeat_counted(of, min, max.map_or(ENDLESS, |max| max.min(ENDLESS - 1)))
    }

    pub(super) fn repeat_counted(&mut self, of: ExprId, min: u32, max: u32) -> Result<ExprId> {
        if max < min {
            return Ok(NOTHING);
        }
        if max == 0 || of == EMPTY {
            return Ok(EMPTY);
        }
        if of == NOTHING {
            return Ok(if min == 0 { EMPTY } else { NOTHING });
        }
        let min = if self.is_complete(of) { 0 } else { min };
        if (min, max) == (1, 1) {
            return Ok(of);
        }
        let bound = |max: u32| (max != ENDLESS).then_some(max);
        if let ExprNode::Repeat { of: inner, min: least, max: most } = *self.node(of) {
            if let Some((min, max)) = nested_counts((least, bound(most)), (min, bound(max))) {
                return self.repeat_counted(inner, min, max.unwrap_or(ENDLESS));
            }
        }
        self.intern(ExprNode::Repeat { of, min, max })
    }

    /// The complement over strings of bytes; without tags inside.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn not(&mut self, of: ExprId) -> Result<ExprId> {
        match *self.node(of) {
            ExprNode::Not(inner) => Ok(inner),
            _ => self.intern(ExprNode::Not(of)),
        }
    }

    fn is_anything(&self, e: ExprId) -> bool {
        matches!(self.node(e), ExprNode::Not(NOTHING))
    }

    /// Union.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn or(&mut self, parts: &[ExprId]) -> Result<ExprId> {
        match *parts {
            [] => return Ok(NOTHING),
            [only] => return Ok(only),
            [a, b] if a == b || b == NOTHING => return Ok(a),
            [NOTHING, b] => return Ok(b),
            _ => {}
        }
        let mut all = self.flat(parts, |node| match node {
            ExprNode::Or(parts) => Some(parts),
            _ => None,
        });
        self.charge_list(all.len())?;
        all.retain(|&e| e != NOTHING);
        if let Some(&any) = all.iter().find(|&&e| self.is_anything(e)) {
            return Ok(any);
        }
        if all.len() > 1 {
            self.absorb_in_loops(&mut all)?;
            self.merge_counts(&mut all)?;
            self.keep_fewest_rounds(&mut all)?;
            self.drop_empty(&mut all);
            self.join_heads(&mut all)?;
        }
        self.listed(all, NOTHING, ExprNode::Or)
    }

    /// The members of nested lists, sorted and without duplicates.
    fn flat(&self, parts: &[ExprId], nested: impl Fn(&ExprNode) -> Option<&Arc<[ExprId]>>) -> Vec<ExprId> {
        let mut all = Vec::with_capacity(parts.len() + 4);
        for &part in parts {
            match nested(self.node(part)) {
                Some(inner) => all.extend_from_slice(inner),
                None => all.push(part),
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn listed(
        &mut self,
        mut all: Vec<ExprId>,
        none: ExprId,
        node: fn(Arc<[ExprId]>) -> ExprNode,
    ) -> Result<ExprId> {
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [] => Ok(none),
            [only] => Ok(only),
            _ => self.intern(node(all.into())),
        }
    }

    /// Drops the empty string if another alternative is nullable with the same tag.
    fn drop_empty(&self, all: &mut Vec<ExprId>) {
        let says = |e: ExprId| e != EMPTY && self.outcomes(e).contains(&0);
        if all.first() == Some(&EMPTY) && all.iter().any(|&e| says(e)) {
            all.remove(0);
        }
    }

    /// Factors single bytes, `xr
    ///
    /// yr` into `[xy]r`, and common heads, `ax
    ///
    /// ay` into `a(x
    ///
    /// y)`.
    fn join_heads(&mut self, all: &mut Vec<ExprId>) -> Result<()> {
        let split = |exprs: &Exprs, e: ExprId| match *exprs.node(e) {
            ExprNode::Concat(a, b) => (a, b),
            _ => (e, EMPTY),
        };
        let is_class = |exprs: &Exprs, e: ExprId| matches!(exprs.node(e), ExprNode::Class(_));
        let apart = |exprs: &Exprs, a: ExprId, b: ExprId| {
            let (a, b) = (split(exprs, a), split(exprs, b));
            a.0 != b.0 && !(a.1 == b.1 && is_class(exprs, a.0) && is_class(exprs, b.0))
        };
        if all.len() <= FEW_HEADS
            && (1..all.len()).all(|n| all[..n].iter().all(|&other| apart(self, other, all[n])))
        {
            return Ok(());
        }
        let mut classes: Vec<(ExprId, ByteSet, ExprId)> = Vec::new();
        let mut others: Vec<(ExprId, ExprId, ExprId)> = Vec::new();
        for &e in all.iter() {
            let (head, rest) = split(self, e);
            match *self.node(head) {
                ExprNode::Class(set) => classes.push((rest, set, e)),
                _ => others.push((head, rest, e)),
            }
        }
        let mut joined = Vec::with_capacity(all.len());
        classes.sort_unstable();
        for run in classes.chunk_by(|a, b| a.0 == b.0) {
            if let [(_, _, whole)] = run {
                joined.push(*whole);
                continue;
            }
            let set = run.iter().fold(ByteSet::NONE, |set, (_, more, _)| set.or(more));
            let head = self.class(set)?;
            joined.push(self.pair(head, run[0].0)?);
        }
        others.sort_unstable();
        for run in others.chunk_by(|a, b| a.0 == b.0) {
            if let [(_, _, whole)] = run {
                joined.push(*whole);
                continue;
            }
            if self.joining == MAX_JOINED {
                joined.extend(run.iter().map(|way| way.2));
                continue;
            }
            let rests: Vec<ExprId> = run.iter().map(|&(_, rest, _)| rest).collect();
            self.joining += 1;
            let rest = self.or(&rests);
            self.joining -= 1;
            joined.push(self.pair(run[0].0, rest?)?);
        }
        *all = joined;
        Ok(())
    }

    /// `C*
    ///
    /// x` is `C*` if `C*` contains x.
    fn absorb_in_loops(&mut self, all: &mut Vec<ExprId>) -> Result<()> {
        let is_loop = |exprs: &Exprs, e: ExprId| {
            matches!(*exprs.node(e), ExprNode::Repeat { min: 0, max: ENDLESS, .. })
        };
        let Some(&outer) = all.iter().find(|&&e| is_loop(self, e)) else { return Ok(()) };
        let mut kept = Vec::with_capacity(all.len());
        for &e in all.iter() {
            if e == outer || !self.within(e, outer, WITHIN_DEPTH)? {
                kept.push(e);
            }
        }
        *all = kept;
        Ok(())
    }

    /// `x{9}C*
    ///
    /// x{7,8}C*` is `x{7}C*` if `C*` contains x. Without this, a search for many in a row has one state for
    /// each possible start.
    fn keep_fewest_rounds(&mut self, all: &mut Vec<ExprId>) -> Result<()> {
        let mut runs: Vec<(ExprId, ExprId, u32, ExprId)> = Vec::new();
        for &e in all.iter() {
            let ExprNode::Concat(head, rest) = *self.node(e) else { continue };
            let ExprNode::Repeat { of, min, .. } = *self.node(head) else { continue };
            if min > 0 && matches!(self.node(rest), ExprNode::Repeat { min: 0, max: ENDLESS, .. }) {
                runs.push((of, rest, min, e));
            }
        }
        if runs.len() < 2 {
            return Ok(());
        }
        runs.sort_unstable();
        for same in runs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (of, rest, min, _) = same[0];
            self.charge((same.len() * all.len()) as u64)?;
            if same.len() > 1 && self.within(of, rest, WITHIN_DEPTH)? {
                all.retain(|&e| same.iter().all(|run| run.3 != e));
                let head = self.repeat_counted(of, min, min)?;
                all.push(self.pair(head, rest)?);
            }
        }
        Ok(())
    }

    /// Whether the loop `outer` provably contains `e`; `false` means unknown.
    pub(super) fn within(&mut self, e: ExprId, outer: ExprId, depth: u32) -> Result<bool> {
        self.charge(2)?;
        if e == outer || e == EMPTY {
            return Ok(true);
        }
        let ExprNode::Repeat { of: body, .. } = *self.node(outer) else { return Ok(false) };
        if e == body || self.has_chars_of(e, body) {
            return Ok(true);
        }
        if depth == 0 {
            return Ok(false);
        }
        match self.node(e).clone() {
            ExprNode::Class(set) => Ok(match self.node(body) {
                ExprNode::Class(all) => set.without(all).is_empty(),
                ExprNode::Or(parts) => parts.iter().any(
                    |&part| matches!(self.node(part), ExprNode::Class(all) if set.without(all).is_empty()),
                ),
                _ => false,
            }),
            ExprNode::Bytes(from, to) if (to - from) as usize <= WITHIN_BYTES => {
                Ok(self.spells(body, from, to))
            }
            ExprNode::Concat(..) => {
                let mut at = e;
                for _ in 0..WITHIN_PARTS {
                    let ExprNode::Concat(a, b) = *self.node(at) else {
                        return self.within(at, outer, depth - 1);
                    };
                    if !self.within(a, outer, depth - 1)? {
                        return Ok(false);
                    }
                    at = b;
                }
                Ok(false)
            }
            ExprNode::Repeat { of, .. } => self.within(of, outer, depth - 1),
            ExprNode::Dfa(dfa, state) => self.dfa_within(dfa, state, outer),
            ExprNode::Or(parts) if parts.len() <= 16 => {
                for &part in parts.iter() {
                    if !self.within(part, outer, depth - 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ExprNode::And(parts) if parts.len() <= 16 => {
                for &part in parts.iter() {
                    if self.within(part, outer, depth - 1)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Whether both are classes of characters, and `all` has those of `e`.
    fn has_chars_of(&self, e: ExprId, all: ExprId) -> bool {
        match (self.class_sets.get(&e), self.class_sets.get(&all)) {
            (Some((some, one)), Some((all, other))) => one == other && some.and(all) == *some,
            _ => false,
        }
    }

    /// Whether iterations of `body` provably spell these bytes of the pool. Derivatives would recurse into this
    /// function.
    fn spells(&self, body: ExprId, from: u32, to: u32) -> bool {
        let text = self.bytes_of(from, to);
        let parts = match self.node(body) {
            ExprNode::Or(parts) => &parts[..],
            _ => std::slice::from_ref(&body),
        };
        let mut reached = vec![false; text.len() + 1];
        reached[0] = true;
        for at in 0..text.len() {
            if !reached[at] {
                continue;
            }
            for &part in parts {
                if let Some(len) = self.begins_with(part, &text[at..]) {
                    reached[at + len] = true;
                }
            }
        }
        reached[text.len()]
    }

    /// How many bytes of `text` a concatenation of classes and bytes matches, if it matches.
    fn begins_with(&self, part: ExprId, text: &[u8]) -> Option<usize> {
        let (mut at, mut next) = (0, Some(part));
        while let Some(e) = next {
            let head = match *self.node(e) {
                ExprNode::Concat(head, rest) => {
                    next = Some(rest);
                    head
                }
                _ => {
                    next = None;
                    e
                }
            };
            at += match *self.node(head) {
                ExprNode::Class(set) if set.contains(*text.get(at)?) => 1,
                ExprNode::Bytes(from, to) if text[at..].starts_with(self.bytes_of(from, to)) => {
                    (to - from) as usize
                }
                _ => return None,
            };
        }
        Some(at)
    }

    /// Intersection; an empty list is every string. Without tags inside.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn and(&mut self, parts: &[ExprId]) -> Result<ExprId> {
        if let [only] = *parts {
            return Ok(only);
        }
        let mut all = self.flat(parts, |node| match node {
            ExprNode::And(parts) => Some(parts),
            _ => None,
        });
        self.charge_list(all.len())?;
        if all.contains(&NOTHING) {
            return Ok(NOTHING);
        }
        if all.contains(&EMPTY) {
            return Ok(if all.iter().all(|&e| self.is_complete(e)) { EMPTY } else { NOTHING });
        }
        all.retain(|&e| !self.is_anything(e));
        let opposite = |exprs: &Exprs, e: ExprId| matches!(*exprs.node(e), ExprNode::Not(of) if all.binary_search(&of).is_ok());
        if all.iter().any(|&e| opposite(self, e)) {
            return Ok(NOTHING);
        }
        if all.is_empty() {
            return self.anything();
        }
        if all.len() > 1 && !(self.join_classes(&mut all)? && self.fit_in_loops(&mut all)?) {
            return Ok(NOTHING);
        }
        self.listed(all, NOTHING, ExprNode::And)
    }

    /// Intersects the single-byte members; false if the intersection is empty.
    fn join_classes(&mut self, all: &mut Vec<ExprId>) -> Result<bool> {
        let mut common: Option<ByteSet> = None;
        all.retain(|&e| match *self.node(e) {
            ExprNode::Class(set) => {
                common = Some(common.map_or(set, |so_far| so_far.and(&set)));
                false
            }
            _ => true,
        });
        let Some(set) = common else { return Ok(true) };
        all.push(self.class(set)?);
        Ok(!set.is_empty())
    }

    /// `C* & x` is x if `C*` contains x, and `~(C*) & x` is empty then: false.
    fn fit_in_loops(&mut self, all: &mut Vec<ExprId>) -> Result<bool> {
        let is_loop = |exprs: &Exprs, e: ExprId| {
            matches!(*exprs.node(e), ExprNode::Repeat { min: 0, max: ENDLESS, .. })
        };
        for part in all.clone() {
            let (outer, is_negated) = match *self.node(part) {
                ExprNode::Not(of) => (of, true),
                _ => (part, false),
            };
            if !is_loop(self, outer) {
                continue;
            }
            for other in all.clone() {
                if other != part && self.within(other, outer, WITHIN_DEPTH)? {
                    if is_negated {
                        return Ok(false);
                    }
                    all.retain(|&e| e != part);
                    break;
                }
            }
        }
        Ok(true)
    }

    /// The offset of `bytes` in the pool.
    fn pooled(&mut self, bytes: &[u8]) -> Result<u32> {
        if let Some(&from) = self.texts.get(bytes) {
            return Ok(from);
        }
        self.spend(bytes.len() as u64 / 16)?;
        let from = self.pool.len();
        if from + bytes.len() > u32::MAX as usize {
            return Err(crate::Error::new(crate::ErrorKind::Limit, "more than 4 GiB of literal text"));
        }
        self.pool.extend_from_slice(bytes);
        self.texts.insert(bytes.into(), from as u32);
        Ok(from as u32)
    }
}
