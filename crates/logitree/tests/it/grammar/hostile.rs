//! Grammars and texts that are meant to hurt: each ends in a correct result or in a clear error, with counted work. It
//! measures no time: the limits are fuel and bytes.

use std::fmt::Write;
use std::sync::Arc;

use logitree::constraint::{BoundGrammar, GrammarLimits, Matcher};
use logitree::grammar::gbnf;
use logitree::grammar::rules::Rules;
use logitree::vocabulary::Vocabulary;
use logitree::{Error, ErrorKind, Result, TokenId};
use logitree_testing::constraints::bind;
use logitree_testing::texts::{of_lark, of_pattern, of_schema};
use logitree_testing::vocabulary::{bytes_and, ending_vocabulary};

/// Every byte, and some pieces of JSON and words.
fn vocabulary() -> (Arc<Vocabulary>, TokenId) {
    let more = [
        "[[",
        "[[[[",
        "]]",
        "{\"",
        "\":",
        "\", \"",
        "aa",
        "aaaa",
        "aaaaaaaaaaaaaaaa",
        "ab",
        "true",
        "null",
        "12",
    ];
    ending_vocabulary(&bytes_and(&more))
}

fn bound(rules: Result<Rules>, fuel: u64) -> Result<BoundGrammar> {
    let limits = GrammarLimits { fuel, ..GrammarLimits::default() };
    BoundGrammar::new(Arc::new(rules?), &vocabulary().0, None, limits)
}

/// A matcher that did with so much fuel for each call.
fn matcher(rules: Result<Rules>, fuel: u64) -> Box<dyn Matcher> {
    bound(rules, fuel).and_then(|grammar| grammar.matcher()).expect("within the fuel")
}

/// Takes `text` byte by byte, and looks at the mask every `look` bytes.
fn write(matcher: &mut dyn Matcher, text: &[u8], look: usize) -> Result<()> {
    for (n, &byte) in text.iter().enumerate() {
        if n % look == 0 {
            assert!(matcher.is_allowed(byte.into())?, "byte {n} of the text is not in the mask");
        }
        matcher.accept(byte.into())?;
    }
    Ok(())
}

/// A refusal that says what was wrong.
fn is_clear(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Limit | ErrorKind::Constraint) && !error.message.is_empty()
}

/// Backtracking regex engines take exponential time for these; texts of thousands of letters end in the right answer.
#[test]
fn catastrophic_regexes() {
    let patterns = [
        ("(a+)+b", "a", "b"),
        ("(a|aa)+b", "a", "b"),
        ("(a|a)*b", "a", "b"),
        ("(.*a){12}b", "a", "b"),
        ("(a?){60}a{60}", "a", ""),
        ("((a*)*)*b", "a", "b"),
        ("(x+x+)+y", "x", "y"),
        ("(?:a*a*a*a*a*a*a*a*)*b", "a", "b"),
        ("(?!.*ab$)[ab]*c", "a", "c"),
    ];
    for (text, letter, end) in patterns {
        let mut matcher = matcher(of_pattern(text), 400_000);
        let count = if end.is_empty() { 100 } else { 3_000 };
        write(&mut *matcher, letter.repeat(count).as_bytes(), 37).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(matcher.is_accepting(), end.is_empty(), "{text}");
        write(&mut *matcher, end.as_bytes(), 1).unwrap();
        assert!(matcher.is_accepting(), "{text}");
    }
}

/// A pattern of many parts in a row is a long chain: it is traversed in loops, whatever contains it.
#[test]
fn long_chains() {
    let n = 30_000;
    let (digits, perhaps) = (r"\d".repeat(n), r"\d?".repeat(n / 3));
    let patterns = [
        format!("{digits}(?!xx)[a-z]{{2}}"),
        format!("(?!00){digits}"),
        format!("(?=.{{0,600000}}$){digits}"),
        format!("(?:{perhaps}x|{perhaps}y)"),
        format!("(?:[0-9]*|{digits}x)"),
        format!("(?:x|xy(?=aa)bb|{digits})"),
    ];
    for text in patterns {
        let shown: String = text.chars().take(20).collect();
        let made = bound(of_pattern(&text), 5_000_000).and_then(|grammar| grammar.matcher());
        let walked = made.and_then(|mut matcher| write(&mut *matcher, "1".repeat(200).as_bytes(), 7));
        if let Err(error) = walked {
            assert!(is_clear(&error), "{shown}: {error}");
        }
    }
    let mut matcher = matcher(of_pattern(&digits), 5_000_000);
    write(&mut *matcher, "1".repeat(n).as_bytes(), 997).unwrap();
    assert!(matcher.is_finished());
}

/// 2^n states: an error of the limits, or an answer, and never an open mask.
#[test]
fn regexes_of_exponential_automata() {
    for text in ["(?:a|b)*a(?:a|b){18}c", "(?:(?:a|b)*a(?:a|b){30}c)|(?:(?:a|b)*b(?:a|b){31}d)"] {
        let mut matcher = matcher(of_pattern(text), 2_000_000);
        let mut refused = None;
        // A text that visits many states: the digits of numbers.
        for n in 0..4_000u32 {
            let byte = if (n * n + n / 7) % 3 == 0 { b'a' } else { b'b' };
            match matcher.is_allowed(byte.into()).and_then(|allowed| {
                assert!(allowed, "{text} at {n}");
                matcher.accept(byte.into())
            }) {
                Ok(()) => {}
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        assert!(refused.is_none_or(|error| is_clear(&error) && error.kind == ErrorKind::Limit));
    }
}

/// Counters are never unrolled.
#[test]
fn huge_counts() {
    let texts = [
        "root ::= \"x\"{1000000000}",
        "root ::= \"x\"{0,1000000000}",
        "root ::= (\"x\"{1000000}){1000000}",
        "root ::= [a-z]{1000000000,} \"!\"",
        "root ::= ((\"x\" | \"xx\"){65000}){65000}",
        "root ::= x{1000000000}\nx ::= \"x\" | \"(\" x \")\"",
    ];
    for text in texts {
        let made = gbnf::parse(text);
        let mut matcher = match bound(made, 300_000).and_then(|grammar| grammar.matcher()) {
            Ok(matcher) => matcher,
            Err(error) => {
                assert!(is_clear(&error), "{text}: {error}");
                continue;
            }
        };
        write(&mut *matcher, "x".repeat(5_000).as_bytes(), 61)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(matcher.is_accepting(), text.contains("{0,"), "{text}");
    }
    let mut matcher =
        matcher(of_schema(r#"{"type":"string","minLength":3000,"maxLength":100000000}"#), 100_000);
    write(&mut *matcher, format!("\"{}", "é".repeat(2_999)).as_bytes(), 97).unwrap();
    assert!(!matcher.is_allowed(b'"'.into()).unwrap());
    write(&mut *matcher, "a\"".as_bytes(), 1).unwrap();
    assert!(matcher.is_finished());
    let mut matcher = matcher_of_items();
    write(&mut *matcher, format!("[{}", "1,".repeat(2_999)).replace(',', ", ").as_bytes(), 101).unwrap();
    write(&mut *matcher, b"1]", 1).unwrap();
    assert!(matcher.is_finished());
}

fn matcher_of_items() -> Box<dyn Matcher> {
    let schema = r#"{"type":"array","items":{"type":"integer"},"minItems":3000,"maxItems":1000000000}"#;
    matcher(of_schema(schema), 100_000)
}

/// oneOf inside oneOf: alternatives that differ only at the end.
#[test]
fn nested_one_of() {
    let mut schema = r#"{"type":"integer","minimum":1}"#.to_string();
    for n in 2..9 {
        schema = format!(
            r#"{{"oneOf":[{schema},{{"type":"integer","multipleOf":{n}}},{{"type":"string","maxLength":{n}}}]}}"#
        );
    }
    match bound(of_schema(&schema), 5_000_000).and_then(|grammar| grammar.matcher()) {
        Ok(mut matcher) => {
            let mut allowed = || matcher.allowed().map(|_| ());
            assert!(allowed().map_or_else(|error| is_clear(&error), |()| true));
        }
        Err(error) => assert!(is_clear(&error), "{error}"),
    }
    let wide: Vec<String> = (0..60)
        .map(|n| {
            format!(r#"{{"type":"object","required":["k{n}"],"properties":{{"k{n}":{{"type":"integer"}}}}}}"#)
        })
        .collect();
    let schema = format!(r#"{{"oneOf":[{}]}}"#, wide.join(","));
    match bound(of_schema(&schema), 5_000_000).and_then(|grammar| grammar.matcher()) {
        Ok(mut matcher) => {
            let taken = write(&mut *matcher, br#"{"k7": 1}"#, 1);
            assert!(taken.map_or_else(|error| is_clear(&error), |()| matcher.is_accepting()));
        }
        Err(error) => assert!(is_clear(&error), "{error}"),
    }
}

/// One trie of names, not 100,000 alternatives.
#[test]
fn an_enum_of_a_hundred_thousand() {
    let names: Vec<String> = (0..100_000).map(|n| format!("\"name {}\"", n * 7919 % 1_000_003)).collect();
    let schema = format!(r#"{{"enum":[{}]}}"#, names.join(","));
    let mut matcher = matcher(of_schema(&schema), 5_000_000);
    write(&mut *matcher, names[77_777].as_bytes(), 1).unwrap();
    assert!(matcher.is_finished());
    matcher.reset();
    let error = write(&mut *matcher, b"\"name 5000000000\"", 100).expect_err("no such name");
    assert_eq!(error.kind, ErrorKind::Token);
    let mut text = String::from("root ::= ");
    names.iter().take(20_000).for_each(|name| write!(text, "{name:?} | ").unwrap());
    let mut matcher = self::matcher(gbnf::parse(&(text + "\"x\"")), 5_000_000);
    write(&mut *matcher, names[11_111].as_bytes(), 1).unwrap();
    assert!(matcher.is_finished());
}

/// Depth of the text is no recursion, and costs the same for each level.
#[test]
fn a_hundred_thousand_levels() {
    let deep = 100_000;
    let nested = "root ::= \"[\" (root (\",\" root)*)? \"]\"";
    let schema = r##"{"type":"array","items":{"$ref":"#"}}"##;
    for rules in [gbnf::parse(nested), of_schema(schema), of_schema("{}")] {
        let grammar = bound(rules, 200_000).unwrap();
        let mut matcher = grammar.matcher().unwrap();
        write(&mut *matcher, "[".repeat(1_000).as_bytes(), 100).unwrap();
        let low = grammar.memory();
        write(&mut *matcher, "[".repeat(deep / 2 - 1_000).as_bytes(), 10_000).unwrap();
        let half = grammar.memory();
        write(&mut *matcher, "[".repeat(deep / 2).as_bytes(), 10_000).unwrap();
        let full = grammar.memory();
        let (first, second) = (half - low, full - half);
        assert!(second <= first * 5 / 4 + 1_000_000, "{first} and then {second} bytes for as many levels");
        assert!(full / deep < 2_000, "{} bytes a level", full / deep);
        let mut fork = matcher.fork();
        write(&mut *fork, "]".repeat(deep).as_bytes(), 10_000).unwrap();
        assert!(fork.is_finished());
        matcher.rollback(deep).unwrap();
        write(&mut *matcher, b"[]", 1).unwrap();
        assert!(matcher.is_finished());
    }
}

/// Long texts at one level take no memory at all.
#[test]
fn long_lists_are_flat() {
    let rules = [
        gbnf::parse("root ::= \"[\" \"1\" (\",1\")* \"]\""),
        gbnf::parse("root ::= \"[1\" rest\nrest ::= \",1\" rest | \"]\""),
        gbnf::parse("root ::= list \"]\"\nlist ::= \"[1\" | list \",1\""),
    ];
    for rules in rules {
        let grammar = bound(rules, 50_000).unwrap();
        let mut matcher = grammar.matcher().unwrap();
        write(&mut *matcher, format!("[1{}", ",1".repeat(1_000)).as_bytes(), 100).unwrap();
        let low = grammar.memory();
        write(&mut *matcher, ",1".repeat(50_000).as_bytes(), 10_000).unwrap();
        assert!(grammar.memory() <= low + 10_000, "{} and then {}", low, grammar.memory());
        write(&mut *matcher, b"]", 1).unwrap();
        assert!(matcher.is_finished());
    }
}

/// References that lead nowhere say nothing; those that lead on say what they say.
#[test]
fn reference_loops() {
    let refused = [
        r##"{"$ref":"#"}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}}}"##,
    ];
    for schema in refused {
        match bound(of_schema(schema), 1_000_000).and_then(|grammar| grammar.matcher()) {
            // A reference to itself forbids nothing: any value will do, if that is how it is read.
            Ok(mut matcher) => assert!(matcher.allowed().is_ok(), "{schema}"),
            Err(error) => assert!(is_clear(&error), "{schema}: {error}"),
        }
    }
    let tree = r##"{"type":"object","properties":{"l":{"$ref":"#"},"r":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},
        "additionalProperties":false}"##;
    let mut matcher = matcher(of_schema(tree), 200_000);
    write(&mut *matcher, br#"{"l": {"l": {"r": null}, "r": {}}, "r": null}"#, 1).unwrap();
    assert!(matcher.is_finished());
}

/// Ambiguous, cyclic and left-recursive rules: all readings at once, without a stack for each. What reads n letters in
/// n * n ways for each of n places may run out of fuel, and says so; the matcher stays what it was.
#[test]
fn ambiguous_and_cyclic_rules() {
    let grammars = [
        "root ::= root root | \"a\"",
        "root ::= root root root | root root | \"a\" | \"aa\"",
        "root ::= a\na ::= b | \"a\" a | \"a\"\nb ::= c\nc ::= a",
        "root ::= (\"a\"*)* (\"a\"?)* \"a\"",
        "root ::= x\nx ::= x x | x \"a\" | \"a\" x | \"a\" |",
        "root ::= (a | b)+\na ::= \"a\" | \"aa\"\nb ::= a a | a",
    ];
    for text in grammars {
        let mut matcher = matcher(gbnf::parse(text), GrammarLimits::default().fuel);
        if let Err(error) = write(&mut *matcher, "a".repeat(2_000).as_bytes(), 50) {
            assert_eq!(error.kind, ErrorKind::Limit, "{text}: {error}");
            assert!(matcher.accepted() >= 300, "{text}: {} letters", matcher.accepted());
        }
        assert!(matcher.is_accepting(), "{text}");
    }
    for text in ["root ::= root", "root ::= a\na ::= root | b\nb ::= a \"x\"", "root ::= \"a\" root"] {
        let error = bound(gbnf::parse(text), 1_000_000).err().expect("no text matches");
        assert_eq!(error.kind, ErrorKind::Constraint, "{text}: {error}");
    }
}

/// Deep nesting in the grammar's own text is an error or is read, on a small stack.
#[test]
fn deep_grammars() {
    let made = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
        for deep in [100usize, 10_000, 200_000] {
            let (open, close) = ("(".repeat(deep), ")".repeat(deep));
            let arrays = format!("{}{}{}", r#"{"items":"#.repeat(deep), "true", "}".repeat(deep));
            let chain: String = (0..deep).map(|n| format!("r{n} ::= r{} | \"a\"\n", n + 1)).collect();
            let made = [
                gbnf::parse(&format!("root ::= {open}\"a\"{close}")),
                of_pattern(&format!("{open}a{close}")),
                of_lark(&format!("start: {open}\"a\"{close}")),
                of_schema(&arrays),
                gbnf::parse(&format!("root ::= r0\n{chain}r{deep} ::= \"a\"")),
            ];
            for (n, rules) in made.into_iter().enumerate() {
                match bound(rules, 5_000_000).and_then(|grammar| grammar.matcher()) {
                    Ok(mut matcher) => {
                        assert!(matcher.allowed().map_or_else(|e| is_clear(&e), |_| true), "{n} at {deep}")
                    }
                    Err(error) => assert!(!error.message.is_empty(), "{n} at {deep}: {error}"),
                }
            }
        }
    });
    made.unwrap().join().expect("no overflow");
}

/// A state and the one it mostly leads to may lead back to each other: tables are not looked for round and round.
#[test]
fn states_that_lead_back() {
    let letters: Vec<String> =
        ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}"))).collect();
    let mut tokens = bytes_and::<&str>(&[]);
    tokens.extend(letters.iter().flat_map(|ab| ('a'..='z').map(move |c| format!("{ab}{c}").into_bytes())));
    let (vocabulary, _) = ending_vocabulary(&tokens);
    let rules = of_pattern("(?:1|[0a-z]0*[1a-z])*[0a-z]0*").unwrap();
    let mut matcher = bind(rules, &vocabulary).unwrap().matcher().unwrap();
    for (token, matches) in [(b'x', true), (b'x', false), (b'0', true), (b'1', false)] {
        assert!(matcher.is_allowed(token.into()).unwrap());
        matcher.accept(token.into()).unwrap();
        assert_eq!(matcher.is_accepting(), matches);
    }
}

/// What the first masks of JSON strings cost over a vocabulary of 27,000 tokens, and the masks.
fn first_masks(prepared: bool) -> (u64, Vec<Vec<u32>>) {
    let mut tokens = bytes_and::<&str>(&[]);
    let letters = b'a'..=b'z';
    for (a, b) in (32..127u8).flat_map(|a| (32..127u8).map(move |b| (a, b))) {
        tokens.push(vec![a, b]);
    }
    for (a, b) in letters.clone().flat_map(|a| letters.clone().map(move |b| (a, b))) {
        tokens.extend(letters.clone().map(|c| vec![a, b, c]));
    }
    let (vocabulary, _) = ending_vocabulary(&tokens);
    if prepared {
        BoundGrammar::prepare(&vocabulary).unwrap();
    }
    let rules = of_schema(
        r#"{"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}"#,
    );
    let grammar = bind(rules.unwrap(), &vocabulary).unwrap();
    let mut matcher = grammar.matcher().unwrap();
    let mut masks = Vec::new();
    for &byte in br#"{"title": "a"}"# {
        let mut words = vec![0; logitree::mask::words_for(vocabulary.len())];
        matcher.write(&mut words).unwrap();
        masks.push(words);
        matcher.accept(byte.into()).unwrap();
    }
    (grammar.steps(), masks)
}

#[test]
fn a_prepared_vocabulary_saves_the_first_masks_work() {
    let (cold, masks) = first_masks(false);
    let (warm, same) = first_masks(true);
    assert_eq!(masks, same);
    assert!(2 * warm < cold, "{warm} steps beside {cold}");
}
