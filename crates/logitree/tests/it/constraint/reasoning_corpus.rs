//! Reasoning blocks: the corpus `testdata/reasoning/think.toml`.

use std::collections::BTreeMap;

use logitree::constraint::{
    accept_all, count_allowed, draft_masks, reasoning::ReasoningStart, BoundReasoning, Matcher,
    ReasoningOptions,
};
use logitree::{ErrorKind, TokenId, TokenKind};
use logitree_testing::corpus;
use logitree_testing::laws::look;
use logitree_testing::vocabulary::{of_tokens, token};
use serde::Deserialize;

#[derive(Deserialize)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    size: Option<usize>,
    begin: Vec<Vec<TokenId>>,
    end: Vec<Vec<TokenId>>,
    #[serde(default)]
    message: Vec<TokenId>,
    budget: Option<usize>,
    soft: Option<usize>,
    ramp: Option<f32>,
    max_blocks: Option<i64>,
    #[serde(default)]
    whole: bool,
    at: Option<String>,
    #[serde(default)]
    bytes: BTreeMap<String, String>,
    #[serde(default)]
    eog: Vec<TokenId>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default)]
    accept: Vec<TokenId>,
    allowed: Option<Vec<TokenId>>,
    banned: Option<Vec<TokenId>>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    refused: Vec<TokenId>,
    draft: Option<Vec<TokenId>>,
    taken: Option<usize>,
    bias: Option<[f32; 2]>,
}

impl Case {
    fn reasoning_budget(&self) -> BoundReasoning {
        let hex = |text: &String| -> Vec<u8> {
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
        };
        let tokens = (0..self.size.unwrap_or(16)).map(|id| {
            let bytes = self.bytes.get(&id.to_string()).map_or_else(|| format!("<{id}>").into_bytes(), hex);
            token(bytes, TokenKind::Normal)
        });
        let options = ReasoningOptions {
            begin: self.begin.clone(),
            end: self.end.clone(),
            message: self.message.clone(),
            budget: self.budget,
            soft: self.soft,
            ramp: self.ramp.unwrap_or(10.0),
            max_blocks: self.max_blocks.map_or(Some(1), |most| usize::try_from(most).ok()),
            whole: self.whole,
        };
        BoundReasoning::new(options, &of_tokens(tokens, &self.eog)).unwrap()
    }

    fn at(&self) -> ReasoningStart {
        match self.at.as_deref() {
            None => ReasoningStart::Outside,
            Some("inside") => ReasoningStart::Inside,
            Some("closing") => ReasoningStart::Closing,
            Some(other) => panic!("{}: at {other:?}", self.name),
        }
    }
}

#[test]
fn the_corpus() {
    let corpus: Corpus = corpus::read("reasoning/think.toml");
    assert!(corpus.case.len() >= 20);
    for case in &corpus.case {
        let mut matcher = case.reasoning_budget().matcher(case.at(), None).unwrap();
        for (n, step) in case.steps.iter().enumerate() {
            let place = format!("{}: step {n}", case.name);
            accept_all(&mut *matcher, &step.accept).unwrap_or_else(|e| panic!("{place}: {e}"));
            let seen = look(&mut *matcher);
            if step.allowed.is_some() || step.banned.is_some() || step.all {
                let size = matcher.vocabulary_size() as TokenId;
                let except = |banned: &Vec<TokenId>| (0..size).filter(|id| !banned.contains(id)).collect();
                let expected = step.allowed.clone().or(step.banned.as_ref().map(except));
                assert_eq!(seen.allowed, expected, "{place}");
            }
            let bias = step.bias.map(|[token, by]| (token as TokenId, by.to_bits()));
            assert_eq!(seen.bias, bias, "{place}");
            for &token in &step.refused {
                assert_eq!(matcher.accept(token).unwrap_err().kind, ErrorKind::Token, "{place}");
            }
            if let Some(draft) = &step.draft {
                assert_eq!(Some(count_allowed(&mut *matcher, draft).unwrap()), step.taken, "{place}");
                drafted(&mut *matcher, draft, step.taken.unwrap());
            }
            assert_eq!(look(&mut *matcher), seen, "{place}: looking changes nothing");
        }
    }
}

/// The masks of a draft are those of a matcher that takes its tokens one by one.
fn drafted(matcher: &mut dyn Matcher, draft: &[TokenId], taken: usize) {
    let words = matcher.vocabulary_size().div_ceil(32);
    let mut rows = vec![vec![1u32; words]; draft.len() + 1];
    let parents: Vec<Option<usize>> = (0..draft.len()).map(|at| at.checked_sub(1)).collect();
    let allowed =
        draft_masks(matcher, &parents, draft, rows.iter_mut().map(|row| &mut row[..]).collect()).unwrap();
    assert_eq!(allowed, (0..draft.len()).map(|at| at < taken).collect::<Vec<_>>());
    let mut slow = matcher.fork();
    for (at, row) in rows.iter().enumerate() {
        let mut expected = vec![0u32; words];
        if at <= taken {
            slow.write(&mut expected).unwrap();
        }
        assert_eq!(row, &expected, "row {at}");
        if at < taken {
            slow.accept(draft[at]).unwrap();
        }
    }
}
