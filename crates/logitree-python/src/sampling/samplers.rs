//! The samplers' constructors in Python, one for each row of the core's table.

use super::custom::Custom;
use super::values::{biases_of, number, start_of, value_of, whole};
use super::vocabulary::{breakers_of, dry_breakers, pieces_of};
use crate::errors::to_py;
use crate::vocabulary::PyVocabulary;
use logitree::sampling::registry::{self, SamplerRow, SAMPLERS};
use logitree::sampling::registry::{DefaultValue, Kind, ParameterRow};
use logitree::sampling::{Arguments, Breakers, Sampler, Value};
use logitree::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList, PyTuple};
use std::any::Any;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// One sampler with its parameters, to be put into chains. Each chain has its own copy, with its state.
#[pyclass(frozen, name = "Sampler", module = "logitree")]
pub struct PySampler(pub Box<dyn Sampler>);

#[pymethods]
impl PySampler {
    /// llama.cpp's name of the sampler.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        self.0.describe()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let any: &dyn Any = self.0.as_ref();
        if let Some(custom) = any.downcast_ref::<Custom>() {
            return custom.reduce(py);
        }
        let name = self.0.name();
        let Some(row) = registry::find(name) else { return Err(no_pickle(&self.0.describe())) };
        let arguments = row.arguments(self.0.as_ref());
        let values = PyDict::new(py);
        for (parameter, at) in row.parameters.iter().zip(0..) {
            put(&values, parameter, arguments.get(at)).map_err(|_| no_pickle(&self.0.describe()))?;
        }
        Ok((py.import("logitree._core")?.getattr("sampler")?, (name, values)).into_pyobject(py)?.into_any())
    }
}

/// The error for a sampler that cannot be pickled.
fn no_pickle(description: &str) -> PyErr {
    let error = Error::new(ErrorKind::Sampling, format!("{description} does not pickle"));
    to_py(error.help("build it where it is needed, and move Chain.snapshot() instead"))
}

/// Puts a parameter's value into keyword arguments of its constructor.
fn put(values: &Bound<'_, PyDict>, parameter: &ParameterRow, value: &Value) -> PyResult<()> {
    let name = parameter.name;
    match value {
        Value::Nothing => Ok(()),
        Value::Int(n) => values.set_item(name, n),
        Value::Float(x) => values.set_item(name, f64::from(*x)),
        Value::Truth(on) => values.set_item(name, on),
        Value::Seed(seed) => {
            values.set_item("seed", seed.seed)?;
            values.set_item("rng", seed.generator.name())?;
            values.set_item("sequence", seed.sequence)
        }
        Value::Biases(biases) => values.set_item(name, biases.to_vec()),
        Value::Breakers(breakers) => values.set_item(name, breakers.ids()),
        Value::Pieces(_) => Err(PyTypeError::new_err("a vocabulary's texts")),
    }
}

/// The names that a parameter has in Python, each with its default as Python writes it, if it has one.
fn names(parameter: &ParameterRow) -> Vec<(&'static str, Option<String>)> {
    let none = || Some("None".to_string());
    match parameter.kind {
        Kind::Seed => {
            vec![("seed", none()), ("rng", Some("\"mt19937\"".into())), ("sequence", Some("0".into()))]
        }
        Kind::Breakers => vec![(parameter.name, none()), ("vocabulary", none()), ("tokenize", none())],
        Kind::Pieces => vec![(parameter.name, None), ("eot", none())],
        _ if parameter.required => vec![(parameter.name, None)],
        _ => vec![(parameter.name, Some(default(parameter)))],
    }
}

/// A default as Python writes it.
fn default(parameter: &ParameterRow) -> String {
    match parameter.default {
        DefaultValue::Float(x) => format!("{x:?}"),
        default => Value::from(default).to_string(),
    }
}

/// The constructor's parameters as Python writes them, `(k=40)`.
fn signature(row: &SamplerRow) -> String {
    let each = row.parameters.iter().flat_map(names).map(|(name, default)| match default {
        Some(default) => format!("{name}={default}"),
        None => name.to_string(),
    });
    format!("({})", each.collect::<Vec<_>>().join(", "))
}

/// What `help` shows: what the sampler does, and its parameters.
fn documentation(row: &SamplerRow) -> String {
    let mut text = row.doc.to_string();
    if !row.details.is_empty() {
        text.push_str("\n\n");
        text.push_str(row.details);
    }
    if !row.parameters.is_empty() {
        text.push_str("\n\nArgs:");
    }
    for parameter in row.parameters {
        text.push_str(&format!("\n    {}: {}", parameter.name, parameter.doc));
    }
    text
}

/// Values by the names of the Python parameters.
type Given<'py> = Vec<(&'static str, Bound<'py, PyAny>)>;

/// Sorts positional and keyword arguments to the parameters' names.
fn bind<'py>(
    row: &SamplerRow,
    args: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Given<'py>> {
    let wrong = |what: String| PyTypeError::new_err(format!("{}() {what}", row.name));
    let known: Vec<_> = row.parameters.iter().flat_map(names).collect();
    if args.len() > known.len() {
        return Err(wrong(format!(
            "takes {} positional arguments but {} were given",
            known.len(),
            args.len()
        )));
    }
    let mut given: Given<'py> = known.iter().map(|(name, _)| *name).zip(args.iter()).collect();
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some((name, _)) = known.iter().find(|(known, _)| *known == name) else {
            return Err(wrong(format!("got an unexpected keyword argument '{name}'")));
        };
        if given.iter().any(|(given, _)| given == name) {
            return Err(wrong(format!("got multiple values for argument '{name}'")));
        }
        given.push((name, value));
    }
    let missing =
        known.iter().find(|(name, default)| default.is_none() && !given.iter().any(|g| g.0 == *name));
    match missing {
        Some((name, _)) => Err(wrong(format!("missing 1 required positional argument: '{name}'"))),
        None => Ok(given),
    }
}

/// The sampler of a row with these arguments.
fn construct<'py>(
    row: &SamplerRow,
    args: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<PySampler> {
    let given = bind(row, args, keywords)?;
    let get = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let some = |name: &str| get(name).filter(|value| !value.is_none());
    let mut arguments = Arguments::default();
    for (parameter, at) in row.parameters.iter().zip(0..) {
        let name = parameter.name;
        let value = match parameter.kind {
            Kind::Seed => {
                let sequence = get("sequence").map_or(Ok(0), |n| whole(n, "sequence", 0, u32::MAX))?;
                let rng = get("rng").map_or(Ok("mt19937".into()), |rng| rng.extract::<String>())?;
                start_of(get("seed"), &rng, sequence)?.into()
            }
            Kind::Breakers => breakers(some(name), some("vocabulary"), some("tokenize"))?,
            Kind::Pieces => {
                let vocabulary: Option<PyRef<'_, PyVocabulary>> =
                    get(name).map(|v| v.extract()).transpose()?;
                let end = some("eot").map(|id| id.extract()).transpose()?;
                vocabulary
                    .map(|vocabulary| pieces_of(&vocabulary, end))
                    .transpose()?
                    .map_or(Value::Nothing, Value::from)
            }
            Kind::Biases => get(name).map_or(Ok(Vec::new()), |v| biases_of(v, row.name))?.into(),
            Kind::Float => {
                get(name).map(|v| number(v, name)).transpose()?.map_or(parameter.default.into(), Value::from)
            }
            Kind::Count => {
                some(name).map_or(Ok(parameter.default.into()), |v| value_of(Kind::Count, v, name))?
            }
            kind => get(name).map_or(Ok(parameter.default.into()), |value| value_of(kind, value, name))?,
        };
        arguments.set(at, value);
    }
    Ok(PySampler(row.build(&arguments).map_err(to_py)?))
}

/// DRY's breakers: ids, or texts over a vocabulary.
fn breakers(
    breakers: Option<&Bound<'_, PyAny>>,
    vocabulary: Option<&Bound<'_, PyAny>>,
    tokenize: Option<&Bound<'_, PyAny>>,
) -> PyResult<Value> {
    let vocabulary: Option<PyRef<'_, PyVocabulary>> = vocabulary.map(|v| v.extract()).transpose()?;
    Ok(match (breakers, vocabulary) {
        (None, None) => Value::Nothing,
        (breakers, Some(vocabulary)) => {
            let sequences = dry_breakers(&vocabulary, breakers, tokenize)?;
            Breakers::new(&sequences).map_err(to_py)?.into()
        }
        (Some(breakers), None) => breakers_of(breakers)?.into(),
    })
}

/// Names and documentation for Python, made once.
fn texts() -> &'static [(CString, CString)] {
    static TEXTS: OnceLock<Vec<(CString, CString)>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let text = |row: &SamplerRow| {
            let doc = format!("{}{}\n--\n\n{}", row.name, signature(row), documentation(row));
            (CString::new(row.name).unwrap_or_default(), CString::new(doc).unwrap_or_default())
        };
        SAMPLERS.iter().map(text).collect()
    })
}

/// The constructor of every sampler, by its name.
#[pyfunction]
fn sampler_constructors(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (row, (name, doc)) in SAMPLERS.iter().zip(texts()) {
        let (name, doc): (&'static CStr, &'static CStr) = (name, doc);
        let build = move |args: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>| {
            construct(row, args, keywords)
        };
        all.set_item(row.name, PyCFunction::new_closure(py, Some(name), Some(doc), build)?)?;
    }
    Ok(all)
}

/// The sampler of this name with these keyword arguments of its constructor: how a sampler is unpickled.
///
/// Raises:
///     SamplingError: there is no such sampler, or the arguments do not fit.
#[pyfunction]
fn sampler(name: &str, arguments: &Bound<'_, PyDict>) -> PyResult<PySampler> {
    let error = |message: String| to_py(Error::new(ErrorKind::Sampling, message));
    let row = registry::find(name).ok_or_else(|| error(format!("there is no sampler {name:?}")))?;
    construct(row, &PyTuple::empty(arguments.py()), Some(arguments)).map_err(|raised| {
        let py = arguments.py();
        if raised.is_instance_of::<PyTypeError>(py) {
            return error(format!("the arguments do not fit: {}", raised.value(py)));
        }
        raised
    })
}

/// The table of samplers: for each its name, aliases, letter, documentation, signature and parameters.
#[pyfunction]
fn sampler_table(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let table = PyList::empty(py);
    for row in SAMPLERS {
        let parameters = PyList::empty(py);
        for parameter in row.parameters {
            let p = PyDict::new(py);
            p.set_item("name", parameter.name)?;
            p.set_item("keyword", parameter.keyword)?;
            p.set_item("aliases", parameter.aliases.to_vec())?;
            p.set_item("kind", format!("{:?}", parameter.kind))?;
            p.set_item("default", default(parameter))?;
            p.set_item("required", parameter.required)?;
            p.set_item("range", parameter.bounds())?;
            p.set_item("doc", parameter.doc)?;
            parameters.append(p)?;
        }
        let r = PyDict::new(py);
        r.set_item("name", row.name)?;
        r.set_item("aliases", row.aliases.to_vec())?;
        r.set_item("letter", row.letter.map(String::from))?;
        r.set_item("doc", row.doc)?;
        r.set_item("details", row.details)?;
        r.set_item("signature", signature(row))?;
        r.set_item("parameters", parameters)?;
        table.append(r)?;
    }
    Ok(table)
}

/// Adds the class and the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySampler>()?;
    m.add_function(wrap_pyfunction!(sampler, m)?)?;
    m.add_function(wrap_pyfunction!(sampler_constructors, m)?)?;
    m.add_function(wrap_pyfunction!(sampler_table, m)?)?;
    Ok(())
}
