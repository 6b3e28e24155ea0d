//! Chains as numbers, for kernels.

use logitree_sampling::{
    step_words, Chain, Dist, Generator, Greedy, MinP, Mode, Penalties, Sampler, Seed, Steering, Step, Temp,
    TopK, TopP,
};

fn chain(samplers: Vec<Box<dyn Sampler>>) -> Chain {
    Chain::new(samplers).unwrap()
}

fn philox(sequence: u32) -> Box<dyn Sampler> {
    Box::new(Dist::new(Seed { generator: Generator::Philox, seed: 7 << 32 | 5, sequence }).unwrap())
}

#[test]
fn a_chain_s_steps_are_its_samplers_that_do_something() {
    let off = Penalties::new(64, 1.0, 0.0, 0.0).unwrap();
    let (p, least) = (TopP::new(0.9, 1).unwrap(), MinP::new(0.5, 0).unwrap());
    let mut chain = chain(vec![
        Box::new(off),
        Box::new(TopK::new(40)),
        Box::new(TopK::new(0)),
        Box::new(p),
        Box::new(least),
        Box::new(Temp::new(0.5).unwrap()),
        philox(3),
    ]);
    [1, 2].into_iter().for_each(|token| chain.accept(token));
    let steps = [
        Step::TopK(40),
        Step::TopP(0.9),
        Step::MinP(0.5f32.ln()),
        Step::Temperature(0.5),
        Step::Draw { key: 7 << 32 | 5, sequence: 3, position: 2 },
    ];
    assert_eq!(chain.steps().unwrap(), steps);
    chain.rollback(1).unwrap();
    assert_eq!(
        chain.steps().unwrap().last(),
        Some(&Step::Draw { key: 7 << 32 | 5, sequence: 3, position: 1 })
    );
}

#[test]
fn words_are_rows_of_one_width() {
    let sorted = chain(vec![Box::new(TopP::new(0.5, 0).unwrap()), Box::new(TopK::new(9)), philox(1)]);
    let greedy = chain(vec![Box::new(Greedy)]);
    let nucleus = chain(vec![Box::new(TopP::new(0.5, 0).unwrap()), philox(0)]);
    let (words, width) = step_words(&[&sorted, &greedy, &nucleus]).unwrap();
    let half = 0.5f32.to_bits();
    assert_eq!(width, 12);
    assert_eq!(words[..12], [2, 1, 5, 7, 1, 0, 0, 9, 2, half, 1, 9]);
    assert_eq!(words[12..24], [0; 12]);
    assert_eq!(words[24..], [1, 1, 5, 7, 0, 0, 0, u32::MAX, 2, half, 0, 0]);
    assert!(step_words(&[]).unwrap().0.is_empty());
}

#[test]
fn other_chains_are_errors_that_name_row_and_sampler() {
    let known = chain(vec![Box::new(Greedy)]);
    let penalties = chain(vec![Box::new(Penalties::new(64, 1.5, 0.0, 0.0).unwrap()), Box::new(Greedy)]);
    let wrong = step_words(&[&known, &penalties]).unwrap_err();
    assert_eq!(wrong.place, "row 1, sampler 1 of 2");
    assert!(wrong.message.starts_with("penalties("), "{wrong}");
    let mut steered = known.clone();
    let mut steering = Steering::new();
    steering.add(3, 1.0).unwrap();
    steered.steer(&steering);
    let mut measured = known.clone();
    measured.measure(true);
    let others = [
        chain(vec![Box::new(TopP::new(0.5, 2).unwrap()), Box::new(Greedy)]),
        chain(vec![Box::new(MinP::new(0.5, 2).unwrap()), Box::new(Greedy)]),
        chain(vec![Box::new(Dist::new(Seed::mt19937(1)).unwrap())]),
        chain(vec![Box::new(TopK::new(3))]),
        known.clone().with_mode(Mode::Parity).unwrap(),
        steered,
        measured,
    ];
    for other in others {
        assert!(other.steps().is_err(), "{}", other.describe());
    }
}
