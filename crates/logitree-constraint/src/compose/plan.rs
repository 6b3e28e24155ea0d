//! The order of the parts of a composition: which parts may begin, and which may follow a part that is complete.
//!
//! A composition of sequence, choice and repetition is a tree of nodes with the parts as leaves. What comes after a part is
//! a continuation: a list of the nodes that are still open, from the inside out, each with its place in it. Lists are
//! interned, so that equal continuations are equal numbers; a sequence leaves no trace once its last part has begun.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::{Error, ErrorKind, Result};

/// The continuation after which the whole composition is complete.
const DONE: u32 = 0;
/// Continuations that a plan may number: each count of a repetition is one.
const MAX_CONTINUATIONS: usize = 1 << 22;

/// How parts are arranged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One part, by its index.
    Part(usize),
    /// One after the other.
    Then(Vec<Shape>),
    /// Any of them.
    Either(Vec<Shape>),
    /// At least `min` and at most `max` times.
    Repeat { of: Box<Shape>, min: u32, max: Option<u32> },
}

/// What is known of a part at its beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    /// Whether it is complete with nothing.
    pub empty: bool,
    /// Whether it can be anything else.
    pub more: bool,
}

/// A part that begins or is running, and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub part: u32,
    pub after: u32,
}

/// What may come next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// The parts that may begin. Each writes something.
    pub places: Vec<Place>,
    /// Whether the composition may end here.
    pub end: bool,
}

#[derive(Debug)]
enum Node {
    Part(u32),
    Then(Box<[u32]>),
    Either(Box<[u32]>),
    Repeat { of: u32, min: u32, max: Option<u32> },
}

/// A node that is open, and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Frame {
    node: u32,
    /// The index of the next part of a sequence; how often a repetition has begun.
    at: u32,
    after: u32,
}

#[derive(Debug, Default)]
struct Frames {
    all: Vec<Frame>,
    numbers: FxHashMap<Frame, u32>,
}

/// A composition's order. Shared by all matchers over it.
#[derive(Debug)]
pub(crate) struct Plan {
    nodes: Vec<Node>,
    root: u32,
    /// Of each node, whether it can be empty.
    empty: Vec<bool>,
    beginnings: Vec<Beginning>,
    frames: Mutex<Frames>,
}

/// What is left to do while the next parts are found.
enum Todo {
    Enter { node: u32, after: u32 },
    Leave(u32),
}

impl Plan {
    /// # Errors
    /// [`ErrorKind::Constraint`] for a repetition whose maximum is less than its minimum.
    pub fn new(shape: &Shape, beginnings: Vec<Beginning>) -> Result<Plan> {
        let mut plan =
            Plan { nodes: Vec::new(), root: 0, empty: Vec::new(), beginnings, frames: Mutex::default() };
        plan.root = plan.add(shape)?;
        Ok(plan)
    }

    /// Recurses as deep as compositions may nest.
    fn add(&mut self, shape: &Shape) -> Result<u32> {
        let (node, empty) = match shape {
            Shape::Part(part) => (Node::Part(*part as u32), self.beginnings[*part].empty),
            Shape::Then(parts) => {
                let parts = self.add_all(parts)?;
                let empty = parts.iter().all(|&part| self.empty[part as usize]);
                (Node::Then(parts), empty)
            }
            Shape::Either(parts) => {
                let parts = self.add_all(parts)?;
                let empty = parts.iter().any(|&part| self.empty[part as usize]);
                (Node::Either(parts), empty)
            }
            Shape::Repeat { of, min, max } => {
                check_counts(*min, *max)?;
                let of = self.add(of)?;
                // A part that may be empty may be empty as often as needed.
                let min = if self.empty[of as usize] { 0 } else { *min };
                (Node::Repeat { of, min, max: *max }, min == 0)
            }
        };
        self.nodes.push(node);
        self.empty.push(empty);
        Ok(self.nodes.len() as u32 - 1)
    }

    fn add_all(&mut self, parts: &[Shape]) -> Result<Box<[u32]>> {
        parts.iter().map(|part| self.add(part)).collect()
    }

    /// What may come first.
    ///
    /// # Errors
    /// As [`Plan::after`].
    pub fn start(&self) -> Result<Next> {
        let mut next = self.run(Todo::Enter { node: self.root, after: DONE })?;
        next.end = self.empty[self.root as usize];
        Ok(next)
    }

    /// What may come after a part that is complete, and has written something.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if a repetition has more rounds than are numbered.
    pub fn after(&self, place: Place) -> Result<Next> {
        if place.after == DONE {
            return Ok(Next { places: Vec::new(), end: true });
        }
        self.run(Todo::Leave(place.after))
    }

    fn run(&self, first: Todo) -> Result<Next> {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Next::default();
        let mut left = vec![first];
        while let Some(todo) = left.pop() {
            match todo {
                Todo::Enter { node, after } => match &self.nodes[node as usize] {
                    Node::Part(part) => {
                        if self.beginnings[*part as usize].more {
                            next.places.push(Place { part: *part, after });
                        }
                    }
                    Node::Then(parts) => {
                        self.begin(node, parts, 0, after, &mut frames, &mut left)?;
                    }
                    Node::Either(parts) => {
                        left.extend(parts.iter().rev().map(|&node| Todo::Enter { node, after }));
                    }
                    &Node::Repeat { of, max, .. } => {
                        if max != Some(0) {
                            let after = frames.number(Frame { node, at: 1, after })?;
                            left.push(Todo::Enter { node: of, after });
                        }
                    }
                },
                Todo::Leave(DONE) => next.end = true,
                Todo::Leave(frame) => {
                    let Frame { node, at, after } = frames.all[frame as usize - 1];
                    match &self.nodes[node as usize] {
                        Node::Then(parts) => {
                            if self.begin(node, parts, at as usize, after, &mut frames, &mut left)? {
                                left.push(Todo::Leave(after));
                            }
                        }
                        &Node::Repeat { of, min, max } => {
                            if at >= min {
                                left.push(Todo::Leave(after));
                            }
                            if max.is_none_or(|max| at < max) {
                                // Past the minimum of an endless repetition all rounds are alike.
                                let at = if max.is_none() { (at + 1).min(min.max(1)) } else { at + 1 };
                                let again = frames.number(Frame { node, at, after })?;
                                left.push(Todo::Enter { node: of, after: again });
                            }
                        }
                        Node::Part(_) | Node::Either(_) => {}
                    }
                }
            }
        }
        next.places.sort_unstable();
        next.places.dedup();
        Ok(next)
    }

    /// Begins a sequence at its part `at`, and at those after it where all before may be empty. Whether all the rest may
    /// be.
    fn begin(
        &self,
        node: u32,
        parts: &[u32],
        at: usize,
        after: u32,
        frames: &mut Frames,
        left: &mut Vec<Todo>,
    ) -> Result<bool> {
        for (n, &part) in parts.iter().enumerate().skip(at) {
            let rest = match n + 1 < parts.len() {
                true => frames.number(Frame { node, at: n as u32 + 1, after })?,
                false => after,
            };
            left.push(Todo::Enter { node: part, after: rest });
            if !self.empty[part as usize] {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Frames {
    fn number(&mut self, frame: Frame) -> Result<u32> {
        if let Some(&known) = self.numbers.get(&frame) {
            return Ok(known);
        }
        if self.all.len() >= MAX_CONTINUATIONS {
            let message = format!("a composition has more than {MAX_CONTINUATIONS} places");
            return Err(Error::new(ErrorKind::Limit, message).help("repeat fewer times"));
        }
        self.all.push(frame);
        let number = self.all.len() as u32;
        self.numbers.insert(frame, number);
        Ok(number)
    }
}

/// # Errors
/// [`ErrorKind::Constraint`] if the maximum is less than the minimum.
pub(super) fn check_counts(min: u32, max: Option<u32>) -> Result<()> {
    match max.filter(|&max| max < min) {
        Some(max) => {
            let message = format!("repeated at least {min} times and at most {max} times");
            Err(Error::new(ErrorKind::Constraint, message).help("the most is not less than the least"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: usize) -> Shape {
        Shape::Part(index)
    }

    fn plan(shape: &Shape, empty: &[bool]) -> Plan {
        Plan::new(shape, empty.iter().map(|&empty| Beginning { empty, more: true }).collect()).unwrap()
    }

    fn parts(next: &Next) -> (Vec<u32>, bool) {
        (next.places.iter().map(|place| place.part).collect(), next.end)
    }

    #[test]
    fn a_sequence_skips_what_may_be_empty() {
        let plan = plan(&Shape::Then(vec![part(0), part(1), part(2)]), &[false, true, false]);
        let first = plan.start().unwrap();
        assert_eq!(parts(&first), (vec![0], false));
        let second = plan.after(first.places[0]).unwrap();
        assert_eq!(parts(&second), (vec![1, 2], false));
        assert_eq!(parts(&plan.after(second.places[1]).unwrap()), (vec![], true));
        assert_eq!(parts(&plan.after(second.places[0]).unwrap()), (vec![2], false));
    }

    #[test]
    fn rounds_of_an_endless_repetition_are_one_place() {
        let of = Box::new(Shape::Either(vec![part(0), Shape::Then(vec![part(1), part(0)])]));
        let plan = plan(&Shape::Repeat { of, min: 2, max: None }, &[false, false]);
        let mut next = plan.start().unwrap();
        assert_eq!(parts(&next), (vec![0, 1], false));
        next = plan.after(next.places[0]).unwrap();
        assert_eq!(parts(&next), (vec![0, 1], false));
        next = plan.after(next.places[0]).unwrap();
        assert_eq!(parts(&next), (vec![0, 1], true));
        assert_eq!(plan.after(next.places[0]).unwrap(), next);
    }

    #[test]
    fn huge_counts_and_empty_rounds_cost_nothing() {
        let of = Box::new(part(0));
        let many = plan(&Shape::Repeat { of: of.clone(), min: 1 << 30, max: Some(1 << 31) }, &[true]);
        let next = many.start().unwrap();
        assert_eq!(parts(&next), (vec![0], true));
        assert_eq!(parts(&many.after(next.places[0]).unwrap()), (vec![0], true));
        let never = plan(&Shape::Repeat { of: of.clone(), min: 0, max: Some(0) }, &[false]);
        assert_eq!(parts(&never.start().unwrap()), (vec![], true));
        let nested =
            Shape::Repeat { of: Box::new(Shape::Repeat { of, min: 0, max: None }), min: 0, max: None };
        assert_eq!(parts(&plan(&nested, &[true]).start().unwrap()), (vec![0], true));
        assert!(Plan::new(
            &Shape::Repeat { of: Box::new(part(0)), min: 2, max: Some(1) },
            vec![Beginning { empty: false, more: true }]
        )
        .is_err());
    }
}
