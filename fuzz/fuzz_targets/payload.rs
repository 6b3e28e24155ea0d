//! Token-tree payloads: any bytes give an error or a tree, never a panic, and what a tree says holds together.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use logitree::constraint::{DescriptorTree, End, Payload, PayloadCheck, TokenTree};

fuzz_target!(|data: &[u8]| {
    let Ok(payload) = Payload::from_json(data) else { return };
    let Ok(tree) = TokenTree::new(payload, &PayloadCheck::default()) else { return };
    let tree = Arc::new(tree);
    for descriptor in tree.descriptors() {
        let binary = descriptor.to_binary();
        let again = DescriptorTree::from_binary(&binary).expect("what was written can be read");
        assert_eq!(again.to_binary(), binary);
        assert!(descriptor.dump(20, &|id| id.to_string()).lines().count() <= 22);
        let end = End { tokens: Some(vec![u32::MAX - 1]), ..End::default() };
        let Ok(mut matcher) = tree.matcher(descriptor.path(), &end) else { continue };
        let mut forced = Vec::new();
        matcher.forced(&mut forced).expect("a tree needs no fuel");
        for token in forced {
            matcher.accept(token).expect("a forced token is allowed");
        }
    }
});
