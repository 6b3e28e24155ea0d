//! What a pattern is compiled to: the instructions of a backtracking engine, over the symbols that it reads.

use super::classes::{Classes, END};
use super::pattern::Pattern;
use crate::{Error, ErrorKind, Result};

/// The most instructions of one pattern.
const MAX_PROGRAM: usize = 20_000;
/// The most items of one state.
const MAX_ITEMS: usize = 512;

/// The target of an item that matches.
pub(super) const MATCH: u32 = u32::MAX;
/// What one thread does next: it reads one of `symbols` and continues at `to`; or it matches where one of them comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub symbols: u64,
    pub to: u32,
}

/// What a pattern reads: a class of characters, with the look-aheads that hold before a character of it.
pub(super) struct Symbols {
    /// The look-aheads.
    pub inner: Vec<Pattern>,
    /// The class of each symbol, and which look-aheads hold before it.
    pub meanings: Vec<(u8, u32)>,
    /// Those that hold at the end.
    pub at_end: u32,
}

impl Symbols {
    /// How many symbols there are.
    pub fn count(&self) -> usize {
        self.meanings.len()
    }

    /// The symbols of classes.
    pub fn mask(&self, classes: u64) -> u64 {
        let of = |&(_, (class, _)): &(usize, &(u8, u32))| classes >> class & 1 == 1;
        self.meanings.iter().enumerate().filter(of).fold(0, |mask, (n, _)| mask | 1 << n)
    }

    /// The symbols before which a look-ahead holds.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] for one within another.
    pub fn holds(&self, inner: &Pattern) -> Result<u64> {
        let Some(n) = self.inner.iter().position(|known| known == inner) else {
            let message = "the pre-tokenizer's pattern has a look-ahead within a look-ahead";
            return Err(Error::new(ErrorKind::Vocabulary, message));
        };
        let of = |&(_, (_, holds)): &(usize, &(u8, u32))| holds >> n & 1 == 1;
        let symbols = self.meanings.iter().enumerate().filter(of).fold(0, |mask, (n, _)| mask | 1 << n);
        Ok(symbols | u64::from(self.at_end >> n & 1) << END)
    }
}

enum Step {
    Set(u64, u32),
    Both(u32, u32),
    Next(u64, u32),
    Match,
}

/// What a pattern is compiled to.
#[derive(Default)]
pub(super) struct Program(Vec<Step>);

pub(super) fn too_large<T>(what: &str, most: usize) -> Result<T> {
    Err(Error::new(ErrorKind::Vocabulary, format!("the pre-tokenizer's pattern has more than {most} {what}")))
}

impl Program {
    /// The program of `pattern`, that begins at its first instruction.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if it is too large.
    pub fn new(pattern: &Pattern, classes: &Classes, symbols: &Symbols) -> Result<Program> {
        let mut made = Program::default();
        made.compile(pattern, classes, symbols)?;
        made.0.push(Step::Match);
        Ok(made)
    }

    /// Appends the code of `pattern`; what follows it begins at the end of the program.
    fn compile(&mut self, pattern: &Pattern, classes: &Classes, symbols: &Symbols) -> Result<()> {
        if self.0.len() > MAX_PROGRAM {
            return too_large("instructions", MAX_PROGRAM);
        }
        let here = self.0.len() as u32;
        match pattern {
            Pattern::Set(set) => self.0.push(Step::Set(symbols.mask(classes.mask(set)), here + 1)),
            Pattern::Next { set, end } => {
                let mask = symbols.mask(classes.mask(set)) | u64::from(*end) << END;
                self.0.push(Step::Next(mask, here + 1));
            }
            Pattern::Ahead { inner, not } => {
                let mask = symbols.holds(inner)?;
                self.0.push(Step::Next(if *not { !mask } else { mask }, here + 1));
            }
            Pattern::Border { .. } => {}
            Pattern::All(all) => all.iter().try_for_each(|one| self.compile(one, classes, symbols))?,
            Pattern::First(all) => {
                let mut ends = Vec::new();
                for (n, one) in all.iter().enumerate() {
                    let fork = self.0.len();
                    if n + 1 < all.len() {
                        self.0.push(Step::Both(fork as u32 + 1, 0));
                    }
                    self.compile(one, classes, symbols)?;
                    if n + 1 < all.len() {
                        ends.push(self.0.len());
                        self.0.push(Step::Both(0, 0));
                        self.0[fork] = Step::Both(fork as u32 + 1, self.0.len() as u32);
                    }
                }
                let after = self.0.len() as u32;
                ends.into_iter().for_each(|end| self.0[end] = Step::Both(after, after));
            }
            Pattern::Repeat { one, least, most, lazy } => {
                self.repeat(|made| made.compile(one, classes, symbols), *least, *most, *lazy)?;
            }
        }
        Ok(())
    }

    /// Appends the code of a part, which `one` appends once, so many times.
    fn repeat(
        &mut self,
        one: impl Fn(&mut Program) -> Result<()>,
        least: u32,
        most: Option<u32>,
        lazy: bool,
    ) -> Result<()> {
        for _ in 0..least {
            one(self)?;
        }
        let forks = match most {
            Some(most) => {
                let mut forks = Vec::new();
                for _ in least..most {
                    forks.push(self.0.len());
                    self.0.push(Step::Both(0, 0));
                    one(self)?;
                }
                forks
            }
            None => {
                let fork = self.0.len();
                self.0.push(Step::Both(0, 0));
                one(self)?;
                self.0.push(Step::Both(fork as u32, fork as u32));
                vec![fork]
            }
        };
        let after = self.0.len() as u32;
        for fork in forks {
            let more = fork as u32 + 1;
            self.0[fork] = if lazy { Step::Both(after, more) } else { Step::Both(more, after) };
        }
        Ok(())
    }

    /// Appends the items that instruction `from` leads to without reading, in order, without repeats.
    pub fn close(&self, from: u32, out: &mut Vec<Item>) -> Result<()> {
        let mut seen = Vec::new();
        let mut left = vec![(from, u64::MAX)];
        while let Some((at, symbols)) = left.pop() {
            if symbols == 0 || seen.contains(&(at, symbols)) {
                continue;
            }
            seen.push((at, symbols));
            if seen.len() > MAX_ITEMS {
                return too_large("alternatives at once", MAX_ITEMS);
            }
            let item = match self.0[at as usize] {
                Step::Set(set, to) => Item { symbols: set & symbols, to },
                Step::Match => Item { symbols, to: MATCH },
                Step::Both(first, second) => {
                    left.extend([(second, symbols), (first, symbols)]);
                    continue;
                }
                Step::Next(mask, to) => {
                    left.push((to, symbols & mask));
                    continue;
                }
            };
            if item.symbols != 0 && !out.contains(&item) {
                out.push(item);
            }
            if out.len() > MAX_ITEMS {
                return too_large("alternatives at once", MAX_ITEMS);
            }
        }
        Ok(())
    }
}
