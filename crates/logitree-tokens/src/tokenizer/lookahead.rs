//! Finds the characters after which the tokens so far stay canonical, whatever follows.
//!
//! The piece of a token is over before a character once the pre-tokenizer's patterns claim nothing more about the text to
//! come. Then every text that begins with the character keeps the tokens: what another matcher allows next is enough to
//! know that a token is no dead end. The naive version looks for a text by trying tokens one after the other.

use std::sync::Arc;

use super::boundaries::{Guess, Settled};
use super::canonical_stepper::{CanonicalStepper, DeadEnds};
use super::canonical_tables::{part_length, Hypothesis, Place, NO_GROUP};
use super::user::NO_PART;
use crate::mask::{bit, ids, insert_bit, insert_bit_if, insert_bits, words_for, AllowedTokens};
use crate::{interrupt, Result, TokenId};

/// Characters that follow most tokens.
const WITNESSES: &[u8] = b" ,.e0";

/// Whether a group is free, and else the tokens that a character may follow, by character.
type Freed = (bool, Vec<Arc<[u32]>>);
/// The classes of the ASCII characters after one of a class.
pub(crate) type After<'a> = dyn FnMut(u128) -> Result<u64> + 'a;

/// Characters that another matcher takes in a row, as bits; the highest bit answers for those beyond ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// The ASCII characters that it takes.
    pub chars: u128,
    /// The ASCII characters that may come after some of them.
    pub next: u128,
    /// The most characters after which that is so, or bytes of what is not whole characters.
    pub most: u32,
}

impl Row {
    /// Characters that lead back to where they come.
    pub fn endless(chars: u128) -> Row {
        Row { chars, next: chars, most: u32::MAX }
    }
}

impl<'a> CanonicalStepper<'a> {
    /// The ASCII characters of each class, as bits, but for those that user-defined tokens begin with.
    pub fn ascii(&self) -> &'a [u128] {
        &self.canon.ascii
    }

    /// Whether `token` ends texts or comes between them.
    pub fn is_other(&self, token: TokenId) -> bool {
        bit(&self.tokenizer.other, token)
    }

    /// Whether characters of these classes end the present piece, whatever follows. `after` gives the classes that may
    /// come after one of some characters.
    ///
    /// # Errors
    /// Those of `after`.
    pub fn is_settled(&mut self, place: Place, classes: u64, after: &mut After<'_>) -> Result<bool> {
        if part_length(place.partial) > 0 || place.user != NO_PART {
            return Ok(false);
        }
        let settled = match self.memo.settled.get(&place.set) {
            Some(known) => Arc::clone(known),
            None => {
                let mut all = Settled::default();
                for h in Arc::clone(&self.memo.sets[place.set as usize]).iter() {
                    if self.canon.may_end(h.word) {
                        let one = self.memo.boundaries.settled(&self.tokenizer.splitter, h.guess);
                        all.add(&one);
                    }
                }
                let all = Arc::new(all);
                self.memo.settled.insert(place.set, Arc::clone(&all));
                all
            }
        };
        self.settles(&settled, classes, after)
    }

    pub(super) fn settles(&self, settled: &Settled, classes: u64, after: &mut After<'_>) -> Result<bool> {
        if settled.at_once & classes != 0 {
            return Ok(true);
        }
        for &(class, next) in settled.then.iter().filter(|(class, _)| classes >> class & 1 == 1) {
            if after(self.canon.ascii[usize::from(class)])? & next != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `token` is text of whole characters that no user-defined token may begin in.
    pub fn is_plain(&self, token: TokenId) -> bool {
        bit(&self.canon.plain, token)
    }

    /// Whether characters of these classes end the piece of `token` after a set of guesses, where it begins the piece and
    /// where it continues one. False where that is not known.
    ///
    /// # Errors
    /// Those of `after`.
    pub fn settles_after(
        &mut self,
        set: u32,
        token: TokenId,
        classes: u64,
        after: &mut After<'_>,
    ) -> Result<[bool; 2]> {
        if !self.is_plain(token) {
            return Ok([false; 2]);
        }
        let group = self.canon.group_of[token as usize];
        let (mut begun, mut inside) = (false, false);
        for h in Arc::clone(&self.memo.sets[set as usize]).iter() {
            let walk = self.walk(h.guess, group);
            let begins = if self.canon.may_end(h.word) { &walk.begins[..] } else { &[] };
            for (guesses, before, found) in [(begins, 0, &mut begun), (&walk.inside[..], h.word, &mut inside)]
            {
                if *found || !self.canon.may_end(self.canon.word(before, token)) {
                    continue;
                }
                for &guess in guesses {
                    let settled = self.memo.boundaries.settled(&self.tokenizer.splitter, guess);
                    *found = *found || self.settles(&settled, classes, after)?;
                }
            }
        }
        Ok([begun, inside])
    }

    /// The set of guesses after `token`, where it begins a piece or where it continues one; `None` where it may not. Only for
    /// tokens of whole characters.
    pub fn set_after(&mut self, set: u32, token: TokenId, begins: bool) -> Option<u32> {
        if let Some(known) = self.memo.sets_after.get(&(set, token, begins)) {
            return known;
        }
        let group = self.canon.group_of[token as usize];
        let mut next = Vec::new();
        for h in Arc::clone(&self.memo.sets[set as usize]).iter().filter(|_| group != NO_GROUP) {
            let walk = self.walk(h.guess, group);
            let (guesses, before) = if begins { (walk.begins, 0) } else { (walk.inside, h.word) };
            if !begins || self.canon.may_end(h.word) {
                let word = self.canon.word(before, token);
                next.extend(guesses.iter().map(|&guess| Hypothesis { guess, begins: false, word }));
            }
        }
        let found = (!next.is_empty()).then(|| self.memo.set(next));
        self.memo.sets_after.keep((set, token, begins), found)
    }

    /// Whether a text may end after a set of guesses.
    pub fn may_end_after(&self, set: u32) -> bool {
        self.can_end(Place { set, ..CanonicalStepper::start() })
    }

    /// The number of a list of tokens.
    pub fn next_list(&mut self, tokens: &[TokenId]) -> u32 {
        if let Some(known) = self.memo.next_lists.get(tokens) {
            return known;
        }
        let number = self.memo.next_list;
        self.memo.next_list = number.wrapping_add(1);
        self.memo.next_lists.keep(tokens.into(), number)
    }

    /// Whether one of the tokens, which are the list of that number, may follow `token` within a piece.
    pub fn is_followed(&mut self, token: TokenId, (number, tokens): (u32, &[TokenId])) -> bool {
        if let Some(known) = self.memo.followed.get(&(token, number)) {
            return known;
        }
        interrupt::consume(tokens.len() as u64);
        let found = tokens.iter().any(|&next| self.may_follow(token, next));
        self.memo.followed.keep((token, number), found)
    }

    /// Whether each way in which `token` may come at `place` is a dead end.
    pub fn is_dead(&mut self, place: Place, token: TokenId, dead: &DeadEnds) -> bool {
        let (begun, inside) =
            (dead.begun.binary_search(&token).is_ok(), dead.inside.binary_search(&token).is_ok());
        if !begun && !inside || self.is_other(token) {
            return false;
        }
        let mut may = |begins| self.set_after(place.set, token, begins).is_some();
        !(!begun && may(true) || !inside && may(false) && self.may_follow(place.last, token))
    }

    /// The tokens of `from` that may come after a set of guesses, whatever the last token is, and those between texts.
    pub fn candidates(&mut self, set: u32, from: &AllowedTokens<'_>) -> Vec<u32> {
        let size = self.tokenizer.vocabulary.len();
        let mut words = vec![0u32; words_for(size)];
        from.write(size, &mut words);
        let masks = self.masks_of(set);
        let all = masks.begins.iter().zip(&masks.inside).zip(&*self.tokenizer.other);
        for (word, ((begins, inside), other)) in words.iter_mut().zip(all) {
            *word &= begins | inside | other;
        }
        for &id in &self.canon.bytes {
            if from.contains(id) {
                insert_bit(&mut words, id);
            }
        }
        words
    }

    /// Adds the tokens that need a look: all but those whose bytes from `from` on are in a row.
    pub fn returns(
        &mut self,
        set: u32,
        row: &Row,
        from: usize,
        tokens: &[TokenId],
        unproven: &mut Vec<TokenId>,
    ) {
        let stuck = self.stuck(set, row);
        for &id in tokens {
            let rest = &self.tokenizer.vocabulary.token_bytes(id)[from..];
            let back = rest.iter().all(|&byte| row.chars >> byte.min(127) & 1 == 1);
            // A row begins with a whole character.
            let length = match self.is_plain(id) {
                true => rest.iter().filter(|&&byte| byte & 0xc0 != 0x80).count(),
                false => rest.len(),
            };
            if !back || length > row.most as usize || bit(&stuck, id) || bit(&self.tokenizer.other, id) {
                unproven.push(id);
            }
        }
    }

    /// Keeps the tokens that need a look: those that hold other characters than a row, those after which no such
    /// character ends the piece, and those that are too long.
    pub fn keep_unproven(&mut self, set: u32, row: &Row, words: &mut [u32]) {
        let outside = self.outside(row.chars);
        let stuck = self.stuck(set, row);
        let longer = self.longer(row.most);
        let other = &self.tokenizer.other;
        let masks = outside.iter().zip(&*stuck).zip(&*longer).zip(&**other);
        for (word, (((outside, stuck), longer), other)) in words.iter_mut().zip(masks) {
            *word &= outside | stuck | longer | other;
        }
    }

    /// The tokens of more than so many characters, or bytes of what is not whole characters.
    fn longer(&mut self, most: u32) -> Arc<[u32]> {
        if let Some(known) = self.memo.longer.get(&most) {
            return known;
        }
        let vocabulary = &self.tokenizer.vocabulary;
        interrupt::consume(vocabulary.len() as u64 / 32);
        let mut longer = vec![0u32; words_for(vocabulary.len())];
        for id in 0..vocabulary.len() as TokenId {
            let length = self.characters(id).unwrap_or(vocabulary.token_bytes(id).len());
            insert_bit_if(&mut longer, id, length > most as usize);
        }
        self.memo.longer.keep(most, longer.into())
    }

    /// The tokens that hold other characters.
    pub fn outside(&mut self, returning: u128) -> Arc<[u32]> {
        if let Some(known) = self.memo.outside.get(&returning) {
            return known;
        }
        interrupt::consume(self.tokenizer.vocabulary.len() as u64 / 8);
        let mut outside = vec![0u32; words_for(self.tokenizer.vocabulary.len())];
        for (_, holding) in self.canon.holding.iter().enumerate().filter(|(n, _)| returning >> n & 1 == 0) {
            outside.iter_mut().zip(&**holding).for_each(|(to, from)| *to |= from);
        }
        self.memo.outside.keep(returning, outside.into())
    }

    /// The tokens of characters in a row after which no character that may come ends the piece.
    fn stuck(&mut self, set: u32, row: &Row) -> Arc<[u32]> {
        let key = (set, row.chars, row.next);
        if let Some(known) = self.memo.stuck.get(&key) {
            return known;
        }
        let classes = |chars: u128| -> u64 {
            let of = |(n, set): (usize, &u128)| u64::from(set & chars & !(1 << 127) != 0) << n;
            self.canon.ascii.iter().enumerate().map(of).sum()
        };
        let symbols = (classes(row.chars), classes(row.next));
        let canon = self.canon;
        let mut stuck = vec![0u32; words_for(self.tokenizer.vocabulary.len())];
        let hypotheses = Arc::clone(&self.memo.sets[set as usize]);
        interrupt::consume((canon.groups.len() + canon.group_of.len()) as u64 / 32);
        let mut kinds = self.take_kinds(set);
        // By kind: whether it is free, and else the characters that continue the piece.
        let mut decided: Vec<Option<Freed>> = Vec::new();
        for (number, group) in canon.groups.iter().enumerate() {
            let kind = self.kind_of(&mut kinds, number as u32) as usize;
            decided.resize_with(decided.len().max(kind + 1), || None);
            if decided[kind].is_none() {
                decided[kind] = Some(self.frees(&hypotheses, number as u32, row, symbols));
            }
            let Some((false, befores)) = &decided[kind] else { continue };
            for &id in group.tokens.iter().filter(|&&id| !befores.iter().any(|before| bit(before, id))) {
                let is_part = group.tail[3] > 0 && row.chars >> 127 == 1;
                if !(is_part && self.frees_part(&hypotheses, number as u32, id, symbols)) {
                    insert_bit(&mut stuck, id);
                }
            }
        }
        self.give_kinds(kinds);
        // What would be one token needs a look.
        for word in hypotheses.iter().map(|h| h.word).chain([0]) {
            insert_bits(&mut stuck, canon.wholes.get(&word).map_or(&[][..], |ids| ids));
        }
        self.memo.stuck.keep(key, stuck.into())
    }

    /// Whether some character in a row ends the piece of each token of a group, wherever it begins; and the tokens that a
    /// character in the row may follow within it, by character.
    fn frees(&mut self, hypotheses: &[Hypothesis], group: u32, row: &Row, symbols: (u64, u64)) -> Freed {
        let mut frees = true;
        for h in hypotheses {
            let walk = self.walk(h.guess, group);
            for guesses in [&walk.begins, &walk.inside] {
                frees &= guesses.is_empty() || guesses.iter().any(|&guess| self.ends(guess, symbols));
            }
        }
        let mut befores = Vec::new();
        for &byte in WITNESSES.iter().filter(|&&byte| !frees && row.chars >> byte & 1 == 1) {
            let class = self.tokenizer.splitter.classes.of(char::from(byte));
            let mut continues = true;
            for h in hypotheses {
                let walk = self.walk(h.guess, group);
                for &guess in walk.begins.iter().chain(walk.inside.iter()) {
                    let after = self.memo.boundaries.after(&self.tokenizer.splitter, guess, class);
                    continues &= !after.inside.is_empty();
                }
            }
            if continues {
                befores.push(self.before(byte));
            }
        }
        (frees, befores)
    }

    /// Whether after a token that ends in a part of a character some token ends that character, and then some character in a
    /// row the piece, wherever it begins. Characters beyond ASCII are in the row.
    fn frees_part(
        &mut self,
        hypotheses: &[Hypothesis],
        group: u32,
        token: TokenId,
        symbols: (u64, u64),
    ) -> bool {
        let canon = self.canon;
        let (tail, only_part) =
            (canon.groups[group as usize].tail, canon.groups[group as usize].classes.is_empty());
        let exact = self.completed(token, tail, true);
        let is_word = |word: u32| canon.words.contains_key(&(word, token));
        let mut frees = exact != 0
            && self.tokenizer.user.is_empty()
            && !is_word(0)
            && !hypotheses.iter().any(|h| is_word(h.word));
        for h in hypotheses {
            let walk = self.walk(h.guess, group);
            for (guesses, begins) in [(&walk.begins, only_part), (&walk.inside, false)] {
                let mut ends = guesses.is_empty();
                for (&guess, class) in
                    guesses.iter().flat_map(|guess| (0..64u8).map(move |class| (guess, class)))
                {
                    if ends || exact >> class & 1 == 0 {
                        continue;
                    }
                    let after = self.memo.boundaries.after(&self.tokenizer.splitter, guess, class).clone();
                    let next = if begins { after.begins } else { after.inside };
                    ends = next.iter().any(|&guess| self.ends(guess, symbols));
                }
                frees &= ends;
            }
        }
        frees
    }

    /// Whether a character in a row, and one that may come after it, end the piece of `guess`, whatever follows.
    fn ends(&mut self, guess: Guess, (row, next): (u64, u64)) -> bool {
        let settled = self.memo.boundaries.settled(&self.tokenizer.splitter, guess);
        settled.at_once & next != 0
            || settled.then.iter().any(|&(class, then)| row >> class & 1 == 1 && then & next != 0)
    }

    /// The tokens that end texts or come between them.
    pub fn others(&self, words: &[u32]) -> Vec<TokenId> {
        let both: Vec<u32> = words.iter().zip(&*self.tokenizer.other).map(|(a, b)| a & b).collect();
        ids(&both).collect()
    }
}
