//! A chain's state as bytes, and back: generators, histories, running means. It contains neither samplers nor
//! parameters: a snapshot can only be restored into a chain that has the same ones.
//!
//! Layout, all words 64-bit little-endian: magic and version, number of words, hash of the chain's description,
//! accepted tokens, each sampler's words with their number before them, those of the rule that picks parameters if
//! there is one, hash of all that.

use super::Chain;
use crate::{Error, ErrorKind, Result};
use crate::{StateReader, StateWriter};
use xxhash_rust::xxh3::xxh3_64;

/// "logitree" and the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"lgtsnap1");

impl Chain {
    /// The state as bytes: [`Chain::restore`] on a chain of the same samplers and parameters continues from here.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut words = vec![MAGIC, self.fingerprint(), self.accepted as u64];
        let mut push = |save: &dyn Fn(&mut StateWriter)| {
            let mut state = StateWriter::default();
            save(&mut state);
            words.push(state.words().len() as u64);
            words.extend(state.words());
        };
        self.samplers.iter().for_each(|sampler| push(&|state| sampler.save(state)));
        self.align.rule.iter().for_each(|rule| push(&|state| rule.save(state)));
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Takes a snapshot's state.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if the bytes are damaged or of a chain with other samplers or parameters; nothing is
    /// changed then.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        let words = checked(snapshot)?;
        let mut reader = StateReader::new(&words);
        let (magic, fingerprint) = (reader.word()?, reader.word()?);
        if magic != MAGIC {
            return Err(damaged("the bytes are no snapshot of a chain"));
        }
        if fingerprint != self.fingerprint() {
            return Err(damaged("the snapshot is of a chain with other samplers or parameters")
                .help(format!("this chain is {}", self.describe())));
        }
        let accepted = reader.count()?;
        let (mut samplers, mut rule) = (self.samplers.clone(), self.align.rule.clone());
        for sampler in &mut samplers {
            next(&mut reader, |state| sampler.load(state))?;
        }
        if let Some(rule) = &mut rule {
            next(&mut reader, |state| rule.load(state))?;
        }
        if !reader.is_done() {
            return Err(damaged("the snapshot holds more than the chain's state"));
        }
        self.accepted = accepted as usize;
        self.samplers = samplers;
        self.align.rule = rule;
        self.picked = None;
        Ok(())
    }

    /// Samplers, parameters and rule as a number.
    fn fingerprint(&self) -> u64 {
        let mut described = self.describe();
        if let Some(rule) = self.rule() {
            described.push_str(" | ");
            described.push_str(&rule.describe());
        }
        xxh3_64(described.as_bytes())
    }
}

/// Loads the next part, which must be read to its end.
fn next(reader: &mut StateReader<'_>, load: impl FnOnce(&mut StateReader<'_>) -> Result<()>) -> Result<()> {
    let n = reader.length(1)?;
    let mut state = StateReader::new(reader.take(n)?);
    load(&mut state)?;
    if state.is_done() {
        return Ok(());
    }
    Err(damaged("the snapshot holds more than the chain's state"))
}

/// The words before the hash, if it fits them.
fn checked(snapshot: &[u8]) -> Result<Vec<u64>> {
    let words: Vec<u64> =
        snapshot.chunks_exact(8).map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))).collect();
    match words.split_last() {
        Some((&hash, rest))
            if snapshot.len().is_multiple_of(8) && hash == xxh3_64(&snapshot[..snapshot.len() - 8]) =>
        {
            Ok(rest.to_vec())
        }
        _ => Err(damaged("the snapshot is damaged or truncated")),
    }
}

fn damaged(message: &str) -> Error {
    Error::new(ErrorKind::State, message)
        .help("restore what Chain.snapshot gave, unchanged, into a chain of the same samplers and parameters")
}
