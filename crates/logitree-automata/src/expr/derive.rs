//! Brzozowski derivatives, cached in rows of 256 for expressions with more than one transition.

use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs, NOTHING};
use crate::Result;

/// A derivative that is not computed yet.
const UNKNOWN: ExprId = ExprId(u32::MAX);

impl Exprs {
    /// The derivative: the strings that may follow `byte`; [`NOTHING`] exactly if there are none.
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

    /// [`Exprs::derive`] at a node of a trie, which costs fuel even where the derivative is cached.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    #[inline]
    pub fn visit(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        self.charge(3)?;
        self.derive(e, byte)
    }

    fn derive_uncached(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        self.charge(4)?;
        // These have one transition: a row would hold 255 times NOTHING.
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
        let class = self.byte_class(e, byte)?;
        self.derive_class(e, byte, &class)
    }

    /// The derivative by `byte`, kept for all bytes of its class.
    fn derive_class(&mut self, e: ExprId, byte: u8, class: &ByteSet) -> Result<ExprId> {
        let raw = self.step(e, byte)?;
        let derived = self.live(raw)?;
        self.remember(e, class, derived)?;
        Ok(derived)
    }

    /// Whether `e` begins with a text, and so has one transition at most: it has no row.
    fn has_one_way(&self, e: ExprId) -> bool {
        let head = match self.node(e) {
            ExprNode::Concat(a, _) => self.node(*a),
            node => node,
        };
        matches!(head, ExprNode::Nothing | ExprNode::Tag(_) | ExprNode::Bytes(..))
    }

    /// The derivative, if it is kept.
    fn known_derivative(&self, e: ExprId, byte: u8) -> Option<ExprId> {
        let row = self.row_of[e.0 as usize].checked_sub(1)?;
        Some(self.rows[row as usize][usize::from(byte)]).filter(|&known| known != UNKNOWN)
    }

    /// Caches the derivative for each byte of a class.
    fn remember(&mut self, e: ExprId, class: &ByteSet, derived: ExprId) -> Result<()> {
        let row = self.row_of[e.0 as usize];
        if row != 0 {
            let row = &mut self.rows[row as usize - 1];
            class.iter().for_each(|byte| row[usize::from(byte)] = derived);
            return Ok(());
        }
        self.charge(48)?;
        self.has_room()?;
        // The rarer value is written byte by byte.
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

    /// The derivative by its definition. With intersection or complement its language may be empty without
    /// being [`NOTHING`].
    pub(super) fn step(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        match *self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => Ok(NOTHING),
            ExprNode::Class(set) => Ok(if set.contains(byte) { super::EMPTY } else { NOTHING }),
            ExprNode::Bytes(from, to) if self.pool[from as usize] == byte => self.pool_slice(from + 1, to),
            ExprNode::Bytes(..) => Ok(NOTHING),
            ExprNode::Concat(..) => self.step_concat(e, byte),
            ExprNode::Or(ref parts) => {
                let parts = parts.clone();
                self.charge(4 * parts.len() as u64)?;
                let mut next = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    next.push(self.derive(part, byte)?);
                }
                self.or(&next)
            }
            ExprNode::And(ref parts) => {
                let parts = parts.clone();
                self.charge(4 * parts.len() as u64)?;
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
            ExprNode::Computed(dfa, state) => self.derive_computed(dfa, state, byte),
            ExprNode::Literals { set, from, to, depth } => self.derive_literals((set, from, to, depth), byte),
        }
    }

    /// Iterates over the nullable parts of a concatenation, which may have thousands of parts.
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

    /// The bytes with a non-empty derivative.
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
        self.charge(8)?;
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
            self.charge(4)?;
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
                self.charge(4 * parts.len() as u64)?;
                for &part in parts.iter() {
                    all = all.or(&self.first_bytes(part)?);
                }
                all
            }
            ExprNode::Repeat { of, .. } => self.first_bytes(of)?,
            ExprNode::Dfa(dfa, state) => self.dfa_starts(dfa, state),
            ExprNode::Computed(dfa, state) => self.computed_starts(dfa, state)?,
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

    /// The transitions: classes of bytes and their targets, without dead ones.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn transitions(&mut self, e: ExprId) -> Result<Vec<(ByteSet, ExprId)>> {
        let mut ways = Vec::new();
        for class in self.byte_classes(e)? {
            let Some(byte) = class.iter().next() else { continue };
            let next = match self.known_derivative(e, byte) {
                Some(known) => known,
                None if self.has_one_way(e) => self.derive(e, byte)?,
                None => self.derive_class(e, byte, &class)?,
            };
            if next != NOTHING {
                ways.push((class, next));
            }
        }
        Ok(ways)
    }

    /// Whether some byte has a transition: false if only the empty string is left.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn can_continue(&mut self, e: ExprId) -> Result<bool> {
        match self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => Ok(false),
            // An expression that is alive and not complete has a transition.
            _ if self.is_complete(e) => Ok(!self.first_bytes(e)?.is_empty()),
            _ => Ok(true),
        }
    }

    /// Whether `e` matches these bytes.
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
