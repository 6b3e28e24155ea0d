//! Finds the loop state that most tokens of a state lead to, and the tokens that lead elsewhere.

use std::sync::Arc;

use super::{low, spend, Lookahead};
use crate::{Result, TokenId};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::tokenizer::Row;
use logitree_tokens::trie::{Node, TokenTrie};

/// From so many characters on, a state is a home.
const MIN_LOOP_CHARS: u32 = 6;
/// Two of these lead from every home to one state.
const WITNESSES: [u8; 4] = *b"a 01";
/// The longest row of characters that is looked at where they are counted.
const LONGEST: usize = 48;
/// Fewer tokens with the same beginning are looked at one by one.
const MIN_GROUP: usize = 12;
/// The most nodes of tokens that do not lead home.
const MAX_AWAY: usize = 4_000;

/// Characters that may come so many times in a row, in any order: states differ in what is left of the row. Where there is no
/// end, the state stays the same.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    pub chars: u128,
    /// The ASCII characters that may come anywhere in the row.
    next: u128,
    pub length: u32,
}

impl Run {
    /// Whether most tokens that come here stay in the row.
    pub fn is_loop_state(self) -> bool {
        self.chars.count_ones() >= MIN_LOOP_CHARS && self.length > 0
    }

    pub fn row(self) -> Row {
        Row { chars: self.chars, next: self.next, most: self.most() }
    }

    /// The longest tokens, in characters, after which two more characters and what completes the last one fit.
    fn most(self) -> u32 {
        if self.length == u32::MAX {
            u32::MAX
        } else {
            self.length.saturating_sub(3)
        }
    }
}

/// Where the tokens of a state lead.
pub(super) struct Shape {
    /// The row of characters in the home of most tokens, if there is such a home.
    pub main: Option<Run>,
    /// The tokens that end elsewhere.
    pub away: Box<[TokenId]>,
    /// The tokens below a node lead to another home, with the row of characters there.
    pub others: Box<[(Node, Run)]>,
}

impl Shape {
    fn bytes(&self) -> usize {
        size_of::<Shape>() + size_of_val(&*self.away) + size_of_val(&*self.others)
    }
}

fn way(ways: &[(ByteSet, u64)], byte: u8) -> Option<u64> {
    ways.iter().find(|way| way.0.contains(byte)).map(|way| way.1)
}

impl Lookahead<'_> {
    /// The characters that may come many times in a row.
    pub(super) fn run(&mut self, state: u64) -> Result<Run> {
        let (mut path, mut at) = (Vec::new(), state);
        let mut run = loop {
            if let Some(known) = self.walked.runs.get(&at) {
                break known;
            }
            let (chars, next) = self.round(at)?;
            if next == Some(at) || chars.count_ones() < MIN_LOOP_CHARS {
                let run = match next == Some(at) {
                    true => Run { chars, next: low(&self.bytes(at)?), length: u32::MAX },
                    false => Run::default(),
                };
                self.walked.runs.keep_bytes(at, run, 0);
                break run;
            }
            path.push((at, chars));
            let Some(next) = next.filter(|_| path.len() < LONGEST) else { break Run::default() };
            at = next;
        };
        // Of a path that was cut off, the lengths are known of the first states only.
        let is_cut = path.len() == LONGEST;
        for &(at, chars) in path.iter().rev() {
            let next = low(&self.bytes(at)?);
            run = match run {
                Run { length: 0, .. } => Run { chars, next, length: 1 },
                run if run.chars & !chars == 0 => {
                    Run { next: run.next & next, length: run.length.saturating_add(1), ..run }
                }
                _ => Run::default(),
            };
            if !is_cut || run.length as usize >= LONGEST {
                self.walked.runs.keep_bytes(at, run, 0);
            }
        }
        Ok(run)
    }

    /// The ASCII characters that lead from `state` to one other, as bits, and that state: the one that a witness leads to.
    /// The highest bit answers for all other characters: one of each length is asked.
    pub(super) fn round(&mut self, state: u64) -> Result<(u128, Option<u64>)> {
        if let Some(known) = self.walked.rounds.get(&state) {
            return Ok(known);
        }
        let mut reached = [None; WITNESSES.len()];
        for (next, byte) in reached.iter_mut().zip(WITNESSES) {
            *next = self.step(state, byte)?;
        }
        let same =
            (0..reached.len()).find(|&n| reached[n].is_some() && reached[n + 1..].contains(&reached[n]));
        let mut found = (0, None);
        if let Some(next) = same.and_then(|n| reached[n]) {
            let ways = self.ways(state)?;
            let bytes = ways.iter().find(|way| way.1 == next).map_or(ByteSet::NONE, |way| way.0);
            let mut all = true;
            for text in ["\u{e9}", "\u{4e2d}", "\u{1f600}"] {
                all = all && self.reached(state, text.as_bytes())? == Some(next);
            }
            found = (low(&bytes) & !(1 << 127) | u128::from(all) << 127, Some(next));
        }
        self.walked.rounds.keep_bytes(state, found, 0);
        Ok(found)
    }

    pub(super) fn shape(&mut self, state: u64, trie: &TokenTrie) -> Result<Option<Arc<Shape>>> {
        if let Some(known) = self.walked.shapes.get(&state) {
            return Ok(known);
        }
        let found = self.find_shape(state, trie)?.map(Arc::new);
        let bytes = found.as_deref().map_or(0, Shape::bytes);
        self.walked.shapes.keep_bytes(state, found.clone(), bytes);
        Ok(found)
    }

    /// Where the tokens of a state lead; `None` if it takes too long to tell.
    fn find_shape(&mut self, state: u64, trie: &TokenTrie) -> Result<Option<Shape>> {
        let run = self.run(state)?;
        if run.is_loop_state() {
            return Ok(Some(Shape { main: Some(run), away: Box::default(), others: Box::default() }));
        }
        let ways = self.ways(state)?;
        let mut main: Option<(u32, u64, Run)> = None;
        for &(bytes, next) in &*ways {
            let ascii = low(&bytes).count_ones();
            if ascii >= MIN_LOOP_CHARS && main.is_none_or(|(most, ..)| ascii > most) {
                let run = self.run(next)?;
                if run.is_loop_state() {
                    main = Some((ascii, next, run));
                }
            }
        }
        let home = main.map(|(_, home, run)| (home, run));
        let (mut away, mut others, mut visited) = (Vec::new(), Vec::new(), 0usize);
        let mut open = vec![(trie.root(), state)];
        while let Some((node, at)) = open.pop() {
            let ways = self.ways(at)?;
            let before = visited;
            for (byte, child) in trie.children(node) {
                visited += 1;
                let Some(next) = way(&ways, byte) else { continue };
                let leads_home = match home {
                    Some((home, _)) if next == home => true,
                    Some((home, run)) if byte >= 0x80 && run.chars >> 127 == 1 => {
                        self.step(home, byte)? == Some(next)
                    }
                    _ => false,
                };
                if leads_home {
                    continue;
                }
                away.extend_from_slice(trie.tokens(child));
                if trie.size(child) == 1 {
                    continue;
                }
                // What a character leads home from is on its way there.
                let is_near = match home {
                    Some((home, _)) => self.step(next, WITNESSES[0])? == Some(home),
                    None => false,
                };
                let run = if is_near { Run::default() } else { self.run(next)? };
                if run.is_loop_state() {
                    others.push((child, run));
                } else if trie.tokens_below(child).len() < MIN_GROUP {
                    away.extend_from_slice(trie.tokens_below(child));
                } else {
                    open.push((child, next));
                }
            }
            spend(visited - before)?;
            if visited > MAX_AWAY {
                return Ok(None);
            }
        }
        Ok(Some(Shape { main: home.map(|home| home.1), away: away.into(), others: others.into() }))
    }

    /// The state after some bytes.
    fn reached(&mut self, state: u64, bytes: &[u8]) -> Result<Option<u64>> {
        spend(bytes.len())?;
        let mut at = state;
        for &byte in bytes {
            match self.step(at, byte)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }
}
