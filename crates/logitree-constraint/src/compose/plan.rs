//! The order of the parts of a composition: rules in which each part is a token, run by the recogniser of grammars. What
//! comes after a part is a set of its items, so that equal futures are equal numbers.

use std::sync::Mutex;

use crate::{interrupt, Result};
use logitree_grammar::earley::{Machine, MachineLimits, RulesSource, SetId};
use logitree_grammar::expr::Exprs;
use logitree_grammar::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};

/// What is known of a part at its beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    /// Whether it is complete with nothing.
    pub empty: bool,
    /// Whether it can be anything else.
    pub more: bool,
}

/// A part that begins or is running, and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub part: u32,
    pub after: SetId,
}

/// What may come next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// The parts that may begin. Each writes something.
    pub places: Vec<Place>,
    /// Whether the composition may end here.
    pub end: bool,
}

/// A composition's order. Shared by all matchers over it.
pub(crate) struct Plan {
    machine: Mutex<Machine>,
    /// The part that each token of the rules is.
    parts: Vec<u32>,
    start: Option<SetId>,
}

impl Plan {
    /// `order` refers to parts as rules of their numbers.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for an order that is too large.
    pub fn new(order: RuleBody, beginnings: &[Beginning]) -> Result<Plan> {
        let rule = |body| Rule::new("~part", body);
        let begun = |(part, beginning): (usize, &Beginning)| {
            let tokens = TokenNames { tokens: vec![TokenName::Id(part as u32)], negated: false };
            let mut ways = Vec::new();
            ways.extend(beginning.more.then_some(RuleBody::Tokens(tokens)));
            ways.extend(beginning.empty.then_some(RuleBody::Seq(Vec::new())));
            rule(RuleBody::Alt(ways))
        };
        let mut rules: Vec<Rule> = beginnings.iter().enumerate().map(begun).collect();
        rules.push(rule(order));
        let rules = Rules { start: RuleId::new(rules.len() - 1), rules };
        let mut exprs = Exprs::new(1 << 16);
        let source = RulesSource::new(&rules, &mut exprs, None)?;
        let parts = source.token_sets().iter().filter_map(|set| match set.tokens[..] {
            [TokenName::Id(part)] => Some(part),
            _ => None,
        });
        let (parts, start) = (parts.collect(), source.start());
        let machine = Machine::new(Box::new(source), start, exprs, MachineLimits::default())?;
        let start = machine.boundary(machine.start()).first().copied();
        Ok(Plan { parts, start, machine: Mutex::new(machine) })
    }

    /// What may come first.
    ///
    /// # Errors
    /// As [`Plan::after`].
    pub fn start(&self) -> Result<Next> {
        self.start.map_or(Ok(Next::default()), |start| self.entered(start))
    }

    /// What may come after a part that is complete, and has written something.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if a repetition has more rounds than are numbered.
    pub fn after(&self, place: Place) -> Result<Next> {
        self.entered(place.after)
    }

    fn entered(&self, set: SetId) -> Result<Next> {
        let mut machine = interrupt::lock(&self.machine);
        let (tokens, end) = machine.tokens_after(set)?;
        let place = |(token, after): (u32, SetId)| Place { part: self.parts[token as usize], after };
        let mut places: Vec<Place> = tokens.into_iter().map(place).collect();
        places.sort_unstable();
        Ok(Next { places, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: usize) -> RuleBody {
        RuleBody::Ref(RuleId::new(index))
    }

    fn repeat(of: RuleBody, min: u32, max: Option<u32>) -> RuleBody {
        RuleBody::Repeat { of: Box::new(of), min, max }
    }

    fn plan(order: RuleBody, empty: &[bool]) -> Plan {
        let beginnings: Vec<_> = empty.iter().map(|&empty| Beginning { empty, more: true }).collect();
        Plan::new(order, &beginnings).unwrap()
    }

    fn parts(next: &Next) -> (Vec<u32>, bool) {
        (next.places.iter().map(|place| place.part).collect(), next.end)
    }

    #[test]
    fn a_sequence_skips_what_may_be_empty() {
        let plan = plan(RuleBody::Seq(vec![part(0), part(1), part(2)]), &[false, true, false]);
        let first = plan.start().unwrap();
        assert_eq!(parts(&first), (vec![0], false));
        let second = plan.after(first.places[0]).unwrap();
        assert_eq!(parts(&second), (vec![1, 2], false));
        assert_eq!(parts(&plan.after(second.places[1]).unwrap()), (vec![], true));
        assert_eq!(parts(&plan.after(second.places[0]).unwrap()), (vec![2], false));
    }

    #[test]
    fn rounds_of_an_endless_repetition_are_one_place() {
        let of = RuleBody::Alt(vec![part(0), RuleBody::Seq(vec![part(1), part(0)])]);
        let plan = plan(repeat(of, 2, None), &[false, false]);
        let mut next = plan.start().unwrap();
        assert_eq!(parts(&next), (vec![0, 1], false));
        next = plan.after(next.places[0]).unwrap();
        assert_eq!(parts(&next), (vec![0, 1], false));
        next = plan.after(next.places[0]).unwrap();
        assert_eq!(parts(&next), (vec![0, 1], true));
        assert_eq!(plan.after(next.places[0]).unwrap(), next);
    }

    #[test]
    fn huge_counts_and_empty_rounds_cost_nothing() {
        let many = plan(repeat(part(0), 1 << 30, Some(1 << 31)), &[true]);
        let next = many.start().unwrap();
        assert_eq!(parts(&next), (vec![0], true));
        assert_eq!(parts(&many.after(next.places[0]).unwrap()), (vec![0], true));
        let never = plan(repeat(part(0), 0, Some(0)), &[false]);
        assert_eq!(parts(&never.start().unwrap()), (vec![], true));
        let nested = repeat(repeat(part(0), 0, None), 0, None);
        assert_eq!(parts(&plan(nested, &[true]).start().unwrap()), (vec![0], true));
    }
}
