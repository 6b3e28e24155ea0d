//! Regular languages as shared terms, from which a pattern is built before it becomes a [`Regex`].
//!
//! Equal terms have one id, so a continuation that many branches share is stored once. [`Terms::regex`] writes
//! terms out as a tree; it first computes the size of that tree and rejects what would be too large.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::{CharSet, Regex};

/// The id of a term in its [`Terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(u32);

/// No string.
pub(super) const NOTHING: Id = Id(0);
/// The empty string.
pub(super) const EMPTY: Id = Id(1);
/// Every string.
pub(super) const ANY: Id = Id(2);
/// Every string of one character.
pub(super) const ONE: Id = Id(3);
/// Every string but the empty one.
pub(super) const SOME: Id = Id(4);

/// Maximum number of terms in an arena.
const MAX_TERMS: usize = 1 << 19;
/// Maximum number of children in an arena: long lists take the most memory.
const MAX_CHILDREN: usize = 1 << 23;
/// Maximum number of children and ranges visited for one pattern, which bounds repeated merging. None of 5,555
/// real schemas needs a hundredth of it.
pub const MAX_WORK: usize = 1 << 20;
/// Maximum number of nodes of the written tree; a set counts its ranges.
const MAX_WEIGHT: u64 = 1 << 20;
/// Maximum depth of the written tree.
const MAX_DEPTH: u32 = 1000;

/// A term. Children of `Or` and `And` are sorted and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Nothing,
    Empty,
    Set(CharSet),
    Concat(Vec<Id>),
    Or(Vec<Id>),
    And(Vec<Id>),
    Not(Id),
    Repeat(Id, u32, Option<u32>),
}

#[derive(Debug, Clone, Copy)]
struct TermFacts {
    nullable: bool,
    weight: u64,
    depth: u32,
}

/// An arena of terms. When it is full, [`Terms::is_full`] holds and every new term is [`NOTHING`]; callers
/// check once at the end.
pub(super) struct Terms {
    terms: Vec<Rc<Term>>,
    about: Vec<TermFacts>,
    numbers: FxHashMap<Rc<Term>, Id>,
    first: FxHashMap<Id, Rc<CharSet>>,
    last: FxHashMap<Id, Rc<CharSet>>,
    derived: FxHashMap<(Id, char), Id>,
    reversed: FxHashMap<Id, Id>,
    children: usize,
    /// Remaining work: children and ranges that may still be visited.
    work: usize,
    full: bool,
}

impl Terms {
    pub(super) fn new(work: usize) -> Terms {
        let mut terms = Terms {
            terms: Vec::new(),
            about: Vec::new(),
            numbers: FxHashMap::default(),
            first: FxHashMap::default(),
            last: FxHashMap::default(),
            derived: FxHashMap::default(),
            reversed: FxHashMap::default(),
            children: 0,
            work,
            full: false,
        };
        let nothing = terms.add(Term::Nothing);
        let empty = terms.add(Term::Empty);
        let any = terms.add(Term::Repeat(ONE, 0, None));
        let one = terms.add(Term::Set(CharSet::all()));
        let some = terms.add(Term::Repeat(ONE, 1, None));
        debug_assert_eq!((nothing, empty, any, one, some), (NOTHING, EMPTY, ANY, ONE, SOME));
        terms
    }

    /// Whether a limit was reached, so that all terms made since are invalid.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// The remaining work.
    pub(super) fn work(&self) -> usize {
        self.work
    }

    /// Deducts the cost of visiting `parts`; whether it was affordable.
    fn spend(&mut self, parts: &[Id]) -> bool {
        let costs = parts.iter().map(|part| match &*self.terms[part.0 as usize] {
            Term::Concat(parts) | Term::Or(parts) | Term::And(parts) => parts.len(),
            Term::Set(set) => set.ranges().len(),
            _ => 1,
        });
        let cost = 1 + costs.sum::<usize>();
        self.full |= cost > self.work;
        self.work = self.work.saturating_sub(cost);
        !self.full
    }

    pub(super) fn get(&self, id: Id) -> Rc<Term> {
        Rc::clone(&self.terms[id.0 as usize])
    }

    pub(super) fn is_nullable(&self, id: Id) -> bool {
        self.about(id).nullable
    }

    fn about(&self, id: Id) -> TermFacts {
        // ANY precedes ONE: the only forward reference.
        self.about.get(id.0 as usize).copied().unwrap_or(TermFacts { nullable: false, weight: 2, depth: 1 })
    }

    fn add(&mut self, term: Term) -> Id {
        if let Some(&id) = self.numbers.get(&term) {
            return id;
        }
        let children = match &term {
            Term::Concat(parts) | Term::Or(parts) | Term::And(parts) => parts.len(),
            Term::Set(set) => set.ranges().len(),
            _ => 1,
        };
        self.children += children;
        if self.terms.len() >= MAX_TERMS || self.children > MAX_CHILDREN {
            self.full = true;
            return NOTHING;
        }
        let about = self.weigh(&term);
        let id = Id(self.terms.len() as u32);
        let term = Rc::new(term);
        self.terms.push(Rc::clone(&term));
        self.about.push(about);
        self.numbers.insert(term, id);
        id
    }

    fn weigh(&self, term: &Term) -> TermFacts {
        let over = |parts: &[Id]| {
            let parts = parts.iter().map(|&p| self.about(p));
            parts.fold((1u64, 0), |(weight, depth), p| (weight.saturating_add(p.weight), depth.max(p.depth)))
        };
        let nullable = |id: &Id| self.is_nullable(*id);
        let (nullable, (weight, depth)) = match term {
            Term::Nothing => (false, (1, 0)),
            Term::Empty => (true, (1, 0)),
            Term::Set(set) => (false, (1 + set.ranges().len() as u64 / 4, 0)),
            Term::Concat(parts) | Term::And(parts) => (parts.iter().all(nullable), over(parts)),
            Term::Or(parts) => (parts.iter().any(nullable), over(parts)),
            Term::Not(of) => (!nullable(of), over(&[*of])),
            Term::Repeat(of, min, _) => (*min == 0 || nullable(of), over(&[*of])),
        };
        TermFacts { nullable, weight, depth: depth.saturating_add(1) }
    }

    /// One character of the set.
    pub(super) fn set(&mut self, set: CharSet) -> Id {
        if set.is_empty() {
            NOTHING
        } else {
            self.add(Term::Set(set))
        }
    }

    /// Concatenation.
    pub(super) fn concat(&mut self, parts: &[Id]) -> Id {
        if !self.spend(parts) {
            return NOTHING;
        }
        let mut flat = Vec::with_capacity(parts.len());
        for &part in parts {
            match &*self.terms[part.0 as usize] {
                Term::Nothing => return NOTHING,
                Term::Empty => {}
                Term::Concat(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        flat.dedup_by(|a, b| *a == ANY && *b == ANY);
        match flat[..] {
            [] => EMPTY,
            [only] => only,
            _ => self.add(Term::Concat(flat)),
        }
    }

    /// Union.
    pub(super) fn or(&mut self, parts: &[Id]) -> Id {
        if !self.spend(parts) {
            return NOTHING;
        }
        let mut sets: Vec<(u32, u32)> = Vec::new();
        let mut flat = Vec::with_capacity(parts.len());
        for &part in parts {
            let inner = match &*self.terms[part.0 as usize] {
                Term::Or(inner) => inner.clone(),
                _ => vec![part],
            };
            for id in inner {
                match &*self.terms[id.0 as usize] {
                    Term::Nothing => {}
                    Term::Set(set) => sets.extend_from_slice(set.ranges()),
                    _ if id == ANY => return ANY,
                    _ => flat.push(id),
                }
            }
        }
        let set = self.set(CharSet::from_ranges(sets));
        if set != NOTHING {
            flat.push(set);
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&EMPTY) && flat.iter().any(|&id| id != EMPTY && self.is_nullable(id)) {
            flat.retain(|&id| id != EMPTY);
        }
        match flat[..] {
            [] => NOTHING,
            [only] => only,
            _ => self.add(Term::Or(flat)),
        }
    }

    /// Intersection.
    pub(super) fn and(&mut self, parts: &[Id]) -> Id {
        if !self.spend(parts) {
            return NOTHING;
        }
        let mut set: Option<CharSet> = None;
        let mut flat = Vec::with_capacity(parts.len());
        for &part in parts {
            let inner = match &*self.terms[part.0 as usize] {
                Term::And(inner) => inner.clone(),
                _ => vec![part],
            };
            for id in inner {
                match &*self.terms[id.0 as usize] {
                    Term::Nothing => return NOTHING,
                    Term::Set(other) => set = Some(set.map_or_else(|| other.clone(), |set| set.and(other))),
                    _ if id == ANY => {}
                    _ => flat.push(id),
                }
            }
        }
        if let Some(set) = set {
            flat.push(self.set(set));
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&EMPTY) {
            return if flat.iter().all(|&id| self.is_nullable(id)) { EMPTY } else { NOTHING };
        }
        if flat.iter().any(|&id| id != SOME && !self.is_nullable(id)) {
            flat.retain(|&id| id != SOME);
        }
        match flat[..] {
            [] => ANY,
            [only] => only,
            [NOTHING, ..] => NOTHING,
            _ => self.add(Term::And(flat)),
        }
    }

    /// Complement.
    pub(super) fn not(&mut self, of: Id) -> Id {
        match *self.get(of) {
            Term::Nothing => ANY,
            Term::Empty => SOME,
            Term::Not(inner) => inner,
            _ if of == SOME => EMPTY,
            _ if of == ANY => NOTHING,
            _ => self.add(Term::Not(of)),
        }
    }

    /// At least `min` and at most `max` repetitions.
    pub(super) fn repeat(&mut self, of: Id, min: u32, max: Option<u32>) -> Id {
        if max == Some(0) || of == EMPTY {
            return EMPTY;
        }
        // A nullable body may skip iterations, so only the maximum matters.
        let min = if self.is_nullable(of) { 0 } else { min };
        match *self.get(of) {
            _ if (min, max) == (1, Some(1)) => of,
            _ if (min, max) == (0, Some(1)) && self.is_nullable(of) => of,
            Term::Nothing => [EMPTY, NOTHING][usize::from(min > 0)],
            Term::Repeat(_, 0, None) => of,
            Term::Repeat(inner, 1, None) if max.is_none() && min <= 1 => self.repeat(inner, min, None),
            Term::Repeat(inner, 0, Some(1)) => self.repeat(inner, 0, max),
            _ => self.add(Term::Repeat(of, min, max)),
        }
    }

    /// The non-empty strings of `of`.
    pub(super) fn nonempty(&mut self, of: Id) -> Id {
        if !self.is_nullable(of) {
            return of;
        }
        match &*self.get(of) {
            Term::Empty => NOTHING,
            Term::Repeat(inner, _, max) if !self.is_nullable(*inner) => self.repeat(*inner, 1, *max),
            Term::Or(parts) => {
                let parts: Vec<Id> = parts.iter().map(|&p| self.nonempty(p)).collect();
                self.or(&parts)
            }
            _ => self.and(&[of, SOME]),
        }
    }

    /// The characters that may start a string of `id`, or a superset.
    pub(super) fn first(&mut self, id: Id) -> Rc<CharSet> {
        self.edge(id, false)
    }

    /// The characters that may end a string of `id`, or a superset.
    pub(super) fn last(&mut self, id: Id) -> Rc<CharSet> {
        self.edge(id, true)
    }

    fn edge(&mut self, id: Id, end: bool) -> Rc<CharSet> {
        let known = if end { &self.last } else { &self.first };
        if let Some(set) = known.get(&id) {
            return Rc::clone(set);
        }
        let term = self.get(id);
        let set = match &*term {
            Term::Nothing | Term::Empty => CharSet::none(),
            Term::Set(set) => set.clone(),
            Term::Concat(parts) => {
                let order: Vec<Id> = if end { parts.iter().rev().copied().collect() } else { parts.clone() };
                let until = order.iter().position(|&p| !self.is_nullable(p)).unwrap_or(order.len() - 1);
                self.union(&order[..=until], end)
            }
            Term::Or(parts) => self.union(parts, end),
            Term::And(parts) => {
                parts.iter().fold(CharSet::all(), |set, &part| set.and(&self.edge(part, end)))
            }
            Term::Not(_) => CharSet::all(),
            Term::Repeat(of, ..) => (*self.edge(*of, end)).clone(),
        };
        let set = Rc::new(set);
        let known = if end { &mut self.last } else { &mut self.first };
        known.insert(id, Rc::clone(&set));
        set
    }

    fn union(&mut self, parts: &[Id], end: bool) -> CharSet {
        let ranges: Vec<(u32, u32)> =
            parts.iter().flat_map(|&part| self.edge(part, end).ranges().to_vec()).collect();
        CharSet::from_ranges(ranges)
    }

    /// The derivative by `c` (Brzozowski).
    pub(super) fn derive(&mut self, id: Id, c: char) -> Id {
        if let Some(&known) = self.derived.get(&(id, c)) {
            return known;
        }
        let term = self.get(id);
        let derived = match &*term {
            Term::Nothing | Term::Empty => NOTHING,
            Term::Set(set) => [NOTHING, EMPTY][usize::from(set.contains(c))],
            Term::Concat(parts) => {
                let mut ways = Vec::new();
                for (at, &part) in parts.iter().enumerate() {
                    let mut way = vec![self.derive(part, c)];
                    way.extend_from_slice(&parts[at + 1..]);
                    ways.push(self.concat(&way));
                    if !self.is_nullable(part) {
                        break;
                    }
                }
                self.or(&ways)
            }
            Term::Or(parts) => {
                let parts: Vec<Id> = parts.iter().map(|&part| self.derive(part, c)).collect();
                self.or(&parts)
            }
            Term::And(parts) => {
                let parts: Vec<Id> = parts.iter().map(|&part| self.derive(part, c)).collect();
                self.and(&parts)
            }
            Term::Not(of) => {
                let of = self.derive(*of, c);
                self.not(of)
            }
            &Term::Repeat(of, min, max) => {
                let head = self.derive(of, c);
                let tail = self.repeat(of, min.saturating_sub(1), max.map(|max| max - 1));
                self.concat(&[head, tail])
            }
        };
        self.derived.insert((id, c), derived);
        derived
    }

    /// The reversal of `id`.
    pub(super) fn reverse(&mut self, id: Id) -> Id {
        if let Some(&known) = self.reversed.get(&id) {
            return known;
        }
        let term = self.get(id);
        let reversed = match &*term {
            Term::Nothing | Term::Empty | Term::Set(_) => id,
            Term::Concat(parts) => {
                let parts: Vec<Id> = parts.iter().rev().map(|&part| self.reverse(part)).collect();
                self.concat(&parts)
            }
            Term::Or(parts) => {
                let parts: Vec<Id> = parts.iter().map(|&part| self.reverse(part)).collect();
                self.or(&parts)
            }
            Term::And(parts) => {
                let parts: Vec<Id> = parts.iter().map(|&part| self.reverse(part)).collect();
                self.and(&parts)
            }
            Term::Not(of) => {
                let of = self.reverse(*of);
                self.not(of)
            }
            &Term::Repeat(of, min, max) => {
                let of = self.reverse(of);
                self.repeat(of, min, max)
            }
        };
        self.reversed.insert(id, reversed);
        reversed
    }

    /// Every set in `id`, to partition characters into classes.
    pub(super) fn sets(&self, id: Id, found: &mut Vec<CharSet>) {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match &*self.terms[id.0 as usize] {
                Term::Nothing | Term::Empty => {}
                Term::Set(set) => found.push(set.clone()),
                Term::Concat(parts) | Term::Or(parts) | Term::And(parts) => open.extend_from_slice(parts),
                Term::Not(of) | Term::Repeat(of, ..) => open.push(*of),
            }
        }
    }

    /// Whether the term is shallow enough for the recursive functions here.
    pub(super) fn is_shallow(&self, id: Id) -> bool {
        self.about(id).depth <= MAX_DEPTH
    }

    /// The term as a tree; `None` if it would be too large or too deep.
    pub(super) fn regex(&self, id: Id) -> Option<Regex> {
        let about = self.about(id);
        (about.weight <= MAX_WEIGHT && about.depth <= MAX_DEPTH).then(|| self.write(id))
    }

    fn write(&self, id: Id) -> Regex {
        let all = |parts: &[Id]| parts.iter().map(|&part| self.write(part)).collect();
        match &*self.terms[id.0 as usize] {
            Term::Nothing => Regex::Nothing,
            Term::Empty => Regex::Empty,
            Term::Set(set) => match only(set) {
                Some(c) => Regex::Text(c.into()),
                None => Regex::Set(set.clone()),
            },
            Term::Concat(parts) => self.write_concat(parts),
            Term::Or(parts) => Regex::Or(all(parts)),
            Term::And(parts) => Regex::And(all(parts)),
            Term::Not(of) => Regex::Not(Box::new(self.write(*of))),
            &Term::Repeat(of, min, max) => Regex::Repeat { of: Box::new(self.write(of)), min, max },
        }
    }

    /// Merges single characters into strings.
    fn write_concat(&self, parts: &[Id]) -> Regex {
        let mut written: Vec<Regex> = Vec::new();
        for &part in parts {
            match (self.write(part), written.last_mut()) {
                (Regex::Text(more), Some(Regex::Text(text))) => text.push_str(&more),
                (other, _) => written.push(other),
            }
        }
        match written.len() {
            1 => written.remove(0),
            _ => Regex::Concat(written),
        }
    }
}

/// The only character of a set.
fn only(set: &CharSet) -> Option<char> {
    match set.ranges() {
        [(from, to)] if from == to => char::from_u32(*from),
        _ => None,
    }
}
