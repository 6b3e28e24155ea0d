//! What can be asked of any matcher: masks, drafts of speculative decoding, explanations, endings, certain text, one byte at a time.

mod byte_tokens;
#[doc(hidden)] // texts over a vocabulary of bytes, for tests and the bindings
pub mod bytewise;
mod captures;
mod certain;
mod drafts;
mod ending;
mod explain;
mod fill;

pub(crate) use byte_tokens::ByteTokens;
pub use captures::{captures, Capture};
pub use certain::{certain, count_closed, Certain};
pub use drafts::{accept_all, count_allowed, draft_masks};
pub use ending::shortest_ending;
pub use explain::{explain, ExplainQuery, Explanation, Verdict};
pub use fill::{fill, fill_batch};
