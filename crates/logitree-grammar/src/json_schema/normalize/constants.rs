//! Normalises `enum`, `const` and their negation; an array or object is described part by part.

use std::sync::Arc;

use serde_json::Value;

use super::super::schema::TypeSet;
use super::strings::Scalar;
use super::{
    ArrayFacts, Exists, Facts, KeyClass, LiteralId, NormalForms, NumberFacts, ObjectFacts, PropertyRules,
    PropertyRulesId, ScalarId, StringFacts, FALSE, MAX_ALTERNATIVES, TRUE,
};
use crate::expr::Exprs;
use crate::{Error, ErrorKind, Result};

/// The single values of a list, by type.
#[derive(Default)]
struct SingleValues {
    types: u8,
    bools: u8,
    numbers: Vec<ScalarId>,
    strings: Vec<ScalarId>,
}

/// How many arrays and objects are listed.
pub(crate) fn composites(values: &[Value]) -> usize {
    values.iter().filter(|value| value.is_array() || value.is_object()).count()
}

impl NormalForms {
    /// A value equal to one of `values`, which `lit` lists.
    pub(super) fn constants(&mut self, values: &[Value], lit: LiteralId) -> Result<Vec<Facts>> {
        let composites = composites(values);
        if composites > MAX_ALTERNATIVES {
            let message =
                format!("an enum has {composites} arrays and objects, {MAX_ALTERNATIVES} is the most");
            let help = "list fewer, or describe their items and properties each by an enum of its own";
            let place = format!("{}/enum", self.place(lit));
            return Err(Error::new(ErrorKind::Limit, message).at(place).help(help));
        }
        let singles = self.singles(values);
        let mut facts = Facts::of(TypeSet(singles.types));
        facts.bools = singles.bools;
        if !singles.numbers.is_empty() {
            let only = Some(singles.numbers.into());
            facts.number = Some(Arc::new(NumberFacts { only, ..NumberFacts::default() }));
        }
        if !singles.strings.is_empty() {
            let only = Some(singles.strings.into());
            facts.string = Some(Arc::new(StringFacts { only, ..StringFacts::default() }));
        }
        let mut found = if facts.types.0 == 0 { Vec::new() } else { vec![facts] };
        for value in values {
            let more = match value {
                Value::Array(items) => Facts::array(self.constant_array(items)?),
                Value::Object(_) => Facts::object(self.constant_object(value)?),
                _ => continue,
            };
            self.union(&mut found, &[more], lit)?;
        }
        Ok(found)
    }

    /// A value equal to none of `values`.
    pub(super) fn not_constants(
        &mut self,
        values: &[Value],
        lit: LiteralId,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let singles = self.singles(values);
        let mut facts = Facts::of(TypeSet::ALL);
        facts.bools &= !singles.bools;
        let mut gone = singles.types & TypeSet::NULL.0;
        if facts.bools == 0 {
            gone |= TypeSet::BOOLEAN.0;
        }
        facts.drop_types(TypeSet(gone));
        if !singles.numbers.is_empty() {
            facts.number = Some(Arc::new(NumberFacts { not: singles.numbers, ..NumberFacts::default() }));
        }
        if !singles.strings.is_empty() {
            facts.string = Some(Arc::new(StringFacts { not: singles.strings, ..StringFacts::default() }));
        }
        let mut found = vec![facts];
        for value in values {
            let other = match value {
                Value::Array(items) => self.not_array(items)?,
                Value::Object(_) => self.not_object(value)?,
                _ => continue,
            };
            found = self.product(&found, &other, lit, exprs)?;
        }
        Ok(found)
    }

    fn singles(&mut self, values: &[Value]) -> SingleValues {
        let mut singles = SingleValues::default();
        for value in values {
            singles.types |= match value {
                Value::Null => TypeSet::NULL.0,
                Value::Bool(bool) => {
                    singles.bools |= 1 << u8::from(*bool);
                    TypeSet::BOOLEAN.0
                }
                Value::Number(number) => {
                    let id = self.texts.number(number);
                    singles.numbers.push(id);
                    self.number_type(id).0
                }
                Value::String(text) => {
                    singles.strings.push(self.texts.string(text));
                    TypeSet::STRING.0
                }
                Value::Array(_) | Value::Object(_) => 0,
            };
        }
        for list in [&mut singles.numbers, &mut singles.strings] {
            list.sort_unstable();
            list.dedup();
        }
        singles
    }

    /// Whether a number has a fraction, as a type.
    pub(super) fn number_type(&self, id: ScalarId) -> TypeSet {
        match self.texts.get(id) {
            Scalar::Number(number) if number.is_integer() => TypeSet::INTEGER,
            _ => TypeSet::FRACTION,
        }
    }

    fn constant_array(&mut self, items: &[Value]) -> Result<ArrayFacts> {
        let prefix = items.iter().map(|item| self.value_schema(item, false)).collect::<Result<_>>()?;
        let len = items.len() as u64;
        Ok(ArrayFacts { prefix, rest: FALSE, min: len, max: Some(len), ..ArrayFacts::any() })
    }

    fn not_array(&mut self, items: &[Value]) -> Result<Vec<Facts>> {
        let len = items.len() as u64;
        let mut found = vec![Facts::of(TypeSet(TypeSet::ALL.0 & !TypeSet::ARRAY.0))];
        if len > 0 {
            found.push(Facts::array(ArrayFacts { max: Some(len - 1), ..ArrayFacts::any() }));
        }
        found.push(Facts::array(ArrayFacts { min: len + 1, ..ArrayFacts::any() }));
        for (place, item) in items.iter().enumerate() {
            let mut prefix = vec![TRUE; place];
            prefix.push(self.value_schema(item, true)?);
            found.push(Facts::array(ArrayFacts { prefix, min: place as u64 + 1, ..ArrayFacts::any() }));
        }
        Ok(found)
    }

    fn constant_object(&mut self, value: &Value) -> Result<ObjectFacts> {
        let part = self.constant_part(value)?;
        let mut required: Vec<_> = self.parts[part.index()].named.iter().map(|&(key, _)| key).collect();
        required.sort_unstable();
        Ok(ObjectFacts { parts: vec![part], required, ..ObjectFacts::any() })
    }

    fn not_object(&mut self, value: &Value) -> Result<Vec<Facts>> {
        let part = self.constant_part(value)?;
        let mut found = vec![Facts::of(TypeSet(TypeSet::ALL.0 & !TypeSet::OBJECT.0))];
        for (key, item) in value.as_object().into_iter().flatten() {
            let key = self.texts.string(key);
            found.push(Facts::object(ObjectFacts { keys: vec![(key, FALSE)], ..ObjectFacts::any() }));
            let keys = vec![(key, self.value_schema(item, true)?)];
            found.push(Facts::object(ObjectFacts { keys, required: vec![key], ..ObjectFacts::any() }));
        }
        let exists = vec![Exists { keys: KeyClass::Uncovered(part), schema: TRUE }];
        found.push(Facts::object(ObjectFacts { exists, ..ObjectFacts::any() }));
        Ok(found)
    }

    fn constant_part(&mut self, value: &Value) -> Result<PropertyRulesId> {
        let mut part = PropertyRules { additional: Some(FALSE), ..PropertyRules::default() };
        for (key, item) in value.as_object().into_iter().flatten() {
            let schema = self.value_schema(item, false)?;
            part.named.push((self.texts.string(key), schema));
        }
        Ok(self.part_id(part))
    }
}
