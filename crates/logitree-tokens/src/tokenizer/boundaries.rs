//! Where pieces of the pre-tokenizer begin, decided while the text is not complete: a boundary is guessed, and what it claims
//! about the text to come is kept as an obligation.
//!
//! A guess is one state for each pattern: where it is in the present piece, and what must never match, because a match of
//! higher priority would have moved an earlier boundary. A text has exactly one sequence of guesses that holds to its end.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ahead::AT_END;
use super::classes::END;
use super::ordered_nfa::{Stage, NO_STATE, START};
use super::program::{Item, MATCH};
use super::splitter::Splitter;
use crate::interrupt;

/// A numbered guess.
pub(super) type Guess = u32;
/// Before the first character.
pub(super) const AT_START: Guess = 0;

/// Between two matches, instead of in a state of a pattern.
const GAP: u32 = u32::MAX;

/// Of one pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Part {
    state: u32,
    /// The number of the items that must never match.
    must: u32,
    /// What its look-aheads see of the text to come.
    ahead: u32,
}

/// What may follow a guess: without a boundary before the symbol, and with one.
#[derive(Debug, Clone, Default)]
pub(super) struct After {
    pub inside: Box<[Guess]>,
    pub begins: Box<[Guess]>,
}

/// The guesses that were met, with what follows them.
#[derive(Default)]
pub(super) struct Boundaries {
    guesses: Vec<Box<[Part]>>,
    numbers: FxHashMap<Box<[Part]>, Guess>,
    sets: Vec<Box<[Item]>>,
    set_numbers: FxHashMap<Box<[Item]>, u32>,
    after: FxHashMap<(Guess, u8), After>,
    /// Whether some text completes a guess.
    alive: FxHashMap<Guess, bool>,
    settled: FxHashMap<Guess, Arc<Settled>>,
    /// The bytes of the lists in the tables.
    bytes: usize,
}

/// The characters before which the piece of a guess is over, whatever else comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// The classes of those that are enough.
    pub at_once: u64,
    /// A class, and the classes that may come next.
    pub then: Vec<(u8, u64)>,
}

impl Settled {
    /// Adds what is enough for another guess.
    pub fn add(&mut self, other: &Settled) {
        self.at_once |= other.at_once;
        self.then
            .extend(other.then.iter().filter(|then| !self.then.contains(then)).copied().collect::<Vec<_>>());
    }
}

/// Of one pattern, by its number, what must never match.
type Claim = (usize, Vec<Item>);

impl Boundaries {
    pub fn new() -> Boundaries {
        let mut made = Boundaries::default();
        // The start is no state of the patterns.
        made.guesses.push(Box::new([Part { state: NO_STATE, must: 0, ahead: AT_END }]));
        made.set(Vec::new());
        made
    }

    /// About how many bytes they hold.
    pub fn bytes(&self) -> usize {
        let entries =
            self.guesses.len() + self.sets.len() + self.after.len() + self.alive.len() + self.settled.len();
        self.bytes + 96 * entries
    }

    fn set(&mut self, mut items: Vec<Item>) -> u32 {
        items.sort_unstable();
        items.dedup();
        let count = self.sets.len() as u32;
        let items: Box<[Item]> = items.into();
        *self.set_numbers.entry(items).or_insert_with_key(|items| {
            self.sets.push(items.clone());
            self.bytes += 2 * size_of_val(&**items);
            count
        })
    }

    fn number(&mut self, parts: Vec<Part>) -> Guess {
        let count = self.guesses.len() as Guess;
        let parts: Box<[Part]> = parts.into();
        *self.numbers.entry(parts).or_insert_with_key(|parts| {
            self.guesses.push(parts.clone());
            self.bytes += 2 * size_of_val(&**parts);
            count
        })
    }

    /// Whether the text may end here.
    pub fn can_end(&self, splitter: &Splitter, guess: Guess) -> bool {
        guess == AT_START
            || splitter
                .stages
                .iter()
                .zip(&*self.guesses[guess as usize])
                .all(|(stage, &part)| self.part_ends(stage, part))
    }

    fn part_ends(&self, stage: &Stage, part: Part) -> bool {
        part.ahead == AT_END
            && (part.state == GAP || stage.step(part.state, END).1)
            && !self.sets[part.must as usize].iter().any(matches_end)
    }

    /// What may follow on `symbol`: guesses that some text completes.
    pub fn after(&mut self, splitter: &Splitter, guess: Guess, symbol: u8) -> &After {
        if !self.after.contains_key(&(guess, symbol)) {
            let mut found = self.find(splitter, guess, symbol);
            for list in [&mut found.0, &mut found.1] {
                list.sort_unstable();
                list.dedup();
                list.retain(|&next| self.is_alive(splitter, next));
            }
            self.bytes += size_of_val(&found.0[..]) + size_of_val(&found.1[..]);
            self.after.insert((guess, symbol), After { inside: found.0.into(), begins: found.1.into() });
        }
        &self.after[&(guess, symbol)]
    }

    /// What follows, whether or not some text completes it.
    fn find(&mut self, splitter: &Splitter, guess: Guess, symbol: u8) -> (Vec<Guess>, Vec<Guess>) {
        interrupt::consume(4);
        let at_start = guess == AT_START;
        let parts = self.guesses[guess as usize].clone();
        let mut partial: Vec<(bool, Vec<Part>)> = vec![(at_start, Vec::new())];
        for (n, stage) in splitter.stages.iter().enumerate() {
            let mut next = Vec::new();
            for (begins, before) in partial {
                let part = if at_start { None } else { Some(parts[n]) };
                for (also, part) in self.options(stage, part, begins, usize::from(symbol)) {
                    let mut parts = before.clone();
                    parts.push(part);
                    next.push((begins || also, parts));
                }
            }
            partial = next;
        }
        let (mut inside, mut begins) = (Vec::new(), Vec::new());
        for (begin, parts) in partial {
            let parts =
                if parts.is_empty() { vec![Part { state: NO_STATE, must: 1, ahead: AT_END }] } else { parts };
            let number = self.number(parts);
            if begin {
                begins.push(number);
            } else {
                inside.push(number);
            }
        }
        (inside, begins)
    }

    /// Before which characters the piece is over. A boundary is certain once nothing that it claims about the text to come is
    /// left: from there on every text is split in one way.
    pub fn settled(&mut self, splitter: &Splitter, guess: Guess) -> Arc<Settled> {
        if let Some(known) = self.settled.get(&guess) {
            return Arc::clone(known);
        }
        let mut found = Settled::default();
        let symbols = splitter.classes.count();
        for symbol in 0..symbols {
            for claims in self.claims(splitter, guess, symbol) {
                if claims.iter().all(|(_, items)| items.is_empty()) {
                    found.at_once |= 1 << symbol;
                    continue;
                }
                // An earlier pattern may cut the text before the next character: later ones see an end there.
                if claims.iter().any(|(n, items)| *n > 0 && items.iter().any(matches_end)) {
                    continue;
                }
                let holds = |next: &usize| {
                    let kept = |(n, items): &Claim| {
                        let stage = &splitter.stages[*n];
                        (items.is_empty() || stage.ahead.is_none()).then(|| stage.read_all(items, *next))?
                    };
                    claims.iter().all(|claim| kept(claim).is_some_and(|left| left.is_empty()))
                };
                let next = (0..symbols).filter(holds).fold(0u64, |next, symbol| next | 1 << symbol);
                if next != 0 {
                    found.then.push((symbol as u8, next));
                }
            }
        }
        let at_once = found.at_once;
        found.then.retain(|(symbol, _)| at_once >> symbol & 1 == 0);
        let found = Arc::new(found);
        self.settled.insert(guess, Arc::clone(&found));
        found
    }

    /// What a boundary before `symbol` claims, for each pattern that may set it.
    fn claims(&self, splitter: &Splitter, guess: Guess, class: usize) -> Vec<Vec<Claim>> {
        if guess == AT_START {
            return vec![Vec::new()];
        }
        let parts = &self.guesses[guess as usize];
        let (mut found, mut before): (Vec<Vec<Claim>>, Vec<Claim>) = (Vec::new(), Vec::new());
        for (n, stage) in splitter.stages.iter().enumerate() {
            let Part { state, must, ahead } = parts[n];
            let Some(symbol) = stage.ahead.certain(ahead, class) else { break };
            let Some(mut here) = stage.read_all(&self.sets[must as usize], symbol) else { break };
            let cuts = |before, after| stage.behaviour.cuts(before, after);
            // The next patterns see the end of a text.
            let ends = |(stage, &part): (&Stage, &Part)| self.part_ends(stage, part);
            let others_end = || splitter.stages.iter().zip(&**parts).skip(n + 1).all(ends);
            if state == GAP {
                let (next, _) = stage.step(START, symbol);
                // A boundary only if the match that begins becomes one.
                let matches = |item: &Item| item.to == MATCH && item.symbols == u64::MAX;
                if cuts(false, true) && stage.items(next).iter().any(matches) && others_end() {
                    found.push([&before[..], &[(n, here.clone())]].concat());
                }
                here.extend_from_slice(stage.items(next));
                before.push((n, here));
                continue;
            }
            let (next, matched) = stage.step(state, symbol);
            if matched && cuts(true, true) && cuts(true, false) && others_end() {
                here.extend_from_slice(stage.items(next));
                before.push((n, here));
                found.push(before);
            }
            // Whether the match that is read becomes one is open.
            break;
        }
        found
    }

    /// What one pattern may do on a character of `class`: whether a piece begins before it, and the state after it. With `cut`,
    /// the text that it sees ends before the character, and another begins; without a part, the first one begins.
    fn options(&mut self, stage: &Stage, part: Option<Part>, cut: bool, class: usize) -> Vec<(bool, Part)> {
        let mut found = Vec::new();
        let Some(part) = part.filter(|_| !cut) else {
            if part.is_none_or(|part| self.part_ends(stage, part)) {
                for (ahead, symbol) in stage.ahead.after(None, class) {
                    self.begin(stage, Vec::new(), (symbol, ahead), |_| true, &mut found);
                }
            }
            return found;
        };
        for (ahead, symbol) in stage.ahead.after(Some(part.ahead), class) {
            let all = self.sets[part.must as usize].clone();
            let Some(must) = stage.read_all(&all, symbol) else { continue };
            if part.state == GAP {
                let (next, _) = stage.step(START, symbol);
                if next != NO_STATE {
                    let begins = stage.behaviour.cuts(false, true);
                    self.push(begins, next, must.clone(), ahead, &mut found);
                }
                let mut all = must;
                all.extend_from_slice(stage.items(next));
                self.push(false, GAP, all, ahead, &mut found);
                continue;
            }
            let (next, matched) = stage.step(part.state, symbol);
            if next != NO_STATE {
                self.push(false, next, must.clone(), ahead, &mut found);
            }
            if matched {
                let mut all = must;
                all.extend_from_slice(stage.items(next));
                let begins = |is_match| stage.behaviour.cuts(true, is_match);
                self.begin(stage, all, (symbol, ahead), begins, &mut found);
            }
        }
        found
    }

    /// A match or a gap that begins before a symbol, each with or without a boundary.
    fn begin(
        &mut self,
        stage: &Stage,
        must: Vec<Item>,
        (symbol, ahead): (usize, u32),
        begins: impl Fn(bool) -> bool,
        found: &mut Vec<(bool, Part)>,
    ) {
        let (next, _) = stage.step(START, symbol);
        if next != NO_STATE {
            self.push(begins(true), next, must.clone(), ahead, found);
        }
        let mut all = must;
        all.extend_from_slice(stage.items(next));
        self.push(begins(false), GAP, all, ahead, found);
    }

    fn push(&mut self, begins: bool, state: u32, must: Vec<Item>, ahead: u32, found: &mut Vec<(bool, Part)>) {
        // What matches whatever comes has matched.
        if must.iter().any(|item| item.to == MATCH && item.symbols == u64::MAX) {
            return;
        }
        let must = self.set(must);
        found.push((begins, Part { state, must, ahead }));
    }

    /// Whether some text completes `guess`.
    fn is_alive(&mut self, splitter: &Splitter, guess: Guess) -> bool {
        if let Some(&known) = self.alive.get(&guess) {
            return known;
        }
        let (mut seen, mut at) = (vec![guess], 0);
        let mut known = FxHashSet::from_iter([guess]);
        let mut alive = false;
        while at < seen.len() && !alive {
            let here = seen[at];
            at += 1;
            alive = self.can_end(splitter, here) || self.alive.get(&here) == Some(&true);
            if alive || self.alive.get(&here) == Some(&false) {
                continue;
            }
            for symbol in 0..splitter.classes.count() as u8 {
                let (inside, begins) = self.find(splitter, here, symbol);
                for next in inside.into_iter().chain(begins) {
                    if known.insert(next) {
                        seen.push(next);
                    }
                }
            }
        }
        if alive {
            self.alive.insert(guess, true);
        } else {
            self.alive.extend(seen.into_iter().map(|guess| (guess, false)));
        }
        alive
    }
}

/// Whether what must not match does at the end of a text.
fn matches_end(item: &Item) -> bool {
    item.to == MATCH && item.symbols >> END & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::ordered_nfa::Behaviour;
    use crate::tokenizer::pattern;
    use crate::tokenizer::patterns::{named, DEEPSEEK_LLM, GPT2, LINES, LLAMA3, QWEN2};
    use proptest::prelude::*;
    use std::sync::OnceLock;

    /// How many pre-tokenizers there are.
    const SPLITTERS: usize = 16;

    /// One of them.
    fn splitter(which: usize) -> &'static Splitter {
        static ALL: [OnceLock<Splitter>; SPLITTERS] = [const { OnceLock::new() }; SPLITTERS];
        ALL[which].get_or_init(|| made(which))
    }

    fn made(which: usize) -> Splitter {
        let named = |name: &str| Splitter::new(named(name.as_bytes()).unwrap().patterns);
        let marks = |behaviour| {
            let parse = |text| pattern::parse(text).unwrap();
            Splitter::of(&[(parse(r"\s|[a1]+"), behaviour), (parse(r"\p{N}{1,2}"), Behaviour::Isolated)])
        };
        match which {
            0 => Splitter::new(&[GPT2]),
            1 => Splitter::new(&[LLAMA3]),
            2 => Splitter::new(&[QWEN2]),
            3 => Splitter::new(&DEEPSEEK_LLM),
            4 => Splitter::new(&[r"\p{N}", GPT2]),
            5 => Splitter::new(&[LINES]),
            6 => named("gpt-4o"),
            7 => named("deepseek-v3"),
            8 => named("tiny_aya"),
            9 => named("superbpe"),
            10 => named("afmoe"),
            11 => named("exaone-moe"),
            12 => marks(Behaviour::MergedWithPrevious),
            13 => marks(Behaviour::MergedWithNext),
            14 => marks(Behaviour::Contiguous),
            _ => Splitter::new(&[]),
        }
        .unwrap()
    }

    /// The guesses after `text`, each with the places where it says that pieces begin.
    fn guessed(splitter: &Splitter, boundaries: &mut Boundaries, text: &str) -> Vec<(Guess, Vec<usize>)> {
        let mut open = vec![(AT_START, Vec::new())];
        for (at, c) in text.chars().enumerate() {
            let mut next = Vec::new();
            for (guess, begun) in open {
                let after = boundaries.after(splitter, guess, splitter.classes.of(c)).clone();
                next.extend(after.inside.iter().map(|&to| (to, begun.clone())));
                next.extend(after.begins.iter().map(|&to| (to, [&begun[..], &[at]].concat())));
            }
            open = next;
        }
        open
    }

    fn starts(splitter: &Splitter, text: &str) -> Vec<usize> {
        let (mut starts, mut at) = (Vec::new(), 0);
        let keep = |piece: &str| {
            starts.push(at);
            at += piece.chars().count();
            Ok(())
        };
        splitter.pieces(text, keep).unwrap();
        starts
    }

    fn units() -> impl Strategy<Value = String> {
        let units = ["a", "'s", "1", "23", " ", "  ", "\n", "\t", ".", "\"", "\u{e9}", "\u{4e2d}", "\u{a0}"];
        prop::collection::vec(prop::sample::select(units.to_vec()), 0..8).prop_map(|units| units.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]

        /// Whatever follows the characters that settle it.
        #[test]
        fn a_boundary_that_is_settled_is_one_of_the_split(which in 0..SPLITTERS, text in units(), more in units()) {
            let (splitter, mut boundaries) = (splitter(which), Boundaries::new());
            let open = guessed(splitter, &mut boundaries, &text);
            let length = text.chars().count();
            let classes: Vec<u8> = more.chars().map(|c| splitter.classes.of(c)).collect();
            let whole = starts(splitter, &format!("{text}{more}"));
            for (guess, begun) in open {
                let settled = boundaries.settled(splitter, guess);
                let [first, rest @ ..] = &classes[..] else { continue };
                let then = settled.then.iter().filter(|(class, _)| class == first);
                let next = then.fold(0, |next, (_, classes)| next | classes);
                let holds = settled.at_once >> first & 1 == 1
                    || rest.first().is_some_and(|second| next >> second & 1 == 1);
                if holds {
                    let before: Vec<usize> = whole.iter().copied().filter(|&at| at <= length).collect();
                    prop_assert_eq!(before, [&begun[..], &[length]].concat());
                }
            }
        }

        #[test]
        fn exactly_one_sequence_of_guesses_holds_and_it_is_the_split(
            which in 0..SPLITTERS,
            units in prop::collection::vec(prop::sample::select(vec![
                "a", "B", "s", "'", "'s", "'LL", "1", "23", " ", "  ", "\n", "\r", "\t", ".", "\"", "{", "é", "中", "е\u{301}", "\u{a0}",
            ]), 0..14),
        ) {
            let text = units.concat();
            let (splitter, mut boundaries) = (splitter(which), Boundaries::new());
            let mut found = guessed(splitter, &mut boundaries, &text);
            found.retain(|(guess, _)| boundaries.can_end(splitter, *guess));
            let found: Vec<Vec<usize>> = found.into_iter().map(|(_, begun)| begun).collect();
            prop_assert_eq!(found, vec![starts(splitter, &text)]);
        }
    }
}
