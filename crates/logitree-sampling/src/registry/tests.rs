//! The table holds what its rows say, and a sampler that is one type and one row works in all that reads it.

use super::*;
use crate::{arguments, params, presets, Candidates, Chain, EntropyRule, Params};
use std::collections::HashSet;
use std::ops::Bound;
use xxhash_rust::xxh3::xxh3_64;

/// A sampler that exists in tests only: this type, and its row in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift {
    by: f32,
}

impl Shift {
    fn new(by: f32) -> Result<Self> {
        check("shift", [by.into()])?;
        Ok(Shift { by })
    }
}

arguments!(Shift, s => s.by);

impl Sampler for Shift {
    fn name(&self) -> &'static str {
        "shift"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.list();
        candidates.logits_mut().iter_mut().for_each(|x| *x += self.by);
        candidates.logits_written(false);
    }
}

fn shift_chain(text: &str, by: f64) -> Chain {
    Chain::parse(text, &Params::default().seed(1).with("shift_by", by)).unwrap()
}

#[test]
fn a_new_sampler_needs_one_type_and_one_row() {
    // Notation, with names, an alias and another spelling.
    for text in ["top_k;shift", "topk;OFFSET", "top-k; offset;"] {
        assert_eq!(shift_chain(text, 2.0).names(), ["top_k", "shift", "dist"]);
    }
    // Description, get and set, by keyword and by alias.
    let mut chain = shift_chain("shift;greedy", 2.0);
    assert_eq!(chain.describe(), "shift(2) -> greedy()");
    assert_eq!(chain.parameter("shift_by"), Some(2.0));
    chain.set_parameter("shift_amount", 3.0).unwrap();
    assert_eq!(
        (chain.parameter("shift_amount"), chain.describe()),
        (Some(3.0), "shift(3) -> greedy()".into())
    );
    let error = chain.set_parameter("shift_by", f64::NAN).unwrap_err();
    assert!(error.kind == ErrorKind::Sampling && chain.parameter("shift_by") == Some(3.0), "{error}");
    let both = [("shift_by".into(), 1.0), ("shift_amount".into(), 2.0)];
    assert!(chain.set_parameters(&both).unwrap_err().message.contains("shift_by is set twice"));
    // A rule for one step, and the sampler's own work.
    let band = vec![(f64::INFINITY, vec![("shift_amount".into(), 10.0)])];
    chain.adapt(Some(Box::new(EntropyRule::new(band).unwrap()))).unwrap();
    chain.apply(&[1.0, 2.0][..], logitree_tokens::mask::AllowedTokens::All, None).unwrap();
    assert_eq!((chain.candidates().logits(), chain.parameter("shift_by")), (&[11.0, 12.0][..], Some(3.0)));
    // The keywords of whole chains, and the presets that have no use for it.
    assert!(params::keywords().contains(&"shift_by"));
    let error = presets::llama_cpp(&Params::default().with("shift_by", 1.0)).unwrap_err();
    assert!(error.message.contains("no use for shift_by"), "{error}");
    // Construction by names, as from Python.
    let row = find("shift").unwrap();
    assert_eq!(row.build_with(&[]).unwrap().describe(), "shift(0.5)");
    assert_eq!(row.build_with(&[("by", 4.into())]).unwrap().describe(), "shift(4)");
    assert!(row.build_with(&[("to", 4.into())]).unwrap_err().message.contains("shift has no parameter to"));
}

#[test]
fn names_letters_and_keywords_are_unambiguous() {
    let (mut names, mut letters) = (HashSet::new(), HashSet::new());
    for row in SAMPLERS {
        assert!(
            std::iter::once(&row.name).chain(row.aliases).all(|name| names.insert(*name)),
            "{}",
            row.name
        );
        assert!(row.letter.is_none_or(|letter| letters.insert(letter)), "{}", row.name);
        assert!(
            row.doc.ends_with('.') && row.parameters.iter().all(|p| p.doc.ends_with('.')),
            "{}",
            row.name
        );
        let of_row: HashSet<_> = row.parameters.iter().map(|p| p.name).collect();
        assert_eq!(of_row.len(), row.parameters.len(), "{}", row.name);
    }
    let keywords: HashSet<_> = params::keywords().into_iter().collect();
    for parameter in SAMPLERS.iter().flat_map(|row| row.parameters) {
        for alias in parameter.aliases {
            assert!(!keywords.contains(alias), "{alias} is a keyword and an alias");
            assert_eq!(keyword(alias), parameter.keyword, "{alias} means two keywords");
        }
    }
}

/// The defaults of a row's parameters, and what stands for those that have none.
fn usual(row: &SamplerRow) -> Vec<(&'static str, Value)> {
    let value = |parameter: &ParameterRow| match parameter.kind {
        Kind::Seed => crate::Seed::mt19937(7).into(),
        Kind::Biases => vec![(1, 2.0)].into(),
        _ => parameter.default.into(),
    };
    row.parameters.iter().map(|parameter| (parameter.name, value(parameter))).collect()
}

/// Each row's constructor, its defaults and its ranges agree; what a sampler says of itself builds it again.
#[test]
fn rows_and_constructors_agree() {
    for row in SAMPLERS.iter().filter(|row| row.name != "infill") {
        let usual = usual(row);
        let built = row.build_with(&usual).unwrap();
        assert_eq!(built.name(), row.name);
        let again = row.build(&row.arguments(built.as_ref())).unwrap();
        assert_eq!(again.describe(), built.describe());
        for (parameter, at) in row.parameters.iter().zip(0..) {
            let with = |value: f64| {
                let mut values = usual.clone();
                values[at].1 =
                    if parameter.kind == Kind::Float { value.into() } else { (value as i32).into() };
                row.build_with(&values).is_ok()
            };
            let label = |bound| format!("{} of {}: {bound:?}", parameter.name, row.name);
            let step = if parameter.kind == Kind::Float { 1e-3 } else { 1.0 };
            for (bound, outwards) in [(parameter.range.0, -step), (parameter.range.1, step)] {
                match bound {
                    Bound::Included(x) if parameter.kind == Kind::Count => {
                        assert!(with(x), "{}", label(bound))
                    }
                    Bound::Included(x) => assert!(with(x) && !with(x + outwards), "{}", label(bound)),
                    Bound::Excluded(x) => assert!(!with(x) && with(x - outwards), "{}", label(bound)),
                    Bound::Unbounded if parameter.kind == Kind::Float => {
                        assert!(with(1e6 * outwards.signum()), "{}", label(bound));
                    }
                    Bound::Unbounded => {}
                }
            }
            if parameter.kind == Kind::Float {
                let refused = |x| !with(x);
                assert!(
                    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().all(refused),
                    "{} of {}",
                    parameter.name,
                    row.name
                );
            }
        }
    }
}

/// A snapshot holds what it held when it was first written: the hash of the bytes after twelve tokens, two of them taken
/// back, over equal logits, whose probabilities no platform rounds.
#[test]
fn snapshots_keep_their_bytes() {
    let mut wrong = Vec::new();
    for row in SAMPLERS.iter().filter(|row| !["infill", "shift"].contains(&row.name)) {
        let mut samplers = vec![row.build_with(&usual(row)).unwrap()];
        if !samplers[0].selects() {
            samplers.push(Box::new(crate::Dist::new(crate::Seed::mt19937(3)).unwrap()));
        }
        let mut chain = Chain::new(samplers).unwrap();
        let logits = [0.0; 4];
        for _ in 0..12 {
            chain.sample(&logits, logitree_tokens::mask::AllowedTokens::All).unwrap();
        }
        chain.rollback(2).unwrap();
        let hash = xxh3_64(&chain.snapshot());
        if !SNAPSHOTS.contains(&(row.name, hash)) {
            wrong.push(format!("(\"{}\", {hash:#018x}),", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const SNAPSHOTS: &[(&str, u64)] = &[
    ("logit_bias", 0x2eb5_7805_41b5_680c),
    ("penalties", 0x6094_6a6f_3b92_4933),
    ("dry", 0xb56c_2afc_b165_5b58),
    ("top_n_sigma", 0x11b8_b1b5_8976_08d3),
    ("top_k", 0x82dd_ec9b_37d2_fc34),
    ("typ_p", 0x4029_c5ec_a969_23e4),
    ("top_p", 0xc428_e4a7_5176_6b89),
    ("min_p", 0x3f30_02be_bcee_bd57),
    ("xtc", 0xd8aa_2382_4bb7_bf43),
    ("temp", 0x0e59_b78d_c9bc_aa63),
    ("temp_ext", 0x9930_5843_12b6_5e07),
    ("adaptive_p", 0xa7e2_c7e6_bbb0_acd0),
    ("mirostat", 0xd8f6_8a9c_37ca_7c80),
    ("mirostat_v2", 0xfbea_2031_dfa8_b1f7),
    ("no_repeat_ngram", 0xefaa_db98_95ff_58b0),
    ("epsilon_cutoff", 0xa0f9_827b_f5a0_0570),
    ("eta_cutoff", 0x5cc1_ecf9_c941_7917),
    ("top_h", 0xcf7d_e4d6_124f_b4b1),
    ("min_k", 0xdc49_728c_853c_64d3),
    ("p_less", 0xedd5_3050_9696_337b),
    ("edt", 0xf784_f347_56d0_c85c),
    ("hf_top_h", 0xe750_de88_b8ef_86e9),
    ("hf_top_k", 0xaad1_25f0_8297_5d9a),
    ("hf_top_p", 0xb3ac_81a7_2b77_a0e7),
    ("hf_typ_p", 0xfe23_9f2f_b5d2_128c),
    ("ts_top_k", 0x4bcb_52fa_03a5_3447),
    ("ts_top_n_sigma", 0xf9fc_f465_e476_9780),
    ("greedy", 0x54ed_fb0c_b1a3_c7a9),
    ("dist", 0x735d_bf60_0491_805c),
];
