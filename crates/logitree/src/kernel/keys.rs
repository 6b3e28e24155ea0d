//! Keys: a value and an id in one number that sorts as candidates do, and the pass that collects them. The file
//! refuses to know how many are wanted.

use super::width::widest;
use super::LANES;

/// A number that sorts ascending as `x` descends, and as `id` ascends where x is equal. Undone by [`from_key`].
#[inline(always)]
pub fn descending_key(x: f32, id: u32) -> u64 {
    // + 0.0 makes -0.0 equal to 0.0, as comparison has it.
    let bits = (x + 0.0).to_bits();
    let flipped = if bits >> 31 == 1 { bits } else { !(bits | 1 << 31) };
    u64::from(flipped) << 32 | u64::from(id)
}

/// The value (-0.0 has become 0.0) and the id of a key.
#[inline(always)]
pub fn from_key(key: u64) -> (f32, u32) {
    let flipped = (key >> 32) as u32;
    let bits = if flipped >> 31 == 1 { flipped } else { !flipped & !(1 << 31) };
    (f32::from_bits(bits), key as u32)
}

widest! {
    /// Appends to `keys` the [`descending_key`] of each element of `xs` that is `>= threshold`, numbered from
    /// `first`.
    collect_keys, collect_keys_at =
        collect_keys_body(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) -> ()
}

#[inline(always)]
fn collect_keys_body(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) {
    for (line, base) in xs.chunks(LANES).zip((first..).step_by(LANES)) {
        let mut any = false;
        for &x in line {
            any |= x >= threshold;
        }
        if any {
            for (&x, id) in line.iter().zip(base..) {
                if x >= threshold {
                    keys.push(descending_key(x, id));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::width::Width;
    use proptest::prelude::*;

    #[test]
    fn keys_sort_descending_then_by_id_and_come_back() {
        let xs = [3.5f32, -0.0, 0.0, -1.0, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -1e-40, 3.5];
        let mut keys: Vec<u64> = xs.iter().zip(0..).map(|(&x, i)| descending_key(x, i)).collect();
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(from_key(key), (xs[i], i as u32));
        }
        keys.sort_unstable();
        let mut plain: Vec<usize> = (0..xs.len()).collect();
        plain.sort_by(|&a, &b| xs[b].partial_cmp(&xs[a]).unwrap());
        let sorted: Vec<usize> = keys.iter().map(|&k| from_key(k).1 as usize).collect();
        assert_eq!(sorted, plain);
    }

    proptest! {
        #[test]
        fn collected_as_one_by_one(
            xs in prop::collection::vec(prop_oneof![8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY)], 0..1500),
            threshold in prop_oneof![6 => -31f32..31f32, 1 => Just(f32::NEG_INFINITY)],
            first in 0u32..1000,
        ) {
            let wanted = xs.iter().zip(first..).filter(|(x, _)| **x >= threshold);
            let wanted: Vec<u64> = std::iter::once(99).chain(wanted.map(|(&x, id)| descending_key(x, id))).collect();
            for width in Width::all() {
                let mut keys = vec![99];
                collect_keys_at(width, &xs, threshold, first, &mut keys);
                prop_assert_eq!(&keys, &wanted, "{:?}", width);
            }
        }
    }
}
