//! Which tokens continue a sequence that the tokenizer itself would give, for the text so far and some text after it.
//!
//! ```text
//! place = guesses of where pieces begin, the last token, the bytes of a character that is not complete
//! token allowed = it begins a piece, or continues the present one and may follow the last token
//! ```
//!
//! The tokens that may begin or continue a piece depend on a guess and on a token's classes of characters alone: they are
//! found once for each guess. The tokens that may follow a token are a row of `spines`. So most steps intersect masks.
//!
//! The naive version encodes the whole text after every token.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::boundaries::Guess;
use super::canonical_memo::CanonicalMemo;
use super::merges::{Scratch, Units, NO_TOKEN};
use super::spines::Spines;
use super::user::NO_PART;
use super::Tokenizer;
use crate::mask::{bit, count, ids, insert_bit, remove_bit, remove_bits, words_for, AllowedTokens};
use crate::vocabulary::TokenKind;
use crate::{interrupt, TokenId};

/// After a character that is spelled in bytes: anything may follow it.
const BYTES: TokenId = TokenId::MAX - 1;
/// In no group: no text that is encoded has the token.
pub(super) const NO_GROUP: u32 = u32::MAX;
/// The word state that no whole piece begins with.
pub(super) const NO_WORD: u32 = u32::MAX;
/// Where fewer tokens than this are allowed, each is looked at.
const FEW: usize = 192;

/// Where a sequence of tokens is. Only for the tokenizer that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The set of guesses.
    pub(super) set: u32,
    pub(super) last: TokenId,
    /// The bytes of a character that is not complete, and their number.
    pub(super) partial: [u8; 4],
    /// What was read of the texts of user-defined tokens.
    pub(super) user: u32,
}

impl Place {
    /// The set of guesses.
    pub fn set(self) -> u32 {
        self.set
    }

    /// The set of guesses, where nothing else limits how a piece may begin.
    pub fn set_alone(self) -> Option<u32> {
        (part_length(self.partial) == 0 && self.user == NO_PART).then_some(self.set)
    }
}

/// One guess about the text so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Hypothesis {
    pub guess: Guess,
    /// Whether the character that is not complete begins a piece.
    pub begins: bool,
    /// What the tokens of the present piece are of the pieces that are one token whatever the merges say.
    pub word: u32,
}

/// Tokens that do the same to a guess.
pub(super) struct Group {
    /// The classes of their whole characters.
    pub classes: Box<[u8]>,
    /// The bytes after them: a part of a character.
    pub tail: [u8; 4],
    pub tokens: Vec<TokenId>,
}

/// What the end of a character makes of a part of one: a longer part, or a character of a class.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ended {
    Part([u8; 4]),
    Class(u8),
}

/// The bytes of a token: the end of a character, whole characters, the beginning of one.
struct Shape<'a> {
    lead: usize,
    whole: &'a str,
    tail: [u8; 4],
}

/// What is decided of a tokenizer's tokens once.
pub(crate) struct CanonicalTables {
    spines: Spines,
    /// Every token that may be neighbour of another, as a mask.
    made: Arc<[u32]>,
    pub(super) groups: Vec<Group>,
    pub(super) group_of: Box<[u32]>,
    /// The tokens in groups that are whole characters and that no user-defined token may begin in, as a mask.
    pub(super) plain: Box<[u32]>,
    /// The tokens that end a character which another token began, and those that spell characters in bytes.
    continuing: Vec<TokenId>,
    /// The first of them by what they begin with: the end of a character, and whether that is all.
    endings: Vec<(Box<[u8]>, bool, Vec<TokenId>)>,
    pub(super) bytes: Vec<TokenId>,
    /// The tokens of pieces that are one token whatever the merges say, as a tree of their tokens.
    pub(super) words: FxHashMap<(u32, TokenId), u32>,
    whole_words: Vec<bool>,
    /// By the state that they come after: the tokens that make such a piece whole.
    pub(super) wholes: FxHashMap<u32, Vec<TokenId>>,
    /// The ASCII characters of each class, but for those that user-defined tokens begin with.
    pub(super) ascii: Vec<u128>,
    /// A token for each byte.
    single: Box<[TokenId; 256]>,
    /// The tokens that hold each ASCII character; the last are those that hold others.
    pub(super) holding: Vec<Box<[u32]>>,
    /// The place of each token in the order of their bytes.
    pub(super) ranks: OnceLock<Box<[u32]>>,
    /// What was found of places, for the matchers that are made next.
    found: Mutex<Arc<Mutex<CanonicalMemo>>>,
}

/// The tokens that may begin a piece after a guess, and those that may continue it.
pub(super) struct Masks {
    pub begins: Vec<u32>,
    pub inside: Vec<u32>,
}

pub(super) fn part_length(part: [u8; 4]) -> usize {
    usize::from(part[3])
}

fn part_of(bytes: &[u8]) -> [u8; 4] {
    let mut part = [0; 4];
    part[..bytes.len()].copy_from_slice(bytes);
    part[3] = bytes.len() as u8;
    part
}

/// How many bytes a character has that begins with `byte`.
fn length_of(byte: u8) -> Option<usize> {
    match byte {
        0..=0x7f => Some(1),
        0xc2..=0xdf => Some(2),
        0xe0..=0xef => Some(3),
        0xf0..=0xf4 => Some(4),
        _ => None,
    }
}

/// Whether some token spells a character, alone or with others.
fn is_spelled(chars: &FxHashMap<char, TokenId>, c: char) -> bool {
    c == '\u{2581}' || chars.contains_key(&c)
}

/// The characters that begin with a part: a range, or `None` if there are none.
fn range_of(part: [u8; 4]) -> Option<(u32, u32)> {
    let n = part_length(part);
    let length = length_of(part[0])?;
    let mut bytes = [[0x80u8; 4], [0xbfu8; 4]];
    bytes.iter_mut().for_each(|bytes| bytes[..n].copy_from_slice(&part[..n]));
    if part[1..n].iter().any(|byte| !(0x80..=0xbf).contains(byte)) {
        return None;
    }
    let code = |bytes: &[u8; 4]| {
        let first = u32::from(bytes[0]) & (0x7f >> length);
        bytes[1..length].iter().fold(first, |code, &byte| code << 6 | u32::from(byte) & 0x3f)
    };
    let least = [0, 0, 0x80, 0x800, 0x1_0000][length];
    let (mut from, mut to) = (code(&bytes[0]).max(least), code(&bytes[1]).min(0x10_ffff));
    if (0xd800..=0xdfff).contains(&from) {
        from = 0xe000;
    }
    if (0xd800..=0xdfff).contains(&to) {
        to = 0xd7ff;
    }
    (from <= to).then_some((from, to))
}

/// The shape of a token's bytes; `None` if no valid text has them.
fn shape(bytes: &[u8]) -> Option<Shape<'_>> {
    let lead = bytes.iter().take_while(|byte| (0x80..=0xbf).contains(*byte)).count();
    if lead > 3 {
        return None;
    }
    let rest = &bytes[lead..];
    let (whole, tail) = match std::str::from_utf8(rest) {
        Ok(whole) => (whole, &[][..]),
        Err(error) if error.error_len().is_none() => {
            let (whole, tail) = rest.split_at(error.valid_up_to());
            (std::str::from_utf8(whole).ok()?, tail)
        }
        Err(_) => return None,
    };
    if !tail.is_empty() && range_of(part_of(tail)).is_none() {
        return None;
    }
    Some(Shape { lead, whole, tail: part_of(tail) })
}

impl CanonicalTables {
    pub fn new(tokenizer: &Tokenizer) -> CanonicalTables {
        let (vocabulary, merges) = (&tokenizer.vocabulary, &tokenizer.merges);
        let spines = Spines::new(vocabulary, merges);
        let mut canon = CanonicalTables {
            made: spines.all().into(),
            spines,
            groups: Vec::new(),
            group_of: vec![NO_GROUP; vocabulary.len()].into(),
            plain: vec![0; words_for(vocabulary.len())].into(),
            continuing: Vec::new(),
            endings: Vec::new(),
            bytes: Vec::new(),
            words: FxHashMap::default(),
            whole_words: vec![false],
            wholes: FxHashMap::default(),
            ascii: Vec::new(),
            single: Box::new([NO_TOKEN; 256]),
            holding: Vec::new(),
            ranks: OnceLock::new(),
            found: Mutex::new(Arc::new(Mutex::new(CanonicalMemo::new()))),
        };
        canon.add_words(tokenizer);
        canon.add_groups(tokenizer);
        canon.add_characters(tokenizer);
        canon
    }

    fn add_words(&mut self, tokenizer: &Tokenizer) {
        let (mut scratch, mut tokens) = (Scratch::default(), Vec::new());
        for text in tokenizer.whole.keys() {
            tokens.clear();
            let Ok(text) = std::str::from_utf8(text) else { continue };
            if tokenizer.merges.encode(text, &mut scratch, &mut tokens).is_err() {
                continue;
            }
            let mut at = 0;
            for &token in &tokens {
                let count = self.whole_words.len() as u32;
                at = *self.words.entry((at, token)).or_insert(count);
                if at == count {
                    self.whole_words.push(false);
                }
            }
            self.whole_words[at as usize] = true;
        }
        for (&(before, token), &to) in &self.words {
            if self.whole_words[to as usize] {
                self.wholes.entry(before).or_default().push(token);
            }
        }
    }

    fn add_groups(&mut self, tokenizer: &Tokenizer) {
        let vocabulary = &tokenizer.vocabulary;
        let mut known: FxHashMap<(Box<[u8]>, [u8; 4]), u32> = FxHashMap::default();
        let in_bytes = matches!(tokenizer.merges.units, Units::Chars(..));
        for id in 0..vocabulary.len() as TokenId {
            let bytes = vocabulary.token_bytes(id);
            if bytes.is_empty() || bit(&tokenizer.other, id) {
                continue;
            }
            if in_bytes && vocabulary.kind(id) == TokenKind::Byte {
                self.bytes.push(id);
                continue;
            }
            let is_word = tokenizer.whole.get(bytes) == Some(&id);
            if vocabulary.kind(id) != TokenKind::Normal || !(self.spines.is_made(id) || is_word) {
                continue;
            }
            let Some(shape) = shape(bytes) else { continue };
            let user = tokenizer.user.read(NO_PART, bytes);
            if user.is_none() || in_bytes && shape.whole.len() != bytes.len() {
                continue;
            }
            if shape.lead > 0 {
                self.continuing.push(id);
                let (lead, whole) = (&bytes[..shape.lead], shape.lead == bytes.len());
                let known = self.endings.iter_mut().find(|ending| *ending.0 == *lead && ending.1 == whole);
                match known {
                    Some(ending) => ending.2.push(id),
                    None => self.endings.push((lead.into(), whole, vec![id])),
                }
                continue;
            }
            let classes: Box<[u8]> = shape.whole.chars().map(|c| tokenizer.splitter.classes.of(c)).collect();
            let next = self.groups.len() as u32;
            let group = *known.entry((classes.clone(), shape.tail)).or_insert(next);
            if group == next {
                self.groups.push(Group { classes, tail: shape.tail, tokens: Vec::new() });
            }
            self.groups[group as usize].tokens.push(id);
            self.group_of[id as usize] = group;
            if part_length(shape.tail) == 0 && user == Some(NO_PART) {
                insert_bit(&mut self.plain, id);
            }
        }
    }

    fn add_characters(&mut self, tokenizer: &Tokenizer) {
        self.ascii = vec![0; tokenizer.splitter.classes.count()];
        for c in (0u8..=127).filter(|&c| tokenizer.user.read(NO_PART, &[c]) == Some(NO_PART)) {
            self.ascii[usize::from(tokenizer.splitter.classes.of(char::from(c)))] |= 1 << c;
        }
        let vocabulary = &tokenizer.vocabulary;
        self.holding = vec![vec![0u32; words_for(vocabulary.len())].into(); 128];
        for id in (0..vocabulary.len() as TokenId).filter(|&id| !bit(&tokenizer.other, id)) {
            let bytes = vocabulary.token_bytes(id);
            if let &[byte] = bytes {
                self.single[usize::from(byte)] = id;
            }
            for &byte in bytes {
                insert_bit(&mut self.holding[usize::from(byte.min(127))], id);
            }
        }
    }

    pub fn byte_token(&self, byte: u8) -> Option<TokenId> {
        Some(self.single[usize::from(byte)]).filter(|&token| token != NO_TOKEN)
    }

    /// What is found of places for matchers that are made now: begun again, empty, where it holds more than `most` bytes. The
    /// places of a matcher are numbers of what it began with, and are forgotten with it.
    pub fn found(&self, most: usize) -> Arc<Mutex<CanonicalMemo>> {
        let mut newest = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.lock().unwrap_or_else(PoisonError::into_inner).bytes() > most {
            *newest = Arc::new(Mutex::new(CanonicalMemo::new()));
        }
        Arc::clone(&newest)
    }

    pub(super) fn word(&self, word: u32, token: TokenId) -> u32 {
        if word == NO_WORD {
            return NO_WORD;
        }
        self.words.get(&(word, token)).copied().unwrap_or(NO_WORD)
    }

    /// Whether the present piece may be over: it is none of those that would be one token.
    pub(super) fn may_end(&self, word: u32) -> bool {
        word == NO_WORD || !self.whole_words[word as usize]
    }
}

/// Tokens that may not begin a piece, or not continue one, because of what another matcher allows after them: ascending.
#[derive(Debug, Default)]
pub struct DeadEnds {
    /// Those that may not begin a piece.
    pub begun: Vec<TokenId>,
    /// Those that may not continue one.
    pub inside: Vec<TokenId>,
}

/// A tokenizer's decisions, for the length of one call.
pub struct CanonicalStepper<'a> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) canon: &'a CanonicalTables,
    pub(super) memo: MutexGuard<'a, CanonicalMemo>,
}

impl<'a> CanonicalStepper<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, memo: &'a Mutex<CanonicalMemo>) -> CanonicalStepper<'a> {
        // Entries are written when they are whole.
        let memo = memo.lock().unwrap_or_else(PoisonError::into_inner);
        CanonicalStepper { tokenizer, canon: tokenizer.canon(), memo }
    }

    /// The place before the first token.
    pub fn start() -> Place {
        Place { set: 0, last: NO_TOKEN, partial: [0; 4], user: NO_PART }
    }

    /// Whether the text may end at a place.
    pub fn can_end(&self, place: Place) -> bool {
        let splitter = &self.tokenizer.splitter;
        let ends =
            |h: &Hypothesis| self.canon.may_end(h.word) && self.memo.boundaries.can_end(splitter, h.guess);
        part_length(place.partial) == 0 && self.memo.sets[place.set as usize].iter().any(ends)
    }

    pub(super) fn may_follow(&self, last: TokenId, token: TokenId) -> bool {
        match last {
            NO_TOKEN => false,
            BYTES => self.canon.spines.is_made(token),
            last => self.canon.spines.may_follow(&self.tokenizer.merges, last, token),
        }
    }

    /// The place after `token`, or `None` if the tokenizer would never give it here.
    pub fn step(&mut self, place: Place, token: TokenId) -> Option<Place> {
        let vocabulary = &self.tokenizer.vocabulary;
        let kind = vocabulary.kind(token);
        let bytes = vocabulary.token_bytes(token);
        if bit(&self.tokenizer.other, token) {
            return self.can_end(place).then(CanonicalStepper::start);
        }
        let user = self.tokenizer.user.read(place.user, bytes)?;
        if matches!(self.tokenizer.merges.units, Units::Chars(..)) && kind == TokenKind::Byte {
            return self.step_byte(place, *bytes.first()?, user);
        }
        if part_length(place.partial) > 0 {
            return self.step_rest(place, token, bytes, user);
        }
        let group = self.canon.group_of[token as usize];
        if group == NO_GROUP {
            return None;
        }
        let follows = self.may_follow(place.last, token);
        let mut next = Vec::new();
        let tail = self.canon.groups[group as usize].tail;
        let only_part = self.canon.groups[group as usize].classes.is_empty();
        for h in Arc::clone(&self.memo.sets[place.set as usize]).iter() {
            let walk = self.walk(h.guess, group);
            if self.canon.may_end(h.word) {
                let word = if self.canon.words.is_empty() { NO_WORD } else { self.canon.word(0, token) };
                next.extend(walk.begins.iter().map(|&guess| Hypothesis { guess, begins: only_part, word }));
            }
            if follows {
                let word = self.canon.word(h.word, token);
                next.extend(walk.inside.iter().map(|&guess| Hypothesis { guess, begins: false, word }));
            }
        }
        self.arrive(next, token, tail, user)
    }

    fn arrive(
        &mut self,
        mut next: Vec<Hypothesis>,
        token: TokenId,
        partial: [u8; 4],
        user: u32,
    ) -> Option<Place> {
        if part_length(partial) > 0 {
            let symbols = self.completions(token, partial);
            next.retain(|h| self.survives(h, symbols));
        }
        if next.is_empty() {
            return None;
        }
        Some(Place { set: self.memo.set(next), last: token, partial, user })
    }

    /// Whether a character of one of these classes may complete the one that is not.
    fn survives(&mut self, h: &Hypothesis, symbols: u64) -> bool {
        let count = self.tokenizer.splitter.classes.count() as u8;
        (0..count).filter(|symbol| symbols >> symbol & 1 == 1).any(|symbol| {
            let after = self.memo.boundaries.after(&self.tokenizer.splitter, h.guess, symbol);
            !(if h.begins { &after.begins } else { &after.inside }).is_empty()
        })
    }

    /// A token that continues a character which is not complete.
    fn step_rest(&mut self, place: Place, token: TokenId, bytes: &[u8], user: u32) -> Option<Place> {
        if self.canon.continuing.binary_search(&token).is_err() || !self.may_follow(place.last, token) {
            return None;
        }
        let shape = shape(bytes)?;
        let hypotheses = Arc::clone(&self.memo.sets[place.set as usize]);
        let (part, missing) = joined(place.partial, &bytes[..shape.lead])?;
        if missing > 0 {
            if shape.lead != bytes.len() {
                return None;
            }
            let word = |h: &Hypothesis| Hypothesis { word: self.canon.word(h.word, token), ..*h };
            return self.arrive(hypotheses.iter().map(word).collect(), token, part_of(&part), user);
        }
        let c = std::str::from_utf8(&part).ok()?.chars().next()?;
        let class = self.tokenizer.splitter.classes.of(c);
        let rest: Vec<u8> = shape.whole.chars().map(|c| self.tokenizer.splitter.classes.of(c)).collect();
        let mut next = Vec::new();
        for h in hypotheses.iter() {
            let after = self.memo.boundaries.after(&self.tokenizer.splitter, h.guess, class).clone();
            let from = if h.begins { &after.begins } else { &after.inside };
            let word = self.canon.word(h.word, token);
            next.extend(self.inside(from, &rest).into_iter().map(|guess| Hypothesis {
                guess,
                begins: false,
                word,
            }));
        }
        self.arrive(next, token, shape.tail, user)
    }

    /// A byte of a character that is no token.
    fn step_byte(&mut self, place: Place, byte: u8, user: u32) -> Option<Place> {
        let hypotheses = Arc::clone(&self.memo.sets[place.set as usize]);
        let Units::Chars(chars, _) = &self.tokenizer.merges.units else { return None };
        let mut part = place.partial[..part_length(place.partial)].to_vec();
        part.push(byte);
        if part.len() < length_of(part[0])? {
            let symbols = self.unspelled(part_of(&part))?;
            let either = |h: &Hypothesis| [false, true].map(|begins| Hypothesis { begins, ..*h });
            let mut next: Vec<Hypothesis> = if place.partial[3] > 0 {
                hypotheses.to_vec()
            } else {
                hypotheses.iter().flat_map(either).collect()
            };
            next.retain(|h| (!h.begins || self.canon.may_end(h.word)) && self.survives(h, symbols));
            let set = (!next.is_empty()).then(|| self.memo.set(next))?;
            return Some(Place { set, last: place.last, partial: part_of(&part), user });
        }
        let c = std::str::from_utf8(&part).ok()?.chars().next()?;
        if is_spelled(chars, c) {
            return None;
        }
        let class = self.tokenizer.splitter.classes.of(c);
        let whole = place.partial[3] == 0;
        let mut next = Vec::new();
        for h in hypotheses.iter() {
            let after = self.memo.boundaries.after(&self.tokenizer.splitter, h.guess, class).clone();
            let begins: &[Guess] =
                if whole && self.canon.may_end(h.word) || h.begins { &after.begins } else { &[] };
            let inside: &[Guess] = if whole || !h.begins { &after.inside } else { &[] };
            let next_of = |&guess: &Guess| Hypothesis { guess, begins: false, word: NO_WORD };
            next.extend(begins.iter().chain(inside).map(next_of));
        }
        self.arrive(next, BYTES, [0; 4], user)
    }

    /// The classes of the characters that begin with `part` and that no token spells; `None` if there is no character.
    fn unspelled(&mut self, part: [u8; 4]) -> Option<u64> {
        if let Some(&known) = self.memo.unspelled.get(&part) {
            return known;
        }
        let Units::Chars(chars, _) = &self.tokenizer.merges.units else { return None };
        let classes = &self.tokenizer.splitter.classes;
        let found = range_of(part).map(|(from, to)| {
            let unspelled = (from..=to).filter_map(char::from_u32).filter(|&c| !is_spelled(chars, c));
            unspelled.fold(0, |symbols, c| symbols | 1 << classes.of(c))
        });
        self.memo.unspelled.insert(part, found);
        found
    }

    /// The classes of the characters that may complete `partial` after `token`: some token that may follow it does.
    fn completions(&mut self, token: TokenId, partial: [u8; 4]) -> u64 {
        self.completed(token, partial, false)
    }

    /// As [`CanonicalStepper::completions`]; with `exact`, where the last of them ends with the character.
    pub(super) fn completed(&mut self, token: TokenId, partial: [u8; 4], exact: bool) -> u64 {
        let known = if exact { &self.memo.exact } else { &self.memo.completed };
        if let Some(&known) = known.get(&(token, partial)) {
            return known;
        }
        interrupt::consume(self.canon.made.len() as u64 / 64);
        let mut symbols = 0;
        let mut row = self.canon.made.to_vec();
        if self.canon.spines.is_made(token) {
            self.canon.spines.refuse(token, &mut row);
        } else {
            row.fill(0);
        }
        let canon = self.canon;
        for &(ending, ended) in self.ended(partial).iter() {
            let (_, whole, tokens) = &canon.endings[ending as usize];
            match ended {
                Ended::Part(part) => {
                    for &next in tokens.iter().filter(|&&id| bit(&row, id)) {
                        symbols |= self.completed(next, part, exact);
                    }
                }
                Ended::Class(class) => {
                    let symbol = 1 << class;
                    let is_new = symbols & symbol == 0 && (*whole || !exact);
                    if is_new && tokens.iter().any(|&id| bit(&row, id)) {
                        symbols |= symbol;
                    }
                }
            }
        }
        let known = if exact { &mut self.memo.exact } else { &mut self.memo.completed };
        known.insert((token, partial), symbols);
        symbols
    }

    /// The endings that continue a part of a character, by their numbers, with what they make of it.
    fn ended(&mut self, partial: [u8; 4]) -> Arc<[(u32, Ended)]> {
        if let Some(known) = self.memo.ended.get(&partial) {
            return Arc::clone(known);
        }
        let classes = &self.tokenizer.splitter.classes;
        let endings = self.canon.endings.iter().zip(0u32..).filter_map(|((lead, whole, _), number)| {
            let (part, missing) = joined(partial, lead)?;
            if missing > 0 {
                return whole.then(|| (number, Ended::Part(part_of(&part))));
            }
            let c = std::str::from_utf8(&part).ok()?.chars().next()?;
            Some((number, Ended::Class(classes.of(c))))
        });
        let found: Arc<[(u32, Ended)]> = endings.collect();
        self.memo.bytes += size_of_val(&*found);
        self.memo.ended.insert(partial, Arc::clone(&found));
        found
    }

    /// Writes the tokens of `from` that the tokenizer would give at `place` over `words`, but for dead ends.
    pub fn fill(&mut self, place: Place, from: &AllowedTokens<'_>, dead: &DeadEnds, words: &mut [u32]) {
        let size = self.tokenizer.vocabulary.len();
        if let AllowedTokens::Ids(few) = from {
            if few.len() <= FEW {
                words.fill(0);
                for &id in few.iter().filter(|&&id| (id as usize) < size) {
                    if self.step(place, id).is_some() && !self.is_dead(place, id, dead) {
                        insert_bit(words, id);
                    }
                }
                return;
            }
        }
        let canon = self.canon;
        words.fill(0);
        let mut add = |judge: &mut CanonicalStepper<'_>, id: TokenId| {
            if from.contains(id) && judge.step(place, id).is_some() {
                insert_bit(words, id);
            }
        };
        canon.bytes.iter().for_each(|&id| add(self, id));
        if part_length(place.partial) > 0 {
            canon.continuing.iter().for_each(|&id| add(self, id));
            return;
        }
        let mut all = vec![0u32; words_for(size)];
        from.write(size, &mut all);
        if self.can_end(place) {
            let other = &self.tokenizer.other;
            words.iter_mut().zip(other).zip(&all).for_each(|((word, other), all)| *word |= other & all);
        }
        let masks = self.masks_of(place.set);
        let (mut begins, mut inside) = (masks.begins.clone(), masks.inside.clone());
        begins.iter_mut().zip(&all).for_each(|(word, all)| *word &= all);
        remove_bits(&mut begins, &dead.begun);
        for at in 0..words.len() {
            inside[at] &= all[at] & !begins[at];
        }
        remove_bits(&mut inside, &dead.inside);
        self.follow(place.last, &mut inside);
        for at in 0..words.len() {
            begins[at] |= inside[at];
        }
        if place.user != NO_PART {
            remove_bits(&mut begins, &self.refused(place.user));
        }
        words.iter_mut().zip(&begins).for_each(|(word, more)| *word |= more);
    }

    /// Whether more than `most` of the tokens of `from` may begin a piece at `place`, whatever its last token is.
    pub fn begins_many(&mut self, place: Place, from: &AllowedTokens<'_>, most: usize) -> bool {
        if part_length(place.partial) > 0 || place.user != NO_PART {
            return false;
        }
        let masks = self.masks_of(place.set);
        match from {
            AllowedTokens::All => count(&masks.begins) > most,
            AllowedTokens::Ids(few) => {
                few.len() > most && few.iter().filter(|&&id| bit(&masks.begins, id)).count() > most
            }
            AllowedTokens::Mask(words) => {
                let mut found = 0;
                words.iter().zip(&masks.begins).any(|(a, b)| {
                    found += (a & b).count_ones() as usize;
                    found > most
                })
            }
        }
    }

    /// The masks of all guesses of a set.
    pub(super) fn masks_of(&mut self, set: u32) -> Arc<Masks> {
        if let Some(known) = self.memo.set_masks.get(&set) {
            return known;
        }
        let size = words_for(self.tokenizer.vocabulary.len());
        interrupt::consume((size * self.memo.sets[set as usize].len()) as u64 / 16);
        let mut all = Masks { begins: vec![0; size], inside: vec![0; size] };
        for h in Arc::clone(&self.memo.sets[set as usize]).iter() {
            let masks = self.masks(h.guess);
            if self.canon.may_end(h.word) {
                all.begins.iter_mut().zip(&masks.begins).for_each(|(to, from)| *to |= from);
            }
            all.inside.iter_mut().zip(&masks.inside).for_each(|(to, from)| *to |= from);
        }
        self.memo.set_masks.keep(set, Arc::new(all))
    }

    /// The tokens that the token of `byte` may follow within a piece.
    pub(super) fn before(&mut self, byte: u8) -> Arc<[u32]> {
        if let Some(known) = self.memo.before.get(&byte) {
            return Arc::clone(known);
        }
        interrupt::consume(self.tokenizer.vocabulary.len() as u64 / 2);
        let mut words = vec![0u32; words_for(self.tokenizer.vocabulary.len())];
        if let Some(token) = self.canon.byte_token(byte).filter(|&token| self.canon.spines.is_made(token)) {
            for id in ids(&self.canon.made).filter(|&id| self.may_follow(id, token)) {
                insert_bit(&mut words, id);
            }
        }
        let words: Arc<[u32]> = words.into();
        self.memo.before.insert(byte, Arc::clone(&words));
        words
    }

    /// Keeps the tokens that may follow `last` within a piece.
    fn follow(&mut self, last: TokenId, words: &mut [u32]) {
        match last {
            NO_TOKEN => words.fill(0),
            BYTES => words.iter_mut().zip(&*self.canon.made).for_each(|(word, made)| *word &= made),
            last if !self.canon.spines.is_made(last) => words.fill(0),
            last => {
                let row = match self.memo.rows.get(&last) {
                    Some(row) => row,
                    None if count(words) <= FEW => {
                        let all = words.to_vec();
                        for id in ids(&all) {
                            if !self.may_follow(last, id) {
                                remove_bit(words, id);
                            }
                        }
                        return;
                    }
                    None => {
                        interrupt::consume(words.len() as u64 / 4);
                        let mut row = self.canon.made.to_vec();
                        self.canon.spines.refuse(last, &mut row);
                        let bytes = size_of_val(&row[..]);
                        self.memo.rows.keep_bytes(last, row.into(), bytes)
                    }
                };
                words.iter_mut().zip(&*row).for_each(|(word, row)| *word &= row);
            }
        }
    }

    /// The tokens that may begin or continue a piece after `guess`, by their classes.
    fn masks(&mut self, guess: Guess) -> Arc<Masks> {
        if let Some(known) = self.memo.masks.get(&guess) {
            return known;
        }
        interrupt::consume(self.tokenizer.vocabulary.len() as u64 / 8);
        let size = words_for(self.tokenizer.vocabulary.len());
        let mut masks = Masks { begins: vec![0; size], inside: vec![0; size] };
        let canon = self.canon;
        for (number, group) in canon.groups.iter().enumerate() {
            let (begins, inside) = self.walk_lists(guess, number as u32);
            let only_part = group.classes.is_empty();
            let both = [(begins, only_part, &mut masks.begins), (inside, false, &mut masks.inside)];
            for (list, begins, words) in both {
                let guesses = self.memo.walks.of(list);
                for &id in group.tokens.iter().filter(|_| !guesses.is_empty()) {
                    if group.tail[3] > 0 {
                        let symbols = self.completions(id, group.tail);
                        let mut all =
                            guesses.iter().map(|&guess| Hypothesis { guess, begins, word: NO_WORD });
                        if !all.any(|h| self.survives(&h, symbols)) {
                            continue;
                        }
                    }
                    insert_bit(words, id);
                }
            }
        }
        self.memo.masks.keep(guess, Arc::new(masks))
    }

    /// The tokens that complete the partly read text of a user-defined token.
    fn refused(&mut self, user: u32) -> Arc<[TokenId]> {
        if let Some(known) = self.memo.refused.get(&user) {
            return known;
        }
        interrupt::consume(self.tokenizer.vocabulary.len() as u64 / 2);
        let vocabulary = &self.tokenizer.vocabulary;
        let refused: Arc<[TokenId]> = (0..vocabulary.len() as TokenId)
            .filter(|&id| self.canon.group_of[id as usize] != NO_GROUP)
            .filter(|&id| self.tokenizer.user.read(user, vocabulary.token_bytes(id)).is_none())
            .collect();
        self.memo.refused.keep(user, refused)
    }
}

/// The bytes of a character that begins with `partial` and `more`, and how many are missing; `None` if they are too many
/// or no character.
fn joined(partial: [u8; 4], more: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut part = partial[..part_length(partial)].to_vec();
    part.extend_from_slice(more);
    let missing = length_of(*part.first()?)?.checked_sub(part.len())?;
    if missing > 0 {
        range_of(part_of(&part))?;
    }
    Some((part, missing))
}
