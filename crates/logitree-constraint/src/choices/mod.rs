//! Choices: one of several texts, in any tokens that spell it.
//!
//! The texts (each with the following text) are a trie over bytes; a state is a node of it. The allowed tokens at
//! a node are those whose bytes lead from there to another node: the vocabulary's trie and the texts' trie walked
//! side by side, once per node that is visited, and remembered. The naive version that it must equal: every
//! sequence of tokens whose bytes are a text and the following text.

use std::sync::{Arc, OnceLock};

mod byte_rows;

use crate::binding::{kept, recorded, Key};
use crate::form::{as_text, written};
use crate::row_matcher::RowMatcher;
use crate::token_tree::TreeRows;
use crate::token_tree::{Descriptor, Leaf, MAX_TOKENS};
use crate::token_tree::{DescriptorTree, TokenTree};
use crate::{AfterEnd, Constraint, End, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
use byte_rows::ByteRows;
use logitree_tokens::vocabulary::Vocabulary;
use serde_json::{json, Value};

/// The most bytes that choices may hold, the following text counted once for each.
pub const MAX_CHOICE_BYTES: usize = 1 << 24;

/// The constraint that the output is one of some texts, in any tokens that spell it.
///
/// Matchers of equal constraints share their rows.
#[derive(Debug, Clone)]
pub struct OneOf {
    texts: Arc<[Vec<u8>]>,
    following: Option<Vec<u8>>,
    end_tokens: Option<Vec<TokenId>>,
    /// The only spelling of each text.
    spellings: Option<Arc<[Vec<TokenId>]>>,
    /// What is compared of all but the end tokens.
    content: OnceLock<Arc<[u8]>>,
}

impl OneOf {
    /// One of these texts, with nothing after it.
    pub fn new<T: Into<Vec<u8>>>(texts: impl IntoIterator<Item = T>) -> OneOf {
        OneOf {
            texts: texts.into_iter().map(T::into).collect(),
            following: None,
            end_tokens: None,
            spellings: None,
            content: OnceLock::new(),
        }
    }

    /// With text that comes after every one of them and is generated too.
    #[must_use]
    pub fn followed_by(self, text: impl Into<Vec<u8>>) -> OneOf {
        OneOf { following: Some(text.into()), content: OnceLock::new(), ..self }
    }

    /// With tokens that end a text that is a prefix of another, in place of the vocabulary's end-of-generation ids.
    #[must_use]
    pub fn ended_by(self, tokens: Vec<TokenId>) -> OneOf {
        OneOf { end_tokens: Some(tokens), ..self }
    }

    /// In these tokens only: one list for each text, which spells it and the following text.
    #[must_use]
    pub fn spelled(self, tokens: Vec<Vec<TokenId>>) -> OneOf {
        OneOf { spellings: Some(tokens.into()), content: OnceLock::new(), ..self }
    }

    /// The texts.
    pub fn texts(&self) -> &[Vec<u8>] {
        &self.texts
    }
}

impl Constraint for OneOf {
    /// # Errors
    /// As [`BoundOneOf::new`] and [`BoundOneOf::canonical`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        let make = |vocabulary: &Arc<Vocabulary>| {
            let (tokens, following) = (self.end_tokens.clone(), self.following.clone());
            let end = End { tokens, following, vocabulary: None };
            match &self.spellings {
                None => BoundOneOf::new(&self.texts, vocabulary, &end),
                Some(tokens) => BoundOneOf::canonical(&self.texts, tokens.to_vec(), vocabulary, &end),
            }
        };
        Ok(kept(vocabulary, self.own_key(), make)?.matcher())
    }

    fn key(&self) -> Option<Key> {
        Some(self.own_key())
    }

    fn form(&self) -> Result<Value> {
        let texts: Vec<Value> = self.texts.iter().map(|text| as_text(text)).collect::<Result<_>>()?;
        let following = self.following.as_deref().map(as_text).transpose()?;
        let fields = [
            ("texts", texts.into()),
            ("following", json!(following)),
            ("spellings", json!(self.spellings.as_deref())),
            ("end_tokens", json!(self.end_tokens)),
        ];
        Ok(written("choices", fields))
    }
}

impl OneOf {
    fn own_key(&self) -> Key {
        let content = || recorded(&(&self.texts, &self.following, &self.spellings)).into();
        Key::new::<OneOf>(Arc::clone(self.content.get_or_init(content)), &self.end_tokens)
    }
}

/// A set of texts bound to a vocabulary. Cheap to clone; matchers share what they find out.
#[derive(Clone)]
pub struct BoundOneOf {
    count: usize,
    vocabulary: Arc<Vocabulary>,
    rows: Kind,
    after: AfterEnd,
}

#[derive(Clone)]
enum Kind {
    Bytes(Arc<ByteRows>),
    Tokens(Arc<TreeRows>),
}

impl BoundOneOf {
    /// Every tokenisation of each text. Repeated texts count once.
    ///
    /// With `end.following`, each text is followed by it, and one token may hold the last bytes of a text and the
    /// first of what follows; tokens that go past the end of the following text are not allowed. Where a text
    /// (with what follows) is the beginning of another, `end.tokens` end it. `end.vocabulary` is not looked at.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if there are no texts, or only the empty one and nothing follows; if one is the
    /// beginning of another and there is no end token, or an end token is also a continuation; if the vocabulary
    /// has no tokens that spell one of them. [`ErrorKind::Limit`] past [`MAX_CHOICE_BYTES`]. Those of the
    /// vocabulary's trie.
    pub fn new<T: AsRef<[u8]>>(texts: &[T], vocabulary: &Arc<Vocabulary>, end: &End) -> Result<BoundOneOf> {
        let texts = distinct(texts)?;
        let following = end.following.as_deref().unwrap_or_default();
        let total = texts.iter().fold(0usize, |n, text| n.saturating_add(text.len() + following.len()));
        if total > MAX_CHOICE_BYTES {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "the choices hold {total} bytes with what follows them, more than {MAX_CHOICE_BYTES}"
                ),
            ));
        }
        let ends = end.tokens.as_deref().unwrap_or_else(|| vocabulary.end_tokens());
        let rows = ByteRows::new(&texts, following, Arc::clone(vocabulary), ends)?;
        Ok(BoundOneOf {
            count: texts.len(),
            vocabulary: Arc::clone(vocabulary),
            rows: Kind::Bytes(Arc::new(rows)),
            after: AfterEnd::tokens(ends, vocabulary.end_tokens()),
        })
    }

    /// Only the given tokenisation of each text: `tokens[i]` spell `texts[i]` and the following text.
    ///
    /// # Errors
    /// As [`BoundOneOf::new`]; [`ErrorKind::Constraint`] too if the lists are not as many as the texts, or one spells
    /// something else.
    pub fn canonical<T: AsRef<[u8]>>(
        texts: &[T],
        tokens: Vec<Vec<TokenId>>,
        vocabulary: &Arc<Vocabulary>,
        end: &End,
    ) -> Result<BoundOneOf> {
        let count = distinct(texts)?.len();
        if tokens.len() != texts.len() {
            let message = format!("{} token lists for {} choices", tokens.len(), texts.len());
            return Err(Error::new(ErrorKind::Constraint, message));
        }
        if tokens.iter().map(Vec::len).sum::<usize>() > MAX_TOKENS {
            return Err(Error::new(ErrorKind::Limit, format!("more than {MAX_TOKENS} tokens")));
        }
        let following = end.following.as_deref().unwrap_or_default();
        let mut leaves = Vec::with_capacity(texts.len());
        for (text, tokens) in texts.iter().zip(tokens) {
            let expected = [text.as_ref(), following].concat();
            let spelled = spell(&tokens, vocabulary)?;
            if spelled != expected {
                let message =
                    format!("the tokens given for choice {} spell {}", quoted(&expected), quoted(&spelled));
                return Err(Error::new(ErrorKind::Constraint, message)
                    .help("tokenise without special tokens and without a prefix space"));
            }
            leaves.push(Leaf { name: String::from_utf8_lossy(text.as_ref()).into_owned(), tokens });
        }
        if leaves.iter().all(|leaf| leaf.tokens.is_empty()) {
            return Err(only_empty());
        }
        if leaves.iter().any(|leaf| leaf.tokens.is_empty()) {
            return Err(Error::new(ErrorKind::Constraint, "the empty choice has no tokens")
                .help("allow every tokenisation, or add following text"));
        }
        let descriptor = Arc::new(DescriptorTree::new(Descriptor { path: "choices".into(), leaves }));
        let tree = Arc::new(TokenTree::from_descriptors(None, vec![Arc::clone(&descriptor)]));
        let ends =
            End { vocabulary: Some(Arc::clone(vocabulary)), following: None, tokens: end.tokens.clone() };
        let rows = Kind::Tokens(Arc::new(TreeRows::new(tree, descriptor, &ends)?));
        let after = AfterEnd::tokens(ends.tokens(), vocabulary.end_tokens());
        Ok(BoundOneOf { count, vocabulary: Arc::clone(vocabulary), rows, after })
    }

    /// The same, with something else after a choice.
    pub(super) fn followed_by(self, after: AfterEnd) -> BoundOneOf {
        BoundOneOf { after, ..self }
    }

    /// A matcher at the beginning of a choice.
    pub fn matcher(&self) -> Box<dyn Matcher> {
        let after = self.after.clone();
        match &self.rows {
            Kind::Bytes(rows) => Box::new(RowMatcher::new(Arc::clone(rows), after)),
            Kind::Tokens(rows) => Box::new(RowMatcher::new(Arc::clone(rows), after)),
        }
    }

    /// Number of distinct texts.
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.count
    }

    /// The vocabulary they are bound to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Whether every tokenisation is allowed, or the given ones only.
    pub fn is_canonical(&self) -> bool {
        matches!(self.rows, Kind::Tokens(_))
    }
}

/// The texts sorted, each once.
fn distinct<T: AsRef<[u8]>>(texts: &[T]) -> Result<Vec<&[u8]>> {
    if texts.is_empty() {
        return Err(Error::new(ErrorKind::Constraint, "there are no choices")
            .help("without a choice nothing could be generated: leave the constraint out instead"));
    }
    let mut texts: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
    texts.sort_unstable();
    texts.dedup();
    Ok(texts)
}

pub(super) fn only_empty() -> Error {
    Error::new(ErrorKind::Constraint, "the only choice is empty and nothing follows it")
        .help("leave the constraint out: there is nothing to generate")
}

/// The bytes of `tokens`, which must all be text.
pub(super) fn spell(tokens: &[TokenId], vocabulary: &Vocabulary) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for &id in tokens {
        vocabulary.check(id).map_err(|e| Error { kind: ErrorKind::Constraint, ..e })?;
        if !vocabulary.kind(id).is_text() {
            return Err(Error::new(
                ErrorKind::Constraint,
                format!("token {id} is special and spells no text"),
            ));
        }
        bytes.extend_from_slice(vocabulary.token_bytes(id));
    }
    Ok(bytes)
}

/// `bytes` as a person reads them, cut to a sane length.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
    format!("{shown:?}{}", if bytes.len() > 60 { "…" } else { "" })
}
