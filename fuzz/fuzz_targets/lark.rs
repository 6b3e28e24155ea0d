//! Lark: any text gives rules or an error, never a panic, and the rules can be shown and compiled.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use logitree::grammar::earley::RulesSource;
use logitree::grammar::expr::Exprs;
use logitree::grammar::gbnf;
use logitree::grammar::json_schema::{load, JsonRules, SchemaOptions};
use logitree::grammar::lark::{self, Resources};
use logitree_testing::gbnf_writer;

fuzz_target!(|text: &str| {
    let other = gbnf::parse("root ::= \"x\" root | \"y\"").expect("a grammar");
    let grammars = BTreeMap::from([("other".to_string(), other)]);
    let schema = |text: &str| load(text, &SchemaOptions::default(), &[]).map(Arc::new);
    let Ok(rules) = lark::parse(text, &Resources { grammars: &grammars, schema: &schema }) else { return };
    assert!(gbnf_writer::show(&rules).lines().count() >= rules.rules.len());
    let mut exprs = Exprs::new(1 << 16);
    let _ = RulesSource::new(&rules, &mut exprs, Some(Box::new(JsonRules::new())));
});
