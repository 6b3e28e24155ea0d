//! Fast paths against llama.cpp's own steps: the same survivors and the same token as in parity mode, over random logits,
//! histories and states.

use crate::samplers::{knobs, Knobs, Row, World, ROWS};
use logitree_sampling::{Chain, Dist, Generator, MinP, Mode, Sampler, Seed, TopK};
use logitree_tokens::mask::AllowedTokens;
use proptest::prelude::*;

/// Samplers with a fast path that is not held to a formula elsewhere.
fn rows() -> impl Iterator<Item = &'static Row> {
    let names = [
        "temp_ext",
        "xtc",
        "mirostat",
        "mirostat_v2",
        "adaptive_p",
        "dry",
        "infill",
        "ts_top_k",
        "ts_top_n_sigma",
    ];
    ROWS.iter().filter(move |row| names.contains(&row.name))
}

/// The sampler in a chain that selects, perhaps after others.
fn chain(case: &Case) -> Chain {
    let mut samplers: Vec<Box<dyn Sampler>> = Vec::new();
    match case.before {
        1 => samplers.push(Box::new(TopK::new(20))),
        2 => samplers.push(Box::new(MinP::new(0.02, 0).unwrap())),
        _ => {}
    }
    let sampler = (case.row.build)(case.knobs, case.seed, &World::default());
    let selects = sampler.selects();
    samplers.push(sampler);
    if !selects {
        samplers.push(Box::new(Dist::new(case.seed).unwrap()));
    }
    Chain::new(samplers).unwrap()
}

#[derive(Debug, Clone)]
struct Case {
    row: &'static Row,
    knobs: Knobs,
    before: u8,
    steps: Vec<Vec<f32>>,
    /// Accepted before the first step; few different ones, so that some repeat.
    history: Vec<u32>,
    allowed: Option<Vec<u32>>,
    seed: Seed,
}

fn case() -> impl Strategy<Value = Case> {
    let logit = prop_oneof![20 => -9f32..9.0, 1 => Just(f32::NEG_INFINITY)];
    let size = prop_oneof![4 => 1usize..40, 2 => 40usize..700, 1 => 700usize..3000];
    let steps = size.prop_flat_map(move |n| {
        let mut row = prop::collection::vec(logit.clone(), n).boxed();
        row = row.prop_filter("all at -inf", |r| r.iter().any(|x| x.is_finite())).boxed();
        prop::collection::vec(row, 1..8)
    });
    let history = prop::collection::vec(0u32..4, 0..60);
    let choice = (any::<bool>(), 0usize..3);
    let row = prop::sample::select(rows().collect::<Vec<_>>());
    (row, knobs(), 0u8..3, steps, history, any::<u32>(), choice).prop_map(
        |(row, knobs, before, steps, history, seed, (few, rng))| {
            let seed = Seed { generator: Generator::ALL[rng], seed: u64::from(seed), sequence: 0 };
            // Some of the ids, with at least one alive in each row.
            let ids: Vec<u32> =
                (0..steps[0].len() as u32).filter(|i| i % 3 == seed.seed as u32 % 3).collect();
            let alive = |row: &Vec<f32>| ids.iter().any(|&i| row[i as usize].is_finite());
            let allowed = (few && steps.iter().all(alive)).then_some(ids);
            Case { row, knobs, before, steps, history, allowed, seed }
        },
    )
}

/// Equal logits may be in another order in parity mode, and then another of them is drawn.
fn has_ties(row: &[f32]) -> bool {
    let mut sorted: Vec<u32> = row.iter().filter(|x| x.is_finite()).map(|x| x.to_bits()).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|w| w[0] == w[1])
}

fn survivors(chain: &Chain) -> Vec<u32> {
    let c = chain.candidates();
    let mut ids: Vec<u32> =
        c.ids().iter().zip(c.logits()).filter(|c| *c.1 > f32::NEG_INFINITY).map(|c| *c.0).collect();
    ids.sort_unstable();
    ids
}

/// Whether a bound falls within rounding of these ids' logits: a little higher, both chains keep them, and a little
/// lower neither does. The parity tests count how often that is so.
fn is_rounding(chains: (Chain, Chain), row: &[f32], allowed: AllowedTokens<'_>, ids: &[u32]) -> bool {
    [1e-4f32, -1e-4].into_iter().all(|by| {
        let mut moved = row.to_vec();
        ids.iter().for_each(|&id| moved[id as usize] += by);
        let (mut fast, mut slow) = chains.clone();
        fast.apply(&moved, allowed, None).unwrap();
        slow.apply(&moved, allowed, None).unwrap();
        let left = survivors(&fast);
        left == survivors(&slow) && ids.iter().all(|id| left.contains(id) == (by > 0.0))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_fast_path_equals_llama_cpp_s_steps(case in case()) {
        prop_assume!(case.steps.iter().all(|row| !has_ties(row)));
        let mut fast = chain(&case);
        let mut slow = fast.clone().with_mode(Mode::Parity).unwrap();
        let allowed = case.allowed.as_deref().map_or(AllowedTokens::All, AllowedTokens::Ids);
        case.history.iter().for_each(|&t| { fast.accept(t); slow.accept(t); });
        for row in &case.steps {
            let before = (fast.clone(), slow.clone());
            let (one, other) = (fast.apply(row, allowed, None), slow.apply(row, allowed, None));
            if one.is_err() || other.is_err() {
                // infill's end of the text is not allowed.
                prop_assert_eq!(one.unwrap_err(), other.unwrap_err());
                return Ok(());
            }
            let (left, right) = (survivors(&fast), survivors(&slow));
            if left != right {
                let one_alone = |id: &&u32| left.contains(id) != right.contains(id);
                let ids: Vec<u32> = left.iter().chain(&right).filter(one_alone).copied().collect();
                prop_assert!(is_rounding(before, row, allowed, &ids), "{} {ids:?}", fast.describe());
                return Ok(());
            }
            let (a, b) = (fast.candidates(), slow.candidates());
            // Which of many at -inf top_k keeps is the order of equals, and infill keeps those that end a text.
            if !(case.row.name == "infill" && case.before == 1) {
                prop_assert_eq!(a.len(), b.len(), "{} {}", fast.describe(), case.before);
            }
            // llama.cpp's entropy of many candidates is an f32 sum; ours is held to exact arithmetic in `long.rs`.
            let is_exact = case.row.name == "temp_ext" && a.len() > 1024;
            for (id, p) in a.ids().iter().zip(a.probabilities()).filter(|c| *c.1 > 0.0) {
                let at = b.ids().iter().position(|other| other == id).unwrap();
                let off = if is_exact { 1e-4 } else { 2e-6 };
                prop_assert!((p - b.probabilities()[at]).abs() < off, "{} {}", p, b.probabilities()[at]);
            }
            let token = fast.pick().unwrap();
            if is_exact && token != slow.pick().unwrap() {
                return Ok(());
            }
            prop_assert_eq!(token, slow.pick().unwrap());
            fast.accept(token);
            slow.accept(token);
        }
    }
}
