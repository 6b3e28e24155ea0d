//! The samplers against their naive version, which copies the allowed logits, sorts them and follows the formula. Results
//! must be equal bit for bit, over random chains, logits with ties and -inf, and all three kinds of allowed tokens. Lists
//! of more than 1,024 candidates are summed differently: `long.rs`.

use logitree_sampling::Draws;
use logitree_sampling::{
    Chain, Dist, Greedy, LogitBias, MinP, Penalties, Sampler, Seed, Temp, TopK, TopNSigma, TopP, TypP,
};
use logitree_tokens::mask::AllowedTokens;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    TopK(i32),
    TopP(f32, usize),
    MinP(f32, usize),
    TypP(f32, usize),
    TopNSigma(f32),
    Temp(f32),
    Penalties(i32, f32, f32, f32),
    LogitBias(Vec<(u32, f32)>),
}

impl Op {
    fn build(&self) -> Box<dyn Sampler> {
        match *self {
            Op::TopK(k) => Box::new(TopK::new(k)),
            Op::TopP(p, keep) => Box::new(TopP::new(p, keep).unwrap()),
            Op::MinP(p, keep) => Box::new(MinP::new(p, keep).unwrap()),
            Op::TypP(p, keep) => Box::new(TypP::new(p, keep).unwrap()),
            Op::TopNSigma(n) => Box::new(TopNSigma::new(n).unwrap()),
            Op::Temp(t) => Box::new(Temp::new(t).unwrap()),
            Op::Penalties(n, r, f, p) => Box::new(Penalties::new(n, r, f, p).unwrap()),
            Op::LogitBias(ref b) => Box::new(LogitBias::new(b).unwrap()),
        }
    }
}

/// The naive candidates: (id, logit) in order, and whether they count as sorted.
#[derive(Debug, Clone, PartialEq)]
struct Naive {
    all: Vec<(u32, f32)>,
    sorted: bool,
}

impl Naive {
    fn sort(&mut self) {
        if !self.sorted {
            self.all.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap());
            self.sorted = true;
        }
    }

    fn max(&self) -> f32 {
        self.all.iter().map(|c| c.1).fold(f32::NEG_INFINITY, f32::max)
    }

    fn softmax(&self) -> Vec<f32> {
        let max = self.max();
        let e: Vec<f32> = self.all.iter().map(|c| (c.1 - max).exp()).collect();
        let sum: f32 = e.iter().fold(0.0, |s, x| s + x);
        e.iter().map(|x| x / sum).collect()
    }

    fn top_p(&mut self, p: f32, keep: usize) {
        let mut tagged: Vec<((u32, f32), f32)> = self.all.iter().copied().zip(self.softmax()).collect();
        if !self.sorted {
            tagged.sort_by(|a, b| b.0 .1.partial_cmp(&a.0 .1).unwrap());
        }
        let (mut sum, mut kept) = (0.0f32, tagged.len());
        for (i, (_, q)) in tagged.iter().enumerate() {
            sum += q;
            if sum >= p && i + 1 >= keep {
                kept = i + 1;
                break;
            }
        }
        self.all = tagged[..kept].iter().map(|t| t.0).collect();
        self.sorted = true;
    }

    fn min_p(&mut self, p: f32, keep: usize) {
        if !self.sorted {
            let bar = self.max() + p.ln();
            let left: Vec<_> = self.all.iter().copied().filter(|c| c.1 >= bar).collect();
            if !left.is_empty() && left.len() >= keep {
                self.all = left;
                return;
            }
        }
        self.sort();
        let bar = self.all[0].1 + p.ln();
        let mut n = 1;
        while n < self.all.len() && !(self.all[n].1 < bar && n >= keep) {
            n += 1;
        }
        self.all.truncate(n);
    }

    fn typ_p(&mut self, p: f32, keep: usize) {
        self.sort();
        let q = self.softmax();
        let h = q.iter().fold(0.0f32, |h, &x| if x > 0.0 { h + -x * x.ln() } else { h });
        let distance = |i: usize| if q[i] > 0.0 { (-q[i].ln() - h).abs() } else { f32::INFINITY };
        let mut order: Vec<usize> = (0..q.len()).collect();
        order.sort_by(|&a, &b| distance(a).partial_cmp(&distance(b)).unwrap());
        let (mut sum, mut kept) = (0.0f32, q.len());
        for (i, &at) in order.iter().enumerate() {
            sum += q[at];
            if sum > p && (keep == 0 || i >= keep - 1) {
                kept = i + 1;
                break;
            }
        }
        self.all = order[..kept].iter().map(|&at| self.all[at]).collect();
        self.sorted = false;
    }

    fn top_n_sigma(&mut self, n: f32) {
        let alive: Vec<f32> = self.all.iter().map(|c| c.1).filter(|x| *x > f32::NEG_INFINITY).collect();
        if self.all.len() <= 1 {
            return;
        }
        let mean = alive.iter().fold(0.0f32, |s, x| s + x) / alive.len() as f32;
        let acc = alive.iter().fold(0.0f32, |s, x| (f64::from(s) + f64::from(x - mean).powi(2)) as f32);
        let bar = self.max() - n * (acc / alive.len() as f32).sqrt();
        self.all.iter_mut().filter(|c| c.1 < bar).for_each(|c| c.1 = f32::NEG_INFINITY);
    }

    fn apply(&mut self, op: &Op, history: &[u32]) {
        self.shape(op, history);
        // An order whose first candidate is banned is not relied on.
        self.sorted &= self.all[0].1 > f32::NEG_INFINITY;
    }

    fn shape(&mut self, op: &Op, history: &[u32]) {
        match *op {
            Op::TopK(k) if k > 0 => {
                self.sort();
                self.all.truncate(k as usize);
            }
            Op::TopP(p, keep) if p < 1.0 => self.top_p(p, keep),
            Op::MinP(p, keep) if p > 0.0 => self.min_p(p, keep),
            Op::TypP(p, keep) if p < 1.0 => self.typ_p(p, keep),
            Op::TopNSigma(n) if n > 0.0 => self.top_n_sigma(n),
            Op::Temp(t) if t <= 0.0 => {
                let max = self.max();
                let best = self.all.iter().position(|c| c.1 == max).unwrap();
                for (i, c) in self.all.iter_mut().enumerate().filter(|(i, _)| *i != best) {
                    let _ = i;
                    c.1 = f32::NEG_INFINITY;
                }
            }
            Op::Temp(t) => self.all.iter_mut().for_each(|c| c.1 /= t),
            Op::Penalties(n, r, f, p) if n > 0 && (r, f, p) != (1.0, 0.0, 0.0) => {
                let window = &history[history.len().saturating_sub(n as usize)..];
                for c in &mut self.all {
                    let count = window.iter().filter(|t| **t == c.0).count();
                    if count > 0 {
                        c.1 = if c.1 <= 0.0 { c.1 * r } else { c.1 / r } - (count as f32 * f + p);
                    }
                }
                self.sorted = false;
            }
            Op::LogitBias(ref biases) => {
                for c in &mut self.all {
                    c.1 += biases.iter().find(|b| b.0 == c.0).map_or(0.0, |b| b.1);
                }
            }
            _ => {}
        }
    }

    fn draw(&self, rng: &mut Draws) -> u32 {
        let max = self.max();
        let e: Vec<f32> = self.all.iter().map(|c| (c.1 - max).exp()).collect();
        let sum = e.iter().fold(0.0f64, |s, x| s + f64::from(*x));
        let target = sum * rng.double();
        let mut running = 0.0;
        for (c, x) in self.all.iter().zip(e) {
            running += f64::from(x);
            if running >= target {
                return c.0;
            }
        }
        unreachable!("the running sum ends at the sum")
    }
}

fn op(n: u32) -> impl Strategy<Value = Op> {
    let keep = || prop_oneof![3 => Just(0usize), 1 => 0usize..8];
    prop_oneof![
        prop_oneof![-1i32..60, 200i32..700].prop_map(Op::TopK),
        (prop_oneof![0f32..1.05, Just(0.95)], keep()).prop_map(|(p, k)| Op::TopP(p, k)),
        (prop_oneof![-0.1f32..1.2, Just(0.05)], keep()).prop_map(|(p, k)| Op::MinP(p, k)),
        (0f32..1.1, keep()).prop_map(|(p, k)| Op::TypP(p, k)),
        (-0.5f32..3.0).prop_map(Op::TopNSigma),
        prop_oneof![Just(0.0f32), Just(1.0), 0.3f32..2.0].prop_map(Op::Temp),
        (-1i32..12, 0.5f32..2.0, -0.5f32..1.0, prop_oneof![Just(0.0f32), -0.5f32..1.0])
            .prop_map(|(n, r, f, p)| Op::Penalties(n, r, f, p)),
        prop::collection::btree_map(0..n + 5, -6f32..6.0, 0..9)
            .prop_map(|b| Op::LogitBias(b.into_iter().collect())),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    logits: Vec<f32>,
    /// `None`: all; else the allowed ids and whether they come as words.
    allowed: Option<(Vec<u32>, bool)>,
    history: Vec<u32>,
    ops: Vec<Op>,
    seed: u32,
}

fn case() -> impl Strategy<Value = Case> {
    let logit = prop_oneof![
        6 => -9f32..9.0,
        // A coarse grid makes ties.
        4 => (-8i32..8).prop_map(|x| x as f32 / 2.0),
        1 => Just(f32::NEG_INFINITY),
    ];
    let size = prop_oneof![4 => 1usize..40, 2 => 40usize..700, 1 => 700usize..=1024];
    (size.prop_flat_map(move |n| prop::collection::vec(logit.clone(), n)), any::<u32>()).prop_flat_map(
        |(logits, seed)| {
            let n = logits.len() as u32;
            let ids = prop::collection::btree_set(0..n, 1..=logits.len().min(80));
            let allowed = prop::option::of((ids.prop_map(|s| s.into_iter().collect()), any::<bool>()));
            let history = prop::collection::vec(0..n, 0..20);
            let ops = prop::collection::vec(op(n), 0..5);
            (Just(logits), allowed, history, ops, Just(seed)).prop_map(
                |(logits, allowed, history, ops, seed)| Case { logits, allowed, history, ops, seed },
            )
        },
    )
}

fn words_of(ids: &[u32], n: usize) -> Vec<u32> {
    let mut words = vec![0; n.div_ceil(32)];
    AllowedTokens::Ids(ids).write(n, &mut words);
    words
}

fn chain_of(ops: &[Op], last: Option<Box<dyn Sampler>>, history: &[u32]) -> Chain {
    let mut samplers: Vec<_> = ops.iter().map(Op::build).collect();
    samplers.extend(last);
    let mut chain = Chain::new(samplers).unwrap();
    history.iter().for_each(|&t| chain.accept(t));
    chain
}

fn left(chain: &Chain) -> Vec<(u32, f32)> {
    let c = chain.candidates();
    c.ids().iter().copied().zip(c.logits().iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn equals_the_naive_version(case in case()) {
        let n = case.logits.len();
        let words = case.allowed.as_ref().map(|(ids, _)| words_of(ids, n)).unwrap_or_default();
        let (ids, allowed): (Vec<u32>, AllowedTokens<'_>) = match &case.allowed {
            None => ((0..n as u32).collect(), AllowedTokens::All),
            Some((ids, true)) => (ids.clone(), AllowedTokens::Mask(&words)),
            Some((ids, false)) => (ids.clone(), AllowedTokens::Ids(ids)),
        };
        let all = ids.iter().map(|&id| (id, case.logits[id as usize])).collect();
        let mut naive = Naive { all, sorted: false };
        let mut drawn = chain_of(&case.ops, Some(Box::new(Dist::new(Seed::mt19937(case.seed)).unwrap())), &case.history);
        let mut effects = Vec::new();
        if naive.max() == f32::NEG_INFINITY {
            prop_assert!(drawn.apply(&case.logits, allowed, None).is_err());
            return Ok(());
        }
        // Every prefix, so that each sampler is seen; each filter only narrows.
        for upto in 0..=case.ops.len() {
            let mut chain = chain_of(&case.ops[..upto], None, &case.history);
            chain.apply(&case.logits, allowed, Some(&mut effects)).unwrap();
            if upto > 0 {
                let before = naive.all.len();
                naive.apply(&case.ops[upto - 1], &case.history);
                prop_assert!(naive.all.len() <= before);
                let e = &effects[upto - 1];
                prop_assert!(e.after <= e.before && (0.0..=1.0).contains(&e.mass_cut), "{:?}", e);
                let alive = naive.all.iter().filter(|c| c.1 > f32::NEG_INFINITY).count();
                prop_assert_eq!(e.after, alive);
            }
            prop_assert_eq!(&left(&chain), &naive.all, "after {:?}", &case.ops[..upto]);
            let total: f32 = chain.candidates().probabilities().iter().sum();
            prop_assert!((total - 1.0).abs() < 1e-3);
        }
        let mut rng = Draws::new(Seed::mt19937(case.seed), 0);
        for _ in 0..3 {
            let expected = naive.draw(&mut rng);
            prop_assert_eq!(drawn.clone().draw(&case.logits, allowed).unwrap(), expected);
            drawn.apply(&case.logits, allowed, None).unwrap();
            prop_assert_eq!(drawn.pick().unwrap(), expected);
        }
        let max = naive.max();
        let first = naive.all.iter().find(|c| c.1 == max).unwrap().0;
        let mut greedy = chain_of(&case.ops, Some(Box::new(Greedy)), &case.history);
        prop_assert_eq!(greedy.draw(&case.logits, allowed).unwrap(), first);
    }
}
