//! Options of a schema: draft, key order, white space, separators, numbers; and the names that users give them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::pairs::PairForm;
use crate::{CharSet, Error, ErrorKind, Regex, Result};

/// The dialect of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "&str", try_from = "String")]
pub enum Draft {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// 2019-09.
    Draft2019,
    /// 2020-12, and what names no dialect.
    Draft2020,
}

/// In which order an object's keys may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "&str", try_from = "String")]
pub enum KeyOrder {
    /// Named properties as the schema lists them, then all others.
    #[default]
    Schema,
    /// Any.
    Any,
}

/// How much white space is allowed between JSON tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "&str", try_from = "String")]
pub enum Whitespace {
    /// None but what the separators have.
    Compact,
    /// What Python's `json.dumps` writes with and without indent: nothing, one space, or one new line and its indent.
    #[default]
    Bounded,
    /// As much as JSON allows.
    Free,
}

/// In which spellings numbers may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "&str", try_from = "String")]
pub enum NumberSpelling {
    /// All of JSON's; of constrained numbers plain decimals of any length, and scientific ones with up to three digits of exponent.
    #[default]
    Any,
    /// Integers in digits, fractions in at most 17 significant digits, none that a double cannot hold: what a program
    /// writes that prints integers and doubles. Every number has finitely many.
    Plain,
}

/// How values are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaOptions {
    /// Order of keys.
    pub order: KeyOrder,
    /// White space.
    pub whitespace: Whitespace,
    /// The exact text between items and between key and value, where the caller wants one: `(", ", ": ")`.
    pub separators: Option<(String, String)>,
    /// The spellings of numbers. What was stored before there was a choice has none.
    #[serde(default, skip_serializing_if = "NumberSpelling::is_any")]
    pub numbers: NumberSpelling,
    /// Whether strings are written in ASCII only.
    pub ascii: bool,
    /// Whether what cannot be honoured is dropped with a warning instead of being an error.
    pub lenient: bool,
    /// The dialect of documents that name none.
    pub draft: Draft,
    /// Whether objects of declared properties have no others, unless the schema speaks of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// White space and separators as languages, instead of the above. The value itself begins and ends without any.
    #[serde(skip)]
    pub layout: Option<Arc<JsonLayout>>,
    /// What no string that is free, and no key that is not named, contains as it is written.
    #[serde(skip)]
    pub excludes: Vec<String>,
    /// The form of an object that is written as pairs, not as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "shared_form")]
    pub pairs: Option<Arc<PairForm>>,
    /// What messages call the schema, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

mod shared_form {
    use super::{Arc, PairForm};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(form: &Option<Arc<PairForm>>, to: S) -> Result<S::Ok, S::Error> {
        form.as_deref().serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Arc<PairForm>>, D::Error> {
        Option::<PairForm>::deserialize(from).map(|form| form.map(Arc::new))
    }
}

/// What may be between the parts of arrays and objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonLayout {
    /// White space: after an opening and before a closing bracket, and around separators.
    pub blank: Regex,
    /// Between items. Not the empty text.
    pub comma: Regex,
    /// Between a key and its value. Not the empty text.
    pub colon: Regex,
}

impl JsonLayout {
    /// At most so many characters of white space; `None` is any number.
    pub(crate) fn blank(most: Option<u32>) -> Regex {
        Regex::Set(CharSet::from_ranges([(9, 10), (13, 13), (32, 32)])).repeat(0, most)
    }

    /// JSON with at most so many characters of white space in a row.
    pub fn with_blanks(most: u32) -> JsonLayout {
        let blank = JsonLayout::blank(Some(most));
        JsonLayout { blank, comma: Regex::text(","), colon: Regex::text(":") }
    }
}

impl Default for SchemaOptions {
    fn default() -> Self {
        SchemaOptions {
            order: KeyOrder::Schema,
            whitespace: Whitespace::Bounded,
            separators: None,
            numbers: NumberSpelling::Any,
            ascii: false,
            lenient: false,
            draft: Draft::Draft2020,
            closed: false,
            layout: None,
            excludes: Vec::new(),
            pairs: None,
            label: None,
        }
    }
}

impl SchemaOptions {
    /// Whether values are written as with `other`.
    pub(super) fn writes_as(&self, other: &SchemaOptions) -> bool {
        let is_same_form = match (&self.pairs, &other.pairs) {
            (Some(form), Some(other)) => Arc::ptr_eq(form, other),
            (form, other) => form.is_none() && other.is_none(),
        };
        is_same_form
            && self.whitespace == other.whitespace
            && self.separators == other.separators
            && self.numbers == other.numbers
            && self.ascii == other.ascii
            && self.layout == other.layout
            && self.excludes == other.excludes
    }

    /// An error about a schema with these options.
    #[must_use]
    pub(crate) fn labelled(&self, error: Error) -> Error {
        match &self.label {
            None => error,
            Some(label) if error.place.is_empty() => error.at(label.as_str()),
            Some(label) => Error::new(error.kind, error.to_string()).at(label.as_str()),
        }
    }
}

/// Whether a separator is its sign with white space about it.
pub(super) fn is_separator(text: &str, sign: char) -> bool {
    text.trim_matches([' ', '\t', '\r', '\n']).chars().eq([sign])
}

/// Serialises values by their names.
macro_rules! by_name {
    ($($type:ty),*) => {
        $(impl From<$type> for &str {
            fn from(value: $type) -> &'static str {
                value.name()
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;

            fn try_from(name: String) -> Result<$type> {
                <$type>::from_name(&name)
            }
        })*
    };
}

by_name!(Draft, KeyOrder, NumberSpelling, Whitespace);

/// The value of this name among all.
fn find<T: Copy>(what: &str, name: &str, all: &[(&'static str, T)]) -> Result<T> {
    all.iter().find(|(known, _)| *known == name).map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(known, _)| format!("{known:?}")).collect();
        Error::new(ErrorKind::Constraint, format!("{what} is {name:?}"))
            .help(format!("expected one of {}", names.join(", ")))
    })
}

/// The name of a value; every value has one.
fn name<T: PartialEq>(value: &T, all: &[(&'static str, T)]) -> &'static str {
    all.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

impl KeyOrder {
    /// Every order by its name.
    pub const NAMES: [(&'static str, KeyOrder); 2] = [("schema", KeyOrder::Schema), ("any", KeyOrder::Any)];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &KeyOrder::NAMES)
    }

    /// The order of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<KeyOrder> {
        find("order", name, &KeyOrder::NAMES)
    }
}

impl Whitespace {
    /// Every amount by its name.
    pub const NAMES: [(&'static str, Whitespace); 3] =
        [("bounded", Whitespace::Bounded), ("compact", Whitespace::Compact), ("free", Whitespace::Free)];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &Whitespace::NAMES)
    }

    /// The amount of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<Whitespace> {
        find("whitespace", name, &Whitespace::NAMES)
    }
}

impl NumberSpelling {
    fn is_any(&self) -> bool {
        *self == NumberSpelling::Any
    }

    /// Every choice by its name.
    pub const NAMES: [(&'static str, NumberSpelling); 2] =
        [("any", NumberSpelling::Any), ("plain", NumberSpelling::Plain)];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &NumberSpelling::NAMES)
    }

    /// The choice of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<NumberSpelling> {
        find("numbers", name, &NumberSpelling::NAMES)
    }
}

impl Draft {
    /// Every draft by its name.
    pub const NAMES: [(&'static str, Draft); 5] = [
        ("2020-12", Draft::Draft2020),
        ("2019-09", Draft::Draft2019),
        ("7", Draft::Draft7),
        ("6", Draft::Draft6),
        ("4", Draft::Draft4),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &Draft::NAMES)
    }

    /// The draft of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<Draft> {
        find("draft", name, &Draft::NAMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_others_are_refused() {
        for (name, order) in KeyOrder::NAMES {
            assert_eq!((order.name(), KeyOrder::from_name(name).unwrap()), (name, order));
        }
        for (name, whitespace) in Whitespace::NAMES {
            assert_eq!((whitespace.name(), Whitespace::from_name(name).unwrap()), (name, whitespace));
        }
        for (name, numbers) in NumberSpelling::NAMES {
            assert_eq!((numbers.name(), NumberSpelling::from_name(name).unwrap()), (name, numbers));
        }
        for (name, draft) in Draft::NAMES {
            assert_eq!((draft.name(), Draft::from_name(name).unwrap()), (name, draft));
        }
        let error = KeyOrder::from_name("Any").unwrap_err();
        assert_eq!(error.to_string(), "order is \"Any\"; expected one of \"schema\", \"any\"");
    }
}
