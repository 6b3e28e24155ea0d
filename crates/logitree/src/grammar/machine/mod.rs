//! The pushdown machine: grammars run byte by byte, every reading kept.
//!
//! A [`Source`] gives states; the machine keeps sets of states with the sets they return to. It refuses to know
//! tokens' bytes.

mod source;

pub use source::{Edge, Edges, Source, StateId, To};
