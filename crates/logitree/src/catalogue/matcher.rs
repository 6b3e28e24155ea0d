//! A matcher that generates one item of a catalogue.

use std::sync::Arc;

use super::{damaged, CatalogueSnapshot, Continuations, ItemWalk, WalkState};
use crate::constraint::{AfterEnd, Constraint, Matcher, Sequence, States};
use crate::mask::AllowedTokens;
use crate::vocabulary::{Vocabulary, MAX_TOKENS};
use crate::{Error, ErrorKind, Result, TokenId};

/// A matcher over a snapshot of a catalogue.
pub type CatalogueMatcher = Sequence<Items>;

/// The states of a snapshot, each with what may follow it, the end token included; computed when the state is entered.
#[derive(Clone)]
pub struct Items {
    snapshot: CatalogueSnapshot,
    end: Option<TokenId>,
    after: AfterEnd,
    vocabulary_size: usize,
}

impl ItemWalk {
    /// At the beginning of an item. With an end token every item ends with it; without, an item is over with its last
    /// token. After an item comes the end token; without one, those in `after`.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if there is no item, if a token is outside the vocabulary, or if one item is the
    /// beginning of another and nothing says where it ends; [`ErrorKind::Payload`] if the index is damaged.
    pub fn sequence(&self, vocabulary_size: usize, after: &[TokenId]) -> Result<CatalogueMatcher> {
        check_snapshot(&self.snapshot, self.end, vocabulary_size)?;
        let after = AfterEnd::tokens(self.end.as_slice(), after);
        let items = Items { snapshot: self.snapshot.clone(), end: self.end, after, vocabulary_size };
        let at = items.at(self.snapshot.root())?;
        Ok(Sequence::begin(items, at))
    }
}

impl Items {
    /// A state and what may follow it. Nothing does where an item is over.
    fn at(&self, state: WalkState) -> Result<(WalkState, Arc<Continuations>)> {
        let mut children = Continuations::default();
        if state == WalkState::FINISHED {
            return Ok((state, Arc::new(children)));
        }
        self.snapshot.children(state, &mut children)?;
        if children.tokens.is_empty() && !children.is_item {
            // A sound index has no such state; without this error an end would be allowed there.
            return Err(damaged("a state without continuations"));
        }
        if children.is_item {
            add_end(&mut children, self.end);
        }
        Ok((state, Arc::new(children)))
    }
}

impl Constraint for ItemWalk {
    /// # Errors
    /// As [`ItemWalk::sequence`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        Ok(Box::new(self.sequence(vocabulary.len(), vocabulary.end_tokens())?))
    }
}

/// Whether one item of the tree can be generated at a time.
///
/// # Errors
/// As [`ItemWalk::sequence`].
pub(crate) fn check_snapshot(
    snapshot: &CatalogueSnapshot,
    end: Option<TokenId>,
    vocabulary_size: usize,
) -> Result<()> {
    let fail = |message: String, help: &str| Err(Error::new(ErrorKind::Constraint, message).help(help));
    if snapshot.is_empty() {
        return fail("the catalogue has no item".into(), "an empty set cannot be generated from");
    }
    if end.is_none() && snapshot.may_nest()? {
        let message = "one item is the beginning of another, and no token ends items";
        return fail(message.into(), "give the token that ends an item: end_token=");
    }
    let largest = snapshot.largest().max(end.unwrap_or(0)) as usize;
    if largest >= vocabulary_size || vocabulary_size > MAX_TOKENS {
        let message = format!("token {largest} in a vocabulary of {vocabulary_size}");
        return fail(message, "the items are of another vocabulary");
    }
    Ok(())
}

/// Adds the end token to what may follow an item. The end token continues an item that has it as its next token.
pub(crate) fn add_end(children: &mut Continuations, end: Option<TokenId>) {
    let Some(end) = end else { return };
    if let Err(at) = children.tokens.binary_search(&end) {
        children.tokens.insert(at, end);
        children.states.insert(at, WalkState::FINISHED);
    }
}

impl States for Items {
    type At = (WalkState, Arc<Continuations>);

    const TEXT: &'static str = "item";

    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_accepting(&self, (state, here): &Self::At) -> bool {
        here.is_item && self.end.is_none() || *state == WalkState::FINISHED
    }

    fn is_finished(&self, (_, here): &Self::At) -> bool {
        here.tokens.is_empty()
    }

    fn allowed<'a>(&'a mut self, (_, here): &'a Self::At) -> Result<AllowedTokens<'a>> {
        Ok(AllowedTokens::Ids(&here.tokens))
    }

    fn next(&mut self, (_, here): &Self::At, token: TokenId) -> Result<Option<Self::At>> {
        let Ok(at) = here.tokens.binary_search(&token) else { return Ok(None) };
        self.at(here.states[at]).map(Some)
    }
}
