//! What a form of pairs has beside JSON: texts as they are, and values as Python writes them.

use super::super::normalize::Facts;
use super::super::pairs::{PairForm, PythonValues};
use super::super::schema::TypeSet;
use super::lexemes::Lexemes;
use crate::endings::free;
use crate::expr::{Encoding, ExprId, Exprs, EMPTY};
use crate::{CharSet, Regex, Result};

/// A bracket, and after it an odd number of quotes.
const BROKEN: &str =
    r#"\s*[\[{](?:(?:[^"\\]|\\(?s:.))*"(?:[^"\\]|\\(?s:.))*")*(?:[^"\\]|\\(?s:.))*"(?:[^"\\]|\\(?s:.))*\\?"#;
/// A bracket, and after it quotes of Python without their end.
const BROKEN_LITERAL: &str = concat!(
    r#"\s*[\[{](?:[^"'\\]|\\(?s:.)|"(?:[^"\\]|\\(?s:.))*"|'(?:[^'\\]|\\(?s:.))*')*"#,
    r#"(?:"(?:[^"\\]|\\(?s:.))*|'(?:[^'\\]|\\(?s:.))*)\\?"#
);
/// A string of Python between single quotes.
const SINGLE_QUOTED: &str = r#"'(?:[^'\\]|\\['"\\nrt])*'"#;
/// What is the same in it as in a string of JSON.
const PLAIN: &str = r#"[^'"\\\x00-\x1f]*"#;

/// What the values of all pairs have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairLexemes {
    /// The texts that contain nothing that is excluded.
    pub free: ExprId,
    /// Those that are no array or object that breaks off; `None` where they may be.
    pub whole: Option<ExprId>,
    /// Where values may be literals of Python: any string between single quotes, and the characters that are the same in
    /// those as in JSON.
    literals: Option<[ExprId; 2]>,
}

impl Lexemes {
    /// Whether values may be literals of Python.
    pub(super) fn has_literals(&self) -> bool {
        self.pairs.is_some_and(|pairs| pairs.literals.is_some())
    }

    /// A text that is named, in each way in which it may be written.
    pub(super) fn spelled(&self, text: &str) -> impl Iterator<Item = Vec<u8>> {
        let is_plain = |c: char| !c.is_control() && c != '\'' && c != '\\' && (c.is_ascii() || !self.ascii);
        let single = self.has_literals() && text.chars().all(is_plain);
        self.written(text).chain(single.then(|| format!("'{text}'").into_bytes()))
    }

    /// Strings of these characters, which are those of JSON, between quotes of either kind.
    pub(super) fn in_quotes(&self, chars: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
        let quoted = self.quoted(chars, exprs)?;
        let Some([any, plain]) = self.pairs.and_then(|pairs| pairs.literals) else { return Ok(quoted) };
        if chars == self.any {
            return exprs.or(&[quoted, any]);
        }
        let (chars, quote) = (exprs.and(&[chars, plain])?, exprs.bytes(b"'")?);
        let single = exprs.concat(&[quote, chars, quote])?;
        exprs.or(&[quoted, single])
    }

    /// Python's words for the values of `facts` that JSON writes otherwise.
    pub(super) fn words(&self, facts: &Facts, exprs: &mut Exprs) -> Result<ExprId> {
        let mut words: Vec<(&[u8], ExprId)> = Vec::new();
        words.extend(facts.any_of(TypeSet::NULL).then_some((&b"None"[..], EMPTY)));
        words.extend((facts.bools & 1 != 0).then_some((&b"False"[..], EMPTY)));
        words.extend((facts.bools & 2 != 0).then_some((&b"True"[..], EMPTY)));
        exprs.literals(&words)
    }
}

impl PairLexemes {
    /// Those of a form; `allowed` is what strings may have.
    pub(super) fn new(
        form: &PairForm,
        ascii: bool,
        allowed: Option<ExprId>,
        exprs: &mut Exprs,
    ) -> Result<PairLexemes> {
        let free = not_with(&form.excludes, exprs)?;
        let has_literals = form.python == PythonValues::Literals;
        let whole = match form.may_break_off {
            true => None,
            false => {
                let broken = read(if has_literals { BROKEN_LITERAL } else { BROKEN }, false, exprs)?;
                Some(exprs.not(broken)?)
            }
        };
        let mut literals = None;
        if has_literals {
            let [any, plain] = [read(SINGLE_QUOTED, ascii, exprs)?, read(PLAIN, ascii, exprs)?];
            literals = Some([without(allowed, any, exprs)?, plain]);
        }
        Ok(PairLexemes { free, whole, literals })
    }
}

/// The texts that contain nothing of this.
pub(super) fn not_with(excludes: &[String], exprs: &mut Exprs) -> Result<ExprId> {
    let excludes: Vec<&str> = excludes.iter().map(String::as_str).collect();
    exprs.compile(&free(&excludes, None), Encoding::Utf8)
}

/// A pattern, or what of it is ASCII.
fn read(pattern: &str, ascii: bool, exprs: &mut Exprs) -> Result<ExprId> {
    let mut regex = crate::pattern::parse(pattern, &crate::pattern::PatternOptions::WHOLE)?;
    if ascii {
        regex = Regex::and([regex, Regex::Set(CharSet::from_ranges([(0, 0x7f)])).repeat(0, None)]);
    }
    exprs.compile(&regex, Encoding::Utf8)
}

/// The texts of `chars` without what is excluded.
pub(super) fn without(allowed: Option<ExprId>, chars: ExprId, exprs: &mut Exprs) -> Result<ExprId> {
    match allowed {
        None => Ok(chars),
        Some(allowed) => {
            let both = exprs.and(&[chars, allowed])?;
            exprs.determined(both)
        }
    }
}
