//! States that are made of states of other languages, numbered where all of those are.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::ByteState;
use crate::{interrupt, Error, ErrorKind, Result};

/// States that one language numbers at most.
const MAX_STATES: usize = 1 << 22;

/// States of other languages, each at a place, and whether a text may end here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Compound {
    pub parts: Box<[(u64, ByteState)]>,
    pub end: bool,
}

/// The compounds of one language by their numbers.
#[derive(Default)]
pub(crate) struct Compounds {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    all: Vec<Arc<Compound>>,
    numbers: FxHashMap<Arc<Compound>, u64>,
}

impl Compounds {
    /// The state that is this compound.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MAX_STATES`].
    pub fn state(&self, compound: Compound) -> Result<ByteState> {
        let numbered = compound.parts.iter().all(|(_, state)| state.number().is_some());
        let compound = Arc::new(compound);
        if !numbered {
            return Ok(ByteState::Compound(compound));
        }
        let mut known = interrupt::lock(&self.known);
        if let Some(&number) = known.numbers.get(&compound) {
            return Ok(ByteState::Number(number));
        }
        if known.all.len() >= MAX_STATES {
            let message = format!("a composition has more than {MAX_STATES} states");
            return Err(Error::new(ErrorKind::Limit, message).help("make its parts less ambiguous"));
        }
        let number = known.all.len() as u64;
        known.all.push(Arc::clone(&compound));
        known.numbers.insert(compound, number);
        Ok(ByteState::Number(number))
    }

    /// The compound of a state that [`Compounds::state`] gave; `None` for any other.
    pub fn get(&self, state: &ByteState) -> Option<Arc<Compound>> {
        match state {
            ByteState::Compound(compound) => Some(Arc::clone(compound)),
            ByteState::Number(number) => {
                let known = interrupt::lock(&self.known);
                known.all.get(*number as usize).map(Arc::clone)
            }
            ByteState::Text(_) => None,
        }
    }
}
