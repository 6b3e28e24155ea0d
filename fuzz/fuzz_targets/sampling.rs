//! Chains from bytes over logits from bytes: any call ends in an error or in an allowed token above -inf, and what was
//! taken back comes again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::mask::AllowedTokens;
use logitree::sampling::registry::Kind;
use logitree::sampling::registry::SAMPLERS;
use logitree::sampling::{Breakers, Chain, Generator, Mode, Params};
use logitree_testing::bytes::Bytes;

/// A float of any kind, mostly of a usual size.
fn float(bytes: &mut Bytes) -> f32 {
    match bytes.byte() {
        0 => f32::from_le_bytes(bytes.word()),
        1 => 0.0,
        2 => 1.0,
        b => f32::from(b) / 64.0 - f32::from(bytes.byte()) / 128.0,
    }
}

fn int(bytes: &mut Bytes) -> i32 {
    match bytes.byte() {
        0 => i32::from_le_bytes(bytes.word()),
        b => i32::from(b) - 8,
    }
}

/// A value for every number in the table of samplers, and for the rest.
fn params(bytes: &mut Bytes) -> Params {
    let mut params = Params::default()
        .seed(u64::from(bytes.byte()))
        .rng(Generator::ALL[bytes.below(3)])
        .sequence(u32::from(bytes.byte()))
        .with("mirostat", i32::from(bytes.byte() % 8))
        .with("dry_breakers", Breakers::new(&[vec![u32::from(bytes.byte() % 8)]]).unwrap())
        .with("logit_bias", vec![(u32::from(bytes.byte() % 16), float(bytes))]);
    for parameter in SAMPLERS.iter().flat_map(|row| row.parameters) {
        params = match parameter.kind {
            Kind::Float => params.with(parameter.keyword, float(bytes)),
            Kind::Int => params.with(parameter.keyword, int(bytes)),
            Kind::Count => params.with(parameter.keyword, i32::from(bytes.byte() % 16)),
            Kind::Truth => params.with(parameter.keyword, bytes.byte() % 2 == 1),
            _ => params,
        };
    }
    params
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let mut names = Vec::new();
    for _ in 0..bytes.byte() % 6 + 1 {
        names.push(SAMPLERS[usize::from(bytes.byte()) % SAMPLERS.len()].name);
    }
    let params = params(&mut bytes);
    let Ok(mut chain) = Chain::parse(&names.join(";"), &params) else { return };
    if bytes.byte() % 2 == 1 {
        chain = match chain.with_mode(Mode::Parity) {
            Ok(chain) => chain,
            Err(_) => return,
        };
    }
    // Short logits are read one by one; long ones repeat a short pattern.
    let pattern: Vec<f32> = (0..bytes.byte() % 40 + 1).map(|_| float(&mut bytes)).collect();
    let n = if bytes.byte() % 4 == 0 { usize::from(bytes.byte()) * 16 + 1 } else { pattern.len() };
    let mut logits: Vec<f32> = pattern.iter().copied().cycle().take(n).collect();
    if bytes.byte() % 2 == 0 {
        for x in &mut logits {
            *x = if x.is_nan() || *x == f32::INFINITY { f32::NEG_INFINITY } else { *x };
        }
    }
    let few: Vec<u32> = (0..n as u32).filter(|i| i % 3 == 1).collect();
    let broken = |x: &f32| x.is_nan() || *x == f32::INFINITY;
    let mut saved = (chain.snapshot(), 0);
    for _ in 0..bytes.byte() % 24 {
        let call = bytes.byte();
        match call % 8 {
            0 => chain.accept(u32::from(call / 8)),
            1 => {
                chain.forced();
                chain.accept(u32::from(call / 8));
            }
            2 => {
                let (n, accepted) = (usize::from(call / 8), chain.accepted());
                assert_eq!(chain.rollback(n).is_ok(), n <= accepted);
            }
            3 => saved = (chain.snapshot(), chain.accepted()),
            4 => {
                chain.restore(&saved.0).expect("its own snapshot");
                assert_eq!(chain.accepted(), saved.1);
                assert_eq!(chain.snapshot(), saved.0);
            }
            5 => chain.reset(),
            _ => {
                let allowed = if call & 8 == 0 || few.is_empty() {
                    AllowedTokens::All
                } else {
                    AllowedTokens::Ids(&few)
                };
                let mut copy = chain.clone();
                let token = match chain.draw(&logits, allowed) {
                    Ok(token) => token,
                    Err(error) => {
                        assert!(copy.apply(&logits, allowed, None).is_err_and(|other| other == error));
                        continue;
                    }
                };
                assert!(allowed.contains(token) && logits[token as usize] > f32::NEG_INFINITY);
                assert!(allowed != AllowedTokens::All || !logits.iter().any(broken));
                copy.apply(&logits, allowed, None).expect("what could be sampled can be applied");
                assert_eq!(copy.pick().expect("it selects"), token);
                let sum: f64 = copy.candidates().probabilities().iter().copied().map(f64::from).sum();
                assert!((sum - 1.0).abs() < 1e-4, "{sum}: {}", chain.describe());
                chain.accept(token);
                // What was drawn and not accepted goes, too: so twice.
                let mut twice = [(); 2].map(|()| {
                    chain.rollback(1).expect("one was accepted");
                    let again = chain.draw(&logits, allowed).expect("it could be sampled");
                    chain.accept(again);
                    (again, chain.snapshot())
                });
                twice.sort();
                assert_eq!(twice[0], twice[1], "{}", chain.describe());
            }
        }
    }
});
