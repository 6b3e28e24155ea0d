//! Grammars of any syntax over a small vocabulary: any text gives an error or a matcher whose mask and whose `accept`
//! say the same of every token, also with nothing remembered, and after a rollback.
//!
//! The first byte chooses the syntax; what follows the first zero byte chooses tokens.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use logitree::constraint::{BoundGrammar, GrammarLimits, Matcher};
use logitree::mask::words_for;
use logitree::{ErrorKind, TokenId, TokenKind, Vocabulary};
use logitree_testing::texts;
use logitree_testing::vocabulary::{bytes_and, of_tokens, token};

/// Maximum number of tokens of one run.
const MAX_TOKENS: usize = 24;

fn vocabulary() -> Arc<Vocabulary> {
    static MADE: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let make = || {
        let texts = [
            "ab", "abc", "aa", "\"a", "\":", "\": ", ", \"", "{\"", "[[", "]}", "12", "0.", "-1", "true",
            " \n", "é\"",
        ];
        let ordinary = bytes_and(&texts).into_iter().map(|bytes| token(bytes, TokenKind::Normal));
        let special = ["a", "</s>", "<t>"].map(|text| token(text, TokenKind::Control));
        of_tokens(ordinary.chain(special), &[256 + 17, 256 + 15])
    };
    Arc::clone(MADE.get_or_init(make))
}

/// The mask; `None` where the constraint is over, or where an error ends the run: one of the limits, or that only end
/// tokens, which never are text, were named.
fn mask(matcher: &mut dyn Matcher, names_tokens: bool) -> Option<Vec<u32>> {
    if matcher.is_finished() {
        return None;
    }
    let mut words = vec![0; words_for(matcher.vocabulary_size())];
    match matcher.write(&mut words) {
        Ok(()) => {
            assert!(words.iter().any(|&word| word != 0), "a dead end");
            Some(words)
        }
        Err(error) => {
            let is_known = error.kind == ErrorKind::Limit || names_tokens;
            assert!(is_known, "a vocabulary of all bytes has no dead ends: {error}");
            None
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let cut = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let Ok(text) = std::str::from_utf8(&rest[..cut]) else { return };
    let script = rest.get(cut + 1..).unwrap_or_default();
    let Ok(rules) = texts::of_kind(kind, text).map(Arc::new) else { return };
    let names_tokens = kind % 3 == 0 && text.contains('<');
    let limits = GrammarLimits { fuel: 200_000, mask_bytes: 1 << 20, automata_bytes: 4 << 20 };
    let vocabulary = vocabulary();
    let bound =
        |limits| BoundGrammar::new(Arc::clone(&rules), &vocabulary, None, limits).and_then(|g| g.matcher());
    let Ok(mut matcher) = bound(limits) else { return };
    let mut forgetful = bound(GrammarLimits { mask_bytes: 0, ..limits }).ok();
    for &pick in script.iter().take(MAX_TOKENS) {
        let Some(words) = mask(&mut *matcher, names_tokens) else { return };
        if let Some(also) = forgetful.as_mut().and_then(|other| mask(&mut **other, names_tokens)) {
            assert_eq!(words, also, "what is remembered changes a mask");
        }
        let ids = 0..vocabulary.len() as TokenId;
        let allowed: Vec<TokenId> =
            ids.clone().filter(|id| words[*id as usize / 32] >> (id % 32) & 1 == 1).collect();
        for id in ids {
            match matcher.accept(id) {
                Ok(()) => {
                    assert!(allowed.binary_search(&id).is_ok(), "{id} was accepted");
                    matcher.rollback(1).expect("one was accepted");
                }
                Err(error) if error.kind == ErrorKind::Limit => return,
                Err(_) => assert!(allowed.binary_search(&id).is_err(), "{id} was refused"),
            }
        }
        let token = allowed[usize::from(pick) % allowed.len()];
        matcher.accept(token).expect("it was accepted before");
        forgetful = forgetful.and_then(|mut other| other.accept(token).is_ok().then_some(other));
    }
});
