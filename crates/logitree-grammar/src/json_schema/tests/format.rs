//! The formats of JSON Schema: cases from their RFCs, and the format cases of the JSON-Schema-Test-Suite where its
//! archive is there (`LOGITREE_DATA`, or `../shared/data` beside the repository).

use std::collections::BTreeMap;

use super::data::{files, suite};
use crate::expr::{Encoding, ExprId, Exprs};
use crate::json_schema::{format, Draft};
use serde::Deserialize;

#[derive(Deserialize)]
struct Corpus {
    format: BTreeMap<String, Cases>,
}

#[derive(Deserialize)]
struct Cases {
    valid: Vec<String>,
    invalid: Vec<String>,
}

/// A format, compiled.
struct Format {
    exprs: Exprs,
    start: ExprId,
}

impl Format {
    fn new(name: &str, draft: Draft) -> Option<Format> {
        let regex = format::regex(name, draft)?;
        let mut exprs = Exprs::new(1 << 20);
        let start = exprs.compile(&regex, Encoding::Utf8).unwrap();
        Some(Format { exprs, start })
    }

    fn takes(&mut self, text: &str) -> bool {
        self.exprs.matches(self.start, text.as_bytes()).unwrap()
    }
}

#[test]
fn cases_of_the_rfcs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/json_schema/formats.toml");
    let corpus: Corpus = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (name, cases) in corpus.format {
        let mut format =
            Format::new(&name, Draft::Draft2020).unwrap_or_else(|| panic!("{name} is not known"));
        for text in cases.valid {
            assert!(format.takes(&text), "{name} must take {text:?}");
        }
        for text in cases.invalid {
            assert!(!format.takes(&text), "{name} must refuse {text:?}");
        }
    }
}

#[test]
fn lengths_are_counted() {
    let mut host = Format::new("hostname", Draft::Draft2020).unwrap();
    let label = "a".repeat(63);
    assert!(host.takes(&label) && !host.takes(&"a".repeat(64)));
    let name = |last: usize| format!("{label}.{label}.{label}.{}", "a".repeat(last));
    assert!(host.takes(&name(61)) && !host.takes(&name(62)));
}

/// Valid strings of the suite that are refused, by format and draft: what is not regular, see `format.rs`. Only ever
/// falling.
const REFUSED: usize = 63;

#[test]
fn the_test_suite_finds_nothing_invalid_accepted_with_the_data() {
    let Some(suite) = suite() else { return };
    let mut files = files(&suite.tests);
    files.retain(|path| path.parent().is_some_and(|folder| folder.ends_with("optional/format")));
    let (mut seen, mut refused) = (0, Vec::new());
    for file in files {
        let drafts = [
            ("draft4", Draft::Draft4),
            ("draft6", Draft::Draft6),
            ("draft7", Draft::Draft7),
            ("draft2019-09", Draft::Draft2019),
            ("draft2020-12", Draft::Draft2020),
        ];
        let Some(&(_, draft)) = drafts.iter().find(|(name, _)| file.iter().any(|part| part == *name)) else {
            continue;
        };
        let groups: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for group in groups.as_array().unwrap() {
            let Some(name) = group["schema"]["format"].as_str() else { continue };
            let Some(mut format) = Format::new(name, draft) else { continue };
            for test in group["tests"].as_array().unwrap() {
                let Some(text) = test["data"].as_str() else { continue };
                seen += 1;
                let valid = test["valid"].as_bool().unwrap();
                let accepted = format.takes(text);
                assert!(valid || !accepted, "{name} ({draft:?}) accepts {text:?}: {}", test["description"]);
                if valid && !accepted {
                    refused.push(format!("{draft:?} {name} {text:?}"));
                }
            }
        }
    }
    assert!(seen > 1500, "{seen} strings");
    assert!(refused.len() <= REFUSED, "{} refused:\n{}", refused.len(), refused.join("\n"));
}
