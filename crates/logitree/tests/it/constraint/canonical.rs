//! Canonical matchers of random tokenizers: the laws, and exactly the beginnings of what the tokenizer gives for a text of a
//! finite constraint.

use std::collections::BTreeSet;
use std::sync::Arc;

use logitree::constraint::{
    BoundGrammar, BoundOneOf, Canonical, Composition, Constraint, End, GrammarLimits, Matcher,
};
use logitree::decoder::{Decoder, Stop};
use logitree::grammar::ast::{Grammar, Syntax};
use logitree::grammar::gbnf;
use logitree::sampling::{presets, Chain, Mode, Params};
use logitree::{ErrorKind, TokenId, Tokenizer};
use logitree_testing::laws;
use logitree_testing::plain::Plain;
use proptest::prelude::*;

const GPT2: &str = r#"{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}"#;
const LLAMA3: &str = r#"{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    },"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}"#;
const DIGITS: &str = r#"{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
    {"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]}"#;
/// No piece ends before the text does.
const WHOLE: &str = r#"{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}"#;

/// The bytes that texts are made of, each as the table of byte-level encodings writes it.
const UNITS: [(u8, char); 12] = [
    (b'a', 'a'),
    (b'b', 'b'),
    (b's', 's'),
    (b'\'', '\''),
    (b' ', 'Ġ'),
    (b'\n', 'Ċ'),
    (b'1', '1'),
    (0xc3, 'Ã'),
    (0xa9, '©'),
    (0xe4, 'ä'),
    (0xb8, '¸'),
    (0xad, 'Ń'),
];

type Joins = Vec<(prop::sample::Index, prop::sample::Index)>;

/// The units, tokens joined from earlier ones, a user-defined token and an end.
fn tokenizer(joins: &Joins, split: &str, ignore_merges: bool) -> (Arc<Tokenizer>, TokenId) {
    let mut texts: Vec<String> = UNITS.iter().map(|unit| unit.1.to_string()).collect();
    let mut merges = Vec::new();
    for (left, right) in joins {
        let (left, right) = (left.index(texts.len()), right.index(texts.len()));
        let joined = format!("{}{}", texts[left], texts[right]);
        if joined.chars().count() > 6 {
            continue;
        }
        merges.push(format!("{} {}", texts[left], texts[right]));
        if !texts.contains(&joined) {
            texts.push(joined);
        }
    }
    let vocab: Vec<String> =
        texts.iter().enumerate().map(|(id, text)| format!("{}:{id}", serde(text))).collect();
    let merges: Vec<String> = merges.iter().map(|merge| serde(merge)).collect();
    let (user, end) = (texts.len(), texts.len() + 1);
    let json = format!(
        r#"{{"model":{{"type":"BPE","ignore_merges":{ignore_merges},"vocab":{{{}}},"merges":[{}]}},
        "pre_tokenizer":{split},"decoder":{{"type":"ByteLevel"}},"added_tokens":[
        {{"id":{user},"content":"bas","special":false}},{{"id":{end},"content":"</s>","special":true}}]}}"#,
        vocab.join(","),
        merges.join(",")
    );
    let made = Tokenizer::from_tokenizer_json_bytes(json.as_bytes()).expect("a sound tokenizer");
    (Arc::new(made), end as TokenId)
}

fn serde(text: &str) -> String {
    format!("{text:?}")
}

fn split() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![GPT2, LLAMA3, DIGITS, WHOLE])
}

fn text(most: usize) -> impl Strategy<Value = String> {
    let units = ["a", "b", "s", "'", " ", "\n", "1", "\u{e9}", "\u{4e2d}", "  ", "as", "bas"];
    prop::collection::vec(prop::sample::select(units.to_vec()), 0..most).prop_map(|units| units.concat())
}

fn joins() -> impl Strategy<Value = Joins> {
    prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..30)
}

fn rules_of(which: usize) -> Arc<logitree::grammar::rules::Rules> {
    let rules = [
        "root ::= [ab ']{0,9}",
        "root ::= [a\\n ]{3,12} [1\u{e9}]*",
        "root ::= (\"bas\" | [as]{2,5})*",
        "root ::= \"as\" [^b]{0,7} \"b1\"",
    ];
    Arc::new(gbnf::parse(rules[which]).unwrap())
}

/// A chain that takes the greatest logit, at least at first.
fn chain(kind: usize) -> Chain {
    let params = Params::default().seed(7).with("temp", 0.0).with("top_k", 5);
    match kind {
        0 => presets::greedy(),
        1 => presets::llama_cpp(&params).unwrap(),
        2 => presets::llama_cpp(&params.with("min_p", 0.3).with("penalty_repeat", 1.2)).unwrap(),
        3 => presets::llama_cpp(&params.with("xtc_probability", 1.0)).unwrap(),
        _ => presets::llama_cpp(&params).unwrap().with_mode(Mode::Parity).unwrap(),
    }
}

/// What a matcher must show after `history`: the beginnings of `all`, and `end` where one is complete.
fn expect(
    plain: &dyn Matcher,
    all: &BTreeSet<Vec<TokenId>>,
    end: TokenId,
    history: &[TokenId],
    seen: &laws::Seen,
) {
    let mut plain = plain.fork();
    history.iter().for_each(|&token| plain.accept(token).expect("the other matcher allows it"));
    assert_eq!(seen.finished, plain.is_finished(), "finished after {history:?}");
    if plain.is_finished() {
        return;
    }
    let longer = all.iter().filter(|s| s.len() > history.len() && s.starts_with(history));
    let mut allowed: BTreeSet<TokenId> = longer.map(|s| s[history.len()]).collect();
    let complete = all.contains(history);
    if complete {
        allowed.insert(end);
    }
    assert_eq!(seen.accepting, complete, "accepting after {history:?}");
    assert_eq!(seen.allowed, Some(allowed.into_iter().collect()), "allowed after {history:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn of_choices_exactly_the_encodings_are_left(
        joins in joins(),
        split in split(),
        ignore_merges in any::<bool>(),
        texts in prop::collection::vec(text(7), 1..8),
        script in prop::collection::vec(any::<u16>(), 0..25),
    ) {
        let (tokenizer, end) = tokenizer(&joins, split, ignore_merges);
        let ends = End { tokens: Some(vec![end]), ..End::default() };
        let Ok(choices) = BoundOneOf::new(&texts, tokenizer.vocabulary(), &ends) else { return Ok(()) };
        let all: BTreeSet<Vec<TokenId>> = texts.iter().map(|text| tokenizer.encode(text).unwrap()).collect();
        let plain = choices.matcher();
        if plain.is_finished() {
            return Ok(());
        }
        let made = Canonical::new(&*plain, &tokenizer, &[]).expect("every text has an encoding");
        laws::hold(&|| made.fork(), &script, &mut |history, seen| expect(&*plain, &all, end, history, seen));
    }

    #[test]
    fn of_grammars_exactly_the_encodings_are_left(
        joins in joins(),
        split in split(),
        which in 0usize..5,
        script in prop::collection::vec(any::<u16>(), 0..25),
    ) {
        let (tokenizer, end) = tokenizer(&joins, split, false);
        let (rules, letters, most): (_, &[&str], _) = [
            ("root ::= [ab ']{0,4}", &["a", "b", " ", "'"][..], 4),
            ("root ::= [a\\n ]{0,5}", &["a", "\n", " "], 5),
            ("root ::= [1\u{e9}\u{4e2d}]{0,3}", &["1", "\u{e9}", "\u{4e2d}"], 3),
            ("root ::= [bas]{0,4}", &["b", "a", "s"], 4),
            ("root ::= [abs' 1\\n]{0,4}", &["a", "b", "s", "'", " ", "1", "\n"], 4),
        ][which];
        let mut texts = vec![String::new()];
        let mut from = 0;
        for _ in 0..most {
            let to = texts.len();
            for n in from..to {
                texts.extend(letters.iter().map(|letter| format!("{}{letter}", texts[n])).collect::<Vec<_>>());
            }
            from = to;
        }
        let all: BTreeSet<Vec<TokenId>> = texts.iter().map(|text| tokenizer.encode(text).unwrap()).collect();
        let rules = Arc::new(gbnf::parse(rules).unwrap());
        let grammar = BoundGrammar::new(rules, tokenizer.vocabulary(), Some(&[end]), GrammarLimits::default()).unwrap();
        let plain = grammar.matcher().unwrap();
        let made = Canonical::new(&*plain, &tokenizer, &[]).expect("every text has an encoding");
        laws::hold(&|| made.fork(), &script, &mut |history, seen| expect(&*plain, &all, end, history, seen));
    }

    /// Of a language that is walked state by state the same is left as of the grammar that it is equal to, and one token is
    /// decided as the whole mask is.
    #[test]
    fn of_compositions_the_same_is_left_as_of_equal_grammars(
        joins in joins(),
        split in split(),
        ignore_merges in any::<bool>(),
        which in 0usize..4,
        script in prop::collection::vec(any::<u16>(), 0..25),
    ) {
        let (tokenizer, _) = tokenizer(&joins, split, ignore_merges);
        let text = [
            "root ::= \"a\" root \"b\" | [s ]{0,3}",
            "root ::= \"1\" root? [' ]{1,2} | \"bas\"",
            "root ::= \"a\" root | \"\\n\" root \"s\" | \"\u{e9}\"",
            "root ::= [a-b ] root \"'\" | [1s]{2,9} | \"\u{4e2d}\" root \"s\"",
        ][which];
        let node = Grammar::read(Syntax::Gbnf { text: text.into(), root: "root".into() }).unwrap();
        let part = Composition::from(node.clone());
        let both = part.both(&part).unwrap().matcher(tokenizer.vocabulary()).unwrap();
        prop_assert!(both.byte_walk().is_some(), "states are numbered");
        let plain = Constraint::matcher(&node, tokenizer.vocabulary()).unwrap();
        let mut left = Canonical::new(&*both, &tokenizer, &[]).unwrap();
        let mut right = Canonical::new(&*plain, &tokenizer, &[]).unwrap();
        // One that is never asked for a whole mask.
        let mut alone = Canonical::new(&*plain, &tokenizer, &[]).unwrap();
        let size = tokenizer.vocabulary().len();
        for pick in script {
            if right.is_finished() {
                break;
            }
            let mut words = [vec![0u32; size.div_ceil(32)], vec![0u32; size.div_ceil(32)]];
            right.write(&mut words[0]).unwrap();
            left.write(&mut words[1]).unwrap();
            prop_assert_eq!(&words[0], &words[1]);
            for token in 0..size as TokenId {
                let is_in = logitree::mask::bit(&words[0], token);
                prop_assert_eq!(alone.fork().is_allowed(token).unwrap(), is_in, "{}", token);
                prop_assert_eq!(alone.fork().take(token).unwrap(), is_in, "{}", token);
            }
            let all: Vec<TokenId> = logitree::mask::ids(&words[0]).collect();
            let token = all[usize::from(pick) % all.len()];
            left.accept(token).unwrap();
            right.accept(token).unwrap();
            alone.accept(token).unwrap();
        }
    }

    /// A decoder that decides the greatest logit alone takes the tokens, and draws the numbers, of one that finds all
    /// allowed tokens; forced tokens too, some of them. Many logits are equal, and those of other tokens may be NaN.
    #[test]
    fn one_token_is_decided_as_all_of_them_are(
        joins in joins(),
        split in split(),
        which in 0usize..4,
        kind in 0usize..5,
        salt in any::<u64>(),
        script in prop::collection::vec(any::<u16>(), 1..40),
    ) {
        let (tokenizer, end) = tokenizer(&joins, split, false);
        let vocabulary = tokenizer.vocabulary();
        let decoder = |exact: bool| {
            let limits = GrammarLimits::default();
            let grammar = BoundGrammar::new(rules_of(which), vocabulary, Some(&[end]), limits).unwrap();
            let made = Canonical::new(&*grammar.matcher().unwrap(), &tokenizer, &[]).unwrap();
            let matcher = if exact { Box::new(Plain(Box::new(made))) as Box<dyn Matcher> } else { Box::new(made) };
            Decoder::new(Arc::clone(vocabulary), chain(kind), Some(matcher), Stop::default()).unwrap()
        };
        let (mut lazy, mut exact) = (decoder(false), decoder(true));
        let mut random = salt;
        for pick in script {
            if exact.finish().is_some() {
                break;
            }
            if pick % 5 == 0 {
                let mut forced = [Vec::new(), Vec::new()];
                lazy.take_forced(&mut forced[0]).unwrap();
                exact.take_forced(&mut forced[1]).unwrap();
                prop_assert_eq!(&forced[0], &forced[1]);
                continue;
            }
            if kind > 0 && pick % 7 == 0 {
                let temp = [0.0, 1.5, 0.7][usize::from(pick) / 7 % 3];
                lazy.set_parameters(&[("temp".into(), temp)]).unwrap();
                exact.set_parameters(&[("temp".into(), temp)]).unwrap();
            }
            let mut logits: Vec<f32> = (0..vocabulary.len())
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (random >> 61) as f32
                })
                .collect();
            if pick % 11 == 0 {
                let allowed = exact.allowed().unwrap();
                (0..).zip(&mut logits).filter(|(id, _)| !allowed.contains(*id)).for_each(|(_, l)| *l = f32::NAN);
            }
            prop_assert_eq!(lazy.step(&logits).unwrap(), exact.step(&logits).unwrap());
        }
        prop_assert_eq!(lazy.tokens(), exact.tokens());
        prop_assert_eq!(lazy.finish(), exact.finish());
    }

    /// With little fuel, what is answered is right, and the matcher is usable after what was not.
    #[test]
    fn little_fuel_ends_in_errors_and_changes_no_answer(
        joins in joins(),
        split in split(),
        which in 0usize..4,
        fuel in prop::sample::select(vec![0u64, 5, 40, 200, 1_000, 5_000]),
        script in prop::collection::vec(any::<u16>(), 0..25),
    ) {
        let (tokenizer, end) = tokenizer(&joins, split, false);
        // Two engines: neither knows what the other found.
        let plain = || {
            let limits = GrammarLimits::default();
            let grammar = BoundGrammar::new(rules_of(which), tokenizer.vocabulary(), Some(&[end]), limits).unwrap();
            grammar.matcher().unwrap()
        };
        let mut ample = Canonical::new(&*plain(), &tokenizer, &[]).expect("every text has an encoding");
        let is_limit = |error: &logitree::Error| {
            error.kind == ErrorKind::Limit && error.place.starts_with("token ") && !error.help.is_empty()
        };
        let mut scant = match Canonical::with_fuel(&*plain(), &tokenizer, &[], fuel) {
            Ok(made) => made,
            Err(error) => {
                prop_assert!(is_limit(&error), "{error:?}");
                return Ok(());
            }
        };
        let all = |matcher: &mut Canonical| -> logitree::Result<Vec<TokenId>> {
            let mut words = vec![0u32; matcher.vocabulary_size().div_ceil(32)];
            matcher.write(&mut words)?;
            Ok(logitree::mask::ids(&words).collect())
        };
        for pick in script {
            if ample.is_finished() {
                break;
            }
            let right = all(&mut ample).unwrap();
            let before = scant.steps();
            match all(&mut scant) {
                Ok(found) => prop_assert_eq!(&found, &right),
                Err(error) => prop_assert!(is_limit(&error), "{error:?}"),
            }
            prop_assert!(scant.steps() - before <= fuel);
            let mut forced = [Vec::new(), Vec::new()];
            ample.forced(&mut forced[0]).unwrap();
            match scant.forced(&mut forced[1]) {
                Ok(()) => prop_assert!(forced[0].starts_with(&forced[1])),
                Err(error) => prop_assert!(is_limit(&error) && forced[1].is_empty()),
            }
            let token = right[usize::from(pick) % right.len()];
            ample.accept(token).unwrap();
            let (accepted, at) = (scant.accepted(), scant.state());
            // What was found out is kept, so that asking again gets further; it may still not be far enough.
            let taken = (0..50).any(|_| match scant.accept(token) {
                Ok(()) => true,
                Err(error) => {
                    assert!(is_limit(&error), "{error:?}");
                    assert_eq!((scant.accepted(), scant.state()), (accepted, at));
                    false
                }
            });
            if !taken {
                return Ok(());
            }
        }
    }

    /// A text is canonical in its own encoding only, and an encoding can be taken apart anywhere.
    #[test]
    fn encodings_are_canonical_and_nothing_else_is(
        joins in joins(),
        split in split(),
        ignore_merges in any::<bool>(),
        text in text(10),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (tokenizer, _) = tokenizer(&joins, split, ignore_merges);
        let tokens = tokenizer.encode(&text).unwrap();
        prop_assert!(tokenizer.is_canonical(&tokens), "{tokens:?}");
        let vocabulary = tokenizer.vocabulary();
        // Another spelling of the same text, token by token.
        let (mut rest, mut other) = (text.as_bytes(), Vec::new());
        for pick in picks.iter().cycle().take(if picks.is_empty() { 0 } else { 200 }) {
            let fitting: Vec<TokenId> = (0..vocabulary.len() as TokenId)
                .filter(|&id| vocabulary.kind(id).is_text() && rest.starts_with(vocabulary.token_bytes(id)))
                .collect();
            if rest.is_empty() || fitting.is_empty() {
                break;
            }
            let token = fitting[pick.index(fitting.len())];
            rest = &rest[vocabulary.token_bytes(token).len()..];
            other.push(token);
        }
        if rest.is_empty() && !picks.is_empty() {
            prop_assert_eq!(tokenizer.is_canonical(&other), other == tokens);
        }
    }
}

#[test]
fn what_has_no_canonical_spelling_is_an_error_with_its_place() {
    let (tokenizer, end) = tokenizer(&Vec::new(), GPT2, false);
    let (other, _) = self::tokenizer(&vec![], LLAMA3, false);
    let ends = End { tokens: Some(vec![end]), ..End::default() };
    let broken = BoundOneOf::new(&[&b"a\xc3"[..]], tokenizer.vocabulary(), &ends).unwrap();
    let error = Canonical::new(&*broken.matcher(), &tokenizer, &[]).err().expect("half a character");
    assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Constraint, "token 0 of the text"));
    assert!(Canonical::new(&*broken.matcher(), &other, &[]).is_err());
    // Half a character may be followed by its other half, but the text ends.
    let whole = BoundOneOf::new(&["a\u{e9}"], tokenizer.vocabulary(), &ends).unwrap();
    assert!(Canonical::new(&*whole.matcher(), &tokenizer, &[]).is_ok());
}
