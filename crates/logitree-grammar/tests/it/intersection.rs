//! Intersections of random rules with random regular expressions. Which texts match is compared with the slow recogniser
//! for all texts of a few letters; what a configuration allows must end in a text that both sides match.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::earley::{machine, LETTERS};
use logitree_grammar::earley::{ConfigId, Machine, RulesSource, DEAD};
use logitree_grammar::expr::Exprs;
use logitree_grammar::gbnf;
use logitree_grammar::rules::{RuleBody, Rules};
use logitree_grammar::{ErrorKind, Regex};
use logitree_testing::random_rules::{plain_regex as regex, rules};
use logitree_testing::rule_oracle::Oracle;
use logitree_testing::rules::of_bodies;
use proptest::prelude::*;

/// Texts of this length are compared.
const LONGEST: usize = 5;
/// Longer witnesses are not checked: the slow recogniser has so many positions.
const MAX_WITNESS: usize = 30;

fn matches(rules: &Rules, text: &[u8]) -> bool {
    Oracle::new(rules, text).accepts()
}

/// The shortest text from `config` on that ends, as the machine finds it.
fn witness(machine: &mut Machine, config: ConfigId) -> Option<Vec<u8>> {
    let mut before: HashMap<ConfigId, (ConfigId, u8)> = HashMap::new();
    let mut open = VecDeque::from([config]);
    while let Some(at) = open.pop_front() {
        if machine.is_accepting(at) {
            let (mut text, mut at) = (Vec::new(), at);
            while at != config {
                let (earlier, byte) = before[&at];
                text.push(byte);
                at = earlier;
            }
            text.reverse();
            return Some(text);
        }
        assert!(before.len() < 20_000, "no end of the text within 20,000 configurations");
        for &byte in LETTERS {
            let next = machine.step(at, byte).unwrap();
            if next != DEAD && next != config && !before.contains_key(&next) {
                before.insert(next, (at, byte));
                open.push_back(next);
            }
        }
    }
    None
}

/// Compares the machine of `both` with a test of whole texts.
fn compare(both: &Rules, holds: &dyn Fn(&[u8]) -> bool) -> Result<(), TestCaseError> {
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut at = 0;
    while at < texts.len() {
        if texts[at].len() < LONGEST {
            for &byte in LETTERS {
                texts.push([&texts[at][..], &[byte]].concat());
            }
        }
        at += 1;
    }
    let accepted: Vec<&Vec<u8>> = texts.iter().filter(|text| holds(text)).collect();
    let Some(mut machine) = machine(both) else {
        prop_assert!(accepted.is_empty(), "{:?} is in both, and the intersection is refused", accepted[0]);
        return Ok(());
    };
    let mut ends: HashMap<ConfigId, Vec<u8>> = HashMap::new();
    for text in &texts {
        let config = text.iter().try_fold(machine.start(), |at, &byte| machine.step(at, byte)).unwrap();
        let said = String::from_utf8_lossy(text);
        prop_assert_eq!(machine.is_accepting(config), accepted.contains(&text), "{:?} matches", said);
        if config == DEAD {
            let longer = accepted.iter().find(|longer| longer.starts_with(text));
            prop_assert!(longer.is_none(), "{:?} is refused, and {:?} matches", said, longer);
            continue;
        }
        let end = match ends.get(&config) {
            Some(known) => known.clone(),
            None => witness(&mut machine, config)
                .ok_or_else(|| TestCaseError::fail(format!("{said:?} is a dead end")))?,
        };
        ends.insert(config, end.clone());
        let whole = [&text[..], &end].concat();
        prop_assert!(whole.len() > MAX_WITNESS || holds(&whole), "{:?} ends with {:?}", said, end);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn intersections_equal_brute_force(rules in rules(0), with in regex()) {
        let rules = Arc::new(rules);
        let regular = Rules::lexeme(with.clone());
        compare(&Rules::both(&rules, with), &|text| matches(&rules, text) && matches(&regular, text))?;
    }

    #[test]
    fn nested_intersections_equal_brute_force(
        rules in rules(0), first in regex(), then in regex(), second in regex(), min in 0..2u32,
    ) {
        let rules = Arc::new(rules);
        let [one, tail, two] = [first.clone(), then.clone(), second.clone()].map(Rules::lexeme);
        let inner = Arc::new(Rules::both(&rules, first));
        let joined = Rules::joined(&[inner, Arc::new(tail.clone())], |mut parts| {
            let of = Box::new(parts.remove(0));
            RuleBody::Seq(vec![RuleBody::Repeat { of, min, max: Some(1) }, parts.remove(0)])
        });
        let holds = |text: &[u8]| {
            matches(&two, text) && (0..=text.len()).any(|at| {
                let (head, rest) = text.split_at(at);
                let empty = min == 0 && head.is_empty();
                (empty || matches(&rules, head) && matches(&one, head)) && matches(&tail, rest)
            })
        };
        compare(&Rules::both(&Arc::new(joined), second), &holds)?;
    }
}

fn both(grammar: &str, with: Regex) -> Rules {
    Rules::both(&Arc::new(gbnf::parse(grammar).unwrap()), with)
}

fn many(text: &str) -> Regex {
    Regex::text(text).repeat(0, None)
}

/// The search over pairs of states never ended here: what is written can grow without end, and never be completed.
#[test]
fn what_can_never_be_completed_is_refused() {
    let nested = r#"root ::= "a" root "b" | "ab""#;
    assert!(machine(&both(nested, many("a"))).is_none());
    let mut one = machine(&both(nested, Regex::concat([many("a"), many("b")]))).unwrap();
    let start = one.start();
    assert!(witness(&mut one, start).is_some_and(|text| text == b"ab"));
    let few = Regex::concat([many("a"), Regex::text("b").repeat(2, Some(3))]);
    let holds = |text: &[u8]| text == b"aabb" || text == b"aaabbb";
    compare(&both(nested, few), &holds).unwrap();
    // Every c needs two more letters after it, and the other side allows none after a c.
    let palindromes = r#"root ::= "a" root "a" | "b" root "b" | "c""#;
    let ends = Regex::concat([Regex::range('a', 'b').repeat(1, None), Regex::text("c")]);
    assert!(machine(&both(palindromes, ends)).is_none());
    let twice = Regex::concat([Regex::text("ab"), Regex::range('a', 'c').repeat(0, None)]);
    let reads = gbnf::parse(palindromes).unwrap();
    compare(&both(palindromes, twice), &|text| text.starts_with(b"ab") && matches(&reads, text)).unwrap();
}

#[test]
fn long_counts_are_exact_where_lexemes_are_small() {
    let rounds = |text: &str| Regex::text(text).repeat(20, Some(20)).repeat(0, None);
    let twenty = both(r#"root ::= "a" root "b" | "ab""#, Regex::concat([rounds("a"), rounds("b")]));
    let mut machine = machine(&twenty).unwrap();
    let mut config = machine.start();
    for length in 1..=65 {
        config = machine.step(config, b'a').unwrap();
        assert_eq!(machine.step(config, b'b').unwrap() != DEAD, length % 20 == 0, "{length}");
    }
    let end = witness(&mut machine, config).unwrap();
    assert_eq!(end, [vec![b'a'; 15], vec![b'b'; 80]].concat());
}

#[test]
fn ends_past_the_limit_are_refused_by_it() {
    let rounds = Regex::range('a', 'c').repeat(70, Some(70)).repeat(0, None);
    let rules = both(r#"root ::= "a" root "b" root | "c" root | "b""#, rounds);
    let error = RulesSource::new(&rules, &mut Exprs::new(1 << 20), None).err();
    assert_eq!(error.map(|error| error.kind), Some(ErrorKind::Limit));
}

#[test]
fn an_intersection_is_no_wider_than_the_empty_text() {
    let mut machine = machine(&both(r#"root ::= "" | "a" root "b""#, many("a"))).unwrap();
    let start = machine.start();
    assert!(machine.is_accepting(start) && machine.threads(start).is_empty());
    assert_eq!(machine.step(start, b'a').unwrap(), DEAD);
}

#[test]
fn whole_tokens_are_refused_by_a_limit() {
    let rules = Arc::new(of_bodies([gbnf::parse("root ::= <[5]>").unwrap().rules.remove(0).body]));
    assert!(rules.depends_on_tokens() && Rules::both(&rules, many("a")).depends_on_tokens());
    assert!(matches!(Rules::both(&rules, many("a")).rules[0].body, RuleBody::Both(_)));
}
