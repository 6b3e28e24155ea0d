//! What a call on a costly grammar may cost, as counted work: steps of fuel, allocations, and bytes in use. The cases
//! are those of `testdata/time`.

use std::cell::Cell;
use std::sync::Arc;

use logitree::constraint::{BoundGrammar, GrammarLimits};
use logitree::grammar::gbnf;
use logitree::grammar::rules::Rules;
use logitree::mask::AllowedTokens;
use logitree::{ErrorKind, Result, TokenId, Vocabulary};
use serde::Deserialize;

use crate::{ALLOCATIONS, LIVE, MOST};
use logitree_testing::corpus;
use logitree_testing::texts::{long_tokens, of_lark, of_pattern, of_schema};

/// The most that one call may hold in addition to what was held before.
const MAX_BYTES: isize = 300 << 20;
/// More allocations for a step of fuel are work that nothing is charged for.
const ALLOCATIONS_PER_STEP: f64 = 2.0;
/// Allocations of a call that fuel need not cover: reading a text, the tables of the vocabulary.
const FREE_ALLOCATIONS: f64 = 300_000.0;
/// Tokens written.
const TOKENS: usize = 12;

#[derive(Deserialize)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    syntax: String,
    text: String,
    ends: String,
    #[serde(default)]
    open: String,
    #[serde(default)]
    middle: String,
    #[serde(default)]
    close: String,
    #[serde(default)]
    times: usize,
    #[serde(default)]
    line: String,
    #[serde(default)]
    lines: usize,
}

impl Case {
    fn rules(&self) -> Result<Rules> {
        let nested = self.open.repeat(self.times) + &self.middle + &self.close.repeat(self.times);
        let mut text = match self.times {
            0 => self.text.clone(),
            _ => self.text.replace('@', &nested),
        };
        for n in 0..self.lines {
            let line = self.line.replace("#0", &((7 * n + 1) % self.lines).to_string());
            text.push('\n');
            text += &line.replace("#1", &(n + 1).to_string()).replace('#', &n.to_string());
        }
        match &self.syntax[..] {
            "regex" => of_pattern(&text),
            "gbnf" => gbnf::parse(&text),
            "lark" => of_lark(&text),
            "json_schema" => of_schema(&text),
            other => panic!("a syntax named {other}"),
        }
    }
}

/// Runs a call and checks what it cost. `steps` gives the fuel that it consumed.
fn counted<T>(label: &str, steps: impl FnOnce(&T) -> u64, call: impl FnOnce() -> Result<T>) -> Result<T> {
    let live = LIVE.with(Cell::get);
    let before = ALLOCATIONS.with(Cell::get);
    MOST.with(|most| most.set(live));
    let done = call();
    let bytes = MOST.with(Cell::get) - live;
    let allocations = (ALLOCATIONS.with(Cell::get) - before) as f64;
    let steps = match &done {
        Ok(done) => steps(done),
        // A call that reached its limit consumed what it had.
        Err(_) => GrammarLimits::default().fuel,
    };
    assert!(steps <= GrammarLimits::default().fuel, "{label}: {steps} steps");
    assert!(bytes <= MAX_BYTES, "{label}: {bytes} bytes");
    let most = FREE_ALLOCATIONS + ALLOCATIONS_PER_STEP * steps as f64;
    assert!(allocations <= most, "{label}: {allocations} allocations for {steps} steps");
    done
}

/// Writes tokens, the longest first that are allowed.
fn write(case: &Case, vocabulary: &Arc<Vocabulary>) -> Result<()> {
    let name = &case.name;
    let rules = Arc::new(counted(&format!("{name}, read"), |_| 0, || case.rules())?);
    let bind = || BoundGrammar::new(rules, vocabulary, None, GrammarLimits::default());
    let grammar = counted(&format!("{name}, bound"), BoundGrammar::steps, bind)?;
    let mut matcher = grammar.matcher()?;
    for at in 0..TOKENS {
        let label = |call: &str| format!("{name}, {call} after {at} tokens");
        let before = grammar.steps();
        let ids = counted(
            &label("mask"),
            |_| grammar.steps() - before,
            || {
                Ok(match matcher.allowed()? {
                    AllowedTokens::All => Vec::new(),
                    AllowedTokens::Ids(ids) => ids.to_vec(),
                    AllowedTokens::Mask(words) => logitree::mask::ids(words).collect::<Vec<TokenId>>(),
                })
            },
        )?;
        let before = grammar.steps();
        let mut forced = Vec::new();
        counted(&label("forced"), |()| grammar.steps() - before, || matcher.forced(&mut forced))?;
        let before = grammar.steps();
        counted(&label("explained"), |_| grammar.steps() - before, || matcher.expected_after(b""))?;
        let longest = ids.iter().copied().filter(|&id| vocabulary.kind(id).is_text()).max_by_key(|&id| {
            let token = vocabulary.token_bytes(id);
            (token.len(), (id as usize * 7 + at * 31) % 64)
        });
        let Some(token) = longest else { return Ok(()) };
        let before = grammar.steps();
        counted(&label("accepted"), |()| grammar.steps() - before, || matcher.accept(token))?;
    }
    Ok(())
}

#[test]
fn every_call_is_bounded_in_counted_work() {
    let corpus: Corpus = corpus::read("time/grammars.toml");
    assert!(corpus.case.len() > 60);
    let vocabulary = long_tokens();
    let is_expected = |case: &Case, end: &Result<()>| match end {
        Ok(()) => case.ends != "limit",
        Err(error) => error.kind == ErrorKind::Limit && case.ends != "ok",
    };
    let wrong: Vec<String> = corpus
        .case
        .iter()
        .map(|case| (case, write(case, &vocabulary)))
        .filter(|(case, end)| !is_expected(case, end))
        .map(|(case, end)| format!("{}: {end:?}, not {}", case.name, case.ends))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}
