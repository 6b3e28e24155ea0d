//! Why a token or a text is allowed or not, in words.

use std::fmt;

use crate::Matcher;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::vocabulary::Vocabulary;

/// How many allowed tokens are named.
const NAMED: usize = 12;
/// Why nothing but an end token may come.
const OVER: &str = "the text is over: only a token that ends it may follow";

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub enum ExplainQuery<'a> {
    /// What may come.
    Anything,
    /// This token.
    Token(TokenId),
    /// These bytes, however they are cut into tokens.
    Text(&'a [u8]),
}

/// What a matcher allows in its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What is expected, in words; empty if unknown.
    pub expected: Vec<String>,
    /// Whether what was accepted is complete.
    pub accepting: bool,
    /// Number of allowed tokens; `None` where nothing is masked.
    pub allowed: Option<usize>,
    /// The first allowed tokens by number, each with its bytes.
    pub first: Vec<(TokenId, Vec<u8>)>,
    /// What was asked about.
    pub verdict: Option<Verdict>,
}

/// Whether a token or a text may come, and where it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The token, where one was asked about.
    pub token: Option<TokenId>,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether it may come.
    pub allowed: bool,
    /// How many of the bytes may come.
    pub taken: usize,
    /// What is expected after those; empty if unknown.
    pub expected: Vec<String>,
    /// Why it is refused, where the bytes do not say it.
    pub why: Option<&'static str>,
}

/// Explains the current state of `matcher`.
///
/// # Errors
/// [`ErrorKind::Token`] for a token that is not in the vocabulary; [`ErrorKind::Limit`] as [`Matcher::allowed`].
pub fn explain(
    matcher: &mut dyn Matcher,
    vocabulary: &Vocabulary,
    ask: ExplainQuery<'_>,
) -> Result<Explanation> {
    if vocabulary.len() < matcher.vocabulary_size() {
        let (own, other) = (matcher.vocabulary_size(), vocabulary.len());
        let message = format!("the matcher covers {own} tokens, the vocabulary has {other}");
        return Err(Error::new(ErrorKind::Constraint, message).help("give the vocabulary it was made with"));
    }
    let verdict = match ask {
        ExplainQuery::Anything => None,
        ExplainQuery::Token(token) => Some(of_token(matcher, vocabulary, token)?),
        ExplainQuery::Text(bytes) => Some(of_text(matcher, bytes)?),
    };
    let named = |id: TokenId| (id, vocabulary.token_bytes(id).to_vec());
    let is_over = matcher.is_finished() && !matcher.after_end().is_free();
    let here = if is_over { AllowedTokens::Ids(matcher.after_end().ids()) } else { matcher.allowed()? };
    let (allowed, first) = match here {
        AllowedTokens::All => (None, Vec::new()),
        some => {
            (Some(some.count(vocabulary.len())), some.ids(vocabulary.len()).take(NAMED).map(named).collect())
        }
    };
    Ok(Explanation {
        expected: matcher.expected(),
        accepting: matcher.is_accepting(),
        allowed,
        first,
        verdict,
    })
}

fn of_token(matcher: &mut dyn Matcher, vocabulary: &Vocabulary, token: TokenId) -> Result<Verdict> {
    vocabulary.check(token)?;
    let bytes = vocabulary.token_bytes(token).to_vec();
    if matcher.is_allowed(token)? {
        let taken = bytes.len();
        return Ok(Verdict {
            token: Some(token),
            bytes,
            allowed: true,
            taken,
            expected: Vec::new(),
            why: None,
        });
    }
    let ends = vocabulary.end_tokens().contains(&token);
    let text = vocabulary.kind(token).is_text();
    let why = match (ends, text) {
        _ if matcher.is_finished() => Some(OVER),
        (true, _) if !matcher.is_accepting() => Some("it ends the text, which is not complete"),
        (_, false) => Some("it is a special token, which is not text"),
        _ => None,
    };
    let taken = if text && !ends { matcher.accepted_prefix(&bytes)? } else { 0 };
    let expected = matcher.expected_after(&bytes[..taken])?;
    let whole = text && !ends && taken == bytes.len();
    let why = why.or(whole.then_some("its bytes may come, but not as this token"));
    Ok(Verdict { token: Some(token), bytes, allowed: false, taken, expected, why })
}

fn of_text(matcher: &mut dyn Matcher, bytes: &[u8]) -> Result<Verdict> {
    let taken = matcher.accepted_prefix(bytes)?;
    let expected = matcher.expected_after(&bytes[..taken])?;
    Ok(Verdict {
        token: None,
        bytes: bytes.to_vec(),
        allowed: taken == bytes.len(),
        taken,
        expected,
        why: (taken < bytes.len() && matcher.is_finished()).then_some(OVER),
    })
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = quoted(&self.bytes);
        match self.token {
            Some(token) => write!(f, "token {token} {shown}")?,
            None => write!(f, "the text {shown}")?,
        }
        if self.allowed {
            return f.write_str(" may come");
        }
        match (self.why, self.taken) {
            (Some(why), _) => write!(f, " is refused: {why}")?,
            (None, 0) => f.write_str(" is refused at its first byte")?,
            (None, taken) => {
                let size = self.bytes.len();
                write!(
                    f,
                    " is refused at byte {} of {size}, after {}",
                    taken + 1,
                    quoted(&self.bytes[..taken])
                )?;
            }
        }
        match &self.expected[..] {
            [] => Ok(()),
            expected => write!(f, "; expected there: {}", expected.join("; or ")),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verdict) = &self.verdict {
            writeln!(f, "{verdict}")?;
        }
        if !self.expected.is_empty() {
            writeln!(f, "expected here: {}", self.expected.join("; or "))?;
        }
        let complete = if self.accepting { "; the text is complete" } else { "" };
        match self.allowed {
            None => write!(f, "allowed here: everything, the constraint is over"),
            Some(allowed) => {
                let first: Vec<String> = self.first.iter().map(|(_, bytes)| quoted(bytes)).collect();
                let more = if allowed > first.len() { ", ..." } else { "" };
                let tokens = if allowed == 1 { "token" } else { "tokens" };
                write!(f, "allowed here: {allowed} {tokens}: {}{more}{complete}", first.join(", "))
            }
        }
    }
}

/// Bytes as text in quotes; what is no UTF-8 is written out.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let text = format!("{:?}", chunk.valid());
        out.push_str(&text[1..text.len() - 1]);
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{BoundOneOf, End};
    use logitree_tokens::vocabulary::{Builder, TokenKind, VocabularyOptions};

    fn vocabulary() -> Arc<Vocabulary> {
        let mut builder = Builder::new();
        for bytes in [&b"a"[..], b"b", b"ab", b"abx", b"\xff"] {
            builder.push(TokenKind::Normal, bytes).unwrap();
        }
        builder.push(TokenKind::Control, b"<end>").unwrap();
        Arc::new(
            builder.build(VocabularyOptions { end_tokens: vec![5], ..VocabularyOptions::default() }).unwrap(),
        )
    }

    #[test]
    fn tokens_and_texts_are_judged() {
        let vocabulary = vocabulary();
        let mut matcher = BoundOneOf::new(&["ab", "abb"], &vocabulary, &End::default()).unwrap().matcher();
        let allowed = explain(&mut *matcher, &vocabulary, ExplainQuery::Token(2)).unwrap();
        assert_eq!((allowed.allowed, allowed.accepting), (Some(2), false));
        assert_eq!(allowed.first, [(0, b"a".to_vec()), (2, b"ab".to_vec())]);
        assert!(allowed.verdict.as_ref().is_some_and(|verdict| verdict.allowed));
        assert!(allowed.to_string().starts_with("token 2 \"ab\" may come"), "{allowed}");
        let end = explain(&mut *matcher, &vocabulary, ExplainQuery::Token(5)).unwrap();
        assert!(end.to_string().contains("refused: it ends the text, which is not complete"), "{end}");
        assert_eq!(
            explain(&mut *matcher, &vocabulary, ExplainQuery::Token(6)).unwrap_err().kind,
            ErrorKind::Token
        );
        matcher.accept(2).unwrap();
        let rest = explain(&mut *matcher, &vocabulary, ExplainQuery::Anything).unwrap();
        assert!(
            rest.to_string().ends_with("allowed here: 2 tokens: \"b\", \"<end>\"; the text is complete"),
            "{rest}"
        );
        matcher.accept(5).unwrap();
        let over = explain(&mut *matcher, &vocabulary, ExplainQuery::Text(b"\xff\n")).unwrap();
        assert_eq!((over.allowed, over.first.clone()), (Some(1), vec![(5, b"<end>".to_vec())]));
        let refusal =
            "the text \"\\xff\\n\" is refused: the text is over: only a token that ends it may follow";
        assert!(over.to_string().starts_with(refusal), "{over}");
        let again = explain(&mut *matcher, &vocabulary, ExplainQuery::Token(0)).unwrap();
        assert!(again.to_string().contains("is refused: the text is over"), "{again}");
    }
}
