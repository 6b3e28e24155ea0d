//! Passes over slices of floats, compiled for the widest vectors the machine has (found at run time).
//!
//! Each pass is one plain loop, written in lanes so that the compiler vectorises it, and compiled three times:
//! AVX-512, AVX2 with FMA, baseline. All three give the same bits: products and sums are fused by name (`mul_add`),
//! and additions have one fixed order of lanes.

mod among;
mod exp;
mod floats;
mod keys;
mod maxima;
mod prefetch;
mod shape;
mod sort;
mod sums;
mod whole;
mod width;

pub use among::{reaching_among, PackedIds};
pub use exp::{exp, exps, normalise};
pub use floats::Floats;
pub use keys::{collect_keys, collect_reaching, descending_key, from_key};
pub use maxima::{block_maxima, fine_maxima, max};
pub use prefetch::prefetch;
pub use shape::{deviations, divide, reject_below, squares};
pub use sort::sort_keys;
pub use sums::{block_sums, sum_exp, sum_exp_dot};
pub use whole::{finite_sums, log_sum_exp};

/// Elements a block: what [`block_maxima`] and [`block_sums`] reduce to one number.
pub const BLOCK: usize = 256;

/// Elements that go through a pass together: two of the widest vectors.
const LANES: usize = 32;
