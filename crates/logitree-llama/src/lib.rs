//! logitree as a link of llama.cpp's own sampler chains: a `llama_sampler` that is a constraint, or a whole logitree
//! chain that selects.
//!
//! ```text
//! llama_sampler_sample -> [penalties] -> [logitree] -> [top_k] -> ... -> [dist]
//!                                            |
//!                        keeps the allowed candidates, selects, fails closed
//! ```
//!
//! Nothing links libllama: its functions are given as pointers of the library that the program has loaded
//! ([`LlamaLibrary`]), and tried before the first sampler is made.
//!
//! - `candidates` works on the array of candidates: keep, select, gather logits. No pointers.
//! - `split` copies their logits with vector instructions.
//! - `state` is what one sampler of a chain does with it. No pointers.
//! - `interface` is llama.h's side: the table of functions, and every pointer.
//! - `record` is what the program may ask of a sampler that its chain owns.

pub mod candidates;
mod interface;
mod record;
mod split;
mod state;

pub use interface::{LlamaLibrary, RawSampler};
pub use record::{SamplerCounts, SamplerRecord};
pub use state::{SamplerOptions, SamplerState, Selection};
