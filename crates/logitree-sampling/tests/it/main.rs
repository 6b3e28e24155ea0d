//! Tests of samplers and chains: one binary, and every sampler as a row of `logitree_testing::samplers`.

mod align;
mod batch;
mod beyond;
mod draws;
mod extremes;
mod golden;
mod hostile;
mod laws;
mod llama;
mod long;
mod oracle;
mod orders;
mod steps;
