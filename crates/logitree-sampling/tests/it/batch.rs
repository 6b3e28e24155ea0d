//! Batches give what a loop over the rows gives, whatever their size, order and number of threads; a bad row is named
//! and costs no other row its state.

use logitree_sampling::ErrorKind;
use logitree_sampling::{batch, presets, BatchOptions, Chain, Floats, Generator, Params, Picked, Row};
use logitree_testing::logits;
use logitree_tokens::mask::AllowedTokens;

fn chains(rng: Generator, n: usize) -> Vec<Chain> {
    let params = Params::default().seed(11).rng(rng).with("penalty_repeat", 1.2);
    presets::llama_cpp(&params).unwrap().sequences(n)
}

/// Four steps of a batch.
fn run(rows: &[Row<'_>], chains: &mut [Chain], threads: usize) -> Vec<Vec<Picked>> {
    let options = BatchOptions { threads, accept: true, log_probabilities: false };
    let mut chains: Vec<&mut Chain> = chains.iter_mut().collect();
    (0..4).map(|_| batch::sample(rows, &mut chains, options).unwrap()).collect()
}

#[test]
fn a_batch_equals_its_rows_one_by_one() {
    let logits: Vec<Vec<f32>> = (0..13).map(|row| logits(row, 320_000 + 7 * row as usize)).collect();
    let few = [3u32, 70, 71, 50_000];
    let words = vec![0x8421_0f0fu32; 1000];
    let allowed = |at: usize| {
        [AllowedTokens::All, AllowedTokens::Ids(&few), AllowedTokens::All, AllowedTokens::Mask(&words)]
            [at % 4]
    };
    let rows: Vec<Row> =
        logits.iter().enumerate().map(|(at, x)| Row { logits: x.into(), allowed: allowed(at) }).collect();
    for rng in Generator::ALL {
        let mut alone = chains(rng, rows.len());
        let mut slow = vec![vec![0; rows.len()]; 4];
        for (at, chain) in alone.iter_mut().enumerate() {
            for step in &mut slow {
                step[at] = chain.draw(rows[at].logits, rows[at].allowed).unwrap();
                chain.accept(step[at]);
            }
        }
        for threads in [1, 2, 5, 0] {
            let picked = run(&rows, &mut chains(rng, rows.len()), threads);
            let tokens: Vec<Vec<u32>> =
                picked.iter().map(|step| step.iter().map(|p| p.token).collect()).collect();
            assert_eq!(tokens, slow, "{rng:?} {threads} threads");
        }
        // Fewer rows, and in another order: each row keeps its chain.
        let order = [5usize, 12, 0, 3];
        let some: Vec<Row> = order.iter().map(|&at| rows[at]).collect();
        let all = chains(rng, rows.len());
        let mut own: Vec<Chain> = order.iter().map(|&at| all[at].clone()).collect();
        for (step, picked) in run(&some, &mut own, 3).iter().enumerate() {
            let tokens: Vec<u32> = picked.iter().map(|p| p.token).collect();
            assert_eq!(tokens, order.map(|at| slow[step][at]), "{rng:?}");
        }
    }
}

#[test]
fn states_of_philox_draw_by_sequence_and_position_alone() {
    let flat = vec![0.0f32; 5000];
    let params = Params::default().seed(1 << 40).rng(Generator::Philox).sequence(9);
    let parent = Chain::parse("dist", &params).unwrap();
    for (sequence, mut state) in parent.sequences(6).into_iter().enumerate() {
        let own = params.clone().sequence(sequence as u32);
        let mut fresh = Chain::parse("dist", &own).unwrap();
        for _ in 0..3 {
            let token = fresh.draw(&flat, AllowedTokens::All).unwrap();
            assert_eq!(state.draw(&flat, AllowedTokens::All).unwrap(), token);
            fresh.accept(token);
            state.accept(token);
        }
    }
}

#[test]
fn a_bad_row_is_named_and_nothing_is_accepted() {
    for threads in [1, 3] {
        let mut all: Vec<Vec<f32>> = (0..4).map(|row| logits(row, 800_000)).collect();
        all[2][77] = f32::NAN;
        all[3][5] = f32::INFINITY;
        let rows: Vec<Row> =
            all.iter().map(|x| Row { logits: x.into(), allowed: AllowedTokens::All }).collect();
        let mut states = chains(Generator::Mt19937, 4);
        let mut held: Vec<&mut Chain> = states.iter_mut().collect();
        let options = BatchOptions { threads, accept: true, log_probabilities: true };
        let error = batch::sample(&rows, &mut held, options).unwrap_err();
        assert_eq!((error.kind, &error.place[..]), (ErrorKind::Logits, "row 2, id 77"));
        let expected: Vec<u32> = chains(Generator::Mt19937, 2)
            .iter_mut()
            .zip(&rows)
            .map(|(chain, row)| chain.draw(row.logits, row.allowed).unwrap())
            .collect();
        assert!(states.iter().all(|chain| chain.accepted() == 0));
        assert_eq!([states[0].pick().unwrap(), states[1].pick().unwrap()], expected[..]);
        assert_eq!(states[2].pick().unwrap_err().kind, ErrorKind::State);
        let error = batch::sample(&rows, &mut [], options).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Sampling);
    }
    let no_selector = Chain::parse("temp", &Params::default()).unwrap().samplers()[..1].to_vec();
    let mut chain = Chain::new(no_selector).unwrap();
    let row = Row { logits: Floats::F32(&[1.0]), allowed: AllowedTokens::All };
    for log_probabilities in [false, true] {
        let options = BatchOptions { log_probabilities, ..BatchOptions::default() };
        let error = batch::sample(&[row], &mut [&mut chain], options).unwrap_err();
        assert_eq!((error.kind, &error.place[..]), (ErrorKind::Sampling, "row 0"));
    }
}

#[test]
fn log_probabilities_are_those_of_the_distributions() {
    let x = [1.0f32, 3.0, 2.0, f32::NEG_INFINITY, 0.5];
    let row = Row { logits: (&x).into(), allowed: AllowedTokens::Ids(&[0, 2, 4]) };
    let params = Params::default().seed(3).with("temp", 0.5);
    let mut chain = Chain::parse("topk;temp", &params.with("top_k", 2)).unwrap();
    let options = BatchOptions { log_probabilities: true, ..BatchOptions::default() };
    let picked = batch::sample(&[row], &mut [&mut chain], options).unwrap()[0];
    let all: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
    let z = f64::from(x[picked.token as usize]);
    assert!((picked.before - (z - all.ln())).abs() < 1e-6);
    let left = (2.0f64).exp() + (4.0f64).exp();
    assert!((picked.after - (z / 0.5 - left.ln())).abs() < 1e-6, "{picked:?}");
    let picked = batch::sample(&[row], &mut [&mut chain], BatchOptions::default()).unwrap()[0];
    assert!(picked.before.is_nan() && picked.after.is_nan());
}

#[test]
fn a_batch_works_where_threads_cannot_be_started() {
    const MARK: &str = "LOGITREE_TEST_NO_THREADS";
    if std::env::var_os(MARK).is_none() {
        // No system grants stacks of this size; the test's own thread is the process's first.
        let name = "batch::a_batch_works_where_threads_cannot_be_started";
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .env(MARK, "1")
            .env("RUST_MIN_STACK", (1u64 << 50).to_string())
            .output();
        let again = again.unwrap();
        let output = String::from_utf8_lossy(&again.stdout);
        return assert!(again.status.success() && output.contains("1 passed"), "{output}");
    }
    assert!(std::thread::Builder::new().spawn(|| ()).is_err());
    let logits = logits(1, 1 << 20);
    let rows = [Row { logits: Floats::F32(&logits), allowed: AllowedTokens::All }; 4];
    let tokens = |threads| run(&rows, &mut chains(Generator::Philox, 4), threads);
    assert_eq!(format!("{:?}", tokens(4)), format!("{:?}", tokens(1)));
}
