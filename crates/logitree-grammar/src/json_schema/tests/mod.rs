//! Tests of the JSON Schema compiler against a plain validator, the JSON-Schema-Test-Suite, MaskBench and random schemas.

mod data;
mod format;
mod large;
mod load;
mod order;
mod plain;
mod random;
mod rules;
mod validate;

use std::sync::Arc;

use serde_json::Value;

use super::{JsonRules, KeyOrder, Schema, SchemaOptions, Whitespace};
use crate::earley::{Machine, MachineLimits, TokenSets, ValueSource, DEAD};
use crate::expr::Exprs;
use crate::Result;

/// The schema in `value`: [`super::load`] for a parsed document.
fn from_value(value: &Value, options: &SchemaOptions, documents: &[(String, String)]) -> Result<Schema> {
    super::load(&value.to_string(), options, documents)
}

/// Values without white space, keys in this order.
fn compact(order: KeyOrder) -> SchemaOptions {
    SchemaOptions { order, whitespace: Whitespace::Compact, ..SchemaOptions::default() }
}

/// The machine of a schema; `None` if no value is valid.
fn machine(schema: &Arc<Schema>) -> Result<Option<Machine>> {
    let mut exprs = Exprs::new(1 << 20);
    let mut values = JsonRules::new();
    match values.root(schema, &mut TokenSets::default(), &mut exprs)? {
        Some(root) => Ok(Some(Machine::new(Box::new(values), root, exprs, MachineLimits::default())?)),
        None => Ok(None),
    }
}

/// Whether the machine accepts the whole text.
fn accepts(machine: &mut Option<Machine>, text: &str) -> bool {
    let Some(machine) = machine else { return false };
    let mut config = machine.start();
    for &byte in text.as_bytes() {
        config = machine.step(config, byte).unwrap();
        if config == DEAD {
            return false;
        }
    }
    machine.is_accepting(config)
}

/// A generator of numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % below
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.next(from.len())]
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.next(times) == 0
    }
}
