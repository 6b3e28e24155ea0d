//! The samplers that llama.cpp lacks, against their formulas in f64 over a sorted list; the history of no_repeat_ngram
//! against a search through all of it.
//!
//! Where a sum or a probability meets its bound within 2e-6, either answer is right: the naive version names the
//! fewest and the most that may stay.

use logitree_sampling::{
    Chain, Edt, EpsilonCutoff, EtaCutoff, HfTopH, HfTopK, HfTopP, HfTypP, MinK, Mode, NoRepeatNgram, PLess,
    Params, Sampler, TopH,
};
use logitree_tokens::mask::AllowedTokens;
use proptest::prelude::*;

const INF: f32 = f32::INFINITY;
const ROUNDING: f64 = 2e-6;

#[derive(Debug, Clone, Copy)]
enum Op {
    TopH(f32),
    PLess(bool),
    MinK(f32),
    Epsilon(f32, usize),
    Eta(f32, usize),
    HfTopH(f32),
    HfTopK(i32, usize),
    HfTopP(f32, usize),
    HfTypP(f32, usize),
}

impl Op {
    fn build(self) -> Box<dyn Sampler> {
        match self {
            Op::TopH(h) => Box::new(TopH::new(h).unwrap()),
            Op::PLess(norm) => Box::new(PLess::new(norm)),
            Op::MinK(tau) => Box::new(MinK::new(tau).unwrap()),
            Op::Epsilon(e, keep) => Box::new(EpsilonCutoff::new(e, keep).unwrap()),
            Op::Eta(e, keep) => Box::new(EtaCutoff::new(e, keep).unwrap()),
            Op::HfTopH(h) => Box::new(HfTopH::new(h).unwrap()),
            Op::HfTopK(k, keep) => Box::new(HfTopK::new(k, keep)),
            Op::HfTopP(p, keep) => Box::new(HfTopP::new(p, keep).unwrap()),
            Op::HfTypP(p, keep) => Box::new(HfTypP::new(p, keep).unwrap()),
        }
    }
}

/// The candidates above -inf, best first, equal ones in their order, with probabilities and the entropy.
struct Sorted {
    all: Vec<(u32, f64)>,
    p: Vec<f64>,
    entropy: f64,
}

impl Sorted {
    fn of(logits: &[f32], ids: &[u32]) -> Sorted {
        let alive = ids.iter().map(|&id| (id, f64::from(logits[id as usize])));
        let mut all: Vec<(u32, f64)> = alive.filter(|c| c.1 > f64::NEG_INFINITY).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let e: Vec<f64> = all.iter().map(|c| (c.1 - all[0].1).exp()).collect();
        let sum: f64 = e.iter().sum();
        let p: Vec<f64> = e.iter().map(|e| e / sum).collect();
        let entropy = p.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
        Sorted { all, p, entropy }
    }

    fn first(&self, n: usize) -> Vec<u32> {
        self.all[..n.clamp(1, self.all.len())].iter().map(|c| c.0).collect()
    }

    /// The ids at least `least` probable, and the `keep` best with their equals.
    fn probable(&self, least: f64, keep: usize) -> Vec<u32> {
        let spared = self.all[keep.clamp(1, self.all.len()) - 1].1;
        let stays = |i: usize| self.p[i] >= least || self.all[i].1 >= spared;
        (0..self.all.len()).filter(|&i| stays(i)).map(|i| self.all[i].0).collect()
    }

    /// The ids that stay when every bound is without_upper_bounds by `loose` of itself (tightened, if negative).
    fn stay(&self, op: Op, loose: f64) -> Vec<u32> {
        let n = self.all.len();
        match op {
            Op::TopH(h) if h <= 0.0 || h >= 1.0 => self.first(n),
            Op::TopH(h) => {
                let bound = f64::from(h) * self.entropy * (1.0 + loose) + loose * 1e-3;
                let within = |k: &usize| {
                    let sum: f64 = self.p[..*k].iter().sum();
                    let q = self.p[..*k].iter().map(|p| p / sum).filter(|&q| q > 0.0);
                    q.map(|q| -q * q.ln()).sum::<f64>() <= bound
                };
                self.first((1..=n).take_while(within).count())
            }
            Op::PLess(norm) => {
                let c: f64 = self.p.iter().map(|p| p * p).sum();
                let v = n as f64;
                // What is subtracted grows the rounding.
                let least = if norm && n > 1 { (v * c * (1.0 - loose) - 1.0) / (v - 1.0) } else { c };
                self.probable(least * (1.0 - loose), 1)
            }
            Op::MinK(tau) => {
                let range = self.all[0].1 - self.all[n - 1].1 + 1e-8;
                let step = |k: &usize| (self.all[k - 1].1 - self.all[*k].1) / *k as f64;
                let cut = (1..n).fold(1, |best, k| if step(&k) > step(&best) { k } else { best });
                self.first(cut.max((f64::from(tau) / range).floor() as usize))
            }
            Op::Epsilon(e, keep) => self.probable(f64::from(e) * (1.0 - loose), keep),
            Op::Eta(e, keep) => {
                let e = f64::from(e);
                self.probable(e.min(e.sqrt() * (-self.entropy).exp()) * (1.0 - loose), keep)
            }
            Op::HfTopH(h) if h <= 0.0 => self.first(n),
            Op::HfTopH(h) => {
                let sum: f64 = self.p.iter().take(100).sum();
                let terms =
                    self.p.iter().take(100).map(|p| p / sum).map(|p| if p > 0.0 { -p * p.ln() } else { 0.0 });
                let terms: Vec<f64> = terms.collect();
                let bound = f64::from(h) * terms.iter().sum::<f64>() * (1.0 + loose) + loose * 1e-6;
                self.first((1..=terms.len()).take_while(|&k| terms[..k].iter().sum::<f64>() <= bound).count())
            }
            Op::HfTopK(k, _) if k <= 0 => self.first(n),
            Op::HfTopK(k, keep) => self.probable(2.0, (k as usize).max(keep)),
            Op::HfTopP(p, _) if p >= 1.0 => self.first(n),
            Op::HfTopP(p, keep) => self.tail(f64::from(p), keep, loose),
            Op::HfTypP(p, _) if p >= 1.0 => self.first(n),
            Op::HfTypP(p, keep) => self.typical(f64::from(p), keep, loose),
        }
    }

    /// What is left when the least probable go while they sum to at most 1 - p, of equal ones the last first.
    fn tail(&self, p: f64, keep: usize, loose: f64) -> Vec<u32> {
        let rising: Vec<usize> = (0..self.all.len()).rev().collect();
        let mut sum = 0.0;
        let gone = rising.iter().take_while(|&&i| {
            sum += self.p[i];
            sum <= 1.0 - p - loose
        });
        let gone = gone.count().min(self.all.len().saturating_sub(keep.max(1)));
        rising[gone..].iter().map(|&i| self.all[i].0).collect()
    }

    fn typical(&self, p: f64, keep: usize, loose: f64) -> Vec<u32> {
        let distance = |i: usize| (-self.p[i].ln() - self.entropy).abs();
        let mut near: Vec<usize> = (0..self.all.len()).filter(|&i| self.p[i] > 0.0).collect();
        near.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(self.all[a].0.cmp(&self.all[b].0)));
        let mut sum = 0.0;
        let last = near.iter().position(|&i| {
            sum += self.p[i];
            sum >= p * (1.0 + loose)
        });
        let bar = last.map_or(INF.into(), |last| distance(near[last])) + loose * 10.0;
        let stays = |(at, i): &(usize, usize)| distance(*i) <= bar || (loose > 0.0 && *at < keep.max(1));
        near.into_iter().enumerate().filter(stays).map(|(_, i)| self.all[i].0).collect()
    }
}

fn op() -> impl Strategy<Value = Op> {
    let keep = || prop_oneof![3 => 0usize..2, 1 => 2usize..9];
    let part =
        || prop_oneof![3 => 0.0f32..1.0, 1 => prop::sample::select(vec![0.25f32, 0.5, 0.75, 0.9, 1.0])];
    let epsilon = || prop_oneof![1e-6f32..1e-2, 1e-2f32..0.9];
    prop_oneof![
        part().prop_map(Op::TopH),
        any::<bool>().prop_map(Op::PLess),
        prop_oneof![Just(0.0f32), Just(3.0), 0.0f32..200.0].prop_map(Op::MinK),
        (epsilon(), keep()).prop_map(|(e, k)| Op::Epsilon(e, k)),
        (epsilon(), keep()).prop_map(|(e, k)| Op::Eta(e, k)),
        part().prop_map(Op::HfTopH),
        (prop_oneof![-1i32..60, 60i32..3000], keep()).prop_map(|(k, m)| Op::HfTopK(k, m)),
        (part(), keep()).prop_map(|(p, k)| Op::HfTopP(p, k)),
        (part(), keep()).prop_map(|(p, k)| Op::HfTypP(p, k)),
    ]
}

/// Logits of several shapes: flat, wide, with ties, with -inf.
fn logits() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        6 => -9f32..9.0,
        4 => (-8i32..8).prop_map(|x| x as f32 / 2.0),
        1 => Just(-INF),
    ];
    let size = prop_oneof![1 => 1usize..4, 4 => 4usize..40, 2 => 40usize..700, 1 => 700usize..3000];
    let scale = prop::sample::select(vec![1.0f32, 0.01, 4.0]);
    (size.prop_flat_map(move |n| prop::collection::vec(logit.clone(), n)), scale)
        .prop_map(|(xs, scale)| xs.into_iter().map(|x| x * scale).collect())
        .prop_filter("one above -inf", |xs: &Vec<f32>| xs.iter().any(|&x| x > -INF))
}

fn chain(op: Op) -> Chain {
    Chain::new(vec![op.build()]).unwrap()
}

/// The ids above -inf that are left, ascending.
fn left(chain: &Chain) -> Vec<u32> {
    let c = chain.candidates();
    let alive = c.ids().iter().zip(c.logits()).filter(|c| *c.1 > -INF);
    let mut ids: Vec<u32> = alive.map(|c| *c.0).collect();
    ids.sort_unstable();
    ids
}

fn sorted(mut ids: Vec<u32>) -> Vec<u32> {
    ids.sort_unstable();
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn each_equals_its_formula(logits in logits(), op in op(), few in any::<bool>()) {
        let n = logits.len() as u32;
        let ids: Vec<u32> = if few { (0..n).filter(|id| id % 3 != 1).collect() } else { (0..n).collect() };
        prop_assume!(ids.iter().any(|&id| logits[id as usize] > -INF));
        let mut chain = chain(op);
        let allowed = if few { AllowedTokens::Ids(&ids) } else { AllowedTokens::All };
        chain.apply(&logits, allowed, None).unwrap();
        let (got, naive) = (left(&chain), Sorted::of(&logits, &ids));
        let (fewest, most) = (sorted(naive.stay(op, -ROUNDING)), sorted(naive.stay(op, ROUNDING)));
        prop_assert!(!got.is_empty());
        prop_assert!(fewest.iter().all(|id| got.binary_search(id).is_ok()), "{fewest:?} not all in {got:?}");
        prop_assert!(got.iter().all(|id| most.binary_search(id).is_ok()), "{got:?} not all in {most:?}");
        // Applied again it does the same: no state.
        chain.apply(&logits, allowed, None).unwrap();
        prop_assert_eq!(left(&chain), got);
        let total: f32 = chain.candidates().probabilities().iter().sum();
        prop_assert!((total - 1.0).abs() < 1e-3);
    }

    #[test]
    fn edt_is_a_temperature_of_the_entropy(
        logits in logits(),
        t0 in 0.3f32..2.0,
        theta in prop_oneof![Just(0.0f32), 0.01f32..3.0],
        n in prop_oneof![Just(0.8f32), Just(1.0), 0.1f32..1.0],
    ) {
        let ids: Vec<u32> = (0..logits.len() as u32).collect();
        let entropy = Sorted::of(&logits, &ids).entropy;
        prop_assume!(theta == 0.0 || entropy > 1e-2);
        let t = f64::from(t0) * f64::from(n).powf(if theta == 0.0 { 0.0 } else { f64::from(theta) / entropy });
        prop_assume!(t > 1e-3);
        let mut chain = Chain::new(vec![Box::new(Edt::new(t0, theta, n).unwrap())]).unwrap();
        chain.apply(&logits, AllowedTokens::All, None).unwrap();
        for (id, &x) in chain.candidates().ids().iter().zip(chain.candidates().logits()) {
            let expected = f64::from(logits[*id as usize]) / t;
            prop_assert!(expected == f64::from(x) || (f64::from(x) - expected).abs() <= 1e-5 * expected.abs());
        }
    }

    #[test]
    fn no_repeat_ngram_equals_a_search(
        steps in prop::collection::vec((0u8..12, any::<u32>()), 1..120),
        first in 1i32..5,
        alphabet in 1u32..6,
    ) {
        let logits: Vec<f32> = (0..8).map(|x| x as f32).collect();
        let build = |n| Chain::new(vec![Box::new(NoRepeatNgram::new(n).unwrap())]).unwrap();
        let (mut chain, mut history, mut n) = (build(first), Vec::<u32>::new(), first as usize);
        for (kind, x) in steps {
            match kind {
                0 => {
                    let back = x as usize % (history.len() + 1);
                    history.truncate(history.len() - back);
                    chain.rollback(back).unwrap();
                }
                1 => {
                    n = x as usize % 5;
                    chain.set_parameter("no_repeat_ngram", n as f64).unwrap();
                }
                2 => {
                    let mut other = build(n as i32);
                    other.restore(&chain.snapshot()).unwrap();
                    chain = other;
                }
                3 if x % 8 == 0 => {
                    history.clear();
                    chain.reset();
                }
                _ => {
                    history.push(x % alphabet);
                    chain.accept(x % alphabet);
                }
            }
            let completes = |t: u32| {
                let mut gram = history[history.len().saturating_sub(n.saturating_sub(1))..].to_vec();
                gram.push(t);
                n > 0 && gram.len() == n && history.windows(n).any(|w| w == gram)
            };
            let expected: Vec<u32> = (0..8).filter(|&t| !completes(t)).collect();
            chain.apply(&logits, AllowedTokens::All, None).unwrap();
            prop_assert_eq!(left(&chain), expected, "n {} history {:?}", n, history);
            // Where all would go, all stay.
            let lost: Vec<u32> = (0..8).filter(|&t| completes(t)).collect();
            if !lost.is_empty() {
                chain.apply(&logits, AllowedTokens::Ids(&lost), None).unwrap();
                prop_assert_eq!(left(&chain), lost);
            }
        }
    }
}

#[test]
fn edt_near_zero_entropy_ignores_the_position_of_the_best() {
    // The entropy is 0.03 and the exponent its inverse, by which roundings of the sum to f32 grow to 1e-4.
    let scaled = |at: usize| {
        let mut logits = [0.0; 24];
        logits[at] = 8.8;
        let mut chain = Chain::new(vec![Box::new(Edt::new(0.95, 1.0, 0.1).unwrap())]).unwrap();
        chain.apply(&logits, AllowedTokens::All, None).unwrap();
        chain.candidates().logits()[at]
    };
    let first = scaled(0);
    for at in 1..24 {
        assert!((scaled(at) - first).abs() <= first * 1e-6, "{at}: {} and {first}", scaled(at));
    }
}

#[test]
fn a_keyword_changes_every_sampler_that_has_it() {
    assert!(NoRepeatNgram::new(1025).is_err() && NoRepeatNgram::new(-3).unwrap().is_noop());
    let every = "no_repeat_ngram;epsilon_cutoff;eta_cutoff;top_h;min_k;p_less;edt;hf_top_k;hf_top_p;hf_typ_p";
    let mut chain = Chain::parse(every, &Params::default().seed(0)).unwrap();
    chain.set_parameter("p_less_norm", 1.0).unwrap();
    chain.set_parameter("min_keep", 3.0).unwrap();
    for part in ["p_less(norm=True)", "epsilon_cutoff(0, min_keep=3)", "hf_top_k(40, min_keep=3)"] {
        assert!(chain.describe().contains(part), "{}", chain.describe());
    }
    assert!(chain.with_mode(Mode::Parity).unwrap_err().message.contains("no_repeat_ngram"));
}

#[test]
fn a_large_flat_vocabulary_takes_bounded_time() {
    let flat = vec![0.5f32; 1 << 18];
    let steep: Vec<f32> = (0..1 << 18).map(|i| -(i as f32) * 1e-3).collect();
    for op in [
        Op::TopH(0.5),
        Op::PLess(false),
        Op::MinK(3.0),
        Op::Eta(1e-3, 1),
        Op::HfTopP(0.5, 1),
        Op::HfTypP(0.5, 1),
    ] {
        for logits in [&flat, &steep] {
            let mut chain = chain(op);
            chain.apply(logits, AllowedTokens::All, None).unwrap();
            assert!(!chain.candidates().ids().is_empty(), "{op:?}");
        }
    }
    // Half of the entropy of n equal ones is that of the square root of n; half of their weight is half of them.
    let count = |op| {
        let mut chain = chain(op);
        chain.apply(&flat, AllowedTokens::All, None).unwrap();
        chain.candidates().ids().len()
    };
    assert_eq!(count(Op::TopH(0.5)), 1 << 9);
    assert_eq!(count(Op::HfTopP(0.5, 1)), 1 << 17);
    assert_eq!([count(Op::PLess(false)), count(Op::PLess(true)), count(Op::Epsilon(0.5, 1))], [1 << 18; 3]);
    assert_eq!(count(Op::HfTypP(0.5, 1)), 1 << 18);
}

#[test]
fn a_long_history_of_one_token_takes_bounded_time() {
    let mut chain = Chain::new(vec![Box::new(NoRepeatNgram::new(3).unwrap())]).unwrap();
    (0..200_000).for_each(|_| chain.accept(7));
    let logits = [0.0f32; 10];
    for _ in 0..1000 {
        chain.apply(&logits, AllowedTokens::All, None).unwrap();
    }
    assert_eq!(left(&chain), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
    chain.rollback(199_999).unwrap();
    chain.apply(&logits, AllowedTokens::All, None).unwrap();
    assert_eq!(left(&chain).len(), 10);
}
