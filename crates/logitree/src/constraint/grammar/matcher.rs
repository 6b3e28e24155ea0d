//! A grammar running for one sequence: a stack of configurations.

use std::sync::{Arc, Mutex};

use super::bound::lock;
use super::engine::Engine;
use super::entry::Entry;
use crate::constraint::history::check_rollback;
use crate::constraint::Matcher;
use crate::grammar::earley::{ConfigId, DEAD};
use crate::mask::{words_for, AllowedTokens};
use crate::{Error, ErrorKind, Result, TokenId};

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
    engine: Arc<Mutex<Engine>>,
    size: usize,
    /// The state before each token.
    stack: Vec<At>,
    at: At,
    accepting: bool,
    finished: bool,
    /// Tokens accepted after the end, where anything goes: counted, not kept.
    past_end: usize,
    /// The mask of the current state, once it was computed.
    entry: Option<Arc<Entry>>,
    /// The words of `written`.
    words: Vec<u32>,
    written: Option<Arc<Entry>>,
}

impl GrammarMatcher {
    pub fn new(engine: Arc<Mutex<Engine>>) -> Self {
        let (start, size) = {
            let engine = lock(&engine);
            (engine.machine.start(), engine.vocabulary.len())
        };
        let mut made = GrammarMatcher {
            engine,
            size,
            stack: Vec::new(),
            at: At::Config(start),
            accepting: false,
            finished: false,
            past_end: 0,
            entry: None,
            words: Vec::new(),
            written: None,
        };
        made.go(At::Config(start));
        made
    }

    fn go(&mut self, at: At) {
        self.at = at;
        self.entry = None;
        (self.accepting, self.finished) = match at {
            At::Ended => (true, true),
            At::Config(config) => {
                let engine = lock(&self.engine);
                (engine.machine.is_accepting(config), engine.is_over(config))
            }
        };
    }

    fn entry(&mut self) -> Result<Option<Arc<Entry>>> {
        let At::Config(config) = self.at else { return Ok(None) };
        if self.finished {
            return Ok(None);
        }
        if self.entry.is_none() {
            let mut engine = lock(&self.engine);
            engine.refuel();
            let entry = engine.mask(config)?;
            if entry.is_empty() {
                return Err(Error::new(
                    ErrorKind::Constraint,
                    "no token of the vocabulary continues the text here, although the grammar does",
                )
                .at(format!("token {}", self.stack.len()))
                .help("use a vocabulary that has a token for each byte that the grammar needs"));
            }
            self.entry = Some(entry);
        }
        Ok(self.entry.clone())
    }

    fn refused(&self, token: TokenId) -> Error {
        let mut error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(format!("token {} of the text", self.stack.len()));
        let expected = self.expected();
        if !expected.is_empty() {
            error = error.help(format!("expected: {}", expected.join("; or ")));
        }
        error
    }
}

impl Matcher for GrammarMatcher {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        let Some(entry) = self.entry()? else { return Ok(AllowedTokens::All) };
        let is_plain = matches!(*entry, Entry::Few(_)) || entry.plain_words().is_some();
        if !is_plain && !self.written.as_ref().is_some_and(|written| Arc::ptr_eq(written, &entry)) {
            self.words.resize(words_for(self.size), 0);
            entry.write(&mut self.words);
            self.written = Some(Arc::clone(&entry));
        }
        Ok(match self.entry.as_deref() {
            Some(Entry::Few(few)) => AllowedTokens::Ids(few),
            Some(entry) => AllowedTokens::Mask(entry.plain_words().unwrap_or(&self.words)),
            None => AllowedTokens::All,
        })
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        match self.entry()? {
            Some(entry) => entry.write(words),
            None => AllowedTokens::All.write(self.size, &mut words[..words_for(self.size)]),
        }
        Ok(())
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        Ok(self.entry()?.is_none_or(|entry| entry.contains(token)))
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        Err(self.refused(token))
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        let At::Config(config) = self.at else {
            self.past_end += 1;
            return Ok(true);
        };
        if self.finished {
            self.past_end += 1;
            return Ok(true);
        }
        let mut engine = lock(&self.engine);
        engine.refuel();
        let next = if self.accepting && engine.ends.binary_search(&token).is_ok() {
            At::Ended
        } else {
            match engine.after(config, token)? {
                DEAD => return Ok(false),
                next => At::Config(next),
            }
        };
        drop(engine);
        self.stack.push(self.at);
        self.go(next);
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        check_rollback(n, self.accepted())?;
        let past = n.min(self.past_end);
        self.past_end -= past;
        let kept = self.stack.len() - (n - past);
        if let Some(&at) = self.stack.get(kept) {
            self.stack.truncate(kept);
            self.go(at);
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(GrammarMatcher {
            engine: Arc::clone(&self.engine),
            size: self.size,
            stack: self.stack.clone(),
            at: self.at,
            accepting: self.accepting,
            finished: self.finished,
            past_end: self.past_end,
            entry: self.entry.clone(),
            words: Vec::new(),
            written: None,
        })
    }

    fn reset(&mut self) {
        if let Some(&start) = self.stack.first() {
            self.stack.clear();
            self.go(start);
        }
        self.past_end = 0;
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let At::Config(mut config) = self.at else { return Ok(()) };
        let mut run = Vec::new();
        let mut engine = lock(&self.engine);
        engine.refuel();
        while run.len() < MAX_FORCED && !engine.machine.is_accepting(config) {
            let Some(only) = engine.mask(config)?.sole() else { break };
            run.push(only);
            config = engine.after(config, only)?;
        }
        out.append(&mut run);
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let At::Config(config) = self.at else { return true };
        let known = |engine: &Engine| self.entry.is_some() || engine.knows(config);
        self.finished || self.engine.try_lock().is_ok_and(|engine| known(&engine))
    }

    fn is_accepting(&self) -> bool {
        self.accepting
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn state(&self) -> Option<u64> {
        Some(match self.at {
            At::Config(config) => u64::from(config.0),
            At::Ended => u64::MAX,
        })
    }

    fn accepted(&self) -> usize {
        self.stack.len() + self.past_end
    }

    fn expected(&self) -> Vec<String> {
        match self.at {
            At::Config(config) if !self.finished => lock(&self.engine).expected(config),
            _ => Vec::new(),
        }
    }

    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let At::Config(config) = self.at else { return Ok(Vec::new()) };
        let mut engine = lock(&self.engine);
        engine.refuel();
        engine.expected_after(config, bytes)
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        let At::Config(config) = self.at else { return Ok(bytes.len()) };
        let mut engine = lock(&self.engine);
        engine.refuel();
        engine.taken(config, bytes)
    }
}
