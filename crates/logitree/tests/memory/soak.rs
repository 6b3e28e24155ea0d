//! A soak: a million decoder steps through choices, forced runs, resets and rollbacks, with flat memory.

use std::cell::Cell;
use std::sync::Arc;

use logitree::constraint::{BoundOneOf, End};
use logitree::decoder::{Decoder, Stop};
use logitree::sampling::{presets, Params};
use logitree::Vocabulary;
use logitree_testing::vocabulary::{bytes_and, ending_vocabulary};

use crate::LIVE;

const SIZE: usize = 300;
const STEPS: usize = 1_000_000;

fn vocabulary() -> Arc<Vocabulary> {
    let more = (256..SIZE - 1).map(|i| [b'A' + (i % 26) as u8, b'A' + (i / 26) as u8]);
    ending_vocabulary(&bytes_and(&more.collect::<Vec<_>>())).0
}

#[test]
fn a_million_steps_keep_memory_flat() {
    let vocabulary = vocabulary();
    let names = ["REPLY", "REPLY_THREAD", "IGNORE", "SEND_MESSAGE", "SEND_MONEY"];
    let choices = BoundOneOf::new(&names, &vocabulary, &End::default()).expect("sound choices");
    let params = Params::default().seed(1).with("penalty_repeat", 1.1);
    let chain = presets::llama_cpp(&params).expect("a sound chain");
    let mut decoder =
        Decoder::new(vocabulary, chain, Some(choices.matcher()), Stop::default()).expect("it fits");
    let logits: Vec<f32> = (0..SIZE).map(|i| ((i * 7919) % 101) as f32 / 20.0).collect();

    let (mut steps, mut runs, mut out) = (0, 0, Vec::new());
    let mut early = None;
    while steps < STEPS {
        if decoder.finish().is_some() {
            runs += 1;
            if runs % 3 == 0 {
                decoder.rollback(decoder.tokens().len() / 2).expect("not past the start");
            } else {
                decoder.reset();
            }
        }
        out.clear();
        decoder.take_forced(&mut out).expect("forced tokens are allowed");
        steps += out.len();
        if decoder.finish().is_none() {
            decoder.step(&logits).expect("a step");
            steps += 1;
        }
        if steps >= STEPS / 100 && early.is_none() {
            early = Some(LIVE.with(Cell::get));
        }
    }
    let (early, late) = (early.expect("a hundredth was reached"), LIVE.with(Cell::get));
    assert!(runs > STEPS / 100, "only {runs} runs in {STEPS} steps");
    assert!(late <= early + 4096, "live bytes grew from {early} to {late}");
}
