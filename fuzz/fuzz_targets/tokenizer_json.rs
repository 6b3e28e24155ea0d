//! The text of a tokenizer.json from nowhere good.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::vocabulary::Vocabulary;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(vocabulary) = Vocabulary::from_tokenizer_json_bytes(bytes) {
        let total: usize = vocabulary.ids().map(|id| vocabulary.token_bytes(id).len()).sum();
        assert!(vocabulary.len() <= 8 * bytes.len() + (1 << 16) && total <= 16 * bytes.len());
    }
});
