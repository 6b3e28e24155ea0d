//! Splits a Lark text into tokens with their offsets.

use serde::de::IgnoredAny;

use super::super::problems::{excerpt, Problems};

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A lower case name.
    Rule,
    /// An upper case name.
    Terminal,
    /// `"..."`, optionally followed by `i`.
    Text,
    /// `/.../` with its flags.
    Pattern,
    /// `<...>`.
    Token,
    /// `@name`.
    Grammar,
    /// A number: digits, optionally with a sign, a fraction or `0x`.
    Number,
    /// `%word`.
    Directive,
    /// A JSON value after `%json` and the like.
    Json,
    /// A sign, or the first character of `..`, `->` and `::` as `D`, `>` and `P`.
    Sign(u8),
    /// One or more line ends.
    Newline,
    /// Unreadable text; the problem is reported.
    Broken,
    /// The end of the text.
    End,
}

/// A token: its kind and its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: u32,
    pub(super) end: u32,
}

/// Directives that are followed by a JSON value.
const WITH_JSON: [&str; 3] = ["%json", "%regex", "%llguidance"];

/// All tokens of a text, [`Kind::End`] last. The text is shorter than 4 GiB.
pub(super) fn tokens(text: &str, problems: &mut Problems) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, problems, tokens: Vec::new() };
    while lexer.at < text.len() && !lexer.problems.is_full() {
        lexer.one();
    }
    lexer.push(Kind::End, text.len(), text.len());
    lexer.tokens
}

struct Lexer<'t, 'p> {
    text: &'t str,
    at: usize,
    problems: &'p mut Problems,
    tokens: Vec<Token>,
}

impl Lexer<'_, '_> {
    #[allow(clippy::cast_possible_truncation)] // the caller bounds the text
    fn push(&mut self, kind: Kind, at: usize, end: usize) {
        self.tokens.push(Token { kind, at: at as u32, end: end as u32 });
        self.at = end;
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// How many bytes from `at` on satisfy the predicate.
    fn run(&self, at: usize, of: impl Fn(u8) -> bool) -> usize {
        self.text.as_bytes()[at..].iter().take_while(|&&byte| of(byte)).count()
    }

    /// Skips the rest of the line as one unreadable token.
    fn broken(&mut self, message: String, help: &str) {
        let at = self.at;
        self.problems.add(at, message, help);
        let end = at + self.run(at, |byte| byte != b'\n');
        self.push(Kind::Broken, at, end);
    }

    /// The next token, or white space.
    fn one(&mut self) {
        let at = self.at;
        let Some(first) = self.byte(at) else { return };
        match first {
            b' ' | b'\t' | b'\x0c' => self.at += 1,
            b'\r' | b'\n' => {
                let end = at + self.run(at, |byte| byte.is_ascii_whitespace());
                self.push(Kind::Newline, at, end);
            }
            b'#' => self.at += self.run(at, |byte| byte != b'\n'),
            b'/' if self.byte(at + 1) == Some(b'/') => self.at += self.run(at, |byte| byte != b'\n'),
            b'/' => self.pattern(),
            b'"' => self.quoted(),
            b'<' => self.token(),
            b'%' => self.directive(),
            b'@' => {
                let name = self.run(at + 1, is_word);
                if name == 0 {
                    return self.broken("`@` names no grammar".into(), "write @name");
                }
                self.push(Kind::Grammar, at, at + 1 + name);
            }
            b'0'..=b'9' => self.number(at),
            b'+' | b'-' if self.byte(at + 1).is_some_and(|byte| byte.is_ascii_digit()) => self.number(at + 1),
            b'-' if self.byte(at + 1) == Some(b'>') => self.push(Kind::Sign(b'>'), at, at + 2),
            b'.' if self.byte(at + 1) == Some(b'.') => self.push(Kind::Sign(b'D'), at, at + 2),
            b':' if self.byte(at + 1) == Some(b':') => self.push(Kind::Sign(b'P'), at, at + 2),
            b'?' | b'!' if self.starts_rule(at) => self.name(),
            b':' | b'=' | b',' | b'.' | b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'~' | b'|' | b'&'
            | b'+' | b'*' | b'?' | b'!' => self.push(Kind::Sign(first), at, at + 1),
            _ if is_word(first) => self.name(),
            _ => {
                let message = format!("{} cannot stand here", excerpt(self.text, at));
                self.broken(message, "comments start with // or #");
            }
        }
    }

    /// Whether `!` or `?` belongs to a rule's name, at the start of a line.
    fn starts_rule(&self, at: usize) -> bool {
        let before = self.tokens.last().is_none_or(|token| token.kind == Kind::Newline);
        let name = at + self.run(at, |byte| matches!(byte, b'!' | b'?'));
        before && self.byte(name).is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_')
    }

    /// A name; its case decides between rule and terminal.
    fn name(&mut self) {
        let at = self.at;
        let from = at + self.run(at, |byte| matches!(byte, b'!' | b'?'));
        let mut end = from + self.run(from, is_word);
        if self.byte(end) == Some(b'>') && self.text[from..end].ends_with('-') {
            end -= 1; // `a->b` renames
        }
        let name = &self.text[from..end];
        let upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = name.bytes().any(|byte| byte.is_ascii_lowercase());
        if upper == lower && name != "_" {
            let message = format!("the name `{name}` is neither lower case nor upper case");
            self.problems.add(from, message, "rules are named in lower case, terminals in upper case");
        }
        self.push(
            if name == "_" {
                Kind::Sign(b'_')
            } else if upper {
                Kind::Terminal
            } else {
                Kind::Rule
            },
            at,
            end,
        );
    }

    fn number(&mut self, digits: usize) {
        let at = self.at;
        let hex = self.text[digits..].starts_with("0x") || self.text[digits..].starts_with("0X");
        let mut end = if hex {
            digits + 2 + self.run(digits + 2, |byte| byte.is_ascii_hexdigit())
        } else {
            digits + self.run(digits, |byte| byte.is_ascii_digit())
        };
        let fraction = |end: usize| self.byte(end + 1).is_some_and(|byte| byte.is_ascii_digit());
        if !hex && self.byte(end) == Some(b'.') && fraction(end) {
            end += 1 + self.run(end + 1, |byte| byte.is_ascii_digit());
        }
        self.push(Kind::Number, at, end);
    }

    /// `"..."`: only finds the end; escapes are read later.
    fn quoted(&mut self) {
        match self.closing(self.at + 1, b'"') {
            Some(close) => {
                let after = self.byte(close + 1) == Some(b'i') && !self.byte(close + 2).is_some_and(is_word);
                self.push(Kind::Text, self.at, close + 1 + usize::from(after));
            }
            None => self
                .broken("a text that is not closed in its line".into(), "close it with \"; a quote is \\\""),
        }
    }

    /// `/.../flags`.
    fn pattern(&mut self) {
        match self.closing(self.at + 1, b'/') {
            Some(close) => {
                let flags = self.run(close + 1, |byte| byte.is_ascii_lowercase());
                self.push(Kind::Pattern, self.at, close + 1 + flags);
            }
            None => {
                let help = "close it with /; a slash in it is \\/, and a new line in it is \\n";
                self.broken("a regular expression that is not closed in its line".into(), help);
            }
        }
    }

    /// The offset of the closing sign in the same line; backslashes escape it.
    fn closing(&self, mut at: usize, sign: u8) -> Option<usize> {
        loop {
            match self.byte(at)? {
                b'\n' => return None,
                b'\\' => at += 2,
                byte if byte == sign => return Some(at),
                _ => at += 1,
            }
        }
    }

    /// `<...>` without blanks in it.
    fn token(&mut self) {
        let at = self.at;
        let inside = self.run(at + 1, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'<' | b'>'));
        let end = at + 1 + inside;
        if inside == 0 || self.byte(end) != Some(b'>') {
            let message = format!("{} is no token", excerpt(self.text, at));
            return self.broken(message, "a token is <its_text> or <[its number]>, without blanks");
        }
        self.push(Kind::Token, at, end + 1);
    }

    /// `%word`, with the JSON value if it has one.
    fn directive(&mut self) {
        let at = self.at;
        let end = at + 1 + self.run(at + 1, is_word);
        self.push(Kind::Directive, at, end);
        let word = &self.text[at..end];
        if !WITH_JSON.contains(&word) {
            return;
        }
        let mut values = serde_json::Deserializer::from_str(&self.text[end..]).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                let after = end + values.byte_offset();
                self.push(Kind::Json, end, after);
            }
            other => {
                let why = other
                    .and_then(std::result::Result::err)
                    .map_or("nothing follows".into(), |e| e.to_string());
                self.problems.add(end, format!("no JSON value follows {word}: {why}"), "write one, {} say");
                let after = end + self.run(end, |byte| byte != b'\n');
                self.push(Kind::Broken, end, after);
            }
        }
    }
}

/// The characters of names.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
