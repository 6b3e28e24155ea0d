//! Plans of a skeleton in the reference's form: what is written without asking the model (the prefill plan), and how each
//! span is sampled (the span sampler plan).

use serde_json::Value;

use super::place::JsonPlace;
use super::spans::{Skeleton, Span, SpanKind};
use crate::{Result, TokenId};

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
    /// The skeleton's id.
    pub id: Option<String>,
}

/// How one span is sampled where it differs from the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanOverride {
    /// Position in the skeleton's spans.
    pub span_index: usize,
    /// 0: the likeliest.
    pub temperature: f32,
    /// How many candidates are kept.
    pub top_k: u32,
}

/// A function from text to tokens, without special tokens.
pub type Tokenize<'a> = dyn FnMut(&str) -> Result<Vec<TokenId>> + 'a;

impl Span {
    /// The fixed text of the span, if it is not sampled. `place` is its place.
    pub(super) fn fixed_text(&self, place: JsonPlace) -> Option<String> {
        match &self.kind {
            SpanKind::Literal(text) => Some(text.clone()),
            SpanKind::Enum(values) if values.len() < 2 => {
                Some(values.first().map_or(String::new(), |v| place.write(v)))
            }
            _ => None,
        }
    }
}

impl Skeleton {
    /// The spans with their fixed text (`None` where they are sampled), and the place of each in JSON; those of an object in
    /// its place.
    fn walk(&self) -> Vec<(&Span, Option<String>, JsonPlace)> {
        fn flat<'s>(
            spans: &'s [Span],
            place: &mut JsonPlace,
            out: &mut Vec<(&'s Span, Option<String>, JsonPlace)>,
        ) {
            for span in spans {
                if let SpanKind::Object(inner) = &span.kind {
                    flat(inner, place, out);
                    continue;
                }
                let here = *place;
                let text = span.fixed_text(here);
                place.read(text.as_deref().unwrap_or_default());
                out.push((span, text, here));
            }
        }
        let mut out = Vec::new();
        flat(&self.spans, &mut JsonPlace::default(), &mut out);
        out
    }

    /// What can be written without sampling; `None` if there is nothing. Fixed spans side by side are one run, and
    /// empty ones are left out. An array or a switch counts as one span that is sampled.
    ///
    /// # Errors
    /// Whatever `tokenize` gives.
    pub fn prefill_plan(&self, mut tokenize: Option<&mut Tokenize<'_>>) -> Result<Option<PrefillPlan>> {
        let mut runs: Vec<Run> = Vec::new();
        let mut free_count = 0;
        for (_, text, _) in self.walk() {
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
        let greedy = self.spans.iter().enumerate().filter(|(_, span)| span.kind.is_greedy());
        greedy.map(|(span_index, _)| SpanOverride { span_index, temperature: 0.0, top_k: 1 }).collect()
    }

    /// The texts that the sampled enum at `span_index` may be, as they are written there, and what must follow them
    /// (the closing quote, inside a string): what [`crate::BoundOneOf`] takes. `None` for any other span.
    pub fn enum_texts(&self, span_index: usize) -> Option<(Vec<String>, &'static str)> {
        let wanted = self.spans.get(span_index)?;
        let (span, text, place) = self.walk().into_iter().find(|(span, ..)| std::ptr::eq(*span, wanted))?;
        match &span.kind {
            SpanKind::Enum(values) if text.is_none() => Some((
                values.iter().map(|v: &Value| place.write(v)).collect(),
                if place.in_string { "\"" } else { "" },
            )),
            _ => None,
        }
    }
}

impl SpanKind {
    /// Whether the likeliest token is taken in such a span unless its sampler says otherwise: enums of two or more values,
    /// numbers and booleans.
    pub fn is_greedy(&self) -> bool {
        match self {
            SpanKind::Enum(values) => values.len() > 1,
            SpanKind::Number(_) | SpanKind::Boolean => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_values_in_every_place() {
        let text = r#"{"spans": [
            {"kind": "literal", "value": "{\"a\\\"\":"}, {"kind": "enum", "enumValues": ["x\"y", "z"]},
            {"kind": "literal", "value": ",\"b\":\""}, {"kind": "enum", "enumValues": ["x\"y", "z", 1]},
            {"kind": "literal", "value": "\"}"}]}"#;
        let skeleton = Skeleton::from_json(text).unwrap();
        let quoted = vec![r#""x\"y""#.to_string(), r#""z""#.to_string()];
        assert_eq!(skeleton.enum_texts(1), Some((quoted, "")));
        let bare = [r#"x\"y"#, "z", "1"].map(str::to_string).to_vec();
        assert_eq!(skeleton.enum_texts(3), Some((bare, "\"")));
        assert_eq!(skeleton.enum_texts(0), None);
        assert_eq!(skeleton.enum_texts(9), None);
    }

    #[test]
    fn nothing_fixed_is_no_plan() {
        let skeleton = Skeleton::from_json(r#"{"spans": [{"kind": "free-json"}]}"#).unwrap();
        assert_eq!(skeleton.prefill_plan(None), Ok(None));
    }
}
