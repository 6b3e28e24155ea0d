//! A decoder's state is what its log says: after any mix of steps, forced runs, outside tokens, activations, clears,
//! rollbacks and forks it equals a new decoder that did only what was not taken back.

use std::sync::Arc;

use logitree::constraint::{BoundOneOf, End, Matcher};
use logitree::decoder::{Decoder, Finish, Stop, Then};
use logitree::sampling::{presets, Params};
use logitree::vocabulary::Vocabulary;
use logitree::TokenId;
use logitree_testing::vocabulary::{small, END};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Act {
    Step,
    Accept(TokenId),
    Activate(usize, Then),
    Clear,
}

fn matcher(vocabulary: &Arc<Vocabulary>, which: usize) -> Box<dyn Matcher> {
    let texts: [&[&str]; 4] = [&["cat", "cats", "dog"], &["to", "top", " dog", "100"], &["a"], &["ok", "no"]];
    let ends = if which == 1 { vec![END, 0] } else { vec![END] };
    let end = End { tokens: Some(ends), ..End::default() };
    BoundOneOf::new(texts[which], vocabulary, &end).expect("sound choices").matcher()
}

fn logits(tokens: &[TokenId], salt: u64) -> Vec<f32> {
    let mut state =
        tokens.iter().fold(salt ^ 0x9e37, |h, &t| (h ^ u64::from(t)).wrapping_mul(0x0100_0000_01b3));
    (0..=END)
        .map(|id| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 * 8.0 - if id == END { 2.0 } else { 0.0 }
        })
        .collect()
}

/// What a run begins with.
#[derive(Debug, Clone, Copy)]
struct Birth {
    seed: u32,
    salt: u64,
    trace: bool,
    constrained: bool,
}

impl Birth {
    fn decoder(self) -> Decoder {
        let vocabulary = small();
        let params = Params::default()
            .seed(self.seed.into())
            .with("penalty_repeat", 1.5)
            .with("penalty_last_n", 3)
            .with("temp", 1.5);
        let chain = presets::llama_cpp(&params).expect("a sound chain");
        let stop = Stop::new(Some(25), vec![b"no".to_vec(), b"tt".to_vec()], self.salt.is_multiple_of(2));
        let first = self.constrained.then(|| matcher(&vocabulary, 0));
        let mut decoder = Decoder::new(vocabulary, chain, first, stop.expect("sound")).expect("it fits");
        decoder.set_trace(self.trace);
        decoder.prime(&[3, 4]).expect("the prompt comes first");
        decoder
    }

    /// Whether it could be done.
    fn act(self, decoder: &mut Decoder, act: Act) -> bool {
        match act {
            Act::Step if decoder.finish().is_some() => false,
            Act::Step => decoder.step(&logits(decoder.tokens(), self.salt)).map(|_| true).expect("a step"),
            Act::Accept(token) => decoder.accept(token).is_ok(),
            Act::Activate(which, then) => {
                let matcher = matcher(decoder.vocabulary(), which);
                decoder.activate(matcher, then).is_ok()
            }
            Act::Clear => decoder.clear().is_ok(),
        }
    }

    /// What `decoder` shows, and the next tokens.
    fn look(self, decoder: &mut Decoder) -> (Vec<u32>, Option<Finish>, Vec<TokenId>, usize, Vec<TokenId>) {
        let (mut words, mut forced) = (vec![0], Vec::new());
        decoder.allowed().expect("a set").write(END as usize + 1, &mut words);
        decoder.forced(&mut forced).expect("a run");
        let mut on = decoder.fork();
        for _ in 0..6 {
            self.act(&mut on, Act::Step);
        }
        (words, decoder.finish(), forced, decoder.trace().len(), on.tokens().to_vec())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn a_decoder_equals_a_replay_of_its_log(
        seed: u32, salt: u64, trace: bool, constrained: bool,
        acts in prop::collection::vec((0u8..11, 0u32..26), 1..50),
    ) {
        let birth = Birth { seed, salt, trace, constrained };
        let mut decoder = birth.decoder();
        // How many tokens there were, and what was done.
        let mut log: Vec<(usize, Act)> = Vec::new();
        for (act, pick) in acts {
            let at = decoder.tokens().len();
            let act = match act {
                0..=3 => Act::Step,
                4 => Act::Accept(pick),
                5 => Act::Activate(pick as usize % 4, if pick > 20 { Then::Stop } else { Then::Continue }),
                6 => Act::Clear,
                7 => {
                    let mut run = Vec::new();
                    decoder.take_forced(&mut run).expect("forced tokens are allowed");
                    log.extend((at..at + run.len()).map(|at| (at, Act::Step)));
                    continue;
                }
                8 => {
                    let before = birth.look(&mut decoder);
                    let mut child = decoder.fork();
                    birth.act(&mut child, Act::Step);
                    prop_assert_eq!(birth.look(&mut decoder), before);
                    prop_assert!(decoder.rollback(at + 1).is_err());
                    continue;
                }
                _ => {
                    let to = at.saturating_sub(pick as usize % 6);
                    decoder.rollback(at - to).expect("not past the start");
                    log.retain(|&(when, act)| {
                        when < to || when == to && matches!(act, Act::Activate(..) | Act::Clear)
                    });
                    continue;
                }
            };
            if birth.act(&mut decoder, act) {
                log.push((at, act));
            }
        }
        let mut replay = birth.decoder();
        for &(at, act) in &log {
            prop_assert_eq!(replay.tokens().len(), at);
            birth.act(&mut replay, act);
        }
        prop_assert_eq!(decoder.tokens(), replay.tokens());
        prop_assert_eq!(birth.look(&mut decoder), birth.look(&mut replay), "{:?}", log);
        decoder.reset();
        decoder.prime(&[3, 4]).expect("no tokens");
        prop_assert_eq!(birth.look(&mut decoder), birth.look(&mut birth.decoder()));
    }
}
