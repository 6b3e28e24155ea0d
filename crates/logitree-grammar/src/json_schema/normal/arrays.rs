//! Arrays that fulfil two descriptions. It refuses to look into items.

use super::{ArrayFacts, Forms};
use crate::Result;

impl Forms {
    /// What fulfils both.
    pub(super) fn meet_arrays(&mut self, a: &ArrayFacts, b: &ArrayFacts) -> Result<ArrayFacts> {
        let places = a.prefix.len().max(b.prefix.len()) as u64;
        let prefix = (0..places).map(|at| self.all(&[a.item(at), b.item(at)])).collect::<Result<_>>()?;
        let max = match (a.max, b.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Ok(ArrayFacts {
            prefix,
            rest: self.all(&[a.rest, b.rest])?,
            min: a.min.max(b.min),
            max,
            contains: super::meet::merged(&a.contains, &b.contains),
            unique: a.unique || b.unique,
        })
    }
}
