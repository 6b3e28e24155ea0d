//! The recogniser on sources written by hand, and on rules whose language is known.

use super::super::expr::Encoding;
use super::super::regex::Regex;
use super::super::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use super::*;
use crate::ErrorKind;

/// States as a table; a [`LexemeTarget::ByTag`] leads to state 100 + tag.
struct Table(Vec<StateEdges>);

impl StateSource for Table {
    fn expand(&mut self, state: StateId, _: &mut Exprs) -> Result<StateEdges> {
        Ok(self.0.get(state.index()).cloned().unwrap_or(StateEdges { accepting: true, edges: Vec::new() }))
    }

    fn target(&mut self, _: StateId, _: u32, tag: Tag, _: &mut Exprs) -> Result<StateId> {
        Ok(StateId(tag))
    }

    fn describe(&self, state: StateId) -> String {
        format!("state {}", state.0 / 2)
    }
}

fn on(edges: &[Edge]) -> StateEdges {
    StateEdges { accepting: false, edges: edges.to_vec() }
}

fn machine(rules: &Rules, limits: MachineLimits) -> Result<Machine> {
    let mut exprs = Exprs::new(1 << 20);
    let source = RulesSource::new(rules, &mut exprs, None)?;
    let start = source.start();
    Machine::new(Box::new(source), start, exprs, limits)
}

fn run(machine: &mut Machine, text: &str) -> Result<ConfigId> {
    text.bytes().try_fold(machine.start(), |config, byte| machine.step(config, byte))
}

fn accepts(machine: &mut Machine, text: &str) -> bool {
    let config = run(machine, text).unwrap();
    machine.is_accepting(config)
}

fn text(text: &str) -> RuleBody {
    RuleBody::Lexeme(Regex::text(text))
}

fn rules<const N: usize>(bodies: [(&str, RuleBody); N]) -> Rules {
    let rules = bodies.into_iter().map(|(name, body)| Rule::new(name, body)).collect();
    Rules { rules, start: RuleId(0) }
}

fn set(from: char, to: char) -> RuleBody {
    RuleBody::Lexeme(Regex::range(from, to))
}

fn many(of: RuleBody, min: u32, max: Option<u32>) -> RuleBody {
    RuleBody::Repeat { of: Box::new(of), min, max }
}

/// `value ::= "[" (value ("," value)*)? "]" | [0-9]+`
fn arrays() -> Rules {
    let more = many(RuleBody::Seq(vec![text(","), RuleBody::Ref(RuleId(0))]), 0, None);
    let items = many(RuleBody::Seq(vec![RuleBody::Ref(RuleId(0)), more]), 0, Some(1));
    let digits = many(set('0', '9'), 1, None);
    rules([("value", RuleBody::Alt(vec![RuleBody::Seq(vec![text("["), items, text("]")]), digits]))])
}

#[test]
fn a_table_of_states_is_run_with_its_tags() {
    let mut exprs = Exprs::new(1000);
    let (a, b) = (exprs.tag(2).unwrap(), exprs.tag(3).unwrap());
    let (x, y) = (exprs.bytes(b"x").unwrap(), exprs.bytes(b"xy").unwrap());
    let (xa, yb) = (exprs.concat(&[x, a]).unwrap(), exprs.concat(&[y, b]).unwrap());
    let both = exprs.or(&[xa, yb]).unwrap();
    let (p, q) = (exprs.bytes(b"p").unwrap(), exprs.bytes(b"q").unwrap());
    let table = vec![
        on(&[Edge::Call { callee: StateId(1), back: StateId(4) }]),
        on(&[Edge::Lexeme { expr: both, to: LexemeTarget::ByTag }]),
        on(&[Edge::Lexeme { expr: p, to: LexemeTarget::State(StateId(9)) }]),
        on(&[Edge::Lexeme { expr: q, to: LexemeTarget::State(StateId(9)) }]),
        StateEdges { accepting: true, edges: vec![Edge::Tokens { set: 7, to: StateId(4) }] },
    ];
    let mut machine =
        Machine::new(Box::new(Table(table)), StateId(0), exprs, MachineLimits::default()).unwrap();
    for (text, good) in
        [("xp", true), ("xyq", true), ("xq", false), ("xyp", false), ("x", false), ("", false)]
    {
        assert_eq!(accepts(&mut machine, text), good, "{text}");
    }
    let config = run(&mut machine, "x").unwrap();
    assert_eq!(machine.first_bytes(config).unwrap().iter().collect::<Vec<u8>>(), b"py");
    assert_eq!(machine.describe(config), ["state 0", "state 1"]);
    let end = run(&mut machine, "xp").unwrap();
    assert_eq!(machine.token_sets(end), [7]);
    let token = machine.step_token(end, 5, &|set, id| (set, id) == (7, 5)).unwrap();
    assert!(machine.is_accepting(token));
    assert_eq!(machine.token_sets(token), [7]);
    assert_eq!(machine.step_token(end, 6, &|_, _| false).unwrap(), DEAD);
    assert_eq!(machine.step(DEAD, b'x').unwrap(), DEAD);
}

#[test]
fn enter_is_what_a_step_enters() {
    let mut machine = machine(&arrays(), MachineLimits::default()).unwrap();
    let config = run(&mut machine, "[1").unwrap();
    let next = run(&mut machine, "[1,").unwrap();
    // After "1", "," enters the array's next item: the thread that reads it leads there.
    let comma = machine.threads(config).to_vec();
    let mut entered = Vec::new();
    for (expr, continuation) in comma {
        let left = machine.exprs_mut().derive(expr, b',').unwrap();
        if machine.exprs().is_complete(left) {
            entered.push(machine.enter(continuation, 0).unwrap());
        }
    }
    assert_eq!(entered, [next]);
    assert_eq!(machine.either(next, DEAD).unwrap(), next);
    let both = machine.either(next, config).unwrap();
    for byte in 0..=255 {
        let apart = [next, config].map(|c| machine.step(c, byte).unwrap());
        let joined = machine.step(both, byte).unwrap();
        assert_eq!(machine.is_accepting(joined), apart.iter().any(|&c| machine.is_accepting(c)));
        assert_eq!(joined == DEAD, apart == [DEAD, DEAD]);
    }
}

#[test]
fn the_same_situation_is_the_same_configuration() {
    let mut machine = machine(&arrays(), MachineLimits::default()).unwrap();
    let long = format!("[{}1", "1,".repeat(1000));
    let (a, b) = (run(&mut machine, "[1,1").unwrap(), run(&mut machine, &long).unwrap());
    assert_eq!(a, b);
    assert!(machine.config_count() < 16, "{}", machine.config_count());
}

#[test]
fn a_hundred_thousand_levels_are_as_many_sets() {
    let levels = 100_000;
    let mut machine = machine(&arrays(), MachineLimits::default()).unwrap();
    let open = run(&mut machine, &"[".repeat(levels)).unwrap();
    let held = machine.byte_size();
    assert!(held < levels * 700, "{held}");
    let close = |machine: &mut Machine, n: usize| {
        (0..n).try_fold(open, |config, _| machine.step(config, b']')).map(|c| machine.is_accepting(c))
    };
    assert!(!close(&mut machine, levels - 1).unwrap());
    assert!(close(&mut machine, levels).unwrap());
    assert!(!close(&mut machine, levels + 1).unwrap());
}

#[test]
fn recursion_at_an_end_makes_no_new_sets() {
    // list ::= "a" list | "a"; rest ::= rest "b" | "b"
    let list = RuleBody::Alt(vec![RuleBody::Seq(vec![text("a"), RuleBody::Ref(RuleId(1))]), text("a")]);
    let rest = RuleBody::Alt(vec![RuleBody::Seq(vec![RuleBody::Ref(RuleId(2)), text("b")]), text("b")]);
    let both = RuleBody::Seq(vec![RuleBody::Ref(RuleId(1)), RuleBody::Ref(RuleId(2))]);
    let mut machine =
        machine(&rules([("both", both), ("list", list), ("rest", rest)]), MachineLimits::default()).unwrap();
    assert!(accepts(&mut machine, &("a".repeat(50_000) + &"b".repeat(50_000))));
    assert!(!accepts(&mut machine, "ba"));
    assert!(machine.set_count() < 12, "{}", machine.set_count());
}

#[test]
fn ambiguous_recursion_makes_no_new_sets() {
    // s ::= s s | "a"; t ::= t "+" t | t "*" t | "n"
    let s = RuleBody::Alt(vec![
        RuleBody::Seq(vec![RuleBody::Ref(RuleId(0)), RuleBody::Ref(RuleId(0))]),
        text("a"),
    ]);
    let mut both = machine(&rules([("s", s)]), MachineLimits::default()).unwrap();
    assert!(accepts(&mut both, &"a".repeat(3000)));
    assert!(both.set_count() < 8, "{}", both.set_count());
    let with = |sign| RuleBody::Seq(vec![RuleBody::Ref(RuleId(0)), text(sign), RuleBody::Ref(RuleId(0))]);
    let t = RuleBody::Alt(vec![with("+"), with("*"), text("n")]);
    let mut terms = machine(&rules([("t", t)]), MachineLimits::default()).unwrap();
    assert!(accepts(&mut terms, &("n+n*".repeat(500) + "n")));
    assert!(!accepts(&mut terms, "n+*n"));
    assert!(terms.set_count() < 12, "{}", terms.set_count());
}

#[test]
fn lexemes_of_many_lengths_do_not_multiply() {
    // s ::= ("a" | "aa" | "aaa" as rules) s "b" | "c": every way to cut the letters ends in one set a position.
    let cut = |n| RuleBody::Seq(vec![text(&"a".repeat(n)), RuleBody::Ref(RuleId(0)), text("b")]);
    let grammar = rules([("s", RuleBody::Alt(vec![cut(1), cut(2), cut(3), text("c")]))]);
    let mut machine = machine(&grammar, MachineLimits::default()).unwrap();
    assert!(accepts(&mut machine, &("a".repeat(300) + "c" + &"b".repeat(150))));
    assert!(!accepts(&mut machine, &("a".repeat(300) + "c" + &"b".repeat(99))));
    assert!(!accepts(&mut machine, &("a".repeat(300) + "c" + &"b".repeat(301))));
}

#[test]
fn repetitions_count_without_being_unrolled() {
    let value =
        RuleBody::Alt(vec![RuleBody::Seq(vec![text("("), RuleBody::Ref(RuleId(1)), text(")")]), text("x")]);
    let grammar =
        |min, max| rules([("top", many(RuleBody::Ref(RuleId(1)), min, max)), ("value", value.clone())]);
    let mut some = machine(&grammar(3, Some(5)), MachineLimits::default()).unwrap();
    for n in 0..8 {
        assert_eq!(accepts(&mut some, &"(x)".repeat(n)), (3..=5).contains(&n), "{n}");
    }
    let mut least = machine(&grammar(4, None), MachineLimits::default()).unwrap();
    for n in 0..20 {
        assert_eq!(accepts(&mut least, &"x".repeat(n)), n >= 4, "{n}");
    }
    assert!(least.set_count() < 20);
    let mut huge = machine(&grammar(4_000_000_000, Some(u32::MAX)), MachineLimits::default()).unwrap();
    assert!(!accepts(&mut huge, "xxx"));
    assert_ne!(run(&mut huge, "xxx").unwrap(), DEAD);
}

#[test]
fn rounds_that_may_be_empty_are_counted_where_they_are_not() {
    // item ::= "x"? | "(" item ")"; up to 1,000,000 of them, at least 3.
    let item = RuleBody::Alt(vec![
        many(text("x"), 0, Some(1)),
        RuleBody::Seq(vec![text("("), RuleBody::Ref(RuleId(1)), text(")")]),
    ]);
    let mut machine = machine(
        &rules([("top", many(RuleBody::Ref(RuleId(1)), 3, Some(1_000_000))), ("item", item)]),
        MachineLimits { items: 100, ..MachineLimits::default() },
    )
    .unwrap();
    assert!(accepts(&mut machine, ""));
    assert!(accepts(&mut machine, "x(x)()xxx((x))"));
    assert!(!accepts(&mut machine, "x(xx)"));
}

#[test]
fn rules_that_never_end_are_left_out_or_named() {
    let endless = RuleBody::Seq(vec![text("x"), RuleBody::Ref(RuleId(1))]);
    let good = rules([
        ("top", RuleBody::Alt(vec![RuleBody::Ref(RuleId(1)), text("y")])),
        ("endless", endless.clone()),
    ]);
    let mut machine = machine(&good, MachineLimits::default()).unwrap();
    assert!(accepts(&mut machine, "y"));
    assert_eq!(run(&mut machine, "x").unwrap(), DEAD);
    let bad = rules([("top", RuleBody::Ref(RuleId(1))), ("endless", endless)]);
    let error = super::tests::machine(&bad, MachineLimits::default()).err().unwrap();
    assert_eq!((error.kind, &error.place[..]), (ErrorKind::Constraint, "rule \"top\""));
    let gone = super::tests::machine(&rules([("top", RuleBody::Ref(RuleId(7)))]), MachineLimits::default())
        .err()
        .unwrap();
    assert_eq!(gone.kind, ErrorKind::Constraint);
}

#[test]
fn whole_tokens_stand_between_texts() {
    let think = TokenNames { tokens: vec![TokenName::Text("<think>".into())], negated: false };
    let other = TokenNames { tokens: vec![TokenName::Id(7), TokenName::Id(8)], negated: true };
    let body = [
        RuleBody::Tokens(think.clone()),
        text("a"),
        RuleBody::Tokens(other.clone()),
        RuleBody::Tokens(think.clone()),
    ];
    let grammar = rules([("top", RuleBody::Seq(body.into()))]);
    let mut exprs = Exprs::new(1000);
    let source = RulesSource::new(&grammar, &mut exprs, None).unwrap();
    assert_eq!(source.token_sets(), [think, other]);
    let start = source.start();
    let mut machine = Machine::new(Box::new(source), start, exprs, MachineLimits::default()).unwrap();
    let config = machine.start();
    assert_eq!(machine.token_sets(config), [0]);
    assert_eq!(machine.describe(config), ["the token <think>"]);
    assert_eq!(machine.step(config, b'a').unwrap(), DEAD);
    let config = machine.step_token(config, 3, &|set, id| set == 0 && id == 3).unwrap();
    assert_eq!(machine.describe(config), ["\"a\""]);
    let config = machine.step(config, b'a').unwrap();
    assert_eq!(machine.describe(config), ["any token but <[7]>, <[8]>"]);
    let config = machine.step_token(config, 4, &|set, _| set == 1).unwrap();
    assert!(!machine.is_accepting(config));
    let config = machine.step_token(config, 3, &|set, _| set == 0).unwrap();
    assert!(machine.is_accepting(config));
}

#[test]
fn limits_are_errors_that_leave_the_machine_usable() {
    // s ::= "a" s "b"? | "c" nests without end, and every level may be closed.
    let s = RuleBody::Alt(vec![
        RuleBody::Seq(vec![text("a"), RuleBody::Ref(RuleId(0)), many(text("b"), 0, Some(1))]),
        RuleBody::Seq(vec![text("c")]),
    ]);
    let grammar = rules([("s", s)]);
    for limits in [
        MachineLimits { sets: 60, ..MachineLimits::default() },
        MachineLimits { items: 60, ..MachineLimits::default() },
        MachineLimits { configs: 60, ..MachineLimits::default() },
        MachineLimits { bytes: 40_000, ..MachineLimits::default() },
    ] {
        let mut machine = machine(&grammar, limits).unwrap();
        let long = "a".repeat(1000) + "c";
        let error = run(&mut machine, &long).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limit, "{error}");
        assert_eq!(run(&mut machine, &long).unwrap_err(), error);
        if limits.bytes > 40_000 {
            assert_ne!(run(&mut machine, "aaaa").unwrap(), DEAD);
        }
        assert!(!machine.is_accepting(machine.start()));
    }
}

#[test]
fn nested_groups_end_in_an_error() {
    let mut body = text("x");
    for _ in 0..9_000 {
        body = RuleBody::Seq(vec![text("("), body, text(")")]);
    }
    let deep = rules([("top", body)]);
    let mut machine = machine(&deep, MachineLimits::default()).unwrap();
    assert!(accepts(&mut machine, &("(".repeat(9_000) + "x" + &")".repeat(9_000))));
    let Rules { rules: mut bodies, .. } = deep;
    let mut body = bodies.remove(0).body;
    for _ in 0..2_000 {
        body = RuleBody::Seq(vec![body, text(")")]);
    }
    let error = super::tests::machine(&rules([("top", body)]), MachineLimits::default()).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Limit);
}

#[test]
fn what_is_regular_is_one_lexeme() {
    // Only lexemes: one set to start from and one to end in.
    let word = many(set('a', 'z'), 1, None);
    let list = RuleBody::Seq(vec![
        RuleBody::Ref(RuleId(1)),
        many(RuleBody::Seq(vec![text(","), RuleBody::Ref(RuleId(1))]), 0, None),
    ]);
    let mut machine = machine(&rules([("list", list), ("word", word)]), MachineLimits::default()).unwrap();
    assert!(accepts(&mut machine, "ab,c,def"));
    assert!(!accepts(&mut machine, "ab,"));
    assert_eq!(machine.set_count(), 3);
}

#[test]
fn a_long_stretch_keeps_its_own_residual() {
    let any = Regex::Set(crate::CharSet::one('"').not());
    let string = RuleBody::Lexeme(Regex::concat([Regex::text("\""), any.repeat(0, None), Regex::text("\"")]));
    let pair = RuleBody::Seq(vec![
        text("{"),
        RuleBody::Ref(RuleId(1)),
        text(":"),
        RuleBody::Ref(RuleId(1)),
        text("}"),
    ]);
    let mut machine =
        machine(&rules([("pair", pair), ("string", string)]), MachineLimits::default()).unwrap();
    let (key, value) = (run(&mut machine, "{\"k").unwrap(), run(&mut machine, "{\"k\":\"v").unwrap());
    assert_ne!(key, value);
    assert_eq!(machine.threads(key)[0].0, machine.threads(value)[0].0);
    assert_eq!(machine.describe(value), ["\":\" string"]);
}

#[test]
fn every_expression_is_read_once_in_a_configuration() {
    // Words of letters nested in each other: every level reads the same word.
    let word = many(set('a', 'c'), 1, None);
    let s = RuleBody::Alt(vec![
        RuleBody::Seq(vec![RuleBody::Ref(RuleId(1)), RuleBody::Ref(RuleId(0)), text(".")]),
        text("c"),
    ]);
    let mut machine = machine(&rules([("s", s), ("word", word)]), MachineLimits::default()).unwrap();
    let config = run(&mut machine, &"abc".repeat(30)).unwrap();
    let threads = machine.threads(config);
    assert!(threads.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(accepts(&mut machine, "abcc.."));
    assert!(!accepts(&mut machine, "abc...."));
}

#[test]
fn lexemes_are_in_utf8() {
    let mut machine = machine(&rules([("top", text("é"))]), MachineLimits::default()).unwrap();
    assert!(accepts(&mut machine, "é"));
    let mut exprs = Exprs::new(100);
    let e = exprs.compile(&Regex::text("é"), Encoding::Utf8).unwrap();
    assert!(exprs.matches(e, "é".as_bytes()).unwrap());
}
