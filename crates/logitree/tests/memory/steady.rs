//! No allocation per token once the buffers have grown: a counting allocator watches the default chains.

use crate::{ALLOCATIONS, LARGEST, LIVE, MOST};
use half::bf16;
use logitree::mask::AllowedTokens;
use logitree::sampling::registry::SAMPLERS;
use logitree::sampling::{presets, Burst, Chain, EntropyRule, Floats, Mode, Params, Seed, Setting, Steering};
use logitree_testing::samplers::{complete, whole_chains, World};
use std::cell::Cell;

/// Pseudo-random logits of step `step`.
fn fill(logits: &mut [f32], step: u32) {
    let mut x = step.wrapping_mul(0x9e37_79b9) | 1;
    for logit in logits {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        *logit = (x >> 8) as f32 / 1e6 - 8.0;
    }
}

/// Allocations in 200 steps after 100 to warm up, by when the window of the penalties is full.
fn allocations(chain: &mut Chain, size: usize, allowed: AllowedTokens<'_>) -> usize {
    let mut logits = vec![0.0; size];
    let mut before = 0;
    for step in 0..300 {
        fill(&mut logits, step);
        if step == 100 {
            before = ALLOCATIONS.with(Cell::get);
        }
        let token = chain.draw(&logits, allowed).unwrap();
        chain.accept(token);
    }
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn no_allocation_per_token_after_the_first_steps() {
    let few: Vec<u32> = (0..30).map(|i| i * 97).collect();
    let words = vec![0x1111_1111u32; 128];
    let penalised = Params::default().seed(1).with("penalty_repeat", 1.1).with("logit_bias", vec![(5, 1.0)]);
    let plain = Params::default().seed(1);
    for params in [plain, penalised] {
        for allowed in [AllowedTokens::Ids(&few), AllowedTokens::Mask(&words), AllowedTokens::All] {
            let mut chain = presets::llama_cpp(&params).unwrap();
            let n = allocations(&mut chain, 4096, allowed);
            assert_eq!(n, 0, "with {allowed:?} in {}", chain.describe());
        }
    }
    let busy = Params::default()
        .seed(1)
        .with("dry_multiplier", 0.8)
        .with("xtc_probability", 0.5)
        .with("dynatemp_range", 0.3);
    let adaptive = busy.clone().with("adaptive_target", 0.5);
    for params in [busy, adaptive] {
        let mut chain = presets::llama_cpp(&params).unwrap();
        assert_eq!(allocations(&mut chain, 4096, AllowedTokens::All), 0, "in {}", chain.describe());
    }
    for mirostat in [1, 2] {
        let params = Params::default().seed(1).with("mirostat", mirostat);
        for allowed in [AllowedTokens::Ids(&few), AllowedTokens::Mask(&words), AllowedTokens::All] {
            let mut chain = presets::llama_cpp(&params).unwrap();
            let n = allocations(&mut chain, 4096, allowed);
            // Scratch for more candidates than ever before.
            assert!(n <= 3, "{n} allocations with {allowed:?} in {}", chain.describe());
        }
    }
    assert_eq!(allocations(&mut presets::greedy(), 4096, AllowedTokens::All), 0);
    assert_eq!(
        allocations(&mut Chain::parse("min_p;temp", &Params::default()).unwrap(), 4096, AllowedTokens::All),
        0
    );
}

#[test]
fn logits_of_16_bits_are_not_copied_to_32() {
    let mut logits = vec![0.0f32; 1 << 17];
    fill(&mut logits, 3);
    // A few are far above the others, as with a real model.
    logits[777..780].fill(20.0);
    let bits: Vec<u16> = logits.iter().map(|&x| bf16::from_f32(x).to_bits()).collect();
    let params = Params::default().seed(1).with("penalty_repeat", 1.1);
    for text in
        ["greedy", "penalties;top_k;typ_p;top_p;min_p;temperature", "min_p;temp", "top_p;temp", "temp;dist"]
    {
        let mut chain = Chain::parse(text, &params).unwrap();
        chain.accept(5);
        LARGEST.with(|n| n.set(0));
        let token = chain.draw(Floats::Bf16(&bits), AllowedTokens::All).unwrap();
        let largest = LARGEST.with(Cell::get);
        assert!(largest < bits.len(), "{text} allocates {largest} bytes at once for {} logits", bits.len());
        let wide: Vec<f32> = bits.iter().map(|&b| bf16::from_bits(b).to_f32()).collect();
        let mut chain = Chain::parse(text, &params).unwrap();
        chain.accept(5);
        assert_eq!(chain.draw(&wide, AllowedTokens::All).unwrap(), token, "{text}");
    }
}

fn settings(named: &[(&str, f64)]) -> Vec<Setting> {
    named.iter().map(|&(name, value)| (name.into(), value)).collect()
}

#[test]
fn steering_and_rules_allocate_nothing_after_the_first_steps() {
    let few: Vec<u32> = (0..30).map(|i| i * 97).collect();
    let params = Params::default().seed(1).with("penalty_repeat", 1.1);
    let bands = [(4.0, &[("temp", 1.5), ("penalty_last_n", 16.0)][..]), (f64::INFINITY, &[("top_k", 9.0)])];
    let rule = EntropyRule::new(bands.map(|(below, named)| (below, settings(named))).to_vec()).unwrap();
    let burst = Burst::new(0.3, 2.0, 200, settings(&[("temp", 1.5), ("typ_p", 0.9)])).unwrap();
    for allowed in [AllowedTokens::Ids(&few), AllowedTokens::All] {
        for bursts in [false, true] {
            let mut chain = presets::llama_cpp(&params).unwrap();
            match bursts {
                true => chain.adapt(Some(Box::new(burst.clone()))),
                false => chain.adapt(Some(Box::new(rule.clone()))),
            }
            .unwrap();
            let mut steering = Steering::new();
            let mut logits = vec![0.0; 4096];
            let mut before = 0;
            for step in 0..300u32 {
                fill(&mut logits, step);
                if step == 100 {
                    before = ALLOCATIONS.with(Cell::get);
                }
                steering.clear();
                for at in 0..20 {
                    steering.add((step * 37 + at * 53) % 4096, 0.5).unwrap();
                }
                steering.veto(97);
                chain.steer(&steering);
                let token = chain.draw(&logits, allowed).unwrap();
                chain.accept(token);
            }
            let n = ALLOCATIONS.with(Cell::get) - before;
            assert_eq!(n, 0, "allocations with {allowed:?}, bursts {bursts}");
        }
    }
}

#[test]
fn no_allocation_in_the_samplers_that_llama_cpp_lacks() {
    let few: Vec<u32> = (0..30).map(|i| i * 97).collect();
    let words = vec![0x1111_1111u32; 128];
    // Only the one with a history grows, in its four lists.
    let beyond = "epsilon;eta;min_k;top_h;p_less;edt;hf_top_h;hf_top_k;hf_top_p;hf_typ_p";
    let params = Params::default()
        .with("epsilon_cutoff", 1e-5)
        .with("eta_cutoff", 1e-5)
        .with("min_k", 1e4)
        .with("typ_p", 0.9)
        .seed(1);
    for allowed in [AllowedTokens::Ids(&few), AllowedTokens::Mask(&words), AllowedTokens::All] {
        let mut chain = Chain::parse(beyond, &params).unwrap();
        assert_eq!(allocations(&mut chain, 4096, allowed), 0, "{allowed:?} in {}", chain.describe());
        let mut chain = Chain::parse("no_repeat_ngram", &params.clone().with("no_repeat_ngram", 2)).unwrap();
        assert!(allocations(&mut chain, 4096, allowed) <= 10, "{allowed:?}");
    }
}

/// What a step holds at most, whatever the sampler and the logits: 2^24 candidates take 1 GiB at worst.
#[test]
fn a_step_holds_at_most_64_bytes_a_candidate() {
    const N: usize = 1 << 18;
    let mut spread = vec![0.0; N];
    fill(&mut spread, 7);
    let alike = vec![0.25; N];
    let mut worst = (0, String::new());
    for logits in [spread, alike] {
        let chains = SAMPLERS.iter().map(|row| complete(row, [0.6; 4], Seed::mt19937(0), &World::default()));
        for chain in chains.chain(whole_chains([0.6; 4], Seed::mt19937(0))) {
            // infill is for what top_k leaves: it compares texts.
            if chain.names().contains(&"infill") {
                continue;
            }
            for mut chain in [chain.clone()].into_iter().chain(chain.with_mode(Mode::Parity)) {
                let before = LIVE.with(Cell::get);
                MOST.with(|n| n.set(before));
                chain.apply(&logits, AllowedTokens::All, None).unwrap();
                let most = (MOST.with(Cell::get) - before) as usize;
                if most > worst.0 {
                    worst = (most, format!("{} {:?}", chain.describe(), chain.mode()));
                }
            }
        }
    }
    assert!(worst.0 <= 64 * N, "{} bytes a candidate in {}", worst.0 / N, worst.1);
}
