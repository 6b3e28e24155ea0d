//! Choices between numbers, simplified by what their divisors and bounds say of each other.
//!
//! ```text
//! one of: multiple of 3, of 5, of 7; if of 5 or 7, of 24; not of 8      of 3, and neither of 5 nor of 7 nor of 8
//! ```
//!
//! Each divisor and each bound is true or false of a number. Some combinations no number has: what is a multiple of 24 is one
//! of 8. The others that fulfil all choices are covered by few products of literals.
//!
//! The naive version is the intersection of the choices' automata.

use super::super::decimal::Decimal;
use super::super::normalize::NumberFacts;
use super::super::number::{self, NumberSet};
use super::super::schema::{NumberBound, TypeSet};

/// Most divisors and bounds that may be true or false.
const MAX_FREE: usize = 8;
/// Most choices within choices.
const MAX_DEPTH: u32 = 16;

/// What is true or false of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Atom {
    /// It is a multiple of this.
    Multiple(String),
    /// It is at least this, or above it.
    Least(NumberBound),
}

/// An atom or its negation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    atom: Atom,
    holds: bool,
}

impl Literal {
    fn multiple(of: &str, holds: bool) -> Option<Literal> {
        Some(Literal { atom: Atom::Multiple(Decimal::read(of)?.canonical()), holds })
    }

    /// The numbers that satisfy it.
    pub(super) fn numbers(&self, digits_only: bool) -> NumberSet {
        let set = NumberSet { digits_only, ..NumberSet::default() };
        match (&self.atom, self.holds) {
            (Atom::Multiple(of), true) => NumberSet { multiples: vec![of.clone()], ..set },
            (Atom::Multiple(of), false) => NumberSet { not_multiples: vec![of.clone()], ..set },
            (Atom::Least(bound), true) => NumberSet { minimum: Some(bound.clone()), ..set },
            (Atom::Least(bound), false) => NumberSet { maximum: Some(beyond(bound)), ..set },
        }
    }

    fn is_divisor(&self) -> bool {
        matches!(self.atom, Atom::Multiple(_))
    }
}

/// The other side of a bound.
fn beyond(bound: &NumberBound) -> NumberBound {
    NumberBound { value: bound.value.clone(), exclusive: !bound.exclusive }
}

/// The literals of `facts`, its choices and single values left out; `None` if it lists its values.
fn literals(facts: &NumberFacts) -> Option<Vec<Literal>> {
    if facts.only.is_some() {
        return None;
    }
    let mut found = Vec::new();
    for (of, holds) in [(&facts.multiples, true), (&facts.not_multiples, false)] {
        for of in of {
            found.push(Literal::multiple(of, holds)?);
        }
    }
    found.extend(facts.min.clone().map(|bound| Literal { atom: Atom::Least(bound), holds: true }));
    found.extend(facts.max.as_ref().map(|bound| Literal { atom: Atom::Least(beyond(bound)), holds: false }));
    Some(found)
}

/// What it means to be of one type only.
fn typed(types: TypeSet) -> Option<Literal> {
    match types {
        TypeSet::INTEGER => Literal::multiple("1", true),
        TypeSet::FRACTION => Literal::multiple("1", false),
        _ => None,
    }
}

/// A conjunction: literals, and choices between conjunctions.
struct Terms {
    literals: Vec<Literal>,
    choices: Vec<Vec<Terms>>,
}

impl Terms {
    /// What `facts` asks of numbers of `types`; `None` if it asks for something else than literals.
    fn new(facts: &NumberFacts, types: TypeSet, depth: u32) -> Option<Terms> {
        let below = depth.checked_sub(1)?;
        let mut choices = Vec::with_capacity(facts.choices.len());
        for ways in &facts.choices {
            let mut any = Vec::with_capacity(ways.len());
            for way in ways.iter() {
                let own = if way.types == 0 { types } else { TypeSet(way.types & types.0) };
                if way.digits_only || !way.not.is_empty() {
                    return None;
                }
                if own.0 != 0 {
                    let mut terms = Terms::new(way, own, below)?;
                    terms.literals.extend(if own == types { None } else { typed(own) });
                    any.push(terms);
                }
            }
            choices.push(any);
        }
        Some(Terms { literals: literals(facts)?, choices })
    }

    fn fulfilled(&self, holds: &impl Fn(&Literal) -> bool) -> bool {
        self.literals.iter().all(holds)
            && self.choices.iter().all(|ways| ways.iter().any(|way| way.fulfilled(holds)))
    }

    /// Adds its atoms that are not in `atoms`.
    fn atoms(&self, atoms: &mut Vec<Atom>) {
        for literal in &self.literals {
            if !atoms.contains(&literal.atom) {
                atoms.push(literal.atom.clone());
            }
        }
        self.choices.iter().flatten().for_each(|way| way.atoms(atoms));
    }

    /// Whether each of its numbers is held to a divisor, which decides how it is spelled.
    fn has_divisor(&self) -> bool {
        self.literals.iter().any(Literal::is_divisor)
            || self.choices.iter().any(|ways| ways.iter().all(Terms::has_divisor))
    }
}

/// What the choices of `facts` ask for beside the rest of it: one of these lists of literals, or no list if no number
/// fulfils `facts`. `None` if that is not known, or if other spellings of numbers would be taken.
pub(super) fn simplified(facts: &NumberFacts, types: TypeSet) -> Option<Vec<Vec<Literal>>> {
    let types = TypeSet(types.0 & TypeSet::NUMBER.0);
    let mut terms = Terms::new(facts, types, MAX_DEPTH)?;
    terms.literals.extend(typed(types));
    let cubes = Table::new(&terms)?.cubes();
    let has_divisor = |all: &[Literal]| all.iter().any(Literal::is_divisor);
    let same =
        has_divisor(&terms.literals) || (terms.has_divisor() && cubes.iter().all(|cube| has_divisor(cube)));
    same.then_some(cubes)
}

/// The truth table of some choices.
struct Table {
    /// Atoms that may be true or false, from the least divisor on.
    free: Vec<Atom>,
    /// For each assignment, a bit for each of them, whether it fulfils the choices.
    wanted: Vec<bool>,
    /// For each whether some number might have it.
    possible: Vec<bool>,
}

impl Table {
    fn new(terms: &Terms) -> Option<Table> {
        let fixed = &terms.literals;
        let mut atoms = Vec::new();
        terms.atoms(&mut atoms);
        let divisors = scaled(&atoms)?;
        let small = |atom: &Atom| match atom {
            Atom::Multiple(of) => number::is_small(of),
            Atom::Least(_) => true,
        };
        if !atoms.iter().all(small) {
            return None;
        }
        let known =
            |atom: &Atom| fixed.iter().find(|literal| literal.atom == *atom).map(|literal| literal.holds);
        let mut free: Vec<usize> = (0..atoms.len()).filter(|&at| known(&atoms[at]).is_none()).collect();
        if free.len() > MAX_FREE {
            return None;
        }
        free.sort_by_key(|&at| divisors[at].unwrap_or(0));
        let (mut wanted, mut possible) = (Vec::new(), Vec::new());
        for assignment in 0..1u32 << free.len() {
            let holds = |at: usize| match free.iter().position(|&other| other == at) {
                Some(bit) => assignment >> bit & 1 == 1,
                None => known(&atoms[at]) == Some(true),
            };
            let fulfils = |literal: &Literal| {
                atoms
                    .iter()
                    .position(|atom| *atom == literal.atom)
                    .is_some_and(|at| holds(at) == literal.holds)
            };
            wanted.push(terms.fulfilled(&fulfils));
            possible.push(may_be(&divisors, holds));
        }
        let free = free.into_iter().map(|at| atoms[at].clone()).collect();
        Some(Table { free, wanted, possible })
    }

    /// Lists of literals that cover what is wanted and possible, and nothing else that is possible.
    fn cubes(&self) -> Vec<Vec<Literal>> {
        let all = (1u32 << self.free.len()) - 1;
        let mut covered = vec![false; self.wanted.len()];
        let mut cubes = Vec::new();
        for at in 0..=all {
            let place = at as usize;
            if !self.wanted[place] || !self.possible[place] || covered[place] {
                continue;
            }
            // The bits that matter: as few as cover nothing unwanted, large divisors left out first.
            let mut matter = all;
            for bit in (0..self.free.len()).rev() {
                let fewer = matter & !(1 << bit);
                let agrees = |&other: &u32| (other ^ at) & fewer == 0;
                let fine = |other: u32| self.wanted[other as usize] || !self.possible[other as usize];
                if (0..=all).filter(agrees).all(fine) {
                    matter = fewer;
                }
            }
            (0..=all)
                .filter(|other| (other ^ at) & matter == 0)
                .for_each(|other| covered[other as usize] = true);
            let literal = |bit: usize| Literal { atom: self.free[bit].clone(), holds: at >> bit & 1 == 1 };
            cubes.push((0..self.free.len()).filter(|bit| matter >> bit & 1 == 1).map(literal).collect());
        }
        cubes
    }
}

/// The divisors as whole numbers, all scaled alike; `None` if they have too many digits.
fn scaled(atoms: &[Atom]) -> Option<Vec<Option<u128>>> {
    let read = |atom: &Atom| match atom {
        Atom::Multiple(of) => Decimal::read(of),
        Atom::Least(_) => None,
    };
    let places = atoms.iter().filter_map(read).map(|of| of.places()).max().unwrap_or(0);
    let whole = |of: Decimal| {
        let length = usize::try_from(of.point + places as i64).ok().filter(|&length| length <= 18)?;
        let digits = of.digits.iter().chain(std::iter::repeat(&0)).take(length.max(of.digits.len()));
        Some(digits.fold(0u128, |whole, &digit| whole * 10 + u128::from(digit))).filter(|&whole| whole > 0)
    };
    atoms.iter().map(|atom| read(atom).map_or(Some(None), |of| whole(of).map(Some))).collect()
}

/// Whether some number may be a multiple of exactly those divisors that `holds` is true of: not if each multiple of them all
/// is one of another.
fn may_be(divisors: &[Option<u128>], holds: impl Fn(usize) -> bool) -> bool {
    let of = |wanted: bool| {
        let holds = &holds;
        divisors.iter().enumerate().filter_map(move |(at, of)| of.filter(|_| holds(at) == wanted))
    };
    let mut common: Option<u128> = None;
    for divisor in of(true) {
        common = match common {
            None => Some(divisor),
            Some(common) => match number::lcm(common, divisor) {
                Some(common) => Some(common),
                None => return true,
            },
        };
    }
    common.is_none_or(|common| !of(false).any(|divisor| common.is_multiple_of(divisor)))
}
