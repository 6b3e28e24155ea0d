//! How the tables of a lexeme are found. The naive version, which steps the automaton through every node of the
//! trie, is also what small lexemes get ([`narrow`]); the wide ones are swept by a table automaton ([`wide`]), and
//! where tokens leave is looked up by the bytes that can complete the lexeme.

use rustc_hash::{FxHashMap, FxHashSet};

use super::counted::counted;
use super::lazy::{LazyTable, DEAD};
use super::lexeme::{Exit, Lexeme};
use super::table::state::StartState;
use crate::Result;
use logitree_grammar::dfa::Dfa;
use logitree_grammar::expr::{ByteSet, ExprId, Exprs, NOTHING};
use logitree_tokens::mask::{insert_bits, words_for, TokenSet};
use logitree_tokens::trie::{Below, Explorer, Node, StateNumber, Table, TokenTrie};
use logitree_tokens::vocabulary::Vocabulary;

/// Automata of more states are walked without a table.
const MAX_STATES: usize = 300;
/// An automaton of an expression that has more states is walked without a table.
const MAX_COPIED: usize = 4_096;
/// More nodes than this by which a lexeme can be complete are found by walking all.
const FEW_COMPLETING: usize = 24_000;
/// The byte that ends most texts.
const QUOTE: u8 = b'"';
/// More nodes than this are not looked at beside a sweep.
const FEW_BESIDE: usize = 8_000;
/// A start that more bytes than this lead back to takes many tokens at once.
const MANY_LOOPS: usize = 64;
/// States of more than this are not taken together, nor after more rounds than this.
const MAX_MERGED: usize = 128;
const MAX_ROUNDS: usize = 6;

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
) -> Result<Option<Lexeme>> {
    let mut ids = place.before().to_vec();
    let mut exits: Vec<Exit> = Vec::new();
    let mut refused: Vec<Node> = Vec::new();
    // Only nodes below an exit matter among the refused.
    let mut exits_until = 0;
    let mut failed = None;
    let mut visited = 0usize;
    let mut skipped = 0;
    // With each state the byte that it begins with, if that is one: all others are refused at once.
    let begun = (place.state, exprs.beginning(place.state));
    place.explore(trie, begun, |(state, only), byte, node| {
        visited += 1;
        if visited > most || failed.is_some() {
            return None;
        }
        if only.is_some_and(|only| only != byte) {
            skipped += 1;
            if node.index() < exits_until {
                refused.push(node);
            }
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
                match trie.tokens(node) {
                    [id] => ids.push(*id),
                    more => ids.extend_from_slice(more),
                }
                Some((next, exprs.beginning(next)))
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
    exprs.charge((skipped / 4 + 4 * (ids.len() + exits.len())) as u64)?;
    if visited > most {
        return Ok(None);
    }
    keep_with_refused(&mut exits, &refused, trie);
    Ok(Some(Lexeme::new(TokenSet::from_ids(ids, trie.vocabulary_size()), exits, exprs)))
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
) -> Result<Lexeme> {
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
    let nodes: usize = automaton.completing.iter().map(|byte| by_byte.of(byte).len()).sum();
    let short = match by_byte.of(QUOTE).len() <= FEW_BESIDE && automaton.may_loop_more(QUOTE) {
        true => automaton.without(QUOTE, exprs)?,
        false => None,
    };
    let words =
        match short.filter(|short| loops_on_start(short) > loops_on_start(&automaton.next).max(MANY_LOOPS)) {
            Some(short) => {
                exprs.charge(4 * by_byte.of(QUOTE).len() as u64)?;
                automaton.inside_in_parts((&short, QUOTE), vocabulary, by_byte)?
            }
            None => automaton.inside(trie)?,
        };
    let inside = TokenSet::from_words(words);
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
    Ok(Lexeme::new(inside, exits, exprs))
}

/// The tables of `e` by a walk of the whole trie that derives what it needs. Equal to [`narrow`] without a most.
///
/// # Errors
/// As [`narrow`].
pub(super) fn whole(e: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Lexeme> {
    let mut walk = Whole { table: LazyTable::new(exprs), trie, exits: Vec::new(), refused: Vec::new() };
    let start = walk.table.number(e);
    trie.explore_outline(start, &mut walk);
    let Whole { table, exits, refused, .. } = walk;
    if let Some(error) = table.failed {
        return Err(error);
    }
    allowed_outside(&refused, exits, exprs, trie)
}

/// The walk of [`whole`]. A subtree whose every token stays inside has no node that is refused, and no exit that is
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
) -> Result<Lexeme> {
    exprs.charge(trie.token_count() as u64 / 8 + (refused.len() + 4 * exits.len()) as u64)?;
    keep_with_refused(&mut exits, refused, trie);
    let mut words = vec![0u32; words_for(trie.vocabulary_size())];
    trie.tokens_outside(refused, &mut words);
    Ok(Lexeme::new(TokenSet::from_words(words), exits, exprs))
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

/// How many bytes lead from the first state of a table back to it.
pub(super) fn loops_on_start(next: &[u16]) -> usize {
    next.iter().take(256).filter(|&&next| next == 0).count()
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
    pub fn new(e: ExprId, exprs: &mut Exprs) -> Result<Option<Automaton>> {
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

    /// `next[state * 256 + byte]`.
    #[cfg(test)]
    pub fn table(&self) -> &[u16] {
        &self.next
    }

    pub fn step(&self, state: u16, byte: u8) -> Option<u16> {
        let next = self.next[usize::from(state) << 8 | usize::from(byte)];
        (next != u16::DEAD).then_some(next)
    }

    /// The tokens all of whose bytes it takes, by a sweep.
    pub fn inside(&self, trie: &TokenTrie) -> Result<Vec<u32>> {
        let mut words = vec![0u32; words_for(trie.vocabulary_size())];
        trie.allowed_by(&Table::new(&self.next, 0u16, u16::DEAD)?, &mut words)?;
        Ok(words)
    }

    /// Its table without `cut`. States from which the same bytes may come, then and later, are one: a text with a word
    /// somewhere in it is any text, up to the quote. `None` if it takes long to tell.
    pub fn without(&self, cut: u8, exprs: &mut Exprs) -> Result<Option<Vec<u16>>> {
        let states = self.outcomes.len();
        if states > MAX_MERGED {
            return Ok(None);
        }
        exprs.charge(32 * states as u64)?;
        let bytes = self.bytes_apart(cut);
        let mut classes = vec![0u16; states];
        let mut firsts: Vec<usize> = vec![0];
        for _ in 0..MAX_ROUNDS {
            exprs.charge(((4 + bytes.len()) * states) as u64)?;
            let mut numbers: FxHashMap<Vec<u16>, u16> = FxHashMap::default();
            let mut refined = Vec::with_capacity(states);
            let mut refined_firsts = Vec::new();
            for state in 0..states {
                let class = |byte: &u8| {
                    self.step(state as u16, *byte).map_or(u16::DEAD, |next| classes[usize::from(next)])
                };
                let key = bytes.iter().map(class).chain([classes[state]]).collect();
                let number = *numbers.entry(key).or_insert_with(|| {
                    refined_firsts.push(state);
                    refined_firsts.len() as u16 - 1
                });
                refined.push(number);
            }
            let is_stable = refined_firsts.len() == firsts.len();
            (classes, firsts) = (refined, refined_firsts);
            if is_stable {
                let row = |&first: &usize| (0..=u8::MAX).map(move |byte| (first as u16, byte));
                let class = |(state, byte)| match self.step(state, byte) {
                    Some(next) if byte != cut => classes[usize::from(next)],
                    _ => u16::DEAD,
                };
                return Ok(Some(firsts.iter().flat_map(row).map(class).collect()));
            }
        }
        Ok(None)
    }

    /// One byte of each class that no state distinguishes: all bytes but `cut`.
    fn bytes_apart(&self, cut: u8) -> Vec<u8> {
        // Neighbours that some state distinguishes.
        let mut parts = [false; 256];
        // The byte after the one that is cut may be the only one of a run that is left.
        for begin in [0, cut, cut.saturating_add(1)] {
            parts[usize::from(begin)] = true;
        }
        for row in self.next.chunks_exact(256) {
            for (part, pair) in parts[1..].iter_mut().zip(row.windows(2)) {
                *part |= pair[0] != pair[1];
            }
        }
        let mut parts: Vec<u8> = (0..=u8::MAX).filter(|&byte| parts[usize::from(byte)]).collect();
        let mut columns: FxHashSet<Vec<u16>> = FxHashSet::default();
        let column = |byte: u8| self.next.chunks_exact(256).map(move |row| row[usize::from(byte)]).collect();
        parts.retain(|&byte| byte != cut && columns.insert(column(byte)));
        parts
    }

    /// Whether more tokens may be taken at once without `cut`: whether the start takes many bytes, and two or more that do
    /// not lead back to it (one escapes).
    fn may_loop_more(&self, cut: u8) -> bool {
        let ascii = (0..128u8).filter(|&byte| byte != cut);
        let (loops, others): (Vec<u16>, Vec<u16>) =
            ascii.filter_map(|byte| self.step(0, byte)).partition(|&next| next == 0);
        others.len() > 1 && loops.len() + others.len() > MANY_LOOPS
    }

    /// [`Automaton::inside`] by a sweep of `short`, which is [`Automaton::without`] the byte `cut`, and by the paths of the
    /// nodes of that byte.
    pub fn inside_in_parts(
        &self,
        (short, cut): (&[u16], u8),
        vocabulary: &Vocabulary,
        by_byte: &ByByte,
    ) -> Result<Vec<u32>> {
        let trie = vocabulary.trie()?;
        let mut words = vec![0u32; words_for(vocabulary.len())];
        trie.allowed_by(&Table::new(short, 0u16, u16::DEAD)?, &mut words)?;
        let mut take = |node: Node| {
            insert_bits(&mut words, trie.tokens(node));
        };
        for &node in by_byte.of(cut) {
            let Some(state) = self.state_at(node, vocabulary, trie) else { continue };
            take(node);
            let row = &self.next[usize::from(state) << 8..][..256];
            if row.iter().any(|&next| next != u16::DEAD) {
                trie.explore(node, state, |state, byte, node| {
                    let next = self.step(state, byte)?;
                    take(node);
                    Some(next)
                });
            }
        }
        Ok(words)
    }

    /// The state after the bytes that lead to `node`.
    fn state_at(&self, node: Node, vocabulary: &Vocabulary, trie: &TokenTrie) -> Option<u16> {
        let token = trie.tokens_below(node).first()?;
        let path = &vocabulary.token_bytes(*token)[..trie.depth(node)];
        path.iter().try_fold(0u16, |state, &byte| self.step(state, byte))
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

    /// All exits, after the nodes whose byte can complete the lexeme.
    fn exits_behind(&self, vocabulary: &Vocabulary, trie: &TokenTrie, by_byte: &ByByte) -> Vec<Exit> {
        let mut exits = Vec::new();
        for byte in self.completing.iter() {
            for &node in by_byte.of(byte) {
                if trie.size(node) == 1 {
                    continue;
                }
                let end = self.state_at(node, vocabulary, trie);
                let Some(outcome) = end.and_then(|state| self.outcomes[usize::from(state)]) else { continue };
                exits.extend(trie.children(node).map(|(byte, node)| Exit { outcome, byte, node }));
            }
        }
        exits
    }
}
