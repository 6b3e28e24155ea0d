//! The keywords of whole chains in Python.

use super::values::{chain_seed_of, rng_of, value_of, whole};
use crate::errors::to_py;
use logitree::sampling::registry;
use logitree::sampling::registry::{unknown, MIROSTAT};
use logitree::sampling::Params;
use logitree::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Keyword parameters over `start`, with llama.cpp's names or aliases of them.
pub(super) fn params_of(start: Params, given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let mut params = start;
    let mut seen: Vec<(String, String)> = Vec::new();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let keyword = registry::keyword(&name).to_string();
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == keyword) {
            let message = format!("{name} and {other} are the same parameter");
            return Err(to_py(Error::new(ErrorKind::Sampling, message).help("give one of them")));
        }
        params = match name.as_str() {
            "seed" => params.seed_or_fresh(chain_seed_of(&value)?),
            "rng" => params.rng(rng_of(&value)?),
            "sequence" => params.sequence(whole(&value, "sequence", 0, u32::MAX)?),
            MIROSTAT => params.with(MIROSTAT, whole(&value, &name, i32::MIN, i32::MAX)?),
            _ => {
                let row = registry::keyword_row(&name).ok_or_else(|| to_py(unknown(&name)))?;
                params.set(&keyword, value_of(row.kind, &value, &name)?).map_err(to_py)?;
                params
            }
        };
        seen.push((keyword, name));
    }
    Ok(params)
}
