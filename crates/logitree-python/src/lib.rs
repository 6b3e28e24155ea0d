//! The Python face of the core: one file a room, conversions only.

use pyo3::prelude::*;

mod allocator;
mod allowed;
mod base;
mod batch;
mod buffer;
mod catalogue;
mod compose;
mod constraint;
mod deadline;
mod decoder;
mod errors;
mod grammar;
mod hold;
mod llama_sampler;
mod logit_rows;
mod logits;
mod mask;
mod matcher;
mod metrics;
mod payload;
mod reasoning;
mod recogniser;
mod sampling;
mod skeleton;
mod tokenizer;
mod tree_decode;
mod trie;
mod vocabulary;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::keep_freed_pages();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let optimised = if cfg!(profile_guided) { "profile-guided" } else { "release" };
    m.add("__profile__", if cfg!(debug_assertions) { "dev" } else { optimised })?;
    errors::register(m)?;
    vocabulary::register(m)?;
    tokenizer::register(m)?;
    sampling::register(m)?;
    metrics::register(m)?;
    base::register(m)?;
    constraint::register(m)?;
    grammar::register(m)?;
    deadline::register(m)?;
    decoder::register(m)?;
    batch::register(m)?;
    trie::register(m)?;
    mask::register(m)?;
    skeleton::register(m)?;
    catalogue::register(m)?;
    reasoning::register(m)?;
    recogniser::register(m)?;
    llama_sampler::register(m)?;
    compose::register(m)?;
    tree_decode::register(m)?;
    // What is public is in the package: `logitree._core` has no list of its own.
    m.delattr("__all__")
}
