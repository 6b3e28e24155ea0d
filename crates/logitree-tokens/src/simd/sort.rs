//! Sorting of keys: by their digits where there are many.

/// Fewer keys than this are sorted by comparison.
const FEW: usize = 800;

/// Values of a digit of eleven bits: fewer passes than bytes need, and the places written to still fit the cache.
const VALUES: usize = 1 << 11;

/// Sorts `keys` ascending, as `sort_unstable` does. `scratch` is overwritten.
pub fn sort_keys(keys: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    if keys.len() < FEW || u32::try_from(keys.len()).is_err() {
        return keys.sort_unstable();
    }
    // Keys that come with ascending lower halves, as ids do, are in order of these already.
    let ordered = keys.windows(2).fold(true, |ordered, pair| ordered & (pair[0] as u32 <= pair[1] as u32));
    if ordered {
        sort_by_digits(keys, scratch, [32, 43, 54]);
    } else {
        sort_by_digits(keys, scratch, [0, 11, 22, 32, 43, 54]);
    }
}

/// Sorts by the digits that begin at these bits, the lowest first; equal keys keep their order.
fn sort_by_digits<const N: usize>(keys: &mut Vec<u64>, scratch: &mut Vec<u64>, shifts: [u32; N]) {
    let mut counts = [[0u32; VALUES]; N];
    for &key in keys.iter() {
        for i in 0..N {
            counts[i][digit(key, shifts[i])] += 1;
        }
    }
    scratch.resize(keys.len(), 0);
    for (counts, shift) in counts.iter_mut().zip(shifts) {
        // A digit that is the same in all keys orders nothing.
        if keys.first().is_some_and(|&key| counts[digit(key, shift)] as usize != keys.len()) {
            scatter(keys, scratch, shift, counts);
            std::mem::swap(keys, scratch);
        }
    }
}

/// Writes `keys` to `out` in order of one digit; `counts` has how often each digit occurs.
fn scatter(keys: &[u64], out: &mut [u64], shift: u32, counts: &mut [u32; VALUES]) {
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    for &key in keys {
        let place = &mut counts[digit(key, shift)];
        out[*place as usize] = key;
        *place += 1;
    }
}

#[inline(always)]
fn digit(key: u64, shift: u32) -> usize {
    (key >> shift) as usize % VALUES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::descending_key;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorted_as_by_comparison(
            mut keys in prop_oneof![
                prop::collection::vec(any::<u64>(), 0..3000),
                prop::collection::vec(0u64..300, 0..3000),
                prop::collection::vec(-20f32..20f32, 0..3000)
                    .prop_map(|xs| xs.iter().zip(5..).map(|(&x, id)| descending_key(x, id)).collect()),
                prop::collection::vec(prop::sample::select(vec![-1.5f32, 0.0, 2.0]), 0..3000)
                    .prop_map(|xs| xs.iter().zip((0..3000).rev()).map(|(&x, id)| descending_key(x, id)).collect()),
            ],
            mut scratch in prop::collection::vec(any::<u64>(), 0..10),
        ) {
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            sort_keys(&mut keys, &mut scratch);
            prop_assert_eq!(keys, sorted);
        }
    }
}
