//! Reasoning blocks: the laws of matchers, a model that recomputes the state from all tokens so far, and
//! errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use logitree::constraint::{
    accept_all, reasoning::ReasoningStart, BoundReasoning, End, Matcher, PayloadCheck, ReasoningOptions,
};
use logitree::{ErrorKind, TokenId, TokenKind, Vocabulary};
use logitree_testing::constraints::{bind_gbnf, token_tree};
use logitree_testing::laws::{self, look, Seen};
use logitree_testing::vocabulary::{of_tokens, token, vocabulary as vocabulary_of, with_special};
use proptest::prelude::*;

/// Ordinary letters, the bytes of characters in pieces, a special token, and two that end the generation.
const BYTES: [&[u8]; 13] = [
    b"a",
    b"b",
    b"c",
    b"\xe4\xbd",
    b"\xa0",
    b"\xc3",
    b"d\xf0\x9f",
    b"\x98\x80",
    b"\xbd",
    b"\xed",
    b"<s>",
    b"<e>",
    b"<f>",
];
const SIZE: TokenId = 13;
const SPECIAL: TokenId = 10;
const EOG: [TokenId; 2] = [11, 12];

fn vocabulary() -> Arc<Vocabulary> {
    let kind = |id| if id < SPECIAL { TokenKind::Normal } else { TokenKind::Control };
    of_tokens(BYTES.iter().zip(0..).map(|(bytes, id)| token(bytes, kind(id))), &EOG)
}

/// The state, recomputed from all tokens.
struct Model {
    options: ReasoningOptions,
    at: ReasoningStart,
    /// What comes after: these sequences, an end where one is the beginning of another.
    answer: Option<BTreeSet<Vec<TokenId>>>,
}

/// `allowed` is `None` where all is.
type Report = (bool, bool, Option<BTreeSet<TokenId>>, Option<(TokenId, u32)>);

fn all() -> BTreeSet<TokenId> {
    (0..SIZE).collect()
}

/// The tokens by which the stream would end with one of `tags`, or, where the first decides, all first tokens.
fn completing(tags: &[Vec<TokenId>], stream: &[TokenId], whole: bool) -> BTreeSet<TokenId> {
    all()
        .into_iter()
        .filter(|&token| match whole {
            true => tags.iter().any(|tag| [stream, &[token]].concat().ends_with(tag)),
            false => tags.iter().any(|tag| tag[0] == token),
        })
        .collect()
}

fn ways_on(tags: &[Vec<TokenId>], before: &[TokenId]) -> BTreeSet<TokenId> {
    let longer = tags.iter().filter(|tag| tag.len() > before.len() && tag.starts_with(before));
    longer.map(|tag| tag[before.len()]).collect()
}

impl Model {
    fn answer(&self, history: &[TokenId]) -> Report {
        let t = &self.options;
        if t.budget == Some(0) {
            let close = match self.at {
                ReasoningStart::Outside => Vec::new(),
                _ => [&t.message[..], &t.end[0][..]].concat(),
            };
            let Some(rest) = history.strip_prefix(&close[..]) else {
                return (false, false, Some([close[history.len()]].into()), None);
            };
            return match &self.answer {
                Some(_) => self.outside(rest, usize::MAX),
                None => (true, false, None, None),
            };
        }
        match self.at {
            ReasoningStart::Outside => self.outside(history, 0),
            ReasoningStart::Inside => self.inside(history, 1),
            ReasoningStart::Closing => self.forced(history, 1),
        }
    }

    fn may_begin(&self, had: usize) -> bool {
        self.options.max_blocks.is_none_or(|most| had < most) && had != usize::MAX
    }

    fn outside(&self, h: &[TokenId], had: usize) -> Report {
        let t = &self.options;
        if let Some(answer) = &self.answer {
            return self.before_answer(answer, h, had);
        }
        for n in 0..h.len() {
            if self.may_begin(had) && t.whole {
                if t.begin.iter().any(|b| h[..=n].ends_with(b)) {
                    return self.inside(&h[n + 1..], had + 1);
                }
            } else if self.may_begin(had) && t.begin.iter().any(|b| b[0] == h[n]) {
                return self.opening(&h[n..], had);
            }
        }
        let mut allowed = all();
        allowed.retain(|id| !completing(&t.end, h, t.whole).contains(id));
        if !self.may_begin(had) {
            allowed.retain(|id| !completing(&t.begin, h, t.whole).contains(id));
        }
        (true, false, Some(allowed), None)
    }

    fn opening(&self, h: &[TokenId], had: usize) -> Report {
        match self.options.begin.iter().find(|b| h.starts_with(b)) {
            Some(b) => self.inside(&h[b.len()..], had + 1),
            None => (false, false, Some(ways_on(&self.options.begin, h)), None),
        }
    }

    fn before_answer(&self, answer: &BTreeSet<Vec<TokenId>>, h: &[TokenId], had: usize) -> Report {
        let t = &self.options;
        let begin = if self.may_begin(had) { &t.begin[..] } else { &[] };
        let over = |n: usize| finished(answer, &h[..n]);
        if !t.whole && !h.is_empty() && begin.iter().any(|b| b[0] == h[0]) {
            return self.opening(h, had);
        }
        if let Some(b) = begin.iter().find(|b| h.starts_with(b) && !(0..b.len()).any(over)) {
            return self.inside(&h[b.len()..], had + 1);
        }
        if over(h.len()) {
            return (true, true, None, None);
        }
        let answers = can_be(answer, h);
        let accepting = answers && answer.contains(h);
        let mut allowed = ways_on(begin, h);
        if answers {
            let sequences: Vec<Vec<TokenId>> = answer.iter().cloned().collect();
            allowed.extend(ways_on(&sequences, h));
            allowed.extend(accepting.then_some(EOG[0]));
        }
        (accepting, false, Some(allowed), None)
    }

    fn forced(&self, h: &[TokenId], had: usize) -> Report {
        let forced = [&self.options.message[..], &self.options.end[0][..]].concat();
        match h.strip_prefix(&forced[..]) {
            Some(rest) => self.outside(rest, had),
            None => (false, false, Some([forced[h.len()]].into()), None),
        }
    }

    fn inside(&self, h: &[TokenId], had: usize) -> Report {
        let t = &self.options;
        for n in 0..=h.len() {
            if t.budget.is_some_and(|budget| n >= budget) && self.completing(&h[..n]).is_empty() {
                return self.forced(&h[n..], had);
            }
            if n == h.len() {
                break;
            }
            if t.whole && t.end.iter().any(|e| h[..=n].ends_with(e)) {
                return self.outside(&h[n + 1..], had);
            }
            if !t.whole && t.end.iter().any(|e| e[0] == h[n]) {
                return match t.end.iter().find(|e| h[n..].starts_with(e)) {
                    Some(e) => self.outside(&h[n + e.len()..], had),
                    None => (false, false, Some(ways_on(&t.end, &h[n..])), None),
                };
            }
        }
        let mut allowed = all();
        let is_spent = t.budget.is_some_and(|budget| h.len() >= budget);
        if is_spent {
            allowed = self.completing(h);
        } else {
            allowed.retain(|id| !completing(&t.begin, h, t.whole).contains(id));
            if self.answer.is_some() {
                allowed.retain(|id| !EOG.contains(id));
            }
        }
        let bias = self.bias(h).filter(|(token, _)| allowed.contains(token));
        (false, false, Some(allowed), bias.map(|(token, by)| (token, by.to_bits())))
    }

    fn bias(&self, h: &[TokenId]) -> Option<(TokenId, f32)> {
        let t = &self.options;
        let (soft, budget) = (t.soft?, t.budget?);
        if h.len() < soft || h.len() >= budget {
            return None;
        }
        // The longest beginning of any end with which the reasoning block ends; it continues to the first end.
        let on = |n: &usize| t.end.iter().any(|e| e.starts_with(&h[h.len() - n..]));
        let n = if t.whole { (0..=h.len()).rev().find(on).unwrap_or(0) } else { 0 };
        let token = if t.end[0].starts_with(&h[h.len() - n..]) { t.end[0][n] } else { t.end[0][0] };
        let by = f64::from(t.ramp) * ((h.len() - soft + 1) as f64 / (budget - soft) as f64);
        Some((token, by as f32))
    }

    /// The tokens that complete the reasoning block's last character, by the standard library.
    fn completing(&self, h: &[TokenId]) -> BTreeSet<TokenId> {
        let text = h.rsplit(|&token| token >= SPECIAL).next().unwrap_or_default();
        let bytes: Vec<u8> = text.iter().flat_map(|&token| BYTES[token as usize].to_vec()).collect();
        let cut = |bytes: &[u8]| std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none());
        let Some(tail) = (1..=3.min(bytes.len())).map(|n| &bytes[bytes.len() - n..]).find(|tail| cut(tail))
        else {
            return BTreeSet::new();
        };
        let goes_on = |id: &TokenId| {
            let whole = [tail, BYTES[*id as usize]].concat();
            *id < SPECIAL
                && (cut(&whole) || std::str::from_utf8(&whole).is_ok_and(|s| s.chars().count() == 1))
        };
        let of_a_begin = |id: &TokenId| self.options.begin.iter().any(|b| b.contains(id));
        all().into_iter().filter(|id| goes_on(id) && !of_a_begin(id)).collect()
    }

    fn expect(&self, history: &[TokenId], seen: &Seen) {
        let (accepting, finished, allowed, bias) = self.answer(history);
        let place = format!("after {history:?}, {:?}, {:?}, {:?}", self.options, self.at, self.answer);
        assert_eq!(seen.finished, finished, "finished {place}");
        assert_eq!(seen.accepting, accepting, "accepting {place}");
        assert_eq!(seen.allowed, allowed.map(|allowed| allowed.into_iter().collect()), "allowed {place}");
        assert_eq!(seen.bias, bias, "bias {place}");
    }
}

/// Whether the answer is over at or before the end of `h`.
fn finished(answer: &BTreeSet<Vec<TokenId>>, h: &[TokenId]) -> bool {
    let sequences: Vec<Vec<TokenId>> = answer.iter().cloned().collect();
    (0..=h.len()).any(|n| {
        let ended = n > 0 && h[n - 1] == EOG[0] && answer.contains(&h[..n - 1]);
        can_be(answer, &h[..n]) && answer.contains(&h[..n]) && ways_on(&sequences, &h[..n]).is_empty()
            || ended && !ways_on(&sequences, &h[..n - 1]).is_empty()
    })
}

/// Whether `h` is the beginning of an answer.
fn can_be(answer: &BTreeSet<Vec<TokenId>>, h: &[TokenId]) -> bool {
    answer.iter().any(|sequence| sequence.starts_with(h))
}

/// Whether it must be refused, by the words of `BoundReasoning::new`.
fn is_refused(t: &ReasoningOptions) -> bool {
    let distinct: BTreeSet<&Vec<TokenId>> = t.begin.iter().collect();
    let ends: BTreeSet<&Vec<TokenId>> = t.end.iter().collect();
    let tags: Vec<&Vec<TokenId>> = distinct.iter().chain(&ends).copied().collect();
    let used: BTreeSet<TokenId> =
        tags.iter().copied().chain([&t.message]).flatten().copied().chain(EOG).collect();
    let inside = |a: &[TokenId], b: &[TokenId]| a.windows(b.len()).any(|w| w == b);
    // Begins that count when they are complete may end alike.
    let alike = |i: usize, j: usize, a: &[TokenId], b: &[TokenId]| {
        t.whole && i.max(j) < distinct.len() && a.ends_with(b) && !inside(&a[..a.len() - 1], b)
    };
    let contains =
        |i: usize, j: usize, a: &[TokenId], b: &[TokenId]| i != j && inside(a, b) && !alike(i, j, a, b);
    tags.iter().enumerate().any(|(i, a)| tags.iter().enumerate().any(|(j, b)| contains(i, j, a, b)))
        || tags.iter().any(|tag| inside(&t.message, tag))
        || tags.iter().copied().chain([&t.message]).flatten().any(|id| EOG.contains(id))
        || used.len() == SIZE as usize
        || !t.whole && distinct.iter().any(|b| ends.iter().any(|e| b[0] == e[0]))
        || t.soft.is_some() && t.budget.is_none()
        || t.budget.is_some_and(|budget| budget > 0 && t.soft.is_some_and(|soft| soft >= budget))
}

fn tags() -> impl Strategy<Value = Vec<Vec<TokenId>>> {
    let tag = prop::collection::vec(prop_oneof![8 => 0..5u32, 3 => 5..11u32, 1 => 11..13u32], 1..4);
    prop::collection::vec(tag, 1..3)
}

fn options() -> impl Strategy<Value = ReasoningOptions> {
    let message = prop_oneof![Just(vec![]), prop::collection::vec(0..11u32, 1..3)];
    let budget = prop::option::of(0usize..7);
    let soft = prop::option::of(0usize..6);
    let max_blocks = prop::option::of(0usize..3);
    (tags(), tags(), message, budget, soft, max_blocks, any::<bool>()).prop_map(
        |(begin, end, message, budget, soft, max_blocks, whole)| ReasoningOptions {
            begin,
            end,
            message,
            budget,
            soft: soft.filter(|_| budget.is_some()),
            ramp: 3.5,
            max_blocks,
            whole,
        },
    )
}

/// A token tree of these sequences.
fn answers(sequences: &BTreeSet<Vec<TokenId>>) -> Option<Box<dyn Matcher>> {
    let tree = token_tree(&Vec::from_iter(sequences), &PayloadCheck::default()).unwrap();
    tree.matcher("p", &End { tokens: Some(vec![EOG[0]]), ..End::default() }).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6_000) })]

    #[test]
    fn the_laws_and_the_model(
        options in options(),
        at in prop::sample::select(vec![ReasoningStart::Outside, ReasoningStart::Inside, ReasoningStart::Closing]),
        answer in prop::option::of(prop::collection::btree_set(prop::collection::vec(0..11u32, 1..4), 1..4)),
        script in prop::collection::vec(any::<u16>(), 0..60),
    ) {
        let vocabulary = vocabulary();
        let reasoning = match BoundReasoning::new(options.clone(), &vocabulary) {
            Err(error) => {
                prop_assert!(is_refused(&options), "{}", error);
                prop_assert_eq!(error.kind, ErrorKind::Constraint);
                return Ok(());
            }
            Ok(reasoning) => reasoning,
        };
        prop_assert!(!is_refused(&options), "{:?}", options);
        let fresh = || reasoning.matcher(at, answer.as_ref().and_then(answers));
        if at != ReasoningStart::Outside && options.max_blocks == Some(0) {
            prop_assert_eq!(fresh().err().unwrap().kind, ErrorKind::Constraint);
            return Ok(());
        }
        let model = Model { options, at, answer: answer.clone() };
        laws::hold(&|| fresh().unwrap(), &script, &mut |history, seen| model.expect(history, seen));
    }
}

/// Two letters to a token, 676 of them, and an end: a grammar's allowed tokens are too many for a list.
fn pairs() -> Arc<Vocabulary> {
    let letters = || b'a'..=b'z';
    let words = letters().flat_map(|a| letters().map(move |b| vec![a, b]));
    with_special(&words.collect::<Vec<_>>(), &["<end>"], &[676])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// A begin of ordinary tokens beside a grammar that takes them too, at times.
    #[test]
    fn the_laws_beside_a_grammar(
        whole in any::<bool>(),
        takes in any::<bool>(),
        script in prop::collection::vec((0u16..16, prop_oneof![0u16..3, any::<u16>()]), 0..30),
    ) {
        let vocabulary = pairs();
        let text = if takes { "root ::= [a-y]+ \"z\"" } else { "root ::= [b-y] [a-y]* \"z\"" };
        let grammar = bind_gbnf(text, &vocabulary);
        // "aaab", "aaac" and "ad" begin; "aa" is token 0.
        let begin = vec![vec![0, 1], vec![0, 2], vec![3]];
        let end = vec![vec![4, 5]];
        let options =
            ReasoningOptions { begin, end, budget: Some(3), max_blocks: None, whole, ..ReasoningOptions::default() };
        let reasoning = BoundReasoning::new(options, &vocabulary).unwrap();
        let fresh = || reasoning.matcher(ReasoningStart::Outside, Some(grammar.matcher().unwrap())).unwrap();
        let born = look(&mut *fresh()).allowed.unwrap();
        let mut answers = look(&mut *grammar.matcher().unwrap()).allowed.unwrap();
        prop_assert!(answers.len() > 400);
        prop_assert_eq!(takes, answers.contains(&0));
        answers.extend([0, 3]);
        answers.sort_unstable();
        answers.dedup();
        prop_assert_eq!(born, answers);
        let script: Vec<u16> = script.iter().map(|(action, pick)| action | (pick % 4096) << 4).collect();
        laws::hold(&fresh, &script, &mut |history, seen| {
            if whole && history == [0] {
                let mut slow = grammar.matcher().unwrap();
                let goes_on = if slow.accept(0).is_ok() { look(&mut *slow).allowed.unwrap() } else { Vec::new() };
                let all: BTreeSet<TokenId> = goes_on.into_iter().chain([1, 2]).collect();
                assert_eq!(seen.allowed, Some(all.into_iter().collect()));
            }
        });
    }
}

fn small(change: impl FnOnce(&mut ReasoningOptions)) -> logitree::Result<BoundReasoning> {
    let mut options = ReasoningOptions {
        begin: vec![vec![0]],
        end: vec![vec![1, 2]],
        budget: Some(3),
        ..ReasoningOptions::default()
    };
    change(&mut options);
    BoundReasoning::new(options, &vocabulary())
}

#[test]
fn what_means_nothing_is_refused() {
    type Change = fn(&mut ReasoningOptions);
    let cases: [(Change, &str, &str); 16] = [
        (|t| t.begin = vec![], "without begin", "begin"),
        (|t| t.end = vec![], "without end", "end"),
        (|t| t.end = vec![vec![]], "the end of a reasoning block is empty", "end"),
        (|t| t.begin = vec![vec![3], vec![]], "the begin[1] of a reasoning block is empty", "begin[1]"),
        (|t| t.begin = vec![vec![1, 2]], "same tokens", "begin"),
        (|t| t.begin = vec![vec![3, 1, 2]], "begin contains end", "begin"),
        (|t| t.end = vec![vec![1, 0]], "end contains begin", "end"),
        (|t| t.end = vec![vec![1, 2], vec![1, 2, 3]], "end[1] contains end[0]", "end[1]"),
        (|t| t.message = vec![4, 1, 2], "message contains end", "message"),
        (|t| t.begin = vec![vec![1, 3]], "same first token, 1", "begin"),
        (|t| t.begin = vec![vec![13]], "token id 13", "begin"),
        (|t| t.message = vec![u32::MAX], "token id 4294967295", "message"),
        (|t| t.end = vec![vec![12]], "token 12 of the end ends the generation", "end"),
        (|t| t.soft = Some(3), "not below the budget", "soft"),
        (|t| (t.soft, t.budget) = (Some(3), None), "without a budget", "soft"),
        (|t| t.ramp = f32::NAN, "NaN logits", "ramp"),
    ];
    for (change, message, place) in cases {
        let error = small(change).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.place, place, "{error}");
        assert!(!error.help.is_empty(), "{error}");
    }
    let alike = |whole| small(|t| (t.begin, t.whole) = (vec![vec![3, 0], vec![0]], whole));
    assert!(alike(false).unwrap_err().message.contains("begin[0] contains begin[1]"));
    assert!(small(|t| (t.begin, t.whole) = (vec![vec![0, 3], vec![0]], true)).is_err());
    for tokens in [&[3, 0][..], &[0]] {
        let mut matcher = alike(true).unwrap().matcher(ReasoningStart::Outside, None).unwrap();
        accept_all(&mut *matcher, tokens).unwrap();
        assert!(!matcher.is_accepting());
        accept_all(&mut *matcher, &[1, 2]).unwrap();
        assert!(matcher.is_accepting());
    }
    let error = small(|t| t.message = vec![3; 5_000]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
    let few = vocabulary_of(&["a", "b"]);
    let options =
        ReasoningOptions { begin: vec![vec![0]], end: vec![vec![1]], ..ReasoningOptions::default() };
    let error = BoundReasoning::new(options, &few).unwrap_err();
    assert!(error.message.contains("every token"), "{error}");
}

#[test]
fn a_huge_budget_is_none_that_anybody_meets() {
    let reasoning = small(|t| (t.budget, t.soft) = (Some(usize::MAX), Some(usize::MAX - 1))).unwrap();
    let mut matcher = reasoning.matcher(ReasoningStart::Inside, None).unwrap();
    (0..2_000).for_each(|_| matcher.accept(4).unwrap());
    assert_eq!(look(&mut *matcher).allowed.unwrap().len(), SIZE as usize - 1);
    matcher.rollback(2_000).unwrap();
    assert_eq!(matcher.accepted(), 0);
}

#[test]
fn a_prompt_tells_where_it_leaves_off_and_tokens_where_the_answer_starts() {
    let reasoning = small(|t| (t.begin, t.max_blocks) = (vec![vec![0, 3]], None)).unwrap();
    let cases: [(&[TokenId], ReasoningStart); 6] = [
        (&[], ReasoningStart::Outside),
        (&[5, 0, 3], ReasoningStart::Inside),
        (&[0, 4, 3], ReasoningStart::Outside),
        (&[0, 3, 4, 1, 2], ReasoningStart::Outside),
        (&[1, 2, 0, 3, 1, 4], ReasoningStart::Inside),
        (&[0, 3, 1, 2, 0, 3, 0], ReasoningStart::Inside),
    ];
    for (prompt, at) in cases {
        assert_eq!(reasoning.after(prompt), at, "{prompt:?}");
    }
    // "ab" begins and "bc" ends, in whatever tokens; a special token is no text.
    let words = [&b"a"[..], b"b", b"c", b"xab", b"bcab", b"bcx", b"ab", b"abc"];
    let vocabulary = with_special(&words, &["ab"], &[]);
    let tags = ReasoningOptions {
        begin: vec![vec![0, 1]],
        end: vec![vec![1, 2]],
        whole: true,
        ..ReasoningOptions::default()
    };
    let textual = BoundReasoning::new(tags, &vocabulary).unwrap();
    let cases: [(&[TokenId], ReasoningStart); 8] = [
        (&[3], ReasoningStart::Inside),
        (&[6, 2], ReasoningStart::Inside),
        (&[7], ReasoningStart::Inside),
        (&[6, 5], ReasoningStart::Outside),
        (&[6, 4], ReasoningStart::Inside),
        (&[6, 1, 2, 8], ReasoningStart::Outside),
        (&[0, 8, 1], ReasoningStart::Outside),
        (&[0, 1, 0, 1, 2], ReasoningStart::Outside),
    ];
    for (prompt, at) in cases {
        assert_eq!(textual.after(prompt), at, "{prompt:?}");
    }
    let cases: [(&[TokenId], ReasoningStart, usize); 7] = [
        (&[4, 5], ReasoningStart::Outside, 0),
        (&[4, 5], ReasoningStart::Inside, 2),
        (&[4, 1, 2, 5, 0, 3, 1, 2], ReasoningStart::Inside, 3),
        (&[1, 2, 0, 3, 4, 1, 2, 5], ReasoningStart::Inside, 7),
        (&[1, 2, 0, 4], ReasoningStart::Inside, 2),
        (&[0, 3, 4, 4], ReasoningStart::Outside, 4),
        (&[1, 2, 5], ReasoningStart::Closing, 2),
    ];
    for (tokens, at, leading) in cases {
        assert_eq!(reasoning.leading(tokens, at), leading, "{tokens:?}");
    }
}

#[test]
fn an_answer_that_had_begun_elsewhere_goes_on_where_it_was() {
    let answer = [vec![4, 5, 6]].into();
    let mut begun = answers(&answer).unwrap();
    begun.accept(4).unwrap();
    let mut matcher = small(|_| {}).unwrap().matcher(ReasoningStart::Inside, Some(begun)).unwrap();
    accept_all(&mut *matcher, &[3, 1, 2, 5, 6]).unwrap();
    assert!(matcher.is_finished());
    matcher.reset();
    accept_all(&mut *matcher, &[1, 2]).unwrap();
    assert_eq!(look(&mut *matcher).forced, [5, 6]);
}
