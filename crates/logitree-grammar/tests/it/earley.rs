//! The recogniser on random rules, compared with the slow recogniser of `rule_oracle.rs`: which texts match,
//! and which are prefixes of a match.

use crate::rule_oracle::Oracle;
use logitree_grammar::earley::{ConfigId, Machine, MachineLimits, RulesSource, DEAD};
use logitree_grammar::expr::{Exprs, NOTHING};
use logitree_grammar::rules::{Rule, RuleBody, RuleId, Rules};
use logitree_grammar::ErrorKind;
use logitree_grammar::{CharSet, Regex};
use proptest::prelude::*;

pub(crate) const LETTERS: &[u8] = b"abc";

pub(crate) fn machine(rules: &Rules) -> Option<Machine> {
    let mut exprs = Exprs::new(1 << 20);
    match RulesSource::new(rules, &mut exprs, None) {
        Ok(source) => {
            let start = source.start();
            Some(
                Machine::new(Box::new(source), start, exprs, MachineLimits::default())
                    .expect("within the limits"),
            )
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
            None
        }
    }
}

pub(crate) fn regex() -> impl Strategy<Value = Regex> {
    let letters = CharSet::range('a', 'b');
    let leaf = prop_oneof![
        5 => prop::sample::select(vec!["a", "b", "c", "ab", "ca", "abc"]).prop_map(Regex::text),
        1 => Just(Regex::Empty),
        1 => Just(Regex::Nothing),
        2 => Just(Regex::Set(letters)),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Regex::Concat),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Regex::Or),
            (inner, 0..3u32, prop::option::of(0..3u32))
                .prop_map(|(of, min, more)| of.repeat(min, more.map(|more| min + more))),
        ]
    })
}

fn node(rules: usize) -> impl Strategy<Value = RuleBody> {
    let leaf = prop_oneof![2 => regex().prop_map(RuleBody::Lexeme), 3 => (0..rules).prop_map(|id| RuleBody::Ref(RuleId::new(id)))];
    leaf.prop_recursive(4, 14, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 0..4).prop_map(RuleBody::Seq),
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(RuleBody::Alt),
            2 => (inner, 0..4u32, prop::option::of(0..4u32)).prop_map(|(of, min, more)| {
                let max = more.map(|more| (min + more).saturating_sub(u32::from(more == 3 && min == 3)));
                RuleBody::Repeat { of: Box::new(of), min, max }
            }),
        ]
    })
}

/// One to four rules; with `apart` no two lexemes can be joined.
pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let bodies = (1..5usize).prop_flat_map(|count| prop::collection::vec(node(count), count));
    (bodies, any::<bool>()).prop_map(|(bodies, apart)| {
        let rule = |body| Rule { name: "r".into(), body };
        let mut rules: Vec<Rule> = bodies.into_iter().map(rule).collect();
        if apart {
            for n in 0..rules.len() {
                let body = std::mem::replace(&mut rules[n].body, RuleBody::Seq(Vec::new()));
                rules[n].body = set_apart(body, &mut rules);
            }
        }
        Rules { rules, start: RuleId(0) }
    })
}

/// Makes each lexeme a rule of its own that refers to itself without effect.
fn set_apart(node: RuleBody, rules: &mut Vec<Rule>) -> RuleBody {
    match node {
        RuleBody::Lexeme(_) => {
            let own = RuleId::new(rules.len());
            let never = RuleBody::Seq(vec![RuleBody::Lexeme(Regex::Nothing), RuleBody::Ref(own)]);
            rules.push(Rule { name: "lexeme".into(), body: RuleBody::Alt(vec![node, never]) });
            RuleBody::Ref(own)
        }
        RuleBody::Seq(parts) => RuleBody::Seq(parts.into_iter().map(|part| set_apart(part, rules)).collect()),
        RuleBody::Alt(parts) => RuleBody::Alt(parts.into_iter().map(|part| set_apart(part, rules)).collect()),
        RuleBody::Repeat { of, min, max } => {
            RuleBody::Repeat { of: Box::new(set_apart(*of, rules)), min, max }
        }
        other => other,
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
    fn the_machine_equals_the_oracle(rules in rules()) {
        compare(&rules, 5)?;
    }

    /// Long texts, most of them viable: the recogniser must return to earlier sets.
    #[test]
    fn long_walks_equal_the_oracle(rules in rules(), script in prop::collection::vec(any::<u8>(), 20)) {
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
    fn lexemes_apart_say_what_steps_say(rules in rules(), text in prop::collection::vec(prop::sample::select(LETTERS), 0..6)) {
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

fn own(bodies: Vec<RuleBody>) -> Rules {
    let rules = bodies.into_iter().map(|body| Rule { name: "r".into(), body }).collect();
    Rules { rules, start: RuleId(0) }
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
        let rules = own(bodies);
        compare(&rules, 6).unwrap_or_else(|error| panic!("{rules:?}: {error}"));
    }
}

/// Large rules of several kinds: each gives an answer or a limit soon.
#[test]
fn hostile_rules_end_soon() {
    let never = || RuleBody::Seq(vec![RuleBody::Ref(RuleId(0)), text("!")]);
    let a = || text("a");
    let chain =
        |last: RuleBody| own((1..100_000).map(|id| RuleBody::Ref(RuleId(id))).chain([last]).collect());
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
        ("wide", own(vec![RuleBody::Alt(wide)]), "7a", false),
        ("words", own(vec![RuleBody::Alt(words)]), "w77777", true),
        ("copies", own(vec![RuleBody::Seq(refs), letters()]), "1.", false),
        (
            "optional",
            own(vec![
                RuleBody::Seq(optional),
                RuleBody::Alt(vec![a(), RuleBody::Seq(vec![a(), RuleBody::Ref(RuleId(1))])]),
            ]),
            "aa",
            true,
        ),
        ("ambiguous", own(vec![both]), &"a".repeat(3000), true),
        (
            "ambiguous with the empty text",
            own(vec![RuleBody::Alt(vec![
                RuleBody::Seq(vec![a(), RuleBody::Ref(RuleId(0)), RuleBody::Ref(RuleId(0))]),
                text(""),
            ])]),
            &"a".repeat(400),
            true,
        ),
    ];
    for (name, rules, text, matches) in cases {
        let mut exprs = Exprs::new(1 << 20);
        let outcome = RulesSource::new(&rules, &mut exprs, None).and_then(|source| {
            let start = source.start();
            let mut machine = Machine::new(Box::new(source), start, exprs, MachineLimits::default())?;
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
            let rules = bodies.into_iter().map(|body| Rule { name: "r".into(), body }).collect();
            compare(&Rules { rules, start: RuleId(0) }, 4).unwrap();
        }
    }
}
