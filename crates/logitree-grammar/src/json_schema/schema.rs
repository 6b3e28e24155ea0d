//! A schema as it was read: references resolved, keywords typed, nothing yet combined. It refuses to know how a value
//! is written.

use std::sync::Arc;

use serde_json::Value;

use super::super::Regex;
use super::Places;

/// The number of a subschema in its [`Schema`].
pub type NodeId = u32;

/// The dialect of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Named properties as the schema lists them, then all others.
    #[default]
    Schema,
    /// Any.
    Any,
}

/// How much white space may stand between tokens of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Whitespace {
    /// None but what the separators have.
    Compact,
    /// What Python's `json.dumps` writes with and without indent: nothing, one space, or one new line and its indent.
    #[default]
    Bounded,
    /// As much as JSON allows.
    Free,
}

/// How values are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// Order of keys.
    pub order: Order,
    /// White space.
    pub whitespace: Whitespace,
    /// The exact text between items and between key and value, where the caller wants one: `(", ", ": ")`.
    pub separators: Option<(String, String)>,
    /// Whether strings are written in ASCII only.
    pub ascii: bool,
    /// Whether what cannot be honoured is dropped with a warning instead of being an error.
    pub lenient: bool,
    /// The dialect of documents that name none.
    pub draft: Draft,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::Schema,
            whitespace: Whitespace::Bounded,
            separators: None,
            ascii: false,
            lenient: false,
            draft: Draft::Draft2020,
        }
    }
}

/// A set of JSON's types, one bit each. An integer is a number without a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeSet(pub u8);

impl TypeSet {
    /// null
    pub const NULL: TypeSet = TypeSet(1);
    /// true and false
    pub const BOOLEAN: TypeSet = TypeSet(2);
    /// numbers with a fraction
    pub const FRACTION: TypeSet = TypeSet(4);
    /// numbers without a fraction
    pub const INTEGER: TypeSet = TypeSet(8);
    /// strings
    pub const STRING: TypeSet = TypeSet(16);
    /// arrays
    pub const ARRAY: TypeSet = TypeSet(32);
    /// objects
    pub const OBJECT: TypeSet = TypeSet(64);
    /// all numbers
    pub const NUMBER: TypeSet = TypeSet(4 | 8);
    /// everything
    pub const ALL: TypeSet = TypeSet(127);

    /// Whether all of `other` is in it.
    pub fn has(self, other: TypeSet) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A bound of a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The decimal as the document writes it: never rounded.
    pub value: String,
    /// Whether the bound itself is left out.
    pub exclusive: bool,
}

/// What an array's places hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Items {
    /// The first places, one schema each.
    pub prefix: Vec<NodeId>,
    /// Every place after them; `None` is anything.
    pub rest: Option<NodeId>,
}

/// The assertions of one subschema, in the same form whatever its draft. Assertions about a type say nothing about
/// values of other types. What is absent says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Keywords {
    /// `type`.
    pub types: Option<TypeSet>,
    /// Whether numbers are written in digits only: what draft 4 means by an integer (1.0 is one since draft 6).
    pub digits_only: bool,
    /// `enum`, or `const` as the only value; where both stand, what is in both.
    pub values: Option<Arc<[Value]>>,

    /// `minimum`, `exclusiveMinimum`: the greater one.
    pub minimum: Option<Bound>,
    /// `maximum`, `exclusiveMaximum`: the smaller one.
    pub maximum: Option<Bound>,
    /// `multipleOf`, the decimal as the document writes it.
    pub multiple_of: Option<String>,

    /// `minLength`, in code points.
    pub min_length: u64,
    /// `maxLength`, in code points.
    pub max_length: Option<u64>,
    /// `pattern` (unanchored semantics are already part of the language: the whole string matches this).
    pub pattern: Option<Arc<Regex>>,
    /// `format`, where it is one that asserts, and draft 7's `contentEncoding` and `contentMediaType`: the whole string
    /// matches this.
    pub format: Option<Arc<Regex>>,

    /// `items`, `prefixItems`, `additionalItems`.
    pub items: Option<Items>,
    /// `minItems`.
    pub min_items: u64,
    /// `maxItems`.
    pub max_items: Option<u64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `contains` with `minContains` (1 where absent) and `maxContains`.
    pub contains: Option<(NodeId, u64, Option<u64>)>,
    /// Whether the items that `contains` finds count as evaluated for `unevaluatedItems`: they do since 2020-12.
    pub contains_evaluates: bool,
    /// `unevaluatedItems`.
    pub unevaluated_items: Option<NodeId>,

    /// `properties`, in the document's order.
    pub properties: Vec<(Arc<str>, NodeId)>,
    /// `patternProperties`: the whole key matches the first part.
    pub pattern_properties: Vec<(Arc<Regex>, NodeId)>,
    /// `additionalProperties`.
    pub additional_properties: Option<NodeId>,
    /// `unevaluatedProperties`.
    pub unevaluated_properties: Option<NodeId>,
    /// `propertyNames`.
    pub property_names: Option<NodeId>,
    /// `required`.
    pub required: Vec<Arc<str>>,
    /// `minProperties`.
    pub min_properties: u64,
    /// `maxProperties`.
    pub max_properties: Option<u64>,
    /// `dependentRequired`, and the lists of `dependencies`.
    pub dependent_required: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// `dependentSchemas`, and the schemas of `dependencies`.
    pub dependent_schemas: Vec<(Arc<str>, NodeId)>,

    /// `allOf`, and the target of `$ref` (and of `$dynamicRef`, `$recursiveRef` where it is decidable).
    pub all_of: Vec<NodeId>,
    /// `anyOf`: each list is one such keyword.
    pub any_of: Vec<NodeId>,
    /// `oneOf`.
    pub one_of: Vec<NodeId>,
    /// `not`.
    pub not: Option<NodeId>,
    /// `if`, `then`, `else`: an `if` without the others says nothing and is left out (but evaluates for unevaluated*).
    pub conditional: Option<(NodeId, Option<NodeId>, Option<NodeId>)>,
}

/// A subschema.
#[derive(Debug, Clone)]
pub enum SchemaNode {
    /// `true`, `{}`: every value.
    True,
    /// `false`: no value.
    False,
    /// Assertions.
    Keywords(Box<Keywords>),
}

/// A schema as it was read: all subschemas that the root reaches, and how values are written.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The subschemas; a [`NodeId`] is a place here. Cycles are possible. Some that say nothing stand here unnamed.
    pub nodes: Vec<SchemaNode>,
    /// Where each subschema stands in its document, as a JSON pointer; as many as nodes.
    pub places: Places,
    /// The whole.
    pub root: NodeId,
    /// How values are written.
    pub options: Options,
    /// What was dropped because `lenient` said so.
    pub warnings: Vec<String>,
}
