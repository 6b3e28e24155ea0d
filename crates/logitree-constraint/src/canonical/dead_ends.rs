//! Finds candidate dead ends: allowed tokens for which the next character does not prove a canonical continuation.
//!
//! Most tokens of a state lead to one state, as those that stay in a string: its loop state, to which many characters lead
//! back. Such tokens are decided by masks. The others, which hold another character or do not reach it, are walked byte by byte, in the order of the trie, to what may come after them. Those of one kind that lead to one state are decided together;
//! where the next characters decide nothing, a few tokens after them are looked at.
//!
//! Nothing here depends on the last token, so that what is found serves all places with the same guesses.

mod loop_states;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::language::{ByteState, ByteWalk};
use crate::{interrupt, Result, TokenId};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::mask::{bit, count, ids, words_for};
use logitree_tokens::memo::Memo;
use logitree_tokens::tokenizer::{CanonicalStepper, DeadEnds, Place, TokenClasses};
use logitree_tokens::vocabulary::Vocabulary;
use loop_states::{Run, Shape};

/// The most tokens that may come where all of them are looked at.
const MAX_OPTIONS: usize = 2_048;
/// Where more tokens than this are allowed, only those are looked at that do not lead home.
const MAX_LOOKED: usize = 512;
/// The most nodes that are visited to find the tokens that may come.
const MAX_VISITED: usize = 3_000;
/// How many tokens after one that may come are looked at, where each time no more than a few may come.
const AHEAD: usize = 2;
const MAX_AHEAD: usize = 96;
/// The most bytes of each kind of answer that are kept.
const MAX_BYTES: usize = 8 << 20;
/// Bytes that are stepped over, or nodes that are visited, for one step of fuel.
const BYTES_A_STEP: usize = 4;
/// Steps for a token that is looked at by itself.
const TOKEN: u64 = 4;

/// What the next characters say of a state's tokens.
#[derive(Debug, Default)]
pub(super) struct DeadEndCandidates {
    /// Those that lead nowhere.
    pub dead: DeadEnds,
    /// Those that are undecided.
    pub open: Vec<TokenId>,
}

impl DeadEndCandidates {
    /// The bytes that they hold.
    pub fn bytes(&self) -> usize {
        4 * (self.dead.begun.len() + self.dead.inside.len() + self.open.len())
    }
}

/// Whether a text leads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continues {
    On,
    Nowhere,
    Open,
}

/// What may come in a state after a set of guesses, where the next characters do not say whether the text leads on.
struct Options {
    /// Whether something may, whatever the last token is.
    any: bool,
    /// The tokens that may where the piece continues, and the number of their list.
    inside: (u32, Box<[TokenId]>),
    /// Whether there are others for which that is not known.
    more: bool,
    /// How many tokens after them were looked at.
    ahead: usize,
}

/// What is known of the other matcher's states, by number.
#[derive(Default)]
pub(super) struct WalkMemo {
    bytes: Memo<u64, ByteSet, MAX_BYTES>,
    ways: Memo<u64, Ways, MAX_BYTES>,
    rounds: Memo<u64, (u128, Option<u64>), MAX_BYTES>,
    runs: Memo<u64, Run, MAX_BYTES>,
    shapes: Memo<u64, Option<Arc<Shape>>, MAX_BYTES>,
    options: Memo<(u64, u32), Option<Arc<Options>>, MAX_BYTES>,
}

/// The states after a state, by byte.
type Ways = Arc<[(ByteSet, u64)]>;

/// The states on the way of a token from a state, for tokens one after the other that begin alike.
struct Way<'a> {
    token: &'a [u8],
    /// The state after each byte, up to the first one that may not come.
    states: Vec<u64>,
}

impl<'a> Way<'a> {
    fn new(state: u64) -> Self {
        Way { token: &[], states: vec![state] }
    }

    /// The state after the bytes of a token.
    fn to(&mut self, look: &mut Lookahead<'_>, token: &'a [u8]) -> Result<Option<u64>> {
        let same = token.iter().zip(self.token).take_while(|(a, b)| a == b).count();
        self.token = token;
        // The byte at which the last one ended is in this one too.
        if same >= self.states.len() {
            return Ok(None);
        }
        spend(token.len() - same)?;
        self.states.truncate(same + 1);
        let mut at = self.states[same];
        for &byte in &token[same..] {
            match look.step(at, byte)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
            self.states.push(at);
        }
        Ok(Some(at))
    }
}

/// The states that tokens in a row lead to, by their number of characters.
struct Chain {
    run: Run,
    states: Vec<u64>,
}

/// Where tokens of a kind lead.
enum Verdict {
    Continues(Continues),
    /// On where one of the options may follow the token within a piece.
    Followed(Arc<Options>),
}

/// What is decided of tokens alike, for the length of a call, by kind and the state that they lead to: where they lead if they
/// begin a piece, and if they continue one.
struct Settling<'a> {
    kinds: &'a mut TokenClasses,
    known: FxHashMap<(u32, u64), [Verdict; 2]>,
}

/// A walk over the other matcher's states, with what is known of them.
pub(super) struct Lookahead<'a> {
    pub walk: ByteWalk<'a>,
    pub walked: &'a mut WalkMemo,
}

/// Consumes the fuel for so many bytes or nodes.
fn spend(bytes: usize) -> Result<()> {
    interrupt::spend(1 + (bytes / BYTES_A_STEP) as u64)
}

impl Lookahead<'_> {
    /// The state after a byte.
    fn step(&self, state: u64, byte: u8) -> Result<Option<u64>> {
        let next = self.walk.0.step(&ByteState::Number(state), byte)?;
        Ok(next.and_then(|next| next.number()))
    }

    /// The bytes that may come in a state.
    pub fn bytes(&mut self, state: u64) -> Result<ByteSet> {
        if let Some(known) = self.walked.bytes.get(&state) {
            return Ok(known);
        }
        interrupt::spend(TOKEN)?;
        let found = self.walk.0.bytes(&ByteState::Number(state))?;
        self.walked.bytes.keep_bytes(state, found, 0);
        Ok(found)
    }

    /// Whether what may come in `state` ends the piece at `place`.
    pub fn is_settled(&mut self, judge: &mut CanonicalStepper<'_>, state: u64, place: Place) -> Result<bool> {
        let bytes = self.bytes(state)?;
        let ascii = judge.ascii();
        judge.is_settled(place, classes(ascii, &bytes), &mut |chars| {
            self.classes_after(ascii, (state, bytes), chars)
        })
    }

    /// The classes that may come after one of some characters in a state, in which these bytes may come.
    fn classes_after(&mut self, ascii: &[u128], (state, bytes): (u64, ByteSet), chars: u128) -> Result<u64> {
        let mut left = low(&bytes) & chars;
        let (mut found, mut seen) = (0, Vec::new());
        while left != 0 {
            let byte = left.trailing_zeros() as u8;
            left &= left - 1;
            if let Some(next) = self.step(state, byte)?.filter(|next| !seen.contains(next)) {
                seen.push(next);
                found |= classes(ascii, &self.bytes(next)?);
            }
        }
        Ok(found)
    }

    fn ways(&mut self, state: u64) -> Result<Ways> {
        if let Some(known) = self.walked.ways.get(&state) {
            return Ok(known);
        }
        interrupt::spend(TOKEN)?;
        let found = self.walk.0.transitions(&ByteState::Number(state))?;
        let found: Ways = found.into_iter().filter_map(|(bytes, to)| Some((bytes, to.number()?))).collect();
        self.walked.ways.keep_bytes(state, Arc::clone(&found), size_of_val(&*found));
        Ok(found)
    }

    /// The tokens among `words` that may lead to a dead end from `state`, after a set of guesses.
    pub fn doubts(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        vocabulary: &Vocabulary,
        (state, set): (u64, u32),
        words: &[u32],
    ) -> Result<DeadEndCandidates> {
        let mut unproven: Vec<TokenId> = Vec::new();
        let trie = vocabulary.trie()?;
        let shape = if count(words) > MAX_LOOKED { self.shape(state, trie)? } else { None };
        match shape {
            None => unproven.extend(ids(words)),
            Some(shape) => {
                let listed = |id: &TokenId| bit(words, *id);
                if let Some(run) = shape.main {
                    let mut left = words.to_vec();
                    judge.keep_unproven(set, &run.row(), &mut left);
                    unproven.extend(ids(&left));
                } else {
                    unproven.extend(judge.others(words));
                }
                unproven.extend(shape.away.iter().copied().filter(listed));
                spend(4 * (shape.away.len() + shape.others.len()))?;
                for &(node, run) in &*shape.others {
                    let tokens: Vec<TokenId> =
                        trie.tokens_below(node).iter().copied().filter(listed).collect();
                    spend(4 * trie.tokens_below(node).len())?;
                    judge.returns(set, &run.row(), trie.depth(node), &tokens, &mut unproven);
                }
                unproven.sort_unstable();
                unproven.dedup();
            }
        }
        self.looked(judge, vocabulary, (state, set), unproven)
    }

    /// Where the tokens in `unproven` lead from `state` after a set of guesses, found one after the other.
    pub fn looked(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        vocabulary: &Vocabulary,
        (state, set): (u64, u32),
        unproven: Vec<TokenId>,
    ) -> Result<DeadEndCandidates> {
        let mut kinds = judge.take_kinds(set);
        let settling = &mut Settling { kinds: &mut kinds, known: FxHashMap::default() };
        let found = self.settled(judge, settling, vocabulary, (state, set), unproven);
        judge.give_kinds(kinds);
        found
    }

    /// As [`Lookahead::looked`], with the kinds of the set.
    fn settled(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        settling: &mut Settling<'_>,
        vocabulary: &Vocabulary,
        (state, set): (u64, u32),
        mut unproven: Vec<TokenId>,
    ) -> Result<DeadEndCandidates> {
        let mut doubts = DeadEndCandidates::default();
        let mut add = |token: TokenId, leads: [Continues; 2]| {
            if leads.contains(&Continues::Open) {
                doubts.open.push(token);
            }
            if leads[0] == Continues::Nowhere {
                doubts.dead.begun.push(token);
            }
            if leads[1] == Continues::Nowhere {
                doubts.dead.inside.push(token);
            }
        };
        let run = self.run(state)?;
        if run.is_loop_state() {
            let mut chain = Chain { run, states: vec![state] };
            // The others were not all asked where they lead.
            let outside = judge.outside(run.chars & !(1 << 127));
            let mut others = Vec::new();
            for token in unproven {
                let is_outside = bit(&outside, token);
                let length = judge.characters(token).filter(|_| !is_outside);
                match length.map_or(Ok(None), |length| self.at(&mut chain, length))? {
                    Some(at) => add(token, self.leads(judge, settling, vocabulary, (at, set), token, AHEAD)?),
                    None => others.push(token),
                }
            }
            unproven = others;
        }
        judge.sort(&mut unproven, vocabulary.trie()?);
        let mut way = Way::new(state);
        for token in unproven {
            let at = match judge.is_other(token) {
                true => None,
                false => way.to(self, vocabulary.token_bytes(token))?,
            };
            add(
                token,
                match at {
                    Some(at) => self.leads(judge, settling, vocabulary, (at, set), token, AHEAD)?,
                    None => [Continues::Open; 2],
                },
            );
        }
        for list in [&mut doubts.dead.begun, &mut doubts.dead.inside, &mut doubts.open] {
            list.sort_unstable();
        }
        Ok(doubts)
    }

    /// The state after so many characters in a row; `None` where the row is shorter.
    fn at(&mut self, chain: &mut Chain, length: usize) -> Result<Option<u64>> {
        if length > chain.run.length as usize {
            return Ok(None);
        }
        while chain.states.len() <= length {
            let last = chain.states[chain.states.len() - 1];
            match self.round(last)?.1 {
                Some(next) if next == last => return Ok(Some(last)),
                Some(next) => chain.states.push(next),
                None => return Ok(None),
            }
        }
        Ok(Some(chain.states[length]))
    }

    /// Where `token`, which leads to the state `at`, leads if it begins a piece after a set of guesses, and if it continues one.
    fn leads(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        settling: &mut Settling<'_>,
        vocabulary: &Vocabulary,
        (at, set): (u64, u32),
        token: TokenId,
        ahead: usize,
    ) -> Result<[Continues; 2]> {
        interrupt::spend(1)?;
        let kind = judge.kind(settling.kinds, token);
        let own;
        let verdicts = match kind {
            Some(kind) => {
                if !settling.known.contains_key(&(kind, at)) {
                    let found = self.verdicts(judge, settling.kinds, vocabulary, (at, set), token, ahead)?;
                    settling.known.insert((kind, at), found);
                }
                &settling.known[&(kind, at)]
            }
            None => {
                own = self.verdicts(judge, settling.kinds, vocabulary, (at, set), token, ahead)?;
                &own
            }
        };
        let mut leads = [Continues::On; 2];
        for (lead, verdict) in leads.iter_mut().zip(verdicts) {
            *lead = match verdict {
                Verdict::Continues(lead) => *lead,
                Verdict::Followed(options) => {
                    let (number, tokens) = &options.inside;
                    if judge.is_followed(token, (*number, tokens)) {
                        Continues::On
                    } else if options.more {
                        Continues::Open
                    } else {
                        Continues::Nowhere
                    }
                }
            };
        }
        Ok(leads)
    }

    /// Where a token, and all of its kind, lead from `at`.
    fn verdicts(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        kinds: &mut TokenClasses,
        vocabulary: &Vocabulary,
        (at, set): (u64, u32),
        token: TokenId,
        ahead: usize,
    ) -> Result<[Verdict; 2]> {
        interrupt::spend(TOKEN)?;
        let settled = self.settles(judge, kinds, (at, set), token)?;
        let mut verdicts = [Verdict::Continues(Continues::On), Verdict::Continues(Continues::On)];
        // What may begin a piece here is not asked whether it may continue one.
        if settled[0] {
            return Ok(verdicts);
        }
        for (n, verdict) in verdicts.iter_mut().enumerate().filter(|(n, _)| !settled[*n]) {
            if !judge.is_plain(token) {
                *verdict = Verdict::Continues(Continues::Open);
                continue;
            }
            let Some(next) = judge.set_after(set, token, n == 0) else {
                *verdict = Verdict::Continues(Continues::Nowhere);
                continue;
            };
            *verdict = match self.options(judge, vocabulary, (at, next), ahead)? {
                None => Verdict::Continues(Continues::Open),
                Some(options) if options.any => Verdict::Continues(Continues::On),
                Some(options) => Verdict::Followed(options),
            };
        }
        Ok(verdicts)
    }

    /// What may come in a state after a set of guesses, and after that in so many more tokens; `None` if that is too much to
    /// look at. Recurses at most [`AHEAD`] deep.
    fn options(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        vocabulary: &Vocabulary,
        (state, set): (u64, u32),
        ahead: usize,
    ) -> Result<Option<Arc<Options>>> {
        if let Some(known) = self.walked.options.get(&(state, set)) {
            if known.as_ref().is_none_or(|known| !known.more || known.ahead >= ahead) {
                return Ok(known);
            }
        }
        let found = match self.few(state, vocabulary)? {
            None => None,
            Some(few) => {
                let mut kinds = judge.take_kinds(set);
                let ahead = if few.len() <= MAX_AHEAD { ahead } else { 0 };
                let settling = &mut Settling { kinds: &mut kinds, known: FxHashMap::default() };
                let found = self.options_of(judge, settling, vocabulary, (state, set), (few, ahead));
                judge.give_kinds(kinds);
                Some(Arc::new(found?))
            }
        };
        let bytes = found.as_deref().map_or(0, |options| size_of::<Options>() + 4 * options.inside.1.len());
        self.walked.options.keep_bytes((state, set), found.clone(), bytes);
        Ok(found)
    }

    /// The tokens that may come, if they are not too many. What can be walked in a few steps needs no mask.
    fn few(&mut self, state: u64, vocabulary: &Vocabulary) -> Result<Option<Vec<TokenId>>> {
        let trie = vocabulary.trie()?;
        let (mut found, mut visited) = (Vec::new(), 0usize);
        let mut open = vec![(trie.root(), state)];
        while let Some((node, at)) = open.pop() {
            let (bytes, before) = (self.bytes(at)?, visited);
            for (byte, child) in trie.children(node) {
                visited += 1;
                let next = if bytes.contains(byte) { self.step(at, byte)? } else { None };
                let Some(next) = next else { continue };
                visited += 4;
                found.extend_from_slice(trie.tokens(child));
                if trie.size(child) > 1 {
                    open.push((child, next));
                }
            }
            spend(visited - before)?;
            if visited > MAX_VISITED || found.len() > MAX_OPTIONS {
                let mut words = vec![0; words_for(vocabulary.len())];
                self.walk.0.fill(&ByteState::Number(state), trie, &mut words)?;
                return Ok((count(&words) <= MAX_OPTIONS).then(|| ids(&words).collect()));
            }
        }
        Ok(Some(found))
    }

    /// As [`Lookahead::options`], of the tokens that may come.
    fn options_of(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        settling: &mut Settling<'_>,
        vocabulary: &Vocabulary,
        (state, set): (u64, u32),
        (few, ahead): (Vec<TokenId>, usize),
    ) -> Result<Options> {
        let any = self.walk.0.is_end(&ByteState::Number(state))? && judge.may_end_after(set);
        let mut found = Options { any, inside: (0, Box::default()), more: false, ahead };
        let (mut inside, mut way) = (Vec::new(), Way::new(state));
        for token in few {
            if found.any {
                break;
            }
            if judge.is_other(token) {
                continue;
            }
            interrupt::spend(1)?;
            let leads = match way.to(self, vocabulary.token_bytes(token))? {
                Some(at) if ahead > 0 => {
                    self.leads(judge, settling, vocabulary, (at, set), token, ahead - 1)?
                }
                Some(at) => {
                    let settled = self.settles(judge, settling.kinds, (at, set), token)?;
                    settled.map(|settled| if settled { Continues::On } else { Continues::Open })
                }
                None => [Continues::Open; 2],
            };
            found.any = leads[0] == Continues::On;
            if leads[1] == Continues::On {
                inside.push(token);
            }
            for (lead, begins) in leads.into_iter().zip([true, false]) {
                found.more |= lead == Continues::Open && judge.set_after(set, token, begins).is_some();
            }
        }
        spend(size_of_val(&inside[..]))?;
        found.inside = (judge.next_list(&inside), inside.into());
        Ok(found)
    }

    /// Whether what may come in a state, to which `token` leads, ends its piece: where it begins it after a set of guesses,
    /// and where it continues one.
    fn settles(
        &mut self,
        judge: &mut CanonicalStepper<'_>,
        kinds: &mut TokenClasses,
        (at, set): (u64, u32),
        token: TokenId,
    ) -> Result<[bool; 2]> {
        let bytes = self.bytes(at)?;
        let ascii = judge.ascii();
        let classes = classes(ascii, &bytes);
        let kind = judge.kind(kinds, token);
        let after = &mut |chars| self.classes_after(ascii, (at, bytes), chars);
        match kind {
            Some(kind) => judge.kind_settles(kinds, kind, classes, after),
            None => judge.settles_after(set, token, classes, after),
        }
    }
}

/// The ASCII characters among `bytes`, as bits.
fn low(bytes: &ByteSet) -> u128 {
    u128::from(bytes.0[0]) | u128::from(bytes.0[1]) << 64
}

/// The classes of the ASCII characters among `bytes`, given those of each class.
fn classes(ascii: &[u128], bytes: &ByteSet) -> u64 {
    let low = low(bytes);
    ascii.iter().enumerate().map(|(n, set)| u64::from(set & low != 0) << n).sum()
}
