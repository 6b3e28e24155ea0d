//! The orders of equal elements against those that libstdc++ itself gave: testdata/sampling/libstdcxx.toml, which
//! libstdcxx.cpp beside it wrote. The keys are made here by that program's rules, and checked against its hash.

use logitree_sampling::reference::libstdcxx::{partial_sort, sort};
use std::cell::{Cell, RefCell};
use toml::{Table, Value};

const ORDERS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sampling/libstdcxx.toml"));

/// (key, tag).
type Item = (u32, u32);

fn keys(pattern: &str, n: u32, distinct: u32, seed: u64) -> Vec<u32> {
    let scaled = |i: u32| (u64::from(i) * u64::from(distinct) / u64::from(n)) as u32;
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % distinct
    };
    match pattern {
        "random" => (0..n).map(|_| random()).collect(),
        "rising" => (0..n).map(scaled).collect(),
        "falling" => (0..n).rev().map(scaled).collect(),
        "pipe" => (0..n).map(|i| scaled(i.min(n - 1 - i))).collect(),
        "killer" => killer(n).into_iter().map(scaled).collect(),
        _ => panic!("no pattern {pattern}"),
    }
}

/// McIlroy's adversary, which answers a sort so that it must fall back to its heap: that it leads to the same keys
/// as with libstdc++ holds even the comparisons to the same ones in the same order.
fn killer(n: u32) -> Vec<u32> {
    let value = RefCell::new(vec![n; n as usize]);
    let (solid, candidate) = (Cell::new(0), Cell::new(0));
    let mut tags: Vec<u32> = (0..n).collect();
    sort(&mut tags, |&x, &y| {
        let mut value = value.borrow_mut();
        if value[x as usize] == n && value[y as usize] == n {
            value[if x == candidate.get() { x } else { y } as usize] = solid.replace(solid.get() + 1);
        }
        if value[x as usize] == n {
            candidate.set(x);
        } else if value[y as usize] == n {
            candidate.set(y);
        }
        value[x as usize] < value[y as usize]
    });
    value.into_inner().into_iter().map(|v| n - v.min(n - 1) - 1).collect()
}

fn hash(words: impl Iterator<Item = u32>) -> u32 {
    words.fold(2_166_136_261, |hash, word| (hash ^ word).wrapping_mul(16_777_619))
}

#[test]
fn equal_elements_are_ordered_as_by_libstdcxx() {
    let table: Table = ORDERS.parse().unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 248);
    for row in rows {
        let row = row.as_array().unwrap();
        let number = |at: usize| row[at].as_integer().unwrap() as u32;
        let (pattern, n, distinct) = (row[0].as_str().unwrap(), number(1), number(2));
        let made = keys(pattern, n, distinct, u64::from(number(3)));
        assert_eq!(hash(made.iter().copied()), number(5), "keys of {row:?}");
        let mut items: Vec<Item> = made.into_iter().zip(0..).collect();
        match number(4) {
            0 => sort(&mut items, |a, b| a.0 > b.0),
            middle => partial_sort(&mut items, middle as usize, |a, b| a.0 > b.0),
        }
        assert_eq!(hash(items.iter().map(|x| x.1)), number(6), "order of {row:?}");
    }
    assert!(rows.iter().any(|row| row[0] == Value::from("killer")));
}

#[test]
fn nan_stays_in_bounds() {
    // A comparison with NaN is no order; libstdc++ may then run out of the array.
    for n in 0..400 {
        let xs: Vec<f32> = keys("random", n, 5, u64::from(n))
            .into_iter()
            .map(|k| if k == 0 { f32::NAN } else { k as f32 })
            .collect();
        let mut sorted = xs.clone();
        sort(&mut sorted, |a, b| a > b);
        let mut partial = xs.clone();
        partial_sort(&mut partial, xs.len() / 2, |a, b| a > b);
        for some in [sorted, partial] {
            let count = |xs: &[f32]| xs.iter().filter(|x| x.is_nan()).count();
            assert_eq!((some.len(), count(&some)), (xs.len(), count(&xs)));
        }
    }
}
