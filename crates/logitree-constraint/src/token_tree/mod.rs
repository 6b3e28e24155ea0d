//! The compiled token tree: per descriptor a trie over token ids, immutable and shared by its matchers.
//!
//! Built by the rules of the payload's format: empty token lists are skipped, equal token lists are one leaf with the
//! smallest name, a list that is a prefix of another ends at a node that keeps its children, no leaves give a bare
//! root. A payload that is read must have neither empty lists nor descriptors without leaves: see [`PayloadCheck`].

use std::fmt::Write as _;
use std::sync::Arc;

#[doc(hidden)] // what the bindings keep of payloads
pub mod cache;
mod check;
mod codec;
mod payload;
mod sequence_trie;
mod tree_rows;

use crate::binding::{copied, recorded, Key};
use crate::choices::{spell, BoundOneOf};
use crate::form::{as_text, descriptor, leaves, written};
use crate::row_matcher::RowMatcher;
use crate::{AfterEnd, Constraint, End, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
pub use check::{OnMismatch, PayloadCheck};
use logitree_tokens::vocabulary::Vocabulary;
pub use payload::{Descriptor, Leaf, Payload, MAX_TOKENS, MAX_TOKEN_ID};
pub(crate) use sequence_trie::SequenceTrie;
pub use sequence_trie::{Node, ROOT};
use serde_json::{json, Value};
pub(crate) use tree_rows::TreeRows;

/// A payload, compiled. Hold it in an `Arc`: its matchers share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTree {
    model_id: Option<String>,
    descriptors: Vec<Arc<DescriptorTree>>,
    /// Positions in `descriptors`, by path.
    by_path: Vec<u32>,
    warnings: Vec<Error>,
}

impl TokenTree {
    /// Compiles `payload` after holding it against what `check` names.
    ///
    /// # Errors
    /// Those of [`Payload::validate`] and [`PayloadCheck::run`].
    pub fn new(mut payload: Payload, check: &PayloadCheck<'_>) -> Result<TokenTree> {
        payload.validate()?;
        let warnings = check.run(&mut payload)?;
        let descriptors = payload.descriptors.into_iter().map(|d| Arc::new(DescriptorTree::new(d))).collect();
        Ok(TokenTree { warnings, ..TokenTree::from_descriptors(payload.model_id, descriptors) })
    }

    /// Reads and compiles JSON text.
    ///
    /// # Errors
    /// Those of [`Payload::from_json`] and [`PayloadCheck::run`].
    pub fn from_json(text: &[u8], check: &PayloadCheck<'_>) -> Result<TokenTree> {
        TokenTree::new(Payload::from_json(text)?, check)
    }

    /// From compiled descriptors whose paths are distinct.
    pub(crate) fn from_descriptors(
        model_id: Option<String>,
        descriptors: Vec<Arc<DescriptorTree>>,
    ) -> TokenTree {
        let mut by_path: Vec<u32> = (0..descriptors.len() as u32).collect();
        by_path.sort_by(|&a, &b| descriptors[a as usize].path.cmp(&descriptors[b as usize].path));
        TokenTree { model_id, descriptors, by_path, warnings: Vec::new() }
    }

    /// From one compiled descriptor, which knows no model.
    pub fn from_descriptor(descriptor: Arc<DescriptorTree>) -> TokenTree {
        TokenTree::from_descriptors(None, vec![descriptor])
    }

    /// From a descriptor's binary form.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] with the offset for malformed bytes, or if no leaf is there.
    pub fn from_binary(bytes: &[u8]) -> Result<TokenTree> {
        let descriptor = DescriptorTree::from_binary(bytes)?;
        if descriptor.leaf_count() == 0 {
            let message = format!("the descriptor {:?} has no leaves", descriptor.path());
            let error = Error::new(ErrorKind::Payload, message);
            return Err(error.help("give a descriptor with leaves, or no token tree"));
        }
        Ok(TokenTree::from_descriptor(Arc::new(descriptor)))
    }

    /// Checks that every id is below `size`.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] with the largest id of the first path that holds one.
    pub fn check_range(&self, size: usize) -> Result<()> {
        for descriptor in &self.descriptors {
            if let Some(id) = descriptor.largest.filter(|&id| id as usize >= size) {
                let message = format!("id {id} is outside the vocabulary of {size} tokens");
                return Err(Error::new(ErrorKind::Payload, message).at(format!("path {:?}", descriptor.path)));
            }
        }
        Ok(())
    }

    /// The model id that the payload carried.
    pub fn model_id(&self) -> Option<&str> {
        self.model_id.as_deref()
    }

    /// One compiled descriptor each, in the payload's order.
    pub fn descriptors(&self) -> &[Arc<DescriptorTree>] {
        &self.descriptors
    }

    /// What did not fit the vocabulary or model, with the option to warn.
    pub fn warnings(&self) -> &[Error] {
        &self.warnings
    }

    /// The compiled descriptor of `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the payload has none, naming the paths it has.
    pub fn descriptor(&self, path: &str) -> Result<&Arc<DescriptorTree>> {
        let found = self.by_path.binary_search_by(|&i| self.descriptors[i as usize].path.as_str().cmp(path));
        found.map(|at| &self.descriptors[self.by_path[at] as usize]).map_err(|_| {
            let mut paths: Vec<String> =
                self.descriptors.iter().take(20).map(|s| format!("{:?}", s.path)).collect();
            if self.descriptors.len() > 20 {
                paths.push(format!("and {} more", self.descriptors.len() - 20));
            }
            Error::new(ErrorKind::Constraint, format!("the token tree has no path {path:?}"))
                .help(format!("its paths: {}", paths.join(", ")))
        })
    }

    /// A matcher for the descriptor at `path`. After the leaf nothing is masked ([`AfterEnd::Free`]): a payload pins one
    /// span of a text, and its owner says what comes next.
    ///
    /// Without `end.following`, the token lists are the only ways to write a value. With it, any tokens whose
    /// bytes are a value's bytes and then the following text will do (as [`super::BoundOneOf`] does), so that a token
    /// may hold a value's last letters and the closing quote.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if there is no such path; if it has no leaves (never unconstrained instead); if a
    /// value is a prefix of another and `end` says nothing that ends it, or an end token is also a continuation; if an id
    /// is not in `end.vocabulary`; and those of [`super::BoundOneOf`] where there is following text.
    pub fn matcher(self: &Arc<Self>, path: &str, end: &End) -> Result<Box<dyn Matcher>> {
        let descriptor = self.descriptor(path)?;
        if descriptor.leaf_count() == 0 {
            return Err(Error::new(ErrorKind::Constraint, format!("the descriptor {path:?} has no leaves")).help(
                "a descriptor without values cannot be generated: leave it unconstrained on purpose, or drop it",
            ));
        }
        if end.following.is_some() {
            return Ok(descriptor.followed(end)?.followed_by(AfterEnd::Free).matcher());
        }
        let rows = TreeRows::new(Arc::clone(self), Arc::clone(descriptor), end)?;
        Ok(Box::new(RowMatcher::new(Arc::new(rows), AfterEnd::Free)))
    }

    /// The payload, which [`TokenTree::from_json`] reads.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] where names of leaves are lost.
    pub(crate) fn to_json(&self) -> Result<Value> {
        if self.descriptors.iter().any(|descriptor| descriptor.names().is_empty()) {
            let message = "the names of the token tree's leaves are lost";
            return Err(Error::new(ErrorKind::Constraint, message).help("make the tree from its payload"));
        }
        let descriptors: Vec<Value> = self.descriptors.iter().map(|one| leaves(one)).collect();
        Ok(json!({ "modelId": self.model_id, "descriptors": descriptors }))
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.descriptors.iter().map(|descriptor| descriptor.bytes()).sum()
    }
}

/// The constraint that the output is a leaf of one descriptor of a token tree.
#[derive(Debug, Clone)]
pub struct TreeSpan {
    /// The tree.
    pub tree: Arc<TokenTree>,
    /// The descriptor's path.
    pub path: String,
    /// Text that comes after the leaf and is generated too.
    pub following: Option<Vec<u8>>,
    /// Tokens that end a leaf that is a prefix of another; `None`: the vocabulary's end-of-generation ids.
    pub end_tokens: Option<Vec<TokenId>>,
}

impl TreeSpan {
    /// The span of a path, which may be left out where there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for an unknown path, or for none where there are several.
    pub fn at(tree: Arc<TokenTree>, path: Option<&str>) -> Result<TreeSpan> {
        let path = match (path, tree.descriptors()) {
            (None, [only]) => only.path().to_string(),
            (None, all) => {
                let message = format!("the token tree has {} paths: say which", all.len());
                return Err(Error::new(ErrorKind::Constraint, message));
            }
            (Some(path), _) => tree.descriptor(path)?.path().to_string(),
        };
        Ok(TreeSpan { tree, path, following: None, end_tokens: None })
    }

    /// A matcher at the beginning of a leaf. Without a vocabulary, there is no following text and no default end token.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if an id of the tree is not in the vocabulary; those of [`TokenTree::matcher`].
    pub fn bind(&self, vocabulary: Option<&Arc<Vocabulary>>) -> Result<Box<dyn Matcher>> {
        if let Some(known) = vocabulary {
            self.tree.check_range(known.len())?;
        }
        let (tokens, following) = (self.end_tokens.clone(), self.following.clone());
        self.tree.matcher(&self.path, &End { tokens, following, vocabulary: vocabulary.cloned() })
    }
}

impl Constraint for TreeSpan {
    /// # Errors
    /// As [`TreeSpan::bind`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        copied(vocabulary, self.key(), self, |vocabulary| self.bind(Some(vocabulary)))
    }

    /// By the tree's address: equal payloads are one tree in [`cache`].
    fn key(&self) -> Option<Key> {
        let tree = Arc::as_ptr(&self.tree) as usize;
        Some(Key::new::<TreeSpan>(recorded(&(tree, &self.path)), &(&self.following, &self.end_tokens)))
    }

    /// With the one descriptor.
    fn form(&self) -> Result<Value> {
        let following = self.following.as_deref().map(as_text).transpose()?;
        let fields = [
            descriptor(self.tree.descriptor(&self.path)?),
            ("following", json!(following)),
            ("end_tokens", json!(self.end_tokens)),
        ];
        Ok(written("token_tree", fields))
    }
}

/// One descriptor, compiled: a trie over token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptorTree {
    path: String,
    pub(super) trie: SequenceTrie<TokenId>,
    /// Names by the trie's end numbers; empty where names are not known (the binary form loses them).
    names: Vec<String>,
    leaves: usize,
    /// The largest id; `None` in a bare root.
    pub(super) largest: Option<TokenId>,
    /// Nodes where a leaf ends and others continue, ascending.
    pub(super) inner: Vec<Node>,
}

impl AsRef<[TokenId]> for Leaf {
    fn as_ref(&self) -> &[TokenId] {
        &self.tokens
    }
}

impl DescriptorTree {
    /// Compiles one descriptor. Names compare by code point.
    pub fn new(descriptor: Descriptor) -> DescriptorTree {
        let mut leaves = descriptor.leaves;
        leaves.retain(|leaf| !leaf.tokens.is_empty());
        leaves.sort_unstable_by(|a, b| a.tokens.cmp(&b.tokens).then_with(|| a.name.cmp(&b.name)));
        leaves.dedup_by(|again, first| again.tokens == first.tokens);
        let trie = SequenceTrie::new(&leaves);
        let names = leaves.into_iter().map(|leaf| leaf.name).collect();
        DescriptorTree::from_trie(descriptor.path, trie, names)
    }

    pub(super) fn from_trie(path: String, trie: SequenceTrie<TokenId>, names: Vec<String>) -> DescriptorTree {
        let inner = trie.inner_ends().collect();
        let leaves = (0..trie.len() as Node).filter(|&n| trie.end(n).is_some()).count();
        let largest = (0..trie.len() as Node).filter_map(|n| trie.symbol(n)).max();
        DescriptorTree { path, trie, names, leaves, largest, inner }
    }

    /// Which descriptor this is for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of nodes, the root counted.
    pub fn node_count(&self) -> usize {
        self.trie.len()
    }

    /// Number of leaves, which is the number of terminals: nodes where a value is complete.
    pub fn leaf_count(&self) -> usize {
        self.leaves
    }

    /// Number of tokens of the longest leaf.
    pub fn depth(&self) -> usize {
        self.trie.pre_order().map(|(_, depth)| depth).max().unwrap_or(0)
    }

    /// Number of leaves that are prefixes of others.
    pub fn inner_leaf_count(&self) -> usize {
        self.inner.len()
    }

    /// The largest number of children of one node.
    pub fn widest(&self) -> usize {
        (0..self.node_count() as Node).map(|n| self.fan_out(n)).max().unwrap_or(0)
    }

    /// The child of `node` under `token`.
    #[inline]
    pub fn step(&self, node: Node, token: TokenId) -> Option<Node> {
        self.trie.step(node, token)
    }

    /// The tokens that lead on from `node`, ascending.
    #[inline]
    pub fn children(&self, node: Node) -> &[TokenId] {
        self.trie.child_symbols(node)
    }

    /// Number of children.
    pub fn fan_out(&self, node: Node) -> usize {
        self.children(node).len()
    }

    /// The token that leads to `node`; `None` for the root (which the format writes as -1).
    pub fn token(&self, node: Node) -> Option<TokenId> {
        self.trie.symbol(node)
    }

    /// Whether a value is complete at `node`.
    pub fn is_terminal(&self, node: Node) -> bool {
        self.trie.end(node).is_some()
    }

    /// Whether a value is complete at `node` and none is longer.
    pub fn is_leaf_end(&self, node: Node) -> bool {
        self.is_terminal(node) && self.children(node).is_empty()
    }

    /// The child of `node`, if there is exactly one.
    pub fn single_child(&self, node: Node) -> Option<(TokenId, Node)> {
        match *self.children(node) {
            [token] => Some((token, self.trie.child_range(node).start)),
            _ => None,
        }
    }

    /// The name of the value that is complete at `node`; `None` elsewhere and where names are lost.
    pub fn leaf_name(&self, node: Node) -> Option<&str> {
        self.names.get(self.trie.end(node)? as usize).map(String::as_str)
    }

    /// The names of the leaves, in the order of their token lists; empty where names are lost.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Calls `each` with the node and the token list of every leaf, in the order of the token lists.
    pub fn for_each_leaf(&self, mut each: impl FnMut(Node, &[TokenId])) {
        let mut tokens = Vec::new();
        for (node, depth) in self.trie.pre_order() {
            tokens.truncate(depth.saturating_sub(1));
            tokens.extend(self.token(node));
            if self.is_terminal(node) {
                each(node, &tokens);
            }
        }
    }

    /// The leaves' bytes and then the following text, in any tokens.
    fn followed(&self, end: &End) -> Result<BoundOneOf> {
        let Some(vocabulary) = &end.vocabulary else {
            return Err(Error::new(ErrorKind::Constraint, "following text needs the vocabulary")
                .help("pass the vocabulary, or end_tokens to keep to the listed tokens"));
        };
        let (mut texts, mut failed) = (Vec::with_capacity(self.leaves), None);
        self.for_each_leaf(|_, tokens| match spell(tokens, vocabulary) {
            Ok(text) => texts.push(text),
            Err(error) => failed = Some(error),
        });
        match failed {
            Some(error) => Err(error.at(format!("path {:?}", self.path))),
            None => BoundOneOf::new(&texts, vocabulary, end),
        }
    }

    /// A leaf that ends at or below `node`, in words, for errors.
    pub(super) fn describe_below(&self, node: Node) -> String {
        let below = self.trie.any_end_below(node).and_then(|end| self.names.get(end as usize));
        below.map_or_else(|| format!("the leaf below node {node}"), |name| format!("{name:?}"))
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.trie.bytes() + self.path.len() + self.names.iter().map(|n| n.len() + 24).sum::<usize>()
    }

    /// The tree drawn in text, runs of single children on one line, `●` before a leaf's name; at most `max_lines`
    /// lines. `show` writes a token (its id, or its bytes where there is a vocabulary).
    pub fn dump(&self, max_lines: usize, show: &dyn Fn(TokenId) -> String) -> String {
        const RUN: usize = 16;
        let mut out =
            format!("{}: {} leaves, {} nodes\n", self.path.escape_debug(), self.leaves, self.node_count());
        // (first node of the run, ancestors' bars, whether it is its parent's last child)
        let mut stack: Vec<(Node, String, bool)> = Vec::new();
        let push_children = |stack: &mut Vec<(Node, String, bool)>, node: Node, bars: &str| {
            let range = self.trie.child_range(node);
            let last = range.end.saturating_sub(1);
            stack.extend(range.rev().map(|child| (child, bars.to_string(), child == last)));
        };
        push_children(&mut stack, ROOT, "");
        let mut lines = 0;
        while let Some((mut node, bars, last)) = stack.pop() {
            if lines == max_lines {
                out.push_str("…\n");
                break;
            }
            lines += 1;
            out.push_str(&bars);
            out.push_str(if last { "└─" } else { "├─" });
            let mut run = 0;
            loop {
                if let (true, Some(token)) = (run < RUN, self.token(node)) {
                    let _ = write!(out, " {}", show(token));
                }
                run += 1;
                match self.single_child(node) {
                    Some((_, child)) if !self.is_terminal(node) => node = child,
                    _ => break,
                }
            }
            if run > RUN {
                let _ = write!(out, " … {} more", run - RUN);
            }
            if self.is_terminal(node) {
                let _ = write!(out, " ● {}", self.leaf_name(node).unwrap_or("").escape_debug());
            }
            out.push('\n');
            let deeper = if bars.len() > 400 { bars } else { bars + if last { "   " } else { "│  " } };
            push_children(&mut stack, node, &deeper);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(leaves: &[(&str, &[TokenId])]) -> DescriptorTree {
        let leaves = leaves.iter().map(|(n, t)| Leaf { name: n.to_string(), tokens: t.to_vec() }).collect();
        DescriptorTree::new(Descriptor { path: "action".into(), leaves })
    }

    #[test]
    fn draws_itself() {
        let tree = descriptor(&[
            ("REPLY", &[1, 2]),
            ("REPLY_THREAD", &[1, 2, 3, 4]),
            ("MUTE", &[9]),
            ("ME", &[1, 7]),
        ]);
        let drawn = tree.dump(100, &|id| id.to_string());
        let expected = "action: 4 leaves, 7 nodes\n├─ 1\n│  ├─ 2 ● REPLY\n│  │  └─ 3 4 ● REPLY_THREAD\n\
                        │  └─ 7 ● ME\n└─ 9 ● MUTE\n";
        assert_eq!(drawn, expected);
        assert_eq!(tree.dump(1, &|id| id.to_string()).lines().last(), Some("…"));
    }

    #[test]
    fn two_ideas_two_names() {
        let tree = descriptor(&[("REPLY", &[1, 2]), ("REPLY_THREAD", &[1, 2, 3])]);
        let inner = tree.step(tree.step(ROOT, 1).unwrap(), 2).unwrap();
        assert!(tree.is_terminal(inner) && !tree.is_leaf_end(inner));
        let (token, leaf) = tree.single_child(inner).unwrap();
        assert_eq!((token, tree.leaf_name(leaf)), (3, Some("REPLY_THREAD")));
        assert!(tree.is_leaf_end(leaf) && tree.single_child(leaf).is_none());
    }
}
