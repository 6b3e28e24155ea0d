//! Bytes that all strings of a language contain, and those that some contain: an intersection is empty if one side needs a byte
//! that another does not have. It decides at once what a search decides by all states of both.

use std::sync::Arc;

use super::node::ExprNode;
use super::{ByteSet, ExprId, Exprs};
use crate::Result;

/// Larger lists of literals may contain any byte.
const MAX_LITERALS: u32 = 16;
/// Deeper expressions may contain any byte.
const MAX_DEPTH: u32 = 16;

/// The bytes of a language's strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contained {
    /// Those that are in every string; or some of them.
    pub needed: ByteSet,
    /// Those that are in some string; or more.
    pub possible: ByteSet,
}

impl Contained {
    /// Of the empty language.
    pub const NOTHING: Contained = Contained { needed: ByteSet::ALL, possible: ByteSet::NONE };
    /// Of the empty string.
    pub const EMPTY: Contained = Contained { needed: ByteSet::NONE, possible: ByteSet::NONE };
    /// Of any language.
    const ANY: Contained = Contained { needed: ByteSet::NONE, possible: ByteSet::ALL };

    /// Of one byte of `set`.
    pub fn class(set: ByteSet) -> Contained {
        Contained { needed: if set.len() == 1 { set } else { ByteSet::NONE }, possible: set }
    }

    /// Of one text.
    fn text(text: &[u8]) -> Contained {
        let bytes = text.iter().fold(ByteSet::NONE, |all, &byte| all.or(&ByteSet::one(byte)));
        Contained { needed: bytes, possible: bytes }
    }

    /// Of one and then the other.
    pub fn then(&self, other: &Contained) -> Contained {
        Contained { needed: self.needed.or(&other.needed), possible: self.possible.or(&other.possible) }
    }

    /// Of both at once.
    fn and(&self, other: &Contained) -> Contained {
        Contained { needed: self.needed.or(&other.needed), possible: self.possible.and(&other.possible) }
    }

    /// Of one or the other.
    pub fn or(&self, other: &Contained) -> Contained {
        Contained { needed: self.needed.and(&other.needed), possible: self.possible.or(&other.possible) }
    }
}

impl Exprs {
    /// Whether `e` is provably empty: it begins with an intersection where one part needs a byte that another does not
    /// have.
    pub(super) fn lacks_bytes(&mut self, e: ExprId) -> Result<bool> {
        let head = match self.node(e) {
            ExprNode::Concat(a, _) => *a,
            _ => e,
        };
        match self.node(head).clone() {
            ExprNode::And(parts) => {
                let mut all = Contained::ANY;
                for &part in parts.iter() {
                    all = all.and(&self.contained(part, MAX_DEPTH)?);
                }
                Ok(!all.needed.without(&all.possible).is_empty())
            }
            _ => Ok(false),
        }
    }

    fn contained(&mut self, e: ExprId, depth: u32) -> Result<Contained> {
        self.charge(6)?;
        let Some(below) = depth.checked_sub(1) else { return Ok(Contained::ANY) };
        if let Some(known) = self.contained.get(&e) {
            return Ok(*known);
        }
        let found = self.contained_in(e, below)?;
        self.contained.insert(e, found);
        Ok(found)
    }

    fn contained_in(&mut self, e: ExprId, below: u32) -> Result<Contained> {
        Ok(match self.node(e).clone() {
            ExprNode::Nothing => Contained::NOTHING,
            ExprNode::Tag(_) => Contained::EMPTY,
            ExprNode::Class(set) => Contained::class(set),
            ExprNode::Bytes(from, to) => {
                self.charge(u64::from(to - from))?;
                Contained::text(self.bytes_of(from, to))
            }
            ExprNode::Concat(..) => {
                let (mut all, mut at) = (Contained::EMPTY, e);
                while let ExprNode::Concat(a, b) = *self.node(at) {
                    all = all.then(&self.contained(a, below)?);
                    at = b;
                }
                all.then(&self.contained(at, below)?)
            }
            ExprNode::Or(parts) => {
                let mut all = Contained::NOTHING;
                for &part in parts.iter() {
                    all = all.or(&self.contained(part, below)?);
                }
                all
            }
            ExprNode::And(parts) => {
                let mut all = Contained::ANY;
                for &part in parts.iter() {
                    all = all.and(&self.contained(part, below)?);
                }
                all
            }
            ExprNode::Repeat { of, min: 0, .. } => self.contained(of, below)?.or(&Contained::EMPTY),
            ExprNode::Repeat { of, .. } => self.contained(of, below)?,
            ExprNode::Literals { set, from, to, depth }
                if to - from <= MAX_LITERALS && self.literal_sets[set as usize].spelled.is_none() =>
            {
                let mut all = Contained::NOTHING;
                for n in from..to {
                    let (rest, then) = self.literal_rest(set, n, depth);
                    all = all.or(&Contained::text(&rest).then(&self.contained(then, below)?));
                }
                all
            }
            ExprNode::Dfa(dfa, state) => {
                let dfa = Arc::clone(&self.dfas[dfa as usize].0);
                if !dfa.knows_contained() {
                    self.spend(dfa.len() as u64)?;
                }
                dfa.contained(state)
            }
            ExprNode::Literals { .. } | ExprNode::Not(_) | ExprNode::Computed(..) => Contained::ANY,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compiled, texts};
    use super::super::NOTHING;
    use super::*;

    fn set(bytes: &[u8]) -> ByteSet {
        bytes.iter().fold(ByteSet::NONE, |all, &byte| all.or(&ByteSet::one(byte)))
    }

    const PATTERNS: [&str; 10] = [
        "a",
        "ab|ac",
        "(ab)*-",
        "(ab|ac){1,2}b?",
        "[ab]{2}-[bc]",
        "(a|b)*c(a|b)*",
        "",
        "a{0,2}(b|cb)",
        "(-a)+|(a-)+",
        "abc|ab-|ab",
    ];

    #[test]
    fn what_all_strings_contain_and_what_some_do() {
        let texts = texts(b"abc-", 6);
        let mut exprs = Exprs::new(1 << 16);
        for text in PATTERNS {
            let e = compiled(&mut exprs, text);
            let automaton = exprs.as_automaton(e).unwrap();
            assert!(e == automaton || exprs.split_automaton(automaton).is_some());
            let literals = exprs.literals(&[(b"ab", e), (b"ac", e), (b"abc", e)]).unwrap();
            for e in [e, automaton, literals] {
                let strings = texts.iter().filter(|text| exprs.matches(e, text).unwrap());
                let strings: Vec<ByteSet> = strings.map(|text| set(text)).collect();
                let needed = strings.iter().fold(ByteSet::ALL, |all, some| all.and(some));
                let possible = strings.iter().fold(ByteSet::NONE, |all, some| all.or(some));
                let found = exprs.contained(e, MAX_DEPTH).unwrap();
                assert_eq!(found, Contained { needed, possible }, "{text}, as {}", exprs.show(e));
            }
        }
    }

    #[test]
    fn an_intersection_that_lacks_a_byte_is_empty() {
        let texts = texts(b"abc-", 6);
        let mut exprs = Exprs::new(1 << 16);
        let mut lacking = 0;
        for a in PATTERNS {
            for b in PATTERNS {
                let (one, other) = (compiled(&mut exprs, a), compiled(&mut exprs, b));
                let both = exprs.and(&[one, other]).unwrap();
                let is_empty = !texts.iter().any(|text| exprs.matches(both, text).unwrap());
                let lacks = exprs.lacks_bytes(both).unwrap();
                assert!(is_empty || !lacks, "{a} and {b}");
                lacking += usize::from(lacks && both != NOTHING);
            }
        }
        assert!(lacking > 20, "{lacking}");
    }

    #[test]
    fn a_long_search_is_cut_short() {
        let mut exprs = Exprs::new(1 << 20);
        let one = compiled(&mut exprs, "[a-z0-9]{1,60}x[a-z0-9]{1,60}");
        let other = compiled(&mut exprs, "([a-z]{2}[0-9]{3}|[a-y]{7})*-?");
        let needs = compiled(&mut exprs, "[a-z0-9-]*-[a-z0-9-]*");
        let before = exprs.len();
        let both = exprs.and(&[one, other, needs]).unwrap();
        assert!(!exprs.is_alive(both).unwrap());
        assert!(exprs.len() - before < 2_000, "{} expressions", exprs.len() - before);
    }
}
