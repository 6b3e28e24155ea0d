//! `enum` and `const`: distinct values, compared as JSON compares them (1 is 1.0, the order of keys is nothing). It
//! refuses to know how values are written.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::super::decimal::Decimal;
use super::dialect::Keyword;
use super::document::{At, Document, Kind};
use super::fields::Fields;

/// The values that both keywords allow; `None` where neither stands there.
pub(super) fn values(fields: &mut Fields<'_, '_>) -> Option<Arc<[Value]>> {
    let document = Arc::clone(&fields.document);
    let only = fields.get(Keyword::Const);
    let mut all: Vec<At> = Vec::new();
    match fields.get(Keyword::Enum) {
        Some(at) if document.kind(at) == Kind::Array => {
            all.extend(document.elements(at));
            if let Some(only) = only {
                let form = form_of(&document, only);
                all.retain(|&value| form_of(&document, value) == form);
            }
        }
        Some(at) => {
            fields.wrong(Keyword::Enum, at, "an array of values");
            all.push(only?);
        }
        None => all.push(only?),
    }
    if all.len() > 1 {
        distinct(&document, &mut all);
    }
    Some(all.into_iter().map(|at| document.value(at)).collect())
}

/// Keeps the first of equal values. What is written alike is found before anything is brought into one form.
fn distinct(document: &Document, all: &mut Vec<At>) {
    let mut texts = FxHashSet::default();
    let mut forms = FxHashSet::default();
    all.retain(|&at| match document.kind(at) {
        Kind::Plain | Kind::Escaped => texts.insert((true, document.text(at))),
        Kind::Number => texts.insert((false, document.text(at))) && forms.insert(form_of(document, at)),
        _ => forms.insert(form_of(document, at)),
    });
}

/// One text for all ways to write the value. Nesting is bounded by the parser, so recursion is too.
fn form_of(document: &Document, at: At) -> String {
    let mut form = String::new();
    write(document, at, &mut form);
    form
}

fn write(document: &Document, at: At, out: &mut String) {
    match document.kind(at) {
        Kind::Null => out.push('n'),
        Kind::False => out.push('f'),
        Kind::True => out.push('t'),
        Kind::Number => match Decimal::read(document.text(at)) {
            Some(decimal) => out.push_str(&format!("#{}", decimal.canonical())),
            None => out.push_str(document.text(at)),
        },
        Kind::Plain | Kind::Escaped => {
            let text = document.text(at);
            out.push_str(&format!("\"{}:", text.len()));
            out.push_str(text);
        }
        Kind::Array => {
            out.push('[');
            document.elements(at).for_each(|element| write(document, element, out));
            out.push(']');
        }
        Kind::Object => {
            let mut members: Vec<(&str, At)> =
                document.members(at).map(|(key, value)| (document.text(key), value)).collect();
            // Stable, so that of doubled keys the last stays last: it is the one that counts.
            members.sort_by_key(|&(name, _)| name);
            out.push('{');
            for (n, &(name, value)) in members.iter().enumerate() {
                if members.get(n + 1).is_none_or(|&(next, _)| next != name) {
                    out.push_str(&format!("{}:{name}", name.len()));
                    write(document, value, out);
                }
            }
            out.push('}');
        }
    }
}
