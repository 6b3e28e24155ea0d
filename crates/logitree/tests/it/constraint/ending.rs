//! What a search for an ending may cost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use logitree::constraint::{shortest_ending, AfterEnd, Constraint, Matcher, Sequence, States};
use logitree::grammar::ast::{Grammar, Syntax};
use logitree::grammar::rules::TokenName;
use logitree::mask::AllowedTokens;
use logitree::{ErrorKind, Result, Token, TokenId, TokenKind, Vocabulary, VocabularyOptions};
use logitree_testing::constraints::regex;
use logitree_testing::vocabulary::ending_vocabulary;

const A: TokenId = 0;

/// Tokens `a` without end, of a constraint that `b` ends in other spellings.
#[derive(Clone)]
struct Endless {
    inner: Box<dyn Matcher>,
    after: AfterEnd,
    asked: Arc<AtomicUsize>,
}

impl States for Endless {
    type At = ();

    fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_accepting(&self, (): &()) -> bool {
        false
    }

    fn is_finished(&self, (): &()) -> bool {
        false
    }

    fn allowed<'a>(&'a mut self, (): &'a ()) -> Result<AllowedTokens<'a>> {
        Ok(AllowedTokens::Ids(&[A]))
    }

    fn next(&mut self, (): &(), token: TokenId) -> Result<Option<()>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok((token == A && self.inner.take(A)?).then_some(()))
    }

    fn back(&mut self, (): &(), left: &mut [()]) -> Result<()> {
        self.inner.rollback(left.len())
    }

    fn in_any_spelling(&self, (): &()) -> Option<&dyn Matcher> {
        Some(&*self.inner)
    }
}

#[test]
fn all_beginnings_of_an_ending_share_one_budget() {
    const STATES: usize = 20;
    let vocabulary = ending_vocabulary(&[b"a", b"b"]).0;
    let inner = regex("a*b").matcher(&vocabulary).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let kind = Endless { inner, after: AfterEnd::tokens(&[], &[]), asked: Arc::clone(&asked) };
    let error = shortest_ending(&Sequence::begin(kind, ()), &vocabulary, STATES).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Limit);
    let asked = asked.load(Ordering::Relaxed);
    assert!(0 < asked && asked <= STATES, "{asked} tokens were tried");
}

/// A token that a grammar names ends a text in which most tokens of the vocabulary may come.
#[test]
fn a_named_token_ends_what_is_spelled_byte_by_byte() {
    let normal = |bytes: Vec<u8>| Token { bytes, kind: TokenKind::Normal };
    let mut tokens: Vec<Token> = (0..=255).map(|byte| normal(vec![byte])).collect();
    tokens.extend((0..700).map(|number| normal(format!("word{number}").into_bytes())));
    tokens.push(Token { bytes: b"</think>".to_vec(), kind: TokenKind::Control });
    let end = tokens.len() as u32 - 1;
    let vocabulary = Arc::new(Vocabulary::new(tokens, VocabularyOptions::default()).unwrap());
    let read = |syntax| Grammar::read(syntax).unwrap();
    let token = read(Syntax::Token(TokenName::Id(end)));
    let until = Grammar::seq([read(Syntax::Anything), token, read(Syntax::Literal("ok".into()))]).unwrap();
    let ending = |matcher: &dyn Matcher| shortest_ending(matcher, &vocabulary, 20_000).unwrap();
    let mut matcher = until.matcher(&vocabulary).unwrap();
    assert_eq!(ending(&*matcher), [end, u32::from(b'o'), u32::from(b'k')]);
    matcher.accept(300).unwrap();
    assert_eq!(ending(&*matcher), [end, u32::from(b'o'), u32::from(b'k')]);
}
