//! Random rules over the letters a, b and c, for every test that needs some. It knows nothing of what they mean.

use logitree_grammar::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use logitree_grammar::{CharSet, Regex};
use proptest::prelude::*;

use crate::rules::of_bodies;

/// Lexemes that the slow recogniser of rules can read.
pub fn plain_regex() -> impl Strategy<Value = Regex> {
    let leaf = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "ab", "ca", "abc", "bb"]).prop_map(Regex::text),
        1 => Just(Regex::Empty),
        1 => Just(Regex::Nothing),
        1 => Just(Regex::Set(CharSet::none())),
        3 => Just(Regex::Set(CharSet::range('a', 'b'))),
        2 => Just(Regex::Set(CharSet::range('a', 'c'))),
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

/// `tokens` is how many ids sets may name; none for no sets.
fn node(rules: usize, tokens: u32) -> impl Strategy<Value = RuleBody> {
    let ids = prop::collection::vec(0..tokens.max(1), 0..3);
    let sets = (ids, any::<bool>()).prop_map(|(ids, negated)| {
        let tokens = ids.into_iter().map(TokenName::Id).collect();
        RuleBody::Tokens(TokenNames { tokens, negated })
    });
    let lexemes = plain_regex().prop_map(RuleBody::Lexeme);
    let refs = (0..rules).prop_map(|id| RuleBody::Ref(RuleId::new(id)));
    // Shrinking reaches every alternative, whatever its weight: sets are in a union of their own.
    let leaf = match tokens {
        0 => prop_oneof![lexemes, refs].boxed(),
        _ => prop_oneof![4 => lexemes, 2 => sets, 4 => refs].boxed(),
    };
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

/// One to four rules, whose token sets name ids below `tokens`; half of them with lexemes that cannot be put together.
pub fn rules(tokens: u32) -> impl Strategy<Value = Rules> {
    let bodies = (1..5usize).prop_flat_map(move |count| prop::collection::vec(node(count, tokens), count));
    (bodies, any::<bool>()).prop_map(|(bodies, apart)| {
        let mut rules = of_bodies(bodies);
        if apart {
            for n in 0..rules.rules.len() {
                let body = std::mem::replace(&mut rules.rules[n].body, RuleBody::Seq(Vec::new()));
                rules.rules[n].body = set_apart(body, &mut rules.rules);
            }
        }
        rules
    })
}

/// Rules that say what `body` says.
pub fn alone(body: RuleBody, apart: bool) -> Rules {
    let mut rules = of_bodies([RuleBody::Seq(Vec::new())]);
    rules.rules[0].body = if apart { set_apart(body, &mut rules.rules) } else { body };
    rules
}

/// Gives each lexeme a rule of its own that refers to itself, where that says nothing.
pub fn set_apart(node: RuleBody, rules: &mut Vec<Rule>) -> RuleBody {
    match node {
        RuleBody::Lexeme(_) => {
            let own = RuleId::new(rules.len());
            let never = RuleBody::Seq(vec![RuleBody::Lexeme(Regex::Nothing), RuleBody::Ref(own)]);
            rules.push(Rule::new("r", RuleBody::Alt(vec![node, never])));
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
