//! Reasoning blocks of any shape over a small vocabulary, alone or before another constraint: what
//! `BoundReasoning::new` takes gives matchers that keep the laws, stay within the budget, and say of drafts what
//! accepting them one by one says.
//!
//! The bytes are, in this order: further tokens, the thinking, where it begins, what comes after, drafts, and a script.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use logitree::catalogue::{BuildOptions, Catalogue, CatalogueBuilder, CatalogueSnapshot, ItemWalk};
use logitree::constraint::reasoning::ReasoningStart;
use logitree::constraint::{
    draft_masks, fill, BoundGrammar, BoundOneOf, BoundReasoning, End, GrammarLimits, Matcher,
    ReasoningOptions,
};
use logitree::grammar::gbnf;
use logitree::mask::words_for;
use logitree::{Error, Token, TokenId, TokenKind, Vocabulary};
use logitree_testing::bytes::Bytes;
use logitree_testing::laws::{self, Seen};
use logitree_testing::vocabulary::{of_tokens, token};

/// Steps of a script that run.
const MAX_STEPS: usize = 40;

/// Letters, parts of characters, and tags; the end of generation follows.
const TEXTS: [&[u8]; 12] = [
    b"a",
    b"b",
    b"c",
    b"\xe4\xbd",
    b"\xa0",
    b"\xc3",
    b"d\xf0\x9f",
    b"\x98\x80",
    b"\xed",
    b"<s>",
    b"<e>",
    b"<f>",
];
const SPECIAL: usize = 9;

/// What the letters may say after a reasoning block.
const GRAMMARS: [&str; 3] =
    ["root ::= [ab]* \"c\"", "root ::= \"a\" | \"ab\" | \"abc\"", "root ::= [a-c] [a-c]"];

/// What the bytes stand for.
struct Script<'a>(Bytes<'a>);

impl Script<'_> {
    /// None, a small number, or now and then a huge one.
    fn number(&mut self) -> Option<usize> {
        match self.0.byte() {
            byte if byte < 64 => None,
            255 => Some(usize::MAX),
            254 => Some(usize::MAX - 1),
            byte => Some(usize::from(byte) % 13),
        }
    }

    /// Ids of the vocabulary, or, rarely, an invalid one.
    fn tokens(&mut self, most: usize, size: usize) -> Vec<TokenId> {
        let id = |byte| if byte == 255 { 255 } else { TokenId::from(byte) % size as TokenId };
        (0..self.0.below(most)).map(|_| id(self.0.byte())).collect()
    }

    fn tags(&mut self, size: usize) -> Vec<Vec<TokenId>> {
        (0..1 + self.0.below(3)).map(|_| self.tokens(5, size)).collect()
    }

    fn vocabulary(&mut self) -> Arc<Vocabulary> {
        let (ordinary, special) = TEXTS.split_at(SPECIAL);
        let mut tokens: Vec<Token> = ordinary.iter().map(|text| token(text, TokenKind::Normal)).collect();
        tokens.extend(special.iter().map(|text| token(text, TokenKind::Control)));
        for _ in 0..self.0.below(5) {
            let bytes: Vec<u8> = (0..1 + self.0.below(3)).map(|_| self.0.byte()).collect();
            tokens.push(token(bytes, TokenKind::Normal));
        }
        let end = tokens.len() as TokenId;
        tokens.push(token("</s>", TokenKind::Control));
        of_tokens(tokens, &[end])
    }

    fn options(&mut self, size: usize) -> ReasoningOptions {
        ReasoningOptions {
            begin: self.tags(size),
            end: self.tags(size),
            message: self.tokens(4, size),
            budget: self.number(),
            soft: self.number(),
            ramp: f32::from_bits(u32::from(self.0.byte()) << 24 | 0x40_0000),
            max_blocks: self.number(),
            whole: self.0.below(2) == 1,
        }
    }
}

/// What comes after the reasoning blocks.
enum Then {
    Nothing,
    Items(CatalogueSnapshot, TokenId),
    Grammar(BoundGrammar),
    Names(BoundOneOf),
}

impl Then {
    fn new(bytes: &mut Script<'_>, vocabulary: &Arc<Vocabulary>) -> Result<Then, Error> {
        let end = vocabulary.end_tokens()[0];
        Ok(match bytes.0.below(4) {
            0 => Then::Nothing,
            1 => {
                let mut builder = CatalogueBuilder::new(BuildOptions::default())?;
                for item in 0..1 + bytes.0.below(6) {
                    builder.push(&bytes.tokens(5, end as usize), &[], item as u64)?;
                }
                let tree = Catalogue::new(builder.finish(None, &mut |_| Ok(()))?.index);
                Then::Items(tree.snapshot(), end)
            }
            2 => {
                let rules = Arc::new(gbnf::parse(GRAMMARS[bytes.0.below(GRAMMARS.len())])?);
                Then::Grammar(BoundGrammar::new(rules, vocabulary, None, GrammarLimits::default())?)
            }
            _ => {
                let end = End { vocabulary: Some(Arc::clone(vocabulary)), ..End::default() };
                Then::Names(BoundOneOf::new(
                    &["a", "ab", "bca", "ä"][..1 + bytes.0.below(3)],
                    vocabulary,
                    &end,
                )?)
            }
        })
    }

    fn matcher(&self, size: usize) -> Result<Option<Box<dyn Matcher>>, Error> {
        Ok(match self {
            Then::Nothing => None,
            Then::Items(items, end) => {
                Some(Box::new(ItemWalk { snapshot: items.clone(), end: Some(*end) }.sequence(size, &[])?))
            }
            Then::Grammar(grammar) => Some(grammar.matcher()?),
            Then::Names(names) => Some(names.matcher()),
        })
    }
}

/// Every id of the vocabulary is accepted just where it is allowed.
fn hold_every_id(matcher: &mut dyn Matcher, seen: &Seen) {
    for id in 0..matcher.vocabulary_size() as TokenId {
        let is_allowed = seen.allowed.as_ref().is_none_or(|allowed| allowed.binary_search(&id).is_ok());
        match matcher.accept(id) {
            Ok(()) => {
                assert!(is_allowed, "{id} was accepted");
                matcher.rollback(1).expect("one was accepted");
            }
            Err(error) => assert!(!is_allowed, "{id} was refused: {error}"),
        }
    }
    assert_eq!(laws::look(matcher), *seen, "trying changed something");
}

/// Drafts, one by one. What is no id of the vocabulary is no allowed draft, also where the matcher masks nothing.
fn hold_drafts(matcher: &mut dyn Matcher, drafts: &[(u8, TokenId)]) {
    let words = words_for(matcher.vocabulary_size());
    let row = |matcher: &mut dyn Matcher| {
        let mut row = vec![0; words];
        fill(matcher, &mut row).expect("within the fuel");
        row
    };
    let parents: Vec<Option<usize>> = drafts
        .iter()
        .enumerate()
        .map(|(at, draft)| (usize::from(draft.0) % (at + 1)).checked_sub(1))
        .collect();
    let tokens: Vec<TokenId> = drafts.iter().map(|draft| draft.1).collect();
    let mut after: Vec<Option<Box<dyn Matcher>>> = Vec::new();
    let mut slow = vec![row(matcher)];
    for (at, &token) in tokens.iter().enumerate() {
        let before = match parents[at] {
            None => Some(matcher.fork()),
            Some(parent) => after[parent].as_ref().map(|matcher| matcher.fork()),
        };
        let before = before.filter(|matcher| (token as usize) < matcher.vocabulary_size());
        let mut here = before.and_then(|mut here| here.accept(token).is_ok().then_some(here));
        slow.push(here.as_mut().map_or_else(|| vec![0; words], |here| row(&mut **here)));
        after.push(here);
    }
    let seen = laws::look(matcher);
    let mut rows = vec![vec![1; words]; tokens.len() + 1];
    let allowed = draft_masks(matcher, &parents, &tokens, rows.iter_mut().map(|row| &mut row[..]).collect());
    assert_eq!(allowed.expect("within the fuel"), after.iter().map(Option::is_some).collect::<Vec<_>>());
    assert_eq!(rows, slow, "{parents:?} {tokens:?}");
    assert_eq!(laws::look(matcher), seen, "drafts changed something");
}

/// No reasoning block is longer than its budget and the rest of a character, and nothing is said of an answer inside
/// it.
fn hold_budget(reasoning: &BoundReasoning, at: ReasoningStart, history: &[TokenId]) {
    let Some(budget) = reasoning.options().budget.filter(|&budget| budget > 0) else { return };
    let mut inside = 0usize;
    for n in 0..=history.len() {
        inside = if reasoning.state(&history[..n], at) == "in" { inside + 1 } else { 0 };
        assert!(inside <= budget.saturating_add(3), "{inside} tokens of a reasoning block");
    }
    assert!(reasoning.leading(history, at) <= history.len());
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Script(Bytes(data));
    let vocabulary = bytes.vocabulary();
    let size = vocabulary.len();
    let options = bytes.options(size);
    let (ramp, alone) = (options.ramp, bytes.0.below(2));
    let Ok(reasoning) = BoundReasoning::new(options, &vocabulary) else { return };
    let at = match bytes.0.below(4) {
        0 => ReasoningStart::Outside,
        1 => ReasoningStart::Inside,
        2 => ReasoningStart::Closing,
        _ => reasoning.after(&bytes.tokens(12, size)),
    };
    let then = if alone == 0 { Ok(Then::Nothing) } else { Then::new(&mut bytes, &vocabulary) };
    let Ok(then) = then else { return };
    let fresh = || reasoning.matcher(at, then.matcher(size)?);
    if fresh().is_err() {
        return;
    }
    let drafts: Vec<(u8, TokenId)> = (0..bytes.0.below(7))
        .map(|_| (bytes.0.byte(), bytes.0.byte() as TokenId % (size as TokenId + 1)))
        .collect();
    let script: Vec<u16> = bytes
        .0
         .0
        .chunks_exact(2)
        .take(MAX_STEPS)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let mut watched = 0;
    laws::hold(&|| fresh().expect("as before"), &script, &mut |history, seen| {
        if let Some((_, by)) = seen.bias {
            assert!((0.0..=ramp).contains(&f32::from_bits(by)), "{by:x} of {ramp}");
        }
        if matches!(then, Then::Nothing) {
            hold_budget(&reasoning, at, history);
        }
        watched += 1;
        if watched % 4 == 1 {
            let mut matcher = fresh().expect("as before");
            history.iter().for_each(|&token| matcher.accept(token).expect("the same tokens again"));
            hold_every_id(&mut *matcher, seen);
            hold_drafts(&mut *matcher, &drafts);
        }
    });
});
