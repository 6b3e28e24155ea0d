//! Sets of many literals: a trie without nodes. The literals are sorted, and a state is the range that shares
//! the bytes read so far, so an enum of a hundred thousand values costs only its sorting.

use std::sync::Arc;

use super::node::{digest, ExprNode};
use super::spelled::Spelled;
use super::{ByteSet, ExprId, Exprs, StructureHash, NOTHING};
use crate::Result;

#[derive(Clone)]
pub(super) struct LiteralSet {
    /// Sorted by bytes.
    texts: Arc<[(Box<[u8]>, ExprId)]>,
    pub hash: StructureHash,
    /// Whether the continuation of some literal contains an intersection or complement.
    pub boolean: bool,
    /// Whether the continuation of each literal is the empty string.
    pub finite: bool,
    /// For texts in every spelling of JSON how they are written; the texts themselves are then as they are meant.
    pub spelled: Option<Spelled>,
}

impl LiteralSet {
    pub fn memory(&self) -> usize {
        self.texts.iter().map(|(text, _)| text.len() + 40).sum()
    }

    /// The continuations of the literals in `from..to` that end after `depth` bytes. They come first in the
    /// range.
    pub fn ended(&self, from: u32, to: u32, depth: u32) -> Vec<ExprId> {
        let run = &self.texts[from as usize..to as usize];
        run.iter().take_while(|(text, _)| text.len() == depth as usize).map(|&(_, then)| then).collect()
    }

    /// Whether `from..to` is one literal, and all of it is read.
    fn is_ended(&self, from: u32, to: u32, depth: u32) -> bool {
        to - from == 1 && self.texts[from as usize].0.len() == depth as usize
    }

    /// The subrange of `from..to` whose next byte is `byte`.
    pub fn narrowed(&self, from: u32, to: u32, depth: u32, byte: u8) -> (u32, u32) {
        let run = &self.texts[from as usize..to as usize];
        let at = |text: &[u8]| text.get(depth as usize).map_or(-1, |&b| i32::from(b));
        let start = run.partition_point(|(text, _)| at(text) < i32::from(byte));
        let end = start + run[start..].partition_point(|(text, _)| at(text) <= i32::from(byte));
        (from + start as u32, from + end as u32)
    }

    /// The text of this number.
    pub fn text(&self, at: u32) -> &[u8] {
        &self.texts[at as usize].0
    }

    fn next_bytes(&self, from: u32, to: u32, depth: u32) -> ByteSet {
        let mut set = ByteSet::NONE;
        let mut at = from;
        while at < to {
            match self.texts[at as usize].0.get(depth as usize) {
                None => at += 1,
                Some(&byte) => {
                    set.insert(byte);
                    at = self.narrowed(at, to, depth, byte).1;
                }
            }
        }
        match &self.spelled {
            Some(spelled) => spelled.first_bytes(set),
            None => set,
        }
    }
}

impl Exprs {
    /// Any of these literals, each followed by its expression (often the same one, or a tag). Efficient for
    /// hundreds of thousands of literals. Literals may repeat and may be prefixes of each other; those followed
    /// by [`NOTHING`] are dropped.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn literals(&mut self, texts: &[(&[u8], ExprId)]) -> Result<ExprId> {
        self.literals_as(texts, None)
    }

    pub(super) fn literals_as(
        &mut self,
        texts: &[(&[u8], ExprId)],
        spelled: Option<Spelled>,
    ) -> Result<ExprId> {
        let mut live = Vec::with_capacity(texts.len());
        for &(text, then) in texts {
            let then = self.live(then)?;
            if then != NOTHING {
                live.push((text, then));
            }
        }
        self.spend(2 * live.len() as u64)?;
        live.sort_unstable();
        live.dedup();
        match live[..] {
            [] => return Ok(NOTHING),
            [(text, then)] if spelled.is_none() => {
                let text = self.bytes(text)?;
                return self.pair(text, then);
            }
            _ => {}
        }
        let mut whole = Vec::new();
        if let Some(spelled) = spelled {
            // No text is as long.
            whole.extend_from_slice(&u64::MAX.to_le_bytes());
            whole.push(u8::from(spelled.ascii));
        }
        for (text, then) in &live {
            whole.extend_from_slice(&(text.len() as u64).to_le_bytes());
            whole.extend_from_slice(text);
            whole.extend_from_slice(&self.structure(*then).to_le_bytes());
        }
        let boolean = live.iter().any(|&(_, then)| self.facts(then).boolean);
        let finite = live.iter().all(|&(_, then)| matches!(self.node(then), ExprNode::Tag(_)));
        let texts: Arc<[_]> = live.into_iter().map(|(text, then)| (text.into(), then)).collect();
        let to = texts.len() as u32;
        let hash = digest(&whole);
        let set = match self.literal_ids.get(&hash) {
            Some(&known) => known,
            None => {
                self.has_room()?;
                let set_of = LiteralSet { texts, hash, boolean, finite, spelled };
                self.literal_bytes += set_of.memory();
                self.literal_sets.push(set_of);
                let set = self.literal_sets.len() as u32 - 1;
                self.literal_ids.insert(hash, set);
                set
            }
        };
        let made = self.intern(ExprNode::Literals { set, from: 0, to, depth: 0 })?;
        self.facts[made.0 as usize].alive = true;
        Ok(made)
    }

    /// What is left of a literal after `depth` bytes, and what follows it.
    pub(super) fn literal_rest(&self, set: u32, at: u32, depth: u32) -> (Box<[u8]>, ExprId) {
        let (text, then) = &self.literal_sets[set as usize].texts[at as usize];
        (text[depth as usize..].into(), *then)
    }

    /// The range of literals as an expression; a single literal becomes plain bytes.
    pub(super) fn run(&mut self, set: u32, from: u32, to: u32, depth: u32) -> Result<ExprId> {
        let is_spelled = self.literal_sets[set as usize].spelled.is_some();
        if is_spelled && self.literal_sets[set as usize].is_ended(from, to, depth) {
            return Ok(self.literal_sets[set as usize].texts[from as usize].1);
        }
        if to - from == 1 && !is_spelled {
            let (text, then) = self.literal_sets[set as usize].texts[from as usize].clone();
            let rest = self.bytes(&text[depth as usize..])?;
            return self.pair(rest, then);
        }
        let made = self.intern(ExprNode::Literals { set, from, to, depth })?;
        self.facts[made.0 as usize].alive = true;
        Ok(made)
    }

    pub(super) fn derive_literals(
        &mut self,
        (set, from, to, depth): (u32, u32, u32, u32),
        byte: u8,
    ) -> Result<ExprId> {
        self.charge(16)?;
        let ended = self.literal_sets[set as usize].ended(from, to, depth);
        let on = match self.literal_sets[set as usize].spelled {
            Some(spelled) if !spelled.is_raw(byte) => {
                if byte == b'\\' {
                    self.escapes(spelled, (set, from, to, depth))?
                } else {
                    NOTHING
                }
            }
            _ => {
                let (below, end) = self.literal_sets[set as usize].narrowed(from, to, depth, byte);
                if below < end {
                    self.run(set, below, end, depth + 1)?
                } else {
                    NOTHING
                }
            }
        };
        if ended.is_empty() {
            return Ok(on);
        }
        let mut parts = vec![on];
        for then in ended {
            parts.push(self.derive(then, byte)?);
        }
        self.or(&parts)
    }

    /// The bytes that may come next, and the continuations of literals that end here.
    pub(super) fn literal_starts(
        &self,
        (set, from, to, depth): (u32, u32, u32, u32),
    ) -> (ByteSet, Vec<ExprId>) {
        let set = &self.literal_sets[set as usize];
        (set.next_bytes(from, to, depth), set.ended(from, to, depth))
    }
}
