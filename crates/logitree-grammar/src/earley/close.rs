//! Sets of items and their closures: which lexemes may be read next, and who goes on when a callee accepts. It refuses
//! to know bytes.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::expr::{ExprId, Tag};
use super::origins::{resolve, Callee, OriginId, START};
use super::{too_many, Edge, LexemeTarget, Machine, StateId};
use crate::{id, Result};

id!(
    /// A set of items, identified by its sorted kernel: the items it starts from.
    pub struct SetId
);

id!(
    /// A continuation: the sorted list of successors of a lexeme.
    pub struct ContinuationId
);

/// A state, and whom it goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) state: StateId,
    pub(super) origin: OriginId,
}

/// Where a lexeme leads when it is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Successor {
    /// The state, or the one whose edge asks the tag.
    to: StateId,
    /// [`DIRECT`], or the edge that asks the tag.
    edge: u32,
    origin: OriginId,
    /// The state that the lexeme was first seen from: for messages, and no part of what a way is.
    pub(super) from: StateId,
}

/// `to` is the state itself.
const DIRECT: u32 = u32::MAX;

impl Successor {
    pub(super) fn key(&self) -> (StateId, u32, OriginId) {
        (self.to, self.edge, self.origin)
    }
}

impl PartialEq for Successor {
    fn eq(&self, other: &Successor) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Successor {}

impl std::hash::Hash for Successor {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// A closed set.
pub(super) struct Set {
    /// What may be read, by expression: each once, ascending.
    pub(super) threads: Box<[(ExprId, ContinuationId)]>,
    /// What whole tokens may come, where each leads, and the state it may come at.
    pub(super) tokens: Box<[(u32, Item, StateId)]>,
    /// Whether the text may end here.
    pub(super) accepting: bool,
}

impl Set {
    fn byte_size(&self) -> usize {
        std::mem::size_of::<Set>() + self.threads.len() * 8 + self.tokens.len() * 16
    }
}

/// What a closure is computed with; kept to be used again.
#[derive(Default)]
pub(super) struct Agenda {
    seen: FxHashSet<Item>,
    /// Items whose state was not yet looked at.
    open: Vec<Item>,
    /// How often an item was found, new or not.
    found: usize,
    /// What was entered here, in the order of the local origins.
    callees: Vec<Callee>,
    state_indices: FxHashMap<StateId, OriginId>,
    /// Origins that accept here.
    complete: FxHashSet<OriginId>,
    lexemes: Vec<(ExprId, Successor)>,
    tokens: Vec<(u32, Item, StateId)>,
    accepting: bool,
}

impl Agenda {
    /// As new, but for the room that is already there.
    fn begin(&mut self) {
        self.seen.clear();
        self.open.clear();
        self.found = 0;
        self.callees.clear();
        self.state_indices.clear();
        self.complete.clear();
        self.lexemes.clear();
        self.tokens.clear();
        self.accepting = false;
    }

    /// The origin of `callee` in this set.
    fn local(&mut self, state: StateId) -> OriginId {
        let next = OriginId::local(self.callees.len());
        let origin = *self.state_indices.entry(state).or_insert(next);
        if origin == next {
            self.callees.push(Callee { state, callers: Vec::new() });
        }
        origin
    }

    /// Adds an item, if it is new.
    fn add(&mut self, item: Item, most: usize) -> Result<()> {
        self.found += 1;
        if self.found / 16 >= most {
            return Err(too_many("items in one set", most));
        }
        if self.seen.insert(item) {
            if self.seen.len() > most {
                return Err(too_many("items in one set", most));
            }
            self.open.push(item);
        }
        Ok(())
    }
}

impl Machine {
    /// The set that starts from `items`, sorted, each once.
    pub(super) fn set_of(&mut self, items: &[Item]) -> Result<SetId> {
        if let Some(set) = self.kernels.find(items) {
            return Ok(set);
        }
        if self.sets.len() >= self.limits.sets {
            return Err(too_many("sets", self.limits.sets));
        }
        self.room()?;
        let set = self.kernels.intern(items)?;
        self.sets.push(None);
        Ok(set)
    }

    /// The set that both lists start.
    pub(super) fn union_of(&mut self, sets: &[SetId]) -> Result<SetId> {
        let mut items: Vec<Item> = sets.iter().flat_map(|&set| self.kernels.get(set)).copied().collect();
        items.sort_unstable();
        items.dedup();
        self.set_of(&items)
    }

    /// The closed set with this number.
    pub(super) fn closed(&mut self, set: SetId) -> Result<&Set> {
        if self.sets[set.index()].is_none() {
            self.close(set)?;
        }
        Ok(self.sets[set.index()].as_ref().expect("it was closed just now"))
    }

    /// Computes a set's closure. Nothing is kept of one that fails.
    fn close(&mut self, set: SetId) -> Result<()> {
        self.room()?;
        let mut agenda = std::mem::take(&mut self.agenda);
        agenda.begin();
        let closed = self.find_items(set, &mut agenda).and_then(|()| self.gather(&mut agenda));
        self.agenda = agenda;
        let closed = closed?;
        self.boxed += closed.byte_size();
        self.sets[set.index()] = Some(Box::new(closed));
        Ok(())
    }

    /// Looks at items until there are no new ones.
    fn find_items(&mut self, set: SetId, agenda: &mut Agenda) -> Result<()> {
        let most = self.limits.items;
        for n in 0..self.kernels.get(set).len() {
            agenda.add(self.kernels.get(set)[n], most)?;
        }
        while let Some(Item { state, origin }) = agenda.open.pop() {
            let place = self.state_index(state)?;
            let before = agenda.found;
            if self.states[place].accepting {
                self.complete(origin, agenda)?;
            }
            for n in 0..self.states[place].edges.len() {
                match self.states[place].edges[n] {
                    Edge::Jump { to } => agenda.add(Item { state: to, origin }, most)?,
                    Edge::Tokens { set, to } => agenda.tokens.push((set, Item { state: to, origin }, state)),
                    Edge::Call { callee, back } => {
                        self.call(callee, Item { state: back, origin }, agenda)?;
                    }
                    Edge::Lexeme { expr, to } => {
                        self.lexeme(expr, to, (state, n as u32), origin, agenda)?;
                    }
                }
            }
            self.exprs.spend(1 + (agenda.found - before) as u64 / 4)?;
        }
        Ok(())
    }

    /// An item of `origin` accepts: those who entered it go on.
    fn complete(&self, origin: OriginId, agenda: &mut Agenda) -> Result<()> {
        if origin == START {
            agenda.accepting = true;
            return Ok(());
        }
        if !agenda.complete.insert(origin) {
            return Ok(());
        }
        let most = self.limits.items;
        match origin.as_local() {
            None => {
                for &caller in self.origins.callers(origin) {
                    agenda.add(caller, most)?;
                }
            }
            // Those who enter it later in this closure find it in `complete`.
            Some(place) => {
                for n in 0..agenda.callees[place].callers.len() {
                    agenda.add(agenda.callees[place].callers[n], most)?;
                }
            }
        }
        Ok(())
    }

    /// `caller` waits for `callee`. One that has nothing left to do then is left out: whom it goes back to waits
    /// instead. That keeps recursion at the end of a rule finite.
    fn call(&mut self, callee: StateId, caller: Item, agenda: &mut Agenda) -> Result<()> {
        let most = self.limits.items;
        let back = self.state_index(caller.state)?;
        if self.states[back].accepting && self.states[back].edges.is_empty() {
            return agenda.add(Item { state: callee, origin: caller.origin }, most);
        }
        let origin = agenda.local(callee);
        agenda.callees[origin.as_local().expect("it was entered here")].callers.push(caller);
        if agenda.complete.contains(&origin) {
            agenda.add(caller, most)?;
        }
        agenda.add(Item { state: callee, origin }, most)
    }

    /// A lexeme may be read; if it may be empty, what follows it is here too.
    fn lexeme(
        &mut self,
        expr: ExprId,
        to: LexemeTarget,
        edge: (StateId, u32),
        origin: OriginId,
        agenda: &mut Agenda,
    ) -> Result<()> {
        let successor = match to {
            LexemeTarget::State(to) => Successor { to, edge: DIRECT, origin, from: edge.0 },
            LexemeTarget::ByTag => Successor { to: edge.0, edge: edge.1, origin, from: edge.0 },
        };
        for n in 0..self.exprs.outcomes(expr).len() {
            let tag = self.exprs.outcomes(expr)[n];
            let item = self.target(successor, tag)?;
            agenda.add(item, self.limits.items)?;
        }
        if self.exprs.can_continue(expr)? {
            agenda.lexemes.push((expr, successor));
        }
        Ok(())
    }

    /// Sorts what was found by expression.
    fn gather(&mut self, agenda: &mut Agenda) -> Result<Set> {
        let known = self.origins.intern(&agenda.callees)?;
        agenda
            .lexemes
            .iter_mut()
            .for_each(|(_, successor)| successor.origin = resolve(successor.origin, &known));
        agenda.tokens.iter_mut().for_each(|(_, item, _)| item.origin = resolve(item.origin, &known));
        agenda.lexemes.sort_unstable_by_key(|(expr, successor)| (*expr, successor.key()));
        agenda.lexemes.dedup();
        let mut threads = Vec::new();
        let mut successors = Vec::new();
        for same in agenda.lexemes.chunk_by(|a, b| a.0 == b.0) {
            successors.clear();
            successors.extend(same.iter().map(|(_, successor)| *successor));
            threads.push((same[0].0, self.continuations.intern(&successors)?));
        }
        agenda.tokens.sort_unstable();
        agenda.tokens.dedup();
        Ok(Set { threads: threads.into(), tokens: agenda.tokens[..].into(), accepting: agenda.accepting })
    }

    /// Where a way leads with `tag`.
    fn target(&mut self, successor: Successor, tag: Tag) -> Result<Item> {
        let state = match successor.edge {
            DIRECT => successor.to,
            edge => self.source.target(successor.to, edge, tag, &mut self.exprs)?,
        };
        Ok(Item { state, origin: successor.origin })
    }

    /// The set that a lexeme with this continuation enters when it is complete with `tag`.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn after(&mut self, continuation: ContinuationId, tag: Tag) -> Result<SetId> {
        if let Some(&set) = self.after.get(&(continuation, tag)) {
            return Ok(set);
        }
        let mut items = Vec::with_capacity(self.continuations.get(continuation).len());
        for n in 0..self.continuations.get(continuation).len() {
            let successor = self.continuations.get(continuation)[n];
            items.push(self.target(successor, tag)?);
        }
        items.sort_unstable();
        items.dedup();
        let set = self.set_of(&items)?;
        self.after.insert((continuation, tag), set);
        Ok(set)
    }
}
