//! Tests of the masks and matchers of grammars.

mod hostile;
mod laws;
mod masks;
