//! Sets of items and their closures: which lexemes may be read next, and who goes on when a callee accepts. It refuses
//! to know bytes.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::expr::{ExprId, Tag};
use super::origins::{resolve, Callee, OriginId, LOCAL, START};
use super::{too_many, Edge, Machine, StateId, To};
use crate::Result;

/// The number of a set: of the sorted list of items it starts from.
pub type SetId = u32;
/// The number of a continuation: of the sorted list of ways that a lexeme leads to.
pub type ContId = u32;

/// A state, and whom it goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) state: StateId,
    pub(super) origin: OriginId,
}

/// Where a lexeme leads when it is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
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

impl Way {
    pub(super) fn key(&self) -> (StateId, u32, OriginId) {
        (self.to, self.edge, self.origin)
    }
}

impl PartialEq for Way {
    fn eq(&self, other: &Way) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Way {}

impl std::hash::Hash for Way {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// A closed set.
pub(super) struct Set {
    /// What may be read, by expression: each once, ascending.
    pub(super) threads: Box<[(ExprId, ContId)]>,
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
pub(super) struct Work {
    seen: FxHashSet<Item>,
    /// Items whose state was not yet looked at.
    open: Vec<Item>,
    /// How often an item was found, new or not.
    found: usize,
    /// What was entered here, in the order of the local origins.
    callees: Vec<Callee>,
    places: FxHashMap<StateId, OriginId>,
    /// Origins that accept here.
    complete: FxHashSet<OriginId>,
    lexemes: Vec<(ExprId, Way)>,
    tokens: Vec<(u32, Item, StateId)>,
    accepting: bool,
}

impl Work {
    /// As new, but for the room that is already there.
    fn begin(&mut self) {
        self.seen.clear();
        self.open.clear();
        self.found = 0;
        self.callees.clear();
        self.places.clear();
        self.complete.clear();
        self.lexemes.clear();
        self.tokens.clear();
        self.accepting = false;
    }

    /// The origin of `callee` in this set.
    fn local(&mut self, state: StateId) -> OriginId {
        let next = LOCAL | self.callees.len() as OriginId;
        let origin = *self.places.entry(state).or_insert(next);
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
        if self.sets[set as usize].is_none() {
            self.close(set)?;
        }
        Ok(self.sets[set as usize].as_ref().expect("it was closed just now"))
    }

    /// Computes a set's closure. Nothing is kept of one that fails.
    fn close(&mut self, set: SetId) -> Result<()> {
        self.room()?;
        let mut work = std::mem::take(&mut self.work);
        work.begin();
        let closed = self.find_items(set, &mut work).and_then(|()| self.gather(&mut work));
        self.work = work;
        let closed = closed?;
        self.boxed += closed.byte_size();
        self.sets[set as usize] = Some(Box::new(closed));
        Ok(())
    }

    /// Looks at items until there are no new ones.
    fn find_items(&mut self, set: SetId, work: &mut Work) -> Result<()> {
        let most = self.limits.items;
        for n in 0..self.kernels.get(set).len() {
            work.add(self.kernels.get(set)[n], most)?;
        }
        while let Some(Item { state, origin }) = work.open.pop() {
            let place = self.place(state)?;
            let before = work.found;
            if self.states[place].accepting {
                self.complete(origin, work)?;
            }
            for n in 0..self.states[place].edges.len() {
                match self.states[place].edges[n] {
                    Edge::Jump { to } => work.add(Item { state: to, origin }, most)?,
                    Edge::Tokens { set, to } => work.tokens.push((set, Item { state: to, origin }, state)),
                    Edge::Call { callee, back } => {
                        self.call(callee, Item { state: back, origin }, work)?;
                    }
                    Edge::Lexeme { expr, to } => {
                        self.lexeme(expr, to, (state, n as u32), origin, work)?;
                    }
                }
            }
            self.exprs.spend(1 + (work.found - before) as u64 / 4)?;
        }
        Ok(())
    }

    /// An item of `origin` accepts: those who entered it go on.
    fn complete(&self, origin: OriginId, work: &mut Work) -> Result<()> {
        if origin == START {
            work.accepting = true;
            return Ok(());
        }
        if !work.complete.insert(origin) {
            return Ok(());
        }
        let most = self.limits.items;
        match origin.checked_sub(LOCAL).map(|place| place as usize) {
            None => {
                for &caller in self.origins.callers(origin) {
                    work.add(caller, most)?;
                }
            }
            // Those who enter it later in this closure find it in `complete`.
            Some(place) => {
                for n in 0..work.callees[place].callers.len() {
                    work.add(work.callees[place].callers[n], most)?;
                }
            }
        }
        Ok(())
    }

    /// `caller` waits for `callee`. One that has nothing left to do then is left out: whom it goes back to waits
    /// instead. That keeps recursion at the end of a rule finite.
    fn call(&mut self, callee: StateId, caller: Item, work: &mut Work) -> Result<()> {
        let most = self.limits.items;
        let back = self.place(caller.state)?;
        if self.states[back].accepting && self.states[back].edges.is_empty() {
            return work.add(Item { state: callee, origin: caller.origin }, most);
        }
        let origin = work.local(callee);
        work.callees[(origin - LOCAL) as usize].callers.push(caller);
        if work.complete.contains(&origin) {
            work.add(caller, most)?;
        }
        work.add(Item { state: callee, origin }, most)
    }

    /// A lexeme may be read; if it may be empty, what follows it is here too.
    fn lexeme(
        &mut self,
        expr: ExprId,
        to: To,
        edge: (StateId, u32),
        origin: OriginId,
        work: &mut Work,
    ) -> Result<()> {
        let way = match to {
            To::State(to) => Way { to, edge: DIRECT, origin, from: edge.0 },
            To::ByTag => Way { to: edge.0, edge: edge.1, origin, from: edge.0 },
        };
        for n in 0..self.exprs.outcomes(expr).len() {
            let tag = self.exprs.outcomes(expr)[n];
            let item = self.target(way, tag)?;
            work.add(item, self.limits.items)?;
        }
        if self.exprs.can_go_on(expr)? {
            work.lexemes.push((expr, way));
        }
        Ok(())
    }

    /// Sorts what was found by expression.
    fn gather(&mut self, work: &mut Work) -> Result<Set> {
        let known = self.origins.intern(&work.callees)?;
        work.lexemes.iter_mut().for_each(|(_, way)| way.origin = resolve(way.origin, &known));
        work.tokens.iter_mut().for_each(|(_, item, _)| item.origin = resolve(item.origin, &known));
        work.lexemes.sort_unstable_by_key(|(expr, way)| (*expr, way.key()));
        work.lexemes.dedup();
        let mut threads = Vec::new();
        let mut ways = Vec::new();
        for same in work.lexemes.chunk_by(|a, b| a.0 == b.0) {
            ways.clear();
            ways.extend(same.iter().map(|(_, way)| *way));
            threads.push((same[0].0, self.conts.intern(&ways)?));
        }
        work.tokens.sort_unstable();
        work.tokens.dedup();
        Ok(Set { threads: threads.into(), tokens: work.tokens[..].into(), accepting: work.accepting })
    }

    /// Where a way leads with `tag`.
    fn target(&mut self, way: Way, tag: Tag) -> Result<Item> {
        let state = match way.edge {
            DIRECT => way.to,
            edge => self.source.target(way.to, edge, tag, &mut self.exprs)?,
        };
        Ok(Item { state, origin: way.origin })
    }

    /// The set that a lexeme with this continuation enters when it is complete with `tag`.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn after(&mut self, cont: ContId, tag: Tag) -> Result<SetId> {
        if let Some(&set) = self.after.get(&(cont, tag)) {
            return Ok(set);
        }
        let mut items = Vec::with_capacity(self.conts.get(cont).len());
        for n in 0..self.conts.get(cont).len() {
            let way = self.conts.get(cont)[n];
            items.push(self.target(way, tag)?);
        }
        items.sort_unstable();
        items.dedup();
        let set = self.set_of(&items)?;
        self.after.insert((cont, tag), set);
        Ok(set)
    }
}
