//! What one terminal's state says about every token of a vocabulary: those that stay inside, and where others leave.
//! It refuses to know what comes behind the terminal.

use std::sync::{Arc, OnceLock};

use super::entry::Set;
use super::suffixes::Suffixes;
use crate::grammar::expr::{ByteSet, ExprId, Exprs, Tag, NOTHING};
use crate::trie::{Node, TokenTrie};
use crate::Result;

/// The tables of one state.
#[derive(Debug)]
pub(super) struct Terminal {
    /// The tokens all of whose bytes it takes.
    pub inside: Set,
    /// Where tokens leave it, by the tags it is complete with there.
    pub crossings: Box<[Crossing]>,
    /// How many nodes of the trie were looked at: what it cost.
    pub visited: usize,
}

/// The places where the terminal is complete with the same tags and a token goes on.
#[derive(Debug)]
pub(super) struct Crossing {
    pub tags: Arc<[Tag]>,
    /// The bytes that tokens go on with.
    pub bytes: ByteSet,
    /// By byte: the nodes reached by it.
    exits: Box<[(u8, Box<[Node]>, OnceLock<Suffixes>)]>,
}

impl Terminal {
    /// Walks the trie with the automaton of `e`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the automaton needs more than the limits of `exprs`.
    pub fn new(e: ExprId, exprs: &mut Exprs, trie: &TokenTrie, words: usize) -> Result<Terminal> {
        let mut ids = Vec::new();
        let mut exits: Vec<(ExprId, u8, Node)> = Vec::new();
        let mut failed = None;
        let mut visited = 0usize;
        trie.explore(trie.root(), e, |state, byte, node| {
            visited += 1;
            if exprs.is_complete(state) && trie.depth(node) > 1 {
                exits.push((state, byte, node));
            }
            let next = match exprs.derive(state, byte) {
                Ok(NOTHING) => return None,
                Ok(next) => next,
                Err(error) => {
                    failed.get_or_insert(error);
                    return None;
                }
            };
            ids.extend_from_slice(trie.tokens(node));
            Some(next)
        });
        if let Some(error) = failed {
            return Err(error);
        }
        exprs.spend(visited as u64 / 16)?;
        let mut by_tags: Vec<(Arc<[Tag]>, u8, Node)> =
            exits.into_iter().map(|(state, byte, node)| (exprs.outcome_list_of(state), byte, node)).collect();
        by_tags.sort_unstable();
        let crossings = by_tags.chunk_by(|a, b| a.0 == b.0).map(Crossing::new).collect();
        Ok(Terminal { inside: Set::new(ids, words), crossings, visited })
    }

    /// The rests of tokens that leave the terminal by `crossing` and go on with `byte`.
    pub fn suffixes<'a>(
        &'a self,
        crossing: &'a Crossing,
        byte: u8,
        trie: &TokenTrie,
    ) -> Option<&'a Suffixes> {
        let at = crossing.exits.binary_search_by_key(&byte, |exit| exit.0).ok()?;
        let (_, nodes, made) = &crossing.exits[at];
        Some(made.get_or_init(|| Suffixes::new(trie, byte, nodes, &|id| !self.inside.contains(id))))
    }

    /// Bytes of memory that it holds.
    pub fn memory(&self) -> usize {
        let crossings: usize = self.crossings.iter().map(Crossing::memory).sum();
        size_of::<Self>() + self.inside.memory() + crossings
    }
}

impl Crossing {
    /// `run` has one list of tags, and is sorted.
    fn new(run: &[(Arc<[Tag]>, u8, Node)]) -> Crossing {
        let mut bytes = ByteSet::NONE;
        let by_byte = run.chunk_by(|a, b| a.1 == b.1).map(|exits| {
            bytes.insert(exits[0].1);
            (exits[0].1, exits.iter().map(|exit| exit.2).collect(), OnceLock::new())
        });
        let exits = by_byte.collect();
        Crossing { tags: Arc::clone(&run[0].0), bytes, exits }
    }

    fn memory(&self) -> usize {
        let exit = |(_, nodes, made): &(u8, Box<[Node]>, OnceLock<Suffixes>)| {
            size_of_val(&**nodes) + made.get().map_or(0, Suffixes::memory) + 160
        };
        self.exits.iter().map(exit).sum::<usize>() + size_of::<Self>()
    }
}
