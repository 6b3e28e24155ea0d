//! How the tables of a terminal are found. The naive version, which steps the automaton through every node of the
//! trie, is also what small terminals get ([`narrow`]); the wide ones are swept by a table automaton ([`wide`]), and
//! where tokens leave is looked up by the bytes that can complete the terminal.

use rustc_hash::FxHashMap;

use super::counted::counted;
use super::entry::IdSet;
use super::lazy::{LazyTable, DEAD};
use super::table::state::StartState;
use super::terminal::{Exit, Terminal};
use crate::grammar::dfa::Dfa;
use crate::grammar::expr::{ByteSet, ExprId, Exprs, NOTHING};
use crate::mask::words_for;
use crate::trie::{Below, Explorer, Node, StateNumber, Table, TokenTrie};
use crate::vocabulary::Vocabulary;
use crate::Result;

/// Automata of more states are walked without a table.
const MAX_STATES: usize = 300;
/// An automaton of an expression that has more states is walked without a table.
const MAX_COPIED: usize = 4_096;
/// More nodes than this by which a terminal can be complete are found by walking all.
const FEW_COMPLETING: usize = 24_000;

/// Where the nodes of each byte lie in a trie.
pub(super) struct ByByte {
    nodes: Box<[Node]>,
    first: Box<[u32; 257]>,
}

impl ByByte {
    pub fn new(trie: &TokenTrie) -> ByByte {
        let (nodes, first) = trie.nodes_by_byte();
        ByByte { nodes, first }
    }

    fn of(&self, byte: u8) -> &[Node] {
        let byte = usize::from(byte);
        &self.nodes[self.first[byte] as usize..self.first[byte + 1] as usize]
    }
}

/// The tables of a place, if no more than a few nodes have to be looked at; all of them where `most` says so.
///
/// # Errors
/// [`crate::ErrorKind::Limit`] if the automaton needs more than the limits of `exprs`.
pub(super) fn narrow(
    place: &StartState,
    exprs: &mut Exprs,
    trie: &TokenTrie,
    most: usize,
) -> Result<Option<Terminal>> {
    let mut ids = place.before().to_vec();
    let mut exits: Vec<Exit> = Vec::new();
    let mut refused: Vec<Node> = Vec::new();
    // Only nodes below an exit matter among the refused.
    let mut exits_until = 0;
    let mut failed = None;
    let mut visited = 0usize;
    place.explore(trie, place.state, |state, byte, node| {
        visited += 1;
        if visited > most || failed.is_some() {
            return None;
        }
        if exprs.is_complete(state) && trie.depth(node) > 1 {
            exits.push(Exit { outcome: exprs.outcome_number(state), byte, node });
            exits_until = exits_until.max(node.index() + trie.size(node));
        }
        match exprs.visit(state, byte) {
            Ok(NOTHING) => {
                if node.index() < exits_until {
                    refused.push(node);
                }
                None
            }
            Ok(next) => {
                ids.extend_from_slice(trie.tokens(node));
                Some(next)
            }
            Err(error) => {
                failed.get_or_insert(error);
                None
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    exprs.charge(4 * (ids.len() + exits.len()) as u64)?;
    if visited > most {
        return Ok(None);
    }
    keep_with_refused(&mut exits, &refused, trie);
    Ok(Some(Terminal::new(IdSet::new(ids, words_for(trie.vocabulary_size())), exits, exprs)))
}

/// Leaves out the exits below which every token stays inside: they are allowed anyway. Both lists are in the order of
/// the walk, which is that of the nodes.
fn keep_with_refused(exits: &mut Vec<Exit>, refused: &[Node], trie: &TokenTrie) {
    let mut at = 0;
    exits.retain(|exit| {
        while refused.get(at).is_some_and(|&node| node < exit.node) {
            at += 1;
        }
        let end = exit.node.index() + trie.size(exit.node);
        refused.get(at).is_some_and(|node| node.index() < end)
    });
}

/// The tables of `e`, whatever they cost. Equal to [`narrow`] without a most.
///
/// # Errors
/// As [`narrow`].
pub(super) fn wide(
    e: ExprId,
    exprs: &mut Exprs,
    vocabulary: &Vocabulary,
    by_byte: &ByByte,
) -> Result<Terminal> {
    let trie = vocabulary.trie()?;
    if let Some(made) = counted(e, exprs, trie)? {
        return Ok(made);
    }
    // To find out that there are too many states takes longer than to walk without a table.
    let is_small = exprs.split_automaton(e).is_some() || exprs.has_positions(e, MAX_STATES);
    let automaton = if is_small { Automaton::new(e, exprs)? } else { None };
    let Some(automaton) = automaton else {
        return whole(e, exprs, trie);
    };
    exprs.spend(trie.node_count() as u64 / 64)?;
    let mut words = vec![0u32; words_for(vocabulary.len())];
    let table = Table::new(&automaton.next, 0u16, u16::DEAD)?;
    trie.allowed_by(&table, &mut words)?;
    let inside = IdSet::from_words(words);
    let nodes: usize = automaton.completing.iter().map(|byte| by_byte.of(byte).len()).sum();
    let exits = if nodes <= FEW_COMPLETING {
        exprs.charge(4 * nodes as u64)?;
        automaton.exits_behind(vocabulary, trie, by_byte)
    } else {
        exprs.charge(trie.node_count() as u64)?;
        automaton.exits(trie)
    };
    exprs.charge(16 * exits.len() as u64)?;
    let outside = |node: Node| trie.tokens_below(node).iter().any(|&id| !inside.contains(id));
    let exits = exits.into_iter().filter(|exit| outside(exit.node)).collect();
    Ok(Terminal::new(inside, exits, exprs))
}

/// The tables of `e` by a walk of the whole trie that derives what it needs. Equal to [`narrow`] without a most.
///
/// # Errors
/// As [`narrow`].
pub(super) fn whole(e: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Terminal> {
    let mut walk = Whole { table: LazyTable::new(exprs), trie, exits: Vec::new(), refused: Vec::new() };
    let start = walk.table.number(e);
    trie.explore_outline(start, &mut walk);
    let Whole { table, exits, refused, .. } = walk;
    if let Some(error) = table.failed {
        return Err(error);
    }
    allowed_outside(&refused, exits, exprs, trie)
}

/// The walk of [`whole`]. A subtree of which every token stays inside has no node that is refused, and no exit that is
/// kept.
struct Whole<'a> {
    table: LazyTable<'a>,
    trie: &'a TokenTrie,
    exits: Vec<Exit>,
    refused: Vec<Node>,
}

impl Explorer for Whole<'_> {
    type State = u32;

    #[inline]
    fn step(&mut self, state: u32, byte: u8, node: Node) -> Option<u32> {
        if LazyTable::is_complete(state) && self.trie.depth(node) > 1 {
            self.exits.push(Exit { outcome: self.table.outcome(state), byte, node });
        }
        let next = self.table.step(state, byte);
        if next == DEAD {
            self.refused.push(node);
            return None;
        }
        Some(next)
    }

    fn takes_all(&mut self, state: u32, first: u8, below: &Below) -> bool {
        (!first.is_ascii() || self.table.step(state, first) == state) && self.table.loops(state).take(below)
    }
}

/// The tables after a walk of the whole trie that these nodes ended.
///
/// # Errors
/// As [`narrow`].
pub(super) fn allowed_outside(
    refused: &[Node],
    mut exits: Vec<Exit>,
    exprs: &mut Exprs,
    trie: &TokenTrie,
) -> Result<Terminal> {
    exprs.charge(trie.token_count() as u64 / 8 + (refused.len() + 4 * exits.len()) as u64)?;
    keep_with_refused(&mut exits, refused, trie);
    let mut words = vec![0u32; words_for(trie.vocabulary_size())];
    trie.tokens_outside(refused, &mut words);
    Ok(Terminal::new(IdSet::from_words(words), exits, exprs))
}

/// How many bytes are enough, after any text that may begin a text of `e`, to end one. `None` if there are too many
/// states to tell.
///
/// # Errors
/// As [`narrow`].
pub(super) fn bytes_to_end(e: ExprId, exprs: &mut Exprs) -> Result<Option<u32>> {
    let Some(automaton) = Automaton::new(e, exprs)? else { return Ok(None) };
    let states = automaton.outcomes.len();
    let mut reached: Vec<bool> = automaton.outcomes.iter().map(Option::is_some).collect();
    let mut bytes = 0;
    while reached.contains(&false) {
        let ends = |state: &usize| {
            let row = &automaton.next[state << 8..(state + 1) << 8];
            reached[*state] || row.iter().any(|&next| next != u16::DEAD && reached[usize::from(next)])
        };
        let more: Vec<bool> = (0..states).map(|state| ends(&state)).collect();
        exprs.charge(64 * states as u64)?;
        if more == reached {
            return Ok(None);
        }
        reached = more;
        bytes += 1;
    }
    Ok(Some(bytes))
}

/// The states that an expression reaches, as a table.
pub(super) struct Automaton {
    /// `next[state * 256 + byte]`; the start is state 0.
    next: Vec<u16>,
    /// The number of each state's list of tags; `None` where it is not complete.
    pub outcomes: Vec<Option<u32>>,
    /// The bytes that lead to a complete state.
    completing: ByteSet,
}

impl Automaton {
    /// `None` if there are too many states.
    fn new(e: ExprId, exprs: &mut Exprs) -> Result<Option<Automaton>> {
        if let Some((dfa, state, rest)) = exprs.split_automaton(e) {
            if let Some(made) = Automaton::copied(&dfa, state, rest, exprs)? {
                return Ok(Some(made));
            }
        }
        Automaton::explored(e, exprs)
    }

    /// That of `dfa` from `state` on, followed by `rest`; `None` if it is large, or if a byte may belong to both.
    fn copied(dfa: &Dfa, state: u32, rest: ExprId, exprs: &mut Exprs) -> Result<Option<Automaton>> {
        let mut made = Automaton { next: Vec::new(), outcomes: Vec::new(), completing: ByteSet::NONE };
        let end = exprs.is_complete(rest).then(|| exprs.outcome_number(rest));
        let mut numbers: FxHashMap<u32, u16> = FxHashMap::from_iter([(state, 0)]);
        let mut states = vec![state];
        let mut at = 0;
        while at < states.len() {
            if states.len() > MAX_COPIED {
                return Ok(None);
            }
            let state = states[at];
            let row = made.next.len();
            made.next.resize(row + 256, u16::DEAD);
            let targets = dfa.targets(state);
            exprs.charge(16 + 4 * targets.len() as u64)?;
            for (class, next) in targets {
                let number = *numbers.entry(next).or_insert_with(|| {
                    states.push(next);
                    states.len() as u16 - 1
                });
                class.iter().for_each(|byte| made.next[row + usize::from(byte)] = number);
                if end.is_some() && dfa.is_accepting(next) {
                    made.completing = made.completing.or(&class);
                }
            }
            made.outcomes.push(end.filter(|_| dfa.is_accepting(state)));
            at += 1;
        }
        let Some(after) = Automaton::explored(rest, exprs)? else { return Ok(None) };
        if after.outcomes.len() + states.len() > usize::from(u16::DEAD) {
            return Ok(None);
        }
        // The start of the rest is the accepting states of the first.
        let moved = |next: u16| if next == u16::DEAD { next } else { next + states.len() as u16 };
        let start = &after.next[..256];
        for (at, _) in states.iter().enumerate().filter(|(_, &state)| dfa.is_accepting(state)) {
            exprs.charge(16)?;
            for (mine, &theirs) in made.next[at << 8..(at + 1) << 8].iter_mut().zip(start) {
                if theirs != u16::DEAD {
                    if *mine != u16::DEAD {
                        return Ok(None);
                    }
                    *mine = moved(theirs);
                }
            }
        }
        made.next.extend(after.next.iter().map(|&next| moved(next)));
        made.outcomes.extend(&after.outcomes);
        made.completing = made.completing.or(&after.completing);
        Ok(Some(made))
    }

    /// By derivatives.
    pub fn explored(e: ExprId, exprs: &mut Exprs) -> Result<Option<Automaton>> {
        let mut numbers: FxHashMap<ExprId, u16> = FxHashMap::from_iter([(e, 0)]);
        let mut states = vec![e];
        let mut made = Automaton { next: Vec::new(), outcomes: Vec::new(), completing: ByteSet::NONE };
        let mut at = 0;
        while at < states.len() {
            let state = states[at];
            let row = made.next.len();
            exprs.charge(32)?;
            made.next.resize(row + 256, u16::DEAD);
            for (class, next) in exprs.transitions(state)? {
                let number = *numbers.entry(next).or_insert_with(|| {
                    states.push(next);
                    states.len() as u16 - 1
                });
                class.iter().for_each(|byte| made.next[row + usize::from(byte)] = number);
                if exprs.is_complete(next) {
                    made.completing = made.completing.or(&class);
                }
            }
            made.outcomes.push(exprs.is_complete(state).then(|| exprs.outcome_number(state)));
            if states.len() > MAX_STATES {
                return Ok(None);
            }
            at += 1;
        }
        Ok(Some(made))
    }

    pub fn step(&self, state: u16, byte: u8) -> Option<u16> {
        let next = self.next[usize::from(state) << 8 | usize::from(byte)];
        (next != u16::DEAD).then_some(next)
    }

    /// All exits, by a walk.
    fn exits(&self, trie: &TokenTrie) -> Vec<Exit> {
        let mut exits = Vec::new();
        trie.explore(trie.root(), 0u16, |state, byte, node| {
            if let Some(outcome) = self.outcomes[usize::from(state)] {
                if trie.depth(node) > 1 {
                    exits.push(Exit { outcome, byte, node });
                }
            }
            self.step(state, byte)
        });
        exits
    }

    /// All exits, after the nodes whose byte can complete the terminal.
    fn exits_behind(&self, vocabulary: &Vocabulary, trie: &TokenTrie, by_byte: &ByByte) -> Vec<Exit> {
        let mut exits = Vec::new();
        for byte in self.completing.iter() {
            for &node in by_byte.of(byte) {
                if trie.size(node) == 1 {
                    continue;
                }
                let Some(&token) = trie.tokens_below(node).first() else { continue };
                let path = &vocabulary.token_bytes(token)[..trie.depth(node)];
                let end = path.iter().try_fold(0u16, |state, &byte| self.step(state, byte));
                let Some(outcome) = end.and_then(|state| self.outcomes[usize::from(state)]) else { continue };
                exits.extend(trie.children(node).map(|(byte, node)| Exit { outcome, byte, node }));
            }
        }
        exits
    }
}
