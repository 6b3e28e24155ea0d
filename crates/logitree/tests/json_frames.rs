//! JSON Schema as states, against the plain validator: what is accepted byte by byte is what is valid.

use std::sync::Arc;

use logitree::grammar::expr::Exprs;
use logitree::grammar::json::{from_value, is_valid, Frames, Options, Order, Schema, Whitespace};
use logitree::grammar::machine::{ConfigId, Limits, Machine, Values, DEAD};
use serde_json::{json, Value};

/// A schema that runs.
struct Runner {
    machine: Option<Machine>,
    schema: Arc<Schema>,
}

fn compact(order: Order) -> Options {
    Options { order, whitespace: Whitespace::Compact, ..Options::default() }
}

impl Runner {
    fn new(schema: &Value, options: &Options) -> Runner {
        Runner::try_new(schema, options).unwrap_or_else(|error| panic!("{schema}: {error}"))
    }

    fn try_new(schema: &Value, options: &Options) -> logitree::Result<Runner> {
        let schema = Arc::new(from_value(schema, options, &[])?);
        let mut exprs = Exprs::new(1 << 20);
        let mut frames = Frames::new();
        let machine = match frames.root(&schema, &mut exprs)? {
            Some(root) => Some(Machine::new(Box::new(frames), root, exprs, Limits::default())?),
            None => None,
        };
        Ok(Runner { machine, schema })
    }

    fn run(&mut self, text: &str) -> ConfigId {
        let Some(machine) = &mut self.machine else { return DEAD };
        let mut config = machine.start();
        for &byte in text.as_bytes() {
            config = machine.step(config, byte).unwrap();
        }
        config
    }

    fn accepts(&mut self, text: &str) -> bool {
        let config = self.run(text);
        self.machine.as_ref().is_some_and(|machine| config != DEAD && machine.is_accepting(config))
    }

    fn valid(&self, value: &Value) -> bool {
        is_valid(&self.schema, value).unwrap()
    }
}

#[track_caller]
fn check(schema: &Value, good: &[&str], bad: &[&str]) {
    let mut runner = Runner::new(schema, &compact(Order::Any));
    for (texts, wanted) in [(good, true), (bad, false)] {
        for text in texts {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(runner.valid(&value), wanted, "the validator: {schema} on {text}");
            assert_eq!(runner.accepts(text), wanted, "{schema} on {text}");
        }
    }
}

#[test]
fn plain_objects() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name"],
        "additionalProperties": false,
    });
    check(
        &schema,
        &[r#"{"name":"x"}"#, r#"{"name":"","age":7}"#, r#"{"age":150,"name":"\u00e9"}"#],
        &["{}", r#"{"age":7}"#, r#"{"name":7}"#, r#"{"name":"x","age":151}"#, r#"{"name":"x","b":1}"#, "[]"],
    );
    let mut ordered = Runner::new(&schema, &compact(Order::Schema));
    assert!(ordered.accepts(r#"{"name":"a","age":1}"#) && !ordered.accepts(r#"{"age":1,"name":"a"}"#));
}
