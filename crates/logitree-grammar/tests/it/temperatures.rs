//! Temperatures of rules, compared with the rules that are open if each rule with one is put between two tokens.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_grammar::rules::{borders, Captured, Rules, TokenName};
use logitree_grammar::{gbnf, lark};
use logitree_testing::random_rules::rules;
use logitree_testing::rules::Running;
use proptest::prelude::*;

use crate::earley::{machine, LETTERS};

/// So many borders are tried between two letters: with two rules more of them say nothing new.
const MAX_BORDERS: usize = 12;

/// A way to read the beginning of a text: how much of it, where the rules with borders are, the rules that are open, and the
/// borders since the last letter.
type Reading = (usize, ConfigId, Vec<usize>, usize);

/// Readings that are looked at for one text.
const MAX_READINGS: usize = 5_000;

/// The highest of the innermost temperatures with which a letter after `text` may come, by every way to read it. `None` of
/// texts that can be read in too many ways.
fn highest(running: &mut Running, temperatures: &[f32], text: &[u8]) -> Option<Option<f32>> {
    let start: Reading = (0, running.machine.start(), Vec::new(), 0);
    // Fewest borders first: another way to the same place is no better.
    let (mut open, mut seen, mut highest) = (VecDeque::from([start]), HashSet::new(), None);
    while let Some((at, config, rules, borders_before)) = open.pop_front() {
        if config == DEAD || borders_before > MAX_BORDERS || !seen.insert((at, config, rules.clone())) {
            continue;
        }
        if seen.len() > MAX_READINGS {
            return None;
        }
        for number in 0..temperatures.len() {
            let [begin, end] = borders(number).map(TokenName::Text);
            let inside = [&rules[..], &[number]].concat();
            open.push_back((at, running.step_token(config, &begin), inside, borders_before + 1));
            if let Some((_, outside)) = rules.split_last().filter(|(last, _)| **last == number) {
                let after = running.step_token(config, &end);
                open.push_back((at, after, outside.to_vec(), borders_before + 1));
            }
        }
        if let Some(&letter) = text.get(at) {
            open.push_back((at + 1, running.step(config, &[letter]), rules, 0));
        } else if LETTERS.iter().any(|&letter| running.step(config, &[letter]) != DEAD) {
            highest = higher(highest, rules.last().map(|&number| temperatures[number]));
        }
    }
    Some(highest)
}

fn higher(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    a.into_iter().chain(b).reduce(f32::max)
}

/// Compares the temperatures after all texts of up to `most` letters.
fn compare(rules: &Rules, most: usize) -> Result<(), TestCaseError> {
    let Some(mut machine) = machine(rules) else { return Ok(()) };
    let mut bordered = rules.clone();
    let mut temperatures = Vec::new();
    for rule in &mut bordered.rules {
        if let Some(temperature) = rule.marks.temperature {
            temperatures.push(temperature);
            rule.marks.capture = Some(Captured { name: Some(Arc::from("x")), end: None });
        }
    }
    let Some((bordered, _)) = bordered.with_borders() else { return Ok(()) };
    let mut open: Vec<(Vec<u8>, ConfigId)> = vec![(Vec::new(), machine.start())];
    while let Some((text, config)) = open.pop() {
        let mut running = Running::new(&bordered).expect("the same texts");
        if let Some(expected) = highest(&mut running, &temperatures, &text) {
            let said = String::from_utf8_lossy(&text).into_owned();
            prop_assert_eq!(machine.temperature(config), expected, "after {:?}", said);
        }
        for &letter in LETTERS {
            let next = machine.step(config, letter).unwrap();
            if next != DEAD && text.len() < most {
                open.push(([&text[..], &[letter]].concat(), next));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn random_rules(mut rules in rules(0), places in [0..5usize, 0..5usize]) {
        for (place, temperature) in places.into_iter().zip([0.5, 1.0]) {
            let rule = place % rules.rules.len();
            rules.rules[rule].marks.temperature = Some(temperature);
        }
        compare(&rules, 2)?;
    }
}

fn lark(text: &str) -> Rules {
    let resources = lark::Resources { grammars: &Default::default(), schema: &|_| unreachable!("no schema") };
    lark::parse(text, &resources).unwrap()
}

/// The temperatures before each letter of `text` and after the last.
fn along(rules: &Rules, text: &str) -> Vec<Option<f32>> {
    let mut machine = machine(rules).unwrap();
    let mut config = machine.start();
    let mut all = vec![machine.temperature(config)];
    for byte in text.bytes() {
        config = machine.step(config, byte).unwrap();
        assert_ne!(config, DEAD, "{text}");
        all.push(machine.temperature(config));
    }
    all
}

#[test]
fn the_innermost_rule_says_it_and_the_highest_of_several() {
    let poem = lark("start: \"a:\" poem \"!\" end\npoem[temperature=1.5]: /[a-z]{0,3}/\nend: /[0-9]/");
    let hot = Some(1.5);
    assert_eq!(along(&poem, "a:xy!1"), [None, None, hot, hot, hot, None, None]);
    let nested = lark("start[temperature=1]: \"(\" inner \")\"\ninner[temperature=0]: /x+/ start?");
    let (one, zero) = (Some(1.0), Some(0.0));
    // After x the text may continue in `inner`, in a `start` inside of it, or after it in the outer `start`.
    assert_eq!(along(&nested, "(x(xx))"), [one, zero, one, zero, one, one, one, None]);
    let counted = lark("start: a \";\"\na[temperature=0.5, max_tokens=2, capture, stop=\";\"]: /.*/");
    assert_eq!(along(&counted, "x;"), [Some(0.5), Some(0.5), None]);
    let ebnf =
        gbnf::parse_ebnf("root ::= \"a\" b \"c\"\nb[temperature=7e-1] ::= \"b\" | \"(\" b \")\"", "root");
    let warm = Some(0.7);
    assert_eq!(along(&ebnf.unwrap(), "a(b)c"), [None, warm, warm, warm, None, None]);
}

#[test]
fn a_rule_that_ends_in_itself_keeps_its_size() {
    let rules = lark("start[temperature=0.5]: \"a\" start | \"b\"");
    let mut machine = machine(&rules).unwrap();
    let mut seen = HashSet::new();
    let mut config = machine.start();
    for _ in 0..1000 {
        seen.insert(config);
        config = machine.step(config, b'a').unwrap();
        assert_eq!(machine.temperature(config), Some(0.5));
    }
    assert!(seen.len() < 5, "{} configurations", seen.len());
}
