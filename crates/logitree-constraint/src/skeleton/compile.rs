//! A skeleton as a grammar: masks, forced tokens and tokens across the ends of spans are the grammar engine's.
//!
//! A switch is the union, over the cases, of the values that select the case and what lies between the enum and the
//! switch; what follows the switch is shared. Token ids, of runs and of token-tree leaves, are whole tokens in the grammar.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::layout::{Layout, Part, SpanInfo, TextRun, ValueOf};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::ast::{Grammar, Syntax};
use logitree_grammar::json_schema::{SchemaOptions, Whitespace};
use logitree_grammar::rules::TokenName;

/// Most parts of a grammar: those between an enum and the switches on it count once for each case.
const MAX_PARTS: usize = 65_536;

pub(super) const NUMBER: &str = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?";
/// What an integer is where its schema says nothing else: JSON Schema would have 1.0 and 1e2, too.
const INTEGER: &str = "-?(0|[1-9][0-9]*)";
/// One character of a JSON string, escaped or not.
const CHARACTER: &str = concat!(
    r#"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u([0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})"#,
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
);

/// What replaces bytes by tokens.
#[derive(Default)]
pub(super) struct TokenTexts {
    /// The tokens of each run, by its number; `None`: any that spell it.
    pub runs: Vec<Option<Vec<TokenId>>>,
    /// For spans with a token tree: each value's tokens, with a quote before and after them or not.
    pub leaves: FxHashMap<u32, Vec<ValueTokens>>,
}

/// The tokens of one value of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueTokens {
    /// Which value of the span.
    pub value: u32,
    pub tokens: Vec<TokenId>,
    /// Whether quotes come around the tokens.
    pub quoted: bool,
}

/// The grammar of a skeleton.
///
/// # Errors
/// [`ErrorKind::Constraint`] with the span's place for a schema that cannot be honoured; [`ErrorKind::Limit`] where cases
/// of cases multiply past the limit.
pub(super) fn grammar(layout: &Layout, texts: &TokenTexts) -> Result<Grammar> {
    let mut compiler =
        Compiler { layout, texts, chosen: FxHashMap::default(), made: 0, values: FxHashMap::default() };
    compiler.list(&layout.parts)
}

struct Compiler<'l> {
    layout: &'l Layout,
    texts: &'l TokenTexts,
    /// The value of each enum whose switches are being written.
    chosen: FxHashMap<u32, u32>,
    made: usize,
    /// The grammars of values, each made once.
    values: FxHashMap<u32, Grammar>,
}

impl Compiler<'_> {
    fn info(&self, span: u32) -> &SpanInfo {
        &self.layout.spans[span as usize]
    }

    fn list(&mut self, parts: &[Part]) -> Result<Grammar> {
        let mut nodes = Vec::with_capacity(parts.len());
        let mut at = 0;
        while at < parts.len() {
            let last = last_dependent(parts, at);
            if let Part::Value { span, of: ValueOf::Enum(texts) } = &parts[at] {
                if last > at {
                    nodes.push(self.by_value(*span, texts, &parts[at + 1..=last])?);
                    at = last + 1;
                    continue;
                }
            }
            if !matches!(&parts[at], Part::Run(run) if run.text.is_empty()) {
                nodes.push(self.part(&parts[at])?);
            }
            at += 1;
        }
        Grammar::seq(nodes)
    }

    /// An enum, and what follows up to the last switch that depends on it or on an enum in between.
    fn by_value(&mut self, span: u32, texts: &[String], rest: &[Part]) -> Result<Grammar> {
        let mut groups: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        let mut places: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
        for value in 0..texts.len() as u32 {
            let case = |part: &Part| match part {
                Part::Switch { on, case_of, .. } if *on == span => Some(case_of[value as usize]),
                _ => None,
            };
            let cases: Vec<u32> = rest.iter().filter_map(case).collect();
            let at = *places.entry(cases.clone()).or_insert(groups.len());
            if at == groups.len() {
                groups.push((cases, Vec::new()));
            }
            groups[at].1.push(value);
        }
        let mut alternatives = Vec::with_capacity(groups.len());
        for (_, values) in groups {
            let Some(choice) = self.choice(span, texts, Some(&values))? else { continue };
            self.chosen.insert(span, values[0]);
            alternatives.push(Grammar::seq([choice, self.list(rest)?])?);
        }
        self.chosen.remove(&span);
        if alternatives.is_empty() {
            return Err(self.no_leaf(span));
        }
        Grammar::alt(alternatives)
    }

    fn part(&mut self, part: &Part) -> Result<Grammar> {
        self.made += 1;
        if self.made > MAX_PARTS {
            let message = format!("the cases of the skeleton's switches make more than {MAX_PARTS} parts");
            return Err(
                Error::new(ErrorKind::Limit, message).help("let fewer switches depend on several enums")
            );
        }
        match part {
            Part::Run(run) => self.run(run),
            Part::Value { span, of } => self.value(*span, of),
            Part::Array { items, min, max, .. } => {
                let item = self.list(items)?;
                let further = Grammar::seq([Grammar::literal(",")?, item.clone()])?;
                let most = match max {
                    Some(0) => return Grammar::literal("[]"),
                    Some(max) => Some(max - 1),
                    None => None,
                };
                let several = Grammar::seq([item, further.repeat(min.saturating_sub(1), most)?])?;
                let several = several.repeat(u32::from(*min > 0), Some(1))?;
                Grammar::seq([Grammar::literal("[")?, several, Grammar::literal("]")?])
            }
            Part::Switch { on, cases, case_of, place } => {
                let chosen = self.chosen.get(on).copied().unwrap_or(0);
                let case = case_of[chosen as usize] as usize;
                self.list(&cases[case])
                    .map_err(|error| if error.place.is_empty() { error.at(place) } else { error })
            }
        }
    }

    fn run(&self, run: &TextRun) -> Result<Grammar> {
        match self.texts.runs.get(run.number as usize) {
            Some(Some(tokens)) => whole_tokens(tokens),
            _ => Grammar::literal(run.text.as_str()),
        }
    }

    fn value(&mut self, span: u32, of: &ValueOf) -> Result<Grammar> {
        if let ValueOf::Enum(texts) = of {
            return self.choice(span, texts, None)?.ok_or_else(|| self.no_leaf(span));
        }
        if let Some(known) = self.values.get(&span) {
            return Ok(known.clone());
        }
        let place = self.info(span).place.clone();
        let node = match of {
            ValueOf::Number(None) => Grammar::read(Syntax::Regex(NUMBER.into())),
            ValueOf::Number(Some(schema)) if is_plain_integer(schema) => {
                Grammar::read(Syntax::Regex(INTEGER.into()))
            }
            ValueOf::Boolean => Grammar::read(Syntax::Choice(vec!["true".into(), "false".into()])),
            ValueOf::String { in_string: true, schema } => {
                let (min, max) = lengths(schema.as_ref(), &place)?;
                let character = Grammar::read(Syntax::Regex(CHARACTER.into()))?;
                match (min, max) {
                    (0, None) => Grammar::read(Syntax::Regex(format!("({CHARACTER})*"))),
                    _ => character.repeat(min, max),
                }
            }
            ValueOf::String { schema: None, .. } => json(&serde_json::json!({"type": "string"})),
            ValueOf::Number(Some(schema)) | ValueOf::String { schema: Some(schema), .. } => {
                json(&Value::from(schema.clone()))
            }
            ValueOf::Json(schema) => json(schema.as_ref().unwrap_or(&Value::Bool(true))),
            ValueOf::Enum(_) => unreachable!("answered above"),
        };
        let node = node.map_err(|error| error.within(&format!("{place}.schema")))?;
        self.values.insert(span, node.clone());
        Ok(node)
    }

    /// These values of an enum, all of them without a list; `None` if its token tree has none of them.
    fn choice(&self, span: u32, texts: &[String], values: Option<&[u32]>) -> Result<Option<Grammar>> {
        let is_wanted = |value: u32| values.is_none_or(|values| values.binary_search(&value).is_ok());
        if let Some(leaves) = self.texts.leaves.get(&span) {
            let mut nodes = Vec::new();
            for leaf in leaves.iter().filter(|leaf| is_wanted(leaf.value)) {
                let tokens = whole_tokens(&leaf.tokens)?;
                nodes.push(if leaf.quoted {
                    let quote = Grammar::literal("\"")?;
                    Grammar::seq([quote.clone(), tokens, quote])?
                } else {
                    tokens
                });
            }
            return if nodes.is_empty() { Ok(None) } else { Grammar::alt(nodes).map(Some) };
        }
        let chosen: Vec<String> = texts
            .iter()
            .zip(0..)
            .filter(|&(_, value)| is_wanted(value))
            .map(|(text, _)| text.clone())
            .collect();
        match &chosen[..] {
            [only] => Grammar::literal(only.as_str()).map(Some),
            _ => Grammar::read(Syntax::Choice(chosen)).map(Some),
        }
    }

    fn no_leaf(&self, span: u32) -> Error {
        let info = self.info(span);
        let message =
            format!("the token tree has no leaf at {:?} that spells a value of the enum", info.path);
        Error::new(ErrorKind::Constraint, message)
            .at(info.place.as_str())
            .help("make the payload with this model's tokenizer, from the enum's values")
    }
}

/// The last part that depends on the enum at `at`, or on an enum between the two; `at` if none does.
fn last_dependent(parts: &[Part], at: usize) -> usize {
    let mut last = at;
    let mut next = at;
    while next <= last {
        if let Part::Value { span, of: ValueOf::Enum(_) } = &parts[next] {
            let depends = |part: &Part| matches!(part, Part::Switch { on, .. } if on == span);
            last = last.max(parts.iter().rposition(depends).unwrap_or(0));
        }
        next += 1;
    }
    last
}

/// Whether a schema says that a number is an integer and nothing else.
fn is_plain_integer(schema: &Map<String, Value>) -> bool {
    schema.len() == 1 && schema.get("type").and_then(Value::as_str) == Some("integer")
}

fn whole_tokens(tokens: &[TokenId]) -> Result<Grammar> {
    let token = |&id: &TokenId| Grammar::read(Syntax::Token(TokenName::Id(id)));
    Grammar::seq(tokens.iter().map(token).collect::<Result<Vec<_>>>()?)
}

/// JSON that is valid under a schema, written without white space.
fn json(schema: &Value) -> Result<Grammar> {
    let options = SchemaOptions {
        whitespace: Whitespace::Compact,
        separators: Some((",".into(), ":".into())),
        ..SchemaOptions::default()
    };
    Grammar::read(Syntax::JsonSchema { text: schema.to_string(), options, documents: Vec::new() })
}

/// The length limits of a string inside of a string; a schema there has no other keywords.
pub(super) fn lengths(schema: Option<&Map<String, Value>>, place: &str) -> Result<(u32, Option<u32>)> {
    let (mut min, mut max) = (0, None);
    for (keyword, value) in schema.into_iter().flatten() {
        let count = || {
            let count = value.as_u64().and_then(|n| u32::try_from(n).ok());
            count.ok_or_else(|| {
                let message = format!("{keyword} is {value}");
                Error::new(ErrorKind::Payload, message).at(format!("{place}.schema.{keyword}"))
            })
        };
        match keyword.as_str() {
            "type" => {}
            "minLength" => min = count()?,
            "maxLength" => max = Some(count()?),
            _ => {
                let message = format!("{keyword} of a string inside of a JSON string");
                let error = Error::new(ErrorKind::Payload, message).at(format!("{place}.schema.{keyword}"));
                return Err(
                    error.help("only minLength and maxLength are possible there; close the string before it")
                );
            }
        }
    }
    if let Some(max) = max.filter(|&max| max < min) {
        let message = format!("at least {min} characters and at most {max}");
        return Err(Error::new(ErrorKind::Payload, message).at(format!("{place}.schema.maxLength")));
    }
    Ok((min, max))
}
