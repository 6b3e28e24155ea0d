//! The spans of a skeleton, read from JSON and written back.
//!
//! The reference's form is `{spans: [{kind, key?, value?, enumValues?, rule?}], id?}` with the kinds literal, enum, number,
//! boolean, free-string and free-json. Further kinds and fields of this library: `schema` of numbers, strings and JSON;
//! `sampler`, opaque here; the kinds `object` (`spans`, which are one value together) and `array` (`items`, `minItems`, `maxItems`); and `switch` (`on`, `cases`, `default`),
//! whose spans depend on the value of an enum before it.

use logitree_automata::stack::with_call_room;
use serde_json::{Map, Value};

use crate::{Error, ErrorKind, Result};

/// Longest JSON form, in bytes.
pub const MAX_FORM_BYTES: usize = 16 << 20;
/// Maximum number of spans, nested ones included.
pub const MAX_SPANS: usize = 4_096;
/// Maximum number of values of one enum.
pub const MAX_ENUM_VALUES: usize = 65_535;

/// A whole response: its spans in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skeleton {
    /// The spans.
    pub spans: Vec<Span>,
    /// Its maker's name for it.
    pub id: Option<String>,
}

/// One span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What it is.
    pub kind: SpanKind,
    /// The path of the field it fills, such as "action" or "parameters.to"; inside of an array from the item on.
    pub key: Option<String>,
    /// A grammar rule's name, for its maker's use.
    pub rule: Option<String>,
    /// How it is sampled, for the caller: opaque here.
    pub sampler: Option<Value>,
}

/// What a span is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanKind {
    /// Fixed text: written, never sampled.
    Literal(String),
    /// One of several JSON values; with fewer than two it is fixed text.
    Enum(Vec<Value>),
    /// A JSON number, valid under a schema if there is one.
    Number(Option<Map<String, Value>>),
    /// `true` or `false`.
    Boolean,
    /// A JSON string, valid under a schema if there is one.
    String(Option<Map<String, Value>>),
    /// Any JSON value, or one that is valid under a schema.
    Json(Option<Value>),
    /// Spans that are one value together, such as an object in an object.
    Object(Vec<Span>),
    /// A JSON array whose items are spans.
    Array {
        /// The spans of one item.
        items: Vec<Span>,
        /// Minimum number of items.
        min: u32,
        /// Maximum number of items; `None` is unbounded.
        max: Option<u32>,
    },
    /// The spans that the value of an earlier enum selects.
    Switch {
        /// The key of the enum, which comes before in the same list.
        on: String,
        /// The spans for each value; a value that is no string is named by its JSON text.
        cases: Vec<(String, Vec<Span>)>,
        /// The spans for values without a case; `None`: each value needs one.
        default: Option<Vec<Span>>,
    },
}

impl SpanKind {
    /// Whether it is a value that is written at once, with no spans in it.
    pub const fn is_value(&self) -> bool {
        !matches!(
            self,
            SpanKind::Literal(_) | SpanKind::Object(_) | SpanKind::Array { .. } | SpanKind::Switch { .. }
        )
    }

    /// The kind's name in the JSON form.
    pub const fn name(&self) -> &'static str {
        match self {
            SpanKind::Literal(_) => "literal",
            SpanKind::Enum(_) => "enum",
            SpanKind::Number(_) => "number",
            SpanKind::Boolean => "boolean",
            SpanKind::String(_) => "free-string",
            SpanKind::Json(_) => "free-json",
            SpanKind::Object(_) => "object",
            SpanKind::Array { .. } => "array",
            SpanKind::Switch { .. } => "switch",
        }
    }
}

impl Span {
    /// A span of this kind, with nothing else.
    pub fn new(kind: SpanKind) -> Span {
        Span { kind, key: None, rule: None, sampler: None }
    }
}

impl Skeleton {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] with line and column for text that is no JSON, and with a place like `spans[3].enumValues`
    /// for what is no skeleton; [`ErrorKind::Limit`] past the sizes of this module.
    pub fn from_json(text: &str) -> Result<Skeleton> {
        if text.len() > MAX_FORM_BYTES {
            let message = format!("the skeleton has {} bytes, {MAX_FORM_BYTES} is the most", text.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let value: Value = with_call_room(|| serde_json::from_str(text)).map_err(|e| {
            let place = format!("line {} column {}", e.line(), e.column());
            Error::new(ErrorKind::Payload, format!("the skeleton cannot be read: {e}")).at(place)
        })?;
        let Value::Object(fields) = value else { return Err(wrong("a skeleton is a JSON object", "")) };
        let mut reader = Reader { fields, place: String::new(), left: MAX_SPANS };
        let id = reader.text("id")?;
        let spans = match reader.fields.shift_remove("spans") {
            Some(Value::Array(spans)) => list(spans, "spans", &mut reader.left)?,
            Some(_) => return Err(wrong("spans is a list", "spans")),
            None => return Err(wrong("a skeleton has spans", "").help("{\"spans\": [...]}")),
        };
        reader.end()?;
        Ok(Skeleton { spans, id })
    }

    /// The JSON form; [`Skeleton::from_json`] gives the skeleton back.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("spans".into(), self.spans.iter().map(Span::to_json).collect());
        if let Some(id) = &self.id {
            fields.insert("id".into(), id.as_str().into());
        }
        Value::Object(fields)
    }
}

impl Span {
    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("kind", self.kind.name().into());
        if let Some(key) = &self.key {
            put("key", key.as_str().into());
        }
        let all = |spans: &[Span]| -> Value { spans.iter().map(Span::to_json).collect() };
        match &self.kind {
            SpanKind::Literal(text) => drop(put("value", text.as_str().into())),
            SpanKind::Enum(values) => drop(put("enumValues", values.clone().into())),
            SpanKind::Number(Some(schema)) | SpanKind::String(Some(schema)) => {
                put("schema", schema.clone().into());
            }
            SpanKind::Json(Some(schema)) => drop(put("schema", schema.clone())),
            SpanKind::Object(spans) => drop(put("spans", all(spans))),
            SpanKind::Array { items, min, max } => {
                put("items", all(items));
                if *min > 0 {
                    put("minItems", (*min).into());
                }
                max.map(|max| put("maxItems", max.into()));
            }
            SpanKind::Switch { on, cases, default } => {
                put("on", on.as_str().into());
                let cases: Map<String, Value> = cases.iter().map(|(v, s)| (v.clone(), all(s))).collect();
                put("cases", cases.into());
                default.as_ref().map(|spans| put("default", all(spans)));
            }
            SpanKind::Number(None) | SpanKind::Boolean | SpanKind::String(None) | SpanKind::Json(None) => {}
        }
        if let Some(rule) = &self.rule {
            put("rule", rule.as_str().into());
        }
        if let Some(sampler) = &self.sampler {
            put("sampler", sampler.clone());
        }
        Value::Object(fields)
    }
}

fn wrong(message: impl Into<String>, place: &str) -> Error {
    Error::new(ErrorKind::Payload, message).at(place)
}

/// The spans of a list. `left` is how many more there may be.
fn list(spans: Vec<Value>, place: &str, left: &mut usize) -> Result<Vec<Span>> {
    if spans.len() > *left {
        let message = format!("the skeleton has more than {MAX_SPANS} spans");
        return Err(Error::new(ErrorKind::Limit, message).at(place));
    }
    *left -= spans.len();
    spans.into_iter().enumerate().map(|(at, span)| read(span, format!("{place}[{at}]"), left)).collect()
}

/// Takes the fields of one object, so that those that are left over are unknown.
struct Reader {
    fields: Map<String, Value>,
    place: String,
    left: usize,
}

impl Reader {
    fn at(&self, field: &str) -> String {
        if self.place.is_empty() {
            field.into()
        } else {
            format!("{}.{field}", self.place)
        }
    }

    fn take(&mut self, field: &str) -> Option<Value> {
        self.fields.shift_remove(field).filter(|value| !value.is_null())
    }

    fn text(&mut self, field: &str) -> Result<Option<String>> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(format!("{field} is a text"), &self.at(field))),
        }
    }

    fn count(&mut self, field: &str) -> Result<Option<u32>> {
        let Some(value) = self.take(field) else { return Ok(None) };
        let count = value.as_u64().and_then(|n| u32::try_from(n).ok());
        count
            .map(Some)
            .ok_or_else(|| wrong(format!("{field} is a number from 0 to 2^32 - 1"), &self.at(field)))
    }

    fn spans(&mut self, field: &str, value: Value) -> Result<Vec<Span>> {
        match value {
            Value::Array(spans) => list(spans, &self.at(field), &mut self.left),
            _ => Err(wrong(format!("{field} is a list of spans"), &self.at(field))),
        }
    }

    /// A schema that is an object and describes values of this type only.
    fn schema(&mut self, types: &[&str]) -> Result<Option<Map<String, Value>>> {
        let mut schema = match self.take("schema") {
            None => return Ok(None),
            Some(Value::Object(schema)) => schema,
            Some(_) => return Err(wrong("schema is a JSON object here", &self.at("schema"))),
        };
        match schema.get("type").and_then(Value::as_str) {
            Some(name) if types.contains(&name) => {}
            None if !schema.contains_key("type") => drop(schema.insert("type".into(), types[0].into())),
            _ => {
                let message = format!("the schema's type is {}", types.join(" or "));
                return Err(wrong(message, &self.at("schema.type")));
            }
        }
        Ok(Some(schema))
    }

    fn end(&self) -> Result<()> {
        match self.fields.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((field, _)) => {
                let shown: String = field.chars().take(40).collect();
                Err(wrong(format!("unknown field {shown:?}"), &self.place).help("leave it out"))
            }
        }
    }
}

fn read(span: Value, place: String, left: &mut usize) -> Result<Span> {
    let Value::Object(fields) = span else { return Err(wrong("a span is a JSON object", &place)) };
    let mut reader = Reader { fields, place, left: *left };
    let Some(name) = reader.text("kind")? else { return Err(wrong("a span has a kind", &reader.place)) };
    let (key, rule, sampler) = (reader.text("key")?, reader.text("rule")?, reader.take("sampler"));
    let kind = kind(&name, &mut reader)?;
    if !kind.is_value() {
        if sampler.is_some() {
            let message = format!("a span of kind {name} is not sampled itself");
            return Err(wrong(message, &reader.at("sampler")).help("give a sampler to spans of values"));
        }
    } else {
        // The reference's form may carry empty fields of other kinds.
        for (field, unused) in [("value", true), ("enumValues", !matches!(kind, SpanKind::Enum(_)))] {
            let is_empty = |v: &Value| v.as_str() == Some("") || v.as_array().is_some_and(Vec::is_empty);
            if unused && reader.fields.get(field).is_some_and(is_empty) {
                reader.fields.shift_remove(field);
            }
        }
    }
    reader.end()?;
    *left = reader.left;
    Ok(Span { kind, key, rule, sampler })
}

fn kind(name: &str, reader: &mut Reader) -> Result<SpanKind> {
    Ok(match name {
        "literal" => SpanKind::Literal(reader.text("value")?.unwrap_or_default()),
        "enum" => SpanKind::Enum(enum_values(reader)?),
        "number" => SpanKind::Number(reader.schema(&["number", "integer"])?),
        "boolean" => SpanKind::Boolean,
        "free-string" => SpanKind::String(reader.schema(&["string"])?),
        "free-json" => SpanKind::Json(match reader.take("schema") {
            Some(schema @ (Value::Object(_) | Value::Bool(_))) => Some(schema),
            None => None,
            Some(_) => return Err(wrong("schema is a JSON object or a boolean", &reader.at("schema"))),
        }),
        "object" => {
            let Some(spans) = reader.take("spans") else {
                return Err(wrong("an object has spans", &reader.place).help("\"spans\": [...]"));
            };
            SpanKind::Object(reader.spans("spans", spans)?)
        }
        "array" => {
            let Some(items) = reader.take("items") else {
                return Err(wrong("an array has items", &reader.place).help("\"items\": [spans of one item]"));
            };
            let items = reader.spans("items", items)?;
            let (min, max) = (reader.count("minItems")?.unwrap_or(0), reader.count("maxItems")?);
            if let Some(max) = max.filter(|&max| max < min) {
                let message = format!("at least {min} items and at most {max}");
                return Err(wrong(message, &reader.at("maxItems")));
            }
            SpanKind::Array { items, min, max }
        }
        "switch" => {
            let Some(on) = reader.text("on")? else {
                return Err(wrong("a switch names an enum", &reader.place).help("\"on\": the enum's key"));
            };
            let Some(Value::Object(given)) = reader.take("cases") else {
                return Err(wrong("cases is an object: value -> spans", &reader.at("cases")));
            };
            let mut cases = Vec::with_capacity(given.len());
            for (value, spans) in given {
                let spans = reader.spans(&format!("cases.{value}"), spans)?;
                cases.push((value, spans));
            }
            let default = reader.take("default").map(|spans| reader.spans("default", spans)).transpose()?;
            SpanKind::Switch { on, cases, default }
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            let known = "literal, enum, number, boolean, free-string, free-json, object, array, switch";
            let error = wrong(format!("no span has the kind {shown:?}"), &reader.at("kind"));
            return Err(error.help(format!("the kinds: {known}")));
        }
    })
}

fn enum_values(reader: &mut Reader) -> Result<Vec<Value>> {
    let place = reader.at("enumValues");
    let mut values = match reader.take("enumValues") {
        None => Vec::new(),
        Some(Value::Array(values)) => values,
        Some(_) => return Err(wrong("enumValues is a list", &place)),
    };
    if values.is_empty() {
        values.extend(reader.take("value"));
    } else {
        reader.take("value");
    }
    if values.len() > MAX_ENUM_VALUES {
        let message = format!("{} values, {MAX_ENUM_VALUES} is the most", values.len());
        return Err(Error::new(ErrorKind::Limit, message).at(place).help("use a Catalogue for a larger set"));
    }
    match values.iter().position(|value| value.is_object() || value.is_array()) {
        None => Ok(values),
        Some(at) => {
            Err(wrong("an enum's value is a text, number, boolean or null", &format!("{place}[{at}]")))
        }
    }
}
