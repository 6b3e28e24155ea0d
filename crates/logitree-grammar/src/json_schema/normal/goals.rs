//! Goals as interned sets of subschemas. It refuses to look into them.

use std::sync::Arc;

use serde_json::Value;

use super::super::schema::{Keywords, NodeId, SchemaNode};
use super::{Atom, Forms, GoalId, Lit, RegexId, FALSE, MOST_GOALS, TRUE};
use crate::Regex;
use crate::{Error, ErrorKind, Result};

/// References that lead to references, followed at most.
const MOST_REFERENCES: usize = 64;

impl Forms {
    /// What `node` says.
    pub(crate) fn goal(&mut self, node: NodeId) -> Result<GoalId> {
        self.signed(node, false)
    }

    /// Everything but what `node` says.
    pub(crate) fn counter_goal(&mut self, node: NodeId) -> Result<GoalId> {
        self.signed(node, true)
    }

    fn signed(&mut self, node: NodeId, negated: bool) -> Result<GoalId> {
        let node = self.follow(node);
        match (&self.schema.nodes[node as usize], negated) {
            (SchemaNode::True, false) | (SchemaNode::False, true) => Ok(TRUE),
            (SchemaNode::False, false) | (SchemaNode::True, true) => Ok(FALSE),
            (SchemaNode::Keywords(_), _) => self.intern_goal(&[node * 2 + u32::from(negated)]),
        }
    }

    /// Where references alone lead from `node`.
    pub(super) fn follow(&self, mut node: NodeId) -> NodeId {
        for _ in 0..MOST_REFERENCES {
            match &self.schema.nodes[node as usize] {
                SchemaNode::Keywords(keywords) if refers_only(keywords) => node = keywords.all_of[0],
                _ => break,
            }
        }
        self.twins.get(node as usize).copied().unwrap_or(node)
    }

    /// The member of a goal that stands for `node`.
    pub(super) fn lit(&self, node: NodeId, negated: bool) -> Lit {
        self.follow(node) * 2 + u32::from(negated)
    }

    /// A value equal to `value`.
    pub(super) fn value_goal(&mut self, value: &Value, negated: bool) -> Result<GoalId> {
        let text = value.to_string();
        let lit = match self.value_atoms.get(&text) {
            Some(&lit) => lit,
            None => {
                let lit = self.new_atom(Atom::Value(Arc::new(value.clone())));
                self.value_atoms.insert(text, lit);
                lit
            }
        };
        self.intern_goal(&[lit + u32::from(negated)])
    }

    /// One of `goals`.
    pub(super) fn either(&mut self, mut goals: Vec<GoalId>) -> Result<GoalId> {
        goals.sort_unstable();
        goals.dedup();
        goals.retain(|&goal| goal != FALSE);
        if goals.first() == Some(&TRUE) {
            return Ok(TRUE);
        }
        match *goals {
            [] => return Ok(FALSE),
            [one] => return Ok(one),
            _ => {}
        }
        let goals: Arc<[GoalId]> = goals.into();
        let lit = match self.either_atoms.get(&goals) {
            Some(&lit) => lit,
            None => {
                let lit = self.new_atom(Atom::Either(Arc::clone(&goals)));
                self.either_atoms.insert(goals, lit);
                lit
            }
        };
        self.intern_goal(&[lit])
    }

    fn new_atom(&mut self, atom: Atom) -> Lit {
        self.atoms.push(atom);
        (self.schema.nodes.len() + self.atoms.len() - 1) as u32 * 2
    }

    /// All of `goals` at once.
    pub(crate) fn all(&mut self, goals: &[GoalId]) -> Result<GoalId> {
        let mut lone = TRUE;
        let mut several = false;
        for &goal in goals {
            match goal {
                FALSE => return Ok(FALSE),
                TRUE => {}
                _ if lone == TRUE || lone == goal => lone = goal,
                _ => several = true,
            }
        }
        if !several {
            return Ok(lone);
        }
        let mut lits: Vec<Lit> =
            goals.iter().flat_map(|&goal| self.goals[goal as usize].iter().copied()).collect();
        lits.sort_unstable();
        lits.dedup();
        if lits.windows(2).any(|pair| pair[0] ^ 1 == pair[1]) {
            return Ok(FALSE);
        }
        self.intern_goal(&lits)
    }

    fn intern_goal(&mut self, lits: &[Lit]) -> Result<GoalId> {
        if let Some(&goal) = self.goal_ids.get(lits) {
            return Ok(goal);
        }
        if self.goals.len() > MOST_GOALS + 8 * self.schema.nodes.len() {
            let message = format!("more than {} combinations of subschemas are needed", self.goals.len());
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lits[0])));
        }
        let goal = self.goals.len() as GoalId;
        let lits: Arc<[Lit]> = lits.into();
        self.goals.push(Arc::clone(&lits));
        self.goal_ids.insert(lits, goal);
        Ok(goal)
    }

    /// Everything but what fulfils `goal`.
    pub(crate) fn opposite(&mut self, goal: GoalId) -> Result<GoalId> {
        match goal {
            TRUE => return Ok(FALSE),
            FALSE => return Ok(TRUE),
            _ => {}
        }
        let lits = Arc::clone(&self.goals[goal as usize]);
        let others = lits.iter().map(|&lit| self.intern_goal(&[lit ^ 1])).collect::<Result<Vec<_>>>()?;
        self.either(others)
    }

    /// The subschema that `goal` is, if it is one alone and not negated.
    pub(crate) fn lone_node(&self, goal: GoalId) -> Option<NodeId> {
        match *self.goals[goal as usize] {
            [lit] if lit % 2 == 0 && lit != Lit::MAX => {
                let node = lit / 2;
                (node < self.schema.nodes.len() as u32).then_some(node)
            }
            _ => None,
        }
    }

    /// Whether `goal` may be of a few listed values, as far as a look at its keywords tells.
    pub(super) fn may_list(&self, goal: GoalId) -> bool {
        match self.lone_node(goal).map(|node| &self.schema.nodes[node as usize]) {
            Some(SchemaNode::Keywords(k)) => {
                let applies = k.all_of.len() + k.any_of.len() + k.one_of.len() > 0;
                k.values.is_some() || k.pattern.is_some() || applies
            }
            Some(_) => false,
            None => true,
        }
    }

    /// The subschemas in `goal`; `None` for what is not one.
    pub(crate) fn nodes_of(&self, goal: GoalId) -> impl Iterator<Item = Option<NodeId>> + '_ {
        let nodes = self.schema.nodes.len() as u32;
        self.goals[goal as usize].iter().map(move |lit| Some(lit / 2).filter(|&node| node < nodes))
    }

    /// The number of a language.
    pub(super) fn regex_id(&mut self, regex: &Arc<Regex>) -> RegexId {
        let next = self.regexes.len() as RegexId;
        let id = *self.regex_ids.entry(Arc::as_ptr(regex) as usize).or_insert(next);
        if id == next {
            self.regexes.push(Arc::clone(regex));
        }
        id
    }

    /// The language of a number.
    pub(crate) fn regex(&self, id: RegexId) -> &Arc<Regex> {
        &self.regexes[id as usize]
    }
}

/// Whether `keywords` are one reference and nothing else.
fn refers_only(k: &Keywords) -> bool {
    k.all_of.len() == 1
        && (k.types, k.digits_only) == (None, false)
        && k.any_of.is_empty()
        && k.one_of.is_empty()
        && k.not.is_none()
        && k.conditional.is_none()
        && k.values.is_none()
        && k.properties.is_empty()
        && k.required.is_empty()
        && k.additional_properties.is_none()
        && k.pattern_properties.is_empty()
        && k.unevaluated_properties.is_none()
        && k.unevaluated_items.is_none()
        && k.property_names.is_none()
        && (k.min_properties, k.max_properties) == (0, None)
        && k.dependent_required.is_empty()
        && k.dependent_schemas.is_empty()
        && k.items.is_none()
        && (k.min_items, k.max_items) == (0, None)
        && !k.unique_items
        && k.contains.is_none()
        && (k.min_length, k.max_length) == (0, None)
        && k.pattern.is_none()
        && k.format.is_none()
        && k.minimum.is_none()
        && k.maximum.is_none()
        && k.multiple_of.is_none()
}
