//! Every sampler of the table, built from knobs, so that the laws and the hostile inputs meet them all: a new sampler
//! needs nothing here.

use logitree_sampling::registry::{Kind, ParameterRow, SamplerRow};
use logitree_sampling::{presets, Breakers, Chain, Dist, Params, Pieces, Sampler, Seed, SharedPieces, Value};
use proptest::prelude::*;
use std::ops::Bound::{Excluded, Included, Unbounded};
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

/// Four numbers from 0 to 1, or `DEFAULT`: one for each number among a sampler's parameters. 0 and 1 are the edges of its
/// range.
pub type Knobs = [f32; 4];

/// The knob that leaves a parameter at its default.
const DEFAULT: f32 = -1.0;

/// Random knobs, often at the edges or the default.
pub fn knobs() -> impl Strategy<Value = Knobs> {
    let knob = || prop_oneof![1 => Just(0f32), 1 => Just(1f32), 1 => Just(DEFAULT), 6 => 0f32..1.0];
    [knob(), knob(), knob(), knob()]
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

/// What a sampler promises beyond the laws of all: whether what stays above -inf keeps its logit, and how it treats
/// candidates that only changed places.
pub fn promises(row: &SamplerRow) -> (bool, Order) {
    match row.name {
        "top_k" | "typ_p" | "min_p" | "xtc" | "mirostat" | "mirostat_v2" | "min_k" | "hf_top_h"
        | "hf_top_k" | "ts_top_k" | "greedy" | "dist" => (true, Order::Free),
        "top_n_sigma" | "top_p" | "epsilon_cutoff" | "eta_cutoff" | "top_h" | "p_less" | "hf_top_p"
        | "hf_typ_p" | "ts_top_n_sigma" => (true, Order::Rounds),
        "no_repeat_ngram" => (true, Order::Matters),
        "temp" | "temp_ext" => (false, Order::Free),
        "edt" => (false, Order::Rounds),
        _ => (false, Order::Matters),
    }
}

fn few(x: f32, most: usize) -> usize {
    (x * most as f32) as usize
}

/// The number that a knob means: an edge, the default, or one between 0 or the low edge and twice the default or more.
/// Where the range is open, an edge is well beyond the default.
fn number(parameter: &ParameterRow, knob: f32) -> f64 {
    let default = Value::from(parameter.default).number().unwrap_or_default();
    let scale = default.abs().max(1.0);
    let usual = match parameter.kind {
        // It counts candidates times the range of the logits.
        _ if parameter.keyword == "min_k" => 40.0,
        Kind::Float => (2.0 * default.abs()).max(1.0),
        _ => (2.0 * default.abs()).max(5.0),
    };
    let (low, from) = match parameter.range.0 {
        Included(x) => (x, x),
        Excluded(x) => (x + 0.1, x + 0.1),
        Unbounded => (-scale, 0.0),
    };
    let (high, to) = match parameter.range.1 {
        Included(x) => (x, x.min(usual)),
        Excluded(x) => (x - 0.1, (x - 0.1).min(usual)),
        Unbounded => (4.0 * usual, usual),
    };
    match knob {
        DEFAULT => default,
        0.0 => low,
        1.0 => high,
        // A tenth of the knobs means the start itself.
        _ => from + (to - from) * f64::from(knob * 1.1 - 0.1).max(0.0),
    }
}

/// The sampler of the row that the knobs mean, over a world: the vocabulary that the ids belong to.
pub fn build(row: &SamplerRow, knobs: Knobs, seed: Seed, world: &World) -> Box<dyn Sampler> {
    let mut each = knobs.into_iter().cycle();
    let value = |parameter: &ParameterRow| match parameter.kind {
        Kind::Float => number(parameter, each.next().unwrap()).into(),
        Kind::Int | Kind::Count => Value::Int(number(parameter, each.next().unwrap()) as i32),
        Kind::Truth => Value::Truth(each.next().unwrap() > 0.5),
        Kind::OptionalInt => (seed.seed % 2 == 1).then_some((seed.seed % 200_000) as i32).into(),
        Kind::Seed => seed.into(),
        Kind::Biases => {
            let [a, b, c, n] = knobs.map(|k| k.max(0.0));
            let biases = [(3, a * 8.0 - 4.0), (7, b * 90.0 - 45.0), (9, c)];
            let biases = biases.map(|(id, by)| (world.here(id), by));
            biases[..few(n, 3)].to_vec().into()
        }
        Kind::Breakers => {
            let breakers = [vec![world.here(5)], vec![world.here(1), world.here(2)]];
            Breakers::new(&breakers[..seed.seed as usize % 3]).unwrap().into()
        }
        Kind::Pieces => SharedPieces(Arc::new(Digits::new(world))).into(),
    };
    let values: Vec<Value> = row.parameters.iter().map(value).collect();
    let names = row.parameters.iter().map(|parameter| parameter.name);
    row.build_with(&names.zip(values).collect::<Vec<_>>()).unwrap()
}

/// The sampler, and if it does not select, a draw after it.
pub fn selecting(sampler: Box<dyn Sampler>, seed: Seed) -> Chain {
    let mut samplers = vec![sampler];
    if !samplers[0].selects() {
        samplers.push(Box::new(Dist::new(seed).unwrap()));
    }
    Chain::new(samplers).unwrap()
}

/// A chain of the row's sampler that selects.
pub fn complete(row: &SamplerRow, knobs: Knobs, seed: Seed, world: &World) -> Chain {
    selecting(build(row, knobs, seed, world), seed)
}

/// The whole chains, most of their samplers switched on by the knobs.
pub fn whole_chains(knobs: Knobs, seed: Seed) -> Vec<Chain> {
    let k = knobs.map(|knob| knob.max(0.0));
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
