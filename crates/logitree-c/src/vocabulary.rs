//! Vocabularies.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use logitree::constraint::BoundGrammar;
use logitree::vocabulary::{Builder, TokenKind, Vocabulary, VocabularyOptions};

use crate::handles::{handle, shared};
use crate::memory::{export, In, LogitreeText, Out};
use crate::status::{argument, Outcome};

handle! {
    /// The bytes and the kind of every token, and the tokens that end a generation. It never changes: any number of
    /// threads may use it at once.
    LogitreeVocabulary, Arc<Vocabulary>, 1, "vocabulary"
}

/// What reads one format: files, and their content.
type Reader = (fn(&Path) -> logitree::Result<Vocabulary>, fn(&[u8]) -> logitree::Result<Vocabulary>);

/// The reader of a format.
fn reader(format: In<c_char>) -> Outcome<Reader> {
    Ok(match format.text()? {
        "gguf" => (Vocabulary::from_gguf, Vocabulary::from_gguf_bytes),
        "tokenizer_json" => (Vocabulary::from_tokenizer_json, Vocabulary::from_tokenizer_json_bytes),
        "tekken" => (Vocabulary::from_tekken, Vocabulary::from_tekken_bytes),
        "sentencepiece" => (Vocabulary::from_sentencepiece, Vocabulary::from_sentencepiece_bytes),
        other => {
            let mut failed = argument(format!("there is no format {other:?}"), "format");
            failed.error.help = "give gguf, tokenizer_json, tekken or sentencepiece".into();
            return Err(failed);
        }
    })
}

export! {
    /// The vocabulary of a file.
    ///
    /// `format`: "gguf", a whole model or vocabulary-only; "tokenizer_json", Hugging Face's; "tekken", Mistral's JSON;
    /// "sentencepiece", a model file. A tokenizer.json does not name the ends of generation: they are the added tokens
    /// with well-known texts, and logitree_vocabulary_with_end_tokens names others.
    ///
    /// Pointers: `format` and `path` are NULL or end in a byte of 0.
    fn logitree_vocabulary_from_file(format: In<c_char>, path: In<c_char>, out: Out<*mut LogitreeVocabulary>) {
        out.create(|| Ok(Arc::new(reader(format)?.0(&path.path()?)?)))
    }

    /// The same from the content of such a file.
    ///
    /// Pointers: `format` is NULL or ends in a byte of 0; `length` bytes may be read at `data`.
    fn logitree_vocabulary_from_bytes(
        format: In<c_char>,
        data: In<u8>,
        length: usize,
        out: Out<*mut LogitreeVocabulary>,
    ) {
        out.create(|| Ok(Arc::new(reader(format)?.1(data.slice(length)?)?)))
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
                VocabularyOptions { source: "tokens".into(), end_tokens: ends.to_vec(), ..VocabularyOptions::default() };
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
            let about = VocabularyOptions { end_tokens: ends.to_vec(), ..known.about().clone() };
            Ok(Arc::new(known.with_about(about)?))
        };
        out.create(make)
    }

    /// The number of tokens.
    fn logitree_vocabulary_size(vocabulary: *const LogitreeVocabulary, size: Out<usize>) {
        size.put(shared(vocabulary)?.len())
    }

    /// The end-of-generation ids, ascending.
    fn logitree_vocabulary_end_tokens(
        vocabulary: *const LogitreeVocabulary,
        out: Out<u32>,
        capacity: usize,
        count: Out<usize>,
    ) {
        out.put_all(shared(vocabulary)?.end_tokens(), capacity, count)
    }

    /// The bytes of `count` tokens, one after the other, without a byte of 0 after them. `special`: whether tokens that
    /// are not text give their names; else they give nothing.
    fn logitree_vocabulary_decode(
        vocabulary: *const LogitreeVocabulary,
        tokens: In<u32>,
        count: usize,
        special: bool,
        out: Out<u8>,
        capacity: usize,
        length: Out<usize>,
    ) {
        let known = shared(vocabulary)?;
        out.put_all(&known.decode(tokens.slice(count)?, !special)?, capacity, length)
    }

    /// Finds ahead what grammars need of this vocabulary, some 20 to 60 ms. Without it the first masks of the first
    /// grammar take that time.
    fn logitree_vocabulary_prepare(vocabulary: *const LogitreeVocabulary) {
        Ok(BoundGrammar::prepare(&*shared(vocabulary)?)?)
    }
}

/// A vocabulary's value, for as long as a call needs it.
pub(crate) fn vocabulary_of(vocabulary: *const LogitreeVocabulary) -> Outcome<Arc<Vocabulary>> {
    Ok(Arc::clone(&*shared(vocabulary)?))
}
