//! Translates a pattern with assertions into an equal language without them.
//!
//! A node is translated together with what follows it: `run(node, next)` gives, for every state of the text
//! read so far, the strings from there to the end, where `next` gives the same for the position after the node.
//! A [`Tracker`] follows the text read so far and decides `^`, the left side of `\b` and lookbehinds. What
//! follows is the language itself, so that `$`, the right side of `\b` and lookaheads are intersections with
//! it.
//!
//! A loop is followed by itself. Without assertions about what follows, its languages are linear equations
//! ([`solve`]). With them, what follows the loop is guessed as a state of a second tracker that reads strings
//! backwards. Each iteration keeps the guesses consistent, so the equations are linear again.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::node::{Assertion, PatternNode};
use super::terms::{Id, Term, Terms, ANY, EMPTY, NOTHING};
use super::tracker::{solve, Tracker};
use super::{too_large, unsupported};
use crate::problems::Problem;
use crate::CharSet;

/// Maximum number of calls of `run` for one pattern.
const MAX_STEPS: u32 = 1 << 15;
/// Maximum number of unknowns of one loop.
const MAX_UNKNOWNS: usize = 48;

/// The language of whole strings that `node` matches.
pub(super) fn whole(terms: &mut Terms, node: &PatternNode) -> Result<Id, Problem> {
    if let PatternNode::Plain(id) = node {
        return Ok(*id);
    }
    let mut steps = 0;
    Translator::new(terms, node, &mut steps, false)?.whole(node)
}

/// A tracker of what follows, and the predicate that each assertion queries.
struct Right {
    tracker: Tracker,
    predicates: FxHashMap<usize, usize>,
}

impl Right {
    /// The characters of `set` that lead backwards from `after` to `guess`.
    fn step(&self, after: usize, guess: usize, set: &CharSet) -> CharSet {
        let row = &self.tracker.next[after];
        let classes = self.tracker.classes.iter().zip(row).filter(|(_, &to)| to == guess);
        classes.fold(CharSet::none(), |all, (class, _)| all.or(&class.and(set)))
    }
}

struct Translator<'t> {
    terms: &'t mut Terms,
    steps: &'t mut u32,
    left: Rc<Tracker>,
    /// The offset of an assertion -> its predicate of `left`.
    predicates: FxHashMap<usize, usize>,
    /// Whether the node is the body of a lookbehind, which cannot see what follows it.
    behind: bool,
}

/// Languages before or after a position, one per state.
type Front = Vec<Id>;

impl<'t> Translator<'t> {
    fn new(
        terms: &'t mut Terms,
        node: &PatternNode,
        steps: &'t mut u32,
        behind: bool,
    ) -> Result<Translator<'t>, Problem> {
        let (mut languages, mut first) = (Vec::new(), usize::MAX);
        let mut predicates = FxHashMap::default();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            for (what, at) in node.assertions() {
                let language = match what {
                    Assertion::Start(lines) => after_line(terms, lines.as_ref()),
                    Assertion::Word { word, .. } => {
                        let word = terms.set(word.clone());
                        terms.concat(&[ANY, word])
                    }
                    Assertion::Behind { body, .. } => behind_language(terms, body, steps)?,
                    Assertion::Ahead { body, .. } => {
                        open.push(body);
                        continue;
                    }
                    Assertion::End(_) => continue,
                };
                first = first.min(at);
                let known = languages.iter().position(|&l| l == language);
                predicates.insert(at, known.unwrap_or(languages.len()));
                if known.is_none() {
                    languages.push(language);
                }
            }
        }
        let left = Tracker::new(terms, &languages).ok_or_else(|| too_large().or_at(first))?;
        Ok(Translator { terms, steps, left: Rc::new(left), predicates, behind })
    }

    fn whole(&mut self, node: &PatternNode) -> Result<Id, Problem> {
        let next = vec![EMPTY; self.left.len()];
        Ok(self.run(node, next, None)?[0])
    }

    /// See the head of the file. Entries are ordered by the left state, then by the right one if there is one.
    fn run(&mut self, node: &PatternNode, next: Front, right: Option<&Right>) -> Result<Front, Problem> {
        *self.steps += 1;
        let deep = next.iter().any(|&id| !self.terms.is_shallow(id));
        if *self.steps > MAX_STEPS || self.terms.is_full() || deep {
            return Err(too_large());
        }
        match node {
            PatternNode::Plain(id) => match right {
                None => self.plain(*id, &next),
                Some(right) => self.plain_between(*id, &next, right),
            },
            PatternNode::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.run(part, next, right))
            }
            PatternNode::Or(parts) => {
                let mut ways = vec![Vec::new(); next.len()];
                for part in parts {
                    let way = self.run(part, next.clone(), right)?;
                    ways.iter_mut().zip(way).for_each(|(ways, way)| ways.push(way));
                }
                Ok(ways.iter().map(|ways| self.terms.or(ways)).collect())
            }
            PatternNode::Repeat { of, min, max, at } => {
                self.repeat(of, *min, *max, *at, next, right).map_err(|problem| problem.or_at(*at))
            }
            PatternNode::Assert { what, at } => match right {
                Some(right) => Ok(self.assert_between(what, *at, next, right)),
                None => self.assert(what, *at, next).map_err(|problem| problem.or_at(*at)),
            },
        }
    }

    // -- languages without assertions

    fn plain(&mut self, id: Id, next: &[Id]) -> Result<Front, Problem> {
        if next.iter().all(|&n| n == next[0]) {
            return Ok(vec![self.terms.concat(&[id, next[0]]); next.len()]);
        }
        if let Term::Set(set) = &*self.terms.get(id) {
            let classes: Vec<CharSet> = self.left.classes.iter().map(|class| class.and(set)).collect();
            return Ok((0..next.len()).map(|state| self.one(&classes, state, next)).collect());
        }
        (0..next.len()).map(|state| self.texts(id, state, next)).collect()
    }

    /// One character from `state`.
    fn one(&mut self, classes: &[CharSet], state: usize, next: &[Id]) -> Id {
        let left = Rc::clone(&self.left);
        let ways = classes.iter().zip(&left.next[state]).map(|(set, &to)| (next[to], set));
        self.sets(ways)
    }

    /// One character of a set, then the matching continuation.
    fn sets<'s>(&mut self, ways: impl Iterator<Item = (Id, &'s CharSet)>) -> Id {
        let mut by_next: Vec<(Id, Vec<(u32, u32)>)> = Vec::new();
        for (next, set) in ways {
            match by_next.iter_mut().find(|(known, _)| *known == next) {
                Some((_, ranges)) => ranges.extend_from_slice(set.ranges()),
                None => by_next.push((next, set.ranges().to_vec())),
            }
        }
        let mut all = Vec::new();
        for (next, ranges) in by_next {
            let set = self.terms.set(CharSet::from_ranges(ranges));
            all.push(self.terms.concat(&[set, next]));
        }
        self.terms.or(&all)
    }

    /// Strings of `id` from the left state `state`.
    fn texts(&mut self, id: Id, state: usize, next: &[Id]) -> Result<Id, Problem> {
        let left = Rc::clone(&self.left);
        let last = self.terms.last(id);
        let reached = left.reached_by(&last);
        let nullable = self.terms.is_nullable(id);
        let mut values: Vec<Id> = (0..left.len()).filter(|&s| reached[s]).map(|s| next[s]).collect();
        values.sort_unstable();
        values.dedup();
        let value = if nullable { next[state] } else { values.first().copied().unwrap_or(NOTHING) };
        if values.iter().all(|&v| v == value) {
            return Ok(self.terms.concat(&[id, value]));
        }
        let mut ways = Vec::new();
        let mut texts = id;
        if nullable && !reached[state] {
            ways.push(next[state]);
            texts = self.terms.nonempty(id);
        }
        for value in values.iter().copied().filter(|&v| v != NOTHING) {
            let wanted: Vec<Option<bool>> =
                (0..left.len()).map(|s| reached[s].then_some(next[s] == value)).collect();
            let paths = left.paths(self.terms, state, &wanted).ok_or_else(too_large)?;
            let through = self.terms.and(&[texts, paths]);
            ways.push(self.terms.concat(&[through, value]));
        }
        Ok(self.terms.or(&ways))
    }

    /// The same with a guess of what follows.
    fn plain_between(&mut self, id: Id, next: &[Id], right: &Right) -> Result<Front, Problem> {
        let (left, rights) = (Rc::clone(&self.left), right.tracker.len());
        let set = match &*self.terms.get(id) {
            Term::Set(set) => Some(set.clone()),
            _ => None,
        };
        let first = self.terms.first(id);
        let entered = right.tracker.reached_by(&first);
        let nullable = self.terms.is_nullable(id);
        let mut front = Vec::with_capacity(next.len());
        for state in 0..left.len() {
            for guess in 0..rights {
                let mut ways = Vec::new();
                for after in 0..rights {
                    let column: Vec<Id> = (0..left.len()).map(|s| next[s * rights + after]).collect();
                    if column.iter().all(|&n| n == NOTHING) || !(entered[guess] || nullable && after == guess)
                    {
                        continue;
                    }
                    ways.push(match &set {
                        Some(set) => {
                            let set = right.step(after, guess, set);
                            let classes: Vec<CharSet> = left.classes.iter().map(|c| c.and(&set)).collect();
                            self.one(&classes, state, &column)
                        }
                        None => {
                            let wanted = (0..rights)
                                .map(|s| (entered[s] || nullable && s == after).then_some(s == guess));
                            let wanted: Vec<Option<bool>> = wanted.collect();
                            let paths = right.tracker.paths(self.terms, after, &wanted);
                            let backwards = self.terms.reverse(paths.ok_or_else(too_large)?);
                            let texts = self.terms.and(&[id, backwards]);
                            self.texts(texts, state, &column)?
                        }
                    });
                }
                front.push(self.terms.or(&ways));
            }
        }
        Ok(front)
    }

    // -- assertions

    fn holds(&self, state: usize, at: usize) -> bool {
        self.left.truths[state][self.predicates[&at]]
    }

    fn assert(&mut self, what: &Assertion, at: usize, mut next: Front) -> Result<Front, Problem> {
        let (mut bodies, mut only) = (Vec::new(), None);
        if self.behind && what.looks_ahead() {
            self.stays_inside(what, at, &next)?;
        }
        if let Assertion::Ahead { body, .. } = what {
            bodies = self.run(body, vec![ANY; self.left.len()], None)?;
            only = self.only_set(body);
        }
        for (state, entry) in next.iter_mut().enumerate() {
            *entry = match what {
                Assertion::Start(_) => [NOTHING, *entry][usize::from(self.holds(state, at))],
                Assertion::Behind { negated, .. } => {
                    [NOTHING, *entry][usize::from(self.holds(state, at) != *negated)]
                }
                Assertion::Word { word, negated } => {
                    let follows = self.holds(state, at) == *negated;
                    self.begin(*entry, word, follows, !follows)
                }
                Assertion::End(None) => self.terms.and(&[*entry, EMPTY]),
                Assertion::End(Some(lines)) => self.begin(*entry, lines, true, true),
                Assertion::Ahead { negated, .. } => match &only {
                    Some(set) => self.begin(*entry, set, !negated, *negated),
                    None => {
                        let body = bodies[state];
                        let body = if *negated { self.terms.not(body) } else { body };
                        self.terms.and(&[*entry, body])
                    }
                },
            };
        }
        Ok(next)
    }

    /// In a lookbehind, an assertion about what follows may only query characters of the lookbehind itself.
    fn stays_inside(&self, what: &Assertion, at: usize, next: &[Id]) -> Result<(), Problem> {
        let one = match what {
            Assertion::Ahead { body, .. } => self.only_set(body).is_some(),
            _ => true,
        };
        if one && next.iter().all(|&next| !self.terms.is_nullable(next)) {
            return Ok(());
        }
        Err(unsupported(at, what.name(), "that looks past the end of a lookbehind"))
    }

    /// The set, if the node is a single set.
    fn only_set(&self, node: &PatternNode) -> Option<CharSet> {
        let PatternNode::Plain(id) = node else { return None };
        match &*self.terms.get(*id) {
            Term::Set(set) => Some(set.clone()),
            _ => None,
        }
    }

    /// The strings of `of` whose first character is, or is not, in the set; with or without the empty string.
    fn begin(&mut self, of: Id, set: &CharSet, inside: bool, empty: bool) -> Id {
        let set = if inside { set.clone() } else { set.not() };
        let of = if empty { of } else { self.terms.nonempty(of) };
        let first = self.terms.first(of);
        let both = first.and(&set);
        if both == *first {
            return of;
        }
        let nullable = self.terms.is_nullable(of);
        if both.is_empty() {
            return [NOTHING, EMPTY][usize::from(nullable)];
        }
        let set = self.terms.set(set);
        let mut language = self.terms.concat(&[set, ANY]);
        if nullable {
            language = self.terms.or(&[EMPTY, language]);
        }
        self.terms.and(&[of, language])
    }

    /// With a guess of what follows, assertions only inspect states.
    fn assert_between(&mut self, what: &Assertion, at: usize, mut next: Front, right: &Right) -> Front {
        let rights = right.tracker.len();
        let ahead = |state: usize| right.tracker.truths[state % rights][right.predicates[&at]];
        for (state, entry) in next.iter_mut().enumerate() {
            let before = state / rights;
            let holds = match what {
                Assertion::Start(_) => self.holds(before, at),
                Assertion::Behind { negated, .. } => self.holds(before, at) != *negated,
                Assertion::Word { negated, .. } => (self.holds(before, at) == ahead(state)) == *negated,
                Assertion::End(_) => ahead(state),
                Assertion::Ahead { negated, .. } => ahead(state) != *negated,
            };
            if !holds {
                *entry = NOTHING;
            }
        }
        next
    }

    // -- loops

    fn repeat(
        &mut self,
        of: &PatternNode,
        min: u32,
        max: Option<u32>,
        at: usize,
        next: Front,
        right: Option<&Right>,
    ) -> Result<Front, Problem> {
        let again = max.unwrap_or(min);
        if again > MAX_STEPS {
            let what = "a count with assertions inside";
            return Err(Problem::limit(Some(at), format!("{what} may be {MAX_STEPS} at most")));
        }
        let mut front = match max {
            None => self.star(of, at, next.clone(), right)?,
            Some(_) => next.clone(),
        };
        for done in (0..again).rev() {
            front = self.run(of, front, right)?;
            if done >= min {
                for (entry, &next) in front.iter_mut().zip(&next) {
                    *entry = self.terms.or(&[*entry, next]);
                }
            }
        }
        Ok(front)
    }

    fn star(
        &mut self,
        of: &PatternNode,
        at: usize,
        next: Front,
        right: Option<&Right>,
    ) -> Result<Front, Problem> {
        let ahead: Vec<_> = of.assertions().into_iter().filter(|(what, _)| what.looks_ahead()).collect();
        if right.is_some() || ahead.is_empty() {
            return self.linear(of, at, next, right);
        }
        let (mut languages, mut first) = (Vec::new(), usize::MAX);
        let mut predicates = FxHashMap::default();
        for (what, at) in ahead {
            if self.behind {
                return Err(unsupported(at, what.name(), "repeated in a lookbehind"));
            }
            first = first.min(at);
            let language = self.following(what, at)?;
            let language = self.terms.reverse(language);
            predicates.insert(at, languages.len());
            languages.push(language);
        }
        let tracker = Tracker::new(self.terms, &languages);
        let tracker = tracker.ok_or_else(|| too_large().or_at(first))?;
        let right = Right { tracker, predicates };
        let rights = right.tracker.len();
        let mut endings = Vec::with_capacity(rights);
        for guess in 0..rights {
            let wanted: Vec<Option<bool>> = (0..rights).map(|s| Some(s == guess)).collect();
            let paths = right.tracker.paths(self.terms, 0, &wanted).ok_or_else(too_large)?;
            endings.push(self.terms.reverse(paths));
        }
        let mut guessed = Vec::with_capacity(next.len() * rights);
        for &next in &next {
            for &ending in &endings {
                guessed.push(self.terms.and(&[next, ending]));
            }
        }
        let solved = self.linear(of, at, guessed, Some(&right))?;
        Ok(solved.chunks(rights).map(|ways| self.terms.or(ways)).collect())
    }

    /// Any number of iterations of `of`, which only inspects states.
    fn linear(
        &mut self,
        of: &PatternNode,
        at: usize,
        next: Front,
        right: Option<&Right>,
    ) -> Result<Front, Problem> {
        let n = next.len();
        if n > MAX_UNKNOWNS {
            return Err(Problem::limit(
                Some(at),
                "the assertions inside this repetition need too many states",
            ));
        }
        let mut matrix = vec![vec![NOTHING; n]; n];
        for to in 0..n {
            let mut unit = vec![NOTHING; n];
            unit[to] = EMPTY;
            let ways = self.run(of, unit, right)?;
            matrix.iter_mut().zip(ways).for_each(|(row, way)| row[to] = way);
        }
        Ok(solve(self.terms, matrix, next))
    }

    /// The strings that may follow where an assertion (or the assertion under a negation) holds.
    fn following(&mut self, what: &Assertion, at: usize) -> Result<Id, Problem> {
        match what {
            Assertion::End(lines) => {
                let line = after_line(self.terms, lines.as_ref());
                Ok(self.terms.reverse(line))
            }
            Assertion::Word { word, .. } => {
                let word = self.terms.set(word.clone());
                Ok(self.terms.concat(&[word, ANY]))
            }
            Assertion::Ahead { body, .. } => {
                let all = self.run(body, vec![ANY; self.left.len()], None)?;
                if all.iter().any(|&language| language != all[0]) {
                    let place = "that looks back, inside a repetition";
                    return Err(unsupported(at, what.name(), place));
                }
                Ok(all[0])
            }
            Assertion::Start(_) | Assertion::Behind { .. } => Ok(ANY),
        }
    }
}

/// The strings before a `^`.
fn after_line(terms: &mut Terms, lines: Option<&CharSet>) -> Id {
    let Some(lines) = lines else { return EMPTY };
    let line = terms.set(lines.clone());
    let line = terms.concat(&[ANY, line]);
    terms.or(&[EMPTY, line])
}

/// The strings before a position where a lookbehind holds.
fn behind_language(terms: &mut Terms, body: &PatternNode, steps: &mut u32) -> Result<Id, Problem> {
    let node = PatternNode::concat(terms, vec![PatternNode::Plain(ANY), body.clone()]);
    if let PatternNode::Plain(id) = node {
        return Ok(id);
    }
    Translator::new(terms, &node, steps, true)?.whole(&node)
}
