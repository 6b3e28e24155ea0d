//! Random schemas and values: in any key order the states accept exactly what the plain validator accepts; in schema order
//! they accept nothing else; and every prefix that they accept can be completed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use super::validate::is_valid;
use super::{accepts, compact, from_value, machine, Dice};
use crate::earley::{ConfigId, Machine, DEAD};
use crate::json_schema::normalize::spell;
use crate::json_schema::{KeyOrder, NumberSpelling, Schema, SchemaOptions};
use serde_json::{json, Map, Value};

pub(super) const KEYS: [&str; 6] = ["a", "b", "c", "aa", "ab", "é"];
/// Keys that no schema names.
const OTHER_KEYS: [&str; 3] = ["ü", "b/", "aé"];
const PATTERNS: [&str; 5] = ["^a", "b", "^.$", "^(c|ab)$", "a{2}"];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn scalar(dice: &mut Dice) -> Value {
    match dice.next(9) {
        0 => Value::Null,
        1 => json!(dice.once_in(2)),
        2..=4 => json!(*dice.pick(&[-1, 0, 1, 2, 3, 4])),
        5 => json!(*dice.pick(&[0.5, 1.5, -0.5])),
        _ => json!(*dice.pick(&["", "a", "b", "ab", "aa", "c"])),
    }
}

pub(super) fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.next(if depth == 0 { 4 } else { 10 }) {
        0..=3 => scalar(dice),
        4..=6 => (0..dice.next(4)).map(|_| value(dice, depth - 1)).collect(),
        _ => {
            let count = dice.next(4);
            let key = |dice: &mut Dice| {
                let keys = if dice.once_in(6) { &OTHER_KEYS[..] } else { &KEYS };
                (*dice.pick(keys)).to_string()
            };
            Value::Object((0..count).map(|_| (key(dice), value(dice, depth - 1))).collect())
        }
    }
}

fn schemas(dice: &mut Dice, depth: usize, most: usize) -> Vec<Value> {
    (0..1 + dice.next(most)).map(|_| schema(dice, depth - 1)).collect()
}

fn keys(dice: &mut Dice) -> Vec<&'static str> {
    let mut keys: Vec<_> = (0..1 + dice.next(2)).map(|_| *dice.pick(&KEYS)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A schema with two definitions that it and they may refer to.
pub(super) fn document(dice: &mut Dice) -> Value {
    let definitions = json!({"a": schema(dice, 2), "b": schema(dice, 1)});
    match schema(dice, 3) {
        Value::Object(mut object) => {
            object.insert("$defs".into(), definitions);
            Value::Object(object)
        }
        other => other,
    }
}

/// The kinds of keywords that [`keyword`] has.
const KINDS: usize = 34;

fn schema(dice: &mut Dice, depth: usize) -> Value {
    if dice.once_in(12) {
        return json!(dice.once_in(2));
    }
    if dice.once_in(10) {
        return json!({"$ref": *dice.pick(&["#/$defs/a", "#/$defs/b"])});
    }
    let mut made = Map::new();
    if dice.once_in(2) {
        made.insert("type".into(), json!(*dice.pick(&TYPES)));
    }
    for _ in 0..1 + dice.next(3) {
        let kind = dice.next(KINDS);
        keyword(dice, kind, depth, &mut made);
    }
    Value::Object(made)
}

fn keyword(dice: &mut Dice, kind: usize, depth: usize, made: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| {
        made.insert(key.into(), value);
    };
    let small = dice.next(4);
    if depth == 0 && kind >= 15 {
        return;
    }
    match kind {
        0 => set("type", json!([dice.pick(&TYPES[..3]), dice.pick(&TYPES[3..])])),
        1 => set("enum", (0..1 + dice.next(3)).map(|_| value(dice, 1)).collect()),
        2 => set("const", value(dice, 2)),
        3 => set("minimum", json!(*dice.pick(&[-1.0, 0.0, 0.5, 2.0]))),
        4 => set("exclusiveMaximum", json!(*dice.pick(&[0.0, 1.0, 1.5, 3.0]))),
        5 => set("multipleOf", json!(*dice.pick(&[0.5, 2.0, 1.5]))),
        6 => set("minLength", json!(small)),
        7 => set("maxLength", json!(small)),
        8 => set("pattern", json!(dice.pick(&PATTERNS))),
        9 => set("minItems", json!(small)),
        10 => set("maxItems", json!(small)),
        11 => set("required", json!(keys(dice))),
        12 => set("minProperties", json!(small)),
        13 => set("maxProperties", json!(small)),
        14 => set("dependentRequired", json!({*dice.pick(&KEYS): keys(dice)})),
        15..=17 => {
            let keys = keys(dice);
            set("properties", keys.iter().map(|key| ((*key).to_string(), schema(dice, depth - 1))).collect());
        }
        18 => set("additionalProperties", schema(dice, depth - 1)),
        19 => set("patternProperties", json!({*dice.pick(&PATTERNS): schema(dice, depth - 1)})),
        20 => set("propertyNames", schema(dice, depth - 1)),
        21 => set("items", schema(dice, depth - 1)),
        22 => set("prefixItems", json!(schemas(dice, depth, 2))),
        23 => {
            set("contains", schema(dice, depth - 1));
            if dice.once_in(2) {
                set("minContains", json!(dice.next(3)));
            }
            if dice.once_in(2) {
                set("maxContains", json!(dice.next(3)));
            }
        }
        24 => set("uniqueItems", json!(true)),
        25 | 26 => set("anyOf", json!(schemas(dice, depth, 3))),
        27 | 28 => set("oneOf", json!(schemas(dice, depth, 3))),
        29 => set("allOf", json!(schemas(dice, depth, 2))),
        30 => set("not", schema(dice, depth - 1)),
        31 => {
            set("if", schema(dice, depth - 1));
            if !dice.once_in(3) {
                set("then", schema(dice, depth - 1));
            }
            if !dice.once_in(3) {
                set("else", schema(dice, depth - 1));
            }
        }
        32 => set("dependentSchemas", json!({*dice.pick(&KEYS): schema(dice, depth - 1)})),
        _ if dice.once_in(2) => set("unevaluatedProperties", schema(dice, depth - 1)),
        _ => set("unevaluatedItems", schema(dice, depth - 1)),
    }
}

fn read(schema: &Value, order: KeyOrder) -> crate::Result<Arc<Schema>> {
    Ok(Arc::new(from_value(schema, &compact(order), &[])?))
}

/// Bytes that complete the text: found greedily, or else cheapest first, of a few bytes or of all. An opening bracket is
/// dear, because nesting may be unbounded. Texts that are remembered never meet in one configuration, so that a search
/// for the cheapest would take too long.
///
/// # Errors
/// If the search was given up.
fn completion(machine: &mut Machine, from: ConfigId) -> Result<Option<String>, TooMany> {
    let few = |byte: u8| b"\"{}[]:,-.0125abctruefalsn".contains(&byte);
    let greedy = (0..300).find_map(|seed| greedy_completion(machine, from, &mut Dice(seed)));
    if greedy.is_some() {
        return Ok(greedy);
    }
    match completion_of(machine, from, few) {
        Ok(Some(found)) => Ok(Some(found)),
        _ => completion_of(machine, from, |_| true),
    }
}

const PARTS: [&str; 17] = [
    "\"a\":", "\"b\":", "\"c\":", "\"aa\":", "\"ab\":", "\"a\"", "\"ab\"", "1", "0.5", "2", "true", "false",
    "null", "3", "[]", "{}", "[",
];

/// Bytes that complete the text, those that end something first, with more and more exceptions.
fn greedy_completion(machine: &mut Machine, from: ConfigId, dice: &mut Dice) -> Option<String> {
    let strayed = dice.0 > 0;
    let (mut config, mut bytes) = (from, Vec::new());
    for _ in 0..120 {
        if machine.is_accepting(config) {
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        // A key or value of these tests, where it may come.
        let part = format!("{}{}", dice.pick(&["", "\"", ",", "{", ",{", "["]), dice.pick(&PARTS));
        let by_part = |machine: &mut Machine| {
            part.bytes().try_fold(config, |c, b| Some(machine.step(c, b).unwrap()).filter(|&c| c != DEAD))
        };
        if let Some(next) = by_part(machine).filter(|_| strayed && dice.once_in(2)) {
            config = next;
            bytes.extend(part.bytes());
            continue;
        }
        let first = machine.first_bytes(config).unwrap();
        let mut usual = b"\"]}:0atfn1b2c5.-,[{eursl".iter().copied().filter(|&byte| first.contains(byte));
        let byte = match usual.next() {
            Some(byte) if !strayed || !dice.once_in(4) => byte,
            Some(byte) => *dice.pick(&usual.chain([byte]).collect::<Vec<_>>()),
            None => *dice.pick(&first.iter().collect::<Vec<_>>()),
        };
        config = machine.step(config, byte).unwrap();
        assert_ne!(config, DEAD, "a first byte leads nowhere");
        bytes.push(byte);
    }
    None
}

/// A search that was given up.
struct TooMany;

fn completion_of(
    machine: &mut Machine,
    from: ConfigId,
    allowed: impl Fn(u8) -> bool,
) -> Result<Option<String>, TooMany> {
    let mut seen = vec![(from, usize::MAX, 0u8)];
    let mut known = HashSet::from([from]);
    let mut waiting = BinaryHeap::from([(Reverse(0), Reverse(0))]);
    while let Some((Reverse(cost), Reverse(at))) = waiting.pop() {
        let config = seen[at].0;
        if machine.is_accepting(config) {
            let mut bytes = Vec::new();
            let mut at = at;
            while seen[at].1 != usize::MAX {
                bytes.push(seen[at].2);
                at = seen[at].1;
            }
            bytes.reverse();
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
        if seen.len() > 50_000 {
            return Err(TooMany);
        }
        for byte in machine.first_bytes(config).unwrap().iter().filter(|&byte| allowed(byte)) {
            let Ok(next) = machine.step(config, byte) else { return Err(TooMany) };
            assert_ne!(next, DEAD, "a first byte leads nowhere");
            if known.insert(next) {
                seen.push((next, at, byte));
                let price = if b"[{".contains(&byte) { 10 } else { 1 };
                waiting.push((Reverse(cost + price), Reverse(seen.len() - 1)));
            }
        }
    }
    Ok(None)
}

/// Whether a key comes twice in some object, which schemas cannot see.
fn repeats_a_key(text: &str) -> bool {
    struct Keys(bool);
    impl<'de> serde::de::Visitor<'de> for &mut Keys {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("JSON")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let mut seen = HashSet::new();
            while let Some(key) = map.next_key::<String>()? {
                self.0 |= !seen.insert(key);
                map.next_value_seed(&mut *self)?;
            }
            Ok(())
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
            while seq.next_element_seed(&mut *self)?.is_some() {}
            Ok(())
        }
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }
        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }
        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }
        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }
        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }
    }
    impl<'de> serde::de::DeserializeSeed<'de> for &mut Keys {
        type Value = ();
        fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
            from.deserialize_any(self)
        }
    }
    let mut keys = Keys(false);
    let mut from = serde_json::Deserializer::from_str(text);
    serde::de::DeserializeSeed::deserialize(&mut keys, &mut from).unwrap();
    keys.0
}

/// Changes one place of a value.
fn mutate(dice: &mut Dice, from: &mut Value) {
    match from {
        Value::Array(items) if !items.is_empty() && !dice.once_in(4) => {
            let at = dice.next(items.len());
            match dice.next(4) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, value(dice, 1)),
                2 => items.push(items[at].clone()),
                _ => mutate(dice, &mut items[at]),
            }
        }
        Value::Object(object) if !dice.once_in(4) => {
            let key = object.keys().nth(dice.next(object.len() + 1)).cloned();
            match (key, dice.next(3)) {
                (Some(key), 0) => drop(object.remove(&key)),
                (Some(key), _) => mutate(dice, &mut object[&key]),
                (None, _) => drop(object.insert((*dice.pick(&KEYS)).to_string(), value(dice, 1))),
            }
        }
        _ => *from = value(dice, 1),
    }
}

/// The value of a random text that the recogniser accepts; it can be completed, and is then valid.
fn walk(dice: &mut Dice, machine: &mut Machine, schema: &Schema, shown: &Value) -> Option<Value> {
    let mut config = machine.start();
    let mut text = Vec::new();
    for _ in 0..dice.next(40) {
        let bytes: Vec<u8> = machine.first_bytes(config).unwrap().iter().collect();
        if bytes.is_empty() {
            break;
        }
        // Letters of the alphabet and structure more often than all that a string may hold.
        let usual: Vec<u8> =
            bytes.iter().copied().filter(|b| b"abc\"{}[],:0123.-\\ntf".contains(b)).collect();
        let byte = *dice.pick(if usual.is_empty() { &bytes } else { &usual });
        config = machine.step(config, byte).unwrap();
        assert_ne!(config, DEAD, "{shown}: {:?} by {byte}", String::from_utf8_lossy(&text));
        text.push(byte);
    }
    let so_far = String::from_utf8_lossy(&text).into_owned();
    let rest = match completion(machine, config) {
        Ok(Some(rest)) => rest,
        Ok(None) => panic!("{shown}: {so_far:?} cannot be completed"),
        Err(TooMany) => return None,
    };
    let text = String::from_utf8([text, rest.into_bytes()].concat()).ok()?;
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{shown}: {text}: {e}"));
    assert!(repeats_a_key(&text) || is_valid(schema, &value).unwrap(), "{shown}: {text} is not valid");
    Some(value)
}

/// A schema in both orders, and with plain numbers.
pub(super) struct Case {
    seed: u64,
    shown: Value,
    schema: Arc<Schema>,
    in_any: Option<Machine>,
    in_order: Option<Machine>,
    /// With plain numbers, for some of the seeds.
    plain: Option<Option<Machine>>,
}

impl Case {
    /// The case of a seed; `None` if its schema cannot be honoured.
    pub(super) fn new(seed: u64, shown: Value) -> Option<Case> {
        let schema = read(&shown, KeyOrder::Any).ok()?;
        let ordered = read(&shown, KeyOrder::Schema).unwrap();
        let (in_any, in_order) = (machine(&schema).ok()?, machine(&ordered).ok()?);
        assert_eq!(in_any.is_some(), in_order.is_some(), "seed {seed}: {shown}");
        let options = SchemaOptions { numbers: NumberSpelling::Plain, ..compact(KeyOrder::Any) };
        let plain = match seed % 3 {
            0 => Some(machine(&Arc::new(from_value(&shown, &options, &[]).unwrap())).ok()?),
            _ => None,
        };
        assert!(
            plain.as_ref().is_none_or(|plain| plain.is_some() == in_any.is_some()),
            "seed {seed}: {shown}"
        );
        Some(Case { seed, shown, schema, in_any, in_order, plain })
    }

    pub(super) fn compare(&mut self, value: &Value) -> bool {
        let text = value.to_string();
        let valid = is_valid(&self.schema, value).unwrap();
        let (seed, shown) = (self.seed, &self.shown);
        assert_eq!(accepts(&mut self.in_any, &text), valid, "seed {seed}: {shown} on {text}");
        assert!(valid || !accepts(&mut self.in_order, &text), "seed {seed}, in order: {shown} on {text}");
        if let Some(plain) = &mut self.plain {
            let accepted = accepts(plain, &text);
            assert!(valid || !accepted, "seed {seed}, plain: {shown} on {text}");
            assert!(accepted || !valid || !is_plain(value), "seed {seed}, plain: {shown} on {text}");
        }
        valid
    }

    /// The same for a text of the value that is not the usual one. Listed numbers have no exponents.
    fn compare_written(&mut self, dice: &mut Dice, value: &Value) {
        let text = written(dice, value, &|_, key| json!(key).to_string());
        let valid = is_valid(&self.schema, value).unwrap();
        let (seed, shown) = (self.seed, &self.shown);
        let accepted = accepts(&mut self.in_any, &text);
        let in_plain = self.plain.as_mut().is_some_and(|plain| accepts(plain, &text));
        assert!(accepted || !in_plain, "seed {seed}, plain: {shown} on {text}");
        assert!(valid || !accepted, "seed {seed}: {shown} on {text}");
        let listed = text.contains(['e', 'E']);
        assert!(!valid || accepted || listed, "seed {seed}: {shown} on {text}");
    }

    /// The same for keys with escapes: those that no schema names in any way, the others in the two ways of `json.dumps`, or
    /// in any way, which must not make them other keys. What is remembered is written in one way.
    fn compare_spelled(&mut self, dice: &mut Dice, value: &Value) {
        let valid = is_valid(&self.schema, value).unwrap();
        let (seed, shown) = (self.seed, &self.shown);
        let text = written(dice, value, &|dice, key| match OTHER_KEYS.contains(&key) {
            true => spelled(dice, key),
            false if dice.once_in(2) => String::from_utf8(spell(key, true)).unwrap(),
            false => json!(key).to_string(),
        });
        let accepted = accepts(&mut self.in_any, &text);
        let remembered = shown.to_string().contains("uniqueItems");
        let listed = text.contains(['e', 'E']);
        assert!(accepted == valid || !accepted && (remembered || listed), "seed {seed}: {shown} on {text}");
        for machine in [&mut self.in_any, &mut self.in_order] {
            let text = written(dice, value, &spelled);
            assert!(valid || !accepts(machine, &text), "seed {seed}: {shown} on {text}");
        }
    }

    /// Texts that the machines allow, and values that differ from them in a place or two.
    pub(super) fn walk(&mut self, dice: &mut Dice) -> usize {
        let mut valid = 0;
        let machines = [&mut self.in_any, &mut self.in_order].into_iter().chain(&mut self.plain);
        let walked = machines.flatten().map(|m| walk(dice, m, &self.schema, &self.shown));
        let walked: Vec<Value> = walked.flatten().collect();
        for mut value in walked {
            for _ in 0..4 {
                mutate(dice, &mut value);
                valid += usize::from(self.compare(&value));
            }
        }
        valid
    }
}

/// A text of a string with escapes that are not needed.
fn spelled(dice: &mut Dice, text: &str) -> String {
    let mut made = String::from("\"");
    for c in text.chars() {
        match dice.next(4) {
            0 if c == '/' => made.push_str("\\/"),
            0 | 1 => made.push(c),
            2 => made.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => made.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    made + "\""
}

/// Whether integers are written in digits only, and fractions in few.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(number) => match number.to_string().split_once('.') {
            Some((whole, fraction)) => {
                whole.len() + fraction.len() < 16
                    && fraction.bytes().all(|byte| byte.is_ascii_digit())
                    && fraction.bytes().any(|byte| byte != b'0')
            }
            None => number.to_string() != "-0" && !number.to_string().contains(['e', 'E']),
        },
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(object) => object.values().all(is_plain),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// A text of a value: keys in any order and written by `key`, numbers in any way, strings in their canonical one.
fn written(dice: &mut Dice, value: &Value, key: &dyn Fn(&mut Dice, &str) -> String) -> String {
    match value {
        Value::Number(number) => {
            let number = number.to_string();
            let whole = !number.contains(['.', 'e']);
            match dice.next(6) {
                0 if whole => format!("{number}.0"),
                1 if whole && number.trim_start_matches('-').len() == 1 && number != "0" => {
                    format!("{number}{}", dice.pick(&["e0", "E-00", ".0e+0", ".00E000"]))
                }
                2 if number == "0" => "-0".into(),
                3 if !whole => format!("{number}0"),
                _ => number,
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(dice, item, key)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(object) => {
            let mut members: Vec<String> = object
                .iter()
                .map(|(name, value)| format!("{}:{}", key(dice, name), written(dice, value, key)))
                .collect();
            for at in (1..members.len()).rev() {
                members.swap(at, dice.next(at + 1));
            }
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

/// A schema of an array with unique items, perhaps inside of others.
fn unique_schema(dice: &mut Dice, depth: usize) -> Value {
    let mut made = Map::from_iter([("uniqueItems".to_string(), json!(true))]);
    if !dice.once_in(8) {
        made.insert("type".into(), json!("array"));
    }
    let item = |dice: &mut Dice| match dice.next(12) {
        0 => json!(true),
        1 => json!({"type": "string"}),
        2 => json!({"type": ["integer", "boolean"]}),
        3 => json!({"type": "integer", "minimum": 0, "maximum": dice.next(4)}),
        4 => json!({"enum": [1, 2, "a", [1], {"a": 1}]}),
        5 | 6 if depth > 0 => unique_schema(dice, depth - 1),
        7 if depth > 0 => json!({"type": "array", "items": schema(dice, depth - 1)}),
        8 if depth > 0 => {
            let keys = keys(dice);
            let values: Map<String, Value> =
                keys.iter().map(|key| ((*key).to_string(), schema(dice, depth - 1))).collect();
            json!({"type": "object", "properties": values, "additionalProperties": dice.once_in(2)})
        }
        9 => json!({
            "type": "object",
            "properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 2]}},
            "required": ["a"],
            "additionalProperties": false,
        }),
        10 => json!({"$ref": "#"}),
        _ => schema(dice, depth),
    };
    if !dice.once_in(6) {
        made.insert("items".into(), item(dice));
    }
    if dice.once_in(4) {
        let prefix: Value = (0..1 + dice.next(3)).map(|_| item(dice)).collect();
        made.insert("prefixItems".into(), prefix);
    }
    if dice.once_in(5) {
        made.insert("contains".into(), item(dice));
    }
    for key in ["minItems", "maxItems"] {
        if dice.once_in(4) {
            made.insert(key.into(), json!(dice.next(4)));
        }
    }
    Value::Object(made)
}

/// A document of [`unique_schema`].
fn unique_document(dice: &mut Dice) -> Value {
    let definitions = json!({"a": schema(dice, 1), "b": unique_schema(dice, 1)});
    let mut made = unique_schema(dice, 2);
    if dice.once_in(4) {
        made = json!({"type": "object", "properties": {"a": made}, "required": ["a"]});
    }
    made["$defs"] = definitions;
    made
}

/// A value with an array, often with items that are equal.
fn with_repeats(dice: &mut Dice, depth: usize) -> Value {
    let mut items: Vec<Value> = (0..dice.next(4))
        .map(|_| if depth > 0 && dice.once_in(3) { with_repeats(dice, depth - 1) } else { value(dice, 1) })
        .collect();
    if !items.is_empty() && dice.once_in(3) {
        let (from, to) = (dice.next(items.len()), dice.next(items.len() + 1));
        items.insert(to, items[from].clone());
    }
    json!(items)
}

#[test]
fn unique_items_equal_the_validator() {
    let count: u64 = std::env::var("LOGITREE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(600);
    let (mut run, mut refused, mut valid) = (0, 0, 0_usize);
    for seed in 0..count {
        let mut dice = Dice(seed.wrapping_mul(0x9e3779b97f4a7c15));
        let shown = unique_document(&mut dice);
        let Some(mut case) = Case::new(seed, shown) else {
            refused += 1;
            continue;
        };
        run += 1;
        for _ in 0..20 {
            let value = with_repeats(&mut dice, 2);
            let value = if case.shown.get("required").is_some() { json!({"a": value}) } else { value };
            valid += usize::from(case.compare(&value));
            case.compare_written(&mut dice, &value);
            case.compare_spelled(&mut dice, &value);
        }
        for _ in 0..2 {
            valid += case.walk(&mut dice);
        }
    }
    assert!(refused * 6 < run, "{refused} were refused, {run} were run");
    assert!(valid > 3 * run, "only {valid} valid values in {run} schemas");
}

#[test]
fn states_equal_the_validator() {
    let count: u64 =
        std::env::var("LOGITREE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let (mut run, mut refused, mut valid) = (0, 0, 0_usize);
    for seed in 0..count {
        let mut dice = Dice(seed.wrapping_mul(0x9e3779b97f4a7c15));
        let shown = document(&mut dice);
        let Some(mut case) = Case::new(seed, shown) else {
            refused += 1;
            continue;
        };
        run += 1;
        for _ in 0..20 {
            let value = value(&mut dice, 3);
            valid += usize::from(case.compare(&value));
            case.compare_spelled(&mut dice, &value);
        }
        for _ in 0..3 {
            valid += case.walk(&mut dice);
        }
    }
    assert!(refused * 8 < run, "{refused} were refused, {run} were run");
    assert!(valid > 5 * run, "only {valid} valid values in {run} schemas");
}
