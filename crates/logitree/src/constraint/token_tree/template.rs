//! A response template: fixed text and named holes. From it, what can be written without asking the model (the
//! prefill plan) and how each hole is to be sampled (the span sampler plan).
//!
//! Values are JSON values: outside a JSON string a value is written with its quotes, inside one (the fixed text before
//! it opened a quote) without, escaped either way.

use serde::Deserialize;

use crate::{Error, ErrorKind, Result, TokenId};

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpanKind {
    /// Fixed text: written, never sampled.
    Literal,
    /// One of several values; with fewer than two it is fixed text.
    Enum,
    /// A JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A JSON string of any content.
    FreeString,
    /// Any JSON value.
    FreeJson,
}

/// One span of a template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// What it is.
    pub kind: SpanKind,
    /// The field it fills, for its maker's use.
    #[serde(default)]
    pub key: Option<String>,
    /// A literal's text, as it is written; an enum's only value where it has no others.
    #[serde(default)]
    pub value: Option<String>,
    /// An enum's values, unquoted.
    #[serde(default)]
    pub enum_values: Option<Vec<String>>,
    /// A grammar rule's name, for its maker's use.
    #[serde(default)]
    pub rule: Option<String>,
}

/// A whole response: its spans in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResponseTemplate {
    /// The spans.
    pub spans: Vec<Span>,
    /// Its maker's name for it.
    #[serde(default)]
    pub id: Option<String>,
}

/// A run of fixed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which free span it comes after; `None` at the very beginning (the plan's makers write -1).
    pub after_free_span: Option<usize>,
    /// The text, never empty.
    pub text: String,
    /// Its tokens, where a tokenizer was at hand.
    pub token_ids: Option<Vec<TokenId>>,
}

/// What of a response is written without sampling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefillPlan {
    /// The text before the first free span; empty if it begins with one.
    pub prefix: String,
    /// The runs of fixed text, in order; at least one.
    pub runs: Vec<Run>,
    /// Number of spans that are sampled.
    pub free_count: usize,
    /// The template's id.
    pub id: Option<String>,
}

/// How one span is sampled where it differs from the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanOverride {
    /// Position in the template's spans.
    pub span_index: usize,
    /// 0: the likeliest.
    pub temperature: f32,
    /// How many candidates are kept.
    pub top_k: u32,
}

/// A function from text to tokens, without special tokens.
pub type Tokenize<'a> = dyn FnMut(&str) -> Result<Vec<TokenId>> + 'a;

/// Where in JSON a text ends that began outside of a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct JsonPlace {
    in_string: bool,
    after_backslash: bool,
}

impl JsonPlace {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' if self.in_string => self.after_backslash = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }

    /// `value` as it is written here.
    fn write(self, value: &str) -> String {
        let quoted = serde_json::Value::from(value).to_string();
        if self.in_string {
            quoted[1..quoted.len() - 1].to_string()
        } else {
            quoted
        }
    }
}

impl Span {
    /// The fixed text of the span, if it is not sampled. `place` is its place.
    fn fixed_text(&self, place: JsonPlace) -> Option<String> {
        match (self.kind, self.enum_values.as_deref().unwrap_or_default()) {
            (SpanKind::Literal, _) => Some(self.value.clone().unwrap_or_default()),
            (SpanKind::Enum, []) => Some(self.value.as_ref().map_or(String::new(), |v| place.write(v))),
            (SpanKind::Enum, [only]) => Some(place.write(only)),
            _ => None,
        }
    }
}

impl ResponseTemplate {
    /// Reads JSON: `{spans: [{kind, key?, value?, enumValues?, rule?}], id?}`; kinds are literal, enum, number,
    /// boolean, free-string and free-json.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`], with line and column, for anything else.
    pub fn from_json(text: &str) -> Result<ResponseTemplate> {
        serde_json::from_str(text).map_err(|e| {
            Error::new(ErrorKind::Payload, format!("the response template cannot be read: {e}")).at(format!(
                "line {} column {}",
                e.line(),
                e.column()
            ))
        })
    }

    /// The spans with their fixed text (`None` where they are sampled), and the place of each in JSON.
    fn walk(&self) -> impl Iterator<Item = (Option<String>, JsonPlace)> + '_ {
        let mut place = JsonPlace::default();
        self.spans.iter().map(move |span| {
            let here = place;
            let text = span.fixed_text(here);
            place.read(text.as_deref().unwrap_or_default());
            (text, here)
        })
    }

    /// What can be written without sampling; `None` if there is nothing. Fixed spans side by side are one run, and
    /// empty ones are left out.
    ///
    /// # Errors
    /// Whatever `tokenize` gives.
    pub fn prefill_plan(&self, mut tokenize: Option<&mut Tokenize<'_>>) -> Result<Option<PrefillPlan>> {
        let mut runs: Vec<Run> = Vec::new();
        let mut free_count = 0;
        for (text, _) in self.walk() {
            let after_free_span = usize::checked_sub(free_count, 1);
            match (text, runs.last_mut()) {
                (None, _) => free_count += 1,
                (Some(text), _) if text.is_empty() => {}
                (Some(text), Some(run)) if run.after_free_span == after_free_span => run.text.push_str(&text),
                (Some(text), _) => runs.push(Run { after_free_span, text, token_ids: None }),
            }
        }
        if let Some(tokenize) = &mut tokenize {
            for run in &mut runs {
                run.token_ids = Some(tokenize(&run.text)?);
            }
        }
        let Some(first) = runs.first() else { return Ok(None) };
        let prefix = if first.after_free_span.is_none() { first.text.clone() } else { String::new() };
        Ok(Some(PrefillPlan { prefix, runs, free_count, id: self.id.clone() }))
    }

    /// The spans whose answer should be the likeliest one: enums of two or more values, numbers and booleans.
    pub fn sampler_plan(&self) -> Vec<SpanOverride> {
        let spans = self.spans.iter().enumerate().zip(self.walk());
        let greedy = spans.filter(|((_, span), (text, _))| {
            text.is_none() && matches!(span.kind, SpanKind::Enum | SpanKind::Number | SpanKind::Boolean)
        });
        greedy.map(|((span_index, _), _)| SpanOverride { span_index, temperature: 0.0, top_k: 1 }).collect()
    }

    /// The texts that the sampled enum at `span_index` may be, as they are written there, and what must follow them
    /// (the closing quote, inside a string): what [`super::Choices`] takes. `None` for any other span.
    pub fn enum_texts(&self, span_index: usize) -> Option<(Vec<String>, &'static str)> {
        let (text, place) = self.walk().nth(span_index)?;
        let span = &self.spans[span_index];
        if text.is_some() || span.kind != SpanKind::Enum {
            return None;
        }
        let values = span.enum_values.iter().flatten();
        Some((values.map(|v| place.write(v)).collect(), if place.in_string { "\"" } else { "" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_values_wherever_they_stand() {
        let text = r#"{"spans": [
            {"kind": "literal", "value": "{\"a\\\"\":"}, {"kind": "enum", "enumValues": ["x\"y", "z"]},
            {"kind": "literal", "value": ",\"b\":\""}, {"kind": "enum", "enumValues": ["x\"y", "z"]},
            {"kind": "literal", "value": "\"}"}]}"#;
        let template = ResponseTemplate::from_json(text).unwrap();
        let quoted = vec![r#""x\"y""#.to_string(), r#""z""#.to_string()];
        assert_eq!(template.enum_texts(1), Some((quoted, "")));
        assert_eq!(template.enum_texts(3), Some((vec![r#"x\"y"#.to_string(), "z".to_string()], "\"")));
        assert_eq!(template.enum_texts(0), None);
        assert_eq!(template.enum_texts(9), None);
    }

    #[test]
    fn nothing_fixed_is_no_plan() {
        let template = ResponseTemplate::from_json(r#"{"spans": [{"kind": "free-json"}]}"#).unwrap();
        assert_eq!(template.prefill_plan(None), Ok(None));
        assert!(ResponseTemplate::from_json(r#"{"spans": [{"kind": "song"}]}"#).is_err());
    }
}
