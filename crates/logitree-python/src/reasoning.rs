//! Reasoning blocks in Python. Conversions only.

use logitree::constraint::reasoning::{tag, ReasoningStart};
use logitree::constraint::{BoundReasoning, Matcher, ReasoningOptions};
use logitree::vocabulary::Vocabulary;
use logitree::{Error, ErrorKind, TokenId};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::base::Constraint;
use crate::constraint::text_bytes;
use crate::errors::to_py;
use crate::grammar::tokens_of;
use crate::matcher::PyMatcher;
use crate::vocabulary::{token_id, PyVocabulary};

/// How a model thinks before it answers, bound to a vocabulary. Immutable; shared between threads.
#[pyclass(frozen, name = "BoundReasoning", module = "logitree._core")]
pub struct PyReasoningBudget {
    reasoning: BoundReasoning,
    started: bool,
    then: Option<Box<dyn Matcher>>,
    vocabulary: Py<PyVocabulary>,
}

fn wrong(message: String, place: &str, help: &str) -> PyErr {
    to_py(Error::new(ErrorKind::Constraint, message).at(place).help(help))
}

/// Reads tags: ids and texts.
struct Reader<'a, 'py> {
    vocabulary: &'a Vocabulary,
    tokenize: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Reader<'_, 'py> {
    /// The tokens of a text: the one that is written so, or what `tokenize` says.
    fn text(&self, text: &Bound<'py, PyAny>, place: &str) -> PyResult<Vec<TokenId>> {
        let bytes = text_bytes(text, place)?;
        let at = |error: Error| to_py(error.at(place));
        match (tag(&bytes, self.vocabulary).map_err(at)?, self.tokenize) {
            (Some(id), _) => Ok(vec![id]),
            (None, Some(tokenize)) => tokens_of(&tokenize.call1((text,))?),
            (None, None) => Err(wrong(
                format!("no token of the vocabulary is {:?}", String::from_utf8_lossy(&bytes)),
                place,
                "give token ids, or tokenize=, a function str -> ids",
            )),
        }
    }

    /// One sequence: an id, a text, or ids.
    fn one(&self, tag: &Bound<'py, PyAny>, place: &str) -> PyResult<Vec<TokenId>> {
        if is_text(tag) {
            return self.text(tag, place);
        }
        if tag.is_instance_of::<PyInt>() {
            return Ok(vec![token_id(tag.extract()?)?]);
        }
        tokens_of(tag)
    }

    /// One sequence or a list of several.
    fn several(&self, tags: &Bound<'py, PyAny>, place: &str) -> PyResult<Vec<Vec<TokenId>>> {
        if is_text(tags) || tags.is_instance_of::<PyInt>() {
            return Ok(vec![self.one(tags, place)?]);
        }
        let items: Vec<Bound<'_, PyAny>> = tags.try_iter()?.collect::<PyResult<_>>()?;
        let ids = items.iter().filter(|item| item.extract::<i64>().is_ok()).count();
        match ids {
            0 if items.is_empty() => Ok(vec![Vec::new()]),
            0 => items.iter().map(|item| self.one(item, place)).collect(),
            n if n == items.len() => Ok(vec![tokens_of(tags)?]),
            _ => {
                let message = format!("{place} is a list of ids and of other things");
                Err(PyTypeError::new_err(format!("{message}; give one list of ids for each {place}")))
            }
        }
    }
}

fn is_text(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

/// A number of tokens, or of reasoning blocks.
fn count(given: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<usize>> {
    let Some(given) = given else { return Ok(None) };
    if !given.hasattr("__index__")? {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{name} must be int or None, not {kind}")));
    }
    given.extract().map(Some).map_err(|_| {
        let message = format!("{name} is {given}");
        wrong(message, name, "give 0 to 2**64 - 1; None is no limit")
    })
}

/// An argument whose `None` means something: `None` here is that it was left out.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Given(Some(object.to_owned())))
    }
}

/// A reasoning block within a budget, and what comes after it.
#[pyfunction]
#[pyo3(
    signature = (vocabulary, *, begin, end, budget=None, soft=None, ramp=10.0, message=None, max_blocks=Given(None), whole=false, started=false, then=None, tokenize=None),
    text_signature = "(vocabulary, *, begin, end, budget=None, soft=None, ramp=10.0, message=None, max_blocks=1, whole=False, started=False, then=None, tokenize=None)"
)]
#[allow(clippy::too_many_arguments)] // keywords
fn reasoning_budget(
    vocabulary: &Bound<'_, PyVocabulary>,
    begin: &Bound<'_, PyAny>,
    end: &Bound<'_, PyAny>,
    budget: Option<&Bound<'_, PyAny>>,
    soft: Option<&Bound<'_, PyAny>>,
    ramp: f32,
    message: Option<&Bound<'_, PyAny>>,
    max_blocks: Given<'_>,
    whole: bool,
    started: bool,
    then: Option<&Bound<'_, PyAny>>,
    tokenize: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyReasoningBudget> {
    let holder = vocabulary.clone().unbind();
    let vocabulary = &vocabulary.get().0;
    let reader = Reader { vocabulary, tokenize };
    let options = ReasoningOptions {
        begin: reader.several(begin, "begin")?,
        end: reader.several(end, "end")?,
        message: message.map_or(Ok(Vec::new()), |message| reader.one(message, "message"))?,
        budget: count(budget, "budget")?,
        soft: count(soft, "soft")?,
        ramp,
        max_blocks: match max_blocks.0 {
            None => Some(1),
            Some(given) if given.is_none() => None,
            Some(given) => count(Some(&given), "max_blocks")?,
        },
        whole,
    };
    let made = BoundReasoning::new(options, vocabulary).map_err(to_py)?;
    let then = then.map(|then| Constraint::read(then)?.fork(vocabulary)).transpose()?;
    // What cannot run is refused here.
    let at = if started { ReasoningStart::Inside } else { ReasoningStart::Outside };
    made.matcher(at, then.as_ref().map(|then| then.fork())).map_err(to_py)?;
    Ok(PyReasoningBudget { reasoning: made, started, then, vocabulary: holder })
}

#[pymethods]
impl PyReasoningBudget {
    /// A matcher for what follows a prompt.
    ///
    /// It starts inside a reasoning block if `prompt` ends in one (`after`), or if `at` is "in"; without either only
    /// with `started`. A block that the prompt began counts as a block, its tokens so far do not count. `at="closing"`
    /// forces the end at once, message included: with `Decoder.activate` it interrupts a reasoning block. `then` is
    /// copied and constrains what follows; give it here or to `reasoning_budget`.
    ///
    /// Raises ConstraintError if the prompt began a reasoning block although no block is allowed, for a `then` of a larger
    /// vocabulary, or for one that would wait for the end of a block with a budget of 0.
    #[pyo3(signature = (*, prompt=None, at=None, then=None))]
    fn matcher(
        &self,
        py: Python<'_>,
        prompt: Option<&Bound<'_, PyAny>>,
        at: Option<&str>,
        then: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyMatcher> {
        let at = self.place(prompt, at)?;
        let then = match then {
            Some(_) if self.then.is_some() => {
                let message = "the reasoning block has a constraint after it already".to_string();
                return Err(wrong(message, "then", "give it once: to ReasoningBudget, or here"));
            }
            Some(then) => Some(Constraint::read(then)?.fork(self.reasoning.vocabulary())?),
            None => self.then.as_ref().map(|then| then.fork()),
        };
        let matcher = self.reasoning.matcher(at, then).map_err(to_py)?;
        Ok(PyMatcher::of(matcher, Some(self.vocabulary.clone_ref(py))))
    }

    /// The state after a prompt: inside a reasoning block if its last begin has no end after it.
    ///
    /// A tag of ordinary tokens counts wherever its text occurs, in any tokens; a special token counts as itself. With
    /// `started` every prompt ends inside a block.
    fn after(&self, prompt: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        Ok(match self.place(Some(prompt), None)? {
            ReasoningStart::Outside => "outside",
            _ => "inside",
        })
    }

    /// The generated tokens as two lists: the leading reasoning blocks, begins and ends included, and the answer.
    #[pyo3(signature = (tokens, *, prompt=None, at=None))]
    fn split(
        &self,
        tokens: &Bound<'_, PyAny>,
        prompt: Option<&Bound<'_, PyAny>>,
        at: Option<&str>,
    ) -> PyResult<(Vec<TokenId>, Vec<TokenId>)> {
        let mut tokens = tokens_of(tokens)?;
        let answer = tokens.split_off(self.reasoning.leading(&tokens, self.place(prompt, at)?));
        Ok((tokens, answer))
    }

    /// The state after `tokens`, by RTP-LLM's names, without a constraint after the reasoning blocks.
    #[pyo3(signature = (tokens, *, prompt=None, at=None))]
    fn state(
        &self,
        tokens: &Bound<'_, PyAny>,
        prompt: Option<&Bound<'_, PyAny>>,
        at: Option<&str>,
    ) -> PyResult<&'static str> {
        Ok(self.reasoning.state(&tokens_of(tokens)?, self.place(prompt, at)?))
    }

    /// The token sequences that begin a reasoning block.
    #[getter]
    fn begin(&self) -> Vec<Vec<TokenId>> {
        self.reasoning.options().begin.clone()
    }

    /// The token sequences that end it, the one that is forced first.
    #[getter]
    fn end(&self) -> Vec<Vec<TokenId>> {
        self.reasoning.options().end.clone()
    }

    /// The most tokens of a reasoning block; None is no limit.
    #[getter]
    fn budget(&self) -> Option<usize> {
        self.reasoning.options().budget
    }

    fn __repr__(&self) -> String {
        let t = self.reasoning.options();
        let show = |n: Option<usize>| n.map_or("None".to_string(), |n| n.to_string());
        format!(
            "ReasoningBudget(begin={:?}, end={:?}, budget={}, max_blocks={})",
            t.begin,
            t.end,
            show(t.budget),
            show(t.max_blocks)
        )
    }
}

impl PyReasoningBudget {
    /// The matcher's initial state: as given, from a prompt, or as the budget was built.
    fn place(&self, prompt: Option<&Bound<'_, PyAny>>, at: Option<&str>) -> PyResult<ReasoningStart> {
        match (prompt, at) {
            (Some(_), Some(_)) => Err(PyTypeError::new_err("both prompt and at: give one of them")),
            (_, None) if self.started => Ok(ReasoningStart::Inside),
            (Some(prompt), None) => Ok(self.reasoning.after(&tokens_of(prompt)?)),
            (None, None | Some("outside")) => Ok(ReasoningStart::Outside),
            (None, Some("inside")) => Ok(ReasoningStart::Inside),
            (None, Some("closing")) => Ok(ReasoningStart::Closing),
            (None, Some(other)) => Err(PyValueError::new_err(format!(
                "at is {other:?}, expected 'outside', 'inside' or 'closing'"
            ))),
        }
    }
}

/// Adds this room to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyReasoningBudget>()?;
    m.add_function(wrap_pyfunction!(reasoning_budget, m)?)
}
