//! Masks against ordinary sets, and masks on logits against a loop over ids.

use half::{bf16, f16};
use logitree::mask::{
    apply, apply_rows, bit, count, ids, insert_bit, insert_bits, is_empty, remove_bit, words_for,
    AllowedTokens, Logit,
};
use logitree::ErrorKind;
use proptest::collection::btree_set;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn set() -> impl Strategy<Value = (usize, BTreeSet<u32>)> {
    (1usize..200).prop_flat_map(|size| (Just(size), btree_set(0..size as u32, 0..=size)))
}

fn mask(size: usize, ids: &BTreeSet<u32>) -> Vec<u32> {
    let mut words = vec![0; words_for(size)];
    insert_bits(&mut words, &ids.iter().copied().collect::<Vec<_>>());
    words
}

proptest! {
    #[test]
    fn masks_are_sets((size, a) in set(), id in 0u32..250) {
        let mut x = mask(size, &a);
        prop_assert_eq!(ids(&x).collect::<Vec<_>>(), a.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(count(&x), a.len());
        prop_assert_eq!(is_empty(&x), a.is_empty());
        prop_assert_eq!(bit(&x, id), a.contains(&id));
        let mut after = a.clone();
        insert_bit(&mut x, id);
        // What lies past the last word is left out.
        if (id as usize) < x.len() * 32 {
            after.insert(id);
        }
        prop_assert_eq!(&x, &mask(x.len() * 32, &after));
        remove_bit(&mut x, id);
        after.remove(&id);
        prop_assert_eq!(&x, &mask(x.len() * 32, &after));
    }

    #[test]
    fn banned_logits_are_minus_infinity_and_nothing_else_changes(
        (size, allowed) in set(),
        seed in any::<u64>(),
        padding in 0usize..70,
    ) {
        let ids: Vec<u32> = allowed.iter().copied().collect();
        let words = mask(size, &allowed);
        let bits: Vec<u32> = (0..(size + padding) as u64)
            .map(|i| ((i + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32)
            .collect();
        let check = |got: Vec<u32>, banned: u32, before: Vec<u32>| {
            for (id, (got, before)) in got.into_iter().zip(before).enumerate() {
                let want = if allowed.contains(&(id as u32)) { before } else { banned };
                prop_assert_eq!(got, want, "id {}", id);
            }
            Ok(())
        };
        for form in [AllowedTokens::Ids(&ids), AllowedTokens::Mask(&words)] {
            let mut logits: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
            form.apply(&mut logits).unwrap();
            check(logits.iter().map(|x| x.to_bits()).collect(), f32::NEG_INFINITY.to_bits(), bits.clone())?;
            let halves: Vec<u32> = bits.iter().map(|b| b & 0xffff).collect();
            let mut logits: Vec<f16> = halves.iter().map(|b| f16::from_bits(*b as u16)).collect();
            form.apply(&mut logits).unwrap();
            check(logits.iter().map(|x| x.to_bits().into()).collect(), 0xfc00, halves.clone())?;
            let mut logits: Vec<bf16> = halves.iter().map(|b| bf16::from_bits(*b as u16)).collect();
            form.apply(&mut logits).unwrap();
            check(logits.iter().map(|x| x.to_bits().into()).collect(), 0xff80, halves)?;
        }
    }
}

#[test]
fn lengths_may_differ_if_no_allowed_id_is_lost() {
    let mut logits = [1.0f32; 40];
    let error = apply(&[u32::MAX, u32::MAX, 4], &mut logits).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Logits);
    assert_eq!(error.message, "the mask allows id 66, and there are 40 logits");
    assert_eq!(logits, [1.0; 40], "nothing is written on an error");
    assert_eq!(AllowedTokens::Ids(&[1, 40]).apply(&mut logits).unwrap_err().kind, ErrorKind::Logits);
    assert_eq!(logits, [1.0; 40]);
    apply(&[u32::MAX, u32::MAX, 0], &mut logits).unwrap();
    assert_eq!(logits, [1.0; 40], "the last word's surplus bits are not looked at");
    apply(&[u32::MAX], &mut logits).unwrap();
    assert_eq!((logits[31], logits[32], logits[39]), (1.0, f32::BANNED, f32::BANNED));
    AllowedTokens::All.apply(&mut logits).unwrap();
    assert_eq!(logits[0], 1.0);
    let mut none: [f32; 0] = [];
    apply(&[0, 0], &mut none).unwrap();
    assert!(apply(&[1], &mut none).is_err());
}

#[test]
fn rows_are_applied_each_or_one_to_all() {
    let words = [0b01, 0, 0b10, 1];
    let mut logits = [1.0f32; 80];
    apply_rows(&words, 2, &mut logits, 40).unwrap();
    let alive: Vec<usize> = (0..80).filter(|i| logits[*i] == 1.0).collect();
    assert_eq!(alive, [0, 41, 72]);
    let mut logits = [1.0f32; 80];
    apply_rows(&words[..2], 2, &mut logits, 40).unwrap();
    assert_eq!((0..80).filter(|i| logits[*i] == 1.0).collect::<Vec<_>>(), [0, 40]);
    for (words, per_row, columns, kind) in [
        (&words[..], 2, 16, ErrorKind::Mask),
        (&words[..3], 2, 40, ErrorKind::Mask),
        (&words[..], 0, 40, ErrorKind::Mask),
        (&words[..], 2, 41, ErrorKind::Logits),
        (&words[..], 2, 0, ErrorKind::Logits),
    ] {
        let error = apply_rows(words, per_row, &mut logits, columns).unwrap_err();
        assert_eq!(error.kind, kind, "{per_row} words, {columns} logits: {error}");
    }
    let error = apply_rows(&[0, 0, 1, 1 << 8], 2, &mut [1.0f32; 64], 32).unwrap_err();
    assert_eq!(error.place, "row 1");
}

#[test]
fn full_masks_have_no_id_past_their_size() {
    for size in [0, 1, 31, 32, 33, 64] {
        let all: BTreeSet<u32> = (0..size as u32).collect();
        let mut words = vec![0x5555_5555; words_for(size) + 2];
        AllowedTokens::All.write(size, &mut words);
        assert_eq!(words, [mask(size, &all), vec![0; 2]].concat());
    }
}
