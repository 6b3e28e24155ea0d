//! What one lexeme's state says about every token of a vocabulary: those that stay inside, and where others leave.

use std::sync::{Arc, OnceLock};

use super::suffixes::Suffixes;
use logitree_grammar::expr::{ByteSet, Exprs, Tag};
use logitree_tokens::mask::TokenSet;
use logitree_tokens::trie::{Node, TokenTrie};
use logitree_tokens::TokenId;

/// The tables of one state: its own, and those of a state that it differs from in few tokens.
#[derive(Debug)]
pub(super) struct Lexeme {
    /// The tokens all of whose bytes it takes; with a base, those that the base does not take.
    pub inside: TokenSet,
    /// Where tokens leave it, by the tags it is complete with there; with a base, those that leave it otherwise.
    pub crossings: Box<[Crossing]>,
    /// A state that nearly agrees with this one.
    pub base: Option<Base>,
}

/// What a state takes over from another.
#[derive(Debug)]
pub(super) struct Base {
    /// The other state's tables, which have no base themselves.
    pub lexeme: Arc<Lexeme>,
    /// Tokens that the other takes and this one does not: ascending.
    pub without: Box<[TokenId]>,
    /// Tokens that leave this one otherwise than the other: ascending.
    pub elsewhere: Box<[TokenId]>,
}

/// The places where the lexeme is complete with the same tags and a token continues.
#[derive(Debug)]
pub(super) struct Crossing {
    pub tags: Arc<[Tag]>,
    /// The next bytes of the tokens.
    pub bytes: ByteSet,
    exits: Box<[Exits]>,
    /// The nodes of all exits.
    nodes: Box<[Node]>,
}

/// A byte, which of the nodes it leads to, and what is found of them when it is first asked for.
#[derive(Debug)]
struct Exits {
    byte: u8,
    from: u32,
    to: u32,
    found: OnceLock<Suffixes>,
}

/// A place where the lexeme is complete, with the tags of that number, and a token continues with `byte`, which leads
/// to `node`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exit {
    pub outcome: u32,
    pub byte: u8,
    pub node: Node,
}

impl Lexeme {
    /// The tables of these exits, in any order.
    pub fn new(inside: TokenSet, exits: Vec<Exit>, exprs: &Exprs) -> Lexeme {
        Lexeme { inside, crossings: crossings(exits, exprs), base: None }
    }

    /// The tables of a state that differs from `base` so.
    pub fn near(base: Base, inside: TokenSet, exits: Vec<Exit>, exprs: &Exprs) -> Lexeme {
        Lexeme { inside, crossings: crossings(exits, exprs), base: Some(base) }
    }

    /// Whether it takes all bytes of `token`.
    pub fn takes(&self, token: TokenId) -> bool {
        let by_base =
            |base: &Base| base.lexeme.inside.contains(token) && base.without.binary_search(&token).is_err();
        self.inside.contains(token) || self.base.as_ref().is_some_and(by_base)
    }

    /// The nodes at which tokens leave only one of the two, or the two with other tags. Neither has a base.
    pub fn exits_beside(&self, other: &Lexeme) -> Vec<Node> {
        let all = |lexeme: &Lexeme| {
            let one = |crossing: &Crossing| {
                let tags = Arc::clone(&crossing.tags);
                let nodes = crossing.nodes.iter();
                nodes.map(move |&node| (node, Arc::clone(&tags))).collect::<Vec<_>>()
            };
            let mut exits: Vec<(Node, Arc<[Tag]>)> = lexeme.crossings.iter().flat_map(one).collect();
            exits.sort_unstable();
            exits
        };
        let (mine, theirs) = (all(self), all(other));
        let beside = |these: &[(Node, Arc<[Tag]>)], those: &[(Node, Arc<[Tag]>)]| -> Vec<Node> {
            these.iter().filter(|exit| those.binary_search(exit).is_err()).map(|exit| exit.0).collect()
        };
        [beside(&mine, &theirs), beside(&theirs, &mine)].concat()
    }

    /// Bytes of memory that it holds.
    pub fn memory(&self) -> usize {
        let crossings: usize = self.crossings.iter().map(Crossing::memory).sum();
        let base = self.base.as_ref().map_or(0, |b| size_of_val(&*b.without) + size_of_val(&*b.elsewhere));
        size_of::<Self>() + self.inside.bytes() + crossings + base
    }
}

/// Exits in any order, by their tags.
fn crossings(mut exits: Vec<Exit>, exprs: &Exprs) -> Box<[Crossing]> {
    exits.sort_unstable_by_key(|exit| (exit.outcome, exit.byte, exit.node));
    exits
        .chunk_by(|a, b| a.outcome == b.outcome)
        .map(|run| Crossing::new(exprs.outcome_list(run[0].outcome), run))
        .collect()
}

impl Crossing {
    /// `run` is sorted by byte.
    fn new(tags: Arc<[Tag]>, run: &[Exit]) -> Crossing {
        let bytes = run.iter().fold(ByteSet::NONE, |bytes, exit| bytes.or(&ByteSet::one(exit.byte)));
        let mut exits = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for same in run.chunk_by(|a, b| a.byte == b.byte) {
            let to = from + same.len() as u32;
            exits.push(Exits { byte: same[0].byte, from, to, found: OnceLock::new() });
            from = to;
        }
        let nodes = run.iter().map(|exit| exit.node).collect();
        Crossing { tags, bytes, exits: exits.into(), nodes }
    }

    fn nodes_of(&self, exits: &Exits) -> &[Node] {
        &self.nodes[exits.from as usize..exits.to as usize]
    }

    fn exits_by(&self, byte: u8) -> Option<&Exits> {
        let at = self.exits.binary_search_by_key(&byte, |exits| exits.byte).ok()?;
        Some(&self.exits[at])
    }

    /// Adds the nodes that one of these bytes leads to.
    pub fn nodes(&self, bytes: &ByteSet, to: &mut Vec<(u8, Node)>) {
        for exits in self.exits.iter().filter(|exits| bytes.contains(exits.byte)) {
            to.extend(self.nodes_of(exits).iter().map(|&node| (exits.byte, node)));
        }
    }

    /// What [`Crossing::suffixes`] finds for `byte`, if it was asked before; else how many nodes it would visit.
    pub fn known_suffixes(&self, byte: u8, trie: &TokenTrie) -> Result<&Suffixes, usize> {
        let Some(exits) = self.exits_by(byte) else { return Err(0) };
        let unvisited = || self.nodes_of(exits).iter().map(|&node| trie.size(node)).sum();
        exits.found.get().ok_or_else(unvisited)
    }

    /// The rests, beginning with `byte`, of the tokens that leave the lexeme here and that it does not take anyway.
    pub fn suffixes(
        &self,
        byte: u8,
        takes: &impl Fn(TokenId) -> bool,
        trie: &TokenTrie,
    ) -> Option<&Suffixes> {
        let exits = self.exits_by(byte)?;
        let find = || Suffixes::new(trie, byte, self.nodes_of(exits), &|id| !takes(id));
        Some(exits.found.get_or_init(find))
    }

    fn memory(&self) -> usize {
        let exit = |exits: &Exits| exits.found.get().map_or(0, Suffixes::memory) + 160;
        self.exits.iter().map(exit).sum::<usize>() + size_of_val(&*self.nodes) + size_of::<Self>()
    }
}
