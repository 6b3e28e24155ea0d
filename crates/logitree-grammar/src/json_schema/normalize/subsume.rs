//! Drops alternatives whose constraints are a superset of another alternative's. Constraints are compared as sets; the rest
//! may still overlap.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::super::schema::TypeSet;
use super::{
    ArrayFacts, Contains, Exists, Facts, LiteralId, NormalForms, ObjectFacts, ScalarId, SchemaId, TRUE,
};
use crate::expr::Exprs;
use crate::Result;

/// Alternatives that are compared with each other at most.
const MAX_COMPARED: usize = 512;

impl NormalForms {
    /// Drops arrays and objects that another alternative allows anyway.
    pub(super) fn drop_subsumed(&self, found: &mut Vec<Facts>) {
        if found.len() < 2 || found.len() > MAX_COMPARED {
            return;
        }
        for kind in [TypeSet::ARRAY, TypeSet::OBJECT] {
            let having: Vec<usize> = (0..found.len()).filter(|&at| found[at].any_of(kind)).collect();
            let sketches: Vec<u64> = match kind {
                TypeSet::OBJECT => found.iter().map(|facts| self.sketch(facts.object.as_deref())).collect(),
                _ => vec![0; found.len()],
            };
            for &at in &having {
                let one = &found[at];
                let covers = |&&other: &&usize| {
                    sketches[other] & !sketches[at] == 0
                        && other != at
                        && found[other].any_of(kind)
                        && found[other].evaluated == one.evaluated
                        && self.implies(kind, one, &found[other])
                };
                if having.iter().any(|other| covers(&other)) {
                    found[at].drop_types(kind);
                }
            }
        }
        found.retain(|facts| facts.types.0 != 0);
    }

    /// Bits of what an object must fulfil: one that implies another has all the bits of the other, and may have more.
    fn sketch(&self, object: Option<&ObjectFacts>) -> u64 {
        let Some(object) = object else { return 0 };
        let bit = |of: (u32, u32)| 1 << (FxBuildHasher.hash_one(of) >> 58);
        let keys = object.keys.iter().flat_map(|&(key, schema)| {
            self.schemas[schema.index()].iter().map(move |lit| (lit.0.wrapping_add(1), key.0))
        });
        let required = object.required.iter().map(|key| (0, key.0));
        keys.chain(required).fold(0, |all, of| all | bit(of))
    }

    fn implies(&self, kind: TypeSet, a: &Facts, b: &Facts) -> bool {
        if kind == TypeSet::ARRAY {
            return match (&a.array, &b.array) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(a), Some(b)) => self.array_implies(a, b),
            };
        }
        match (&a.object, &b.object) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(a), Some(b)) => self.object_implies(a, b),
        }
    }

    /// Whether every value of `a` fulfils `b`, by its members.
    fn schema_implies(&self, a: SchemaId, b: SchemaId) -> bool {
        let has = |lits: &[LiteralId], lit: &LiteralId| lits.binary_search(lit).is_ok();
        a == b || b == TRUE || {
            let a = &self.schemas[a.index()];
            self.schemas[b.index()].iter().all(|lit| has(a, lit))
        }
    }

    fn array_implies(&self, a: &ArrayFacts, b: &ArrayFacts) -> bool {
        let places = a.prefix.len().max(b.prefix.len()) as u64;
        let contained = |c: &Contains| {
            a.contains.iter().any(|own| {
                let at_least =
                    own.min >= c.min && (c.max.is_none() || own.max.is_some_and(|m| Some(m) <= c.max));
                own.schema == c.schema && own.from == c.from && at_least
            })
        };
        a.min >= b.min
            && b.max.is_none_or(|max| a.max.is_some_and(|own| own <= max))
            && (a.unique || !b.unique)
            && (0..=places).all(|at| self.schema_implies(a.item(at), b.item(at)))
            && b.contains.iter().all(contained)
    }

    fn object_implies(&self, a: &ObjectFacts, b: &ObjectFacts) -> bool {
        let key = |&(key, schema): &(ScalarId, SchemaId)| {
            let own = a.keys.binary_search_by_key(&key, |&(key, _)| key);
            self.schema_implies(own.map_or(TRUE, |at| a.keys[at].1), schema)
        };
        let exists = |e: &Exists| {
            a.exists.iter().any(|own| own.keys == e.keys && self.schema_implies(own.schema, e.schema))
        };
        b.required.iter().all(|key| a.required.binary_search(key).is_ok())
            && b.keys.iter().all(key)
            && b.parts.iter().all(|part| a.parts.contains(part))
            && self.schema_implies(a.names, b.names)
            && a.min.max(a.required.len() as u64) >= b.min
            && b.max.is_none_or(|max| a.max.is_some_and(|own| own <= max))
            && b.dependent.iter().all(|pair| a.dependent.binary_search(pair).is_ok())
            && b.exists.iter().all(exists)
    }

    /// Takes from the demands on single keys those that the descriptions of keys make anyway, as far as listed values
    /// tell: that another constant is excluded, say.
    pub(super) fn drop_implied_keys(&mut self, object: &mut ObjectFacts, exprs: &mut Exprs) -> Result<()> {
        let mut at = 0;
        while let Some(&(key, schema)) = object.keys.get(at) {
            object.keys[at].1 = TRUE;
            let base = self.key_schema(object, key, exprs)?;
            object.keys[at].1 = schema;
            if base != TRUE && self.may_list(base) && self.probing < super::PROBES {
                let both = self.all(&[base, schema])?;
                self.probing += 1;
                let same = match (self.normal(base, exprs), self.normal(both, exprs)) {
                    (Ok(base), Ok(both)) => base == both,
                    _ => false,
                };
                self.probing -= 1;
                if same {
                    object.keys.remove(at);
                    continue;
                }
            }
            at += 1;
        }
        Ok(())
    }
}
