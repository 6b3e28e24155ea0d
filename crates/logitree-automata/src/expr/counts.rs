//! Counts of repetitions: a repetition of a repetition as one, and alternatives that differ in counts only.
//!
//! ```text
//! (x{0,3}){0,3}               x{0,9}
//! x{0,3}y{2}z | x{2,5}y{2}z   x{0,5}y{2}z
//! x{0,3}y{2}z | x{1,2}y{2}z   x{0,3}y{2}z
//! ```
//!
//! Without this, the derivatives of nested counts have an alternative for each way to distribute what was read over
//! the levels.

use super::node::{ExprNode, ENDLESS};
use super::{ExprId, Exprs, EMPTY};
use crate::Result;

/// The bounds of a repetition; `None` is unbounded.
pub type Counts = (u32, Option<u32>);

/// The bounds of one repetition that equals `outer` repetitions of `inner` repetitions, if there is one.
///
/// k times `a` to `b` are `ka` to `kb`. These ranges meet for all k from `outer.0` on if the first two do, for later
/// ones are wider.
pub fn nested_counts(inner: Counts, outer: Counts) -> Option<Counts> {
    let ((a, b), (c, d)) = (inner, outer);
    let least = a.checked_mul(c)?;
    let most = match (b, d) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        // No text is long enough for more.
        (Some(b), Some(d)) => b.checked_mul(d).filter(|&most| most < ENDLESS),
        _ => None,
    };
    let next = u64::from(a) * (u64::from(c) + 1);
    let end = match b {
        _ if c == 0 => 0,
        Some(b) => u64::from(b) * u64::from(c),
        None => u64::MAX - 1,
    };
    (d == Some(c) || next <= end + 1).then_some((least, most))
}

/// More alternatives of one shape are not compared.
const MAX_COMPARED: usize = 256;
/// Longer concatenations are not compared.
const MAX_PARTS: usize = 64;

/// How two alternatives of one shape compare.
enum Compared {
    /// The first contains the second.
    Contains,
    /// The second contains the first.
    Within,
    /// They differ in one repetition, and one with these bounds is the union.
    Union { min: u32, max: u32 },
    /// None of these.
    Apart,
}

impl Exprs {
    /// Merges alternatives that differ in the counts of one repetition, and drops those that another one contains by
    /// its counts.
    pub(super) fn merge_counts(&mut self, all: &mut Vec<ExprId>) -> Result<()> {
        if !all.iter().any(|&e| self.is_counted(e)) {
            return Ok(());
        }
        self.drop_rests(all)?;
        let mut counted: Vec<(u64, ExprId)> =
            all.iter().filter(|&&e| self.is_counted(e)).map(|&e| (self.facts(e).shape, e)).collect();
        self.charge_list(counted.len())?;
        counted.sort_unstable();
        if counted.windows(2).all(|pair| pair[0].0 != pair[1].0) {
            return Ok(());
        }
        all.retain(|&e| !self.is_counted(e));
        for same in counted.chunk_by(|a, b| a.0 == b.0) {
            if same.len() == 1 || same.len() > MAX_COMPARED {
                all.extend(same.iter().map(|one| one.1));
                continue;
            }
            let mut kept: Vec<ExprId> = Vec::new();
            let mut left: Vec<ExprId> = same.iter().rev().map(|one| one.1).collect();
            while let Some(mut e) = left.pop() {
                let mut n = 0;
                while n < kept.len() {
                    match self.compare_counts(e, kept[n])? {
                        Compared::Apart => n += 1,
                        Compared::Contains => drop(kept.swap_remove(n)),
                        Compared::Within => {
                            e = kept.swap_remove(n);
                            break;
                        }
                        Compared::Union { min, max } => {
                            let other = kept.swap_remove(n);
                            e = self.with_counts(e, other, min, max)?;
                            n = 0;
                        }
                    }
                }
                kept.push(e);
            }
            all.extend(kept);
        }
        all.sort_unstable();
        all.dedup();
        Ok(())
    }

    /// Drops `r` where `x{0,n}r` is an alternative too. `all` is sorted.
    fn drop_rests(&mut self, all: &mut Vec<ExprId>) -> Result<()> {
        self.charge(all.len() as u64)?;
        let rest_of = |exprs: &Exprs, e: ExprId| match *exprs.node(e) {
            ExprNode::Concat(head, rest) => {
                matches!(exprs.node(head), ExprNode::Repeat { min: 0, .. }).then_some(rest)
            }
            _ => None,
        };
        let mut contained: Vec<ExprId> = all.iter().filter_map(|&e| rest_of(self, e)).collect();
        if contained.is_empty() {
            return Ok(());
        }
        self.charge(4 * all.len() as u64)?;
        contained.sort_unstable();
        // A rest of an alternative that is dropped itself is a rest of the one that contains it.
        all.retain(|e| *e == EMPTY || contained.binary_search(e).is_err());
        Ok(())
    }

    /// Compares the counts of two concatenations of the same shape. Their parts may be concatenations, too: the derivative of a
    /// loop over a concatenation is one.
    fn compare_counts(&mut self, a: ExprId, b: ExprId) -> Result<Compared> {
        let (mut contains, mut within) = (true, true);
        let (mut unlike, mut differing) = (0, 0);
        let mut union = Compared::Apart;
        let mut open = vec![(a, b)];
        while let Some((a, b)) = open.pop() {
            self.charge(1)?;
            if a == b {
                continue;
            }
            unlike += 1;
            let (min, max, least, most) = match (self.node(a), self.node(b)) {
                (&ExprNode::Concat(a, c), &ExprNode::Concat(b, d)) if unlike <= MAX_PARTS => {
                    open.extend([(c, d), (a, b)]);
                    continue;
                }
                (
                    &ExprNode::Repeat { of, min, max },
                    &ExprNode::Repeat { of: other, min: least, max: most },
                ) if of == other => (min, max, least, most),
                _ => return Ok(Compared::Apart),
            };
            contains &= min <= least && max >= most;
            within &= least <= min && most >= max;
            differing += 1;
            if u64::from(min.max(least)) <= u64::from(max.min(most)) + 1 {
                union = Compared::Union { min: min.min(least), max: max.max(most) };
            } else {
                union = Compared::Apart;
            }
        }
        Ok(match (contains, within) {
            (true, _) => Compared::Contains,
            (_, true) => Compared::Within,
            _ if differing == 1 => union,
            _ => Compared::Apart,
        })
    }

    /// Two concatenations of the same shape as one, with these counts in the part in which they differ.
    fn with_counts(&mut self, a: ExprId, b: ExprId, min: u32, max: u32) -> Result<ExprId> {
        match (self.node(a), self.node(b)) {
            _ if a == b => Ok(a),
            (&ExprNode::Concat(a, c), &ExprNode::Concat(b, d)) => {
                let head = self.with_counts(a, b, min, max)?;
                let rest = self.with_counts(c, d, min, max)?;
                self.pair(head, rest)
            }
            (&ExprNode::Repeat { of, .. }, _) => self.repeat_counted(of, min, max),
            _ => Ok(a),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compiled, texts};
    use super::*;

    #[test]
    fn nested_counts_are_the_counts_that_occur() {
        let bounds = |n: u32| [Some(0), Some(1), Some(2), Some(3), Some(5), None][n as usize];
        let mut merged = 0;
        for (a, b, c, d) in
            (0..4u32 * 6 * 4 * 6).map(|n| (n % 4, bounds(n / 4 % 6), n / 24 % 4, bounds(n / 96)))
        {
            if b.is_some_and(|b| b < a) || d.is_some_and(|d| d < c) {
                continue;
            }
            // All counts up to 60, an unbounded number of rounds being as good as 61.
            let mut occurs = [false; 61];
            for k in c..=d.unwrap_or(61) {
                for n in k * a..=(k * b.unwrap_or(61)).min(60) {
                    occurs[n as usize] = true;
                }
            }
            let first = occurs.iter().position(|&yes| yes).unwrap();
            let last = occurs.iter().rposition(|&yes| yes).unwrap();
            let gapless = occurs[first..=last].iter().all(|&yes| yes);
            let most = if b == Some(0) || d == Some(0) { Some(0) } else { b.zip(d).map(|(b, d)| b * d) };
            let expected = gapless.then_some((first as u32, most));
            match nested_counts((a, b), (c, d)) {
                None => assert_eq!(expected, None, "{:?} of {:?}", (c, d), (a, b)),
                found => assert_eq!(found, expected, "{:?} of {:?}", (c, d), (a, b)),
            }
            merged += 1;
        }
        assert!(merged > 200);
        assert_eq!(nested_counts((0, Some(1 << 20)), (0, Some(1 << 20))), Some((0, None)));
        assert_eq!(nested_counts((1 << 20, Some(1 << 20)), (1 << 20, None)), None);
    }

    #[test]
    fn alternatives_that_differ_in_counts_are_merged() {
        let mut exprs = Exprs::new(1 << 16);
        let [x, y, z] = [b"x", b"y", b"z"].map(|text| exprs.bytes(text).unwrap());
        let mut of = |a: Counts, b: Counts| {
            let (x, y) = (exprs.repeat(x, a.0, a.1).unwrap(), exprs.repeat(y, b.0, b.1).unwrap());
            exprs.concat(&[x, y, z]).unwrap()
        };
        let wide = of((0, Some(5)), (2, Some(4)));
        let parts = [of((0, Some(3)), (2, Some(4))), of((2, Some(5)), (2, Some(4)))];
        let inside = of((1, Some(2)), (3, Some(4)));
        let apart = of((2, Some(5)), (7, Some(9)));
        assert_eq!(exprs.or(&parts).unwrap(), wide);
        assert_eq!(exprs.or(&[wide, inside]).unwrap(), wide);
        assert_eq!(exprs.or(&[inside, parts[1], parts[0]]).unwrap(), wide);
        let both = exprs.or(&[wide, apart]).unwrap();
        assert!(both != wide && both != apart);
        for (text, of_wide, of_both) in [
            ("xxyyz", true, true),
            ("yz", false, false),
            ("xxyyyyyyyz", false, true),
            ("xyyyyyyyz", false, false),
        ] {
            assert_eq!(exprs.matches(wide, text.as_bytes()).unwrap(), of_wide, "{text}");
            assert_eq!(exprs.matches(both, text.as_bytes()).unwrap(), of_both, "{text}");
        }
    }

    /// `([a.]{1,most}\.)+a+`: parts of bounded length, each with a dot at its end.
    fn of_parts(text: &[u8], most: usize) -> bool {
        let mut ends = vec![true];
        for at in 1..=text.len() {
            let part = |len: usize| at > len && ends[at - len - 1];
            ends.push(text[at - 1] == b'.' && (1..=most).any(part));
        }
        let letters = text.iter().rev().take_while(|&&byte| byte == b'a').count();
        (1..=letters).any(|n| n < text.len() && ends[text.len() - n])
    }

    #[test]
    fn the_parts_of_a_loop_share_a_counter() {
        let all = texts(b"a.", 12);
        for most in [1, 3, 63] {
            for length in ["", "(?=.{1,255}$)", "(?!.*aaaaaa)(?=.{1,255}$)"] {
                let mut exprs = Exprs::new(1 << 16);
                let e = compiled(&mut exprs, &format!("{length}([a.]{{1,{most}}}\\.)+a+"));
                for text in &all {
                    let refused = length.contains('!') && text.windows(6).any(|six| six == b"aaaaaa");
                    assert_eq!(exprs.matches(e, text).unwrap(), of_parts(text, most) && !refused, "{text:?}");
                }
                assert!(exprs.len() < 1_000, "{} expressions", exprs.len());
            }
        }
    }
}
