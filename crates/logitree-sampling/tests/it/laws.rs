//! The laws that every sampler keeps, in fast and in parity mode, and whole chains with them: each row of
//! the table is put through all of them.

use logitree_sampling::registry::{SamplerRow, SAMPLERS};
use logitree_sampling::ErrorKind;
use logitree_sampling::{
    Candidates, Chain, Generator, Mode, Sampler, Seed, StateReader, StateWriter, TokenArray,
};
use logitree_testing::samplers::{build, complete, knobs, promises, whole_chains, Knobs, Order, World};
use logitree_tokens::mask::AllowedTokens;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Each sampler of the table can be built from knobs, under its own name and none twice.
#[test]
fn every_sampler_of_the_table_is_put_through_the_laws() {
    let table: BTreeSet<&str> = SAMPLERS.iter().map(|row| row.name).collect();
    assert_eq!(SAMPLERS.len(), table.len(), "a sampler has two rows");
    for row in SAMPLERS {
        let built = build(row, [0.5; 4], Seed::mt19937(1), &World::default());
        assert_eq!(built.name(), row.name, "the row builds another sampler");
    }
}

/// The keywords of the parameters that can be changed as numbers.
fn numbers(row: &SamplerRow) -> impl Iterator<Item = &'static str> {
    let numbers = row.parameters.iter().filter(|parameter| parameter.kind.is_number());
    numbers.map(|parameter| parameter.keyword)
}

/// What happens to a chain between two looks at it.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A token from outside.
    Accept(u32),
    /// A forced token.
    Forced(u32),
    /// A token sampled among all and accepted.
    Sample,
    /// The same among every third.
    Masked,
    /// A token sampled and thrown away.
    Idle,
}

#[derive(Debug, Clone)]
struct Case {
    logits: Vec<f32>,
    history: Vec<u32>,
    knobs: [Knobs; 2],
    seed: Seed,
    steps: Vec<Step>,
}

fn logits() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        6 => -9f32..9.0,
        // A coarse grid makes ties.
        4 => (-8i32..8).prop_map(|x| x as f32 / 2.0),
        1 => Just(f32::NEG_INFINITY),
    ];
    let size = prop_oneof![4 => 1usize..40, 2 => 40usize..700, 1 => 700usize..2500];
    let all = size.prop_flat_map(move |n| prop::collection::vec(logit.clone(), n));
    // One at each third place, for the masks of these tests.
    all.prop_map(|mut all| {
        all[0] = all[0].max(-9.0);
        all
    })
}

fn case() -> impl Strategy<Value = Case> {
    let token = 0u32..12;
    let step = prop_oneof![
        2 => token.clone().prop_map(Step::Accept),
        1 => token.clone().prop_map(Step::Forced),
        4 => Just(Step::Sample),
        2 => Just(Step::Masked),
        1 => Just(Step::Idle),
    ];
    let history = prop::collection::vec(token, 0..30);
    let seed = (0usize..3, any::<u32>(), 0u32..3);
    (logits(), history, [knobs(), knobs()], seed, prop::collection::vec(step, 1..25)).prop_map(
        |(logits, history, knobs, (rng, seed, sequence), steps)| {
            let seed = Seed { generator: Generator::ALL[rng], seed: u64::from(seed), sequence };
            Case { logits, history, knobs, seed, steps }
        },
    )
}

/// Every third id.
fn thirds(n: usize) -> Vec<u32> {
    (0..n as u32).step_by(3).collect()
}

fn run(chain: &mut Chain, case: &Case, steps: &[Step]) -> Vec<Result<u32, String>> {
    let few = thirds(case.logits.len());
    let each = |&step: &Step| {
        let token = match step {
            Step::Accept(token) => Ok(token),
            Step::Forced(token) => {
                chain.forced();
                Ok(token)
            }
            Step::Sample | Step::Idle => chain.draw(&case.logits, AllowedTokens::All),
            Step::Masked => chain.draw(&case.logits, AllowedTokens::Ids(&few)),
        };
        if let (Ok(token), false) = (&token, matches!(step, Step::Idle)) {
            chain.accept(*token);
        }
        token.map_err(|error| error.to_string())
    };
    steps.iter().map(each).collect()
}

/// The chains of every row and the whole ones, in both modes, with the history accepted.
fn chains(case: &Case) -> Vec<Chain> {
    let rows = SAMPLERS.iter().map(|row| complete(row, case.knobs[0], case.seed, &World::default()));
    let all: Vec<Chain> = rows.chain(whole_chains(case.knobs[0], case.seed)).collect();
    let mut both = Vec::new();
    for chain in all {
        both.extend(chain.clone().with_mode(Mode::Parity));
        both.push(chain);
    }
    for chain in &mut both {
        case.history.iter().for_each(|&t| chain.accept(t));
    }
    both
}

/// The rows over these logits, after the history; `None` where infill wants a token that is not allowed.
fn apply_rows(
    rows: &[&SamplerRow],
    case: &Case,
    world: &World,
    logits: &[f32],
    allowed: AllowedTokens<'_>,
    mode: Mode,
) -> Option<Chain> {
    let samplers = rows.iter().zip(case.knobs).map(|(row, knobs)| build(row, knobs, case.seed, world));
    let mut chain = Chain::new(samplers.collect()).unwrap().with_mode(mode).ok()?;
    case.history.iter().for_each(|&t| chain.accept(world.here(t)));
    match chain.apply(logits, allowed, None) {
        Ok(()) => Some(chain),
        Err(error) => {
            assert!(chain.names().contains(&"infill") && error.kind == ErrorKind::Mask, "{error}");
            None
        }
    }
}

/// What is above -inf.
fn alive(chain: &Chain) -> Vec<(u32, f32)> {
    let c = chain.candidates();
    let all = c.ids().iter().copied().zip(c.logits().iter().copied());
    all.filter(|c| c.1 > f32::NEG_INFINITY).collect()
}

fn sorted(chain: &Chain) -> Vec<f32> {
    let mut all: Vec<f32> = alive(chain).iter().map(|c| c.1).collect();
    all.sort_unstable_by(|a, b| b.total_cmp(a));
    all
}

fn state(sampler: &dyn Sampler) -> Vec<u64> {
    let mut writer = StateWriter::default();
    sampler.save(&mut writer);
    writer.words().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_sampler_only_narrows(case in case()) {
        let (few, n) = (thirds(case.logits.len()), case.logits.len());
        for row in SAMPLERS {
            let (filters, _) = promises(row);
            for mode in [Mode::Fast, Mode::Parity] {
                for allowed in [AllowedTokens::All, AllowedTokens::Ids(&few)] {
                    let world = World::default();
                    let Some(chain) = apply_rows(&[row], &case, &world, &case.logits, allowed, mode) else { continue };
                    let left = alive(&chain);
                    prop_assert!(!left.is_empty(), "{}", row.name);
                    let mut ids: Vec<u32> = left.iter().map(|c| c.0).collect();
                    ids.sort_unstable();
                    prop_assert!(ids.windows(2).all(|w| w[0] < w[1]), "{} twice", row.name);
                    for (id, x) in left {
                        prop_assert!((id as usize) < n && allowed.contains(id), "{} adds {}", row.name, id);
                        let before = case.logits[id as usize];
                        // infill's end of the text comes as it is.
                        prop_assert!(before > f32::NEG_INFINITY || row.name == "infill", "{} revives {}", row.name, id);
                        prop_assert!(!filters || x.to_bits() == before.to_bits(), "{} changes {}", row.name, id);
                    }
                    let sum: f64 = chain.candidates().probabilities().iter().copied().map(f64::from).sum();
                    prop_assert!((sum - 1.0).abs() < 1e-5, "{}: {}", row.name, sum);
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_candidates_does_not_matter(case in case(), salt in 1u64..1000) {
        let n = case.logits.len();
        let mut places: Vec<usize> = (0..n).collect();
        places.sort_by_key(|&at| (at as u64 + 1).wrapping_mul(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 20);
        let moved: Vec<f32> = places.iter().map(|&at| case.logits[at]).collect();
        for row in SAMPLERS {
            let (filters, order) = promises(row);
            if order == Order::Matters {
                continue;
            }
            let world = World::default();
            let one = apply_rows(&[row], &case, &world, &case.logits, AllowedTokens::All, Mode::Fast).unwrap();
            let other = apply_rows(&[row], &case, &world, &moved, AllowedTokens::All, Mode::Fast).unwrap();
            let (a, b) = (sorted(&one), sorted(&other));
            // Sums of more than 1,024 are taken in blocks, in the order of the candidates.
            if order == Order::Free && n <= 1024 {
                prop_assert_eq!(a, b, "{}", one.describe());
            } else {
                let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
                let close = |(x, y): (&f32, &f32)| filters && x == y || !filters && (x - y).abs() <= x.abs() * 1e-5;
                prop_assert!(short.iter().zip(&long).all(close), "{}", one.describe());
                let rest = &long[short.len()..];
                prop_assert!(rest.windows(2).all(|w| w[0] == w[1]), "{} {:?}", one.describe(), rest);
            }
        }
    }

    #[test]
    fn the_masked_result_equals_the_result_on_the_compacted_vocabulary(case in case(), every in 2usize..4, then in 0..SAMPLERS.len()) {
        let ids: Vec<u32> = (0..case.logits.len() as u32).step_by(every).collect();
        let small: Vec<f32> = ids.iter().map(|&id| case.logits[id as usize]).collect();
        let compact = World { ids: Some(ids.clone()) };
        // Each sampler alone, and each before another.
        for rows in SAMPLERS.iter().flat_map(|row| [vec![row], vec![row, &SAMPLERS[then]]]) {
            let first = build(rows[0], case.knobs[0], case.seed, &compact);
            if rows.len() == 2 && (rows[0].name == "infill" || first.selects()) {
                continue;
            }
            for mode in [Mode::Fast, Mode::Parity] {
                let whole = World::default();
                let one = apply_rows(&rows, &case, &whole, &case.logits, AllowedTokens::Ids(&ids), mode);
                let other = apply_rows(&rows, &case, &compact, &small, AllowedTokens::All, mode);
                prop_assert_eq!(one.is_none(), other.is_none(), "{:?}", rows);
                let (Some(mut one), Some(mut other)) = (one, other) else { continue };
                let named: Vec<u32> = other.candidates().ids().iter().map(|&id| ids[id as usize]).collect();
                prop_assert_eq!(one.candidates().ids(), &named[..], "{}", one.describe());
                prop_assert_eq!(one.candidates().logits(), other.candidates().logits(), "{}", one.describe());
                prop_assert_eq!(one.candidates().probabilities(), other.candidates().probabilities(), "{:?}", rows);
                if let Ok(token) = other.pick() {
                    prop_assert_eq!(one.pick().unwrap(), ids[token as usize]);
                }
            }
        }
    }

    #[test]
    fn rollback_equals_replay(case in case(), back in 1usize..25) {
        for chain in chains(&case) {
            let mut gone = chain.clone();
            run(&mut gone, &case, &case.steps);
            let accepted = gone.accepted() - case.history.len();
            let back = back.min(accepted);
            if back == 0 {
                continue;
            }
            gone.rollback(back).unwrap();
            // Replayed up to the token before the first one taken back.
            let mut again = chain.clone();
            let mut upto = 0;
            while again.accepted() < gone.accepted() {
                run(&mut again, &case, &case.steps[upto..upto + 1]);
                upto += 1;
            }
            prop_assert_eq!(gone.snapshot(), again.snapshot(), "{}", chain.describe());
            let rest = &case.steps[upto..];
            prop_assert_eq!(run(&mut gone, &case, rest), run(&mut again, &case, rest), "{}", chain.describe());
            prop_assert_eq!(gone.snapshot(), again.snapshot(), "{}", chain.describe());
            let most = gone.accepted();
            prop_assert_eq!(gone.rollback(most + 1).unwrap_err().kind, ErrorKind::State);
        }
    }

    #[test]
    fn copies_and_snapshots_continue_alike_and_independently(case in case()) {
        let half = case.steps.len() / 2;
        for chain in chains(&case) {
            let mut one = chain.clone();
            let mut initial = chain.clone();
            initial.reset();
            let first = run(&mut one, &case, &case.steps[..half]);
            let saved = one.snapshot();
            let mut copy = one.clone();
            let rest = run(&mut one, &case, &case.steps[half..]);
            let after = one.snapshot();
            prop_assert_eq!(copy.snapshot(), saved.clone(), "the copy of {} moved", chain.describe());
            prop_assert_eq!(run(&mut copy, &case, &case.steps[half..]), rest.clone(), "{}", chain.describe());
            prop_assert_eq!(copy.snapshot(), after.clone());
            // Into a chain that is elsewhere, and back into one that continued.
            for other in [&mut initial, &mut one] {
                other.restore(&saved).unwrap();
                prop_assert_eq!(other.snapshot(), saved.clone());
                prop_assert_eq!(run(other, &case, &case.steps[half..]), rest.clone(), "{}", chain.describe());
                prop_assert_eq!(other.snapshot(), after.clone());
            }
            one.reset();
            case.history.iter().for_each(|&t| one.accept(t));
            prop_assert_eq!(run(&mut one, &case, &case.steps[..half]), first, "{}", chain.describe());
            prop_assert_eq!(one.snapshot(), saved);
        }
    }

    #[test]
    fn a_forced_token_equals_the_only_candidate(case in case()) {
        let only = case.logits.iter().rposition(|x| x.is_finite()).unwrap() as u32;
        for chain in chains(&case) {
            // infill may end the text where its end is not allowed, which is an error.
            if chain.names().contains(&"infill") {
                continue;
            }
            let (mut skipped, mut sampled) = (chain.clone(), chain);
            skipped.forced();
            prop_assert_eq!(sampled.draw(&case.logits, AllowedTokens::Ids(&[only])).unwrap(), only);
            skipped.accept(only);
            sampled.accept(only);
            prop_assert_eq!(skipped.snapshot(), sampled.snapshot(), "{}", skipped.describe());
            prop_assert_eq!(run(&mut skipped, &case, &case.steps), run(&mut sampled, &case, &case.steps));
        }
    }

    #[test]
    fn a_noop_changes_nothing(case in case()) {
        let mut seen = 0;
        for row in SAMPLERS {
            let mut sampler = build(row, case.knobs[0], case.seed, &World::default());
            case.history.iter().for_each(|&t| sampler.accept(t));
            if !sampler.is_noop() {
                continue;
            }
            seen += 1;
            let saved = state(&*sampler);
            let mut c = Candidates::begin(Candidates::default(), &case.logits, AllowedTokens::All).unwrap();
            let mut array = TokenArray::default();
            array.begin(&c);
            let before = array.data.clone();
            sampler.apply(&mut c);
            c.list();
            let left: Vec<(u32, f32)> = c.ids().iter().copied().zip(c.logits().iter().copied()).collect();
            prop_assert_eq!(left.len(), before.len(), "{}", sampler.describe());
            for (at, (id, x)) in left.into_iter().enumerate() {
                prop_assert!(id as usize == at && x == case.logits[at], "{} {}", sampler.describe(), id);
            }
            if let Some(reference) = sampler.reference() {
                reference.apply_reference(&mut array);
                prop_assert!(array.fault.is_none() && array.data.len() == before.len(), "{}", sampler.describe());
                for (a, b) in array.data.iter().zip(&before) {
                    prop_assert_eq!((a.id, a.logit), (b.id, b.logit), "{}", sampler.describe());
                }
            }
            prop_assert_eq!(state(&*sampler), saved, "{} keeps a trace", sampler.describe());
            sampler.forced();
            prop_assert_eq!(state(&*sampler), state(&*sampler.clone_box()));
        }
        // temp(1), penalties of nothing and the like are not rare.
        prop_assert!(seen > 0 || case.knobs[0][0] > 0.0);
    }

    #[test]
    fn setting_a_parameter_equals_building_with_it(case in case()) {
        for row in SAMPLERS {
            let mut set = complete(row, case.knobs[0], case.seed, &World::default());
            let built = complete(row, case.knobs[1], case.seed, &World::default());
            if row.name == "logit_bias" {
                continue;
            }
            for parameter in numbers(row) {
                let value = built.parameter(parameter).unwrap();
                set.set_parameter(parameter, value).unwrap();
                prop_assert_eq!(set.parameter(parameter), Some(value), "{}", parameter);
            }
            prop_assert_eq!(set.describe(), built.describe());
            for mode in [Mode::Fast, Mode::Parity] {
                let (mut set, mut built) = (set.clone(), built.clone());
                if mode == Mode::Parity && set.clone().with_mode(mode).is_err() {
                    continue;
                }
                set = set.with_mode(mode).unwrap();
                built = built.with_mode(mode).unwrap();
                for chain in [&mut set, &mut built] {
                    case.history.iter().for_each(|&t| chain.accept(t));
                }
                prop_assert_eq!(run(&mut set, &case, &case.steps), run(&mut built, &case, &case.steps), "{}", built.describe());
                prop_assert_eq!(set.snapshot(), built.snapshot(), "{}", built.describe());
            }
        }
    }
}

#[test]
fn a_wrong_value_leaves_every_sampler_as_it_was() {
    for row in SAMPLERS {
        let mut chain = complete(row, [0.4; 4], Seed::mt19937(1), &World::default());
        let described = chain.describe();
        for parameter in numbers(row) {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
                let error = chain.clone().set_parameter(parameter, value).unwrap_err();
                assert_eq!(error.kind, ErrorKind::Sampling, "{parameter} of {}", row.name);
            }
        }
        assert!(chain.set_parameter("no_such", 1.0).is_err());
        assert_eq!(chain.describe(), described);
    }
}

#[test]
fn every_seed_is_literal() {
    let logits: Vec<f32> = (0..50).map(|i| i as f32 / -8.0).collect();
    let mut drawing = 0;
    for row in SAMPLERS {
        for generator in Generator::ALL {
            let chain =
                |seed| complete(row, [0.5; 4], Seed { generator, seed, sequence: 0 }, &World::default());
            let tokens = |seed| {
                let mut chain = chain(seed);
                let each = (0..60).map(|_| {
                    let token = chain.draw(&logits, AllowedTokens::All).unwrap();
                    chain.accept(token);
                    token
                });
                each.collect::<Vec<u32>>()
            };
            let Some(seed) = chain(0).seed() else { continue };
            drawing += 1;
            assert_eq!(seed.seed, 0, "{}", row.name);
            assert_eq!(tokens(0), tokens(0), "{} {generator:?}", row.name);
            if row.name != "infill" {
                assert_ne!(tokens(0), tokens(1), "{} {generator:?}", row.name);
                assert_ne!(tokens(0), tokens(u64::from(u32::MAX)), "{} {generator:?}", row.name);
            }
            assert!(chain(0).describe().contains("seed=0"));
        }
    }
    assert!(drawing >= 3 * 5);
}

#[test]
fn states_of_other_samplers_are_refused_or_valid() {
    let states: Vec<Vec<u64>> = SAMPLERS
        .iter()
        .map(|row| {
            let mut sampler = build(row, [0.5; 4], Seed::mt19937(3), &World::default());
            (0..20).for_each(|t| sampler.accept(t));
            state(&*sampler)
        })
        .collect();
    for row in SAMPLERS {
        for words in &states {
            for cut in 0..=words.len() {
                let mut chain = complete(row, [0.5; 4], Seed::mt19937(3), &World::default());
                let mut sampler = chain.samplers()[0].clone();
                if sampler.load(&mut StateReader::new(&words[..cut])).is_ok() {
                    // Whatever it read, it still works.
                    sampler.rollback(3);
                    sampler.accept(1);
                    sampler.forced();
                }
                chain.rollback(0).unwrap();
            }
        }
    }
}
