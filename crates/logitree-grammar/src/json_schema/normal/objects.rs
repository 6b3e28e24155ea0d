//! Objects that fulfil two descriptions, and what one key's value must fulfil. It refuses to list keys that no
//! description names.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::schema::TypeSet;
use super::meet::merged;
use super::{Facts, Forms, GoalId, ObjectFacts, Part, PartId, RegexId, ScalarId, FALSE, TRUE};
use crate::expr::{Encoding, Exprs};
use crate::Result;

impl Forms {
    /// What fulfils both.
    pub(super) fn meet_objects(&mut self, a: &ObjectFacts, b: &ObjectFacts) -> Result<ObjectFacts> {
        let mut parts = a.parts.clone();
        parts.extend(b.parts.iter().filter(|part| !a.parts.contains(part)));
        let mut keys = a.keys.clone();
        for &(key, goal) in &b.keys {
            match keys.binary_search_by_key(&key, |&(key, _)| key) {
                Ok(at) => keys[at].1 = self.all(&[keys[at].1, goal])?,
                Err(at) => keys.insert(at, (key, goal)),
            }
        }
        let max = match (a.max, b.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Ok(ObjectFacts {
            parts,
            keys,
            names: self.all(&[a.names, b.names])?,
            required: merged(&a.required, &b.required),
            min: a.min.max(b.min),
            max,
            dependent: merged(&a.dependent, &b.dependent),
            exists: merged(&a.exists, &b.exists),
        })
    }

    /// Drops the type object from the facts that two alternatives made together, if a key that must be there is plainly
    /// impossible.
    pub(super) fn drop_hopeless(
        &mut self,
        facts: &mut Facts,
        (a, b): (&Facts, &Facts),
        exprs: &mut Exprs,
    ) -> Result<()> {
        let (Some(_), Some(_), Some(object)) = (&a.object, &b.object, facts.object.clone()) else {
            return Ok(());
        };
        for &key in &object.required {
            let goal = self.key_goal(&object, key, exprs)?;
            if goal == FALSE || self.plainly_dead(goal, exprs) {
                facts.drop_types(TypeSet::OBJECT);
                return Ok(());
            }
        }
        if !object.keys.is_empty() {
            let mut simpler = ObjectFacts::clone(&object);
            self.drop_implied_keys(&mut simpler, exprs)?;
            if simpler.keys.len() < object.keys.len() {
                facts.object = Some(Arc::new(simpler));
            }
        }
        Ok(())
    }

    /// What the value of `key` must fulfil.
    pub(crate) fn key_goal(
        &mut self,
        object: &ObjectFacts,
        key: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<GoalId> {
        let mut goals = Vec::with_capacity(object.parts.len() + 1);
        for &part in &object.parts {
            self.part_goals(part, key, &mut goals, exprs)?;
        }
        if let Ok(at) = object.keys.binary_search_by_key(&key, |&(key, _)| key) {
            goals.push(object.keys[at].1);
        }
        if object.names != TRUE && !self.string_fulfils(object.names, key, exprs)? {
            return Ok(FALSE);
        }
        self.all(&goals)
    }

    fn part_goals(
        &mut self,
        id: PartId,
        key: ScalarId,
        goals: &mut Vec<GoalId>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        let part = self.part(id);
        let mut covered = false;
        if let Some(goal) = self.named_goal(id, &part, key) {
            covered = true;
            goals.push(goal);
        }
        for &(regex, goal) in &part.patterns {
            if self.key_matches(regex, key, exprs)? {
                covered = true;
                goals.push(goal);
            }
        }
        if let (false, Some(additional)) = (covered, part.additional) {
            if !self.covered_by(&part.covers, key, exprs)? {
                goals.push(additional);
            }
        }
        Ok(())
    }

    /// Whether `key` falls under the `additional` of a part.
    pub(crate) fn uncovered(&mut self, id: PartId, key: ScalarId, exprs: &mut Exprs) -> Result<bool> {
        let part = self.part(id);
        if self.named_goal(id, &part, key).is_some() {
            return Ok(false);
        }
        for &(regex, _) in &part.patterns {
            if self.key_matches(regex, key, exprs)? {
                return Ok(false);
            }
        }
        Ok(!self.covered_by(&part.covers, key, exprs)?)
    }

    fn covered_by(&mut self, covers: &[PartId], key: ScalarId, exprs: &mut Exprs) -> Result<bool> {
        for &cover in covers {
            if self.part(cover).additional.is_some() || !self.uncovered(cover, key, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn named_goal(&mut self, id: PartId, part: &Part, key: ScalarId) -> Option<GoalId> {
        /// Keys that are looked through one by one.
        const FEW: usize = 8;
        if part.named.len() <= FEW {
            return part.named.iter().find(|&&(named, _)| named == key).map(|&(_, goal)| goal);
        }
        let index = self.part_index.entry(id).or_insert_with(|| {
            let places = part.named.iter().enumerate();
            places.map(|(at, &(key, _))| (key, at as u32)).collect::<FxHashMap<_, _>>()
        });
        index.get(&key).map(|&at| part.named[at as usize].1)
    }

    /// A description of keys.
    pub(crate) fn part(&self, id: PartId) -> Arc<Part> {
        Arc::clone(&self.parts[id as usize])
    }

    /// Whether a key is in a language.
    pub(crate) fn key_matches(&mut self, regex: RegexId, key: ScalarId, exprs: &mut Exprs) -> Result<bool> {
        if let Some(&known) = self.key_matches.get(&(regex, key)) {
            return Ok(known);
        }
        let expr = exprs.compile(self.regex(regex), Encoding::Utf8)?;
        let matches = exprs.matches(expr, self.texts.text(key).as_bytes())?;
        self.key_matches.insert((regex, key), matches);
        Ok(matches)
    }
}
