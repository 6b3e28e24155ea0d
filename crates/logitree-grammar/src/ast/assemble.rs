//! Assembles the rules of a syntax tree: the rules of each text, and one rule for every node that is shared or
//! recursive.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::append::append;
use super::super::rules::{Rule, RuleBody, RuleId, Rules};
use super::{Grammar, NodeKind};
use crate::{Error, ErrorKind, Result};

/// The rules of `part` and everything inside.
pub(super) fn rules(part: &Grammar) -> Result<Rules> {
    let mut made = Assembler::default();
    made.reserve(part);
    let body = made.node(part)?;
    let start = made.add("~root", body);
    Ok(Rules { rules: made.rules, start })
}

#[derive(Default)]
struct Assembler {
    rules: Vec<Rule>,
    /// Nodes that have a rule of their own, and whether its body is written.
    shared: FxHashMap<usize, (RuleId, bool)>,
    /// The rules of recursive nodes by their references.
    named: FxHashMap<usize, RuleId>,
}

impl Assembler {
    fn add(&mut self, name: &str, body: RuleBody) -> RuleId {
        self.rules.push(Rule::new(name, body));
        RuleId::new(self.rules.len() - 1)
    }

    /// Reserves a rule for every node that occurs several times and for every recursive one.
    fn reserve(&mut self, whole: &Grammar) {
        let mut seen = FxHashSet::default();
        let mut todo = vec![whole];
        while let Some(part) = todo.pop() {
            let first = seen.insert(part.address());
            let recursive = matches!(part.kind(), NodeKind::Recursive(..));
            let named = matches!(part.kind(), NodeKind::RuleRef(_));
            if (recursive || !first) && !named && !self.shared.contains_key(&part.address()) {
                let name = if recursive { "~recursion" } else { "~part" };
                let rule = self.add(name, RuleBody::Seq(Vec::new()));
                self.shared.insert(part.address(), (rule, false));
                if let NodeKind::Recursive(_, me) = part.kind() {
                    self.named.insert(me.address(), rule);
                }
            }
            if first {
                todo.extend(part.inside());
            }
        }
    }

    /// Recurses as deep as nodes may nest.
    fn node(&mut self, part: &Grammar) -> Result<RuleBody> {
        let Some(&(rule, written)) = self.shared.get(&part.address()) else { return self.body(part) };
        if !written {
            self.shared.insert(part.address(), (rule, true));
            self.rules[rule.index()].body = self.body(part)?;
        }
        Ok(RuleBody::Ref(rule))
    }

    fn body(&mut self, part: &Grammar) -> Result<RuleBody> {
        Ok(match part.kind() {
            NodeKind::Leaf(_, rules) => self.moved(rules),
            NodeKind::Seq(parts) => RuleBody::Seq(self.nodes(parts)?),
            NodeKind::Alt(parts) => RuleBody::Alt(self.nodes(parts)?),
            NodeKind::Repeat { of, min, max } => {
                RuleBody::Repeat { of: Box::new(self.node(of)?), min: *min, max: *max }
            }
            NodeKind::Recursive(body, _) => self.node(body)?,
            NodeKind::RuleRef(me) => RuleBody::Ref(*self.named.get(&me.address()).ok_or_else(outside)?),
        })
    }

    fn nodes(&mut self, parts: &[Grammar]) -> Result<Vec<RuleBody>> {
        parts.iter().map(|part| self.node(part)).collect()
    }

    /// Appends the rules of a text.
    fn moved(&mut self, rules: &Rules) -> RuleBody {
        let alone = |rule: &Rule| {
            let leaf = matches!(rule.body, RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_));
            (leaf && rule.marks.is_none()).then(|| rule.body.clone())
        };
        if let [only] = &rules.rules[..] {
            if let Some(body) = alone(only) {
                return body;
            }
        }
        RuleBody::Ref(append(&mut self.rules, rules, ""))
    }
}

fn outside() -> Error {
    Error::new(ErrorKind::Constraint, "a recursive grammar is referenced outside of its definition")
        .help("use it only in what the function returns")
}
