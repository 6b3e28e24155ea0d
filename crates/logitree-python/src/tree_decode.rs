//! Reads RTP-LLM's tree-decode file from a stream of JSON. Neither the text nor a tree of JSON is held in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};

use logitree::{Error, ErrorKind};
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::Deserialize;

use crate::errors::to_py;

/// Characters that are read at once.
const CHUNK: usize = 1 << 16;
/// The largest token id.
const LARGEST: i64 = i32::MAX as i64;
/// Every candidate's key is spelled with the separator.
const LONGEST_SEPARATOR: usize = 256;
/// Characters of a key or field that a place shows.
const SHOWN: usize = 200;

/// A kind of finding, how often it was there, and its first place as a JSON pointer.
type Finding = (&'static str, usize, String);

/// Reads the fields of RTP-LLM's tree-decode file: those that it has, by their names, and what it has that means
/// nothing (kind, count, first place). A table is a dict from each key to its candidates in ascending order: the bytes
/// of int32 ids and, in `prefix_weight_dict`, of as many float32 weights after them. `weight_dict` is a dict of floats.
///
/// Args:
///     read: returns about as many characters as it is asked for, and none at the end.
///
/// Raises:
///     PayloadError: it is no JSON, or no tree-decode file; `place` is a JSON pointer, with line and column.
#[pyfunction]
fn read_tree_decode<'py>(read: Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyDict>, Vec<Finding>)> {
    let py = read.py();
    let mut raised = None;
    let source = Source { read, text: String::new(), at: 0, raised: &mut raised };
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(CHUNK, source));
    let mut state = State {
        fields: PyDict::new(py),
        findings: BTreeMap::new(),
        table: PyDict::new(py),
        weighted: false,
        row: Vec::new(),
        field: None,
        key: None,
        at: None,
    };
    let read = Part(Kind::File, &mut state).deserialize(&mut json).and_then(|()| json.end());
    drop(json);
    match (read, raised) {
        (Ok(()), _) => {
            let findings = state.findings.into_iter().map(|(kind, (count, place))| (kind, count, place));
            Ok((state.fields, findings.collect()))
        }
        (Err(_), Some(raised)) => Err(raised),
        (Err(error), None) => Err(state.wrong(&error)),
    }
}

/// The characters that a Python callable gives, as UTF-8.
struct Source<'a, 'py> {
    read: Bound<'py, PyAny>,
    text: String,
    at: usize,
    /// What the callable raised.
    raised: &'a mut Option<PyErr>,
}

impl Read for Source<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            let text = self.read.call1((CHUNK,)).and_then(|text| text.extract());
            self.text = text.map_err(|error: PyErr| {
                let lone = error.is_instance_of::<PyUnicodeEncodeError>(self.read.py());
                let wrong =
                    || Error::new(ErrorKind::Payload, "half a surrogate pair is no text").at("the text");
                *self.raised = Some(if lone { to_py(wrong()) } else { error });
                io::Error::other("the source failed")
            })?;
            self.at = 0;
        }
        let read = (&self.text.as_bytes()[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// What was read, and where the reader is.
struct State<'py> {
    fields: Bound<'py, PyDict>,
    findings: BTreeMap<&'static str, (usize, String)>,
    /// The object that is read, and whether its candidates have weights.
    table: Bound<'py, PyDict>,
    weighted: bool,
    /// The candidates of the key that is read, with their weights.
    row: Vec<(i64, f32)>,
    field: Option<String>,
    key: Option<String>,
    /// Which candidate is read.
    at: Option<usize>,
}

impl<'py> State<'py> {
    /// Where the reader is, as a JSON pointer.
    fn pointer(&self) -> String {
        let names = [&self.field, &self.key].into_iter().flatten().map(|name| {
            let shown: String = name.chars().take(SHOWN).collect();
            shown.replace('~', "~0").replace('/', "~1")
        });
        names.chain(self.at.map(|at| at.to_string())).map(|part| format!("/{part}")).collect()
    }

    /// The reader's error, with its place.
    fn wrong(&self, error: &serde_json::Error) -> PyErr {
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        let position = format!(", line {}, column {}", error.line(), error.column());
        let place = self.pointer() + &position;
        to_py(Error::new(ErrorKind::Payload, message.to_string()).at(place.trim_start_matches(", ")))
    }

    /// Counts what the file has that means nothing.
    fn report(&mut self, kind: &'static str, count: usize) {
        if count > 0 {
            let (before, place) = self.findings.remove(kind).unwrap_or_else(|| (0, self.pointer()));
            self.findings.insert(kind, (before + count, place));
        }
    }

    /// Sets the value of the key that was read; the last one counts.
    fn set<V: IntoPyObject<'py>, E: de::Error>(&mut self, value: V) -> Result<(), E> {
        let known = self.table.len();
        self.table.set_item(&self.key, value).map_err(E::custom)?;
        self.report("duplicate key", usize::from(self.table.len() == known));
        Ok(())
    }

    /// Sets the candidates that were read; of those that are there twice the last one counts.
    fn set_row<E: de::Error>(&mut self) -> Result<(), E> {
        let mut row = std::mem::take(&mut self.row);
        let given = row.len();
        row.sort_by_key(|&(token, _)| token);
        row.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                *kept = *later;
            }
            same
        });
        self.report("duplicate candidate", given - row.len());
        let distinct = row.len();
        row.retain(|&(token, _)| (0..=LARGEST).contains(&token));
        self.report("candidate out of range", distinct - row.len());
        let tokens = row.iter().flat_map(|&(token, _)| (token as i32).to_ne_bytes());
        let weights = row.iter().filter(|_| self.weighted).flat_map(|&(_, weight)| weight.to_ne_bytes());
        let bytes = PyBytes::new(self.table.py(), &tokens.chain(weights).collect::<Vec<_>>());
        row.clear();
        self.row = row;
        self.set(bytes)
    }
}

/// What a value must be.
#[derive(Clone, Copy)]
enum Kind {
    File,
    /// A whole number of 32 bits, from this one on.
    Id(i64),
    Separator,
    Table,
    Candidates,
    Candidate(usize),
    Weights,
    Weight,
}

/// A value that is to be read.
struct Part<'a, 'py>(Kind, &'a mut State<'py>);

impl<'de> DeserializeSeed<'de> for Part<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.0 {
            Kind::File | Kind::Table | Kind::Weights => from.deserialize_map(self),
            Kind::Candidates => from.deserialize_seq(self),
            Kind::Separator => from.deserialize_str(self),
            Kind::Id(_) => from.deserialize_i64(self),
            Kind::Candidate(at) => {
                self.1.at = Some(at);
                if self.1.weighted {
                    from.deserialize_str(self)
                } else {
                    from.deserialize_i64(self)
                }
            }
            Kind::Weight => {
                let weight = finite(&serde_json::Number::deserialize(from)?.to_string())?;
                self.1.set(weight)
            }
        }
    }
}

impl<'de> Visitor<'de> for Part<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::File => "an object with the field prefix_dict",
            Kind::Table | Kind::Weights => "an object",
            Kind::Candidates => "an array of candidates",
            Kind::Candidate(_) if self.1.weighted => "a token and its weight, such as \"64000:0.1\"",
            Kind::Candidate(_) | Kind::Id(_) => "a whole number",
            Kind::Separator => "a string of at most 256 characters",
            Kind::Weight => "a number",
        })
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Part(kind, state) = self;
        let inner = match kind {
            Kind::Table => Kind::Candidates,
            Kind::Weights => Kind::Weight,
            _ => return state.read_fields(map),
        };
        state.table = PyDict::new(state.table.py());
        while let Some(key) = map.next_key()? {
            state.key = Some(key);
            map.next_value_seed(Part(inner, state))?;
        }
        state.key = None;
        state.fields.set_item(&state.field, &state.table).map_err(de::Error::custom)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        let state = self.1;
        let mut at = 0;
        while seq.next_element_seed(Part(Kind::Candidate(at), state))?.is_some() {
            at += 1;
        }
        state.at = None;
        state.set_row()
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        let Part(kind, state) = self;
        match kind {
            Kind::Id(least) if !(least..=LARGEST).contains(&value) => {
                Err(E::custom(format_args!("{value} is not from {least} to {LARGEST}")))
            }
            Kind::Id(_) => state.fields.set_item(&state.field, value).map_err(E::custom),
            _ => {
                state.row.push((value, 0.0));
                Ok(())
            }
        }
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.visit_i64(value.try_into().unwrap_or(i64::MAX))
    }

    /// -0 and whole numbers of more than 64 bits, which serde gives as floats; other floats are no ids.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        if value == 0.0 && value.is_sign_negative() || value.abs() >= 9.2e18 {
            return self.visit_i64(value as i64);
        }
        Err(E::invalid_type(Unexpected::Float(value), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        if let Kind::Separator = self.0 {
            if text.chars().nth(LONGEST_SEPARATOR).is_none() {
                return self.1.fields.set_item("sep", text).map_err(E::custom);
            }
        } else if let Some((token, weight)) = text.split_once(':') {
            let digits = token.strip_prefix('-').unwrap_or(token);
            let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let is_spaced = weight.contains([' ', '\t', '\n', '\r']);
            if is_whole && !is_spaced && serde_json::from_str::<serde_json::Number>(weight).is_ok() {
                self.1.row.push((token.parse().unwrap_or(i64::MAX), finite(weight)? as f32));
                return Ok(());
            }
        }
        let shown: String = text.chars().take(40).collect();
        Err(E::invalid_value(Unexpected::Str(&shown), &self))
    }
}

impl State<'_> {
    /// Reads the members of the file's object. Of a field that is there twice, the last counts.
    fn read_fields<'de, M: MapAccess<'de>>(&mut self, mut map: M) -> Result<(), M::Error> {
        while let Some(field) = map.next_key::<String>()? {
            let kind = match field.as_str() {
                "start_token_id" => Some(Kind::Id(-LARGEST - 1)),
                "end_token_id" => Some(Kind::Id(0)),
                "sep" => Some(Kind::Separator),
                "prefix_dict" | "prefix_weight_dict" => Some(Kind::Table),
                "weight_dict" => Some(Kind::Weights),
                _ => None,
            };
            self.weighted = field == "prefix_weight_dict";
            self.field = Some(field);
            match kind {
                Some(kind) => map.next_value_seed(Part(kind, self))?,
                None => {
                    self.report("unknown field", 1);
                    map.next_value::<IgnoredAny>()?;
                }
            }
            self.field = None;
        }
        Ok(())
    }
}

/// A weight as it is written, if a float32 holds it.
fn finite<E: de::Error>(weight: &str) -> Result<f64, E> {
    let value = weight.parse::<f64>().unwrap_or(f64::INFINITY);
    if value.abs() > f64::from(f32::MAX) {
        return Err(E::custom("a weight is beyond float32"));
    }
    Ok(value)
}

/// Adds the function to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(read_tree_decode, m)?)
}
