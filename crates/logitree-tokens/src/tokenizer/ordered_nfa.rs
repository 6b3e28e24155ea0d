//! One pattern as a finite machine: the threads of a backtracking engine in the order of their priority, as states.
//!
//! A state is an ordered list of [`Item`]s. Reading a symbol keeps, in order, what the items before the first match lead
//! to: a match ends what has lower priority, and what has higher priority wins if it matches later.

use rustc_hash::FxHashMap;

use super::ahead::Ahead;
use super::classes::{Classes, END};
use super::pattern::Pattern;
use super::program::{too_large, Item, Program, MATCH};
use crate::{Error, ErrorKind, Result};

/// The most states of one pattern.
const MAX_STATES: usize = 4_096;

/// The state without items.
pub(super) const NO_STATE: u32 = 0;
/// The state before the first character.
pub(super) const START: u32 = 1;

/// Which neighbours of matches and the text between them are pieces of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

impl Behaviour {
    /// The same where matches and what lies between them change their roles.
    pub fn inverted(self) -> Behaviour {
        match self {
            Behaviour::MergedWithPrevious => Behaviour::MergedWithNext,
            Behaviour::MergedWithNext => Behaviour::MergedWithPrevious,
            same => same,
        }
    }

    /// Whether a piece ends between two neighbours, each a match or not.
    pub fn cuts(self, before: bool, after: bool) -> bool {
        match self {
            Behaviour::Isolated => true,
            Behaviour::MergedWithPrevious => before || !after,
            Behaviour::MergedWithNext => !before || after,
            Behaviour::Contiguous => before != after,
        }
    }
}

/// A compiled pattern.
pub(super) struct Stage {
    program: Program,
    states: Vec<Box<[Item]>>,
    /// `next[state * symbols + symbol]`: the state after it, and whether it matches before the symbol.
    next: Vec<(u32, bool)>,
    symbols: usize,
    pub ahead: Ahead,
    pub behaviour: Behaviour,
}

impl Stage {
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if the pattern is too large, or matches no characters at all.
    pub fn new(pattern: &Pattern, behaviour: Behaviour, classes: &Classes) -> Result<Stage> {
        let ahead = Ahead::new(pattern, classes)?;
        let symbols = ahead.symbols.count() + 1;
        let program = Program::new(pattern, classes, &ahead.symbols)?;
        let mut stage = Stage { program, states: Vec::new(), next: Vec::new(), symbols, ahead, behaviour };
        let mut first = Vec::new();
        stage.program.close(0, &mut first)?;
        if first.iter().any(|item| item.to == MATCH) {
            return Err(Error::new(
                ErrorKind::Vocabulary,
                "the pre-tokenizer's pattern matches the empty text",
            ));
        }
        stage.explore(first)?;
        Ok(stage)
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
            self.program.close(item.to, &mut reached)?;
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
            let _ = self.program.close(item.to, &mut reached);
        }
        Some(reached)
    }

    /// Appends to `ends` where the pieces of `text` end.
    pub fn split(&self, text: &[u8], offset: usize, scratch: &mut Vec<u32>, ends: &mut Vec<usize>) {
        // What was found last: where it ends, and whether it is a match.
        let mut last: Option<(usize, bool)> = None;
        self.parts(text, scratch, |end, is_match| {
            if let Some((end, _)) = last.filter(|&(_, before)| self.behaviour.cuts(before, is_match)) {
                ends.push(offset + end);
            }
            last = Some((end, is_match));
        });
        ends.extend(last.map(|(end, _)| offset + end));
    }

    /// Calls `each` with the end of each match and of what lies between matches, and whether it is a match: the one that a
    /// backtracking engine finds.
    pub fn parts(&self, text: &[u8], scratch: &mut Vec<u32>, mut each: impl FnMut(usize, bool)) {
        let seen = self.ahead.seen(text);
        let text = seen.as_deref().unwrap_or(text);
        // An attempt that failed at one start fails at another from where it is in the same state.
        scratch.clear();
        let (mut start, mut gap) = (0, false);
        while start < text.len() {
            match self.attempt(text, start, scratch) {
                Some(end) => {
                    if gap {
                        each(start, false);
                    }
                    gap = false;
                    each(end, true);
                    start = end;
                }
                None => {
                    gap = true;
                    start += 1;
                }
            }
        }
        if gap {
            each(start, false);
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
