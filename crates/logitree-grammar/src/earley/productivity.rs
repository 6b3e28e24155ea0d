//! Computes for each node whether it matches any string, the empty string, a non-empty string: least fixpoints,
//! in time linear in the grammar.

use super::super::expr::{Exprs, NOTHING};
use super::lowered::{LoweredId, LoweredKind, LoweredRules};
use crate::Result;

/// The facts about each node.
pub(super) struct Productivity {
    /// Whether it matches a finite string.
    pub(super) productive: Vec<bool>,
    /// Whether it matches the empty string.
    pub(super) nullable: Vec<bool>,
    /// Whether it matches a non-empty finite string.
    pub(super) nonempty: Vec<bool>,
}

/// No number of children suffices.
const NEVER: usize = usize::MAX;

impl Productivity {
    /// Computes the facts about all nodes.
    ///
    /// # Errors
    /// As [`Exprs::is_alive`].
    pub(super) fn of(nodes: &LoweredRules, exprs: &mut Exprs) -> Result<Productivity> {
        let links = Links::of(nodes);
        let (mut productive, mut nullable, mut nonempty) = (Vec::new(), Vec::new(), Vec::new());
        for node in &nodes.nodes {
            let (says, empty, more) = match &node.body {
                LoweredKind::Lexeme(expr) | LoweredKind::Counted(expr, _) => {
                    let alive = *expr != NOTHING && exprs.is_alive(*expr)?;
                    let more = alive && exprs.can_continue(*expr)?;
                    (yes(alive), yes(!exprs.outcomes(*expr).is_empty()), yes(more))
                }
                LoweredKind::Tokens(set) => {
                    let set = &nodes.token_sets.all()[*set as usize];
                    let any = yes(set.negated || !set.tokens.is_empty());
                    (any, NEVER, any)
                }
                LoweredKind::Json(state) | LoweredKind::Embedded(state) => {
                    (yes(state.is_some()), NEVER, yes(state.is_some()))
                }
                LoweredKind::Ref(_) | LoweredKind::Alt(_) | LoweredKind::Tempered(..) => (1, 1, 1),
                LoweredKind::Seq(parts) => (parts.len(), parts.len(), 1),
                LoweredKind::Repeat { min, .. } => (usize::from(*min > 0), usize::from(*min > 0), 1),
            };
            productive.push(says);
            nullable.push(empty);
            nonempty.push(more);
        }
        let productive = links.least(productive);
        let nullable = links.least(nullable);
        for (need, productive) in nonempty.iter_mut().zip(&productive) {
            *need = if *productive { *need } else { NEVER };
        }
        Ok(Productivity { nonempty: links.least(nonempty), productive, nullable })
    }
}

/// How many children must hold: none, or more than any number.
fn yes(holds: bool) -> usize {
    if holds {
        0
    } else {
        NEVER
    }
}

/// The parents and references to update when a fact about a node becomes known.
struct Links {
    /// For each node where its dependants begin in `to`, and the end.
    starts: Vec<usize>,
    to: Vec<LoweredId>,
}

impl Links {
    fn of(nodes: &LoweredRules) -> Links {
        let mut links: Vec<(LoweredId, LoweredId)> = Vec::new();
        for (id, node) in nodes.nodes.iter().enumerate() {
            let id = LoweredId::new(id);
            links.extend(nodes.children(id).iter().map(|&child| (child, id)));
            if let LoweredKind::Ref(rule) = node.body {
                links.extend(nodes.roots[rule.index()].map(|root| (root, id)));
            }
        }
        links.sort_unstable();
        let starts =
            (0..=nodes.nodes.len()).map(|id| links.partition_point(|link| link.0.index() < id)).collect();
        Links { starts, to: links.into_iter().map(|link| link.1).collect() }
    }

    /// The least set that contains each node with at least `need` children in the set.
    fn least(&self, mut need: Vec<usize>) -> Vec<bool> {
        let mut open: Vec<LoweredId> =
            (0..need.len()).filter(|&id| need[id] == 0).map(LoweredId::new).collect();
        let mut known: Vec<bool> = need.iter().map(|&need| need == 0).collect();
        while let Some(id) = open.pop() {
            for &to in &self.to[self.starts[id.index()]..self.starts[id.index() + 1]] {
                let at = to.index();
                if known[at] || need[at] == NEVER {
                    continue;
                }
                need[at] -= 1;
                if need[at] == 0 {
                    known[at] = true;
                    open.push(to);
                }
            }
        }
        known
    }
}
