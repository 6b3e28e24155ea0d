//! Steps through canonical sequences: which tokens may come at a place, and the place after one.

use std::sync::{Arc, Mutex, MutexGuard};

use super::boundaries::Guess;
use super::canonical_memo::CanonicalMemo;
use super::canonical_tables::{
    is_spelled, length_of, part_length, part_of, range_of, shape, CanonicalTables, Ended, Hypothesis, Masks,
    Place, BYTES, FEW, NO_GROUP, NO_WORD,
};
use super::merges::{Units, NO_TOKEN};
use super::user::NO_PART;
use super::Tokenizer;
use crate::mask::{bit, count, ids, insert_bit, remove_bit, remove_bits, words_for, AllowedTokens};
use crate::vocabulary::TokenKind;
use crate::{interrupt, TokenId};

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
        let memo = interrupt::lock(memo);
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
