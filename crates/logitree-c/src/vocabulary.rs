//! Vocabularies.
#![allow(unsafe_code)] // exported names and pointers of the caller

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use logitree::constraint::{binding_count, clear_bindings, Grammar};
use logitree::vocabulary::{About, Builder, TokenKind, Vocabulary};

use crate::handles::{handle, remove, shared};
use crate::memory::{create, path, put, put_all, slice, texts, LogitreeText};
use crate::status::{argument, run, Outcome};
use crate::LogitreeStatus;

handle! {
    /// The bytes and the kind of every token, and the tokens that end a generation. It never changes: any number of threads
    /// may use it at once.
    LogitreeVocabulary, Arc<Vocabulary>, 1, "vocabulary"
}

/// Reads a vocabulary from a file.
unsafe fn load(
    file: *const c_char,
    out: *mut *mut LogitreeVocabulary,
    read: fn(&Path) -> logitree::Result<Vocabulary>,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(Arc::new(read(&path(file)?)?))) })
}

/// Reads a vocabulary from bytes.
unsafe fn parse(
    data: *const u8,
    length: usize,
    out: *mut *mut LogitreeVocabulary,
    read: fn(&[u8]) -> logitree::Result<Vocabulary>,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(Arc::new(read(slice(data, length, "data")?)?))) })
}

/// The vocabulary of a GGUF file, a whole model or vocabulary-only.
///
/// # Safety
/// `path` is NULL or ends in a byte of 0; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_from_gguf(
    path: *const c_char,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    unsafe { load(path, out, Vocabulary::from_gguf) }
}

/// The vocabulary of a Hugging Face tokenizer.json. Ends of generation are the added tokens with well-known texts:
/// logitree_vocabulary_with_end_tokens names others.
///
/// # Safety
/// As logitree_vocabulary_from_gguf.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_from_tokenizer_json(
    path: *const c_char,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    unsafe { load(path, out, Vocabulary::from_tokenizer_json) }
}

/// The same from the content of such a file.
///
/// # Safety
/// `length` bytes may be read at `data`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_from_tokenizer_json_bytes(
    data: *const u8,
    length: usize,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    unsafe { parse(data, length, out, Vocabulary::from_tokenizer_json_bytes) }
}

/// The vocabulary of a Mistral tekken JSON file.
///
/// # Safety
/// As logitree_vocabulary_from_gguf.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_from_tekken(
    path: *const c_char,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    unsafe { load(path, out, Vocabulary::from_tekken) }
}

/// The vocabulary of a SentencePiece model file.
///
/// # Safety
/// As logitree_vocabulary_from_gguf.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_from_sentencepiece(
    path: *const c_char,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    unsafe { load(path, out, Vocabulary::from_sentencepiece) }
}

/// The vocabulary of `count` tokens, whose ids are their positions.
///
/// `kinds`: NULL, or one number for each token: 0 normal, 1 byte, 2 user-defined, 3 control, 4 unknown, 5 unused. Without it
/// tokens are normal, and the end tokens control tokens.
///
/// # Safety
/// `count` texts may be read at `tokens` and, if it is not NULL, `count` numbers at `kinds`; `end_count` ids at
/// `end_tokens`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_from_tokens(
    tokens: *const LogitreeText,
    count: usize,
    kinds: *const u8,
    end_tokens: *const u32,
    end_count: usize,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let (tokens, ends) =
                unsafe { (texts(tokens, count, "tokens")?, slice(end_tokens, end_count, "end_tokens")?) };
            let mut builder = Builder::new();
            for token in tokens {
                builder.push(TokenKind::Normal, token)?;
            }
            let is_known = |id: &&u32| (**id as usize) < count;
            if kinds.is_null() {
                ends.iter().filter(is_known).for_each(|&id| builder.set_kind(id, TokenKind::Control));
            } else {
                // SAFETY: the caller's promise.
                for (&kind, id) in unsafe { slice(kinds, count, "kinds") }?.iter().zip(0..) {
                    let Some(&kind) = TokenKind::ALL.get(usize::from(kind)) else {
                        return Err(argument(format!("{kind} is no kind of token"), &format!("kinds[{id}]")));
                    };
                    builder.set_kind(id, kind);
                }
            }
            let about =
                About { source: "tokens".into(), end_of_generation: ends.to_vec(), ..About::default() };
            Ok(Arc::new(builder.build(about)?))
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// The same tokens with other end-of-generation ids.
///
/// # Safety
/// `count` ids may be read at `end_tokens`; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_with_end_tokens(
    vocabulary: *const LogitreeVocabulary,
    end_tokens: *const u32,
    count: usize,
    out: *mut *mut LogitreeVocabulary,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            let known = shared(vocabulary)?;
            // SAFETY: the caller's promise.
            let ends = unsafe { slice(end_tokens, count, "end_tokens") }?;
            let about = About { end_of_generation: ends.to_vec(), ..known.about().clone() };
            Ok(Arc::new(known.with_about(about)?))
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// Forgets what the vocabulary keeps of constraints, so that equal ones share their masks: the 256 last used at most. Matchers
/// live on. `count`, unless it is NULL, gets how many there were.
///
/// # Safety
/// `count` is NULL, or a number may be written at it.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_clear_bindings(
    vocabulary: *const LogitreeVocabulary,
    count: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let known = vocabulary_of(vocabulary)?;
        if !count.is_null() {
            // SAFETY: the caller's promise.
            unsafe { put(count, binding_count(&known), "count") }?;
        }
        clear_bindings(&known);
        Ok(())
    })
}

/// Frees a vocabulary. What was made with it lives on. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_vocabulary_free(vocabulary: *mut LogitreeVocabulary) -> LogitreeStatus {
    run(|| remove(vocabulary))
}

/// The number of tokens.
///
/// # Safety
/// A number may be written at `size`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_size(
    vocabulary: *const LogitreeVocabulary,
    size: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(size, shared(vocabulary)?.len(), "size") })
}

/// The bytes that a token stands for; for a token that is not text, its name. There is no byte of 0 after them.
///
/// # Safety
/// `capacity` bytes may be written at `out`, and a number at `length`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_token(
    vocabulary: *const LogitreeVocabulary,
    token: u32,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let known = shared(vocabulary)?;
        // SAFETY: the caller's promise.
        unsafe { put_all(known.token_bytes(known.check(token)?), out, capacity, length) }
    })
}

/// The end-of-generation ids, ascending.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_end_tokens(
    vocabulary: *const LogitreeVocabulary,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put_all(shared(vocabulary)?.end_of_generation(), out, capacity, count) })
}

/// The bytes of `count` tokens, one after the other; of tokens that are not text, nothing.
///
/// # Safety
/// `count` ids may be read at `tokens`, `capacity` bytes written at `out`, and a number at `length`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_decode(
    vocabulary: *const LogitreeVocabulary,
    tokens: *const u32,
    count: usize,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let known = shared(vocabulary)?;
        // SAFETY: the caller's promise.
        unsafe { put_all(&known.decode(slice(tokens, count, "tokens")?, true)?, out, capacity, length) }
    })
}

/// 16 bytes that are equal for vocabularies with equal tokens, kinds and end ids, whatever they were read from.
///
/// # Safety
/// 16 bytes may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_vocabulary_fingerprint(
    vocabulary: *const LogitreeVocabulary,
    out: *mut u8,
) -> LogitreeStatus {
    run(|| {
        let bytes = shared(vocabulary)?.fingerprint().to_le_bytes();
        let mut written = 0;
        // SAFETY: the caller's promise.
        unsafe { put_all(&bytes, out, bytes.len(), &raw mut written) }
    })
}

/// Finds ahead what grammars need of this vocabulary, some 20 to 60 ms. Without it the first masks of the first grammar take
/// that time.
#[no_mangle]
pub extern "C" fn logitree_vocabulary_prepare(vocabulary: *const LogitreeVocabulary) -> LogitreeStatus {
    run(|| Ok(Grammar::prepare(&*shared(vocabulary)?)?))
}

/// A vocabulary's value, for as long as a call needs it.
pub(crate) fn vocabulary_of(vocabulary: *const LogitreeVocabulary) -> Outcome<Arc<Vocabulary>> {
    Ok(Arc::clone(&*shared(vocabulary)?))
}
