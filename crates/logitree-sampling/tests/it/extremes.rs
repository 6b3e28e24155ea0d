//! Every sampler and whole chain over hostile logits and with the most extreme parameters that its constructor takes,
//! in both modes: an allowed token above -inf and probabilities that sum to one, or a typed error that is listed here.

use logitree_sampling::registry::{Kind, ParameterRow, SamplerRow, SAMPLERS};
use logitree_sampling::{
    presets, AdaptiveP, Breakers, Chain, Dist, Dry, EpsilonCutoff, ErrorKind, EtaCutoff, Generator, HfTopK,
    HfTopP, HfTypP, LogitBias, MinP, Mirostat, MirostatV2, Mode, Params, Penalties, Result, Sampler, Seed,
    Steering, Temp, TempExt, TopNSigma, TopP, TypP, Value, Xtc,
};
use logitree_testing::samplers::{complete, selecting, whole_chains, Knobs, World};
use logitree_tokens::mask::AllowedTokens;
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

const INF: f32 = f32::INFINITY;
const SEED: Seed = Seed { generator: Generator::Xoroshiro128Plus, seed: 0, sequence: 0 };

/// Logits that no model should give, all of them allowed.
fn shapes() -> Vec<(&'static str, Vec<f32>)> {
    let alternating = |n: usize, a: f32, b: f32| (0..n).map(|i| if i % 2 == 0 { a } else { b }).collect();
    let mut lone = vec![-INF; 3000];
    lone[2999] = 5.0;
    let mut shapes = vec![
        ("one", vec![3.0]),
        ("one low", vec![f32::MIN]),
        ("two", vec![f32::MAX, f32::MIN]),
        ("all but one at -inf", vec![-INF, -INF, 5.0, -INF]),
        ("all but one of many at -inf", lone),
        ("equal", vec![0.25; 40]),
        ("many equal", vec![-7.5; 2100]),
        ("equal and huge", vec![f32::MAX; 300]),
        ("equal and low", vec![f32::MIN; 1500]),
        ("denormals", vec![1e-45, -1e-45, 0.0, -0.0, 1e-40, f32::MIN_POSITIVE]),
        ("denormals and -inf", alternating(1300, 1e-45, -INF)),
        ("alternating", alternating(200, 3e38, -3e38)),
        ("alternating, long", alternating(5000, 3e38, -3e38)),
        ("low and -inf", alternating(1100, f32::MIN, -INF)),
        ("powers", (-140..125).map(|e| 2f32.powi(e)).collect()),
        ("far apart", vec![0.0, -200.0, -500.0, -1e30]),
        ("steep", (0..2000).map(|i| -(i as f32) * 1e35).collect()),
    ];
    shapes.push(("plain", (0..700).map(|i| ((i * 37) % 101) as f32 / 9.0).collect()));
    shapes
}

/// Adds the sampler, if its constructor takes the values.
fn add(all: &mut Vec<Box<dyn Sampler>>, made: Result<impl Sampler + 'static>) {
    all.extend(made.map(|sampler| Box::new(sampler) as Box<dyn Sampler>));
}

/// Numbers at the ends of what constructors take, and some between.
const NUMBERS: [f32; 12] = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 1e-30, 0.5, 1e30, 1e38, f32::MAX, f32::MIN];

/// The default and the extremes of a parameter.
fn ends(parameter: &ParameterRow) -> Vec<Value> {
    let mut ends = match parameter.kind {
        Kind::Float => NUMBERS.map(Value::Float).to_vec(),
        Kind::Int | Kind::Count | Kind::OptionalInt => {
            [i32::MIN, -1, 0, 1, 2, 7, 1 << 20, i32::MAX].map(Value::Int).to_vec()
        }
        Kind::Truth => vec![true.into()],
        Kind::Seed => return vec![SEED.into()],
        Kind::Biases => return NUMBERS.map(|x| vec![(0, x), (1, -x), (5, x)].into()).to_vec(),
        Kind::Breakers => return vec![Breakers::new(&[vec![3]]).unwrap().into()],
        Kind::Pieces => vec![],
    };
    ends.push(parameter.default.into());
    ends
}

/// The samplers of a row with the extremes of its parameters, as far as it takes them: all combinations, or some
/// hundreds of them in which each value meets many others.
fn extremes_of(row: &SamplerRow) -> Vec<Box<dyn Sampler>> {
    const MOST: usize = 1200;
    let names: Vec<&str> = row.parameters.iter().map(|parameter| parameter.name).collect();
    let ends: Vec<Vec<Value>> = row.parameters.iter().map(ends).collect();
    let combinations: usize = ends.iter().map(Vec::len).product();
    let build = |at: usize| {
        // A prime step visits no combination twice.
        let mut rest = at * 7919 % combinations;
        let values = ends.iter().map(|ends| {
            let value = ends[rest % ends.len()].clone();
            rest /= ends.len();
            value
        });
        let given: Vec<(&str, Value)> = names.iter().copied().zip(values).collect();
        row.build_with(&given).ok()
    };
    (0..combinations).filter_map(build).take(MOST).collect()
}

/// The extremes of every sampler, and of `min_keep` what the table cannot write.
fn extremes() -> Vec<Box<dyn Sampler>> {
    let mut all: Vec<Box<dyn Sampler>> = Vec::new();
    for row in SAMPLERS.iter().filter(|row| row.parameters.iter().all(|p| p.kind != Kind::Pieces)) {
        let before = all.len();
        all.extend(extremes_of(row));
        assert!(all.len() > before, "{} takes none of its extremes", row.name);
    }
    for x in NUMBERS {
        let keep = usize::MAX;
        add(&mut all, TopP::new(x, keep));
        add(&mut all, MinP::new(x, keep));
        add(&mut all, TypP::new(x, keep));
        add(&mut all, EpsilonCutoff::new(x, keep));
        add(&mut all, EtaCutoff::new(x, keep));
        add(&mut all, HfTopP::new(x, keep));
        add(&mut all, HfTypP::new(x, keep));
        for t in [-1.0, 0.0, 1e-45, 0.5, 1.0] {
            add(&mut all, Xtc::new(x, t, keep, SEED));
        }
    }
    for k in [i32::MIN, -1, 0, 1, 2, 1 << 20, i32::MAX] {
        add(&mut all, Ok(HfTopK::new(k, usize::MAX)));
    }
    all
}

/// Some steps over these logits. What is picked is allowed, above -inf and possible; errors are those that the logits
/// or, in parity mode, llama.cpp's arithmetic ask for.
fn hold(chain: &mut Chain, logits: &[f32], what: &str) {
    let few: Vec<u32> =
        (0..logits.len() as u32).filter(|i| i % 3 == 0 || *i as usize + 1 == logits.len()).collect();
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32;
    let one = [best];
    for allowed in
        [AllowedTokens::All, AllowedTokens::Ids(&few), AllowedTokens::Ids(&one), AllowedTokens::All]
    {
        let set = if allowed == AllowedTokens::All { "all" } else { "few" };
        let label = format!("{} over {what}, {set}, {:?}", chain.describe(), chain.mode());
        let alive = |id: u32| allowed.contains(id) && logits[id as usize] > -INF;
        if !(0..logits.len() as u32).any(alive) {
            assert_eq!(chain.draw(logits, allowed).unwrap_err().kind, ErrorKind::Logits, "{label}");
            continue;
        }
        let sampled = chain.clone().draw(logits, allowed);
        match chain.apply(logits, allowed, None) {
            Ok(()) => {
                let token = chain.pick().unwrap();
                assert_eq!(sampled.as_ref().ok(), Some(&token), "{label}");
                assert!(alive(token), "{label} picks {token}");
                let c = chain.candidates();
                assert!(c.logits().iter().all(|x| *x < INF), "{label}");
                let sum: f64 = c.probabilities().iter().copied().map(f64::from).sum();
                assert!((sum - 1.0).abs() < 1e-5, "{label}: {sum}");
                let at = c.selected().unwrap();
                assert!(c.ids()[at] == token && c.logits()[at] > -INF, "{label}");
                chain.accept(token);
            }
            Err(error) => {
                assert_eq!(sampled.unwrap_err(), error, "{label}");
                let known = match error.kind {
                    ErrorKind::Mask => label.contains("infill"),
                    // A ban may meet the only one that is left.
                    ErrorKind::Logits => {
                        chain.mode() == Mode::Parity
                            || ["infill", "-inf"].iter().any(|s| chain.describe().contains(s))
                    }
                    _ => false,
                };
                assert!(known && !error.help.is_empty(), "{label}: {error}");
                chain.accept(best);
            }
        }
    }
}

/// The chain, and, if llama.cpp has all of it, the chain in parity mode.
fn both(chain: Chain) -> impl Iterator<Item = Chain> {
    [chain.clone()].into_iter().chain(chain.with_mode(Mode::Parity))
}

#[test]
fn every_sampler_and_chain_handles_every_shape() {
    let knobs: [Knobs; 5] = [[0.0; 4], [1.0; 4], [0.5; 4], [0.9, 0.1, 0.6, 0.2], [0.05, 0.95, 0.3, 0.99]];
    for (what, logits) in shapes() {
        for k in knobs {
            let rows = SAMPLERS.iter().map(|row| complete(row, k, SEED, &World::default()));
            for chain in rows.chain(whole_chains(k, SEED)) {
                for mut chain in both(chain) {
                    hold(&mut chain, &logits, what);
                }
            }
        }
    }
}

#[test]
fn extreme_parameters_handle_every_shape() {
    let extremes = extremes();
    assert!(extremes.len() > 1000);
    // Long logits with some of them only, for there are many.
    for (what, logits) in shapes() {
        for (sampler, at) in extremes.iter().zip(0..) {
            if logits.len() > 40 && at % 11 != logits.len() % 11 {
                continue;
            }
            for mut chain in both(selecting(sampler.clone(), SEED)) {
                hold(&mut chain, &logits, what);
            }
        }
    }
}

#[test]
fn pairs_of_extreme_samplers_handle_every_shape() {
    let shapes = shapes();
    let ends = || -> Vec<Box<dyn Sampler>> {
        vec![
            Box::new(Temp::new(1e-38).unwrap()),
            Box::new(Temp::new(1e38).unwrap()),
            Box::new(Temp::new(0.0).unwrap()),
            Box::new(TopNSigma::new(1e-30).unwrap()),
            Box::new(TypP::new(1e-45, 0).unwrap()),
            Box::new(MinP::new(1.0, 3).unwrap()),
            Box::new(TopP::new(0.0, 2).unwrap()),
            Box::new(Xtc::new(1.0, 0.0, 0, SEED).unwrap()),
            Box::new(TempExt::new(1.0, 1.0, 0.0).unwrap()),
            Box::new(LogitBias::new(&[(0, 1e38), (1, f32::MAX), (2, f32::MIN)]).unwrap()),
            Box::new(LogitBias::new(&[(0, -INF)]).unwrap()),
            Box::new(Penalties::new(i32::MAX, 1e-38, f32::MIN, f32::MAX).unwrap()),
            Box::new(Dry::new(1.0, 1e30, 0, i32::MAX, Default::default()).unwrap()),
            Box::new(AdaptiveP::new(1e30, 7.0, SEED).unwrap()),
            Box::new(Mirostat::new(None, 0.0, -1.0, 100, SEED).unwrap()),
            Box::new(MirostatV2::new(1e30, -1.0, SEED).unwrap()),
        ]
    };
    let n = ends().len();
    for first in 0..n {
        for second in 0..n {
            let (a, b) = (ends().swap_remove(first), ends().swap_remove(second));
            if a.selects() {
                continue;
            }
            let mut samplers = vec![a, b];
            if !samplers[1].selects() {
                samplers.push(Box::new(Dist::new(SEED).unwrap()));
            }
            for chain in both(Chain::new(samplers).unwrap()) {
                for (what, logits) in &shapes {
                    if logits.len() <= 2100 {
                        hold(&mut chain.clone(), logits, what);
                    }
                }
            }
        }
    }
}

#[test]
fn bad_logits_are_errors_that_name_them() {
    for k in [[0.0; 4], [0.5; 4], [1.0; 4]] {
        let rows = SAMPLERS.iter().map(|row| complete(row, k, SEED, &World::default()));
        for chain in rows.chain(whole_chains(k, SEED)) {
            for mut chain in both(chain) {
                let before = chain.snapshot();
                for (bad, name) in [(f32::NAN, "NaN"), (-f32::NAN, "NaN"), (INF, "+inf")] {
                    for (n, at) in [(1, 0), (33, 32), (700, 256), (3000, 2999)] {
                        let mut logits = vec![0.5; n];
                        logits[at] = bad;
                        let few = [at as u32];
                        for allowed in [AllowedTokens::All, AllowedTokens::Ids(&few)] {
                            let error = chain.draw(&logits, allowed).unwrap_err();
                            let place = format!("id {at}");
                            assert!(
                                error.kind == ErrorKind::Logits && error.message.contains(name),
                                "{error}"
                            );
                            assert!(error.place == place && !error.help.is_empty(), "{error}");
                        }
                    }
                }
                assert_eq!(chain.draw(&[], AllowedTokens::All).unwrap_err().kind, ErrorKind::Logits);
                assert_eq!(chain.draw(&[-INF; 9], AllowedTokens::All).unwrap_err().kind, ErrorKind::Logits);
                let beyond = [0, 9];
                assert_eq!(
                    chain.draw(&[1.0; 9], AllowedTokens::Ids(&beyond)).unwrap_err().kind,
                    ErrorKind::Mask
                );
                assert_eq!(chain.snapshot(), before, "{} drew", chain.describe());
            }
        }
    }
}

#[test]
fn steering_handles_every_shape() {
    let mut steering = Steering::new();
    for (id, by) in [(0, f32::MAX), (1, f32::MIN), (3, -INF), (4_000_000, 1.0)] {
        steering.add(id, by).unwrap();
    }
    for (what, logits) in shapes() {
        for mut chain in both(presets::llama_cpp(&Params::default().seed(0)).unwrap()) {
            chain.steer(&steering);
            hold(&mut chain, &logits, what);
        }
    }
}

/// 2^24 candidates: every sampler at most `MOST` in this profile, and no more than what it needs again is kept.
#[test]
fn sixteen_million_candidates_take_bounded_time() {
    const MOST: Duration = Duration::from_secs(60);
    let logits: Vec<f32> =
        (0..1u32 << 24).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 12) as f32 / 2e5).collect();
    for row in SAMPLERS {
        // infill is for what top_k leaves: it compares texts.
        if row.name == "infill" {
            continue;
        }
        let mut chain = complete(row, [0.5; 4], SEED, &World::default());
        chain.accept(5);
        let start = Instant::now();
        let token = chain.draw(&logits, AllowedTokens::All).unwrap();
        assert!(start.elapsed() < MOST, "{} took {:?}", row.name, start.elapsed());
        assert!((token as usize) < logits.len());
    }
}

#[test]
fn damaged_snapshots_are_refused() {
    for k in [[0.4; 4], [0.9; 4]] {
        let rows = SAMPLERS.iter().map(|row| complete(row, k, SEED, &World::default()));
        let chains: Vec<Chain> = rows.chain(whole_chains(k, SEED)).collect();
        let snapshots: Vec<Vec<u8>> = chains
            .iter()
            .map(|chain| {
                let mut chain = chain.clone();
                (0..5).for_each(|t| chain.accept(t));
                chain.snapshot()
            })
            .collect();
        for (chain, saved) in chains.iter().zip(&snapshots) {
            let mut chain = chain.clone();
            chain.accept(3);
            let before = chain.snapshot();
            let mut refused = |bytes: &[u8]| {
                let error = chain.restore(bytes).unwrap_err();
                assert!(error.kind == ErrorKind::State && !error.help.is_empty(), "{error}");
            };
            for at in 0..saved.len() {
                refused(&saved[..at]);
                for bit in [0, 3, 7] {
                    let mut touched = saved.clone();
                    touched[at] ^= 1 << bit;
                    refused(&touched);
                }
            }
            refused(&[saved.as_slice(), saved].concat());
            refused(&[saved.as_slice(), &[0]].concat());
            for (other, strange) in chains.iter().zip(&snapshots) {
                if other.describe() != chain.describe() {
                    assert_eq!(chain.restore(strange).unwrap_err().kind, ErrorKind::State);
                }
            }
            assert_eq!(chain.snapshot(), before, "{}", chain.describe());
            chain.restore(saved).unwrap();
            assert_eq!(&chain.snapshot(), saved);
        }
    }
}

/// Snapshots made by someone who knows the layout: words changed, the hash put right.
#[test]
fn forged_snapshots_are_refused_or_usable() {
    let logits: Vec<f32> = (0..60).map(|i| if i % 9 == 0 { -INF } else { (i * 7 % 13) as f32 }).collect();
    let forged =
        [0, 1, 2, 255, 1 << 31, 0x7fc0_0000, 0xff80_0000, u64::from(u32::MAX), 1 << 40, 1 << 63, u64::MAX];
    for generator in Generator::ALL {
        let seed = Seed { generator, ..SEED };
        let rows = SAMPLERS.iter().map(|row| complete(row, [0.5; 4], seed, &World::default()));
        for chain in rows.chain(whole_chains([0.5; 4], seed)) {
            let mut started = chain.clone();
            for _ in 0..4 {
                if let Ok(token) = started.draw(&logits, AllowedTokens::All) {
                    started.accept(token);
                }
            }
            let saved = started.snapshot();
            for word in 2..saved.len() / 8 - 1 {
                for value in forged {
                    let mut bytes = saved[..saved.len() - 8].to_vec();
                    bytes[word * 8..][..8].copy_from_slice(&u64::to_le_bytes(value));
                    bytes.extend(xxh3_64(&bytes).to_le_bytes());
                    let mut chain = chain.clone();
                    if chain.restore(&bytes).is_err() {
                        continue;
                    }
                    for mut chain in both(chain) {
                        let label = format!("{} with {value:#x} as word {word}", chain.describe());
                        for _ in 0..3 {
                            match chain.draw(&logits, AllowedTokens::All) {
                                Ok(token) => {
                                    assert!(logits[token as usize] > -INF, "{label} picks {token}");
                                    chain.accept(token);
                                }
                                Err(_) => chain.accept(1),
                            }
                            chain.forced();
                        }
                        chain.rollback(3).unwrap();
                        let back = chain.accepted().min(4);
                        chain.rollback(back).unwrap();
                        chain.accept(0);
                    }
                }
            }
        }
    }
}

#[test]
fn hostile_texts_give_short_errors_quickly() {
    let params = Params::default().seed(0);
    let letters = "ekypmt".repeat(3);
    assert_eq!(Chain::parse(&letters, &params).unwrap().names().len(), 19);
    let long = "k".repeat(1 << 20);
    let start = Instant::now();
    drop(Chain::parse(&long, &params));
    let texts = [
        "q".repeat(1 << 20),
        format!("{}q", "k".repeat(1 << 20)),
        "top_q".repeat(1 << 18),
        "no such sampler;".repeat(1 << 16),
        "\u{1f600}".repeat(1 << 18),
        "top_k;\u{130}\u{0}".into(),
        "k\u{0}".into(),
        "\u{0}".into(),
        " ".repeat(1 << 20),
        ";".repeat(1 << 20),
        "K".into(),
        "top_k,top_p".into(),
    ];
    for text in texts {
        let error = Chain::parse(&text, &params).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Sampling);
        assert!(
            !error.help.is_empty() && error.to_string().len() < 2000,
            "{} bytes",
            error.to_string().len()
        );
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
