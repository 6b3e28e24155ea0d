//! Parses JSON text into a [`Document`] without recursion. `serde_json` would build a tree of separate allocations without
//! byte offsets, and by default stops at 128 levels; schemas nest deeper, and errors name places in the text.

use super::document::{Document, ValueId, ValueKind, ValueNode, ROOT};
use crate::{Error, ErrorKind, Result};

/// Maximum nesting of arrays and objects. A subschema takes at most two levels, so 512 nested subschemas fit.
pub(super) const DEEPEST: usize = 1024;

/// Maximum length of a document in bytes.
const LONGEST: usize = 16 << 20;

/// Maximum number of keys and values in a document: reading a list of as many numbers takes a quarter of a second.
const MOST: usize = 1_000_000;

struct JsonParser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    open: Vec<ValueId>,
    out: Document,
}

/// The document in `text`.
///
/// # Errors
/// Constraint with line and column where it is not JSON; Limit where it is too long or too deep.
pub(super) fn parse(text: &str) -> Result<Document> {
    if text.len() > LONGEST {
        let message = format!("a JSON document has {} bytes, {LONGEST} is the most", text.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    let mut out = Document { text: text.into(), ..Document::default() };
    out.nodes.reserve(text.len() / 12 + 4);
    let mut parser = JsonParser { text, bytes: text.as_bytes(), at: 0, open: Vec::new(), out };
    parser.document()?;
    Ok(parser.out)
}

/// How many bytes come before the first that is a quote, a backslash or a control character, or the end.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    // The top bit of each byte that is less than `limit`, which is at most 128; past the first one others may be set too.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & TOPS;
    let all = |byte: u8| ONES * u64::from(byte);
    let (words, _) = bytes.as_chunks();
    for (n, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ all(b'"'), 1);
        let found = quote | below(word ^ all(b'\\'), 1) | below(word, 0x20);
        if found != 0 {
            return 8 * n + found.trailing_zeros() as usize / 8;
        }
    }
    let rest = &bytes[8 * words.len()..];
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
    8 * words.len() + end.unwrap_or(rest.len())
}

impl JsonParser<'_> {
    fn document(&mut self) -> Result<()> {
        loop {
            let mut opened = false;
            self.space();
            match self.peek() {
                b'{' => opened = self.open(ValueKind::Object)?,
                b'[' => opened = self.open(ValueKind::Array)?,
                b'"' => self.string()?,
                b't' => self.word("true", ValueKind::True)?,
                b'f' => self.word("false", ValueKind::False)?,
                b'n' => self.word("null", ValueKind::Null)?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => return Err(self.wrong("a value")),
            }
            if self.out.nodes.len() > MOST {
                let message = format!("a JSON document has more than {MOST} keys and values");
                return Err(self.error(ErrorKind::Limit, message));
            }
            if !opened && self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Begins a container and its first key; true where a value follows.
    fn open(&mut self, kind: ValueKind) -> Result<bool> {
        if self.open.len() >= DEEPEST {
            let message = format!("a JSON document is nested more than {DEEPEST} levels deep");
            return Err(self.error(ErrorKind::Limit, message));
        }
        self.open.push(ValueId::new(self.out.nodes.len()));
        self.out.nodes.push(ValueNode { kind, end: ROOT, from: self.at as u32, len: 0 });
        self.at += 1;
        self.space();
        if self.peek() == if kind == ValueKind::Object { b'}' } else { b']' } {
            self.close();
            return Ok(false);
        }
        if kind == ValueKind::Object {
            self.key()?;
        }
        Ok(true)
    }

    fn close(&mut self) {
        self.at += 1;
        if let Some(top) = self.open.pop() {
            self.out.nodes[top.index()].end = ValueId::new(self.out.nodes.len());
        }
    }

    /// Reads from a value to the next one; true at the end of the document.
    fn after_value(&mut self) -> Result<bool> {
        loop {
            self.space();
            let Some(&top) = self.open.last() else {
                return if self.at == self.bytes.len() { Ok(true) } else { Err(self.wrong("the end")) };
            };
            let top = &mut self.out.nodes[top.index()];
            top.len += 1;
            match (top.kind, self.peek()) {
                (ValueKind::Object, b'}') | (ValueKind::Array, b']') => self.close(),
                (ValueKind::Object, b',') => {
                    self.at += 1;
                    self.space();
                    self.key()?;
                    return Ok(false);
                }
                (_, b',') => {
                    self.at += 1;
                    return Ok(false);
                }
                (ValueKind::Object, _) => return Err(self.wrong("`,` or `}`")),
                _ => return Err(self.wrong("`,` or `]`")),
            }
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<()> {
        if self.peek() != b'"' {
            return Err(self.wrong("a key in quotes"));
        }
        let key = ValueId::new(self.out.nodes.len());
        self.string()?;
        self.space();
        if self.peek() != b':' {
            return Err(self.wrong("`:`"));
        }
        self.at += 1;
        self.space();
        if self.open.len() > 1 && !self.out.names_inner && matches!(self.peek(), b'"' | b't') {
            let names = ["id", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];
            self.out.names_inner = names.contains(&self.out.text(key));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        let from = self.at + 1;
        self.at = from;
        self.at += plain_length(&self.bytes[from..]);
        if self.peek() != b'"' {
            return self.escaped(from);
        }
        let len = (self.at - from) as u32;
        self.scalar(ValueKind::Plain, from as u32, len);
        self.at += 1;
        Ok(())
    }

    /// The rest of a string that has escapes, or is wrong.
    fn escaped(&mut self, mut from: usize) -> Result<()> {
        let start = self.out.unescaped.len();
        loop {
            match self.peek() {
                b'"' => break,
                b'\\' => {
                    self.out.unescaped.push_str(&self.text[from..self.at]);
                    self.at += 1;
                    let c = self.escape()?;
                    self.out.unescaped.push(c);
                    from = self.at;
                }
                0..=0x1f if self.at == self.bytes.len() => return Err(self.wrong("`\"`")),
                0..=0x1f => return Err(self.wrong("no control character in a string")),
                _ => self.at += 1,
            }
        }
        self.out.unescaped.push_str(&self.text[from..self.at]);
        self.at += 1;
        let len = self.out.unescaped.len() - start;
        self.scalar(ValueKind::Escaped, start as u32, len as u32);
        Ok(())
    }

    /// The character of an escape whose backslash is read.
    fn escape(&mut self) -> Result<char> {
        let c = match self.peek() {
            c @ (b'"' | b'\\' | b'/') => c.into(),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.wrong("an escape")),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode(&mut self) -> Result<char> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 1;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            } else {
                first
            }
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.wrong("no lone surrogate: it is no character"))
    }

    /// `u` and four digits.
    fn hex(&mut self) -> Result<u32> {
        let digits =
            self.text.get(self.at + 1..self.at + 5).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let code = code.ok_or_else(|| self.wrong("four hexadecimal digits"))?;
        self.at += 5;
        Ok(code)
    }

    fn number(&mut self) -> Result<()> {
        let from = self.at;
        self.at += usize::from(self.peek() == b'-');
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            self.digits()?;
        }
        self.scalar(ValueKind::Number, from as u32, (self.at - from) as u32);
        Ok(())
    }

    fn digits(&mut self) -> Result<()> {
        if !self.peek().is_ascii_digit() {
            return Err(self.wrong("a digit"));
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &str, kind: ValueKind) -> Result<()> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong("a value"));
        }
        self.scalar(kind, self.at as u32, 0);
        self.at += word.len();
        Ok(())
    }

    fn scalar(&mut self, kind: ValueKind, from: u32, len: u32) {
        let end = ValueId::new(self.out.nodes.len() + 1);
        self.out.nodes.push(ValueNode { kind, end, from, len });
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// The byte here; 0 at the end, which no JSON text holds.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn wrong(&self, expected: &str) -> Error {
        let seen = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => format!("{c:?}"),
            None if self.at >= self.bytes.len() => "the end of the text".into(),
            None => "a part of a character".into(),
        };
        self.error(ErrorKind::Constraint, format!("not JSON: expected {expected}, found {seen}"))
    }

    fn error(&self, kind: ErrorKind, message: String) -> Error {
        let before = &self.bytes[..self.at.min(self.bytes.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Error::new(kind, message).at(format!("{line}:{column}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_end_where_one_is_not() {
        let is_plain = |byte: u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
        for before in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
            for place in 0..20 {
                for byte in 0..=255 {
                    let mut bytes = vec![before; 20];
                    bytes[place] = byte;
                    assert_eq!(plain_length(&bytes), if is_plain(byte) { 20 } else { place });
                    bytes[place / 2] = b'"';
                    let first = if is_plain(byte) { place / 2 } else { place.min(place / 2) };
                    assert_eq!(plain_length(&bytes), first);
                }
            }
        }
        assert_eq!(plain_length(b""), 0);
    }
}
