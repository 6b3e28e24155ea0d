//! Context-free rules as states of the recogniser.
//!
//! ```text
//! 0            the end of a rule: accepts, without edges
//! 1 + node     before this node of a rule
//! above        made on demand: counted repetitions, states without the empty string
//! 1 << 30      and above: states of intersections
//! 1 << 31      and above: states of JSON values
//! ```
//!
//! A counted repetition is a callee whose states are its counts: it is never unrolled. Nullable iterations
//! count only if they are not empty, so that text reaches every count.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::{ExprId, Exprs, Tag, EMPTY};
use super::super::json_schema::Schema;
use super::super::rules::{written_name, Rule, RuleBody, Rules, TokenName, TokenNames};
use super::embedded::{self, Embedded};
use super::lower::lower;
use super::lowered::{LoweredId, LoweredKind, LoweredRules, TokenSets};
use super::productivity::Productivity;
use super::{Edge, LexemeTarget, SameAfter, StateEdges, StateId, StateSource};
use crate::{Error, ErrorKind, Result};

/// A source of JSON values for [`RulesSource`]. All its states are at least `1 << 31`.
pub trait ValueSource: StateSource {
    /// The start state for a value of `schema`, the same for the same schema; `None` if no value is valid. The tokens that the
    /// schema's values are written with are numbered in `sets`.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the schema cannot be satisfied or is not supported; [`ErrorKind::Limit`] if
    /// it is too large.
    fn root(
        &mut self,
        schema: &Arc<Schema>,
        sets: &mut TokenSets,
        exprs: &mut Exprs,
    ) -> Result<Option<StateId>>;

    /// Whether a value of `schema` may be the empty text; [`ValueSource::root`] has the texts that are not.
    ///
    /// # Errors
    /// As [`ValueSource::root`], after which it is asked.
    fn may_be_empty(&mut self, _schema: &Arc<Schema>, _exprs: &mut Exprs) -> Result<bool> {
        Ok(false)
    }

    /// A source of the same kind without a schema.
    fn fresh(&self) -> Box<dyn ValueSource>;

    /// What is wrong with a schema under which no value is valid.
    fn contradiction(&self, schema: &Arc<Schema>) -> Error;
}

/// The end of a rule.
const END: StateId = StateId(0);
/// The first state of intersections.
const EMBEDDED: StateId = embedded::FIRST;
/// The first state of JSON values.
const JSON: StateId = StateId(1 << 31);

/// A state that is made on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum DerivedState {
    /// Between two iterations of an unbounded repetition.
    Loop(LoweredId),
    /// After this many iterations of a counted repetition.
    Round(LoweredId, u32),
    /// The state without the empty string.
    NonEmpty(StateId),
    /// After a part that has a temperature. It waits for the part, so that all that runs inside has it as a caller.
    Tempered(LoweredId),
}

/// How a repetition is run.
enum RepeatKind {
    /// Unbounded from zero: `{0,}`.
    Any,
    /// Unbounded from one: `{1,}`.
    Some,
    /// Optional: `{0,1}`.
    Optional,
    /// Counted.
    Counted,
}

/// A [`StateSource`] of rules.
pub struct RulesSource {
    nodes: LoweredRules,
    productivity: Productivity,
    /// The state after each node.
    next: Vec<StateId>,
    /// For each node whether a non-empty string leads from it to the end of its rule.
    reaches: Vec<bool>,
    ids: FxHashMap<DerivedState, StateId>,
    made: Vec<DerivedState>,
    json: Option<Box<dyn ValueSource>>,
    embedded: Embedded,
    start: StateId,
}

impl RulesSource {
    /// The states of `rules`; `json` provides those of schemas.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the start matches no finite string, for a rule that does not exist, or for
    /// a schema that cannot be satisfied; [`ErrorKind::Limit`] for what is too large.
    pub fn new(rules: &Rules, exprs: &mut Exprs, json: Option<Box<dyn ValueSource>>) -> Result<RulesSource> {
        let values = json.as_ref().map(|json| json.fresh());
        if let Some(source) = RulesSource::productive(rules, exprs, json)? {
            return Ok(source);
        }
        let Rule { name, body, .. } = &rules.rules[rules.start.index()];
        if let RuleBody::Both(_) = body {
            return Err(Error::new(ErrorKind::Constraint, "the intersection is empty")
                .help("no text is allowed by both sides"));
        }
        // The text needs a value, and there is none.
        if let Some(mut values) = values {
            let mut open: Vec<&RuleBody> = rules.rules.iter().rev().map(|rule| &rule.body).collect();
            while let Some(body) = open.pop() {
                match body {
                    RuleBody::Json(schema)
                        if values.root(schema, &mut TokenSets::default(), exprs)?.is_none()
                            && !values.may_be_empty(schema, exprs)? =>
                    {
                        return Err(values.contradiction(schema));
                    }
                    RuleBody::Seq(parts) | RuleBody::Alt(parts) => open.extend(parts.iter().rev()),
                    RuleBody::Repeat { of, .. } => open.push(of),
                    _ => {}
                }
            }
        }
        Err(match body {
            RuleBody::Lexeme(_) => nothing_matches(written_name(name), "the pattern")
                .help("some part of it excludes every character, or contradicts another part"),
            _ => nothing_matches(written_name(name), "the grammar").help(
                "every way through it leads back to itself, or has a part that matches nothing, such as a choice of none",
            ),
        })
    }

    /// As [`RulesSource::new`]; `None` if the start matches no finite string.
    pub(super) fn productive(
        rules: &Rules,
        exprs: &mut Exprs,
        mut json: Option<Box<dyn ValueSource>>,
    ) -> Result<Option<RulesSource>> {
        let mut embedded = Embedded::default();
        let nodes = lower(rules, exprs, json.as_deref_mut(), &mut embedded)?;
        let productivity = Productivity::of(&nodes, exprs)?;
        let root = nodes.roots[rules.start.index()].expect("the start is never copied away");
        if !productivity.productive[root.index()] {
            return Ok(None);
        }
        if nodes.nodes.len() >= EMBEDDED.index() / 2 {
            return Err(Error::new(ErrorKind::Limit, "the rules have too many parts"));
        }
        let mut source = RulesSource {
            next: vec![END; nodes.nodes.len()],
            reaches: Vec::new(),
            ids: FxHashMap::default(),
            made: Vec::new(),
            start: before(root),
            nodes,
            productivity,
            json,
            embedded,
        };
        source.link()?;
        source.find_reaches();
        Ok(Some(source))
    }

    /// Whether the empty text matches.
    pub(super) fn is_nullable(&self) -> bool {
        self.node_at(self.start).is_some_and(|root| self.productivity.nullable[root.index()])
    }

    /// The start state.
    pub fn start(&self) -> StateId {
        self.start
    }

    /// The sets of whole tokens, indexed by [`Edge::Tokens`].
    pub fn token_sets(&self) -> &[TokenNames] {
        self.nodes.token_sets.all()
    }

    /// Computes the state after each node, parents before children.
    fn link(&mut self) -> Result<()> {
        for node in (0..self.next.len()).rev().map(LoweredId::new) {
            let after = self.next[node.index()];
            match &self.nodes.nodes[node.index()].body {
                LoweredKind::Seq(parts) => {
                    for pair in parts.windows(2) {
                        self.next[pair[0].index()] = before(pair[1]);
                    }
                    if let Some(&last) = parts.last() {
                        self.next[last.index()] = after;
                    }
                }
                LoweredKind::Alt(parts) => parts.iter().for_each(|&part| self.next[part.index()] = after),
                &LoweredKind::Repeat { of, .. } => {
                    self.next[of.index()] = match self.rounds(node) {
                        RepeatKind::Any => before(node),
                        RepeatKind::Some => self.make(DerivedState::Loop(node))?,
                        RepeatKind::Optional => after,
                        RepeatKind::Counted => END,
                    };
                }
                // Callees, which end at `END`.
                LoweredKind::Tempered(..)
                | LoweredKind::Lexeme(_)
                | LoweredKind::Counted(..)
                | LoweredKind::Ref(_)
                | LoweredKind::Tokens(_)
                | LoweredKind::Json(_)
                | LoweredKind::Embedded(_) => {}
            }
        }
        Ok(())
    }

    /// How the repetition `node` is run.
    fn rounds(&self, node: LoweredId) -> RepeatKind {
        let (_, min, max) = self.repetition(node);
        match (min, max) {
            (0, None) => RepeatKind::Any,
            (1, None) => RepeatKind::Some,
            (0, Some(1)) => RepeatKind::Optional,
            _ => RepeatKind::Counted,
        }
    }

    /// The repeated node and its bounds; the minimum is 0 if the node is nullable.
    fn repetition(&self, node: LoweredId) -> (LoweredId, u32, Option<u32>) {
        let LoweredKind::Repeat { of, min, max } = self.nodes.nodes[node.index()].body else {
            unreachable!("only repetitions are asked")
        };
        (of, if self.productivity.nullable[of.index()] { 0 } else { min }, max)
    }

    /// Computes `reaches`: follows nullable nodes to one that is not.
    fn find_reaches(&mut self) {
        let mut known: Vec<Option<bool>> =
            self.productivity.nonempty.iter().map(|&says| says.then_some(true)).collect();
        let mut path = Vec::new();
        for node in (0..known.len()).map(LoweredId::new) {
            let mut at = Some(node);
            let reaches = loop {
                let Some(node) = at else { break false };
                if let Some(known) = known[node.index()] {
                    break known;
                }
                path.push(node);
                // A repetition that is entered again from its end matches no more than its iteration.
                known[node.index()] = Some(false);
                if !self.productivity.nullable[node.index()] {
                    break false;
                }
                at = self.node_at(self.next[node.index()]);
            };
            path.drain(..).for_each(|node| known[node.index()] = Some(reaches));
        }
        self.reaches = known.into_iter().map(|known| known == Some(true)).collect();
    }

    /// The node that `state` precedes; for a loop the repetition itself.
    fn node_at(&self, state: StateId) -> Option<LoweredId> {
        match self.made_at(state) {
            Some(DerivedState::Loop(node)) => Some(node),
            Some(DerivedState::Round(..) | DerivedState::NonEmpty(_) | DerivedState::Tempered(_)) => None,
            None => {
                let node = state.index().checked_sub(1).filter(|&node| node < self.next.len());
                node.map(LoweredId::new)
            }
        }
    }

    /// The description of a state made on demand.
    fn made_at(&self, state: StateId) -> Option<DerivedState> {
        self.made.get(state.index().checked_sub(1 + self.next.len())?).copied()
    }

    /// The id of a state made on demand.
    fn make(&mut self, made: DerivedState) -> Result<StateId> {
        if let Some(&state) = self.ids.get(&made) {
            return Ok(state);
        }
        let state = StateId::new(1 + self.next.len() + self.made.len());
        if state >= EMBEDDED {
            return Err(Error::new(ErrorKind::Limit, "the rules have too many states"));
        }
        self.ids.insert(made, state);
        self.made.push(made);
        Ok(state)
    }

    /// `state` minus the empty string, or `None` if that is empty.
    fn non_empty(&mut self, state: StateId) -> Result<Option<StateId>> {
        if state >= EMBEDDED {
            return Ok(Some(state));
        }
        if state == END {
            return Ok(None);
        }
        let says = match self.made_at(state) {
            None => self.reaches[state.index() - 1],
            Some(DerivedState::Loop(node)) => self.productivity.nonempty[node.index()] || self.follows(node),
            Some(DerivedState::Round(..)) => true,
            Some(DerivedState::NonEmpty(_)) => return Ok(Some(state)),
            Some(DerivedState::Tempered(node)) => self.follows(node),
        };
        if says {
            self.make(DerivedState::NonEmpty(state)).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Whether a non-empty string leads from after `node` to the end of its rule.
    fn follows(&self, node: LoweredId) -> bool {
        self.node_at(self.next[node.index()]).is_some_and(|next| self.reaches[next.index()])
    }

    /// Whether `callee` accepts the empty string.
    fn may_be_empty(&self, callee: StateId) -> bool {
        match (self.node_at(callee), self.made_at(callee)) {
            (Some(node), _) => self.productivity.nullable[node.index()],
            (None, Some(DerivedState::Round(node, count))) => count >= self.repetition(node).1,
            _ => callee == END,
        }
    }

    /// The edges before `node`.
    fn node_edges(&mut self, node: LoweredId) -> Result<Vec<Edge>> {
        let next = self.next[node.index()];
        Ok(match self.nodes.nodes[node.index()].body {
            LoweredKind::Lexeme(expr) => vec![Edge::Lexeme { expr, to: LexemeTarget::State(next) }],
            LoweredKind::Counted(expr, most) => vec![Edge::Counted { expr, to: next, most }],
            LoweredKind::Tokens(set) => vec![Edge::Tokens { set, to: next }],
            LoweredKind::Json(state) | LoweredKind::Embedded(state) => {
                state.map(|callee| Edge::Call { callee, back: next }).into_iter().collect()
            }
            LoweredKind::Ref(rule) => {
                let root = self.nodes.roots[rule.index()].expect("what is referred to has a node");
                vec![Edge::Call { callee: before(root), back: next }]
            }
            LoweredKind::Tempered(of, _) => {
                let back = self.make(DerivedState::Tempered(node))?;
                vec![Edge::Call { callee: before(of), back }]
            }
            LoweredKind::Seq(ref parts) => {
                vec![Edge::Jump { to: parts.first().map_or(next, |&part| before(part)) }]
            }
            LoweredKind::Alt(ref parts) => {
                let productive = parts.iter().filter(|&&part| self.productivity.productive[part.index()]);
                productive.map(|&part| Edge::Jump { to: before(part) }).collect()
            }
            LoweredKind::Repeat { of, .. } => {
                let mut edges = Vec::new();
                let says = self.productivity.productive[of.index()];
                match self.rounds(node) {
                    RepeatKind::Counted if says && !self.productivity.nonempty[of.index()] => {
                        edges.push(Edge::Jump { to: next });
                    }
                    RepeatKind::Counted if says => {
                        let callee = self.make(DerivedState::Round(node, 0))?;
                        edges.push(Edge::Call { callee, back: next });
                    }
                    rounds => {
                        edges.extend(says.then_some(Edge::Jump { to: before(of) }));
                        let none = !matches!(rounds, RepeatKind::Some);
                        edges.extend(none.then_some(Edge::Jump { to: next }));
                    }
                }
                edges
            }
        })
    }

    /// The edges after `count` iterations.
    fn round(&mut self, node: LoweredId, count: u32) -> Result<StateEdges> {
        let (of, min, max) = self.repetition(node);
        let mut edges = Vec::new();
        // Without a maximum, all counts past the minimum are equivalent.
        if max.is_none_or(|max| count < max) {
            let callee = before(of);
            let callee = match self.productivity.nullable[of.index()] {
                true => self.non_empty(callee)?,
                false => Some(callee),
            };
            let rounds = count.saturating_add(1).min(max.unwrap_or(min));
            let back = self.make(DerivedState::Round(node, rounds))?;
            edges.extend(callee.map(|callee| Edge::Call { callee, back }));
        }
        Ok(StateEdges { accepting: count >= min, edges })
    }

    /// The edges of `state` restricted to non-empty strings.
    fn non_empty_edges(&mut self, state: StateId, exprs: &mut Exprs) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        for edge in self.expand(state, exprs)?.edges {
            match edge {
                Edge::Lexeme { expr, to: LexemeTarget::State(to) } | Edge::Counted { expr, to, .. } => {
                    let empty = exprs.is_complete(expr);
                    let expr = if empty { without_empty(exprs, expr)? } else { expr };
                    if exprs.can_continue(expr)? {
                        edges.push(match edge {
                            Edge::Counted { most, .. } => Edge::Counted { expr, to, most },
                            _ => Edge::Lexeme { expr, to: LexemeTarget::State(to) },
                        });
                    }
                    if empty {
                        edges.extend(self.non_empty(to)?.map(|to| Edge::Jump { to }));
                    }
                }
                Edge::Call { callee, back } => {
                    let empty = self.may_be_empty(callee);
                    edges.extend(self.non_empty(callee)?.map(|callee| Edge::Call { callee, back }));
                    if empty {
                        edges.extend(self.non_empty(back)?.map(|to| Edge::Jump { to }));
                    }
                }
                Edge::Jump { to } => edges.extend(self.non_empty(to)?.map(|to| Edge::Jump { to })),
                other => edges.push(other),
            }
        }
        Ok(edges)
    }

    /// The node that a state belongs to.
    fn about(&self, mut state: StateId) -> Option<LoweredId> {
        loop {
            match self.made_at(state) {
                Some(DerivedState::NonEmpty(of)) => state = of,
                Some(
                    DerivedState::Loop(node) | DerivedState::Round(node, _) | DerivedState::Tempered(node),
                ) => return Some(node),
                None => return self.node_at(state),
            }
        }
    }

    /// The source of JSON states.
    fn values(&mut self, state: StateId) -> Result<&mut (dyn ValueSource + 'static)> {
        match self.json.as_deref_mut() {
            Some(json) => Ok(json),
            None => Err(Error::new(ErrorKind::Constraint, format!("state {} belongs to no schema", state.0))),
        }
    }
}

/// The state before a node.
fn before(node: LoweredId) -> StateId {
    StateId::new(1 + node.index())
}

/// `expr` minus the empty string; it has no tags.
fn without_empty(exprs: &mut Exprs, expr: ExprId) -> Result<ExprId> {
    let some = exprs.not(EMPTY)?;
    exprs.and(&[expr, some])
}

impl StateSource for RulesSource {
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges> {
        if state >= JSON {
            return self.values(state)?.expand(state, exprs);
        }
        if state >= EMBEDDED {
            return self.embedded.expand(state, exprs);
        }
        if state == END {
            return Ok(StateEdges { accepting: true, edges: Vec::new() });
        }
        match self.made_at(state) {
            None => Ok(StateEdges {
                accepting: false,
                edges: self.node_edges(LoweredId::new(state.index() - 1))?,
            }),
            Some(DerivedState::Loop(node)) => {
                let (of, ..) = self.repetition(node);
                let edges = vec![Edge::Jump { to: before(of) }, Edge::Jump { to: self.next[node.index()] }];
                Ok(StateEdges { accepting: false, edges })
            }
            Some(DerivedState::Round(node, count)) => self.round(node, count),
            Some(DerivedState::Tempered(node)) => {
                let edges = vec![Edge::Jump { to: self.next[node.index()] }];
                Ok(StateEdges { accepting: false, edges })
            }
            // An iteration is never empty; only stopping here is excluded.
            Some(DerivedState::NonEmpty(of)) if matches!(self.made_at(of), Some(DerivedState::Round(..))) => {
                Ok(StateEdges { accepting: false, ..self.expand(of, exprs)? })
            }
            Some(DerivedState::NonEmpty(of)) => {
                Ok(StateEdges { accepting: false, edges: self.non_empty_edges(of, exprs)? })
            }
        }
    }

    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        if (EMBEDDED..JSON).contains(&state) {
            return self.embedded.target(state, edge, tag, exprs);
        }
        self.values(state)?.target(state, edge, tag, exprs)
    }

    fn read(&mut self, state: StateId, byte: u8) -> Result<StateId> {
        self.values(state)?.read(state, byte)
    }

    fn finish(&mut self, state: StateId, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        self.values(state)?.finish(state, tag, exprs)
    }

    fn finish_any(&mut self, state: StateId, tag: Tag, exprs: &mut Exprs) -> Result<(StateId, SameAfter)> {
        self.values(state)?.finish_any(state, tag, exprs)
    }

    fn is_same_lexeme(&self, state: StateId) -> bool {
        state < JSON || self.json.as_ref().is_some_and(|json| json.is_same_lexeme(state))
    }

    fn counts_tokens(&self) -> bool {
        self.nodes.nodes.iter().any(|node| matches!(node.body, LoweredKind::Counted(..)))
    }

    fn has_temperatures(&self) -> bool {
        self.nodes.nodes.iter().any(|node| matches!(node.body, LoweredKind::Tempered(..)))
    }

    fn temperature(&self, state: StateId) -> Option<f32> {
        let mut at = self.made_at(state)?;
        loop {
            match at {
                DerivedState::NonEmpty(of) => at = self.made_at(of)?,
                DerivedState::Tempered(node) => match self.nodes.nodes[node.index()].body {
                    LoweredKind::Tempered(_, temperature) => return Some(temperature),
                    _ => return None,
                },
                DerivedState::Loop(_) | DerivedState::Round(..) => return None,
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.json.as_ref().map_or(0, |json| json.byte_size()) + self.embedded.byte_size()
    }

    fn describe(&self, state: StateId) -> String {
        if let (true, Some(json)) = (state >= JSON, &self.json) {
            return json.describe(state);
        }
        if (EMBEDDED..JSON).contains(&state) {
            return self.embedded.describe(state);
        }
        match self.about(state) {
            None => "the end of a rule".into(),
            Some(node) => {
                let node = &self.nodes.nodes[node.index()];
                match (&node.said, &node.body) {
                    (Some(said), _) => said.to_string(),
                    (None, LoweredKind::Tokens(set)) => describe_tokens(&self.token_sets()[*set as usize]),
                    _ => match written_name(&self.nodes.names[node.rule.index()]) {
                        Some(name) => format!("part of the rule {name:?}"),
                        None => "more of the grammar".into(),
                    },
                }
            }
        }
    }
}

/// The error for a rule that matches no text; without a name it is `unnamed`.
fn nothing_matches(name: Option<&str>, unnamed: &str) -> Error {
    let error = |what: &str| Error::new(ErrorKind::Constraint, format!("no finite text matches {what}"));
    match name {
        Some(name) => error(&format!("rule {name:?}")).at(format!("rule {name:?}")),
        None => error(unnamed),
    }
}

/// A few of a set's tokens by name.
fn describe_tokens(set: &TokenNames) -> String {
    let names = set.tokens.iter().take(4).map(|name| match name {
        TokenName::Id(id) => format!("<[{id}]>"),
        TokenName::Text(text) => text.clone(),
    });
    let mut names: Vec<String> = names.collect();
    if set.tokens.len() > names.len() {
        names.push("...".into());
    }
    let all = if set.negated { "any token but" } else { "the token" };
    format!("{all} {}", names.join(", "))
}
