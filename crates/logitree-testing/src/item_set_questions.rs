//! Every question that a catalogue answers, asked at random states and held to the item set.

use std::collections::BTreeSet;

use half::{bf16, f16};
use logitree::catalogue::{BeamCandidate, BeamRows, Continuations, ItemWalk, WalkState};
use logitree::constraint::Matcher;
use logitree::mask::{ids, words_for};
use logitree::sampling::Floats;
use logitree::{ErrorKind, TokenId};

use crate::item_set::{Item, ItemSet, Kind, Random};

/// Ids that masks and lines of logits cover.
const IDS: usize = 1280;

/// A tree at one moment, and what it must be.
#[derive(Clone)]
pub struct View {
    pub paths: ItemWalk,
    pub truth: ItemSet,
}

/// The state of a row.
enum Spot {
    At(Vec<TokenId>),
    Finished,
    Failed,
}

/// Asks one question; which.
pub fn ask(view: &View, kind: &Kind, random: &mut Random) -> &'static str {
    match random.below(16) {
        0..=3 => view.find(kind, random),
        4..=5 => view.children(kind, random),
        6..=7 => view.step(kind, random),
        8 => view.mask(kind, random),
        9..=10 => view.advance(kind, random),
        11..=13 => view.top(kind, random),
        14 => view.follow(kind, random),
        _ => view.look(kind, random),
    }
}

impl View {
    /// The beginning of an item.
    fn begin(&self, kind: &Kind, random: &mut Random) -> Vec<TokenId> {
        let (mut tokens, _) = self.truth.any(random, kind).unwrap_or_default();
        tokens.truncate(random.below(tokens.len() + 1));
        tokens
    }

    /// The beginning of an item, or not quite, or anything.
    fn place(&self, kind: &Kind, random: &mut Random) -> Vec<TokenId> {
        if random.one_in(6) {
            return kind.item(random).0;
        }
        let mut tokens = self.begin(kind, random);
        tokens.extend(random.one_in(3).then(|| kind.token(random)));
        tokens
    }

    fn state(&self, tokens: &[TokenId]) -> WalkState {
        let found = self.paths.snapshot.find(tokens).unwrap();
        found.unwrap_or_else(|| panic!("{tokens:?} is not found"))
    }

    /// The tokens that are allowed after these, with the states after them.
    fn allowed(&self, begin: &[TokenId]) -> Vec<(TokenId, WalkState)> {
        let follow = self.truth.follow(begin);
        let mut allowed: Vec<_> =
            follow.iter().map(|&token| (token, self.state(&[begin, &[token]].concat()))).collect();
        let ends = follow.is_empty() || !self.truth.numbers(begin).is_empty();
        if let Some(end) = self.paths.end.filter(|end| ends && !follow.contains(end)) {
            allowed.push((end, WalkState::FINISHED));
            allowed.sort();
        }
        allowed
    }

    fn find(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let (tokens, mut items) = (self.place(kind, random), Vec::new());
        let found = self.paths.snapshot.find(&tokens).unwrap();
        assert_eq!(found.is_some(), tokens.is_empty() || self.truth.begins(&tokens), "{tokens:?}");
        if let Some(state) = found {
            self.paths.snapshot.items(state, &mut items).unwrap();
            assert_eq!(items, self.truth.numbers(&tokens), "at {tokens:?}");
        }
        "find, and its items"
    }

    fn children(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let (begin, mut children) = (self.begin(kind, random), Continuations::default());
        self.paths.snapshot.children(self.state(&begin), &mut children).unwrap();
        let follow = self.truth.follow(&begin);
        assert_eq!(children.tokens, follow, "after {begin:?}");
        assert_eq!(children.is_item, !self.truth.numbers(&begin).is_empty(), "at {begin:?}");
        let longer = |&token: &TokenId| [&begin[..], &[token]].concat();
        let states: Vec<WalkState> = follow.iter().map(|token| self.state(&longer(token))).collect();
        assert_eq!(children.states, states, "after {begin:?}");
        let weights: Vec<f32> = follow.iter().map(|token| self.truth.weight(&longer(token))).collect();
        assert_eq!(children.weights, if self.truth.weighted { weights } else { vec![] }, "after {begin:?}");
        "children"
    }

    fn step(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let (begin, any) = (self.begin(kind, random), kind.token(random));
        for token in [any, any.wrapping_add(1), any.saturating_sub(1), TokenId::MAX] {
            let longer = [&begin[..], &[token]].concat();
            let next = self.paths.snapshot.step(self.state(&begin), token).unwrap();
            assert_eq!(next.is_some(), self.truth.begins(&longer), "{longer:?}");
            assert_eq!(next, self.paths.snapshot.find(&longer).unwrap(), "{longer:?}");
        }
        "step"
    }

    fn mask(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let begin = self.begin(kind, random);
        let allowed = self.allowed(&begin);
        let mut words = vec![0x5555_5555; words_for(IDS)];
        let made = self.paths.mask(self.state(&begin), &mut words, &mut Continuations::default());
        if allowed.last().is_some_and(|&(token, _)| token as usize >= IDS) {
            assert_eq!(made.unwrap_err().kind, ErrorKind::Mask);
            assert!(words.iter().all(|&word| word == 0x5555_5555), "an error wrote something");
        } else {
            made.unwrap();
            assert!(ids(&words).eq(allowed.iter().map(|way| way.0)), "after {begin:?}");
        }
        "mask"
    }

    fn spots(&self, kind: &Kind, random: &mut Random, rows: usize) -> (Vec<Spot>, Vec<WalkState>) {
        let spot = |_| match random.below(12) {
            0 => Spot::Finished,
            1 => Spot::Failed,
            _ => Spot::At(self.begin(kind, random)),
        };
        let spots: Vec<Spot> = (0..rows).map(spot).collect();
        let state = |spot: &Spot| match spot {
            Spot::At(tokens) => self.state(tokens),
            Spot::Finished => WalkState::FINISHED,
            Spot::Failed => WalkState::FAILED,
        };
        let states = spots.iter().map(state).collect();
        (spots, states)
    }

    fn advance(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let (spots, mut states) = self.spots(kind, random, 6);
        let tokens: Vec<TokenId> = (0..spots.len())
            .map(|_| self.paths.end.filter(|_| random.one_in(5)).unwrap_or_else(|| kind.token(random)))
            .collect();
        let after = |(spot, &token): (&Spot, &TokenId)| match spot {
            Spot::Finished => WalkState::FINISHED,
            Spot::At(begin) if self.truth.begins(&[begin, &[token][..]].concat()) => {
                self.state(&[begin, &[token][..]].concat())
            }
            _ if Some(token) == self.paths.end => WalkState::FINISHED,
            _ => WalkState::FAILED,
        };
        let expected: Vec<WalkState> = spots.iter().zip(&tokens).map(after).collect();
        self.paths.advance(&mut states, &tokens).unwrap();
        assert_eq!(states, expected, "{tokens:?}");
        "advance"
    }

    /// All continuations of all rows, and the best of them.
    fn top(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let rows = random.below(5);
        let (spots, states) = self.spots(kind, random, rows);
        let len = if random.one_in(12) { 40 } else { IDS };
        let lines: Vec<Line> = spots.iter().map(|_| Line::new(len, random)).collect();
        let score = |_| if random.one_in(9) { f64::NEG_INFINITY } else { random.below(8) as f64 / 2.0 };
        let scores: Vec<f64> = (0..rows).map(score).collect();
        let mut groups: Vec<u32> = (0..rows).map(|_| random.below(3) as u32).collect();
        groups.sort_unstable();
        let logits: Vec<Floats<'_>> = lines.iter().map(Line::floats).collect();
        let given = BeamRows { states: &states, logits: &logits, scores: &scores, groups: &groups };
        let width = [random.below(4), random.below(90), usize::MAX][random.below(3)];
        let (mut all, mut best) = (Vec::new(), Vec::new());
        let (gathered, topped) =
            (self.paths.gather(&given, &mut all), self.paths.top(&given, width, &mut best));
        let Some(mut expected) = self.ways(&spots, &lines, &scores) else {
            assert_eq!(gathered.unwrap_err().kind, ErrorKind::Logits);
            assert_eq!(topped.unwrap_err().kind, ErrorKind::Logits);
            return "gather and top without logits for all";
        };
        gathered.and(topped).unwrap();
        assert_eq!(all, expected);
        let group = |way: &BeamCandidate| groups[way.row as usize];
        expected.sort_by(|a, b| group(a).cmp(&group(b)).then(b.score.total_cmp(&a.score)));
        let mut taken = [0; 3];
        expected.retain(|way| {
            taken[group(way) as usize] += 1;
            taken[group(way) as usize] <= width
        });
        assert_eq!(best, expected);
        "gather and top"
    }

    /// Every continuation whose score is above -inf, by row and token; `None` where an allowed token has no logit.
    fn ways(&self, spots: &[Spot], lines: &[Line], scores: &[f64]) -> Option<Vec<BeamCandidate>> {
        let mut ways = Vec::new();
        for (row, spot) in spots.iter().enumerate().filter(|(row, _)| scores[*row] > f64::NEG_INFINITY) {
            let (allowed, begin) = match spot {
                Spot::At(begin) => (self.allowed(begin), &begin[..]),
                Spot::Failed => {
                    (self.paths.end.map(|end| (end, WalkState::FINISHED)).into_iter().collect(), &[][..])
                }
                Spot::Finished => continue,
            };
            for (token, state) in allowed {
                let logit = match spot {
                    Spot::At(_) => *lines[row].values.get(token as usize)?,
                    _ => 0.0,
                };
                let weighs = self.truth.weighted && state != WalkState::FINISHED;
                let weight = if weighs { self.truth.weight(&[begin, &[token]].concat()) } else { 0.0 };
                let score = scores[row] + (f64::from(logit) + f64::from(weight));
                if score > f64::NEG_INFINITY {
                    ways.push(BeamCandidate { row: row as u32, token, score, state });
                }
            }
        }
        Some(ways)
    }

    /// A matcher follows an item to its end.
    fn follow(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let largest = self.paths.snapshot.largest().max(self.paths.end.unwrap_or(0)) as usize;
        let made = self.paths.sequence(IDS, &[]);
        let Some((tokens, _)) = self.truth.any(random, kind).filter(|_| largest < IDS) else {
            assert_eq!(made.err().unwrap().kind, ErrorKind::Constraint);
            return "match nothing";
        };
        let Ok(mut matcher) = made else {
            assert!(self.paths.end.is_none() && self.paths.snapshot.may_nest().unwrap());
            return "match what is nested";
        };
        for n in 0..=tokens.len() {
            let over = self.paths.end.is_none() && n == tokens.len();
            assert_eq!(matcher.is_finished(), over, "after {:?}", &tokens[..n]);
            if !over {
                let mut words = vec![0; words_for(IDS)];
                matcher.write(&mut words).unwrap();
                assert!(
                    ids(&words).eq(self.allowed(&tokens[..n]).iter().map(|way| way.0)),
                    "{:?}",
                    &tokens[..n]
                );
            }
            tokens.get(n).into_iter().for_each(|&token| matcher.accept(token).unwrap());
        }
        "match an item"
    }

    fn look(&self, kind: &Kind, random: &mut Random) -> &'static str {
        let begin = self.begin(kind, random);
        let looked = self.paths.look(self.state(&begin), &mut Continuations::default()).unwrap();
        let is_item = !self.truth.numbers(&begin).is_empty();
        assert_eq!(looked, (is_item, !self.truth.follow(&begin).is_empty()), "at {begin:?}");
        "look"
    }

    /// Everything that is there, and nothing else, with its weights.
    pub fn whole(&self) {
        assert_eq!(self.paths.snapshot.len(), self.truth.items.len() as u64);
        let mut seen: BTreeSet<Item> = BTreeSet::new();
        let each = |tokens: &[TokenId], weights: &[f32], item: u64| {
            assert_eq!(weights, self.truth.weights(tokens), "of {tokens:?}");
            assert!(tokens.iter().all(|&token| token <= self.paths.snapshot.largest()));
            assert!(seen.insert((tokens.to_vec(), item)), "{tokens:?} twice");
            Ok(())
        };
        self.paths.snapshot.for_each(each).unwrap();
        assert_eq!(seen, self.truth.items);
    }
}

/// A row of logits, of few values, so that many are equal, in one of the three formats.
struct Line {
    values: Vec<f32>,
    bits: Vec<u16>,
    format: usize,
}

impl Line {
    fn new(len: usize, random: &mut Random) -> Line {
        let format = random.below(3);
        // Cut out of one line: to draw each number would take longer than what is tested.
        let (from, spread) = (random.draw() as usize, 1 + random.below(40));
        let value = |at: usize| {
            let drawn = (from.wrapping_add(at)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            if drawn % 11 == 0 {
                f32::NEG_INFINITY
            } else {
                (drawn % spread) as f32 / 4.0 - 2.0
            }
        };
        let values: Vec<f32> = (0..len).map(value).collect();
        let narrow =
            |&x: &f32| if format == 1 { f16::from_f32(x).to_bits() } else { bf16::from_f32(x).to_bits() };
        let bits = if format == 0 { Vec::new() } else { values.iter().map(narrow).collect() };
        Line { values, bits, format }
    }

    fn floats(&self) -> Floats<'_> {
        match self.format {
            0 => Floats::F32(&self.values),
            1 => Floats::F16(&self.bits),
            _ => Floats::Bf16(&self.bits),
        }
    }
}
