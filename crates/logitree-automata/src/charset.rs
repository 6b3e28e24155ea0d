//! Sets of Unicode scalar values as sorted ranges.

/// The last code point.
pub const LAST: u32 = 0x10ffff;

/// A set of Unicode scalar values: ascending inclusive ranges that neither overlap nor touch. It never holds
/// surrogates.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct CharSet(Vec<(u32, u32)>);

impl CharSet {
    /// The empty set.
    pub fn none() -> CharSet {
        CharSet(Vec::new())
    }

    /// Every scalar value.
    pub fn all() -> CharSet {
        CharSet(vec![(0, 0xd7ff), (0xe000, LAST)])
    }

    /// One character.
    pub fn one(c: char) -> CharSet {
        CharSet(vec![(c.into(), c.into())])
    }

    /// The characters from `from` to `to`, both included, without the surrogates between them.
    pub fn range(from: char, to: char) -> CharSet {
        CharSet::from_ranges([(from.into(), to.into())])
    }

    /// The union of inclusive ranges in any order. Surrogates and values past the last code point are dropped.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> CharSet {
        let mut cut = Vec::new();
        for (from, to) in ranges {
            let below = (from, to.min(0xd7ff));
            let above = (from.max(0xe000), to.min(LAST));
            cut.extend([below, above].into_iter().filter(|(from, to)| from <= to));
        }
        cut.sort_unstable();
        let mut set: Vec<(u32, u32)> = Vec::with_capacity(cut.len());
        for (from, to) in cut {
            match set.last_mut() {
                Some(last) if from <= last.1 + 1 => last.1 = last.1.max(to),
                _ => set.push((from, to)),
            }
        }
        CharSet(set)
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of characters.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(from, to)| (to - from + 1) as usize).sum()
    }

    /// Whether the set contains `c`.
    pub fn contains(&self, c: char) -> bool {
        let c = u32::from(c);
        let after = self.0.partition_point(|&(from, _)| from <= c);
        after > 0 && c <= self.0[after - 1].1
    }

    /// The union.
    #[must_use]
    pub fn or(&self, other: &CharSet) -> CharSet {
        CharSet::from_ranges(self.0.iter().chain(&other.0).copied())
    }

    /// The intersection.
    #[must_use]
    pub fn and(&self, other: &CharSet) -> CharSet {
        let (mut a, mut b) = (0, 0);
        let mut both = Vec::new();
        while let (Some(x), Some(y)) = (self.0.get(a), other.0.get(b)) {
            let (from, to) = (x.0.max(y.0), x.1.min(y.1));
            if from <= to {
                both.push((from, to));
            }
            if x.1 < y.1 {
                a += 1;
            } else {
                b += 1;
            }
        }
        CharSet(both)
    }

    /// The complement.
    #[must_use]
    pub fn not(&self) -> CharSet {
        let mut next = 0;
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        for &(from, to) in &self.0 {
            if next < from {
                gaps.push((next, from - 1));
            }
            next = to + 1;
        }
        gaps.push((next, LAST));
        CharSet::from_ranges(gaps.into_iter().filter(|(from, to)| from <= to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_keep_their_form() {
        let set = CharSet::from_ranges([(98, 100), (97, 97), (0xd000, 0xe001), (0x110000, 0x120000)]);
        assert_eq!(set.ranges(), [(97, 100), (0xd000, 0xd7ff), (0xe000, 0xe001)]);
        assert_eq!(set.not().not(), set);
        let inside = CharSet::from_ranges([(11, 0xd7ff), (0xe000, LAST), (32, 40), (0xf000, LAST)]);
        assert_eq!(inside.ranges(), [(11, 0xd7ff), (0xe000, LAST)]);
        assert!(set.and(&set.not()).is_empty());
        assert_eq!(set.or(&set.not()), CharSet::all());
        assert_eq!(CharSet::all().len(), 0x110000 - 2048);
        assert!(set.contains('b') && !set.contains('e') && CharSet::none().not() == CharSet::all());
    }
}
