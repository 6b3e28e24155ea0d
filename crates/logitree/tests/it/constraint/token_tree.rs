//! The token-tree corpus (`testdata/token_tree`) and the hostile inputs that fuzzing left behind.

use std::path::PathBuf;
use std::sync::Arc;

use logitree::constraint::skeleton::{plan::Run, Skeleton};
use logitree::constraint::{
    Descriptor, DescriptorTree, End, Leaf, Node, OnMismatch, Payload, PayloadCheck, TokenTree, ROOT,
};
use logitree::mask::AllowedTokens;
use logitree::{ErrorKind, TokenId};
use logitree_testing::constraints::token_tree;
use logitree_testing::corpus;
use logitree_testing::vocabulary::vocabulary;
use serde::de::DeserializeOwned;
use serde::Deserialize;

fn corpus<T: DeserializeOwned>(name: &str) -> T {
    corpus::read(&format!("token_tree/{name}"))
}

fn descriptor(path: &str, leaves: &[(String, Vec<TokenId>)]) -> DescriptorTree {
    let leaves = leaves.iter().map(|(name, tokens)| Leaf { name: name.clone(), tokens: tokens.clone() });
    DescriptorTree::new(Descriptor { path: path.into(), leaves: leaves.collect() })
}

fn node_at(descriptor: &DescriptorTree, tokens: &[TokenId]) -> Option<Node> {
    tokens.iter().try_fold(ROOT, |node, &token| descriptor.step(node, token))
}

#[derive(Deserialize)]
struct Cases<T> {
    case: Vec<T>,
}

#[derive(Deserialize)]
struct Build {
    name: String,
    leaves: Vec<(String, Vec<TokenId>)>,
    terminals: usize,
    nodes: usize,
    names: Option<Vec<String>>,
    #[serde(default)]
    at: Vec<At>,
    #[serde(default)]
    misses: Vec<Vec<TokenId>>,
}

#[derive(Deserialize)]
struct At {
    tokens: Vec<TokenId>,
    children: Vec<TokenId>,
    terminal: Option<bool>,
    leaf_end: Option<bool>,
    value: Option<String>,
}

#[test]
fn build() {
    for case in corpus::<Cases<Build>>("build.toml").case {
        let tree = descriptor("p", &case.leaves);
        let name = &case.name;
        assert_eq!((tree.leaf_count(), tree.node_count()), (case.terminals, case.nodes), "{name}");
        assert_eq!(tree.token(ROOT), None, "{name}");
        if let Some(names) = &case.names {
            assert_eq!(tree.names(), names, "{name}");
        }
        for at in &case.at {
            let node = node_at(&tree, &at.tokens).expect(name);
            assert_eq!(tree.children(node), at.children, "{name}");
            assert_eq!(tree.fan_out(node), at.children.len(), "{name}");
            assert_eq!(tree.single_child(node).is_some(), at.children.len() == 1, "{name}");
            assert!(at.terminal.is_none_or(|t| t == tree.is_terminal(node)), "{name}");
            assert!(at.leaf_end.is_none_or(|t| t == tree.is_leaf_end(node)), "{name}");
            assert!(at.value.is_none() || at.value.as_deref() == tree.leaf_name(node), "{name}");
        }
        for miss in &case.misses {
            assert_eq!(node_at(&tree, miss), None, "{name}: {miss:?}");
        }
    }
}

#[derive(Deserialize)]
struct Codec {
    written: Vec<Written>,
    refused: Vec<RefusedHex>,
}

#[derive(Deserialize)]
struct Written {
    name: String,
    path: String,
    leaves: Vec<(String, Vec<TokenId>)>,
    nodes: usize,
    hex: Option<String>,
}

#[derive(Deserialize)]
struct RefusedHex {
    name: String,
    hex: String,
    error: String,
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
}

#[test]
fn codec() {
    let corpus: Codec = corpus("codec.toml");
    for case in corpus.written {
        let tree = descriptor(&case.path, &case.leaves);
        assert_eq!(tree.node_count(), case.nodes, "{}", case.name);
        let binary = tree.to_binary();
        if let Some(hex) = &case.hex {
            assert_eq!(binary, bytes(hex), "{}", case.name);
        }
        let again = DescriptorTree::from_binary(&binary).unwrap();
        assert_eq!((again.path(), again.to_binary()), (case.path.as_str(), binary.clone()), "{}", case.name);
        let mut leaves = Vec::new();
        again.for_each_leaf(|node, tokens| {
            assert_eq!(again.leaf_name(node), None);
            leaves.push(tokens.to_vec());
        });
        let mut expected: Vec<_> = case.leaves.into_iter().map(|(_, tokens)| tokens).collect();
        expected.sort();
        assert_eq!(leaves, expected, "{}", case.name);
        for end in 0..binary.len() {
            let error = DescriptorTree::from_binary(&binary[..end]).expect_err("a cut file was read");
            assert!(error.kind == ErrorKind::Payload && error.place.starts_with("byte "), "{error}");
        }
    }
    for case in corpus.refused {
        let error = DescriptorTree::from_binary(&bytes(&case.hex)).expect_err(&case.name);
        assert_eq!(error.kind, ErrorKind::Payload, "{}", case.name);
        assert!(error.to_string().contains(&case.error), "{}: {error}", case.name);
        assert!(error.place.starts_with("byte "), "{}: {error}", case.name);
    }
}

#[derive(Deserialize)]
struct Match {
    name: String,
    leaves: Vec<(String, Vec<TokenId>)>,
    end_tokens: Option<Vec<TokenId>>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    refused: Vec<Vec<TokenId>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    accept: Vec<TokenId>,
    allowed: Option<Vec<TokenId>>,
    forced: Vec<TokenId>,
    #[serde(default)]
    finished: bool,
}

#[test]
fn matchers() {
    for case in corpus::<Cases<Match>>("match.toml").case {
        let tree = Arc::new(TokenTree::from_descriptor(Arc::new(descriptor("p", &case.leaves))));
        let end = End { tokens: case.end_tokens.clone(), ..End::default() };
        let mut matcher = match (tree.matcher("p", &end), &case.error) {
            (Ok(matcher), None) => matcher,
            (Err(error), Some(expected)) => {
                assert_eq!(error.kind, ErrorKind::Constraint, "{}", case.name);
                assert!(error.to_string().contains(expected), "{}: {error}", case.name);
                continue;
            }
            (made, _) => panic!("{}: {:?}", case.name, made.map(|_| ())),
        };
        for step in &case.steps {
            matcher.reset();
            step.accept.iter().for_each(|&t| matcher.accept(t).expect(&case.name));
            let expected = step.allowed.as_deref().map_or(AllowedTokens::All, AllowedTokens::Ids);
            assert_eq!(matcher.allowed(), Ok(expected), "{} after {:?}", case.name, step.accept);
            assert_eq!(matcher.is_finished(), step.finished, "{} after {:?}", case.name, step.accept);
            let mut forced = Vec::new();
            matcher.forced(&mut forced).expect(&case.name);
            assert_eq!(forced, step.forced, "{} after {:?}", case.name, step.accept);
        }
        for tokens in &case.refused {
            matcher.reset();
            let taken = tokens.iter().try_for_each(|&t| matcher.accept(t));
            assert_eq!(taken.expect_err(&case.name).kind, ErrorKind::Token);
        }
    }
}

#[derive(Deserialize)]
struct Refusals {
    refused: Vec<RefusedText>,
}

#[derive(Deserialize)]
struct RefusedText {
    name: String,
    text: String,
    error: String,
    place: String,
}

#[test]
fn payloads_that_are_refused() {
    for case in corpus::<Refusals>("payload.toml").refused {
        let error = Payload::from_json(case.text.as_bytes()).expect_err(&case.name);
        assert_eq!(error.kind, ErrorKind::Payload, "{}", case.name);
        assert!(error.message.contains(&case.error), "{}: {error}", case.name);
        assert!(error.place.starts_with(&case.place), "{}: {error}", case.name);
    }
    let error = Payload::from_json(b"{\"descriptors\": [\xff]}").unwrap_err();
    assert_eq!(error.place, "byte 17");
}

#[derive(Deserialize)]
struct TemplateCase {
    name: String,
    template: String,
    prefix: String,
    free_count: usize,
    runs: Vec<(i64, String)>,
    token_ids: Option<Vec<Vec<TokenId>>>,
    fill: Option<Vec<String>>,
    json: Option<String>,
    greedy: Vec<usize>,
}

#[test]
fn templates() {
    for case in corpus::<Cases<TemplateCase>>("template.toml").case {
        let template = Skeleton::from_json(&case.template).unwrap();
        let mut codes = |text: &str| Ok(text.chars().map(|c| c as TokenId).collect());
        let plan = template.prefill_plan(Some(&mut codes)).unwrap().unwrap();
        assert_eq!((&plan.prefix, plan.free_count), (&case.prefix, case.free_count), "{}", case.name);
        let after = |run: &Run| run.after_free_span.map_or(-1, |n| n as i64);
        let runs: Vec<_> = plan.runs.iter().map(|run| (after(run), run.text.clone())).collect();
        assert_eq!(runs, case.runs, "{}", case.name);
        if let Some(expected) = &case.token_ids {
            let ids: Vec<_> = plan.runs.iter().filter_map(|run| run.token_ids.clone()).collect();
            assert_eq!(&ids, expected, "{}", case.name);
        }
        let plain = template.prefill_plan(None).unwrap().unwrap();
        assert!(plain.runs.iter().all(|run| run.token_ids.is_none()), "{}", case.name);
        if let (Some(fill), Some(json)) = (&case.fill, &case.json) {
            let mut text = plan.prefix.clone();
            for (i, value) in fill.iter().enumerate() {
                text.push_str(value);
                let follows = plan.runs.iter().filter(|run| run.after_free_span == Some(i));
                follows.for_each(|run| text.push_str(&run.text));
            }
            assert_eq!(&text, json, "{}", case.name);
            serde_json::from_str::<serde_json::Value>(&text).expect(&case.name);
        }
        let greedy = template.sampler_plan();
        assert!(greedy.iter().all(|over| over.temperature == 0.0 && over.top_k == 1));
        assert_eq!(
            greedy.iter().map(|over| over.span_index).collect::<Vec<_>>(),
            case.greedy,
            "{}",
            case.name
        );
    }
}

#[test]
fn a_payload_that_does_not_fit_is_an_error_or_a_warning() {
    let vocabulary = vocabulary(&["RE", "PLY", "MUTE"]);
    let leaf = |name: &str, tokens: &[TokenId]| Leaf { name: name.into(), tokens: tokens.to_vec() };
    let leaves = vec![leaf("REPLY", &[0, 1]), leaf("REPLY", &[2]), leaf("MUTE", &[3])];
    let payload = Payload {
        model_id: Some("other".into()),
        descriptors: vec![Descriptor { path: "p".into(), leaves }],
    };
    let mut check =
        PayloadCheck { vocabulary: Some(&vocabulary), model_id: Some("mine"), ..PayloadCheck::default() };
    let error = TokenTree::new(payload.clone(), &check).unwrap_err();
    assert_eq!(error.place, "/modelId");
    check.model_id = Some("other");
    let error = TokenTree::new(payload.clone(), &check).unwrap_err();
    assert!(
        error.to_string().contains("spell \"MUTE\"") && error.place == "/descriptors/0/leaves/1",
        "{error}"
    );
    check.on_mismatch = OnMismatch::Warn;
    let tree = TokenTree::new(payload, &check).unwrap();
    let places: Vec<_> = tree.warnings().iter().map(|w| w.place.as_str()).collect();
    assert_eq!(places, ["/descriptors/0/leaves/1", "/descriptors/0/leaves/2"]);
    assert_eq!(tree.descriptor("p").unwrap().leaf_count(), 2, "an id out of range cannot be generated");
}

#[test]
fn what_has_no_tokens_is_an_error_with_its_path_or_a_warning() {
    let leaf = |name: &str, tokens: &[TokenId]| Leaf { name: name.into(), tokens: tokens.to_vec() };
    let payload = |leaves: Vec<Leaf>| Payload {
        model_id: None,
        descriptors: vec![Descriptor { path: "action".into(), leaves }],
    };
    for (leaves, message, place) in [
        (vec![], "the descriptor \"action\" has no leaves", "/descriptors/0/leaves"),
        (
            vec![leaf("A", &[1]), leaf("EMPTY", &[])],
            "the leaf \"EMPTY\" of the descriptor \"action\" has no tokens",
            "/descriptors/0/leaves/1/tokens",
        ),
    ] {
        let kept = leaves.iter().filter(|leaf| !leaf.tokens.is_empty()).count();
        let error = TokenTree::new(payload(leaves.clone()), &PayloadCheck::default()).unwrap_err();
        assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Payload, place));
        assert_eq!(error.message, message);
        let warn = PayloadCheck { on_mismatch: OnMismatch::Warn, ..PayloadCheck::default() };
        let tree = TokenTree::new(payload(leaves), &warn).unwrap();
        assert_eq!((tree.warnings().len(), tree.descriptors()[0].leaf_count()), (1, kept));
    }
}

#[test]
fn an_id_outside_the_vocabulary_is_never_allowed() {
    let tree = token_tree(&[[0, 9]], &PayloadCheck::default()).unwrap();
    let matcher = |size: usize| {
        let vocabulary = vocabulary(&vec!["A"; size]);
        tree.matcher("p", &End { vocabulary: Some(vocabulary), ..End::default() })
    };
    assert_eq!(matcher(10).unwrap().vocabulary_size(), 10);
    let error = matcher(9).map(|_| ()).unwrap_err();
    assert!(error.kind == ErrorKind::Constraint && error.to_string().contains("id 9"), "{error}");
    assert_eq!(tree.check_range(9).unwrap_err().kind, ErrorKind::Payload);
    assert_eq!(tree.check_range(10), Ok(()));
}

fn hostile(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = corpus::files(&format!("hostile/{folder}")).into_iter();
    let all: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    assert!(!all.is_empty(), "{folder} is empty");
    all
}

#[test]
fn hostile_payloads() {
    for (path, data) in hostile("payload") {
        let Ok(payload) = Payload::from_json(&data) else { continue };
        let check = PayloadCheck { on_mismatch: OnMismatch::Warn, ..PayloadCheck::default() };
        let tree = Arc::new(TokenTree::new(payload, &check).unwrap());
        for descriptor in tree.descriptors() {
            assert!(descriptor.dump(20, &|id| id.to_string()).lines().count() <= 22, "{}", path.display());
            assert_eq!(
                DescriptorTree::from_binary(&descriptor.to_binary()).unwrap().node_count(),
                descriptor.node_count()
            );
        }
    }
}

#[test]
fn hostile_binaries() {
    for (path, data) in hostile("codec") {
        if let Ok(tree) = DescriptorTree::from_binary(&data) {
            let binary = tree.to_binary();
            assert_eq!(binary.len(), data.len(), "{}", path.display());
            assert_eq!(DescriptorTree::from_binary(&binary), Ok(tree), "{}", path.display());
        }
    }
}
