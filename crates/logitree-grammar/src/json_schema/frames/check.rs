//! What cannot be honoured is found before anything is generated. Subschemas that combine others are each brought into
//! normal form once. Where something in the schema may be refused for what it is combined with, all that may reach it is
//! looked into. It refuses to look into anything else: plain keywords are always honoured.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::super::normal::{combines, for_children, Contains, GoalId, FALSE};
use super::super::schema::{Keywords, NodeId, Schema, SchemaNode, TypeSet};
use super::board::Board;
use crate::expr::Exprs;
use crate::Result;

/// Goals that are looked into at most: what lies further is found when a text reaches it.
const MOST_CHECKED: usize = 2_000;

impl Board {
    /// Looks into what `goal` may reach and may not be honoured.
    pub(super) fn check(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<()> {
        let schema = Arc::clone(&self.forms.schema);
        let all = schema.nodes.iter().enumerate().filter_map(|(node, what)| match what {
            SchemaNode::Keywords(keywords) => Some((node as NodeId, &**keywords)),
            SchemaNode::True | SchemaNode::False => None,
        });
        for (node, _) in all.clone().filter(|(_, keywords)| is_dear(keywords)) {
            let goal = self.forms.goal(node)?;
            self.scalars(goal, exprs)?;
        }
        let refusable: Vec<NodeId> =
            all.filter(|(_, keywords)| may_be_refused(keywords)).map(|(n, _)| n).collect();
        if refusable.is_empty() {
            return Ok(());
        }
        let reaching = reaching(&schema, refusable);
        let mut seen = FxHashSet::from_iter([goal]);
        let mut waiting = vec![goal];
        while let Some(goal) = waiting.pop() {
            for next in self.parts_of(goal, exprs)? {
                let matters = self.forms.nodes_of(next).any(|node| node.is_none_or(|n| reaching[n as usize]));
                if matters && seen.len() < MOST_CHECKED && seen.insert(next) {
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

/// Whether there may be too many combinations of what the keywords apply, or a number is asked for that may take too
/// large an automaton.
fn is_dear(k: &Keywords) -> bool {
    combines(k) || k.multiple_of.is_some()
}

/// Whether it depends on what the keywords are combined with whether they can be honoured.
fn may_be_refused(k: &Keywords) -> bool {
    k.unique_items || k.unevaluated_items.is_some() || k.unevaluated_properties.is_some()
}

/// For each subschema whether it reaches one of `to`.
fn reaching(schema: &Schema, to: Vec<NodeId>) -> Vec<bool> {
    let mut parents: Vec<Vec<NodeId>> = vec![Vec::new(); schema.nodes.len()];
    for (node, what) in schema.nodes.iter().enumerate() {
        if let SchemaNode::Keywords(keywords) = what {
            for_children(keywords, |child| parents[child as usize].push(node as NodeId));
        }
    }
    let mut reaching = vec![false; schema.nodes.len()];
    let mut waiting = to;
    while let Some(node) = waiting.pop() {
        if !std::mem::replace(&mut reaching[node as usize], true) {
            waiting.extend(&parents[node as usize]);
        }
    }
    reaching
}
