//! The recogniser on random rules, compared with the slow recogniser: which texts match,
//! and which are prefixes of a match.

use logitree_grammar::earley::{ConfigId, Machine, DEAD};
use logitree_grammar::expr::NOTHING;
use logitree_grammar::rules::{RuleBody, RuleId, Rules};
use logitree_grammar::{CharSet, ErrorKind, Regex};
use logitree_testing::random_rules::rules;
use logitree_testing::rule_oracle::Oracle;
use logitree_testing::rules::{of_bodies, Running};
use proptest::prelude::*;

pub(crate) const LETTERS: &[u8] = b"abc";

/// The machine of rules; `None` where no text matches.
pub(crate) fn machine(rules: &Rules) -> Option<Machine> {
    match Running::new(rules) {
        Ok(running) => Some(running.machine),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
            None
        }
    }
}

/// Compares all texts of up to `most` letters that are prefixes of a match.
fn compare(rules: &Rules, most: usize) -> Result<(), TestCaseError> {
    let Some(mut machine) = machine(rules) else {
        prop_assert!(!Oracle::new(rules, b"").is_viable(), "a grammar with a text was refused");
        return Ok(());
    };
    let mut open: Vec<(Vec<u8>, ConfigId)> = vec![(Vec::new(), machine.start())];
    while let Some((text, config)) = open.pop() {
        let said = String::from_utf8_lossy(&text).into_owned();
        let oracle = Oracle::new(rules, &text);
        prop_assert_eq!(machine.is_accepting(config), oracle.accepts(), "{:?} matches", &said);
        prop_assert_eq!(config != DEAD, oracle.is_viable(), "{:?} is viable", &said);
        let first = machine.first_bytes(config).unwrap();
        for byte in 0..=255u8 {
            if !LETTERS.contains(&byte) {
                prop_assert!(!first.contains(byte));
                continue;
            }
            let next = machine.step(config, byte).unwrap();
            prop_assert_eq!(next, machine.step(config, byte).unwrap());
            prop_assert_eq!(next != DEAD, first.contains(byte), "{:?} then {}", &said, byte);
            if config != DEAD && text.len() < most {
                open.push(([&text[..], &[byte]].concat(), next));
            }
        }
    }
    Ok(())
}

/// Whether `text` is a prefix from `config`, and whether it matches: each lexeme alone, and what follows it
/// from its start. This is how masks are composed.
fn apart(machine: &mut Machine, config: ConfigId, text: &[u8]) -> (bool, bool) {
    if text.is_empty() {
        return (config != DEAD, machine.is_accepting(config));
    }
    let (mut viable, mut matches) = (false, false);
    for (start, cont) in machine.threads(config).to_vec() {
        let mut left = start;
        for (n, &byte) in text.iter().enumerate() {
            left = machine.exprs_mut().derive(left, byte).unwrap();
            for tag in machine.exprs().outcomes(left).to_vec() {
                let next = machine.enter(cont, tag).unwrap();
                let rest = apart(machine, next, &text[n + 1..]);
                viable |= rest.0;
                matches |= rest.1;
            }
        }
        viable |= left != NOTHING;
    }
    (viable, matches)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_machine_equals_the_oracle(rules in rules(0)) {
        compare(&rules, 5)?;
    }

    /// Long texts, most of them viable: the recogniser must return to earlier sets.
    #[test]
    fn long_walks_equal_the_oracle(rules in rules(0), script in prop::collection::vec(any::<u8>(), 20)) {
        let Some(mut machine) = machine(&rules) else { return Ok(()) };
        let (mut config, mut text) = (machine.start(), Vec::new());
        for choice in script {
            let first: Vec<u8> = machine.first_bytes(config).unwrap().iter().collect();
            let any = LETTERS[usize::from(choice) % LETTERS.len()];
            let byte = first.get(usize::from(choice) % (first.len() + 1)).copied().unwrap_or(any);
            text.push(byte);
            config = machine.step(config, byte).unwrap();
            let oracle = Oracle::new(&rules, &text);
            prop_assert_eq!(machine.is_accepting(config), oracle.accepts(), "{:?}", text);
            prop_assert_eq!(config != DEAD, oracle.is_viable(), "{:?}", text);
            if config == DEAD {
                break;
            }
        }
    }

    #[test]
    fn lexemes_apart_say_what_steps_say(rules in rules(0), text in prop::collection::vec(prop::sample::select(LETTERS), 0..6)) {
        if let Some(mut machine) = machine(&rules) {
            for from in 0..=text.len() {
                let config = text[..from].iter().try_fold(machine.start(), |at, &byte| machine.step(at, byte)).unwrap();
                let whole = text[from..].iter().try_fold(config, |at, &byte| machine.step(at, byte)).unwrap();
                let want = (whole != DEAD, machine.is_accepting(whole));
                prop_assert_eq!(apart(&mut machine, config, &text[from..]), want);
            }
        }
    }
}

fn text(text: &str) -> RuleBody {
    RuleBody::Lexeme(Regex::text(text))
}

/// Cycles that read nothing, in every shape known to hang recognisers.
#[test]
fn cycles_without_text_end() {
    let (a, b) = (|| RuleBody::Ref(RuleId(0)), || RuleBody::Ref(RuleId(1)));
    let many = |of, min, max| RuleBody::Repeat { of: Box::new(of), min, max };
    let letters = || RuleBody::Lexeme(Regex::Set(CharSet::range('a', 'b')).repeat(0, None));
    let cases: Vec<Vec<RuleBody>> = vec![
        vec![a()],
        vec![RuleBody::Alt(vec![a(), text("a")])],
        vec![b(), RuleBody::Alt(vec![a(), text("a")])],
        vec![RuleBody::Alt(vec![RuleBody::Seq(vec![a(), a()]), text("a"), text("")])],
        vec![RuleBody::Alt(vec![RuleBody::Seq(vec![a(), a(), a()]), text("a"), text("")])],
        vec![many(many(b(), 0, None), 0, None), RuleBody::Alt(vec![text("a"), text("")])],
        vec![
            many(b(), 2, Some(1000)),
            RuleBody::Alt(vec![RuleBody::Seq(vec![text("a"), a(), text("b")]), text("")]),
        ],
        vec![many(a(), 0, None)],
        vec![many(RuleBody::Alt(vec![a(), text("a")]), 1, Some(3))],
        vec![RuleBody::Seq(vec![b(), a()]), RuleBody::Alt(vec![text(""), a(), text("c")])],
        vec![RuleBody::Alt(vec![RuleBody::Seq(vec![b(), a(), b()]), text("c")]), many(text("a"), 0, Some(1))],
        vec![RuleBody::Alt(Vec::new())],
        vec![RuleBody::Seq(Vec::new())],
        vec![many(a(), 1, None)],
        vec![many(a(), 0, Some(0))],
        vec![many(many(many(many(letters(), 0, None), 3, None), 0, None), 3, None)],
    ];
    for bodies in cases {
        let rules = of_bodies(bodies);
        compare(&rules, 6).unwrap_or_else(|error| panic!("{rules:?}: {error}"));
    }
}

/// Large rules of several kinds: each gives an answer or a limit soon.
#[test]
fn hostile_rules_end_soon() {
    let never = || RuleBody::Seq(vec![RuleBody::Ref(RuleId(0)), text("!")]);
    let a = || text("a");
    let chain = |last: RuleBody| of_bodies((1..100_000).map(|id| RuleBody::Ref(RuleId(id))).chain([last]));
    let wide = (0..100_000)
        .map(|n| RuleBody::Seq(vec![text(&n.to_string()), RuleBody::Ref(RuleId(0))]))
        .chain([a()])
        .collect();
    let words = (0..100_000).map(|n| text(&format!("w{n}"))).collect();
    let refs = (0..100_000).map(|_| RuleBody::Ref(RuleId(1))).collect();
    let letters = || RuleBody::Alt((0..1500).map(|n| text(&format!("{n}."))).collect());
    let maybe = |of| RuleBody::Repeat { of: Box::new(of), min: 0, max: Some(1) };
    let optional = (0..30_000).map(|_| maybe(RuleBody::Ref(RuleId(1)))).collect();
    let both =
        RuleBody::Alt(vec![RuleBody::Seq(vec![RuleBody::Ref(RuleId(0)), RuleBody::Ref(RuleId(0))]), a()]);
    let cases = [
        ("chain of names", chain(a()), "a", true),
        ("chain that comes back", chain(RuleBody::Alt(vec![a(), never()])), "a", false),
        ("wide", of_bodies(vec![RuleBody::Alt(wide)]), "7a", false),
        ("words", of_bodies(vec![RuleBody::Alt(words)]), "w77777", true),
        ("copies", of_bodies(vec![RuleBody::Seq(refs), letters()]), "1.", false),
        (
            "optional",
            of_bodies(vec![
                RuleBody::Seq(optional),
                RuleBody::Alt(vec![a(), RuleBody::Seq(vec![a(), RuleBody::Ref(RuleId(1))])]),
            ]),
            "aa",
            true,
        ),
        ("ambiguous", of_bodies(vec![both]), &"a".repeat(3000), true),
        (
            "ambiguous with the empty text",
            of_bodies(vec![RuleBody::Alt(vec![
                RuleBody::Seq(vec![a(), RuleBody::Ref(RuleId(0)), RuleBody::Ref(RuleId(0))]),
                text(""),
            ])]),
            &"a".repeat(400),
            true,
        ),
    ];
    for (name, rules, text, matches) in cases {
        let outcome = Running::new(&rules).and_then(|Running { mut machine, .. }| {
            let end = text.bytes().try_fold(machine.start(), |config, byte| machine.step(config, byte))?;
            Ok(machine.is_accepting(end))
        });
        match outcome {
            Ok(accepts) => assert_eq!(accepts, matches, "{name}"),
            Err(error) => assert_eq!(error.kind, ErrorKind::Limit, "{name}: {error}"),
        }
    }
}

/// Rules that refer to each other only through zero repetitions are regular after all. Found by the random test.
#[test]
fn a_cycle_through_zero_repetitions_is_none() {
    let to = |rule| RuleBody::Ref(RuleId(rule));
    let letter = || RuleBody::Lexeme(Regex::text("a"));
    for (min, max) in [(0, 0), (2, 1)] {
        let never = RuleBody::Repeat { of: Box::new(to(1)), min, max: Some(max) };
        let third = RuleBody::Alt(vec![letter(), never]);
        for start in [vec![to(1), to(2)], vec![to(2), to(1)]] {
            let bodies = [RuleBody::Seq(start), RuleBody::Seq(vec![letter(), to(2)]), third.clone()];
            compare(&of_bodies(bodies), 4).unwrap();
        }
    }
}
