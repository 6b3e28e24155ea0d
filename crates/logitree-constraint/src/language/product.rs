//! The texts that two languages both have, without dead ends: a byte is taken only if a text of both continues so.
//!
//! Whether one does is found by a search over pairs of states, the shortest first, and remembered of every pair that the
//! search decides. It ends where the pairs that can be reached are finite or some text of both is near enough; else it is
//! an error that names the limit. In general the question has no answer for two context-free languages. A context-free and a
//! regular language are one grammar instead, where that is not too large (`logitree_grammar::earley`).

use super::{ByteLanguage, ByteState, Compound, Compounds, SharedLanguage};
use crate::reachable::{Completable, Reached};
use crate::{Error, ErrorKind, Result};
use logitree_grammar::expr::ByteSet;

/// Pairs of states that one search may visit.
pub const MAX_PAIRS: usize = 1 << 16;

/// Pairs that are remembered.
const MAX_KNOWN: usize = 1 << 22;

/// Two languages met.
pub(crate) struct Product {
    sides: [SharedLanguage; 2],
    states: Compounds,
    /// Whether a text of both continues from a pair.
    known: Completable<ByteState, MAX_KNOWN>,
}

impl Product {
    /// # Errors
    /// [`ErrorKind::Constraint`] if no text is in both; [`ErrorKind::Limit`] if the search does not decide it.
    pub fn new(a: SharedLanguage, b: SharedLanguage) -> Result<Product> {
        let made = Product { sides: [a, b], states: Compounds::default(), known: Completable::default() };
        if !made.can_complete(&made.start()?)? {
            return Err(Error::new(ErrorKind::Constraint, "the intersection is empty")
                .help("no text is allowed by both sides"));
        }
        Ok(made)
    }

    fn pair(&self, a: ByteState, b: ByteState) -> Result<ByteState> {
        let end = self.sides[0].is_end(&a)? && self.sides[1].is_end(&b)?;
        self.states.state(Compound { parts: [(0, a), (1, b)].into(), end })
    }

    /// The pair after `byte`, which may lead nowhere.
    fn next(&self, compound: &Compound, byte: u8) -> Result<Option<ByteState>> {
        let [(_, a), (_, b)] = &compound.parts[..] else { return Ok(None) };
        let Some(a) = self.sides[0].step(a, byte)? else { return Ok(None) };
        let Some(b) = self.sides[1].step(b, byte)? else { return Ok(None) };
        self.pair(a, b).map(Some)
    }

    fn both(&self, compound: &Compound) -> Result<ByteSet> {
        let [(_, a), (_, b)] = &compound.parts[..] else { return Ok(ByteSet::NONE) };
        Ok(self.sides[0].bytes(a)?.and(&self.sides[1].bytes(b)?))
    }

    /// Whether a text of both continues from here, or ends.
    fn can_complete(&self, state: &ByteState) -> Result<bool> {
        if let Some(known) = self.known.get(state) {
            return Ok(known);
        }
        let mut reached = Reached::new(Some(state.clone()));
        let mut found = None;
        let mut at = 0;
        while let (None, Some(state)) = (found, reached.state(at)) {
            if let Some(compound) = self.states.get(state) {
                if compound.end || self.known.get(state) == Some(true) {
                    found = Some(at);
                } else {
                    self.reach(&compound, at, &mut reached)?;
                }
            }
            at += 1;
        }
        let decided = reached.decided(found).into_iter();
        self.known.keep(decided.filter(|state| state.number().is_some()), found.is_some());
        Ok(found.is_some())
    }

    /// Adds the pairs after the one at `at`.
    fn reach(&self, compound: &Compound, at: usize, reached: &mut Reached<ByteState>) -> Result<()> {
        for byte in self.both(compound)?.iter() {
            let Some(next) = self.next(compound, byte)? else { continue };
            if reached.add(at, Some(next), &self.known).is_some() && reached.len() > MAX_PAIRS {
                let message =
                    format!("no text that both sides allow was found among {MAX_PAIRS} pairs of states");
                return Err(Error::new(ErrorKind::Limit, message).help(
                    "intersect less: where one side is a regular expression, so that more is decided",
                ));
            }
        }
        Ok(())
    }
}

impl ByteLanguage for Product {
    fn start(&self) -> Result<ByteState> {
        self.pair(self.sides[0].start()?, self.sides[1].start()?)
    }

    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        let Some(compound) = self.states.get(state) else { return Ok(None) };
        let Some(next) = self.next(&compound, byte)? else { return Ok(None) };
        Ok(self.can_complete(&next)?.then_some(next))
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        Ok(self.states.get(state).is_some_and(|compound| compound.end))
    }

    fn bytes(&self, state: &ByteState) -> Result<ByteSet> {
        self.states.get(state).map_or(Ok(ByteSet::NONE), |compound| self.both(&compound))
    }

    fn is_numbered(&self) -> bool {
        self.sides.iter().all(|language| language.is_numbered())
    }

    fn expected(&self, state: &ByteState) -> Vec<String> {
        let compound = self.states.get(state);
        let parts = compound.iter().flat_map(|compound| compound.parts.iter());
        let each: Vec<String> = parts
            .map(|(side, state)| self.sides[*side as usize].expected(state).join("; or "))
            .filter(|text| !text.is_empty())
            .collect();
        if each.is_empty() {
            return each;
        }
        vec![each.join("; and ")]
    }
}
