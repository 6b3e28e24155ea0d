//! User-defined tokens: a text that holds one's text is cut there before anything else, the longest first. Finds their texts
//! byte by byte (Aho and Corasick, 1975).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::TokenId;

/// One token.
#[derive(Debug, Clone)]
pub(super) struct UserToken {
    pub text: Box<[u8]>,
    pub token: TokenId,
    /// Whether it takes the white space after it with it.
    pub strips: bool,
}

/// The user-defined tokens of a vocabulary, and the machine that finds them.
#[derive(Default)]
pub(super) struct UserTokens {
    /// The longest first.
    tokens: Vec<UserToken>,
    next: FxHashMap<(u32, u8), u32>,
    /// Where to continue when a byte does not, by state.
    fail: Vec<u32>,
    /// Whether some text ends in the state.
    ends: Vec<bool>,
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
    pub fn new(mut tokens: Vec<UserToken>) -> UserTokens {
        tokens.retain(|token| !token.text.is_empty());
        tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        let mut made = UserTokens { tokens, next: FxHashMap::default(), fail: vec![0], ends: vec![false] };
        let mut children: Vec<Vec<(u8, u32)>> = vec![Vec::new()];
        for token in &made.tokens {
            let mut at = 0;
            for &byte in &token.text {
                at = *made.next.entry((at, byte)).or_insert_with(|| {
                    let new = made.fail.len() as u32;
                    children[at as usize].push((byte, new));
                    children.push(Vec::new());
                    made.fail.push(0);
                    made.ends.push(false);
                    new
                });
            }
            made.ends[at as usize] = true;
        }
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

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The state after `byte`.
    #[inline]
    pub fn step(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            if let Some(&next) = self.next.get(&(state, byte)) {
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

    /// The parts of `text`: what each token in turn, the longest first, leaves of it.
    pub fn fragments(&self, text: &str) -> Vec<Fragment> {
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
                    while user.strips
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
