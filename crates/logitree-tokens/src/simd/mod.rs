//! Vectorised passes over floats and masks, compiled for the widest vectors of the machine, which `dispatch` detects.
//!
//! A pass over floats is one plain loop, written in lanes so that the compiler vectorises it, and compiled three times:
//! AVX-512, AVX2 with FMA, baseline. All three give the same bits: products and sums are fused by name (`mul_add`),
//! and additions have one fixed order of lanes. Where intrinsics are faster, a test compares them with the plain loop.

mod best;
mod dispatch;
mod exp;
mod floats;
mod gather;
mod keys;
mod masks;
mod maxima;
mod prefetch;
mod rows;
mod sort;
mod spread;
mod sums;

pub use best::Best;
pub use exp::{exp, exps, normalise};
pub use floats::Floats;
pub use gather::{reaching_among, PackedIds};
pub use keys::{
    collect_keys, collect_keys_of_blocks, collect_marked, collect_reached, descending_key, from_key,
};
pub use masks::{ban_f32, ban_u16, copy_allowed, count};
pub use maxima::{allowed_maxima, block_maxima, bound_of_best, marked_maxima, max};
pub use prefetch::prefetch;
pub use rows::{finite_sums, log_sum_exp};
pub use sort::sort_keys;
pub use spread::{add_moments, buckets, divide, nearness, reject_below, split, Moments};
pub use sums::{block_sums, sum_exp, sum_exp_dot};

/// Elements a block: what [`block_maxima`] and [`block_sums`] reduce to one number.
pub const BLOCK: usize = 256;

/// Elements that go through a pass together: two of the widest vectors.
const LANES: usize = 32;
