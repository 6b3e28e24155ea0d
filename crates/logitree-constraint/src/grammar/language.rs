//! A grammar as a language over bytes: its configurations are the states.

use std::sync::Arc;

use super::known::SharedEngine;
use crate::language::{ByteLanguage, ByteState};
use crate::Bytewise;
use crate::Result;
use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_grammar::expr::ByteSet;

/// The texts of a grammar from its start.
pub(super) struct GrammarLanguage {
    engine: Arc<SharedEngine>,
}

impl GrammarLanguage {
    /// What a grammar may still write from a configuration.
    pub fn at(engine: &Arc<SharedEngine>, config: ConfigId) -> Bytewise {
        let language = Arc::new(GrammarLanguage { engine: Arc::clone(engine) });
        Bytewise { language, state: ByteState::Number(u64::from(config.0)) }
    }
}

fn config(state: &ByteState) -> ConfigId {
    state.number().map_or(DEAD, |number| ConfigId(number as u32))
}

impl ByteLanguage for GrammarLanguage {
    fn start(&self) -> Result<ByteState> {
        Ok(ByteState::Number(u64::from(self.engine.start.0)))
    }

    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        let next = self.engine.session().step(config(state), byte)?;
        Ok((next != DEAD).then(|| ByteState::Number(u64::from(next.0))))
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        Ok(self.engine.session().ending(config(state)).accepting)
    }

    fn bytes(&self, state: &ByteState) -> Result<ByteSet> {
        self.engine.session().engine().machine.first_bytes(config(state))
    }

    fn expected(&self, state: &ByteState) -> Vec<String> {
        match config(state) {
            DEAD => Vec::new(),
            config => self.engine.session().engine().expected(config),
        }
    }

    fn is_numbered(&self) -> bool {
        true
    }
}
