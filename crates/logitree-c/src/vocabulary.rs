//! Vocabularies.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use logitree::constraint::{binding_count, clear_bindings, Grammar};
use logitree::vocabulary::{Builder, TokenKind, Vocabulary, VocabularyOptions};

use crate::handles::{handle, remove, shared};
use crate::memory::{export, In, LogitreeText, Out};
use crate::status::{argument, Outcome};

handle! {
    /// The bytes and the kind of every token, and the tokens that end a generation. It never changes: any number of
    /// threads may use it at once.
    LogitreeVocabulary, Arc<Vocabulary>, 1, "vocabulary"
}

/// Reads a vocabulary from a file.
fn load(
    file: In<c_char>,
    out: Out<*mut LogitreeVocabulary>,
    read: fn(&Path) -> logitree::Result<Vocabulary>,
) -> Outcome {
    out.create(|| Ok(Arc::new(read(&file.path()?)?)))
}

export! {
    /// The vocabulary of a GGUF file, a whole model or vocabulary-only. `path` ends in a byte of 0.
    fn logitree_vocabulary_from_gguf(path: In<c_char>, out: Out<*mut LogitreeVocabulary>) {
        load(path, out, Vocabulary::from_gguf)
    }

    /// The vocabulary of a Hugging Face tokenizer.json. Ends of generation are the added tokens with well-known texts:
    /// logitree_vocabulary_with_end_tokens names others.
    fn logitree_vocabulary_from_tokenizer_json(path: In<c_char>, out: Out<*mut LogitreeVocabulary>) {
        load(path, out, Vocabulary::from_tokenizer_json)
    }

    /// The same from the content of such a file.
    fn logitree_vocabulary_from_tokenizer_json_bytes(
        data: In<u8>,
        length: usize,
        out: Out<*mut LogitreeVocabulary>,
    ) {
        out.create(|| Ok(Arc::new(Vocabulary::from_tokenizer_json_bytes(data.slice(length)?)?)))
    }

    /// The vocabulary of a Mistral tekken JSON file.
    fn logitree_vocabulary_from_tekken(path: In<c_char>, out: Out<*mut LogitreeVocabulary>) {
        load(path, out, Vocabulary::from_tekken)
    }

    /// The vocabulary of a SentencePiece model file.
    fn logitree_vocabulary_from_sentencepiece(path: In<c_char>, out: Out<*mut LogitreeVocabulary>) {
        load(path, out, Vocabulary::from_sentencepiece)
    }

    /// The vocabulary of `count` tokens, whose ids are their positions.
    ///
    /// `kinds`: NULL, or one number for each token: 0 normal, 1 byte, 2 user-defined, 3 control, 4 unknown, 5 unused.
    /// Without it tokens are normal, and the end tokens control tokens.
    ///
    /// Pointers: `count` texts may be read at `tokens` and, if it is not NULL, `count` numbers at `kinds`; `end_count`
    /// ids at `end_tokens`.
    fn logitree_vocabulary_from_tokens(
        tokens: In<LogitreeText>,
        count: usize,
        kinds: In<u8>,
        end_tokens: In<u32>,
        end_count: usize,
        out: Out<*mut LogitreeVocabulary>,
    ) {
        let make = || {
            let (tokens, ends) =
                (tokens.texts(count)?, end_tokens.slice(end_count)?);
            let mut builder = Builder::new();
            for token in tokens {
                builder.push(TokenKind::Normal, token)?;
            }
            let is_known = |id: &&u32| (**id as usize) < count;
            if kinds.is_null() {
                ends.iter().filter(is_known).for_each(|&id| builder.set_kind(id, TokenKind::Control));
            } else {
                for (&kind, id) in kinds.slice(count)?.iter().zip(0..) {
                    let Some(&kind) = TokenKind::ALL.get(usize::from(kind)) else {
                        return Err(argument(format!("{kind} is no kind of token"), &format!("kinds[{id}]")));
                    };
                    builder.set_kind(id, kind);
                }
            }
            let about =
                VocabularyOptions { source: "tokens".into(), end_of_generation: ends.to_vec(), ..VocabularyOptions::default() };
            Ok(Arc::new(builder.build(about)?))
        };
        out.create(make)
    }

    /// The same tokens with other end-of-generation ids.
    fn logitree_vocabulary_with_end_tokens(
        vocabulary: *const LogitreeVocabulary,
        end_tokens: In<u32>,
        count: usize,
        out: Out<*mut LogitreeVocabulary>,
    ) {
        let make = || {
            let known = shared(vocabulary)?;
            let ends = end_tokens.slice(count)?;
            let about = VocabularyOptions { end_of_generation: ends.to_vec(), ..known.about().clone() };
            Ok(Arc::new(known.with_about(about)?))
        };
        out.create(make)
    }

    /// Forgets what the vocabulary keeps of constraints, so that equal ones share their masks: the 256 last used at
    /// most. Matchers live on. `count`, unless it is NULL, gets how many there were.
    ///
    /// Pointers: `count` is NULL, or a number may be written at it.
    fn logitree_vocabulary_clear_bindings(vocabulary: *const LogitreeVocabulary, count: Out<usize>) {
        let known = vocabulary_of(vocabulary)?;
        if !count.is_null() {
            count.put(binding_count(&known))?;
        }
        clear_bindings(&known);
        Ok(())
    }

    /// Frees a vocabulary. What was made with it lives on. NULL is no error.
    fn logitree_vocabulary_free(vocabulary: *mut LogitreeVocabulary) {
        remove(vocabulary)
    }

    /// The number of tokens.
    fn logitree_vocabulary_size(vocabulary: *const LogitreeVocabulary, size: Out<usize>) {
        size.put(shared(vocabulary)?.len())
    }

    /// The bytes that a token stands for; for a token that is not text, its name. There is no byte of 0 after them.
    fn logitree_vocabulary_token(
        vocabulary: *const LogitreeVocabulary,
        token: u32,
        out: Out<u8>,
        capacity: usize,
        length: Out<usize>,
    ) {
        let known = shared(vocabulary)?;
        out.put_all(known.token_bytes(known.check(token)?), capacity, length)
    }

    /// The end-of-generation ids, ascending.
    fn logitree_vocabulary_end_tokens(
        vocabulary: *const LogitreeVocabulary,
        out: Out<u32>,
        capacity: usize,
        count: Out<usize>,
    ) {
        out.put_all(shared(vocabulary)?.end_of_generation(), capacity, count)
    }

    /// The bytes of `count` tokens, one after the other; of tokens that are not text, nothing.
    fn logitree_vocabulary_decode(
        vocabulary: *const LogitreeVocabulary,
        tokens: In<u32>,
        count: usize,
        out: Out<u8>,
        capacity: usize,
        length: Out<usize>,
    ) {
        let known = shared(vocabulary)?;
        out.put_all(&known.decode(tokens.slice(count)?, true)?, capacity, length)
    }

    /// 16 bytes that are equal for vocabularies with equal tokens, kinds and end ids, whatever they were read from.
    fn logitree_vocabulary_fingerprint(vocabulary: *const LogitreeVocabulary, out: Out<u8>) {
        let bytes = shared(vocabulary)?.fingerprint().to_le_bytes();
        out.slice(bytes.len())?.copy_from_slice(&bytes);
        Ok(())
    }

    /// Finds ahead what grammars need of this vocabulary, some 20 to 60 ms. Without it the first masks of the first
    /// grammar take that time.
    fn logitree_vocabulary_prepare(vocabulary: *const LogitreeVocabulary) {
        Ok(Grammar::prepare(&*shared(vocabulary)?)?)
    }
}

/// A vocabulary's value, for as long as a call needs it.
pub(crate) fn vocabulary_of(vocabulary: *const LogitreeVocabulary) -> Outcome<Arc<Vocabulary>> {
    Ok(Arc::clone(&*shared(vocabulary)?))
}
