//! What must not happen to the sampling room: hostile logits, masks and parameters end in typed errors that say
//! where, or in a token that is allowed; never in a panic, a NaN or a pick that is not allowed.

use logitree_sampling::ErrorKind;
use logitree_sampling::{
    presets, Chain, Dist, Greedy, HfTopH, HfTopP, LogitBias, MinK, MinP, Mirostat, MirostatV2, Mode, Params,
    Sampler, Seed, Temp, TempExt, TopH, TopK, TopP,
};
use logitree_tokens::mask::AllowedTokens;

const INF: f32 = f32::INFINITY;

fn default_chain() -> Chain {
    presets::llama_cpp(&Params::default().seed(3)).unwrap()
}

fn refused(logits: &[f32], allowed: AllowedTokens<'_>) -> (ErrorKind, String) {
    let mut chain = default_chain();
    let error = chain.draw(logits, allowed).unwrap_err();
    assert_eq!(chain.apply(logits, allowed, None).unwrap_err(), error);
    // The chain is as usable as before, and has drawn nothing.
    let good = [0.0, 1.0, 2.0];
    let next = chain.draw(&good, AllowedTokens::All).unwrap();
    assert_eq!(next, default_chain().draw(&good, AllowedTokens::All).unwrap());
    (error.kind, error.to_string())
}

#[test]
fn bad_logits_are_errors_that_say_where() {
    let mut logits = vec![0.5f32; 1000];
    logits[517] = f32::NAN;
    for allowed in
        [AllowedTokens::All, AllowedTokens::Ids(&[3, 517, 600]), AllowedTokens::Mask(&[u32::MAX; 32])]
    {
        let (kind, text) = refused(&logits, allowed);
        assert!(kind == ErrorKind::Logits && text.contains("NaN among the logits (at id 517)"), "{text}");
    }
    logits[517] = INF;
    assert!(refused(&logits, AllowedTokens::All).1.contains("+inf among the logits (at id 517)"));
    // What the mask hides is not looked at.
    assert!([3, 600].contains(&default_chain().draw(&logits, AllowedTokens::Ids(&[3, 600])).unwrap()));
    assert_eq!(refused(&[], AllowedTokens::All).0, ErrorKind::Logits);
    for allowed in [AllowedTokens::All, AllowedTokens::Ids(&[1]), AllowedTokens::Mask(&[7])] {
        assert!(refused(&[-INF; 3], allowed).1.contains("-inf"));
    }
}

#[test]
fn bad_masks_are_errors() {
    let logits = [0.0, 1.0, 2.0];
    for allowed in [
        AllowedTokens::Ids(&[]),
        AllowedTokens::Mask(&[]),
        AllowedTokens::Mask(&[0]),
        AllowedTokens::Mask(&[!7]),
    ] {
        let (kind, text) = refused(&logits, allowed);
        assert!(kind == ErrorKind::Logits && text.contains("no token is allowed"), "{text}");
    }
    for allowed in [AllowedTokens::Ids(&[1, 3]), AllowedTokens::Mask(&[1, 0, 1])] {
        assert_eq!(refused(&logits, allowed).0, ErrorKind::Mask);
    }
    // Bits past the last logit within its word mean nothing: some engines fill them.
    assert!(default_chain().draw(&logits, AllowedTokens::Mask(&[u32::MAX])).is_ok());
}

#[test]
fn invalid_parameters_are_errors() {
    let seed = Seed::mt19937(0);
    for bias in [f32::NAN, INF] {
        assert!(LogitBias::new(&[(0, bias)]).is_err());
    }
    assert!(TempExt::new(f32::MAX, f32::MAX, 1.0).is_err() && TempExt::new(1.0, 0.5, -0.1).is_err());
    assert!(MirostatV2::new(f32::MAX, 0.1, seed).is_err());
    assert!(Mirostat::new(Some(0), 5.0, 0.1, 100, seed).is_err());
    assert!(LogitBias::new(&[(4, 1.0), (4, 2.0)]).is_err());
    let mut unselecting = Chain::new(vec![Box::new(TopK::new(1))]).unwrap();
    unselecting.apply(&[1.0, 2.0], AllowedTokens::All, None).unwrap();
    assert_eq!(unselecting.candidates().ids(), [1]);
    for error in [unselecting.pick().unwrap_err(), unselecting.draw(&[1.0], AllowedTokens::All).unwrap_err()]
    {
        assert_eq!(error.kind, ErrorKind::Sampling);
        assert!(error.help.contains("dist"));
    }
    assert_eq!(default_chain().pick().unwrap_err().kind, ErrorKind::State);
    let late = Chain::new(vec![Box::new(Dist::new(Seed::mt19937(0)).unwrap()), Box::new(TopK::new(1))]);
    assert!(late.unwrap_err().place.contains("2 of 2"));
}

#[test]
fn banning_everything_is_an_error_and_a_few_is_not() {
    let ban = |ids: &[u32]| {
        let biases: Vec<(u32, f32)> = ids.iter().map(|&id| (id, -INF)).collect();
        let params = Params::default().seed(0).with("logit_bias", biases);
        presets::llama_cpp(&params).unwrap()
    };
    let logits = [9.0, 1.0, 2.0];
    for allowed in [AllowedTokens::All, AllowedTokens::Ids(&[0, 1, 2])] {
        assert_eq!(ban(&[0, 1, 2]).draw(&logits, allowed).unwrap_err().kind, ErrorKind::Logits);
        assert_ne!(ban(&[0]).draw(&logits, allowed).unwrap(), 0);
    }
    assert!(ban(&[1]).draw(&logits, AllowedTokens::Ids(&[1])).is_err());
    // More biases than are kept aside.
    let many: Vec<u32> = (0..9000).collect();
    let wide = vec![1.0f32; 9001];
    assert_eq!(ban(&many).draw(&wide, AllowedTokens::All).unwrap(), 9000);
}

fn boxed(sampler: impl Sampler + 'static) -> Box<dyn Sampler> {
    Box::new(sampler)
}

/// The five best; the best then gets `bias`.
fn biased_after_sorting(bias: f32, then: Vec<Box<dyn Sampler>>) -> Chain {
    let start = vec![boxed(TopK::new(5)), boxed(LogitBias::new(&[(0, bias)]).unwrap())];
    Chain::new(start.into_iter().chain(then).collect()).unwrap()
}

#[test]
fn a_token_banned_after_sorting_is_not_picked() {
    let (logits, seed) = ([3.0, 2.0, 1.0, 0.0, -1.0], Seed::mt19937(1));
    let dist = || boxed(Dist::new(seed).unwrap());
    let ends = [
        vec![boxed(TopK::new(1)), dist()],
        vec![boxed(TopK::new(1)), boxed(Greedy)],
        vec![boxed(TopP::new(0.0, 0).unwrap()), dist()],
        vec![boxed(MinP::new(2.0, 0).unwrap()), dist()],
        vec![boxed(TopH::new(0.1).unwrap()), dist()],
        vec![boxed(MinK::new(0.0).unwrap()), dist()],
        vec![boxed(HfTopH::new(0.1).unwrap()), dist()],
        vec![boxed(HfTopP::new(0.1, 0).unwrap()), dist()],
        vec![boxed(Mirostat::new(None, 0.1, 0.1, 100, seed).unwrap())],
        vec![boxed(MirostatV2::new(0.1, 0.1, seed).unwrap())],
    ];
    for end in ends {
        let mut chain = biased_after_sorting(-INF, end);
        for _ in 0..5 {
            let token = chain.draw(&logits, AllowedTokens::All).unwrap();
            assert_ne!(token, 0, "{}", chain.describe());
            chain.accept(token);
        }
    }
    // What a temperature of 0 takes away, too.
    let cold = vec![boxed(Temp::new(0.0).unwrap()), boxed(TopK::new(1)), boxed(Greedy)];
    assert_eq!(biased_after_sorting(-2.5, cold).draw(&logits, AllowedTokens::All).unwrap(), 1);
}

#[test]
fn samplers_that_llama_cpp_lacks_ignore_a_stale_order_flag() {
    let logits = [3.0, 2.0, 1.0, 0.0, -1.0];
    let each = [
        boxed(TopH::new(0.3).unwrap()),
        boxed(MinK::new(0.0).unwrap()),
        boxed(HfTopH::new(0.3).unwrap()),
        boxed(HfTopP::new(0.3, 0).unwrap()),
    ];
    for sampler in each {
        let biased = vec![boxed(LogitBias::new(&[(0, -10.0)]).unwrap()), sampler.clone()];
        let (mut sorted, mut plain) =
            (biased_after_sorting(-10.0, vec![sampler]), Chain::new(biased).unwrap());
        sorted.apply(&logits, AllowedTokens::All, None).unwrap();
        plain.apply(&logits, AllowedTokens::All, None).unwrap();
        assert_eq!(sorted.candidates().ids(), plain.candidates().ids(), "{}", sorted.describe());
    }
}

#[test]
fn a_refusal_of_parity_mode_draws_nothing() {
    let dist = || vec![boxed(Dist::new(Seed::mt19937(1)).unwrap())];
    let parity = || biased_after_sorting(-INF, dist()).with_mode(Mode::Parity).unwrap();
    let (best, worst) = ([3.0, 2.0, 1.0, 0.0, -1.0], [-1.0, 2.0, 1.9, 1.8, 1.7]);
    let mut refusing = parity();
    for _ in 0..3 {
        assert_eq!(refusing.draw(&best, AllowedTokens::All).unwrap_err().kind, ErrorKind::Logits);
    }
    let draw = |chain: &mut Chain| -> Vec<u32> {
        (0..20).map(|_| chain.draw(&worst, AllowedTokens::All).unwrap()).collect()
    };
    assert_eq!(draw(&mut refusing), draw(&mut parity()));
}

#[test]
fn sixteen_million_equal_logits() {
    let logits = vec![0.25f32; 1 << 24];
    let mut chain = default_chain();
    assert!(chain.draw(&logits, AllowedTokens::All).unwrap() < 40);
    assert_eq!(presets::greedy().draw(&logits, AllowedTokens::All).unwrap(), 0);
}
