//! The corpora in `testdata/gbnf` and `testdata/lark`, run through the readers and the recogniser: accepted
//! texts, rejected texts, rejected grammars.

use std::fmt::Write;

use logitree_grammar::ast::{Grammar, Syntax};
use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_grammar::rules::{Rules, TokenName};
use logitree_grammar::{gbnf, Result};
use logitree_testing::rules::Running;
use logitree_testing::{corpus, gbnf_writer};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    #[serde(default)]
    case: Vec<Case>,
    #[serde(default)]
    invalid: Vec<Invalid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    grammar: String,
    start: Option<String>,
    accepted: Vec<Text>,
    refused: Vec<Text>,
    first: Option<String>,
    #[serde(rename = "beyond")]
    _beyond: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invalid {
    name: String,
    grammar: String,
    start: Option<String>,
    error: String,
}

/// A text, with whole tokens by id.
#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Token(u32),
    Times { of: String, times: usize },
    Parts(Vec<Text>),
}

type Reader = fn(&str, Option<&str>) -> Result<Rules>;

fn read_gbnf(text: &str, start: Option<&str>) -> Result<Rules> {
    gbnf::parse_from(text, start.unwrap_or("root"))
}

fn read_lark(text: &str, _: Option<&str>) -> Result<Rules> {
    let node = Grammar::read(Syntax::Lark { text: text.into(), grammars: Vec::new() })?;
    node.rules().map(|rules| Rules::clone(&rules))
}

/// The configuration after a text. Each character of plain text is a token of its own with an id that no grammar names.
fn after(running: &mut Running, mut config: ConfigId, text: &Text) -> ConfigId {
    match text {
        Text::Plain(text) => {
            for c in text.chars() {
                let whole = running.step_token(config, &TokenName::Id(u32::MAX));
                config = running.step(config, c.encode_utf8(&mut [0; 4]).as_bytes());
                config = running.machine.either(config, whole).unwrap();
            }
            config
        }
        Text::Token(id) => running.step_token(config, &TokenName::Id(*id)),
        Text::Times { of, times } => after(running, config, &Text::Plain(of.repeat(*times))),
        Text::Parts(parts) => parts.iter().fold(config, |config, part| after(running, config, part)),
    }
}

fn accepts(running: &mut Running, text: &Text) -> bool {
    let end = after(running, running.machine.start(), text);
    end != DEAD && running.machine.is_accepting(end)
}

/// The problems of a case, one per line.
fn wrong(case: &Case, rules: &Rules) -> String {
    let mut said = String::new();
    let mut running = match Running::new(rules) {
        Ok(running) => running,
        Err(error) => return format!("  {error}\n"),
    };
    for text in &case.accepted {
        if !accepts(&mut running, text) {
            let _ = writeln!(said, "  refuses {text:?}");
        }
    }
    for text in &case.refused {
        if accepts(&mut running, text) {
            let _ = writeln!(said, "  accepts {text:?}");
        }
    }
    if let Some(first) = &case.first {
        let start = running.machine.start();
        let found: Vec<u8> =
            (0..=255).filter(|&byte| running.machine.step(start, byte).unwrap() != DEAD).collect();
        if found != first.as_bytes() {
            let _ = writeln!(said, "  starts with {:?}", String::from_utf8_lossy(&found));
        }
    }
    said
}

/// Runs a folder. Returns the number of cases. `again` makes a grammar that must accept the same texts.
fn run(folder: &str, read: Reader, again: impl Fn(&Rules) -> Option<Rules>) -> usize {
    let mut said = String::new();
    let mut count = 0;
    for (file, corpus) in corpus::read_all::<Corpus>(folder) {
        for case in &corpus.case {
            count += 1;
            let found = match read(&case.grammar, case.start.as_deref()) {
                Ok(rules) => {
                    wrong(case, &rules) + &again(&rules).map_or(String::new(), |rules| wrong(case, &rules))
                }
                Err(error) => format!("  {error}\n"),
            };
            if !found.is_empty() {
                let _ = write!(said, "{file}: {}\n{found}", case.name);
            }
        }
        for invalid in &corpus.invalid {
            count += 1;
            match read(&invalid.grammar, invalid.start.as_deref()) {
                Ok(_) => {
                    let _ = writeln!(said, "{file}: {}\n  is taken", invalid.name);
                }
                Err(error) if !error.to_string().contains(&invalid.error) => {
                    let _ = writeln!(said, "{file}: {}\n  says {error}", invalid.name);
                }
                Err(_) => {}
            }
        }
    }
    assert!(said.is_empty(), "{said}");
    count
}

#[test]
fn gbnf_means_what_llama_cpp_means() {
    // Writing and reading again keeps the meaning.
    let count =
        run("gbnf", read_gbnf, |rules| Some(gbnf::parse(&gbnf_writer::write(rules).unwrap()).unwrap()));
    assert!(count >= 40, "{count} cases");
}

#[test]
fn lark_means_what_llguidance_means() {
    let count = run("lark", read_lark, |_| None);
    assert!(count >= 40, "{count} cases");
}
