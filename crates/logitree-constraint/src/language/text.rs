//! The language of a recogniser of one's own: a state is the text that was read, and a few recognisers are moved between
//! texts.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use super::{ByteLanguage, ByteState};
use crate::recogniser::{ByteRecogniser, MakeRecogniser};
use crate::{interrupt, Error, ErrorKind, Result};
use logitree_tokens::trie::{Recognizer, TokenTrie};

/// Recognisers that are kept, each at the text that it read last: for as many forks, one each.
const MAX_HELD: usize = 64;
/// How far back it is looked for first.
const NEAR: usize = 64;
/// How far back the text that two have in common is looked for: longer than any token.
const MAX_BACK: usize = 1 << 11;

/// A text, as a list of its bytes from the last one on. Equal only to itself and its clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text(Option<Arc<Last>>);

#[derive(Debug)]
struct Last {
    before: Text,
    byte: u8,
    length: usize,
}

impl Text {
    fn length(&self) -> usize {
        self.0.as_ref().map_or(0, |last| last.length)
    }

    fn push(&self, byte: u8) -> Text {
        Text(Some(Arc::new(Last { before: self.clone(), byte, length: self.length() + 1 })))
    }

    fn before(&self) -> Text {
        self.0.as_ref().map_or(Text(None), |last| last.before.clone())
    }

    fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |last| Arc::as_ptr(last) as usize)
    }

    /// The bytes after the first `from`.
    fn bytes(&self, from: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length().saturating_sub(from));
        let mut at = self;
        while let Some(last) = at.0.as_ref().filter(|last| last.length > from) {
            bytes.push(last.byte);
            at = &last.before;
        }
        bytes.reverse();
        bytes
    }

    /// The length of what the two have in common; `None` if it is more than `most` bytes back.
    fn common(&self, other: &Text, most: usize) -> Option<usize> {
        if self.length().abs_diff(other.length()) > most {
            return None;
        }
        let (mut a, mut b) = (self.clone(), other.clone());
        for _ in 0..most {
            if a == b {
                return Some(a.length());
            }
            match a.length().cmp(&b.length()) {
                Ordering::Greater => a = a.before(),
                Ordering::Less => b = b.before(),
                Ordering::Equal => (a, b) = (a.before(), b.before()),
            }
        }
        (a == b).then(|| a.length())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Text) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Text) -> Ordering {
        self.address().cmp(&other.address())
    }
}

/// One after the other: a call for each byte of a long text would need as deep a stack.
impl Drop for Text {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut last) = next.and_then(|last| Arc::try_unwrap(last).ok()) {
            next = last.before.0.take();
        }
    }
}

/// A recogniser, and the text that it read.
struct Held {
    recogniser: Box<dyn ByteRecogniser>,
    at: Text,
}

/// The texts that a recogniser accepts.
pub(crate) struct RecognisedTexts {
    make: Arc<MakeRecogniser>,
    held: Mutex<Vec<Held>>,
}

impl RecognisedTexts {
    /// The texts of the recognisers that `make` makes.
    pub fn new(make: Arc<MakeRecogniser>) -> RecognisedTexts {
        RecognisedTexts { make, held: Mutex::default() }
    }

    /// Calls a recogniser that has read `text`; after the call it has read what `call` says. After an error it is
    /// dropped.
    fn with<T>(
        &self,
        text: &Text,
        call: impl FnOnce(&mut dyn ByteRecogniser) -> Result<(T, Text)>,
    ) -> Result<T> {
        // Recognisers are foreign code: the lock is not held while one runs.
        let found = {
            let mut held = interrupt::lock(&self.held);
            // The one that was used last is near most often.
            let near = |most: usize| {
                let near = |at: &usize| held[*at].at.common(text, most).is_some();
                (0..held.len()).rev().find(near)
            };
            let at = [NEAR, MAX_BACK].into_iter().find_map(near);
            at.map(|at| held.remove(at))
        };
        let mut held = match found {
            Some(mut held) => {
                let common = held.at.common(text, MAX_BACK).unwrap_or(0);
                let surplus = held.at.length() - common;
                if surplus > 0 {
                    held.recogniser.pop(surplus)?;
                }
                feed(&mut *held.recogniser, &text.bytes(common))?;
                held
            }
            None => {
                let mut recogniser = (self.make)()?;
                feed(&mut *recogniser, &text.bytes(0))?;
                Held { recogniser, at: Text::default() }
            }
        };
        let (answer, at) = call(&mut *held.recogniser)?;
        held.at = at;
        let mut all = interrupt::lock(&self.held);
        if all.len() >= MAX_HELD {
            all.remove(0);
        }
        all.push(held);
        Ok(answer)
    }

    fn text(state: &ByteState) -> Text {
        match state {
            ByteState::Text(text) => text.clone(),
            _ => Text::default(),
        }
    }
}

/// Has a recogniser take bytes that another one took.
fn feed(recogniser: &mut dyn ByteRecogniser, bytes: &[u8]) -> Result<()> {
    for &byte in bytes {
        if !recogniser.push(byte)? {
            return Err(Error::new(ErrorKind::State, "a recogniser refuses what it or another one took")
                .help("a recogniser depends on the bytes it took, and on nothing else"));
        }
    }
    Ok(())
}

impl ByteLanguage for RecognisedTexts {
    fn start(&self) -> Result<ByteState> {
        Ok(ByteState::Text(Text::default()))
    }

    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        let text = RecognisedTexts::text(state);
        self.with(&text, |recogniser| {
            Ok(match recogniser.push(byte)? {
                true => {
                    let longer = text.push(byte);
                    (Some(ByteState::Text(longer.clone())), longer)
                }
                false => (None, text.clone()),
            })
        })
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        let text = RecognisedTexts::text(state);
        self.with(&text, |recogniser| Ok((recogniser.is_end()?, text.clone())))
    }

    fn is_over(&self, state: &ByteState) -> Result<bool> {
        let text = RecognisedTexts::text(state);
        self.with(&text, |recogniser| {
            for byte in 0..=u8::MAX {
                if recogniser.push(byte)? {
                    recogniser.pop(1)?;
                    return Ok((false, text.clone()));
                }
            }
            Ok((true, text.clone()))
        })
    }

    /// With one recogniser for the whole walk, which takes every byte back.
    fn fill(&self, state: &ByteState, trie: &TokenTrie, words: &mut [u32]) -> Result<()> {
        let text = RecognisedTexts::text(state);
        self.with(&text, |recogniser| {
            let mut walk = Walk { recogniser, failed: None };
            trie.allowed(&mut walk, words)?;
            walk.failed.map_or(Ok(((), text.clone())), Err)
        })
    }
}

/// A recogniser during a walk: after an error it refuses everything, so that the walk ends soon.
struct Walk<'a> {
    recogniser: &'a mut dyn ByteRecogniser,
    failed: Option<Error>,
}

impl Walk<'_> {
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.failed.get_or_insert(error)).ok()
    }
}

impl Recognizer for Walk<'_> {
    fn push(&mut self, byte: u8) -> bool {
        if self.failed.is_some() {
            return false;
        }
        let taken = self.recogniser.push(byte);
        self.keep(taken).unwrap_or(false)
    }

    fn pop(&mut self, n: usize) {
        if n > 0 && self.failed.is_none() {
            let popped = self.recogniser.pop(n);
            self.keep(popped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes read. None may be `!`.
    struct Any(Vec<u8>);

    impl ByteRecogniser for Any {
        fn push(&mut self, byte: u8) -> Result<bool> {
            if byte != b'!' {
                self.0.push(byte);
            }
            Ok(byte != b'!')
        }

        fn pop(&mut self, n: usize) -> Result<()> {
            self.0.truncate(self.0.len() - n);
            Ok(())
        }

        fn is_end(&mut self) -> Result<bool> {
            Ok(self.0.ends_with(b"b"))
        }
    }

    #[test]
    fn states_are_texts_in_any_order() {
        let language = RecognisedTexts::new(Arc::new(|| Ok(Box::new(Any(Vec::new())))));
        let walk = |text: &[u8]| {
            text.iter().fold(language.start().unwrap(), |at, &b| language.step(&at, b).unwrap().unwrap())
        };
        let (ab, ac, long) = (walk(b"ab"), walk(b"ac"), walk(&[b'a'; 100_000]));
        assert!(language.is_end(&ab).unwrap());
        assert!(!language.is_end(&ac).unwrap());
        assert!(language.step(&ac, b'!').unwrap().is_none());
        let acb = language.step(&ac, b'b').unwrap().unwrap();
        assert!(language.is_end(&acb).unwrap());
        assert!(!language.is_end(&long).unwrap());
        assert!(language.is_end(&ab).unwrap());
        drop(long);
    }
}
