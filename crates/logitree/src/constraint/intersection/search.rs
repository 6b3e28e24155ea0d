//! Whether one whole item behind a place is allowed: a search for a witness. It refuses to know what is asked next.

use super::known::Known;
use super::others::Others;
use super::way::Way;
use crate::catalogue::{CatalogueSnapshot, WalkState};
use crate::{Error, ErrorKind, Result, TokenId};

/// Ways on that are read in a step.
const READ: usize = 64;

/// What a question may cost, in steps: a token that is offered to the others, or 64 ways on that are read.
pub(super) struct Fuel {
    left: u64,
    given: u64,
}

impl Fuel {
    pub fn new(given: u64) -> Fuel {
        Fuel { left: given, given }
    }

    fn spend(&mut self, steps: u64) -> Result<()> {
        if let Some(left) = self.left.checked_sub(steps) {
            self.left = left;
            return Ok(());
        }
        let message = format!(
            "finding out what the prefix tree and the others allow takes more than {} steps",
            self.given
        );
        Err(Error::new(ErrorKind::Limit, message)
            .help("look at everything once, for all requests: paths(intersect=); or give more fuel="))
    }
}

/// The tree, and what is remembered of it.
#[derive(Clone, Copy)]
pub(super) struct Ground<'s> {
    pub snapshot: &'s CatalogueSnapshot,
    pub known: &'s Known,
    pub end: Option<TokenId>,
}

impl Ground<'_> {
    /// Whether an item behind `token`, which leads to `state`, is allowed. The others stand before the token, and do
    /// afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when the fuel is spent: what was found out is kept, so that asking again gets further, as
    /// long as there is room for it; those of the others and of the tree.
    pub fn allows(
        &self,
        (token, state): (TokenId, WalkState),
        others: &mut Others,
        way: &mut Way,
        fuel: &mut Fuel,
    ) -> Result<bool> {
        if let Some(known) = self.known.get(state) {
            return Ok(known);
        }
        fuel.spend(1)?;
        let before = others.taken();
        let found = match others.take(token) {
            Ok(true) => self.reaches(state, others, way, fuel),
            Ok(false) => {
                self.known.set(std::iter::once(state), false);
                Ok(false)
            }
            error => error,
        };
        others.back_to(before)?;
        found
    }

    /// Whether an item at `state` or behind it is allowed. The others stand there, and somewhere behind it afterwards.
    ///
    /// # Errors
    /// As [`Ground::allows`].
    pub fn reaches(
        &self,
        state: WalkState,
        others: &mut Others,
        way: &mut Way,
        fuel: &mut Fuel,
    ) -> Result<bool> {
        let above = others.taken();
        way.clear();
        let mut next = Some(state);
        loop {
            if let Some(state) = next.take() {
                let is_item = way.enter(self.snapshot, state)?;
                fuel.spend((way.width() / READ) as u64)?;
                if is_item && others.are_complete(self.end)? {
                    break;
                }
            }
            match way.next() {
                Some((token, state)) => match self.known.get(state) {
                    Some(true) => break,
                    Some(false) => {}
                    None => {
                        fuel.spend(1)?;
                        if others.take(token)? {
                            next = Some(state);
                        } else {
                            self.known.set(std::iter::once(state), false);
                        }
                    }
                },
                None => {
                    self.known.set(way.leave().into_iter(), false);
                    if way.len() == 0 {
                        return Ok(false);
                    }
                    others.back_to(above + way.len() - 1)?;
                }
            }
        }
        self.known.set(way.states(), true);
        Ok(true)
    }
}
