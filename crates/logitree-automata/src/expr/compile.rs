//! Compiles [`Regex`] to expressions.

use super::{Encoding, ExprId, Exprs, EMPTY, NOTHING};
use crate::stack::with_call_room;
use crate::{CharSet, Regex};
use crate::{Error, ErrorKind, Result};

/// Maximum nesting of regular languages.
const MAX_DEPTH: u32 = 600;

impl Exprs {
    /// `regex` as an expression over the bytes of `encoding`; [`NOTHING`] exactly if no string matches.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if it nests too deeply, or if the arena is full or out of fuel.
    pub fn compile(&mut self, regex: &Regex, encoding: Encoding) -> Result<ExprId> {
        with_call_room(|| {
            let made = self.compile_at(regex, encoding, MAX_DEPTH)?;
            self.live(made)
        })
    }

    fn compile_at(&mut self, regex: &Regex, encoding: Encoding, depth: u32) -> Result<ExprId> {
        let Some(below) = depth.checked_sub(1) else {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("a regular expression nests more than {MAX_DEPTH} deep"),
            ));
        };
        match regex {
            Regex::Nothing => Ok(NOTHING),
            Regex::Empty => Ok(EMPTY),
            Regex::Automaton(dfa) => match encoding {
                Encoding::AnyJson { .. } => self.spelled_automaton(dfa),
                Encoding::Utf8 | Encoding::Json { .. } => self.automaton(dfa),
            },
            Regex::Computed(dfa) => self.computed(dfa),
            Regex::Set(set) => self.chars(set, encoding),
            Regex::Text(text) => self.text(text, encoding),
            Regex::Concat(parts) => {
                let parts = self.compile_all(parts, encoding, below)?;
                self.concat(&parts)
            }
            Regex::Or(parts) => self.compile_or(parts, encoding, below),
            Regex::And(parts) if parts.is_empty() => self.any_text(encoding),
            Regex::And(parts) => {
                let parts = self.compile_all(parts, encoding, below)?;
                self.and(&parts)
            }
            Regex::Not(of) => {
                let of = self.compile_at(of, encoding, below)?;
                if of == NOTHING {
                    return self.any_text(encoding);
                }
                let not = self.not(of)?;
                let any = self.any_text(encoding)?;
                self.and(&[not, any])
            }
            Regex::Repeat { of, min, max } => {
                let of = self.compile_at(of, encoding, below)?;
                let of = self.live(of)?;
                self.repeat(of, *min, *max)
            }
        }
    }

    fn compile_all(&mut self, parts: &[Regex], encoding: Encoding, depth: u32) -> Result<Vec<ExprId>> {
        parts.iter().map(|part| self.compile_at(part, encoding, depth)).collect()
    }

    /// Strings among the alternatives become one set of literals.
    fn compile_or(&mut self, parts: &[Regex], encoding: Encoding, depth: u32) -> Result<ExprId> {
        let mut texts = Vec::new();
        let mut made = Vec::new();
        for part in parts {
            match part {
                Regex::Text(text) => texts.push(text),
                other => {
                    let other = self.compile_at(other, encoding, depth)?;
                    made.push(self.live(other)?);
                }
            }
        }
        made.push(match encoding {
            Encoding::AnyJson { ascii } => {
                let texts: Vec<(&str, ExprId)> = texts.iter().map(|text| (&***text, EMPTY)).collect();
                self.spelled(&texts, ascii)?
            }
            Encoding::Utf8 | Encoding::Json { .. } => {
                let texts: Vec<Vec<u8>> = texts.iter().map(|text| encoding.text(text)).collect();
                let texts: Vec<(&[u8], ExprId)> = texts.iter().map(|text| (text.as_slice(), EMPTY)).collect();
                self.literals(&texts)?
            }
        });
        self.or(&made)
    }

    fn text(&mut self, text: &str, encoding: Encoding) -> Result<ExprId> {
        match encoding {
            Encoding::AnyJson { ascii } => self.spelled(&[(text, EMPTY)], ascii),
            Encoding::Utf8 | Encoding::Json { .. } => self.bytes(&encoding.text(text)),
        }
    }

    /// Every string that the encoding can write.
    ///
    /// # Errors
    /// As [`Exprs::compile`].
    pub fn any_text(&mut self, encoding: Encoding) -> Result<ExprId> {
        let any = self.chars(&CharSet::all(), encoding)?;
        self.repeat(any, 0, None)
    }
}
