//! Appends the rules of one grammar to those of another.

use super::rules::{Rule, RuleBody, RuleId, Rules};

/// Appends `other` to `rules`, with `prefix` before each name. Returns the start rule of `other`.
pub(super) fn append(rules: &mut Vec<Rule>, other: &Rules, prefix: &str) -> RuleId {
    let offset = rules.len();
    rules.extend(other.rules.iter().map(|rule| Rule {
        name: format!("{prefix}{}", rule.name),
        body: rule.body.shifted(offset),
        marks: rule.marks.clone(),
    }));
    RuleId::new(offset + other.start.index())
}

impl RuleBody {
    /// The same with `offset` added to the number of every rule. Recursive: the maker of a body bounds its depth.
    #[must_use]
    pub fn shifted(&self, offset: usize) -> RuleBody {
        let all = |parts: &[RuleBody]| parts.iter().map(|part| part.shifted(offset)).collect();
        match self {
            RuleBody::Ref(id) => RuleBody::Ref(RuleId::new(id.index() + offset)),
            RuleBody::Seq(parts) => RuleBody::Seq(all(parts)),
            RuleBody::Alt(parts) => RuleBody::Alt(all(parts)),
            RuleBody::Repeat { of, min, max } => {
                RuleBody::Repeat { of: Box::new(of.shifted(offset)), min: *min, max: *max }
            }
            RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => self.clone(),
        }
    }
}
