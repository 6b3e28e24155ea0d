//! Every mask of random grammars over random vocabularies, held equal to brute force: a token is allowed if and only if
//! the slow recogniser says that what was written and the token's bytes begin a text that matches.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use logitree::constraint::{BoundGrammar, GrammarLimits, Matcher};
use logitree::grammar::rules::{RuleBody, Rules, TokenName};
use logitree::grammar::{CharSet, Regex};
use logitree::mask::{bit, words_for};
use logitree::{ErrorKind, Token, TokenId, TokenKind, Vocabulary};
use logitree_testing::automata::{self, Automaton};
use logitree_testing::rule_oracle::Oracle;
use logitree_testing::vocabulary::{of_tokens, token};
use logitree_testing::{random_rules, regexes};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Whether what the tokens say matches, and whether it begins something that does.
type Reads<'a> = dyn FnMut(&[u8]) -> (bool, bool) + 'a;

/// Runs random cases, a hundred at a time, until `test` has counted `enough`; in as many rounds as that takes, but no
/// more than `rounds`.
fn until<S: Strategy>(
    strategy: &S,
    enough: usize,
    rounds: usize,
    test: impl Fn(S::Value) -> Result<usize, TestCaseError>,
) {
    let count = Cell::new(0);
    let config =
        Config { cases: 100, failure_persistence: None, max_shrink_iters: 3_000, ..Config::default() };
    for _ in 0..rounds {
        let run = TestRunner::new(config.clone()).run(strategy, |case| {
            count.set(count.get() + test(case)?);
            Ok(())
        });
        run.unwrap();
        if count.get() >= enough {
            return;
        }
    }
    panic!("{} of {enough} states after {rounds} rounds", count.get());
}

/// Ordinary tokens, some of them there twice, each single one of `singles`, then tokens that are no text; two of those
/// end a text.
fn vocabulary(tokens: &[Vec<u8>], singles: &[u8]) -> Arc<Vocabulary> {
    let mut all: Vec<Token> = tokens.iter().map(|bytes| token(bytes, TokenKind::Normal)).collect();
    all.extend(singles.iter().map(|&byte| token([byte], TokenKind::Byte)));
    all.extend([
        token(b"a", TokenKind::Control),
        token(b"ab", TokenKind::Unused),
        token(b"", TokenKind::Normal),
    ]);
    let ends = all.len() as TokenId;
    all.extend([token(b"b", TokenKind::Control), token(b"</s>", TokenKind::Control)]);
    of_tokens(all, &[ends, ends + 1])
}

/// The allowed ids; `None` where the constraint is over.
fn mask(matcher: &mut dyn Matcher) -> Option<Vec<TokenId>> {
    if matcher.is_finished() {
        return None;
    }
    let mut words = vec![0; words_for(matcher.vocabulary_size())];
    match matcher.write(&mut words) {
        Ok(()) => Some((0..32 * words.len() as TokenId).filter(|id| bit(&words, *id)).collect()),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
            Some(Vec::new())
        }
    }
}

/// The possible next bytes of the texts of these tests; z and \xf0 stand for all that is no letter of theirs.
const FIRST: &[u8] = b"abc\"\xc3z\xf0\xa9\x9f\x98\x80\xa0\xbd";

/// Compares the mask after `text`, and what is accepted there, with brute force. `tried` is how many tokens are accepted.
fn compare(
    matcher: &mut dyn Matcher,
    vocabulary: &Vocabulary,
    text: &[u8],
    tried: usize,
    reads: &mut Reads,
) -> Result<Vec<TokenId>, TestCaseError> {
    let said = String::from_utf8_lossy(text).into_owned();
    let (matches, viable) = reads(text);
    prop_assert!(viable, "{:?} was accepted", &said);
    prop_assert_eq!(matcher.is_accepting(), matches, "{:?} matches", &said);
    let goes_on = FIRST.iter().any(|&byte| reads(&[text, &[byte]].concat()).1);
    prop_assert_eq!(matcher.is_finished(), matches && !goes_on, "{:?} is over", &said);
    let Some(mask) = mask(matcher) else { return Ok(Vec::new()) };
    let ends = vocabulary.end_tokens();
    for id in vocabulary.ids() {
        let bytes = vocabulary.token_bytes(id);
        let allowed = match ends.contains(&id) {
            true => matches,
            false => {
                let is_text = vocabulary.kind(id).is_text() && !bytes.is_empty();
                is_text && reads(&[text, bytes].concat()).1
            }
        };
        prop_assert_eq!(
            mask.binary_search(&id).is_ok(),
            allowed,
            "{:?} then {:?} ({})",
            &said,
            String::from_utf8_lossy(bytes),
            id
        );
    }
    let every = (vocabulary.len() / tried).max(1);
    for id in vocabulary.ids().skip(text.len() % every).step_by(every) {
        let allowed = mask.binary_search(&id).is_ok();
        let taken = matcher.accept(id);
        prop_assert_eq!(taken.is_ok(), allowed, "{:?} then {} is accepted", &said, id);
        match taken {
            Ok(()) => matcher.rollback(1).expect("one was accepted"),
            Err(error) => prop_assert_eq!(error.kind, ErrorKind::Token),
        }
    }
    Ok(mask.into_iter().filter(|id| !ends.contains(id)).collect())
}

/// Walks from the start by random allowed tokens, and compares at each step. Returns how many prefixes were looked at.
fn walk(
    grammar: &BoundGrammar,
    picks: &[usize],
    longest: usize,
    tried: usize,
    reads: &mut Reads,
) -> Result<usize, TestCaseError> {
    let vocabulary = grammar.vocabulary();
    let mut seen = 0;
    let mut open: Vec<(Box<dyn Matcher>, Vec<u8>)> = vec![(grammar.matcher().unwrap(), Vec::new())];
    for &pick in picks {
        let Some((mut matcher, text)) = open.pop() else { break };
        let allowed = compare(&mut *matcher, vocabulary, &text, tried, reads)?;
        seen += 1;
        for branch in 0..3.min(allowed.len()) {
            let id = allowed[(pick / (branch + 1)) % allowed.len()];
            let mut next = matcher.fork();
            next.accept(id).expect("an allowed token");
            let text = [&text[..], vocabulary.token_bytes(id)].concat();
            if text.len() <= longest {
                open.push((next, text));
            }
        }
    }
    Ok(seen)
}

/// What grammars may keep; masks do not depend on it.
fn limits(n: usize) -> GrammarLimits {
    let mask_bytes = [64 << 20, 0, 2_000][n % 3];
    GrammarLimits { mask_bytes, ..GrammarLimits::default() }
}

fn letters(alphabet: &'static [u8], most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(alphabet), 1..=most)
}

fn picks(count: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..1_000, count)
}

#[test]
fn rules_over_random_vocabularies() {
    let strategy = (
        random_rules::rules(0),
        prop::collection::vec((prop::collection::vec(letters(b"abc", 4), 0..12), 0usize..8), 12),
        picks(30),
    );
    until(&strategy, 60_000, 30, |(rules, vocabularies, picks)| {
        let mut triples = 0;
        let mut known: HashMap<Vec<u8>, (bool, bool)> = HashMap::new();
        let mut reads = |text: &[u8]| brute(&rules, text, &mut known);
        for (n, (tokens, singles)) in vocabularies.iter().enumerate() {
            let singles: Vec<u8> =
                b"abc".iter().copied().filter(|byte| singles >> (byte - b'a') & 1 == 0).collect();
            let vocabulary = vocabulary(tokens, &singles);
            match BoundGrammar::new(Arc::new(rules.clone()), &vocabulary, None, limits(n)) {
                Ok(grammar) => triples += walk(&grammar, &picks, 5, 1_000, &mut reads)?,
                Err(error) => {
                    prop_assert_eq!(error.kind, ErrorKind::Constraint, "{}", error);
                    prop_assert!(!reads(b"").1, "a grammar with a text was refused: {error}");
                }
            }
        }
        Ok(triples)
    });
}

/// The result of the slow recogniser; a prefix that is not viable has no continuation.
fn brute(rules: &Rules, text: &[u8], known: &mut HashMap<Vec<u8>, (bool, bool)>) -> (bool, bool) {
    if let Some(&known) = known.get(text) {
        return known;
    }
    let begun = text.is_empty() || brute(rules, &text[..text.len() - 1], known).1;
    let foreign = text.last().is_some_and(|byte| !b"abcABCDEFGHIJKLMNOPQRSTUVWXYZ".contains(byte));
    let answer = match begun && !foreign {
        true => {
            let oracle = Oracle::new(rules, text);
            (oracle.accepts(), oracle.is_viable())
        }
        false => (false, false),
    };
    known.insert(text.to_vec(), answer);
    answer
}

// -- Regular languages: all that expressions can say, and lexemes that others follow

fn set() -> impl Strategy<Value = Regex> {
    let known = &automata::LETTERS[..automata::LETTERS.len() - 1];
    let some = |most: usize| prop::sample::subsequence(known.to_vec(), 1..most);
    let of = |chars: Vec<char>| CharSet::from_ranges(chars.into_iter().map(|c| (c.into(), c.into())));
    prop_oneof![
        some(4).prop_map(move |chars| Regex::Set(of(chars))),
        some(3).prop_map(move |chars| Regex::Set(of(chars).not())),
    ]
}

fn regex() -> impl Strategy<Value = Regex> {
    let words = prop::sample::select(vec!["a", "b", "c", "ab", "\"", "abc", "é", "éa", "cc\""]);
    let leaf = prop_oneof![3 => set(), 3 => words.prop_map(Regex::text), 1 => Just(Regex::anything())];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Regex::Concat),
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Regex::Or),
            2 => prop::collection::vec(inner.clone(), 1..3).prop_map(Regex::And),
            2 => inner.clone().prop_map(Regex::not),
            3 => (inner, 0u32..4, prop::option::of(0u32..6))
                .prop_map(|(of, min, more)| of.repeat(min, more.map(|more| min + more))),
        ]
    })
}

/// The shapes that have fast ways to their tables, and any others.
fn shape() -> impl Strategy<Value = Regex> {
    let counts = (0u32..5, prop::option::of(0u32..7));
    let names = prop::collection::vec(regex(), 1..3);
    prop_oneof![
        2 => regex(),
        2 => (set(), counts, regex())
            .prop_map(|(of, (min, more), then)| Regex::concat([of.repeat(min, more.map(|more| min + more)), then])),
        2 => (set(), names, set()).prop_map(|(of, names, then)| {
            Regex::concat([Regex::and([of.repeat(0, None), Regex::or(names).not()]), then])
        }),
        1 => (set(), regex()).prop_map(|(of, name)| Regex::and([of.repeat(0, None), name.not()])),
    ]
}

/// Lexemes in a row, by turns or again and again, and the one regex that says the same.
fn lexemes() -> impl Strategy<Value = (RuleBody, Regex)> {
    let leaf = shape().prop_map(|regex| (RuleBody::Lexeme(regex.clone()), regex));
    leaf.prop_recursive(2, 4, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| {
                let (nodes, regexes) = parts.into_iter().unzip();
                (RuleBody::Seq(nodes), Regex::Concat(regexes))
            }),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| {
                let (nodes, regexes) = parts.into_iter().unzip();
                (RuleBody::Alt(nodes), Regex::Or(regexes))
            }),
            1 => (inner, 0u32..3, prop::option::of(0u32..3)).prop_map(|((node, regex), min, more)| {
                let max = more.map(|more| min + more);
                (RuleBody::Repeat { of: Box::new(node), min, max }, regex.repeat(min, max))
            }),
        ]
    })
}

/// Bytes of the letters, and some that cut characters in pieces.
const BYTES: &[u8] = b"aabbcc\"\xc3\xa9\xc3\xa9\xc3\xe4\xf0\x9f\xff";

#[test]
fn regexes_over_random_vocabularies() {
    let strategy = (
        (lexemes(), any::<bool>()),
        prop::collection::vec(prop::collection::vec(letters(BYTES, 4), 0..14), 5),
        picks(30),
    );
    until(&strategy, 40_000, 30, |(((node, regex), apart), vocabularies, picks)| {
        let mut triples = 0;
        let Some(automaton) = Automaton::of(&regex) else { return Ok(0) };
        let rules = Arc::new(random_rules::alone(node, apart));
        for (n, tokens) in vocabularies.iter().enumerate() {
            let singles: &[u8] = if n % 2 == 0 { b"abc\"\xc3\xa9\xff" } else { b"" };
            let vocabulary = vocabulary(tokens, singles);
            match BoundGrammar::new(Arc::clone(&rules), &vocabulary, None, limits(n)) {
                Ok(grammar) => {
                    triples += walk(&grammar, &picks, 12, 1_000, &mut |text| automaton.reads(text))?;
                }
                Err(error) => {
                    prop_assert_eq!(error.kind, ErrorKind::Constraint, "{}", error);
                    prop_assert!(!automaton.reads(b"").1, "a grammar with a text was refused: {error}");
                }
            }
        }
        Ok(triples)
    });
}

/// A vocabulary so large that no state is narrow: all texts of up to four of eight letters, and some longer ones.
fn large_vocabulary() -> Arc<Vocabulary> {
    let letters = ["a", "b", "c", "\"", "é", "\n", "x", "日"];
    let mut tokens: Vec<String> = vec![String::new()];
    let mut from = 0;
    for _ in 0..4 {
        let to = tokens.len();
        for n in from..to {
            tokens.extend(letters.map(|letter| tokens[n].clone() + letter).to_vec());
        }
        from = to;
    }
    let long = [
        "aaaaaaaaaaaa",
        "aaabbbccc",
        "abcabcabcabc\"",
        "xxxxxxxxxxxx",
        "\"\"\"\"\"\"",
        "aaaaaaa\"",
        "éééééé\"a",
    ];
    tokens.extend(long.map(String::from));
    let tokens: Vec<Vec<u8>> = tokens[1..].iter().map(|text| text.clone().into_bytes()).collect();
    vocabulary(&tokens, b"\xc3\xa9\xe4\xff")
}

/// The same over a large vocabulary, where tables are swept, and found as differences from others.
#[test]
fn regexes_over_a_large_vocabulary() {
    let vocabulary = large_vocabulary();
    let strategy = ((lexemes(), any::<bool>()), picks(6));
    until(&strategy, 1_000, 10, |(((node, regex), apart), picks)| {
        let Some(automaton) = Automaton::of(&regex) else { return Ok(0) };
        let rules = Arc::new(random_rules::alone(node, apart));
        let Ok(grammar) = BoundGrammar::new(rules, &vocabulary, None, GrammarLimits::default()) else {
            prop_assert!(!automaton.reads(b"").1);
            return Ok(0);
        };
        walk(&grammar, &picks, 30, 40, &mut |text| automaton.reads(text))
    });
}

/// The automata that the tests above believe in, against the words of what a regex means.
#[test]
fn automata_are_what_regexes_mean() {
    let texts = prop::collection::vec(prop::sample::select(automata::LETTERS.to_vec()), 0..6);
    until(&(shape(), texts), 3_000, 60, |(regex, text)| {
        let Some(automaton) = Automaton::of(&regex) else { return Ok(0) };
        let text: String = text.into_iter().collect();
        let (matches, viable) = automaton.reads(text.as_bytes());
        prop_assert_eq!(matches, regexes::matches(&regex, &text));
        prop_assert!(viable || !matches);
        Ok(1)
    });
}

// -- Whole tokens

/// The letter that stands for a whole token in the slow recogniser's text.
fn letter(id: TokenId) -> u8 {
    b'A' + id as u8
}

/// The same rules with letters for tokens; sets of all but some tokens have none of `without`.
fn spelled(node: &RuleBody, tokens: u32, without: &[TokenId]) -> RuleBody {
    match node {
        RuleBody::Tokens(set) => {
            let named = |id: &u32| match set.tokens.contains(&TokenName::Id(*id)) {
                true => !set.negated,
                false => set.negated && !without.contains(id),
            };
            let letters = (0..tokens).filter(named).map(|id| (letter(id).into(), letter(id).into()));
            RuleBody::Lexeme(Regex::Set(CharSet::from_ranges(letters)))
        }
        RuleBody::Seq(parts) => {
            RuleBody::Seq(parts.iter().map(|part| spelled(part, tokens, without)).collect())
        }
        RuleBody::Alt(parts) => {
            RuleBody::Alt(parts.iter().map(|part| spelled(part, tokens, without)).collect())
        }
        RuleBody::Repeat { of, min, max } => {
            RuleBody::Repeat { of: Box::new(spelled(of, tokens, without)), min: *min, max: *max }
        }
        other => other.clone(),
    }
}

/// The tokens that the sets of these tests may name, control tokens and ends among them.
const TOKENS: u32 = 9;

/// Sets of tokens, negated ones too, beside text that the same tokens spell: each token that was accepted may have been
/// text, or itself. An end token is allowed where the text matches, and where the grammar names it and the text matches
/// with it.
#[test]
fn token_sets_beside_text() {
    let strategy = (random_rules::rules(TOKENS), prop::collection::vec(letters(b"abc", 3), 1..2), picks(25));
    until(&strategy, 6_000, 30, |(rules, tokens, picks)| {
        let mut states = 0;
        let vocabulary = vocabulary(&tokens, b"abc");
        assert_eq!(vocabulary.len(), TOKENS as usize);
        let ends = vocabulary.end_tokens().to_vec();
        let mut plain = rules.clone();
        plain.rules.iter_mut().for_each(|rule| rule.body = spelled(&rule.body, TOKENS, &[]));
        let mut naming = rules.clone();
        naming.rules.iter_mut().for_each(|rule| rule.body = spelled(&rule.body, TOKENS, &ends));
        let (mut known, mut known_naming) = (HashMap::new(), HashMap::new());
        let Ok(grammar) = BoundGrammar::new(Arc::new(rules.clone()), &vocabulary, None, limits(picks[0]))
        else {
            prop_assert!(!brute(&plain, b"", &mut known).1, "a grammar with a text was refused");
            return Ok(0);
        };
        #[allow(clippy::type_complexity)] // said once
        let mut open: Vec<(Box<dyn Matcher>, Vec<Vec<u8>>)> =
            vec![(grammar.matcher().unwrap(), vec![Vec::new()])];
        for &pick in &picks {
            let Some((mut matcher, readings)) = open.pop() else { break };
            let matches = readings.iter().any(|text| brute(&plain, text, &mut known).0);
            prop_assert_eq!(matcher.is_accepting(), matches);
            let Some(mask) = mask(&mut *matcher) else { continue };
            states += 1;
            let mut allowed = Vec::new();
            for id in vocabulary.ids() {
                let bytes = vocabulary.token_bytes(id);
                let is_text = vocabulary.kind(id).is_text() && !bytes.is_empty();
                let as_text = readings.iter().filter(|_| is_text).map(|text| [text, bytes].concat());
                let itself = readings.iter().map(|text| [&text[..], &[letter(id)]].concat());
                let next: Vec<Vec<u8>> =
                    as_text.chain(itself).filter(|text| brute(&plain, text, &mut known).1).collect();
                let mut closes = || {
                    let closed = |text: &Vec<u8>| [&text[..], &[letter(id)]].concat();
                    readings.iter().any(|text| brute(&naming, &closed(text), &mut known_naming).0)
                };
                let expected = if ends.contains(&id) { matches || closes() } else { !next.is_empty() };
                prop_assert_eq!(mask.contains(&id), expected, "{} after {:?}", id, &readings);
                prop_assert_eq!(matcher.fork().accept(id).is_ok(), expected, "{} after {:?}", id, &readings);
                if expected && !ends.contains(&id) {
                    allowed.push((id, next));
                }
            }
            for branch in 0..2.min(allowed.len()) {
                let (id, next) = allowed[(pick / (branch + 1)) % allowed.len()].clone();
                let mut on = matcher.fork();
                on.accept(id).expect("an allowed token");
                if next.iter().all(|text| text.len() < 6) {
                    open.push((on, next));
                }
            }
        }
        Ok(states)
    });
}
