//! The decoder against its naive version, and its own laws: forcing changes nothing but the work, rollback equals
//! replay, a fork lives its own life, a forgotten constraint ends with a warning and a running one never.

use std::sync::Arc;

use logitree::constraint::{AfterEnd, Matcher};
use logitree::decoder::{Decoder, Finish, Stop, Then, MAX_REGION_TOKENS};
use logitree::mask::{bit, AllowedTokens};
use logitree::sampling::{presets, Chain, Params};
use logitree::trace::Source;
use logitree::{Error, ErrorKind, Result, TokenId, TokenKind, Vocabulary};
use logitree_testing::vocabulary::{of_tokens, token};
use proptest::prelude::*;

const SIZE: usize = 40;
const END: TokenId = 39;

/// The obvious matcher: a list of sequences, scanned at every call.
#[derive(Clone)]
struct Sequences {
    all: Arc<Vec<Vec<TokenId>>>,
    taken: Vec<TokenId>,
    allowed: Vec<TokenId>,
    /// After so many tokens, finding the set is too much work.
    fuel: usize,
    after: AfterEnd,
}

impl Sequences {
    /// No sequence may be the beginning of another.
    fn boxed(all: &[&[TokenId]]) -> Box<dyn Matcher> {
        Sequences::fuelled(all, usize::MAX)
    }

    fn fuelled(all: &[&[TokenId]], fuel: usize) -> Box<dyn Matcher> {
        let all = Arc::new(all.iter().map(|s| s.to_vec()).collect());
        let after = AfterEnd::tokens(&[], &[END]);
        Box::new(Sequences { all, taken: Vec::new(), allowed: Vec::new(), fuel, after })
    }

    fn burn(&self) -> Result<()> {
        if self.taken.len() < self.fuel {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Limit, "out of fuel"))
    }

    fn next(&self, taken: &[TokenId]) -> Vec<TokenId> {
        let mut next: Vec<TokenId> = self
            .all
            .iter()
            .filter(|s| s.starts_with(taken))
            .filter_map(|s| s.get(taken.len()).copied())
            .collect();
        next.sort_unstable();
        next.dedup();
        next
    }
}

impl Matcher for Sequences {
    fn vocabulary_size(&self) -> usize {
        SIZE
    }
    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.is_finished() {
            return self.after.allowed();
        }
        self.burn()?;
        self.allowed = self.next(&self.taken);
        Ok(AllowedTokens::Ids(&self.allowed))
    }
    fn accept(&mut self, token: TokenId) -> Result<()> {
        let taken = match self.is_finished() {
            true => self.after.takes(token),
            false => self.next(&self.taken).contains(&token),
        };
        if !taken {
            return Err(Error::new(ErrorKind::Token, format!("token {token} is not allowed")));
        }
        self.taken.push(token);
        Ok(())
    }
    fn rollback(&mut self, n: usize) -> Result<()> {
        self.taken.truncate(self.taken.len() - n);
        Ok(())
    }
    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(self.clone())
    }
    fn reset(&mut self) {
        self.taken.clear();
    }
    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        self.burn()?;
        let mut taken = self.taken.clone();
        while let [only] = self.next(&taken)[..] {
            out.push(only);
            taken.push(only);
        }
        Ok(())
    }
    fn is_accepting(&self) -> bool {
        self.is_finished()
    }
    fn is_finished(&self) -> bool {
        self.next(&self.taken).is_empty()
    }
    fn after_end(&self) -> &AfterEnd {
        &self.after
    }
    fn accepted(&self) -> usize {
        self.taken.len()
    }
}

/// Token i is the letter `a + i % 26`, so that stop strings can be spelt; the last one ends generation.
fn vocabulary() -> Arc<Vocabulary> {
    let letter = |i: usize| token([b'a' + (i % 26) as u8], TokenKind::Normal);
    let tokens =
        (0..SIZE).map(|i| if i as TokenId == END { token("<end>", TokenKind::Control) } else { letter(i) });
    of_tokens(tokens, &[END])
}

fn chain(seed: u32) -> Chain {
    let params = Params::default().seed(seed.into()).with("penalty_repeat", 1.3).with("temp", 1.5);
    presets::llama_cpp(&params).expect("a sound chain")
}

/// Logits that depend on the tokens so far, as a model's do.
fn model(tokens: &[TokenId], salt: u64) -> Vec<f32> {
    let mut state =
        tokens.iter().fold(salt ^ 0x9e37_79b9, |h, &t| (h ^ u64::from(t)).wrapping_mul(0x0100_0000_01b3));
    (0..SIZE)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 * 8.0 - 4.0
        })
        .collect()
}

const TREE: [&[TokenId]; 6] =
    [&[1, 2, 3, 4, 5], &[1, 2, 3, 9], &[1, 7, 8, 8, 8, 8], &[10, 11], &[12], &[10, 13, 14, 15, 20, 21, 22]];

fn constrained(seed: u32) -> Decoder {
    Decoder::new(vocabulary(), chain(seed), Some(Sequences::boxed(&TREE)), Stop::default()).expect("fits")
}

fn free(seed: u32, stop: Stop) -> Decoder {
    Decoder::new(vocabulary(), chain(seed), None, stop).expect("fits")
}

fn run(decoder: &mut Decoder, salt: u64, forcing: bool, most: usize) -> Vec<TokenId> {
    let mut ignored = Vec::new();
    while decoder.finish().is_none() && decoder.tokens().len() < most {
        if forcing {
            decoder.take_forced(&mut ignored).expect("forced tokens are allowed");
        }
        if decoder.finish().is_none() {
            decoder.step(&model(decoder.tokens(), salt)).expect("a step");
        }
    }
    decoder.tokens().to_vec()
}

proptest! {
    #[test]
    fn a_step_equals_masking_a_copy_and_running_the_chain_over_all_of_it(seed: u32, salt: u64) {
        let mut fast = constrained(seed);
        let mut slow = chain(seed);
        let mut words = [0u32; SIZE.div_ceil(32)];
        while fast.finish().is_none() {
            let logits = model(fast.tokens(), salt);
            fast.allowed().expect("a set").write(SIZE, &mut words);
            let masked: Vec<f32> = (0..SIZE)
                .map(|i| if bit(&words, i as u32) { logits[i] } else { f32::NEG_INFINITY })
                .collect();
            let expected = slow.draw(&masked, AllowedTokens::All).expect("something is allowed");
            slow.accept(expected);
            prop_assert_eq!(fast.step(&logits).expect("a step"), expected);
        }
        prop_assert!(TREE.contains(&fast.tokens()));
    }

    #[test]
    fn forcing_changes_the_work_and_not_the_tokens(seed: u32, salt: u64) {
        let script = |forcing: bool| {
            let mut decoder = free(seed, Stop::default());
            run(&mut decoder, salt, forcing, 5);
            if decoder.finish().is_none() {
                decoder.activate(Sequences::boxed(&TREE), Then::Continue).expect("fits");
            }
            run(&mut decoder, salt, forcing, 40)
        };
        prop_assert_eq!(script(true), script(false));
    }

    #[test]
    fn rollback_equals_a_decoder_that_never_went_further(seed: u32, salt: u64, ops in prop::collection::vec(0u8..8, 1..60)) {
        let mut decoder = free(seed, Stop::default());
        decoder.prime(&[3, 4, 5]).expect("the prompt comes first");
        // What was done for each length: a straight-line script that leads to the same state.
        let mut script: Vec<(usize, u8)> = Vec::new();
        for op in ops {
            let at = decoder.tokens().len();
            match op {
                0 => if decoder.activate(Sequences::boxed(&TREE), Then::Continue).is_ok() { script.push((at, 0)) },
                1 => { decoder.clear().expect("free"); script.push((at, 1)); }
                2 | 3 => {
                    let to = at.saturating_sub(op as usize * 2);
                    decoder.rollback(at - to).expect("not past the start");
                    script.retain(|&(when, kind)| when < to || (when == to && kind < 2));
                }
                _ => if decoder.finish().is_none() {
                    decoder.step(&model(decoder.tokens(), salt)).expect("a step");
                    script.push((at, 2));
                },
            }
        }
        let mut replay = free(seed, Stop::default());
        replay.prime(&[3, 4, 5]).expect("the prompt comes first");
        for (_, kind) in script {
            match kind {
                0 => replay.activate(Sequences::boxed(&TREE), Then::Continue).expect("fits"),
                1 => replay.clear().expect("free"),
                _ => { replay.step(&model(replay.tokens(), salt)).expect("a step"); }
            }
        }
        prop_assert_eq!(decoder.tokens(), replay.tokens());
        prop_assert_eq!(decoder.finish(), replay.finish());
        let (mut a, mut b) = (decoder.fork(), replay.fork());
        prop_assert_eq!(run(&mut a, salt, false, 60), run(&mut b, salt, false, 60));
    }
}

#[test]
fn a_fork_and_its_parent_are_independent() {
    let mut parent = constrained(1);
    parent.step(&model(&[], 1)).expect("a step");
    let mut child = parent.fork();
    let before = parent.tokens().to_vec();
    run(&mut child, 1, false, 40);
    assert_eq!(parent.tokens(), before);
    assert_eq!(run(&mut parent, 1, false, 40), child.tokens());
}

#[test]
fn reset_gives_the_same_run_again() {
    let mut decoder = constrained(7);
    let first = run(&mut decoder, 3, true, 40);
    decoder.reset();
    assert!(decoder.tokens().is_empty() && decoder.finish().is_none());
    assert_eq!(run(&mut decoder, 3, true, 40), first);
}

#[test]
fn reset_returns_a_used_matcher_and_chain_to_their_given_state() {
    let begun = || {
        let mut matcher = Sequences::boxed(&TREE);
        [1, 2].into_iter().for_each(|token| matcher.accept(token).expect("allowed"));
        matcher
    };
    let mut used = chain(5);
    for token in [3, 2, 9] {
        used.draw(&model(&[], 1), AllowedTokens::All).expect("a token");
        used.accept(token);
    }
    let initial = || Decoder::new(vocabulary(), used.clone(), Some(begun()), Stop::default()).expect("fits");
    let mut decoder = initial();
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[3])));
    decoder.accept(3).expect("allowed");
    decoder.rollback(1).expect("one token");
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[3])));
    let first = run(&mut decoder, 2, false, 40);
    decoder.reset();
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[3])));
    assert_eq!(decoder.chain().accepted(), 3);
    assert_eq!(run(&mut decoder, 2, false, 40), first);

    let mut later = free(0, Stop::default());
    later.accept(30).expect("free");
    later.activate(begun(), Then::Continue).expect("fits");
    later.accept(3).expect("allowed");
    later.rollback(1).expect("two tokens");
    assert_eq!(later.fork().allowed(), Ok(AllowedTokens::Ids(&[3])));
    later.accept(3).expect("allowed");
    later.accept(9).expect("allowed");
    assert_eq!(later.allowed(), Ok(AllowedTokens::All));
}

#[test]
fn end_tokens_and_max_tokens_stop() {
    let mut decoder = free(0, Stop::new(Some(3), vec![], true).expect("sound"));
    decoder.accept(1).expect("free");
    decoder.accept(END).expect("free");
    assert_eq!(decoder.finish(), Some(Finish::EndOfGeneration));
    assert_eq!(decoder.accept(1).expect_err("over").kind, ErrorKind::State);
    assert_eq!(decoder.step(&[0.0; SIZE]).expect_err("over").kind, ErrorKind::State);
    decoder.rollback(1).expect("two tokens");
    assert_eq!(decoder.finish(), None);
    decoder.accept(1).expect("free");
    decoder.accept(2).expect("free");
    assert_eq!(decoder.finish(), Some(Finish::MaxTokens));
}

#[test]
fn forced_runs_respect_max_tokens() {
    let only: [&[TokenId]; 1] = [&[1, 2, 3, 4, 5]];
    let stop = Stop::new(Some(3), vec![], true).expect("sound");
    let mut decoder =
        Decoder::new(vocabulary(), chain(0), Some(Sequences::boxed(&only)), stop).expect("fits");
    let mut out = Vec::new();
    decoder.take_forced(&mut out).expect("allowed");
    assert_eq!((out, decoder.finish()), (vec![1, 2, 3], Some(Finish::MaxTokens)));
}

#[test]
fn a_stop_string_is_found_across_tokens_and_only_once_it_is_whole() {
    let stop = Stop::new(None, vec![b"zzz".to_vec(), b"bcd".to_vec()], true).expect("sound");
    let mut decoder = free(0, stop);
    for (token, expected) in [(0, None), (1, None), (1, None), (2, None), (3, Some(Finish::StopString(1)))] {
        decoder.accept(token).expect("running");
        assert_eq!(decoder.finish(), expected, "after token {token}");
    }
    decoder.rollback(2).expect("five tokens");
    assert_eq!(decoder.finish(), None);
    assert_eq!(Stop::new(None, vec![vec![]], true).expect_err("empty").kind, ErrorKind::State);
}

#[test]
fn the_name_of_a_special_token_completes_no_stop_string() {
    let stop = Stop::new(None, vec![b"nd".to_vec(), b"a<".to_vec(), b"xy".to_vec()], false).expect("sound");
    let mut decoder = free(0, stop);
    for token in [0, END, 23, END, 24] {
        assert_eq!(decoder.finish(), None);
        decoder.accept(token).expect("running");
    }
    assert_eq!(decoder.finish(), Some(Finish::StopString(2)));
}

#[test]
fn a_forgotten_constraint_is_dropped_with_a_warning_and_a_running_one_never() {
    let mut decoder = free(0, Stop::default());
    decoder.activate(Sequences::boxed(&[&[1, 2]]), Then::Continue).expect("fits");
    for token in [1, 2] {
        decoder.accept(token).expect("allowed");
    }
    for _ in 2..MAX_REGION_TOKENS - 1 {
        decoder.accept(5).expect("the region is over");
    }
    assert!(decoder.matcher().is_some() && !decoder.has_warnings());
    decoder.accept(5).expect("free");
    assert!(decoder.matcher().is_none());
    assert_eq!(decoder.take_warnings().len(), 1);

    let long: Vec<TokenId> = (0..2 * MAX_REGION_TOKENS as TokenId).map(|i| i % 30).collect();
    decoder.activate(Sequences::boxed(&[&long]), Then::Continue).expect("fits");
    for &token in &long[..long.len() - 1] {
        decoder.accept(token).expect("allowed");
    }
    assert_eq!(decoder.accept(38).expect_err("still constrained").kind, ErrorKind::Token);
    assert!(!decoder.has_warnings());
}

#[test]
fn tokens_between_regions_are_unconstrained() {
    let mut decoder = free(0, Stop::default());
    decoder.activate(Sequences::boxed(&[&[1, 2], &[3, 4]]), Then::Continue).expect("fits");
    assert_eq!(decoder.accept(9).expect_err("not allowed").kind, ErrorKind::Token);
    decoder.accept(3).expect("allowed");
    decoder.accept(4).expect("allowed");
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::All));
    decoder.accept(9).expect("free");
    decoder.activate(Sequences::boxed(&[&[1, 2]]), Then::Stop).expect("fits");
    let mut out = Vec::new();
    decoder.take_forced(&mut out).expect("allowed");
    assert_eq!((out, decoder.finish()), (vec![1, 2], Some(Finish::Constraint)));
    decoder.clear().expect("free");
    assert_eq!(decoder.finish(), None);
}

/// A decoder whose own constraint is one of these sequences.
fn own(sequences: &[&[TokenId]]) -> Decoder {
    Decoder::new(vocabulary(), chain(0), Some(Sequences::boxed(sequences)), Stop::default()).expect("fits")
}

#[test]
fn clear_returns_to_the_decoders_own_constraint_with_all_tokens_seen() {
    let mut decoder = own(&[&[7, 1, 2, 8], &[7, 1, 3, 9]]);
    decoder.clear().expect("nothing is activated");
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[7])));
    decoder.accept(7).expect("allowed");
    decoder.activate(Sequences::boxed(&[&[4, 4]]), Then::Continue).expect("fits");
    decoder.activate(Sequences::boxed(&[&[1, 3, 5], &[1, 2, 5]]), Then::Continue).expect("fits");
    [1, 3].into_iter().for_each(|token| decoder.accept(token).expect("allowed"));
    decoder.clear().expect("both trees end");
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[9])));
    decoder.accept(9).expect("allowed");
    assert_eq!(decoder.finish(), Some(Finish::Constraint));
    // Back before the tree, and out of it at once.
    decoder.rollback(3).expect("not past the start");
    decoder.clear().expect("no token was written");
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[1])));
}

#[test]
fn what_the_own_constraint_does_not_allow_is_an_error_that_changes_nothing() {
    let mut decoder = own(&[&[7, 1, 2, 8]]);
    decoder.accept(7).expect("allowed");
    decoder.activate(Sequences::boxed(&[&[4, 5]]), Then::Continue).expect("fits");
    decoder.accept(4).expect("allowed by the tree");
    let error = decoder.clear().expect_err("4 is not in the own constraint");
    assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Token, "token 1 of the output"));
    assert_eq!(decoder.tokens(), [7, 4]);
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::Ids(&[5])));
    // Forgotten, it stays free text, with a warning.
    decoder.accept(5).expect("allowed by the tree");
    (0..MAX_REGION_TOKENS).for_each(|_| decoder.accept(9).expect("free"));
    assert_eq!(decoder.take_warnings().len(), 1);
    assert_eq!(decoder.allowed(), Ok(AllowedTokens::All));
    decoder.clear().expect_err("as before");
}

#[test]
fn stop_conditions_ignore_tokens_of_a_cleared_constraint() {
    let stop = Stop::new(None, vec![b"b".to_vec()], true).expect("sound");
    for inside in [1, END] {
        let mut decoder = free(0, stop.clone());
        decoder.activate(Sequences::boxed(&[&[inside, 2]]), Then::Continue).expect("fits");
        decoder.accept(inside).expect("allowed");
        decoder.clear().expect("free");
        assert_eq!(decoder.finish(), None);
        decoder.rollback(0).expect("nothing is taken back");
        assert_eq!(decoder.finish(), None, "token {inside}");
        decoder.accept(1).expect("free");
        assert_eq!(decoder.finish(), Some(Finish::StopString(0)));
    }
    // However a finished region is left, what its last token means is the same.
    let ended = |activate: bool| {
        let mut decoder = free(0, stop.clone());
        decoder.activate(Sequences::boxed(&[&[2, 1]]), Then::Stop).expect("fits");
        [2, 1].into_iter().for_each(|token| decoder.accept(token).expect("allowed"));
        if activate {
            decoder.activate(Sequences::boxed(&TREE), Then::Stop).expect("fits");
            assert_eq!(decoder.finish(), None);
        }
        decoder.clear().expect("free");
        decoder.finish()
    };
    assert_eq!((ended(false), ended(true)), (Some(Finish::StopString(0)), Some(Finish::StopString(0))));
}

#[test]
fn padding_is_never_picked_and_too_few_logits_are_refused() {
    let mut decoder = free(0, Stop::default());
    let mut logits = vec![0.0f32; SIZE + 24];
    logits[SIZE..].fill(100.0);
    assert!((decoder.step(&logits).expect("a step") as usize) < SIZE);
    let error = decoder.step(&logits[..SIZE - 1]).expect_err("too few");
    assert_eq!((error.kind, decoder.tokens().len()), (ErrorKind::Logits, 1));
    assert_eq!(decoder.accept(SIZE as TokenId).expect_err("no such token").kind, ErrorKind::Token);
}

#[test]
fn a_refused_set_stops_the_step_and_changes_nothing() {
    for trace in [false, true] {
        let matcher = Sequences::fuelled(&TREE, 1);
        let mut decoder = Decoder::new(vocabulary(), chain(0), Some(matcher), Stop::default()).expect("fits");
        decoder.set_trace(trace);
        let first = decoder.step(&model(&[], 0)).expect("within the fuel");
        let drawn = decoder.chain().accepted();
        let mut out = vec![7];
        assert_eq!(decoder.allowed().expect_err("refused").kind, ErrorKind::Limit);
        assert_eq!(decoder.step(&model(&[first], 0)).expect_err("refused").kind, ErrorKind::Limit);
        assert_eq!(decoder.forced(&mut out).expect_err("refused").kind, ErrorKind::Limit);
        assert_eq!(decoder.take_forced(&mut out).expect_err("refused").kind, ErrorKind::Limit);
        assert_eq!((decoder.tokens(), decoder.finish(), out), (&[first][..], None, vec![7]));
        assert_eq!((decoder.chain().accepted(), decoder.trace().len()), (drawn, usize::from(trace)));
        decoder.rollback(1).expect("one token");
        assert_eq!(decoder.step(&model(&[], 0)).expect("within the fuel again"), first);
    }
}

#[test]
fn the_trace_records_how_each_token_was_decided() {
    let mut decoder = constrained(0);
    decoder.set_trace(true);
    decoder.accept(10).expect("allowed");
    let logits = model(&[10], 0);
    let token = decoder.step(&logits).expect("a step");
    let mut out = Vec::new();
    decoder.take_forced(&mut out).expect("allowed");
    let sources: Vec<Source> = decoder.trace().iter().map(|s| s.source).collect();
    assert_eq!(sources[..2], [Source::External, Source::Sampled]);
    assert!(sources[2..].iter().all(|&o| o == Source::Forced) && sources.len() == 2 + out.len());
    let step = &decoder.trace()[1];
    assert_eq!((step.allowed, step.allowed_tokens.as_deref()), (2, Some(&[11, 13][..])));
    let z: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
    let expected = f64::from(logits[token as usize]).exp() / z;
    let model = step.model.expect("logits were looked at");
    assert!((model.probability - expected).abs() < 1e-6, "{} against {expected}", model.probability);
    assert_eq!(step.effects.len(), decoder.chain().names().len());
    let shares: f32 = step.candidates.iter().map(|&(_, p)| p).sum();
    assert!((shares - 1.0).abs() < 1e-5 && step.candidates.iter().any(|&(id, _)| id == token));
    decoder.rollback(1 + out.len()).expect("so many");
    assert_eq!(decoder.trace().len(), 1);
}

#[test]
fn a_step_tells_how_likely_its_token_was_and_draws_the_same() {
    let plain = |logits: &[f32]| {
        let z: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        let mut logs: Vec<(TokenId, f64)> =
            (0..).zip(logits.iter().map(|&x| f64::from(x) - z.ln())).collect();
        logs.sort_by(|a, b| b.1.total_cmp(&a.1));
        logs
    };
    let near = |got: &[(TokenId, f64)], expected: &[(TokenId, f64)]| {
        got.len() == expected.len()
            && got.iter().zip(expected).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-5)
    };
    for (trace, seed) in [(false, 0), (true, 0), (false, 3), (true, 3)] {
        let (mut silent, mut telling) = (constrained(seed), constrained(seed));
        telling.list_likeliest(Some(3));
        telling.set_trace(trace);
        assert!(telling.likelihoods().is_none());
        for decoder in [&mut silent, &mut telling] {
            decoder.accept(10).expect("allowed");
        }
        assert!(telling.likelihoods().is_none(), "it came from outside");
        let logits = model(&[10], seed.into());
        let token = telling.step(&logits).expect("a step");
        assert_eq!(silent.step(&logits).expect("a step"), token);
        assert!(silent.likelihoods().is_none());
        let likelihoods = telling.likelihoods().expect("a step").clone();
        let all = plain(&logits);
        assert!(near(&likelihoods.model.top, &all[..3]), "{likelihoods:?}");
        let own = all.iter().find(|&&(id, _)| id == token).expect("there").1;
        assert!((likelihoods.model.token - own).abs() < 1e-5);
        let sum: f64 = likelihoods.left.top.iter().map(|&(_, log)| log.exp()).sum();
        assert!(
            likelihoods.left.top.len() <= 2 && sum < 1.0 + 1e-6,
            "two tokens are allowed: {likelihoods:?}"
        );
        assert!(likelihoods.left.top.contains(&(token, likelihoods.left.token)));
        let mut out = Vec::new();
        telling.take_forced(&mut out).expect("allowed");
        assert_eq!(telling.likelihoods().is_none(), !out.is_empty(), "forced tokens have no logits");
        telling.rollback(1 + out.len()).expect("so many");
        assert!(telling.likelihoods().is_none());
        let forked = telling.fork().step(&logits).expect("a step");
        assert_eq!(forked, token);
    }
}
