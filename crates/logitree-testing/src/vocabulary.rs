//! A vocabulary small enough to check by hand, for the tests of every room.
//!
//! ```text
//! root
//! ├─ \x0a 0             ├─ 1 6              ├─ c                     ├─ t
//! ├─ ␣ 1                │  ├─ 0 7           │  └─ a                  │  └─ o 19
//! │  ├─ c               │  │  └─ 0 8        │     └─ t 11 12         │     └─ p 20
//! │  │  └─ a            │  └─ 2 9           │        └─ s 13         ├─ \xc3
//! │  │     └─ t 2       ├─ a 10             ├─ d                     │  └─ \xa9 21
//! │  └─ d               │                   │  └─ o 14               └─ \xe4 22
//! │     └─ o            │                   │     └─ g 15                └─ \xbd
//! │        └─ g 3       │                   ├─ n                            ├─ \xa0 23
//! ├─ " 4                │                   │  └─ o 16                      └─ \xa5 24
//! │  └─ : 5             │                   ├─ o 17
//! │                     │                   │  └─ k 18
//! 25 <end> is control and in no trie; 11 and 12 are both "cat".
//! ```

use logitree::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
use logitree::TokenId;
use std::sync::Arc;

/// The bytes of ids 0 to 24; id 25 is `<end>`.
pub const SMALL: [&[u8]; 25] = [
    b"\n",
    b" ",
    b" cat",
    b" dog",
    b"\"",
    b"\":",
    b"1",
    b"10",
    b"100",
    b"12",
    b"a",
    b"cat",
    b"cat",
    b"cats",
    b"do",
    b"dog",
    b"no",
    b"o",
    b"ok",
    b"to",
    b"top",
    b"\xc3\xa9",
    b"\xe4",
    b"\xe4\xbd\xa0",
    b"\xe4\xbd\xa5",
];

/// The id of `<end>`.
pub const END: u32 = 25;

/// A token.
pub fn token(bytes: impl AsRef<[u8]>, kind: TokenKind) -> Token {
    Token { bytes: bytes.as_ref().to_vec(), kind }
}

/// A vocabulary of these tokens; `ends` end a generation.
pub fn of_tokens(tokens: impl IntoIterator<Item = Token>, ends: &[TokenId]) -> Arc<Vocabulary> {
    let about = VocabularyOptions { end_tokens: ends.to_vec(), ..VocabularyOptions::default() };
    Arc::new(Vocabulary::new(tokens, about).expect("a sound vocabulary"))
}

/// A vocabulary of ordinary `tokens` and then `special` ones, which are no text.
pub fn with_special<B: AsRef<[u8]>>(tokens: &[B], special: &[&str], ends: &[TokenId]) -> Arc<Vocabulary> {
    let special = special.iter().map(|text| token(text, TokenKind::Control));
    of_tokens(tokens.iter().map(|bytes| token(bytes, TokenKind::Normal)).chain(special), ends)
}

/// A vocabulary of ordinary tokens.
pub fn vocabulary<B: AsRef<[u8]>>(tokens: &[B]) -> Arc<Vocabulary> {
    with_special(tokens, &[], &[])
}

/// A vocabulary of ordinary `tokens` and then the end marker `</s>`, whose id is their number.
pub fn ending_vocabulary<B: AsRef<[u8]>>(tokens: &[B]) -> (Arc<Vocabulary>, TokenId) {
    let end = tokens.len() as TokenId;
    (with_special(tokens, &["</s>"], &[end]), end)
}

/// Every byte as a token of its own, and then `more`.
pub fn bytes_and<B: AsRef<[u8]>>(more: &[B]) -> Vec<Vec<u8>> {
    (0..=255u8).map(|byte| vec![byte]).chain(more.iter().map(|bytes| bytes.as_ref().to_vec())).collect()
}

/// The 26 tokens drawn above.
pub fn small() -> Arc<Vocabulary> {
    with_special(&SMALL, &["<end>"], &[END])
}
