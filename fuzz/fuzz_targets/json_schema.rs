//! JSON Schema documents: any text gives an error or a schema that holds together, strict and lenient.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::grammar::json_schema::{load, Draft, Options};

fuzz_target!(|text: &str| {
    let drafts = [Draft::Draft4, Draft::Draft6, Draft::Draft7, Draft::Draft2019, Draft::Draft2020];
    let draft = drafts[text.len() % drafts.len()];
    let documents = [("http://x.test/a".to_string(), text.to_string())];
    for lenient in [false, true] {
        let options = Options { lenient, draft, ..Options::default() };
        let Ok(schema) = load(text, &options, &documents) else { continue };
        assert_eq!(schema.places.len(), schema.nodes.len());
        assert!((schema.root as usize) < schema.nodes.len());
        assert!(lenient || schema.warnings.is_empty());
        // Every subschema that is named is there, and can be shown.
        assert!(schema.to_string().lines().count() >= schema.nodes.len());
    }
});
