//! GBNF: the meaning of each form, the message of each mistake, and that hostile texts terminate.

use logitree_grammar::gbnf::{parse, parse_from};
use logitree_grammar::rules::{RuleBody, Rules, TokenName, TokenNames};
use logitree_grammar::{CharSet, ErrorKind, Regex};
use logitree_testing::gbnf_writer::{show, write};

/// The rules written again, one per line.
fn again(text: &str) -> String {
    write(&parse(text).unwrap()).unwrap().trim_end().replace('\n', "; ")
}

/// The message of the error.
fn error(text: &str) -> String {
    let error = parse(text).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Constraint);
    error.to_string()
}

fn body(text: &str) -> RuleBody {
    let Rules { mut rules, start } = parse(text).unwrap();
    rules.swap_remove(start.index()).body
}

#[test]
fn every_form() {
    for (text, written) in [
        ("root ::= \"a\"", "root ::= \"a\""),
        ("root::=a|b\na::=\"x\"\nb::=a", "root ::= a | b; a ::= \"x\"; b ::= a"),
        ("root ::= \"a\" | \"b\" \"c\"", "root ::= \"a\" | \"b\" \"c\""),
        ("root ::= (\"a\" | \"b\") \"c\"", "root ::= (\"a\" | \"b\") \"c\""),
        ("root ::= (\"a\" \"b\")* [0-9]+ .?", "root ::= (\"a\" \"b\")* [0-9]+ .?"),
        ("root ::= .{3} .{ 2 , } .{ 1 , 4 }", "root ::= .{3} .{2,} .{1,4}"),
        ("root ::= .{0,4294967295}", "root ::= .{0,4294967295}"),
        ("root ::= [^\\n\"] [-a] [a-] [\\]\\[\\-^]", "root ::= [^\\n\"] [\\-a] [\\-a] [\\-\\[\\]\\x5E]"),
        ("root ::= \"\\x41\\u00e9\\U0001F600é\\\\\\\"\"", "root ::= \"Aéé\""),
        ("root ::= <think> !</think>* <[7]> !<[8]>", "root ::= <think> !</think>* <[7]> !<[8]>"),
        ("root ::= | \"a\" |", "root ::= \"\" | \"a\" | \"\""),
        ("root ::=", "root ::= \"\""),
        ("root ::= \"\"", "root ::= \"\""),
        ("# c\nroot ::= # c\n # c\n \"a\" # c\n\n# c", "root ::= \"a\""),
        ("root ::= (\n \"a\"\r\n # c\n | \"b\"\n)\n", "root ::= \"a\" | \"b\""),
        ("root ::= \"a\" |\n\n \"b\"\r\nx ::= \"c\"", "root ::= \"a\" | \"b\"; x ::= \"c\""),
        ("root ::= \"a\"\n  | \"b\"", "root ::= \"a\" | \"b\""),
        ("root ::= root \"a\" | \"b\"", "root ::= root \"a\" | \"b\""),
        ("x ::= \"a\"\nroot ::= x", "root ::= x; x ::= \"a\""),
        ("root ::= \"a\"?? \"a\"+? \"a\"{2}* (\"a\"*){2}", "root ::= \"a\"? \"a\"* (\"a\"{2})* (\"a\"*){2}"),
        (
            "y ::= a\nroot ::= b y\na ::= \"1\"\nb ::= \"2\"\nz ::= b",
            "root ::= b y; b ::= \"2\"; y ::= a; a ::= \"1\"; z ::= b",
        ),
        ("root ::= \"a\nb\"", "root ::= \"a\\nb\""),
        ("root ::= a_b\na_b ::= a-b\na-b ::= \"c\"", "root ::= a-b; a-b ::= a-b-2; a-b-2 ::= \"c\""),
    ] {
        let expected = written.replace("Aéé", "Aé\\U0001F600é\\\\\\\"");
        assert_eq!(again(text), expected, "{text}");
        assert_eq!(again(&again(text).replace("; ", "\n")), expected, "written twice: {text}");
    }
}

#[test]
fn characters_are_code_points() {
    let RuleBody::Lexeme(Regex::Set(set)) = body("root ::= [^\\x00-\\x1f\"\\u007F-\\U0010FFFF]") else {
        panic!()
    };
    assert_eq!(set, CharSet::from_ranges([(0x20, 0x21), (0x23, 0x7e)]));
    let RuleBody::Lexeme(Regex::Set(set)) = body("root ::= [ぁ-ゟ]") else { panic!() };
    assert_eq!(set, CharSet::range('ぁ', 'ゟ'));
    let RuleBody::Lexeme(Regex::Set(set)) = body("root ::= .") else { panic!() };
    assert_eq!(set, CharSet::all());
    let RuleBody::Lexeme(Regex::Set(set)) = body("root ::= [\\uD800-\\uDFFF]") else { panic!() };
    assert!(set.is_empty());
}

#[test]
fn tokens_are_named_by_text_or_number() {
    let RuleBody::Seq(parts) = body("root ::= !<[4294967295]> <|im_end|>") else { panic!() };
    let sets = parts.iter().map(|part| match part {
        RuleBody::Tokens(set) => set.clone(),
        other => panic!("{other:?}"),
    });
    let expected = [
        TokenNames { tokens: vec![TokenName::Id(u32::MAX)], negated: true },
        TokenNames { tokens: vec![TokenName::Text("<|im_end|>".into())], negated: false },
    ];
    assert_eq!(sets.collect::<Vec<_>>(), expected);
}

#[test]
fn another_start() {
    let rules = parse_from("root ::= \"a\"\nother ::= root", "other").unwrap();
    assert_eq!(rules.rules[rules.start.index()].name, "other");
    assert_eq!(write(&rules).unwrap(), "root ::= root-2\nroot-2 ::= \"a\"\n");
    assert!(parse_from("root ::= \"a\"", "other").unwrap_err().message.contains("no rule \"other\""));
}

#[test]
fn mistakes_past_the_listed_ones_are_counted() {
    let rules: String = (0..40).map(|n| format!("r{n} ::= .\n")).collect();
    let message = parse(&format!("root ::= r0\n{rules}{rules}")).unwrap_err().message;
    assert!(message.starts_with("40 problems"), "{message}");
    assert!(
        message.contains("\n  71:1: the rule \"r29\" is defined twice, first in line 31 (join"),
        "{message}"
    );
    assert!(message.ends_with("\n  and 10 more"), "{message}");
}

#[test]
fn every_mistake_has_its_place_and_a_way_out() {
    for (text, said) in [
        ("", "no rule \"root\" to start from in the GBNF grammar (at 1:1); define it (root ::= ...)"),
        ("a ::= \"x\"", "no rule \"root\""),
        (
            "root ::= b",
            "the rule \"b\" is used and not defined in the GBNF grammar (at 1:10); define it: b ::= ...",
        ),
        ("root ::= valeu\nvalue ::= .", "(at 1:10); did you mean \"value\"?"),
        (
            "root ::= .\n  root ::= .",
            "the rule \"root\" is defined twice, first in line 1 in the GBNF grammar (at 2:3)",
        ),
        ("root = \"a\"", "`::=` must follow \"root\", not `= \"a\"` in the GBNF grammar (at 1:6)"),
        ("root ::= \"a", "a literal that is not closed in the GBNF grammar (at 1:10)"),
        ("root ::= [a", "a class that is not closed in the GBNF grammar (at 1:10)"),
        ("root ::= [a\\", "a class that is not closed"),
        ("root ::= (\"a\" | (\"b\")", "a group that is not closed in the GBNF grammar (at 1:10)"),
        ("root ::= \"a\")", "`)` cannot stand in a rule in the GBNF grammar (at 1:13)"),
        ("root ::= \"é\\q\"", "unknown escape `\\q` in the GBNF grammar (at 1:12); known are"),
        (
            "root ::= \"\\x4\"",
            "`\\x` needs 2 hexadecimal digits and has 1 in the GBNF grammar (at 1:11); write \\x04",
        ),
        ("root ::= \"\\u12é\"", "`\\u` needs 4 hexadecimal digits and has 2"),
        ("root ::= \"\\uD83D\"", "U+D83D is no character"),
        ("root ::= [\\U00110000]", "U+110000 is no character"),
        (
            "root ::= []",
            "a class without characters in the GBNF grammar (at 1:10); write \"\" for the empty text",
        ),
        ("root ::= [^]", "a class without characters"),
        (
            "root ::= [z-a]",
            "the range `z-a` runs from back to front in the GBNF grammar (at 1:11); turn it round",
        ),
        ("root ::= *", "nothing before `*` that it could repeat in the GBNF grammar (at 1:10)"),
        ("root ::= \"a\" | +", "nothing before `+`"),
        ("root ::= \"a\"{,3}", "a repetition needs a number here, not `,3}` in the GBNF grammar (at 1:14)"),
        ("root ::= \"a\"{3", "a repetition must end here, not the end of the text"),
        ("root ::= \"a\"{3,2}", "`{3,2}` has a most that is less than its least"),
        ("root ::= \"a\"{4294967296}", "the number `4294967296` is too large"),
        ("root ::= <>", "`<>` names no token"),
        ("root ::= <a", "`<a` is no token"),
        ("root ::= !a", "`!a` is no token"),
        ("root ::= <[x]>", "`<[x]>` has no number of a token"),
        ("root ::= <[4294967296]>", "has no number of a token"),
        ("root ::= ;", "`;` cannot stand in a rule"),
        ("::= \"a\"", "a rule must start here, not `::= \"a\"`"),
        ("a ::= (\nroot ::= .", "the rule \"root\" starts before the one before it has ended"),
        ("a ::= \nroot ::= .", "the rule \"root\" starts before the one before it has ended"),
    ] {
        let message = error(text);
        assert!(message.contains(said), "{text}\n{message}");
        assert!(message.contains("; ") || message.contains(" ("), "a way out: {message}");
    }
}

#[test]
fn all_problems_at_once() {
    let text = "root ::= a b\na ::= \"\\q\" [b-a]\nc ::= (\nd ::= }\ne ::= \"x\" missing\n";
    let message = error(text);
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    assert_eq!(lines[0], "6 problems in the GBNF grammar:");
    let places: Vec<&str> = lines[1..].iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["1:12", "2:8", "2:13", "4:1", "4:7", "5:11"]);
    let many: String = (0..100).map(|n| format!("r{n} ::= }}\n")).collect();
    assert!(error(&many).starts_with("30 problems"));
}

#[test]
fn what_gbnf_cannot_say_is_shown() {
    let no = Regex::and([Regex::anything(), Regex::text("a").not()]);
    let mut rules = parse("root ::= x\nx ::= .").unwrap();
    rules.rules[1].body = RuleBody::Lexeme(no);
    let error = write(&rules).unwrap_err();
    assert!(error.message.contains("the rule \"x\" has an intersection"), "{error}");
    assert_eq!(show(&rules), "root ::= x\nx ::= (.* & ~(\"a\"))\n");
    let all = TokenNames { tokens: vec![TokenName::Id(1), TokenName::Text("[CALL]".into())], negated: true };
    rules.rules[1].body = RuleBody::Tokens(all);
    assert!(write(&rules).unwrap_err().message.contains("several tokens that must not come"));
    assert_eq!(show(&rules), "root ::= x\nx ::= !(<[1]> | [CALL])\n");
}

#[test]
fn nothing_is_written_as_a_class() {
    let mut rules = parse("root ::= .").unwrap();
    rules.rules[0].body = RuleBody::Lexeme(Regex::Nothing);
    let RuleBody::Lexeme(Regex::Set(set)) = body(&write(&rules).unwrap()) else { panic!() };
    assert!(set.is_empty());
}

/// The depth of a body.
fn depth(node: &RuleBody) -> usize {
    match node {
        RuleBody::Seq(parts) | RuleBody::Alt(parts) => 1 + parts.iter().map(depth).max().unwrap_or(0),
        RuleBody::Repeat { of, .. } => 1 + depth(of),
        _ => 0,
    }
}

#[test]
fn deep_texts_become_flat_rules() {
    let n = 100_000;
    for (open, close) in [("(", ")"), ("(\"a\" ", ")"), ("(", "){2}"), ("(\"b\" | ", ")*"), ("\"a\" (", "?)")]
    {
        let text = format!("root ::= {}\"x\"{}", open.repeat(n), close.repeat(n));
        let rules = parse(&text).unwrap();
        assert!(rules.rules.iter().all(|rule| depth(&rule.body) <= 40), "{open}");
    }
    let signs = format!("root ::= \"a\"{}", "{2}?".repeat(n));
    let rules = parse(&signs).unwrap();
    assert!(rules.rules.iter().all(|rule| depth(&rule.body) <= 40));
    assert!(parse(&format!("root ::= {}", "(".repeat(10_000_000))).is_err());
}

#[test]
fn hostile_texts_end() {
    let large = 3_000_000;
    for unit in ["(", "a|", "[", "a ::= [\\]\n", "a ::= \"\\q\n", "a ::= }\n", "<", "{", "a?", "a ::= ("] {
        let text = format!("root ::= {}", unit.repeat(large / unit.len()));
        assert!(parse(&text).is_err(), "{unit}");
    }
    assert!(parse(&format!("root ::= {}", "\"".repeat(large + 1))).is_err());
    let long = parse(&format!("root ::= {}\"y\"", "\"x\" | ".repeat(large / 6))).unwrap();
    assert_eq!(long.rules.len(), 1);
    let huge = parse(&" ".repeat(9_000_000)).unwrap_err();
    assert_eq!(huge.kind, ErrorKind::Limit);
}
