//! One grammar over one vocabulary while it runs: the machine, and the masks of its configurations.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bound::GrammarLimits;
use super::join::{join, Allowed, Sorter};
use super::lexeme::{Crossing, Lexeme};
use super::show;
use super::suffixes::Suffixes;
use super::table::LexemeTables;
use crate::{interrupt, Result, TokenId};
use logitree_grammar::earley::{ConfigId, ContinuationId, Machine, SameAfter, Texts, DEAD};
use logitree_grammar::expr::{ByteSet, ExprId, Exprs, Tag};
use logitree_tokens::mask::{bit, TokenSet};
use logitree_tokens::trie::TokenTrie;
use logitree_tokens::vocabulary::Vocabulary;

/// About how many bytes a mask takes beside its ids.
const SET_BYTES: usize = 64;
/// Ids for which the scratch of masks keeps room.
const MAX_SCRATCH: usize = 4_096;

/// What a mask depends on: its threads with far counters set equal, which end tokens and which token sets may come. Many
/// configurations have the same.
type MaskKey = (Box<[(ExprId, ContinuationId)]>, Box<[TokenId]>, Box<[u32]>);

pub(super) struct Engine {
    pub machine: Machine,
    pub vocabulary: Arc<Vocabulary>,
    pub limits: GrammarLimits,
    /// The tokens that end a complete text, ascending.
    pub ends: Arc<[TokenId]>,
    /// Those of them that are text as well.
    text_ends: Box<[TokenId]>,
    /// The token sets of the grammar, as ids.
    token_sets: Vec<TokenSet>,
    /// The end tokens that each of them names; those that one has because it is all but some are not named.
    named_ends: Vec<Box<[TokenId]>>,
    shared: Arc<LexemeTables>,
    /// With the tag that is meant instead of the tables' own.
    lexemes: FxHashMap<ExprId, (Arc<Lexeme>, Option<Tag>)>,
    saturated: FxHashMap<ExprId, ExprId>,
    by_key: FxHashMap<MaskKey, TokenSet>,
    mask_bytes: usize,
    /// The steps that the request was given.
    given: u64,
    /// Scratch for walks over rests of tokens.
    threads: Vec<(ExprId, ContinuationId)>,
    sorter: Sorter,
    /// Scratch for the ids of a mask.
    few: Vec<TokenId>,
}

impl Engine {
    pub fn new(
        machine: Machine,
        vocabulary: Arc<Vocabulary>,
        limits: GrammarLimits,
        ends: Arc<[TokenId]>,
        sets: Vec<(TokenSet, bool)>,
        shared: Arc<LexemeTables>,
    ) -> Engine {
        let named_in = |(set, is_named): &(TokenSet, bool)| {
            ends.iter().copied().filter(|&id| *is_named && set.contains(id)).collect()
        };
        let named_ends = sets.iter().map(named_in).collect();
        let token_sets: Vec<TokenSet> = sets.into_iter().map(|(set, _)| set).collect();
        let is_text = |id: &TokenId| {
            vocabulary.kind(*id).is_text() || token_sets.iter().any(|set: &TokenSet| set.contains(*id))
        };
        let text_ends = ends.iter().copied().filter(is_text).collect();
        Engine {
            text_ends,
            machine,
            vocabulary,
            limits,
            ends,
            token_sets,
            named_ends,
            shared,
            lexemes: FxHashMap::default(),
            saturated: FxHashMap::default(),
            by_key: FxHashMap::default(),
            mask_bytes: 0,
            given: limits.fuel,
            threads: Vec::new(),
            sorter: Sorter::default(),
            few: Vec::new(),
        }
    }

    /// Whether only the bytes of tokens matter, and the vocabulary's own tokens end a text.
    pub fn is_bytewise(&self) -> bool {
        let mut ends = self.vocabulary.end_tokens().to_vec();
        ends.sort_unstable();
        ends.dedup();
        self.token_sets.is_empty() && !self.machine.counts_tokens() && *self.ends == ends[..]
    }

    /// Gives the next request its fuel: no more than is left of the call's allowance.
    pub fn refuel(&mut self) {
        self.given = interrupt::left().map_or(self.limits.fuel, |left| left.min(self.limits.fuel));
        self.machine.exprs_mut().set_fuel(self.given);
    }

    /// The steps consumed since [`Engine::refuel`].
    pub fn steps(&self) -> u64 {
        self.given.saturating_sub(self.machine.exprs().fuel())
    }

    /// About how many bytes of memory it holds, the tables that the vocabulary keeps not counted.
    pub fn memory(&self) -> usize {
        self.machine.byte_size() + self.machine.exprs().memory() + self.mask_bytes
    }

    /// Whether texts were read, and the machine, or the expressions of all that takes `memory` bytes, have used half of what
    /// they may.
    pub fn is_crowded(&self, memory: usize) -> bool {
        let half = self.limits.automata_bytes / 2;
        let machine = self.machine.byte_size();
        self.machine.has_read() && (machine > half || memory - machine - self.mask_bytes > half)
    }

    /// Whether nothing may follow: complete, without a continuation.
    pub fn is_over(&self, config: ConfigId) -> bool {
        self.machine.is_accepting(config)
            && self.machine.threads(config).is_empty()
            && self.machine.token_sets(config).is_empty()
    }

    /// The configuration after `token`; [`DEAD`] if it is not allowed. An end token is not text here: the grammar takes
    /// one that it names where its text is complete with it.
    pub fn after(&mut self, config: ConfigId, token: TokenId) -> Result<ConfigId> {
        let next = self.after_all(config, token)?;
        self.machine.end_token(next)
    }

    /// [`Engine::after`] before the token ends.
    fn after_all(&mut self, config: ConfigId, token: TokenId) -> Result<ConfigId> {
        if self.ends.binary_search(&token).is_ok() {
            return self.after_named_end(config, token);
        }
        let vocabulary = Arc::clone(&self.vocabulary);
        let mut next = DEAD;
        if token < vocabulary.len() as TokenId && vocabulary.kind(token).is_text() {
            let bytes = vocabulary.token_bytes(token);
            next = if bytes.is_empty() { DEAD } else { config };
            for &byte in bytes {
                next = self.machine.step(next, byte)?;
                if next == DEAD {
                    break;
                }
            }
        }
        if self.machine.token_sets(config).is_empty() {
            return Ok(next);
        }
        let sets = &self.token_sets;
        let holds = |set: u32, id: TokenId| sets[set as usize].contains(id);
        let named = self.machine.step_token(config, token, &holds)?;
        match (next, named) {
            (DEAD, only) | (only, DEAD) => Ok(only),
            (a, b) => self.machine.either(a, b),
        }
    }

    /// The complete configuration after an end token; [`DEAD`] if the grammar does not name it here, or needs more after it,
    /// which no model would write.
    fn after_named_end(&mut self, config: ConfigId, token: TokenId) -> Result<ConfigId> {
        let named = &self.named_ends;
        let names = |set: u32| named[set as usize].binary_search(&token).is_ok();
        if !self.machine.token_sets(config).into_iter().any(names) {
            return Ok(DEAD);
        }
        let after = self.machine.step_token(config, token, &|set, _| names(set))?;
        Ok(if after != DEAD && self.machine.is_accepting(after) { after } else { DEAD })
    }

    /// The end tokens that may come in `config`, ascending.
    fn ends_at(&mut self, config: ConfigId) -> Result<Box<[TokenId]>> {
        if self.machine.is_accepting(config) {
            return Ok((*self.ends).into());
        }
        let sets = self.machine.token_sets(config);
        let mut ends: Vec<TokenId> =
            sets.iter().flat_map(|&set| self.named_ends[set as usize].iter().copied()).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut closing = Vec::new();
        for end in ends {
            if self.after_named_end(config, end)? != DEAD {
                closing.push(end);
            }
        }
        Ok(closing.into())
    }

    /// The byte that may come in `config`, if there is one only and no named token, and the configuration after it.
    pub fn sole_byte(&mut self, config: ConfigId) -> Result<Option<(u8, ConfigId)>> {
        if !self.machine.token_sets(config).is_empty() {
            return Ok(None);
        }
        let first = self.machine.first_bytes(config)?;
        let mut bytes = first.iter();
        let (Some(byte), None) = (bytes.next(), bytes.next()) else { return Ok(None) };
        let after = self.machine.step(config, byte)?;
        Ok((after != DEAD).then_some((byte, after)))
    }

    /// Appends the tokens that the grammar names in `config`, where it does not name most of the vocabulary.
    pub fn named(&self, config: ConfigId, out: &mut Vec<TokenId>) {
        let sets = self.machine.token_sets(config);
        out.extend(sets.into_iter().filter_map(|set| self.token_sets[set as usize].listed()).flatten());
    }

    /// What is expected in `config`, in words; with the bytes that may come where there is one way and they are few.
    pub fn expected(&mut self, config: ConfigId) -> Vec<String> {
        let mut words = self.machine.describe(config);
        let shown = self.machine.first_bytes(config).ok().and_then(|bytes| show::few(&bytes));
        if let ([only], Some(shown)) = (&mut words[..], shown) {
            only.push_str(&format!(", next {shown}"));
        }
        words
    }

    /// The allowed tokens of `config`.
    pub fn mask(&mut self, config: ConfigId) -> Result<TokenSet> {
        let key = self.key(config)?;
        if let Some(known) = self.by_key.get(&key) {
            return Ok(known.clone());
        }
        let made = self.make(&key)?;
        self.mask_bytes += made.own_bytes() + SET_BYTES + 16 * key.0.len() + 4 * key.1.len();
        self.by_key.insert(key, made.clone());
        Ok(made)
    }

    /// Counts `bytes` that are about to be cached. Returns whether all masks were forgotten, which are pure functions of
    /// their configurations, because there were too many.
    pub fn make_room(&mut self, bytes: usize) -> bool {
        self.mask_bytes += bytes;
        if self.mask_bytes <= self.limits.mask_bytes {
            return false;
        }
        self.by_key.clear();
        self.lexemes.clear();
        self.mask_bytes = bytes;
        true
    }

    fn key(&mut self, config: ConfigId) -> Result<MaskKey> {
        let mut threads: Box<[(ExprId, ContinuationId)]> = self.machine.threads(config).into();
        self.machine.exprs_mut().charge(8 * threads.len() as u64)?;
        for thread in threads.iter_mut() {
            *thread = (self.saturated(thread.0)?, self.machine.uncounted(thread.1)?);
        }
        threads.sort_unstable();
        Ok((threads, self.ends_at(config)?, self.machine.token_sets(config).into()))
    }

    fn saturated(&mut self, e: ExprId) -> Result<ExprId> {
        if let Some(&known) = self.saturated.get(&e) {
            return Ok(known);
        }
        let longest = self.vocabulary.trie()?.max_depth() as u32;
        let made = self.machine.exprs_mut().saturated(e, longest)?;
        self.saturated.insert(e, made);
        Ok(made)
    }

    fn make(&mut self, (threads, ends, sets): &MaskKey) -> Result<TokenSet> {
        let mut few = std::mem::take(&mut self.few);
        let mut dense: Vec<Allowed> = Vec::new();
        let mut pieces = Vec::with_capacity(threads.len() + 2);
        for &(e, cont) in threads.iter() {
            self.machine.exprs_mut().split_alternatives(e, &mut |piece| pieces.push((piece, cont)))?;
        }
        for (e, cont) in pieces {
            let (lexeme, tag) = self.lexeme(e)?;
            self.charge_for(&lexeme)?;
            add(&lexeme.inside, &[], &mut few, &mut dense);
            if let Some(base) = &lexeme.base {
                add(&base.lexeme.inside, &base.without, &mut few, &mut dense);
            }
            let (crossing, mut sure) = (few.len(), Vec::new());
            let takes = |id: TokenId| lexeme.takes(id);
            if let Some(base) = &lexeme.base {
                let from = few.len();
                let by_base = |id: TokenId| base.lexeme.takes(id);
                self.cross(&base.lexeme.crossings, by_base, (tag, cont), &mut few, &mut sure)?;
                if !base.elsewhere.is_empty() {
                    keep_but(&base.elsewhere, &mut few, from);
                    keep_but(&base.elsewhere, &mut sure, 0);
                }
            }
            self.cross(&lexeme.crossings, takes, (tag, cont), &mut few, &mut sure)?;
            if cont.reads() {
                sure.sort_unstable();
                self.keep_taken((e, cont), crossing, &sure, &mut few)?;
            }
        }
        for &set in sets.iter() {
            add(&self.token_sets[set as usize], &[], &mut few, &mut dense);
        }
        // End tokens are never text: they are allowed where the text may end, or ends with them, and nowhere else.
        if !self.text_ends.is_empty() {
            few.retain(|id| self.text_ends.binary_search(id).is_err());
        }
        for (words, without) in &mut dense {
            without.extend(self.text_ends.iter().filter(|&&id| bit(words, id)));
        }
        few.extend_from_slice(ends);
        let made = join(dense, &mut few, self.vocabulary.len(), &mut self.sorter);
        few.clear();
        few.shrink_to(MAX_SCRATCH);
        self.few = few;
        Ok(made)
    }

    /// Adds the tokens that leave a lexeme by `crossings` and continue in `cont`; those that it takes are in already. A
    /// tag that is given is meant instead of the tables' own.
    /// Where what follows depends on the text, these are all that may do so after some text; those that do after every text
    /// are added to `sure` too.
    fn cross(
        &mut self,
        crossings: &[Crossing],
        takes: impl Fn(TokenId) -> bool,
        (own, cont): (Option<Tag>, ContinuationId),
        few: &mut Vec<TokenId>,
        sure: &mut Vec<TokenId>,
    ) -> Result<()> {
        let vocabulary = Arc::clone(&self.vocabulary);
        let trie = vocabulary.trie()?;
        let mut threads = std::mem::take(&mut self.threads);
        let mut states = Vec::new();
        let machine = &mut self.machine;
        // Where the text of this lexeme matters, what is found is looked at again.
        let texts = if cont.reads() { Texts::Any } else { Texts::Read };
        let mut run = || -> Result<()> {
            for crossing in crossings {
                for &tag in crossing.tags.iter() {
                    let tag = own.unwrap_or(tag);
                    threads.clear();
                    let same = machine.begin_any(cont, tag, &mut threads)?;
                    let mut first = ByteSet::NONE;
                    for &(e, _) in &threads {
                        first = first.or(&machine.exprs_mut().first_bytes(e)?);
                    }
                    let every = (0, threads.len());
                    machine.exprs_mut().charge(16 + 4 * threads.len() as u64)?;
                    let bytes = first.and(&crossing.bytes);
                    for byte in bytes.iter() {
                        let found = suffixes_by(byte, crossing, &takes, trie, machine.exprs_mut())?;
                        let Some(suffixes) = found else { continue };
                        // A parent's threads lie below those of its children: what lies above is done with.
                        let mut refused = 0;
                        let step = |(from, to, next): (usize, usize, ByteSet), byte: u8, is_leaf: bool| {
                            if !next.contains(byte) {
                                refused += 1;
                                return Ok(None);
                            }
                            threads.truncate(to);
                            let viable = machine.follow(&mut threads, from..to, byte, texts)?;
                            let next = if is_leaf { &[] } else { &threads[to..] };
                            let next = perhaps_first_bytes(machine, next)?;
                            Ok::<_, crate::Error>(viable.then_some((to, threads.len(), next)))
                        };
                        suffixes.viable((every.0, every.1, first), step, &mut states, few)?;
                        machine.exprs_mut().charge(refused / 4)?;
                    }
                    if same == SameAfter::Unknown || !cont.reads() {
                        continue;
                    }
                    threads.truncate(every.1);
                    let known = sure.len();
                    let rests = bytes.iter().filter_map(|byte| crossing.suffixes(byte, &takes, trie));
                    cross_surely(machine, &mut threads, rests, sure)?;
                    if let SameAfter::AllBut(texts) = same {
                        machine.exprs_mut().charge((sure.len() * texts.len()) as u64 / 4)?;
                        drop_beginning(&texts, sure, known, &vocabulary);
                    }
                }
            }
            Ok(())
        };
        let done = run();
        self.threads = threads;
        done
    }

    /// Keeps of `few[from..]` the tokens that are `sure` and those that `thread` takes byte by byte, where what follows
    /// depends on the text.
    fn keep_taken(
        &mut self,
        thread: (ExprId, ContinuationId),
        from: usize,
        sure: &[TokenId],
        few: &mut Vec<TokenId>,
    ) -> Result<()> {
        let vocabulary = Arc::clone(&self.vocabulary);
        let machine = &mut self.machine;
        let threads = &mut self.threads;
        let mut kept = from;
        for n in from..few.len() {
            if sure.binary_search(&few[n]).is_ok() {
                few[kept] = few[n];
                kept += 1;
                continue;
            }
            threads.clear();
            threads.push(thread);
            let Some((&last, before)) = vocabulary.token_bytes(few[n]).split_last() else { continue };
            let mut start = 0;
            let mut viable = true;
            for &byte in before {
                let end = threads.len();
                viable = viable && machine.follow(threads, start..end, byte, Texts::Read)?;
                start = end;
            }
            if viable && machine.takes(&threads[start..], last)? {
                few[kept] = few[n];
                kept += 1;
            }
        }
        few.truncate(kept);
        Ok(())
    }

    /// Consumes the fuel for adding what a lexeme allows.
    fn charge_for(&mut self, lexeme: &Lexeme) -> Result<()> {
        let cost = |set: &TokenSet| match set.listed() {
            Some(ids) => ids.len() as u64,
            None => set.bytes() as u64 / 16,
        };
        let base =
            lexeme.base.as_ref().map_or(0, |base| cost(&base.lexeme.inside) + base.without.len() as u64);
        self.machine.exprs_mut().charge(8 + cost(&lexeme.inside) + base)
    }

    /// The tables of `e`. Where it is complete with one tag, those of the same without a tag: the rest of a key and its colon
    /// is the same for all keys.
    fn lexeme(&mut self, e: ExprId) -> Result<(Arc<Lexeme>, Option<Tag>)> {
        if let Some((known, tag)) = self.lexemes.get(&e) {
            return Ok((Arc::clone(known), *tag));
        }
        let vocabulary = Arc::clone(&self.vocabulary);
        let exprs = self.machine.exprs_mut();
        let (plain, tag) = exprs.split_tag(e)?.map_or((e, None), |(plain, tag)| (plain, Some(tag)));
        let lexeme = self.shared.lexeme(plain, exprs, &vocabulary)?;
        self.mask_bytes += lexeme.memory();
        self.lexemes.insert(e, (Arc::clone(&lexeme), tag));
        Ok((lexeme, tag))
    }
}

/// [`Crossing::suffixes`], at the fuel that finding them costs.
fn suffixes_by<'a>(
    byte: u8,
    crossing: &'a Crossing,
    takes: &impl Fn(TokenId) -> bool,
    trie: &TokenTrie,
    exprs: &mut Exprs,
) -> Result<Option<&'a Suffixes>> {
    match crossing.known_suffixes(byte, trie) {
        Ok(known) => Ok(Some(known)),
        Err(unvisited) => {
            exprs.charge(8 * unvisited as u64)?;
            Ok(crossing.suffixes(byte, takes, trie))
        }
    }
}

/// The bytes by which one of `threads` continues, or a superset where finding them takes long.
fn perhaps_first_bytes(machine: &mut Machine, threads: &[(ExprId, ContinuationId)]) -> Result<ByteSet> {
    let mut first = ByteSet::NONE;
    machine.exprs_mut().charge(2 * threads.len() as u64)?;
    for &(e, _) in threads {
        first = first.or(&machine.exprs_mut().perhaps_first_bytes(e)?);
    }
    Ok(first)
}

/// Drops what is in `without`, which is ascending, from `ids[from..]`.
fn keep_but(without: &[TokenId], ids: &mut Vec<TokenId>, from: usize) {
    let mut kept = from;
    for n in from..ids.len() {
        if without.binary_search(&ids[n]).is_err() {
            ids[kept] = ids[n];
            kept += 1;
        }
    }
    ids.truncate(kept);
}

/// Adds to `sure` the rests that continue by `threads` without the lexemes that depend on the text before them.
fn cross_surely<'a>(
    machine: &mut Machine,
    threads: &mut Vec<(ExprId, ContinuationId)>,
    rests: impl Iterator<Item = &'a Suffixes>,
    sure: &mut Vec<TokenId>,
) -> Result<()> {
    machine.drop_depending(threads, 0);
    let all = (0, threads.len());
    let mut states = Vec::new();
    for suffixes in rests {
        let step = |(from, to): (usize, usize), byte: u8, _: bool| {
            threads.truncate(to);
            let viable = machine.follow(threads, from..to, byte, Texts::UpToEnd)?;
            machine.drop_depending(threads, to);
            Ok::<_, crate::Error>(viable.then_some((to, threads.len())))
        };
        suffixes.viable(all, step, &mut states, sure)?;
    }
    Ok(())
}

/// Drops the tokens that begin with one of `texts` from `ids[from..]`.
fn drop_beginning(texts: &[Vec<u8>], ids: &mut Vec<TokenId>, from: usize, vocabulary: &Vocabulary) {
    let begins = |id| texts.iter().any(|text| vocabulary.token_bytes(id).starts_with(text));
    let mut kept = from;
    for n in from..ids.len() {
        if !begins(ids[n]) {
            ids[kept] = ids[n];
            kept += 1;
        }
    }
    ids.truncate(kept);
}

/// Adds a set, but for some of its ids, to what is gathered.
fn add(set: &TokenSet, without: &[TokenId], few: &mut Vec<TokenId>, dense: &mut Vec<Allowed>) {
    if let TokenSet::Words(words) = set {
        return dense.push((Arc::clone(words), without.to_vec()));
    }
    // The tables of lexemes have no other forms.
    let ids = set.listed().unwrap_or_default();
    match without.is_empty() {
        true => few.extend_from_slice(ids),
        false => few.extend(ids.iter().filter(|id| without.binary_search(id).is_err())),
    }
}
