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

pub mod automata;
pub mod item_set;
pub mod item_set_questions;
pub mod laws;
pub mod plain;
pub mod random_rules;
#[path = "../../../../logitree-automata/tests/it/regexes.rs"]
pub mod regexes;
#[path = "../../../../logitree-grammar/tests/it/rule_oracle.rs"]
pub mod rule_oracle;
pub mod sequences;
pub mod texts;

use logitree::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
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

/// A vocabulary of ordinary tokens.
pub fn vocabulary<B: AsRef<[u8]>>(tokens: &[B]) -> Vocabulary {
    let tokens = tokens.iter().map(|b| Token { bytes: b.as_ref().to_vec(), kind: TokenKind::Normal });
    Vocabulary::new(tokens, VocabularyOptions::default()).expect("a vocabulary of ordinary tokens")
}

/// A vocabulary of ordinary `tokens` and then the end marker `</s>`, whose id is their number.
pub fn ending_vocabulary<B: AsRef<[u8]>>(tokens: &[B]) -> (Arc<Vocabulary>, u32) {
    let mut all: Vec<Token> =
        tokens.iter().map(|b| Token { bytes: b.as_ref().to_vec(), kind: TokenKind::Normal }).collect();
    all.push(Token { bytes: b"</s>".to_vec(), kind: TokenKind::Control });
    let end = tokens.len() as u32;
    let about = VocabularyOptions { end_of_generation: vec![end], ..VocabularyOptions::default() };
    (Arc::new(Vocabulary::new(all, about).expect("a vocabulary with an end")), end)
}

/// The 26 tokens drawn above.
pub fn small() -> Arc<Vocabulary> {
    let mut tokens: Vec<Token> =
        SMALL.iter().map(|b| Token { bytes: b.to_vec(), kind: TokenKind::Normal }).collect();
    tokens.push(Token { bytes: b"<end>".to_vec(), kind: TokenKind::Control });
    let about = VocabularyOptions {
        name: "small".into(),
        end_of_generation: vec![END],
        ..VocabularyOptions::default()
    };
    Arc::new(Vocabulary::new(tokens, about).expect("the small vocabulary"))
}
