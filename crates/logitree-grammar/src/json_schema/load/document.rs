//! A JSON document as an arena of values in document order: 16 bytes per value, numbers kept as text, no recursion.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::id;

id!(
    /// The number of a value in its document. An object's children are key, value, key, value.
    pub(super) struct ValueId
);

/// The root of a document.
pub(super) const ROOT: ValueId = ValueId(0);

impl ValueId {
    /// The value after a scalar, or the first child of a container.
    fn next(self) -> ValueId {
        ValueId(self.0 + 1)
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Null,
    False,
    True,
    Number,
    /// A string without escapes: a slice of the text.
    Plain,
    /// A string with escapes, kept unescaped beside the text.
    Escaped,
    Array,
    Object,
}

/// One value. `from` and `len` are bytes of a scalar's text; `len` is the number of a container's children, keys not
/// counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueNode {
    pub kind: ValueKind,
    pub end: ValueId,
    pub from: u32,
    pub len: u32,
}

/// A parsed document; its root is value 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    pub text: String,
    pub unescaped: String,
    pub nodes: Vec<ValueNode>,
    /// Whether a key that may name a subschema occurs below the root.
    pub names_inner: bool,
}

impl Document {
    /// What the value is.
    pub fn kind(&self, at: ValueId) -> ValueKind {
        self.nodes[at.index()].kind
    }

    /// Whether it is a string.
    pub fn is_string(&self, at: ValueId) -> bool {
        matches!(self.kind(at), ValueKind::Plain | ValueKind::Escaped)
    }

    /// A container's number of children, keys not counted.
    pub fn len(&self, at: ValueId) -> usize {
        self.nodes[at.index()].len as usize
    }

    /// The text of a string without quotes and escapes, or of a number; empty for anything else.
    pub fn text(&self, at: ValueId) -> &str {
        let node = &self.nodes[at.index()];
        let bytes = node.from as usize..(node.from + node.len) as usize;
        match node.kind {
            ValueKind::Escaped => &self.unescaped[bytes],
            ValueKind::Plain | ValueKind::Number => &self.text[bytes],
            _ => "",
        }
    }

    /// The string, if it is one.
    pub fn string(&self, at: ValueId) -> Option<&str> {
        self.is_string(at).then(|| self.text(at))
    }

    /// The elements of an array; none for anything else.
    pub fn elements(&self, at: ValueId) -> impl Iterator<Item = ValueId> + '_ {
        let node = self.nodes[at.index()];
        let mut next = if node.kind == ValueKind::Array { at.next() } else { node.end };
        std::iter::from_fn(move || {
            let element = (next < node.end).then_some(next)?;
            next = self.nodes[element.index()].end;
            Some(element)
        })
    }

    /// The keys and values of an object, doubled keys and all; none for anything else.
    pub fn members(&self, at: ValueId) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
        let node = self.nodes[at.index()];
        let mut next = if node.kind == ValueKind::Object { at.next() } else { node.end };
        std::iter::from_fn(move || {
            let key = (next < node.end).then_some(next)?;
            let value = key.next();
            next = self.nodes[value.index()].end;
            Some((key, value))
        })
    }

    /// The value of a key: the last one, where it is doubled.
    pub fn get(&self, at: ValueId, key: &str) -> Option<ValueId> {
        self.members(at).filter(|&(k, _)| self.text(k) == key).map(|(_, value)| value).last()
    }

    /// The string value of a key.
    pub fn get_string(&self, at: ValueId, key: &str) -> Option<&str> {
        self.string(self.get(at, key)?)
    }

    /// The JSON pointer of a value. Found from the root down, so nothing is kept for it.
    pub fn pointer(&self, target: ValueId) -> String {
        let mut pointer = String::new();
        let mut at = ROOT;
        while at != target {
            let inside = |child: ValueId| child <= target && target < self.nodes[child.index()].end;
            if self.kind(at) == ValueKind::Object {
                let Some((key, value)) =
                    self.members(at).find(|&(key, value)| key == target || inside(value))
                else {
                    break;
                };
                let name = self.text(key).replace('~', "~0").replace('/', "~1");
                let _ = write!(pointer, "/{name}");
                at = if key == target { key } else { value };
            } else {
                let Some((place, element)) = self.elements(at).enumerate().find(|&(_, e)| inside(e)) else {
                    break;
                };
                let _ = write!(pointer, "/{place}");
                at = element;
            }
        }
        pointer
    }

    /// The value as a tree. Nesting is bounded by the parser, so recursion is too.
    pub fn value(&self, at: ValueId) -> Value {
        match self.kind(at) {
            ValueKind::Null => Value::Null,
            ValueKind::False => Value::Bool(false),
            ValueKind::True => Value::Bool(true),
            ValueKind::Number => self.text(at).parse::<Number>().map_or(Value::Null, Value::Number),
            ValueKind::Plain | ValueKind::Escaped => Value::String(self.text(at).into()),
            ValueKind::Array => Value::Array(self.elements(at).map(|e| self.value(e)).collect()),
            ValueKind::Object => {
                let mut map = Map::with_capacity(self.len(at));
                for (key, value) in self.members(at) {
                    map.insert(self.text(key).into(), self.value(value));
                }
                Value::Object(map)
            }
        }
    }

    /// The value in a few words, for messages.
    pub fn show(&self, at: ValueId) -> String {
        match self.kind(at) {
            ValueKind::Null => "null".into(),
            ValueKind::False => "false".into(),
            ValueKind::True => "true".into(),
            ValueKind::Number => shorten(self.text(at)),
            ValueKind::Plain | ValueKind::Escaped => format!("{:?}", shorten(self.text(at))),
            ValueKind::Array => "an array".into(),
            ValueKind::Object => "an object".into(),
        }
    }
}

/// At most 60 characters of a text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.into(),
    }
}

/// The places of the subschemas of a [`Schema`](super::super::Schema). Pointers are made on demand: a deep and
/// wide schema would need far more memory for them than for itself.
#[derive(Debug, Clone)]
pub(crate) struct SchemaPlaces {
    documents: Vec<(String, Arc<Document>)>,
    at: Vec<(u32, ValueId)>,
}

impl SchemaPlaces {
    pub(super) fn new(documents: Vec<(String, Arc<Document>)>, at: Vec<(u32, ValueId)>) -> SchemaPlaces {
        SchemaPlaces { documents, at }
    }

    /// The place of subschema `id`: `#/properties/a`, and for another document its URI and that.
    pub fn get(&self, id: impl Into<u32>) -> String {
        let Some(&(document, at)) = self.at.get(id.into() as usize) else { return String::new() };
        let (uri, document) = &self.documents[document as usize];
        format!("{uri}#{}", document.pointer(at))
    }
}
