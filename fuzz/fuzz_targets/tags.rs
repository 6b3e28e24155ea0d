//! Structural tags: any JSON gives rules or an error, never a panic.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use logitree::grammar::earley::RulesSource;
use logitree::grammar::expr::Exprs;
use logitree::grammar::json_schema::{load, JsonRules, SchemaOptions};
use logitree::grammar::tags;
use logitree_testing::gbnf_writer;

fuzz_target!(|text: &str| {
    let Ok(value) = serde_json::from_str(text) else { return };
    let schema = |text: &str, _: bool| load(text, &SchemaOptions::default(), &[]).map(Arc::new);
    let Ok(content) = tags::from_json(&value, &schema) else { return };
    let Ok(rules) = tags::rules(&content) else { return };
    assert!(gbnf_writer::show(&rules).lines().count() >= rules.rules.len());
    let mut exprs = Exprs::new(1 << 16);
    let _ = RulesSource::new(&rules, &mut exprs, Some(Box::new(JsonRules::new())));
});
