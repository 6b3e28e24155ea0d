//! Reads fields of JSON objects; what is wrong has a JSON pointer, and a field that nothing reads is an error.

use crate::{Error, ErrorKind, Result, TokenId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The longest JSON text that is read whole.
pub const MAX_JSON_BYTES: usize = 64 << 20;

/// An object whose fields are taken one by one.
pub struct Fields {
    fields: Map<String, Value>,
    place: String,
    kind: ErrorKind,
}

/// The error for a value at a place.
fn wrong(kind: ErrorKind, what: &str, place: &str) -> Error {
    Error::new(kind, what).at(if place.is_empty() { "/" } else { place })
}

/// Reads a JSON text.
///
/// # Errors
/// `kind` with line and column where it is not JSON, [`ErrorKind::Limit`] past [`MAX_JSON_BYTES`].
pub fn parse(text: &[u8], kind: ErrorKind) -> Result<Value> {
    if text.len() > MAX_JSON_BYTES {
        let message = format!("{} bytes of JSON; {MAX_JSON_BYTES} are the most", text.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    serde_json::from_slice(text).map_err(|error| {
        let place = format!("{}:{}", error.line(), error.column());
        Error::new(kind, format!("this is not JSON: {error}")).at(place)
    })
}

impl Fields {
    /// The fields of an object.
    ///
    /// # Errors
    /// `kind` for anything else.
    pub fn new(value: Value, place: &str, kind: ErrorKind) -> Result<Fields> {
        match value {
            Value::Object(fields) => Ok(Fields { fields, place: place.to_string(), kind }),
            _ => Err(wrong(kind, "an object is expected", place)),
        }
    }

    /// The JSON pointer of a field.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{}", self.place, name.replace('~', "~0").replace('/', "~1"))
    }

    /// An error about a field.
    pub fn wrong(&self, name: &str, what: &str) -> Error {
        wrong(self.kind, &format!("{name} must be {what}"), &self.at(name))
    }

    /// A field, if it is there and not null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.shift_remove(name).filter(|value| !value.is_null())
    }

    /// The object again, with only the type taken.
    pub(super) fn whole(&self, kind: &str) -> Value {
        let kind = ("type".to_string(), Value::from(kind));
        std::iter::once(kind).chain(self.fields.clone()).collect::<Map<_, _>>().into()
    }

    /// Whether a field is there, null or not.
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field that must be there.
    pub fn required(&mut self, name: &str) -> Result<Value> {
        self.take(name).ok_or_else(|| wrong(self.kind, &format!("{name} is missing"), &self.place))
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Result<String> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(name, "a string")),
        }
    }

    /// A text that may be left out.
    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>> {
        self.read(name, "a string")
    }

    /// A switch; false where it is left out.
    pub fn switch(&mut self, name: &str) -> Result<bool> {
        Ok(self.read(name, "true or false")?.unwrap_or(false))
    }

    /// A whole number from 0 on, that may be left out.
    pub fn count(&mut self, name: &str) -> Result<Option<usize>> {
        self.read(name, "a whole number from 0 on")
    }

    /// A token id, that may be left out.
    pub fn token(&mut self, name: &str) -> Result<Option<TokenId>> {
        self.read(name, "a token id")
    }

    /// Token ids, that may be left out.
    pub fn tokens(&mut self, name: &str) -> Result<Option<Vec<TokenId>>> {
        self.read(name, "a list of token ids")
    }

    /// Whether a field is there and not null.
    pub fn is_given(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| !value.is_null())
    }

    /// A value of any type, that may be left out; `what` it must be.
    pub fn read<T: DeserializeOwned>(&mut self, name: &str, what: &str) -> Result<Option<T>> {
        self.take(name).map(|value| self.of(value, name, what)).transpose()
    }

    /// The value of a field that was taken.
    pub fn of<T: DeserializeOwned>(&self, value: Value, name: &str, what: &str) -> Result<T> {
        serde_json::from_value(value).map_err(|_| self.wrong(name, what))
    }

    /// A list; empty where it is left out.
    pub fn list(&mut self, name: &str) -> Result<Vec<Value>> {
        Ok(self.read(name, "a list")?.unwrap_or_default())
    }

    /// A list of texts; empty where it is left out.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>> {
        Ok(self.read(name, "a list of strings")?.unwrap_or_default())
    }

    /// All fields that are left, with their names.
    pub fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.fields)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// The kind of the object for a field that was not read.
    pub fn end(self) -> Result<()> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => Err(wrong(self.kind, &format!("there is no field {name:?} here"), &self.at(name))),
        }
    }
}

/// A value as JSON text: a string is taken as that text.
pub fn embedded(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
