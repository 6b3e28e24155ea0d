//! Lark as llguidance reads it (its `docs/syntax.md`), read into [`Rules`]: rules in lower case, terminals in upper
//! case, regular expressions, `%ignore`, `%import common`, `%json`, `%regex`, `%lark`, special tokens, `&` and `~` in
//! terminals, and the attributes `lazy`, `suffix` and `stop`.
//!
//! A grammar means all its readings: no terminal wins over another because it is longer or stands first. A lazy one ends
//! at its own first chance, and wins over what stands beside it in a choice. What is ignored may stand behind every terminal, token and `%json` of the grammar, and
//! before the first one where `allow_initial_skip` says so.
//!
//! Not taken, each with an error that names it: templates, parametric rules, priorities of terminals, `%override`,
//! `%extend`, `%declare`, imports other than `common`, `max_tokens` and `temperature`, a `stop` that is no plain text.
//!
//! It refuses to know how rules are run, and which tokens exist.

mod ast;
mod choices;
mod common;
mod lexer;
mod options;
mod parser;
mod rules;
mod scope;
mod strings;
mod terminals;
mod tokens;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::json_schema::Schema;
use super::problems::Problems;
use super::rules::Rules;
use crate::{Error, ErrorKind, Result};

/// How many bytes a text may have: what is read takes up to eighty times as many.
const MAX_BYTES: usize = 1 << 22;

/// What a text may refer to.
pub struct Resources<'r> {
    /// Other grammars, by the name that `@name` has.
    pub grammars: &'r BTreeMap<String, Rules>,
    /// Reads the schema of a `%json`, given as JSON's text.
    pub schema: &'r dyn Fn(&str) -> Result<Arc<Schema>>,
}

/// The grammar that `text` says, from its rule `start`.
///
/// # Errors
/// [`ErrorKind::Constraint`] with every problem of the text, each with line, column and the way out;
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
