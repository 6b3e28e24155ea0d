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

use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::boundaries::Guess;
use super::canonical_memo::CanonicalMemo;
use super::merges::{Scratch, Units, NO_TOKEN};
use super::spines::Spines;
use super::user::NO_PART;
use super::Tokenizer;
use crate::interrupt;
use crate::mask::{bit, insert_bit, words_for};
use crate::vocabulary::TokenKind;
use crate::TokenId;

/// After a character that is spelled in bytes: anything may follow it.
pub(super) const BYTES: TokenId = TokenId::MAX - 1;
/// In no group: no text that is encoded has the token.
pub(super) const NO_GROUP: u32 = u32::MAX;
/// The word state that no whole piece begins with.
pub(super) const NO_WORD: u32 = u32::MAX;
/// Where fewer tokens than this are allowed, each is looked at.
pub(super) const FEW: usize = 192;

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
pub(super) struct Shape<'a> {
    pub(super) lead: usize,
    pub(super) whole: &'a str,
    pub(super) tail: [u8; 4],
}

/// What is decided of a tokenizer's tokens once.
pub(crate) struct CanonicalTables {
    pub(super) spines: Spines,
    /// Every token that may be neighbour of another, as a mask.
    pub(super) made: Arc<[u32]>,
    pub(super) groups: Vec<Group>,
    pub(super) group_of: Box<[u32]>,
    /// The tokens in groups that are whole characters and that no user-defined token may begin in, as a mask.
    pub(super) plain: Box<[u32]>,
    /// The tokens that end a character which another token began, and those that spell characters in bytes.
    pub(super) continuing: Vec<TokenId>,
    /// The first of them by what they begin with: the end of a character, and whether that is all.
    pub(super) endings: Vec<(Box<[u8]>, bool, Vec<TokenId>)>,
    pub(super) bytes: Vec<TokenId>,
    /// The tokens of pieces that are one token whatever the merges say, as a tree of their tokens.
    pub(super) words: FxHashMap<(u32, TokenId), u32>,
    pub(super) whole_words: Vec<bool>,
    /// By the state that they come after: the tokens that make such a piece whole.
    pub(super) wholes: FxHashMap<u32, Vec<TokenId>>,
    /// The ASCII characters of each class, but for those that user-defined tokens begin with.
    pub(super) ascii: Vec<u128>,
    /// A token for each byte.
    pub(super) single: Box<[TokenId; 256]>,
    /// The tokens that hold each ASCII character; the last are those that hold others.
    pub(super) holding: Vec<Box<[u32]>>,
    /// The place of each token in the order of their bytes.
    pub(super) ranks: OnceLock<Box<[u32]>>,
    /// What was found of places, for the matchers that are made next.
    pub(super) found: Mutex<Arc<Mutex<CanonicalMemo>>>,
}

/// The tokens that may begin a piece after a guess, and those that may continue it.
pub(super) struct Masks {
    pub begins: Vec<u32>,
    pub inside: Vec<u32>,
}

pub(super) fn part_length(part: [u8; 4]) -> usize {
    usize::from(part[3])
}

pub(super) fn part_of(bytes: &[u8]) -> [u8; 4] {
    let mut part = [0; 4];
    part[..bytes.len()].copy_from_slice(bytes);
    part[3] = bytes.len() as u8;
    part
}

/// How many bytes a character has that begins with `byte`.
pub(super) fn length_of(byte: u8) -> Option<usize> {
    match byte {
        0..=0x7f => Some(1),
        0xc2..=0xdf => Some(2),
        0xe0..=0xef => Some(3),
        0xf0..=0xf4 => Some(4),
        _ => None,
    }
}

/// Whether some token spells a character, alone or with others.
pub(super) fn is_spelled(chars: &FxHashMap<char, TokenId>, c: char) -> bool {
    c == '\u{2581}' || chars.contains_key(&c)
}

/// The characters that begin with a part: a range, or `None` if there are none.
pub(super) fn range_of(part: [u8; 4]) -> Option<(u32, u32)> {
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
pub(super) fn shape(bytes: &[u8]) -> Option<Shape<'_>> {
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
        let mut newest = interrupt::lock(&self.found);
        if interrupt::lock(&newest).bytes() > most {
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
