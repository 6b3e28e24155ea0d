//! The keywords of a whole chain, with llama.cpp's names and defaults: values by keyword, over the table's defaults.

use super::parameter::{Arguments, Kind, ParameterRow, Value};
use super::registry::{self, SamplerRow};
use super::rng::{fresh_seed, Generator, Seed};
use super::SharedPieces;
use super::{Sampler, TempExt};
use crate::{Error, ErrorKind, Result};
use logitree_automata::spelling::did_you_mean;

/// What the presets and [`super::Chain::parse`] build their samplers from.
///
/// ```
/// use logitree_sampling::{presets, Params};
///
/// let chain = presets::llama_cpp(&Params::default().seed(42).with("top_k", 20).with("temperature", 0.7))?;
/// assert_eq!(chain.parameter("temp"), Some(f64::from(0.7f32)));
/// # Ok::<(), logitree_sampling::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    seed: Option<u64>,
    rng: Generator,
    sequence: u32,
    /// Which mirostat replaces the samplers and dist: 1, 2, or 0 for neither.
    mirostat: i32,
    given: Vec<(&'static str, Value)>,
    /// Values of a preset that differ from the table's defaults.
    base: &'static [(&'static str, f32)],
    /// What was wrong with a value: the chain that is built from it fails.
    fault: Option<Error>,
}

impl Params {
    /// tsampler's defaults: llama.cpp's with a repeat penalty of 1.1, and its generator, which takes seeds of 64 bits such as
    /// milliseconds.
    pub fn tsampler() -> Self {
        Params { base: &[("penalty_repeat", 1.1)], rng: Generator::Xoroshiro128Plus, ..Params::default() }
    }

    /// transformers' defaults: top_k 50, temperature 1, penalties over all accepted tokens, everything else off.
    pub fn transformers() -> Self {
        const ALL: f32 = i32::MAX as f32;
        let base = &[
            ("top_k", 50.0),
            ("top_p", 1.0),
            ("min_p", 0.0),
            ("top_h", 0.0),
            ("temp", 1.0),
            ("penalty_last_n", ALL),
        ];
        Params { base, ..Params::default() }
    }

    /// The same with this seed for everything that draws. Without one a chain takes a fresh seed, which
    /// [`super::Chain::seed`] returns.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Params { seed: Some(seed), ..self }
    }

    /// The same with this seed, or with a fresh one for `None`.
    #[must_use]
    pub fn seed_or_fresh(self, seed: Option<u64>) -> Self {
        Params { seed, ..self }
    }

    /// The same with this generator for everything that draws.
    #[must_use]
    pub fn rng(self, rng: Generator) -> Self {
        Params { rng, ..self }
    }

    /// The same as sequence `sequence` of its seed; only philox distinguishes sequences.
    #[must_use]
    pub fn sequence(self, sequence: u32) -> Self {
        Params { sequence, ..self }
    }

    /// The same with the texts of the tokens, which infill reads.
    #[must_use]
    pub fn pieces(self, pieces: SharedPieces) -> Self {
        self.with("vocabulary", pieces)
    }

    /// The same with this value of a keyword, or of an alias such as `temperature`; `mirostat` is a keyword too. What
    /// is wrong with it fails the chain that is built from it.
    #[must_use]
    pub fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        if let Err(error) = self.set(keyword, value.into()) {
            self.fault.get_or_insert(error);
        }
        self
    }

    /// Sets the value of a keyword.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for an unknown keyword, and for a value of another kind.
    pub fn set(&mut self, keyword: &str, value: Value) -> Result<()> {
        if keyword == MIROSTAT {
            let Value::Int(version) = value else {
                return Err(Error::new(ErrorKind::Sampling, format!("mirostat is {value}"))
                    .help("1 is mirostat, 2 is mirostat 2.0, 0 is neither"));
            };
            self.mirostat = version;
            return Ok(());
        }
        let row = registry::keyword_row(keyword).filter(|row| row.kind != Kind::Seed);
        let row = row.ok_or_else(|| unknown(keyword))?;
        let value = row.fit(value)?;
        match self.given.iter_mut().find(|(name, _)| *name == row.keyword) {
            Some(place) => place.1 = value,
            None => self.given.push((row.keyword, value)),
        }
        Ok(())
    }

    /// The value of a keyword: what was given, or its default.
    pub(super) fn value(&self, keyword: &str) -> Value {
        let default = || registry::keyword_row(keyword).map_or(Value::Nothing, |row| self.default_of(row));
        self.given(keyword).cloned().unwrap_or_else(default)
    }

    /// The value that was given for a keyword.
    pub(super) fn given(&self, keyword: &str) -> Option<&Value> {
        self.given.iter().find(|(name, _)| *name == keyword).map(|(_, value)| value)
    }

    /// The keywords that were given.
    pub(super) fn keywords(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.given.iter().map(|(name, _)| *name)
    }

    /// A number among the values; NaN for anything else.
    pub(super) fn number(&self, keyword: &str) -> f64 {
        self.value(keyword).number().unwrap_or(f64::NAN)
    }

    /// Which mirostat replaces the samplers and dist; 0: neither.
    pub(super) fn mirostat(&self) -> i32 {
        self.mirostat
    }

    /// The default of whole chains: the preset's, or that of the table's first row with the keyword.
    fn default_of(&self, row: &ParameterRow) -> Value {
        match self.base.iter().find(|(name, _)| *name == row.keyword) {
            Some(&(_, x)) if row.kind == Kind::Float => Value::Float(x),
            Some(&(_, x)) => Value::Int(x as i32),
            None => registry::keyword_row(row.keyword).map_or(row.default, |row| row.default).into(),
        }
    }

    /// The same with a seed in any case, so that all that draws in a chain starts from one.
    ///
    /// # Errors
    /// What was wrong with a value, and those of [`fresh_seed`].
    pub(super) fn with_seed(&self) -> Result<Params> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(self.clone().seed(self.start()?.seed)),
        }
    }

    /// What drawing samplers start from.
    fn start(&self) -> Result<Seed> {
        let seed = self.seed.map_or_else(|| fresh_seed().map(u64::from), Ok)?;
        Ok(Seed { generator: self.rng, seed, sequence: self.sequence })
    }

    /// The sampler of a row with these values.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for values that it refuses.
    pub(super) fn build(&self, row: &SamplerRow) -> Result<Box<dyn Sampler>> {
        let mut arguments = Arguments::default();
        for (parameter, at) in row.parameters.iter().zip(0..) {
            let value = match parameter.kind {
                Kind::Seed => self.start()?.into(),
                _ => self.given(parameter.keyword).cloned().unwrap_or_else(|| self.default_of(parameter)),
            };
            arguments.set(at, value);
        }
        row.build(&arguments)
    }

    /// The sampler of this name with these values.
    ///
    /// # Errors
    /// The same, and for a name that the table lacks.
    pub(super) fn sampler(&self, name: &str) -> Result<Box<dyn Sampler>> {
        match registry::find(name) {
            Some(row) => self.build(row),
            None => Err(Error::new(ErrorKind::Sampling, format!("there is no sampler {name:?}"))),
        }
    }

    /// What llama.cpp calls temperature: the dynamic one if it has a range.
    pub(super) fn temperature(&self) -> Result<Box<dyn Sampler>> {
        let number = |keyword| self.number(keyword) as f32;
        // Built in any case, so that wrong parameters are wrong in any case.
        let (t, range, exponent) = (number("temp"), number("dynatemp_range"), number("dynatemp_exponent"));
        let dynamic = TempExt::new(t, range, exponent)?;
        if range > 0.0 {
            return Ok(Box::new(dynamic));
        }
        self.sampler("temp")
    }
}

/// The keyword that chooses a mirostat.
pub const MIROSTAT: &str = "mirostat";

/// Every keyword of a whole chain, each once, in the order of the table.
pub fn keywords() -> Vec<&'static str> {
    let mut all = vec!["seed", "rng", "sequence"];
    for row in registry::SAMPLERS.iter().flat_map(|row| row.parameters) {
        if !all.contains(&row.keyword) {
            all.push(row.keyword);
        }
    }
    all.push(MIROSTAT);
    all
}

/// Keywords that most callers know, for the error of one that nothing has.
const USUAL: [&str; 7] =
    ["temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "seed"];

/// The error for a keyword that nothing has: the one that it resembles, or those that are usual.
pub fn unknown(keyword: &str) -> Error {
    let parameters = registry::SAMPLERS.iter().flat_map(|row| row.parameters);
    let names = keywords().into_iter().chain(parameters.flat_map(|parameter| parameter.aliases).copied());
    let help = did_you_mean(keyword, names).unwrap_or_else(|| {
        let more = keywords().len() - USUAL.len();
        format!("known: {} and {more} more, in docs/samplers.md", USUAL.join(", "))
    });
    Error::new(ErrorKind::Sampling, format!("there is no parameter {keyword}")).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{presets, Chain};

    #[test]
    fn aliases_mean_the_same_and_the_last_value_holds() {
        let params = Params::default().seed(1).with("temperature", 0.5).with("repetition_penalty", 1.2);
        let chain = presets::llama_cpp(&params).unwrap();
        assert_eq!(chain.parameter("temp"), Some(0.5));
        assert_eq!(chain.parameter("temperature"), Some(0.5));
        assert_eq!(chain.parameter("repeat_penalty"), Some(f64::from(1.2f32)));
        assert_eq!(params.with("temp", 0.25).number("temp"), 0.25);
    }

    #[test]
    fn a_wrong_value_fails_the_chain_that_is_built() {
        let fault = |params: Params| Chain::parse("kt", &params).unwrap_err();
        let unknown = |keyword| fault(Params::default().with(keyword, 1.0)).help;
        assert_eq!(unknown("temprature"), "did you mean \"temperature\"?");
        assert_eq!(unknown("topk"), "did you mean \"top_k\"?");
        assert!(unknown("heat").starts_with("known: temperature, top_k, top_p"), "{}", unknown("heat"));
        assert!(fault(Params::default().with("top_k", 1.5)).message.contains("top_k is 1.5"));
        assert!(fault(Params::default().with("seed", 1)).message.contains("seed"));
    }

    #[test]
    fn presets_change_defaults_only() {
        let number = |params: Params, keyword| params.number(keyword);
        assert_eq!(number(Params::default(), "top_k"), 40.0);
        assert_eq!(number(Params::transformers(), "top_k"), 50.0);
        assert_eq!(number(Params::transformers(), "penalty_last_n"), f64::from(i32::MAX));
        assert_eq!(number(Params::transformers().with("top_k", 3), "top_k"), 3.0);
        assert_eq!(number(Params::tsampler(), "penalty_repeat") as f32, 1.1);
    }
}
