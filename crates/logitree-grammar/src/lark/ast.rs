//! A Lark text as it is written. It refuses to know what names stand for.

/// A definition or a directive.
pub(super) enum Item<'t> {
    Rule(RuleItem<'t>),
    Terminal {
        name: &'t str,
        at: usize,
        body: Choice<'t>,
    },
    Ignore(Choice<'t>),
    /// `%import path.name -> alias`, one item a name.
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
    /// A definition of this name that could not be read: nothing more need be said about it.
    Broken(&'t str),
}

/// A rule and its attributes.
pub(super) struct RuleItem<'t> {
    pub(super) name: &'t str,
    pub(super) at: usize,
    pub(super) body: Choice<'t>,
    pub(super) ending: Option<Ending<'t>>,
}

/// Where a rule's text ends early.
pub(super) enum Ending<'t> {
    /// `lazy`: as soon as it can.
    Lazy,
    /// `suffix=`: with this, the first time it comes.
    Suffix(Expr<'t>),
    /// `stop=`: before this, the first time it could come.
    Stop(Expr<'t>),
}

/// Alternatives.
pub(super) struct Choice<'t> {
    pub(super) at: usize,
    pub(super) alternatives: Vec<Alternative<'t>>,
}

/// Sequences that all must match, mostly one.
pub(super) struct Alternative<'t> {
    pub(super) all: Vec<Vec<Expr<'t>>>,
}

/// One part of a sequence.
pub(super) struct Expr<'t> {
    pub(super) at: usize,
    pub(super) value: Value<'t>,
    pub(super) negated: bool,
    pub(super) times: Option<(u32, Option<u32>)>,
}

/// What a part is.
pub(super) enum Value<'t> {
    Group(Choice<'t>),
    Optional(Choice<'t>),
    Name(&'t str),
    Text {
        text: Box<str>,
        fold: bool,
    },
    Pattern {
        pattern: &'t str,
        flags: &'t str,
    },
    Range(char, char),
    /// `<...>` as it stands.
    Token(&'t str),
    Grammar(&'t str),
    /// `%json` and its schema.
    Json(&'t str),
    /// `%regex` and its JSON.
    Structured(&'t str),
    /// `%lark { ... }`.
    Nested(Vec<Item<'t>>),
}
