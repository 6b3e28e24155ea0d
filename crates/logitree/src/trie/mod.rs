//! The vocabulary's bytes as a trie, laid out depth-first, and the walks over it.
//!
//! It refuses to know grammars and logits: a walk asks a [`Recognizer`] one byte at a time.

/// A recogniser over bytes with a stack of states, one per byte consumed.
pub trait Recognizer {
    /// Tries one more byte: on `true` it is pushed, on `false` nothing changed.
    fn push(&mut self, byte: u8) -> bool;
    /// Forgets the last `n` bytes pushed.
    fn pop(&mut self, n: usize);
}
