//! Matchers of random grammars are put through the laws of matchers; masks do not depend on what is remembered, on
//! forced tokens, or on the way to a state. What masks should hold is the matter of `grammar/masks.rs`.

use std::sync::Arc;

use logitree::constraint::{BoundGrammar, GrammarLimits, Matcher};
use logitree::grammar::gbnf;
use logitree::grammar::rules::Rules;
use logitree::{ErrorKind, Token, TokenId, TokenKind, Vocabulary};
use logitree_testing::constraints::bind_gbnf;
use logitree_testing::vocabulary::{of_tokens, token};
use logitree_testing::{laws, random_rules, texts};
use proptest::prelude::*;

/// All single bytes of `letters`, then `tokens`, then what is no text: "a", an end, another end.
fn vocabulary(letters: &[u8], tokens: &[Vec<u8>]) -> Arc<Vocabulary> {
    let mut all: Vec<Token> = letters.iter().map(|&byte| token([byte], TokenKind::Byte)).collect();
    all.extend(tokens.iter().map(|bytes| token(bytes, TokenKind::Normal)));
    let ends = all.len() as TokenId + 1;
    all.extend([b"a".as_slice(), b"<end>", b"<turn>"].map(|bytes| token(bytes, TokenKind::Control)));
    of_tokens(all, &[ends, ends + 1])
}

fn tokens(alphabet: &'static [u8], most: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let one = prop::collection::vec(prop::sample::select(alphabet), 1..5);
    prop::collection::vec(one, 0..most)
}

fn script() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..40)
}

fn bound(rules: Rules, vocabulary: &Arc<Vocabulary>, limits: GrammarLimits) -> Option<BoundGrammar> {
    match BoundGrammar::new(Arc::new(rules), vocabulary, None, limits) {
        Ok(grammar) => Some(grammar),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
            None
        }
    }
}

fn of_schema(schema: &str) -> Rules {
    texts::of_schema(schema).expect("a sound schema")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    /// With a token for each byte no dead end is reachable: a mask is never empty (law 3).
    #[test]
    fn random_rules_keep_the_laws(rules in random_rules::rules(0), tokens in tokens(b"abc", 12), script in script()) {
        let vocabulary = vocabulary(b"abc", &tokens);
        let Some(grammar) = bound(rules, &vocabulary, GrammarLimits::default()) else { return Ok(()) };
        laws::hold(&|| grammar.matcher().expect("within the limits"), &script, &mut |_, _| ());
    }

    /// Texts as end tokens: they are never text.
    #[test]
    fn any_tokens_may_be_ends(
        rules in random_rules::rules(0),
        tokens in tokens(b"abc", 12),
        ends in prop::collection::vec(3u32..20, 1..4),
        script in script(),
    ) {
        let vocabulary = vocabulary(b"abc", &tokens);
        let ends: Vec<TokenId> = ends.into_iter().filter(|&id| id < vocabulary.len() as TokenId).collect();
        let limits = GrammarLimits::default();
        let Ok(grammar) = BoundGrammar::new(Arc::new(rules), &vocabulary, Some(&ends), limits) else { return Ok(()) };
        if ends.is_empty() {
            return Ok(());
        }
        laws::hold(&|| grammar.matcher().expect("within the limits"), &script, &mut |_, seen| {
            for id in &ends {
                let allowed = seen.allowed.as_ref().is_none_or(|allowed| allowed.contains(id));
                assert_eq!(allowed, seen.accepting);
            }
        });
    }

    /// What is remembered changes no mask; little room for automata ends in the same masks, or in a limit's error.
    #[test]
    fn masks_do_not_depend_on_what_is_kept(
        rules in random_rules::rules(0),
        tokens in tokens(b"abc", 12),
        picks in prop::collection::vec(any::<u16>(), 0..30),
        bytes in 1_000usize..40_000,
    ) {
        let vocabulary = vocabulary(b"abc", &tokens);
        let Some(plain) = bound(rules.clone(), &vocabulary, GrammarLimits::default()) else { return Ok(()) };
        let others = [
            GrammarLimits { mask_bytes: 0, ..GrammarLimits::default() },
            GrammarLimits { mask_bytes: 500, ..GrammarLimits::default() },
            GrammarLimits { automata_bytes: bytes, ..GrammarLimits::default() },
        ];
        let mut matcher = plain.matcher().expect("within the limits");
        let mut open = Vec::new();
        for limits in others {
            match BoundGrammar::new(Arc::new(rules.clone()), &vocabulary, None, limits).and_then(|g| g.matcher()) {
                Ok(other) => open.push((other, limits)),
                Err(error) => {
                    prop_assert_eq!(error.kind, ErrorKind::Limit);
                    prop_assert!(limits.automata_bytes == bytes);
                }
            }
        }
        for pick in picks {
            let seen = laws::look(&mut *matcher);
            let Some(allowed) = &seen.allowed else { break };
            let token = allowed[usize::from(pick) % allowed.len()];
            let mut kept = Vec::new();
            for (mut other, limits) in open {
                let step = laws_or_limit(&mut *other, token);
                match step {
                    Ok(also) => {
                        prop_assert_eq!(&also, &seen);
                        kept.push((other, limits));
                    }
                    Err(kind) => {
                        prop_assert_eq!(kind, ErrorKind::Limit);
                        prop_assert!(limits.automata_bytes == bytes);
                    }
                }
            }
            open = kept;
            matcher.accept(token).expect("an allowed token");
        }
    }

    /// Looking for what is forced changes no mask, and what is forced is all that is allowed.
    #[test]
    fn forced_tokens_change_nothing(
        rules in random_rules::rules(0),
        tokens in tokens(b"abc", 6),
        picks in prop::collection::vec(any::<u16>(), 0..20),
    ) {
        let vocabulary = vocabulary(b"abc", &tokens);
        let Some(asked) = bound(rules.clone(), &vocabulary, GrammarLimits::default()) else { return Ok(()) };
        let never = bound(rules, &vocabulary, GrammarLimits::default()).expect("as before");
        let (mut asked, mut never) = (asked.matcher().unwrap(), never.matcher().unwrap());
        for pick in picks {
            let mut forced = Vec::new();
            asked.forced(&mut forced).unwrap();
            let mut words = [[0u32; 2]; 2];
            asked.write(&mut words[0]).unwrap();
            never.write(&mut words[1]).unwrap();
            prop_assert_eq!(words[0], words[1]);
            if asked.is_finished() {
                break;
            }
            let allowed: Vec<TokenId> = (0..64).filter(|id| logitree::mask::bit(&words[0], *id)).collect();
            prop_assert!(forced.is_empty() || allowed == forced[..1]);
            let token = allowed[usize::from(pick) % allowed.len()];
            asked.accept(token).unwrap();
            never.accept(token).unwrap();
        }
    }
}

/// Looks and takes `token`; the kind of what failed.
fn laws_or_limit(matcher: &mut dyn Matcher, token: TokenId) -> Result<laws::Seen, ErrorKind> {
    matcher.allowed().map_err(|error| error.kind)?;
    matcher.forced(&mut Vec::new()).map_err(|error| error.kind)?;
    let seen = laws::look(matcher);
    matcher.accept(token).map_err(|error| error.kind)?;
    Ok(seen)
}

/// What schemas and grammars of every day look like.
fn written() -> Vec<Rules> {
    let object = r#"{"type":"object","properties":{"ab":{"type":"string","maxLength":3},"b":{"type":"integer"},
        "a":{"type":"array","items":{"enum":["a","ab",null]},"maxItems":3}},"required":["a"],"additionalProperties":false}"#;
    let free =
        r#"{"type":"object","additionalProperties":{"anyOf":[{"type":"boolean"},{"pattern":"^a*b$"}]}}"#;
    let grammars = [
        "root ::= item+\nitem ::= \"a\" [0-9]{1,3} \" \"? | \"b\" root \"b\"",
        "root ::= \"(\" root \")\" | \"a\"*",
        "root ::= [^\"]* \"\\\"\" root?",
        "root ::= <[5]> (\"a\" | <end>) !<[6]> [ab]*",
        "root ::= [ab]* (<end> | <turn> [ab] | \"b\" <turn> <end>? | \"1\")",
    ];
    let schemas = [object, free, r#"{"type":"number","minimum":-3,"maximum":12.5}"#, "{}"];
    let grammars = grammars.iter().map(|text| gbnf::parse(text).expect("a sound grammar"));
    grammars.chain(schemas.iter().map(|text| of_schema(text))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn written_grammars_keep_the_laws(
        which in 0usize..9,
        tokens in tokens(b"ab\"\"{}:, 1235ntrue\\", 20),
        script in script(),
    ) {
        let bytes: Vec<u8> = (0..=255).collect();
        let vocabulary = vocabulary(&bytes, &tokens);
        let rules = written().swap_remove(which);
        let grammar = bound(rules, &vocabulary, GrammarLimits::default()).expect("some text matches");
        laws::hold(&|| grammar.matcher().expect("within the limits"), &script, &mut |_, _| ());
    }
}

/// `<think>` names the control token, though ordinary tokens spell the same; the text in quotes is ordinary tokens
/// only.
#[test]
fn special_tokens_are_not_text() {
    let think = TokenKind::Control;
    let all = [
        ("<think>", TokenKind::Normal),
        ("<think>", think),
        ("<th", TokenKind::Normal),
        ("ink>", TokenKind::Normal),
    ];
    let ends = [("x", TokenKind::Normal), ("</s>", TokenKind::Control), ("<eot>", TokenKind::Control)];
    let vocabulary = of_tokens(all.into_iter().chain(ends).map(|(text, kind)| token(text, kind)), &[5, 6]);
    let allowed = |text: &str, before: &[TokenId]| {
        let mut matcher = bind_gbnf(text, &vocabulary).matcher().unwrap();
        before.iter().for_each(|&id| matcher.accept(id).unwrap());
        laws::look(&mut *matcher).allowed
    };
    assert_eq!(allowed("root ::= <think> \"x\"", &[]).unwrap(), [1]);
    assert_eq!(allowed("root ::= \"<think>\" \"x\"", &[]).unwrap(), [0, 2]);
    assert_eq!(allowed("root ::= \"<think>\" \"x\"", &[2]).unwrap(), [3]);
    assert_eq!(allowed("root ::= !<think> \"x\"", &[]).unwrap(), [0, 2, 3, 4]);
    assert_eq!(allowed("root ::= <[0]>? \"<think>\"", &[]).unwrap(), [0, 2]);
    // Token 0 was itself or the text: now it may end, or the text comes.
    assert_eq!(allowed("root ::= <[0]>? \"<think>\"", &[0]).unwrap(), [0, 2, 5, 6]);
    assert_eq!(allowed("root ::= \"x\"*", &[4, 4]).unwrap(), [4, 5, 6]);
    assert_eq!(allowed("root ::= \"x\"", &[4]).unwrap(), [5, 6]);
    assert_eq!(allowed("root ::= \"x\"", &[4, 6, 5]).unwrap(), [5, 6]);
    // An end that the grammar names is the end of the text there; one that it does not name, or that more would follow,
    // is not allowed.
    assert_eq!(allowed("root ::= \"x\" <[5]>", &[4]).unwrap(), [5]);
    assert_eq!(allowed("root ::= \"x\" <[5]>", &[4, 5]).unwrap(), [5, 6]);
    assert_eq!(allowed("root ::= \"x\" <[5]>?", &[4]).unwrap(), [5, 6]);
    assert_eq!(allowed("root ::= \"x\" (<[5]> \"x\")?", &[4]).unwrap(), [5, 6]);
    assert_eq!(allowed("root ::= \"x\" (<[5]> \"x\" | <[6]> <[5]>* | \"x\")", &[4]).unwrap(), [4, 6]);
    assert_eq!(allowed("root ::= \"x\" !<[4]>", &[4]).unwrap(), [0, 1, 2, 3]);
}
