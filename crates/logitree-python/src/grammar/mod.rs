//! Grammars in Python: texts of every syntax, what joins them, and their matchers. Conversions only; what grammars of
//! Python's types are is in `python/logitree/_schemas.py`.

mod batch;
mod explanation;
pub mod json_text;
mod show;
mod sources;
mod tags;

use std::sync::Arc;

use logitree::constraint::{captures, query::bytewise, BoundGrammar, Constraint as _, GrammarLimits};
use logitree::grammar::ast::{Grammar, Syntax};
use logitree::grammar::json_schema::SchemaOptions;
use logitree::{Error, TokenId};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::base::{operator, PyConstraint};
use crate::constraint::text_bytes;
use crate::errors::to_py;
use crate::matcher::PyMatcher;
use crate::vocabulary::PyVocabulary;

pub use batch::{drafts, tokens_of};
pub use explanation::PyExplanation;

/// A formal language as a constraint: the text of one syntax, or several grammars combined.
///
/// `a + b` is one after the other, `a | b` either; a `str` next to a grammar is a literal. Immutable; shared between
/// threads. Compared, hashed and pickled by its source.
///
/// Every constructor reports all problems at once as a ConstraintError, with line and column or JSON pointers, and
/// raises LimitError for too large a source. docs/grammars.md describes the syntaxes.
#[pyclass(frozen, extends = PyConstraint, name = "Grammar", module = "logitree")]
pub struct PyGrammar {
    part: Grammar,
    /// What reads a value in a text of it, in Python.
    value: Option<Py<PyAny>>,
}

impl PyGrammar {
    /// The grammar of a node.
    pub fn new(part: Grammar) -> PyGrammar {
        PyGrammar { part, value: None }
    }

    /// Reads a source, without the interpreter.
    fn read(py: Python<'_>, source: Syntax) -> PyResult<PyGrammar> {
        py.detach(|| Grammar::read(source)).map(PyGrammar::new).map_err(to_py)
    }

    fn made(part: logitree::Result<Grammar>) -> PyResult<PyGrammar> {
        part.map(PyGrammar::new).map_err(to_py)
    }

    /// The core's grammar.
    pub fn node(&self) -> &Grammar {
        &self.part
    }
}

/// An exception on its way through the core, which knows none.
struct Raised(PyErr);

impl From<Error> for Raised {
    fn from(error: Error) -> Raised {
        Raised(to_py(error))
    }
}

/// A grammar, or a text that stands for itself; `None` for anything else.
fn operand(object: &Bound<'_, PyAny>) -> PyResult<Option<Grammar>> {
    if let Ok(grammar) = object.cast::<PyGrammar>() {
        return Ok(Some(grammar.get().part.clone()));
    }
    match sources::text(object, "a grammar's text")? {
        Some(text) => Grammar::literal(text).map(Some).map_err(to_py),
        None => Ok(None),
    }
}

/// Grammars and texts, and nothing else.
fn operands(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<Grammar>> {
    let one = |object| match operand(object)? {
        Some(part) => Ok(part),
        None => {
            let name = object.get_type().name()?;
            Err(PyTypeError::new_err(format!("a part must be a Grammar or str, not {name}")))
        }
    };
    objects.iter().map(one).collect()
}

/// Grammars by name.
fn named(grammars: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Grammar)>> {
    let mut named = Vec::new();
    for (name, grammar) in grammars.into_iter().flatten() {
        let Some(part) = operand(&grammar)? else {
            let name = grammar.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a grammar must be a Grammar or str, not {name}")));
        };
        named.push((sources::required(&name, "a grammar's name")?, part));
    }
    Ok(named)
}

/// The two, joined; what `kind` composes where one is no grammar.
fn join<'py>(
    py: Python<'py>,
    kind: &str,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    with: impl FnOnce([Grammar; 2]) -> logitree::Result<Grammar>,
) -> PyResult<Py<PyAny>> {
    match (operand(left)?, operand(right)?) {
        (Some(left), Some(right)) => {
            Ok(PyGrammar::made(with([left, right]))?.into_pyobject(py)?.into_any().unbind())
        }
        _ => operator(kind, left, right).map(Bound::unbind),
    }
}

#[pymethods]
impl PyGrammar {
    /// Texts that match `pattern` as a whole: ECMA-262's syntax, with the common additions of RE2, Python and PCRE.
    #[staticmethod]
    fn regex(py: Python<'_>, pattern: &Bound<'_, PyAny>) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Regex(sources::required(pattern, "pattern")?))
    }

    /// A grammar in llama.cpp's notation, from the rule `root`.
    #[staticmethod]
    #[pyo3(signature = (text, root="root"))]
    fn gbnf(py: Python<'_>, text: &Bound<'_, PyAny>, root: &str) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Gbnf { text: sources::required(text, "text")?, root: root.into() })
    }

    /// A grammar in XGrammar's EBNF, from the rule `root`: macros, rules with options, look-ahead.
    #[staticmethod]
    #[pyo3(signature = (text, root="root"))]
    fn ebnf(py: Python<'_>, text: &Bound<'_, PyAny>, root: &str) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Ebnf { text: sources::required(text, "text")?, root: root.into() })
    }

    /// A grammar in llguidance's Lark, from its rule `start`; `grammars` maps the names of its `@name` references.
    #[staticmethod]
    #[pyo3(signature = (text, *, grammars=None))]
    fn lark(
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        grammars: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyGrammar> {
        let text = sources::required(text, "text")?;
        let named = named(grammars)?;
        PyGrammar::read(py, Syntax::Lark { text, grammars: named })
    }

    /// JSON that is valid under `schema`: parsed, or JSON text.
    ///
    /// `order`: keys in the schema's order, then all others ("schema"), or in any order ("any"). `whitespace`: as
    /// `json.dumps` writes with and without indent ("bounded"), only that of the separators ("compact"), or any that JSON
    /// allows ("free"). `separators`: the text between items, and between key and value. `numbers`: as JSON allows
    /// ("any"), or as Python writes integers and floats ("plain"). `ascii`: strings of ASCII only. `lenient`: keywords that cannot be honoured are dropped with a SchemaWarning and listed by `warnings`.
    /// `draft`: the dialect of a schema without `$schema`. `documents`: documents that `$ref` may name, by URI; nothing
    /// is fetched.
    #[staticmethod]
    #[pyo3(signature = (schema, *, order="schema", whitespace="bounded", separators=None, numbers="any", ascii=false, lenient=false, draft=None, documents=None))]
    #[allow(clippy::too_many_arguments)] // one each of Python's keywords
    fn json_schema(
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        order: &str,
        whitespace: &str,
        separators: Option<(String, String)>,
        numbers: &str,
        ascii: bool,
        lenient: bool,
        draft: Option<&str>,
        documents: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGrammar> {
        let options = sources::options(order, whitespace, separators, numbers, ascii, lenient, draft)?;
        let text = sources::json(schema, "schema")?;
        let documents = documents.map_or(Ok(Vec::new()), sources::documents)?;
        let grammar = PyGrammar::read(py, Syntax::JsonSchema { text, options, documents })?;
        sources::warn(py, &grammar.part.warnings())?;
        Ok(grammar)
    }

    /// The arguments of tools, each a name and the text of a schema: as JSON, or in a form that is described in JSON (the
    /// core's `PairForm`). Objects of declared properties have no others, unless the schema speaks of others; options as of
    /// `json_schema`.
    #[staticmethod]
    #[pyo3(signature = (tools, form=None, *, order="schema", whitespace="bounded", separators=None, numbers="any", ascii=false, lenient=false, draft=None, documents=None))]
    #[allow(clippy::too_many_arguments)] // one each of Python's keywords
    fn _arguments(
        py: Python<'_>,
        tools: Vec<(String, String)>,
        form: Option<&str>,
        order: &str,
        whitespace: &str,
        separators: Option<(String, String)>,
        numbers: &str,
        ascii: bool,
        lenient: bool,
        draft: Option<&str>,
        documents: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyGrammar>> {
        let mut options = sources::options(order, whitespace, separators, numbers, ascii, lenient, draft)?;
        options.pairs = form.map(sources::pair_form).transpose()?;
        options.closed = true;
        let documents = documents.map_or(Ok(Vec::new()), sources::documents)?;
        let read = || {
            let one = |(name, text)| {
                let options = SchemaOptions { label: Some(format!("tool {name}")), ..options.clone() };
                Grammar::read(Syntax::JsonSchema { text, options, documents: documents.clone() })
            };
            tools.into_iter().map(one).collect::<logitree::Result<Vec<Grammar>>>()
        };
        let parts = py.detach(read).map_err(to_py)?;
        parts.iter().try_for_each(|part| sources::warn(py, &part.warnings()))?;
        Ok(parts.into_iter().map(PyGrammar::new).collect())
    }

    /// A parsed schema as JSON text; `None` if a value in it is not of one of JSON's own types, or nested too deep.
    #[staticmethod]
    fn _json_text(schema: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        json_text::write(schema)
    }

    /// Any JSON value.
    #[staticmethod]
    #[pyo3(signature = (*, whitespace="bounded", separators=None, numbers="any", ascii=false))]
    fn json(
        py: Python<'_>,
        whitespace: &str,
        separators: Option<(String, String)>,
        numbers: &str,
        ascii: bool,
    ) -> PyResult<PyGrammar> {
        let options = sources::options("any", whitespace, separators, numbers, ascii, false, None)?;
        PyGrammar::read(py, Syntax::JsonSchema { text: "true".into(), options, documents: Vec::new() })
    }

    /// This text.
    #[staticmethod]
    fn literal(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Literal(sources::required(text, "text")?))
    }

    /// One of these texts.
    #[staticmethod]
    fn choice(py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Choice(sources::texts(texts)?))
    }

    /// Any text.
    #[staticmethod]
    fn text(py: Python<'_>) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Anything)
    }

    /// One whole token: by its id, or the control token of a text, or else the one token that spells it.
    #[staticmethod]
    fn token(py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::Token(sources::token(token)?))
    }

    /// Free text that contains tags, each `(begin, content, end)`; `end` may be a list of alternatives.
    ///
    /// Marks are texts, spelled with any tokens, or tokens (`Grammar.token(...)`), or either
    /// (`Grammar.token(text) | text`). `triggers`: texts that begin a tag wherever they occur; by default the beginnings
    /// of all tags. `text`: whether text may come before the first tag. `excludes`: texts that free text must not
    /// contain.
    #[staticmethod]
    #[pyo3(signature = (tags, *, triggers=None, text=true, at_least_one=false, stop_after_first=false, excludes=None))]
    fn tags(
        py: Python<'_>,
        tags: &Bound<'_, PyAny>,
        triggers: Option<&Bound<'_, PyAny>>,
        text: bool,
        at_least_one: bool,
        stop_after_first: bool,
        excludes: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGrammar> {
        let marks = |given: Option<&Bound<'_, PyAny>>| given.map_or(Ok(Vec::new()), tags::marks);
        let (triggers, excludes) = (marks(triggers)?, marks(excludes)?);
        let (tags, free_before) = (tags::tags(tags)?, text);
        let source = Syntax::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes };
        PyGrammar::read(py, source)
    }

    /// XGrammar's structural tag: parsed, or JSON text.
    #[staticmethod]
    fn structural_tag(py: Python<'_>, tag: &Bound<'_, PyAny>) -> PyResult<PyGrammar> {
        PyGrammar::read(py, Syntax::StructuralTag(sources::json(tag, "tag")?))
    }

    /// Free text until a trigger, and from there on `grammar`, which starts with the trigger's own text.
    ///
    /// As llama.cpp's lazy grammars: `words` trigger wherever they occur, `tokens` by their text or id, `patterns`
    /// where they match (the grammar starts with the first group, or the match). Only the text decides, not the tokens
    /// that spell it. ConstraintError for a trigger that no text of the grammar starts with.
    #[staticmethod]
    #[pyo3(signature = (grammar, *, words=None, tokens=None, patterns=None))]
    fn lazy(
        py: Python<'_>,
        grammar: &Bound<'_, PyAny>,
        words: Option<&Bound<'_, PyAny>>,
        tokens: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGrammar> {
        let Some(grammar) = operand(grammar)? else {
            let name = grammar.get_type().name()?;
            return Err(PyTypeError::new_err(format!("grammar must be a Grammar or str, not {name}")));
        };
        let triggers = sources::triggers(words, tokens, patterns)?;
        PyGrammar::read(py, Syntax::Lazy { grammar, triggers })
    }

    /// Free text that contains calls of `tools`. Deprecated: `Protocol.constraint(tools=...)` of `logitree.protocols`.
    ///
    /// `style`: "hermes", "llama" (`<function=name>` around the arguments), or four texts: the beginning of a call, the text
    /// before and the text after the arguments, and the end; `{name}` is the tool's name. `tokens`: whether beginning and end
    /// are control tokens. Other options are those of `tags` and of `of`. `value` is the list of calls.
    #[staticmethod]
    #[pyo3(signature = (tools, **options))]
    fn tools<'py>(
        tools: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        tools.py().import("logitree.protocols._former")?.getattr("tools_grammar")?.call((tools,), options)
    }

    /// The grammar that `body` makes of its own name: `recursive(lambda me: "(" + me + ")" | digits)`.
    #[staticmethod]
    fn recursive(body: &Bound<'_, PyAny>) -> PyResult<PyGrammar> {
        let made = Grammar::recursive(|me| {
            let said = body.call1((PyGrammar::new(me),));
            let said = said.map_err(Raised)?;
            match operand(&said).map_err(Raised)? {
                Some(part) => Ok(part),
                None => {
                    let message = format!("the function gave a {}, not a grammar", said.get_type());
                    Err(Raised(PyTypeError::new_err(message)))
                }
            }
        });
        made.map(PyGrammar::new).map_err(|raised| raised.0)
    }

    /// JSON that a Python type describes, in the order of its fields.
    ///
    /// A pydantic model, dataclass or TypedDict; a function, whose parameters are an object; an Enum, a Literal, bool,
    /// int, float, str, None, Any, unions, lists and dicts of them. Models, dataclasses, TypedDicts and functions need
    /// pydantic (`pip install "logitree[schemas]"`). A mapping is a JSON Schema, a Grammar itself.
    ///
    /// `closed`: objects have the declared fields and no others, unless the type allows others. `options` are
    /// those of `json_schema`.
    #[staticmethod]
    #[pyo3(signature = (source, **options))]
    fn of<'py>(
        source: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        source.py().import("logitree._schemas")?.getattr("grammar_of")?.call((source,), options)
    }

    /// Reads what `__reduce__` wrote.
    #[staticmethod]
    #[pyo3(signature = (written, value=None))]
    fn _read(py: Python<'_>, written: &str, value: Option<Py<PyAny>>) -> PyResult<PyGrammar> {
        let part = py.detach(|| Grammar::from_written(written)).map_err(to_py)?;
        Ok(PyGrammar { value, ..PyGrammar::new(part) })
    }

    /// The same grammar, of whose texts `value` reads the value.
    fn _with_value(&self, value: Py<PyAny>) -> PyGrammar {
        PyGrammar { value: Some(value), ..PyGrammar::new(self.part.clone()) }
    }

    /// Whether it names a token that is text in this vocabulary, and so says how that text is spelled.
    fn _names_text(&self, py: Python<'_>, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<bool> {
        let known = &vocabulary.get().0;
        py.detach(|| BoundGrammar::names_text(&self.part, known)).map_err(to_py)
    }

    /// What a complete output means: the text itself, or what the grammar's maker reads in it.
    #[pyo3(signature = (text, tokens, /))]
    fn value<'py>(&self, text: Bound<'py, PyAny>, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let _ = tokens;
        match &self.value {
            Some(value) => value.bind(text.py()).call1((text,)),
            None => Ok(text),
        }
    }

    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        join(slf.py(), "then", slf.as_any(), other, Grammar::seq)
    }

    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        join(slf.py(), "then", other, slf.as_any(), Grammar::seq)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        join(slf.py(), "either", slf.as_any(), other, Grammar::alt)
    }

    fn __ror__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        join(slf.py(), "either", other, slf.as_any(), Grammar::alt)
    }

    /// All of some grammars and texts, one after the other.
    #[staticmethod]
    fn _all(parts: Vec<Bound<'_, PyAny>>) -> PyResult<PyGrammar> {
        PyGrammar::made(Grammar::seq(operands(&parts)?))
    }

    /// Any of some grammars and texts.
    #[staticmethod]
    fn _any(parts: Vec<Bound<'_, PyAny>>) -> PyResult<PyGrammar> {
        PyGrammar::made(Grammar::alt(operands(&parts)?))
    }

    /// At least `min` and, if given, at most `max` times. Counted, never unrolled.
    #[pyo3(signature = (min=0, max=None))]
    fn repeat(&self, min: u32, max: Option<u32>) -> PyResult<PyGrammar> {
        PyGrammar::made(self.part.repeat(min, max))
    }

    /// Once or not at all.
    fn optional(&self) -> PyResult<PyGrammar> {
        PyGrammar::made(self.part.repeat(0, Some(1)))
    }

    /// A matcher at the beginning of a text. Matchers of equal grammars share what they find out, which the vocabulary keeps.
    ///
    /// `end_tokens` end a complete text; the default is the vocabulary's end-of-generation ids. `fuel` limits the work
    /// of one call, in steps of at most about a tenth of a microsecond (2,500,000). `mask_bytes` limits the memory of cached
    /// masks (64 MiB), beyond which the cache is cleared. `automata_bytes` limits that of automata (128 MiB): beyond it
    /// new matchers get new ones, and past about twice the limit a matcher raises LimitError.
    ///
    /// Raises ConstraintError if no text matches, or for a token that is not in the vocabulary; LimitError if it takes
    /// more than the limits, here and in the matcher's calls.
    #[pyo3(signature = (vocabulary, *, end_tokens=None, fuel=None, mask_bytes=None, automata_bytes=None))]
    fn matcher(
        &self,
        py: Python<'_>,
        vocabulary: Py<PyVocabulary>,
        end_tokens: Option<Vec<TokenId>>,
        fuel: Option<u64>,
        mask_bytes: Option<usize>,
        automata_bytes: Option<usize>,
    ) -> PyResult<PyMatcher> {
        let default = GrammarLimits::default();
        let limits = GrammarLimits {
            fuel: fuel.unwrap_or(default.fuel),
            mask_bytes: mask_bytes.unwrap_or(default.mask_bytes),
            automata_bytes: automata_bytes.unwrap_or(default.automata_bytes),
        };
        let known = Arc::clone(&vocabulary.get().0);
        let bound = || BoundGrammar::of(&self.part, &known, end_tokens.as_deref(), limits);
        let matcher = py.detach(|| bound()?.matcher());
        Ok(PyMatcher::of(matcher.map_err(to_py)?, Some(vocabulary)))
    }

    /// Whether the whole text matches, without a vocabulary. ConstraintError if the grammar names tokens.
    fn matches(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let text = text_bytes(text, "text")?;
        let matches = || {
            let vocabulary = bytewise::vocabulary();
            let bound = BoundGrammar::of(&self.part, vocabulary, Some(&[]), GrammarLimits::default())?;
            bytewise::matches(&bound, &text)
        };
        py.detach(matches).map_err(to_py)
    }

    /// What rules with the attribute `capture` captured of a whole text, by name: a text, or a list of texts where a
    /// name captured several; None if the text does not match. Of several ways to read the text, the one whose captures
    /// begin first and are longest. ConstraintError if the grammar names tokens; LimitError for more than a mebibyte, or
    /// if the search takes too long.
    fn captures<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let text = text_bytes(text, "text")?;
        let found = py.detach(|| captures(&*self.part.rules()?, &text)).map_err(to_py)?;
        let Some(found) = found else { return Ok(None) };
        let made = PyDict::new(py);
        for (name, place) in &found {
            let text = PyString::new(py, &String::from_utf8_lossy(&text[place.clone()])).into_any();
            match made.get_item(&**name)? {
                None => made.set_item(&**name, text)?,
                Some(known) => match known.cast_into::<PyList>() {
                    Ok(list) => list.append(text)?,
                    Err(first) => made.set_item(&**name, PyList::new(py, [first.into_inner(), text])?)?,
                },
            }
        }
        Ok(Some(made))
    }

    /// What was dropped from its schemas with `lenient=True`.
    #[getter]
    fn warnings(&self) -> Vec<&str> {
        self.part.warnings()
    }

    /// Bytes of memory of automata and masks over `vocabulary`, without the tables of lexemes that all grammars of a
    /// vocabulary share.
    fn memory(&self, py: Python<'_>, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<usize> {
        let known = &vocabulary.get().0;
        let bound = || BoundGrammar::of(&self.part, known, None, GrammarLimits::default());
        py.detach(|| Ok(bound()?.memory())).map_err(to_py)
    }

    /// As `Constraint.form`.
    fn form(&self) -> PyResult<String> {
        self.part.form().map(|form| form.to_string()).map_err(to_py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let value = slf.get().value.as_ref().map(|value| value.clone_ref(slf.py()));
        Ok((slf.get_type().getattr("_read")?, (slf.get().part.written().to_string(), value)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyGrammar>().is_ok_and(|other| self.part.written() == other.get().part.written())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.part.written().as_ref().into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        show::show(&self.part)
    }
}

/// What pickles call, and with what: the written form, and what reads the value of an output.
type Reduced<'py> = (Bound<'py, PyAny>, (String, Option<Py<PyAny>>));

/// Adds the classes and functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyGrammar>()?;
    m.add_class::<PyExplanation>()?;
    batch::register(m)
}
