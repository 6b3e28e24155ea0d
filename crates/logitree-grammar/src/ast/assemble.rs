//! The rules of parts: each text's own rules, moved behind one another, and a rule for every part that stands in several
//! places or names itself. It refuses to know how parts are written down.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::append::append;
use super::super::rules::{Node, Rule, RuleId, Rules};
use super::{Part, What};
use crate::{Error, ErrorKind, Result};

/// The rules of `part` and all inside.
pub(super) fn rules(part: &Part) -> Result<Rules> {
    let mut made = Assembler::default();
    made.reserve(part);
    let body = made.node(part)?;
    let start = made.add("root", body);
    Ok(Rules { rules: made.rules, start })
}

#[derive(Default)]
struct Assembler {
    rules: Vec<Rule>,
    /// Parts that have a rule of their own, and whether it is written.
    shared: FxHashMap<usize, (RuleId, bool)>,
    /// The rules of recursive parts by their names.
    named: FxHashMap<usize, RuleId>,
}

impl Assembler {
    fn add(&mut self, name: &str, body: Node) -> RuleId {
        self.rules.push(Rule { name: name.into(), body });
        self.rules.len() - 1
    }

    /// Gives a rule to every part that stands in several places, and to every recursive one.
    fn reserve(&mut self, whole: &Part) {
        let mut seen = FxHashSet::default();
        let mut todo = vec![whole];
        while let Some(part) = todo.pop() {
            let first = seen.insert(part.address());
            let recursive = matches!(part.what(), What::Recursive(..));
            let named = matches!(part.what(), What::Me(_));
            if (recursive || !first) && !named && !self.shared.contains_key(&part.address()) {
                let name = if recursive { "recursion" } else { "part" };
                let rule = self.add(name, Node::Seq(Vec::new()));
                self.shared.insert(part.address(), (rule, false));
                if let What::Recursive(_, me) = part.what() {
                    self.named.insert(me.address(), rule);
                }
            }
            if first {
                todo.extend(part.inside());
            }
        }
    }

    /// Recursion is as deep as parts may stand inside each other.
    fn node(&mut self, part: &Part) -> Result<Node> {
        let Some(&(rule, written)) = self.shared.get(&part.address()) else { return self.body(part) };
        if !written {
            self.shared.insert(part.address(), (rule, true));
            self.rules[rule].body = self.body(part)?;
        }
        Ok(Node::Ref(rule))
    }

    fn body(&mut self, part: &Part) -> Result<Node> {
        Ok(match part.what() {
            What::Leaf(_, rules) => self.moved(rules),
            What::Seq(parts) => Node::Seq(self.nodes(parts)?),
            What::Alt(parts) => Node::Alt(self.nodes(parts)?),
            What::Repeat { of, min, max } => {
                Node::Repeat { of: Box::new(self.node(of)?), min: *min, max: *max }
            }
            What::Recursive(body, _) => self.node(body)?,
            What::Me(me) => Node::Ref(*self.named.get(&me.address()).ok_or_else(outside)?),
        })
    }

    fn nodes(&mut self, parts: &[Part]) -> Result<Vec<Node>> {
        parts.iter().map(|part| self.node(part)).collect()
    }

    /// The rules of a text, at the end of ours.
    fn moved(&mut self, rules: &Rules) -> Node {
        if let [Rule { body: body @ (Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_)), .. }] =
            &rules.rules[..]
        {
            return body.clone();
        }
        Node::Ref(append(&mut self.rules, rules, ""))
    }
}

fn outside() -> Error {
    Error::new(ErrorKind::Constraint, "the name of a recursive grammar stands outside of it")
        .help("use it only in what the function returns")
}
