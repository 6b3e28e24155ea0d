//! Which values a form of pairs can write, and in which of its ways.

use std::collections::HashSet;

use super::super::normalize::{Facts, SchemaId};
use super::super::pairs::{PairForm, PairMiddle, PythonValues};
use super::super::schema::TypeSet;
use super::array::{ArrayState, NextItem};
use super::lexemes::Spelling;
use super::pair_lexemes::not_with;
use super::rule_table::RuleTable;
use super::transitions::Composite;
use crate::expr::{ExprId, Exprs, NOTHING};
use crate::{Error, ErrorKind, Result};

/// Items of an array that are looked at for what they have in them.
const MAX_PLACES: usize = 256;

impl RuleTable {
    /// Checks that each value that an object of `schema` names can be written.
    pub(super) fn check_pairs(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<()> {
        let form = self.form()?;
        if form.ends_with_key() {
            self.check_named(schema, exprs)?;
        }
        for s in self.pair_objects(schema, exprs)? {
            if form.named_only {
                self.check_others(s.object, exprs)?;
            }
            if form.writes_all(&self.forms.schema) {
                continue;
            }
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

    /// Checks that the schema names every key, and that every array can be written, of all that `schema` has in it.
    fn check_named(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<()> {
        let (mut left, mut seen) = (vec![schema], HashSet::new());
        while let Some(schema) = left.pop() {
            if !seen.insert(schema) {
                continue;
            }
            for composite in self.composites(schema, exprs)?.to_vec() {
                match composite {
                    Composite::Object(s) => {
                        self.check_others(s.object, exprs)?;
                        for key in 0..self.objects[s.object as usize].keys.len() as u32 {
                            left.push(self.named_schema(s.object, key, exprs)?);
                        }
                    }
                    Composite::Array(s) => {
                        self.check_items(&s)?;
                        let (mut at, mut known) = (vec![s], HashSet::from([s]));
                        while let Some(s) = at.pop() {
                            for NextItem { schema, next } in self.items(&s, exprs)? {
                                left.push(schema);
                                // The items after the named ones are alike, however many have come.
                                if known.len() < MAX_PLACES && known.insert(next) {
                                    at.push(next);
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check_others(&mut self, object: u32, exprs: &mut Exprs) -> Result<()> {
        if self.others(object, exprs)?.is_empty() {
            return Ok(());
        }
        let help = "name every argument, or use a form that writes arguments as JSON";
        Err(Error::new(ErrorKind::Constraint, "arguments that have no name in the schema").help(help))
    }

    pub(super) fn check_items(&self, s: &ArrayState) -> Result<()> {
        if self.arrays[s.array as usize].unique.is_none() {
            return Ok(());
        }
        let help = "leave it out, or use a form that writes arrays as JSON";
        Err(Error::new(ErrorKind::Constraint, "uniqueItems of an array that is not written as JSON")
            .help(help))
    }

    /// The ways in which a value of `schema` may be written.
    pub(super) fn ways(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Vec<u8>> {
        let form = self.form()?;
        let mut ways = Vec::new();
        for (way, middle) in form.middles.iter().enumerate() {
            let has_any = self.pair_values(&form, schema, way as u8, exprs)? != [NOTHING; 2]
                || !self.composites_of(schema, middle.set(), exprs)?.is_empty();
            if has_any {
                ways.push(way as u8);
            }
        }
        Ok(ways)
    }

    /// The texts of `schema` as they are, and its values that are no text, array or object, as far as a way has them.
    pub(super) fn pair_values(
        &mut self,
        form: &PairForm,
        schema: SchemaId,
        way: u8,
        exprs: &mut Exprs,
    ) -> Result<[ExprId; 2]> {
        if let Some(&known) = self.pair_values.get(&(schema, way)) {
            return Ok(known);
        }
        let middle = &form.middles[usize::from(way)];
        let types = middle.set();
        let scalars = self.plain_scalars(form, schema, types, exprs)?;
        let text = match types.has(TypeSet::STRING) {
            true => self.raw_text(form, schema, (middle, scalars), exprs)?,
            false => NOTHING,
        };
        self.pair_values.insert((schema, way), [text, scalars]);
        Ok([text, scalars])
    }

    fn raw_text(
        &mut self,
        form: &PairForm,
        schema: SchemaId,
        (middle, scalars): (&PairMiddle, ExprId),
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
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
        let Some(texts) = self.lexemes.pairs else { return Ok(NOTHING) };
        let free = match &middle.excludes {
            None => texts.free,
            Some(excludes) => not_with(excludes, exprs)?,
        };
        let mut parts = vec![exprs.or(&all)?, free];
        if let Some(whole) = texts.whole {
            if scalars != NOTHING || !self.composites_of(schema, middle.set(), exprs)?.is_empty() {
                parts.push(whole);
            }
        }
        let text = exprs.and(&parts)?;
        Ok(if exprs.is_alive(text)? { text } else { NOTHING })
    }

    /// The values of `schema` of these types that are no text, array or object.
    fn plain_scalars(
        &mut self,
        form: &PairForm,
        schema: SchemaId,
        types: TypeSet,
        exprs: &mut Exprs,
    ) -> Result<ExprId> {
        let mut all = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            let mut facts: Facts = facts.clone();
            facts.drop_types(TypeSet(TypeSet::ALL.0 & !types.0 | TypeSet::STRING.0));
            all.push(self.lexemes.scalars(&self.forms, &facts, None, exprs)?);
            if form.python == PythonValues::Words {
                all.push(self.lexemes.words(&facts, exprs)?);
            }
        }
        exprs.or(&all)
    }

    pub(super) fn composites_of(
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
}

/// No text of a value can be written.
fn unwritable(key: &str) -> Error {
    let message = format!("every value of {key:?} contains what ends a value");
    Error::new(ErrorKind::Constraint, message).help("leave these values out, or write arguments as JSON")
}
