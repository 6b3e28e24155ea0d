//! A grammar running for one sequence: a stack of configurations.

use std::sync::Arc;

use super::entry::Entry;
use super::known::{Ending, Session, SharedEngine};
use super::language::GrammarLanguage;
use crate::history::History;
use crate::{AfterEnd, ByteWalk, Bytewise, Certain, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::earley::{ConfigId, DEAD};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::mask::{count, ids, words_for, AllowedTokens};

/// Longer runs of forced tokens are given in pieces.
const MAX_FORCED: usize = 1_024;

/// The state of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Config(ConfigId),
    /// An end token was taken.
    Ended,
}

/// A matcher over a grammar.
pub(super) struct GrammarMatcher {
    engine: Arc<SharedEngine>,
    size: usize,
    history: History<At>,
    at: At,
    accepting: bool,
    finished: bool,
    /// The mask of the current state, once it was computed.
    entry: Option<Arc<Entry>>,
    /// The words of `written`.
    words: Vec<u32>,
    written: Option<Arc<Entry>>,
}

impl GrammarMatcher {
    pub fn new(engine: Arc<SharedEngine>) -> Self {
        let (start, size) = (engine.start, engine.size);
        let mut made = GrammarMatcher {
            engine,
            size,
            history: History::default(),
            at: At::Config(start),
            accepting: false,
            finished: false,
            entry: None,
            words: Vec::new(),
            written: None,
        };
        made.go(At::Config(start));
        made
    }

    fn go(&mut self, at: At) {
        self.at = at;
        (self.accepting, self.finished, self.entry) = match at {
            At::Ended => (true, true, None),
            At::Config(config) => {
                let (ending, mask) = self.engine.known(config);
                let Ending { accepting, over } =
                    ending.unwrap_or_else(|| self.engine.session().ending(config));
                // An empty one is an error, which asking for it finds.
                (accepting, over, mask.filter(|mask| !mask.is_empty()))
            }
        };
    }

    fn entry(&mut self) -> Result<Option<Arc<Entry>>> {
        let At::Config(config) = self.at else { return Ok(None) };
        if self.finished {
            return Ok(None);
        }
        if self.entry.is_none() {
            let entry = self.engine.session().mask(config)?;
            if entry.is_empty() {
                return Err(Error::new(
                    ErrorKind::Constraint,
                    "no token of the vocabulary continues the text here, although the grammar does",
                )
                .at(format!("token {}", self.history.before_end()))
                .help("use a vocabulary that has a token for each byte that the grammar needs"));
            }
            self.entry = Some(entry);
        }
        Ok(self.entry.clone())
    }

    fn refused(&self, token: TokenId) -> Error {
        let mut error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(format!("token {} of the text", self.history.before_end()));
        let expected = self.expected();
        if !expected.is_empty() {
            error = error.help(format!("expected: {}", expected.join("; or ")));
        }
        error
    }
}

/// The configurations of a grammar, for the length of one call.
struct GrammarWalk<'a>(Session<'a>);

fn config(state: u64) -> ConfigId {
    u32::try_from(state).map_or(DEAD, ConfigId)
}

impl ByteWalk for GrammarWalk<'_> {
    fn step(&mut self, state: u64, byte: u8) -> Result<Option<u64>> {
        let next = self.0.engine().machine.step(config(state), byte)?;
        Ok((next != DEAD).then_some(u64::from(next.0)))
    }

    fn bytes(&mut self, state: u64) -> Result<ByteSet> {
        self.0.refuel();
        self.0.engine().machine.first_bytes(config(state))
    }

    fn ways(&mut self, state: u64) -> Result<Vec<(ByteSet, u64)>> {
        self.0.refuel();
        let ways = self.0.engine().machine.ways(config(state))?;
        Ok(ways.into_iter().map(|(bytes, next)| (bytes, u64::from(next.0))).collect())
    }

    fn is_end(&mut self, state: u64) -> Result<bool> {
        Ok(self.0.ending(config(state)).accepting)
    }

    fn few(&mut self, state: u64, most: usize) -> Result<Option<Vec<TokenId>>> {
        self.0.refuel();
        let entry = self.0.mask(config(state))?;
        Ok(match &*entry {
            Entry::Few(few) => Some(few.to_vec()),
            Entry::Dense { base, .. } => {
                let mut words = vec![0; base.len()];
                entry.write(&mut words);
                (count(&words) <= most).then(|| ids(&words).collect())
            }
        }
        .filter(|few| few.len() <= most))
    }
}

impl Matcher for GrammarMatcher {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        let Some(entry) = self.entry()? else { return self.engine.after.allowed() };
        let is_plain = matches!(*entry, Entry::Few(_)) || entry.plain_words().is_some();
        if !is_plain && !self.written.as_ref().is_some_and(|written| Arc::ptr_eq(written, &entry)) {
            self.words.resize(words_for(self.size), 0);
            entry.write(&mut self.words);
            self.written = Some(Arc::clone(&entry));
        }
        Ok(match self.entry.as_deref() {
            Some(Entry::Few(few)) => AllowedTokens::Ids(few),
            Some(entry) => AllowedTokens::Mask(entry.plain_words().unwrap_or(&self.words)),
            None => return self.engine.after.allowed(),
        })
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        match self.entry()? {
            Some(entry) => entry.write(words),
            None => {
                let (words, past) = words.split_at_mut(words_for(self.size));
                past.fill(0);
                self.engine.after.allowed()?.write(self.size, words);
            }
        }
        Ok(())
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        Ok(self.entry()?.map_or_else(|| self.engine.after.takes(token), |entry| entry.contains(token)))
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        Err(self.refused(token))
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        let config = match self.at {
            At::Config(config) if !self.finished => config,
            _ => return Ok(self.history.take_past_end(&self.engine.after, token)),
        };
        let next = if self.accepting && self.engine.ends.binary_search(&token).is_ok() {
            At::Ended
        } else {
            match self.engine.session().after(config, token)? {
                DEAD => return Ok(false),
                next => At::Config(next),
            }
        };
        self.history.push(self.at);
        self.go(next);
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        if let Some(at) = self.history.rollback(n)? {
            self.go(at);
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(GrammarMatcher {
            engine: Arc::clone(&self.engine),
            size: self.size,
            history: self.history.clone(),
            at: self.at,
            accepting: self.accepting,
            finished: self.finished,
            entry: self.entry.clone(),
            words: Vec::new(),
            written: None,
        })
    }

    fn reset(&mut self) {
        if let Some(start) = self.history.reset() {
            self.go(start);
        }
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let At::Config(mut config) = self.at else { return Ok(()) };
        let mut run = Vec::new();
        let engine = Arc::clone(&self.engine);
        let mut session = engine.session();
        while run.len() < MAX_FORCED && !session.ending(config).accepting {
            let Some(only) = session.mask(config)?.sole() else { break };
            run.push(only);
            config = session.after(config, only)?;
        }
        out.append(&mut run);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let At::Config(config) = self.at else { return true };
        self.finished || self.entry.is_some() || self.engine.known_mask(config).is_some()
    }

    fn is_accepting(&self) -> bool {
        self.accepting
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn after_end(&self) -> &AfterEnd {
        &self.engine.after
    }

    fn state(&self) -> Option<u64> {
        Some(match self.at {
            At::Config(config) => u64::from(config.0),
            At::Ended => u64::MAX,
        })
    }

    fn bytewise(&self) -> Option<Bytewise> {
        let At::Config(config) = self.at else { return None };
        self.engine.is_bytewise.then(|| GrammarLanguage::at(&self.engine, config))
    }

    fn byte_walk(&self) -> Option<Box<dyn ByteWalk + '_>> {
        self.engine.is_bytewise.then(|| Box::new(GrammarWalk(self.engine.session())) as Box<dyn ByteWalk>)
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }

    fn expected(&self) -> Vec<String> {
        match self.at {
            At::Config(config) if !self.finished => self.engine.session().engine().expected(config),
            _ => Vec::new(),
        }
    }

    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let At::Config(config) = self.at else { return Ok(Vec::new()) };
        self.engine.session().engine().expected_after(config, bytes)
    }

    fn certain(&mut self, most: usize) -> Result<Option<Certain>> {
        let At::Config(config) = self.at else {
            return Ok(Some(Certain { bytes: Vec::new(), complete: true }));
        };
        self.engine.session().engine().certain(config, most).map(Some)
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        let At::Config(config) = self.at else { return Ok(0) };
        self.engine.session().engine().taken(config, bytes)
    }
}
