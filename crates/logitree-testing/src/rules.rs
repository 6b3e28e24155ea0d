//! Runs rules over a text.

use logitree_grammar::earley::{ConfigId, Machine, MachineLimits, RulesSource, DEAD};
use logitree_grammar::expr::Exprs;
use logitree_grammar::json_schema::JsonRules;
use logitree_grammar::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use logitree_grammar::Result;

use crate::gbnf_writer;

/// A grammar that runs.
pub struct Running {
    pub machine: Machine,
    sets: Vec<TokenNames>,
}

impl Running {
    /// # Errors
    /// As the recogniser has them.
    pub fn new(rules: &Rules) -> Result<Running> {
        let mut exprs = Exprs::new(1 << 20);
        let source = RulesSource::new(rules, &mut exprs, Some(Box::new(JsonRules::new())))?;
        let (start, sets) = (source.start(), source.token_sets().to_vec());
        let machine = Machine::new(Box::new(source), start, exprs, MachineLimits::default())?;
        Ok(Running { machine, sets })
    }

    /// The configuration after bytes.
    pub fn step(&mut self, config: ConfigId, bytes: &[u8]) -> ConfigId {
        bytes.iter().fold(config, |config, &byte| self.machine.step(config, byte).unwrap())
    }

    /// The configuration after a whole token.
    pub fn step_token(&mut self, config: ConfigId, token: &TokenName) -> ConfigId {
        let sets = &self.sets;
        let holds = |set: u32, _: u32| {
            let set = &sets[set as usize];
            set.negated != set.tokens.contains(token)
        };
        self.machine.step_token(config, 0, &holds).unwrap()
    }

    /// Whether a text matches, with whole tokens between `⟦` and `⟧`.
    pub fn accepts(&mut self, text: &str) -> bool {
        let mut config = self.machine.start();
        for part in text.split_inclusive(['⟦', '⟧']) {
            config = match part.strip_suffix('⟧') {
                Some(name) => {
                    let name = name.parse().map_or(TokenName::Text(name.into()), TokenName::Id);
                    self.step_token(config, &name)
                }
                None => self.step(config, part.trim_end_matches('⟦').as_bytes()),
            };
        }
        config != DEAD && self.machine.is_accepting(config)
    }
}

/// Whether `rules` accept a text, with whole tokens between `⟦` and `⟧`.
pub fn accepts(rules: &Rules, text: &str) -> bool {
    Running::new(rules).unwrap().accepts(text)
}

/// Checks the texts that `rules` accept and those that they refuse.
pub fn check(rules: &Rules, accepted: &[&str], refused: &[&str]) {
    let show = || gbnf_writer::show(rules);
    accepted.iter().for_each(|text| assert!(accepts(rules, text), "accepts {text:?}\n{}", show()));
    refused.iter().for_each(|text| assert!(!accepts(rules, text), "refuses {text:?}\n{}", show()));
}

/// Rules with these bodies, from the first on.
pub fn of_bodies(bodies: impl IntoIterator<Item = RuleBody>) -> Rules {
    let rules = bodies.into_iter().map(|body| Rule::new("r", body)).collect();
    Rules { rules, start: RuleId(0) }
}
