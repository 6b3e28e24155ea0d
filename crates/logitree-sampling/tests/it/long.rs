//! Lists of more than 1,024 candidates, whose sums are taken in blocks, against exact arithmetic: what is kept is a
//! prefix of the right order, cut where the mass in f64 says, and a draw falls where it should. `BOUND` is all the
//! room that rounding is given.

use logitree_sampling::registry::SAMPLERS;
use logitree_sampling::Draws;
use logitree_sampling::{
    AdaptiveP, Chain, Dist, Floats, Greedy, LogitBias, MinP, MirostatV2, Mode, Penalties, Sampler, Seed,
    Steering, Temp, TempExt, TopK, TopNSigma, TopP, TypP, Xtc,
};
use logitree_testing::samplers::{build, complete, knobs, World};
use logitree_tokens::mask::{bit, insert_bits, AllowedTokens};
use proptest::prelude::*;

/// Of probability: the exponentials are good to 2e-7 each.
const BOUND: f64 = 3e-7;

/// The logits of a case: pseudo-random, normal-like, with some peaks, ties and -inf.
fn logits(n: usize, salt: u32, spread: f32, peaks: usize, ties: bool) -> Vec<f32> {
    let mut x = salt | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (x >> 8) as f32 / (1 << 24) as f32
    };
    let mut all: Vec<f32> = (0..n)
        .map(|_| {
            let value = (next() + next() + next() + next() - 2.0) * spread;
            match next() {
                r if r < 0.02 => f32::NEG_INFINITY,
                _ if ties => (value * 2.0).round() / 2.0,
                _ => value,
            }
        })
        .collect();
    for _ in 0..peaks {
        let at = (next() * n as f32) as usize % n;
        all[at] = spread + 6.0 + next() * 4.0;
    }
    all[n / 2] = all[n / 2].max(0.0);
    all
}

fn probabilities(xs: &[f32]) -> Vec<f64> {
    let max = xs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let e: Vec<f64> = xs.iter().map(|&x| (f64::from(x) - f64::from(max)).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|x| x / sum).collect()
}

fn apply(sampler: impl Sampler + 'static, xs: &[f32]) -> Vec<u32> {
    let mut chain = Chain::new(vec![Box::new(sampler)]).unwrap();
    chain.apply(xs, AllowedTokens::All, None).unwrap();
    let c = chain.candidates();
    for (&id, &x) in c.ids().iter().zip(c.logits()) {
        assert!(x == xs[id as usize] || x == f32::NEG_INFINITY);
    }
    let left: Vec<f32> = c.logits().to_vec();
    for (p, exact) in c.probabilities().iter().zip(probabilities(&left)) {
        assert!((f64::from(*p) - exact).abs() < 1e-6, "{p} {exact}");
    }
    c.ids().to_vec()
}

/// `kept` must be the first of `order`, and reach `share` of the mass with its last one and not before.
fn check_cut(kept: &[u32], order: &[u32], p: &[f64], share: f64, least: usize) {
    let differs = kept.iter().zip(order).position(|(a, b)| a != b);
    assert!(differs.is_none(), "{differs:?} of {}", kept.len());
    let mass: f64 = kept.iter().map(|&id| p[id as usize]).sum();
    let last = p[kept[kept.len() - 1] as usize];
    assert!(kept.len() >= least.min(order.len()));
    assert!(mass >= share - BOUND || kept.len() == order.len(), "{mass} of {share}");
    assert!(mass - last <= share + BOUND || kept.len() <= least, "{mass} less {last} of {share}");
}

fn descending(xs: &[f32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..xs.len() as u32).collect();
    order.sort_by(|&a, &b| xs[b as usize].partial_cmp(&xs[a as usize]).unwrap().then(a.cmp(&b)));
    order
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cuts_and_draws_are_where_exact_arithmetic_has_them(
        n in 1025usize..9000,
        salt: u32,
        spread in 0.01f32..20.0,
        peaks in 0usize..40,
        ties: bool,
        share in 0.01f64..0.999,
        least in prop_oneof![3 => Just(0usize), 1 => 0usize..3000],
        k in 1usize..4000,
    ) {
        let xs = logits(n, salt, spread, peaks, ties);
        let (p, order) = (probabilities(&xs), descending(&xs));
        let kept = apply(TopP::new(share as f32, least).unwrap(), &xs);
        let share = f64::from(share as f32);
        check_cut(&kept, &order, &p, share, least);
        let kept = apply(TopK::new(k as i32), &xs);
        prop_assert_eq!(&kept[..], &order[..k.min(n)]);

        // Typical: by distance from the entropy; the sampler knows it to a few parts in 1e7.
        let entropy: f64 = p.iter().filter(|&&q| q > 0.0).map(|q| -q * q.ln()).sum();
        let distance = |id: u32| (-p[id as usize].ln() - entropy).abs();
        let kept = apply(TypP::new(share as f32, least).unwrap(), &xs);
        for two in kept.windows(2) {
            let (a, b) = (distance(two[0]), distance(two[1]));
            prop_assert!(a <= b + 4e-6 * (1.0 + b) || b.is_infinite(), "{} {}", a, b);
        }
        // What has no probability is kept last, and only to make up the number.
        let farthest = distance(kept[kept.len() - 1]).min(f64::MAX);
        let mut is_kept = vec![false; n];
        kept.iter().for_each(|&id| is_kept[id as usize] = true);
        for id in (0..n as u32).filter(|&id| !is_kept[id as usize]) {
            prop_assert!(distance(id) >= farthest * (1.0 - 4e-6) - 4e-6, "{} {}", distance(id), farthest);
        }
        check_cut(&kept, &kept.clone(), &p, share, least.max(1));

        let mut draws = Draws::new(Seed::mt19937(salt), 0);
        let mut chain = Chain::new(vec![Box::new(Dist::new(Seed::mt19937(salt)).unwrap())]).unwrap();
        let mut upto = vec![0.0; n + 1];
        (0..n).for_each(|i| upto[i + 1] = upto[i] + p[i]);
        for _ in 0..8 {
            let (draw, id) = (draws.double(), chain.draw(&xs, AllowedTokens::All).unwrap() as usize);
            prop_assert!(upto[id] - BOUND <= draw && draw <= upto[id + 1] + BOUND, "{} not in {:?}", draw, &upto[id..id + 2]);
            prop_assert!(p[id] > 0.0);
        }
    }

    #[test]
    fn shapes_of_borrowed_logits_equal_those_of_lists(
        n in 1025usize..5000,
        salt: u32,
        spread in 0.1f32..10.0,
        t in 0.2f32..3.0,
        sigma in 0.3f32..3.0,
        cold: bool,
    ) {
        let xs = logits(n, salt, spread, 5, salt % 2 == 0);
        let words = vec![u32::MAX; n.div_ceil(32)];
        let build = || -> Chain {
            let mut samplers: Vec<Box<dyn Sampler>> = vec![
                Box::new(Temp::new(t).unwrap()),
                Box::new(logitree_sampling::Penalties::new(64, 1.3, 0.2, 0.1).unwrap()),
                Box::new(TopNSigma::new(sigma).unwrap()),
            ];
            if cold {
                samplers.push(Box::new(Temp::new(0.0).unwrap()));
            }
            samplers.push(Box::new(logitree_sampling::LogitBias::new(&[(3, 1.0), (700, -2.0)]).unwrap()));
            samplers.push(Box::new(Dist::new(Seed::mt19937(salt)).unwrap()));
            let mut chain = Chain::new(samplers).unwrap();
            (0..40).for_each(|i| chain.accept(i * 37 % n as u32));
            chain
        };
        let (mut dense, mut list) = (build(), build());
        dense.apply(&xs, AllowedTokens::All, None).unwrap();
        list.apply(&xs, AllowedTokens::Mask(&words), None).unwrap();
        prop_assert_eq!(dense.candidates().ids(), list.candidates().ids());
        prop_assert_eq!(dense.candidates().logits(), list.candidates().logits());
        prop_assert_eq!(dense.candidates().probabilities(), list.candidates().probabilities());
        prop_assert_eq!(dense.pick().unwrap(), list.pick().unwrap());
        prop_assert_eq!(build().draw(&xs, AllowedTokens::All).unwrap(), list.pick().unwrap());
    }

    #[test]
    fn logits_of_16_bits_equal_the_same_values_in_32(n in 1usize..4000, salt: u32, spread in 0.1f32..20.0) {
        let wide = logits(n, salt, spread, 3, false);
        let half: Vec<u16> = wide.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect();
        let brain: Vec<u16> = wide.iter().map(|&x| half::bf16::from_f32(x).to_bits()).collect();
        let as_half: Vec<f32> = half.iter().map(|&b| half::f16::from_bits(b).to_f32()).collect();
        let as_brain: Vec<f32> = brain.iter().map(|&b| half::bf16::from_bits(b).to_f32()).collect();
        let few: Vec<u32> = (0..n as u32).step_by(3).filter(|&i| wide[i as usize] > f32::NEG_INFINITY).collect();
        let seed = Seed::mt19937(salt);
        for row in SAMPLERS {
            let mut chain = complete(row, [0.4, 0.6, 0.5, 0.3], seed, &World::default());
            chain.accept(0);
            for (narrow, same) in [(Floats::F16(&half), &as_half), (Floats::Bf16(&brain), &as_brain)] {
                for allowed in [AllowedTokens::All, AllowedTokens::Ids(&few)] {
                    if few.is_empty() && allowed != AllowedTokens::All {
                        continue;
                    }
                    let (mut a, mut b) = (chain.clone(), chain.clone());
                    prop_assert_eq!(a.apply(narrow, allowed, None), b.apply(same, allowed, None), "{}", row.name);
                    prop_assert_eq!(a.candidates().ids(), b.candidates().ids(), "{}", row.name);
                    prop_assert_eq!(a.candidates().logits(), b.candidates().logits(), "{}", row.name);
                    prop_assert_eq!(a.pick(), b.pick());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn temp_ext_top_n_sigma_and_xtc_are_what_exact_arithmetic_says(
        n in 1025usize..9000,
        salt: u32,
        spread in prop_oneof![2 => 0.01f32..20.0, 1 => Just(0.0f32), 1 => Just(1e33f32)],
        centre in prop_oneof![3 => Just(0.0f32), 1 => -200f32..200.0, 1 => Just(1e5f32)],
        peaks in 0usize..40,
        ties: bool,
        number in 0.05f32..3.0,
        exponent in 0.0f32..3.0,
        threshold in 0.0005f32..0.3,
    ) {
        let xs: Vec<f32> = logits(n, salt, spread, peaks, ties).iter().map(|x| x + centre).collect();
        let exact: Vec<f64> = xs.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x)).collect();
        let (p, max) = (probabilities(&xs), exact.iter().copied().fold(f64::NEG_INFINITY, f64::max));

        // The temperature, from the logit farthest from 0.
        let entropy: f64 = p.iter().filter(|&&q| q > 0.0).map(|q| -q * q.ln()).sum();
        let share = (entropy / (n as f64).ln()).powf(f64::from(exponent));
        let (least, most) = (f64::from(0.8f32 - 0.5).max(0.0), f64::from(0.8f32 + 0.5));
        let t = least + (most - least) * share;
        let mut chain = Chain::new(vec![Box::new(TempExt::new(0.8, 0.5, exponent).unwrap())]).unwrap();
        chain.apply(&xs, AllowedTokens::All, None).unwrap();
        let c = chain.candidates();
        // The division may make the next best its equal.
        let best = c.ids().iter().position(|&id| id == descending(&xs)[0]).unwrap();
        prop_assert!(c.is_sorted() && c.logits()[0] == c.logits()[best]);
        // Powers below 1 stretch what the entropy of a certain token is off by.
        if entropy > 1e-3 && max.abs() / t < 3e38 {
            for (&id, &y) in c.ids().iter().zip(c.logits()).filter(|(_, y)| y.is_finite()) {
                let want = f64::from(xs[id as usize]) / t;
                prop_assert!((f64::from(y) - want).abs() <= 2e-5 * want.abs() + 1e-30, "{} {}", y, want);
            }
        }

        let mean = exact.iter().sum::<f64>() / exact.len() as f64;
        let deviation = (exact.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / exact.len() as f64).sqrt();
        let bar = max - f64::from(number) * deviation;
        let room = 3e-7 * (max.abs() + f64::from(number) * deviation);
        let mut chain = Chain::new(vec![Box::new(TopNSigma::new(number).unwrap())]).unwrap();
        chain.apply(&xs, AllowedTokens::All, None).unwrap();
        prop_assert_eq!(chain.candidates().len(), n);
        for (&x, &left) in xs.iter().zip(chain.candidates().logits()) {
            let is_near = (f64::from(x) - bar).abs() <= room;
            prop_assert!(is_near || (left == x) == (f64::from(x) >= bar) || x == f32::NEG_INFINITY, "{} {}", x, bar);
        }

        let order = descending(&xs);
        let limit = f64::from(threshold);
        let above = order.iter().take_while(|&&id| p[id as usize] >= limit).count();
        let kept = apply(Xtc::new(1.0, threshold, 0, Seed::mt19937(salt)).unwrap(), &xs);
        let is_near = p.iter().any(|q| (q - limit).abs() <= BOUND);
        prop_assert!(is_near || kept[..] == order[above.saturating_sub(1)..]);
    }
}

/// A draw from candidates whose order was put off falls where the listed order has it.
#[test]
fn draws_from_flat_distributions_fall_where_exact_arithmetic_has_them() {
    type MakeChain = fn() -> Vec<Box<dyn Sampler>>;
    let chains: [MakeChain; 6] = [
        || vec![boxed(TopP::new(0.95, 0).unwrap())],
        || vec![boxed(TopP::new(0.5, 1200).unwrap()), boxed(Temp::new(0.8).unwrap())],
        || vec![boxed(TypP::new(0.9, 0).unwrap())],
        || vec![boxed(TypP::new(0.9, 0).unwrap()), boxed(Temp::new(0.8).unwrap())],
        || vec![boxed(TempExt::new(0.9, 0.4, 1.0).unwrap())],
        || vec![boxed(Xtc::new(1.0, 1e-4, 0, Seed::mt19937(3)).unwrap())],
    ];
    for (salt, (n, spread)) in
        (1..).zip([(1500, 0.3), (9000, 0.0), (9000, 1.0), (40_000, 0.7), (40_000, 3.0)])
    {
        for ties in [false, true] {
            let mut xs = logits(n, salt, spread, 0, ties);
            // What repeats with the period of a block is no good sample.
            xs.iter_mut().step_by(256).for_each(|x| *x += 1.0);
            let some: Vec<u32> = (0..n as u32).filter(|i| i % 8 != 3).collect();
            for (make, allowed) in
                chains.iter().flat_map(|make| [(make, AllowedTokens::All), (make, AllowedTokens::Ids(&some))])
            {
                let seed = Seed::mt19937(salt);
                let mut chain = Chain::new([make(), vec![boxed(Dist::new(seed).unwrap())]].concat()).unwrap();
                let (name, mut draws) = (chain.describe(), Draws::new(seed, 0));
                for _ in 0..12 {
                    let (draw, mut listed) = (draws.double(), chain.clone());
                    let token = chain.draw(&xs, allowed).unwrap();
                    listed.apply(&xs, allowed, None).unwrap();
                    assert_eq!(listed.pick().unwrap(), token, "{name}");
                    let c = listed.candidates();
                    let at = c.selected().unwrap();
                    assert_eq!(c.ids()[at], token, "{name}");
                    let p = probabilities(c.logits());
                    let below: f64 = p[..at].iter().sum();
                    assert!(below - BOUND <= draw && draw <= below + p[at] + BOUND, "{name}: {draw} {below}");
                    chain.accept(token);
                    draws.accept();
                }
            }
        }
    }
}

fn boxed(sampler: impl Sampler + 'static) -> Box<dyn Sampler> {
    Box::new(sampler)
}

/// Samplers that leave candidates to be sorted, those that may come next, and those that end a chain.
fn laters() -> [Vec<Box<dyn Sampler>>; 3] {
    let seed = Seed::mt19937(5);
    let later =
        vec![boxed(TempExt::new(0.9, 0.4, 1.0).unwrap()), boxed(Xtc::new(1.0, 0.02, 0, seed).unwrap())];
    let next = vec![
        boxed(TopK::new(50)),
        boxed(TopP::new(0.7, 0).unwrap()),
        boxed(TopP::new(0.999, 1500).unwrap()),
        boxed(MinP::new(0.05, 0).unwrap()),
        boxed(MinP::new(0.9, 1200).unwrap()),
        boxed(TypP::new(0.8, 0).unwrap()),
        boxed(Temp::new(0.7).unwrap()),
        boxed(Temp::new(0.0).unwrap()),
        boxed(TopNSigma::new(1.0).unwrap()),
        boxed(Penalties::new(64, 1.4, 0.1, 0.2).unwrap()),
        boxed(LogitBias::new(&[(7, 3.0), (900, -2.0)]).unwrap()),
        boxed(TempExt::new(1.1, 0.3, 0.5).unwrap()),
        boxed(Xtc::new(1.0, 0.01, 0, Seed::mt19937(6)).unwrap()),
    ];
    let last = vec![
        boxed(Dist::new(seed).unwrap()),
        boxed(Greedy),
        boxed(MirostatV2::new(3.0, 0.1, seed).unwrap()),
        boxed(AdaptiveP::new(0.3, 0.9, seed).unwrap()),
    ];
    [later, next, last]
}

/// The ids above -inf, in order; the order among the others is libstdc++'s in parity mode.
fn alive(chain: &Chain) -> Vec<u32> {
    let c = chain.candidates();
    let both = c.ids().iter().zip(c.logits());
    both.filter(|(_, &x)| x > f32::NEG_INFINITY).map(|(&id, _)| id).collect()
}

/// Candidates that are sorted on first access equal those sorted at once, for every kind of access.
#[test]
fn sorting_later_equals_sorting_at_once() {
    let [later, next, last] = laters();
    for (salt, n) in [(1, 1500), (2, 4000), (3, 2600)] {
        let xs = logits(n, salt, 3.0, 12, false);
        let some: Vec<u32> = (0..n as u32).filter(|i| i % 8 != 3).collect();
        for (first, between) in later.iter().flat_map(|a| next.iter().map(move |b| (a, b))) {
            for (end, allowed) in
                last.iter().flat_map(|e| [(e, AllowedTokens::All), (e, AllowedTokens::Ids(&some))])
            {
                let mut fast = Chain::new(vec![first.clone(), between.clone(), end.clone()]).unwrap();
                (0..40).for_each(|i| fast.accept(i * 37 % n as u32));
                let (name, mut listed) = (fast.describe(), fast.clone());
                let mut parity = fast.clone().with_mode(Mode::Parity).unwrap();
                let token = fast.draw(&xs, allowed).unwrap();
                listed.apply(&xs, allowed, None).unwrap();
                parity.apply(&xs, allowed, None).unwrap();
                assert_eq!((listed.pick().unwrap(), parity.pick().unwrap()), (token, token), "{name}");
                let (a, b) = (alive(&listed), alive(&parity));
                assert!(a.len().abs_diff(b.len()) <= 1, "{name}");
                if end.name() != "adaptive_p" && between.name() != "typ_p" {
                    let shorter = a.len().min(b.len());
                    assert_eq!(a[..shorter], b[..shorter], "{name}");
                }
            }
        }
    }
}

/// What weighs nothing goes when the candidates are listed, and is never drawn.
#[test]
fn mirostat_cuts_the_same_late_and_at_once() {
    for (salt, n) in [(1, 3000), (2, 8000), (3, 1500)] {
        let xs = logits(n, salt, 20.0, 0, false);
        let few: Vec<u32> = (0..n as u32).filter(|i| i % 5 != 2).collect();
        for tau in [20.0, 28.0, 30.0, 35.0, 60.0] {
            for allowed in [AllowedTokens::All, AllowedTokens::Ids(&few)] {
                let seed = Seed::mt19937(salt);
                let mut listed = Chain::new(vec![boxed(MirostatV2::new(tau, 0.1, seed).unwrap())]).unwrap();
                let mut parity = listed.clone().with_mode(Mode::Parity).unwrap();
                let token = listed.clone().draw(&xs, allowed).unwrap();
                listed.apply(&xs, allowed, None).unwrap();
                parity.apply(&xs, allowed, None).unwrap();
                assert_eq!(listed.pick().unwrap(), token, "{tau}");
                assert_eq!(xs[parity.pick().unwrap() as usize], xs[token as usize], "{tau}");
                // Logits, because equal ones are in libstdc++'s order in parity mode.
                let (a, b) = (listed.candidates().logits(), parity.candidates().logits());
                let shorter = a.len().min(b.len());
                assert!(a.len().abs_diff(b.len()) <= 1 && a[..shorter] == b[..shorter], "{tau}");
                assert!(listed.candidates().ids().len() < xs.len(), "{tau}");
            }
        }
    }
}

/// Masks of many ids: half of them, most, every fourth, those of few places.
fn wide_masks(n: usize, salt: u32) -> Vec<Vec<u32>> {
    let id = |at: usize| at as u32;
    vec![
        (0..n / 2).map(id).collect(),
        (0..n).map(id).filter(|id| id.wrapping_mul(salt | 1) >> 26 != 3).collect(),
        (0..n).map(id).filter(|id| id % 4 == salt % 4).collect(),
        (n / 8..n / 8 + 4200).map(id).collect(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// From a mask of many ids, whose logits stay where they are, the same tokens are drawn as from a list of the ids; the
    /// logits of other ids may be anything.
    #[test]
    fn wide_masks_draw_as_lists_do(
        rows in [0..SAMPLERS.len(), 0..SAMPLERS.len(), 0..SAMPLERS.len()],
        knobs in [knobs(), knobs(), knobs()],
        (n, salt, spread) in (16_800usize..20_000, any::<u32>(), 0.01f32..8.0),
        (peaks, ties, kind, greedy) in (0usize..20, any::<bool>(), 0usize..4, any::<bool>()),
    ) {
        let (world, seed) = (World::default(), Seed::mt19937(salt));
        let mut samplers: Vec<Box<dyn Sampler>> = Vec::new();
        for (row, knobs) in rows.into_iter().zip(knobs) {
            if samplers.last().is_none_or(|last| !last.selects()) {
                samplers.push(build(&SAMPLERS[row], knobs, seed, &world));
            }
        }
        if !samplers.last().is_some_and(|last| last.selects()) {
            samplers.push(if greedy { boxed(Greedy) } else { boxed(Dist::new(seed).unwrap()) });
        }
        let mut listed = Chain::new(samplers).unwrap();
        listed.measure(greedy);
        (0..40).for_each(|i| listed.accept(i * 37 % n as u32));
        let mut wide = listed.clone();
        let (mut steering, edits) = (Steering::default(), [(1, 2.0), (9, f32::NEG_INFINITY), (5000, -1.0)]);
        let ids = &wide_masks(n, salt)[kind];
        let mut words = vec![0u32; n.div_ceil(32)];
        insert_bits(&mut words, ids);
        for step in 0..4 {
            let mut xs = logits(n, salt ^ step, spread, peaks, ties);
            if salt % 7 == 0 {
                // Fewer above -inf than samplers keep for their number alone.
                let some = |at: usize| (at as u32).wrapping_mul(salt | 1) >> 24 != 5;
                (0..n).filter(|&at| at as u32 != ids[7] && some(at)).for_each(|at| xs[at] = f32::NEG_INFINITY);
            }
            let halves: Vec<u16> = xs.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect();
            if salt % 3 == 0 {
                let banned = (0..n).filter(|&at| !bit(&words, at as u32));
                banned.for_each(|at| xs[at] = [f32::NAN, f32::INFINITY, 1e30][at % 3]);
            }
            if step == 2 {
                edits.iter().for_each(|&(id, by)| steering.add(id, by).unwrap());
                wide.steer(&steering);
                listed.steer(&steering);
            }
            let given = if salt % 5 == 0 { Floats::F16(&halves) } else { Floats::F32(&xs) };
            let one = wide.draw(given, AllowedTokens::Mask(&words));
            let other = listed.draw(given, AllowedTokens::Ids(ids));
            let message = |result: Result<u32, logitree_sampling::Error>| result.map_err(|error| (error.message, error.place));
            let (one, other) = (message(one), message(other));
            prop_assert_eq!(&one, &other, "{}", wide.describe());
            prop_assert_eq!(wide.snapshot(), listed.snapshot(), "{}", wide.describe());
            let Ok(token) = one else { break };
            prop_assert_eq!(wide.measures().is_some(), greedy);
            let levels = |chain: &Chain| chain.measures().map(|m| [m.model, m.sampling]);
            for (one, other) in levels(&wide).iter().flatten().zip(levels(&listed).iter().flatten()) {
                prop_assert!((one.entropy - other.entropy).abs() < 1e-6 && (one.log_probability - other.log_probability).abs() < 1e-6);
            }
            wide.accept(token);
            listed.accept(token);
        }
        // A NaN is found where it is allowed.
        let mut xs = vec![0.0; n];
        xs[ids[ids.len() / 3] as usize] = f32::NAN;
        let error = wide.draw(&xs, AllowedTokens::Mask(&words)).unwrap_err();
        prop_assert_eq!(error.place, format!("id {}", ids[ids.len() / 3]));
    }
}
