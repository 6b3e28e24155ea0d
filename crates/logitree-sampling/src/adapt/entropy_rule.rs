//! Parameters by bands of entropy: tsampler's "adaptive sampling based on entropy" as a table.

use super::{checked_settings, show, wrong, Adapt, Distribution, Setting};
use crate::Result;

/// Bands of entropy in nats, each with its settings.
#[derive(Debug, Clone)]
pub struct EntropyRule {
    bands: Vec<(f64, Vec<Setting>)>,
}

impl EntropyRule {
    /// The settings of the first band whose bound lies above the entropy. Bounds in nats, ascending, the last
    /// +inf. A band without settings leaves the chain's own.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] for no bands, bounds that do not ascend from above 0 to +inf, and values
    /// that are not finite.
    pub fn new(bands: Vec<(f64, Vec<Setting>)>) -> Result<Self> {
        let mut low = 0.0;
        for (bound, _) in &bands {
            if bound.is_nan() || *bound <= low {
                let message = format!("a band of entropies below {bound} comes after {low}");
                return Err(wrong(message, "bounds are numbers above 0 that ascend"));
            }
            low = *bound;
        }
        if low != f64::INFINITY {
            return Err(wrong(
                "the last band of entropies is not open".into(),
                "let the last bound be None, or +inf",
            ));
        }
        let bands = bands.into_iter().map(|(bound, settings)| Ok((bound, checked_settings(settings)?)));
        Ok(EntropyRule { bands: bands.collect::<Result<_>>()? })
    }
}

impl EntropyRule {
    /// The bands: upper bound in nats and settings.
    pub fn bands(&self) -> &[(f64, Vec<Setting>)] {
        &self.bands
    }
}

impl Adapt for EntropyRule {
    fn describe(&self) -> String {
        let band = |(bound, s): &(f64, Vec<Setting>)| match *bound {
            f64::INFINITY => format!("(None, {})", show(s)),
            _ => format!("({bound}, {})", show(s)),
        };
        let each: Vec<String> = self.bands.iter().map(band).collect();
        format!("EntropyRule([{}])", each.join(", "))
    }

    fn settings(&mut self, seen: Distribution) -> Result<&[Setting]> {
        let band = self.bands.iter().find(|(bound, _)| seen.entropy < *bound);
        Ok(band.map_or(&[], |(_, settings)| settings))
    }

    fn declared(&self) -> Vec<&[Setting]> {
        self.bands.iter().map(|(_, settings)| settings.as_slice()).collect()
    }

    fn clone_box(&self) -> Box<dyn Adapt> {
        Box::new(self.clone())
    }
}
