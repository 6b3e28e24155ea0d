//! Which of a list's places in a line of floats are not below a limit.

use super::dispatch::widest;

/// PackedIds as they lie in a file: whole numbers of one, two or four bytes each, the lowest byte first.
#[derive(Debug, Clone, Copy)]
pub struct PackedIds<'a> {
    /// Their bytes.
    pub bytes: &'a [u8],
    /// Bytes of each.
    pub width: usize,
}

widest! {
    /// Appends to `found` the number of each of `places` where `xs` holds something that is not below `limit`: what
    /// reaches it, what is no number, and what `xs` does not hold.
    reaching_among, reaching_among_at =
        reaching_among_body, avx512 gather_reaching(xs: &[f32], places: PackedIds<'_>, limit: f32, found: &mut Vec<u32>)
        -> ()
}

#[inline(always)]
fn reaching_among_body(xs: &[f32], places: PackedIds<'_>, limit: f32, found: &mut Vec<u32>) {
    let reaches = |place: usize| {
        xs.get(place).is_none_or(|&x| {
            let is_below = x < limit;
            !is_below
        })
    };
    match places.width {
        1 => {
            let places = places.bytes.iter().map(|&byte| usize::from(byte));
            found.extend(places.zip(0..).filter(|&(place, _)| reaches(place)).map(|(_, at)| at));
        }
        2 => {
            let places =
                places.bytes.as_chunks::<2>().0.iter().map(|&two| usize::from(u16::from_le_bytes(two)));
            found.extend(places.zip(0..).filter(|&(place, _)| reaches(place)).map(|(_, at)| at));
        }
        _ => {
            let places =
                places.bytes.as_chunks::<4>().0.iter().map(|&four| u32::from_le_bytes(four) as usize);
            found.extend(places.zip(0..).filter(|&(place, _)| reaches(place)).map(|(_, at)| at));
        }
    }
}

/// As [`reaching_among_body`], by the instructions that gather floats and move the wanted lanes together.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
#[allow(unsafe_code)] // gathers, vector loads and stores
fn gather_reaching(xs: &[f32], places: PackedIds<'_>, limit: f32, found: &mut Vec<u32>) {
    use std::arch::x86_64::*;
    const WIDE: usize = 16;
    // PackedIds are numbers of 32 bits, which a gather takes for signed ones.
    let Ok(len) = i32::try_from(xs.len()) else { return reaching_among_body(xs, places, limit, found) };
    if places.width != 2 && places.width != 4 {
        return reaching_among_body(xs, places, limit, found);
    }
    let (lines, rest) =
        places.bytes.split_at(places.bytes.len() / (WIDE * places.width) * WIDE * places.width);
    let ascending = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut n = found.len();
    for (line, base) in lines.chunks_exact(WIDE * places.width).zip((0..).step_by(WIDE)) {
        let ids = if places.width == 2 {
            // SAFETY: a line is 32 bytes; the load is an unaligned one.
            _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(line.as_ptr().cast()) })
        } else {
            // SAFETY: a line is 64 bytes; the load is an unaligned one.
            unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
        };
        let there = _mm512_cmplt_epu32_mask(ids, _mm512_set1_epi32(len));
        // SAFETY: only lanes below the length of `xs` are read.
        let x = unsafe { _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), there, ids, xs.as_ptr().cast()) };
        let wanted = !there | _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, _mm512_set1_ps(limit));
        if wanted == 0 {
            continue;
        }
        if found.len() < n + WIDE {
            found.resize(n + 16 * WIDE, 0);
        }
        let numbers =
            _mm512_maskz_compress_epi32(wanted, _mm512_add_epi32(ascending, _mm512_set1_epi32(base)));
        // SAFETY: the room is 16 u32s; the store is an unaligned one.
        unsafe { _mm512_storeu_si512(found[n..n + WIDE].as_mut_ptr().cast(), numbers) };
        n += wanted.count_ones() as usize;
    }
    found.truncate(n);
    reaching_among_body(xs, PackedIds { bytes: rest, ..places }, limit, found);
    let behind = (lines.len() / places.width) as u32;
    found[n..].iter_mut().for_each(|number| *number += behind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::Width;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_reaches_is_what_is_not_below(
            xs in prop::collection::vec(
                prop_oneof![8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY), 1 => Just(f32::NAN)], 0..300),
            places in prop::collection::vec(
                prop_oneof![30 => 0u32..320, 1 => Just(u32::MAX), 1 => Just(1 << 31), 1 => 250u32..70_000], 0..100),
            limit in prop_oneof![6 => -31f32..31f32, 1 => Just(f32::NEG_INFINITY)],
            size in prop::sample::select(vec![1usize, 2, 4]),
        ) {
            let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()[..size].to_vec()).collect();
            let mask = if size == 4 { u32::MAX } else { (1 << (8 * size)) - 1 };
            let reaches = |place: u32| xs.get((place & mask) as usize).is_none_or(|x| x.is_nan() || *x >= limit);
            let wanted = places.iter().zip(0u32..).filter(|(place, _)| reaches(**place)).map(|(_, at)| at);
            let wanted: Vec<u32> = std::iter::once(7).chain(wanted).collect();
            for width in Width::all() {
                let mut found = vec![7];
                reaching_among_at(width, &xs, PackedIds { bytes: &bytes, width: size }, limit, &mut found);
                prop_assert_eq!(&found, &wanted, "{:?}", width);
            }
        }
    }
}
