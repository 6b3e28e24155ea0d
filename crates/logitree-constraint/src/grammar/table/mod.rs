//! The tables of lexemes that a vocabulary keeps for all its grammars, by structure. An entry is a pure function of
//! its key, so that forgetting it costs time and nothing else.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

mod delimited;
pub(super) mod narrow;
pub(super) mod state;

use crate::grammar::lexeme::Lexeme;
use crate::grammar::walk::{bytes_to_end, narrow, wide, ByByte};
use crate::{interrupt, Result};
use delimited::{differing_among, differing_nodes, parting_nodes};
use logitree_grammar::expr::{ExprId, Exprs, StructureHash};
use logitree_tokens::memo::Memo;
use logitree_tokens::trie::{Node, TokenTrie};
use logitree_tokens::vocabulary::Vocabulary;
use narrow::{as_difference, default_state, LoopRounds};
use state::StartState;

/// Bytes of tables kept with one vocabulary before they are forgotten.
const MAX_BYTES: usize = 128 << 20;
/// Bytes of the tables of narrow states that were used last.
const NARROW_BYTES: usize = 16 << 20;
/// Lexemes that look at more nodes of the trie than this are kept with the vocabulary until there is too much; the others
/// for some time.
const NARROW: usize = 2_500;
/// Lexemes whose first bytes lead to more nodes than this are not narrow.
const PERHAPS_NARROW: usize = 60_000;
/// What precedes a state is not read ahead if it looks at more nodes than this.
const MAX_BEFORE: usize = 10_000;
/// Two states that differ in more nodes than this do not help a third one.
const MAX_APART: usize = 6_000;
/// Tokens of more bytes than this are few.
const LONG: u32 = 12;

#[derive(Default)]
struct Kept {
    tables: FxHashMap<StructureHash, Arc<Lexeme>>,
    /// Those of narrow states: names and texts that many schemas have.
    narrow: Memo<StructureHash, Arc<Lexeme>, NARROW_BYTES>,
    rounds: FxHashMap<StructureHash, Arc<LoopRounds>>,
    /// Where two states that say less and more differ.
    apart: FxHashMap<(StructureHash, StructureHash), Arc<[Node]>>,
    /// How many bytes are enough to end a text, by state.
    to_end: FxHashMap<StructureHash, Option<u32>>,
    /// What precedes many states and looks at many nodes.
    wide_heads: FxHashSet<StructureHash>,
    /// The approximations of states that were asked for.
    approximated: FxHashSet<StructureHash>,
    /// The nodes of tokens of more bytes than this.
    longer: FxHashMap<u32, Arc<[Node]>>,
    bytes: usize,
}

/// The tables of one vocabulary.
#[derive(Default)]
pub(super) struct LexemeTables {
    kept: Mutex<Kept>,
    by_byte: OnceLock<ByByte>,
    /// The nodes of tokens of more than [`LONG`] bytes.
    long: OnceLock<Box<[Node]>>,
    /// In how many nodes tokens end, by their number of bytes.
    ends_by_depth: OnceLock<Box<[u32]>>,
}

impl LexemeTables {
    /// The tables of `e`, kept or found.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the automaton needs more than the limits of `exprs`.
    pub fn lexeme(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Arc<Lexeme>> {
        if let Some(known) = self.get(exprs.structure(e)) {
            return Ok(known);
        }
        let place = self.place(e, exprs, vocabulary)?;
        if let Some(small) = self.narrow(&place, exprs, vocabulary)? {
            let bytes = small.memory();
            return Ok(self.kept().narrow.keep_bytes(exprs.structure(e), small, bytes));
        }
        if let Some(near) = self.near(e, &place, exprs, vocabulary)? {
            return Ok(self.keep(exprs.structure(e), near));
        }
        let between = if self.is_met_again(e, exprs)? { self.between(e, exprs, vocabulary)? } else { None };
        match between {
            Some(between) => Ok(between),
            None => self.wide(e, exprs, vocabulary),
        }
    }

    /// Whether a state with the same approximation was asked for before: the tables of the approximations take as long
    /// as several tables of their own, and serve no state but those to come.
    fn is_met_again(&self, e: ExprId, exprs: &mut Exprs) -> Result<bool> {
        let more = match exprs.without_upper_bounds(e)? {
            Some((more, _)) => more,
            None => match exprs.approximations(e)? {
                Some((_, more)) => more,
                None => return Ok(true),
            },
        };
        let key = exprs.structure(more);
        Ok(!self.kept().approximated.insert(key))
    }

    /// Where `e` begins.
    pub(super) fn place(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<StartState> {
        let trie = vocabulary.trie()?;
        if let Some((before, state)) = exprs.split_head(e)? {
            if let Some(before) = self.before(before, exprs, vocabulary)? {
                return Ok(StartState::behind(before, state, &exprs.first_bytes(state)?, trie));
            }
        }
        Ok(StartState::root(e, &exprs.first_bytes(e)?, trie))
    }

    /// The tables of what precedes many states, if they are small: cached, however small.
    fn before(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Option<Arc<Lexeme>>> {
        let key = exprs.structure(e);
        let found = match self.get(key) {
            Some(known) => known,
            None if self.kept().wide_heads.contains(&key) => return Ok(None),
            None => {
                let trie = vocabulary.trie()?;
                let root = StartState::root(e, &exprs.first_bytes(e)?, trie);
                let Some(small) = narrow(&root, exprs, trie, MAX_BEFORE)? else {
                    self.kept().wide_heads.insert(key);
                    return Ok(None);
                };
                self.keep(key, small)
            }
        };
        let is_small = found.base.is_none() && found.inside.listed().is_some();
        Ok(is_small.then_some(found))
    }

    /// The tables of a state that others are near to: its own, whatever it is near to.
    fn base(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Option<Arc<Lexeme>>> {
        let found = match self.get(exprs.structure(e)) {
            Some(known) => known,
            None => {
                let place = self.place(e, exprs, vocabulary)?;
                match self.narrow(&place, exprs, vocabulary)? {
                    Some(small) => small,
                    None => self.wide(e, exprs, vocabulary)?,
                }
            }
        };
        Ok(found.base.is_none().then_some(found))
    }

    fn narrow(
        &self,
        place: &StartState,
        exprs: &mut Exprs,
        vocabulary: &Vocabulary,
    ) -> Result<Option<Arc<Lexeme>>> {
        let trie = vocabulary.trie()?;
        if place.nodes(trie) > PERHAPS_NARROW {
            return Ok(None);
        }
        Ok(narrow(place, exprs, trie, NARROW)?.map(Arc::new))
    }

    fn wide(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Arc<Lexeme>> {
        let trie = vocabulary.trie()?;
        let by_byte = self.by_byte.get_or_init(|| ByByte::new(trie));
        let made = wide(e, exprs, vocabulary, by_byte)?;
        Ok(self.keep(exprs.structure(e), made))
    }

    /// The tables of `e`, which begins at `place`, as differences from those of another state, where there is one.
    fn near(
        &self,
        e: ExprId,
        place: &StartState,
        exprs: &mut Exprs,
        vocabulary: &Vocabulary,
    ) -> Result<Option<Lexeme>> {
        let trie = vocabulary.trie()?;
        if let Some(bounds) = exprs.bounded_loop(e)? {
            if let Some(base) = self.base(bounds.endless, exprs, vocabulary)? {
                // After one round it is the endless one: that is cheaper to see than how often each token goes round.
                if bounds.is_endless_after_a_round() && !self.has_rounds(bounds.endless, exprs) {
                    let place = StartState::root(e, &exprs.first_bytes(bounds.endless)?, trie);
                    if let Some(near) = as_difference(&place, bounds.endless, &base, exprs, trie)? {
                        return Ok(Some(near));
                    }
                }
                let rounds = self.rounds(bounds.endless, exprs, trie)?;
                return Ok(Some(rounds.bounded(&bounds, &base, exprs)));
            }
        }
        let Some(other) = default_state(place.state, exprs)? else { return Ok(None) };
        let mut whole = other;
        if let Some((before, _)) = exprs.split_head(e)?.filter(|(_, state)| *state == place.state) {
            whole = exprs.concat(&[before, other])?;
            if exprs.split_head(whole)? != Some((before, other)) {
                return Ok(None);
            }
        }
        match self.base(whole, exprs, vocabulary)? {
            Some(base) => {
                let place = place.with(&exprs.first_bytes(other)?, trie);
                as_difference(&place, other, &base, exprs, trie)
            }
            None => Ok(None),
        }
    }

    /// The tables of `e` from those of two states that say less and more, where these agree on nearly all tokens.
    pub(super) fn between(
        &self,
        e: ExprId,
        exprs: &mut Exprs,
        vocabulary: &Vocabulary,
    ) -> Result<Option<Arc<Lexeme>>> {
        if let Some(far) = self.far(e, exprs, vocabulary)? {
            return Ok(Some(far));
        }
        let Some((less, more)) = exprs.approximations(e)? else { return Ok(None) };
        let trie = vocabulary.trie()?;
        let Some(lower) = self.base(less, exprs, vocabulary)? else { return Ok(None) };
        let Some(upper) = self.base(more, exprs, vocabulary)? else { return Ok(None) };
        let key = (exprs.structure(less), exprs.structure(more));
        let known = self.kept().apart.get(&key).map(Arc::clone);
        let apart = match known {
            Some(known) => known,
            None => {
                exprs.charge(2 * trie.node_count() as u64)?;
                self.keep_apart(key, differing_nodes(&lower, &upper, vocabulary)?)
            }
        };
        if apart.is_empty() {
            return Ok(Some(upper));
        }
        if apart.len() > MAX_APART {
            return Ok(None);
        }
        let made = differing_among(e, &apart, &upper, exprs, trie)?;
        Ok(Some(self.keep(exprs.structure(e), made)))
    }

    /// The tables of `e` from those of the same without bounds, from which it differs in long tokens only.
    pub(super) fn far(
        &self,
        e: ExprId,
        exprs: &mut Exprs,
        vocabulary: &Vocabulary,
    ) -> Result<Option<Arc<Lexeme>>> {
        let Some((more, same)) = exprs.without_upper_bounds(e)? else { return Ok(None) };
        let key = exprs.structure(more);
        let known = self.kept().to_end.get(&key).copied();
        let to_end = match known {
            Some(known) => known,
            None => {
                let found = bytes_to_end(more, exprs)?;
                self.kept().to_end.insert(key, found);
                found
            }
        };
        let Some(to_end) = to_end else { return Ok(None) };
        let trie = vocabulary.trie()?;
        let nodes = match self.parting(e, (more, to_end), exprs, trie)? {
            Some(nodes) => Some(nodes),
            None => self.longer(same.saturating_sub(to_end), exprs, trie)?,
        };
        let Some(nodes) = nodes else { return Ok(None) };
        let Some(upper) = self.base(more, exprs, vocabulary)? else { return Ok(None) };
        if nodes.is_empty() {
            return Ok(Some(upper));
        }
        if nodes.len() > MAX_APART {
            return Ok(None);
        }
        let made = differing_among(e, &nodes, &upper, exprs, trie)?;
        Ok(Some(self.keep(exprs.structure(e), made)))
    }

    /// The nodes in which `e` may differ from `more`, which has no bounds and can always end within `to_end` bytes:
    /// those in which a state between the two differs, that stands for many.
    fn parting(
        &self,
        e: ExprId,
        (more, to_end): (ExprId, u32),
        exprs: &mut Exprs,
        trie: &TokenTrie,
    ) -> Result<Option<Arc<[Node]>>> {
        let Some((less, _)) = exprs.approximations(e)? else { return Ok(None) };
        let Some((endless, same)) = exprs.without_upper_bounds(less)? else { return Ok(None) };
        if endless != more {
            return Ok(None);
        }
        let Some(long) = self.longer(same.saturating_sub(to_end), exprs, trie)? else { return Ok(None) };
        let key = (exprs.structure(less), exprs.structure(more));
        let known = self.kept().apart.get(&key).map(Arc::clone);
        Ok(Some(match known {
            Some(known) => known,
            None => self.keep_apart(key, parting_nodes(less, more, &long, exprs, trie)?),
        }))
    }

    fn keep_apart(&self, key: (StructureHash, StructureHash), nodes: Vec<Node>) -> Arc<[Node]> {
        let made: Arc<[Node]> = nodes.into();
        let mut kept = self.kept();
        kept.bytes += size_of_val(&*made);
        kept.apart.insert(key, Arc::clone(&made));
        made
    }

    /// The nodes of tokens of more than `bytes` bytes; `None` if there are too many.
    fn longer(&self, bytes: u32, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Option<Arc<[Node]>>> {
        let bytes = bytes.min(trie.max_depth() as u32);
        if let Some(known) = self.kept().longer.get(&bytes) {
            return Ok(Some(Arc::clone(known)));
        }
        exprs.charge(trie.node_count() as u64 / 4)?;
        let counts = self.ends_by_depth.get_or_init(|| trie.ends_by_depth());
        let count: u32 = counts[bytes as usize + 1..].iter().sum();
        if count as usize > MAX_APART {
            return Ok(None);
        }
        let made: Arc<[Node]> = if bytes < LONG {
            trie.nodes_deeper(bytes as usize).into()
        } else {
            let long = self.long.get_or_init(|| trie.nodes_deeper(LONG as usize).into());
            long.iter().copied().filter(|&node| trie.depth(node) > bytes as usize).collect()
        };
        let mut kept = self.kept();
        kept.bytes += size_of_val(&*made);
        kept.longer.insert(bytes, Arc::clone(&made));
        Ok(Some(made))
    }

    fn has_rounds(&self, endless: ExprId, exprs: &Exprs) -> bool {
        self.kept().rounds.contains_key(&exprs.structure(endless))
    }

    fn rounds(&self, endless: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Arc<LoopRounds>> {
        let key = exprs.structure(endless);
        let known = |kept: &Kept| kept.rounds.get(&key).map(Arc::clone);
        if let Some(known) = known(&self.kept()) {
            return Ok(known);
        }
        let made = Arc::new(LoopRounds::new(endless, exprs, trie)?);
        let mut kept = self.kept();
        kept.bytes += made.memory();
        kept.rounds.insert(key, Arc::clone(&made));
        Ok(made)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        interrupt::lock(&self.kept)
    }

    fn get(&self, key: StructureHash) -> Option<Arc<Lexeme>> {
        let mut kept = self.kept();
        let table = kept.tables.get(&key).map(Arc::clone);
        table.or_else(|| kept.narrow.get(&key))
    }

    /// Keeps `lexeme`; when there is too much, everything else is forgotten.
    fn keep(&self, key: StructureHash, lexeme: Lexeme) -> Arc<Lexeme> {
        let lexeme = Arc::new(lexeme);
        let mut kept = self.kept();
        let bytes = lexeme.memory();
        if kept.bytes + bytes > MAX_BYTES {
            kept.tables.clear();
            kept.rounds.clear();
            kept.apart.clear();
            kept.to_end.clear();
            kept.approximated.clear();
            kept.wide_heads.clear();
            kept.longer.clear();
            kept.bytes = 0;
        }
        if kept.tables.insert(key, Arc::clone(&lexeme)).is_none() {
            kept.bytes += bytes;
        }
        lexeme
    }
}
