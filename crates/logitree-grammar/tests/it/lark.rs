//! Lark: the meaning of each form, the message of each mistake, and that hostile texts terminate.

use std::collections::BTreeMap;
use std::sync::Arc;

use logitree_grammar::gbnf;
use logitree_grammar::json_schema::Schema;
use logitree_grammar::lark::{parse, Resources};
use logitree_grammar::rules::Rules;
use logitree_grammar::{Error, ErrorKind, Result};
use logitree_testing::gbnf_writer::show;
use logitree_testing::rules::{self as running, accepts};

/// Rejects every schema.
fn no_schema(_: &str) -> Result<Arc<Schema>> {
    Err(Error::new(ErrorKind::Constraint, "no schemas").at("/type"))
}

fn read_with(text: &str, grammars: &BTreeMap<String, Rules>) -> Result<Rules> {
    parse(text, &Resources { grammars, schema: &no_schema })
}

fn read(text: &str) -> Result<Rules> {
    read_with(text, &BTreeMap::new())
}

/// Checks texts that a grammar accepts and texts that it rejects.
fn check(grammar: &str, accepted: &[&str], refused: &[&str]) {
    running::check(&read(grammar).unwrap_or_else(|error| panic!("{grammar}\n{error}")), accepted, refused);
}

#[test]
fn forms_of_rules() {
    check("start: \"a\" \"b\" | \"c\"", &["ab", "c"], &["", "a", "abc"]);
    check("start: \"a\"\n  | \"b\"\n  # c\n\n  | \"c\" // d\n", &["a", "b", "c"], &["ab"]);
    check("start: (\"a\" | \"b\")* [\"c\"]", &["", "abba", "bc", "c"], &["cc"]);
    check("start: (\n  \"a\"\n  | \"b\"\n)+\nx: \"y\"", &["ab"], &["", "y"]);
    check("start: \"a\"~2 \"b\"~1..3", &["aab", "aabbb"], &["ab", "aabbbb"]);
    check("start: \"a\" ~ 2", &["aa"], &["a", "aaa"]);
    check("start: \"a\"{2} \"b\"{1,} \"c\"{,2} \"d\"{0}", &["aab", "aabbcc"], &["aabd", "aabccc"]);
    check("?start: x -> y\n!x.2: _z\n_z: \"a\"", &["a"], &["b"]);
    check("start: start \"a\" | \"b\"", &["b", "baa"], &["a", "ab"]);
    check("start: |\"a\"|", &["", "a"], &["b"]);
    check("start: \"a\" -> one | \"b\" -> two", &["a", "b"], &[]);
    check("start: \"\"", &[""], &["a"]);
    check("start: a-b\na-b: A-B\nA-B: \"x\"", &["x"], &["a-b"]);
}

#[test]
fn texts_and_ranges() {
    check(r#"start: "\"\\\/\n\t\x41\u00e9\ud83d\ude00é""#, &["\"\\/\n\tA\u{e9}😀é"], &[]);
    check(r#"start: "select"i " " "ß"i"#, &["SELECT ß", "sElEcT ß"], &["selec ß"]);
    check(r#"start: "a.*"i"#, &["A.*", "a.*"], &["abc"]);
    check(r#"start: "a".."f""#, &["a", "f"], &["g", "A"]);
    check(r#"start: "é".."ü""#, &["é", "ê"], &["e"]);
}

#[test]
fn regular_expressions() {
    check(r"start: /[a-z]+\/\d{2}/", &["abc/12"], &["abc/1", "/12"]);
    check(r"start: /a.b/", &["axb", "a\rb"], &["a\nb"]);
    check(r"start: /a.b/s", &["a\nb"], &["ab"]);
    check(r"start: /abc/i", &["ABC", "abc"], &["ab"]);
    check(r"start: /(.|\n)*/", &["", "a\nb"], &[]);
}

#[test]
fn terminals() {
    check("start: A\nA: B C? | \"x\"~2\nB: \"b\"\nC: /c+/", &["b", "bccc", "xx"], &["x", "c"]);
    check("start: A\nA: /[a-z]+/ & ~\"if\" & ~/else/", &["i", "iff", "elsewhere"], &["if", "else", "A", ""]);
    check("start: A\nA: /[a-z \\n]*/ & ~/(?s:.*)\\n\\n(?s:.*)/", &["a\nb\n", ""], &["a\n\nb"]);
    check("start: A\nA: (~\"b\")+ & /[a-c]/", &["a", "c"], &["b", "ab"]);
    check("start: A\nA: \"a\" & /[ab]/ | \"c\"", &["a", "c"], &["b"]);
    check("start: ~/b/ \"!\"", &["a!", "bb!"], &["b!"]);
}

#[test]
fn what_is_ignored_stands_behind_lexemes() {
    let grammar = "start: \"a\" (B \",\")* /c/\nB: \"b\" \"b\"\n%ignore /[ \\t]+/\n%ignore \"#\"";
    check(grammar, &["ac", "a bb , c ", "a # bb\t,#c", "abb,bb,c"], &[" ac", "a b b,c", "bb"]);
    let grammar = "%llguidance {\"allow_initial_skip\": true}\nstart: \"a\"\n%ignore / +/";
    check(grammar, &["a", "  a", " a "], &["", " "]);
    let grammar = "%llguidance {\"ignore_once\": true}\nstart: \"a\" \"b\"\n%ignore / {1,3}/";
    check(grammar, &["ab", "a   b   "], &["a    b"]);
    let grammar = "start: \"a\" %lark { start: \"b\" \"c\" } \"d\"\n%ignore \" \"";
    check(grammar, &["a bc d", "abcd"], &["a b c d"]);
}

#[test]
fn imports() {
    check(
        "%import common.INT\n%import common (WS, CNAME)\nstart: INT WS CNAME",
        &["12 \na_1"],
        &["12a", " x"],
    );
    check("%import common.SIGNED_NUMBER -> N\nstart: N", &["-1", "+.5e-3", "1.", "2e5"], &["1e", "--1", "."]);
    check(
        "%import common.ESCAPED_STRING\nstart: ESCAPED_STRING",
        &[r#""a\"b""#, "\"\""],
        &[r#""a\""#, "\"a\"b\""],
    );
    check("%import common.C_COMMENT\nstart: C_COMMENT", &["/**/", "/* * / **/"], &["/**/ */", "/*/"]);
    check("%import common.NEWLINE\nstart: NEWLINE", &["\n", "\r\n\n"], &["\r"]);
    let unknown = read("%import common.BLAH\nstart: \"a\"").unwrap_err();
    let names: Vec<&str> = unknown.help.trim_start_matches("it has ").split(", ").collect();
    assert_eq!(names.len(), 25);
    for name in names {
        let rules = read(&format!("%import common.{name}\nstart: {name}")).unwrap();
        assert!(!accepts(&rules, ""), "{name}");
    }
}

#[test]
fn endings() {
    let grammar = "start: a \"!\"\na[lazy]: /(.|\\n)*<end>/";
    check(grammar, &["x<end>!", "<end>!"], &["x<end><end>!", "x!"]);
    let grammar = "start: a \"!\"\na[capture, suffix=\"<end>\"]: /.*/";
    check(grammar, &["x<end>!", "<end>!"], &["x<end><end>!", "x!"]);
    let grammar = "start: a \"<end>!\"\na[stop=\"<end>\", capture=\"y\", stop_capture=\"z\"]: /.*/";
    check(grammar, &["x<end>!", "<end>!"], &["x<end><end>!"]);
    let grammar = "start: a \"aa\"\na[stop=\"aa\"]: /[ab]*/";
    check(grammar, &["aa", "baa", "abaa"], &["aaa", "aabaa"]);
    check("start: a\na[lazy]: /[0-9]+/", &["1"], &["12"]);
    check("start: a\na[lazy]: /.*/", &[""], &["1"]);
    check("start: a B\na[suffix=B]: /.*/\nB: \";\" | \"?\"", &["x;?", "?;"], &["x;y?;"]);
}

#[test]
fn lazy_terminals_win_where_something_else_could_start() {
    // Text until `<function`, which must then continue as one of the two.
    let calls = "start: (foo | bar)* end\nend: TEXT\nTEXT: /(.|\\n)*/\n\
        foo_head[lazy]: TEXT \"<function\"\nfoo: foo_head \"=foo>\" \"{}\" \"</function>\"\n\
        bar_head[lazy]: TEXT \"<function\"\nbar: bar_head \"=bar>\" /[0-9]+/ \"</function>\"";
    let accepted = ["", "text", "a <function=foo>{}</function> b <function=bar>7</function>", "<functio"];
    check(calls, &accepted, &["<function", "a <function=baz>", "<function=foo>{}</function> <function"]);
    let plus = calls.replace(")* end", ")+ end");
    check(&plus, &["a<function=foo>{}</function>b"], &["", "text", "<function=foo>{}</function><function"]);
    check("start: a \"!\" | /[a-z]+/\na[lazy]: /[a-z]*x/", &["x!", "abx!", "ab"], &["x", "abx", "abxc"]);
    check("start: a? /[a-z]+/\na[lazy]: /[a-z]*x/", &["xy", "axb", "ab"], &["abx", "x"]);
    check("start: (a | b) /[xy]*/\na[lazy]: /.*x/\nb[lazy]: /.*xy/", &["x", "zxxy"], &["zy"]);
    check(
        "start: a | B* \"q\"\nB: /[a-z]/\na[lazy]: /xy/\n%ignore \" \"",
        &["xy", "x q", "q", "z xyq"],
        &["xxy"],
    );
    let many: String = (0..200_000).map(|_| "a? ").collect();
    let error = read(&format!("start: {many}\na[lazy]: /.*x/")).unwrap_err();
    assert!(error.message.contains("lazy terminals occur in too many choices"), "{}", error.message);
    // Restricted remainders of unbounded length after a lazy terminal.
    let endless = "start: (foo | bar)*start end\nend: TEXT\nTEXT: /(.|\\n)*/\nhead[lazy]: TEXT \"<f\"\n\
        foo: head \"=foo>\" %json {\"type\": \"object\"} \"</f>\"\nbar: head \"=bar>\" /[0-9]+/ \"</f{1,2}on>\"";
    let start = std::time::Instant::now();
    assert!(read(endless).is_err());
    assert!(start.elapsed().as_secs() < if cfg!(debug_assertions) { 10 } else { 1 }, "{:?}", start.elapsed());
}

#[test]
fn structured_regular_expressions() {
    let grammar = "start: %regex {\"substring_chunks\": [\"abc\", \"de\", \"fg\"]}";
    check(grammar, &["", "abc", "de", "abcde", "defg", "abcdefg"], &["ab", "cde", "abcfg"]);
    let grammar = "start: %regex {\"substring_words\": \"foo bar. baz\"}";
    check(grammar, &["foo", "foo ", "bar. baz", " ", "."], &["fo", "foo baz"]);
    check("start: %regex {\"substring_chars\": \"aé c\"}", &["é ", "c", "aé c"], &["ac"]);
}

#[test]
fn tokens() {
    let first = |text: &str| show(&read(text).unwrap()).lines().next().unwrap().to_string();
    assert_eq!(first("start: <|im_end|> !<think> <[7]>"), "root ::= <|im_end|> !<think> <[7]>");
    assert_eq!(first("start: <[1-3,5]>"), "root ::= (<[1]> | <[2]> | <[3]> | <[5]>)");
    assert_eq!(first("start: <[^7,8]> !<[9]>"), "root ::= !(<[7]> | <[8]>) !<[9]>");
    assert_eq!(first("start: <[*]>"), "root ::= !()");
    assert_eq!(first("start: <a> \"b\"\n%ignore \" \""), "root ::= (<a> -ignored) (\"b\" -ignored)");
}

#[test]
fn other_grammars() {
    let other = gbnf::parse("root ::= x+\nx ::= [ab]").unwrap();
    let grammars = BTreeMap::from([("other".to_string(), other)]);
    let rules = read_with("start: \"(\" @other \")\" | @other", &grammars).unwrap();
    assert!(accepts(&rules, "(abba)") && accepts(&rules, "a") && !accepts(&rules, "()"));
    let error = read_with("start: @others", &grammars).unwrap_err();
    assert!(error.to_string().contains("the grammar @others is not known"), "{error}");
    assert!(error.help.contains("known are: other"), "{error}");
}

#[test]
#[allow(clippy::too_many_lines)] // one table
fn every_mistake_has_its_place_and_a_way_out() {
    for (text, said) in [
        ("root: \"a\"", "no rule \"start\" in the Lark grammar (at 1:1); define it: start: ..."),
        ("start: b", "the rule \"b\" is used and not defined in the Lark grammar (at 1:8); define it: b: ..."),
        ("start: INT", "the terminal \"INT\" is used and not defined in the Lark grammar (at 1:8); import it: %import common.INT"),
        ("start: valeu\nvalue: \"x\"", "did you mean \"value\"?"),
        ("start: \"a\"\nstart: \"b\"", "the rule \"start\" is defined twice in the Lark grammar (at 2:1)"),
        ("start: A\nA: \"a\"\nA: \"b\"", "the terminal A is defined twice in the Lark grammar (at 3:1)"),
        ("start: A\nA: \"b\" B\nB: A", "the terminal A refers to itself in the Lark grammar (at 3:4)"),
        ("start: A\nA: b\nb: \"x\"", "the rule \"b\" cannot stand in a terminal in the Lark grammar (at 2:4)"),
        ("start: \"a", "a text that is not closed in its line in the Lark grammar (at 1:8)"),
        ("start: /a", "a regular expression that is not closed in its line in the Lark grammar (at 1:8)"),
        ("start: (\"a\"\nb: \"c\"", "a group that is not closed"),
        ("start: \"a\")", "a line must end here, not `)`"),
        ("start: \"\\q\"", "unknown escape `\\q` in the Lark grammar (at 1:9)"),
        ("start: \"a\" \"\\ud83dx\"", "U+D83D is half of a character in the Lark grammar (at 1:13)"),
        ("start: /[a/", "the Lark grammar (at 1:8)"),
        ("start: /a/l", "unknown flag `l` of a regular expression"),
        ("start: \"ab\"..\"c\"", "a range needs one character on each side"),
        ("start: \"d\"..\"a\"", "a range that runs from back to front"),
        ("start: \"a\"{3,2}", "a repetition whose most is less than its least"),
        ("start: \"a\"{-1,2}", "`-1` is no count"),
        ("start: \"a\"{99999999999}", "`99999999999` is no count"),
        ("start: A\nA: <a>", "the token <a> cannot stand in a terminal in the Lark grammar (at 2:4)"),
        ("start: A\nA: @b", "the grammar @b cannot stand in a terminal"),
        ("start: A\nA: %json {}", "%json cannot stand in a terminal"),
        ("start: <[3-1]>", "`<[3-1]>` names no tokens: `3-1` runs from back to front"),
        ("start: <[1-2-3]>", "`2-3` is no number of a token"),
        ("start: <[,]>", "`<[,]>` names no tokens: the list is empty"),
        ("start: <[^*]>", "names no tokens"),
        ("start: <[0-4294967295]>", "it lists 4294967296 numbers"),
        ("start: < a>", "`< a>` is no token"),
        ("start: %json {", "no JSON value follows %json"),
        ("start: %json []", "no schemas (at /type) in the Lark grammar (at 1:8)"),
        ("start: %regex {}", "this %regex is not known"),
        ("%llguidance {\"a\": true}\nstart: \"a\"", "unknown option \"a\" in the Lark grammar (at 1:1)"),
        ("%llguidance {\"no_forcing\": 1}\nstart: \"a\"", "is neither true nor false"),
        ("%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"", "allow_invalid_utf8 is not honoured"),
        ("%import common.BLAH\nstart: \"a\"", "common has no terminal \"BLAH\""),
        ("%import python.NAME\nstart: \"a\"", "the library \"python\" is not known"),
        ("%declare A\nstart: \"a\"", "%declare is not read"),
        ("%override start: \"b\"", "%override is not read"),
        ("start: a{b}\na{x}: x", "\"a\" has parameters: templates are not read"),
        ("start: A::0x0\nA::_: \"b\"", "\"A\" has a parameter, and is a terminal"),
        ("start: \"a\" %if true", "a condition in a rule without a parameter"),
        ("start: a::_\na::_: \"b\"", "the value of a parameter in a rule that has none"),
        ("start: a\na::_: \"b\"", "the rule \"a\" has a parameter in the Lark grammar (at 1:8); say its value: a::0"),
        ("start: a::1\na: \"b\"", "the rule \"a\" has no parameter"),
        ("start: a::set_bit(64)\na::_: \"b\"", "there is no bit 64"),
        ("start: a::0\na::_: \"b\" %if is_ones([3:3])", "there are no bits [3:3]"),
        ("start: a::0\na::_: \"b\" %if what(1)", "unknown condition `what(1)`"),
        ("start: a::what(1)\na::_: \"b\"", "unknown value of a parameter `what(1)`"),
        ("start: a::99999999999999999999\na::_: \"b\"", "is no number of 64 bits"),
        ("start: a::0\na[lazy]::_: \"b\"", "`:` must follow a rule's name"),
        ("start: a::0\na::_[lazy]: \"b\" %if true", "a condition where texts are one terminal"),
        ("start: a::0\na::3: \"b\"", "`_` must follow `::` in a definition"),
        ("start: A\nA.2: \"a\"", "the terminal A has a priority"),
        ("start: \"a\" & \"b\"", "& joins terminals, not rules"),
        ("start[max_tokens=3]: \"a\" start | \"b\"", "`max_tokens` of the rule \"start\", which is no terminal"),
        ("start[temperature=-0.5]: \"a\"", "`temperature` is no number from 0 on"),
        ("start[temperature=\"1\"]: \"a\"", "`temperature` is no number from 0 on"),
        ("start[temperature]: \"a\"", "`temperature` is no number from 0 on"),
        ("start[stop=\"\"]: \"a\"", "an empty stop is not read in the Lark grammar (at 1:7); leave it out"),
        ("start[suffix=\"\"]: \"a\"", "an empty suffix"),
        ("start[capture=\"\"]: \"a\"", "`capture` has no name"),
        ("start[capture=3]: \"a\"", "`capture` has no name"),
        ("start[lazy=3]: \"a\"", "unknown attribute `lazy=3"),
        ("start[capture=/a/]: \"a\"", "`capture` has no name"),
        ("start[capture, capture]: \"a\"", "`capture` is given twice"),
        ("start[lazy, capture, lazy]: \"a\"", "`lazy` is given twice"),
        ("start[stop_capture=\"x\"]: \"a\"", "`stop_capture` without a stop"),
        ("start[stop=\"a\", stop_capture]: \"a\"", "`stop_capture` has no name"),
        ("start: \"a\" ->\nb: \"c\"", "a name must follow `->`"),
        ("start: \"a\" -> | \"b\"", "a name must follow `->`, not `|"),
        ("start: \"a\" -> NAME", "a name must follow `->`"),
        ("start: \"a\"i..\"f\"i", "a range has no flags in the Lark grammar (at 1:8)"),
        ("start: A\nA: \"a\"..\"f\"i", "a range has no flags in the Lark grammar (at 2:4)"),
        ("start[what]: \"a\"", "unknown attribute `what]: \"a\"`"),
        ("start[stop=/a*/]: \"b\"", "a stop that may be empty in the Lark grammar (at 1:7)"),
        ("start[lazy]: b\nb: \"x\"", "the rule \"b\" cannot stand in a terminal"),
        ("start: fooBar", "the name `fooBar` is neither lower case nor upper case"),
        ("start: \"a\" ;", "`;` cannot stand here"),
        ("\"a\"", "a rule, a terminal or a directive must start here, not `\"a\"`"),
        ("start \"a\"", "`:` must follow a rule's name, not `\"a\"`"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Constraint, "{text}");
        let message = error.to_string();
        assert!(message.contains(said), "{text}\n{message}");
    }
}

#[test]
fn all_problems_at_once() {
    let text = "start: a B\nB: \"\\q\" /[/\nc: (\nd: }\n%import common.NO\n%json {}\ne: <[]> \"x\" missing\n";
    let message = read(text).unwrap_err().to_string();
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    assert_eq!(lines[0], "9 problems in the Lark grammar:", "{message}");
    let places: Vec<&str> = lines[1..].iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["1:8", "2:5", "2:9", "3:4", "4:4", "5:16", "6:1", "7:4", "7:13"], "{message}");
}

#[test]
fn hostile_texts_end() {
    let n = 100_000;
    let deep = |open: &str, close: &str| format!("start: {}\"x\"{}", open.repeat(n), close.repeat(n));
    for text in [
        deep("(", ")"),
        deep("[", "]"),
        deep("~", ""),
        deep("(\"a\" | ", ")"),
        "start: ".to_string() + &"(".repeat(n),
    ] {
        let error = read(&text).err();
        assert!(error.is_none_or(|error| error.kind == ErrorKind::Constraint));
    }
    let chain: String = (0..n).map(|i| format!("A{i}: A{} \"x\"\n", i + 1)).collect();
    let error = read(&format!("start: A0\n{chain}A{n}: \"x\"")).unwrap_err();
    assert!(error.message.contains("refer to each other more than 300 deep"), "{}", error.message);
    let doubled: String = (0..60).map(|i| format!("A{i}: A{} A{}\n", i + 1, i + 1)).collect();
    let error = read(&format!("start: A0\n{doubled}A60: \"x\"")).unwrap_err();
    assert!(error.message.contains("the terminals are too large"), "{}", error.message);
    let nested = format!("start: {} \"x\" {}", "%lark { start: ".repeat(200), "}".repeat(200));
    assert!(read(&nested).is_err());
    for unit in ["a|", "<", "%json {\n", "%regex [\n", "a: (\n", "A: (A\n", "x{", "&", "~", "@"] {
        let text = format!("start: {}", unit.repeat(2_000_000 / unit.len()));
        assert!(read(&text).is_err(), "{unit}");
    }
    assert_eq!(read(&" ".repeat(5_000_000)).unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn rules_with_parameters() {
    let permutations = "start: p::0x0
        p::_ : \"\" %if is_ones([0:3])
             | \"a\" p::set_bit(0) %if bit_clear(0)
             | \"b\" p::set_bit(1) %if bit_clear(1)
             | \"c\" p::set_bit(2) %if bit_clear(2)";
    check(permutations, &["abc", "cab", "bca"], &["", "ab", "aab", "abca"]);
    let counts = "start: n::0
        n::_ : \"a\" n::incr([0:2]) %if lt([0:2], 3)
             | \"b\" n::bit_or(0x10)
             | \"\" %if and(bit_set(4), or(eq([0:2], 3), bit_count_le([0:2], 1)))";
    check(counts, &["b", "ab", "baab", "aaab"], &["", "a", "aaaab"]);
    let nested = "start: %lark { start: a::1\na::_: \"x\" a::decr(_) %if gt(_, 0)\n | \"y\" } \"z\"";
    check(nested, &["xyz", "yz"], &["xxyz", "z"]);
    let ignored = "start: a::0\na::_: \"x\" a::set_bit(63) %if not(bit_set(63))\n | \"y\"\n%ignore \" \"";
    check(ignored, &["x y ", "y"], &["xx"]);
    let many = "start: p::0\np::_: \"\" | \"a\" p::incr(_)";
    assert_eq!(read(many).unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn stops_that_are_patterns() {
    check(
        "start: a /[\\n;]/ \"x\"\na[stop=/[\\n;]+/]: /(?s:.*)/",
        &["ab;x", "\nx", ";x"],
        &["a;;x", "a;b;x", "abx"],
    );
    check(
        "start: a \"end\"\na[stop=END]: /[a-z]*/\nEND: \"end\" | \"stop\"",
        &["end", "abcend"],
        &["stopend", "endend"],
    );
}
