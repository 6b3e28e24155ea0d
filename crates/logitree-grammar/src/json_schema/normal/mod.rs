//! The normal form of schemas: a goal, which is a conjunction of subschemas and of negated subschemas, becomes a list of
//! alternatives, each a product over types ([`Facts`]).
//!
//! The naive version is the plain validator ([`super::validate`]): a value fulfils a goal exactly if it fulfils one of
//! the goal's alternatives. What an alternative says of parts of a value are goals again, not yet looked into.
//!
//! It refuses to know how a value is written.

mod applicators;
mod arrays;
mod constants;
mod facts;
mod finite;
mod goals;
mod meet;
mod negative;
mod objects;
mod own;
pub(crate) mod plain;
mod same;
mod scalars;
mod subsume;
mod texts;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::Exprs;
use super::super::Regex;
use super::schema::{Keywords, NodeId, Schema, SchemaNode};
use crate::{Error, ErrorKind, Result};

pub(crate) use facts::{
    ArrayFacts, Contains, Evaluated, Exists, Facts, KeyClass, NumberFacts, ObjectFacts, Part, StringFacts,
    Track,
};
pub(crate) use same::for_children;
pub(crate) use texts::{spell, Scalar, ScalarId, Texts};

/// A number of a goal in its [`Forms`]; equal numbers are equal sets of subschemas.
pub(crate) type GoalId = u32;
/// Fulfilled by every value.
pub(crate) const TRUE: GoalId = 0;
/// Fulfilled by no value.
pub(crate) const FALSE: GoalId = 1;
/// A number of a regular language of the schema.
pub(crate) type RegexId = u32;
/// A number of a description of keys.
pub(crate) type PartId = u32;
/// A member of a goal: twice an atom's number, and one more where it is negated.
type Lit = u32;

/// Alternatives of one goal at most.
const MOST_ALTERNATIVES: usize = 4_096;
/// Goals at most, beside as many as eight for each subschema.
const MOST_GOALS: usize = 20_000;
/// Products of two alternatives at most, in all.
const MOST_PRODUCTS: u64 = 200_000;
/// Subschemas that apply in the same place, one inside the other, at most.
const MOST_NESTED: usize = 200;
/// How deep dead parts are looked for while alternatives are multiplied.
const PROBES: u32 = 4;

/// What an atom past the schema's nodes is.
#[derive(Debug, Clone)]
enum Atom {
    /// A value like this one.
    Value(Arc<serde_json::Value>),
    /// One of these goals.
    Either(Arc<[GoalId]>),
}

/// The goals of one schema and their normal forms, found when first asked for.
pub(crate) struct Forms {
    /// The schema.
    pub schema: Arc<Schema>,
    /// Keys and other single values.
    pub texts: Texts,
    /// What was dropped because the schema is lenient.
    pub warnings: Vec<String>,
    /// For each subschema one that says the same, where that was looked for.
    twins: Vec<NodeId>,
    goals: Vec<Arc<[Lit]>>,
    goal_ids: FxHashMap<Arc<[Lit]>, GoalId>,
    atoms: Vec<Atom>,
    value_atoms: FxHashMap<String, Lit>,
    either_atoms: FxHashMap<Arc<[GoalId]>, Lit>,
    regexes: Vec<Arc<Regex>>,
    regex_ids: FxHashMap<usize, RegexId>,
    parts: Vec<Arc<Part>>,
    part_ids: FxHashMap<Part, PartId>,
    node_parts: FxHashMap<NodeId, Option<PartId>>,
    part_index: FxHashMap<PartId, FxHashMap<ScalarId, u32>>,
    key_matches: FxHashMap<(RegexId, ScalarId), bool>,
    expanded: FxHashMap<(Lit, Track), Arc<[Facts]>>,
    normals: FxHashMap<GoalId, Arc<[Facts]>>,
    running: FxHashMap<(Lit, Track), u32>,
    probing: u32,
    probe_met_itself: bool,
    products: u64,
}

impl Forms {
    /// The goals of `schema`: none is looked into yet.
    pub(crate) fn new(schema: Arc<Schema>) -> Forms {
        let combining = schema.nodes.iter().any(|node| match node {
            SchemaNode::Keywords(keywords) => combines(keywords),
            SchemaNode::True | SchemaNode::False => false,
        });
        let twins = if combining { same::twins(&schema.nodes) } else { Vec::new() };
        let mut forms = Forms {
            schema,
            twins,
            texts: Texts::default(),
            warnings: Vec::new(),
            goals: Vec::new(),
            goal_ids: FxHashMap::default(),
            atoms: Vec::new(),
            value_atoms: FxHashMap::default(),
            either_atoms: FxHashMap::default(),
            regexes: Vec::new(),
            regex_ids: FxHashMap::default(),
            parts: Vec::new(),
            part_ids: FxHashMap::default(),
            node_parts: FxHashMap::default(),
            part_index: FxHashMap::default(),
            key_matches: FxHashMap::default(),
            expanded: FxHashMap::default(),
            normals: FxHashMap::default(),
            running: FxHashMap::default(),
            probing: 0,
            probe_met_itself: false,
            products: 0,
        };
        let all: Arc<[Lit]> = Arc::new([]);
        let nothing: Arc<[Lit]> = Arc::new([Lit::MAX]);
        for (goal, lits) in [(TRUE, all), (FALSE, nothing)] {
            forms.goals.push(Arc::clone(&lits));
            forms.goal_ids.insert(lits, goal);
        }
        forms.normals.insert(TRUE, Arc::new([Facts::of(super::schema::TypeSet::ALL)]));
        forms.normals.insert(FALSE, Arc::new([]));
        forms
    }

    /// The alternatives of `goal`. None is known to be dead, but some may be.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if something in it cannot be honoured, [`ErrorKind::Limit`] if it has too many
    /// alternatives.
    pub(crate) fn normal(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<Arc<[Facts]>> {
        if let Some(known) = self.normals.get(&goal) {
            return Ok(Arc::clone(known));
        }
        let lits = Arc::clone(&self.goals[goal as usize]);
        let mut found = self.expand(lits[0], Track::Nothing, exprs)?;
        for &lit in &lits[1..] {
            let more = self.expand(lit, Track::Nothing, exprs)?;
            found = self.product(&found, &more, lit, exprs)?.into();
        }
        self.normals.insert(goal, Arc::clone(&found));
        Ok(found)
    }

    /// The alternatives of `goal`, if somebody asked for them.
    pub(crate) fn known(&self, goal: GoalId) -> Option<&Arc<[Facts]>> {
        self.normals.get(&goal)
    }

    /// The alternatives of one member of a goal.
    fn expand(&mut self, lit: Lit, track: Track, exprs: &mut Exprs) -> Result<Arc<[Facts]>> {
        if let Some(known) = self.expanded.get(&(lit, track)) {
            return Ok(Arc::clone(known));
        }
        if let Some(&probing) = self.running.get(&(lit, track)) {
            self.probe_met_itself = probing != self.probing;
            let message = "a schema that applies to the same value again and again, through $ref, never ends";
            return Err(Error::new(ErrorKind::Constraint, message).at(self.place(lit)));
        }
        if self.running.len() >= MOST_NESTED {
            let message =
                format!("more than {MOST_NESTED} subschemas apply to one value, each inside the last");
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lit)));
        }
        self.running.insert((lit, track), self.probing);
        let found = self.look_into(lit, track, exprs);
        self.running.remove(&(lit, track));
        let found: Arc<[Facts]> = found?.into();
        self.expanded.insert((lit, track), Arc::clone(&found));
        Ok(found)
    }

    fn look_into(&mut self, lit: Lit, track: Track, exprs: &mut Exprs) -> Result<Vec<Facts>> {
        let (atom, negated) = (lit / 2, lit % 2 == 1);
        let nodes = self.schema.nodes.len() as u32;
        if atom < nodes {
            return if negated { self.negative(atom, exprs) } else { self.positive(atom, track, exprs) };
        }
        match (self.atoms[(atom - nodes) as usize].clone(), negated) {
            (Atom::Value(value), false) => self.constants(std::slice::from_ref(&*value)),
            (Atom::Value(value), true) => self.not_constants(std::slice::from_ref(&*value), lit, exprs),
            (Atom::Either(goals), false) => {
                let mut found = Vec::new();
                for &goal in &*goals {
                    let more = self.normal(goal, exprs)?;
                    self.union(&mut found, &more, lit)?;
                }
                Ok(found)
            }
            (Atom::Either(goals), true) => {
                let mut found = vec![Facts::of(super::schema::TypeSet::ALL)];
                for &goal in &*goals {
                    let failing = self.failing(goal, exprs)?;
                    found = self.product(&found, &failing, lit, exprs)?;
                }
                Ok(found)
            }
        }
    }

    /// The values that do not fulfil `goal`.
    fn failing(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<Vec<Facts>> {
        if goal == FALSE {
            return Ok(vec![Facts::of(super::schema::TypeSet::ALL)]);
        }
        let mut found = Vec::new();
        for &lit in &*Arc::clone(&self.goals[goal as usize]) {
            let more = self.expand(lit ^ 1, Track::Nothing, exprs)?;
            self.union(&mut found, &more, lit)?;
        }
        Ok(found)
    }

    /// Adds `more` to the alternatives `found`.
    fn union(&mut self, found: &mut Vec<Facts>, more: &[Facts], lit: Lit) -> Result<()> {
        more.iter().for_each(|facts| facts.join(found));
        self.check_alternatives(found.len(), lit)
    }

    fn check_alternatives(&self, count: usize, lit: Lit) -> Result<()> {
        if count > MOST_ALTERNATIVES {
            let message =
                format!("combining what applies here gives more than {MOST_ALTERNATIVES} alternatives");
            let help = "say it with fewer alternatives, or tell them apart by a required constant property";
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lit)).help(help));
        }
        Ok(())
    }

    /// Every alternative of `left` with every one of `right`, without those that are plainly dead.
    fn product(
        &mut self,
        left: &[Facts],
        right: &[Facts],
        lit: Lit,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let count = (left.len() * right.len()) as u64;
        self.products += count;
        exprs.spend(10 * count)?;
        if self.products > MOST_PRODUCTS {
            let message = format!("more than {MOST_PRODUCTS} combinations of subschemas were tried");
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lit)));
        }
        let several = left.len() * right.len() > 1 || self.probing > 0;
        let mut found = Vec::with_capacity(left.len().max(right.len()));
        for a in left {
            for b in right {
                let mut facts = self.meet(a, b, exprs)?;
                if several {
                    self.drop_hopeless(&mut facts, (a, b), exprs)?;
                }
                if facts.types.0 != 0 {
                    self.union(&mut found, std::slice::from_ref(&facts), lit)?;
                }
            }
        }
        if several {
            self.drop_subsumed(&mut found);
        }
        Ok(found)
    }

    /// Whether `goal` is plainly dead: its normal form is empty. Looks only a few levels deep; "no" may be wrong.
    fn plainly_dead(&mut self, goal: GoalId, exprs: &mut Exprs) -> bool {
        if let Some(known) = self.normals.get(&goal) {
            return known.is_empty();
        }
        if self.probing >= PROBES {
            return false;
        }
        self.probing += 1;
        let dead = self.normal(goal, exprs).is_ok_and(|normal| normal.is_empty());
        self.probing -= 1;
        dead
    }

    /// Where a member of a goal stands in its document.
    fn place(&self, lit: Lit) -> String {
        self.schema.places.get(lit / 2)
    }

    /// Refuses what cannot be honoured at the first subschema that says it, or drops it where the schema is lenient.
    pub(crate) fn refuse_somewhere(
        &mut self,
        says: impl Fn(&Keywords) -> bool,
        message: &str,
        help: &str,
    ) -> Result<()> {
        let place = self.schema.nodes.iter().position(|node| match node {
            SchemaNode::Keywords(keywords) => says(keywords),
            SchemaNode::True | SchemaNode::False => false,
        });
        self.refuse(place.unwrap_or(0) as NodeId, message.into(), help)
    }

    /// Refuses what cannot be honoured, or drops it where the schema is lenient.
    pub(crate) fn refuse(&mut self, node: NodeId, message: String, help: &str) -> Result<()> {
        let place = self.place(node * 2);
        if self.schema.options.lenient {
            let warning = format!("{message} (at {place}): dropped");
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
            return Ok(());
        }
        Err(Error::new(ErrorKind::Constraint, message).at(place).help(help))
    }
}

/// Whether the keywords negate what they apply, so that it matters what excludes each other.
pub(crate) fn combines(k: &Keywords) -> bool {
    k.not.is_some() || k.conditional.is_some() || k.one_of.len() > 1
}
