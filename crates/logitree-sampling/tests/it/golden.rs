//! The golden vectors of testdata/sampling/golden.toml, through the public API; Python runs the same file.

use logitree_sampling::metrics::{entropy, surprisal, Base, RollingPerplexity};
use logitree_sampling::{
    Chain, Dry, MinP, Penalties, Sampler, Seed, Temp, TempExt, TopK, TopNSigma, TopP, TypP, Xtc,
};
use logitree_tokens::mask::AllowedTokens;
use toml::{Table, Value};

const GOLDEN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sampling/golden.toml"));

fn numbers(case: &Table, key: &str) -> Vec<f64> {
    let values = case.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    values.iter().map(|v| v.as_float().unwrap_or_else(|| v.as_integer().unwrap() as f64)).collect()
}

fn near(got: f64, expected: f64) -> bool {
    got == expected || (got - expected).abs() <= 1e-5
}

fn breakers(case: &Table) -> Vec<Vec<u32>> {
    let ids = |b: &Value| b.as_array().unwrap().iter().map(|id| id.as_integer().unwrap() as u32).collect();
    case.get("breakers").and_then(Value::as_array).into_iter().flatten().map(ids).collect()
}

fn sampler(name: &str, args: &[f64], breakers: &[Vec<u32>]) -> Box<dyn Sampler> {
    let a = |i: usize| args[i] as f32;
    match name {
        "temp" => Box::new(Temp::new(a(0)).unwrap()),
        "top_k" => Box::new(TopK::new(args[0] as i32)),
        "top_p" => Box::new(TopP::new(a(0), 0).unwrap()),
        "min_p" => Box::new(MinP::new(a(0), 0).unwrap()),
        "typ_p" => Box::new(TypP::new(a(0), 0).unwrap()),
        "top_n_sigma" => Box::new(TopNSigma::new(a(0)).unwrap()),
        "penalties" => Box::new(Penalties::new(args[0] as i32, a(1), a(2), a(3)).unwrap()),
        "temp_ext" => Box::new(TempExt::new(a(0), a(1), a(2)).unwrap()),
        "xtc" => Box::new(Xtc::new(a(0), a(1), args[2] as usize, Seed::mt19937(args[3] as u32)).unwrap()),
        "dry" => Box::new(
            Dry::new(
                a(0),
                a(1),
                args[2] as i32,
                args[3] as i32,
                logitree_sampling::Breakers::new(breakers).unwrap(),
            )
            .unwrap(),
        ),
        _ => panic!("no sampler {name}"),
    }
}

fn tables(key: &str) -> Vec<Table> {
    let all: Table = GOLDEN.parse().unwrap();
    let cases = all[key].as_array().unwrap();
    cases.iter().map(|c| c.as_table().unwrap().clone()).collect()
}

#[test]
fn samplers() {
    let cases = tables("sampler");
    assert_eq!(cases.len(), 41);
    for case in cases {
        let p = numbers(&case, "p");
        let logits: Vec<f32> = p.iter().map(|x| (*x as f32).ln()).collect();
        let expect = numbers(&case, "expect");
        let ids: Vec<u32> = numbers(&case, "ids").iter().map(|x| *x as u32).collect();
        let all: Vec<u32> = (0..logits.len() as u32).collect();
        for allowed in [AllowedTokens::All, AllowedTokens::Ids(&all), AllowedTokens::Mask(&[u32::MAX])] {
            let sampler =
                sampler(case["sampler"].as_str().unwrap(), &numbers(&case, "args"), &breakers(&case));
            let mut chain = Chain::new(vec![sampler]).unwrap();
            for token in numbers(&case, "history") {
                chain.accept(token as u32);
            }
            chain.apply(&logits, allowed, None).unwrap();
            let left = chain.candidates();
            assert_eq!(left.ids(), ids, "{case:?}");
            for (at, expected) in expect.iter().enumerate() {
                let raw = case.contains_key("raw");
                let got = if raw { p[ids[at] as usize] } else { f64::from(left.probabilities()[at]) };
                assert!(near(got, *expected), "{case:?}: {got} at {at}");
            }
        }
    }
}

#[test]
fn metrics() {
    for case in tables("metric") {
        let logits: Vec<f32> = numbers(&case, "logits").iter().map(|x| *x as f32).collect();
        let base = if case["base"].as_str() == Some("bits") { Base::Bits } else { Base::Nats };
        let got = match case["measure"].as_str().unwrap() {
            "entropy" => entropy(&logits, base),
            "surprisal" => surprisal(&logits, case["id"].as_integer().unwrap() as u32, base),
            other => panic!("no measure {other}"),
        };
        assert!(near(got, case["expect"].as_float().unwrap()), "{case:?}: {got}");
    }
}

#[test]
fn perplexity() {
    for case in tables("perplexity") {
        let mut rolling = RollingPerplexity::default();
        numbers(&case, "surprisals").into_iter().for_each(|s| rolling.add(s));
        assert!(near(rolling.value(), case["expect"].as_float().unwrap()), "{case:?}");
        assert_eq!(rolling.count() as i64, case["count"].as_integer().unwrap());
        rolling.reset();
        assert_eq!((rolling.count(), rolling.value()), (0, f64::INFINITY));
    }
}
