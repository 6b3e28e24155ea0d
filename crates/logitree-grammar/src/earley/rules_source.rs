//! Context-free rules as states of the machine. It refuses to know what the machine makes of them.
//!
//! ```text
//! 0            the end of a rule: accepts, nothing follows
//! 1 + piece    before this piece of a rule
//! after these  made when they are asked for: repetitions with their count, states that must not say the empty text
//! 1 << 31      and above: states of JSON values
//! ```
//!
//! A repetition that counts is a callee of its own, whose state is the number of rounds: it is never unrolled. Rounds
//! that may be empty are counted only where they are not, so that every count is reached by text.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::{ExprId, Exprs, Tag, EMPTY};
use super::super::json_schema::Schema;
use super::super::rules::{Node, Rule, Rules, TokenName, TokenSet};
use super::fold::fold;
use super::live::Live;
use super::pieces::{Body, PieceId, Pieces};
use super::{Edge, Edges, Source, StateId, To};
use crate::{Error, ErrorKind, Result};

/// JSON values for [`RulesSource`]: a source whose states are all at least `1 << 31`.
pub trait Values: Source {
    /// The state that a value of `schema` starts from, the same for the same schema; `None` if no value is valid.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the schema cannot be honoured, [`ErrorKind::Limit`] if it is too large.
    fn root(&mut self, schema: &Arc<Schema>, exprs: &mut Exprs) -> Result<Option<StateId>>;
}

/// The end of a rule.
const END: StateId = 0;
/// The first state of JSON values.
const JSON: StateId = 1 << 31;

/// A state that is made when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    /// Between two rounds of a repetition without end that was entered.
    Loop(PieceId),
    /// After so many rounds of a repetition that counts.
    Round(PieceId, u32),
    /// As the state, but for the empty text.
    NonEmpty(StateId),
}

/// How a repetition is run.
enum Rounds {
    /// Any number: `{0,}`.
    Any,
    /// One at least: `{1,}`.
    Some,
    /// One at most: `{0,1}`.
    Optional,
    /// Counted.
    Counted,
}

/// A [`Source`] of rules.
pub struct RulesSource {
    pieces: Pieces,
    live: Live,
    /// The state after each piece.
    next: Vec<StateId>,
    /// For each state of a piece whether some text that is not empty leads from it to the end of its rule.
    reaches: Vec<bool>,
    ids: FxHashMap<Made, StateId>,
    made: Vec<Made>,
    json: Option<Box<dyn Values>>,
    start: StateId,
}

impl RulesSource {
    /// The states of `rules`; `json` gives those of schemas.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if no finite text follows from the start, if a rule is not there, or for a schema that
    /// cannot be honoured; [`ErrorKind::Limit`] for what is too large.
    pub fn new(rules: &Rules, exprs: &mut Exprs, mut json: Option<Box<dyn Values>>) -> Result<RulesSource> {
        let pieces = fold(rules, exprs, json.as_deref_mut())?;
        let live = Live::of(&pieces, exprs)?;
        let root = pieces.roots[rules.start].expect("the start is never copied away");
        if !live.productive[root] {
            let Rule { name, body } = &rules.rules[rules.start];
            if let Node::Json(_) = body {
                let message = "no value is valid under the schema: what it asks for contradicts itself";
                return Err(Error::new(ErrorKind::Constraint, message)
                    .help("a value may be impossible, and be required all the same"));
            }
            return Err(Error::new(ErrorKind::Constraint, format!("no finite text matches rule {name:?}"))
                .at(format!("rule {name:?}"))
                .help("give it a way to end that does not lead back to itself"));
        }
        if pieces.pieces.len() >= (JSON / 2) as usize {
            return Err(Error::new(ErrorKind::Limit, "the rules have too many parts"));
        }
        let mut source = RulesSource {
            next: vec![END; pieces.pieces.len()],
            reaches: Vec::new(),
            ids: FxHashMap::default(),
            made: Vec::new(),
            start: before(root),
            pieces,
            live,
            json,
        };
        source.link()?;
        source.find_reaches();
        Ok(source)
    }

    /// Where the start rule begins.
    pub fn start(&self) -> StateId {
        self.start
    }

    /// The sets of whole tokens; their places are the numbers in [`Edge::Tokens`].
    pub fn token_sets(&self) -> &[TokenSet] {
        &self.pieces.token_sets
    }

    /// Says of each piece what follows it. A piece stands after its children, so the last come first.
    fn link(&mut self) -> Result<()> {
        for piece in (0..self.next.len()).rev() {
            let after = self.next[piece];
            match &self.pieces.pieces[piece].body {
                Body::Seq(parts) => {
                    for pair in parts.windows(2) {
                        self.next[pair[0]] = before(pair[1]);
                    }
                    if let Some(&last) = parts.last() {
                        self.next[last] = after;
                    }
                }
                Body::Alt(parts) => parts.iter().for_each(|&part| self.next[part] = after),
                &Body::Repeat { of, .. } => {
                    self.next[of] = match self.rounds(piece) {
                        Rounds::Any => before(piece),
                        Rounds::Some => self.make(Made::Loop(piece))?,
                        Rounds::Optional => after,
                        Rounds::Counted => END,
                    };
                }
                Body::Lexeme(_) | Body::Ref(_) | Body::Tokens(_) | Body::Json(_) => {}
            }
        }
        Ok(())
    }

    /// How the repetition `piece` is run.
    fn rounds(&self, piece: PieceId) -> Rounds {
        let (_, min, max) = self.repetition(piece);
        match (min, max) {
            (0, None) => Rounds::Any,
            (1, None) => Rounds::Some,
            (0, Some(1)) => Rounds::Optional,
            _ => Rounds::Counted,
        }
    }

    /// What is repeated, and how often: from 0 times where a round may be empty.
    fn repetition(&self, piece: PieceId) -> (PieceId, u32, Option<u32>) {
        let Body::Repeat { of, min, max } = self.pieces.pieces[piece].body else {
            unreachable!("only repetitions are asked")
        };
        (of, if self.live.nullable[of] { 0 } else { min }, max)
    }

    /// Follows what may be empty from every piece to one that need not be.
    fn find_reaches(&mut self) {
        let mut known: Vec<Option<bool>> =
            self.live.nonempty.iter().map(|&says| says.then_some(true)).collect();
        let mut path = Vec::new();
        for piece in 0..known.len() {
            let mut at = Some(piece);
            let reaches = loop {
                let Some(piece) = at else { break false };
                if let Some(known) = known[piece] {
                    break known;
                }
                path.push(piece);
                // A repetition that is entered again from its end says no more than its round did.
                known[piece] = Some(false);
                if !self.live.nullable[piece] {
                    break false;
                }
                at = self.piece_at(self.next[piece]);
            };
            path.drain(..).for_each(|piece| known[piece] = Some(reaches));
        }
        self.reaches = known.into_iter().map(|known| known == Some(true)).collect();
    }

    /// The piece that `state` stands before; the repetition itself for its loop.
    fn piece_at(&self, state: StateId) -> Option<PieceId> {
        match self.made_at(state) {
            Some(Made::Loop(piece)) => Some(piece),
            Some(Made::Round(..) | Made::NonEmpty(_)) => None,
            None => (state as usize).checked_sub(1).filter(|&piece| piece < self.next.len()),
        }
    }

    /// What `state` was made for.
    fn made_at(&self, state: StateId) -> Option<Made> {
        self.made.get((state as usize).checked_sub(1 + self.next.len())?).copied()
    }

    /// The number of a state that is made.
    fn make(&mut self, made: Made) -> Result<StateId> {
        if let Some(&state) = self.ids.get(&made) {
            return Ok(state);
        }
        let state = (1 + self.next.len() + self.made.len()) as StateId;
        if state >= JSON {
            return Err(Error::new(ErrorKind::Limit, "the rules have too many states"));
        }
        self.ids.insert(made, state);
        self.made.push(made);
        Ok(state)
    }

    /// The state that says what `state` does, but for the empty text; none if that is nothing.
    fn non_empty(&mut self, state: StateId) -> Result<Option<StateId>> {
        if state >= JSON {
            return Ok(Some(state));
        }
        if state == END {
            return Ok(None);
        }
        let says = match self.made_at(state) {
            None => self.reaches[state as usize - 1],
            Some(Made::Loop(piece)) => self.live.nonempty[piece] || self.follows(piece),
            Some(Made::Round(..)) => true,
            Some(Made::NonEmpty(_)) => return Ok(Some(state)),
        };
        if says {
            self.make(Made::NonEmpty(state)).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Whether some text that is not empty leads from after `piece` to the end of its rule.
    fn follows(&self, piece: PieceId) -> bool {
        self.piece_at(self.next[piece]).is_some_and(|next| self.reaches[next])
    }

    /// Whether `state` accepts without reading.
    fn may_be_empty(&self, callee: StateId) -> bool {
        match (self.piece_at(callee), self.made_at(callee)) {
            (Some(piece), _) => self.live.nullable[piece],
            (None, Some(Made::Round(piece, count))) => count >= self.repetition(piece).1,
            _ => callee == END,
        }
    }

    /// The ways on before `piece`.
    fn piece_edges(&mut self, piece: PieceId) -> Result<Vec<Edge>> {
        let next = self.next[piece];
        Ok(match self.pieces.pieces[piece].body {
            Body::Lexeme(expr) => vec![Edge::Lexeme { expr, to: To::State(next) }],
            Body::Tokens(set) => vec![Edge::Tokens { set, to: next }],
            Body::Json(state) => state.map(|callee| Edge::Call { callee, back: next }).into_iter().collect(),
            Body::Ref(rule) => {
                let root = self.pieces.roots[rule].expect("what is referred to has a piece");
                vec![Edge::Call { callee: before(root), back: next }]
            }
            Body::Seq(ref parts) => vec![Edge::Jump { to: parts.first().map_or(next, |&part| before(part)) }],
            Body::Alt(ref parts) => {
                let productive = parts.iter().filter(|&&part| self.live.productive[part]);
                productive.map(|&part| Edge::Jump { to: before(part) }).collect()
            }
            Body::Repeat { of, .. } => {
                let mut edges = Vec::new();
                let says = self.live.productive[of];
                match self.rounds(piece) {
                    Rounds::Counted if says && !self.live.nonempty[of] => {
                        edges.push(Edge::Jump { to: next });
                    }
                    Rounds::Counted if says => {
                        let callee = self.make(Made::Round(piece, 0))?;
                        edges.push(Edge::Call { callee, back: next });
                    }
                    rounds => {
                        edges.extend(says.then_some(Edge::Jump { to: before(of) }));
                        let none = !matches!(rounds, Rounds::Some);
                        edges.extend(none.then_some(Edge::Jump { to: next }));
                    }
                }
                edges
            }
        })
    }

    /// The ways on after `count` rounds.
    fn round(&mut self, piece: PieceId, count: u32) -> Result<Edges> {
        let (of, min, max) = self.repetition(piece);
        let mut edges = Vec::new();
        // Without a most, all counts past the least are as good as it.
        if max.is_none_or(|max| count < max) {
            let callee = before(of);
            let callee = match self.live.nullable[of] {
                true => self.non_empty(callee)?,
                false => Some(callee),
            };
            let rounds = count.saturating_add(1).min(max.unwrap_or(min));
            let back = self.make(Made::Round(piece, rounds))?;
            edges.extend(callee.map(|callee| Edge::Call { callee, back }));
        }
        Ok(Edges { accepting: count >= min, edges })
    }

    /// The ways on from `state` that read something before the end.
    fn non_empty_edges(&mut self, state: StateId, exprs: &mut Exprs) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        for edge in self.expand(state, exprs)?.edges {
            match edge {
                Edge::Lexeme { expr, to: To::State(to) } => {
                    let empty = exprs.is_complete(expr);
                    let expr = if empty { without_empty(exprs, expr)? } else { expr };
                    if exprs.can_go_on(expr)? {
                        edges.push(Edge::Lexeme { expr, to: To::State(to) });
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

    /// The piece that a state is about.
    fn about(&self, mut state: StateId) -> Option<PieceId> {
        loop {
            match self.made_at(state) {
                Some(Made::NonEmpty(of)) => state = of,
                Some(Made::Loop(piece) | Made::Round(piece, _)) => return Some(piece),
                None => return self.piece_at(state),
            }
        }
    }

    /// The source of JSON's states.
    fn values(&mut self, state: StateId) -> Result<&mut (dyn Values + 'static)> {
        match self.json.as_deref_mut() {
            Some(json) => Ok(json),
            None => Err(Error::new(ErrorKind::Constraint, format!("state {state} belongs to no schema"))),
        }
    }
}

/// The state before a piece.
fn before(piece: PieceId) -> StateId {
    1 + piece as StateId
}

/// What `expr` says but the empty text; it has no tags.
fn without_empty(exprs: &mut Exprs, expr: ExprId) -> Result<ExprId> {
    let some = exprs.not(EMPTY)?;
    exprs.and(&[expr, some])
}

impl Source for RulesSource {
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<Edges> {
        if state >= JSON {
            return self.values(state)?.expand(state, exprs);
        }
        if state == END {
            return Ok(Edges { accepting: true, edges: Vec::new() });
        }
        match self.made_at(state) {
            None => Ok(Edges { accepting: false, edges: self.piece_edges(state as usize - 1)? }),
            Some(Made::Loop(piece)) => {
                let (of, ..) = self.repetition(piece);
                let edges = vec![Edge::Jump { to: before(of) }, Edge::Jump { to: self.next[piece] }];
                Ok(Edges { accepting: false, edges })
            }
            Some(Made::Round(piece, count)) => self.round(piece, count),
            // A round reads something anyway: only having had enough of them is left out.
            Some(Made::NonEmpty(of)) if matches!(self.made_at(of), Some(Made::Round(..))) => {
                Ok(Edges { accepting: false, ..self.expand(of, exprs)? })
            }
            Some(Made::NonEmpty(of)) => {
                Ok(Edges { accepting: false, edges: self.non_empty_edges(of, exprs)? })
            }
        }
    }

    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        self.values(state)?.target(state, edge, tag, exprs)
    }

    fn describe(&self, state: StateId) -> String {
        if let (true, Some(json)) = (state >= JSON, &self.json) {
            return json.describe(state);
        }
        match self.about(state) {
            None => "the end of a rule".into(),
            Some(piece) => {
                let piece = &self.pieces.pieces[piece];
                match (&piece.said, &piece.body) {
                    (Some(said), _) => said.to_string(),
                    (None, Body::Tokens(set)) => describe_tokens(&self.pieces.token_sets[*set as usize]),
                    _ => format!("part of {}", self.pieces.names[piece.rule]),
                }
            }
        }
    }
}

/// A few of a set's tokens by name.
fn describe_tokens(set: &TokenSet) -> String {
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
