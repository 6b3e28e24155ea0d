//! libstdc++'s order of equal elements, and the index that its discrete distribution draws.
//!
//! llama.cpp sorts with `std::sort` and `std::partial_sort`, which promise nothing about equal elements. Parity mode
//! follows what libstdc++ 12 to 15 does (introsort with a median of three, heap select): Musser's introsort (1997) and
//! the textbook heap, step for step. Not for use where the order of equal elements does not matter.

/// Runs up to this length are left to insertion sort.
const SHORT: usize = 16;

/// Sorts as `std::sort` does, `before` being a strict weak order.
pub fn sort<T: Copy>(xs: &mut [T], before: impl Fn(&T, &T) -> bool) {
    if xs.is_empty() {
        return;
    }
    let depth = 2 * xs.len().ilog2();
    let n = xs.len();
    introsort(xs, 0, n, depth, &before);
    insertion_sort(&mut xs[..n.min(SHORT)], &before);
    for at in SHORT..n {
        insert_unguarded(xs, at, &before);
    }
}

/// Sorts the best `middle` elements to the front as `std::partial_sort` does.
pub fn partial_sort<T: Copy>(xs: &mut [T], middle: usize, before: impl Fn(&T, &T) -> bool) {
    if middle == 0 {
        return;
    }
    heap_select(xs, middle, &before);
    sort_heap(&mut xs[..middle], &before);
}

fn introsort<T: Copy>(
    xs: &mut [T],
    first: usize,
    mut last: usize,
    mut depth: u32,
    before: &impl Fn(&T, &T) -> bool,
) {
    while last - first > SHORT {
        if depth == 0 {
            let n = last - first;
            return partial_sort(&mut xs[first..last], n, before);
        }
        depth -= 1;
        let middle = first + (last - first) / 2;
        median_to_first(xs, first, [first + 1, middle, last - 1], before);
        let cut = partition_unguarded(xs, first + 1, last, first, before);
        introsort(xs, cut, last, depth, before);
        last = cut;
    }
}

fn median_to_first<T: Copy>(
    xs: &mut [T],
    first: usize,
    [a, b, c]: [usize; 3],
    before: &impl Fn(&T, &T) -> bool,
) {
    let less = |i: usize, j: usize| before(&xs[i], &xs[j]);
    // Each comparison is made only where it is needed, and in this order, as libstdc++ does.
    let median = match less(a, b) {
        true if less(b, c) => b,
        true if less(a, c) => c,
        true => a,
        false if less(a, c) => a,
        false if less(b, c) => c,
        false => b,
    };
    xs.swap(first, median);
}

/// Splits around the element at `pivot`, which is outside the range; the median of three stops both scans.
fn partition_unguarded<T: Copy>(
    xs: &mut [T],
    mut first: usize,
    mut last: usize,
    pivot: usize,
    before: &impl Fn(&T, &T) -> bool,
) -> usize {
    loop {
        while before(&xs[first], &xs[pivot]) {
            first += 1;
        }
        last -= 1;
        while before(&xs[pivot], &xs[last]) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        xs.swap(first, last);
        first += 1;
    }
}

fn insertion_sort<T: Copy>(xs: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for at in 1..xs.len() {
        if before(&xs[at], &xs[0]) {
            xs[..=at].rotate_right(1);
        } else {
            insert_unguarded(xs, at, before);
        }
    }
}

/// Moves the element at `at` left past all that it comes before; an element to the left stops it.
fn insert_unguarded<T: Copy>(xs: &mut [T], at: usize, before: &impl Fn(&T, &T) -> bool) {
    let value = xs[at];
    let mut hole = at;
    while hole > 0 && before(&value, &xs[hole - 1]) {
        xs[hole] = xs[hole - 1];
        hole -= 1;
    }
    xs[hole] = value;
}

fn heap_select<T: Copy>(xs: &mut [T], middle: usize, before: &impl Fn(&T, &T) -> bool) {
    for parent in (0..middle / 2).rev() {
        let value = xs[parent];
        sift(&mut xs[..middle], parent, value, before);
    }
    for at in middle..xs.len() {
        if before(&xs[at], &xs[0]) {
            let value = xs[at];
            xs[at] = xs[0];
            sift(&mut xs[..middle], 0, value, before);
        }
    }
}

fn sort_heap<T: Copy>(xs: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for last in (1..xs.len()).rev() {
        let value = xs[last];
        xs[last] = xs[0];
        sift(&mut xs[..last], 0, value, before);
    }
}

/// Puts `value` into the heap whose `hole` is free: the hole sinks to a leaf, the value rises from there.
fn sift<T: Copy>(heap: &mut [T], mut hole: usize, value: T, before: &impl Fn(&T, &T) -> bool) {
    let (top, n) = (hole, heap.len());
    while 2 * hole + 2 < n {
        let right = 2 * hole + 2;
        let child = if before(&heap[right], &heap[right - 1]) { right - 1 } else { right };
        heap[hole] = heap[child];
        hole = child;
    }
    if 2 * hole + 1 < n {
        heap[hole] = heap[2 * hole + 1];
        hole = 2 * hole + 1;
    }
    while hole > top && before(&heap[(hole - 1) / 2], &value) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    if let Some(free) = heap.get_mut(hole) {
        *free = value;
    }
}

/// The index that `std::discrete_distribution<int>` draws from these weights; `uniform` is asked for a double
/// only if there is more than one. NaN weights count as they do there: nothing reaches them but the last.
pub fn discrete(
    weights: impl Iterator<Item = f32> + Clone,
    cumulative: &mut Vec<f64>,
    uniform: impl FnOnce() -> f64,
) -> usize {
    cumulative.clear();
    cumulative.extend(weights.map(f64::from));
    if cumulative.len() < 2 {
        return 0;
    }
    let sum: f64 = cumulative.iter().fold(0.0, |sum, w| sum + w);
    let mut running = 0.0;
    for (at, w) in cumulative.iter_mut().enumerate() {
        let p = *w / sum;
        running = if at == 0 { p } else { running + p };
        *w = running;
    }
    let last = cumulative.len() - 1;
    cumulative[last] = 1.0;
    let draw = uniform();
    cumulative.partition_point(|&c| c < draw).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_sorted_is_in_order_and_complete(xs in prop::collection::vec(0u8..40, 0..400), k in 0usize..400) {
            let before = |a: &(u8, usize), b: &(u8, usize)| a.0 > b.0;
            let tagged: Vec<(u8, usize)> = xs.iter().copied().zip(0..).collect();
            let mut sorted = tagged.clone();
            sort(&mut sorted, before);
            prop_assert!(sorted.windows(2).all(|w| w[0].0 >= w[1].0));
            let mut partial = tagged.clone();
            let k = k.min(partial.len());
            if k > 0 {
                partial_sort(&mut partial, k, before);
            }
            for (a, b) in partial[..k].iter().zip(&sorted) {
                prop_assert_eq!(a.0, b.0);
            }
            for mut some in [sorted, partial] {
                some.sort_unstable_by_key(|x| x.1);
                prop_assert_eq!(&some, &tagged);
            }
        }
    }

    #[test]
    fn a_single_weight_draws_nothing() {
        let mut scratch = Vec::new();
        assert_eq!(discrete([1.0].into_iter(), &mut scratch, || unreachable!()), 0);
        assert_eq!(discrete([1.0, 3.0].into_iter(), &mut scratch, || 0.25), 0);
        assert_eq!(discrete([1.0, 3.0].into_iter(), &mut scratch, || 0.250_000_1), 1);
        // What has no weight is passed over, but the first is not: llama.cpp's own edge at a draw of 0.
        assert_eq!(discrete([0.0, 0.0, 1.0].into_iter(), &mut scratch, || 1e-9), 2);
    }
}
