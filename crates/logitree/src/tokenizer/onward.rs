//! Whether a canonical text leads on: which characters keep the tokens so far what the tokenizer gives, whatever comes after
//! them.
//!
//! The piece of a token is over before a character once the pre-tokenizer's patterns claim nothing more about the text to
//! come. Then every text that begins with the character keeps the tokens: what another matcher allows next is enough to
//! know that a token is no dead end. The naive version looks for a text by trying tokens one after the other.

use std::sync::Arc;

use super::boundaries::{Guess, Settled};
use super::canon::{has, part_length, DeadEnds, Hypothesis, Judge, Place, NO_GROUP};
use super::user::NO_PART;
use crate::mask::{ids, words_for, AllowedTokens};
use crate::{interrupt, Result, TokenId};

/// Characters that follow most tokens.
const WITNESSES: &[u8] = b" ,.e0";
/// The most sets of tokens that are kept.
const MAX_KEPT: usize = 2_048;
/// The most answers of each kind that are kept.
const MAX_ANSWERS: usize = 1 << 16;

/// The classes of the ASCII characters after one of a class.
pub(crate) type After<'a> = dyn FnMut(u128) -> Result<u64> + 'a;

/// Characters that another matcher takes in a row, as bits; the highest bit answers for those beyond ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub chars: u128,
    /// The ASCII characters that may come after some of them.
    pub next: u128,
    /// The most bytes after which that is so.
    pub most: u32,
}

impl Row {
    /// Characters that lead back to where they come.
    pub fn endless(chars: u128) -> Row {
        Row { chars, next: chars, most: u32::MAX }
    }
}

impl<'a> Judge<'a> {
    /// The ASCII characters of each class, as bits, but for those that user-defined tokens begin with.
    pub fn ascii(&self) -> &'a [u128] {
        &self.canon.ascii
    }

    /// Whether `token` ends texts or comes between them.
    pub fn is_other(&self, token: TokenId) -> bool {
        has(&self.tokenizer.other, token)
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
                        all.at_once |= one.at_once;
                        all.then.extend_from_slice(&one.then);
                    }
                }
                let all = Arc::new(all);
                self.memo.settled.insert(place.set, Arc::clone(&all));
                all
            }
        };
        self.settles(&settled, classes, after)
    }

    fn settles(&self, settled: &Settled, classes: u64, after: &mut After<'_>) -> Result<bool> {
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
        let group = self.canon.group_of[token as usize];
        let bytes = self.tokenizer.vocabulary.token_bytes(token);
        group != NO_GROUP
            && self.canon.groups[group as usize].tail[3] == 0
            && self.tokenizer.user.read(NO_PART, bytes) == Some(NO_PART)
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
        if let Some(&known) = self.memo.sets_after.get(&(set, token, begins)) {
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
        if self.memo.sets_after.len() >= MAX_ANSWERS {
            self.memo.sets_after.clear();
        }
        self.memo.sets_after.insert((set, token, begins), found);
        found
    }

    /// Whether a text may end after a set of guesses.
    pub fn may_end_after(&self, set: u32) -> bool {
        self.can_end(Place { set, ..Judge::start() })
    }

    /// The number of a list of tokens.
    pub fn next_list(&mut self, tokens: &[TokenId]) -> u32 {
        if let Some(&known) = self.memo.next_lists.get(tokens) {
            return known;
        }
        let number = self.memo.next_list;
        self.memo.next_list = number.wrapping_add(1);
        if self.memo.next_lists.len() >= MAX_KEPT {
            self.memo.next_lists.clear();
        }
        self.memo.next_lists.insert(tokens.into(), number);
        number
    }

    /// Whether one of the tokens, which are the list of that number, may follow `token` within a piece.
    pub fn is_followed(&mut self, token: TokenId, (number, tokens): (u32, &[TokenId])) -> bool {
        if let Some(&known) = self.memo.followed.get(&(token, number)) {
            return known;
        }
        interrupt::consume(tokens.len() as u64);
        let found = tokens.iter().any(|&next| self.may_follow(token, next));
        if self.memo.followed.len() >= MAX_ANSWERS {
            self.memo.followed.clear();
        }
        self.memo.followed.insert((token, number), found);
        found
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
                words[id as usize / 32] |= 1 << (id % 32);
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
        risky: &mut Vec<TokenId>,
    ) {
        let stuck = self.stuck(set, row);
        for &id in tokens {
            let rest = &self.tokenizer.vocabulary.token_bytes(id)[from..];
            let back = rest.iter().all(|&byte| row.chars >> byte.min(127) & 1 == 1);
            if !back || rest.len() > row.most as usize || has(&stuck, id) || has(&self.tokenizer.other, id) {
                risky.push(id);
            }
        }
    }

    /// Keeps the tokens that need a look: those that hold other characters than a row, those after which no such
    /// character ends the piece, and those that are too long.
    pub fn keep_risky(&mut self, set: u32, row: &Row, words: &mut [u32]) {
        let outside = self.outside(row.chars);
        let stuck = self.stuck(set, row);
        let longer = self.longer(row.most);
        let other = &self.tokenizer.other;
        let masks = outside.iter().zip(&*stuck).zip(&*longer).zip(&**other);
        for (word, (((outside, stuck), longer), other)) in words.iter_mut().zip(masks) {
            *word &= outside | stuck | longer | other;
        }
    }

    /// The tokens of more than so many bytes.
    fn longer(&mut self, bytes: u32) -> Arc<[u32]> {
        if let Some(known) = self.memo.longer.get(&bytes) {
            return Arc::clone(known);
        }
        let vocabulary = &self.tokenizer.vocabulary;
        interrupt::consume(vocabulary.len() as u64 / 32);
        let mut longer = vec![0u32; words_for(vocabulary.len())];
        for id in 0..vocabulary.len() as TokenId {
            longer[id as usize / 32] |=
                u32::from(vocabulary.token_bytes(id).len() > bytes as usize) << (id % 32);
        }
        let longer: Arc<[u32]> = longer.into();
        if self.memo.longer.len() >= MAX_KEPT {
            self.memo.longer.clear();
        }
        self.memo.longer.insert(bytes, Arc::clone(&longer));
        longer
    }

    /// The tokens that hold other characters.
    fn outside(&mut self, returning: u128) -> Arc<[u32]> {
        if let Some(known) = self.memo.outside.get(&returning) {
            return Arc::clone(known);
        }
        interrupt::consume(self.tokenizer.vocabulary.len() as u64 / 8);
        let mut outside = vec![0u32; words_for(self.tokenizer.vocabulary.len())];
        for (_, holding) in self.canon.holding.iter().enumerate().filter(|(n, _)| returning >> n & 1 == 0) {
            outside.iter_mut().zip(&**holding).for_each(|(to, from)| *to |= from);
        }
        let outside: Arc<[u32]> = outside.into();
        if self.memo.outside.len() >= MAX_KEPT {
            self.memo.outside.clear();
        }
        self.memo.outside.insert(returning, Arc::clone(&outside));
        outside
    }

    /// The tokens of characters in a row after which no character that may come ends the piece.
    fn stuck(&mut self, set: u32, row: &Row) -> Arc<[u32]> {
        let key = (set, row.chars, row.next);
        if let Some(known) = self.memo.stuck.get(&key) {
            return Arc::clone(known);
        }
        let classes = |chars: u128| -> u64 {
            let of = |(n, set): (usize, &u128)| u64::from(set & chars & !(1 << 127) != 0) << n;
            self.canon.ascii.iter().enumerate().map(of).sum()
        };
        let symbols = (classes(row.chars), classes(row.next));
        let canon = self.canon;
        let mut stuck = vec![0u32; words_for(self.tokenizer.vocabulary.len())];
        let hypotheses = Arc::clone(&self.memo.sets[set as usize]);
        interrupt::consume((canon.groups.len() * hypotheses.len()) as u64 + stuck.len() as u64);
        for (number, group) in canon.groups.iter().enumerate() {
            let mut frees = true;
            for h in hypotheses.iter() {
                let walk = self.walk(h.guess, number as u32);
                for guesses in [&walk.begins, &walk.inside] {
                    frees &= guesses.is_empty() || guesses.iter().any(|&guess| self.ends(guess, symbols));
                }
            }
            if frees {
                continue;
            }
            group.tokens.iter().for_each(|&id| stuck[id as usize / 32] |= 1 << (id % 32));
            let witnesses = WITNESSES.iter().filter(|&&byte| row.chars >> byte & 1 == 1);
            for &byte in witnesses {
                let class = self.tokenizer.splitter.classes.of(char::from(byte));
                let mut continues = true;
                for h in hypotheses.iter() {
                    let walk = self.walk(h.guess, number as u32);
                    for &guess in walk.begins.iter().chain(walk.inside.iter()) {
                        let after = self.memo.boundaries.after(&self.tokenizer.splitter, guess, class);
                        continues &= !after.inside.is_empty();
                    }
                }
                if continues {
                    let before = self.before(byte);
                    for &id in group.tokens.iter().filter(|&&id| has(&before, id)) {
                        stuck[id as usize / 32] &= !(1 << (id % 32));
                    }
                }
            }
        }
        // What would be one token needs a look.
        for word in hypotheses.iter().map(|h| h.word).chain([0]) {
            for &id in canon.wholes.get(&word).map_or(&[][..], |ids| ids) {
                stuck[id as usize / 32] |= 1 << (id % 32);
            }
        }
        let stuck: Arc<[u32]> = stuck.into();
        if self.memo.stuck.len() >= MAX_KEPT {
            self.memo.stuck.clear();
        }
        self.memo.stuck.insert(key, Arc::clone(&stuck));
        stuck
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
