//! Compares a number with fixed values digit by digit, starting at its first non-zero digit; signs are handled by the
//! caller.

use std::cmp::Ordering;

use super::super::decimal::Decimal;
use super::few::Few;

/// A value that numbers are compared with, without its sign, and which side of it is wanted. It is not zero.
pub(super) struct Comparand {
    digits: Vec<u8>,
    /// The place of the point, as in [`Decimal`].
    pub point: i32,
    /// Whether numbers less than, equal to and greater than it are wanted.
    wanted: [bool; 3],
}

/// How the digits read so far compare with as many of a target's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum PrefixOrder {
    /// All wanted, whatever comes.
    #[default]
    Wanted,
    /// The digits are less; who has the larger point is not known yet.
    Less,
    /// The digits are greater; who has the larger point is not known yet.
    Greater,
    /// The first `.0` digits are the same, and where that is all the target has, only zeros came after them.
    Same(u16),
}

impl Comparand {
    pub fn new(value: &Decimal, wanted: [bool; 3]) -> Comparand {
        Comparand { digits: value.digits.clone(), point: value.point as i32, wanted }
    }

    /// Whether numbers that compare so are wanted.
    pub fn wants(&self, order: Ordering) -> bool {
        self.wanted[(order as i8 + 1) as usize]
    }

    /// After one more digit.
    pub fn digit(&self, so: PrefixOrder, digit: u8) -> PrefixOrder {
        let PrefixOrder::Same(read) = so else { return so };
        match digit.cmp(self.digits.get(usize::from(read)).unwrap_or(&0)) {
            // Every other value is wanted: the point does not matter any more.
            Ordering::Less | Ordering::Greater if self.wanted == [true, false, true] => PrefixOrder::Wanted,
            Ordering::Less => PrefixOrder::Less,
            Ordering::Greater => PrefixOrder::Greater,
            Ordering::Equal => PrefixOrder::Same((read + 1).min(self.digits.len() as u16)),
        }
    }

    /// How digits compare when none follow.
    fn order(&self, so: PrefixOrder) -> Ordering {
        match so {
            PrefixOrder::Greater => Ordering::Greater,
            PrefixOrder::Same(read) if usize::from(read) == self.digits.len() => Ordering::Equal,
            PrefixOrder::Wanted | PrefixOrder::Less | PrefixOrder::Same(_) => Ordering::Less,
        }
    }

    /// After it is known how the places of the points compare; `None` if the number is not wanted, whatever comes.
    pub fn settle(&self, points: Ordering, so: PrefixOrder) -> Option<PrefixOrder> {
        let known = match (points, so) {
            (_, PrefixOrder::Wanted) => return Some(so),
            (Ordering::Equal, PrefixOrder::Same(_)) => return Some(so),
            (Ordering::Equal, PrefixOrder::Less) => Ordering::Less,
            (Ordering::Equal, PrefixOrder::Greater) => Ordering::Greater,
            (points, _) => points,
        };
        self.wants(known).then_some(PrefixOrder::Wanted)
    }
}

/// How a number compares with each target that is still undecided.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Comparisons(Few<(u32, PrefixOrder), 2>);

impl Comparisons {
    /// Before the first digit.
    pub fn new(targets: &[Comparand]) -> Comparisons {
        Comparisons((0..targets.len() as u32).map(|target| (target, PrefixOrder::Same(0))).collect())
    }

    /// Whether all targets want the number, whatever comes.
    pub fn is_settled(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies `f` to each comparand; `None` as soon as one does not want the number.
    pub fn advance(
        &mut self,
        targets: &[Comparand],
        f: impl Fn(&Comparand, PrefixOrder) -> Option<PrefixOrder>,
    ) -> Option<()> {
        let mut wanted = true;
        self.0.retain_mut(|(target, so)| match f(&targets[*target as usize], *so) {
            Some(next) => {
                *so = next;
                next != PrefixOrder::Wanted
            }
            None => {
                wanted = false;
                false
            }
        });
        wanted.then_some(())
    }

    /// After a digit of a number whose point is not settled.
    pub fn digit(&mut self, targets: &[Comparand], digit: u8) -> Option<()> {
        self.advance(targets, |target, so| Some(target.digit(so, digit)))
    }

    /// Each target that is not known to want the number, and how the digits compare with it if none follow.
    pub fn orders<'a>(&'a self, targets: &'a [Comparand]) -> impl Iterator<Item = (&'a Comparand, Ordering)> {
        self.0.iter().map(|&(target, so)| (&targets[target as usize], targets[target as usize].order(so)))
    }

    /// Whether the number is wanted if it ends here, its point settled.
    pub fn ends(&self, targets: &[Comparand]) -> bool {
        self.orders(targets).all(|(target, order)| target.wants(order))
    }
}
