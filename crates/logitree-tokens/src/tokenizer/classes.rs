//! Characters by what the patterns of a pre-tokenizer can tell apart.

use rustc_hash::FxHashMap;

use super::pattern::Pattern;
use crate::{Error, ErrorKind, Result};
use logitree_automata::CharSet;

/// The most classes; with the end of the text they fit a word.
pub(super) const MAX_CLASSES: usize = 63;
/// The symbol that is read at the end of a text.
pub(super) const END: usize = 63;

/// The class of every character. Characters of a class are in the same sets.
#[derive(Debug)]
pub(super) struct Classes {
    /// For each 256 characters, where their classes are.
    pages: Vec<u16>,
    table: Vec<[u8; 256]>,
    /// One character of each class.
    members: Vec<char>,
}

impl Classes {
    /// The classes that these patterns tell apart.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if they are more than [`MAX_CLASSES`].
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a Pattern>) -> Result<Classes> {
        let mut sets = Vec::new();
        patterns.into_iter().for_each(|pattern| collect(pattern, &mut sets));
        let many = || {
            Error::new(
                ErrorKind::Vocabulary,
                format!("the pre-tokenizer distinguishes more than {MAX_CLASSES} classes of characters"),
            )
        };
        if sets.len() > 128 {
            return Err(many());
        }
        let mut turns: Vec<(u32, usize)> = Vec::new();
        for (n, set) in sets.iter().enumerate() {
            turns.extend(set.ranges().iter().flat_map(|&(from, to)| [(from, n), (to + 1, n)]));
        }
        turns.sort_unstable();
        let mut flat = vec![0u8; 0x11_0000];
        let mut numbers: FxHashMap<u128, u8> = FxHashMap::default();
        let mut members = Vec::new();
        let (mut inside, mut at) = (0u128, 0u32);
        for (turn, set) in turns.into_iter().chain([(0x11_0000, 0)]) {
            // A stretch of surrogates alone has no character.
            let member = (at..turn.min(0x11_0000)).find_map(char::from_u32);
            if let Some(member) = member {
                let number = *numbers.entry(inside).or_insert_with(|| {
                    members.push(member);
                    (members.len() - 1).min(255) as u8
                });
                flat[at as usize..turn as usize].fill(number);
            }
            at = turn.max(at);
            inside ^= 1 << set;
        }
        if members.len() > MAX_CLASSES {
            return Err(many());
        }
        let mut known: FxHashMap<[u8; 256], u16> = FxHashMap::default();
        let mut table = Vec::new();
        let pages = flat
            .chunks_exact(256)
            .map(|page| {
                let page: [u8; 256] = std::array::from_fn(|n| page[n]);
                *known.entry(page).or_insert_with(|| {
                    table.push(page);
                    (table.len() - 1) as u16
                })
            })
            .collect();
        Ok(Classes { pages, table, members })
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The class of a character.
    #[inline]
    pub fn of(&self, c: char) -> u8 {
        let c = c as usize;
        self.table[usize::from(self.pages[c >> 8])][c & 255]
    }

    /// The classes of a set that the patterns have, as bits.
    pub fn mask(&self, set: &CharSet) -> u64 {
        let has = |n: &usize| set.contains(self.members[*n]);
        (0..self.count()).filter(has).fold(0, |mask, n| mask | 1 << n)
    }
}

fn collect(pattern: &Pattern, sets: &mut Vec<CharSet>) {
    match pattern {
        Pattern::Set(set) | Pattern::Next { set, .. } => {
            if !sets.contains(set) {
                sets.push(set.clone());
            }
        }
        Pattern::All(all) | Pattern::First(all) => all.iter().for_each(|one| collect(one, sets)),
        Pattern::Repeat { one, .. } => collect(one, sets),
        Pattern::Ahead { inner, .. } => collect(inner, sets),
        Pattern::Border { .. } => {}
    }
}
