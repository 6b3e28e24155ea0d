//! Schemas of many parts, and small ones of the same kinds against the validator.

use std::sync::Arc;

use super::random::{Case, KEYS};
use super::{accepts, compact, from_value, machine, Dice};
use crate::earley::Machine;
use crate::json_schema::KeyOrder;
use crate::{Error, ErrorKind};
use serde_json::{json, Map, Value};

fn try_run(schema: &Value, order: KeyOrder) -> crate::Result<Option<Machine>> {
    machine(&Arc::new(from_value(schema, &compact(order), &[])?))
}

/// In both orders: these values are accepted, and those are not.
#[track_caller]
fn check(schema: &Value, good: &[Value], bad: &[Value]) {
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let mut machine = try_run(schema, order).unwrap();
        for (values, wanted) in [(good, true), (bad, false)] {
            for value in values {
                let text = value.to_string();
                assert_eq!(accepts(&mut machine, &text), wanted, "{order:?}: {:.200}", text);
            }
        }
    }
}

#[track_caller]
fn limit(schema: &Value) -> Error {
    let error = try_run(schema, KeyOrder::Schema).err().expect("a limit");
    assert_eq!(error.kind, ErrorKind::Limit, "{error}");
    assert!(!error.help.is_empty());
    error
}

fn wrapped(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!("x"), |inner, _| wrap(inner))
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({"type": "string"}), |inner, _| wrap(inner))
}

#[test]
fn objects_are_nested_deeply() {
    let value = |depth| wrapped(depth, |inner| json!({"a": inner}));
    let depth = 240;
    for schema in [
        nested(depth, |inner| json!({"type": "object", "properties": {"a": inner}})),
        nested(depth, |inner| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]})),
        nested(depth, |inner| {
            let object = json!({"type": "object", "properties": {"a": inner}, "required": ["a"]});
            json!({"anyOf": [object, {"type": "object", "maxProperties": 0}]})
        }),
        nested(
            depth,
            |inner| json!({"type": "object", "properties": {"a": inner}, "if": {"required": ["a"]}, "then": {"minProperties": 1}}),
        ),
    ] {
        check(&schema, &[value(depth)], &[wrapped(depth, |inner| json!({"a": [inner]}))]);
    }
    // Chains of references are as deep as one likes: an error then, and no overflow of the stack.
    let chain = |depth: usize| {
        let next = |n| json!({"type": "array", "minItems": 1, "items": {"$ref": format!("#/$defs/d{n}")}});
        let mut defs: Map<String, Value> = (0..depth).map(|n| (format!("d{n}"), next(n + 1))).collect();
        defs.insert(format!("d{depth}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    assert!(try_run(&chain(3_000), KeyOrder::Schema).unwrap().is_some());
    assert!(limit(&chain(6_000)).message.contains("nested"));
}

#[test]
fn keys_may_need_each_other() {
    let key = |n: usize| format!("k{n:02}");
    let keys: Map<String, Value> = (0..60).map(|n| (key(n), json!({"type": "integer"}))).collect();
    let all: Map<String, Value> = (0..60).map(|n| (key(n), json!(1))).collect();
    let only = |names: &[usize]| -> Value {
        names.iter().map(|&n| (key(n), json!(1))).collect::<Map<_, _>>().into()
    };
    let schema = |needs: &dyn Fn(usize) -> Vec<usize>| {
        let needs: Map<String, Value> =
            (0..60).map(|n| (key(n), json!(needs(n).into_iter().map(key).collect::<Vec<_>>()))).collect();
        json!({"properties": keys, "additionalProperties": false, "dependentRequired": needs, "type": "object"})
    };
    // Round and round, to the one before, to the one after, and each to all.
    check(
        &schema(&|n| vec![(n * 7 + 3) % 60]),
        &[json!({}), all.clone().into(), only(&[5, 26, 29, 38])],
        &[only(&[1])],
    );
    check(
        &schema(&|n| (0..n.min(1)).map(|_| n - 1).collect()),
        &[all.clone().into(), only(&[0, 1, 2])],
        &[only(&[1, 2])],
    );
    check(
        &schema(&|n| vec![(n + 1).min(59)]),
        &[all.clone().into(), only(&[58, 59])],
        &[only(&[0]), only(&[58])],
    );
    check(&schema(&|_| (0..60).collect()), &[json!({}), all.into()], &[only(&[0]), only(&[0, 59])]);
}

#[test]
fn many_contains() {
    let contains = |item: &dyn Fn(usize) -> Value| -> Vec<Value> {
        (0..24).map(|n| json!({"contains": item(n)})).collect()
    };
    let texts: Vec<String> = (0..24).map(|n| format!("c{n}")).collect();
    let schema = json!({"type": "array", "allOf": contains(&|n| json!({"const": texts[n]}))});
    let twice: Vec<&String> = texts.iter().rev().chain(&texts).collect();
    check(&schema, &[json!(texts), json!(twice)], &[json!(texts[1..]), json!([])]);
    let mut full = schema.clone();
    full["maxItems"] = json!(24);
    check(&full, &[json!(texts)], &[json!(twice), json!(texts[1..])]);
    full["maxItems"] = json!(23);
    assert!(try_run(&full, KeyOrder::Schema).unwrap().is_none());
    let kinds = |n: usize| json!({"properties": {"kind": {"const": texts[n]}}, "required": ["kind"], "type": "object"});
    let objects: Vec<Value> = texts.iter().map(|text| json!({"kind": text, "n": 1})).collect();
    check(&json!({"allOf": contains(&kinds)}), &[json!(objects)], &[json!(objects[..23])]);
    // An item may meet many at once: also inside of a part that is optional.
    let overlapping = json!({"type": "array", "allOf": contains(&|n| json!({"required": [texts[n]]}))});
    let error = limit(&json!({"type": "object", "properties": {"b": {"properties": {"a": overlapping}}}}));
    assert!(
        error.place.starts_with("#/properties/b/properties/a/allOf/") && error.place.ends_with("/contains"),
        "{error}"
    );
}

#[test]
fn unique_items_run_out() {
    let texts: Vec<String> = (0..500).map(|n| format!("text {n}")).collect();
    let schema = json!({"type": "array", "items": {"enum": texts}, "uniqueItems": true, "minItems": 500});
    let mut turned = texts.clone();
    turned.rotate_left(123);
    let mut twice = texts.clone();
    twice[499] = texts[3].clone();
    check(&schema, &[json!(texts), json!(turned)], &[json!(texts[1..]), json!(twice)]);
    let item = json!({
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y", "z"]}},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let mut all: Vec<Value> =
        [true, false].iter().flat_map(|a| ["x", "y", "z"].map(|b| json!({"a": a, "b": b}))).collect();
    let schema =
        |least: usize| json!({"type": "array", "items": item, "uniqueItems": true, "minItems": least});
    assert!(try_run(&schema(7), KeyOrder::Schema).unwrap().is_none());
    let (few, most) = (json!(all[2..]), json!(all));
    all[0] = all[5].clone();
    check(&schema(6), std::slice::from_ref(&most), &[few.clone(), json!(all)]);
    check(&schema(4), &[few, most], &[json!(all), json!([])]);
    let flags: Map<String, Value> = (0..12).map(|n| (format!("f{n}"), json!({"type": "boolean"}))).collect();
    let items = json!({"type": "object", "properties": flags, "additionalProperties": false});
    let set = |n: usize| json!({format!("f{}", n % 12): n < 12});
    let schema = json!({"type": "array", "items": items, "uniqueItems": true, "minItems": 3});
    check(
        &schema,
        &[json!([set(0), set(12), set(1)])],
        &[json!([set(0), set(1)]), json!([set(0), set(1), set(0)])],
    );
}

#[test]
fn enums_list_a_bounded_number_of_objects() {
    let all = |count: usize| -> Vec<Value> { (0..count).map(|n| json!({"id": n})).collect() };
    let schema = |count: usize| json!({"type": "object", "properties": {"a": {"properties": {"b": {"enum": all(count)}}}}});
    check(&schema(400), &[json!({"a": {"b": {"id": 399}}})], &[json!({"a": {"b": {"id": 400}}})]);
    let error = limit(&schema(20_000));
    assert_eq!(error.place, "#/properties/a/properties/b/enum");
    assert!(error.message.contains("20000") && error.message.contains("4096"), "{error}");
}

/// Few values, all different.
fn few_values() -> Vec<Value> {
    let Value::Array(values) = json!(["a", 1, 2, 0.5, "", "b", null, true, [], [1], {}, {"a": 1}]) else {
        unreachable!()
    };
    values
}

/// Arrays of few values with so many `contains` that not all sets of them are looked at.
fn with_contains(dice: &mut Dice) -> Value {
    let mut all = Vec::new();
    for value in few_values() {
        let mut demand = json!({"contains": {"const": value}});
        match dice.next(8) {
            0 => demand["minContains"] = json!(0),
            1 | 2 => demand["maxContains"] = json!(1 + dice.next(2)),
            _ => {}
        }
        if !dice.once_in(12) {
            all.push(demand);
        }
    }
    let mut made = json!({"type": "array", "allOf": all});
    match dice.next(6) {
        0 => made["maxItems"] = json!(11 + dice.next(3)),
        1 => made["prefixItems"] = json!([{"type": "string"}]),
        2 => made["minItems"] = json!(12 + dice.next(2)),
        _ => {}
    }
    made
}

/// An array of most of those values.
fn of_contained(dice: &mut Dice) -> Value {
    let mut items = few_values();
    items.retain(|_| !dice.once_in(40));
    for _ in 0..dice.next(3) {
        let at = dice.next(items.len());
        items.push(items[at].clone());
    }
    Value::Array(items)
}

/// Objects with keys that need others.
fn with_needs(dice: &mut Dice) -> Value {
    let some = |dice: &mut Dice, often: usize| -> Vec<&str> {
        KEYS.into_iter().filter(|_| dice.once_in(often)).collect()
    };
    let mut made = json!({
        "type": "object",
        "properties": KEYS.iter().map(|&key| (key.to_string(), json!(!dice.once_in(9)))).collect::<Map<_, _>>(),
        "dependentRequired": KEYS.iter().map(|&key| (key.to_string(), json!(some(dice, 4)))).collect::<Map<_, _>>(),
        "required": some(dice, 6),
        "additionalProperties": dice.once_in(2),
    });
    if dice.once_in(2) {
        made["minProperties"] = json!(dice.next(5));
    }
    if dice.once_in(2) {
        made["maxProperties"] = json!(2 + dice.next(4));
    }
    made
}

fn run(cases: u64, walks: bool, make: fn(&mut Dice) -> Value, value: fn(&mut Dice) -> Value) {
    let (mut run, mut valid) = (0, 0);
    for seed in 0..cases {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Some(mut case) = Case::new(seed, make(&mut dice)) else { continue };
        run += 1;
        for _ in 0..20 {
            valid += usize::from(case.compare(&value(&mut dice)));
        }
        if walks {
            valid += case.walk(&mut dice);
        }
    }
    assert!(6 * run > 5 * cases && valid as u64 > run, "{run} run, {valid} valid");
}

#[test]
fn many_contains_equal_the_validator() {
    run(30, false, with_contains, of_contained);
}

#[test]
fn keys_that_need_others_equal_the_validator() {
    run(150, true, with_needs, |dice| {
        let keys: Vec<&str> = KEYS.into_iter().filter(|_| dice.once_in(2)).collect();
        keys.into_iter().map(|key| (key.to_string(), json!(1))).collect::<Map<_, _>>().into()
    });
}
