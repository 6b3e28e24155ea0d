//! User-defined tokens: a text that holds one's text is cut there before anything else. llama.cpp looks for each token in
//! turn, the longest first; Hugging Face's tokenizers for the leftmost, of those the longest, and for some of them only in the
//! text that the normaliser leaves. Where one ends is found byte by byte (Aho and Corasick, 1975).

use std::collections::VecDeque;

use logitree_automata::{pattern, CharSet};
use rustc_hash::FxHashMap;

use crate::TokenId;

/// One token.
#[derive(Debug, Clone, Default)]
pub(super) struct UserToken {
    pub text: Box<[u8]>,
    pub token: TokenId,
    /// Whether it takes the white space before it with it.
    pub strips_left: bool,
    /// Whether it takes the white space after it with it.
    pub strips_right: bool,
    /// Whether it is found only between what is no word.
    pub is_word: bool,
    /// Its text after the normaliser, if it is looked for there.
    pub normalized: Option<Box<[u8]>>,
}

/// The user-defined tokens of a vocabulary, and the machine that finds them.
#[derive(Default)]
pub(super) struct UserTokens {
    /// The longest first.
    tokens: Vec<UserToken>,
    trie: Trie,
    /// Where to continue when a byte does not, by state.
    fail: Vec<u32>,
    /// Whether some text ends in the state.
    ends: Vec<bool>,
    /// What the leftmost are found with, before the normaliser and after it.
    leftmost: Option<[Trie; 2]>,
    /// The characters of words, where some token is one.
    word: CharSet,
}

/// Texts by their bytes.
#[derive(Default)]
pub(super) struct Trie {
    next: FxHashMap<(u32, u8), u32>,
    states: u32,
    /// The token whose text ends in a state, by its number.
    ends: FxHashMap<u32, usize>,
}

impl Trie {
    pub fn insert(&mut self, text: &[u8], number: usize) {
        let mut at = 0;
        for &byte in text {
            at = *self.next.entry((at, byte)).or_insert_with(|| {
                self.states += 1;
                self.states
            });
        }
        self.ends.entry(at).or_insert(number);
    }

    /// Calls `each` with the number and the length of the texts that `text` begins with, the shortest first.
    pub fn prefixes(&self, text: &[u8], mut each: impl FnMut(usize, usize)) {
        self.walk(text, |state, length| {
            if let Some(&number) = self.ends.get(&state) {
                each(number, length);
            }
        });
    }

    /// The number and the length of the longest of them.
    pub fn longest(&self, text: &[u8]) -> Option<(usize, usize)> {
        let mut found = None;
        self.prefixes(text, |number, length| found = Some((number, length)));
        found
    }

    /// How many bytes of `text` some text begins with.
    pub fn depth(&self, text: &[u8]) -> usize {
        let mut depth = 0;
        self.walk(text, |_, length| depth = length);
        depth
    }

    fn walk(&self, text: &[u8], mut each: impl FnMut(u32, usize)) {
        let mut at = 0;
        for (&byte, length) in text.iter().zip(1..) {
            let Some(&next) = self.next.get(&(at, byte)) else { break };
            at = next;
            each(at, length);
        }
    }
}

/// Nothing of any text was read.
pub(super) const NO_PART: u32 = 0;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fragment {
    Text(usize, usize),
    Token(TokenId),
}

impl UserTokens {
    /// Those that are looked for one after the other.
    pub fn new(mut tokens: Vec<UserToken>) -> UserTokens {
        tokens.retain(|token| !token.text.is_empty());
        tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        let mut trie = Trie::default();
        tokens.iter().enumerate().for_each(|(n, token)| trie.insert(&token.text, n));
        let states = trie.states as usize + 1;
        let mut children: Vec<Vec<(u8, u32)>> = vec![Vec::new(); states];
        trie.next.iter().for_each(|(&(at, byte), &child)| children[at as usize].push((byte, child)));
        let ends = (0..states as u32).map(|state| trie.ends.contains_key(&state)).collect();
        let mut made = UserTokens { tokens, trie, fail: vec![0; states], ends, ..UserTokens::default() };
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            for &(byte, child) in &children[at as usize] {
                if at != 0 {
                    made.fail[child as usize] = made.step(made.fail[at as usize], byte);
                    let also = made.ends[made.fail[child as usize] as usize];
                    made.ends[child as usize] |= also;
                }
                queue.push_back(child);
            }
        }
        made
    }

    /// Those whose leftmost matches are found.
    pub fn leftmost(tokens: Vec<UserToken>) -> UserTokens {
        let mut made = UserTokens::new(tokens);
        let mut tries = [Trie::default(), Trie::default()];
        for (n, token) in made.tokens.iter().enumerate() {
            match &token.normalized {
                Some(text) if text.is_empty() => {}
                Some(text) => tries[1].insert(text, n),
                None => tries[0].insert(&token.text, n),
            }
        }
        if made.tokens.iter().any(|token| token.is_word) {
            let of = |name: &&str| pattern::property(name).unwrap_or_default();
            let sets = ["Alphabetic", "M", "Nd", "Pc", "Join_Control"];
            made.word = sets.iter().map(of).fold(CharSet::none(), |all, set| all.or(&set));
        }
        made.leftmost = Some(tries);
        made
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The state after `byte`.
    #[inline]
    pub fn step(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            if let Some(&next) = self.trie.next.get(&(state, byte)) {
                return next;
            }
            if state == 0 {
                return 0;
            }
            state = self.fail[state as usize];
        }
    }

    /// The state after `bytes`; `None` if some token's text ends among them.
    pub fn read(&self, mut state: u32, bytes: &[u8]) -> Option<u32> {
        if self.is_empty() {
            return Some(state);
        }
        for &byte in bytes {
            state = self.step(state, byte);
            if self.ends[state as usize] {
                return None;
            }
        }
        Some(state)
    }

    /// The parts of a text.
    pub fn fragments(&self, text: &str) -> Vec<Fragment> {
        match &self.leftmost {
            Some([trie, _]) => self.leftmost_of(trie, text),
            None => self.in_turn(text),
        }
    }

    /// The parts of a text after the normaliser.
    pub fn normalized_fragments(&self, text: &str) -> Vec<Fragment> {
        match &self.leftmost {
            Some([_, trie]) => self.leftmost_of(trie, text),
            None => vec![Fragment::Text(0, text.len())],
        }
    }

    fn leftmost_of(&self, trie: &Trie, text: &str) -> Vec<Fragment> {
        let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
        let bytes = text.as_bytes();
        while at < text.len() && !trie.ends.is_empty() {
            let Some((number, length)) = trie.longest(&bytes[at..]).filter(|_| text.is_char_boundary(at))
            else {
                at += 1;
                continue;
            };
            let (token, start) = (&self.tokens[number], at);
            let (before, after) = (&text[..start], &text[start + length..]);
            at = start + length;
            let is_word = |c: Option<char>| c.is_some_and(|c| self.word.contains(c));
            if token.is_word && (is_word(before.chars().next_back()) || is_word(after.chars().next())) {
                continue;
            }
            let start = if token.strips_left { before.trim_end().len().max(from) } else { start };
            if from < start {
                parts.push(Fragment::Text(from, start));
            }
            parts.push(Fragment::Token(token.token));
            from = if token.strips_right { text.len() - after.trim_start().len() } else { at };
            at = from;
        }
        if from < text.len() {
            parts.push(Fragment::Text(from, text.len()));
        }
        parts
    }

    /// What each token in turn, the longest first, leaves of a text.
    fn in_turn(&self, text: &str) -> Vec<Fragment> {
        let mut parts = if text.is_empty() { Vec::new() } else { vec![Fragment::Text(0, text.len())] };
        if self.read(NO_PART, text.as_bytes()).is_some() {
            return parts;
        }
        let bytes = text.as_bytes();
        for user in &self.tokens {
            let mut next = Vec::with_capacity(parts.len());
            for part in parts {
                let Fragment::Text(mut from, to) = part else {
                    next.push(part);
                    continue;
                };
                while let Some(at) = find(&bytes[from..to], &user.text) {
                    if at > 0 {
                        next.push(Fragment::Text(from, from + at));
                    }
                    next.push(Fragment::Token(user.token));
                    from += at + user.text.len();
                    while user.strips_right
                        && from < to
                        && (bytes[from].is_ascii_whitespace() || bytes[from] == 0x0b)
                    {
                        from += 1;
                    }
                }
                if from < to {
                    next.push(Fragment::Text(from, to));
                }
            }
            parts = next;
        }
        parts
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|&byte| byte == part[0]) {
        if text[from + at..].starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
