//! Schemas whose tables can wait have a value and nothing to refuse: found at once, it is the same.

use std::sync::Arc;

use super::random::document;
use super::{from_value, Dice};
use crate::expr::Exprs;
use crate::json_schema::pairs::PAIR_FORMS;
use crate::json_schema::{JsonRules, KeyOrder, PairForm, SchemaOptions};
use serde_json::{json, Map, Value};

/// Simple schemas, and a few that are not.
fn simple(dice: &mut Dice, depth: usize) -> Value {
    match dice.next(if depth == 0 { 6 } else { 9 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": *dice.pick(&["integer", "number", "boolean", "null", "array", "object"])}),
        2 => json!({"type": ["string", "null"], "description": "a text"}),
        3 => json!({"type": "string", "enum": *dice.pick(&[&["a", "b c"][..], &["</parameter>"], &[""]])}),
        4 => {
            dice.pick(&[json!(true), json!(false), json!({}), json!({"type": "string", "enum": [1]})]).clone()
        }
        5 => dice.pick(&[json!({"type": "string", "minLength": 2}), json!({"minimum": 2})]).clone(),
        6 => json!({"type": "array", "items": simple(dice, depth - 1)}),
        _ => object(dice, depth - 1),
    }
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let names = ["a", "b_1", "c d", "é"];
    let named: Vec<&str> = names.into_iter().filter(|_| !dice.once_in(2)).collect();
    let properties: Map<String, Value> =
        named.iter().map(|name| ((*name).to_string(), simple(dice, depth))).collect();
    let mut required: Vec<&str> = named.into_iter().filter(|_| dice.once_in(2)).collect();
    if dice.once_in(12) {
        required.push("other");
    }
    let mut made = json!({"type": "object", "properties": properties, "required": required});
    if !dice.once_in(3) {
        made["additionalProperties"] = json!(false);
    }
    made
}

#[test]
fn what_can_wait_has_a_value() {
    let styles: Vec<&str> =
        PAIR_FORMS.split([',', ' ']).filter(|name| PairForm::named(name).is_some()).collect();
    assert!(styles.len() > 4, "{styles:?}");
    let (mut waiting, mut others) = (0, 0);
    for seed in 0..4_000 {
        let mut dice = Dice(seed);
        let schema = match dice.next(4) {
            0 => document(&mut dice),
            1 => simple(&mut dice, 2),
            _ => object(&mut dice, 2),
        };
        let pairs = match dice.next(3) {
            0 => None,
            _ => PairForm::named(dice.pick::<&str>(&styles[..])).map(Arc::new),
        };
        let order = if dice.once_in(2) { KeyOrder::Any } else { KeyOrder::Schema };
        let options = SchemaOptions { pairs, order, ..SchemaOptions::default() };
        let Ok(loaded) = from_value(&schema, &options, &[]) else { continue };
        let loaded = Arc::new(loaded);
        match JsonRules::both_ways(&loaded, &mut Exprs::new(1 << 20)) {
            (true, found) => {
                assert_eq!(
                    found.map_err(|error| error.to_string()),
                    Ok((true, false)),
                    "{schema} {options:?}"
                );
                waiting += 1;
            }
            (false, _) => others += 1,
        }
    }
    assert!(waiting > 400 && others > 400, "{waiting} {others}");
}
