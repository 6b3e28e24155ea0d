//! Leaves out the values that a schema names and that contain an excluded text, as XGrammar's `excludes` does.

use serde_json::{Map, Value};

use super::strict::changed;

/// The schema without those of its `enum` and `const` values whose texts contain one of `excludes`, as they are or as JSON
/// writes them.
#[must_use]
pub fn without_texts(schema: &Value, excludes: &[String]) -> Value {
    changed(schema, &|mut keywords: Map<String, Value>| {
        if keywords.get("const").is_some_and(|value| contains(value, excludes)) {
            return Value::Bool(false);
        }
        if let Some(Value::Array(items)) = keywords.get_mut("enum") {
            items.retain(|item| !contains(item, excludes));
            if items.is_empty() {
                return Value::Bool(false);
            }
        }
        Value::Object(keywords)
    })
}

/// Whether a text in the value contains one of `excludes`.
fn contains(value: &Value, excludes: &[String]) -> bool {
    let has = |text: &str| {
        let written = Value::String(text.into()).to_string();
        excludes
            .iter()
            .any(|excluded| text.contains(&**excluded) || written[1..written.len() - 1].contains(&**excluded))
    };
    match value {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(|item| contains(item, excludes)),
        Value::Object(map) => map.iter().any(|(key, inner)| has(key) || contains(inner, excludes)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn named_values_with_excluded_texts_are_left_out() {
        let excludes = ["<b".to_string(), "\\n".to_string()];
        for (given, expected) in [
            (json!({"enum": ["a<b", "c", 1]}), json!({"enum": ["c", 1]})),
            (json!({"const": "x\n"}), json!(false)),
            (json!({"enum": [["<b"], {"<b": 1}]}), json!(false)),
            (json!({"properties": {"enum": {"const": "<b"}}}), json!({"properties": {"enum": false}})),
            (json!({"anyOf": [{"const": "<b"}, {"const": "b"}]}), json!({"anyOf": [false, {"const": "b"}]})),
            (json!({"not": {"const": "<b"}}), json!({"not": {"const": "<b"}})),
            (json!({"items": {"enum": ["<b", 2]}}), json!({"items": {"enum": [2]}})),
        ] {
            assert_eq!(without_texts(&given, &excludes), expected, "{given}");
        }
    }
}
