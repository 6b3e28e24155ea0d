//! Reads Lark in llguidance's dialect (its `docs/syntax.md`) into [`Rules`]: rules in lower case, terminals in
//! upper case, regular expressions, `%ignore`, `%import common`, `%json`, `%regex`, `%lark`, special tokens,
//! `&` and `~` in terminals, and the attributes `lazy`, `suffix`, `stop`, `stop_capture`, `capture`, `max_tokens` and
//! `temperature`.
//!
//! A grammar has all its parses: no terminal takes precedence for being longer or defined first. A lazy
//! terminal ends as early as possible and takes precedence over its alternatives in a choice. Ignored text may
//! follow every terminal, token and `%json` of the grammar, and precede the first one if `allow_initial_skip`
//! is set.
//!
//! A rule with a parameter is made for each value that it can be used with, at most a quarter of a million alternatives.
//!
//! Rejected with an error that names them: templates, priorities of terminals, `%override`,
//! `%extend`, `%declare`, imports other than `common`, an empty `stop`, and options in `"x-guidance"` that do not say how values are written.

mod ast;
mod attributes;
mod choices;
mod common;
mod guidance;
mod lexer;
mod options;
mod parametric;
mod parser;
mod rules;
mod scope;
mod stops;
mod strings;
mod terminals;
mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::json_schema::Schema;
use super::problems::Problems;
use super::rules::Rules;
use crate::{Error, ErrorKind, Result};

pub(super) use guidance::guided;

/// Maximum size of a text in bytes: its rules take up to eighty times as many.
const MAX_BYTES: usize = 3 << 20;

/// What a text may refer to.
pub struct Resources<'r> {
    /// Other grammars, by the name in `@name`.
    pub grammars: &'r BTreeMap<String, Rules>,
    /// Reads the schema of a `%json` from JSON text.
    pub schema: &'r dyn Fn(&str) -> Result<Arc<Schema>>,
}

/// Reads a grammar with the start rule `start`.
///
/// # Errors
/// [`ErrorKind::Constraint`] with every problem of the text, each with its line, its column and how to fix it;
/// [`ErrorKind::Limit`] if it is too long.
pub fn parse(text: &str, resources: &Resources) -> Result<Rules> {
    if text.len() > MAX_BYTES {
        let message = format!("the Lark grammar has {} bytes, more than {MAX_BYTES}", text.len());
        return Err(
            Error::new(ErrorKind::Limit, message).help("long lists of texts are better given as choices")
        );
    }
    let mut problems = Problems::default();
    let tokens = lexer::tokens(text, &mut problems);
    let items = parser::items(text, &tokens, &mut problems);
    drop(tokens);
    let rules = rules::compile(&items, resources, &mut problems);
    problems.finish(text, "the Lark grammar")?;
    Ok(rules)
}
