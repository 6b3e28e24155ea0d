//! The walk for any recogniser with a stack. The naive version is the recursion in `tests/it/trie.rs`, to which it
//! is held equal:
//!
//! ```text
//! walk(node): for each child: if push(byte) { set its tokens; walk(child); pop(1) }
//! ```

use super::{Recognizer, TokenTrie, BOGUS_SLOTS};
use crate::mask::{bit, insert_bit, insert_bit_if, words_for};
use crate::{Error, ErrorKind, Result};

impl TokenTrie {
    /// Writes the set of tokens whose bytes `recognizer` accepts, from its current state, into `words`: bit
    /// `id % 32` of word `id / 32`; everything else in `words` is cleared. The recogniser is left as it was.
    ///
    /// # Errors
    /// [`ErrorKind::Mask`] if `words` is shorter than [`words_for`] of the vocabulary's size.
    pub fn allowed(&self, recognizer: &mut impl Recognizer, words: &mut [u32]) -> Result<()> {
        self.check_words(words)?;
        let mut set = self.empty_set();
        self.walk(recognizer, &mut set);
        self.deliver(&mut set, words);
        Ok(())
    }

    /// Number of nodes whose byte the walk of [`TokenTrie::allowed`] tests: a refused node counts, the subtree
    /// skipped with it does not.
    pub fn count_visited(&self, recognizer: &mut impl Recognizer) -> usize {
        let mut counting = Counting { inner: recognizer, pushes: 0 };
        self.walk(&mut counting, &mut self.empty_set());
        counting.pushes
    }

    pub(super) fn check_words(&self, words: &[u32]) -> Result<()> {
        let need = words_for(self.vocabulary_size);
        if words.len() < need {
            return Err(Error::new(
                ErrorKind::Mask,
                format!("a mask of {} words for {} token ids", words.len(), self.vocabulary_size),
            )
            .help(format!("give it {need} words")));
        }
        Ok(())
    }

    /// A cleared set with room for the bogus slots.
    pub(super) fn empty_set(&self) -> Vec<u32> {
        vec![0; words_for(self.vocabulary_size) + BOGUS_SLOTS / 32]
    }

    /// Adds the ids that share their bytes with one in the set, and hands the set over.
    pub(super) fn deliver(&self, set: &mut [u32], words: &mut [u32]) {
        for &(first, other) in &self.twins {
            insert_bit_if(set, other, bit(set, first));
        }
        let n = words_for(self.vocabulary_size);
        words[..n].copy_from_slice(&set[..n]);
        words[n..].fill(0);
    }

    /// One loop: the recogniser's stack is cut to the node's parent at the top, so that the only branch that can
    /// be mispredicted is whether the byte is allowed.
    fn walk(&self, recognizer: &mut impl Recognizer, set: &mut [u32]) {
        let mut pushed = 0;
        let mut at = 1;
        while let Some(&node) = self.nodes.get(at) {
            let parent = node.depth() - 1;
            recognizer.pop(pushed - parent);
            pushed = parent;
            if recognizer.push(node.byte()) {
                insert_bit(set, node.slot());
                pushed += 1;
                at += 1;
            } else {
                at += node.size();
            }
        }
        recognizer.pop(pushed);
    }
}

struct Counting<'a, R> {
    inner: &'a mut R,
    pushes: usize,
}

impl<R: Recognizer> Recognizer for Counting<'_, R> {
    fn push(&mut self, byte: u8) -> bool {
        self.pushes += 1;
        self.inner.push(byte)
    }

    fn pop(&mut self, n: usize) {
        self.inner.pop(n);
    }
}
