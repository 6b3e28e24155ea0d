//! Every sampler as one row, so that the laws and the hostile inputs meet them all: a new sampler is one line here.
//!
//! A row builds its sampler from four knobs of 0 to 1; at their ends it is mostly switched off or at its
//! strongest, over a world: the vocabulary that the ids belong to.

use logitree_sampling::{
    presets, AdaptiveP, Breakers, Chain, Dist, Dry, Edt, EpsilonCutoff, EtaCutoff, Greedy, HfTopH, HfTopK,
    HfTopP, HfTypP, Infill, LogitBias, MinK, MinP, Mirostat, MirostatV2, NoRepeatNgram, PLess, Params,
    Penalties, Pieces, Sampler, Seed, SharedPieces, Temp, TempExt, TopH, TopK, TopNSigma, TopP, TsTopK,
    TsTopNSigma, TypP, Xtc,
};
use proptest::prelude::*;
use std::sync::Arc;

/// Which token of the whole vocabulary each id stands for; `None`: itself.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub ids: Option<Vec<u32>>,
}

/// What stands for tokens that are not in this world.
const ELSEWHERE: u32 = 1_000_000;

impl World {
    /// The id that a token of the whole vocabulary has here.
    pub fn here(&self, token: u32) -> u32 {
        let place = |ids: &Vec<u32>| ids.iter().position(|&id| id == token);
        self.ids.as_ref().map_or(token, |ids| place(ids).map_or(ELSEWHERE + token, |at| at as u32))
    }

    /// The token of the whole vocabulary that an id stands for.
    pub fn whole(&self, id: u32) -> u32 {
        match &self.ids {
            None => id,
            Some(ids) => ids.get(id as usize).copied().unwrap_or_else(|| id.wrapping_sub(ELSEWHERE)),
        }
    }
}

/// Token i stands for i in base 3, its digits from the lowest on; each seventh ends a generation and is no text.
struct Digits {
    world: World,
    texts: Vec<Vec<u8>>,
}

impl Digits {
    fn new(world: &World) -> Self {
        let digits = |mut i: u32| {
            let mut text = Vec::new();
            while i > 0 {
                text.push(b'0' + (i % 3) as u8);
                i /= 3;
            }
            text
        };
        let texts = (0..4096).map(|i| if i % 7 == 0 { Vec::new() } else { digits(i) }).collect();
        Digits { world: world.clone(), texts }
    }
}

impl Pieces for Digits {
    fn piece(&self, token: u32) -> &[u8] {
        &self.texts[self.world.whole(token) as usize % 4096]
    }

    fn is_end(&self, token: u32) -> bool {
        self.world.whole(token).is_multiple_of(7)
    }

    fn end(&self) -> u32 {
        self.world.here(0)
    }

    fn describe(&self) -> String {
        "digits".into()
    }
}

/// Four numbers from 0 to 1.
pub type Knobs = [f32; 4];

/// Random knobs, often at their ends.
pub fn knobs() -> impl Strategy<Value = Knobs> {
    let knob = || prop_oneof![1 => Just(0f32), 1 => Just(1f32), 6 => 0f32..1.0];
    [knob(), knob(), knob(), knob()]
}

/// One sampler.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub build: fn(Knobs, Seed, &World) -> Box<dyn Sampler>,
    /// What stays above -inf keeps its logit.
    pub filters: bool,
    /// How it treats candidates that only changed places.
    pub order: Order,
}

/// Whether the order of the candidates may be seen in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Not at all, ties aside.
    Free,
    /// In the rounding of a sum, and so in the last logit that is kept.
    Rounds,
    /// It selects or weighs by place, or looks at what the ids mean.
    Matters,
}

fn boxed(sampler: impl Sampler + 'static) -> Box<dyn Sampler> {
    Box::new(sampler)
}

fn few(x: f32, most: usize) -> usize {
    (x * most as f32) as usize
}

const fn row(
    name: &'static str,
    filters: bool,
    order: Order,
    build: fn(Knobs, Seed, &World) -> Box<dyn Sampler>,
) -> Row {
    Row { name, build, filters, order }
}

/// Every sampler.
pub const ROWS: &[Row] = &[
    row("logit_bias", false, Order::Matters, |k, _, w| {
        let biases = [(3, k[0] * 8.0 - 4.0), (7, k[1] * 90.0 - 45.0), (9, k[2])];
        let biases = biases.map(|(id, by)| (w.here(id), by));
        boxed(LogitBias::new(&biases[..few(k[3], 3)]).unwrap())
    }),
    row("penalties", false, Order::Matters, |k, _, _| {
        let last_n = few(k[0], 80) as i32 - 1;
        boxed(Penalties::new(last_n, 1.0 + few(k[1], 3) as f32 * 0.3, k[2], (k[3] - 0.3).max(0.0)).unwrap())
    }),
    row("dry", false, Order::Matters, |k, seed, w| {
        let breakers = [vec![w.here(5)], vec![w.here(1), w.here(2)]];
        let (allowed, last_n) = (few(k[2], 4) as i32, few(k[3], 80) as i32 - 1);
        let breakers = &breakers[..seed.seed as usize % 3];
        boxed(
            Dry::new(k[0] * 4.0 - 1.0, 0.9 + k[1], allowed, last_n, Breakers::new(breakers).unwrap())
                .unwrap(),
        )
    }),
    row("top_n_sigma", true, Order::Rounds, |k, _, _| boxed(TopNSigma::new(k[0] * 3.0 - 0.2).unwrap())),
    row("top_k", true, Order::Free, |k, _, _| boxed(TopK::new(few(k[0] * k[1], 300) as i32))),
    row("typ_p", true, Order::Free, |k, _, _| boxed(TypP::new(k[0], few(k[1] * k[2], 9)).unwrap())),
    row("top_p", true, Order::Rounds, |k, _, _| boxed(TopP::new(k[0], few(k[1] * k[2], 9)).unwrap())),
    row("min_p", true, Order::Free, |k, _, _| boxed(MinP::new(k[0] * k[0], few(k[1] * k[2], 9)).unwrap())),
    row("xtc", true, Order::Free, |k, seed, _| {
        boxed(Xtc::new(k[0], k[1] * 0.6, few(k[2] * k[3], 5), seed).unwrap())
    }),
    row("temp", false, Order::Free, |k, _, _| boxed(Temp::new(k[0] * 2.0).unwrap())),
    row("temp_ext", false, Order::Free, |k, _, _| {
        boxed(TempExt::new(k[0] * 2.0, k[1] * 1.5, k[2] * 2.0).unwrap())
    }),
    row("infill", false, Order::Matters, |_, _, w| {
        boxed(Infill::new(SharedPieces(Arc::new(Digits::new(w)))))
    }),
    row("mirostat", true, Order::Free, |k, seed, _| {
        let n_vocab = (seed.seed % 2 == 1).then_some((seed.seed % 200_000) as i32);
        let m = 1 + few(k[2], 200) as i32;
        boxed(Mirostat::new(n_vocab, k[0] * 9.0, k[1] * 1.4 - 0.2, m, seed).unwrap())
    }),
    row("mirostat_v2", true, Order::Free, |k, seed, _| {
        boxed(MirostatV2::new(k[0] * 9.0, k[1] * 1.4 - 0.2, seed).unwrap())
    }),
    row("adaptive_p", false, Order::Matters, |k, seed, _| {
        boxed(AdaptiveP::new(k[0] * 1.3 - 0.2, k[1], seed).unwrap())
    }),
    row("no_repeat_ngram", true, Order::Matters, |k, _, _| {
        boxed(NoRepeatNgram::new(few(k[0], 4) as i32).unwrap())
    }),
    row("epsilon_cutoff", true, Order::Rounds, |k, _, _| {
        boxed(EpsilonCutoff::new(k[0] * k[1] * 0.9, few(k[2], 5)).unwrap())
    }),
    row("eta_cutoff", true, Order::Rounds, |k, _, _| {
        boxed(EtaCutoff::new(k[0] * k[1] * 0.9, few(k[2], 5)).unwrap())
    }),
    row("top_h", true, Order::Rounds, |k, _, _| boxed(TopH::new(k[0]).unwrap())),
    row("min_k", true, Order::Free, |k, _, _| boxed(MinK::new(k[0] * 40.0).unwrap())),
    row("p_less", true, Order::Rounds, |k, _, _| boxed(PLess::new(k[0] > 0.5))),
    row("edt", false, Order::Rounds, |k, _, _| {
        boxed(Edt::new(k[0] * 2.0, few(k[1], 3) as f32 * 0.5, 0.1 + k[2] * 0.9).unwrap())
    }),
    row("hf_top_h", true, Order::Free, |k, _, _| boxed(HfTopH::new(k[0]).unwrap())),
    row("hf_top_k", true, Order::Free, |k, _, _| {
        boxed(HfTopK::new(few(k[0] * k[1], 300) as i32, few(k[2], 5)))
    }),
    row("hf_top_p", true, Order::Rounds, |k, _, _| boxed(HfTopP::new(k[0], few(k[1] * k[2], 9)).unwrap())),
    row("hf_typ_p", true, Order::Rounds, |k, _, _| boxed(HfTypP::new(k[0], few(k[1] * k[2], 9)).unwrap())),
    row("ts_top_k", true, Order::Free, |k, _, _| boxed(TsTopK::new(few(k[0] * k[1], 300) as i32))),
    row("ts_top_n_sigma", true, Order::Rounds, |k, _, _| boxed(TsTopNSigma::new(k[0] * 3.0 - 0.2).unwrap())),
    row("greedy", true, Order::Free, |_, _, _| boxed(Greedy)),
    row("dist", true, Order::Free, |_, seed, _| boxed(Dist::new(seed).unwrap())),
];

/// A chain of the row's sampler that selects.
pub fn complete(row: &Row, knobs: Knobs, seed: Seed, world: &World) -> Chain {
    let sampler = (row.build)(knobs, seed, world);
    let mut samplers = vec![sampler];
    if !samplers[0].selects() {
        samplers.push(boxed(Dist::new(seed).unwrap()));
    }
    Chain::new(samplers).unwrap()
}

/// The whole chains, most of their samplers switched on by the knobs.
pub fn whole_chains(k: Knobs, seed: Seed) -> Vec<Chain> {
    let busy = Params::default()
        .seed(seed.seed)
        .rng(seed.generator)
        .sequence(seed.sequence)
        .with("logit_bias", vec![(2, k[0] * 4.0), (5, -k[1])])
        .with("penalty_repeat", 1.0 + k[0])
        .with("penalty_freq", k[1] * 0.5)
        .with("penalty_last_n", few(k[2], 40) as i32)
        .with("top_k", few(k[3], 60) as i32)
        .with("typ_p", 0.3 + k[0] * 0.7)
        .with("top_n_sigma", 0.5 + k[1] * 3.0)
        .with("temp", k[2] * 1.5);
    let all = busy
        .clone()
        .with("dry_multiplier", k[3])
        .with("dry_allowed_length", 1 + few(k[0], 3) as i32)
        .with("xtc_probability", k[1])
        .with("dynatemp_range", k[2]);
    let (no_repeat_ngram, top_h) = (few(k[0], 4) as i32, k[3]);
    let hugging = busy
        .clone()
        .with("temp", 0.1 + k[2])
        .with("no_repeat_ngram", no_repeat_ngram)
        .with("top_h", top_h)
        .with("top_n_sigma", -1.0);
    let mirostat =
        |mirostat| all.clone().with("mirostat", mirostat).with("mirostat_eta", k[3]).with("temp", 0.1 + k[2]);
    vec![
        presets::llama_cpp(&Params::default().seed(seed.seed).rng(seed.generator)).unwrap(),
        presets::llama_cpp(&all).unwrap(),
        presets::llama_cpp(&all.clone().with("adaptive_target", k[0])).unwrap(),
        presets::llama_cpp(&mirostat(1)).unwrap(),
        presets::llama_cpp(&mirostat(2)).unwrap(),
        presets::tsampler(&busy).unwrap(),
        presets::transformers(&hugging).unwrap(),
        presets::greedy(),
    ]
}
