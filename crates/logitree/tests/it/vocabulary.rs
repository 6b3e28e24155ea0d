//! Every file under `testdata/hostile/LOADER/` must be an error of that loader: never a vocabulary, never a panic.

use logitree::vocabulary::Vocabulary;
use logitree::{ErrorKind, Result};
use logitree_testing::corpus;
use std::path::Path;

fn every_file_is_refused(loader: &str, load: fn(&Path) -> Result<Vocabulary>) {
    let files = corpus::files(&format!("hostile/{loader}"));
    assert!(!files.is_empty(), "{loader} is empty");
    for file in files {
        match load(&file) {
            Ok(vocabulary) => panic!("{} was read: {} tokens", file.display(), vocabulary.len()),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Vocabulary, "{}: {error}", file.display());
                assert!(!error.message.is_empty());
            }
        }
    }
}

#[test]
fn gguf() {
    every_file_is_refused("gguf", Vocabulary::from_gguf);
}

#[test]
fn tokenizer_json() {
    every_file_is_refused("tokenizer_json", Vocabulary::from_tokenizer_json);
}

#[test]
fn tekken() {
    every_file_is_refused("tekken", Vocabulary::from_tekken);
}

#[test]
fn sentencepiece() {
    every_file_is_refused("sentencepiece", Vocabulary::from_sentencepiece);
}
