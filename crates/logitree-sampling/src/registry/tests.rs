//! The table holds what its rows say, and a sampler that is one type and one row works in all that reads it.

use super::*;
use crate::{params, presets, Candidates, Chain, EntropyRule, Params};
use std::collections::HashSet;
use std::ops::Bound;

/// A sampler that exists in tests only: this type, and its row in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shift {
    by: f32,
}

impl FromArguments for Shift {
    fn from_arguments(a: &Arguments) -> Result<Self> {
        Ok(Shift { by: crate::finite("shift", "by", a.float(0))? })
    }

    fn arguments(&self) -> Arguments {
        [self.by.into()].into()
    }
}

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

/// Each row's constructor, its defaults and its ranges agree; what a sampler says of itself builds it again.
#[test]
fn rows_and_constructors_agree() {
    for row in SAMPLERS.iter().filter(|row| row.name != "infill") {
        let mut usual: Vec<(&str, Value)> = Vec::new();
        for parameter in row.parameters {
            match parameter.kind {
                Kind::Seed => usual.push((parameter.name, crate::Seed::mt19937(7).into())),
                Kind::Biases => usual.push((parameter.name, vec![(1, 2.0)].into())),
                _ => usual.push((parameter.name, parameter.default.into())),
            }
        }
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
            let told = |bound| format!("{} of {}: {bound:?}", parameter.name, row.name);
            let step = if parameter.kind == Kind::Float { 1e-3 } else { 1.0 };
            for (bound, outwards) in [(parameter.range.0, -step), (parameter.range.1, step)] {
                match bound {
                    Bound::Included(x) if parameter.kind == Kind::Count => {
                        assert!(with(x), "{}", told(bound))
                    }
                    Bound::Included(x) => assert!(with(x) && !with(x + outwards), "{}", told(bound)),
                    Bound::Excluded(x) => assert!(!with(x) && with(x - outwards), "{}", told(bound)),
                    Bound::Unbounded if parameter.kind == Kind::Float => {
                        assert!(with(1e6 * outwards.signum()), "{}", told(bound));
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
