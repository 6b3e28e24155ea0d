//! A vocabulary from a SentencePiece model file (protobuf `ModelProto`), with a reader for just the fields that
//! matter.
//!
//! A normal or user-defined piece stands for its text with U+2581 as a space; a byte piece `<0xNN>` for that byte;
//! control, unknown and unused pieces for their names. The end of generation is the model's eos piece, and the
//! control and user-defined pieces that `markers.rs` knows. [`VocabularyOptions::adds_prefix_space`] is set where the
//! normaliser adds a dummy prefix or removes extra whitespace: then SentencePiece's decode takes one leading space
//! (with removal: every leading one) off a whole text, which the pieces' bytes keep.

use super::gguf::{byte_of, spaces_into};
use super::markers::Markers;
use super::reader::{malformed, Cursor};
use super::{Builder, TokenKind, Vocabulary, VocabularyOptions};
use crate::file;
use crate::{Result, TokenId};
use std::fmt::Display;
use std::path::Path;

/// What the trainer and normaliser messages say that matters, with the format's defaults.
struct Settings<'a> {
    bos: &'a [u8],
    eos: &'a [u8],
    suffix: bool,
    dummy_prefix: bool,
    remove_whitespace: bool,
    escape: bool,
}

/// A field's value.
enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8], usize),
    Fixed,
}

impl Vocabulary {
    /// The vocabulary of the SentencePiece model file at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read;
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary), naming the field and the byte offset, if it is
    /// malformed or truncated.
    pub fn from_sentencepiece(path: &Path) -> Result<Self> {
        file::load(path, Self::from_sentencepiece_bytes).map(Self::with_trie)
    }

    /// The vocabulary of the serialized SentencePiece model `model`.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary) as [`Vocabulary::from_sentencepiece`].
    pub fn from_sentencepiece_bytes(model: &[u8]) -> Result<Self> {
        let settings = Settings::read(model)?;
        let (mut builder, mut markers) = (Builder::new(), Markers::default());
        let (mut bos, mut eos) = (None, None);
        let mut cursor = Cursor::new(model, 0);
        while cursor.remaining() > 0 {
            let index = builder.len();
            let at = cursor.offset();
            let (1, value) = field(&mut cursor, "model")? else { continue };
            let (text, kind) = piece(model, value, at, index)?;
            let id = index as TokenId;
            let kind = match kind {
                TokenKind::Control | TokenKind::UserDefined => markers.see(id, text, kind),
                other => other,
            };
            if text == settings.bos && !kind.is_text() {
                bos = Some(id);
            }
            if text == settings.eos && !kind.is_text() {
                eos = Some(id);
            }
            match kind {
                TokenKind::Byte => {
                    let byte = byte_of(text).ok_or_else(|| {
                        malformed("a byte piece is written <0xNN>", at, format_args!("pieces[{index}].piece"))
                    })?;
                    builder.push(kind, &[byte])?
                }
                TokenKind::Normal | TokenKind::UserDefined if settings.escape => {
                    builder.push_with(kind, |out| spaces_into(text, out))?
                }
                _ => builder.push(kind, text)?,
            };
        }
        if builder.is_empty() {
            return Err(malformed("the model has no pieces", model.len(), "pieces"));
        }
        markers.named_ends.extend(eos);
        let end_tokens = markers.ends(&mut builder);
        builder.build(VocabularyOptions {
            name: String::new(),
            source: "sentencepiece".to_string(),
            bos,
            end_tokens,
            adds_prefix_space: !settings.suffix && (settings.dummy_prefix || settings.remove_whitespace),
        })
    }
}

impl<'a> Settings<'a> {
    fn read(model: &'a [u8]) -> Result<Self> {
        let mut settings = Settings {
            bos: b"<s>",
            eos: b"</s>",
            suffix: false,
            dummy_prefix: true,
            remove_whitespace: true,
            escape: true,
        };
        let mut cursor = Cursor::new(model, 0);
        while cursor.remaining() > 0 {
            match field(&mut cursor, "model")? {
                (2, Value::Bytes(bytes, at)) => settings.trainer(&model[..at + bytes.len()], at)?,
                (3, Value::Bytes(bytes, at)) => settings.normalizer(&model[..at + bytes.len()], at)?,
                (2 | 3, _) => return Err(cursor.fail("a message expected", "model")),
                _ => {}
            }
        }
        Ok(settings)
    }

    /// The message from `at` to the end of `bytes`.
    fn trainer(&mut self, bytes: &'a [u8], at: usize) -> Result<()> {
        let mut cursor = Cursor::new(bytes, at);
        while cursor.remaining() > 0 {
            match field(&mut cursor, "trainer_spec")? {
                (24, Value::Varint(truth)) => self.suffix = truth != 0,
                (46, Value::Bytes(text, _)) => self.bos = text,
                (47, Value::Bytes(text, _)) => self.eos = text,
                (24 | 46 | 47, _) => return Err(cursor.fail("a value of the wrong type", "trainer_spec")),
                _ => {}
            }
        }
        Ok(())
    }

    fn normalizer(&mut self, bytes: &'a [u8], at: usize) -> Result<()> {
        let mut cursor = Cursor::new(bytes, at);
        while cursor.remaining() > 0 {
            match field(&mut cursor, "normalizer_spec")? {
                (3, Value::Varint(truth)) => self.dummy_prefix = truth != 0,
                (4, Value::Varint(truth)) => self.remove_whitespace = truth != 0,
                (5, Value::Varint(truth)) => self.escape = truth != 0,
                (3..=5, _) => return Err(cursor.fail("a value of the wrong type", "normalizer_spec")),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Text and kind of the piece message that is field 1 of the model.
fn piece<'a>(model: &'a [u8], value: Value<'a>, at: usize, index: usize) -> Result<(&'a [u8], TokenKind)> {
    let name = format_args!("pieces[{index}]");
    let Value::Bytes(message, start) = value else {
        return Err(malformed("a message expected", at, name));
    };
    let mut cursor = Cursor::new(&model[..start + message.len()], start);
    let (mut text, mut kind): (&[u8], _) = (b"", TokenKind::Normal);
    while cursor.remaining() > 0 {
        let at = cursor.offset();
        match field(&mut cursor, name)? {
            (1, Value::Bytes(bytes, _)) => text = bytes,
            (3, Value::Varint(number)) => {
                kind = match number {
                    1 => TokenKind::Normal,
                    2 => TokenKind::Unknown,
                    3 => TokenKind::Control,
                    4 => TokenKind::UserDefined,
                    5 => TokenKind::Unused,
                    6 => TokenKind::Byte,
                    _ => return Err(malformed(format!("type {number} is no piece type"), at, name)),
                }
            }
            (1 | 3, _) => return Err(malformed("a value of the wrong type", at, name)),
            _ => {}
        }
    }
    Ok((text, kind))
}

/// The next field: its number and value.
fn field<'a>(cursor: &mut Cursor<'a>, name: impl Display) -> Result<(u64, Value<'a>)> {
    let tag = varint(cursor, &name)?;
    let value = match tag & 7 {
        0 => Value::Varint(varint(cursor, &name)?),
        1 => {
            cursor.take(8, &name)?;
            Value::Fixed
        }
        2 => {
            let length = varint(cursor, &name)?;
            let at = cursor.offset();
            Value::Bytes(cursor.take(length, &name)?, at)
        }
        5 => {
            cursor.take(4, &name)?;
            Value::Fixed
        }
        other => return Err(cursor.fail(format!("wire type {other} is not read"), &name)),
    };
    match tag >> 3 {
        0 => Err(cursor.fail("field number 0", &name)),
        number => Ok((number, value)),
    }
}

/// A base-128 number of at most ten bytes; bits past the 64th are dropped.
fn varint(cursor: &mut Cursor<'_>, name: impl Display) -> Result<u64> {
    let mut number = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = cursor.u8(&name)?;
        number |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(cursor.fail("a number of more than ten bytes", &name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn message(number: u8, body: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, body.len() as u8], body].concat()
    }

    fn piece(text: &str, kind: u8) -> Vec<u8> {
        let score = [0x15, 0, 0, 0x80, 0xBF];
        message(1, &[message(1, text.as_bytes()), score.to_vec(), vec![0x18, kind]].concat())
    }

    fn pieces() -> Vec<u8> {
        [("<unk>", 2), ("<bos>", 3), ("<eos>", 3), ("<0xFF>", 6), ("▁a", 1), ("▁▁", 4), ("x", 5)]
            .iter()
            .flat_map(|(text, kind)| piece(text, *kind))
            .collect()
    }

    fn model() -> Vec<u8> {
        let trainer = [&[0xF2, 2, 5][..], b"<bos>", &[0xFA, 2, 5], b"<eos>"].concat();
        let normalizer = [0x18, 1, 0x20, 0, 0x28, 1];
        [pieces(), message(2, &trainer), message(3, &normalizer), vec![0x39, 0, 0, 0, 0, 0, 0, 0, 0]].concat()
    }

    #[test]
    fn pieces_and_settings() {
        let v = Vocabulary::from_sentencepiece_bytes(&model()).unwrap();
        let bytes: Vec<&[u8]> = v.ids().map(|id| v.token_bytes(id)).collect();
        assert_eq!(bytes, [&b"<unk>"[..], b"<bos>", b"<eos>", b"\xFF", b" a", b"  ", b"x"]);
        let kinds: Vec<&str> = v.ids().map(|id| v.kind(id).name()).collect();
        assert_eq!(kinds, ["unknown", "control", "control", "byte", "normal", "user_defined", "unused"]);
        assert_eq!((v.bos(), v.end_tokens()), (Some(1), &[2][..]));
        assert!(v.about().adds_prefix_space);
        let plain = [pieces(), message(3, &[0x18, 0, 0x20, 0])].concat();
        assert!(!Vocabulary::from_sentencepiece_bytes(&plain).unwrap().about().adds_prefix_space);
    }

    #[test]
    fn truncation_is_an_error_or_a_shorter_list() {
        let (model, mut boundaries) = (model(), 0);
        for end in 0..model.len() {
            match Vocabulary::from_sentencepiece_bytes(&model[..end]) {
                // Protobuf has no end mark: cut between two fields, a message is a valid shorter one.
                Ok(v) => {
                    assert!(v.len() <= 7);
                    boundaries += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Vocabulary);
                    assert!(error.place.starts_with("offset "), "{error}");
                }
            }
        }
        assert_eq!(boundaries, 9);
    }

    #[test]
    fn no_byte_makes_it_panic() {
        let model = model();
        for at in 0..model.len() {
            for value in 0..=255 {
                let mut changed = model.clone();
                changed[at] = value;
                let _ = Vocabulary::from_sentencepiece_bytes(&changed).map(|v| v.fingerprint());
            }
        }
    }

    #[test]
    fn hostile_models_are_errors_that_say_where() {
        for (bytes, message_part, place) in [
            (vec![], "no pieces", "pieces"),
            (vec![0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], "left", "model"),
            ([vec![0x0A], vec![0xFF; 11]].concat(), "ten bytes", "model"),
            (vec![0x0B], "wire type 3", "model"),
            (vec![0x02, 0], "field number 0", "model"),
            (vec![0x08, 1], "a message expected", "pieces[0]"),
            (piece("a", 9), "no piece type", "pieces[0]"),
            (piece("<0xZZ>", 6), "<0xNN>", "pieces[0].piece"),
            (message(1, &[0x0A, 9, 1]), "left", "pieces[0]"),
            (message(2, &[0xF0, 2, 1]), "wrong type", "trainer_spec"),
        ] {
            let error = Vocabulary::from_sentencepiece_bytes(&bytes).unwrap_err();
            assert!(error.message.contains(message_part), "{message_part}: {error}");
            assert!(error.place.contains(place), "{place}: {error}");
        }
    }
}
