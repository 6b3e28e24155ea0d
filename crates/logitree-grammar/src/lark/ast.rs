//! The syntax tree of a Lark text, names unresolved.

/// A definition or a directive.
pub(super) enum Item<'t> {
    Rule(RuleItem<'t>),
    Terminal {
        name: &'t str,
        at: usize,
        body: Choice<'t>,
    },
    Ignore(Choice<'t>),
    /// `%import path.name -> alias`, one item per name.
    Import {
        path: &'t str,
        name: &'t str,
        alias: &'t str,
        at: usize,
    },
    /// `%llguidance` and its JSON.
    Options {
        json: &'t str,
        at: usize,
    },
    /// A definition of this name that could not be read; its problem is reported.
    Broken(&'t str),
}

/// A rule and its attributes.
pub(super) struct RuleItem<'t> {
    pub(super) name: &'t str,
    pub(super) at: usize,
    /// Whether it is `name::_`, a rule for each value that it is used with.
    pub(super) is_parametric: bool,
    pub(super) body: Choice<'t>,
    pub(super) attributes: Attributes<'t>,
}

/// The attributes of a rule.
#[derive(Default)]
pub(super) struct Attributes<'t> {
    pub(super) ending: Option<Ending<'t>>,
    /// Maximum number of tokens, and where it is written.
    pub(super) max_tokens: Option<(u32, usize)>,
    /// The name of what it captures; empty: the rule's.
    pub(super) capture: Option<String>,
    /// The name of what ends it.
    pub(super) end_capture: Option<String>,
    /// The temperature at which it is sampled.
    pub(super) temperature: Option<f32>,
}

/// The value of a parameter, by that of the rule that uses it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Parameter {
    Own,
    Number(u64),
    Set(u32),
    Clear(u32),
    And(u64),
    Or(u64),
    /// Saturating.
    Increment(Bits),
    /// Saturating.
    Decrement(Bits),
}

/// The bits of a number from one to before another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bits {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// A condition on a parameter.
#[derive(Debug)]
pub(super) enum Condition {
    True,
    /// Of the number that the bits are.
    Value(Bits, Compared, u64),
    /// Of how many of the bits are set.
    Count(Bits, Compared, u64),
    All(Box<Condition>, Box<Condition>),
    Any(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

/// How numbers are compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compared {
    Equal,
    Unequal,
    Less,
    NotMore,
    More,
    NotLess,
}

/// Where the text of a rule ends early.
pub(super) enum Ending<'t> {
    /// `lazy`: as early as possible.
    Lazy,
    /// `suffix=`: after the first occurrence of this.
    Suffix(Expr<'t>),
    /// `stop=`: before the first possible occurrence of this.
    Stop(Expr<'t>),
}

/// Alternatives.
pub(super) struct Choice<'t> {
    pub(super) at: usize,
    pub(super) alternatives: Vec<Alternative<'t>>,
}

/// Sequences that must all match; usually one.
pub(super) struct Alternative<'t> {
    pub(super) all: Vec<Vec<Expr<'t>>>,
    /// What the rule's parameter must fulfil, and where that is said.
    pub(super) condition: Option<(Condition, usize)>,
}

/// One part of a sequence.
pub(super) struct Expr<'t> {
    pub(super) at: usize,
    pub(super) value: Value<'t>,
    pub(super) negated: bool,
    pub(super) times: Option<(u32, Option<u32>)>,
}

/// The kind of a part.
pub(super) enum Value<'t> {
    Group(Choice<'t>),
    Optional(Choice<'t>),
    Name(&'t str),
    /// A rule with this value of its parameter.
    Instance(&'t str, Parameter),
    Text {
        text: Box<str>,
        fold: bool,
    },
    Pattern {
        pattern: &'t str,
        flags: &'t str,
    },
    Range(char, char),
    /// `<...>`, unparsed.
    Token(&'t str),
    Grammar(&'t str),
    /// `%json` and its schema.
    Json(&'t str),
    /// `%regex` and its JSON.
    Structured(&'t str),
    /// `%lark { ... }`.
    Nested(Vec<Item<'t>>),
}
