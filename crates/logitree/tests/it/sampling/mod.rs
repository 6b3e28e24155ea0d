//! Tests of samplers and chains.

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
