//! Rules as a flat list of pieces: each a lexeme, a reference, or a way to put pieces together. Children stand before
//! what they are part of. It refuses to know states.

use std::sync::Arc;

use super::super::expr::ExprId;
use super::super::rules::{RuleId, TokenSet};
use super::StateId;

/// The place of a piece in [`Pieces`].
pub(super) type PieceId = usize;

/// What a piece is.
pub(super) enum Body {
    /// Text.
    Lexeme(ExprId),
    /// What another rule says.
    Ref(RuleId),
    /// One after the other.
    Seq(Vec<PieceId>),
    /// Any of these.
    Alt(Vec<PieceId>),
    /// At least `min` times, at most `max` times; never `{1}`.
    Repeat { of: PieceId, min: u32, max: Option<u32> },
    /// One whole token.
    Tokens(u32),
    /// A JSON value that starts in this state of the JSON source; none if there is no such value.
    Json(Option<StateId>),
}

/// A piece.
pub(super) struct Piece {
    pub(super) body: Body,
    /// The rule it is part of.
    pub(super) rule: RuleId,
    /// What it says, if there are few words for it.
    pub(super) said: Option<Arc<str>>,
}

/// A grammar in pieces.
pub(super) struct Pieces {
    pub(super) pieces: Vec<Piece>,
    /// For each rule its piece, if anything refers to the rule as such.
    pub(super) roots: Vec<Option<PieceId>>,
    /// The names of the rules.
    pub(super) names: Vec<String>,
    pub(super) token_sets: Vec<TokenSet>,
}

impl Pieces {
    /// The children of a piece.
    pub(super) fn children(&self, piece: PieceId) -> &[PieceId] {
        match &self.pieces[piece].body {
            Body::Seq(parts) | Body::Alt(parts) => parts,
            Body::Repeat { of, .. } => std::slice::from_ref(of),
            Body::Lexeme(_) | Body::Ref(_) | Body::Tokens(_) | Body::Json(_) => &[],
        }
    }
}
