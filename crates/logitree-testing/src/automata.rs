//! What a `Regex` may still become: complete automata over a few letters, built by the textbook (subsets and products)
//! and nothing else. It knows no derivatives and no bytes but those of the letters.

use std::collections::HashMap;

use logitree_automata::Regex;

/// The letters that texts are made of; the last stands for every other character.
pub const LETTERS: [char; 6] = ['a', 'b', 'c', '"', 'é', '\u{1f600}'];

/// A complete automaton from state 0 on.
#[derive(Clone)]
pub struct Automaton {
    next: Vec<[usize; LETTERS.len()]>,
    accepting: Vec<bool>,
    alive: Vec<bool>,
}

/// Larger ones are not made.
const MOST: usize = 600;

impl Automaton {
    /// Of `regex`, unless that is too large.
    pub fn of(regex: &Regex) -> Option<Automaton> {
        Some(match regex {
            Regex::Nothing => Automaton::made(vec![[0; LETTERS.len()]], vec![false]),
            Regex::Empty => Automaton::made(vec![[1; LETTERS.len()]; 2], vec![true, false]),
            Regex::Set(set) => {
                let first = LETTERS.map(|c| if set.contains(c) { 1 } else { 2 });
                Automaton::made(vec![first, [2; LETTERS.len()], [2; LETTERS.len()]], vec![false, true, false])
            }
            Regex::Text(text) => {
                let letter = |c| Regex::Set(logitree_automata::CharSet::one(c));
                Automaton::of(&Regex::concat(text.chars().map(letter)))?
            }
            Regex::Concat(parts) => {
                let mut all = Automaton::of(&Regex::Empty)?;
                for part in parts {
                    all = all.then(&Automaton::of(part)?)?;
                }
                all
            }
            Regex::Or(parts) => Automaton::all(parts, false)?,
            Regex::And(parts) => Automaton::all(parts, true)?,
            Regex::Not(of) => {
                let of = Automaton::of(of)?;
                Automaton::made(of.next, of.accepting.iter().map(|yes| !yes).collect())
            }
            Regex::Repeat { max: Some(max), min, .. } if max < min => Automaton::of(&Regex::Nothing)?,
            Regex::Repeat { of, min, max } => {
                let of = Automaton::of(of)?;
                let mut all = match max {
                    None => of.star()?,
                    Some(_) => Automaton::of(&Regex::Empty)?,
                };
                for round in 0..max.unwrap_or(*min) {
                    // From behind: what is still to come may be left out once there were enough.
                    all = of.then(&all)?;
                    if max.is_some_and(|max| round < max - min) {
                        all = all.or_empty()?;
                    }
                }
                all
            }
            Regex::Automaton(_) | Regex::Computed(_) => unreachable!("the tests have no such"),
        })
    }

    /// Whether `bytes` match, and whether they begin something that does.
    pub fn reads(&self, bytes: &[u8]) -> (bool, bool) {
        let (text, rest) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, &[][..]),
            Err(error) if error.error_len().is_some() => return (false, false),
            Err(error) => {
                let (text, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(text).unwrap(), rest)
            }
        };
        let other = LETTERS.len() - 1;
        let letter = |c| LETTERS.iter().position(|&letter| letter == c).unwrap_or(other);
        let state = text.chars().fold(0, |state, c| self.next[state][letter(c)]);
        if rest.is_empty() {
            return (self.accepting[state], self.alive[state]);
        }
        // Among the characters that begin so there is always one that is no letter of ours.
        let begun = |n: usize| n == other || LETTERS[n].encode_utf8(&mut [0; 4]).as_bytes().starts_with(rest);
        (false, (0..=other).any(|n| begun(n) && self.alive[self.next[state][n]]))
    }

    fn made(next: Vec<[usize; LETTERS.len()]>, accepting: Vec<bool>) -> Automaton {
        let mut alive = accepting.clone();
        loop {
            let before = alive.clone();
            for state in 0..next.len() {
                alive[state] |= next[state].iter().any(|&to| before[to]);
            }
            if alive == before {
                return Automaton { next, accepting, alive }.smallest();
            }
        }
    }

    /// Splits the classes of states until nothing changes (Moore).
    fn smallest(self) -> Automaton {
        let mut group: Vec<usize> = self.accepting.iter().map(|&yes| usize::from(yes)).collect();
        loop {
            let mut numbers = HashMap::new();
            let key = |state: usize| (group[state], self.next[state].map(|to| group[to]));
            let new: Vec<usize> = (0..group.len())
                .map(|state| {
                    let fresh = numbers.len();
                    *numbers.entry(key(state)).or_insert(fresh)
                })
                .collect();
            let before = group.iter().max();
            let done = before == new.iter().max();
            group = new;
            if done {
                break;
            }
        }
        let count = group.iter().max().map_or(0, |most| most + 1);
        let of = |n: usize| group.iter().position(|&g| g == n).unwrap_or(0);
        let firsts: Vec<usize> = (0..count).map(of).collect();
        Automaton {
            next: firsts.iter().map(|&state| self.next[state].map(|to| group[to])).collect(),
            accepting: firsts.iter().map(|&state| self.accepting[state]).collect(),
            alive: firsts.iter().map(|&state| self.alive[state]).collect(),
        }
    }

    fn all(parts: &[Regex], and: bool) -> Option<Automaton> {
        let whole = if and { Regex::Nothing.not() } else { Regex::Nothing };
        parts.iter().try_fold(Automaton::of(&whole)?, |all, part| {
            let part = Automaton::of(part)?;
            grow(
                (0, 0),
                |&(a, b), n| (all.next[a][n], part.next[b][n]),
                |&(a, b)| match and {
                    true => all.accepting[a] && part.accepting[b],
                    false => all.accepting[a] || part.accepting[b],
                },
            )
        })
    }

    fn then(&self, other: &Automaton) -> Option<Automaton> {
        let enter = |state: usize, mut others: Vec<usize>| {
            if self.accepting[state] && !others.contains(&0) {
                others.push(0);
            }
            others.sort_unstable();
            others.dedup();
            (state, others)
        };
        grow(
            enter(0, Vec::new()),
            |(state, others), n| {
                enter(self.next[*state][n], others.iter().map(|&at| other.next[at][n]).collect())
            },
            |(_, others)| others.iter().any(|&at| other.accepting[at]),
        )
    }

    /// Any number of rounds: sets of states, the empty one for the beginning.
    fn star(&self) -> Option<Automaton> {
        let step = |at: &Vec<usize>, n: usize| {
            let from = if at.is_empty() { &[0][..] } else { at };
            let mut to: Vec<usize> = from.iter().map(|&state| self.next[state][n]).collect();
            if to.iter().any(|&state| self.accepting[state]) {
                to.push(0);
            }
            to.sort_unstable();
            to.dedup();
            to
        };
        grow(Vec::new(), step, |at| at.is_empty() || at.iter().any(|&state| self.accepting[state]))
    }

    fn or_empty(&self) -> Option<Automaton> {
        grow((true, 0), |&(_, at), n| (false, self.next[at][n]), |&(first, at)| first || self.accepting[at])
    }
}

/// The states that are reached from `start`, numbered as they are found.
fn grow<S: Clone + Eq + std::hash::Hash>(
    start: S,
    step: impl Fn(&S, usize) -> S,
    accepting: impl Fn(&S) -> bool,
) -> Option<Automaton> {
    let mut numbers = HashMap::from([(start.clone(), 0)]);
    let (mut states, mut next) = (vec![start], Vec::new());
    while next.len() < states.len() {
        let state = states[next.len()].clone();
        next.push(std::array::from_fn(|n| {
            let to = step(&state, n);
            let fresh = states.len();
            *numbers.entry(to.clone()).or_insert_with(|| {
                states.push(to);
                fresh
            })
        }));
        if states.len() > MOST {
            return None;
        }
    }
    Some(Automaton::made(next, states.iter().map(accepting).collect()))
}
