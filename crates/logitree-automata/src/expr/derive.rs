//! Derivatives, remembered in rows of 256 where an expression has more than one way on. It refuses to know the
//! encoding of text.

use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs, NOTHING};
use crate::Result;

/// A derivative that nobody asked for yet.
const UNKNOWN: ExprId = ExprId(u32::MAX);

impl Exprs {
    /// What may follow `byte`: [`NOTHING`] exactly if nothing does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    #[inline]
    pub fn derive(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        let row = self.row_of[e.0 as usize];
        if row != 0 {
            let known = self.rows[row as usize - 1][usize::from(byte)];
            if known != UNKNOWN {
                return Ok(known);
            }
        }
        self.derive_uncached(e, byte)
    }

    fn derive_uncached(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        // One byte leads on from these: a row would be 255 times nothing.
        let head = match self.node(e) {
            ExprNode::Concat(a, _) => self.node(*a),
            node => node,
        };
        match *head {
            ExprNode::Nothing | ExprNode::Tag(_) => return Ok(NOTHING),
            ExprNode::Bytes(from, _) if self.pool[from as usize] != byte => return Ok(NOTHING),
            ExprNode::Bytes(..) => {
                let next = self.step(e, byte)?;
                return self.live(next);
            }
            _ => {}
        }
        let raw = self.step(e, byte)?;
        let derived = self.live(raw)?;
        let class = self.byte_class(e, byte)?;
        self.remember(e, &class, derived)?;
        Ok(derived)
    }

    /// Keeps the derivative by each byte of a class.
    fn remember(&mut self, e: ExprId, class: &ByteSet, derived: ExprId) -> Result<()> {
        let row = self.row_of[e.0 as usize];
        if row != 0 {
            let row = &mut self.rows[row as usize - 1];
            class.iter().for_each(|byte| row[usize::from(byte)] = derived);
            return Ok(());
        }
        self.has_room()?;
        // What is rarer is set one by one.
        let (rare, most, one) = match class.len() > 128 {
            true => (ByteSet::ALL.without(class), derived, UNKNOWN),
            false => (*class, UNKNOWN, derived),
        };
        let mut row = Box::new([most; 256]);
        rare.iter().for_each(|byte| row[usize::from(byte)] = one);
        self.rows.push(row);
        self.row_of[e.0 as usize] = self.rows.len() as u32;
        Ok(())
    }

    /// The derivative by the rules alone: with and, or not in it, it may match nothing and not be [`NOTHING`].
    pub(super) fn step(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        match *self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => Ok(NOTHING),
            ExprNode::Class(set) => Ok(if set.contains(byte) { super::EMPTY } else { NOTHING }),
            ExprNode::Bytes(from, to) if self.pool[from as usize] == byte => self.pool_slice(from + 1, to),
            ExprNode::Bytes(..) => Ok(NOTHING),
            ExprNode::Concat(..) => self.step_concat(e, byte),
            ExprNode::Or(ref parts) => {
                let parts = parts.clone();
                let mut next = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    next.push(self.derive(part, byte)?);
                }
                self.or(&next)
            }
            ExprNode::And(ref parts) => {
                let parts = parts.clone();
                let mut next = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    next.push(self.derive(part, byte)?);
                }
                self.and(&next)
            }
            ExprNode::Not(of) => {
                let of = self.derive(of, byte)?;
                self.not(of)
            }
            ExprNode::Repeat { of, min, max } => {
                let one = self.derive(of, byte)?;
                if one == NOTHING {
                    return Ok(NOTHING);
                }
                let most = if max == ENDLESS { ENDLESS } else { max - 1 };
                let rest = self.repeat_counted(of, min.saturating_sub(1), most)?;
                self.pair(one, rest)
            }
            ExprNode::Dfa(dfa, state) => self.derive_dfa(dfa, state, byte),
            ExprNode::Literals { set, from, to, depth } => self.derive_literals((set, from, to, depth), byte),
        }
    }

    /// Along a chain of parts that may be empty: a loop, so that a chain of thousands is no recursion.
    fn step_concat(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        let mut ways = Vec::new();
        let mut at = e;
        while let ExprNode::Concat(a, b) = *self.node(at) {
            let head = self.derive(a, byte)?;
            if head != NOTHING {
                ways.push(self.pair(head, b)?);
            }
            if !self.is_complete(a) {
                return self.or(&ways);
            }
            self.spend(1)?;
            at = b;
        }
        ways.push(self.derive(at, byte)?);
        self.or(&ways)
    }

    /// The bytes after which something follows.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn first_bytes(&mut self, e: ExprId) -> Result<ByteSet> {
        match *self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => return Ok(ByteSet::NONE),
            ExprNode::Class(set) => return Ok(set),
            ExprNode::Bytes(from, _) => return Ok(ByteSet::one(self.pool[from as usize])),
            _ => {}
        }
        if let Some(&set) = self.first.get(&e) {
            return Ok(set);
        }
        let set = self.find_first(e)?;
        self.first.insert(e, set);
        Ok(set)
    }

    fn find_first(&mut self, e: ExprId) -> Result<ByteSet> {
        if !self.is_alive(e)? {
            return Ok(ByteSet::NONE);
        }
        if matches!(self.node(e), ExprNode::And(_) | ExprNode::Not(_)) {
            let mut set = ByteSet::NONE;
            for (class, _) in self.transitions(e)? {
                set = set.or(&class);
            }
            return Ok(set);
        }
        let mut set = ByteSet::NONE;
        let mut at = e;
        while let ExprNode::Concat(a, b) = *self.node(at) {
            set = set.or(&self.first_bytes(a)?);
            if !self.is_complete(a) {
                return Ok(set);
            }
            at = b;
        }
        Ok(set.or(&match *self.node(at) {
            ExprNode::Or(ref parts) => {
                let parts = parts.clone();
                let mut all = ByteSet::NONE;
                for &part in parts.iter() {
                    all = all.or(&self.first_bytes(part)?);
                }
                all
            }
            ExprNode::Repeat { of, .. } => self.first_bytes(of)?,
            ExprNode::Dfa(dfa, state) => self.dfa_starts(dfa, state),
            ExprNode::Literals { set, from, to, depth } => {
                let (mut next, ended) = self.literal_starts((set, from, to, depth));
                for then in ended {
                    next = next.or(&self.first_bytes(then)?);
                }
                next
            }
            _ if at == e => ByteSet::NONE,
            _ => self.first_bytes(at)?,
        }))
    }

    /// The ways on: classes of bytes, and what follows each; what is dead is left out.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn transitions(&mut self, e: ExprId) -> Result<Vec<(ByteSet, ExprId)>> {
        let mut ways = Vec::new();
        for class in self.byte_classes(e)? {
            let Some(byte) = class.iter().next() else { continue };
            let next = self.derive(e, byte)?;
            if next != NOTHING {
                ways.push((class, next));
            }
        }
        Ok(ways)
    }

    /// Whether some byte leads on: false for what is complete and over.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn can_continue(&mut self, e: ExprId) -> Result<bool> {
        match self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => Ok(false),
            // What is alive and not complete goes on; a loop that is complete goes on, too.
            _ if self.is_complete(e) => Ok(!self.first_bytes(e)?.is_empty()),
            _ => Ok(true),
        }
    }

    /// Whether these bytes match.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn matches(&mut self, e: ExprId, bytes: &[u8]) -> Result<bool> {
        let mut at = e;
        for &byte in bytes {
            at = self.derive(at, byte)?;
        }
        Ok(self.is_complete(at))
    }
}
