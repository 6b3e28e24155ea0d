//! Brzozowski derivatives, cached for expressions with more than one transition: by class of bytes, and in a table of 256
//! where there are several classes.

use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs, NOTHING};
use crate::stack::with_step_room;
use crate::Result;

/// A derivative that is not computed yet.
const UNKNOWN: ExprId = ExprId(u32::MAX);
/// In the place of a row's number: the rest is the only derivative of an expression that begins with a text.
const ONE_WAY: u32 = 1 << 31;

/// How many classes of bytes a row has without a table.
const MAX_WAYS: usize = 3;

/// The derivatives of one expression that are known. Most states of a walk are asked for two: that by the byte that leads
/// on, and that by all others; many for that by the quote as well.
#[derive(Clone)]
pub(super) struct Row {
    /// By class, before there is a table. An unused place has no byte.
    few: [(ByteSet, ExprId); MAX_WAYS],
    table: Option<Box<[ExprId; 256]>>,
}

impl Row {
    fn new() -> Row {
        Row { few: [(ByteSet::NONE, NOTHING); MAX_WAYS], table: None }
    }

    #[inline]
    fn get(&self, byte: u8) -> Option<ExprId> {
        match &self.table {
            Some(table) => Some(table[usize::from(byte)]).filter(|&known| known != UNKNOWN),
            None => self.few.iter().find(|(class, _)| class.contains(byte)).map(|way| way.1),
        }
    }

    /// Whether another class needs a table.
    fn is_full(&self) -> bool {
        self.table.is_none() && !self.few[MAX_WAYS - 1].0.is_empty()
    }

    fn put(&mut self, class: &ByteSet, derived: ExprId) {
        if let Some(table) = &mut self.table {
            return class.iter().for_each(|byte| table[usize::from(byte)] = derived);
        }
        if let Some(free) = self.few.iter_mut().find(|way| way.0.is_empty()) {
            *free = (*class, derived);
            return;
        }
        // The largest class is written at once.
        let mut ways = [(*class, derived); MAX_WAYS + 1];
        ways[..MAX_WAYS].copy_from_slice(&self.few);
        ways.sort_unstable_by_key(|way| way.0.len());
        let known = ways.iter().fold(ByteSet::NONE, |all, way| all.or(&way.0));
        let mut table = Box::new([ways[MAX_WAYS].1; 256]);
        let mut write = |set: ByteSet, to| set.iter().for_each(|byte| table[usize::from(byte)] = to);
        write(ByteSet::ALL.without(&known), UNKNOWN);
        ways[..MAX_WAYS].iter().for_each(|way| write(way.0, way.1));
        self.table = Some(table);
    }
}

impl Exprs {
    /// The derivative: the strings that may follow `byte`; [`NOTHING`] exactly if there are none.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    #[inline]
    pub fn derive(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        match self.known_derivative(e, byte) {
            Some(known) => Ok(known),
            None => self.derive_uncached(e, byte),
        }
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
                let known = self.row_of[e.0 as usize];
                if known & ONE_WAY != 0 {
                    return Ok(ExprId(known & !ONE_WAY));
                }
                let next = self.step(e, byte)?;
                let next = self.live(next)?;
                self.row_of[e.0 as usize] = ONE_WAY | next.0;
                return Ok(next);
            }
            _ => {}
        }
        let class = self.byte_class(e, byte)?;
        self.derive_class(e, byte, &class)
    }

    /// The derivative by `byte`, kept for all bytes of its class.
    fn derive_class(&mut self, e: ExprId, byte: u8, class: &ByteSet) -> Result<ExprId> {
        let raw = if self.is_leaf(e) { self.step(e, byte) } else { with_step_room(|| self.step(e, byte)) }?;
        let derived = self.live(raw)?;
        self.remember(e, class, derived)?;
        Ok(derived)
    }

    /// The byte that `e` begins with, if it begins with a text.
    #[inline]
    pub fn beginning(&self, e: ExprId) -> Option<u8> {
        let head = match self.node(e) {
            ExprNode::Concat(a, _) => self.node(*a),
            node => node,
        };
        match *head {
            ExprNode::Bytes(from, _) => Some(self.pool[from as usize]),
            _ => None,
        }
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
    #[inline]
    fn known_derivative(&self, e: ExprId, byte: u8) -> Option<ExprId> {
        // No row has the number that is left of 0, nor one of those with ONE_WAY.
        let row = self.row_of[e.0 as usize].wrapping_sub(1);
        self.rows.get(row as usize)?.get(byte)
    }

    /// Caches the derivative for each byte of a class.
    fn remember(&mut self, e: ExprId, class: &ByteSet, derived: ExprId) -> Result<()> {
        let known = self.row_of[e.0 as usize];
        let is_full = known != 0 && self.rows[known as usize - 1].is_full();
        if known == 0 || is_full {
            self.charge(if is_full { 48 } else { 16 })?;
            self.has_room()?;
        }
        if known == 0 {
            self.rows.push(Row::new());
            self.row_of[e.0 as usize] = self.rows.len() as u32;
        }
        self.tables += usize::from(is_full);
        self.rows[self.row_of[e.0 as usize] as usize - 1].put(class, derived);
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
                // Mostly one part continues.
                let (mut one, mut more) = (NOTHING, Vec::new());
                for &part in parts.iter() {
                    match self.derive(part, byte)? {
                        NOTHING => {}
                        next if one == NOTHING => one = next,
                        next => more.push(next),
                    }
                }
                if more.is_empty() {
                    return Ok(one);
                }
                more.push(one);
                self.or(&more)
            }
            ExprNode::And(ref parts) => {
                let parts = parts.clone();
                self.charge(4 * parts.len() as u64)?;
                let mut next = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    match self.derive(part, byte)? {
                        NOTHING => return Ok(NOTHING),
                        derived => next.push(derived),
                    }
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
        if let ExprNode::Concat(a, b) = *self.node(e) {
            if !self.is_complete(a) {
                let head = self.derive(a, byte)?;
                return self.pair(head, b);
            }
        }
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
        if matches!(self.node(e), ExprNode::Nothing | ExprNode::Tag(_)) {
            return Ok(ByteSet::NONE);
        }
        if let Some(set) = self.head_bytes(e).filter(|_| self.facts(e).alive) {
            return Ok(set);
        }
        if let Some(&set) = self.first.get(&e) {
            return Ok(set);
        }
        let set = self.find_first(e)?;
        self.first.insert(e, set);
        Ok(set)
    }

    /// The bytes by which the first part continues, where that is a text or a byte: a superset of the first bytes.
    #[inline]
    fn head_bytes(&self, e: ExprId) -> Option<ByteSet> {
        let head = match self.node(e) {
            ExprNode::Concat(a, _) => self.node(*a),
            node => node,
        };
        match *head {
            ExprNode::Class(set) => Some(set),
            ExprNode::Bytes(from, _) => Some(ByteSet::one(self.pool[from as usize])),
            _ => None,
        }
    }

    /// [`Exprs::first_bytes`], or a superset where finding them needs derivatives.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn perhaps_first_bytes(&mut self, e: ExprId) -> Result<ByteSet> {
        if let Some(set) = self.head_bytes(e) {
            return Ok(set);
        }
        match self.facts(e).boolean && !self.first.contains_key(&e) {
            true => Ok(ByteSet::ALL),
            false => self.first_bytes(e),
        }
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
