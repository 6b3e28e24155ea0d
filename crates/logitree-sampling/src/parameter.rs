//! Parameters of samplers: the kinds of values they take, one sampler's values, and what the table says of each.

use super::rng::Seed;
use super::whole;
use super::Breakers;
use super::SharedPieces;
use crate::{Error, ErrorKind, Result, TokenId};
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The kinds of values that parameters take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of at most 31 bits.
    Int,
    /// A whole number of at least 1, or nothing.
    OptionalInt,
    /// A number of candidates, from 0.
    Count,
    /// A finite number, stored as a float32.
    Float,
    /// A switch.
    Truth,
    /// A seed, its generator and its sequence.
    Seed,
    /// Additions to the logits of single tokens.
    Biases,
    /// DRY's sequence breakers.
    Breakers,
    /// The texts of the tokens.
    Pieces,
}

impl Kind {
    /// Whether the parameter can be read and changed between two tokens as a number.
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Count | Kind::Float | Kind::Truth)
    }

    /// The value that a number stands for.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`], naming the parameter, if it is not whole where it must be.
    fn number(self, sampler: &str, parameter: &str, value: f64) -> Result<Value> {
        Ok(match self {
            Kind::Float => Value::Float(value as f32),
            Kind::Truth => Value::Truth(whole(sampler, parameter, value)? != 0),
            Kind::Count => Value::Int(whole(sampler, parameter, value)?.max(0)),
            _ => Value::Int(whole(sampler, parameter, value)?),
        })
    }

    /// `value` as this kind holds it; `None` for a value of another kind.
    fn fit(self, value: Value) -> Option<Value> {
        match (self, value) {
            (Kind::Float, Value::Int(n)) => Some(Value::Float(n as f32)),
            (Kind::Count, Value::Int(n)) => Some(Value::Int(n.max(0))),
            (Kind::Float, value @ Value::Float(_))
            | (Kind::Int | Kind::OptionalInt, value @ Value::Int(_))
            | (Kind::OptionalInt, value @ Value::Nothing)
            | (Kind::Truth, value @ Value::Truth(_))
            | (Kind::Seed, value @ Value::Seed(_))
            | (Kind::Biases, value @ Value::Biases(_))
            | (Kind::Breakers, value @ (Value::Breakers(_) | Value::Nothing))
            | (Kind::Pieces, value @ (Value::Pieces(_) | Value::Nothing)) => Some(value),
            _ => None,
        }
    }
}

/// A parameter's value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// No value: the sampler does without.
    #[default]
    Nothing,
    /// A whole number.
    Int(i32),
    /// A number.
    Float(f32),
    /// On or off.
    Truth(bool),
    /// What a generator starts from.
    Seed(Seed),
    /// Token ids and what is added to their logits.
    Biases(Arc<[(TokenId, f32)]>),
    /// DRY's sequence breakers.
    Breakers(Breakers),
    /// The texts of the tokens.
    Pieces(SharedPieces),
}

impl Value {
    /// The number, if it is one; a switch is 0 or 1.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Value::Int(n) => Some(f64::from(n)),
            Value::Float(x) => Some(f64::from(x)),
            Value::Truth(on) => Some(f64::from(u8::from(on))),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nothing => f.write_str("None"),
            Value::Int(n) => n.fmt(f),
            Value::Float(x) => x.fmt(f),
            Value::Truth(on) => f.write_str(if *on { "True" } else { "False" }),
            Value::Seed(seed) => f.write_str(&seed.describe()),
            Value::Biases(biases) => {
                let each: Vec<String> = biases.iter().map(|(id, b)| format!("{id}: {b}")).collect();
                write!(f, "{{{}}}", each.join(", "))
            }
            Value::Breakers(breakers) => f.write_str(&breakers.describe()),
            Value::Pieces(pieces) => f.write_str(&pieces.0.describe()),
        }
    }
}

macro_rules! value_from {
    ($($of:ty => |$x:ident| $value:expr;)*) => {
        $(impl From<$of> for Value {
            fn from($x: $of) -> Self {
                $value
            }
        })*
    };
}

value_from! {
    i32 => |n| Value::Int(n);
    u32 => |n| Value::Int(i32::try_from(n).unwrap_or(i32::MAX));
    usize => |n| Value::Int(i32::try_from(n).unwrap_or(i32::MAX));
    f32 => |x| Value::Float(x);
    f64 => |x| Value::Float(x as f32);
    bool => |on| Value::Truth(on);
    Option<i32> => |n| n.map_or(Value::Nothing, Value::Int);
    Seed => |seed| Value::Seed(seed);
    Vec<(TokenId, f32)> => |biases| Value::Biases(biases.into());
    Breakers => |breakers| Value::Breakers(breakers);
    SharedPieces => |pieces| Value::Pieces(pieces);
}

/// A parameter's value where none is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DefaultValue {
    /// None: optional, or a fresh seed, no biases, no breakers.
    Nothing,
    /// A whole number.
    Int(i32),
    /// A number.
    Float(f32),
    /// On or off.
    Truth(bool),
}

impl From<DefaultValue> for Value {
    fn from(default: DefaultValue) -> Self {
        match default {
            DefaultValue::Nothing => Value::Nothing,
            DefaultValue::Int(n) => Value::Int(n),
            DefaultValue::Float(x) => Value::Float(x),
            DefaultValue::Truth(on) => Value::Truth(on),
        }
    }
}

/// How a description shows a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Positional,
    Keyword,
    /// As a keyword, unless it has its default.
    Changed,
}

/// One parameter of one sampler.
#[derive(Debug, Clone, Copy)]
pub struct ParameterRow {
    /// Its name in the sampler's constructor.
    pub name: &'static str,
    /// Its name among the keywords of a whole chain; several samplers may share it.
    pub keyword: &'static str,
    /// Other names of that keyword.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: Kind,
    /// Its value where none is given.
    pub default: DefaultValue,
    /// Whether the constructor requires it; `default` is then that of whole chains alone.
    pub required: bool,
    /// What numbers it takes.
    pub range: (Bound<f64>, Bound<f64>),
    /// What it is, in one line.
    pub doc: &'static str,
    shown: Shown,
}

impl ParameterRow {
    const fn new(
        name: &'static str,
        keyword: &'static str,
        kind: Kind,
        default: DefaultValue,
        doc: &'static str,
    ) -> Self {
        let range = (Bound::Unbounded, Bound::Unbounded);
        let shown = Shown::Positional;
        ParameterRow { name, keyword, aliases: &[], kind, default, required: false, range, doc, shown }
    }

    /// A number.
    pub(super) const fn float(
        name: &'static str,
        keyword: &'static str,
        default: f32,
        doc: &'static str,
    ) -> Self {
        ParameterRow::new(name, keyword, Kind::Float, DefaultValue::Float(default), doc)
    }

    /// A whole number.
    pub(super) const fn int(
        name: &'static str,
        keyword: &'static str,
        default: i32,
        doc: &'static str,
    ) -> Self {
        ParameterRow::new(name, keyword, Kind::Int, DefaultValue::Int(default), doc)
    }

    /// A switch, off by default.
    pub(super) const fn truth(name: &'static str, keyword: &'static str, doc: &'static str) -> Self {
        ParameterRow::new(name, keyword, Kind::Truth, DefaultValue::Truth(false), doc).changed()
    }

    /// A value that is not a number.
    pub(super) const fn other(
        name: &'static str,
        keyword: &'static str,
        kind: Kind,
        doc: &'static str,
    ) -> Self {
        ParameterRow::new(name, keyword, kind, DefaultValue::Nothing, doc)
    }

    /// How many candidates stay at least, `default` if it is not said.
    pub(super) const fn min_keep(default: i32) -> Self {
        let doc = "At least this many candidates stay.";
        let least = Bound::Included(0.0);
        ParameterRow::new("min_keep", "min_keep", Kind::Count, DefaultValue::Int(default), doc)
            .changed()
            .range(least, Bound::Unbounded)
    }

    /// The seed of a sampler that draws.
    pub(super) const fn seed() -> Self {
        let doc = "Seed of the draws; every value, including 0, is a literal seed. None takes a fresh one.";
        ParameterRow::new("seed", "seed", Kind::Seed, DefaultValue::Nothing, doc)
    }

    /// The constructor requires it.
    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Described as a keyword.
    pub(super) const fn named(mut self) -> Self {
        self.shown = Shown::Keyword;
        self
    }

    /// Described as a keyword, unless it has its default.
    pub(super) const fn changed(mut self) -> Self {
        self.shown = Shown::Changed;
        self
    }

    /// Other names of its keyword.
    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// What numbers it takes.
    pub(super) const fn range(mut self, low: Bound<f64>, high: Bound<f64>) -> Self {
        self.range = (low, high);
        self
    }

    /// Whether `name` is its keyword or another name of that.
    pub fn answers(&self, name: &str) -> bool {
        self.keyword == name || self.aliases.contains(&name)
    }

    /// `value` as this parameter holds it.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a value of another kind.
    pub(super) fn fit(&self, value: Value) -> Result<Value> {
        let shown = value.to_string();
        self.kind.fit(value).ok_or_else(|| {
            Error::new(ErrorKind::Sampling, format!("{} is {shown}", self.keyword))
                .help(format!("it takes a value of another kind: {:?}", self.kind))
        })
    }

    /// The numbers that it takes, in words, as in `above 0 to 1`; "" for any number.
    pub fn bounds(&self) -> String {
        let low = match self.range.0 {
            Bound::Included(x) => format!("from {x}"),
            Bound::Excluded(x) => format!("above {x}"),
            Bound::Unbounded => String::new(),
        };
        let high = match self.range.1 {
            Bound::Included(x) => format!("to {x}"),
            Bound::Excluded(x) => format!("below {x}"),
            Bound::Unbounded => String::new(),
        };
        [low, high].join(" ").trim().to_string()
    }

    /// Checks that a number is finite and within the range.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`], naming the parameter of this sampler.
    pub(super) fn check(&self, sampler: &str, value: &Value) -> Result<()> {
        if value.number().is_none_or(|x| x.is_finite() && self.range.contains(&x)) {
            return Ok(());
        }
        let (name, bounds) = (self.name, self.bounds());
        Err(Error::new(ErrorKind::Sampling, format!("{name} of {sampler} is {value}"))
            .help(format!("{name} must be a finite number {bounds}").trim()))
    }

    /// The value that a number stands for, in a sampler of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`], naming the parameter, if it is not whole where it must be.
    pub(super) fn number(&self, sampler: &str, value: f64) -> Result<Value> {
        self.kind.number(sampler, self.name, value)
    }

    /// How a description shows `value`; `None` for one that it leaves out.
    pub(super) fn describe(&self, value: &Value) -> Option<String> {
        match self.shown {
            Shown::Positional => (*value != Value::Nothing).then(|| value.to_string()),
            Shown::Changed if *value == Value::from(self.default) => None,
            Shown::Keyword | Shown::Changed => Some(format!("{}={value}", self.name)),
        }
    }
}

/// The most parameters that a sampler has.
const MAX_PARAMETERS: usize = 6;

/// The values of one sampler's parameters, in the order of its row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments([Value; MAX_PARAMETERS]);

impl<const N: usize> From<[Value; N]> for Arguments {
    fn from(values: [Value; N]) -> Self {
        const { assert!(N <= MAX_PARAMETERS) };
        let mut all: [Value; MAX_PARAMETERS] = Default::default();
        all.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        Arguments(all)
    }
}

impl Arguments {
    /// The value of parameter `at`.
    pub fn get(&self, at: usize) -> &Value {
        &self.0[at]
    }

    /// Sets the value of parameter `at`.
    pub fn set(&mut self, at: usize, value: Value) {
        self.0[at] = value;
    }

    /// The value of parameter `at`, as a constructor takes it.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a value of another kind, and those of [`Seed::fresh`] for a seed that is not given.
    pub(crate) fn read<T: Argument>(&self, at: usize) -> Result<T> {
        let value = &self.0[at];
        T::read(value).unwrap_or_else(|| Err(Error::new(ErrorKind::Sampling, format!("a value is {value}"))))
    }
}

/// What constructors of samplers take.
pub(crate) trait Argument: Sized {
    /// The value as this type; `None` for a value of another kind.
    fn read(value: &Value) -> Option<Result<Self>>;
}

macro_rules! argument {
    ($($of:ty: $($pattern:pat => $value:expr),+;)*) => {
        $(impl Argument for $of {
            fn read(value: &Value) -> Option<Result<Self>> {
                match value {
                    $($pattern => Some($value),)+
                    _ => None,
                }
            }
        })*
    };
}

argument! {
    i32: Value::Int(n) => Ok(*n);
    usize: Value::Int(n) => Ok(usize::try_from(*n).unwrap_or(0));
    f32: Value::Float(x) => Ok(*x);
    bool: Value::Truth(on) => Ok(*on);
    Option<i32>: Value::Int(n) => Ok(Some(*n)), Value::Nothing => Ok(None);
    Seed: Value::Seed(seed) => Ok(*seed), Value::Nothing => Seed::fresh();
    Arc<[(TokenId, f32)]>: Value::Biases(biases) => Ok(Arc::clone(biases)), Value::Nothing => Ok([].into());
    Breakers: Value::Breakers(breakers) => Ok(breakers.clone()), Value::Nothing => Ok(Breakers::default());
    SharedPieces: Value::Pieces(pieces) => Ok(pieces.clone()), Value::Nothing => {
        Err(Error::new(ErrorKind::Sampling, "the sampler needs to know the tokens").help("pass vocabulary=..."))
    };
}

/// Implements [`FromArguments`](crate::registry::FromArguments) by the constructor `new`, which takes the row's parameters in
/// their order, and by expressions that give their values again.
macro_rules! arguments {
    ($sampler:ident, $this:ident => $($value:expr),* $(; $($more:tt)*)?) => {
        impl $crate::registry::FromArguments for $sampler {
            fn from_arguments(arguments: &$crate::Arguments) -> $crate::Result<Self> {
                let mut at = 0..;
                let mut next = || at.next().unwrap_or_default();
                $crate::registry::Made::made($sampler::new(
                    $($crate::parameter::arguments!(@next $value, arguments.read(next())?)),*
                ))
            }

            fn arguments(&self) -> $crate::Arguments {
                let $this = self;
                [$($value.into()),*].into()
            }

            $($($more)*)?
        }
    };
    (@next $value:expr, $next:expr) => {
        $next
    };
}
pub(crate) use arguments;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_python_writes_them() {
        let shown = |value: Value| value.to_string();
        assert_eq!(shown(0.8.into()), "0.8");
        assert_eq!(shown(40.into()), "40");
        assert_eq!(shown(true.into()), "True");
        assert_eq!(shown(None.into()), "None");
        assert_eq!(shown(vec![(3, f32::NEG_INFINITY), (5, 1.5)].into()), "{3: -inf, 5: 1.5}");
    }

    #[test]
    fn a_value_of_another_kind_does_not_fit() {
        let k = ParameterRow::int("k", "top_k", 40, "");
        assert_eq!(k.fit(3.into()).unwrap(), Value::Int(3));
        assert!(k.fit(3.5.into()).unwrap_err().message.contains("top_k is 3.5"));
        let p = ParameterRow::float("p", "top_p", 1.0, "");
        assert_eq!(p.fit(1.into()).unwrap(), Value::Float(1.0));
        assert!(p.fit(true.into()).is_err());
    }
}
