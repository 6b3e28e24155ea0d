//! A prefix tree at one moment, walked by arrays of states, in Python. Conversions only.
#![allow(unsafe_code)] // writes into NumPy's memory, which nothing else borrows meanwhile

use logitree::catalogue::{BeamRows, CatalogueMatcher, Continuations, ItemWalk, WalkState, MAX_TOKEN};
use logitree::constraint::IntersectionMatcher;
use logitree::mask::words_for;
use logitree::vocabulary::MAX_TOKENS;
use logitree::{Error, ErrorKind, TokenId};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use super::candidates::PyCandidates;
use super::{copied, longs, tokens};
use crate::buffer::Rows as Buffer;
use crate::errors::to_py;
use crate::matcher::{forks_of, PyMatcher};
use crate::sampling::whole;

/// A snapshot of a catalogue, walked by arrays of states: the input of beam searches and matchers.
///
/// States are int64 and valid for this walk only; -1 is a sequence that has ended, -2 one that accepted a token that was
/// not allowed, after which only the end token may follow. Every call may raise PayloadError if the index file is
/// damaged, and StateError for a state of another walk.
#[pyclass(frozen, name = "PrefixPaths", module = "logitree")]
pub struct PyPaths {
    paths: ItemWalk,
    vocabulary_size: usize,
}

fn states(object: &Bound<'_, PyAny>) -> PyResult<Vec<WalkState>> {
    let numbers = match copied(object) {
        Some(numbers) => numbers,
        None => match object.extract::<i64>() {
            Ok(state) => vec![state],
            Err(_) => longs(object, "states")?,
        },
    };
    Ok(numbers.into_iter().map(WalkState).collect())
}

/// One number a row, of those that were given, or the same for all.
fn column<T: Copy>(given: Option<Vec<T>>, default: T, rows: usize) -> Vec<T> {
    given.unwrap_or_else(|| vec![default; rows])
}

impl PyPaths {
    pub fn new(paths: ItemWalk, vocabulary_size: Option<usize>) -> PyResult<PyPaths> {
        if let Some(end) = paths.end.filter(|&end| end > MAX_TOKEN) {
            let message = format!("the end token {end}");
            return Err(to_py(Error::new(ErrorKind::Constraint, message).help("tokens are below 2**31")));
        }
        if let Some(size) = vocabulary_size.filter(|&size| size > MAX_TOKENS) {
            let message = format!("a vocabulary of {size} tokens; {MAX_TOKENS} are the most");
            return Err(to_py(Error::new(ErrorKind::Limit, message)));
        }
        let least = paths.end.unwrap_or(0).max(paths.snapshot.largest()) as usize + 1;
        if vocabulary_size.is_some_and(|size| size < least) {
            let message =
                format!("tokens up to {} in a vocabulary of {}", least - 1, vocabulary_size.unwrap_or(0));
            return Err(to_py(
                Error::new(ErrorKind::Constraint, message).help("the items are of another vocabulary"),
            ));
        }
        Ok(PyPaths { paths, vocabulary_size: vocabulary_size.unwrap_or(least) })
    }

    /// What `call` makes of the rows.
    fn with_rows<T>(
        &self,
        (states, logits): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
        (scores, groups): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
        call: impl FnOnce(&BeamRows<'_>) -> logitree::Result<T>,
    ) -> PyResult<T> {
        let states = self::states(states)?;
        let buffer = Buffer::of(logits, "logits", ErrorKind::Logits)?;
        let logits = buffer.all_floats()?;
        let doubles = |object: &Bound<'_, PyAny>| copied(object).map_or_else(|| object.extract(), Ok);
        let scores = column(scores.map(doubles).transpose()?, 0.0, states.len());
        let numbers = |object: &Bound<'_, PyAny>| -> PyResult<Vec<u32>> {
            let given = longs(object, "groups")?;
            let mut groups = Vec::with_capacity(given.len());
            for n in given {
                let wrong = |_| to_py(Error::new(ErrorKind::Sampling, format!("the group {n}")));
                groups.push(u32::try_from(n).map_err(wrong)?);
            }
            Ok(groups)
        };
        let groups = column(groups.map(numbers).transpose()?, 0, states.len());
        call(&BeamRows { states: &states, logits: &logits, scores: &scores, groups: &groups }).map_err(to_py)
    }
}

#[pymethods]
impl PyPaths {
    /// The state at the beginning of every item.
    #[getter]
    fn start(&self) -> i64 {
        self.paths.snapshot.root().0
    }

    /// The token after every item; None: an item ends by itself.
    #[getter]
    fn end(&self) -> Option<TokenId> {
        self.paths.end
    }

    /// Whether the tree has weights.
    #[getter]
    fn weighted(&self) -> bool {
        self.paths.snapshot.index().header().weighted
    }

    /// Number of ids that masks cover.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Number of items; an item with several numbers counts several times.
    fn __len__(&self) -> usize {
        self.paths.snapshot.len() as usize
    }

    /// States [R] after one token each: int64 [R].
    ///
    /// The end token leads to -1 from every state, and no token leads out of it; a token that is not allowed leads to -2.
    fn advance<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (mut states, tokens) = (self::states(states)?, self::tokens(tokens)?);
        self.paths.advance(&mut states, &tokens).map_err(to_py)?;
        Ok(PyArray1::from_iter(py, states.iter().map(|state| state.0)))
    }

    /// The state after these tokens, from the start or from `state`; None if no item has them there.
    #[pyo3(signature = (tokens, state=None))]
    fn find(&self, tokens: &Bound<'_, PyAny>, state: Option<i64>) -> PyResult<Option<i64>> {
        let mut state = state.map_or(self.paths.snapshot.root(), WalkState);
        for token in self::tokens(tokens)? {
            let Some(next) = self.paths.snapshot.step(state, token).map_err(to_py)? else { return Ok(None) };
            state = next;
        }
        Ok(Some(state.0))
    }

    /// The allowed tokens of each state as masks, int32 [R, words], written over `out` if it is given.
    ///
    /// The end token is allowed after an item, and alone where nothing follows. Raises MaskError for an `out` of
    /// another shape or dtype, which is not written then, and StateError for a state of another tree, with its row:
    /// then no row of `out` allows anything.
    #[pyo3(signature = (states, out=None))]
    fn mask<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let states = self::states(states)?;
        let out = match out {
            Some(out) => out,
            None => {
                PyArray2::<i32>::zeros(py, [states.len(), words_for(self.vocabulary_size)], false).into_any()
            }
        };
        let mut rows = Buffer::of(&out, "mask", ErrorKind::Mask)?;
        // SAFETY: these are the only slices, one a row.
        let mut slices = unsafe { rows.rows_mut::<u32>()? };
        self.paths.masks(&states, &mut slices).map_err(to_py)?;
        drop(slices);
        drop(rows);
        Ok(out)
    }

    /// The allowed tokens of one state, ascending.
    fn allowed<'py>(&self, py: Python<'py>, state: i64) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let mut children = Continuations::default();
        self.paths.children(WalkState(state), &mut children).map_err(to_py)?;
        Ok(PyArray1::from_iter(py, children.tokens.iter().map(|&token| token as i32)))
    }

    /// Every continuation of every row, by row and token.
    ///
    /// Args:
    ///     states: [R]; a row in state -1 has none, one in state -2 has the end token at its own score.
    ///     logits: [R, V], float32, float16 or bfloat16, read in place; -inf is left out.
    ///     scores: float64 [R], the score of each row so far; -inf for a row that does not continue. None: 0.
    ///
    /// Raises:
    ///     LogitsError: NaN or +inf among the allowed tokens' logits, or fewer logits than ids.
    ///     SamplingError: the arguments differ in length.
    #[pyo3(signature = (states, logits, scores=None))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        logits: &Bound<'py, PyAny>,
        scores: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyCandidates> {
        let mut found = Vec::new();
        self.with_rows((states, logits), (scores, None), |rows| {
            py.detach(|| self.paths.gather(rows, &mut found))
        })?;
        Ok(PyCandidates::new(py, &found))
    }

    /// The best `width` continuations of each group's rows: by group, then descending score, then row, then token.
    ///
    /// Without padding if there are fewer. Equal to sorting the result of `gather`, without reading the rest of the
    /// vocabulary.
    ///
    /// Args:
    ///     states, logits, scores: as in `gather`. NaN is an error only among the logits that are read.
    ///     width: the number of continuations per group.
    ///     groups: int [R], the group of each row, ascending; None: one group.
    ///
    /// Raises:
    ///     LogitsError, SamplingError: as in `gather`.
    #[pyo3(signature = (states, logits, scores, width, *, groups=None))]
    fn top<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        logits: &Bound<'py, PyAny>,
        scores: Option<&Bound<'py, PyAny>>,
        width: &Bound<'py, PyAny>,
        groups: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyCandidates> {
        let width = whole(width, "width", 0, usize::MAX)?;
        let mut found = Vec::new();
        self.with_rows((states, logits), (scores, groups), |rows| {
            py.detach(|| self.paths.top(rows, width, &mut found))
        })?;
        Ok(PyCandidates::new(py, &found))
    }

    /// Whether the tokens so far are an item, bool [R].
    fn complete<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.look(py, states, |(complete, _)| complete)
    }

    /// Whether more tokens of an item may follow, bool [R].
    fn open<'py>(&self, py: Python<'py>, states: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.look(py, states, |(_, open)| open)
    }

    /// Numbers of the items whose tokens are exactly those that lead to the state, uint64, ascending.
    fn items<'py>(&self, py: Python<'py>, state: i64) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let mut found = Vec::new();
        self.paths.snapshot.items(WalkState(state), &mut found).map_err(to_py)?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// A matcher at the beginning of an item. Arguments and errors as for `Catalogue.matcher`.
    #[pyo3(signature = (*, intersect=None, fuel=None))]
    fn matcher(
        &self,
        py: Python<'_>,
        intersect: Option<&Bound<'_, PyAny>>,
        fuel: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyMatcher> {
        let fuel = fuel.map(|fuel| whole(fuel, "fuel", 1, u64::MAX)).transpose()?;
        if intersect.is_none() && fuel.is_some() {
            let error = Error::new(ErrorKind::Constraint, "fuel without intersect");
            return Err(to_py(error.help("a prefix tree alone needs none: leave it out")));
        }
        let (snapshot, end, size) = (self.paths.snapshot.clone(), self.paths.end, self.vocabulary_size);
        let Some(others) = intersect else {
            let matcher = CatalogueMatcher::new(snapshot, end, size);
            return Ok(PyMatcher::new(Box::new(matcher.map_err(to_py)?)));
        };
        let (others, vocabulary) = forks_of(others)?;
        let fuel = fuel.unwrap_or(IntersectionMatcher::FUEL);
        let matcher = py.detach(|| IntersectionMatcher::new(snapshot, others, end, size, fuel));
        Ok(PyMatcher::of(Box::new(matcher.map_err(to_py)?), vocabulary))
    }

    fn __repr__(&self) -> String {
        format!("PrefixPaths({} items)", self.paths.snapshot.len())
    }
}

impl PyPaths {
    fn look<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        which: impl Fn((bool, bool)) -> bool,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut scratch = Continuations::default();
        let states = self::states(states)?;
        let looked: Result<Vec<bool>, _> =
            states.into_iter().map(|state| self.paths.look(state, &mut scratch).map(&which)).collect();
        Ok(PyArray1::from_vec(py, looked.map_err(to_py)?))
    }
}
