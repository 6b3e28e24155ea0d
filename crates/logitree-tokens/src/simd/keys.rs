//! Keys: a value and an id in one number that sorts as candidates do, and the pass that collects them.

use super::dispatch::widest;
use super::{BLOCK, LANES};

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

/// Up to so many of a line are looked for one by one.
const FEW: u32 = 3;

widest! {
    /// Appends to `keys` the [`descending_key`] of each element of `xs` that is `>= threshold`, numbered from
    /// `first`.
    collect_keys, collect_keys_at =
        collect_keys_body, avx512 compress_keys(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) -> ()
}

#[inline(always)]
fn collect_keys_body(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) {
    let mut room = [0; LANES];
    for (line, base) in xs.chunks(LANES).zip((first..).step_by(LANES)) {
        let mut reached = 0;
        for &x in line {
            reached += u32::from(x >= threshold);
        }
        if reached == 0 {
            continue;
        }
        if reached <= FEW {
            for (&x, id) in line.iter().zip(base..) {
                if x >= threshold {
                    keys.push(descending_key(x, id));
                }
            }
            continue;
        }
        let mut n = 0;
        for (&x, id) in line.iter().zip(base..) {
            // What is not wanted is written over by the next: no branch to foretell.
            room[n % LANES] = descending_key(x, id);
            n += usize::from(x >= threshold);
        }
        keys.extend_from_slice(&room[..n]);
    }
}

/// As [`collect_keys_body`], by the instruction that moves the wanted lanes together.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
fn compress_keys(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) {
    let n = compress_keys_at(xs, threshold, first, keys, keys.len());
    keys.truncate(n);
}

/// Writes the keys from `n` on, and returns where they end; what is after that has no meaning.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
#[allow(unsafe_code)] // vector loads and stores
fn compress_keys_at(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>, mut n: usize) -> usize {
    use std::arch::x86_64::*;
    const WIDE: usize = 16;
    let limit = _mm512_set1_ps(threshold);
    let ascending = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (lines, rest) = xs.as_chunks::<WIDE>();
    for (line, base) in lines.iter().zip((first..).step_by(WIDE)) {
        // SAFETY: a line is 16 f32s; the load is an unaligned one.
        let x = unsafe { _mm512_loadu_ps(line.as_ptr()) };
        let wanted = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, limit);
        if wanted == 0 {
            continue;
        }
        let bits = _mm512_castps_si512(_mm512_add_ps(x, _mm512_setzero_ps()));
        // Negative ones stay as they are, the others have all but the sign flipped.
        let negative = _mm512_srai_epi32::<31>(bits);
        let flip = _mm512_andnot_si512(negative, _mm512_set1_epi32(i32::MAX));
        let values = _mm512_maskz_compress_epi32(wanted, _mm512_xor_si512(bits, flip));
        let ids = _mm512_add_epi32(ascending, _mm512_set1_epi32(base as i32));
        let ids = _mm512_maskz_compress_epi32(wanted, ids);
        if keys.len() < n + WIDE {
            keys.resize(n + BLOCK, 0);
        }
        let (low, high) = keys[n..n + WIDE].split_at_mut(WIDE / 2);
        for (room, values, ids) in [
            (low, _mm512_castsi512_si256(values), _mm512_castsi512_si256(ids)),
            (high, _mm512_extracti64x4_epi64::<1>(values), _mm512_extracti64x4_epi64::<1>(ids)),
        ] {
            let upper = _mm512_slli_epi64::<32>(_mm512_cvtepu32_epi64(values));
            let key = _mm512_or_si512(upper, _mm512_cvtepu32_epi64(ids));
            // SAFETY: either half is eight u64s; the store is an unaligned one.
            unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), key) };
        }
        n += wanted.count_ones() as usize;
    }
    if rest.is_empty() {
        return n;
    }
    keys.truncate(n);
    collect_keys_body(rest, threshold, first.wrapping_add((lines.len() * WIDE) as u32), keys);
    keys.len()
}

widest! {
    /// Appends to `keys` those of [`collect_keys`], of the blocks of `xs` whose maximum is `>= threshold`, numbered from 0.
    /// `maxima` has that of each block of [`BLOCK`].
    collect_keys_of_blocks, collect_keys_of_blocks_at = collect_blocks_body, avx512 compress_blocks
        (xs: &[f32], maxima: &[f32], threshold: f32, keys: &mut Vec<u64>) -> ()
}

#[inline(always)]
fn collect_blocks_body(xs: &[f32], maxima: &[f32], threshold: f32, keys: &mut Vec<u64>) {
    for ((block, first), &max) in xs.chunks(BLOCK).zip((0..).step_by(BLOCK)).zip(maxima) {
        if max >= threshold {
            collect_keys_body(block, threshold, first, keys);
        }
    }
}

/// As [`collect_blocks_body`], by the instruction that moves the wanted lanes together.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
fn compress_blocks(xs: &[f32], maxima: &[f32], threshold: f32, keys: &mut Vec<u64>) {
    let mut n = keys.len();
    for ((block, first), &max) in xs.chunks(BLOCK).zip((0..).step_by(BLOCK)).zip(maxima) {
        if max >= threshold {
            n = compress_keys_at(block, threshold, first, keys, n);
        }
    }
    keys.truncate(n);
}

widest! {
    /// Appends the number, counted from `first`, and the value (-0.0 as 0.0) of each element of `xs` that is
    /// `>= threshold`.
    collect_reached, collect_reached_at = collect_reached_body, avx512 compress_reached
        (xs: &[f32], threshold: f32, first: u32, ids: &mut Vec<u32>, values: &mut Vec<f32>) -> ()
}

#[inline(always)]
fn collect_reached_body(xs: &[f32], threshold: f32, first: u32, ids: &mut Vec<u32>, values: &mut Vec<f32>) {
    let (mut numbers, mut wanted) = ([0; LANES], [0.0; LANES]);
    for (line, base) in xs.chunks(LANES).zip((first..).step_by(LANES)) {
        let mut n = 0;
        for (&x, id) in line.iter().zip(base..) {
            // What is not wanted is written over by the next: no branch to foretell.
            (numbers[n % LANES], wanted[n % LANES]) = (id, x + 0.0);
            n += usize::from(x >= threshold);
        }
        ids.extend_from_slice(&numbers[..n]);
        values.extend_from_slice(&wanted[..n]);
    }
}

/// As [`collect_reached_body`], by the instruction that moves the wanted lanes together.
///
/// Mostly few of a vector are wanted: a short store seldom crosses a cache line, a long one nearly always.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
#[allow(unsafe_code)] // vector loads and stores
fn compress_reached(xs: &[f32], threshold: f32, first: u32, ids: &mut Vec<u32>, values: &mut Vec<f32>) {
    use std::arch::x86_64::*;
    const WIDE: usize = 16;
    const SHORT: usize = 4;
    let limit = _mm512_set1_ps(threshold);
    let ascending = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (blocks, rest) = xs.as_chunks::<BLOCK>();
    let mut n = ids.len();
    for (block, base) in blocks.iter().zip((first..).step_by(BLOCK)) {
        // No more than a block: callers append the survivors of many short runs.
        if ids.len() < n + BLOCK {
            ids.resize(n + BLOCK, 0);
            values.resize(n + BLOCK, 0.0);
        }
        // A block adds no more than its length.
        let (id_room, value_room) = (&mut ids[n..n + BLOCK], &mut values[n..n + BLOCK]);
        let mut here = 0;
        for (line, base) in block.as_chunks::<WIDE>().0.iter().zip((base..).step_by(WIDE)) {
            // SAFETY: a line is 16 f32s; the load is an unaligned one.
            let x = unsafe { _mm512_loadu_ps(line.as_ptr()) };
            let wanted = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, limit);
            let numbers = _mm512_add_epi32(ascending, _mm512_set1_epi32(base as i32));
            let numbers = _mm512_maskz_compress_epi32(wanted, numbers);
            let x = _mm512_maskz_compress_ps(wanted, _mm512_add_ps(x, _mm512_setzero_ps()));
            let count = wanted.count_ones() as usize;
            // SAFETY: the lines before this one wrote no more than 16 each, so that 16 more fit into the room of a block;
            // the stores are unaligned ones.
            unsafe {
                let (id_to, value_to) = (id_room.as_mut_ptr().add(here), value_room.as_mut_ptr().add(here));
                if count <= SHORT {
                    _mm_storeu_si128(id_to.cast(), _mm512_castsi512_si128(numbers));
                    _mm_storeu_ps(value_to, _mm512_castps512_ps128(x));
                } else {
                    _mm512_storeu_si512(id_to.cast(), numbers);
                    _mm512_storeu_ps(value_to, x);
                }
            }
            here += count;
        }
        n += here;
    }
    ids.truncate(n);
    values.truncate(n);
    collect_reached_body(rest, threshold, first.wrapping_add((blocks.len() * BLOCK) as u32), ids, values);
}

/// Elements that [`collect_marked`] takes together, a bit of a word each.
const WORD: usize = 64;

widest! {
    /// Appends to `places` where in `xs` something is marked and not below `limit`: what reaches it, and what is no
    /// number. `marks` has a bit for each element, the lowest first, in words of 64. Meanwhile `ahead`, which is read
    /// next, is prefetched.
    collect_marked, collect_marked_at = collect_marked_body, avx512 compare_marked
        (xs: &[f32], marks: &[u8], limit: f32, ahead: &[f32], places: &mut Vec<u32>) -> ()
}

#[inline(always)]
fn collect_marked_body(xs: &[f32], marks: &[u8], limit: f32, ahead: &[f32], places: &mut Vec<u32>) {
    let mut ahead = ahead.as_chunks::<WORD>().0.iter();
    let words = marks.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
    for ((line, word), base) in xs.chunks(WORD).zip(words).zip((0..).step_by(WORD)) {
        prefetch_next(&mut ahead);
        let mut below = 0;
        for &x in line {
            below += u32::from(x < limit);
        }
        if below as usize == line.len() {
            continue;
        }
        for (&x, at) in line.iter().zip(0..) {
            let is_below = x < limit;
            if !is_below && word >> at & 1 == 1 {
                places.push(base as u32 + at);
            }
        }
    }
}

/// Prefetches the elements of the next word, if there is one.
#[inline(always)]
fn prefetch_next<'a>(ahead: &mut impl Iterator<Item = &'a [f32; WORD]>) {
    if let Some(next) = ahead.next() {
        // One of each cache line.
        [0, 16, 32, 48].into_iter().for_each(|at| super::prefetch(next, at));
    }
}

/// As [`collect_marked_body`], with the comparisons as bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
#[allow(unsafe_code)] // vector loads
fn compare_marked(xs: &[f32], marks: &[u8], limit: f32, ahead: &[f32], places: &mut Vec<u32>) {
    use std::arch::x86_64::*;
    const WIDE: usize = 16;
    let mut ahead = ahead.as_chunks::<WORD>().0.iter();
    let limit_wide = _mm512_set1_ps(limit);
    let (lines, rest) = xs.as_chunks::<WORD>();
    let words = marks.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
    for ((line, word), base) in lines.iter().zip(words).zip((0..).step_by(WORD)) {
        prefetch_next(&mut ahead);
        let reached = |at: usize| {
            // SAFETY: these are 16 f32s; the load is an unaligned one.
            let x = unsafe { _mm512_loadu_ps(line[at..at + WIDE].as_ptr()) };
            u64::from(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, limit_wide)) << at
        };
        let mut wanted = (reached(0) | reached(16) | reached(32) | reached(48)) & word;
        while wanted != 0 {
            places.push(base as u32 + wanted.trailing_zeros());
            wanted &= wanted - 1;
        }
    }
    let (done, n) = (xs.len() - rest.len(), places.len());
    collect_marked_body(rest, marks.get(done / 8..).unwrap_or_default(), limit, &[], places);
    places[n..].iter_mut().for_each(|place| *place += done as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::Width;
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
                let maxima: Vec<f32> = xs.chunks(BLOCK).map(|xs| xs.iter().copied().fold(f32::MIN, f32::max)).collect();
                let mut keys = vec![99];
                collect_keys_of_blocks_at(width, &xs, &maxima, threshold.max(f32::MIN), &mut keys);
                keys[1..].iter_mut().for_each(|key| *key += u64::from(first));
                let above = |&key: &u64| key == 99 || from_key(key).0 >= f32::MIN;
                prop_assert_eq!(&keys, &wanted.iter().copied().filter(above).collect::<Vec<u64>>(), "{:?}", width);
                let (mut ids, mut values) = (vec![99], vec![99.0]);
                collect_reached_at(width, &xs, threshold, first, &mut ids, &mut values);
                let both: Vec<(f32, u32)> = wanted[1..].iter().map(|&key| from_key(key)).collect();
                prop_assert_eq!(values[1..].iter().copied().zip(ids[1..].iter().copied()).collect::<Vec<_>>(), both);
            }
        }
    }

    proptest! {
        #[test]
        fn marked_places_are_those_that_are_marked_and_not_below(
            xs in prop::collection::vec(
                prop_oneof![8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY), 1 => Just(f32::NAN)], 0..300),
            marks in prop::collection::vec(any::<u8>(), 40),
            limit in prop_oneof![6 => -31f32..31f32, 1 => Just(f32::NEG_INFINITY)],
        ) {
            let marked = |place: u32| marks[place as usize / 8] >> (place % 8) & 1 == 1;
            let wanted = xs.iter().zip(0u32..).filter(|(x, place)| marked(*place) && (x.is_nan() || **x >= limit));
            let wanted: Vec<u32> = std::iter::once(7).chain(wanted.map(|(_, place)| place)).collect();
            for width in Width::all() {
                let mut places = vec![7];
                collect_marked_at(width, &xs, &marks, limit, &xs, &mut places);
                prop_assert_eq!(&places, &wanted, "{:?}", width);
            }
        }
    }
}
