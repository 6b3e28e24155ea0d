//! greedy: selects the first candidate with the highest logit. Draws nothing.

use crate::reference::{Reference, TokenArray};
use crate::Result;
use crate::{Arguments, Candidates, FromArguments, OnGreatest, OnRejected, Sampler, Step};

/// Selects the first maximum.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl FromArguments for Greedy {
    fn from_arguments(_arguments: &Arguments) -> Result<Self> {
        Ok(Greedy)
    }

    fn arguments(&self) -> Arguments {
        Arguments::default()
    }
}

impl Sampler for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.select(candidates.first_max());
    }

    fn on_greatest(&self) -> OnGreatest {
        OnGreatest::Leaves
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn step(&self) -> Option<Step> {
        Some(Step::Greedy)
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn selects(&self) -> bool {
        true
    }
}

impl Reference for Greedy {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        let mut best = 0;
        for (c, at) in array.data.iter().zip(0..) {
            if c.logit > array.data[best].logit {
                best = at;
            }
        }
        array.selected = Some(best);
    }
}
