//! Fast paths against llama.cpp's own steps: chains of its samplers leave the same survivors and pick the same token as
//! in parity mode, over random logits, histories and states, but where equal logits or rounding decide.

use logitree_sampling::registry::{SamplerRow, SAMPLERS};
use logitree_sampling::{Chain, Dist, Generator, Mode, Sampler, Seed};
use logitree_testing::samplers::{build, complete, knobs, promises, Knobs, Order, World};
use logitree_tokens::mask::AllowedTokens;
use proptest::prelude::*;

/// The samplers that llama.cpp has, and tsampler's two of its own.
fn rows() -> impl Iterator<Item = &'static SamplerRow> {
    SAMPLERS.iter().filter(|row| {
        let chain = complete(row, [0.5; 4], Seed::mt19937(1), &World::default());
        chain.with_mode(Mode::Parity).is_ok()
    })
}

/// The samplers in a chain that selects.
fn chain(case: &Case) -> Chain {
    let build = |&(row, knobs): &(&SamplerRow, Knobs)| build(row, knobs, case.seed, &World::default());
    let mut samplers: Vec<Box<dyn Sampler>> = case.rows.iter().map(build).collect();
    // Nothing follows a sampler that selects.
    let end = samplers.iter().position(|sampler| sampler.selects());
    samplers.truncate(end.map_or(samplers.len(), |at| at + 1));
    if end.is_none() {
        samplers.push(Box::new(Dist::new(case.seed).unwrap()));
    }
    Chain::new(samplers).unwrap()
}

#[derive(Debug, Clone)]
struct Case {
    rows: Vec<(&'static SamplerRow, Knobs)>,
    steps: Vec<Vec<f32>>,
    /// Accepted before the first step; few different ones, so that some repeat.
    history: Vec<u32>,
    allowed: Option<Vec<u32>>,
    seed: Seed,
}

/// Random steps, on a grid in one of eight cases, so that many logits are equal.
fn steps() -> impl Strategy<Value = Vec<Vec<f32>>> {
    let logit = prop_oneof![20 => -9f32..9.0, 1 => Just(f32::NEG_INFINITY)];
    let size = prop_oneof![4 => 1usize..40, 2 => 40usize..700, 1 => 700usize..3000];
    let steps = size.prop_flat_map(move |n| {
        let mut row = prop::collection::vec(logit.clone(), n).boxed();
        row = row.prop_filter("all at -inf", |r| r.iter().any(|x| x.is_finite())).boxed();
        prop::collection::vec(row, 1..8)
    });
    (steps, 0u8..8).prop_map(|(mut steps, grid)| {
        if grid == 0 {
            steps.iter_mut().flatten().for_each(|x| *x = x.round() + 0.0);
        }
        steps
    })
}

fn case() -> impl Strategy<Value = Case> {
    let history = prop::collection::vec(0u32..4, 0..60);
    let choice = (any::<bool>(), 0usize..3);
    let row = (prop::sample::select(rows().collect::<Vec<_>>()), knobs());
    let chains = prop::collection::vec(row, 1..5);
    (chains, steps(), history, any::<u32>(), choice).prop_map(
        |(mut rows, steps, history, seed, (few, rng))| {
            // llama.cpp's logit_bias leaves the flag standing that says that the candidates are sorted.
            rows.sort_by_key(|(row, _)| row.name != "logit_bias");
            let seed = Seed { generator: Generator::ALL[rng], seed: u64::from(seed), sequence: 0 };
            // Some of the ids, with at least one alive in each row.
            let ids: Vec<u32> =
                (0..steps[0].len() as u32).filter(|i| i % 3 == seed.seed as u32 % 3).collect();
            let alive = |row: &Vec<f32>| ids.iter().any(|&i| row[i as usize].is_finite());
            let allowed = (few && steps.iter().all(alive)).then_some(ids);
            Case { rows, steps, history, allowed, seed }
        },
    )
}

/// Whether some of the logits are equal: llama.cpp's order of those is libstdc++'s, and another of them may be drawn.
fn has_ties(row: &[f32]) -> bool {
    let mut sorted: Vec<u32> = row.iter().filter(|x| x.is_finite()).map(|x| x.to_bits()).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|w| w[0] == w[1])
}

/// The candidates above -inf, by id.
fn survivors(chain: &Chain) -> Vec<(u32, f32)> {
    let c = chain.candidates();
    let mut left: Vec<(u32, f32)> = c.ids().iter().copied().zip(c.logits().iter().copied()).collect();
    left.retain(|c| c.1 > f32::NEG_INFINITY);
    left.sort_unstable_by_key(|c| c.0);
    left
}

/// Whether the survivors have the same logits but for rounding, so that equal ones stand for each other.
fn same_but_for_ties(mut a: Vec<(u32, f32)>, mut b: Vec<(u32, f32)>) -> bool {
    [&mut a, &mut b].into_iter().for_each(|side| side.sort_by(|x, y| x.1.total_cmp(&y.1)));
    a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| (x.1 - y.1).abs() <= 1e-4 * x.1.abs().max(1.0))
}

/// A change of the logit of `id` that moves a sum of all weights by twice as much as adding them in float32 may round.
fn beyond_rounding(row: &[f32], id: u32) -> f32 {
    let of = f64::from(row[id as usize]);
    let weights = row.iter().filter(|x| x.is_finite()).map(|&x| (f64::from(x) - of).exp());
    let additions = row.len() as f64;
    (additions * f64::from(f32::EPSILON) * weights.sum::<f64>()).clamp(1e-4, 1e-2) as f32
}

/// What both chains keep of a row, if that is the same.
fn kept(chains: &(Chain, Chain), row: &[f32], allowed: AllowedTokens<'_>) -> Option<Vec<u32>> {
    let (mut fast, mut slow) = chains.clone();
    fast.apply(row, allowed, None).and_then(|()| slow.apply(row, allowed, None)).ok()?;
    let ids_of = |chain| survivors(chain).iter().map(|c| c.0).collect::<Vec<_>>();
    Some(ids_of(&fast)).filter(|left| *left == ids_of(&slow))
}

/// Whether a bound falls within rounding of these ids: both chains keep them after a small change of the row, and
/// neither does after the opposite one. A change moves their logits, or scales the row (mirostat's bound is a number of
/// candidates, which it estimates from the decline of the logits).
fn is_rounding(chains: &(Chain, Chain), row: &[f32], allowed: AllowedTokens<'_>, ids: &[u32]) -> bool {
    let moved = |sign: f32| {
        let mut moved = row.to_vec();
        ids.iter().for_each(|&id| moved[id as usize] += sign * beyond_rounding(row, id));
        moved
    };
    let scaled = |by: f32| row.iter().map(|x| x * by).collect::<Vec<f32>>();
    let scales = [0.0001, 0.001, 0.003].map(|by| (scaled(1.0 + by), scaled(1.0 - by)));
    std::iter::once((moved(1.0), moved(-1.0))).chain(scales).any(|(one, other)| {
        let (Some(one), Some(other)) = (kept(chains, &one, allowed), kept(chains, &other, allowed)) else {
            return false;
        };
        let are_in = |left: &[u32], wanted| ids.iter().all(|id| left.contains(id) == wanted);
        [true, false].iter().any(|&wanted| are_in(&one, wanted) && are_in(&other, !wanted))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_fast_path_equals_llama_cpp_s_steps(case in case()) {
        let mut fast = chain(&case);
        let mut slow = fast.clone().with_mode(Mode::Parity).unwrap();
        let allowed = case.allowed.as_deref().map_or(AllowedTokens::All, AllowedTokens::Ids);
        case.history.iter().for_each(|&t| { fast.accept(t); slow.accept(t); });
        for row in &case.steps {
            let before = (fast.clone(), slow.clone());
            let (one, other) = (fast.apply(row, allowed, None), slow.apply(row, allowed, None));
            let Ok(()) = other else {
                // Where llama.cpp computes NaN, fast mode may have a result; infill's end of the text may not be allowed.
                let error = other.unwrap_err();
                prop_assert!(one.is_err() || error.to_string().contains("NaN"), "{} {error}", fast.describe());
                return Ok(());
            };
            prop_assert!(one.is_ok(), "{} {one:?}", fast.describe());
            let (left, right) = (survivors(&fast), survivors(&slow));
            let same_ids = left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| a.0 == b.0);
            if !same_ids {
                // Another one of equal logits may stay, what looks at the tokens sees another, and typ_p's distances of
                // equals are equal within rounding only.
                let looks = case.rows.iter().any(|(row, _)| promises(row).1 == Order::Matters || row.name == "typ_p");
                if has_ties(row) && (looks || same_but_for_ties(left.clone(), right.clone())) {
                    return Ok(());
                }
                let is_in = |side: &[(u32, f32)], id: u32| side.binary_search_by_key(&id, |c| c.0).is_ok();
                let differs = |&id: &u32| is_in(&left, id) != is_in(&right, id);
                let equal = |id: u32| (0..row.len() as u32).filter(move |&other| row[other as usize] == row[id as usize]);
                let ids: Vec<u32> = (0..row.len() as u32).filter(differs).flat_map(equal).collect();
                prop_assert!(is_rounding(&before, row, allowed, &ids), "{} {ids:?}", fast.describe());
                return Ok(());
            }
            let (a, b) = (fast.candidates(), slow.candidates());
            // llama.cpp's entropy of many candidates is an f32 sum; ours is held to exact arithmetic in `long.rs`.
            let is_exact = row.len() > 1024 && case.rows.iter().any(|(row, _)| row.name == "temp_ext");
            for (id, p) in a.ids().iter().zip(a.probabilities()).filter(|c| *c.1 > 0.0) {
                let at = b.ids().iter().position(|other| other == id).unwrap();
                let off = if is_exact { 1e-4 } else { 2e-6 };
                let other = b.probabilities()[at];
                prop_assert!((p - other).abs() < off, "{} {p} {other}", fast.describe());
            }
            let is_other_order = a.ids() != b.ids();
            let (token, other) = (fast.pick().unwrap(), slow.pick().unwrap());
            if token != other {
                // Distances of typ_p that are equal within rounding are in another order, which the draw goes by.
                let is_order = |(row, _): &(&SamplerRow, Knobs)| row.name == "typ_p" && is_other_order;
                let has_reason = is_exact || has_ties(row) || case.rows.iter().any(is_order);
                prop_assert!(has_reason, "{} {token} {other}", fast.describe());
                return Ok(());
            }
            fast.accept(token);
            slow.accept(token);
        }
    }
}
