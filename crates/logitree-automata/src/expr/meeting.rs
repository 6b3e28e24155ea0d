//! A lexeme met with an automaton: where the automaton may be after the lexeme's texts, and which of the texts lead there.
//!
//! ```text
//! [a-z]*"   met with (no|yes)".*    ends in one state; the texts are (no|yes)"
//! ```
//!
//! The naive version is the intersection of the lexeme with the texts between two states, for each end.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{ByteSet, ExprId, Exprs, Tag, EMPTY, NOTHING};
use crate::{Dfa, Error, ErrorKind, Result};

/// Pairs of states that a meeting may have.
pub const MAX_MEETING: usize = 1 << 13;

/// The pairs of states that a lexeme and an automaton reach together.
pub struct Meeting {
    /// For each pair the bytes that lead on, and where to.
    ways: Vec<Vec<(ByteSet, u32)>>,
    /// The pairs in which the lexeme is complete: its tag, the automaton's state, the pair.
    complete: Vec<(Tag, u32, u32)>,
    ends: Vec<(Tag, u32)>,
    lossless: bool,
}

impl Meeting {
    /// The tags with which the lexeme may be complete, and the automaton's state then: sorted, without duplicates.
    pub fn ends(&self) -> &[(Tag, u32)] {
        &self.ends
    }

    /// Whether the automaton takes every text of the lexeme.
    pub fn is_lossless(&self) -> bool {
        self.lossless
    }

    /// The number of pairs.
    pub fn pairs(&self) -> usize {
        self.ways.len()
    }

    /// Approximate size in bytes.
    pub fn memory(&self) -> usize {
        let ways: usize = self.ways.iter().map(Vec::len).sum();
        ways * size_of::<(ByteSet, u32)>() + self.ways.len() * 24 + self.complete.len() * 20
    }
}

impl Exprs {
    /// Meets `e` with `dfa` from its state `from` on.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MAX_MEETING`] pairs, or if the arena is full or out of fuel.
    pub fn meeting(&mut self, e: ExprId, dfa: &Dfa, from: u32) -> Result<Meeting> {
        let mut pairs = vec![(e, from)];
        let mut numbers = FxHashMap::from_iter([((e, from), 0u32)]);
        let mut met = Meeting { ways: Vec::new(), complete: Vec::new(), ends: Vec::new(), lossless: true };
        let mut at = 0;
        while let Some(&(e, state)) = pairs.get(at) {
            let tags = self.outcome_list(self.outcome_number(e));
            met.complete.extend(tags.iter().map(|&tag| (tag, state, at as u32)));
            let targets = dfa.targets(state);
            let mut ways = Vec::new();
            for (class, next) in self.transitions(e)? {
                self.charge(16 + 4 * targets.len() as u64)?;
                let mut lost = class;
                for &(bytes, to) in &targets {
                    let common = class.and(&bytes);
                    if common.is_empty() {
                        continue;
                    }
                    lost = lost.without(&bytes);
                    let new = pairs.len() as u32;
                    let pair = *numbers.entry((next, to)).or_insert(new);
                    if pair == new {
                        pairs.push((next, to));
                    }
                    ways.push((common, pair));
                }
                met.lossless &= lost.is_empty();
            }
            if pairs.len() > MAX_MEETING {
                let message = format!(
                    "a part of the grammar meets a regular language in more than {MAX_MEETING} states"
                );
                return Err(Error::new(ErrorKind::Limit, message)
                    .help("use shorter counted repetitions, or a simpler regular expression"));
            }
            met.ways.push(ways);
            at += 1;
        }
        met.ends = met.complete.iter().map(|&(tag, state, _)| (tag, state)).collect();
        met.ends.sort_unstable();
        met.ends.dedup();
        Ok(met)
    }

    /// The texts that end in one of `ends`, without tags.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn met(&mut self, meeting: &Meeting, ends: &[(Tag, u32)]) -> Result<ExprId> {
        let sets: FxHashSet<ByteSet> = meeting.ways.iter().flatten().map(|&(bytes, _)| bytes).collect();
        let classes = self.partition(sets)?;
        self.charge((8 + 4 * classes.len() as u64) * meeting.ways.len() as u64)?;
        let mut next = vec![None; classes.len() * meeting.ways.len()];
        for (row, ways) in next.chunks_mut(classes.len()).zip(&meeting.ways) {
            for (bytes, to) in ways {
                for (place, class) in row.iter_mut().zip(&classes) {
                    if !class.and(bytes).is_empty() {
                        *place = Some(*to);
                    }
                }
            }
        }
        let mut accepting = vec![false; meeting.ways.len()];
        for &(tag, state, pair) in &meeting.complete {
            accepting[pair as usize] |= ends.contains(&(tag, state));
        }
        match Dfa::minimal(&classes, next, accepting) {
            None => Ok(NOTHING),
            Some(dfa) if dfa.len() == 1 && dfa.is_end(Dfa::START) => Ok(EMPTY),
            Some(dfa) => self.automaton(&Arc::new(dfa)),
        }
    }

    /// The language of `e` as a minimal automaton; `None` if it is empty.
    ///
    /// # Errors
    /// As [`Exprs::meeting`].
    pub fn to_dfa(&mut self, e: ExprId) -> Result<Option<Arc<Dfa>>> {
        let found = self.as_automaton(e)?;
        if let Some((dfa, state, EMPTY)) = self.split_automaton(found) {
            return Ok(Some(if state == Dfa::START { dfa } else { Arc::new(dfa.residual(state)) }));
        }
        let Some(any) = Dfa::minimal(&[ByteSet::ALL], vec![Some(0)], vec![true]) else { return Ok(None) };
        let whole = self.meeting(found, &any, Dfa::START)?;
        let made = self.met(&whole, whole.ends())?;
        Ok(match made {
            EMPTY => Dfa::minimal(&[ByteSet::ALL], vec![None], vec![true]).map(Arc::new),
            made => self.split_automaton(made).map(|(dfa, ..)| dfa),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compiled, texts};
    use super::*;

    #[test]
    fn a_meeting_says_where_each_text_leads() {
        let cases = [
            ("[ab]*c", "a*b?c[abc]*"),
            ("(ab|abc)c?", "[abc]*b[abc]*"),
            ("", "a*"),
            ("[abc]{0,4}", "(a[abc])*b?"),
            ("a+b", "c*"),
            ("b*", "[abc]*"),
        ];
        for (lexeme, with) in cases {
            let mut exprs = Exprs::new(1 << 16);
            let (lexeme, with) = (compiled(&mut exprs, lexeme), compiled(&mut exprs, with));
            let dfa = exprs.to_dfa(with).unwrap().unwrap();
            let meeting = exprs.meeting(lexeme, &dfa, Dfa::START).unwrap();
            let after = |text: &[u8]| text.iter().try_fold(Dfa::START, |at, &byte| dfa.next(at, byte));
            let (mut ends, mut lossless) = (Vec::new(), true);
            for text in texts(b"abc", 5) {
                if exprs.matches(lexeme, &text).unwrap() {
                    lossless &= after(&text).is_some();
                    ends.extend(after(&text).map(|end| (0, end)));
                }
                let accepted = after(&text).is_some_and(|end| dfa.is_accepting(end));
                assert_eq!(accepted, exprs.matches(with, &text).unwrap());
            }
            ends.sort_unstable();
            ends.dedup();
            assert_eq!(meeting.ends(), ends);
            assert_eq!(meeting.is_lossless(), lossless);
            for &end in meeting.ends() {
                let there = exprs.met(&meeting, &[end]).unwrap();
                for text in texts(b"abc", 5) {
                    let leads = exprs.matches(lexeme, &text).unwrap() && after(&text) == Some(end.1);
                    assert_eq!(exprs.matches(there, &text).unwrap(), leads, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_has_no_automaton_and_large_meetings_are_limits() {
        let mut exprs = Exprs::new(1 << 20);
        assert_eq!(exprs.to_dfa(NOTHING).unwrap(), None);
        assert!(exprs.to_dfa(EMPTY).unwrap().is_some_and(|dfa| dfa.len() == 1 && dfa.is_accepting(0)));
        let long = compiled(&mut exprs, "a{0,9000}");
        let any = compiled(&mut exprs, "[abc]*");
        let dfa = exprs.to_dfa(any).unwrap().unwrap();
        let error = exprs.meeting(long, &dfa, Dfa::START).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Limit);
    }
}
