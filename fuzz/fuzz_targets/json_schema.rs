//! JSON Schema documents: any text gives an error or a schema that holds together, strict and lenient.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::grammar::json_schema::{load, Draft, SchemaOptions};

fuzz_target!(|text: &str| {
    let drafts = [Draft::Draft4, Draft::Draft6, Draft::Draft7, Draft::Draft2019, Draft::Draft2020];
    let draft = drafts[text.len() % drafts.len()];
    let documents = [("http://x.test/a".to_string(), text.to_string())];
    for lenient in [false, true] {
        let options = SchemaOptions { lenient, draft, ..SchemaOptions::default() };
        let Ok(schema) = load(text, &options, &documents) else { continue };
        assert!(lenient || schema.warnings.is_empty());
        assert!(!schema.to_string().is_empty());
    }
});
