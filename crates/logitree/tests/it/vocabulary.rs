//! Every file under `testdata/hostile/LOADER/` must be an error of that loader: never a vocabulary, never a panic.

use logitree::vocabulary::Vocabulary;
use logitree::{ErrorKind, Result};
use std::path::Path;

fn every_file_is_refused(loader: &str, load: fn(&Path) -> Result<Vocabulary>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hostile").join(loader);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
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
