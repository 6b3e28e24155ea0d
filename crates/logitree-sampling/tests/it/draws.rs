//! The draws as numbers: chi-square tests of what is drawn, of pairs of draws and of neighbouring sequences, and the
//! rates and means that samplers promise. Seeds are fixed, so that a run is the same each time.
//!
//! A p-value is asked to lie between `LEAST` and 1 - `LEAST`: a sound generator falls outside once in 5,000 tests, and
//! this file has about 60, whose seeds were taken as they came. Too good a fit is as wrong as a bad one.

use logitree_sampling::Draws;
use logitree_sampling::{AdaptiveP, Chain, Dist, Generator, Mirostat, MirostatV2, Mode, Sampler, Seed, Xtc};
use logitree_tokens::mask::AllowedTokens;

const LEAST: f64 = 1e-4;
/// Standard deviations that a mean may be off: beyond them once in 15,000.
const SIGMAS: f64 = 4.0;

fn seed(generator: Generator) -> Seed {
    Seed { generator, seed: 20_26, sequence: 1 }
}

/// log of the gamma function at x > 0, by Stirling's series after shifting x to 10 and more; good to 1e-10.
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    (x - 0.5) * x.ln() - x + 0.918_938_533_204_672_7 + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
        + 1.0 / (1260.0 * x.powi(5))
        - shift
}

/// The probability that a chi-square of `k` degrees of freedom exceeds `x`: 1 less the regularised lower incomplete
/// gamma function of k/2 at x/2, by its power series, whose terms are all positive.
fn p_value(x: f64, k: usize) -> f64 {
    let (a, x) = (k as f64 / 2.0, x / 2.0);
    let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
    while term > sum * 1e-17 {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    1.0 - sum * (a * x.ln() - x - log_gamma(a)).exp()
}

/// Holds counts to their expected values, 5 and more each.
fn check(counts: &[u64], expected: &[f64], what: &str) {
    assert!(expected.iter().all(|e| *e >= 5.0), "{what}: too few draws");
    let x: f64 = counts.iter().zip(expected).map(|(&c, e)| (c as f64 - e).powi(2) / e).sum();
    let p = p_value(x, counts.len() - 1);
    assert!(p > LEAST && p < 1.0 - LEAST, "{what}: chi-square {x:.1}, p {p:.6}");
}

fn check_even(counts: &[u64], what: &str) {
    let each = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    check(counts, &vec![each; counts.len()], what);
}

fn chain(sampler: impl Sampler + 'static) -> Chain {
    Chain::new(vec![Box::new(sampler)]).unwrap()
}

fn drawn(chain: &mut Chain, logits: &[f32], n: usize) -> Vec<u32> {
    let each = |_| {
        let token = chain.draw(logits, AllowedTokens::All).unwrap();
        chain.accept(token);
        token
    };
    (0..n).map(each).collect()
}

fn counts(tokens: &[u32], cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    tokens.iter().for_each(|&t| counts[t as usize] += 1);
    counts
}

fn expected(logits: &[f32], n: usize) -> Vec<f64> {
    let e: Vec<f64> = logits.iter().map(|&x| f64::from(x).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|e| e / sum * n as f64).collect()
}

#[test]
fn the_p_value_is_that_of_the_tables() {
    // 95 % and 99.9 % points of the chi-square distribution (Abramowitz and Stegun, table 26.8).
    for (k, x, p) in [(1, 3.841_46, 0.05), (10, 18.307, 0.05), (60, 79.0819, 0.05), (10, 29.588, 0.001)] {
        assert!((p_value(x, k) - p).abs() < 1e-5, "{k} {x}: {}", p_value(x, k));
    }
}

#[test]
fn dist_draws_by_probability() {
    let few: Vec<f32> = [4.0, 0.0, 1.0, 2.5, -1.0, 3.0, 3.9, 0.5].to_vec();
    let many: Vec<f32> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) as f32 / 1e5).collect();
    for generator in Generator::ALL {
        for (logits, n) in [(&few, 60_000), (&many, 45_000)] {
            let label = format!("{generator:?} over {}", logits.len());
            let tokens = drawn(&mut chain(Dist::new(seed(generator)).unwrap()), logits, n);
            check(&counts(&tokens, logits.len()), &expected(logits, n), &label);
        }
        let mut parity = chain(Dist::new(seed(generator)).unwrap()).with_mode(Mode::Parity).unwrap();
        let tokens = drawn(&mut parity, &few, 60_000);
        check(&counts(&tokens, 8), &expected(&few, 60_000), "parity");
        // Where only some are allowed, those are drawn as though there were no others.
        let allowed = [1, 3, 4, 7];
        let mut masked = chain(Dist::new(seed(generator)).unwrap());
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            let token = masked.draw(&few, AllowedTokens::Ids(&allowed)).unwrap();
            masked.accept(token);
            counts[allowed.iter().position(|&l| l == token).unwrap()] += 1;
        }
        check(&counts, &expected(&allowed.map(|i| few[i as usize]), 40_000), "masked");
    }
}

#[test]
fn consecutive_draws_are_independent() {
    for generator in Generator::ALL {
        let tokens = drawn(&mut chain(Dist::new(seed(generator)).unwrap()), &[0.5; 8], 160_000);
        for lag in [1, 2, 7] {
            // Pairs that do not overlap.
            let mut pairs = [0; 64];
            for start in tokens.chunks_exact(2 * lag) {
                (0..lag).for_each(|i| pairs[(start[i] * 8 + start[i + lag]) as usize] += 1);
            }
            check_even(&pairs, &format!("{generator:?} at lag {lag}"));
        }
    }
}

/// Holds two lists of numbers of [0, 1) to be independent: by 64 cells, and by their correlation, whose deviation is
/// 1 / sqrt(n).
fn check_independent(a: &[f64], b: &[f64], what: &str) {
    let mut cells = [0; 64];
    let mut product = 0.0;
    for (x, y) in a.iter().zip(b) {
        cells[(x * 8.0) as usize * 8 + (y * 8.0) as usize] += 1;
        product += (x - 0.5) * (y - 0.5);
    }
    check_even(&cells, what);
    let n = a.len() as f64;
    let r = product / n * 12.0;
    assert!(r.abs() < SIGMAS / n.sqrt(), "{what}: correlation {r}");
}

#[test]
fn sequences_streams_and_seeds_of_philox_are_independent() {
    let numbers = |seed, sequence, stream| -> Vec<f64> {
        let mut draws = Draws::new(Seed { generator: Generator::Philox, seed, sequence }, stream);
        let each = |_| {
            let x = draws.double();
            draws.accept();
            x
        };
        (0..30_000).map(each).collect()
    };
    let base = numbers(7, 0, 0);
    for (seed, sequence, stream) in [
        (7, 1, 0),
        (7, 2, 0),
        (7, 1 << 31, 0),
        (7, u32::MAX, 0),
        (7, 0, 1),
        (7, 0, 4),
        (8, 0, 0),
        (7 + (1 << 32), 0, 0),
    ] {
        let other = numbers(seed, sequence, stream);
        check_independent(&base, &other, &format!("philox {seed} {sequence} {stream}"));
        // Nor is one the other a step later.
        check_independent(
            &base[1..],
            &other[..base.len() - 1],
            &format!("philox {seed} {sequence} {stream}, shifted"),
        );
    }
    // Across sequences at one position, which is how a batch draws.
    let at = |position: usize| -> Vec<f64> {
        let each = |sequence| {
            let mut draws = Draws::new(Seed { generator: Generator::Philox, seed: 7, sequence }, 0);
            (0..position).for_each(|_| draws.accept());
            draws.double()
        };
        (0..30_000).map(each).collect()
    };
    check_independent(&at(0), &at(1), "philox across sequences");
}

#[test]
fn rows_of_neighbouring_seeds_are_independent() {
    // What resequence gives the generators that know no sequences.
    for generator in [Generator::Mt19937, Generator::Xoroshiro128Plus] {
        let first = |seed| Draws::new(Seed { generator, seed, sequence: 0 }, 0).double();
        let even: Vec<f64> = (0..8_000).map(|s| first(2 * s)).collect();
        let odd: Vec<f64> = (0..8_000).map(|s| first(2 * s + 1)).collect();
        check_independent(&even, &odd, &format!("{generator:?}"));
    }
}

#[test]
fn floats_and_doubles_are_even() {
    for generator in Generator::ALL {
        let mut draws = Draws::new(seed(generator), 0);
        let (mut floats, mut doubles, mut low) = (vec![0; 1000], vec![0; 1000], vec![0; 256]);
        for _ in 0..200_000 {
            let x = draws.float();
            draws.accept();
            let y = draws.double();
            draws.accept();
            assert!((0.0..1.0).contains(&x) && (0.0..1.0).contains(&y));
            floats[(x * 1000.0) as usize] += 1;
            doubles[(y * 1000.0) as usize] += 1;
            // The lowest of the 24 bits that a float below 1/2 and above 1/4 surely has.
            if (0.25..0.5).contains(&x) {
                low[(x * 16_777_216.0) as usize % 256] += 1;
            }
        }
        check_even(&floats, &format!("{generator:?}, floats"));
        check_even(&doubles, &format!("{generator:?}, doubles"));
        check_even(&low, &format!("{generator:?}, low bits"));
    }
}

#[test]
fn xtc_removes_at_its_rate() {
    const N: usize = 30_000;
    for generator in Generator::ALL {
        for p in [0.05f32, 0.5, 0.93] {
            let mut chain = chain(Xtc::new(p, 0.1, 0, seed(generator)).unwrap());
            let mut struck = 0.0;
            for _ in 0..N {
                chain.apply(&[3.0, 2.9, 0.0], AllowedTokens::All, None).unwrap();
                struck += f64::from(u8::from(chain.candidates().len() < 3));
                chain.accept(0);
            }
            let p = f64::from(p);
            let off = (struck / N as f64 - p).abs() / (p * (1.0 - p) / N as f64).sqrt();
            assert!(off < SIGMAS, "{generator:?} {p}: {off} deviations");
        }
    }
}

/// Zipf's law over 2,000 tokens, a little different each step.
fn zipf(logits: &mut Vec<f32>, step: u32) {
    logits.clear();
    logits.extend((0..2000u32).map(|i| {
        let noise = ((i ^ step).wrapping_mul(0x9e37_79b9) >> 8) as f32 / (1 << 24) as f32;
        -1.1 * (i as f32 + 1.0).ln() + noise
    }));
}

#[test]
fn mirostat_keeps_its_mean_surprisal() {
    let mut logits = Vec::new();
    for generator in Generator::ALL {
        for tau in [2.0, 4.0] {
            let seed = seed(generator);
            let both: [Box<dyn Sampler>; 2] = [
                Box::new(Mirostat::new(None, tau, 0.1, 100, seed).unwrap()),
                Box::new(MirostatV2::new(tau, 0.1, seed).unwrap()),
            ];
            for sampler in both {
                let mut chain = Chain::new(vec![sampler]).unwrap();
                let mut sum = 0.0;
                for step in 0..2500 {
                    zipf(&mut logits, step);
                    chain.apply(&logits, AllowedTokens::All, None).unwrap();
                    let token = chain.pick().unwrap();
                    let c = chain.candidates();
                    if step >= 500 {
                        sum -= f64::from(c.probabilities()[c.selected().unwrap()]).log2();
                    }
                    chain.accept(token);
                }
                // mu is the sum of all errors times eta: it stays within some bits, and so the mean of 2,000 within
                // those / (0.1 * 2,000).
                let mean = sum / 2000.0;
                assert!((mean - f64::from(tau)).abs() < 0.05, "{}: {mean} bits", chain.describe());
            }
        }
    }
}

#[test]
fn adaptive_p_approaches_its_target() {
    let logits: Vec<f32> = [0.35f32, 0.25, 0.18, 0.12, 0.07, 0.03].iter().map(|p| p.ln()).collect();
    let mean = |sampler: Box<dyn Sampler>| {
        let tokens = drawn(&mut Chain::new(vec![sampler]).unwrap(), &logits, 12_000);
        tokens.iter().map(|&t| f64::from(logits[t as usize].exp())).sum::<f64>() / tokens.len() as f64
    };
    // What drawing alone gives: the sum of the squares.
    let expected: f64 = logits.iter().map(|&x| f64::from(x.exp()).powi(2)).sum();
    for generator in Generator::ALL {
        let plain = mean(Box::new(Dist::new(seed(generator)).unwrap()));
        assert!((plain - expected).abs() < 0.004, "{plain} {expected}");
        for target in [0.1f32, 0.18, 0.3] {
            let adapted = mean(Box::new(AdaptiveP::new(target, 0.9, seed(generator)).unwrap()));
            let (off, before) = ((adapted - f64::from(target)).abs(), (plain - f64::from(target)).abs());
            assert!(off < 0.02 && off < before / 2.0, "{generator:?} {target}: {adapted}, {plain} without");
        }
    }
}
