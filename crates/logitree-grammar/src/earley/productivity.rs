//! What nodes can say: some finite text, the empty text, some text that is not empty. Least fixpoints, in time linear
//! in the grammar. It refuses to know states.

use super::super::expr::{Exprs, NOTHING};
use super::lowered::{LoweredId, LoweredKind, LoweredRules};
use crate::Result;

/// What each node can say.
pub(super) struct Productivity {
    /// Some finite text.
    pub(super) productive: Vec<bool>,
    /// The empty text.
    pub(super) nullable: Vec<bool>,
    /// Some finite text that is not empty.
    pub(super) nonempty: Vec<bool>,
}

/// No number of children is enough.
const NEVER: usize = usize::MAX;

impl Productivity {
    /// Looks at all nodes.
    ///
    /// # Errors
    /// As [`Exprs::is_alive`].
    pub(super) fn of(nodes: &LoweredRules, exprs: &mut Exprs) -> Result<Productivity> {
        let links = Links::of(nodes);
        let (mut productive, mut nullable, mut nonempty) = (Vec::new(), Vec::new(), Vec::new());
        for node in &nodes.nodes {
            let (says, empty, more) = match &node.body {
                LoweredKind::Lexeme(expr) => {
                    let alive = *expr != NOTHING && exprs.is_alive(*expr)?;
                    let more = alive && exprs.can_continue(*expr)?;
                    (yes(alive), yes(!exprs.outcomes(*expr).is_empty()), yes(more))
                }
                LoweredKind::Tokens(set) => {
                    let set = &nodes.token_sets[*set as usize];
                    let any = yes(set.negated || !set.tokens.is_empty());
                    (any, NEVER, any)
                }
                LoweredKind::Json(state) => (yes(state.is_some()), NEVER, yes(state.is_some())),
                LoweredKind::Ref(_) | LoweredKind::Alt(_) => (1, 1, 1),
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

/// Nothing more is needed, or nothing is enough.
fn yes(holds: bool) -> usize {
    if holds {
        0
    } else {
        NEVER
    }
}

/// Who is told when something becomes known of a node.
struct Links {
    /// For each node where its listeners begin in `to`; one more at the end.
    starts: Vec<usize>,
    to: Vec<LoweredId>,
}

impl Links {
    fn of(nodes: &LoweredRules) -> Links {
        let mut links: Vec<(LoweredId, LoweredId)> = Vec::new();
        for (id, node) in nodes.nodes.iter().enumerate() {
            links.extend(nodes.children(id).iter().map(|&child| (child, id)));
            if let LoweredKind::Ref(rule) = node.body {
                links.extend(nodes.roots[rule].map(|root| (root, id)));
            }
        }
        links.sort_unstable();
        let starts = (0..=nodes.nodes.len()).map(|id| links.partition_point(|link| link.0 < id)).collect();
        Links { starts, to: links.into_iter().map(|link| link.1).collect() }
    }

    /// The least set of nodes in which each node is that needs no more than `need` of those it listens to.
    fn least(&self, mut need: Vec<usize>) -> Vec<bool> {
        let mut open: Vec<LoweredId> = (0..need.len()).filter(|&id| need[id] == 0).collect();
        let mut known: Vec<bool> = need.iter().map(|&need| need == 0).collect();
        while let Some(id) = open.pop() {
            for &to in &self.to[self.starts[id]..self.starts[id + 1]] {
                if known[to] || need[to] == NEVER {
                    continue;
                }
                need[to] -= 1;
                if need[to] == 0 {
                    known[to] = true;
                    open.push(to);
                }
            }
        }
        known
    }
}
