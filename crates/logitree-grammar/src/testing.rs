//! Runs rules over a text, for the tests of the syntaxes.

use super::earley::{Machine, MachineLimits, RulesSource, DEAD};
use super::expr::Exprs;
use super::gbnf;
use super::json_schema::JsonRules;
use super::rules::{Rules, TokenName};

/// Whether `rules` accept a text, with whole tokens between `⟦` and `⟧`.
pub(crate) fn accepts(rules: &Rules, text: &str) -> bool {
    let mut exprs = Exprs::new(1 << 20);
    let source = RulesSource::new(rules, &mut exprs, Some(Box::new(JsonRules::new()))).unwrap();
    let (start, sets) = (source.start(), source.token_sets().to_vec());
    let mut machine = Machine::new(Box::new(source), start, exprs, MachineLimits::default()).unwrap();
    let mut config = machine.start();
    for part in text.split_inclusive(['⟦', '⟧']) {
        if let Some(name) = part.strip_suffix('⟧') {
            let name = name.parse().map_or(TokenName::Text(name.into()), TokenName::Id);
            let holds = |set: u32, _: u32| {
                let set = &sets[set as usize];
                set.negated != set.tokens.contains(&name)
            };
            config = machine.step_token(config, 0, &holds).unwrap();
        } else {
            for byte in part.trim_end_matches('⟦').bytes() {
                config = machine.step(config, byte).unwrap();
            }
        }
        if config == DEAD {
            return false;
        }
    }
    machine.is_accepting(config)
}

/// Checks the texts that `rules` accept and those that they refuse.
pub(crate) fn check(rules: &Rules, accepted: &[&str], refused: &[&str]) {
    let show = || gbnf::show(rules);
    accepted.iter().for_each(|text| assert!(accepts(rules, text), "accepts {text:?}\n{}", show()));
    refused.iter().for_each(|text| assert!(!accepts(rules, text), "refuses {text:?}\n{}", show()));
}
