//! The order of keys in schema order, against a naive reader of the schema.

use std::fmt::Write;
use std::sync::Arc;

use super::{accepts, compact, machine, Dice};
use crate::json_schema::{load, KeyOrder};

/// Whether the schema accepts each of the texts, in schema order and without white space.
fn accepted(schema: &str, texts: &[String]) -> Vec<bool> {
    let read = load(schema, &compact(KeyOrder::Schema), &[]).unwrap_or_else(|e| panic!("{schema}: {e}"));
    let mut machine = machine(&Arc::new(read)).unwrap();
    texts.iter().map(|text| accepts(&mut machine, text)).collect()
}

/// Objects with these keys in this order are accepted, and refused where two neighbours are swapped.
#[track_caller]
fn check(schema: &str, keys: &[&str]) {
    let object = |keys: &[&str]| {
        let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    let mut texts = vec![object(keys)];
    for at in 1..keys.len() {
        let mut swapped = keys.to_vec();
        swapped.swap(at - 1, at);
        texts.push(object(&swapped));
    }
    for (text, accepted) in texts.iter().zip(accepted(schema, &texts)) {
        assert_eq!(accepted, *text == texts[0], "{schema} on {text}");
    }
}

#[test]
fn keys_come_in_the_order_of_the_text() {
    let a = r##""$ref": "#/$defs/a""##;
    let own = r#""properties": {"x": {}, "y": {}}"#;
    let defs =
        r##""$defs": {"a": {"properties": {"b": {}}, "$ref": "#/$defs/c"}, "c": {"properties": {"c": {}}}}"##;
    check(&format!("{{{a}, {own}, {defs}}}"), &["b", "c", "x", "y"]);
    check(&format!("{{{own}, {a}, {defs}}}"), &["x", "y", "b", "c"]);
    check(&format!("{{{defs}, {a}, {own}}}"), &["b", "c", "x", "y"]);
    let all = r#""allOf": [{"properties": {"p": {}}}, {"properties": {"q": {}, "x": {}}}]"#;
    check(&format!("{{{all}, {own}}}"), &["p", "q", "x", "y"]);
    check(&format!("{{{own}, {all}}}"), &["x", "y", "p", "q"]);
    check(&format!("{{{all}, {a}, {own}, {defs}}}"), &["p", "q", "x", "b", "c", "y"]);
    check(&format!("{{{a}, {own}, {all}, {defs}}}"), &["b", "c", "x", "y", "p", "q"]);
    check(&format!("{{{all}, {own}, {a}, {defs}}}"), &["p", "q", "x", "y", "b", "c"]);
}

#[test]
fn keys_of_branches_come_where_the_branches_are_written() {
    let own = r#""properties": {"x": {}, "k": {}}"#;
    for (branches, keys) in [
        (r#""anyOf": [{"properties": {"p": {}}, "required": ["p"]}, {"properties": {"q": {}}}]"#, &["p"][..]),
        (
            r#""oneOf": [{"properties": {"p": {}}, "required": ["p"]}, {"properties": {"q": {}}, "required": ["q"]}]"#,
            &["p"],
        ),
        (
            r#""if": {"properties": {"i": {}}, "required": ["k"]}, "then": {"properties": {"t": {}}}"#,
            &["i", "t"],
        ),
        (
            r#""then": {"properties": {"t": {}}}, "if": {"properties": {"i": {}}, "required": ["k"]}"#,
            &["t", "i"],
        ),
        (r#""dependentSchemas": {"k": {"properties": {"d": {}, "e": {}}}}"#, &["d", "e"]),
    ] {
        check(&format!("{{{branches}, {own}}}"), &[keys, &["x", "k"]].concat());
        check(&format!("{{{own}, {branches}}}"), &[&["x", "k"], keys].concat());
    }
    let dynamic = r##"{"$id": "http://a", "$dynamicRef": "#d", "properties": {"x": {}},
        "$defs": {"d": {"$dynamicAnchor": "d", "properties": {"p": {}}}}}"##;
    check(dynamic, &["p", "x"]);
}

#[test]
fn items_and_values_that_several_places_describe_have_their_order_too() {
    let schema = r##"{"$ref": "#/$defs/list", "items": {"properties": {"own": {}}},
        "$defs": {"list": {"items": {"properties": {"referred": {}}}}}}"##;
    let texts = [r#"[{"referred":1,"own":2}]"#, r#"[{"own":2,"referred":1}]"#].map(String::from);
    assert_eq!(accepted(schema, &texts), [true, false]);
}

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A keyword of a schema.
enum Piece {
    Own(Vec<(&'static str, Shape)>),
    Ref(usize),
    AllOf(Vec<Shape>),
}

/// A schema: its number, and its keywords in their order.
struct Shape(usize, Vec<Piece>);

/// A generator of shapes; definitions refer to later ones only.
struct Shapes {
    dice: Dice,
    count: usize,
    definitions: usize,
}

impl Shapes {
    fn definition(&mut self, from: usize) -> Shape {
        let shape = self.shape(2, from);
        if shape.1.is_empty() {
            return self.definition(from);
        }
        shape
    }

    fn shape(&mut self, depth: usize, from: usize) -> Shape {
        self.count += 1;
        let number = self.count;
        let mut pieces = Vec::new();
        let first = self.dice.next(3);
        for kind in (0..3).map(|kind| (kind + first) % 3) {
            match kind {
                _ if depth == 0 || self.dice.next(2) == 0 => {}
                0 => {
                    let start = self.dice.next(KEYS.len());
                    let keys = (0..1 + self.dice.next(2)).map(|n| KEYS[(start + 2 * n) % KEYS.len()]);
                    let keys: Vec<_> = keys.collect();
                    let own = keys.into_iter().map(|key| (key, self.shape(depth - 1, from)));
                    pieces.push(Piece::Own(own.collect()));
                }
                1 if from < self.definitions => {
                    pieces.push(Piece::Ref(from + self.dice.next(self.definitions - from)));
                }
                2 => {
                    let count = 1 + self.dice.next(2);
                    let all = (0..count).map(|_| self.shape(depth - 1, from));
                    // What describes nothing is left out when the schema is loaded.
                    let all: Vec<Shape> = all.filter(|shape| !shape.1.is_empty()).collect();
                    if !all.is_empty() {
                        pieces.push(Piece::AllOf(all));
                    }
                }
                _ => {}
            }
        }
        Shape(number, pieces)
    }
}

fn write(shape: &Shape, out: &mut String) {
    out.push('{');
    for (n, piece) in shape.1.iter().enumerate() {
        out.push_str(if n > 0 { "," } else { "" });
        match piece {
            Piece::Ref(to) => write!(out, "\"$ref\":\"#/$defs/{to}\"").unwrap(),
            Piece::Own(members) => {
                out.push_str("\"properties\":{");
                for (n, (key, value)) in members.iter().enumerate() {
                    write!(out, "{}\"{key}\":", if n > 0 { "," } else { "" }).unwrap();
                    write(value, out);
                }
                out.push('}');
            }
            Piece::AllOf(all) => {
                out.push_str("\"allOf\":[");
                for (n, one) in all.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    write(one, out);
                }
                out.push(']');
            }
        }
    }
    out.push('}');
}

/// What a reader sees who knows the definitions.
struct Reader<'s> {
    definitions: &'s [Shape],
    /// The numbers of all shapes in the order in which they are first met.
    met: Vec<usize>,
}

impl<'s> Reader<'s> {
    /// The shape that lone references lead to.
    fn target(&self, shape: &'s Shape) -> &'s Shape {
        match &shape.1[..] {
            [Piece::Ref(to)] => self.target(&self.definitions[*to]),
            [Piece::AllOf(all)] if all.len() == 1 => self.target(&all[0]),
            _ => shape,
        }
    }

    fn read(&mut self, shape: &'s Shape) {
        let shape = self.target(shape);
        if self.met.contains(&shape.0) {
            return;
        }
        self.met.push(shape.0);
        for piece in &shape.1 {
            match piece {
                Piece::Own(members) => members.iter().for_each(|(_, value)| self.read(value)),
                Piece::Ref(to) => self.read(&self.definitions[*to]),
                Piece::AllOf(all) => all.iter().for_each(|one| self.read(one)),
            }
        }
    }

    /// Every key of a value that `shape` describes, with what describes its value.
    fn keys(&self, shape: &'s Shape, found: &mut Vec<(&'static str, Vec<&'s Shape>)>) {
        for piece in &shape.1 {
            match piece {
                Piece::Ref(to) => self.keys(&self.definitions[*to], found),
                Piece::AllOf(all) => all.iter().for_each(|one| self.keys(one, found)),
                Piece::Own(members) => {
                    for (key, value) in members {
                        match found.iter_mut().find(|(known, _)| known == key) {
                            Some((_, values)) => values.push(value),
                            None => found.push((key, vec![value])),
                        }
                    }
                }
            }
        }
    }

    /// The text with every key; keys number `swap` and the one before it, over the whole text, are swapped.
    fn text(&self, shapes: &[&'s Shape], swap: usize, written: &mut usize) -> String {
        let mut shapes: Vec<&Shape> = shapes.iter().map(|shape| self.target(shape)).collect();
        shapes.sort_by_key(|shape| self.met.iter().position(|met| *met == shape.0));
        let mut keys = Vec::new();
        shapes.iter().for_each(|shape| self.keys(shape, &mut keys));
        let mut members: Vec<String> = Vec::new();
        for (key, values) in keys {
            let at = *written;
            *written += 1;
            members.push(format!("\"{key}\":{}", self.text(&values, swap, written)));
            if at == swap && members.len() > 1 {
                let last = members.len() - 1;
                members.swap(last - 1, last);
            }
        }
        format!("{{{}}}", members.join(","))
    }
}

#[test]
fn random_schemas_are_read_in_order() {
    let mut several = 0;
    for seed in (0..400).map(|n| n * 7919) {
        let mut shapes = Shapes { dice: Dice(seed), count: 0, definitions: 3 };
        let definitions: Vec<Shape> = (0..3).map(|n| shapes.definition(n + 1)).collect();
        let root = shapes.shape(4, 0);
        let mut schema = String::from("{\"$defs\":{");
        for (n, definition) in definitions.iter().enumerate() {
            write!(schema, "{}\"{n}\":", if n > 0 { "," } else { "" }).unwrap();
            write(definition, &mut schema);
        }
        schema.push_str("},");
        let mut inner = String::new();
        write(&root, &mut inner);
        schema.push_str(&inner[1..]);
        let schema = schema.replace("},}", "}}");
        let mut reader = Reader { definitions: &definitions, met: Vec::new() };
        reader.read(&root);
        let whole = reader.text(&[&root], usize::MAX, &mut 0);
        let count = whole.matches(':').count();
        let mut texts = vec![whole];
        texts.extend((0..count).map(|swap| reader.text(&[&root], swap, &mut 0)));
        for (text, accepted) in texts.iter().zip(accepted(&schema, &texts)) {
            several += usize::from(*text != texts[0]);
            assert_eq!(accepted, *text == texts[0], "{schema} on {text}");
        }
    }
    assert!(several > 400, "{several}");
}
