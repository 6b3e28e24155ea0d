//! The intersection of rules with a regular language, as states of the recogniser (Bar-Hillel, Perles, Shamir 1961).
//!
//! ```text
//! state   = (state of the rules, state of the automaton, goal: the automaton's states in which the rule may end)
//! call    = for each end of the callee from which the caller reaches its goal: the callee with that end as its goal
//! lexeme  = its texts after which the automaton is in a state that reaches the goal, one lexeme for each such state
//! ```
//!
//! Which ends a state of the rules has from a state of the automaton is a least fixpoint ([`Ends`]), found for all states
//! that the start needs. So a state that cannot be completed is never made, and masks are exact.
//!
//! The naive version tries all texts: `tests/it/intersection.rs`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::{Encoding, ExprId, Exprs, Meeting, Tag, NOTHING};
use super::super::regex::Regex;
use super::rules_source::RulesSource;
use super::{Edge, LexemeTarget, StateEdges, StateId, StateSource};
use crate::charset::CharSet;
use crate::dfa::Dfa;
use crate::{Error, ErrorKind, Result};

/// States of the automaton in which a part of the rules may end.
pub const MAX_ENDS: usize = 64;
/// So many ends are never too many.
const FEW_ENDS: usize = 4;
/// Pairs of states in all lexemes, times the most ends of a part, where the ends are not few. Past it masks would take more
/// than a grammar's fuel: a part with n ends is read as n lexemes, each with a mask of its own.
pub const MAX_EFFORT: usize = 1 << 16;
/// Pairs of a state of the rules and one of the automaton.
pub const MAX_PAIRS: usize = 1 << 18;

/// The end of the rules: accepts, without edges.
const END: StateId = StateId(0);
/// The goal of the whole: the states in which the automaton accepts.
const ACCEPTING: u32 = 0;

/// A state, met with one of the automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MetState {
    of: StateId,
    at: u32,
    /// [`ACCEPTING`], or one more than the automaton's state.
    goal: u32,
}

/// The rules and the automaton.
struct Sides {
    rules: RulesSource,
    dfa: Arc<Dfa>,
    expanded: FxHashMap<StateId, Arc<StateEdges>>,
    meetings: FxHashMap<(ExprId, u32), Arc<Meeting>>,
    /// The pairs of states in these.
    pairs: usize,
    /// Size in bytes of what is kept.
    bytes: usize,
}

impl Sides {
    fn edges(&mut self, state: StateId, exprs: &mut Exprs) -> Result<Arc<StateEdges>> {
        if let Some(known) = self.expanded.get(&state) {
            return Ok(Arc::clone(known));
        }
        let edges = Arc::new(self.rules.expand(state, exprs)?);
        self.bytes += 48 + edges.edges.len() * size_of::<Edge>();
        self.expanded.insert(state, Arc::clone(&edges));
        Ok(edges)
    }

    fn meeting(&mut self, expr: ExprId, at: u32, exprs: &mut Exprs) -> Result<Arc<Meeting>> {
        if let Some(known) = self.meetings.get(&(expr, at)) {
            return Ok(Arc::clone(known));
        }
        let met = Arc::new(exprs.meeting(expr, &self.dfa, at)?);
        self.bytes += 64 + met.memory();
        self.pairs += met.pairs();
        self.meetings.insert((expr, at), Arc::clone(&met));
        Ok(met)
    }

    /// Where the lexeme `edge` of `state` leads with `tag`.
    fn target(
        &mut self,
        state: StateId,
        edge: usize,
        to: LexemeTarget,
        tag: Tag,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        match to {
            LexemeTarget::State(to) => Ok(to),
            LexemeTarget::ByTag => self.rules.target(state, edge as u32, tag, exprs),
            LexemeTarget::Read(_) => Err(refused("values that are compared with each other")),
        }
    }

    fn is_accepting(&self, at: u32, goal: u32) -> bool {
        if goal == ACCEPTING {
            self.dfa.is_accepting(at)
        } else {
            goal == at + 1
        }
    }
}

/// A pair of states, and who needs its ends.
struct Pair {
    of: StateId,
    at: u32,
    /// In order of discovery.
    ends: Vec<u32>,
    /// Pairs that have all ends of this one.
    same: Vec<u32>,
    /// Pairs that have all ends of the pair of this state and any end of this one.
    then: Vec<(u32, StateId)>,
}

/// In which states the automaton may be when a state's rule ends: a least fixpoint over pairs of states.
#[derive(Default)]
struct Ends {
    pairs: Vec<Pair>,
    numbers: FxHashMap<(StateId, u32), u32>,
    /// Pairs whose edges were not looked at.
    new: Vec<u32>,
    /// Ends that those who need them do not know.
    found: Vec<(u32, u32)>,
}

impl Ends {
    /// The ends of a pair.
    fn of(&mut self, of: StateId, at: u32, sides: &mut Sides, exprs: &mut Exprs) -> Result<&[u32]> {
        let pair = self.number(of, at)?;
        self.close(sides, exprs)?;
        Ok(&self.pairs[pair as usize].ends)
    }

    fn number(&mut self, of: StateId, at: u32) -> Result<u32> {
        if let Some(&known) = self.numbers.get(&(of, at)) {
            return Ok(known);
        }
        if self.pairs.len() >= MAX_PAIRS {
            return Err(refused(&format!("more than {MAX_PAIRS} pairs of states")));
        }
        let number = self.pairs.len() as u32;
        self.pairs.push(Pair { of, at, ends: Vec::new(), same: Vec::new(), then: Vec::new() });
        self.numbers.insert((of, at), number);
        self.new.push(number);
        Ok(number)
    }

    fn close(&mut self, sides: &mut Sides, exprs: &mut Exprs) -> Result<()> {
        loop {
            if let Some((pair, end)) = self.found.pop() {
                self.tell(pair, end, exprs)?;
            } else if let Some(pair) = self.new.pop() {
                self.look(pair, sides, exprs)?;
            } else {
                return Ok(());
            }
        }
    }

    fn look(&mut self, pair: u32, sides: &mut Sides, exprs: &mut Exprs) -> Result<()> {
        let Pair { of, at, .. } = self.pairs[pair as usize];
        let state = sides.edges(of, exprs)?;
        exprs.charge(64 + 16 * state.edges.len() as u64)?;
        if state.accepting {
            self.add(pair, at)?;
        }
        for (n, edge) in state.edges.iter().enumerate() {
            match *edge {
                Edge::Jump { to } => {
                    let to = self.number(to, at)?;
                    self.follow(pair, to)?;
                }
                Edge::Lexeme { expr, to } => {
                    let met = sides.meeting(expr, at, exprs)?;
                    for &(tag, end) in met.ends() {
                        exprs.charge(32)?;
                        let to = sides.target(of, n, to, tag, exprs)?;
                        let to = self.number(to, end)?;
                        self.follow(pair, to)?;
                    }
                }
                Edge::Call { callee, back } => {
                    let callee = self.number(callee, at)?;
                    self.pairs[callee as usize].then.push((pair, back));
                    for end in self.pairs[callee as usize].ends.clone() {
                        let back = self.number(back, end)?;
                        self.follow(pair, back)?;
                    }
                }
                Edge::Tokens { .. } => return Err(refused("whole tokens")),
                Edge::Counted { .. } => return Err(refused("a limit of tokens")),
            }
        }
        Ok(())
    }

    /// `pair` has all ends of `of`.
    fn follow(&mut self, pair: u32, of: u32) -> Result<()> {
        self.pairs[of as usize].same.push(pair);
        for end in self.pairs[of as usize].ends.clone() {
            self.add(pair, end)?;
        }
        Ok(())
    }

    fn add(&mut self, pair: u32, end: u32) -> Result<()> {
        let ends = &mut self.pairs[pair as usize].ends;
        if !ends.contains(&end) {
            if ends.len() >= MAX_ENDS {
                return Err(refused(&format!("a part with more than {MAX_ENDS} states at its end")));
            }
            ends.push(end);
            self.found.push((pair, end));
        }
        Ok(())
    }

    /// Those who need the ends of `pair` learn of one.
    fn tell(&mut self, pair: u32, end: u32, exprs: &mut Exprs) -> Result<()> {
        let same = self.pairs[pair as usize].same.clone();
        let then = self.pairs[pair as usize].then.clone();
        exprs.charge(8 + 8 * same.len() as u64 + 32 * then.len() as u64)?;
        for other in same {
            self.add(other, end)?;
        }
        for (other, back) in then {
            let back = self.number(back, end)?;
            self.follow(other, back)?;
        }
        Ok(())
    }

    fn byte_size(&self) -> usize {
        let kept: usize = self
            .pairs
            .iter()
            .map(|pair| 4 * pair.ends.len() + 4 * pair.same.len() + 8 * pair.then.len())
            .sum();
        kept + self.pairs.len() * (size_of::<Pair>() + 32)
    }
}

/// A [`StateSource`] of the non-empty texts of rules that are in a regular language, too.
pub(super) struct Intersection {
    sides: Sides,
    ends: Ends,
    /// The states after [`END`].
    states: Vec<MetState>,
    ids: FxHashMap<MetState, StateId>,
    /// Lexemes that keep all their texts, and whose tags say what follows: their number in the rules, and the state of
    /// the automaton after them.
    whole: FxHashMap<(StateId, u32), (u32, u32)>,
}

/// What rules and a regular language have in common.
pub(super) struct Common {
    /// The texts that are not empty, and their first state.
    pub texts: Option<(Intersection, StateId)>,
    /// Whether the empty text is one.
    pub empty: bool,
}

/// Intersects `rules` with `regex`.
///
/// # Errors
/// [`ErrorKind::Limit`] if there are too many pairs of states or ends, or for rules that name tokens or compare values;
/// those of the lexemes.
pub(super) fn intersect(rules: RulesSource, regex: &Regex, exprs: &mut Exprs) -> Result<Common> {
    let whole = exprs.compile(regex, Encoding::Utf8)?;
    let empty = exprs.is_complete(whole) && rules.is_nullable();
    let some = Regex::Set(CharSet::all()).repeat(1, None);
    let some = exprs.compile(&Regex::and([regex.clone(), some]), Encoding::Utf8)?;
    if some == NOTHING {
        return Ok(Common { texts: None, empty });
    }
    let Some(dfa) = exprs.to_dfa(some)? else { return Ok(Common { texts: None, empty }) };
    let start = rules.start();
    let (expanded, meetings) = (FxHashMap::default(), FxHashMap::default());
    let mut made = Intersection {
        sides: Sides { rules, dfa, expanded, meetings, pairs: 0, bytes: 0 },
        ends: Ends::default(),
        states: Vec::new(),
        ids: FxHashMap::default(),
        whole: FxHashMap::default(),
    };
    let start = made.met(start, Dfa::START, ACCEPTING, exprs)?;
    let most = made.ends.pairs.iter().map(|pair| pair.ends.len()).max().unwrap_or(0);
    if most > FEW_ENDS && most * made.sides.pairs > MAX_EFFORT {
        return Err(refused(&format!("lexemes with {} states and {most} ways to end", made.sides.pairs)));
    }
    Ok(Common { texts: start.map(|start| (made, start)), empty })
}

impl Intersection {
    /// The state of a pair and a goal; `None` if the goal is not reached from there.
    fn met(&mut self, of: StateId, at: u32, goal: u32, exprs: &mut Exprs) -> Result<Option<StateId>> {
        exprs.charge(16)?;
        let state = MetState { of, at, goal };
        if let Some(&known) = self.ids.get(&state) {
            return Ok(Some(known));
        }
        let ends = self.ends.of(of, at, &mut self.sides, exprs)?;
        if !ends.iter().any(|&end| self.sides.is_accepting(end, goal)) {
            return Ok(None);
        }
        if self.is_end(of, exprs)? {
            return Ok(Some(END));
        }
        self.states.push(state);
        let id = StateId::new(self.states.len());
        self.ids.insert(state, id);
        Ok(Some(id))
    }

    /// Whether nothing is left of a rule.
    fn is_end(&mut self, of: StateId, exprs: &mut Exprs) -> Result<bool> {
        let edges = self.sides.edges(of, exprs)?;
        Ok(edges.accepting && edges.edges.is_empty())
    }

    fn state(&self, state: StateId) -> Option<MetState> {
        self.states.get(state.index().checked_sub(1)?).copied()
    }

    /// The edges of a lexeme: one for each state that it leads to.
    fn lexeme(
        &mut self,
        from: (StateId, MetState),
        (n, expr, to): (usize, ExprId, LexemeTarget),
        edges: &mut Vec<Edge>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        let (id, MetState { of, at, goal }) = from;
        let met = self.sides.meeting(expr, at, exprs)?;
        let mut targets: Vec<(StateId, Vec<(Tag, u32)>)> = Vec::new();
        let mut whole = met.is_lossless();
        for &(tag, end) in met.ends() {
            let to = self.sides.target(of, n, to, tag, exprs)?;
            let Some(to) = self.met(to, end, goal, exprs)? else {
                whole = false;
                continue;
            };
            match targets.iter_mut().find(|target| target.0 == to) {
                Some((_, ends)) => ends.push((tag, end)),
                None => targets.push((to, vec![(tag, end)])),
            }
        }
        let end = met.ends().first().map_or(0, |end| end.1);
        match targets[..] {
            [(to, _)] if whole => edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(to) }),
            _ if whole && to == LexemeTarget::ByTag && met.ends().iter().all(|other| other.1 == end) => {
                self.whole.insert((id, edges.len() as u32), (n as u32, end));
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::ByTag });
            }
            _ => {
                for (to, ends) in targets {
                    let expr = exprs.met(&met, &ends)?;
                    edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(to) });
                }
            }
        }
        Ok(())
    }

    /// The edges of a call: one for each end of the callee from which the goal is reached.
    fn call(
        &mut self,
        MetState { at, goal, .. }: MetState,
        callee: StateId,
        back: StateId,
        edges: &mut Vec<Edge>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        if self.is_end(back, exprs)? {
            edges.extend(self.met(callee, at, goal, exprs)?.map(|to| Edge::Jump { to }));
            return Ok(());
        }
        for end in self.ends.of(callee, at, &mut self.sides, exprs)?.to_vec() {
            let Some(back) = self.met(back, end, goal, exprs)? else { continue };
            let callee = self.met(callee, at, end + 1, exprs)?;
            edges.extend(callee.map(|callee| Edge::Call { callee, back }));
        }
        Ok(())
    }
}

impl StateSource for Intersection {
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges> {
        let Some(met) = self.state(state) else {
            return Ok(StateEdges { accepting: true, edges: Vec::new() });
        };
        let MetState { of, at, goal } = met;
        let inner = self.sides.edges(of, exprs)?;
        let mut edges = Vec::new();
        for (n, edge) in inner.edges.iter().enumerate() {
            match *edge {
                Edge::Jump { to } => {
                    edges.extend(self.met(to, at, goal, exprs)?.map(|to| Edge::Jump { to }));
                }
                Edge::Lexeme { expr, to } => {
                    self.lexeme((state, met), (n, expr, to), &mut edges, exprs)?;
                }
                Edge::Call { callee, back } => self.call(met, callee, back, &mut edges, exprs)?,
                Edge::Tokens { .. } => return Err(refused("whole tokens")),
                Edge::Counted { .. } => return Err(refused("a limit of tokens")),
            }
        }
        Ok(StateEdges { accepting: inner.accepting && self.sides.is_accepting(at, goal), edges })
    }

    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        let (Some(met), Some(&(n, end))) = (self.state(state), self.whole.get(&(state, edge))) else {
            return Err(Error::new(ErrorKind::Constraint, format!("state {} has no such lexeme", state.0)));
        };
        let to = self.sides.target(met.of, n as usize, LexemeTarget::ByTag, tag, exprs)?;
        self.met(to, end, met.goal, exprs)?
            .ok_or_else(|| Error::new(ErrorKind::Constraint, format!("state {} has no tag {tag}", state.0)))
    }

    fn byte_size(&self) -> usize {
        let met = self.states.len() * 3 * size_of::<MetState>() + self.whole.len() * 32;
        met + self.sides.bytes + self.ends.byte_size() + self.sides.rules.byte_size()
    }

    fn describe(&self, state: StateId) -> String {
        match self.state(state) {
            Some(met) => self.sides.rules.describe(met.of),
            None => "the end of the text".into(),
        }
    }
}

/// The error for what is not intersected by construction.
fn refused(what: &str) -> Error {
    Error::new(
        ErrorKind::Limit,
        format!("the intersection of the grammar with a regular language has {what}"),
    )
    .help("intersect a smaller grammar, or with a simpler regular expression")
}
