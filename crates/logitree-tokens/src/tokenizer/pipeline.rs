//! The normaliser and the pre-tokenizer of a tokenizer.json, compiled from their own patterns.
//!
//! After a step that writes spaces as U+2581 the patterns see no space. Ours see both, as one character: the sets of the patterns
//! are changed instead of the text.

use serde_json::Value;

use super::normalizer::{Change, Form, Lead, Normalizer, MARK};
use super::ordered_nfa::Behaviour;
use super::pattern::{self, Pattern};
use super::patterns::GPT2;
use super::splitter::Splitter;
use crate::{Error, ErrorKind, Result};
use logitree_automata::CharSet;

/// The deepest Sequence in a Sequence, and the most steps.
const MAX_DEPTH: usize = 8;
const MAX_STEPS: usize = 64;

/// Signs as the pre-tokenizer Punctuation has them.
const SIGNS: &str = r"[\p{P}!-/:-@\[-`{-~]";

pub(super) fn not_read<T>(what: impl std::fmt::Display, field: &str) -> Result<T> {
    Err(Error::new(
        ErrorKind::Vocabulary,
        format!("a tokenizer with {what} is not read, only its vocabulary"),
    )
    .at(format!("field {field}")))
}

/// How a text is cut and spelled.
#[derive(Default)]
pub(super) struct Pipeline {
    pub normalizer: Normalizer,
    pub patterns: Vec<(Pattern, Behaviour)>,
    pub lead: Option<Lead>,
    /// Whether pieces are spelled in characters for bytes.
    pub is_bytes: bool,
    /// Whether spaces are U+2581.
    pub marks: bool,
}

impl Pipeline {
    /// # Errors
    /// [`ErrorKind::Vocabulary`] with the field of a step that is not read.
    pub fn new(normalizer: Option<&Value>, pre_tokenizer: Option<&Value>) -> Result<Pipeline> {
        let mut made = Pipeline::default();
        let steps = steps(normalizer, "normalizer", "normalizers")?;
        for (field, step) in &steps {
            made.normalize(step, field)?;
        }
        for (field, step) in &steps_of_pre_tokenizer(pre_tokenizer)? {
            made.cut(step, field)?;
        }
        Ok(made)
    }

    fn normalize(&mut self, step: &Value, field: &str) -> Result<()> {
        let text = |name: &str| step.get(name).and_then(Value::as_str);
        let flag = |name: &str| step.get(name).and_then(Value::as_bool);
        let change = match kind_of(step) {
            "NFC" => Change::Form(Form::Nfc),
            "NFD" => Change::Form(Form::Nfd),
            "NFKC" => Change::Form(Form::Nfkc),
            "NFKD" => Change::Form(Form::Nfkd),
            "Lowercase" => Change::Lowercase,
            "StripAccents" => Normalizer::strip_accents(),
            "Strip" => Change::Strip(flag("strip_left") != Some(false), flag("strip_right") != Some(false)),
            "Prepend" => match text("prepend") {
                Some(front) => Change::Prepend(front.into()),
                None => return not_read("a Prepend of nothing", field),
            },
            "Replace" => match (string_of(step), regex_of(step), text("content")) {
                (Some(""), ..) => return not_read("a Replace of nothing", field),
                (Some(from), _, Some(to)) => {
                    self.marks |= from == " " && to == "\u{2581}";
                    Change::Replace(from.into(), to.into())
                }
                (None, Some(regex), Some(to)) => {
                    let pattern =
                        pattern::parse(regex).map_err(|error| error.at(format!("field {field}")))?;
                    let splitter = Splitter::of(&[(pattern, Behaviour::Isolated)])?;
                    Change::ReplaceMatches(Box::new(splitter), to.into())
                }
                _ => return not_read("this Replace", field),
            },
            other => return not_read(format_args!("the normalizer {other:?}"), field),
        };
        self.normalizer.0.push(change);
        Ok(())
    }

    fn cut(&mut self, step: &Value, field: &str) -> Result<()> {
        let flag = |name: &str, default: bool| step.get(name).and_then(Value::as_bool).unwrap_or(default);
        match kind_of(step) {
            _ if self.is_bytes => return not_read("a step after ByteLevel", field),
            "ByteLevel" => {
                if flag("add_prefix_space", true) {
                    self.lead(Lead { first_only: false, marks: false }, field)?;
                }
                self.is_bytes = true;
                if flag("use_regex", true) {
                    self.push(GPT2, Behaviour::Isolated, field)?;
                }
            }
            "Digits" if flag("individual_digits", false) => {
                self.push(r"\p{N}", Behaviour::Isolated, field)?
            }
            "Digits" => self.push(r"\p{N}+", Behaviour::Isolated, field)?,
            "Punctuation" => self.push(SIGNS, behaviour_of(step, field)?, field)?,
            "Metaspace" => {
                if step.get("replacement").and_then(Value::as_str).is_some_and(|text| text != "\u{2581}") {
                    return not_read("this replacement", field);
                }
                let scheme = step.get("prepend_scheme").and_then(Value::as_str);
                let old = if flag("add_prefix_space", true) { "always" } else { "never" };
                match scheme.unwrap_or(old) {
                    "never" => {}
                    scheme => self.lead(Lead { first_only: scheme == "first", marks: true }, field)?,
                }
                self.marks = true;
                if flag("split", true) {
                    self.push("\u{2581}", Behaviour::MergedWithNext, field)?;
                }
            }
            "Split" => {
                let behaviour = behaviour_of(step, field)?;
                let behaviour = if flag("invert", false) { behaviour.inverted() } else { behaviour };
                match (regex_of(step), string_of(step)) {
                    (Some(regex), _) => self.push(regex, behaviour, field)?,
                    (None, Some(text)) if !text.is_empty() => {
                        let one = |c: char| Pattern::Set(CharSet::one(c));
                        self.add(Pattern::All(text.chars().map(one).collect()), behaviour);
                    }
                    _ => return not_read("this Split", field),
                }
            }
            other => return not_read(format_args!("the pre-tokenizer {other:?}"), field),
        }
        Ok(())
    }

    fn lead(&mut self, lead: Lead, field: &str) -> Result<()> {
        if !self.patterns.is_empty() || self.lead.is_some() {
            return not_read("a space in front of each piece", field);
        }
        self.lead = Some(lead);
        Ok(())
    }

    fn push(&mut self, regex: &str, behaviour: Behaviour, field: &str) -> Result<()> {
        let at = |error: Error| {
            let place = format!("field {field}, {}", error.place);
            error.at(place)
        };
        self.add(pattern::parse(regex).map_err(at)?, behaviour);
        Ok(())
    }

    fn add(&mut self, mut pattern: Pattern, behaviour: Behaviour) {
        if self.marks {
            mark(&mut pattern);
        }
        self.patterns.push((pattern, behaviour));
    }
}

/// Makes a space what U+2581 is.
fn mark(pattern: &mut Pattern) {
    match pattern {
        Pattern::Set(set) | Pattern::Next { set, .. } => {
            let spaces = CharSet::one(' ').or(&CharSet::one(MARK));
            *set = if set.contains(MARK) { set.or(&spaces) } else { set.and(&spaces.not()) };
        }
        Pattern::All(all) | Pattern::First(all) => all.iter_mut().for_each(mark),
        Pattern::Repeat { one, .. } => mark(one),
        Pattern::Ahead { inner, .. } => mark(inner),
        Pattern::Border { .. } => {}
    }
}

pub(super) fn kind_of(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or("?")
}

fn string_of(step: &Value) -> Option<&str> {
    step.get("pattern")?.get("String")?.as_str()
}

fn regex_of(step: &Value) -> Option<&str> {
    step.get("pattern")?.get("Regex")?.as_str()
}

fn behaviour_of(step: &Value, field: &str) -> Result<Behaviour> {
    Ok(match step.get("behavior").and_then(Value::as_str).unwrap_or("Isolated") {
        "Isolated" => Behaviour::Isolated,
        "MergedWithPrevious" => Behaviour::MergedWithPrevious,
        "MergedWithNext" => Behaviour::MergedWithNext,
        "Contiguous" => Behaviour::Contiguous,
        other => return not_read(format_args!("the behavior {other:?}"), field),
    })
}

fn steps_of_pre_tokenizer(value: Option<&Value>) -> Result<Vec<(String, &Value)>> {
    steps(value, "pre_tokenizer", "pretokenizers")
}

/// The steps of a value that may be a Sequence, each with its field.
fn steps<'a>(value: Option<&'a Value>, field: &str, list: &str) -> Result<Vec<(String, &'a Value)>> {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    left.extend(value.filter(|value| !value.is_null()).map(|value| (field.to_string(), value, 0)));
    while let Some((at, value, depth)) = left.pop() {
        if kind_of(value) != "Sequence" {
            found.push((at, value));
            continue;
        }
        let inner = value.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if depth == MAX_DEPTH || found.len() + left.len() + inner.len() > MAX_STEPS {
            return not_read(
                format_args!("more than {MAX_STEPS} steps, or more than {MAX_DEPTH} deep"),
                field,
            );
        }
        left.extend(
            inner.iter().enumerate().rev().map(|(n, step)| (format!("{at}.{list}[{n}]"), step, depth + 1)),
        );
    }
    Ok(found)
}
