//! Lazy grammars with the triggers of llama.cpp's chat formats.

use logitree_grammar::gbnf;
use logitree_grammar::lazy::{rules, TokenTrigger, Triggers};
use logitree_grammar::rules::TokenName;
use logitree_testing::rules as running;

fn words(words: &[&str]) -> Triggers {
    Triggers { words: words.iter().map(|word| word.to_string()).collect(), ..Triggers::default() }
}

fn patterns(patterns: &[&str]) -> Triggers {
    Triggers { patterns: patterns.iter().map(|pattern| pattern.to_string()).collect(), ..Triggers::default() }
}

fn check(grammar: &str, triggers: &Triggers, accepted: &[&str], refused: &[&str]) {
    let made = rules(&gbnf::parse(grammar).unwrap(), triggers);
    running::check(&made.unwrap_or_else(|error| panic!("{grammar}\n{error}")), accepted, refused);
}

const CALL: &str =
    "root ::= \"<call>\" json \"</call>\" tail?\njson ::= \"[\" json* \"]\" | [0-9]+\ntail ::= [a-z ]+";

#[test]
fn words_start_the_grammar() {
    let accepted = ["", "plain <call", "<call>[1[2]]</call>", "see <call>7</call> ok", "<<call>1</call>"];
    let refused = ["<call>", "<call>x", "a<call>1</call><call>2</call>", "<call>1</call>!", "<call>1"];
    check(CALL, &words(&["<call>"]), &accepted, &refused);
    // The rest of the word may be spread over several rules.
    let grammar =
        "root ::= \"{\" ws \"\\\"name\\\"\" ws value \"}\"\nws ::= \" \"*\nvalue ::= \"[\" value? \"]\"";
    check(
        grammar,
        &words(&["{\"name"]),
        &["x {\"name\" [[]]}", "{ \"name", "{"],
        &["{\"name\" }", "{\"name"],
    );
    // A grammar that continues differently is not triggered by it.
    check("root ::= \"<a>1\" | \"<b>2\"", &words(&["<a>"]), &["x<a>1", "<b>", "<b>2<b>"], &["<a>", "<a>2"]);
}

#[test]
fn words_that_overlap() {
    check("root ::= \"aa\" \"!\"", &words(&["aa"]), &["aa!", "baa!", "a"], &["aaa!", "aa"]);
    let two = "root ::= \"tool\" \"1\" | \"<tool\" \"2\"";
    check(two, &words(&["tool", "<tool"]), &["tool1", "x<tool2", "<too"], &["<tool1", "tool2"]);
    let two = "root ::= \"ab\" \"1\" | \"abc\" \"2\"";
    check(two, &words(&["ab", "abc"]), &["ab1", "abc2"], &["ab2", "abc1"]);
}

#[test]
fn tokens_start_the_grammar() {
    let token = |text: Option<&str>| Triggers {
        tokens: vec![TokenTrigger { name: TokenName::Text("<call>".into()), text: text.map(String::from) }],
        ..Triggers::default()
    };
    check(
        CALL,
        &token(Some("<call>")),
        &["x", "a⟦<call>⟧[1]</call>", "<call>"],
        &["⟦<call>⟧", "⟦<call>⟧<call>1</call>"],
    );
    let named = "root ::= (<call> | <other>) [0-9] </call>";
    check(named, &token(None), &["", "a⟦<call>⟧1⟦</call>⟧"], &["⟦<call>⟧1", "⟦<other>⟧1⟦</call>⟧"]);
    let made = rules(&gbnf::parse(CALL).unwrap(), &token(None)).unwrap_err();
    assert!(
        made.message.contains("no text of the grammar starts with the trigger the token \"<call>\""),
        "{made}"
    );
    let both = Triggers { words: vec!["<call>".into()], ..token(Some("<call>")) };
    check(CALL, &both, &["a⟦<call>⟧1</call>", "a<call>1</call>"], &["<call>", "⟦<call>⟧"]);
}

#[test]
fn patterns_start_the_grammar_at_their_group() {
    let harmony = "root ::= ws+ \"to=\" name \"{\" body \"}\"\nws ::= \" \"\nname ::= [a-z]+\nbody ::= \"(\" body \")\" | \"\"";
    let pattern = patterns(&[r"<\|start\|>assistant(\s+to)"]);
    let start = "<|start|>assistant";
    check(
        harmony,
        &pattern,
        &[&format!("x{start} to=f{{()}}"), &format!("{start}  to=f{{}}"), start, &format!("{start} t")],
        &[&format!("{start} to"), &format!("{start} to=f"), &format!("{start} to=f{{(}}")],
    );
    check(harmony, &patterns(&[r"^\s+to$"]), &["  to=f{}", "a to", "", "x to=f{}"], &[" to", " to=f"]);
    let own = "root ::= \">>>\" [a-z]+ \"!\"";
    check(own, &patterns(&[">>>(?!all)"]), &["x>>>f!", ">>", "x"], &[">>>", ">>>f"]);
    let two = "root ::= \"f\" [0-9] | \"<g\" [0-9]";
    check(two, &patterns(&["call (f)|(?:<)g"]), &["call f1", "f", "<g2", "x f1"], &["call f", "<g"]);
}

#[test]
fn what_cannot_be_honoured_is_named() {
    let grammar = gbnf::parse(CALL).unwrap();
    for (triggers, said) in [
        (Triggers::default(), "a lazy grammar without triggers"),
        (words(&[""]), "an empty word"),
        (words(&["<tool>"]), "no text of the grammar starts with the trigger \"<tool>\""),
        (words(&["<call>[[[x"]), "no text of the grammar starts"),
        (patterns(&["(<call>)*"]), "a group inside another group"),
        (patterns(&["(?:a(<call>))"]), "a group inside another group"),
        (patterns(&["(<call>)?x|("]), "a group inside another group"),
        (patterns(&["(x*)<call>"]), "a group that may be empty"),
        (patterns(&["x*"]), "an empty match"),
        (patterns(&["\\b<call>"]), "an assertion about its context"),
        (patterns(&["(?i)<call>"]), "flags for the rest of it"),
        (patterns(&["<call>["]), "the trigger /<call>[/"),
        (patterns(&["\\s*<call>"]), "at several places of one text"),
    ] {
        let error = rules(&grammar, &triggers).unwrap_err();
        assert!(error.to_string().contains(said), "{triggers:?}\n{error}");
    }
    let endless = gbnf::parse("root ::= root \"x\" | \"<call>\"").unwrap();
    assert!(rules(&endless, &words(&["y"])).unwrap_err().message.contains("unfolds without end"));
}
