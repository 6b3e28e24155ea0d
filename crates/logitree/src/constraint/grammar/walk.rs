//! How the tables of a terminal are found. The naive version, which steps the automaton through every node of the
//! trie, is also what small terminals get ([`narrow`]); the wide ones are swept by a table automaton ([`wide`]), and
//! where tokens leave is looked up by the bytes that can complete the terminal.

use rustc_hash::FxHashMap;

use super::entry::IdSet;
use super::table::state::StartState;
use super::terminal::{Exit, Terminal};
use crate::grammar::expr::{ByteSet, ExprId, Exprs, NOTHING};
use crate::mask::words_for;
use crate::trie::{Node, StateNumber, Table, TokenTrie};
use crate::vocabulary::Vocabulary;
use crate::Result;

/// Automata of more states are walked without a table.
const MAX_STATES: usize = 300;
/// More nodes than this by which a terminal can be complete are found by walking all.
const FEW_COMPLETING: usize = 24_000;

/// Where the nodes of each byte lie in a trie.
pub(super) struct ByByte {
    nodes: Box<[Node]>,
    first: Box<[u32; 257]>,
}

impl ByByte {
    pub fn new(trie: &TokenTrie) -> ByByte {
        let mut first = Box::new([0u32; 257]);
        trie.explore(trie.root(), (), |(), byte, _| {
            first[usize::from(byte) + 1] += 1;
            Some(())
        });
        for byte in 0..256 {
            first[byte + 1] += first[byte];
        }
        let mut next = first.clone();
        let mut nodes = vec![trie.root(); trie.node_count() - 1].into_boxed_slice();
        trie.explore(trie.root(), (), |(), byte, node| {
            let at = &mut next[usize::from(byte)];
            nodes[*at as usize] = node;
            *at += 1;
            Some(())
        });
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
    let mut failed = None;
    let mut visited = 0usize;
    place.explore(trie, place.state, |state, byte, node| {
        visited += 1;
        if visited > most || failed.is_some() {
            return None;
        }
        if exprs.is_complete(state) && trie.depth(node) > 1 {
            exits.push(Exit { outcome: exprs.outcome_number(state), byte, node });
        }
        match exprs.visit(state, byte) {
            Ok(NOTHING) => {
                refused.push(node);
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
    let Some(automaton) = Automaton::new(e, exprs)? else {
        // Without a most there is always an answer.
        let place = StartState::root(e, &exprs.first_bytes(e)?, trie);
        let all = narrow(&place, exprs, trie, usize::MAX)?;
        return Ok(all.unwrap_or_else(|| Terminal::new(IdSet::new(Vec::new(), 0), Vec::new(), exprs)));
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
struct Automaton {
    /// `next[state * 256 + byte]`; the start is state 0.
    next: Vec<u16>,
    /// The number of each state's list of tags; `None` where it is not complete.
    outcomes: Vec<Option<u32>>,
    /// The bytes that lead to a complete state.
    completing: ByteSet,
}

impl Automaton {
    /// `None` if there are too many states.
    fn new(e: ExprId, exprs: &mut Exprs) -> Result<Option<Automaton>> {
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

    fn step(&self, state: u16, byte: u8) -> Option<u16> {
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
