//! The slow obvious model of a token tree or of choices: a set of token sequences, searched from end to end for
//! every question.

use std::collections::BTreeSet;

use logitree::TokenId;

use crate::laws::Seen;

/// A set of sequences, and the tokens that end one which is the beginning of another.
#[derive(Debug, Clone, Default)]
pub struct Sequences {
    pub all: BTreeSet<Vec<TokenId>>,
    pub ends: BTreeSet<TokenId>,
    /// What may follow once nothing continues: these, ascending, or anything.
    pub after: Option<Vec<TokenId>>,
}

impl Sequences {
    /// What may follow these tokens, ends aside.
    pub fn ways_on(&self, before: &[TokenId]) -> BTreeSet<TokenId> {
        let longer = self.all.iter().filter(|s| s.len() > before.len() && s.starts_with(before));
        longer.map(|s| s[before.len()]).collect()
    }

    /// Whether some sequence is the beginning of another, so that it needs an end token.
    pub fn needs_end(&self) -> bool {
        self.all.iter().any(|s| !self.ways_on(s).is_empty())
    }

    /// Whether an end token is also a continuation where it would end a sequence.
    pub fn ends_collide(&self) -> bool {
        self.all.iter().any(|s| self.ways_on(s).intersection(&self.ends).next().is_some())
    }

    /// What a matcher must show after `history`.
    pub fn expect(&self, history: &[TokenId], seen: &Seen) {
        let over = (0..=history.len()).find(|&n| {
            let ended = n > 0
                && self.ends.contains(&history[n - 1])
                && self.all.contains(&history[..n - 1])
                && !self.ways_on(&history[..n - 1]).is_empty();
            ended || self.all.contains(&history[..n]) && self.ways_on(&history[..n]).is_empty()
        });
        assert_eq!(seen.finished, over.is_some(), "finished after {history:?}");
        if over.is_some() {
            assert_eq!(seen.allowed, self.after, "allowed after {history:?}");
            return;
        }
        let complete = self.all.contains(history);
        assert_eq!(seen.accepting, complete, "accepting after {history:?}");
        let mut allowed = self.ways_on(history);
        if complete {
            allowed.extend(&self.ends);
        }
        assert_eq!(seen.allowed, Some(allowed.into_iter().collect()), "allowed after {history:?}");
    }

    /// As [`Sequences::expect`], where every sequence ends with this token, which none of them has.
    pub fn expect_ended(&self, end: TokenId, history: &[TokenId], seen: &Seen) {
        let over = history.iter().position(|&token| token == end);
        assert_eq!(seen.finished, over.is_some(), "finished after {history:?}");
        if over.is_none() {
            assert!(!seen.accepting, "accepting after {history:?}");
            let mut allowed = self.ways_on(history);
            allowed.extend(self.all.contains(history).then_some(end));
            assert_eq!(seen.allowed, Some(allowed.into_iter().collect()), "allowed after {history:?}");
        } else {
            assert_eq!(seen.allowed, Some(vec![end]), "allowed after {history:?}");
        }
    }
}

/// Every sequence of `tokens` (id and bytes, none empty) that spells `text`: all splits, tried one by one.
pub fn tokenisations(text: &[u8], tokens: &[(TokenId, Vec<u8>)]) -> Vec<Vec<TokenId>> {
    if text.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (id, bytes) in tokens.iter().filter(|(_, bytes)| text.starts_with(bytes)) {
        for mut rest in tokenisations(&text[bytes.len()..], tokens) {
            rest.insert(0, *id);
            all.push(rest);
        }
    }
    all
}
