//! States between two others: one says less, one says more ([`Exprs::approximations`]). A token on which these two
//! agree needs no look; the others are walked. The naive version is [`crate::grammar::walk::narrow`]
//! without a most, to which the tests of the room hold it equal.

use std::sync::Arc;

use crate::grammar::lexeme::{Base, Exit, Lexeme};
use crate::Result;
use logitree_grammar::expr::{ExprId, Exprs, NOTHING};
use logitree_tokens::mask::{bit, count, ids, words_for, TokenSet};
use logitree_tokens::trie::{Node, TokenTrie};
use logitree_tokens::vocabulary::Vocabulary;

/// More tokens than this are found by looking at all.
const MAX_SOUGHT: usize = 2_000;

/// The nodes, ascending, of the tokens that `upper` and `lower` do not both take, or that leave the two otherwise. All
/// that `lower` takes, `upper` takes. Neither has a base.
pub(in crate::grammar) fn differing_nodes(
    lower: &Lexeme,
    upper: &Lexeme,
    vocabulary: &Vocabulary,
) -> Result<Vec<Node>> {
    let trie = vocabulary.trie()?;
    let [mut differs, more] = [lower, upper].map(|lexeme| {
        let mut words = vec![0; words_for(trie.vocabulary_size())];
        lexeme.inside.write(trie.vocabulary_size(), &mut words);
        words
    });
    differs.iter_mut().zip(more).for_each(|(differs, more)| *differs ^= more);
    let mut nodes: Vec<Node> = match count(&differs) {
        // To look for each takes longer than to look at all.
        many if many > MAX_SOUGHT => trie.nodes_where(|_, tokens| tokens.iter().any(|&id| bit(&differs, id))),
        _ => ids(&differs).filter_map(|id| trie.node_of(vocabulary.token_bytes(id))).collect(),
    };
    // And all below a node where only one may be left, or the two with other tags.
    let mut exits = lower.exits_beside(upper);
    exits.sort_unstable();
    let mut from = 0;
    for exit in exits {
        let to = exit.index() + trie.size(exit);
        nodes.extend(trie.ends_within(from.max(exit.index())..to));
        from = from.max(to);
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// The tables of `e` from those of `upper`, which says more and differs in the tokens of the nodes `apart` at most.
///
/// # Errors
/// [`crate::ErrorKind::Limit`] if the automaton needs more than the limits of `exprs`.
pub(in crate::grammar) fn differing_among(
    e: ExprId,
    apart: &[Node],
    upper: &Arc<Lexeme>,
    exprs: &mut Exprs,
    trie: &TokenTrie,
) -> Result<Lexeme> {
    let (mut without, mut elsewhere) = (Vec::new(), Vec::new());
    let mut exits = Vec::new();
    let mut failed = None;
    towards(apart, trie, e, |state, byte, node, wanted| {
        if failed.is_some() {
            return None;
        }
        if exprs.is_complete(state) && trie.depth(node) > 1 {
            exits.push(Exit { outcome: exprs.outcome_number(state), byte, node });
        }
        let next = exprs.visit(state, byte).unwrap_or_else(|error| {
            failed = Some(error);
            NOTHING
        });
        if wanted {
            elsewhere.extend_from_slice(trie.tokens(node));
            if next == NOTHING {
                without.extend(trie.tokens(node).iter().filter(|&&id| upper.takes(id)));
            }
        }
        Some(next)
    });
    if let Some(error) = failed {
        return Err(error);
    }
    without.sort_unstable();
    elsewhere.sort_unstable();
    let base = Base { lexeme: Arc::clone(upper), without: without.into(), elsewhere: elsewhere.into() };
    Ok(Lexeme::near(base, TokenSet::default(), exits, exprs))
}

/// Of the nodes `among`, those of tokens that the two do not both take, or that leave the two otherwise. All that
/// `less` takes, `more` takes.
///
/// # Errors
/// As [`differing_among`].
pub(in crate::grammar) fn parting_nodes(
    less: ExprId,
    more: ExprId,
    among: &[Node],
    exprs: &mut Exprs,
    trie: &TokenTrie,
) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut failed = None;
    // Both states, and whether the two parted on the way.
    towards(among, trie, (less, more, false), |(mine, theirs, parted), byte, node, wanted| {
        if failed.is_some() {
            return None;
        }
        let deep = trie.depth(node) > 1;
        let parted = parted || deep && exprs.outcome_number(mine) != exprs.outcome_number(theirs);
        let mut derive = |state: ExprId| {
            exprs.visit(state, byte).unwrap_or_else(|error| {
                failed = Some(error);
                NOTHING
            })
        };
        let (mine, theirs) = (derive(mine), derive(theirs));
        if wanted && (parted || mine == NOTHING && theirs != NOTHING) {
            nodes.push(node);
        }
        (theirs != NOTHING || parted).then_some((mine, theirs, parted))
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(nodes),
    }
}

/// Walks as [`TokenTrie::explore`] does, but only to the nodes `wanted`, ascending, and through those above them.
/// `step` gets whether a node is one of them.
fn towards<S: Copy>(
    wanted: &[Node],
    trie: &TokenTrie,
    start: S,
    mut step: impl FnMut(S, u8, Node, bool) -> Option<S>,
) {
    let mut open = wanted;
    trie.explore(trie.root(), start, |state, byte, node| {
        while open.first().is_some_and(|first| *first < node) {
            open = &open[1..];
        }
        let first = *open.first()?;
        let below = first.index() < node.index() + trie.size(node);
        below.then(|| step(state, byte, node, first == node)).flatten()
    });
}
