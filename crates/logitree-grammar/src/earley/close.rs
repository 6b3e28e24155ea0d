//! Item sets and their closures: the lexemes that may be read next, and the callers that resume when a callee
//! accepts.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::expr::{ExprId, Tag};
use super::origins::{resolve, Callee, OriginId, START};
use super::{too_many, Edge, LexemeTarget, Machine, SameAfter, StateId};
use crate::{id, Result};

id!(
    /// A set of items, identified by its sorted kernel: the items it starts from.
    pub struct SetId
);

id!(
    /// A continuation: the sorted list of successors of a lexeme. A bit says whether one of them reads the text.
    pub struct ContinuationId
);

/// The bit of continuations that depend on the text of their lexeme.
const READS: u32 = 1 << 31;
/// The bit of continuations that count tokens.
const COUNTS: u32 = 1 << 30;

impl ContinuationId {
    /// Whether the lexeme counts tokens.
    #[inline]
    pub fn counts(self) -> bool {
        self.0 & COUNTS != 0
    }

    /// Whether what follows depends on the text of the lexeme.
    #[inline]
    pub fn reads(self) -> bool {
        self.0 & READS != 0
    }
}

/// A state and its origin: the callers that resume when it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) state: StateId,
    pub(super) origin: OriginId,
}

/// Where a lexeme leads when it is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Successor {
    /// The target state, the state up to which the text is read, or the state whose edge maps the tag to a target.
    to: StateId,
    /// [`DIRECT`], [`READ`], a count of tokens from [`COUNTED`] on, or the edge that maps the tag.
    edge: u32,
    origin: OriginId,
    /// The state from which the lexeme was first entered. For messages only; not part of the identity.
    pub(super) from: StateId,
}

/// `to` is the target state.
const DIRECT: u32 = u32::MAX;
/// `to` is the state up to which the text is read.
const READ: u32 = u32::MAX - 1;
/// `to` is the target state, and the lexeme may take part in so many more tokens.
const COUNTED: u32 = 1 << 31;
/// The bit of a count where the token in which the lexeme began is not counted.
const FRESH: u32 = 1 << 30;
/// The bits of a count.
const COUNT: u32 = FRESH - 1;
/// The largest count, below [`READ`] with all bits set.
const MAX_COUNTED: u32 = COUNT - 2;

impl Successor {
    fn counts(&self) -> bool {
        (COUNTED..READ).contains(&self.edge)
    }

    /// One token less. Returns whether the lexeme may continue.
    fn end_token(&mut self) -> bool {
        if !self.counts() {
            return true;
        }
        let left = self.edge & COUNT;
        let left = if self.edge & FRESH != 0 { left } else { left.saturating_sub(1) };
        self.edge = COUNTED | left;
        left > 0
    }

    /// The item after the lexeme, or, where it depends on the text, in its place: the origin is the same.
    pub(super) fn item(&self) -> Item {
        Item { state: self.to, origin: self.origin }
    }

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
    /// The lexemes that may be read and their continuations, sorted by expression without duplicates.
    pub(super) threads: Box<[(ExprId, ContinuationId)]>,
    /// The token sets that may follow, the item each leads to, and the state it is read from.
    pub(super) tokens: Box<[(u32, Item, StateId)]>,
    /// Whether the text may end here.
    pub(super) accepting: bool,
}

impl Set {
    fn byte_size(&self) -> usize {
        std::mem::size_of::<Set>() + self.threads.len() * 8 + self.tokens.len() * 16
    }
}

/// The worklist of a closure, and its buffers, reused from closure to closure.
#[derive(Default)]
pub(super) struct Agenda {
    seen: FxHashSet<Item>,
    /// Items whose state is not expanded yet.
    open: Vec<Item>,
    /// How often an item was added, new or not.
    found: usize,
    /// The states entered here, indexed by their local origins.
    callees: Vec<Callee>,
    state_indices: FxHashMap<StateId, OriginId>,
    /// Origins that accept here.
    complete: FxHashSet<OriginId>,
    lexemes: Vec<(ExprId, Successor)>,
    tokens: Vec<(u32, Item, StateId)>,
    accepting: bool,
}

impl Agenda {
    /// Empties the agenda and keeps its memory.
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

    /// The origin of the callee `state` in this set.
    fn local(&mut self, state: StateId) -> OriginId {
        let next = OriginId::local(self.callees.len());
        let origin = *self.state_indices.entry(state).or_insert(next);
        if origin == next {
            self.callees.push(Callee { state, callers: Vec::new() });
        }
        origin
    }

    /// Adds an item if it is new.
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
    /// The set with this kernel, which is sorted and without duplicates.
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

    /// The set whose kernel is the union of these sets' kernels.
    pub(super) fn union_of(&mut self, sets: &[SetId]) -> Result<SetId> {
        let mut items: Vec<Item> = sets.iter().flat_map(|&set| self.kernels.get(set)).copied().collect();
        self.exprs.charge_list(2 * items.len())?;
        items.sort_unstable();
        items.dedup();
        self.set_of(&items)
    }

    /// The closed set with this id.
    pub(super) fn closed(&mut self, set: SetId) -> Result<&Set> {
        if self.sets[set.index()].is_none() {
            self.close(set)?;
        }
        Ok(self.sets[set.index()].as_ref().expect("it was closed just now"))
    }

    /// Computes a set's closure. A failed closure leaves no trace.
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

    /// Expands items until there are no new ones.
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
                        let (to, edge) = match to {
                            LexemeTarget::State(to) => (to, DIRECT),
                            LexemeTarget::Read(to) => (to, READ),
                            LexemeTarget::ByTag => (state, n as u32),
                        };
                        self.lexeme(expr, Successor { to, edge, origin, from: state }, agenda)?;
                    }
                    Edge::Counted { expr, to, most } => {
                        let edge = COUNTED | FRESH | most.min(MAX_COUNTED);
                        self.lexeme(expr, Successor { to, edge, origin, from: state }, agenda)?;
                    }
                }
            }
            self.exprs.charge(16 + 12 * (agenda.found - before) as u64)?;
        }
        Ok(())
    }

    /// An item of `origin` accepts: its callers resume.
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
            // Callers that enter it later in this closure find it in `complete`.
            Some(place) => {
                for n in 0..agenda.callees[place].callers.len() {
                    agenda.add(agenda.callees[place].callers[n], most)?;
                }
            }
        }
        Ok(())
    }

    /// `caller` waits for `callee`. A caller that has nothing left to do afterwards is replaced by its own
    /// callers, which keeps tail recursion finite.
    fn call(&mut self, callee: StateId, caller: Item, agenda: &mut Agenda) -> Result<()> {
        let most = self.limits.items;
        let back = self.state_index(caller.state)?;
        let is_done = self.states[back].accepting && self.states[back].edges.is_empty();
        if is_done || self.is_tempered_again(caller) {
            return agenda.add(Item { state: callee, origin: caller.origin }, most);
        }
        let origin = agenda.local(callee);
        agenda.callees[origin.as_local().expect("it was entered here")].callers.push(caller);
        if agenda.complete.contains(&origin) {
            agenda.add(caller, most)?;
        }
        agenda.add(Item { state: callee, origin }, most)
    }

    /// Whether `caller` only gives a temperature that its own callers, all in the same state, give as well. It has nothing to
    /// do afterwards that they do not.
    fn is_tempered_again(&self, caller: Item) -> bool {
        self.has_temperatures
            && self.source.temperature(caller.state).is_some()
            && caller.origin.as_local().is_none()
            && !self.origins.callers(caller.origin).is_empty()
            && self.origins.callers(caller.origin).iter().all(|above| above.state == caller.state)
    }

    /// Adds a lexeme. If it is nullable, adds what follows it as well.
    fn lexeme(&mut self, expr: ExprId, successor: Successor, agenda: &mut Agenda) -> Result<()> {
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

    /// Groups the lexemes by expression.
    fn gather(&mut self, agenda: &mut Agenda) -> Result<Set> {
        let callers: usize = agenda.callees.iter().map(|callee| callee.callers.len()).sum();
        self.exprs.charge_list(2 * (callers + agenda.callees.len() + agenda.lexemes.len()))?;
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
            threads.push((same[0].0, self.continuation(&successors)?));
        }
        agenda.tokens.sort_unstable();
        agenda.tokens.dedup();
        Ok(Set { threads: threads.into(), tokens: agenda.tokens[..].into(), accepting: agenda.accepting })
    }

    /// The item that a successor leads to with `tag`.
    fn target(&mut self, successor: Successor, tag: Tag) -> Result<Item> {
        let state = match successor.edge {
            DIRECT => successor.to,
            COUNTED..READ => successor.to,
            READ => self.source.finish(successor.to, tag, &mut self.exprs)?,
            edge => self.source.target(successor.to, edge, tag, &mut self.exprs)?,
        };
        Ok(Item { state, origin: successor.origin })
    }

    /// The successors of a continuation.
    pub(super) fn successors(&self, continuation: ContinuationId) -> &[Successor] {
        self.continuations.get(ContinuationId(continuation.0 & !(READS | COUNTS)))
    }

    /// The continuation with these successors, which are sorted.
    pub(super) fn continuation(&mut self, successors: &[Successor]) -> Result<ContinuationId> {
        let ContinuationId(id) = self.continuations.intern(successors)?;
        let reads = successors.iter().any(|successor| successor.edge == READ);
        let counts = successors.iter().any(Successor::counts);
        Ok(ContinuationId(id | if reads { READS } else { 0 } | if counts { COUNTS } else { 0 }))
    }

    /// The continuation after `byte` of its lexeme.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub(super) fn read(&mut self, continuation: ContinuationId, byte: u8) -> Result<ContinuationId> {
        self.room()?;
        self.has_read = true;
        let mut successors = self.successors(continuation).to_vec();
        self.exprs.charge_list(8 * successors.len())?;
        for successor in successors.iter_mut().filter(|successor| successor.edge == READ) {
            successor.to = self.source.read(successor.to, byte)?;
        }
        successors.sort_unstable_by_key(|successor| successor.key());
        successors.dedup();
        self.continuation(&successors)
    }

    /// The continuation after the end of a token; `None` if the lexeme is over because it `may_end` there.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub(super) fn one_token_less(
        &mut self,
        continuation: ContinuationId,
        may_end: bool,
    ) -> Result<Option<ContinuationId>> {
        self.recounted(continuation, |successor| successor.end_token() || !may_end)
    }

    /// The continuation without its counts: what may come within one token is the same.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn uncounted(&mut self, continuation: ContinuationId) -> Result<ContinuationId> {
        let uncount = |successor: &mut Successor| {
            successor.edge = if successor.counts() { DIRECT } else { successor.edge };
            true
        };
        Ok(self.recounted(continuation, uncount)?.unwrap_or(continuation))
    }

    /// The continuation of the successors that `keep` changes and keeps.
    fn recounted(
        &mut self,
        continuation: ContinuationId,
        keep: impl FnMut(&mut Successor) -> bool,
    ) -> Result<Option<ContinuationId>> {
        if !continuation.counts() {
            return Ok(Some(continuation));
        }
        let mut successors = self.successors(continuation).to_vec();
        self.exprs.charge_list(2 * successors.len())?;
        successors.retain_mut(keep);
        successors.sort_unstable_by_key(|successor| successor.key());
        successors.dedup();
        if successors.is_empty() {
            return Ok(None);
        }
        self.continuation(&successors).map(Some)
    }

    /// A set that allows all that may follow a lexeme with this continuation, whatever its text, if it is complete with
    /// `tag`; and for which texts that is the same. [`Machine::after`] where its text does not matter.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub(super) fn after_any(&mut self, continuation: ContinuationId, tag: Tag) -> Result<(SetId, SameAfter)> {
        if !continuation.reads() {
            return Ok((self.after(continuation, tag)?, SameAfter::All));
        }
        if let Some(known) = self.after_any.get(&(continuation, tag)) {
            return Ok(known.clone());
        }
        let successors = self.successors(continuation).to_vec();
        self.exprs.charge_list(4 * successors.len())?;
        let mut items = Vec::with_capacity(successors.len());
        let mut same = SameAfter::All;
        for successor in successors {
            items.push(match successor.edge {
                READ => {
                    let (state, apart) = self.source.finish_any(successor.to, tag, &mut self.exprs)?;
                    same = same.and(apart);
                    Item { state, origin: successor.origin }
                }
                _ => self.target(successor, tag)?,
            });
        }
        items.sort_unstable();
        items.dedup();
        if let SameAfter::AllBut(texts) = &mut same {
            texts.sort_unstable();
            texts.dedup();
        }
        let found = (self.set_of(&items)?, same);
        self.after_any.insert((continuation, tag), found.clone());
        Ok(found)
    }

    /// Whether a lexeme with this continuation is the same for all texts before it that [`Machine::after_any`] calls the
    /// same.
    pub(super) fn is_same_lexeme(&self, continuation: ContinuationId) -> bool {
        self.successors(continuation).iter().all(|successor| self.source.is_same_lexeme(successor.to))
    }

    /// The set that a lexeme with this continuation enters when it is complete with `tag`.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn after(&mut self, continuation: ContinuationId, tag: Tag) -> Result<SetId> {
        if let Some(&set) = self.after.get(&(continuation, tag)) {
            return Ok(set);
        }
        let mut items = Vec::with_capacity(self.successors(continuation).len());
        self.exprs.charge_list(2 * items.capacity())?;
        for n in 0..self.successors(continuation).len() {
            let successor = self.successors(continuation)[n];
            items.push(self.target(successor, tag)?);
        }
        items.sort_unstable();
        items.dedup();
        let set = self.set_of(&items)?;
        self.after.insert((continuation, tag), set);
        Ok(set)
    }
}
