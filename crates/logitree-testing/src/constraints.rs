//! Constraints that many tests need.

use std::sync::Arc;

use logitree::catalogue::{BuildOptions, Catalogue, CatalogueBuilder};
use logitree::constraint::{BoundGrammar, Descriptor, GrammarLimits, Leaf, Payload, PayloadCheck, TokenTree};
use logitree::grammar::ast::{Grammar, Syntax};
use logitree::grammar::gbnf;
use logitree::grammar::rules::Rules;
use logitree::{Result, TokenId, Vocabulary};

/// A catalogue of items with these tokens.
pub fn catalogue(items: &[impl AsRef<[TokenId]>]) -> Catalogue {
    let mut builder = CatalogueBuilder::new(BuildOptions::default()).expect("a builder");
    items.iter().for_each(|tokens| builder.push(tokens.as_ref(), &[], 0).expect("a sound item"));
    Catalogue::new(builder.finish(None, &mut |_| Ok(())).expect("an index").index)
}

/// A token tree whose one descriptor is "p".
///
/// # Errors
/// Those of [`TokenTree::new`].
pub fn token_tree(leaves: &[impl AsRef<[TokenId]>], check: &PayloadCheck<'_>) -> Result<Arc<TokenTree>> {
    let leaf = |tokens: &[TokenId]| Leaf { name: format!("{tokens:?}"), tokens: tokens.to_vec() };
    let leaves = leaves.iter().map(|tokens| leaf(tokens.as_ref())).collect();
    let payload = Payload { model_id: None, descriptors: vec![Descriptor { path: "p".into(), leaves }] };
    TokenTree::new(payload, check).map(Arc::new)
}

/// A regular expression as a grammar.
pub fn regex(pattern: &str) -> Grammar {
    Grammar::read(Syntax::Regex(pattern.into())).expect("a sound pattern")
}

/// Rules bound to a vocabulary, with its own ends and the usual limits.
///
/// # Errors
/// Those of [`BoundGrammar::new`].
pub fn bind(rules: impl Into<Arc<Rules>>, vocabulary: &Arc<Vocabulary>) -> Result<BoundGrammar> {
    BoundGrammar::new(rules.into(), vocabulary, None, GrammarLimits::default())
}

/// A GBNF grammar bound to a vocabulary.
pub fn bind_gbnf(text: &str, vocabulary: &Arc<Vocabulary>) -> BoundGrammar {
    gbnf::parse(text).and_then(|rules| bind(rules, vocabulary)).expect("a sound grammar")
}
