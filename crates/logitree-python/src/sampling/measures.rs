//! The measures of a step in Python: conversions only.

use logitree::sampling::{Level, Measures};
use pyo3::prelude::*;

/// The distributions of a step, in nats: the model's, over all finite logits, and the one that the chain left and drew
/// from. Feed `model_surprisal` to a `RollingPerplexity`.
#[pyclass(frozen, name = "Measures", module = "logitree.metrics")]
pub struct PyMeasures {
    measures: Measures,
    /// Nats in one unit.
    unit: f64,
}

impl PyMeasures {
    /// In nats.
    pub fn new(measures: Measures) -> Self {
        PyMeasures { measures, unit: 1.0 }
    }

    fn parts(&self) -> (Level, Level) {
        (self.measures.model, self.measures.sampling)
    }
}

#[pymethods]
impl PyMeasures {
    /// Entropy of the model's distribution, over all finite logits.
    #[getter]
    fn model_entropy(&self) -> f64 {
        self.parts().0.entropy / self.unit
    }

    /// log p of the picked token under the model, before the filters.
    #[getter]
    fn model_log_probability(&self) -> f64 {
        self.parts().0.log_probability / self.unit
    }

    /// -log p of the picked token under the model.
    #[getter]
    fn model_surprisal(&self) -> f64 {
        -self.model_log_probability() + 0.0
    }

    /// Entropy of what the chain left, at least 0.
    #[getter]
    fn entropy(&self) -> f64 {
        self.parts().1.entropy / self.unit
    }

    /// log p of the picked token in what the chain left, after the filters.
    #[getter]
    fn log_probability(&self) -> f64 {
        self.parts().1.log_probability / self.unit
    }

    /// -log p of the picked token in what the chain left.
    #[getter]
    fn surprisal(&self) -> f64 {
        -self.log_probability() + 0.0
    }

    /// The same in bits; from nats.
    fn bits(&self) -> Self {
        PyMeasures { measures: self.measures, unit: std::f64::consts::LN_2 }
    }

    fn __repr__(&self) -> String {
        format!(
            "Measures(model_entropy={:.4}, model_surprisal={:.4}, entropy={:.4}, surprisal={:.4})",
            self.model_entropy(),
            self.model_surprisal(),
            self.entropy(),
            self.surprisal()
        )
    }
}
