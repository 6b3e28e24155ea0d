//! Skeletons: what they allow and where their spans end, against a reader that tries every end of every span.

use std::sync::Arc;

use logitree::constraint::compose::Composition;
use logitree::constraint::query::bytewise;
use logitree::constraint::skeleton::{
    MarkKind, Skeleton, SkeletonOptions, Span, SpanKind, SpanMark, Tracker,
};
use logitree::constraint::{Constraint, Matcher, TokenTree};
use logitree::constraint::{Descriptor, Leaf, Payload, PayloadCheck};
use logitree::sampling::{presets, Params};
use logitree::vocabulary::Vocabulary;
use logitree::{Decoder, ErrorKind, Stop, TokenId};
use logitree_testing::constraints::regex;
use logitree_testing::{laws, vocabulary::ending_vocabulary};
use proptest::prelude::*;
use serde_json::{json, Value};

/// Where a value began and ended: the span's place, and the bytes.
type Seen = (String, usize, usize);

/// The slow reading of a whole text: every end of every span is tried, the longest first.
struct Oracle<'t> {
    text: &'t str,
    seen: Vec<Seen>,
    chosen: Vec<(String, Value)>,
}

/// What is left to read: spans with their place, whether they lie in a string, and the rest.
enum Left<'l> {
    End,
    Spans { spans: &'l [Span], at: usize, place: String, in_string: bool, then: &'l Left<'l> },
    Close { place: String, from: usize, then: &'l Left<'l> },
    Items { span: &'l Span, place: String, from: usize, count: u32, then: &'l Left<'l> },
}

fn quotes(text: &str, in_string: bool) -> bool {
    let (mut inside, mut escaped) = (in_string, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

fn written(value: &Value, in_string: bool) -> String {
    let json = value.to_string();
    match (in_string, value) {
        (false, _) => json,
        (true, Value::String(_)) => json[1..json.len() - 1].into(),
        (true, _) => json,
    }
}

fn has_space(json: &str) -> bool {
    let (mut inside, mut escaped) = (false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b' ' | b'\n' | b'\t' | b'\r' if !inside => return true,
            _ => {}
        }
        false
    })
}

fn limits(schema: Option<&serde_json::Map<String, Value>>) -> (usize, usize) {
    let of = |name: &str| schema.and_then(|s| s.get(name)).and_then(Value::as_u64).map(|n| n as usize);
    (of("minLength").unwrap_or(0), of("maxLength").unwrap_or(usize::MAX))
}

fn is_value(kind: &SpanKind, text: &str, in_string: bool) -> bool {
    let is_number = |text: &str| {
        text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && serde_json::from_str::<Value>(text).is_ok_and(|v| v.is_number())
    };
    match kind {
        SpanKind::Enum(values) => values.iter().any(|value| written(value, in_string) == text),
        SpanKind::Number(_) => is_number(text) && !has_space(text),
        SpanKind::Boolean => text == "true" || text == "false",
        SpanKind::String(schema) => {
            let quoted = if in_string { format!("\"{text}\"") } else { text.into() };
            let (min, max) = limits(schema.as_ref());
            let read = serde_json::from_str::<String>(&quoted).ok().filter(|_| !has_space(&quoted));
            read.is_some_and(|read| (min..=max).contains(&read.chars().count()))
        }
        SpanKind::Json(_) => !has_space(text) && serde_json::from_str::<Value>(text).is_ok(),
        _ => unreachable!("no value"),
    }
}

impl Oracle<'_> {
    fn read(&mut self, at: usize, left: &Left<'_>) -> bool {
        match left {
            Left::End => at == self.text.len(),
            Left::Close { place, from, then } => {
                self.seen.push((place.clone(), *from, at));
                self.read(at, then) || {
                    self.seen.pop();
                    false
                }
            }
            Left::Items { span, place, from, count, then } => {
                let SpanKind::Array { items, min, max } = &span.kind else { unreachable!("an array") };
                let more = max.is_none_or(|max| *count < max);
                let comma = if *count > 0 { "," } else { "" };
                if more && self.text[at..].starts_with(comma) {
                    let again =
                        Left::Items { span, place: place.clone(), from: *from, count: count + 1, then };
                    let item = Left::Spans {
                        spans: items,
                        at: 0,
                        place: format!("{place}.items"),
                        in_string: false,
                        then: &again,
                    };
                    if self.read(at + comma.len(), &item) {
                        return true;
                    }
                }
                let close = Left::Close { place: place.clone(), from: *from, then };
                count >= min && self.text[at..].starts_with(']') && self.read(at + 1, &close)
            }
            Left::Spans { spans, at: next, place, in_string, then } => {
                let Some(span) = spans.get(*next) else { return self.read(at, then) };
                let here = format!("{place}[{next}]");
                let rest = |in_string: bool| Left::Spans {
                    spans,
                    at: next + 1,
                    place: place.clone(),
                    in_string,
                    then,
                };
                self.span(span, &here, at, *in_string, &rest)
            }
        }
    }

    fn span<'l>(
        &mut self,
        span: &'l Span,
        here: &str,
        at: usize,
        in_string: bool,
        rest: &dyn Fn(bool) -> Left<'l>,
    ) -> bool {
        let text = self.text;
        match &span.kind {
            SpanKind::Literal(literal) => {
                text[at..].starts_with(literal.as_str())
                    && self.read(at + literal.len(), &rest(quotes(literal, in_string)))
            }
            SpanKind::Object(inner) => {
                let then = rest(in_string);
                let close = Left::Close { place: here.into(), from: at, then: &then };
                let inside = Left::Spans {
                    spans: inner,
                    at: 0,
                    place: format!("{here}.spans"),
                    in_string,
                    then: &close,
                };
                self.read(at, &inside)
            }
            SpanKind::Array { .. } => {
                let then = rest(in_string);
                let items = Left::Items { span, place: here.into(), from: at, count: 0, then: &then };
                text[at..].starts_with('[') && self.read(at + 1, &items)
            }
            SpanKind::Switch { on, cases, default } => {
                let (_, value) =
                    self.chosen.iter().rfind(|(key, _)| key == on).expect("an enum before it").clone();
                let name = value.as_str().map_or_else(|| value.to_string(), str::to_string);
                let case = cases.iter().find(|(case, _)| *case == name);
                let (place, spans) = match case {
                    Some((_, spans)) => (format!("{here}.cases.{name}"), spans),
                    None => (format!("{here}.default"), default.as_ref().expect("a default")),
                };
                let then = rest(in_string);
                self.read(at, &Left::Spans { spans, at: 0, place, in_string, then: &then })
            }
            kind => (at..=text.len()).rev().filter(|&end| text.is_char_boundary(end)).any(|end| {
                if !is_value(kind, &text[at..end], in_string) {
                    return false;
                }
                let depth = (self.seen.len(), self.chosen.len());
                self.seen.push((here.into(), at, end));
                if let (SpanKind::Enum(values), Some(key)) = (kind, &span.key) {
                    let value =
                        values.iter().find(|v| written(v, in_string) == text[at..end]).expect("a value");
                    self.chosen.push((key.clone(), value.clone()));
                }
                self.read(end, &rest(in_string)) || {
                    self.seen.truncate(depth.0);
                    self.chosen.truncate(depth.1);
                    false
                }
            }),
        }
    }
}

/// The spans of a whole text, slowly; `None` if it is none of the skeleton's.
fn slowly(skeleton: &Skeleton, text: &str) -> Option<Vec<Seen>> {
    let mut oracle = Oracle { text, seen: Vec::new(), chosen: Vec::new() };
    let all = Left::Spans {
        spans: &skeleton.spans,
        at: 0,
        place: "spans".into(),
        in_string: false,
        then: &Left::End,
    };
    if !oracle.read(0, &all) {
        return None;
    }
    let mut seen = oracle.seen;
    seen.sort();
    Some(seen)
}

/// The values that the marks delimit.
fn values(marks: &[SpanMark], places: &[String]) -> Vec<Seen> {
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    for mark in marks {
        match mark.kind {
            MarkKind::Start => open.push((mark.span, mark.at)),
            MarkKind::End => {
                let (span, from) = open.pop().expect("a span that began");
                assert_eq!(span, mark.span, "spans are nested");
                seen.push((places[span as usize].clone(), from, mark.at));
            }
            MarkKind::Item => {}
        }
    }
    assert!(open.is_empty());
    seen.sort();
    seen
}

/// The readings of a text, byte by byte; `None` where none is left.
fn followed(mut tracker: Tracker, text: &str) -> Option<(Tracker, bool)> {
    let mut settled: Vec<SpanMark> = Vec::new();
    for at in 0..text.len() {
        tracker.push(&text.as_bytes()[at..=at]).ok()?;
        let now = tracker.marks(0);
        assert!(now.starts_with(&settled), "what is settled stays");
        assert_eq!(now.len(), tracker.settled());
        settled = now;
    }
    let complete = tracker.finish();
    Some((tracker, complete))
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec!["a", "ab", "abc", "b", "", "x\"y", "é", "a b"]).prop_map(Value::from),
        prop::sample::select(vec![json!(1), json!(12), json!(true), json!(null), json!(-3)]),
    ]
}

fn enum_span() -> impl Strategy<Value = Value> {
    prop::collection::hash_set(prop::sample::select(vec!["a", "ab", "abc", "b", "x\"y", "é", "a b"]), 1..4)
        .prop_map(|values| json!({"kind": "enum", "key": "e", "enumValues": values.into_iter().collect::<Vec<_>>()}))
}

fn leaf(in_string: bool) -> BoxedStrategy<Value> {
    let literals = match in_string {
        true => vec!["a", "b", " ab", "é", ".", "1", "-", "", "ab", "x"],
        false => vec![",", ":", "{", "}", " ", "1", ".5", "-", "\"k\":", "", "\"a\"", "e"],
    };
    let literal = prop::sample::select(literals).prop_map(|text| json!({"kind": "literal", "value": text}));
    let string = (0u32..3, prop::option::of(3u32..6)).prop_map(|(min, max)| {
        let mut schema = json!({"type": "string", "minLength": min});
        if let Some(max) = max {
            schema["maxLength"] = max.into();
        }
        json!({"kind": "free-string", "schema": schema})
    });
    let values = prop::collection::vec(scalar(), 1..4).prop_map(|mut values| {
        values.dedup();
        json!({"kind": "enum", "enumValues": values})
    });
    let plain = prop::sample::select(vec!["number", "boolean", "free-string", "free-json"])
        .prop_map(|kind| json!({"kind": kind}));
    prop_oneof![4 => literal, 1 => string, 2 => enum_span(), 1 => values, 2 => plain].boxed()
}

/// Lists of spans: those in a string are between two quotes.
fn spans(depth: u32) -> BoxedStrategy<Vec<Value>> {
    let quoted = prop::collection::vec(leaf(true), 0..5).prop_map(|mut inside| {
        inside.insert(0, json!({"kind": "literal", "value": "\""}));
        inside.push(json!({"kind": "literal", "value": "\""}));
        inside
    });
    let one = leaf(false).prop_map(|span| vec![span]);
    let mut any = prop_oneof![3 => one, 2 => quoted].boxed();
    if depth > 0 {
        let array = (spans(depth - 1), 0u32..2, prop::option::of(1u32..3)).prop_map(|(items, min, max)| {
            vec![json!({"kind": "array", "items": items, "minItems": min, "maxItems": max})]
        });
        let object = spans(depth - 1).prop_map(|inner| vec![json!({"kind": "object", "spans": inner})]);
        let switch =
            (enum_span(), spans(depth - 1), spans(depth - 1), leaf(false)).prop_map(|(on, a, b, between)| {
                let mut cases = serde_json::Map::new();
                cases.insert(on["enumValues"][0].as_str().expect("a text").into(), a.into());
                vec![on, between, json!({"kind": "switch", "on": "e", "cases": cases, "default": b})]
            });
        any = prop_oneof![4 => any, 1 => array, 1 => object, 1 => switch].boxed();
    }
    prop::collection::vec(any, 0..5).prop_map(|lists| lists.concat()).boxed()
}

/// A text of the skeleton, by the choices of `pick`; the values of enums by their keys are in `chosen`.
fn example(
    spans: &[Span],
    in_string: bool,
    pick: &mut dyn FnMut(usize) -> usize,
    chosen: &mut Vec<(String, Value)>,
    out: &mut String,
) -> bool {
    let mut inside = in_string;
    for span in spans {
        match &span.kind {
            SpanKind::Literal(text) => {
                inside = quotes(text, inside);
                out.push_str(text);
            }
            SpanKind::Enum(values) => {
                let Some(value) = values.get(pick(values.len().max(1))) else { continue };
                chosen.extend(span.key.clone().map(|key| (key, value.clone())));
                out.push_str(&written(value, inside));
            }
            SpanKind::Number(_) => out.push_str(["0", "-1", "12", "1.5", "2e3", "1e+1"][pick(6)]),
            SpanKind::Boolean => out.push_str(["true", "false"][pick(2)]),
            SpanKind::String(schema) => {
                let (min, max) = limits(schema.as_ref());
                let all = ["", "a", "ab", "ab b", "é\\n", "a\\u0041", "abab", "x ab ab", "\\ud83d\\ude00a"];
                let fits = |text: &&str| {
                    let read: String = serde_json::from_str(&format!("\"{text}\"")).expect("a string");
                    (min..=max).contains(&read.chars().count())
                };
                let fitting: Vec<&str> = all.into_iter().filter(fits).collect();
                let text = fitting[pick(fitting.len())];
                out.push_str(&if inside { text.into() } else { format!("\"{text}\"") });
            }
            SpanKind::Json(_) => {
                out.push_str(
                    ["1", "null", "[1,{\"a\":\"]\"}]", "{}", "\"a\\\"\"", "true", "{\"k\":[2.5,\"\"]}"]
                        [pick(7)],
                );
            }
            SpanKind::Object(inner) => inside = example(inner, inside, pick, chosen, out),
            SpanKind::Array { items, min, max } => {
                let count = *min as usize + pick(3);
                let count = max.map_or(count, |max| count.min(max as usize));
                out.push('[');
                for at in 0..count {
                    out.push_str(if at > 0 { "," } else { "" });
                    example(items, false, pick, chosen, out);
                }
                out.push(']');
            }
            SpanKind::Switch { on, cases, default } => {
                let (_, value) = chosen.iter().rfind(|(key, _)| key == on).expect("an enum before it");
                let name = value.as_str().map_or_else(|| value.to_string(), str::to_string);
                let case = cases.iter().find(|(case, _)| *case == name).map(|(_, spans)| spans);
                let spans = case.or(default.as_ref()).expect("a case").clone();
                example(&spans, inside, pick, chosen, out);
            }
        }
    }
    inside
}

fn places(skeleton: &Skeleton) -> Vec<String> {
    let compiled = skeleton.compile().expect("compiled before");
    compiled.spans().iter().map(|span| span.place.clone()).collect()
}

fn taken(matcher: &mut dyn Matcher, text: &str) -> bool {
    for &byte in text.as_bytes() {
        if matcher.is_finished() || !matcher.take(TokenId::from(byte)).expect("within the limits") {
            return false;
        }
    }
    matcher.is_accepting()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    /// The grammar has the texts that the slow reader has, and the tracker ends each span where it does.
    #[test]
    fn texts_and_spans_are_those_of_the_slow_reader(
        list in spans(2),
        picks in prop::collection::vec(any::<u16>(), 40),
        edit in prop::option::of((any::<u16>(), prop::sample::select(vec!["a", "\"", "1", ",", "ab", "", "]"]))),
    ) {
        let form = json!({"spans": list}).to_string();
        let skeleton = Skeleton::from_json(&form).expect("a sound form");
        let compiled = match skeleton.compile() {
            Ok(compiled) => compiled,
            Err(error) => {
                prop_assert_eq!(error.kind, ErrorKind::Payload, "{}", error);
                prop_assert!(error.place.starts_with("spans["), "{}", error);
                return Ok(());
            }
        };
        let mut next = picks.iter().copied().cycle();
        let mut pick = |n: usize| usize::from(next.next().unwrap_or(0)) % n;
        let mut text = String::new();
        example(&skeleton.spans, false, &mut pick, &mut Vec::new(), &mut text);
        if let Some((at, with)) = edit {
            let cut: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = cut[usize::from(at) % cut.len()];
            let to = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            text.replace_range(at..to, with);
        }
        let expected = slowly(&skeleton, &text);
        prop_assert!(edit.is_some() || expected.is_some(), "{} is no text of {}", text, form);
        let mut matcher = compiled.bind(bytewise::vocabulary(), &SkeletonOptions::default())
            .and_then(|bound| bound.matcher()).expect("within the limits");
        let is_taken = taken(&mut *matcher, &text);
        prop_assert_eq!(is_taken, expected.is_some(), "{} of {}", text, form);
        let Some(expected) = expected else { return Ok(()) };
        let (tracker, complete) = followed(compiled.tracker(), &text).expect("a reading");
        prop_assert!(complete);
        prop_assert_eq!(values(&tracker.marks(0), &places(&skeleton)), expected.clone(), "{} of {}", text, form);
        let mut at_once = compiled.tracker();
        at_once.push(text.as_bytes()).expect("a reading");
        at_once.finish();
        prop_assert_eq!(at_once.marks(0), tracker.marks(0));
        let progress = matcher.spans().expect("a skeleton's").ended();
        prop_assert_eq!(values(&progress.marks(0), &places(&skeleton)), expected);
    }

    /// The laws of matchers, with tokens across the ends of spans; and what is known of spans follows the tokens.
    #[test]
    fn skeletons_keep_the_laws(list in spans(1), script in prop::collection::vec(any::<u16>(), 0..30)) {
        let Ok(skeleton) = Skeleton::from_json(&json!({"spans": list}).to_string()) else { return Ok(()) };
        let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        tokens.extend(["\",", "a\"", "\"a", "ab\",\"", "1,", "],", "{\"", "true}"].map(|t| t.as_bytes().to_vec()));
        let (vocabulary, _) = ending_vocabulary(&tokens);
        let Ok(born) = skeleton.matcher(&vocabulary) else { return Ok(()) };
        laws::hold(&|| born.fork(), &script, &mut |history, _| {
            let mut fresh = born.fork();
            for &token in history {
                fresh.accept(token).expect("accepted before");
            }
            let (a, tokens) = (fresh.spans().expect("a skeleton's"), history.len());
            let again = a.after(tokens.saturating_sub(1)).clone();
            if let Some((last, before)) = history.split_last() {
                let mut back = fresh.fork();
                back.rollback(1).expect("accepted before");
                let b = back.spans().expect("a skeleton's");
                assert_eq!(b.after(before.len()).marks(0), again.marks(0));
                assert_eq!(b.active(), again.active());
                back.accept(*last).expect("accepted before");
                assert_eq!(back.spans().expect("a skeleton's").after(tokens).marks(0), a.after(tokens).marks(0));
            }
        });
    }
}

fn read(form: &Value) -> Skeleton {
    Skeleton::from_json(&form.to_string()).expect("a sound form")
}

fn planner() -> Skeleton {
    read(&json!({"id": "plan", "spans": [
        {"kind": "literal", "value": "{\"action\":\""},
        {"kind": "enum", "key": "action", "enumValues": ["REPLY", "REPLY_THREAD", "MUTE"]},
        {"kind": "literal", "value": "\",\"n\":"},
        {"kind": "number", "key": "n"},
        {"kind": "literal", "value": ",\"thought\":"},
        {"kind": "free-string", "key": "thought"},
        {"kind": "literal", "value": "}"}]}))
}

fn words() -> (Arc<Vocabulary>, TokenId) {
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    tokens.extend(
        ["RE", "PLY", "_THREAD", "PLY\",", "MUTE", "{\"action\":\"", "\",\"n\":"]
            .map(|t| t.as_bytes().to_vec()),
    );
    ending_vocabulary(&tokens)
}

#[test]
fn a_token_may_hold_the_end_of_a_value_and_the_quote_after_it() {
    let (vocabulary, _) = words();
    let mut matcher = planner().matcher(&vocabulary).unwrap();
    for token in [261, 256, 259] {
        matcher.accept(token).unwrap();
    }
    let marks = matcher.spans().unwrap().after(3).marks(0);
    let expected = SpanMark { kind: MarkKind::End, span: 1, at: 16, value: Some(0) };
    assert_eq!(marks[1], expected);
    assert_eq!(matcher.spans().unwrap().active(), None);
    matcher.rollback(1).unwrap();
    assert_eq!(matcher.spans().unwrap().active().unwrap().number, 1);
    matcher.accept(257).unwrap();
    // The value may end here or continue: it is still the active span.
    assert_eq!(matcher.spans().unwrap().active().unwrap().number, 1);
    assert_eq!(matcher.spans().unwrap().after(3).marks(0).len(), 1);
    matcher.accept(258).unwrap();
    let marks = matcher.spans().unwrap().after(4).marks(0);
    assert_eq!((marks[1].at, marks[1].value), (23, Some(1)));
}

#[test]
fn a_token_tree_holds_its_span_to_its_tokens_and_nothing_else() {
    let (vocabulary, _) = words();
    let leaves = [("REPLY", vec![256, 257]), ("REPLY_THREAD", vec![256, 257, 258])];
    let leaves = leaves.map(|(name, tokens)| Leaf { name: name.into(), tokens }).to_vec();
    let payload = |path: &str| Payload {
        model_id: None,
        descriptors: vec![Descriptor { path: path.into(), leaves: leaves.clone() }],
    };
    let tree = |path: &str| Arc::new(TokenTree::new(payload(path), &PayloadCheck::default()).unwrap());
    let compiled = planner().compile().unwrap();
    let options = |path: &str| SkeletonOptions { tree: Some(tree(path)), ..SkeletonOptions::default() };
    let mut matcher = compiled.bind(&vocabulary, &options("action")).unwrap().matcher().unwrap();
    // The text before is spelled with any tokens.
    assert!(matcher.is_allowed(261).unwrap() && matcher.is_allowed(u32::from(b'{')).unwrap());
    matcher.accept(261).unwrap();
    // MUTE has no leaf, and R alone is no token of one.
    let allowed = |matcher: &mut dyn Matcher| -> Vec<TokenId> {
        (0..264).filter(|&token| matcher.is_allowed(token).unwrap()).collect()
    };
    assert_eq!(allowed(&mut *matcher), [256]);
    matcher.accept(256).unwrap();
    assert_eq!(allowed(&mut *matcher), [257]);
    matcher.accept(257).unwrap();
    // The longer leaf, or the text that follows.
    assert_eq!(allowed(&mut *matcher), [u32::from(b'"'), 258, 262]);
    matcher.accept(262).unwrap();
    assert_eq!(matcher.spans().unwrap().active().unwrap().number, 3);
    let error = compiled.bind(&vocabulary, &options("other")).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Constraint);
    assert!(error.message.contains("\"other\"") && error.help.contains("action"), "{error}");
}

#[test]
fn runs_with_tokens_are_forced() {
    let (vocabulary, _) = words();
    let compiled = planner().compile().unwrap();
    let texts: Vec<&str> = compiled.runs().iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["{\"action\":\"", "\",\"n\":", ",\"thought\":", "}"]);
    let bytes = |text: &str| -> Vec<TokenId> { text.bytes().map(TokenId::from).collect() };
    let run_tokens = vec![Some(vec![261]), Some(vec![262]), Some(bytes(",\"thought\":")), None];
    let options = SkeletonOptions { run_tokens, ..SkeletonOptions::default() };
    let mut matcher = compiled.bind(&vocabulary, &options).unwrap().matcher().unwrap();
    let mut forced = Vec::new();
    matcher.forced(&mut forced).unwrap();
    assert_eq!(forced, [261]);
    for token in [261, 260, 262, u32::from(b'4'), u32::from(b',')] {
        matcher.accept(token).unwrap();
    }
    forced.clear();
    matcher.forced(&mut forced).unwrap();
    assert_eq!(forced, bytes("\"thought\":\""));
    let wrong = SkeletonOptions { run_tokens: vec![Some(vec![262]), None, None, None], ..options };
    let error = compiled.bind(&vocabulary, &wrong).err().unwrap();
    assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Constraint, "runs[0].token_ids"));
}

/// Logits that like one token, and a comma a little less.
fn logits(size: usize, likely: TokenId) -> Vec<f32> {
    let of = |token: TokenId| match token {
        _ if token == likely => 3.0,
        0x2c => 2.0,
        _ => (token % 7) as f32 * 0.1,
    };
    (0..size as TokenId).map(of).collect()
}

#[test]
fn enums_and_numbers_take_the_likeliest_token_while_others_are_drawn() {
    let (vocabulary, _) = words();
    let skeleton = planner();
    let mut texts = std::collections::HashSet::new();
    for seed in 0..40 {
        let chain =
            presets::llama_cpp(&Params::default().seed(seed).with("temp", 2.0).with("top_k", 0)).unwrap();
        let matcher = skeleton.matcher(&vocabulary).unwrap();
        let mut decoder = Decoder::new(
            Arc::clone(&vocabulary),
            chain,
            Some(matcher),
            Stop::new(Some(60), vec![], true).unwrap(),
        )
        .unwrap();
        let mut in_enum = Vec::new();
        while decoder.finish().is_none() {
            let active = decoder.spans().and_then(|(_, progress)| progress.active());
            let token = decoder.step(&logits(vocabulary.len(), 260)).unwrap();
            if active.is_some_and(|span| span.number == 1) {
                in_enum.push(token);
            }
        }
        assert_eq!(in_enum, [260], "the likeliest");
        texts.insert(decoder.tokens().to_vec());
    }
    assert!(texts.len() > 20, "the string is drawn: {} texts", texts.len());
}

fn refused(cases: &[(Value, ErrorKind, &str)]) {
    for (form, kind, place) in cases {
        let text = form.to_string();
        let shown: String = text.chars().take(120).collect();
        let error = Skeleton::from_json(&text).and_then(|skeleton| skeleton.compile()).expect_err(&shown);
        assert_eq!(error.kind, *kind, "{shown}: {error}");
        assert!(error.place.starts_with(place), "{shown}: {error}");
    }
}

fn spans_of(spans: &[Value]) -> Value {
    json!({ "spans": spans })
}

#[test]
fn compositions_know_the_spans_of_their_only_skeleton() {
    let (vocabulary, _) = words();
    let plan = Composition::of(Arc::new(planner()));
    let grammar = regex("[^0]*");
    let both = plan.both(&Composition::grammar(grammar)).unwrap();
    for whole in [plan.at_most(90).unwrap(), both] {
        let mut matcher = whole.matcher(&vocabulary).unwrap();
        for token in [261, 256] {
            matcher.accept(token).unwrap();
        }
        let spans = matcher.spans().expect("a skeleton's");
        assert_eq!(spans.active().unwrap().number, 1);
        assert!(spans.active().unwrap().is_greedy);
        assert_eq!(spans.after(2).marks(0).len(), 1);
    }
}

#[test]
fn compositions_keep_the_last_span_once_they_have_ended() {
    let (vocabulary, _) = words();
    let once = Composition::of(Arc::new(planner())).repeat(1, Some(1)).unwrap();
    let mut matcher = once.matcher(&vocabulary).unwrap();
    let rest = "7,\"thought\":\"hi\"}".bytes().map(TokenId::from);
    for token in [261, 260, 262].into_iter().chain(rest) {
        matcher.accept(token).unwrap();
    }
    assert!(matcher.is_finished());
    let marks = matcher.spans().expect("a skeleton's").ended().marks(0);
    let text = "{\"action\":\"MUTE\",\"n\":7,\"thought\":\"hi\"}";
    let (kind, span, at) = (MarkKind::End, 5, text.len() - 1);
    assert_eq!(marks.last(), Some(&SpanMark { kind, span, at, value: None }));
    matcher.fork().rollback(1).unwrap();
    matcher.rollback(3).unwrap();
    assert_eq!(matcher.spans().expect("a skeleton's").active().unwrap().number, 5);
}

#[test]
fn hostile_forms_are_refused_with_their_place() {
    let many: Vec<usize> = (0..1_000_000).collect();
    let deep = (0..200).fold(json!([]), |inner, _| json!([{"kind": "array", "items": inner}]));
    let one = |span: Value| spans_of(&[span]);
    let upside_down = json!({"kind": "array", "items": [], "minItems": 3, "maxItems": 2});
    refused(&[
        (one(json!({"kind": "song"})), ErrorKind::Payload, "spans[0].kind"),
        (one(json!({"kind": "enum", "enumValues": many})), ErrorKind::Limit, "spans[0].enumValues"),
        (one(json!({"kind": "enum", "enumValues": [[1]]})), ErrorKind::Payload, "spans[0].enumValues[0]"),
        (
            one(json!({"kind": "enum", "enumValues": ["a", "a"]})),
            ErrorKind::Payload,
            "spans[0].enumValues[1]",
        ),
        (
            one(json!({"kind": "free-json", "schema": {"type": "word"}})),
            ErrorKind::Constraint,
            "spans[0].schema",
        ),
        (
            one(json!({"kind": "number", "schema": {"type": "string"}})),
            ErrorKind::Payload,
            "spans[0].schema.type",
        ),
        (one(json!({"kind": "number", "schme": {}})), ErrorKind::Payload, "spans[0]"),
        (one(json!({"kind": "array"})), ErrorKind::Payload, "spans[0]"),
        (one(upside_down), ErrorKind::Payload, "spans[0].maxItems"),
        (json!({"spans": 1}), ErrorKind::Payload, "spans"),
        (json!([]), ErrorKind::Payload, ""),
        (spans_of(&vec![json!({"kind": "boolean"}); 5_000]), ErrorKind::Limit, "spans"),
        (json!({ "spans": deep }), ErrorKind::Payload, "line 1 column"),
    ]);
    let cut = Skeleton::from_json("{\"spans\": [").unwrap_err();
    assert!(cut.place.starts_with("line 1"), "{cut}");
    let long = " ".repeat(17 << 20);
    assert_eq!(Skeleton::from_json(&long).unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn spans_whose_ends_nothing_says_are_refused_with_their_place() {
    let quote = json!({"kind": "literal", "value": "\""});
    let digit = json!({"kind": "literal", "value": "1"});
    let point = json!({"kind": "literal", "value": ". "});
    let limited = json!({"kind": "number", "schema": {"maximum": 9}});
    let chosen = json!({"kind": "enum", "key": "a", "enumValues": ["x", "y"]});
    let switch = json!({"kind": "switch", "on": "a", "cases": {"x": []}});
    let (text, any) = (json!({"kind": "free-string"}), json!({"kind": "free-json"}));
    refused(&[
        (spans_of(&[any.clone(), digit.clone()]), ErrorKind::Payload, "spans[0]"),
        (spans_of(&[limited.clone(), digit]), ErrorKind::Payload, "spans[0]"),
        (spans_of(&[quote.clone(), any]), ErrorKind::Payload, "spans[1]"),
        (spans_of(&[quote, text.clone(), text]), ErrorKind::Payload, "spans[1]"),
        (spans_of(std::slice::from_ref(&switch)), ErrorKind::Payload, "spans[0].on"),
        (spans_of(&[chosen, switch]), ErrorKind::Payload, "spans[1].cases"),
    ]);
    assert!(read(&spans_of(&[limited, point])).compile().is_ok());
}

#[test]
fn forms_are_written_as_they_were_read() {
    let form = json!({"spans": [
        {"kind": "literal", "value": "{"},
        {"kind": "enum", "key": "e", "enumValues": ["a", 1, null], "rule": "r"},
        {"kind": "free-string", "schema": {"type": "string", "maxLength": 3}, "sampler": {"temperature": 1}},
        {"kind": "array", "key": "l", "items": [{"kind": "number"}], "minItems": 1, "maxItems": 4},
        {"kind": "object", "key": "o", "spans": [{"kind": "boolean", "key": "o.b"}]},
        {"kind": "switch", "on": "e", "cases": {"a": [{"kind": "free-json"}]}, "default": []}],
        "id": "x"});
    assert_eq!(read(&form).to_json(), form);
    assert_eq!(read(&read(&form).to_json()), read(&form));
}
