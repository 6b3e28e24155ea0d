//! Classes of the keys that an object's schema does not name; the values of a class share one schema. Two keys of a class
//! are not distinguished, so the same key may come twice.

use std::sync::Arc;

use super::super::normalize::{KeyClass, LanguageId, PropertyRulesId, ScalarId, SchemaId, FALSE, TRUE};
use super::super::schema::TypeSet;
use super::lexemes::Spelling;
use super::rule_table::RuleTable;
use crate::expr::{ExprId, Exprs, NOTHING};
use crate::{Error, ErrorKind, Result};

/// Maximum number of key classes of one object.
const MAX_CLASSES: usize = 1_024;
/// Maximum number of key predicates of one object.
const MAX_TESTS: usize = 64;

/// Fewer alternatives than this do not share the names of their keys.
const MIN_SHARING: usize = 16;
/// More names than this are not shared.
const MAX_SHARED: usize = 256;

/// A class of keys.
#[derive(Debug, Clone)]
pub(super) struct OtherKeys {
    /// Their characters in any spelling, without quotes.
    pub chars: ExprId,
    /// What their values fulfil.
    pub schema: SchemaId,
    /// The `exists` constraints that they may meet, one bit each.
    pub meets: u32,
}

/// A predicate that splits keys into classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyTest {
    Matches(LanguageId),
    Fulfils(SchemaId),
}

impl RuleTable {
    /// Lets objects that are alternatives of one value write the keys that some of them name each by itself, also where they
    /// are keys of no name to an alternative. The texts are the same, but alternatives that allow the same keys next read one
    /// lexeme, where hundreds of alternatives had as many.
    pub(super) fn share_names(&mut self, objects: impl Iterator<Item = u32>) {
        let mut objects: Vec<u32> = objects.collect();
        if objects.len() < MIN_SHARING {
            return;
        }
        objects.retain(|&object| {
            let rule = &self.objects[object as usize];
            !rule.closed && rule.facts.names == TRUE && self.tests(object).is_empty()
        });
        let named = objects.iter().flat_map(|&object| &self.objects[object as usize].keys);
        let mut all: Vec<ScalarId> = named.map(|key| key.id).collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > MAX_SHARED {
            return;
        }
        for object in objects {
            let rule = &mut self.objects[object as usize];
            if rule.foreign.is_empty() {
                rule.foreign = all.iter().copied().filter(|id| !rule.places.contains_key(id)).collect();
            }
        }
    }

    /// The characters of the keys of an object that are neither named nor foreign. It has one class of others.
    pub(super) fn beside_foreign(&mut self, object: u32, exprs: &mut Exprs) -> Result<ExprId> {
        let rule = &self.objects[object as usize];
        if let Some(known) = rule.beside_foreign {
            return Ok(known);
        }
        let known = rule.keys.iter().map(|key| key.id).chain(rule.foreign.iter().copied());
        let made = self.lexemes.none_of(&self.forms, &known.collect::<Vec<_>>(), Spelling::Any, exprs)?;
        self.objects[object as usize].beside_foreign = Some(made);
        Ok(made)
    }

    /// The classes of keys that the object does not name, without those whose schema is `FALSE`.
    pub(super) fn others(&mut self, object: u32, exprs: &mut Exprs) -> Result<Arc<[OtherKeys]>> {
        if let Some(known) = &self.objects[object as usize].others {
            return Ok(Arc::clone(known));
        }
        let found: Arc<[OtherKeys]> = if self.objects[object as usize].closed {
            Arc::new([])
        } else {
            self.classes(object, exprs)?.into()
        };
        self.objects[object as usize].others = Some(Arc::clone(&found));
        Ok(found)
    }

    fn classes(&mut self, object: u32, exprs: &mut Exprs) -> Result<Vec<OtherKeys>> {
        let tests = self.tests(object);
        if tests.len() > MAX_TESTS {
            let message = format!("an object's keys are matched with more than {MAX_TESTS} patterns");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let facts = Arc::clone(&self.objects[object as usize].facts);
        if tests.is_empty() && self.class_schema(object, &tests, 0)? == FALSE {
            return Ok(Vec::new());
        }
        let named: Vec<ScalarId> = self.objects[object as usize].keys.iter().map(|key| key.id).collect();
        let mut base = self.lexemes.none_of(&self.forms, &named, Spelling::Any, exprs)?;
        if facts.names != TRUE {
            let names = self.names(facts.names, exprs)?;
            base = exprs.and(&[base, names])?;
        }
        let mut classes = vec![(base, 0u64)];
        for (bit, &test) in tests.iter().enumerate() {
            let yes = match test {
                KeyTest::Matches(regex) => self.lexemes.matching(&self.forms, regex, Spelling::Any, exprs)?,
                KeyTest::Fulfils(schema) => self.names(schema, exprs)?,
            };
            let no = exprs.not(yes)?;
            let mut split = Vec::with_capacity(2 * classes.len());
            for &(chars, bits) in &classes {
                for (part, bits) in [(yes, bits | 1 << bit), (no, bits)] {
                    let chars = exprs.and(&[chars, part])?;
                    let last = bit + 1 == tests.len();
                    let wanted = !last || self.class_schema(object, &tests, bits)? != FALSE;
                    if wanted && exprs.is_alive(chars)? {
                        split.push((chars, bits));
                    }
                }
            }
            classes = split;
            if classes.len() > MAX_CLASSES {
                let message = format!("patterns of keys overlap in more than {MAX_CLASSES} combinations");
                return Err(Error::new(ErrorKind::Limit, message));
            }
        }
        self.grouped(object, &tests, &classes, exprs)
    }

    /// Joins classes whose values have the same schema.
    fn grouped(
        &mut self,
        object: u32,
        tests: &[KeyTest],
        classes: &[(ExprId, u64)],
        exprs: &mut Exprs,
    ) -> Result<Vec<OtherKeys>> {
        let mut found: Vec<OtherKeys> = Vec::new();
        for &(chars, bits) in classes {
            let schema = self.class_schema(object, tests, bits)?;
            if schema == FALSE || !exprs.is_alive(chars)? {
                continue;
            }
            let meets = self.class_meets(object, tests, bits);
            match found.iter_mut().find(|other| (other.schema, other.meets) == (schema, meets)) {
                Some(other) => other.chars = exprs.or(&[other.chars, chars])?,
                None => found.push(OtherKeys { chars, schema, meets }),
            }
        }
        Ok(found)
    }

    fn tests(&self, object: u32) -> Vec<KeyTest> {
        let facts = &self.objects[object as usize].facts;
        let mut tests = Vec::new();
        self.part_tests(&facts.parts, &mut tests);
        for exists in &facts.exists {
            match exists.keys {
                KeyClass::Matching(regex) => tests.push(KeyTest::Matches(regex)),
                KeyClass::Uncovered(part) => self.part_tests(&[part], &mut tests),
                KeyClass::Unlike(schema) => tests.push(KeyTest::Fulfils(schema)),
            }
        }
        let mut different: Vec<KeyTest> = Vec::with_capacity(tests.len());
        for test in tests {
            if !different.contains(&test) {
                different.push(test);
            }
        }
        different
    }

    fn part_tests(&self, parts: &[PropertyRulesId], tests: &mut Vec<KeyTest>) {
        for part in self.with_covers(parts.iter().copied()) {
            tests.extend(self.forms.part(part).patterns.iter().map(|&(regex, _)| KeyTest::Matches(regex)));
        }
    }

    fn class_schema(&mut self, object: u32, tests: &[KeyTest], bits: u64) -> Result<SchemaId> {
        let facts = Arc::clone(&self.objects[object as usize].facts);
        let mut schemas = Vec::new();
        for &part in &facts.parts {
            let part_facts = self.forms.part(part);
            let matching = part_facts.patterns.iter().filter(|(regex, _)| matches(tests, bits, *regex));
            schemas.extend(matching.map(|&(_, schema)| schema));
            if let (true, Some(additional)) = (self.class_uncovered(part, tests, bits), part_facts.additional)
            {
                schemas.push(additional);
            }
        }
        self.forms.all(&schemas)
    }

    /// Whether a class falls under the `additional` of a part.
    fn class_uncovered(&self, part: PropertyRulesId, tests: &[KeyTest], bits: u64) -> bool {
        let part = self.forms.part(part);
        let covers = |&cover: &PropertyRulesId| {
            self.forms.part(cover).additional.is_some() || !self.class_uncovered(cover, tests, bits)
        };
        !part.patterns.iter().any(|(regex, _)| matches(tests, bits, *regex))
            && !part.covers.iter().any(covers)
    }

    fn class_meets(&self, object: u32, tests: &[KeyTest], bits: u64) -> u32 {
        let facts = &self.objects[object as usize].facts;
        let meets = facts.exists.iter().enumerate().filter(|(_, exists)| match exists.keys {
            KeyClass::Matching(regex) => matches(tests, bits, regex),
            KeyClass::Uncovered(part) => self.class_uncovered(part, tests, bits),
            KeyClass::Unlike(schema) => !holds(tests, bits, KeyTest::Fulfils(schema)),
        });
        meets.map(|(bit, _)| 1 << bit).sum()
    }

    /// The characters of the strings that fulfil `schema`.
    fn names(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<ExprId> {
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            if facts.types.has(TypeSet::STRING) {
                all.push(self.lexemes.chars(&self.forms, facts.string.as_deref(), Spelling::Any, exprs)?);
            }
        }
        let names = exprs.or(&all)?;
        Ok(if exprs.is_alive(names)? { names } else { NOTHING })
    }

    /// The strings that fulfil `schema`, if they are listed.
    pub(super) fn finite_names(
        &mut self,
        schema: SchemaId,
        exprs: &mut Exprs,
    ) -> Result<Option<Vec<ScalarId>>> {
        if schema == TRUE {
            return Ok(None);
        }
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            if facts.types.has(TypeSet::STRING) {
                match facts.string.as_ref().and_then(|string| string.only.as_ref()) {
                    Some(only) => all.extend(only.iter().copied()),
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(all))
    }
}

fn matches(tests: &[KeyTest], bits: u64, regex: LanguageId) -> bool {
    holds(tests, bits, KeyTest::Matches(regex))
}

fn holds(tests: &[KeyTest], bits: u64, test: KeyTest) -> bool {
    tests.iter().position(|&other| other == test).is_some_and(|bit| bits >> bit & 1 == 1)
}
