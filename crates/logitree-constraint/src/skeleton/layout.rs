//! A skeleton resolved: texts in runs, values as they are written in their places, switches by value, every span with its
//! number and path.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::place::JsonPlace;
use super::spans::{Skeleton, Span, SpanKind};
use crate::{Error, ErrorKind, Result};

/// What is known of a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanInfo {
    /// Its kind's name in the JSON form.
    pub kind: &'static str,
    /// Its path: keys of objects with dots, `[]` for the items of an array; empty without a key.
    pub path: String,
    /// Its place in the JSON form.
    pub place: String,
    /// Whether the likeliest token is taken unless a sampler says otherwise.
    pub is_greedy: bool,
    /// Whether it lies inside of a JSON string of the fixed text, so that it is written without quotes.
    pub in_string: bool,
    /// An enum's values.
    pub values: Vec<Value>,
    /// Its sampler in the JSON form.
    pub sampler: Option<Value>,
}

/// A part of the text.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Run(TextRun),
    Value { span: u32, of: ValueOf },
    Array { span: u32, items: Vec<Part>, min: u32, max: Option<u32> },
    Switch { on: u32, cases: Vec<Vec<Part>>, case_of: Vec<u32>, place: String },
}

/// Fixed text, with where spans begin and end in it: enums of one value, and objects.
#[derive(Debug, Clone)]
pub(super) struct TextRun {
    pub number: u32,
    pub text: String,
    pub marks: Vec<TextMark>,
}

/// A span begins or ends at a byte of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextMark {
    pub at: usize,
    pub span: u32,
    /// At an end: the number of an enum's value.
    pub end: Option<Option<u32>>,
}

/// A value that is sampled.
#[derive(Debug, Clone)]
pub(super) enum ValueOf {
    /// The values as they are written, in the order of the span's values.
    Enum(Vec<String>),
    Number(Option<Map<String, Value>>),
    Boolean,
    String {
        in_string: bool,
        schema: Option<Map<String, Value>>,
    },
    Json(Option<Value>),
}

/// A skeleton, resolved.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub parts: Vec<Part>,
    /// By number: those of the outermost list by their position, then the nested ones in the form's order.
    pub spans: Vec<SpanInfo>,
    /// The texts of all runs, by their numbers, and whether each is in the outermost list.
    pub runs: Vec<(String, bool)>,
}

impl Layout {
    /// # Errors
    /// [`ErrorKind::Payload`] with its place for what cannot be written in its place, and for a switch that names no enum or
    /// misses a value.
    pub fn new(skeleton: &Skeleton) -> Result<Layout> {
        let mut maker = Maker { spans: Vec::new(), runs: Vec::new() };
        // Numbers of the outermost spans are their positions.
        let outermost = maker.reserve(&skeleton.spans, "spans", "");
        let mut place = JsonPlace::default();
        let parts = maker.list(&skeleton.spans, outermost, "spans", "", &mut place, true)?;
        Ok(Layout { parts, spans: maker.spans, runs: maker.runs })
    }
}

/// A list of parts that is being made.
struct List<'s> {
    parts: Vec<Part>,
    /// The enums of the list so far, by key.
    enums: FxHashMap<&'s str, u32>,
    outermost: bool,
}

struct Maker {
    spans: Vec<SpanInfo>,
    runs: Vec<(String, bool)>,
}

impl Maker {
    /// Numbers for the spans of a list; the first of them.
    fn reserve(&mut self, spans: &[Span], place: &str, prefix: &str) -> u32 {
        let first = self.spans.len() as u32;
        for (at, span) in spans.iter().enumerate() {
            let values = match &span.kind {
                SpanKind::Enum(values) => values.clone(),
                _ => Vec::new(),
            };
            self.spans.push(SpanInfo {
                kind: span.kind.name(),
                path: joined(prefix, span.key.as_deref()),
                place: format!("{place}[{at}]"),
                is_greedy: span.kind.is_greedy(),
                in_string: false,
                values,
                sampler: span.sampler.clone(),
            });
        }
        first
    }

    fn list(
        &mut self,
        spans: &[Span],
        first: u32,
        place: &str,
        prefix: &str,
        json: &mut JsonPlace,
        outermost: bool,
    ) -> Result<Vec<Part>> {
        let mut list = List { parts: Vec::new(), enums: FxHashMap::default(), outermost };
        self.extend(&mut list, spans, first, place, prefix, json)?;
        Ok(list.parts)
    }

    fn extend<'s>(
        &mut self,
        list: &mut List<'s>,
        spans: &'s [Span],
        first: u32,
        place: &str,
        prefix: &str,
        json: &mut JsonPlace,
    ) -> Result<()> {
        for (at, span) in spans.iter().enumerate() {
            let number = first + at as u32;
            let here = format!("{place}[{at}]");
            self.spans[number as usize].in_string = json.in_string;
            if let (SpanKind::Enum(values), Some(key)) = (&span.kind, &span.key) {
                if !values.is_empty() {
                    list.enums.insert(key, number);
                }
            }
            if let Some(text) = span.fixed_text(*json) {
                json.read(&text);
                let is_value = matches!(&span.kind, SpanKind::Enum(values) if !values.is_empty());
                if is_value {
                    self.mark(list, number, None);
                }
                self.text(list, &text);
                if is_value {
                    self.mark(list, number, Some(Some(0)));
                }
                continue;
            }
            let part = match &span.kind {
                SpanKind::Object(inner) => {
                    outside(span, &here, *json)?;
                    let within = format!("{here}.spans");
                    let numbers = self.reserve(inner, &within, prefix);
                    let before = *json;
                    self.mark(list, number, None);
                    self.extend(list, inner, numbers, &within, prefix, json)?;
                    self.mark(list, number, Some(None));
                    balanced(before, *json, &within)?;
                    continue;
                }
                SpanKind::Switch { on, cases, default } => {
                    let Some(&on) = list.enums.get(on.as_str()) else {
                        let message = format!("no enum before it in the same list has the key {on:?}");
                        let error = Error::new(ErrorKind::Payload, message).at(format!("{here}.on"));
                        return Err(error.help("put the switch after the enum, in the same list"));
                    };
                    self.switch(on, cases, default.as_deref(), &here, prefix, *json)?
                }
                SpanKind::Array { items, min, max } => {
                    outside(span, &here, *json)?;
                    let path = self.spans[number as usize].path.clone() + "[]";
                    let within = format!("{here}.items");
                    let numbers = self.reserve(items, &within, &path);
                    let mut inner = *json;
                    let items = self.list(items, numbers, &within, &path, &mut inner, false)?;
                    balanced(*json, inner, &within)?;
                    Part::Array { span: number, items, min: *min, max: *max }
                }
                _ => Part::Value { span: number, of: value(span, &here, *json)? },
            };
            list.parts.push(part);
        }
        Ok(())
    }

    /// The run at the end of a list.
    fn run<'l>(&mut self, list: &'l mut List<'_>) -> &'l mut TextRun {
        if !matches!(list.parts.last(), Some(Part::Run(_))) {
            let number = self.runs.len() as u32;
            self.runs.push((String::new(), list.outermost));
            list.parts.push(Part::Run(TextRun { number, text: String::new(), marks: Vec::new() }));
        }
        match list.parts.last_mut() {
            Some(Part::Run(run)) => run,
            _ => unreachable!("a run was pushed"),
        }
    }

    fn text(&mut self, list: &mut List<'_>, text: &str) {
        if !text.is_empty() {
            let run = self.run(list);
            run.text.push_str(text);
            let number = run.number as usize;
            self.runs[number].0.push_str(text);
        }
    }

    fn mark(&mut self, list: &mut List<'_>, span: u32, end: Option<Option<u32>>) {
        let run = self.run(list);
        run.marks.push(TextMark { at: run.text.len(), span, end });
    }

    fn switch(
        &mut self,
        on: u32,
        cases: &[(String, Vec<Span>)],
        default: Option<&[Span]>,
        place: &str,
        prefix: &str,
        json: JsonPlace,
    ) -> Result<Part> {
        let values = self.spans[on as usize].values.clone();
        let names: Vec<String> = values.iter().map(name_of).collect();
        let mut by_name: FxHashMap<&str, u32> = FxHashMap::default();
        for (at, (name, _)) in cases.iter().enumerate() {
            by_name.insert(name, at as u32);
            if !names.contains(name) {
                let message = format!("the enum has no value {name:?}");
                return Err(Error::new(ErrorKind::Payload, message).at(format!("{place}.cases.{name}")));
            }
        }
        let otherwise = default.map(|_| cases.len() as u32);
        let case = |name: &String| by_name.get(name.as_str()).copied().or(otherwise);
        let Some(case_of) = names.iter().map(case).collect::<Option<Vec<u32>>>() else {
            let missing = names.iter().find(|name| case(name).is_none()).cloned().unwrap_or_default();
            let message = format!("the value {missing:?} has no case");
            let error = Error::new(ErrorKind::Payload, message).at(format!("{place}.cases"));
            return Err(error.help("add it, or a default"));
        };
        let named = cases.iter().map(|(name, spans)| (format!("{place}.cases.{name}"), &spans[..]));
        let mut made = Vec::with_capacity(cases.len() + 1);
        for (within, spans) in named.chain(default.map(|spans| (format!("{place}.default"), spans))) {
            let numbers = self.reserve(spans, &within, prefix);
            let mut inner = json;
            made.push(self.list(spans, numbers, &within, prefix, &mut inner, false)?);
            balanced(json, inner, &within)?;
        }
        Ok(Part::Switch { on, cases: made, case_of, place: place.into() })
    }
}

/// An enum's value as a case names it.
fn name_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn joined(prefix: &str, key: Option<&str>) -> String {
    match key {
        None | Some("") => prefix.into(),
        Some(key) if prefix.is_empty() => key.into(),
        Some(key) => format!("{prefix}.{key}"),
    }
}

fn balanced(before: JsonPlace, after: JsonPlace, place: &str) -> Result<()> {
    if before == after {
        return Ok(());
    }
    let message = "the text opens or closes a string that it does not close or open";
    Err(Error::new(ErrorKind::Payload, message).at(place).help("keep quotes balanced in items and cases"))
}

fn outside(span: &Span, place: &str, json: JsonPlace) -> Result<()> {
    if !json.in_string {
        return Ok(());
    }
    let message = format!("a span of kind {} inside of a JSON string", span.kind.name());
    Err(Error::new(ErrorKind::Payload, message).at(place).help("close the string before it"))
}

fn value(span: &Span, place: &str, json: JsonPlace) -> Result<ValueOf> {
    Ok(match &span.kind {
        SpanKind::Enum(values) => {
            let texts: Vec<String> = values.iter().map(|value| json.write(value)).collect();
            let mut seen: FxHashMap<&str, usize> = FxHashMap::default();
            for (at, text) in texts.iter().enumerate() {
                if let Some(first) = seen.insert(text, at) {
                    let message = format!("values {first} and {at} are both written {text}");
                    return Err(
                        Error::new(ErrorKind::Payload, message).at(format!("{place}.enumValues[{at}]"))
                    );
                }
            }
            ValueOf::Enum(texts)
        }
        SpanKind::Number(schema) => ValueOf::Number(schema.clone()),
        SpanKind::Boolean => ValueOf::Boolean,
        SpanKind::String(schema) => ValueOf::String { in_string: json.in_string, schema: schema.clone() },
        SpanKind::Json(schema) => {
            outside(span, place, json)?;
            ValueOf::Json(schema.clone())
        }
        SpanKind::Literal(_) | SpanKind::Object(_) | SpanKind::Array { .. } | SpanKind::Switch { .. } => {
            return Err(Error::new(ErrorKind::Payload, "no value").at(place));
        }
    })
}
