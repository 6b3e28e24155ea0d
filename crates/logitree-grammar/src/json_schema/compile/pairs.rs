//! Objects as pairs of keys and values instead of JSON ([`PairForm`]).
//!
//! ```text
//! Pairs(object) --<parameter=key--> Middle(schema) -->--> Pair(schema, way) --text </parameter>-------------> Pairs ...
//!                                                                           --value--> PairEnd --</parameter>--> Pairs ...
//! ```
//!
//! A whole token in a marker is an edge of its own, with the states [`PairState::Marker`] around it.
//!
//! Which values may come in which way is in `pair_values.rs`. Which keys may come, and whether the object can be completed,
//! is the same as for JSON. The naive version is the choice of all pairs in all orders (`tests/it/pairs.rs`).

use std::sync::Arc;

use super::super::normalize::{ScalarId, SchemaId};
use super::super::pairs::{MarkerPart, PairForm};
use super::array::{ArrayState, NextItem};
use super::object::ObjectState;
use super::rule_table::RuleTable;
use super::transitions::Composite;
use super::{JsonState, JsonStates, END};
use crate::earley::{Edge, LexemeTarget, StateEdges, StateId};
use crate::expr::{Encoding, ExprId, Exprs, EMPTY, NOTHING};
use crate::rules::TokenNames;
use crate::{CharSet, Error, ErrorKind, Regex, Result};

/// What a key is that the schema does not name.
const NAME: &str = "[a-zA-Z_][a-zA-Z0-9_]*";

/// A pair after its key, or an item of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PairValue {
    pub schema: SchemaId,
    /// What follows the whole pair.
    pub next: StateId,
    /// What its end names.
    pub key: PairKey,
}

/// The key that the end of a pair names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PairKey {
    /// That of a pair whose end names none.
    Unnamed,
    /// That of an item, after which the middle has no first character.
    Cut,
    /// That of an item, where items are written as pairs are.
    Item,
    Named(ScalarId),
}

/// In what is written as pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PairState {
    /// This array or object as JSON, then the end.
    Only(Composite),
    /// In an object, at its beginning or after a pair.
    Pairs(ObjectState),
    /// In a pair after the last token of what begins it.
    Key(ObjectState),
    /// In a marker, before this part of it; then another state.
    Marker(Marker, u8, StateId),
    /// In an array whose items are written as pairs are, and whether it has one.
    Items(ArrayState, bool),
    /// In an item after the last token of what begins it.
    ItemKey(ArrayState),
    /// After the key of a pair.
    Middle(PairValue),
    /// In a pair before its value, after one of the form's ways to introduce it.
    Value(PairValue, u8),
    /// After the value of a pair that is no text, before what ends it; the way in which it began, then another state.
    End(u8, PairKey, StateId),
}

/// A text around keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Marker {
    /// Before a key.
    Begin,
    /// Between a key, or the beginning of an item, and a value: this one.
    Middle(u8, bool),
    /// After a value that came in this way, in a pair of this key.
    End(u8, PairKey),
}

impl Marker {
    fn parts(self, form: &PairForm) -> &[MarkerPart] {
        match self {
            Marker::Begin => &form.begin,
            Marker::Middle(way, _) => &form.middles[usize::from(way)].parts,
            Marker::End(way, _) => form.middles[usize::from(way)].end.as_ref().unwrap_or(&form.end),
        }
    }
}

impl RuleTable {
    pub(super) fn form(&self) -> Result<Arc<PairForm>> {
        let form = self.forms.schema.options.pairs.clone();
        form.ok_or_else(|| Error::new(ErrorKind::Constraint, "the schema has no form of pairs"))
    }

    /// The edges of a whole object as pairs.
    pub(super) fn pairs_document(
        &mut self,
        schema: SchemaId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let back = states.id(self.number, JsonState::Margin)?;
        let mut edges = Vec::new();
        for s in self.pair_objects(schema, exprs)? {
            if self.pair_keys(&s, exprs)? != NOTHING {
                let callee = self.paired(PairState::Pairs(s), states)?;
                edges.push(Edge::Call { callee, back });
            }
        }
        if self.pairs_may_be_empty(schema, exprs)? {
            edges.extend(self.margin(END));
        }
        Ok(StateEdges { accepting: false, edges })
    }

    /// Whether no pair at all is an object of `schema`.
    pub(super) fn pairs_may_be_empty(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        Ok(self.pair_objects(schema, exprs)?.iter().any(|s| self.object_may_end(s)))
    }

    /// Whether an object of `schema` is a text that is not empty.
    pub(super) fn has_pairs(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<bool> {
        for s in self.pair_objects(schema, exprs)? {
            for key in self.named_next(&s) {
                if self.may_move(&s, key, exprs)? {
                    return Ok(true);
                }
            }
            if self.pair_keys(&s, exprs)? != NOTHING {
                return Ok(true);
            }
        }
        Ok(self.lexemes.margin.is_some() && self.pairs_may_be_empty(schema, exprs)?)
    }

    pub(super) fn pair_objects(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Vec<ObjectState>> {
        let object = |composite: &Composite| match composite {
            Composite::Object(s) => Some(*s),
            Composite::Array(_) => None,
        };
        Ok(self.composites(schema, exprs)?.iter().filter_map(object).collect())
    }

    /// The edges of a state of pairs.
    pub(super) fn pair_edges(
        &mut self,
        state: PairState,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateEdges> {
        let form = self.form()?;
        let mut edges = Vec::new();
        let mut accepting = false;
        match state {
            PairState::Pairs(s) => {
                accepting = !s.first && self.object_may_end(&s);
                edges.extend(self.before_key(&form, s, states, exprs)?);
            }
            PairState::Key(s) => {
                let from = last_token(&form.begin).map_or(0, |last| last + 1);
                let keys = self.pair_keys(&s, exprs)?;
                edges.push(self.key_edge(&form, (from, EMPTY), keys, exprs)?);
            }
            PairState::Items(s, begun) => {
                accepting = begun && self.array_may_end(&s);
                edges.extend(self.before_item(&form, s, begun, states, exprs)?);
            }
            PairState::ItemKey(s) => {
                let from = last_token(&form.begin).map_or(0, |last| last + 1);
                edges.extend(self.item_edge(&form, s, (from, EMPTY), states, exprs)?);
            }
            PairState::Middle(value) => {
                for way in self.ways(value.schema, exprs)? {
                    let to = self.paired(PairState::Value(value, way), states)?;
                    edges.push(self.marker(
                        (Marker::Middle(way, value.key == PairKey::Cut), 0),
                        EMPTY,
                        to,
                        states,
                        exprs,
                    )?);
                }
            }
            PairState::Value(value, way) => edges = self.value_edges(&form, value, way, states, exprs)?,
            PairState::Only(composite) => {
                let mut edge = self.bracket(composite, states, exprs)?;
                if let Edge::Lexeme { expr, .. } = &mut edge {
                    *expr = exprs.concat(&[self.blanks(&form).0, *expr])?;
                }
                edges.push(edge);
            }
            PairState::End(way, key, next) => {
                edges.push(self.marker(
                    (Marker::End(way, key), 0),
                    self.blanks(&form).1,
                    next,
                    states,
                    exprs,
                )?);
            }
            PairState::Marker(marker, from, to) => {
                edges.push(self.marker((marker, from), EMPTY, to, states, exprs)?);
            }
        }
        Ok(StateEdges { accepting, edges })
    }

    /// The edge of a key, if one may come, or of the marker before it up to its last token.
    fn before_key(
        &mut self,
        form: &PairForm,
        s: ObjectState,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Option<Edge>> {
        let keys = self.pair_keys(&s, exprs)?;
        if keys == NOTHING {
            return Ok(None);
        }
        let mut blank = self.blanks(form).0;
        if !s.first && !form.separator.is_empty() {
            blank = exprs.bytes(form.separator.as_bytes())?;
        }
        if last_token(&form.begin).is_none() {
            return Ok(Some(self.key_edge(form, (0, blank), keys, exprs)?));
        }
        let to = self.paired(PairState::Key(s), states)?;
        Ok(Some(self.marker((Marker::Begin, 0), blank, to, states, exprs)?))
    }

    /// The edge to an item, if one may come.
    fn before_item(
        &mut self,
        form: &PairForm,
        s: ArrayState,
        begun: bool,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Option<Edge>> {
        let separator = if begun { form.separator.as_str() } else { "" };
        if form.item_key.is_some() {
            let mut blank = self.blanks(form).0;
            if !separator.is_empty() {
                blank = exprs.bytes(separator.as_bytes())?;
            }
            if last_token(&form.begin).is_none() {
                return self.item_edge(form, s, (0, blank), states, exprs);
            }
            if self.items(&s, exprs)?.is_empty() {
                return Ok(None);
            }
            let to = self.paired(PairState::ItemKey(s), states)?;
            return Ok(Some(self.marker((Marker::Begin, 0), blank, to, states, exprs)?));
        }
        let Some(to) = self.item_values(s, PairKey::Cut, states, exprs)? else { return Ok(None) };
        let begin = [separator, form.item.as_deref().unwrap_or_default()].concat();
        Ok(Some(match begin.is_empty() {
            true => Edge::Jump { to },
            false => Edge::Lexeme { expr: exprs.bytes(begin.as_bytes())?, to: LexemeTarget::State(to) },
        }))
    }

    /// The edge of the key of an item after the rest of the marker before it, if one may come.
    fn item_edge(
        &mut self,
        form: &PairForm,
        s: ArrayState,
        (from, blank): (u8, ExprId),
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Option<Edge>> {
        let Some(to) = self.item_values(s, PairKey::Item, states, exprs)? else { return Ok(None) };
        let (begin, _) = self.run(form, Marker::Begin, from, blank, exprs)?;
        let key = exprs.bytes(form.item_key.as_deref().unwrap_or_default().as_bytes())?;
        Ok(Some(Edge::Lexeme { expr: exprs.concat(&[begin, key])?, to: LexemeTarget::State(to) }))
    }

    /// The values that may come as the next item, after its key; `None` if none may.
    fn item_values(
        &mut self,
        s: ArrayState,
        key: PairKey,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Option<StateId>> {
        let mut all = Vec::new();
        for NextItem { schema, next } in self.items(&s, exprs)? {
            let next = self.paired(PairState::Items(next, true), states)?;
            all.push(self.paired(PairState::Middle(PairValue { schema, next, key }), states)?);
        }
        if all.is_empty() {
            return Ok(None);
        }
        self.either(all, states).map(Some)
    }

    /// The edge of keys after the rest of the marker before them.
    fn key_edge(
        &self,
        form: &PairForm,
        (from, blank): (u8, ExprId),
        keys: ExprId,
        exprs: &mut Exprs,
    ) -> Result<Edge> {
        let (begin, _) = self.run(form, Marker::Begin, from, blank, exprs)?;
        Ok(Edge::Lexeme { expr: exprs.concat(&[begin, keys])?, to: LexemeTarget::ByTag })
    }

    fn paired(&self, state: PairState, states: &mut JsonStates) -> Result<StateId> {
        states.id(self.number, JsonState::Paired(state))
    }

    /// White space before and after a value.
    fn blanks(&self, form: &PairForm) -> (ExprId, ExprId) {
        if form.has_blanks {
            (self.lexemes.open, self.lexemes.close)
        } else {
            (EMPTY, EMPTY)
        }
    }

    /// The edge of what is left of a marker from a part on, with `before` in front of it; then `to`.
    fn marker(
        &mut self,
        (marker, from): (Marker, u8),
        before: ExprId,
        to: StateId,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Edge> {
        let form = self.form()?;
        let parts = match (marker, marker.parts(&form)) {
            // What follows its last token is read with the key.
            (Marker::Begin, parts) => &parts[..last_token(parts).map_or(0, |last| usize::from(last) + 1)],
            (_, parts) => parts,
        };
        let (expr, until) = self.run(&form, marker, from, before, exprs)?;
        let mut after = |part: u8| match usize::from(part) == parts.len() {
            true => Ok(to),
            false => self.paired(PairState::Marker(marker, part, to), states),
        };
        Ok(match parts.get(usize::from(until)) {
            Some(MarkerPart::Token(names)) if expr == EMPTY => {
                Edge::Tokens { set: self.token_set(names)?, to: after(until + 1)? }
            }
            None if expr == EMPTY => Edge::Jump { to },
            _ => Edge::Lexeme { expr, to: LexemeTarget::State(after(until)?) },
        })
    }

    /// `before` and the parts of a marker up to a token or the end, and where that is.
    fn run(
        &self,
        form: &PairForm,
        marker: Marker,
        from: u8,
        before: ExprId,
        exprs: &mut Exprs,
    ) -> Result<(ExprId, u8)> {
        let mut made = vec![before];
        let mut at = from;
        for part in &marker.parts(form)[usize::from(from)..] {
            made.push(match part {
                MarkerPart::Text(text) => {
                    let cut = usize::from(at == 0 && matches!(marker, Marker::Middle(_, true)));
                    exprs.bytes(&text.as_bytes()[cut..])?
                }
                MarkerPart::Key => {
                    let key = match marker {
                        Marker::End(_, PairKey::Named(id)) => self.written_key(id)?,
                        _ => form.item_key.clone().unwrap_or_default(),
                    };
                    exprs.bytes(key.as_bytes())?
                }
                MarkerPart::Blank => self.lexemes.open,
                MarkerPart::Spaces(most) => {
                    let one = CharSet::from_ranges([(10, 10), (32, 32)]);
                    exprs.compile(&Regex::Set(one).repeat(0, Some(*most)), Encoding::Utf8)?
                }
                MarkerPart::Token(_) => break,
            });
            at += 1;
        }
        Ok((exprs.concat(&made)?, at))
    }

    /// The number of a token that the form names.
    fn token_set(&self, names: &TokenNames) -> Result<u32> {
        let known = self.token_sets.iter().find(|(known, _)| known == names);
        known.map(|&(_, number)| number).ok_or_else(|| {
            Error::new(ErrorKind::Constraint, "the form of pairs names a token that the grammar does not")
        })
    }

    /// The value of a pair after the middle of a way, and its end.
    fn value_edges(
        &mut self,
        form: &PairForm,
        value: PairValue,
        way: u8,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        let middle = &form.middles[usize::from(way)];
        let end = self.paired(PairState::End(way, value.key, value.next), states)?;
        let [text, scalars] = self.pair_values(form, value.schema, way, exprs)?;
        if text != NOTHING {
            edges.push(self.marker((Marker::End(way, value.key), 0), text, value.next, states, exprs)?);
        }
        if scalars != NOTHING {
            let expr = exprs.concat(&[self.blanks(form).0, scalars])?;
            edges.push(Edge::Lexeme { expr, to: LexemeTarget::State(end) });
        }
        for composite in self.composites_of(value.schema, middle.set(), exprs)? {
            let (callee, may_be_empty) = match composite {
                composite if !middle.is_nested => (PairState::Only(composite), false),
                Composite::Object(s) => (PairState::Pairs(s), self.object_may_end(&s)),
                Composite::Array(s) => {
                    self.check_items(&s)?;
                    (PairState::Items(s, false), self.array_may_end(&s))
                }
            };
            let callee = self.paired(callee, states)?;
            edges.push(Edge::Call { callee, back: end });
            if may_be_empty {
                edges.push(Edge::Jump { to: end });
            }
        }
        Ok(edges)
    }

    /// The keys that may come, each with its tag.
    fn pair_keys(&mut self, s: &ObjectState, exprs: &mut Exprs) -> Result<ExprId> {
        let mut named = Vec::new();
        for key in self.named_next(s) {
            if self.may_move(s, key, exprs)? {
                let id = self.objects[s.object as usize].keys[key as usize].id;
                let tag = self.key_tags.tag(id, self.forms.texts.text(id));
                named.push((self.written_key(id)?, exprs.tag(tag)?));
            }
        }
        let texts: Vec<_> = named.iter().map(|(text, tag)| (text.as_bytes(), *tag)).collect();
        let mut keys = vec![exprs.literals(&texts)?];
        if self.others_next(s) {
            let count = self.objects[s.object as usize].keys.len() as u32;
            let name = crate::pattern::parse(NAME, &crate::pattern::PatternOptions::WHOLE)?;
            let name = exprs.compile(&name, Encoding::Utf8)?;
            for (place, other) in self.others(s.object, exprs)?.iter().enumerate() {
                let key = count + place as u32;
                if self.may_move(s, key, exprs)? {
                    let chars = exprs.and(&[other.chars, name])?;
                    let tag = exprs.tag(self.other_key_tag(s.object, key))?;
                    keys.push(exprs.concat(&[chars, tag])?);
                }
            }
        }
        let keys = exprs.or(&keys)?;
        Ok(if exprs.is_alive(keys)? { keys } else { NOTHING })
    }

    /// A key as the form writes it.
    pub(super) fn written_key(&self, id: ScalarId) -> Result<String> {
        self.form()?.written(self.forms.texts.text(id))
    }

    /// The state after a key: its value in each way, then the other pairs.
    pub(super) fn pair_of(
        &mut self,
        s: &ObjectState,
        key: u32,
        states: &mut JsonStates,
        exprs: &mut Exprs,
    ) -> Result<StateId> {
        let mut all = Vec::new();
        // Where the end names the key, the schema names every key.
        let name = match self.form()?.ends_with_key() {
            true => PairKey::Named(self.objects[s.object as usize].keys[key as usize].id),
            false => PairKey::Unnamed,
        };
        for way in self.moves(s, key, exprs)? {
            let next = self.paired(PairState::Pairs(way.next), states)?;
            let value = PairValue { schema: way.schema, next, key: name };
            all.push(self.paired(PairState::Middle(value), states)?);
        }
        self.either(all, states)
    }
}

/// Where the last token of a marker is among its parts.
fn last_token(parts: &[MarkerPart]) -> Option<u8> {
    parts.iter().rposition(|part| matches!(part, MarkerPart::Token(_))).map(|place| place as u8)
}
