//! Calls that take long: any text of a grammar, over a vocabulary with long tokens. What it finds is a call that takes
//! more time than its fuel stands for.
//!
//! The first byte chooses the syntax; what follows the first zero byte chooses tokens.

#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cpu_time::ThreadTime;
use libfuzzer_sys::fuzz_target;
use logitree::constraint::{BoundGrammar, GrammarLimits};
use logitree::mask::words_for;
use logitree::vocabulary::Vocabulary;
use logitree::TokenId;
use logitree_testing::texts;

/// What a call may take of a processor's time: a quarter of a second, and twenty times that for the sanitizer. A pattern
/// that ends in its LimitError after 0.09 s takes 2.1 s with it on a busy machine.
const LONGEST: Duration = Duration::from_secs(5);
/// Maximum number of tokens of one run.
const MAX_TOKENS: usize = 8;

fn vocabulary() -> Arc<Vocabulary> {
    static MADE: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    Arc::clone(MADE.get_or_init(texts::long_tokens))
}

/// Runs a call; one that takes long is the finding.
fn timed<T>(name: &str, call: impl FnOnce() -> T) -> T {
    let began = ThreadTime::now();
    let done = call();
    let took = began.elapsed();
    assert!(took <= LONGEST, "{name} took {took:?}");
    done
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let cut = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let Ok(text) = std::str::from_utf8(&rest[..cut]) else { return };
    let script = rest.get(cut + 1..).unwrap_or_default();
    let Ok(rules) = timed("reading", || texts::of_kind(kind, text)) else { return };
    let limits = GrammarLimits::default();
    let Ok(grammar) = timed("binding", || BoundGrammar::new(Arc::new(rules), &vocabulary(), None, limits))
    else {
        return;
    };
    assert!(grammar.steps() <= 2 * limits.fuel);
    let Ok(mut matcher) = grammar.matcher() else { return };
    let mut words = vec![0; words_for(matcher.vocabulary_size())];
    for &byte in script.iter().take(MAX_TOKENS) {
        if matcher.is_finished() || timed("a mask", || matcher.write(&mut words)).is_err() {
            return;
        }
        let _ = timed("forced tokens", || matcher.forced(&mut Vec::new()));
        let allowed: Vec<TokenId> = logitree::mask::ids(&words).collect();
        let Some(&token) = allowed.get(usize::from(byte) * allowed.len() / 256) else { return };
        if timed("accepting", || matcher.accept(token)).is_err() {
            return;
        }
    }
});
