//! What the look-aheads of a pattern see: a machine that reads a text from its end, and so knows at each place which of them
//! hold there.
//!
//! For the pattern a class of characters is then several symbols, one for each set of look-aheads that hold before a character
//! of it. A look-ahead of one character needs none of this: see [`Pattern::Next`].

use rustc_hash::FxHashMap;

use super::classes::{Classes, END, MAX_CLASSES};
use super::pattern::Pattern;
use super::program::{too_large, Item, Program, Symbols, MATCH};
use crate::Result;

/// The most states of the machine.
const MAX_STATES: usize = 128;

/// At the end of a text.
pub(super) const AT_END: u32 = 0;

/// The look-aheads of one pattern.
pub(super) struct Ahead {
    pub symbols: Symbols,
    classes: usize,
    /// `before[state * classes + class]`: the state before a character after which it was in a state.
    before: Vec<u32>,
    /// `symbol[state * classes + class]`: what is read where a character of the class is next and the machine in the state.
    symbol: Vec<u8>,
}

impl Ahead {
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if there are too many, or one within another.
    pub fn new(pattern: &Pattern, classes: &Classes) -> Result<Ahead> {
        let count = classes.count();
        let meanings = (0..count as u8).map(|class| (class, 0)).collect();
        let symbol = (0..count as u8).collect();
        let symbols = Symbols { inner: Vec::new(), meanings, at_end: 0 };
        let none = Ahead { symbols, classes: count, before: vec![AT_END; count], symbol };
        let mut inner = Vec::new();
        collect(pattern, &mut inner);
        if inner.is_empty() {
            return Ok(none);
        }
        if inner.len() > 32 {
            return too_large("look-aheads", 32);
        }
        // Where each of their instructions leads without reading, by place; and where each begins.
        let (mut items, mut starts) = (Vec::new(), Vec::new());
        let mut numbers: FxHashMap<(usize, u32), usize> = FxHashMap::default();
        for (n, one) in inner.iter().enumerate() {
            let program = Program::new(one, classes, &none.symbols)?;
            starts.push(items.len());
            numbers.insert((n, 0), items.len());
            let mut left = vec![(0, items.len())];
            items.push(Vec::new());
            while let Some((at, number)) = left.pop() {
                let mut found = Vec::new();
                program.close(at, &mut found)?;
                for item in found.iter_mut().filter(|item| item.to != MATCH) {
                    let next = items.len();
                    let known = *numbers.entry((n, item.to)).or_insert(next);
                    if known == next {
                        items.push(Vec::new());
                        left.push((item.to, next));
                    }
                    item.to = known as u32;
                }
                items[number] = found;
            }
        }
        let symbols = Symbols { inner, meanings: Vec::new(), at_end: 0 };
        let mut made = Ahead { symbols, before: Vec::new(), symbol: Vec::new(), ..none };
        made.explore(&items, &starts)?;
        Ok(made)
    }

    /// Finds the states: from which places a match begins before the text that was read.
    fn explore(&mut self, items: &[Vec<Item>], starts: &[usize]) -> Result<()> {
        let holds = |after: Option<&[bool]>, symbol: usize| -> Box<[bool]> {
            let begins = |item: &Item| {
                item.symbols >> symbol & 1 == 1
                    && (item.to == MATCH || after.is_some_and(|after| after[item.to as usize]))
            };
            items.iter().map(|items| items.iter().any(begins)).collect()
        };
        let mask = |state: &[bool]| {
            starts.iter().zip(0..).filter(|(&at, _)| state[at]).fold(0u32, |mask, (_, n)| mask | 1 << n)
        };
        let end = holds(None, END);
        self.symbols.at_end = mask(&end);
        let mut states = vec![end.clone()];
        let mut known = FxHashMap::from_iter([(end, AT_END)]);
        let mut at = 0;
        while at < states.len() {
            for class in 0..self.classes {
                let state = holds(Some(&states[at]), class);
                let count = states.len() as u32;
                let number = *known.entry(state).or_insert_with_key(|state| {
                    states.push(state.clone());
                    count
                });
                self.before.push(number);
            }
            if states.len() > MAX_STATES {
                return too_large("states of its look-aheads", MAX_STATES);
            }
            at += 1;
        }
        for state in &states {
            for class in 0..self.classes as u8 {
                let meaning = (class, mask(state));
                let reached = || {
                    let number = known[state];
                    self.before.iter().skip(usize::from(class)).step_by(self.classes).any(|&to| to == number)
                };
                let number = match self.symbols.meanings.iter().position(|known| *known == meaning) {
                    Some(number) => number,
                    None if !reached() => 0,
                    None => {
                        self.symbols.meanings.push(meaning);
                        self.symbols.meanings.len() - 1
                    }
                };
                self.symbol.push(number as u8);
            }
        }
        if self.symbols.meanings.len() > MAX_CLASSES {
            return too_large("classes of characters before its look-aheads", MAX_CLASSES);
        }
        Ok(())
    }

    /// The symbols of a text; `None` if they are its classes.
    pub fn seen(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.symbols.inner.is_empty() {
            return None;
        }
        let (mut state, mut seen) = (AT_END, text.to_vec());
        for class in seen.iter_mut().rev() {
            let at = usize::from(*class);
            state = self.before[state as usize * self.classes + at];
            *class = self.symbol[state as usize * self.classes + at];
        }
        Some(seen)
    }

    /// Where the machine may be after a character before which it is in `state`, or anywhere, with the symbol that is read.
    pub fn after(&self, state: Option<u32>, class: usize) -> impl Iterator<Item = (u32, usize)> + '_ {
        let of = self.before.iter().skip(class).step_by(self.classes);
        of.zip(0..).filter(move |(&before, _)| state.is_none_or(|state| state == before)).map(
            move |(&before, after)| (after, usize::from(self.symbol[before as usize * self.classes + class])),
        )
    }

    /// The symbol of a character, if the machine is in `state` before it whatever follows.
    pub fn certain(&self, state: u32, class: usize) -> Option<usize> {
        let mut of = self.before.iter().skip(class).step_by(self.classes);
        of.all(|&before| before == state)
            .then(|| usize::from(self.symbol[state as usize * self.classes + class]))
    }

    /// Whether what is read depends on the next character alone.
    pub fn is_none(&self) -> bool {
        self.symbols.inner.is_empty()
    }
}

/// The look-aheads of a pattern, without repeats.
fn collect(pattern: &Pattern, out: &mut Vec<Pattern>) {
    match pattern {
        Pattern::Ahead { inner, .. } => {
            if !out.contains(inner) {
                out.push((**inner).clone());
            }
        }
        Pattern::All(all) | Pattern::First(all) => all.iter().for_each(|one| collect(one, out)),
        Pattern::Repeat { one, .. } => collect(one, out),
        Pattern::Set(_) | Pattern::Next { .. } | Pattern::Border { .. } => {}
    }
}
