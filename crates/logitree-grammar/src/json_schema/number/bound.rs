//! Comparison with a fixed value digit by digit, from the first digit that is not 0 on. It refuses to know signs.

use std::cmp::Ordering;

use super::decimal::Decimal;

/// A value that numbers are compared with, without its sign, and which side of it is wanted. It is not zero.
pub(super) struct Target {
    digits: Vec<u8>,
    /// The place of the point, as in [`Decimal`].
    pub point: i32,
    /// Whether numbers less than, equal to and greater than it are wanted.
    wanted: [bool; 3],
}

/// How the digits read so far compare with as many of a target's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum So {
    /// All wanted, whatever comes.
    Wanted,
    /// The digits are less; who has the larger point is not known yet.
    Less,
    /// The digits are greater; who has the larger point is not known yet.
    Greater,
    /// The first `.0` digits are the same, and where that is all the target has, only zeros came after them.
    Same(u16),
}

impl Target {
    pub fn new(value: &Decimal, wanted: [bool; 3]) -> Target {
        Target { digits: value.digits.clone(), point: value.point, wanted }
    }

    /// Whether numbers that compare so are wanted.
    pub fn wants(&self, order: Ordering) -> bool {
        self.wanted[(order as i8 + 1) as usize]
    }

    /// After one more digit.
    pub fn digit(&self, so: So, digit: u8) -> So {
        let So::Same(read) = so else { return so };
        match digit.cmp(self.digits.get(usize::from(read)).unwrap_or(&0)) {
            // Every other value is wanted: the point does not matter any more.
            Ordering::Less | Ordering::Greater if self.wanted == [true, false, true] => So::Wanted,
            Ordering::Less => So::Less,
            Ordering::Greater => So::Greater,
            Ordering::Equal => So::Same((read + 1).min(self.digits.len() as u16)),
        }
    }

    /// How digits compare when none follow.
    fn order(&self, so: So) -> Ordering {
        match so {
            So::Greater => Ordering::Greater,
            So::Same(read) if usize::from(read) == self.digits.len() => Ordering::Equal,
            So::Wanted | So::Less | So::Same(_) => Ordering::Less,
        }
    }

    /// After it is known how the places of the points compare; `None` if the number is not wanted, whatever comes.
    pub fn settle(&self, points: Ordering, so: So) -> Option<So> {
        let known = match (points, so) {
            (_, So::Wanted) => return Some(so),
            (Ordering::Equal, So::Same(_)) => return Some(so),
            (Ordering::Equal, So::Less) => Ordering::Less,
            (Ordering::Equal, So::Greater) => Ordering::Greater,
            (points, _) => points,
        };
        self.wants(known).then_some(So::Wanted)
    }
}

/// How a number compares with each of the targets of which it is not known yet that they want it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Progress(Vec<(u32, So)>);

impl Progress {
    /// Before the first digit.
    pub fn new(targets: &[Target]) -> Progress {
        Progress((0..targets.len() as u32).map(|target| (target, So::Same(0))).collect())
    }

    /// Whether all targets want the number, whatever comes.
    pub fn is_settled(&self) -> bool {
        self.0.is_empty()
    }

    /// After something that `f` says of each; `None` as soon as one does not want the number.
    pub fn advance(&mut self, targets: &[Target], f: impl Fn(&Target, So) -> Option<So>) -> Option<()> {
        let mut wanted = true;
        self.0.retain_mut(|(target, so)| match f(&targets[*target as usize], *so) {
            Some(next) => {
                *so = next;
                next != So::Wanted
            }
            None => {
                wanted = false;
                false
            }
        });
        wanted.then_some(())
    }

    /// After a digit of a number whose point is not settled.
    pub fn digit(&mut self, targets: &[Target], digit: u8) -> Option<()> {
        self.advance(targets, |target, so| Some(target.digit(so, digit)))
    }

    /// Each target that is not known to want the number, and how the digits compare with it if none follow.
    pub fn orders<'a>(&'a self, targets: &'a [Target]) -> impl Iterator<Item = (&'a Target, Ordering)> {
        self.0.iter().map(|&(target, so)| (&targets[target as usize], targets[target as usize].order(so)))
    }

    /// Whether the number is wanted if it ends here, its point settled.
    pub fn ends(&self, targets: &[Target]) -> bool {
        self.orders(targets).all(|(target, order)| target.wants(order))
    }
}
