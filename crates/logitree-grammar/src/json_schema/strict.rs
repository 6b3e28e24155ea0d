//! Closes the objects and arrays of a schema that say what they have but not whether they may have more, as XGrammar's strict
//! mode does: `{"properties": {"a": true}}` then has no other key than "a".

use serde_json::{Map, Value};

/// Keywords whose value is a schema, or has schemas as values or items.
const VALUES: [&str; 9] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "$defs",
];
/// Keywords whose schemas apply to the same value.
const SAME: [&str; 7] = ["allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies"];
/// Most references that are followed from one to the next.
const MAX_FOLLOWED: u32 = 64;

/// The schema with all objects and arrays closed that say what they have. Schemas under `not`, `if` and `contains` stay as they
/// are: there a narrower schema allows more.
///
/// An object that is described in several places, by `allOf` say, is closed as a whole, by `unevaluatedProperties`; in a draft
/// that does not know that keyword such objects are left open.
#[must_use]
pub fn strict(schema: &Value) -> Value {
    let is_old = schema.get("$schema").and_then(Value::as_str).is_some_and(|uri| uri.contains("draft-0"));
    let is_joined = joins(schema);
    let strict = Strict { root: schema, is_joined, is_left: is_old && is_joined };
    strict.closed(schema, true)
}

struct Strict<'s> {
    root: &'s Value,
    /// Whether some value is described in several places.
    is_joined: bool,
    /// Whether such values are left open.
    is_left: bool,
}

impl Strict<'_> {
    /// `is_value`: whether nothing else describes the same value.
    fn closed(&self, schema: &Value, is_value: bool) -> Value {
        let Value::Object(keywords) = schema else { return schema.clone() };
        let mut made = Map::new();
        for (keyword, inner) in keywords {
            let same = SAME.contains(&keyword.as_str());
            let known = same || VALUES.contains(&keyword.as_str()) || keyword == "definitions";
            // What definitions describe is closed where they are used, if that may be together with others.
            let is_value = match keyword.as_str() {
                "$defs" | "definitions" => !self.is_joined,
                _ => !same || !self.is_joined,
            };
            let inner = match inner {
                Value::Object(_) if known && is_map(keyword) => self.each(inner, is_value),
                Value::Array(items) if known => {
                    Value::Array(items.iter().map(|item| self.closed(item, is_value)).collect())
                }
                inner if known => self.closed(inner, is_value),
                inner => inner.clone(),
            };
            made.insert(keyword.clone(), inner);
        }
        if !is_value || self.is_left {
            return Value::Object(made);
        }
        let has = |keyword: &str| keywords.contains_key(keyword);
        if !has("additionalProperties") && !has("unevaluatedProperties") && self.says(schema, &OF_OBJECTS, 0)
        {
            let keyword = if self.is_joined { "unevaluatedProperties" } else { "additionalProperties" };
            made.insert(keyword.into(), Value::Bool(false));
        }
        if !has("items") && !has("unevaluatedItems") && self.says(schema, &OF_ARRAYS, 0) {
            let keyword = if self.is_joined { "unevaluatedItems" } else { "items" };
            made.insert(keyword.into(), Value::Bool(false));
        }
        Value::Object(made)
    }

    fn each(&self, map: &Value, is_value: bool) -> Value {
        let Value::Object(map) = map else { return map.clone() };
        Value::Object(map.iter().map(|(name, inner)| (name.clone(), self.closed(inner, is_value))).collect())
    }

    /// Whether a schema, or one that applies to the same value, has one of these keywords.
    fn says(&self, schema: &Value, wanted: &[&str], followed: u32) -> bool {
        let Value::Object(keywords) = schema else { return false };
        if wanted.iter().any(|keyword| keywords.contains_key(*keyword)) {
            return true;
        }
        if !self.is_joined || followed == MAX_FOLLOWED {
            return false;
        }
        let referred = keywords.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        let referred = referred.and_then(|pointer| self.root.pointer(pointer));
        let same = SAME.iter().filter_map(|keyword| keywords.get(*keyword)).flat_map(inner);
        same.chain(referred).any(|inner| self.says(inner, wanted, followed + 1))
    }
}

const OF_OBJECTS: [&str; 2] = ["properties", "patternProperties"];
const OF_ARRAYS: [&str; 1] = ["prefixItems"];

/// Whether a keyword's value has schemas by name.
fn is_map(keyword: &str) -> bool {
    matches!(
        keyword,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies"
    )
}

/// The schema with `change` made of the keywords of each schema in it, inner ones first. Schemas under `not`, `if` and
/// `contains` stay as they are: there a narrower schema allows more.
pub fn changed(schema: &Value, change: &impl Fn(Map<String, Value>) -> Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut made = Map::new();
    for (keyword, inner) in keywords {
        let known = SAME.contains(&&**keyword) || VALUES.contains(&&**keyword) || keyword == "definitions";
        let one = |inner: &Value| changed(inner, change);
        let inner = match inner {
            Value::Object(map) if known && is_map(keyword) => {
                Value::Object(map.iter().map(|(name, inner)| (name.clone(), one(inner))).collect())
            }
            Value::Array(items) if known => Value::Array(items.iter().map(one).collect()),
            inner if known => one(inner),
            inner => inner.clone(),
        };
        made.insert(keyword.clone(), inner);
    }
    change(made)
}

/// The schemas in a list or by name, or the schema itself.
fn inner(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) if map.values().all(Value::is_object) => map.values().collect(),
        other => vec![other],
    }
}

/// Whether some value is described in several places.
fn joins(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(joins),
        Value::Object(keywords) => {
            let has = |keyword: &str| keywords.contains_key(keyword);
            let ways =
                ["anyOf", "oneOf", "$ref", "$dynamicRef", "properties", "patternProperties", "prefixItems"];
            let all = ["allOf", "if", "dependentSchemas", "dependencies"];
            all.iter().any(|&keyword| has(keyword))
                || ways.iter().filter(|&&keyword| has(keyword)).count() > 1
                || keywords.values().any(joins)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_that_say_what_they_have_have_no_more() {
        for (given, expected) in [
            (json!({"type": "object"}), json!({"type": "object"})),
            (json!(true), json!(true)),
            (
                json!({"properties": {"a": {}}}),
                json!({"properties": {"a": {}}, "additionalProperties": false}),
            ),
            (
                json!({"properties": {"a": {}}, "additionalProperties": {"properties": {"b": {}}}}),
                json!({"properties": {"a": {}}, "additionalProperties": {"properties": {"b": {}}, "additionalProperties": false}}),
            ),
            (json!({"prefixItems": [{}]}), json!({"prefixItems": [{}], "items": false})),
            (json!({"not": {"properties": {"a": {}}}}), json!({"not": {"properties": {"a": {}}}})),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {}}}}}),
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {}}, "additionalProperties": false}}}),
            ),
            (
                json!({"anyOf": [{"properties": {"a": {}}}, {"type": "string"}]}),
                json!({"anyOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"type": "string"}]}),
            ),
            (
                json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
                json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}], "unevaluatedProperties": false}),
            ),
            (
                json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"b": {}}}}}),
                json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"b": {}}}}, "unevaluatedProperties": false}),
            ),
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"properties": {"a": {}}}]}),
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"properties": {"a": {}}}]}),
            ),
        ] {
            assert_eq!(strict(&given), expected, "{given}");
        }
    }
}
