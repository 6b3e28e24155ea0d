//! The text of a tekken file from nowhere good.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::vocabulary::Vocabulary;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(vocabulary) = Vocabulary::from_tekken_bytes(bytes) {
        let total: usize = vocabulary.ids().map(|id| vocabulary.token_bytes(id).len()).sum();
        assert!(vocabulary.len() <= bytes.len() + (1 << 16) && total <= bytes.len() + (20 << 16));
    }
});
