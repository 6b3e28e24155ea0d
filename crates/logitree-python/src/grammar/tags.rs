//! Tags in Python: marks are texts, tokens, or either; the content between them is a grammar. Conversions only.

use logitree::grammar::ast::{Grammar, NodeKind, Syntax, TagNode};
use logitree::grammar::rules::TokenName;
use logitree::grammar::tags::Mark;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::operand;

/// The tags of a list of `(begin, content, end)`.
pub fn tags(object: &Bound<'_, PyAny>) -> PyResult<Vec<TagNode>> {
    object.try_iter()?.map(|tag| one_tag(&tag?)).collect()
}

fn one_tag(object: &Bound<'_, PyAny>) -> PyResult<TagNode> {
    let wrong = || PyTypeError::new_err("a tag must be a tuple (begin, content, end)");
    let tuple = object.cast::<PyTuple>().ok().filter(|tuple| tuple.len() == 3).ok_or_else(wrong)?;
    let content = tuple.get_item(1)?;
    let Some(content) = operand(&content)? else {
        let name = content.get_type().name()?;
        return Err(PyTypeError::new_err(format!("a tag's content must be a Grammar or str, not {name}")));
    };
    Ok(TagNode { begin: mark(&tuple.get_item(0)?)?, content, end: marks(&tuple.get_item(2)?)? })
}

/// One mark, or several of a list.
pub fn marks(object: &Bound<'_, PyAny>) -> PyResult<Vec<Mark>> {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return object.try_iter()?.map(|one| mark(&one?)).collect();
    }
    Ok(vec![mark(object)?])
}

/// A text, a token, or the two joined by `|`.
fn mark(object: &Bound<'_, PyAny>) -> PyResult<Mark> {
    let made = operand(object)?.and_then(|part| match part.kind() {
        NodeKind::Alt(parts) => either(parts),
        _ => single(&part),
    });
    made.ok_or_else(|| {
        let said = match object.cast::<PyString>() {
            Ok(text) => text.to_string(),
            Err(_) => object.repr().map_or_else(|_| "?".into(), |text| text.to_string()),
        };
        PyTypeError::new_err(format!(
            "a mark must be str, Grammar.token(...), or Grammar.token(text) | text, not {said}"
        ))
    })
}

fn single(part: &Grammar) -> Option<Mark> {
    match part.kind() {
        NodeKind::Leaf(Syntax::Literal(text), _) => Some(Mark::Text(text.clone())),
        NodeKind::Leaf(Syntax::Token(name), _) => Some(Mark::Token(name.clone())),
        _ => None,
    }
}

fn either(parts: &[Grammar]) -> Option<Mark> {
    let [a, b] = parts else { return None };
    match (single(a)?, single(b)?) {
        (Mark::Token(TokenName::Text(token)), Mark::Text(text))
        | (Mark::Text(text), Mark::Token(TokenName::Text(token)))
            if token == text =>
        {
            Some(Mark::Either(text))
        }
        _ => None,
    }
}
