//! greedy: selects the first candidate with the highest logit. Draws nothing.

use super::{Candidates, Sampler};

/// Selects the first maximum.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl Sampler for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn describe(&self) -> String {
        "greedy()".into()
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.select(candidates.first_max());
    }

    fn selects(&self) -> bool {
        true
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
