//! A grammar running for one sequence: its states are configurations.

use std::sync::Arc;

use super::known::{Ending, SharedEngine};
use super::language::{state, GrammarLanguage};
use crate::language::{ByteLanguage, ByteWalk, Bytewise};
use crate::sequence::Scratch;
use crate::{AfterEnd, Certain, Sequence, States};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_tokens::mask::{AllowedTokens, MaskBuffer, TokenSet};

/// The state of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    config: ConfigId,
    accepting: bool,
    finished: bool,
}

/// A matcher over a grammar.
pub(super) type GrammarMatcher = Sequence<GrammarStates>;

/// The configurations of a grammar.
#[derive(Clone)]
pub(super) struct GrammarStates {
    engine: Arc<SharedEngine>,
    /// The mask that was found last, and its configuration.
    mask: (ConfigId, Arc<TokenSet>),
    buffer: Scratch<MaskBuffer>,
}

impl GrammarMatcher {
    /// At the start of the grammar.
    pub fn new(engine: Arc<SharedEngine>) -> Self {
        let start = engine.start;
        let mask = (DEAD, Arc::default());
        let mut states = GrammarStates { engine, mask, buffer: Scratch::default() };
        let at = states.at(start);
        Sequence::begin(states, at)
    }
}

impl GrammarStates {
    fn at(&mut self, config: ConfigId) -> At {
        let (ending, mask) = self.engine.known(config);
        let Ending { accepting, over } = ending.unwrap_or_else(|| self.engine.session().ending(config));
        // An empty one is an error, which asking for it finds.
        if let Some(mask) = mask.filter(|mask| !mask.is_empty()) {
            self.mask = (config, mask);
        }
        At { config, accepting, finished: over }
    }

    fn mask(&mut self, at: &At) -> Result<&TokenSet> {
        if self.mask.0 != at.config {
            let mask = self.engine.session().mask(at.config)?;
            if mask.is_empty() {
                return Err(Error::new(
                    ErrorKind::Constraint,
                    "no token of the vocabulary continues the text here, although the grammar does",
                )
                .help(
                    "use a vocabulary that has a token for each byte that the grammar needs; an end token that the \
                     grammar names must be the last of the text",
                ));
            }
            self.mask = (at.config, mask);
        }
        Ok(&self.mask.1)
    }
}

impl States for GrammarStates {
    type At = At;

    fn vocabulary_size(&self) -> usize {
        self.engine.size
    }

    fn after_end(&self) -> &AfterEnd {
        &self.engine.after
    }

    fn ends(&self) -> &[TokenId] {
        &self.engine.ends
    }

    fn is_accepting(&self, at: &At) -> bool {
        at.accepting
    }

    fn is_finished(&self, at: &At) -> bool {
        at.finished
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        self.mask(at)?;
        Ok(self.mask.1.lend(self.engine.size, &mut self.buffer.0))
    }

    fn next(&mut self, at: &At, token: TokenId) -> Result<Option<At>> {
        let next = self.engine.session().after(at.config, token)?;
        if next != DEAD && self.engine.ends.binary_search(&token).is_ok() {
            return Ok(Some(At { config: next, accepting: true, finished: true }));
        }
        Ok((next != DEAD).then(|| self.at(next)))
    }

    fn is_allowed(&mut self, at: &At, token: TokenId) -> Result<Option<bool>> {
        Ok(Some(self.mask(at)?.contains(token)))
    }

    fn write(&mut self, at: &At, words: &mut [u32]) -> Result<()> {
        let size = self.engine.size;
        self.mask(at)?.write(size, words);
        Ok(())
    }

    fn sole(&mut self, at: &At) -> Result<Option<TokenId>> {
        Ok(self.mask(at)?.sole())
    }

    fn state(&self, at: &At) -> Option<u64> {
        Some(u64::from(at.config.0))
    }

    fn named(&self, at: &At, out: &mut Vec<TokenId>) {
        self.engine.session().engine().named(at.config, out);
    }

    fn bytewise(&self, at: &At) -> Option<Bytewise> {
        self.engine.is_bytewise.then(|| GrammarLanguage::at(&self.engine, at.config))
    }

    fn byte_walk(&self) -> Option<ByteWalk<'_>> {
        self.engine.is_bytewise.then(|| ByteWalk(Box::new(GrammarLanguage::walk(&self.engine))))
    }

    fn temperature(&self, at: &At) -> Option<f32> {
        self.engine.temperature(at.config)
    }

    fn expected(&self, at: &At) -> Vec<String> {
        self.engine.session().engine().expected(at.config)
    }

    fn expected_after(&mut self, at: &At, bytes: &[u8]) -> Result<Vec<String>> {
        GrammarLanguage::walk(&self.engine).expected_after(state(at.config), bytes)
    }

    fn accepted_prefix(&mut self, at: &At, bytes: &[u8]) -> Result<usize> {
        GrammarLanguage::walk(&self.engine).walked(state(at.config), bytes).map(|(_, taken)| taken)
    }

    fn certain(&mut self, at: &At, most: usize) -> Result<Option<Certain>> {
        GrammarLanguage::locked(&self.engine).certain(state(at.config), most).map(Some)
    }

    fn is_ready(&self, at: &At) -> bool {
        self.mask.0 == at.config || self.engine.known_mask(at.config).is_some()
    }
}
