//! The parts of a text: any run of its chunks.
//!
//! The naive version is the choice of all n² runs. Few chunks are halved, again and again. More
//! become the automaton of the places that a run may have got to; and texts for which that is large are searched as they
//! are, in the sorted list of their suffixes.

use std::sync::Arc;

use super::dfa::{explore, ComputedDfa, ComputedState, Explored, Steps, Walk};
use super::Regex;
use crate::{Error, ErrorKind, Result};

/// Of so few chunks the masks of halves are found faster.
const FEW_CHUNKS: usize = 2_048;
/// Maximum size of a table of transitions.
const MAX_TABLE: usize = 1 << 22;
/// So many times a text's length is the most that all states of its automaton remember together.
const MANY_PLACES: usize = 64;
/// Maximum size of a text in bytes: to sort its suffixes takes up to a fifth of a second.
const MAX_BYTES: usize = 1 << 20;

/// Any run of consecutive chunks, the empty one included.
///
/// # Errors
/// [`ErrorKind::Limit`] past a megabyte.
pub(crate) fn runs(chunks: &[&str]) -> Result<Regex> {
    let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    if bytes > MAX_BYTES {
        let message = format!("{bytes} bytes of text that may be quoted, more than {MAX_BYTES}");
        return Err(Error::new(ErrorKind::Limit, message).help("quote a part of it"));
    }
    if chunks.len() <= FEW_CHUNKS {
        return Ok(as_halves(chunks));
    }
    Ok(as_table(chunks).unwrap_or_else(|| as_suffixes(chunks)))
}

/// Whether a chunk begins or ends at each place of the text.
fn bounds(chunks: &[&str]) -> Vec<bool> {
    let mut bounds = vec![false; chunks.iter().map(|chunk| chunk.len()).sum::<usize>() + 1];
    bounds[0] = true;
    chunks.iter().fold(0, |at, chunk| {
        bounds[at + chunk.len()] = true;
        at + chunk.len()
    });
    bounds
}

/// The bytes of a text, each once.
fn alphabet(text: &str) -> Vec<u8> {
    let mut alphabet = text.as_bytes().to_vec();
    alphabet.sort_unstable();
    alphabet.dedup();
    alphabet
}

/// The automaton that remembers where in the text a run may have got
/// to. In a text that says different things these are few places, and the automaton is hardly longer than the text; `None`
/// if it is not.
fn as_table(pieces: &[&str]) -> Option<Regex> {
    let text = pieces.concat();
    let (bounds, alphabet) = (bounds(pieces), alphabet(&text));
    let alphabet: Vec<&[u8]> = alphabet.chunks(1).collect();
    if text.is_empty() || text.len() * alphabet.len() > MAX_TABLE {
        return None;
    }
    let mut walk = Places { text: text.as_bytes(), bounds, left: MANY_PLACES * (text.len() + 1) };
    let (explored, _) = explore(&mut walk, &alphabet, usize::MAX);
    match explored {
        Explored::Dfa(dfa) if walk.left > 0 => Some(Regex::Automaton(Arc::new(dfa))),
        _ => None,
    }
}

/// The places in a text that a run of its chunks may have got to, ascending.
struct Places<'t> {
    text: &'t [u8],
    /// Whether a chunk begins or ends here.
    bounds: Vec<bool>,
    /// How many places may still be remembered.
    left: usize,
}

impl Walk for Places<'_> {
    type State = Vec<u32>;

    fn start(&self) -> Vec<u32> {
        (0..self.bounds.len()).filter(|&at| self.bounds[at]).map(|at| at as u32).collect()
    }

    fn step(&mut self, places: &Vec<u32>, byte: u8) -> Option<Vec<u32>> {
        let goes_on = |&&at: &&u32| self.text.get(at as usize) == Some(&byte);
        let next: Vec<u32> = places.iter().filter(goes_on).map(|&at| at + 1).collect();
        self.left = self.left.saturating_sub(next.len());
        (!next.is_empty() && self.left > 0).then_some(next)
    }

    fn accepts(&self, places: &Vec<u32>) -> bool {
        places.iter().any(|&at| self.bounds[at as usize])
    }
}

/// The automaton that searches the suffixes of the text.
fn as_suffixes(chunks: &[&str]) -> Regex {
    let (text, bounds) = (chunks.concat(), bounds(chunks));
    let mut order = sorted_suffixes(text.as_bytes());
    order.retain(|&at| bounds[at as usize]);
    let alphabet = alphabet(&text);
    let mut chunk = 0;
    let mut numbers = vec![0; text.len()];
    order.iter().enumerate().for_each(|(number, &at)| numbers[at as usize] = number as u32);
    let chunk_of = (0..bounds.len()).map(|at| {
        chunk = if bounds[at] && at < text.len() { numbers[at] } else { chunk };
        chunk
    });
    let chunk_of = chunk_of.collect();
    let marks: String = bounds.iter().map(|&bound| if bound { '1' } else { '0' }).collect();
    // Equal texts with equal chunks are equal automata.
    let description = format!("runs of {marks} in {text}");
    let suffixes = Suffixes { text: text.into_bytes(), bounds, order, chunk_of };
    let start = [0, suffixes.order.len() as u64, 0];
    Regex::Computed(Arc::new(ComputedDfa::new(Arc::new(suffixes), description, &alphabet, start)))
}

/// A text and the places where its chunks begin, in the order of what follows them.
struct Suffixes {
    text: Vec<u8>,
    bounds: Vec<bool>,
    order: Vec<u32>,
    /// For each place the chunk that it is in, as a number in `order`.
    chunk_of: Vec<u32>,
}

impl Suffixes {
    /// The byte `deep` bytes after a place; `None` at the end of the text.
    fn byte(&self, at: u32, deep: u64) -> Option<u8> {
        self.text.get(at as usize + deep as usize).copied()
    }

    /// The places of a state: those in `order` from the first number to the second, from which on the run has as many bytes
    /// as the third says.
    fn places(&self, [from, to, _]: ComputedState) -> &[u32] {
        &self.order[from as usize..to as usize]
    }

    /// The state of these places. Of one place only where the run has got to matters: it may as well have begun with the
    /// chunk there.
    fn state(&self, from: usize, to: usize, deep: u64) -> ComputedState {
        if to - from > 1 {
            return [from as u64, to as u64, deep];
        }
        let at = u64::from(self.order[from]) + deep;
        let chunk = self.chunk_of[at as usize];
        [u64::from(chunk), u64::from(chunk) + 1, at - u64::from(self.order[chunk as usize])]
    }
}

impl Steps for Suffixes {
    fn next(&self, state: ComputedState, byte: u8) -> Option<ComputedState> {
        let [from, _, deep] = state;
        let places = self.places(state);
        let first = places.partition_point(|&at| self.byte(at, deep) < Some(byte));
        let behind = first + places[first..].partition_point(|&at| self.byte(at, deep) == Some(byte));
        (first < behind).then(|| self.state(from as usize + first, from as usize + behind, deep + 1))
    }

    fn starts(&self, state: ComputedState) -> Option<Vec<u8>> {
        let [_, _, deep] = state;
        let mut places = self.places(state);
        let mut found = Vec::new();
        while let Some(&at) = places.first() {
            let byte = self.byte(at, deep);
            found.extend(byte);
            places = &places[places.partition_point(|&at| self.byte(at, deep) == byte)..];
        }
        Some(found)
    }

    fn is_accepting(&self, state: ComputedState) -> bool {
        let [_, _, deep] = state;
        deep == 0 || self.places(state).iter().any(|&at| self.bounds[at as usize + deep as usize])
    }
}

/// The places of a text in the order of what follows them: prefix doubling (Larsson and Sadakane 2007). A place's rank is the
/// last place of those that are still equal.
fn sorted_suffixes(text: &[u8]) -> Vec<u32> {
    let length = text.len();
    // Seven bytes and how many there are: a shorter suffix comes first.
    let key = |at: usize| {
        let bytes = &text[at..length.min(at + 7)];
        bytes
            .iter()
            .enumerate()
            .fold(bytes.len() as u64, |key, (n, &byte)| key | u64::from(byte) << (56 - 8 * n))
    };
    let mut order: Vec<(u64, u32)> = (0..length).map(|at| (key(at), at as u32)).collect();
    order.sort_unstable();
    let mut rank = vec![0u32; length];
    let mut open = vec![(0, length)];
    let mut known = 0;
    loop {
        let mut left = Vec::new();
        for (from, to) in open {
            if known > 0 {
                for entry in &mut order[from..to] {
                    let behind = rank.get(entry.1 as usize + known);
                    entry.0 = behind.map_or(0, |&rank| u64::from(rank) + 1);
                }
                order[from..to].sort_unstable();
            }
            let mut at = from;
            while at < to {
                let same = order[at..to].partition_point(|entry| entry.0 == order[at].0);
                for entry in &order[at..at + same] {
                    rank[entry.1 as usize] = (at + same - 1) as u32;
                }
                if same > 1 {
                    left.push((at, at + same));
                }
                at += same;
            }
        }
        if left.is_empty() {
            return order.into_iter().map(|entry| entry.1).collect();
        }
        open = left;
        known = if known == 0 { 7 } else { 2 * known };
    }
}

/// Any run of consecutive chunks. Split in halves to keep depth and size small: a run is inside one half, or a suffix of the
/// first and a prefix of the second.
fn as_halves(pieces: &[&str]) -> Regex {
    match pieces {
        [] => Regex::Empty,
        [only] => Regex::text(*only).optional(),
        _ => {
            let (first, second) = pieces.split_at(pieces.len() / 2);
            Regex::or([as_halves(first), as_halves(second), Regex::concat([ends(first), starts(second)])])
        }
    }
}

/// Any number of the first pieces.
fn starts(pieces: &[&str]) -> Regex {
    match pieces {
        [] => Regex::Empty,
        [only] => Regex::text(*only).optional(),
        _ => {
            let (first, second) = pieces.split_at(pieces.len() / 2);
            Regex::or([starts(first), Regex::concat([Regex::text(first.concat()), starts(second)])])
        }
    }
}

/// Any number of the last pieces.
fn ends(pieces: &[&str]) -> Regex {
    match pieces {
        [] => Regex::Empty,
        [only] => Regex::text(*only).optional(),
        _ => {
            let (first, second) = pieces.split_at(pieces.len() / 2);
            Regex::or([ends(second), Regex::concat([ends(first), Regex::text(second.concat())])])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Encoding, Exprs};

    #[test]
    fn the_automata_of_runs_match_what_they_match() {
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..60 {
            let chunks: Vec<&str> = (0..draw(9)).map(|_| ["a", "b", "ab", "é", "", "aé"][draw(6)]).collect();
            let table = as_table(&chunks);
            assert_eq!(table.is_none(), chunks.concat().is_empty());
            for automaton in [table, Some(as_suffixes(&chunks))].into_iter().flatten() {
                let mut exprs = Exprs::new(1 << 16);
                let [one, other] = [automaton, as_halves(&chunks)]
                    .map(|regex| exprs.compile(&regex, Encoding::Utf8).unwrap());
                for (one, other) in [(one, other), (other, one)] {
                    let not = exprs.not(other).unwrap();
                    let both = exprs.and(&[one, not]).unwrap();
                    assert!(!exprs.is_alive(both).unwrap(), "{chunks:?}");
                }
            }
        }
        // A text that repeats itself has too many places.
        assert!(as_table(&vec!["a"; 3_000]).is_none());
    }

    #[test]
    fn suffixes_are_sorted() {
        let mut state = 7u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let texts = (0..300).map(|n| (0..draw(60)).map(|_| [0, b'a', b'b', 255][draw(1 + n % 4)]).collect());
        let repeated = [b"ab".repeat(300), vec![b'a'; 500]];
        for text in texts.chain(repeated) {
            let text: Vec<u8> = text;
            let mut naive: Vec<u32> = (0..text.len() as u32).collect();
            naive.sort_by_key(|&at| &text[at as usize..]);
            assert_eq!(sorted_suffixes(&text), naive, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_a_limit() {
        let text = "a".repeat(MAX_BYTES);
        assert!(runs(&[&text, "b"]).is_err());
    }
}
