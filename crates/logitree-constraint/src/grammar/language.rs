//! A grammar as a language over bytes: its configurations are the states.

use std::cell::RefCell;
use std::sync::Arc;

use super::known::{Session, SharedEngine};
use crate::language::{ByteLanguage, ByteState};
use crate::Bytewise;
use crate::Result;
use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::trie::TokenTrie;

/// The texts of a grammar from its start.
pub(super) struct GrammarLanguage<E>(E);

/// An engine that is locked for each question, or stays locked.
pub(super) trait Asked {
    fn ask<R>(&self, question: impl FnOnce(&mut Session<'_>) -> R) -> R;
}

impl Asked for Arc<SharedEngine> {
    fn ask<R>(&self, question: impl FnOnce(&mut Session<'_>) -> R) -> R {
        question(&mut self.session())
    }
}

impl Asked for RefCell<Session<'_>> {
    fn ask<R>(&self, question: impl FnOnce(&mut Session<'_>) -> R) -> R {
        question(&mut self.borrow_mut())
    }
}

impl GrammarLanguage<Arc<SharedEngine>> {
    /// What a grammar may still write from a configuration.
    pub fn at(engine: &Arc<SharedEngine>, config: ConfigId) -> Bytewise {
        let language = Arc::new(GrammarLanguage(Arc::clone(engine)));
        Bytewise { language, state: state(config) }
    }
}

impl<'a> GrammarLanguage<RefCell<Session<'a>>> {
    /// The language for the length of a call.
    pub fn walk(engine: &'a SharedEngine) -> Self {
        GrammarLanguage(RefCell::new(engine.session()))
    }

    /// The same, with the engine locked already.
    pub fn locked(engine: &'a SharedEngine) -> Self {
        let mut session = engine.session();
        session.engine();
        GrammarLanguage(RefCell::new(session))
    }
}

fn config(state: &ByteState) -> ConfigId {
    state.number().and_then(|number| u32::try_from(number).ok()).map_or(DEAD, ConfigId)
}

pub(super) fn state(config: ConfigId) -> ByteState {
    ByteState::Number(u64::from(config.0))
}

impl<E: Asked> ByteLanguage for GrammarLanguage<E> {
    fn start(&self) -> Result<ByteState> {
        Ok(self.0.ask(|session| state(session.shared.start)))
    }

    fn step(&self, from: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        let (next, taken) = self.walked(from.clone(), &[byte])?;
        Ok((taken == 1).then_some(next))
    }

    fn walked(&self, from: ByteState, bytes: &[u8]) -> Result<(ByteState, usize)> {
        let (next, taken) = self.0.ask(|session| session.walked(config(&from), bytes))?;
        Ok((state(next), taken))
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        Ok(self.0.ask(|session| session.is_accepting(config(state))))
    }

    fn bytes(&self, state: &ByteState) -> Result<ByteSet> {
        self.0.ask(|session| {
            session.refuel();
            session.engine().machine.first_bytes(config(state))
        })
    }

    fn transitions(&self, from: &ByteState) -> Result<Vec<(ByteSet, ByteState)>> {
        let found = self.0.ask(|session| {
            session.refuel();
            session.engine().machine.ways(config(from))
        });
        Ok(found?.into_iter().map(|(bytes, next)| (bytes, state(next))).collect())
    }

    /// From the masks of configurations, which are kept.
    fn fill(&self, state: &ByteState, _trie: &TokenTrie, words: &mut [u32]) -> Result<()> {
        self.0.ask(|session| {
            session.refuel();
            session.mask(config(state)).map(|mask| mask.write(session.shared.size, words))
        })
    }

    fn sole_byte(&self, from: &ByteState) -> Result<Option<(u8, ByteState)>> {
        let found = self.0.ask(|session| session.engine().sole_byte(config(from)))?;
        Ok(found.map(|(byte, next)| (byte, state(next))))
    }

    fn expected(&self, state: &ByteState) -> Vec<String> {
        match config(state) {
            DEAD => Vec::new(),
            config => self.0.ask(|session| session.engine().expected(config)),
        }
    }

    fn is_numbered(&self) -> bool {
        true
    }
}
