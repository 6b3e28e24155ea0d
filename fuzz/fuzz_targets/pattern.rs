//! Regular expressions: any text gives an error that says where, or a language in which searching is the same as
//! matching the whole with anything around.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::grammar::expr::{Encoding, Exprs};
use logitree::grammar::pattern::{parse, PatternOptions};

fuzz_target!(|text: &str| {
    let found = match parse(text, &PatternOptions::SEARCH) {
        Ok(found) => found,
        Err(error) => return assert!(!error.message.is_empty() && error.place.contains(':')),
    };
    // In extended mode a comment may swallow the closing parenthesis.
    let whole = if text.contains("(?") && text.contains('#') {
        None
    } else {
        parse(&format!("[^]*(?:{text})[^]*"), &PatternOptions::WHOLE).ok()
    };
    let mut exprs = Exprs::new(1 << 14);
    let Ok(search) = exprs.compile(&found, Encoding::Utf8) else { return };
    let Some(Ok(whole)) = whole.map(|whole| exprs.compile(&whole, Encoding::Utf8)) else { return };
    for sample in ["", "a", "ab", "a b", "\n", "aa\nb", "0", "é", text] {
        let (one, other) =
            (exprs.matches(search, sample.as_bytes()), exprs.matches(whole, sample.as_bytes()));
        if let (Ok(one), Ok(other)) = (one, other) {
            assert_eq!(one, other, "{text:?} on {sample:?}");
        }
    }
});
