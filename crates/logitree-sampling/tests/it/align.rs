//! Steering and rules held to their slow versions: a copy of the logits with the edits made, and a chain built with
//! the parameters of the step. Nothing of either is left after a step.

use std::sync::Arc;

use logitree_sampling::{presets, Adapt, Burst, Chain, Distribution, EntropyRule, Mode, Params};
use logitree_sampling::{ErrorKind, Result};
use logitree_sampling::{Setting, Steering};
use logitree_tokens::mask::AllowedTokens;
use proptest::prelude::*;

const SIZE: usize = 700;

/// Logits of step `step`: now peaked, now flat.
fn logits(step: usize) -> Vec<f32> {
    let scale = [0.05, 6.0, 100.0][step % 3];
    let mut x = (step as u32).wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (x >> 8) as f32 / 1e7 * scale
    };
    (0..SIZE).map(|_| next()).collect()
}

fn params() -> Params {
    Params::default().seed(5).with("penalty_repeat", 1.1)
}

fn chain(mode: Mode, params: &Params) -> Chain {
    presets::llama_cpp(params).unwrap().with_mode(mode).unwrap()
}

fn settings(named: &[(&str, f64)]) -> Vec<Setting> {
    named.iter().map(|&(name, value)| (Arc::from(name), value)).collect()
}

fn rule() -> EntropyRule {
    let tight = settings(&[("temp", 1.5), ("top_k", 256.0), ("top_p", 0.98), ("min_p", 0.0)]);
    let flat = settings(&[("temp", 0.5), ("top_k", 20.0), ("typ_p", 0.9), ("penalty_repeat", 1.3)]);
    EntropyRule::new(vec![(3.0, tight), (6.0, Vec::new()), (f64::INFINITY, flat)]).unwrap()
}

fn burst() -> Burst {
    Burst::new(0.01, f64::INFINITY, 4, settings(&[("temp", 1.9), ("top_k", 300.0)])).unwrap()
}

/// What survives a step, its token, and all parameters.
type Seen = (Vec<u32>, Vec<u32>, u32);

fn seen(chain: &mut Chain, logits: &[f32], allowed: AllowedTokens<'_>) -> Result<Seen> {
    chain.apply(logits, allowed, None)?;
    let c = chain.candidates();
    let bits = c.logits().iter().map(|x| x.to_bits()).collect();
    Ok((c.ids().to_vec(), bits, chain.pick()?))
}

fn run(chain: &mut Chain, from: usize, n: usize) -> Vec<u32> {
    (from..from + n)
        .map(|step| {
            let token = chain.draw(&logits(step), AllowedTokens::All).unwrap();
            chain.accept(token);
            token
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Edits at each step, some of them of ids that are no candidates, in every form of the candidates.
    #[test]
    fn steering_equals_edits_of_a_copy(
        edits in prop::collection::vec((0u32..900, edit()), 0..40),
        form in 0usize..3,
        parity in any::<bool>(),
    ) {
        let mode = if parity { Mode::Parity } else { Mode::Fast };
        let few: Vec<u32> = (0..60).map(|i| i * 11).collect();
        let words = [0x0f0f_3333u32; SIZE / 32];
        let allowed = [AllowedTokens::All, AllowedTokens::Ids(&few), AllowedTokens::Mask(&words)][form];
        let (mut steered, mut plain) = (chain(mode, &params()), chain(mode, &params()));
        let mut steering = Steering::new();
        for (step, one) in edits.iter().enumerate() {
            steering.add(one.0, one.1).unwrap();
            let row = logits(step);
            let mut copy = row.clone();
            for &(id, by) in steering.edits() {
                if let Some(x) = copy.get_mut(id as usize) {
                    *x += by;
                }
            }
            let before = steered.describe();
            steered.steer(&steering);
            let (a, b) = (seen(&mut steered, &row, allowed), seen(&mut plain, &copy, allowed));
            prop_assert_eq!(steered.describe(), before);
            prop_assert_eq!(a.is_ok(), b.is_ok());
            if let (Ok(a), Ok(b)) = (a, b) {
                steered.accept(a.2);
                plain.accept(b.2);
                prop_assert_eq!(a, b);
            }
        }
        steered.steer(&Steering::new());
        prop_assert_eq!(seen(&mut steered, &logits(1), allowed), seen(&mut plain, &logits(1), allowed));
    }
}

fn edit() -> impl Strategy<Value = f32> {
    prop_oneof![3 => -4f32..4f32, 1 => Just(f32::NEG_INFINITY)]
}

#[test]
fn a_rule_equals_chains_built_for_each_step() {
    for mode in [Mode::Fast, Mode::Parity] {
        let mut adapted = chain(mode, &params());
        adapted.adapt(Some(Box::new(rule()))).unwrap();
        let described = adapted.describe();
        let mut tokens = Vec::new();
        let mut bands = [0; 3];
        for step in 0..60 {
            let row = logits(step);
            let entropy = logitree_sampling::metrics::entropy(&row, logitree_sampling::metrics::Base::Nats);
            let (band, built) = match entropy {
                h if h < 3.0 => {
                    (0, params().with("temp", 1.5).with("top_k", 256).with("top_p", 0.98).with("min_p", 0.0))
                }
                h if h < 6.0 => (1, params()),
                _ => (
                    2,
                    params()
                        .with("temp", 0.5)
                        .with("top_k", 20)
                        .with("typ_p", 0.9)
                        .with("penalty_repeat", 1.3),
                ),
            };
            bands[band] += 1;
            let mut naive = chain(mode, &built);
            for (at, &token) in tokens.iter().enumerate() {
                naive.draw(&logits(at), AllowedTokens::All).unwrap();
                naive.accept(token);
            }
            let a = seen(&mut adapted, &row, AllowedTokens::All).unwrap();
            assert_eq!(a, seen(&mut naive, &row, AllowedTokens::All).unwrap(), "{mode:?} step {step}");
            assert_eq!(adapted.describe(), described, "a setting outlived its step");
            adapted.accept(a.2);
            tokens.push(a.2);
        }
        assert!(bands.iter().all(|&n| n > 5), "{bands:?}");
    }
}

#[test]
fn constant_settings_equal_a_chain_built_with_them() {
    let start = Params::default().seed(3);
    let mean = [("mirostat_tau", 2.0), ("mirostat_eta", 0.5)];
    let cases: [(Params, &[(&str, f64)]); 3] = [
        (params(), &[("temp", 1.3), ("top_k", 100.0), ("top_n_sigma", 2.0), ("penalty_freq", 0.2)]),
        (start.clone().with("mirostat", 1), &mean),
        (start.with("mirostat", 2), &mean),
    ];
    for (params, named) in cases {
        for mode in [Mode::Fast, Mode::Parity] {
            let (mut adapted, mut built) = (chain(mode, &params), chain(mode, &params));
            built.set_parameters(&settings(named)).unwrap();
            built.reset();
            let always = EntropyRule::new(vec![(f64::INFINITY, settings(named))]).unwrap();
            adapted.adapt(Some(Box::new(always))).unwrap();
            let tokens = run(&mut built, 0, 80);
            assert_eq!(run(&mut adapted, 0, 80), tokens, "{mode:?}");
            adapted.rollback(80).unwrap();
            assert_eq!(run(&mut adapted, 0, 80), tokens, "{mode:?}, rolled back to the beginning");
            adapted.adapt(None).unwrap();
            adapted.reset();
            let plain = run(&mut chain(mode, &params), 0, 80);
            assert_eq!(run(&mut adapted, 0, 80), plain);
            assert_ne!(plain, tokens);
        }
    }
}

#[test]
fn a_burst_follows_rollback_forks_snapshots_and_reset() {
    for mode in [Mode::Fast, Mode::Parity] {
        let initial = {
            let mut chain = chain(mode, &params());
            chain.adapt(Some(Box::new(burst()))).unwrap();
            chain
        };
        let mut chain = initial.clone();
        let tokens = run(&mut chain, 0, 40);
        let mut plain = chain.clone();
        plain.adapt(None).unwrap();
        plain.reset();
        assert_ne!(run(&mut plain, 0, 40), tokens, "no burst changed anything");
        for n in [1, 2, 3, 5, 17, 40] {
            chain.rollback(n).unwrap();
            let mut fork = chain.clone();
            let mut restored = initial.clone();
            restored.restore(&chain.snapshot()).unwrap();
            for one in [&mut chain, &mut fork, &mut restored] {
                // Looked at before with other logits, which are not taken.
                one.clone().draw(&logits(1), AllowedTokens::All).unwrap();
                assert_eq!(run(one, 40 - n, n), tokens[40 - n..], "{mode:?} {n}");
            }
        }
        chain.reset();
        assert_eq!(run(&mut chain, 0, 40), tokens);
        let unlisted = plain.restore(&chain.snapshot()).unwrap_err();
        assert_eq!(unlisted.kind, ErrorKind::State);
    }
}

#[test]
fn a_rule_is_not_called_for_a_sole_candidate() {
    let mut asked = chain(Mode::Fast, &params());
    asked.adapt(Some(Box::new(burst()))).unwrap();
    let mut forced = asked.clone();
    for step in 0..30 {
        if step % 3 == 0 {
            // A look at unsure logits that comes to nothing, then one token only.
            asked.draw(&logits(0), AllowedTokens::All).unwrap();
            asked.rollback(0).unwrap();
            forced.draw(&logits(0), AllowedTokens::All).unwrap();
            assert_eq!(asked.draw(&logits(step), AllowedTokens::Ids(&[9])).unwrap(), 9);
            forced.forced();
        }
        asked.accept(9);
        forced.accept(9);
    }
    assert_eq!(run(&mut asked, 0, 30), run(&mut forced, 0, 30));
}

/// A rule that fails, or names what it likes.
#[derive(Debug, Clone)]
struct Hostile {
    named: Vec<Setting>,
    fails: bool,
}

impl Adapt for Hostile {
    fn describe(&self) -> String {
        "hostile".into()
    }

    fn settings(&mut self, seen: Distribution) -> Result<&[Setting]> {
        assert!(seen.entropy >= 0.0 && seen.top_p > 0.0 && seen.top_p <= 1.0);
        if self.fails {
            return Err(logitree_sampling::Error::new(ErrorKind::Limit, "no"));
        }
        Ok(&self.named)
    }

    fn clone_box(&self) -> Box<dyn Adapt> {
        Box::new(self.clone())
    }
}

#[test]
fn a_failing_rule_changes_nothing() {
    let bad: [(&[(&str, f64)], bool); 6] = [
        (&[("temp", 0.5), ("tau", 5.0)], false),
        (&[("temp", 0.5), ("top_k", 1.5)], false),
        (&[("temp", 0.5), ("top_p", f64::NAN)], false),
        (&[("temp", 0.5), ("penalty_repeat", -1.0)], false),
        (&[("top_p", 0.1), ("", 1.0)], false),
        (&[("temp", 0.5)], true),
    ];
    for mode in [Mode::Fast, Mode::Parity] {
        for (named, fails) in &bad {
            let mut chain = chain(mode, &params());
            let expected = run(&mut chain.clone(), 0, 20);
            let described = chain.describe();
            let hostile = Hostile { named: settings(named), fails: *fails };
            chain.adapt(Some(Box::new(hostile))).unwrap();
            let error = chain.draw(&logits(0), AllowedTokens::All).unwrap_err();
            let kind = if *fails { ErrorKind::Limit } else { ErrorKind::Sampling };
            assert_eq!((error.kind, chain.describe()), (kind, described), "{named:?}");
            chain.adapt(None).unwrap();
            assert_eq!(run(&mut chain, 0, 20), expected, "{named:?}");
        }
    }
    // A fault in the middle of a step, with the settings in force.
    let mut chain = chain(Mode::Fast, &params().with("logit_bias", vec![(1, f32::NEG_INFINITY)]));
    let before = chain.describe();
    chain.adapt(Some(Box::new(Hostile { named: settings(&[("temp", 9.0)]), fails: false }))).unwrap();
    let mut row = vec![f32::NEG_INFINITY; 4];
    row[1] = 1.0;
    assert_eq!(chain.draw(&row, AllowedTokens::All).unwrap_err().kind, ErrorKind::Logits);
    assert_eq!(chain.describe(), before);
}

#[test]
fn declared_settings_are_checked_when_the_rule_is_set() {
    let mut chain = chain(Mode::Fast, &params());
    chain.adapt(Some(Box::new(rule()))).unwrap();
    let described = chain.describe();
    for named in [&[("temp", 0.5), ("eta", 0.1)][..], &[("top_k", 0.5)], &[("penalty_repeat", 0.0)]] {
        let rule = EntropyRule::new(vec![(f64::INFINITY, settings(named))]).unwrap();
        let error = chain.adapt(Some(Box::new(rule))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Sampling);
        assert!(!error.help.is_empty() && error.place.contains(named[0].0), "{error}");
        assert_eq!(chain.describe(), described);
        assert!(chain.rule().unwrap().describe().starts_with("EntropyRule([(3, "), "the former rule went");
    }
    let mut cold = presets::tsampler(&params().with("temp", 0.0)).unwrap();
    let error = cold.adapt(Some(Box::new(burst()))).unwrap_err();
    assert!(error.message.contains("temp") && error.help.contains("penalties -> greedy"), "{error}");
}

#[test]
fn invalid_bands_are_refused() {
    let inf = f64::INFINITY;
    for bounds in
        [&[][..], &[1.0], &[f64::NAN, inf], &[2.0, 2.0, inf], &[3.0, 2.0, inf], &[0.0, inf], &[inf, inf]]
    {
        let bands = bounds.iter().map(|&b| (b, Vec::new())).collect();
        assert_eq!(EntropyRule::new(bands).unwrap_err().kind, ErrorKind::Sampling, "{bounds:?}");
    }
    for named in [&[("temp", f64::NAN)][..], &[("temp", inf)], &[("temp", 1.0), ("temp", 2.0)]] {
        assert!(EntropyRule::new(vec![(inf, settings(named))]).is_err());
        assert!(Burst::new(0.5, inf, 1, settings(named)).is_err());
    }
}

#[test]
fn a_veto_of_all_names_the_steering() {
    let mut steering = Steering::new();
    (0..SIZE as u32).for_each(|id| steering.veto(id));
    for mode in [Mode::Fast, Mode::Parity] {
        let mut chain = chain(mode, &params());
        let expected = run(&mut chain.clone(), 0, 5);
        chain.steer(&steering);
        for allowed in [AllowedTokens::All, AllowedTokens::Ids(&[3, 4])] {
            let error = chain.draw(&logits(0), allowed).unwrap_err();
            assert!(error.kind == ErrorKind::Logits && error.message.contains("steering"), "{error}");
        }
        assert!(chain.clone().vetoes(3) && chain.sole(3).is_err());
        chain.reset();
        assert!(chain.steering().is_empty() && chain.sole(3).is_ok());
        chain.reset();
        assert_eq!(run(&mut chain, 0, 5), expected);
    }
}

#[test]
fn steering_is_listed_among_the_effects() {
    let mut chain = chain(Mode::Fast, &params());
    let mut steering = Steering::new();
    steering.veto(7);
    steering.add(8, 1.0).unwrap();
    chain.steer(&steering);
    let mut effects = Vec::new();
    chain.apply(&logits(1), AllowedTokens::All, Some(&mut effects)).unwrap();
    let first = &effects[0];
    assert_eq!((first.sampler, first.before, first.after, first.changed), ("steering", SIZE, SIZE - 1, 1));
    assert_eq!(effects.len(), chain.names().len() + 1);
}

/// A bias and a temperature for one step are gone once a chain applied them, and after a step that failed before that.
#[test]
fn what_is_set_for_one_step_is_gone_after_it() {
    let row = logits(1);
    let mut want = chain(Mode::Fast, &params());
    let want = seen(&mut want, &row, AllowedTokens::All).unwrap();
    for is_rewound in [true, false] {
        let mut chain = chain(Mode::Fast, &params());
        chain.temper_next(Some(0.1));
        chain.bias_next(Some((3, 90.0))).unwrap();
        if !is_rewound {
            assert_ne!(seen(&mut chain, &row, AllowedTokens::All).unwrap(), want);
        }
        chain.rewind();
        assert_eq!(seen(&mut chain, &row, AllowedTokens::All).unwrap(), want);
    }
}
