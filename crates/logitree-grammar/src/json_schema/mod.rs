//! JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12: documents are read into [`Schema`], brought into a normal form
//! (any of several typed shapes), and run as states of objects and arrays that are made when a text reaches them.
//!
//! It refuses to know tokens.

mod clock;
mod content;
mod decimal;
pub mod format;
mod frames;
mod idn;
mod load;
mod names;
mod normal;
pub mod number;
mod schema;
mod validate;

pub use frames::Frames;
pub use load::{from_value, load, Places};
pub use schema::{
    Bound, Draft, Items, Keywords, NodeId, Options, Order, Schema, SchemaNode, TypeSet, Whitespace,
};
pub use validate::is_valid;
