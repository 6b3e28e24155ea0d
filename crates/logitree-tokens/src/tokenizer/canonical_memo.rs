//! The memo of a tokenizer's decisions, shared by its matchers. Every entry is a pure function of its key, but the numbers of
//! guesses and of sets of guesses belong to one memo, and places hold these numbers.
//!
//! So a memo grows as long as a matcher has places of it. A matcher keeps the memo that it began with; where that has grown too
//! large, the next matcher begins with an empty one.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::boundaries::{Boundaries, Guess, Settled, AT_START};
use super::canonical_stepper::CanonicalStepper;
use super::canonical_tables::{Ended, Hypothesis, Masks, NO_WORD};
use super::token_classes::TokenClasses;
use super::transitions::Walks;
use super::Tokenizer;
use crate::memo::Memo;
use crate::TokenId;

/// The most bytes that matchers which are made now find already there, without the tables that have limits of their own.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// The most sets of tokens that are kept, of each kind.
const MAX_KEPT: usize = 2_048;
/// The most answers of each kind that are kept.
const MAX_ANSWERS: usize = 1 << 16;
/// The most masks of guesses that are kept, and of sets of them.
const MAX_SET_MASKS: usize = 512;
/// The most bytes that the neighbours of tokens take.
const MAX_ROWS: usize = 32 << 20;
/// About how many bytes an entry of a table takes beside what it points to.
const ENTRY_BYTES: usize = 64;

/// What was found so far. Every entry is a pure function of its key.
#[derive(Default)]
pub(crate) struct CanonicalMemo {
    pub(super) boundaries: Boundaries,
    pub(super) sets: Vec<Arc<[Hypothesis]>>,
    /// The bytes of `sets` and of `ended`.
    pub(super) bytes: usize,
    pub(super) numbers: FxHashMap<Arc<[Hypothesis]>, u32>,
    pub(super) walks: Walks,
    pub(super) set_masks: Memo<u32, Arc<Masks>, MAX_SET_MASKS>,
    pub(super) masks: Memo<Guess, Arc<Masks>, MAX_SET_MASKS>,
    pub(super) rows: Memo<TokenId, Arc<[u32]>, MAX_ROWS>,
    pub(super) completed: FxHashMap<(TokenId, [u8; 4]), u64>,
    /// As `completed`, by tokens that end with the character.
    pub(super) exact: FxHashMap<(TokenId, [u8; 4]), u64>,
    pub(super) ended: FxHashMap<[u8; 4], Arc<[(u32, Ended)]>>,
    pub(super) unspelled: FxHashMap<[u8; 4], Option<u64>>,
    pub(super) refused: Memo<u32, Arc<[TokenId]>, MAX_SET_MASKS>,
    pub(super) stuck: Memo<(u32, u128, u128), Arc<[u32]>, MAX_KEPT>,
    /// The tokens that hold other characters than these.
    pub(super) outside: Memo<u128, Arc<[u32]>, MAX_KEPT>,
    /// The tokens of more than so many bytes.
    pub(super) longer: Memo<u32, Arc<[u32]>, MAX_KEPT>,
    pub(super) settled: FxHashMap<u32, Arc<Settled>>,
    pub(super) kinds: FxHashMap<u32, TokenClasses>,
    /// The set after a token that begins a piece, or continues one.
    pub(super) sets_after: Memo<(u32, TokenId, bool), Option<u32>, MAX_ANSWERS>,
    /// Lists of tokens that were asked for, by number, and which tokens one of them may follow.
    pub(super) next_lists: Memo<Box<[TokenId]>, u32, MAX_KEPT>,
    /// The next number of a list. No number is given twice.
    pub(super) next_list: u32,
    pub(super) followed: Memo<(TokenId, u32), bool, MAX_ANSWERS>,
    pub(super) before: FxHashMap<u8, Arc<[u32]>>,
}

impl CanonicalMemo {
    pub(super) fn new() -> CanonicalMemo {
        let mut made = CanonicalMemo { boundaries: Boundaries::new(), ..CanonicalMemo::default() };
        made.set(vec![Hypothesis { guess: AT_START, begins: false, word: NO_WORD }]);
        made
    }

    pub(super) fn set(&mut self, mut all: Vec<Hypothesis>) -> u32 {
        all.sort_unstable();
        all.dedup();
        let all: Arc<[Hypothesis]> = all.into();
        if let Some(&known) = self.numbers.get(&all) {
            return known;
        }
        let number = self.sets.len() as u32;
        self.numbers.insert(Arc::clone(&all), number);
        self.bytes += size_of_val(&*all);
        self.sets.push(all);
        number
    }

    /// About how many bytes it holds, without the tables that have limits of their own.
    pub fn bytes(&self) -> usize {
        let entries = self.sets.len()
            + self.completed.len()
            + self.exact.len()
            + self.ended.len()
            + self.unspelled.len()
            + self.settled.len();
        entries * ENTRY_BYTES + self.bytes + self.boundaries.bytes() + self.walks.bytes()
    }
}

/// A tokenizer, and what was found of the places of one matcher and its copies.
#[derive(Clone)]
pub struct SharedCanonical {
    tokenizer: Arc<Tokenizer>,
    found: Arc<Mutex<CanonicalMemo>>,
}

impl SharedCanonical {
    /// A tokenizer with the memo that all its matchers share.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> SharedCanonical {
        SharedCanonical { tokenizer: Arc::clone(tokenizer), found: tokenizer.canon().found(MAX_BYTES) }
    }

    /// What decides about the next token, for the length of one call.
    pub fn judge(&self) -> CanonicalStepper<'_> {
        CanonicalStepper::new(&self.tokenizer, &self.found)
    }
}

impl std::ops::Deref for SharedCanonical {
    type Target = Tokenizer;

    fn deref(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENIZER: &str = r#"{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "\u0120": 2, "1": 3, "ab": 4,
        "\u0120a": 5, "!": 6, "\u00c3": 7, "\u00a9": 8}, "merges": ["a b", "\u0120 a"]}}"#;

    fn steps(judge: &mut CanonicalStepper<'_>, tokens: &[TokenId]) -> Vec<bool> {
        let mut place = CanonicalStepper::start();
        let mut step = |&token: &TokenId| match judge.step(place, token) {
            Some(next) => {
                place = next;
                true
            }
            None => false,
        };
        tokens.iter().map(&mut step).collect()
    }

    #[test]
    fn what_has_grown_too_large_is_begun_again_by_the_next_only() {
        let tokenizer = Arc::new(Tokenizer::from_tokenizer_json_bytes(TOKENIZER.as_bytes()).unwrap());
        let tokens: Vec<TokenId> = (0..400).map(|n| n * n * 7 % 31 % 9).collect();
        let speller = SharedCanonical::new(&tokenizer);
        let empty = speller.judge().memo.bytes();
        let want = steps(&mut speller.judge(), &tokens);
        assert!(want.contains(&true) && want.contains(&false));
        let full = speller.judge().memo.bytes();
        assert!(full > empty + 1_000, "{empty} {full}");
        assert_eq!(steps(&mut speller.judge(), &tokens), want);
        assert_eq!(speller.judge().memo.bytes(), full, "what is known is not counted again");

        let canon = tokenizer.canon();
        assert!(Arc::ptr_eq(&canon.found(full), &speller.found));
        let next = SharedCanonical { tokenizer: Arc::clone(&tokenizer), found: canon.found(full - 1) };
        assert!(!Arc::ptr_eq(&next.found, &speller.found));
        assert_eq!(next.judge().memo.bytes(), empty);
        assert_eq!(steps(&mut next.judge(), &tokens), want);
        // Places of the old one are still its own.
        assert_eq!(steps(&mut speller.judge(), &tokens), want);
        assert!(Arc::ptr_eq(&SharedCanonical::new(&tokenizer).found, &next.found));
    }
}
