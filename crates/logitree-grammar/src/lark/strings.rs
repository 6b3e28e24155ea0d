//! Reads Lark's strings: JSON's escapes and `\xHH`.

use super::super::problems::Problems;

/// The text of `said`, which is `"..."` or `"..."i` at the byte offset `at`, and whether its case is ignored.
pub(super) fn text(said: &str, at: usize, problems: &mut Problems) -> (String, bool) {
    let fold = said.ends_with('i');
    let inner = said.strip_prefix('"').unwrap_or(said);
    let inner = inner.strip_suffix('i').filter(|_| fold).unwrap_or(inner);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(backslash) = rest.find('\\') {
        text.push_str(&rest[..backslash]);
        let here = at + 1 + (inner.len() - rest.len()) + backslash;
        let (c, length) = escape(&rest[backslash..], here, problems);
        text.push(c);
        rest = &rest[backslash + length..];
    }
    text.push_str(rest);
    (text, fold)
}

/// The character of the escape that `rest` starts with, and the escape's length.
fn escape(rest: &str, at: usize, problems: &mut Problems) -> (char, usize) {
    let Some(sign) = rest[1..].chars().next() else { return ('\\', 1) };
    let plain = match sign {
        '"' | '\\' | '/' => sign,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'x' | 'u' => return hex(rest, sign, at, problems),
        _ => {
            let message = format!("unknown escape `\\{}`", sign.escape_debug());
            problems.add(at, message, r#"known are \" \\ \/ \b \f \n \r \t \xHH \uHHHH"#);
            sign
        }
    };
    (plain, 1 + sign.len_utf8())
}

/// `\xHH`, `\uHHHH`, or two of the latter as a surrogate pair.
fn hex(rest: &str, sign: char, at: usize, problems: &mut Problems) -> (char, usize) {
    let digits = if sign == 'x' { 2 } else { 4 };
    let read = |from: usize| {
        let hex =
            rest.get(from..from + digits).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        hex.and_then(|hex| u32::from_str_radix(hex, 16).ok())
    };
    let length = 2 + digits;
    let Some(code) = read(2) else {
        problems.add(at, format!("`\\{sign}` needs {digits} hexadecimal digits"), "fill it up with zeros");
        return (sign, 2);
    };
    if let Some(c) = char::from_u32(code) {
        return (c, length);
    }
    let low = rest[length..].starts_with("\\u").then(|| read(length + 2)).flatten();
    if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (code, low) {
        let code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 2 * length);
    }
    problems.add(
        at,
        format!("U+{code:04X} is half of a character"),
        "write both halves, or the character itself",
    );
    (char::REPLACEMENT_CHARACTER, length)
}
