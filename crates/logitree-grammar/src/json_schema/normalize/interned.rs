//! Interns conjunctions of subschemas, regular languages and single values.

use std::sync::Arc;

use serde_json::Value;

use super::super::schema::{Keywords, SchemaNode, SubschemaId};
use super::{LanguageId, LiteralAtom, LiteralId, NormalForms, SchemaId, FALSE, MAX_SCHEMAS, TRUE};
use crate::Regex;
use crate::{Error, ErrorKind, Result};

/// Maximum length of a chain of references.
const MAX_REFERENCES: usize = 64;

impl NormalForms {
    /// The schema of `node`.
    pub(crate) fn schema_of(&mut self, node: SubschemaId) -> Result<SchemaId> {
        self.signed(node, false)
    }

    /// The negation of `node`.
    pub(crate) fn negation_of(&mut self, node: SubschemaId) -> Result<SchemaId> {
        self.signed(node, true)
    }

    fn signed(&mut self, node: SubschemaId, negated: bool) -> Result<SchemaId> {
        let node = self.follow(node);
        match (&self.schema.nodes[node.index()], negated) {
            (SchemaNode::True, false) | (SchemaNode::False, true) => Ok(TRUE),
            (SchemaNode::False, false) | (SchemaNode::True, true) => Ok(FALSE),
            (SchemaNode::Keywords(_), _) => self.intern(&[LiteralId::new(node, negated)]),
        }
    }

    /// Where references alone lead from `node`.
    pub(super) fn follow(&self, mut node: SubschemaId) -> SubschemaId {
        for _ in 0..MAX_REFERENCES {
            match &self.schema.nodes[node.index()] {
                SchemaNode::Keywords(keywords) if refers_only(keywords) => node = keywords.all_of[0],
                _ => break,
            }
        }
        self.twins.get(node.index()).copied().unwrap_or(node)
    }

    /// The member of a schema that stands for `node`.
    pub(super) fn lit(&self, node: SubschemaId, negated: bool) -> LiteralId {
        LiteralId::new(self.follow(node), negated)
    }

    /// A value equal to `value`.
    pub(super) fn value_schema(&mut self, value: &Value, negated: bool) -> Result<SchemaId> {
        let text = value.to_string();
        let lit = match self.value_atoms.get(&text) {
            Some(&lit) => lit,
            None => {
                let lit = self.new_atom(LiteralAtom::Value(Arc::new(value.clone())));
                self.value_atoms.insert(text, lit);
                lit
            }
        };
        self.intern(&[if negated { lit.negated() } else { lit }])
    }

    /// One of `schemas`.
    pub(super) fn either(&mut self, mut schemas: Vec<SchemaId>) -> Result<SchemaId> {
        schemas.sort_unstable();
        schemas.dedup();
        schemas.retain(|&schema| schema != FALSE);
        if schemas.first() == Some(&TRUE) {
            return Ok(TRUE);
        }
        match *schemas {
            [] => return Ok(FALSE),
            [one] => return Ok(one),
            _ => {}
        }
        let schemas: Arc<[SchemaId]> = schemas.into();
        let lit = match self.either_atoms.get(&schemas) {
            Some(&lit) => lit,
            None => {
                let lit = self.new_atom(LiteralAtom::Either(Arc::clone(&schemas)));
                self.either_atoms.insert(schemas, lit);
                lit
            }
        };
        self.intern(&[lit])
    }

    fn new_atom(&mut self, atom: LiteralAtom) -> LiteralId {
        self.atoms.push(atom);
        LiteralId::new((self.schema.nodes.len() + self.atoms.len() - 1) as u32, false)
    }

    /// All of `schemas` at once.
    pub(crate) fn all(&mut self, schemas: &[SchemaId]) -> Result<SchemaId> {
        let mut lone = TRUE;
        let mut several = false;
        for &schema in schemas {
            match schema {
                FALSE => return Ok(FALSE),
                TRUE => {}
                _ if lone == TRUE || lone == schema => lone = schema,
                _ => several = true,
            }
        }
        if !several {
            return Ok(lone);
        }
        let mut lits: Vec<LiteralId> =
            schemas.iter().flat_map(|&schema| self.schemas[schema.index()].iter().copied()).collect();
        lits.sort_unstable();
        lits.dedup();
        if lits.windows(2).any(|pair| pair[0].negated() == pair[1]) {
            return Ok(FALSE);
        }
        self.intern(&lits)
    }

    fn intern(&mut self, lits: &[LiteralId]) -> Result<SchemaId> {
        if let Some(&schema) = self.schema_ids.get(lits) {
            return Ok(schema);
        }
        if self.schemas.len() > MAX_SCHEMAS + 8 * self.schema.nodes.len() {
            let message = format!("more than {} combinations of subschemas are needed", self.schemas.len());
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(lits[0])));
        }
        let schema = SchemaId::new(self.schemas.len());
        let lits: Arc<[LiteralId]> = lits.into();
        self.schemas.push(Arc::clone(&lits));
        self.schema_ids.insert(lits, schema);
        Ok(schema)
    }

    /// Everything but what fulfils `schema`.
    pub(crate) fn opposite(&mut self, schema: SchemaId) -> Result<SchemaId> {
        match schema {
            TRUE => return Ok(FALSE),
            FALSE => return Ok(TRUE),
            _ => {}
        }
        let lits = Arc::clone(&self.schemas[schema.index()]);
        let others = lits.iter().map(|&lit| self.intern(&[lit.negated()])).collect::<Result<Vec<_>>>()?;
        self.either(others)
    }

    /// The subschema that `schema` is, if it is one alone and not negated.
    pub(crate) fn lone_node(&self, schema: SchemaId) -> Option<SubschemaId> {
        match *self.schemas[schema.index()] {
            [lit] if !lit.is_negated() => self.node_of(lit),
            _ => None,
        }
    }

    /// Whether `schema` may have a short list of values, judged by its keywords alone.
    pub(super) fn may_list(&self, schema: SchemaId) -> bool {
        match self.lone_node(schema).map(|node| &self.schema.nodes[node.index()]) {
            Some(SchemaNode::Keywords(k)) => {
                let applies = k.all_of.len() + k.any_of.len() + k.one_of.len() > 0;
                k.values.is_some() || k.pattern.is_some() || applies
            }
            Some(_) => false,
            None => true,
        }
    }

    /// The subschemas in `schema`; `None` for what is not one.
    pub(crate) fn nodes_of(&self, schema: SchemaId) -> impl Iterator<Item = Option<SubschemaId>> + '_ {
        self.schemas[schema.index()].iter().map(|&lit| self.node_of(lit))
    }

    /// The subschema of a literal's atom; `None` for what is not one.
    fn node_of(&self, lit: LiteralId) -> Option<SubschemaId> {
        Some(SubschemaId(lit.atom())).filter(|node| node.index() < self.schema.nodes.len())
    }

    /// The number of a language.
    pub(super) fn regex_id(&mut self, regex: &Arc<Regex>) -> LanguageId {
        let next = LanguageId::new(self.regexes.len());
        let id = *self.regex_ids.entry(Arc::as_ptr(regex) as usize).or_insert(next);
        if id == next {
            self.regexes.push(Arc::clone(regex));
        }
        id
    }

    /// The language of a number.
    pub(crate) fn regex(&self, id: LanguageId) -> &Arc<Regex> {
        &self.regexes[id.index()]
    }
}

/// Whether `keywords` are one reference and nothing else.
fn refers_only(k: &Keywords) -> bool {
    k.all_of.len() == 1 && *k == Keywords { all_of: k.all_of.clone(), ..Keywords::default() }
}
