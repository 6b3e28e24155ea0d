//! Certain text against its slow version: the common beginning of all continuations, spelled out.

use std::collections::BTreeSet;
use std::sync::Arc;

use logitree::constraint::{
    certain, count_closed, BoundOneOf, ByteRecogniser, Certain, Constraint, End, Matcher, PayloadCheck,
    Recogniser, TokenTree,
};
use logitree::vocabulary::Vocabulary;
use logitree::{ErrorKind, Result, TokenId};
use proptest::prelude::*;

use logitree_testing::constraints::{bind, regex};
use logitree_testing::laws::look;
use logitree_testing::plain::Plain;
use logitree_testing::vocabulary::ending_vocabulary;

const TEXTS: [&str; 8] = ["a", "b", "c", "ab", "ba", "abc", "bb", "cab"];
/// The bytes that the slow version spells out.
const SPELLED: usize = 5;

/// Every continuation of up to `SPELLED` bytes, and whether it ends there.
fn continuations(
    matcher: &dyn Matcher,
    vocabulary: &Vocabulary,
    text: &mut Vec<u8>,
    all: &mut Vec<(Vec<u8>, bool)>,
) {
    if matcher.is_accepting() || text.len() >= SPELLED {
        all.push((text.clone(), matcher.is_accepting()));
        return;
    }
    let mut matcher = matcher.fork();
    for token in look(&mut *matcher).allowed.expect("not finished") {
        if !vocabulary.kind(token).is_text() {
            all.push((text.clone(), false));
            continue;
        }
        let mut after = matcher.fork();
        after.accept(token).expect("an allowed token");
        let length = text.len();
        text.extend_from_slice(vocabulary.token_bytes(token));
        continuations(&*after, vocabulary, text, all);
        text.truncate(length);
    }
}

/// The slow version.
fn slowly(matcher: &dyn Matcher, vocabulary: &Vocabulary, most: usize) -> Certain {
    let mut all = Vec::new();
    continuations(matcher, vocabulary, &mut Vec::new(), &mut all);
    let mut bytes = all[0].0.clone();
    for (text, _) in &all {
        let same = bytes.iter().zip(text).take_while(|(a, b)| a == b).count();
        bytes.truncate(same);
    }
    bytes.truncate(most);
    let complete = all.iter().any(|(text, ends)| *ends && *text == bytes);
    Certain { bytes, complete }
}

/// How many of `tokens` are closed, by its words.
fn closed_slowly(matcher: &dyn Matcher, vocabulary: &Vocabulary, tokens: &[TokenId]) -> usize {
    let mut states = vec![matcher.fork()];
    for &token in tokens {
        let mut next = states[states.len() - 1].fork();
        if next.is_finished() || next.accept(token).is_err() {
            break;
        }
        states.push(next);
    }
    let taken = states.len() - 1;
    let is_open = |first: usize| {
        let end: Vec<u8> =
            tokens[first..taken].iter().flat_map(|&id| vocabulary.token_bytes(id)).copied().collect();
        let allowed = look(&mut *states[first].fork()).allowed.unwrap_or_default();
        allowed.iter().any(|&id| {
            let bytes = vocabulary.token_bytes(id);
            vocabulary.kind(id).is_text() && bytes.len() > end.len() && bytes.starts_with(&end)
        })
    };
    (taken.saturating_sub(4)..taken).find(|&first| is_open(first)).unwrap_or(taken)
}

/// Holds every state that is up to three tokens on, and all shorter bounds, against the slow version.
fn hold(matcher: Box<dyn Matcher>, vocabulary: &Vocabulary) {
    let mut left = vec![matcher];
    while let Some(mut matcher) = left.pop() {
        let seen = look(&mut *matcher);
        let mut plain = Plain(matcher.fork());
        for most in 0..=SPELLED {
            let slow = slowly(&*matcher, vocabulary, most);
            assert_eq!(certain(&mut *matcher, vocabulary, most).unwrap(), slow, "{most} bytes");
            assert_eq!(certain(&mut plain, vocabulary, most).unwrap(), slow, "{most} bytes through tokens");
        }
        assert_eq!(look(&mut *matcher), seen, "asking changed something");
        for &token in seen.allowed.iter().flatten() {
            let mut after = matcher.fork();
            after.accept(token).unwrap();
            for second in (0..vocabulary.len() as TokenId).step_by(3) {
                let tokens = [token, second, token];
                let closed = count_closed(&mut *matcher, vocabulary, &tokens).unwrap();
                assert_eq!(closed, closed_slowly(&*matcher, vocabulary, &tokens), "{tokens:?}");
            }
            if seen.accepted < 2 {
                left.push(after);
            }
        }
        assert_eq!(look(&mut *matcher), seen, "counting changed something");
    }
}

fn grammar(pattern: &str, vocabulary: &Arc<Vocabulary>) -> Box<dyn Matcher> {
    bind(regex(pattern).rules().unwrap(), vocabulary).unwrap().matcher().unwrap()
}

/// A recogniser of a few texts.
struct Texts {
    all: BTreeSet<String>,
    read: String,
}

impl ByteRecogniser for Texts {
    fn push(&mut self, byte: u8) -> Result<bool> {
        self.read.push(char::from(byte));
        let is_taken = self.all.iter().any(|text| text.starts_with(&self.read));
        if !is_taken {
            self.read.pop();
        }
        Ok(is_taken)
    }

    fn pop(&mut self, n: usize) -> Result<()> {
        self.read.truncate(self.read.len() - n);
        Ok(())
    }

    fn is_end(&mut self) -> Result<bool> {
        Ok(self.all.contains(&self.read))
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let letter = prop::sample::select(vec!["a", "b", "c", "ab", "[ab]", "abc"]).prop_map(String::from);
    letter.prop_recursive(3, 12, 2, |inner| {
        (inner.clone(), inner, 0..5u8).prop_map(|(a, b, kind)| match kind {
            0 => format!("{a}{b}"),
            1 => format!("({a}|{b})"),
            2 => format!("({a}){{2}}{b}"),
            3 => format!("({a})?{b}"),
            _ => format!("({a})+{b}"),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn of_grammars(pattern in pattern()) {
        let (vocabulary, _) = ending_vocabulary(&TEXTS);
        hold(grammar(&pattern, &vocabulary), &vocabulary);
    }

    #[test]
    fn of_choices(texts in prop::collection::btree_set("[abc]{1,6}", 1..5)) {
        let (vocabulary, _) = ending_vocabulary(&TEXTS);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        hold(BoundOneOf::new(&texts, &vocabulary, &End::default()).unwrap().matcher(), &vocabulary);
    }

    #[test]
    fn of_languages(texts in prop::collection::btree_set("[abc]{1,6}", 1..5)) {
        let (vocabulary, _) = ending_vocabulary(&TEXTS);
        let constraint = Recogniser::new(move || Ok(Box::new(Texts { all: texts.clone(), read: String::new() })));
        hold(constraint.matcher(&vocabulary).unwrap(), &vocabulary);
    }
}

#[test]
fn special_tokens_end_what_is_certain() {
    let (vocabulary, end) = ending_vocabulary(&TEXTS);
    let json =
        format!(r#"{{"descriptors":[{{"path":"p","leaves":[{{"name":"x","tokens":[0,1,{end},2]}}]}}]}}"#);
    let tree = Arc::new(TokenTree::from_json(json.as_bytes(), &PayloadCheck::default()).unwrap());
    let ends = End { vocabulary: Some(Arc::clone(&vocabulary)), ..End::default() };
    let mut matcher = tree.matcher("p", &ends).unwrap();
    let found = certain(&mut *matcher, &vocabulary, 9).unwrap();
    assert_eq!(found, Certain { bytes: b"ab".to_vec(), complete: false });
    for (token, bytes) in [(0, &b"b"[..]), (1, b""), (end, b"c")] {
        matcher.accept(token).unwrap();
        assert_eq!(certain(&mut *matcher, &vocabulary, 9).unwrap().bytes, bytes);
    }
    matcher.accept(2).unwrap();
    assert_eq!(certain(&mut *matcher, &vocabulary, 9).unwrap(), Certain { bytes: vec![], complete: true });
}

#[test]
fn long_searches_give_less_and_small_vocabularies_are_refused() {
    let (vocabulary, _) = ending_vocabulary(&TEXTS);
    let text = "abc".repeat(400);
    let choices = BoundOneOf::new(&[&text], &vocabulary, &End::default()).unwrap();
    let long = certain(&mut Plain(choices.matcher()), &vocabulary, usize::MAX).unwrap();
    assert!(
        !long.bytes.is_empty() && long.bytes.len() < text.len() && text.as_bytes().starts_with(&long.bytes)
    );
    let own = certain(&mut *choices.matcher(), &vocabulary, 300).unwrap();
    assert_eq!((own.bytes.len(), own.complete), (300, false));
    let (small, _) = ending_vocabulary(&["a"]);
    assert_eq!(certain(&mut *choices.matcher(), &small, 9).unwrap_err().kind, ErrorKind::Constraint);
}
