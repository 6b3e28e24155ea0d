//! Constraints: what may be generated. A constraint, bound to a vocabulary and running for one sequence, is a
//! [`Matcher`]. The room refuses to know logits and sampling.

mod matcher;

pub use matcher::Matcher;
