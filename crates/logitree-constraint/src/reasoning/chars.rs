//! The position of a byte stream inside a UTF-8 character (The Unicode Standard, table 3-7), and which tokens
//! complete the character without going past it.

use logitree_tokens::vocabulary::Vocabulary;
use logitree_tokens::TokenId;

/// The bytes that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Chars {
    /// None: a character ended here, or the bytes here are not UTF-8.
    #[default]
    Whole,
    /// Any one, two or three.
    One,
    Two,
    Three,
    /// Two or three; the first may not be any byte.
    AfterE0,
    AfterEd,
    AfterF0,
    AfterF4,
}

use Chars::{AfterE0, AfterEd, AfterF0, AfterF4, One, Three, Two, Whole};

/// All in which bytes are missing, by their number less one.
const CUT: [Chars; 7] = [One, Two, Three, AfterE0, AfterEd, AfterF0, AfterF4];

impl Chars {
    /// After a byte that continues the character.
    fn on(self, byte: u8) -> Option<Chars> {
        let (bytes, next) = match self {
            Whole => return None,
            One => (0x80..=0xbf, Whole),
            Two => (0x80..=0xbf, One),
            Three => (0x80..=0xbf, Two),
            AfterE0 => (0xa0..=0xbf, One),
            AfterEd => (0x80..=0x9f, One),
            AfterF0 => (0x90..=0xbf, Two),
            AfterF4 => (0x80..=0x8f, Two),
        };
        bytes.contains(&byte).then_some(next)
    }

    /// After a byte that begins a character.
    fn first(byte: u8) -> Chars {
        match byte {
            0xc2..=0xdf => One,
            0xe0 => AfterE0,
            0xe1..=0xec | 0xee | 0xef => Two,
            0xed => AfterEd,
            0xf0 => AfterF0,
            0xf1..=0xf3 => Three,
            0xf4 => AfterF4,
            _ => Whole,
        }
    }

    /// After a token. One that is no text ends a character that is cut.
    pub fn after(self, token: TokenId, vocabulary: &Vocabulary) -> Chars {
        match (token as usize) < vocabulary.len() && vocabulary.kind(token).is_text() {
            true => vocabulary.token_bytes(token).iter().fold(self, |at, &byte| at.read(byte)),
            false => Whole,
        }
    }

    fn read(self, byte: u8) -> Chars {
        self.on(byte).unwrap_or_else(|| Chars::first(byte))
    }
}

/// The tokens that continue an incomplete character, not past its end.
#[derive(Debug, Default)]
pub(super) struct Completing {
    lists: [Vec<TokenId>; 7],
}

impl Completing {
    /// Those of `vocabulary` but `except`.
    pub fn new(vocabulary: &Vocabulary, except: &[TokenId]) -> Completing {
        let mut made = Completing::default();
        let text = |id: &TokenId| vocabulary.kind(*id).is_text() && !except.contains(id);
        for id in
            (0..vocabulary.len() as TokenId).filter(|&id| is_inner(vocabulary.token_bytes(id))).filter(text)
        {
            for (from, list) in CUT.iter().zip(&mut made.lists) {
                let bytes = vocabulary.token_bytes(id);
                if bytes.iter().try_fold(*from, |at, &byte| at.on(byte)).is_some() {
                    list.push(id);
                }
            }
        }
        made
    }

    /// Ascending; empty where nothing is to be completed, or can be.
    pub fn of(&self, at: Chars) -> &[TokenId] {
        CUT.iter().position(|cut| *cut == at).map_or(&[], |n| &self.lists[n])
    }
}

/// Whether these may be the later bytes of one character.
fn is_inner(bytes: &[u8]) -> bool {
    (1..=3).contains(&bytes.len()) && bytes.iter().all(|byte| (0x80..=0xbf).contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard library's word on every cut of every character, and on invalid bytes.
    #[test]
    fn a_cut_is_where_the_standard_library_says_that_more_is_to_come() {
        let is_cut = |bytes: &[u8]| std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none());
        let at = |bytes: &[u8]| bytes.iter().fold(Whole, |at, &byte| at.read(byte));
        for scalar in (0..=0x10_ffff).step_by(7).filter_map(char::from_u32) {
            let text = scalar.to_string();
            for n in 0..=text.len() {
                assert_eq!(at(&text.as_bytes()[..n]) != Whole, is_cut(&text.as_bytes()[..n]), "{text:?} {n}");
            }
        }
        for a in 0x70..=0xff {
            for b in 0x70..=0xff {
                for c in [0x41, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2, 0xe1, 0xf4] {
                    let cut = (0..3).any(|from| is_cut(&[a, b, c][from..]));
                    assert_eq!(at(&[a, b, c]) != Whole, cut, "{a:x} {b:x} {c:x}");
                }
            }
        }
    }
}
