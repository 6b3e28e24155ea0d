//! The guesses after the characters of a token: few lists occur, so each has a number and most steps are look-ups.
//!
//! The naive version asks the boundaries of each guess and each character ([`CanonicalStepper::inside`]).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::boundaries::Guess;
use super::canonical_memo::CanonicalMemo;
use super::canonical_stepper::CanonicalStepper;
use super::canonical_tables::NO_GROUP;
use crate::interrupt;

/// The guesses after a group of tokens that begins a piece, and after one that continues it.
#[derive(Clone, Default)]
pub(super) struct Walk {
    pub begins: Arc<[Guess]>,
    pub inside: Arc<[Guess]>,
}

/// What was found of walks so far.
#[derive(Default)]
pub(super) struct Walks {
    /// Of a guess, by group: the numbers of two lists.
    groups: FxHashMap<Guess, Vec<(u32, u32)>>,
    lists: Vec<Arc<[Guess]>>,
    numbers: FxHashMap<Arc<[Guess]>, u32>,
    /// `steps[list * classes + class]`: the list after a character of the same piece.
    steps: Vec<u32>,
    firsts: FxHashMap<(Guess, u8), (u32, u32)>,
    /// The bytes of `groups` and `lists`.
    bytes: usize,
}

impl Walks {
    /// The list of a number.
    pub fn of(&self, list: u32) -> Arc<[Guess]> {
        Arc::clone(&self.lists[list as usize])
    }

    /// About how many bytes they hold.
    pub fn bytes(&self) -> usize {
        self.bytes + 4 * self.steps.len() + 32 * self.firsts.len()
    }

    fn list(&mut self, guesses: &Arc<[Guess]>) -> u32 {
        if let Some(&known) = self.numbers.get(guesses) {
            return known;
        }
        let number = self.lists.len() as u32;
        self.bytes += 64 + size_of_val(&**guesses);
        self.numbers.insert(Arc::clone(guesses), number);
        self.lists.push(Arc::clone(guesses));
        number
    }
}

impl CanonicalStepper<'_> {
    /// The guesses after the characters of a group.
    pub(super) fn walk(&mut self, guess: Guess, group: u32) -> Walk {
        let groups = self.canon.groups.len();
        let walks = &mut self.memo.walks;
        let known = walks.groups.entry(guess).or_insert_with(|| {
            walks.bytes += groups * size_of::<(u32, u32)>();
            vec![(NO_GROUP, NO_GROUP); groups]
        });
        let (begins, inside) = known[group as usize];
        if begins != NO_GROUP {
            let list = |number: u32| Arc::clone(&self.memo.walks.lists[number as usize]);
            return Walk { begins: list(begins), inside: list(inside) };
        }
        let classes = &self.canon.groups[group as usize].classes;
        interrupt::consume(1);
        let (begins, inside) = match classes.split_first() {
            // A part of a character: where it is, is decided when it is complete.
            None => {
                let only = self.memo.walks.list(&[guess].into());
                (only, only)
            }
            Some((&first, rest)) => {
                let first = self.first_lists(guess, first);
                rest.iter().fold(first, |(begins, inside), &class| {
                    (self.list_after(begins, class), self.list_after(inside, class))
                })
            }
        };
        if let Some(known) = self.memo.walks.groups.get_mut(&guess) {
            known[group as usize] = (begins, inside);
        }
        let list = |number: u32| Arc::clone(&self.memo.walks.lists[number as usize]);
        Walk { begins: list(begins), inside: list(inside) }
    }

    /// The numbers of the lists of guesses after a character that begins a piece, and after one that continues it.
    fn first_lists(&mut self, guess: Guess, class: u8) -> (u32, u32) {
        if let Some(&known) = self.memo.walks.firsts.get(&(guess, class)) {
            return known;
        }
        let after = self.memo.boundaries.after(&self.tokenizer.splitter, guess, class);
        let (begins, inside) = (Arc::from(&*after.begins), Arc::from(&*after.inside));
        let found = (self.memo.walks.list(&begins), self.memo.walks.list(&inside));
        self.memo.walks.firsts.insert((guess, class), found);
        found
    }

    /// The number of the list of guesses after a character of the same piece. As [`CanonicalStepper::inside`].
    fn list_after(&mut self, list: u32, class: u8) -> u32 {
        let classes = self.tokenizer.splitter.classes.count();
        let at = list as usize * classes + usize::from(class);
        match self.memo.walks.steps.get(at) {
            Some(&known) if known != NO_GROUP => known,
            _ => {
                let from = Arc::clone(&self.memo.walks.lists[list as usize]);
                let next = self.inside(&from, &[class]).into();
                let next = self.memo.walks.list(&next);
                let steps = self.memo.walks.lists.len() * classes;
                self.memo.walks.steps.resize(steps, NO_GROUP);
                self.memo.walks.steps[at] = next;
                next
            }
        }
    }

    /// The numbers of the two lists of [`CanonicalStepper::walk`].
    pub(super) fn walk_lists(&mut self, guess: Guess, group: u32) -> (u32, u32) {
        let known = |memo: &CanonicalMemo| {
            memo.walks.groups.get(&guess).map_or((NO_GROUP, NO_GROUP), |all| all[group as usize])
        };
        if known(&self.memo).0 == NO_GROUP {
            self.walk(guess, group);
        }
        known(&self.memo)
    }

    /// The guesses after more characters of the same piece.
    pub(super) fn inside(&mut self, from: &[Guess], classes: &[u8]) -> Vec<Guess> {
        let mut at = from.to_vec();
        for &class in classes {
            let mut next = Vec::new();
            for guess in at {
                next.extend_from_slice(
                    &self.memo.boundaries.after(&self.tokenizer.splitter, guess, class).inside,
                );
            }
            next.sort_unstable();
            next.dedup();
            at = next;
        }
        at
    }
}
