//! The byte <-> character table of byte-level BPE (GPT-2's): every byte has one printable character, so that a
//! vocabulary can be written as text.
//!
//! Bytes that are printable in Latin-1 (0x21-0x7E, 0xA1-0xAC, 0xAE-0xFF) stand for themselves; the other 68, in
//! ascending order, have the characters from U+0100 on.

const CHARACTERS: usize = 0x100 + 68;

const fn is_printable(byte: usize) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// Code point to byte; -1 where the code point stands for none.
const BYTE_OF: [i16; CHARACTERS] = {
    let mut table = [-1; CHARACTERS];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 0x100 {
        if is_printable(byte) {
            table[byte] = byte as i16;
        } else {
            table[next] = byte as i16;
            next += 1;
        }
        byte += 1;
    }
    table
};

/// The byte that `character` stands for.
pub fn byte_of(character: char) -> Option<u8> {
    BYTE_OF.get(character as usize).and_then(|&byte| u8::try_from(byte).ok())
}

/// The character that stands for `byte`.
pub fn character_of(byte: u8) -> char {
    if is_printable(byte as usize) {
        return byte as char;
    }
    let rank = (0..byte).filter(|&b| !is_printable(b as usize)).count() as u32;
    char::from_u32(0x100 + rank).unwrap_or('\u{100}')
}

/// Appends the bytes that `text` stands for. A text with a character that stands for no byte (an added token
/// such as one with a space in it) stands for itself, as in Hugging Face's decoder.
pub(super) fn decode_into(text: &[u8], out: &mut Vec<u8>) {
    if text.iter().all(|b| (0x21..=0x7E).contains(b)) {
        return out.extend_from_slice(text);
    }
    let start = out.len();
    if !decode_usual(text, out) {
        out.truncate(start);
        decode_any(text, out);
    }
}

/// [`decode_any`] where every character stands for a byte; `false`, and part of the bytes written, where one does not.
fn decode_usual(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut bytes = text.iter();
    while let Some(&first) = bytes.next() {
        let byte = match first {
            0x21..=0x7E => Some(first),
            // The first of two bytes of the characters up to U+017F.
            0xC2..=0xC5 => bytes.next().filter(|next| (0x80..=0xBF).contains(*next)).and_then(|next| {
                let code = usize::from(first & 0x1F) << 6 | usize::from(next & 0x3F);
                BYTE_OF.get(code).and_then(|&byte| u8::try_from(byte).ok())
            }),
            _ => None,
        };
        let Some(byte) = byte else { return false };
        out.push(byte);
    }
    true
}

/// [`decode_into`], a character at a time.
fn decode_any(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let Ok(characters) = std::str::from_utf8(text) else { return out.extend_from_slice(text) };
    for character in characters.chars() {
        let Some(byte) = byte_of(character) else {
            out.truncate(start);
            return out.extend_from_slice(text);
        };
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for byte in 0..=255u8 {
            assert_eq!(byte_of(character_of(byte)), Some(byte));
            assert!(seen.insert(character_of(byte)));
        }
        assert_eq!((character_of(b' '), character_of(b'\n'), character_of(b'a')), ('Ġ', 'Ċ', 'a'));
        assert_eq!(byte_of('\u{144}'), None);
    }

    #[test]
    fn the_usual_texts_are_decoded_as_all_are() {
        let units: [&[u8]; 12] = [
            b"a",
            b"~",
            b" ",
            b"\x7f",
            "Ġ".as_bytes(),
            "é".as_bytes(),
            "Ń".as_bytes(),
            "ń".as_bytes(),
            "▁".as_bytes(),
            b"\xc3",
            b"\xa9",
            "\u{80}".as_bytes(),
        ];
        for n in 0..units.len().pow(4) {
            let text: Vec<u8> =
                (0..4).flat_map(|i| units[n / units.len().pow(i) % units.len()]).copied().collect();
            let (mut got, mut want) = (b"x".to_vec(), b"x".to_vec());
            decode_into(&text, &mut got);
            decode_any(&text, &mut want);
            assert_eq!(got, want, "{text:x?}");
        }
    }

    #[test]
    fn text_is_decoded_or_left_alone() {
        let decoded = |text: &str| {
            let mut out = b"x".to_vec();
            decode_into(text.as_bytes(), &mut out);
            out
        };
        assert_eq!(decoded("Ġhi"), b"x hi");
        assert_eq!(decoded("Ã©"), "xé".as_bytes());
        assert_eq!(decoded("Ġ b"), "xĠ b".as_bytes());
        assert_eq!(decoded("<｜end▁of▁sentence｜>"), "x<｜end▁of▁sentence｜>".as_bytes());
    }
}
