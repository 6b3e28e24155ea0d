//! Binary token trees: any bytes give an error or a tree that is written and read again without change.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::constraint::DescriptorTree;

fuzz_target!(|data: &[u8]| {
    let Ok(tree) = DescriptorTree::from_binary(data) else { return };
    let binary = tree.to_binary();
    assert_eq!(binary.len(), data.len());
    let again = DescriptorTree::from_binary(&binary).expect("what was written can be read");
    assert_eq!(again, tree);
    tree.for_each_leaf(|node, tokens| {
        assert!(tree.is_terminal(node) && !tokens.is_empty());
    });
});
