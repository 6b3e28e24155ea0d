//! What cannot be honoured is found before anything is generated: where a schema has keywords that may turn out so, all
//! that it reaches is looked into at once. It refuses to look into schemas of plain keywords only, which cannot.

use rustc_hash::FxHashSet;

use super::super::normal::{Contains, GoalId, FALSE};
use super::super::schema::{Keywords, SchemaNode, TypeSet};
use super::board::Board;
use crate::grammar::expr::Exprs;
use crate::Result;

/// Goals that are looked into at most: what lies further is found when a text reaches it.
const MOST_CHECKED: usize = 20_000;

impl Board {
    /// Looks into everything that `goal` reaches, if something there may not be honoured.
    pub(super) fn check(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<()> {
        let schema = std::sync::Arc::clone(&self.forms.schema);
        let risky = |node: &SchemaNode| match node {
            SchemaNode::Keywords(keywords) => is_risky(keywords),
            SchemaNode::True | SchemaNode::False => false,
        };
        if !schema.nodes.iter().any(risky) {
            return Ok(());
        }
        let mut seen = FxHashSet::from_iter([goal]);
        let mut waiting = vec![goal];
        while let Some(goal) = waiting.pop() {
            for next in self.parts_of(goal, exprs)? {
                if seen.len() < MOST_CHECKED && seen.insert(next) {
                    waiting.push(next);
                }
            }
        }
        Ok(())
    }

    /// What the parts of arrays and objects of `goal` fulfil.
    fn parts_of(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<Vec<GoalId>> {
        let mut found = Vec::new();
        if goal == FALSE || !self.alive(goal, exprs)? {
            return Ok(found);
        }
        self.scalars(goal, exprs)?;
        for facts in &*self.forms.normal(goal, exprs)? {
            if let (true, Some(array)) = (facts.any_of(TypeSet::ARRAY), &facts.array) {
                self.array_id(Some(array), exprs)?;
                let places: Vec<GoalId> = array.prefix.iter().copied().chain([array.rest]).collect();
                for place in places {
                    self.demanded(place, &array.contains, &mut found)?;
                }
            }
            if facts.any_of(TypeSet::OBJECT) && facts.object.is_some() {
                let object = self.object_id(facts.object.as_ref(), exprs)?;
                let named = self.objects[object as usize].keys.len() as u32;
                let others = self.others(object, exprs)?.len() as u32;
                for key in 0..named + others {
                    let (goal, meets) = self.key_demands(object, key, exprs)?;
                    let exists = &self.objects[object as usize].facts.exists;
                    let may: Vec<GoalId> = exists.iter().map(|exists| exists.goal).collect();
                    for met in (0..1u32 << may.len()).filter(|met| met & !meets == 0) {
                        let chosen = may.iter().enumerate().filter(|(bit, _)| met >> bit & 1 == 1);
                        let goals: Vec<GoalId> = chosen.map(|(_, &goal)| goal).chain([goal]).collect();
                        found.push(self.forms.all(&goals)?);
                    }
                }
            }
        }
        Ok(found)
    }

    /// What an item may have to fulfil beside `place`: any of the demands, or their opposites where they are bounded.
    fn demanded(&mut self, place: GoalId, demands: &[Contains], found: &mut Vec<GoalId>) -> Result<()> {
        let mut goals = vec![place];
        for demand in demands {
            let mut sides = vec![demand.goal];
            if demand.max.is_some() {
                sides.push(self.forms.opposite(demand.goal)?);
            }
            for goal in goals.clone() {
                for &side in &sides {
                    goals.push(self.forms.all(&[goal, side])?);
                }
            }
        }
        found.extend(goals);
        Ok(())
    }
}

/// Whether the keywords may turn out to be too much, alone or with others.
fn is_risky(k: &Keywords) -> bool {
    k.unique_items
        || k.unevaluated_items.is_some()
        || k.unevaluated_properties.is_some()
        || k.not.is_some()
        || k.conditional.is_some()
        || k.one_of.len() > 1
        || k.multiple_of.is_some()
        || k.contains.is_some()
}
