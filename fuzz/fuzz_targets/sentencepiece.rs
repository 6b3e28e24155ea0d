//! A serialized SentencePiece model from nowhere good.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::vocabulary::Vocabulary;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(vocabulary) = Vocabulary::from_sentencepiece_bytes(bytes) {
        let total: usize = vocabulary.ids().map(|id| vocabulary.token_bytes(id).len()).sum();
        assert!(vocabulary.len() <= bytes.len() && total <= bytes.len());
    }
});
