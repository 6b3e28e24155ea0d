//! The samplers that came after the first ones against llama.cpp's own steps: the fast path leaves the same set and
//! picks the same token as parity mode, over random logits, histories and states; and their laws.

use logitree::mask::AllowedTokens;
use logitree::sampling::{
    AdaptiveP, Chain, Dist, Dry, Generator, Infill, MinP, Mirostat, MirostatV2, Mode, Pieces, Sampler, Seed,
    SharedPieces, TempExt, TopK, Xtc,
};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Op {
    TempExt(f32, f32, f32),
    Xtc(f32, f32, usize),
    Mirostat(Option<i32>, f32, f32, i32),
    MirostatV2(f32, f32),
    AdaptiveP(f32, f32),
    Dry(f32, f32, i32, i32, Vec<Vec<u32>>),
    Infill,
}

/// Token i stands for i in base 3, its digits from the lowest on; each seventh ends a generation and is no text.
struct Digits(Vec<Vec<u8>>);

impl Digits {
    fn new(n: u32) -> Self {
        let digits = |mut i: u32| {
            let mut text = Vec::new();
            while i > 0 {
                text.push(b'0' + (i % 3) as u8);
                i /= 3;
            }
            text
        };
        Digits((0..n).map(|i| if i % 7 == 0 { Vec::new() } else { digits(i) }).collect())
    }
}

impl Pieces for Digits {
    fn piece(&self, token: u32) -> &[u8] {
        &self.0[token as usize]
    }

    fn is_end(&self, token: u32) -> bool {
        token.is_multiple_of(7)
    }

    fn end(&self) -> u32 {
        0
    }

    fn describe(&self) -> String {
        "digits".into()
    }
}

impl Op {
    fn build(&self, seed: Seed) -> Box<dyn Sampler> {
        match *self {
            Op::TempExt(t, delta, exponent) => Box::new(TempExt::new(t, delta, exponent).unwrap()),
            Op::Xtc(p, t, keep) => Box::new(Xtc::new(p, t, keep, seed).unwrap()),
            Op::Mirostat(n, tau, eta, m) => Box::new(Mirostat::new(n, tau, eta, m, seed).unwrap()),
            Op::MirostatV2(tau, eta) => Box::new(MirostatV2::new(tau, eta, seed).unwrap()),
            Op::Dry(multiplier, base, allowed, last_n, ref breakers) => Box::new(
                Dry::new(
                    multiplier,
                    base,
                    allowed,
                    last_n,
                    logitree::sampling::Breakers::new(breakers).unwrap(),
                )
                .unwrap(),
            ),
            Op::Infill => Box::new(Infill::new(SharedPieces(Arc::new(Digits::new(3000))))),
            Op::AdaptiveP(target, decay) => Box::new(AdaptiveP::new(target, decay, seed).unwrap()),
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    let bits = || prop_oneof![Just(5.0f32), 0.1f32..14.0];
    let rate = || prop_oneof![Just(0.1f32), -0.2f32..1.5];
    prop_oneof![
        (0f32..1.5, -0.2f32..1.5, 0f32..3.0).prop_map(|(t, d, e)| Op::TempExt(t, d, e)),
        (0f32..1.2, -0.05f32..0.6, 0usize..6).prop_map(|(p, t, k)| Op::Xtc(p, t, k)),
        (prop::option::of(1i32..200_000), bits(), rate(), prop_oneof![Just(100), 1i32..300])
            .prop_map(|(n, t, e, m)| Op::Mirostat(n, t, e, m)),
        (bits(), rate()).prop_map(|(t, e)| Op::MirostatV2(t, e)),
        (-0.2f32..1.2, -0.1f32..1.1).prop_map(|(t, d)| Op::AdaptiveP(t, d)),
        (-1f32..4.0, 0.9f32..2.0, -1i32..4, -1i32..80, breakers())
            .prop_map(|(m, b, a, n, breakers)| Op::Dry(m, b, a, n, breakers)),
        Just(Op::Infill),
    ]
}

fn breakers() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(prop::collection::vec(0u32..8, 1..4), 0..3)
}

/// The sampler in a chain that selects, perhaps after others.
fn chain(op: &Op, before: u8, seed: Seed) -> Chain {
    let mut samplers: Vec<Box<dyn Sampler>> = Vec::new();
    match before {
        1 => samplers.push(Box::new(TopK::new(20))),
        2 => samplers.push(Box::new(MinP::new(0.02, 0).unwrap())),
        _ => {}
    }
    let sampler = op.build(seed);
    let selects = sampler.selects();
    samplers.push(sampler);
    if !selects {
        samplers.push(Box::new(Dist::new(seed).unwrap()));
    }
    Chain::new(samplers).unwrap()
}

#[derive(Debug, Clone)]
struct Case {
    op: Op,
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
    (op(), 0u8..3, steps, history, any::<u32>(), choice).prop_map(
        |(op, before, steps, history, seed, (few, rng))| {
            let seed = Seed { generator: Generator::ALL[rng], seed: u64::from(seed), sequence: 0 };
            // Some of the ids, with at least one alive in each row.
            let ids: Vec<u32> =
                (0..steps[0].len() as u32).filter(|i| i % 3 == seed.seed as u32 % 3).collect();
            let alive = |row: &Vec<f32>| ids.iter().any(|&i| row[i as usize].is_finite());
            let allowed = (few && steps.iter().all(alive)).then_some(ids);
            Case { op, before, steps, history, allowed, seed }
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
        let mut fast = chain(&case.op, case.before, case.seed);
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
            if !(matches!(case.op, Op::Infill) && case.before == 1) {
                prop_assert_eq!(a.len(), b.len(), "{} {}", fast.describe(), case.before);
            }
            for (id, p) in a.ids().iter().zip(a.probabilities()).filter(|c| *c.1 > 0.0) {
                let at = b.ids().iter().position(|other| other == id).unwrap();
                prop_assert!((p - b.probabilities()[at]).abs() < 2e-6, "{} {}", p, b.probabilities()[at]);
            }
            let token = fast.pick().unwrap();
            prop_assert_eq!(token, slow.pick().unwrap());
            fast.accept(token);
            slow.accept(token);
        }
    }

    #[test]
    fn rollback_repeats_and_a_snapshot_continues(case in case(), back in 0usize..8, kinds in any::<u64>()) {
        for mode in [Mode::Fast, Mode::Parity] {
            let mut one = chain(&case.op, case.before, case.seed).with_mode(mode).unwrap();
            case.history.iter().for_each(|&t| one.accept(t));
            let step = |chain: &mut Chain, at: usize| {
                let row = &case.steps[at];
                let token = match kinds >> (2 * at) & 3 {
                    0 => 0,
                    1 => { chain.forced(); 1 }
                    _ => chain.draw(row, AllowedTokens::All).unwrap(),
                };
                chain.accept(token);
                token
            };
            let n = case.steps.len();
            let back = back.min(n);
            let mut saved = one.snapshot();
            let mut tokens = Vec::new();
            for at in 0..n {
                if at == n - back {
                    saved = one.snapshot();
                }
                tokens.push(step(&mut one, at));
            }
            if back == 0 {
                saved = one.snapshot();
            }
            let mut fork = one.clone();
            fork.draw(&case.steps[0], AllowedTokens::All).unwrap();
            fork.rollback(back).unwrap();
            if back > 0 {
                prop_assert_eq!(fork.snapshot(), saved.clone());
            }
            let mut restored = chain(&case.op, case.before, case.seed).with_mode(mode).unwrap();
            restored.restore(&saved).unwrap();
            let restored_tokens: Vec<u32> = (n - back..n).map(|at| step(&mut restored, at)).collect();
            prop_assert_eq!(&restored_tokens, &tokens[n - back..]);
            prop_assert_eq!(restored.snapshot(), one.snapshot());
            one.reset();
            case.history.iter().for_each(|&t| one.accept(t));
            let again: Vec<u32> = (0..n).map(|at| step(&mut one, at)).collect();
            prop_assert_eq!(again, tokens);
        }
    }

    #[test]
    fn a_forced_token_equals_sampling_the_only_one(case in case()) {
        let row = &case.steps[0];
        let only = row.iter().position(|x| x.is_finite()).unwrap() as u32;
        // infill may end the text even where its end is not allowed, which is an error.
        prop_assume!(!matches!(case.op, Op::Infill));
        for mode in [Mode::Fast, Mode::Parity] {
            let mut skipped = chain(&case.op, case.before, case.seed).with_mode(mode).unwrap();
            let mut sampled = skipped.clone();
            skipped.forced();
            prop_assert_eq!(sampled.draw(row, AllowedTokens::Ids(&[only])).unwrap(), only);
            skipped.accept(only);
            sampled.accept(only);
            prop_assert_eq!(skipped.snapshot(), sampled.snapshot());
        }
    }
}
