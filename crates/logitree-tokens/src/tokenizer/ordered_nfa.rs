//! One pattern as a finite machine: the threads of a backtracking engine in the order of their priority, as states.
//!
//! A state is an ordered list of [`Item`]s. Reading a symbol keeps, in order, what the items before the first match lead
//! to: a match ends what has lower priority, and what has higher priority wins if it matches later.

use rustc_hash::FxHashMap;

use super::classes::{Classes, END};
use super::pattern::Pattern;
use crate::{Error, ErrorKind, Result};

/// The most instructions and the most states of one pattern.
const MAX_PROGRAM: usize = 20_000;
const MAX_STATES: usize = 4_096;
/// The most items of one state.
const MAX_ITEMS: usize = 512;

/// The target of an item that matches.
pub(super) const MATCH: u32 = u32::MAX;
/// The state without items.
pub(super) const NO_STATE: u32 = 0;
/// The state before the first character.
pub(super) const START: u32 = 1;

/// What one thread does next: it reads one of `symbols` and continues at `to`; or it matches where one of them comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub symbols: u64,
    pub to: u32,
}

enum Step {
    Set(u64, u32),
    Both(u32, u32),
    NotBefore(u64, u32),
    AtEnd(u32),
    Match,
}

/// A compiled pattern.
pub(super) struct Stage {
    program: Vec<Step>,
    states: Vec<Box<[Item]>>,
    /// `next[state * symbols + symbol]`: the state after it, and whether it matches before the symbol.
    next: Vec<(u32, bool)>,
    symbols: usize,
}

fn too_large<T>(what: &str, most: usize) -> Result<T> {
    Err(Error::new(ErrorKind::Vocabulary, format!("the pre-tokenizer's pattern has more than {most} {what}")))
}

impl Stage {
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if the pattern is too large, or matches no characters at all.
    pub fn new(pattern: &Pattern, classes: &Classes) -> Result<Stage> {
        let symbols = classes.count() + 1;
        let mut stage = Stage { program: Vec::new(), states: Vec::new(), next: Vec::new(), symbols };
        let start = stage.compile(pattern, classes)?;
        stage.program.push(Step::Match);
        let mut first = Vec::new();
        stage.close(start, u64::MAX, &mut first)?;
        if first.iter().any(|item| item.to == MATCH) {
            return Err(Error::new(
                ErrorKind::Vocabulary,
                "the pre-tokenizer's pattern matches the empty text",
            ));
        }
        stage.explore(first)?;
        Ok(stage)
    }

    /// Appends the code of `pattern`; what follows it begins at the end of the program. Returns where it begins.
    fn compile(&mut self, pattern: &Pattern, classes: &Classes) -> Result<u32> {
        if self.program.len() > MAX_PROGRAM {
            return too_large("instructions", MAX_PROGRAM);
        }
        let here = self.program.len() as u32;
        match pattern {
            Pattern::Set(set) => self.program.push(Step::Set(classes.mask(set), here + 1)),
            Pattern::NotBefore(set) => self.program.push(Step::NotBefore(classes.mask(set), here + 1)),
            Pattern::End => self.program.push(Step::AtEnd(here + 1)),
            Pattern::All(all) => {
                for one in all {
                    self.compile(one, classes)?;
                }
            }
            Pattern::First(all) => {
                let mut ends = Vec::new();
                for (n, one) in all.iter().enumerate() {
                    let fork = self.program.len();
                    if n + 1 < all.len() {
                        self.program.push(Step::Both(fork as u32 + 1, 0));
                    }
                    self.compile(one, classes)?;
                    if n + 1 < all.len() {
                        ends.push(self.program.len());
                        self.program.push(Step::Both(0, 0));
                        self.program[fork] = Step::Both(fork as u32 + 1, self.program.len() as u32);
                    }
                }
                let after = self.program.len() as u32;
                ends.into_iter().for_each(|end| self.program[end] = Step::Both(after, after));
            }
            Pattern::Repeat(one, least, most) => {
                for _ in 0..*least {
                    self.compile(one, classes)?;
                }
                let forks = match most {
                    Some(most) => {
                        let mut forks = Vec::new();
                        for _ in *least..*most {
                            forks.push(self.program.len());
                            self.program.push(Step::Both(0, 0));
                            self.compile(one, classes)?;
                        }
                        forks
                    }
                    None => {
                        let fork = self.program.len();
                        self.program.push(Step::Both(0, 0));
                        self.compile(one, classes)?;
                        self.program.push(Step::Both(fork as u32, fork as u32));
                        vec![fork]
                    }
                };
                let after = self.program.len() as u32;
                forks.into_iter().for_each(|fork| self.program[fork] = Step::Both(fork as u32 + 1, after));
            }
        }
        Ok(here)
    }

    /// Appends the items that instruction `from` leads to without reading, in order, without repeats.
    fn close(&self, from: u32, symbols: u64, out: &mut Vec<Item>) -> Result<()> {
        let mut seen = Vec::new();
        let mut left = vec![(from, symbols)];
        while let Some((at, symbols)) = left.pop() {
            if symbols == 0 || seen.contains(&(at, symbols)) {
                continue;
            }
            seen.push((at, symbols));
            if seen.len() > MAX_ITEMS {
                return too_large("alternatives at once", MAX_ITEMS);
            }
            let item = match self.program[at as usize] {
                Step::Set(set, to) => Item { symbols: set & symbols, to },
                Step::Match => Item { symbols, to: MATCH },
                Step::Both(first, second) => {
                    left.extend([(second, symbols), (first, symbols)]);
                    continue;
                }
                Step::NotBefore(set, to) => {
                    left.push((to, symbols & !set));
                    continue;
                }
                Step::AtEnd(to) => {
                    left.push((to, symbols & 1 << END));
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

    /// Finds all states.
    fn explore(&mut self, first: Vec<Item>) -> Result<()> {
        let mut known: FxHashMap<Box<[Item]>, u32> = FxHashMap::default();
        for state in [Vec::new(), first] {
            known.insert(state.clone().into(), self.states.len() as u32);
            self.states.push(state.into());
        }
        let mut at = 0;
        while at < self.states.len() {
            let items = self.states[at].clone();
            for symbol in (0..self.symbols - 1).chain([END]) {
                let (reached, matched) = self.read(&items, symbol)?;
                let count = self.states.len() as u32;
                let to = *known.entry(reached.into()).or_insert_with_key(|items| {
                    self.states.push(items.clone());
                    count
                });
                self.next.push((to, matched));
            }
            if self.states.len() > MAX_STATES {
                return too_large("states", MAX_STATES);
            }
            at += 1;
        }
        Ok(())
    }

    /// The items after `symbol`, and whether some item matched before it.
    fn read(&self, items: &[Item], symbol: usize) -> Result<(Vec<Item>, bool)> {
        let mut reached = Vec::new();
        for item in items.iter().filter(|item| item.symbols >> symbol & 1 == 1) {
            if item.to == MATCH {
                return Ok((reached, true));
            }
            self.close(item.to, u64::MAX, &mut reached)?;
        }
        Ok((reached, false))
    }

    /// The state after `symbol`, and whether the pattern matches what was read before it.
    #[inline]
    pub fn step(&self, state: u32, symbol: usize) -> (u32, bool) {
        let column = if symbol == END { self.symbols - 1 } else { symbol };
        self.next[state as usize * self.symbols + column]
    }

    /// The items of a state.
    pub fn items(&self, state: u32) -> &[Item] {
        &self.states[state as usize]
    }

    /// What a set of items leads to if none of them may ever match. `None` if one of them matches before `symbol`.
    pub fn read_all(&self, items: &[Item], symbol: usize) -> Option<Vec<Item>> {
        let mut reached = Vec::new();
        for item in items.iter().filter(|item| item.symbols >> symbol & 1 == 1) {
            if item.to == MATCH {
                return None;
            }
            // The limits were checked when the states were found.
            let _ = self.close(item.to, u64::MAX, &mut reached);
        }
        Some(reached)
    }

    /// Appends to `ends` where the pieces of `text` end: matches, and what lies between matches. A match is the one that a
    /// backtracking engine finds.
    pub fn split(&self, text: &[u8], offset: usize, scratch: &mut Vec<u32>, ends: &mut Vec<usize>) {
        // An attempt that failed at one start fails at another from where it is in the same state.
        scratch.clear();
        let mut start = 0;
        let mut gap = false;
        while start < text.len() {
            match self.attempt(text, start, scratch) {
                Some(end) => {
                    if gap {
                        ends.push(offset + start);
                    }
                    gap = false;
                    ends.push(offset + end);
                    start = end;
                }
                None => {
                    gap = true;
                    start += 1;
                }
            }
        }
        if gap {
            ends.push(offset + start);
        }
    }

    fn attempt(&self, text: &[u8], start: usize, failed: &mut Vec<u32>) -> Option<usize> {
        let (mut state, mut found) = (START, None);
        for at in start..=text.len() {
            let symbol = text.get(at).map_or(END, |&class| usize::from(class));
            let (next, matched) = self.step(state, symbol);
            if matched {
                found = Some(at);
            }
            state = next;
            if state == NO_STATE {
                break;
            }
            if found.is_none() && failed.get(at).is_some_and(|&before| before == state) {
                return None;
            }
        }
        if found.is_some() {
            return found;
        }
        // A failure: its states are kept, from its start to where it ended.
        if failed.is_empty() {
            failed.resize(text.len() + 1, NO_STATE);
        }
        let mut state = START;
        for (at, kept) in failed.iter_mut().enumerate().skip(start) {
            let symbol = text.get(at).map_or(END, |&class| usize::from(class));
            state = self.step(state, symbol).0;
            if state == NO_STATE || *kept == state {
                break;
            }
            *kept = state;
        }
        None
    }
}
