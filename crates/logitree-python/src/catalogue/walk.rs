//! A catalogue at one moment, walked by arrays of states, in Python.
#![allow(unsafe_code)] // writes into NumPy's memory, which nothing else borrows meanwhile

use logitree::catalogue::{BeamRows, Continuations, Intersection, ItemWalk, WalkState, MAX_TOKEN};
use logitree::mask::words_for;
use logitree::vocabulary::MAX_TOKENS;
use logitree::{Error, ErrorKind, TokenId};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use super::candidates::PyBeamCandidates;
use super::index::named;
use super::{copied, longs, tokens};
use crate::buffer::Rows as Buffer;
use crate::errors::to_py;
use crate::matcher::{forks_of, PyMatcher};
use crate::sampling::whole;
use crate::vocabulary::PyVocabulary;

/// A catalogue at one moment, walked by arrays of states: a native `logitree.beams.TokenWalk`.
///
/// States are int64 and belong to this walk; -1 is a finished sequence, -2 one that took a token that was not allowed,
/// after which only the end token may follow. Every call may raise PayloadError if the index file is damaged, and
/// StateError for a state of another walk.
#[pyclass(frozen, name = "ItemWalk", module = "logitree.catalogue")]
pub struct PyItemWalk {
    walk: ItemWalk,
    vocabulary_size: usize,
    /// What the tokens are, where it is known.
    vocabulary: Option<Py<PyVocabulary>>,
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

impl PyItemWalk {
    pub fn new(
        walk: ItemWalk,
        vocabulary_size: Option<usize>,
        vocabulary: Option<Py<PyVocabulary>>,
    ) -> PyResult<PyItemWalk> {
        let vocabulary_size = vocabulary.as_ref().map(|known| known.get().0.len()).or(vocabulary_size);
        if let Some(end) = walk.end.filter(|&end| end > MAX_TOKEN) {
            let message = format!("the end token {end}");
            return Err(to_py(Error::new(ErrorKind::Constraint, message).help("tokens are below 2**31")));
        }
        if let Some(size) = vocabulary_size.filter(|&size| size > MAX_TOKENS) {
            let message = format!("a vocabulary of {size} tokens; {MAX_TOKENS} are the most");
            return Err(to_py(Error::new(ErrorKind::Limit, message)));
        }
        let least = walk.end.unwrap_or(0).max(walk.snapshot.largest()) as usize + 1;
        if vocabulary_size.is_some_and(|size| size < least) {
            let message =
                format!("tokens up to {} in a vocabulary of {}", least - 1, vocabulary_size.unwrap_or(0));
            return Err(to_py(
                Error::new(ErrorKind::Constraint, message).help("the items are of another vocabulary"),
            ));
        }
        Ok(PyItemWalk { walk, vocabulary_size: vocabulary_size.unwrap_or(least), vocabulary })
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
impl PyItemWalk {
    /// The state where every item begins.
    #[getter]
    fn start(&self) -> i64 {
        self.walk.snapshot.root().0
    }

    /// The token after every item; None: an item ends by itself.
    #[getter]
    fn end(&self) -> Option<TokenId> {
        self.walk.end
    }

    /// Whether tokens have weights.
    #[getter]
    fn weighted(&self) -> bool {
        self.walk.snapshot.index().header().weighted
    }

    /// Number of ids that masks cover.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Number of items; an item with several numbers counts several times.
    fn __len__(&self) -> usize {
        self.walk.snapshot.len() as usize
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
        self.walk.advance(&mut states, &tokens).map_err(to_py)?;
        Ok(PyArray1::from_iter(py, states.iter().map(|state| state.0)))
    }

    /// The state after these tokens, from the start or from `state`; None if no item has them there.
    #[pyo3(signature = (tokens, state=None))]
    fn find(&self, tokens: &Bound<'_, PyAny>, state: Option<i64>) -> PyResult<Option<i64>> {
        let mut state = state.map_or(self.walk.snapshot.root(), WalkState);
        for token in self::tokens(tokens)? {
            let Some(next) = self.walk.snapshot.step(state, token).map_err(to_py)? else { return Ok(None) };
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
        self.walk.masks(&states, &mut slices).map_err(to_py)?;
        drop(slices);
        drop(rows);
        Ok(out)
    }

    /// The allowed tokens of one state, ascending.
    fn allowed<'py>(&self, py: Python<'py>, state: i64) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let mut children = Continuations::default();
        self.walk.children(WalkState(state), &mut children).map_err(to_py)?;
        Ok(PyArray1::from_iter(py, children.tokens.iter().map(|&token| token as i32)))
    }

    /// Every continuation of every row, by row and token.
    #[pyo3(signature = (states, logits, scores=None))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        logits: &Bound<'py, PyAny>,
        scores: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyBeamCandidates> {
        let mut found = Vec::new();
        self.with_rows((states, logits), (scores, None), |rows| {
            py.detach(|| self.walk.gather(rows, &mut found))
        })?;
        Ok(PyBeamCandidates::new(py, &found))
    }

    /// The best `width` continuations of each group's rows: by group, descending score, row, token.
    #[pyo3(signature = (states, logits, scores, width, *, groups=None))]
    fn top<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        logits: &Bound<'py, PyAny>,
        scores: Option<&Bound<'py, PyAny>>,
        width: &Bound<'py, PyAny>,
        groups: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyBeamCandidates> {
        let width = whole(width, "width", 0, usize::MAX)?;
        let mut found = Vec::new();
        self.with_rows((states, logits), (scores, groups), |rows| {
            py.detach(|| self.walk.top(rows, width, &mut found))
        })?;
        Ok(PyBeamCandidates::new(py, &found))
    }

    /// Whether what was read is an item.
    fn is_item<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.look(py, states, |(complete, _)| complete)
    }

    /// Whether more tokens of an item may follow.
    fn may_continue<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.look(py, states, |(_, open)| open)
    }

    /// Numbers of the items that are exactly what leads to a state, ascending.
    fn items<'py>(&self, py: Python<'py>, state: i64) -> PyResult<Bound<'py, PyAny>> {
        let mut found = Vec::new();
        self.walk.snapshot.items(WalkState(state), &mut found).map_err(to_py)?;
        named(py, &self.walk.snapshot, found)
    }

    /// Whether one item may be the beginning of another, so that only an end token distinguishes them.
    #[getter]
    fn nested(&self) -> PyResult<bool> {
        self.walk.snapshot.may_nest().map_err(to_py)
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
            return Err(to_py(error.help("fuel is for intersections: leave it out")));
        }
        let own = self.vocabulary.as_ref().map(|known| known.clone_ref(py));
        let Some(others) = intersect else {
            let after = own.as_ref().map_or(&[][..], |known| known.get().0.end_tokens());
            let matcher = self.walk.sequence(self.vocabulary_size, after).map_err(to_py)?;
            return Ok(PyMatcher::of(Box::new(matcher), own));
        };
        let (others, theirs) = forks_of(others)?;
        let vocabulary = own.or(theirs);
        let after = vocabulary.as_ref().map_or(&[][..], |known| known.get().0.end_tokens());
        let fuel = fuel.unwrap_or(Intersection::FUEL);
        let matcher = py.detach(|| self.walk.sequence_with(others, self.vocabulary_size, after, fuel));
        Ok(PyMatcher::of(Box::new(matcher.map_err(to_py)?), vocabulary))
    }

    fn __repr__(&self) -> String {
        format!("ItemWalk({} items)", self.walk.snapshot.len())
    }
}

impl PyItemWalk {
    fn look<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        which: impl Fn((bool, bool)) -> bool,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut scratch = Continuations::default();
        let states = self::states(states)?;
        let looked: Result<Vec<bool>, _> =
            states.into_iter().map(|state| self.walk.look(state, &mut scratch).map(&which)).collect();
        Ok(PyArray1::from_vec(py, looked.map_err(to_py)?))
    }
}
