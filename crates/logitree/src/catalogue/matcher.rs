//! A matcher that generates one item of a catalogue.

use std::sync::Arc;

use super::{damaged, CatalogueSnapshot, Continuations, ItemWalk, WalkState};
use crate::constraint::{not_allowed, AfterEnd, Constraint, History, Matcher};
use crate::mask::AllowedTokens;
use crate::vocabulary::{Vocabulary, MAX_TOKENS};
use crate::{Error, ErrorKind, Result, TokenId};

/// Forced tokens that are given at once.
const FORCED: usize = 1000;

/// A matcher over a snapshot of a catalogue.
#[derive(Clone)]
pub struct CatalogueMatcher {
    snapshot: CatalogueSnapshot,
    end: Option<TokenId>,
    after: AfterEnd,
    vocabulary_size: usize,
    history: History<(WalkState, Arc<Continuations>)>,
    state: WalkState,
    /// What may follow the current state, the end token included; computed when the state is entered.
    here: Arc<Continuations>,
}

impl CatalogueMatcher {
    /// At the beginning of an item. With an end token every item ends with it; without, an item is over with its last
    /// token. After an item comes the end token; without one, nothing: see [`CatalogueMatcher::followed_by`].
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if there is no item, if a token is outside the vocabulary, or if one item is the
    /// beginning of another and nothing says where it ends; [`ErrorKind::Payload`] if the index is damaged.
    pub fn new(
        snapshot: CatalogueSnapshot,
        end: Option<TokenId>,
        vocabulary_size: usize,
    ) -> Result<CatalogueMatcher> {
        check_snapshot(&snapshot, end, vocabulary_size)?;
        let (state, history, here) = (snapshot.root(), History::default(), Arc::default());
        let after = AfterEnd::tokens(end.as_slice(), &[]);
        let mut matcher = CatalogueMatcher { snapshot, end, after, vocabulary_size, history, state, here };
        matcher.here = matcher.look(state)?;
        Ok(matcher)
    }

    /// The same, where the end tokens of `vocabulary` follow an item if no other does.
    #[must_use]
    pub fn followed_by(self, vocabulary: &Vocabulary) -> CatalogueMatcher {
        let after = AfterEnd::tokens(self.end.as_slice(), vocabulary.end_of_generation());
        CatalogueMatcher { after, ..self }
    }

    /// What may follow `state`. Nothing does where an item is over.
    fn look(&self, state: WalkState) -> Result<Arc<Continuations>> {
        let mut children = Continuations::default();
        if state == WalkState::FINISHED {
            return Ok(Arc::new(children));
        }
        self.snapshot.children(state, &mut children)?;
        if children.tokens.is_empty() && !children.is_item {
            // A sound index has no such state; without this error an end would be allowed there.
            return Err(damaged("a state without continuations"));
        }
        if children.is_item {
            add_end(&mut children, self.end);
        }
        Ok(Arc::new(children))
    }
}

impl Constraint for ItemWalk {
    /// # Errors
    /// As [`CatalogueMatcher::new`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        let matcher = CatalogueMatcher::new(self.snapshot.clone(), self.end, vocabulary.len())?;
        Ok(Box::new(matcher.followed_by(vocabulary)))
    }
}

/// Whether one item of the tree can be generated at a time.
///
/// # Errors
/// As [`CatalogueMatcher::new`].
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
        return fail(message.into(), "give the token that ends an item: end=");
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

impl Matcher for CatalogueMatcher {
    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        match &self.here.tokens[..] {
            [] => self.after.allowed(),
            tokens => Ok(AllowedTokens::Ids(tokens)),
        }
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        let row = match &self.here.tokens[..] {
            [] => self.after.ids(),
            tokens => tokens,
        };
        Err(not_allowed(token, row, self.accepted(), "item"))
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.here.tokens.is_empty() {
            return Ok(self.history.take_past_end(&self.after, token));
        }
        let Ok(at) = self.here.tokens.binary_search(&token) else { return Ok(false) };
        let next = self.here.states[at];
        let here = self.look(next)?;
        self.history.push((self.state, std::mem::replace(&mut self.here, here)));
        self.state = next;
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        if let Some(before) = self.history.rollback(n)? {
            (self.state, self.here) = before;
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(self.clone())
    }

    fn reset(&mut self) {
        if let Some(first) = self.history.reset() {
            (self.state, self.here) = first;
        }
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let (mut here, mut run) = (Arc::clone(&self.here), Vec::new());
        while let ([only], [next]) = (&here.tokens[..], &here.states[..]) {
            if run.len() == FORCED || (here.is_item && self.end.is_none()) {
                break;
            }
            run.push(*only);
            here = self.look(*next)?;
        }
        out.append(&mut run);
        Ok(())
    }

    fn is_accepting(&self) -> bool {
        self.here.is_item && self.end.is_none() || self.state == WalkState::FINISHED
    }

    fn is_finished(&self) -> bool {
        self.here.tokens.is_empty()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }
}
