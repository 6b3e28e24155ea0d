//! XGrammar's EBNF: what each form accepts, and the message of each mistake. `tests/engines` has the same texts beside XGrammar.

use logitree_grammar::gbnf::{parse, parse_ebnf};
use logitree_grammar::rules::Rules;
use logitree_grammar::ErrorKind;
use logitree_testing::rules::check;

fn read(text: &str) -> Rules {
    parse_ebnf(text, "root").unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[test]
#[allow(clippy::too_many_lines)] // one table
fn every_form() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (r#"root ::= "\b\f\a\v\0\e\/\'\?""#, &["\u{8}\u{c}\u{7}\u{b}\0\u{1b}/'?"], &["b"]),
        (r#"root ::= "\x41-\x1F600-\u00e9""#, &["A-😀-é"], &[]),
        (r#"root ::= [\^\$\.\*\+\?\(\)\[\]\{\}\|\/\-]"#, &["^", "]", "-", "/"], &["\\", "a"]),
        ("root ::= [^]", &["a", "\n", "é"], &["", "ab"]),
        ("root ::= a.b\na.b ::= \"x\"", &["x"], &["a.b"]),
        ("root\n::=\n\"a\"\n\"b\"\n\n# c\n| c\nc ::= \"c\"\n\"d\"{2}", &["ab", "cdd"], &["a", "b", "cd"]),
        ("root ::= ( )  \"a\"", &["a"], &[""]),
        ("root[lazy] ::= [a-z]+ \"!\" ", &["a!"], &["a", "!", "a!!"]),
        ("root ::= head [a-z]+\nhead[lazy] ::= [a-z]+", &["ab", "abc"], &["a"]),
        ("root ::= a \"b\"\na[max_chars=2] ::= b\nb ::= [a-zé]*", &["b", "éab"], &["aaab"]),
        (
            "root ::= a\na[max_chars=3, lazy] ::= b \"x\"\nb[max_chars=1] ::= [^]*",
            &["x", "ax"],
            &["xx", "abx"],
        ),
        ("root[capture] ::= a\na[capture=\"n\"] ::= \"x\"", &["x"], &[]),
        ("root ::= a \"d\" | a \"c\"\na ::= \"x\" (= \"c\")\nb ::= \"y\"", &["xc", "xd"], &["x", "xcc"]),
        ("root ::= Regex(\"a.b\")", &["axb", "a\nb"], &["ab"]),
        ("root ::= Regex(\"a.b\", flags=\"i\")", &["AxB"], &["a\nb"]),
        ("root ::= Regex(\"a.b\", flags=\"is\")", &["A\nB"], &["ab"]),
        ("root ::= Regex ( \"a.b\" , json_string = true )", &["axb"], &["a\nb", "a\"b", "a\\b"]),
        ("root ::= Substring(\"abc\", \"de\", \"\", \"fg\")", &["", "abc", "de", "abcdefg"], &["ab", "cde"]),
        ("root ::= Token(5, 7) \"a\"", &["⟦5⟧a", "⟦7⟧a"], &["⟦6⟧a", "a"]),
        ("root ::= ExcludeToken(5)*", &["", "⟦6⟧⟦7⟧"], &["⟦5⟧"]),
        (
            "root ::= TagDispatch((\"<t>\", t), excludes=(\"no\",)) \"no\"?\nt ::= [0-9] \"!\"",
            &["", "x<t", "x<t>1!y<t>2!", "<t>1!no"],
            &["<t>x", "nono", "<t>1"],
        ),
        (
            "root ::= TagDispatch((\"<t>\", t), loop_after_dispatch=false)\nt ::= [0-9]",
            &["", "x", "x<t>1"],
            &["<t>1x", "<t>1<t>1"],
        ),
        ("root ::= \"(\" TagDispatch(excludes=(\")\",)) \")\"", &["()", "(ab)"], &["(a)b)"]),
        (
            "root ::= TokenTagDispatch((1, t), (2, u), excludes=(3,))\nt ::= \"x\"\nu ::= \"y\"",
            &["", "⟦4⟧", "⟦4⟧⟦1⟧x⟦2⟧y⟦5⟧"],
            &["⟦1⟧y", "⟦3⟧", "⟦1⟧x⟦3⟧"],
        ),
        ("root ::= TokenTagDispatch(excludes=(3,))", &["", "⟦4⟧⟦5⟧"], &["⟦3⟧"]),
    ];
    for (text, accepted, refused) in cases {
        check(&read(text), accepted, refused);
    }
}

#[test]
fn mistakes() {
    for (text, message) in [
        (
            "root ::= \"a\" |",
            "an alternative without anything in the EBNF grammar (at 1:15); an empty text is written \"\"",
        ),
        ("root ::= | \"a\"", "an alternative without anything"),
        ("root ::=", "an alternative without anything"),
        ("root ::= (\"a\" | )", "an alternative without anything"),
        ("root ::= \"\\q\"", "unknown escape `\\q`"),
        ("root ::= [\\d]", "unknown escape `\\d`"),
        ("root ::= . \"a\"", "cannot stand in a rule"),
        ("root ::= 9a\n9a ::= \"x\"", "cannot stand in a rule"),
        ("root ::= \"x\" (= \"a\") \"b\"", "a look-ahead before the end of its rule"),
        ("root ::= (\"x\" (= \"a\"))", "a look-ahead inside a group"),
        ("root ::= \"a\" b ::= \"c\"", "the rule \"b\" starts before the one before it has ended"),
        ("root[lazy ::= \"a\"", "the options of a rule are not closed"),
        ("root[max_tokens=0] ::= \"a\"", "`max_tokens` is 0 in the EBNF grammar (at 1:17)"),
        ("root[temperature=-0.5] ::= \"a\"", "`temperature` is no number from 0 on"),
        ("root[temperature=] ::= \"a\"", "`temperature` is no number from 0 on"),
        ("root[temperature=1e99] ::= \"a\"", "`temperature` is no number from 0 on"),
        ("root[temperature=1, temperature=2] ::= \"a\"", "`temperature` is given twice"),
        (
            "root[lazy] ::= x\nx[capture] ::= \"a\"",
            "`lazy` of the rule \"root\", which contains the captured \"x\"",
        ),
        ("root[lazy=1] ::= \"a\"", "unknown option `lazy=1"),
        ("root[lazy, lazy] ::= \"a\"", "`lazy` is given twice"),
        ("root[capture=\"\"] ::= \"a\"", "`capture` has no name"),
        ("root[what] ::= \"a\"", "unknown option `what"),
        (
            "root[lazy] ::= \"(\" root \")\" | \"x\"",
            "`lazy` of the rule \"root\", which is no regular expression",
        ),
        ("root[max_chars=2] ::= a\na ::= b\nb ::= a | \"x\"", "`max_chars` of the rule \"root\""),
        ("root[lazy] ::= Token(1)", "`lazy` of the rule \"root\""),
        ("root ::= Token", "the macro Token has no values"),
        ("root ::= Token()", "a Token that cannot be read"),
        ("root ::= Token(\"a\")", "a Token that cannot be read"),
        ("root ::= Token(4294967296)", "the number `4294967296` is too large"),
        ("root ::= Regex(\"(\")", "in the EBNF grammar"),
        ("root ::= Regex(\"a\", flags=\"q\")", "flags of a Regex that are not known"),
        ("root ::= Regex(\"a\", what=true)", "a Regex that cannot be read"),
        ("root ::= Regex(\"a\", flags=\"i\", flags=\"s\")", "flags is given twice"),
        ("root ::= Regex(\"a\" \"b\")", "a macro that is not closed"),
        ("root ::= Regex([a])", "a value of a macro must be here"),
        ("root ::= TagDispatch((\"t\", no))", "the rule \"no\" is used and not defined"),
        ("root ::= TagDispatch((\"te\", root), excludes=(\"t\",))", "a TagDispatch that cannot be read"),
        ("root ::= TagDispatch((((((((((1))))))))))", "a value of a macro must be here"),
    ] {
        let error = parse_ebnf(text, "root").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Constraint, "{text}");
        assert!(error.to_string().contains(message), "{text}\n{error}");
    }
}

#[test]
fn gbnf_is_as_it_was() {
    for text in [
        "root ::= \"\\e\"",
        "root ::= a.b\na.b ::= \"x\"",
        "root ::= Regex(\"a\")",
        "root[lazy] ::= \"a\"",
        "root ::= [^]",
        "root\n::= \"a\"",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    check(&parse("root ::= \"\\x41b\" |").unwrap(), &["Ab", ""], &["Л"]);
}

#[test]
fn hostile_texts_end() {
    let deep = format!("root[lazy] ::= {}\"a\"{}", "(".repeat(100_000), ")*".repeat(100_000));
    check(&read(&deep), &[""], &["a"]);
    let mut doubling = String::from("root[lazy] ::= a0\n");
    for n in 0..60 {
        doubling.push_str(&format!("a{n}[max_chars=9] ::= a{0} a{0}\n", n + 1));
    }
    doubling.push_str("a60 ::= \"x\"");
    let error = parse_ebnf(&doubling, "root").unwrap_err();
    assert!(error.to_string().contains("a large one"), "{error}");
    let open = "root ::= \"a\"\n".to_string() + &"a[a".repeat(300_000);
    assert!(parse_ebnf(&open, "root").is_err());
}
