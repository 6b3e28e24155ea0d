//! The normal form of schemas: a conjunction of subschemas and negated subschemas becomes a list of alternatives, each a
//! product over types ([`Facts`]).
//!
//! The naive version is the validator in `json_schema/tests`: a value is valid under a conjunction exactly if it is valid
//! under one of its alternatives. An alternative describes the parts of a value by further conjunctions, which are
//! expanded only when needed.

mod applicators;
mod constants;
mod equality;
mod facts;
mod interned;
mod intersect;
mod local;
mod negate;
mod scalar;
mod strings;
mod subsume;
pub(crate) mod witness;

use std::sync::Arc;

use logitree_automata::stack::with_room;
use rustc_hash::FxHashMap;

use super::super::expr::Exprs;
use super::super::Regex;
use super::schema::{Keywords, Schema, SchemaNode, SubschemaId};
use crate::{id, Error, ErrorKind, Result};

pub(crate) use constants::composites;
pub(crate) use facts::{
    ArrayFacts, Contains, Evaluated, Exists, Facts, KeyClass, NumberFacts, ObjectFacts, PropertyRules,
    StringFacts, Track,
};
pub(crate) use strings::{spell, Scalar, ScalarId, ScalarTable};

id!(
    /// A conjunction of subschemas and negated subschemas; equal ids are equal sets of literals.
    pub(crate) struct SchemaId
);
id!(
    /// A regular language of the schema.
    pub(crate) struct LanguageId
);
id!(
    /// The rules of an object's keys, as `properties`, `patternProperties` and `additionalProperties` give them.
    pub(crate) struct PropertyRulesId
);

/// Every value is valid.
pub(crate) const TRUE: SchemaId = SchemaId(0);
/// No value is valid.
pub(crate) const FALSE: SchemaId = SchemaId(1);

/// A member of a conjunction: an atom or its negation. Atoms are the subschemas, then [`LiteralAtom`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct LiteralId(u32);

impl LiteralId {
    /// The literal of [`FALSE`], which has no atom.
    const NEVER: LiteralId = LiteralId(u32::MAX);

    fn new(atom: impl Into<u32>, negated: bool) -> LiteralId {
        LiteralId(atom.into() * 2 + u32::from(negated))
    }

    fn atom(self) -> u32 {
        self.0 / 2
    }

    fn is_negated(self) -> bool {
        self.0 % 2 == 1
    }

    fn negated(self) -> LiteralId {
        LiteralId(self.0 ^ 1)
    }
}

/// Maximum number of alternatives of one schema.
pub(crate) const MAX_ALTERNATIVES: usize = 4_096;
/// Maximum number of schemas, in addition to eight for each subschema.
const MAX_SCHEMAS: usize = 20_000;
/// Maximum number of products of two alternatives.
const MAX_PRODUCTS: u64 = 200_000;
/// Maximum nesting of subschemas that apply to the same value.
const MAX_NESTED: usize = 200;
/// How deep empty parts are searched for while alternatives are multiplied.
const PROBES: u32 = 4;

/// What an atom past the schema's nodes is.
#[derive(Debug, Clone)]
enum LiteralAtom {
    /// A value like this one.
    Value(Arc<serde_json::Value>),
    /// One of these schemas.
    Either(Arc<[SchemaId]>),
}

/// The schemas of one schema and their normal forms, found when first asked for.
pub(crate) struct NormalForms {
    /// The schema.
    pub schema: Arc<Schema>,
    /// Keys and other single values.
    pub texts: ScalarTable,
    /// What was dropped because the schema is lenient.
    pub warnings: Vec<String>,
    /// For each subschema the representative of those that are equal to it; empty if that is not needed.
    twins: Vec<SubschemaId>,
    /// The place of each subschema in the order of reading; empty before it is first needed.
    reading: Vec<u32>,
    schemas: Vec<Arc<[LiteralId]>>,
    schema_ids: FxHashMap<Arc<[LiteralId]>, SchemaId>,
    atoms: Vec<LiteralAtom>,
    value_atoms: FxHashMap<String, LiteralId>,
    either_atoms: FxHashMap<Arc<[SchemaId]>, LiteralId>,
    regexes: Vec<Arc<Regex>>,
    regex_ids: FxHashMap<usize, LanguageId>,
    parts: Vec<Arc<PropertyRules>>,
    part_ids: FxHashMap<PropertyRules, PropertyRulesId>,
    node_parts: FxHashMap<SubschemaId, Option<PropertyRulesId>>,
    part_index: FxHashMap<PropertyRulesId, FxHashMap<ScalarId, u32>>,
    key_matches: FxHashMap<(LanguageId, ScalarId), bool>,
    expanded: FxHashMap<(LiteralId, Track), Arc<[Facts]>>,
    normals: FxHashMap<SchemaId, Arc<[Facts]>>,
    running: FxHashMap<(LiteralId, Track), u32>,
    /// About how many alternatives the negation of a subschema has, once asked for.
    ways_to_fail: FxHashMap<SubschemaId, usize>,
    probing: u32,
    probe_met_itself: bool,
    products: u64,
}

impl NormalForms {
    /// The schemas of `schema`: none is looked into yet.
    pub(crate) fn new(schema: Arc<Schema>) -> NormalForms {
        let combining = schema.nodes.iter().any(|node| match node {
            SchemaNode::Keywords(keywords) => combines(keywords),
            SchemaNode::True | SchemaNode::False => false,
        });
        let twins = if combining { equality::twins(&schema.nodes) } else { Vec::new() };
        let mut forms = NormalForms {
            schema,
            twins,
            reading: Vec::new(),
            texts: ScalarTable::default(),
            warnings: Vec::new(),
            schemas: Vec::new(),
            schema_ids: FxHashMap::default(),
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
            ways_to_fail: FxHashMap::default(),
            probing: 0,
            probe_met_itself: false,
            products: 0,
        };
        let all: Arc<[LiteralId]> = Arc::new([]);
        let nothing: Arc<[LiteralId]> = Arc::new([LiteralId::NEVER]);
        for (schema, lits) in [(TRUE, all), (FALSE, nothing)] {
            forms.schemas.push(Arc::clone(&lits));
            forms.schema_ids.insert(lits, schema);
        }
        forms.normals.insert(TRUE, Arc::new([Facts::of(super::schema::TypeSet::ALL)]));
        forms.normals.insert(FALSE, Arc::new([]));
        forms
    }

    /// The alternatives of `schema`. None is known to be dead, but some may be.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if something in it cannot be honoured, [`ErrorKind::Limit`] if it has too many
    /// alternatives.
    pub(crate) fn normal(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Arc<[Facts]>> {
        if let Some(known) = self.normals.get(&schema) {
            return Ok(Arc::clone(known));
        }
        let lits = self.in_reading_order(schema);
        let mut found = self.expand(lits[0], Track::Nothing, exprs)?;
        for &lit in &lits[1..] {
            let more = self.expand(lit, Track::Nothing, exprs)?;
            found = self.product(&found, &more, lit, exprs)?.into();
        }
        self.normals.insert(schema, Arc::clone(&found));
        Ok(found)
    }

    /// The members of `schema` in the order in which a reader of the document meets them: the order of keys depends on it.
    fn in_reading_order(&mut self, schema: SchemaId) -> Arc<[LiteralId]> {
        let lits = Arc::clone(&self.schemas[schema.index()]);
        if lits.len() < 2 {
            return lits;
        }
        if self.reading.is_empty() {
            let reading = super::schema::reading_order(&self.schema, |node| self.follow(node));
            self.reading = reading;
        }
        let mut lits = lits.to_vec();
        lits.sort_by_key(|lit| self.reading.get(lit.atom() as usize).copied().unwrap_or(u32::MAX));
        lits.into()
    }

    /// The alternatives of `schema`, if they are already computed.
    pub(crate) fn known(&self, schema: SchemaId) -> Option<&Arc<[Facts]>> {
        self.normals.get(&schema)
    }

    /// The alternatives of one member of a schema.
    fn expand(&mut self, lit: LiteralId, track: Track, exprs: &mut Exprs) -> Result<Arc<[Facts]>> {
        if let Some(known) = self.expanded.get(&(lit, track)) {
            return Ok(Arc::clone(known));
        }
        if let Some(&probing) = self.running.get(&(lit, track)) {
            self.probe_met_itself = probing != self.probing;
            let message = "a schema applies to the same value again and again through $ref, without end";
            return Err(Error::new(ErrorKind::Constraint, message).at(self.place(lit)));
        }
        if self.running.len() >= MAX_NESTED {
            let message =
                format!("more than {MAX_NESTED} subschemas apply to one value, each inside the one before");
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lit)));
        }
        let is_first = self.running.is_empty();
        self.running.insert((lit, track), self.probing);
        let found = match is_first {
            true => with_room(|| self.look_into(lit, track, exprs)),
            false => self.look_into(lit, track, exprs),
        };
        self.running.remove(&(lit, track));
        let found: Arc<[Facts]> = found?.into();
        self.expanded.insert((lit, track), Arc::clone(&found));
        Ok(found)
    }

    fn look_into(&mut self, lit: LiteralId, track: Track, exprs: &mut Exprs) -> Result<Vec<Facts>> {
        let (atom, negated) = (lit.atom(), lit.is_negated());
        let nodes = self.schema.nodes.len() as u32;
        if atom < nodes {
            let node = SubschemaId(atom);
            return if negated { self.negative(node, exprs) } else { self.positive(node, track, exprs) };
        }
        match (self.atoms[(atom - nodes) as usize].clone(), negated) {
            (LiteralAtom::Value(value), false) => self.constants(std::slice::from_ref(&*value), lit),
            (LiteralAtom::Value(value), true) => {
                self.not_constants(std::slice::from_ref(&*value), lit, exprs)
            }
            (LiteralAtom::Either(schemas), false) => {
                let mut found = Vec::new();
                for &schema in &*schemas {
                    let more = self.normal(schema, exprs)?;
                    self.union(&mut found, &more, lit)?;
                }
                Ok(found)
            }
            (LiteralAtom::Either(schemas), true) => {
                let mut found = vec![Facts::of(super::schema::TypeSet::ALL)];
                for &schema in &*schemas {
                    let failing = self.failing(schema, exprs)?;
                    found = self.product(&found, &failing, lit, exprs)?;
                }
                Ok(found)
            }
        }
    }

    /// The values that do not fulfil `schema`.
    fn failing(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Vec<Facts>> {
        if schema == FALSE {
            return Ok(vec![Facts::of(super::schema::TypeSet::ALL)]);
        }
        let mut found = Vec::new();
        for &lit in &*Arc::clone(&self.schemas[schema.index()]) {
            let more = self.expand(lit.negated(), Track::Nothing, exprs)?;
            self.union(&mut found, &more, lit)?;
        }
        Ok(found)
    }

    /// Adds `more` to the alternatives `found`.
    fn union(&mut self, found: &mut Vec<Facts>, more: &[Facts], lit: LiteralId) -> Result<()> {
        more.iter().for_each(|facts| facts.join(found));
        self.check_alternatives(found.len(), lit)
    }

    fn check_alternatives(&self, count: usize, lit: LiteralId) -> Result<()> {
        if count > MAX_ALTERNATIVES {
            let message = format!(
                "combining the schemas that apply here gives more than {MAX_ALTERNATIVES} alternatives"
            );
            let help = "use fewer alternatives, or give each a required property with its own constant";
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lit)).help(help));
        }
        Ok(())
    }

    /// Every alternative of `left` with every one of `right`, without those that evidently have no value.
    fn product(
        &mut self,
        left: &[Facts],
        right: &[Facts],
        lit: LiteralId,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let count = (left.len() * right.len()) as u64;
        self.products += count;
        exprs.spend(10 * count)?;
        if self.products > MAX_PRODUCTS {
            let message = format!("more than {MAX_PRODUCTS} combinations of subschemas were tried");
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lit)));
        }
        let several = left.len() * right.len() > 1 || self.probing > 0;
        let mut found = Vec::with_capacity(left.len().max(right.len()));
        for a in left {
            for b in right {
                let mut facts = self.intersect(a, b, exprs)?;
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

    /// Whether the normal form of `schema` is empty. Looks only a few levels deep; a negative answer proves nothing.
    pub(crate) fn plainly_dead(&mut self, schema: SchemaId, exprs: &mut Exprs) -> bool {
        if let Some(known) = self.normals.get(&schema) {
            return known.is_empty();
        }
        if self.probing >= PROBES {
            return false;
        }
        self.probing += 1;
        let dead = self.normal(schema, exprs).is_ok_and(|normal| normal.is_empty());
        self.probing -= 1;
        dead
    }

    /// The place of a literal in its document.
    fn place(&self, lit: LiteralId) -> String {
        self.schema.places.get(lit.atom())
    }

    /// The subschema that asks for unique items and has an item of `schema`; the first that asks for them if all items are
    /// described by several subschemas.
    pub(crate) fn unique_items_of(&mut self, schema: SchemaId) -> Result<SubschemaId> {
        let source = Arc::clone(&self.schema);
        let mut first = None;
        for (node, what) in source.nodes.iter().enumerate() {
            let SchemaNode::Keywords(keywords) = what else { continue };
            if !keywords.unique_items {
                continue;
            }
            first = first.or(Some(node));
            let array = self.local_array(keywords)?;
            if array.is_some_and(|array| array.rest == schema || array.prefix.contains(&schema)) {
                return Ok(SubschemaId::new(node));
            }
        }
        Ok(SubschemaId::new(first.unwrap_or(0)))
    }

    /// The place of the first `contains` that asks for items of `schema`; the root's if none asks for these alone.
    pub(crate) fn place_of_contains(&mut self, schema: SchemaId) -> Result<String> {
        let source = Arc::clone(&self.schema);
        for what in &source.nodes {
            let SchemaNode::Keywords(keywords) = what else { continue };
            if let Some((node, ..)) = keywords.contains {
                if self.schema_of(node)? == schema {
                    return Ok(source.places.get(node.0));
                }
            }
        }
        Ok(source.places.get(source.root.0))
    }

    /// Refuses what is not supported; a lenient schema drops it with a warning.
    pub(crate) fn refuse(&mut self, node: SubschemaId, message: String, help: &str) -> Result<()> {
        let place = self.place(LiteralId::new(node, false));
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
