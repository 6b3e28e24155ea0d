//! Objects as pairs of keys and values instead of JSON ([`PairForm`]).
//!
//! ```text
//! Pairs(object) --<parameter=key--> Middle(schema) -->--> Pair(schema, way) --text </parameter>-------------> Pairs ...
//!                                                                           --value--> PairEnd --</parameter>--> Pairs ...
//! ```
//!
//! Which keys may come, and whether the object can be completed, is the same as for JSON. The naive version is the choice of
//! all pairs in all orders (`tests/it/pairs.rs`).

use std::sync::Arc;

use super::super::normalize::{Facts, ScalarId, SchemaId};
use super::super::pairs::PairForm;
use super::super::schema::TypeSet;
use super::array::NextItem;
use super::lexemes::Spelling;
use super::object::ObjectState;
use super::rule_table::RuleTable;
use super::transitions::Composite;
use super::{JsonState, JsonStates, END};
use crate::earley::{Edge, LexemeTarget, StateEdges, StateId};
use crate::endings::free;
use crate::expr::{Encoding, ExprId, Exprs, EMPTY, NOTHING};
use crate::{Error, ErrorKind, Result};

/// Characters that a key cannot have.
const RESERVED: [char; 6] = ['<', '>', '"', '\'', '/', '\\'];
/// What a key is that the schema does not name.
const NAME: &str = "[a-zA-Z_][a-zA-Z0-9_]*";

/// A pair after its key, or an item of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PairValue {
    pub schema: SchemaId,
    /// What follows the whole pair.
    pub next: StateId,
    /// Whether it is an item.
    pub is_item: bool,
}

impl RuleTable {
    fn form(&self) -> Result<Arc<PairForm>> {
        let form = self.forms.schema.options.pairs.clone();
        form.ok_or_else(|| Error::new(ErrorKind::Constraint, "the schema has no form of pairs"))
    }

    /// The edges of a whole object as pairs.
    pub(super) fn pairs_document(
        &mut self,
        schema: SchemaId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let back = states.id(self.number, JsonState::Margin)?;
        let mut edges = Vec::new();
        for s in self.pair_objects(schema, exprs)? {
            if self.pair_keys(&s, exprs)? != NOTHING {
                let callee = states.id(self.number, JsonState::Pairs(s))?;
                edges.push(Edge::Call { callee, back });
            }
        }
        if self.pairs_may_be_empty(schema, exprs)? {
            edges.extend(self.margin(END));
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Whether no pair at all is an object of `schema`.
    pub(super) fn pairs_may_be_empty(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        Ok(self.pair_objects(schema, exprs)?.iter().any(|s| self.object_may_end(s)))
    }

    /// Checks that each value that an object of `schema` names can be written.
    pub(super) fn check_pairs(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<()> {
        for s in self.pair_objects(schema, exprs)? {
            for key in 0..self.objects[s.object as usize].keys.len() as u32 {
                let value = self.named_schema(s.object, key, exprs)?;
                let id = self.objects[s.object as usize].keys[key as usize].id;
                self.written_key(id)?;
                if self.alive(value, exprs)? && self.ways(value, exprs)?.is_empty() {
                    return Err(unwritable(self.forms.texts.text(id)));
                }
            }
        }
        Ok(())
    }

    fn pair_objects(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Vec<ObjectState>> {
        let object = |composite: &Composite| match composite {
            Composite::Object(s) => Some(*s),
            Composite::Array(_) => None,
        };
        Ok(self.composites(schema, exprs)?.iter().filter_map(object).collect())
    }

    /// The edges of a state of pairs.
    pub(super) fn pair_edges(
        &mut self,
        state: &JsonState,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let form = self.form()?;
        let mut edges = Vec::new();
        let mut accepting = false;
        match *state {
            JsonState::Pairs(s) => {
                accepting = !s.first && self.object_may_end(&s);
                let keys = self.pair_keys(&s, exprs)?;
                if keys != NOTHING {
                    edges.push(Edge::Lexeme { expr: keys, to: LexemeTarget::ByTag });
                }
            }
            JsonState::Items(s, begun) => {
                accepting = begun && self.array_may_end(&s);
                let mut all = Vec::new();
                for NextItem { schema, next } in self.items(&s, exprs)? {
                    let next = states.id(self.number, JsonState::Items(next, true))?;
                    all.push(
                        states
                            .id(self.number, JsonState::Middle(PairValue { schema, next, is_item: true }))?,
                    );
                }
                if !all.is_empty() {
                    let to = LexemeTarget::State(self.either(all, states)?);
                    let begin = form.item.as_deref().unwrap_or_default();
                    edges.push(Edge::Lexeme { expr: exprs.bytes(begin.as_bytes())?, to });
                }
            }
            JsonState::Middle(value) => {
                for way in self.ways(value.schema, exprs)? {
                    let to = states.id(self.number, JsonState::Pair(value, way))?;
                    let expr = self.middle(&form, way, value.is_item, exprs)?;
                    edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(to) });
                }
            }
            JsonState::Pair(value, way) => edges = self.value_edges(&form, value, way, states, exprs)?,
            JsonState::Only(composite) => {
                let mut edge = self.bracket(composite, states, exprs)?;
                if let Edge::Lexeme { expr, .. } = &mut edge {
                    *expr = exprs.concat(&[self.lexemes.open, *expr])?;
                }
                edges.push(edge);
            }
            JsonState::PairEnd(next) => {
                let end = exprs.bytes(form.end.as_bytes())?;
                let expr = exprs.concat(&[self.lexemes.close, end])?;
                edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(next) });
            }
            _ => {}
        }
        Ok(StateEdges { accepting, edges })
    }

    /// The text between a key and its value.
    fn middle(&mut self, form: &PairForm, way: u8, is_item: bool, exprs: &mut Exprs) -> Result<ExprId> {
        let mut made = EMPTY;
        for (place, part) in form.middles[usize::from(way)].parts.iter().enumerate() {
            let cut = usize::from(is_item && place == 0);
            let part = exprs.bytes(&part.as_bytes()[cut..])?;
            made = if place == 0 { part } else { exprs.concat(&[made, self.lexemes.open, part])? };
        }
        Ok(made)
    }

    /// The value of a pair after the middle of a way, and its end.
    fn value_edges(
        &mut self,
        form: &PairForm,
        value: PairValue,
        way: u8,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        let middle = &form.middles[usize::from(way)];
        let end = states.id(self.number, JsonState::PairEnd(value.next))?;
        let text = self.raw_text(form, value.schema, middle.set(), exprs)?;
        if text != NOTHING {
            edges.push(Edge::Lexeme { expr: text, to: LexemeTarget::State(value.next) });
        }
        let scalars = self.plain_scalars(value.schema, middle.set(), exprs)?;
        if scalars != NOTHING {
            let expr = exprs.concat(&[self.lexemes.open, scalars])?;
            edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(end) });
        }
        for composite in self.composites_of(value.schema, middle.set(), exprs)? {
            let (callee, may_be_empty) = match composite {
                composite if !middle.is_nested => (JsonState::Only(composite), false),
                Composite::Object(s) => (JsonState::Pairs(s), self.object_may_end(&s)),
                Composite::Array(s) => {
                    if self.arrays[s.array as usize].unique.is_some() {
                        let message = "uniqueItems of an array that is not written as JSON";
                        let help = "leave it out, or use a form that writes arrays as JSON";
                        return Err(Error::new(ErrorKind::Constraint, message).help(help));
                    }
                    (JsonState::Items(s, false), self.array_may_end(&s))
                }
            };
            let callee = states.id(self.number, callee)?;
            edges.push(Edge::Call { callee, back: end });
            if may_be_empty {
                edges.push(Edge::Jump { to: end });
            }
        }
        Ok(edges)
    }

    /// The ways in which a value of `schema` may be written.
    fn ways(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Vec<u8>> {
        let form = self.form()?;
        let mut ways = Vec::new();
        for (way, middle) in form.middles.iter().enumerate() {
            let has_any = self.raw_text(&form, schema, middle.set(), exprs)? != NOTHING
                || self.plain_scalars(schema, middle.set(), exprs)? != NOTHING
                || !self.composites_of(schema, middle.set(), exprs)?.is_empty();
            if has_any {
                ways.push(way as u8);
            }
        }
        Ok(ways)
    }

    /// The texts of `schema` as they are, with the end of the pair.
    fn raw_text(
        &mut self,
        form: &PairForm,
        schema: SchemaId,
        types: TypeSet,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        if !types.has(TypeSet::STRING) {
            return Ok(NOTHING);
        }
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            if !facts.any_of(TypeSet::STRING) {
                continue;
            }
            let string = facts.string.as_deref();
            let chars = self.lexemes.chars(&self.forms, string, Spelling::Raw, exprs)?;
            all.push(match form.is_loose && string.is_some() {
                true => exprs.concat(&[self.lexemes.open, chars, self.lexemes.close])?,
                false => chars,
            });
        }
        let any = exprs.or(&all)?;
        let without_end = exprs.compile(&free(&[&form.end], None), Encoding::Utf8)?;
        let text = exprs.and(&[any, without_end])?;
        if !exprs.is_alive(text)? {
            return Ok(NOTHING);
        }
        let end = exprs.bytes(form.end.as_bytes())?;
        exprs.concat(&[text, end])
    }

    /// The values of `schema` of these types that are no text, array or object.
    fn plain_scalars(&mut self, schema: SchemaId, types: TypeSet, exprs: &mut Exprs) -> Result<ExprId> {
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            let mut facts: Facts = facts.clone();
            facts.drop_types(TypeSet(TypeSet::ALL.0 & !types.0 | TypeSet::STRING.0));
            all.push(self.lexemes.scalars(&self.forms, &facts, None, exprs)?);
        }
        exprs.or(&all)
    }

    fn composites_of(
        &mut self,
        schema: SchemaId,
        types: TypeSet,
        exprs: &mut Exprs,
    ) -> Result<Vec<Composite>> {
        let all = self.composites(schema, exprs)?;
        let wanted = |composite: &&Composite| match composite {
            Composite::Object(_) => types.has(TypeSet::OBJECT),
            Composite::Array(_) => types.has(TypeSet::ARRAY),
        };
        Ok(all.iter().filter(wanted).copied().collect())
    }

    /// The keys that may come, each with its tag.
    fn pair_keys(&mut self, s: &ObjectState, exprs: &mut Exprs) -> Result<ExprId> {
        let form = self.form()?;
        let mut named = Vec::new();
        for key in self.named_next(s) {
            if self.may_move(s, key, exprs)? {
                let id = self.objects[s.object as usize].keys[key as usize].id;
                let tag = self.key_tags.tag(id, self.forms.texts.text(id));
                named.push((self.written_key(id)?, exprs.tag(tag)?));
            }
        }
        let texts: Vec<_> = named.iter().map(|(text, tag)| (text.as_bytes(), *tag)).collect();
        let mut keys = vec![exprs.literals(&texts)?];
        if self.others_next(s) {
            let count = self.objects[s.object as usize].keys.len() as u32;
            let name = crate::pattern::parse(NAME, &crate::pattern::PatternOptions::WHOLE)?;
            let name = exprs.compile(&name, Encoding::Utf8)?;
            for (place, other) in self.others(s.object, exprs)?.iter().enumerate() {
                let key = count + place as u32;
                if self.may_move(s, key, exprs)? {
                    let chars = exprs.and(&[other.chars, name])?;
                    let tag = exprs.tag(self.other_key_tag(s.object, key))?;
                    keys.push(exprs.concat(&[chars, tag])?);
                }
            }
        }
        let keys = exprs.or(&keys)?;
        let begin = exprs.bytes(form.begin.as_bytes())?;
        let all = exprs.concat(&[self.lexemes.open, begin, keys])?;
        Ok(if exprs.is_alive(all)? { all } else { NOTHING })
    }

    /// A key as the form writes it.
    fn written_key(&self, id: ScalarId) -> Result<String> {
        let (text, form) = (self.forms.texts.text(id), self.form()?);
        if form.has_entities && !text.is_empty() && !text.contains('\0') {
            let text = text.replace('&', "&amp;").replace('"', "&quot;");
            return Ok(text.replace('<', "&lt;").replace('>', "&gt;"));
        }
        if form.has_entities
            || text.is_empty()
            || text.contains(|c: char| c.is_whitespace() || RESERVED.contains(&c))
        {
            let message = format!("the key {:?} cannot be written without quotes", &**text);
            return Err(Error::new(ErrorKind::Constraint, message).help("name it otherwise"));
        }
        Ok(text.to_string())
    }

    /// The state after a key: its value in each way, then the other pairs.
    pub(super) fn pair_of(
        &mut self,
        s: &ObjectState,
        key: u32,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let mut all = Vec::new();
        for way in self.moves(s, key, exprs)? {
            let next = states.id(self.number, JsonState::Pairs(way.next))?;
            let value = PairValue { schema: way.schema, next, is_item: false };
            all.push(states.id(self.number, JsonState::Middle(value))?);
        }
        self.either(all, states)
    }
}

/// No text of a value can be written.
fn unwritable(key: &str) -> Error {
    let message = format!("every value of {key:?} contains what ends a value");
    Error::new(ErrorKind::Constraint, message).help("leave these values out, or write arguments as JSON")
}
