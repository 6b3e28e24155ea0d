//! Calls that take long: any text of a grammar, over a vocabulary with long tokens. What it finds is a call that takes
//! more time than its fuel stands for. `tests/support/hunt_slow_calls.py` does the same with real vocabularies.
//!
//! The first byte chooses the syntax; what follows the first zero byte chooses tokens.

#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use logitree::constraint::{Grammar, GrammarLimits};
use logitree::grammar::json_schema::{load, SchemaOptions};
use logitree::grammar::rules::{Rule, RuleBody, RuleId, Rules};
use logitree::grammar::{gbnf, pattern};
use logitree::mask::words_for;
use logitree::vocabulary::{About, Token, TokenKind, Vocabulary};
use logitree::{Result, TokenId};

/// What a call may take: a quarter of a second, and eight times that for the sanitizer.
const LONGEST: Duration = Duration::from_secs(2);
/// Maximum number of tokens of one run.
const MAX_TOKENS: usize = 8;

fn vocabulary() -> Arc<Vocabulary> {
    static MADE: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let make = || {
        let normal = |bytes: Vec<u8>| Token { bytes, kind: TokenKind::Normal };
        let mut all: Vec<Token> = (0..=255u8).map(|byte| normal(vec![byte])).collect();
        let long = ["a".repeat(16), "ab".repeat(16), "[".repeat(32), "(".repeat(16), " ".repeat(64), "\", \"".repeat(4)];
        all.extend(long.map(|text| normal(text.into_bytes())));
        all.push(Token { bytes: b"</s>".to_vec(), kind: TokenKind::Control });
        let end = all.len() as TokenId - 1;
        let about = About { end_of_generation: vec![end], ..About::default() };
        Arc::new(Vocabulary::new(all, about).expect("a sound vocabulary"))
    };
    Arc::clone(MADE.get_or_init(make))
}

fn rules(kind: u8, text: &str) -> Result<Rules> {
    let alone = |body| Rules { rules: vec![Rule { name: "root".into(), body }], start: RuleId(0) };
    match kind % 3 {
        0 => gbnf::parse(text),
        1 => pattern::parse(text, &pattern::PatternOptions::WHOLE).map(|regex| alone(RuleBody::Lexeme(regex))),
        _ => load(text, &SchemaOptions::default(), &[]).map(|schema| alone(RuleBody::Json(Arc::new(schema)))),
    }
}

/// Runs a call; one that takes long is the finding.
fn timed<T>(name: &str, call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
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
    let Ok(rules) = timed("reading", || rules(kind, text)) else { return };
    let limits = GrammarLimits::default();
    let Ok(grammar) = timed("binding", || Grammar::new(Arc::new(rules), &vocabulary(), None, limits)) else { return };
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
