//! Reads XGrammar's structural tags (its `docs/structural_tag`) from JSON.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::gbnf;
use super::super::json_schema::{
    strict, without_texts, JsonLayout, KeyOrder, PairForm, Schema, SchemaOptions, PAIR_FORMS,
};
use super::super::pattern;
use super::super::problems::Problems;
use super::super::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use super::compile::{mistake, MAX_NESTED};
use super::{Content, Mark, Separated, Tag, Tags};
use crate::Result;

/// Reads a schema from JSON text.
pub type SchemaReader<'s> = dyn Fn(&str, &SchemaOptions) -> Result<Arc<Schema>> + 's;

/// The structure that `value` describes: `{"type": "structural_tag", "format": ...}`, a format by itself, or the older
/// `{"type": "structural_tag", "structures": [...], "triggers": [...]}`.
///
/// # Errors
/// [`crate::ErrorKind::Constraint`] with every problem, each with its JSON pointer.
pub fn from_json(value: &Value, schema: &SchemaReader) -> Result<Content> {
    let mut reader = Reader { schema, problems: Problems::default(), nested: 0 };
    let content = reader.top(value);
    reader.problems.finish_pointers("the structural tag")?;
    Ok(content.unwrap_or(Content::Text(String::new())))
}

struct Reader<'s> {
    schema: &'s SchemaReader<'s>,
    problems: Problems,
    nested: usize,
}

/// An object and its JSON pointer.
#[derive(Clone, Copy)]
struct Place<'v> {
    object: &'v Map<String, Value>,
    at: &'v str,
}

/// A value, or `None` if the problem is reported.
type Read<T> = Option<T>;

impl Reader<'_> {
    fn problem<T>(&mut self, at: &str, message: impl Into<String>, help: impl Into<String>) -> Read<T> {
        self.problems.add_at(at, message, help);
        None
    }

    fn top(&mut self, value: &Value) -> Read<Content> {
        let place = self.object(value, "")?;
        let given = |key: &str| place.object.get(key).filter(|value| !value.is_null());
        let is_tag = match given("type") {
            Some(kind) => kind.as_str() == Some("structural_tag"),
            None => given("format").is_some(),
        };
        if !is_tag {
            return self.format(value, "");
        }
        if let Some(format) = given("format") {
            self.only(place, &["format"]);
            return self.format(format, "/format");
        }
        if given("structures").is_none() {
            return self.problem("", "no \"format\"", "add it, or \"structures\" in the older form");
        }
        self.only(place, &["structures", "triggers"]);
        let structures = self.some(place, "structures")?;
        let triggers = self.triggers(place, "triggers", false)?;
        let mut tags = Vec::new();
        for (number, structure) in structures.iter().enumerate() {
            let at = format!("/structures/{number}");
            tags.extend(self.structure(structure, &at));
        }
        let whole = tags.len() == structures.len();
        let tags = Tags { triggers, ..Tags::new(tags) };
        if whole {
            self.checked(tags, "")
        } else {
            None
        }
    }

    /// `{"begin": .., "schema": .., "end": ..}`.
    fn structure(&mut self, value: &Value, at: &str) -> Read<Tag> {
        let place = self.object(value, at)?;
        self.only(place, &["begin", "schema", "end"]);
        let begin = self.text(place, "begin");
        let end = self.text(place, "end");
        let content = match place.object.get("schema") {
            Some(schema) => self.schema(schema, &format!("{at}/schema"), &SchemaOptions::default()),
            None => self.problem(at, "no \"schema\"", "add it"),
        };
        Some(Tag { begin: Mark::Text(begin?), content: content?, end: vec![Mark::Text(end?)] })
    }

    fn object<'v>(&mut self, value: &'v Value, at: &'v str) -> Read<Place<'v>> {
        match value.as_object() {
            Some(object) => Some(Place { object, at }),
            None => self.problem(at, "no object", "a format is an object with a \"type\""),
        }
    }

    /// Reports unknown keys; null values are ignored.
    fn only(&mut self, place: Place, known: &[&str]) {
        for (key, value) in place.object {
            if key != "type" && !value.is_null() && !known.contains(&key.as_str()) {
                let help = format!("known here are {}", known.join(", "));
                self.problems.add_at(place.at, format!("unknown key {key:?}"), help);
            }
        }
    }

    fn text(&mut self, place: Place, key: &str) -> Read<String> {
        match place.object.get(key).and_then(Value::as_str) {
            Some(text) => Some(text.to_string()),
            None => self.problem(place.at, format!("no text {key:?}"), "add it"),
        }
    }

    fn flag(&mut self, place: Place, key: &str, default: bool) -> bool {
        match place.object.get(key) {
            None | Some(Value::Null) => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.problems.add_at(place.at, format!("{key:?} is neither true nor false"), "");
                default
            }
        }
    }

    /// A non-negative number; `None` if it is null or missing.
    fn count(&mut self, place: Place, key: &str) -> Option<u32> {
        match place.object.get(key) {
            None | Some(Value::Null) => None,
            Some(value) => {
                let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
                if count.is_none() {
                    let help = format!("it is a number from 0 to {}", u32::MAX);
                    self.problems.add_at(place.at, format!("{key:?} is no count"), help);
                }
                count
            }
        }
    }

    fn list<'v>(&mut self, place: Place<'v>, key: &str) -> Read<Option<&'v [Value]>> {
        match place.object.get(key) {
            None | Some(Value::Null) => Some(None),
            Some(Value::Array(items)) => Some(Some(items)),
            Some(_) => self.problem(place.at, format!("{key:?} is no list"), "write [...]"),
        }
    }

    /// A list with something in it: without, a format would allow nothing, or no more than without the list.
    fn some<'v>(&mut self, place: Place<'v>, key: &str) -> Read<&'v [Value]> {
        match self.list(place, key)? {
            Some([]) => self.problem(place.at, format!("{key:?} is empty"), "name one at least"),
            Some(items) => Some(items),
            None => self.problem(place.at, format!("no list {key:?}"), "add it"),
        }
    }

    fn texts(&mut self, place: Place, key: &str) -> Read<Vec<String>> {
        let mut texts = Vec::new();
        for item in self.list(place, key)?.unwrap_or_default() {
            match item.as_str() {
                Some(text) => texts.push(text.to_string()),
                None => {
                    return self.problem(place.at, format!("{key:?} has what is no text"), "write \"...\"")
                }
            }
        }
        Some(texts)
    }

    fn tokens(&mut self, place: Place, key: &str) -> Read<Vec<TokenName>> {
        let items = self.list(place, key)?.unwrap_or_default();
        let names: Vec<Option<TokenName>> = items.iter().map(token_name).collect();
        match names.into_iter().collect() {
            Some(names) => Some(names),
            None => {
                self.problem(place.at, format!("{key:?} has what is no token"), "write a number or a text")
            }
        }
    }

    fn formats(&mut self, place: Place, key: &str) -> Read<Vec<Content>> {
        let read: Vec<Read<Content>> = self
            .some(place, key)?
            .iter()
            .enumerate()
            .map(|(number, item)| self.format(item, &format!("{}/{key}/{number}", place.at)))
            .collect();
        read.into_iter().collect()
    }

    fn inner(&mut self, place: Place, key: &str) -> Read<Content> {
        match place.object.get(key) {
            Some(value) => self.format(value, &format!("{}/{key}", place.at)),
            None => self.problem(place.at, format!("no {key:?}"), "add it"),
        }
    }

    fn format(&mut self, value: &Value, at: &str) -> Read<Content> {
        if self.nested == MAX_NESTED {
            let message = format!("formats nest more than {MAX_NESTED} deep");
            return self.problem(at, message, "give inner parts as a grammar");
        }
        self.nested += 1;
        let read = self.object(value, at).and_then(|place| self.typed(place));
        self.nested -= 1;
        read
    }

    fn typed(&mut self, place: Place) -> Read<Content> {
        let kind = self.text(place, "type")?;
        match kind.as_str() {
            "const_string" => {
                self.only(place, &["value"]);
                self.text(place, "value").map(Content::Text)
            }
            "json_schema" => self.json_schema(place),
            "qwen_xml_parameter" => {
                self.only(place, &["json_schema"]);
                self.styled(place, SchemaOptions::default(), "qwen_xml")
            }
            "grammar" | "regex" => self.grammar(place, &kind),
            "any_text" => {
                self.only(place, &["excludes", "max_chars", "max_tokens"]);
                let (most, max_tokens) = (self.count(place, "max_chars"), self.count(place, "max_tokens"));
                Some(Content::AnyText { excludes: self.excluded(place)?, most, max_tokens })
            }
            "sequence" => {
                self.only(place, &["elements"]);
                self.formats(place, "elements").map(Content::Sequence)
            }
            "or" => {
                self.only(place, &["elements"]);
                self.formats(place, "elements").map(Content::Any)
            }
            "optional" => self.repeat(place, 0, Some(1)),
            "plus" => self.repeat(place, 1, None),
            "star" => self.repeat(place, 0, None),
            "repeat" => self.repeat_between(place),
            "tag" => self.tag(place).map(|tag| Content::Tag(Box::new(tag))),
            "triggered_tags" | "token_triggered_tags" => self.triggered(place, &kind),
            "dispatch" | "token_dispatch" => self.dispatch(place, &kind),
            "tags_with_separator" => self.separated(place),
            "token" => {
                self.only(place, &["token"]);
                let name = self.token(place)?;
                Some(Content::Tokens(TokenNames { tokens: vec![name], negated: false }))
            }
            "exclude_token" => {
                self.only(place, &["exclude_tokens"]);
                let tokens = self.tokens(place, "exclude_tokens")?;
                Some(Content::Tokens(TokenNames { tokens, negated: true }))
            }
            "any_tokens" => {
                self.only(place, &["exclude_tokens", "max_tokens"]);
                let most = self.count(place, "max_tokens");
                Some(Content::AnyTokens { excludes: self.tokens(place, "exclude_tokens")?, most })
            }
            _ => {
                let help = "known are const_string, json_schema, grammar, regex, any_text, sequence, or, optional, plus, \
                    star, repeat, tag, triggered_tags, tags_with_separator, dispatch, token, exclude_token, any_tokens, \
                    token_triggered_tags, token_dispatch";
                self.problem(place.at, format!("the format {kind:?} is not known"), help)
            }
        }
    }

    fn token(&mut self, place: Place) -> Read<TokenName> {
        match place.object.get("token").and_then(token_name) {
            Some(name) => Some(name),
            None => self.problem(place.at, "no \"token\"", "name it by its number or its text"),
        }
    }

    fn json_schema(&mut self, place: Place) -> Read<Content> {
        self.only(place, &["json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"]);
        let mut options = SchemaOptions::default();
        if self.flag(place, "any_order", false) {
            options.order = KeyOrder::Any;
        }
        let most = self.count(place, "max_whitespace_cnt");
        if most == Some(0) {
            self.problems.add_at(place.at, "\"max_whitespace_cnt\" is 0", "the least is 1");
        }
        options.layout = most.map(|most| Arc::new(JsonLayout::with_blanks(most)));
        options.excludes = self.excluded(place)?;
        let style = match place.object.get("style") {
            None | Some(Value::Null) => "json",
            Some(style) => style.as_str().unwrap_or_default(),
        };
        if style == "cohere_xml" && !options.excludes.is_empty() {
            let help = "leave them out: keys and texts have entities there";
            self.problems.add_at(place.at, "\"excludes\" of the style cohere_xml", help);
        }
        if style != "json" && options.excludes.iter().any(|text| text.trim() != text) {
            let help = "leave it out: white space may be around a value";
            self.problems.add_at(place.at, "white space at an end of what is excluded", help);
        }
        self.styled(place, options, style)
    }

    /// A schema whose values are written in a style.
    fn styled(&mut self, place: Place, mut options: SchemaOptions, style: &str) -> Read<Content> {
        if style != "json" {
            options.pairs = PairForm::named(style).map(Arc::new);
            if options.pairs.is_none() {
                let help = format!("known are json, {PAIR_FORMS}");
                self.problems.add_at(place.at, format!("the style {style:?} is not known"), help);
            }
        }
        match place.object.get("json_schema") {
            Some(schema) => self.schema(schema, &format!("{}/json_schema", place.at), &options),
            None => self.problem(place.at, "no \"json_schema\"", "add it"),
        }
    }

    /// A schema, or its text.
    fn schema(&mut self, schema: &Value, at: &str, options: &SchemaOptions) -> Read<Content> {
        let written = |schema: &Value| without_texts(&strict(schema), &options.excludes).to_string();
        let text = match schema {
            Value::String(text) => {
                serde_json::from_str(text).map_or_else(|_| text.clone(), |read| written(&read))
            }
            schema => written(schema),
        };
        match (self.schema)(&text, options) {
            Ok(schema) => Some(one(RuleBody::Json(schema))),
            Err(error) => {
                self.problems.take_at(at, &error);
                None
            }
        }
    }

    fn grammar(&mut self, place: Place, kind: &str) -> Read<Content> {
        let key = if kind == "regex" { "pattern" } else { "grammar" };
        self.only(place, &[key]);
        let text = self.text(place, key)?;
        let read = match kind {
            "regex" => {
                // XGrammar's dot is any character.
                let mut options = pattern::PatternOptions::WHOLE;
                options.flags.dot_all = true;
                pattern::parse(&text, &options).map(|regex| one(RuleBody::Lexeme(regex)))
            }
            _ => gbnf::parse_ebnf(&text, "root").map(Content::Rules),
        };
        match read {
            Ok(content) => Some(content),
            Err(error) => {
                self.problems.take_at(&format!("{}/{key}", place.at), &error);
                None
            }
        }
    }

    fn repeat(&mut self, place: Place, min: u32, max: Option<u32>) -> Read<Content> {
        self.only(place, &["content"]);
        let of = Box::new(self.inner(place, "content")?);
        Some(Content::Repeat { of, min, max })
    }

    fn repeat_between(&mut self, place: Place) -> Read<Content> {
        self.only(place, &["content", "min", "max"]);
        let min = self.count(place, "min").unwrap_or(0);
        let max = match place.object.get("max").and_then(Value::as_i64) {
            Some(-1) => None,
            _ => Some(self.count(place, "max")?),
        };
        if max.is_some_and(|max| max < min) {
            self.problems.add_at(place.at, "\"max\" is less than \"min\"", "turn them round");
        }
        let of = Box::new(self.inner(place, "content")?);
        Some(Content::Repeat { of, min, max })
    }

    fn tag(&mut self, place: Place) -> Read<Tag> {
        self.only(place, &["begin", "content", "end"]);
        let begin = self.marks(place, "begin", false);
        let end = self.marks(place, "end", true);
        let content = self.inner(place, "content");
        Some(Tag { begin: begin?.pop()?, content: content?, end: end? })
    }

    /// A text, a token, or with `several` a list of texts.
    fn marks(&mut self, place: Place, key: &str, several: bool) -> Read<Vec<Mark>> {
        match place.object.get(key) {
            Some(Value::String(text)) => Some(vec![Mark::Text(text.clone())]),
            Some(Value::Array(_)) if several => {
                self.some(place, key)?;
                Some(self.texts(place, key)?.into_iter().map(Mark::Text).collect())
            }
            Some(Value::Object(object)) if object.get("type").and_then(Value::as_str) == Some("token") => {
                let at = format!("{}/{key}", place.at);
                let inner = Place { object, at: &at };
                self.only(inner, &["token"]);
                Some(vec![Mark::Token(self.token(inner)?)])
            }
            _ => self.problem(
                place.at,
                format!("{key:?} is no mark"),
                "it is a text or {\"type\": \"token\", \"token\": ..}",
            ),
        }
    }

    fn tag_list(&mut self, place: Place) -> Read<Vec<Tag>> {
        let items = self.some(place, "tags")?;
        let mut tags = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let at = format!("{}/tags/{number}", place.at);
            tags.extend(self.object(item, &at).and_then(|place| self.tag(place)));
        }
        (tags.len() == items.len()).then_some(tags)
    }

    fn triggered(&mut self, place: Place, kind: &str) -> Read<Content> {
        let whole_tokens = kind == "token_triggered_tags";
        let (triggers, excludes) = match whole_tokens {
            true => ("trigger_tokens", "exclude_tokens"),
            false => ("triggers", "excludes"),
        };
        self.only(place, &[triggers, "tags", "at_least_one", "stop_after_first", excludes]);
        let triggers = self.triggers(place, triggers, whole_tokens);
        let excludes = self.excludes(place, excludes, whole_tokens);
        let at_least_one = self.flag(place, "at_least_one", false);
        let stop_after_first = self.flag(place, "stop_after_first", false);
        let tags = self.tag_list(place);
        let tags = Tags {
            tags: tags?,
            triggers: triggers?,
            free_before: !at_least_one,
            whole_tokens,
            at_least_one,
            stop_after_first,
            excludes: excludes?,
        };
        self.checked(tags, place.at)
    }

    /// What triggers tags; without the list, the begin marks of the tags do.
    fn triggers(&mut self, place: Place, key: &str, whole_tokens: bool) -> Read<Vec<Mark>> {
        if matches!(self.list(place, key)?, Some([])) {
            let help =
                "name one at least, or leave the list out: then the beginnings of the tags are the triggers";
            return self.problem(place.at, format!("{key:?} is empty"), help);
        }
        Some(match whole_tokens {
            true => self.tokens(place, key)?.into_iter().map(Mark::Token).collect(),
            false => self.texts(place, key)?.into_iter().map(Mark::Text).collect(),
        })
    }

    fn excludes(&mut self, place: Place, key: &str, whole_tokens: bool) -> Read<Vec<Mark>> {
        Some(match whole_tokens {
            true => self.tokens(place, key)?.into_iter().map(Mark::Token).collect(),
            false => self.excluded(place)?.into_iter().map(Mark::Text).collect(),
        })
    }

    /// Texts that free text must not contain.
    fn excluded(&mut self, place: Place) -> Read<Vec<String>> {
        let texts = self.texts(place, "excludes")?;
        match texts.iter().any(String::is_empty) {
            true => self.problem(
                place.at,
                "an empty text in \"excludes\"",
                "every text contains it: leave it out",
            ),
            false => Some(texts),
        }
    }

    /// Patterns and what follows each of them.
    fn dispatch(&mut self, place: Place, kind: &str) -> Read<Content> {
        let whole_tokens = kind == "token_dispatch";
        let excludes = if whole_tokens { "exclude_tokens" } else { "excludes" };
        self.only(place, &["rules", "loop", excludes]);
        let goes_on = self.flag(place, "loop", true);
        let excludes = self.excludes(place, excludes, whole_tokens);
        let rules = self.some(place, "rules")?;
        let mut tags = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let at = format!("{}/rules/{number}", place.at);
            let Some([trigger, format]) = rule.as_array().map(Vec::as_slice) else {
                self.problems.add_at(&at, "no rule", "a rule is [what triggers, format]");
                continue;
            };
            let begin = match (trigger, whole_tokens) {
                (Value::String(text), false) => Some(Mark::Text(text.clone())),
                (_, true) => token_name(trigger).map(Mark::Token),
                _ => None,
            };
            if begin.is_none() {
                self.problems.add_at(&at, "what triggers is missing", "a rule is [what triggers, format]");
            }
            let content = self.format(format, &format!("{at}/1"));
            tags.extend(begin.zip(content).map(|(begin, content)| Tag { begin, content, end: Vec::new() }));
        }
        if tags.len() < rules.len() {
            return None;
        }
        let tags = Tags { whole_tokens, stop_after_first: !goes_on, excludes: excludes?, ..Tags::new(tags) };
        self.checked(tags, place.at)
    }

    fn separated(&mut self, place: Place) -> Read<Content> {
        self.only(place, &["tags", "separator", "at_least_one", "stop_after_first"]);
        let separator = self.text(place, "separator");
        let at_least_one = self.flag(place, "at_least_one", false);
        let stop_after_first = self.flag(place, "stop_after_first", false);
        let tags = self.tag_list(place)?;
        let separated = Separated { tags, separator: separator?, at_least_one, stop_after_first };
        Some(Content::Separated(Box::new(separated)))
    }

    fn checked(&mut self, tags: Tags, at: &str) -> Read<Content> {
        if let Some(error) = mistake(&tags) {
            self.problems.take_at(at, &error);
            return None;
        }
        Some(Content::Tags(Box::new(tags)))
    }
}

/// A grammar of one node.
fn one(body: RuleBody) -> Content {
    Content::Rules(Rules { rules: vec![Rule::new("~content", body)], start: RuleId(0) })
}

fn token_name(value: &Value) -> Option<TokenName> {
    match value {
        Value::String(text) => Some(TokenName::Text(text.clone())),
        number => number.as_u64().and_then(|id| u32::try_from(id).ok()).map(TokenName::Id),
    }
}
