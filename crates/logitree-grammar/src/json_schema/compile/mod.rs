//! JSON values as states of the Earley recogniser, built on demand from the normal form of a schema.
//!
//! ```text
//! Composite(schema) --{--> Object(seen, counts) --,"key":--> Member(schema of the value, next object) --value--> Object ...
//!                   --[--> Member(schema of the first item, next array) --item--> Array --,--> Member ...
//! ```
//!
//! A key is offered only if some value may follow it and the object can then be completed, so no state is a dead end.
//! The naive version is the plain validator on the whole text (`json_schema/tests/rules.rs`).
//!
//! Two keys that no schema names may be equal, but for those inside of items that must differ: a regular language cannot
//! tell them apart. Where keys are counted, both count.

mod array;
mod check;
mod contradiction;
mod describe;
mod divisibility;
mod lexemes;
mod liveness;
mod number_lexemes;
mod object;
mod other_keys;
mod pair_lexemes;
mod pair_values;
mod pairs;
mod plain;
mod remembered;
mod rule_table;
mod transitions;
mod unique;
mod value_count;
mod values;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::normalize::{ScalarId, SchemaId};
use super::schema::Schema;
use crate::earley::{SameAfter, StateEdges, StateId, StateSource, TokenSets, ValueSource};
use crate::expr::{Exprs, Tag};
use crate::rules::TokenNames;
use crate::{Error, ErrorKind, Result};
use array::ArrayState;
use object::ObjectState;
use pairs::PairState;
use remembered::{PartialId, PlaceId};
use rule_table::{Interner, RuleTable};
use values::TextId;

/// The first of JSON's states.
const FIRST: StateId = StateId(1 << 31);
/// The end of a value.
const END: StateId = FIRST;
/// Maximum number of states of one [`JsonRules`].
const MAX_STATES: usize = 1 << 24;

/// The role of a value, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum MemberLabel {
    /// The whole value.
    Whole,
    /// The value of this key.
    Key(ScalarId),
    /// The value of a key that the schema does not name.
    OtherKey,
    /// An item.
    Item,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum JsonState {
    /// The end of a value.
    End,
    /// Before the whole value: the table of the schema is made when this state is entered.
    Root,
    /// A value that fulfils a schema, with white space before and after it.
    Document(SchemaId),
    /// White space after the whole value.
    Margin,
    /// A value that fulfils a schema, then the end.
    Value(SchemaId),
    /// An array or object that fulfils a schema, then the end.
    Composite(SchemaId),
    /// A value that fulfils a schema, then another state.
    Member { schema: SchemaId, next: StateId, label: MemberLabel },
    /// Any of these states.
    Either(Arc<[StateId]>),
    /// In an object, after its opening bracket or a value.
    Object(ObjectState),
    /// In an array, after an item.
    Array(ArrayState),
    /// In an array, before an item that must differ from the items before it.
    Differing(ArrayState, SchemaId),
    /// Before a value that is read and remembered.
    Remembered(PlaceId, SchemaId),
    /// In an array or object that is remembered, after its opening bracket or a part of it.
    RememberedPart(PartialId),
    /// In a lexeme of a state, after this text of it.
    Reading(StateId, TextId),
    /// In what is written as pairs.
    Paired(PairState),
}

/// The states of all schemas, each with the number of its schema.
#[derive(Default)]
struct JsonStates(Interner<(u32, JsonState)>);

impl JsonStates {
    fn id(&mut self, table: u32, state: JsonState) -> Result<StateId> {
        let id = self.0.id((table, state));
        if id as usize >= MAX_STATES {
            let message = format!("more than {MAX_STATES} states of JSON values");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(StateId(FIRST.0 + id))
    }

    fn get(&self, id: StateId) -> (u32, &JsonState) {
        let (table, state) = self.0.get(id.0 - FIRST.0);
        (*table, state)
    }
}

/// The table of a schema, or what it is made of when it is needed.
enum Table {
    Made(Box<RuleTable>),
    Waiting { schema: Arc<Schema>, token_sets: Vec<(TokenNames, u32)> },
}

impl Table {
    fn schema(&self) -> &Arc<Schema> {
        match self {
            Table::Made(table) => &table.forms.schema,
            Table::Waiting { schema, .. } => schema,
        }
    }
}

/// The tables of all schemas, by number.
#[derive(Default)]
struct Tables {
    all: Vec<Table>,
    /// The one that was made last: tables of schemas that are written alike share lexemes.
    last: Option<usize>,
}

impl Tables {
    /// The table of this number, if it is made.
    fn made(&self, number: u32) -> Option<&RuleTable> {
        match self.all.get(number as usize) {
            Some(Table::Made(table)) => Some(table),
            _ => None,
        }
    }

    /// The table of this number, made if it is not.
    fn get(&mut self, number: u32, exprs: &mut Exprs) -> Result<&mut RuleTable> {
        let at = number as usize;
        if let Table::Waiting { schema, token_sets } = &self.all[at] {
            let like = self.last.and_then(|last| self.made(last as u32));
            let mut table = RuleTable::new(Arc::clone(schema), number, like, exprs)?;
            table.token_sets.clone_from(token_sets);
            self.all[at] = Table::Made(Box::new(table));
            self.last = Some(at);
        }
        Ok(self.made_mut(number))
    }

    /// The table of this number, which is made: a state of it was entered.
    fn made_mut(&mut self, number: u32) -> &mut RuleTable {
        match &mut self.all[number as usize] {
            Table::Made(table) => table,
            Table::Waiting { .. } => unreachable!("its states come from it"),
        }
    }

    /// Those that are made.
    fn iter(&self) -> impl Iterator<Item = &RuleTable> {
        self.all.iter().filter_map(|table| match table {
            Table::Made(table) => Some(&**table),
            Table::Waiting { .. } => None,
        })
    }
}

/// JSON values of one or more schemas, as a source of the machine's states.
pub struct JsonRules {
    tables: Tables,
    roots: FxHashMap<usize, Option<StateId>>,
    states: JsonStates,
}

impl Default for JsonRules {
    fn default() -> Self {
        JsonRules::new()
    }
}

impl JsonRules {
    /// No schema yet.
    pub fn new() -> JsonRules {
        let mut states = JsonStates::default();
        states.0.id((0, JsonState::End));
        JsonRules { tables: Tables::default(), roots: FxHashMap::default(), states }
    }

    /// The root of a schema, whose table is made unless it can wait.
    fn compiled(
        &mut self,
        schema: &Arc<Schema>,
        sets: &mut TokenSets,
        exprs: &mut Exprs,
    ) -> Result<Option<StateId>> {
        let number = self.tables.all.len() as u32;
        let token_sets = schema.named_tokens().map(|names| (names.clone(), sets.number(names))).collect();
        self.tables.all.push(Table::Waiting { schema: Arc::clone(schema), token_sets });
        if plain::is_plain(schema) {
            return self.states.id(number, JsonState::Root).map(Some);
        }
        if !self.checked(number, exprs)? {
            return Ok(None);
        }
        let root = self.tables.get(number, exprs)?.root()?;
        self.states.id(number, root).map(Some)
    }

    /// Whether a value fulfils the schema of this number; its keywords are looked through.
    fn checked(&mut self, number: u32, exprs: &mut Exprs) -> Result<bool> {
        let table = self.tables.get(number, exprs)?;
        let schema = table.forms.schema_of(table.forms.schema.root)?;
        let alive = table.alive(schema, exprs)?;
        table.check(schema, exprs)?;
        if table.forms.schema.options.pairs.is_none() {
            return Ok(alive);
        }
        table.check_pairs(schema, exprs)?;
        Ok(alive && table.has_pairs(schema, exprs)?)
    }

    /// Whether the schema of a root can wait; whether a value fulfils it, and whether that may be the empty text.
    #[cfg(test)]
    pub(super) fn both_ways(schema: &Arc<Schema>, exprs: &mut Exprs) -> (bool, Result<(bool, bool)>) {
        let mut rules = JsonRules::new();
        let waits = plain::is_plain(schema);
        let mut found = || {
            rules.root(schema, &mut TokenSets::default(), exprs)?;
            let is_alive = rules.checked(0, exprs)?;
            let table = rules.tables.get(0, exprs)?;
            let root = table.forms.schema_of(schema.root)?;
            let is_paired = schema.options.pairs.is_some();
            Ok((is_alive, is_paired && table.pairs_may_be_empty(root, exprs)?))
        };
        (waits, found())
    }

    /// What lenient schemas dropped during normalisation; loading adds its own warnings to the schema.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().flat_map(|table| table.forms.warnings.iter().map(String::as_str))
    }
}

impl ValueSource for JsonRules {
    fn root(
        &mut self,
        schema: &Arc<Schema>,
        sets: &mut TokenSets,
        exprs: &mut Exprs,
    ) -> Result<Option<StateId>> {
        let key = Arc::as_ptr(schema) as usize;
        if let Some(&known) = self.roots.get(&key) {
            return Ok(known);
        }
        let root = self.compiled(schema, sets, exprs).map_err(|error| schema.options.labelled(error))?;
        self.roots.insert(key, root);
        Ok(root)
    }

    fn may_be_empty(&mut self, schema: &Arc<Schema>, exprs: &mut Exprs) -> Result<bool> {
        if schema.options.pairs.is_none() {
            return Ok(false);
        }
        let known = self.tables.all.iter().position(|table| Arc::ptr_eq(table.schema(), schema));
        let Some(number) = known else { return Ok(false) };
        if self.tables.made(number as u32).is_none() {
            return Ok(false); // what can wait requires an argument
        }
        let table = self.tables.get(number as u32, exprs)?;
        let root = table.forms.schema_of(schema.root)?;
        table.pairs_may_be_empty(root, exprs)
    }

    fn fresh(&self) -> Box<dyn ValueSource> {
        Box::new(JsonRules::new())
    }

    fn contradiction(&self, schema: &Arc<Schema>) -> Error {
        schema.options.labelled(contradiction::error(schema))
    }
}

impl StateSource for JsonRules {
    fn expand(&mut self, state: StateId, exprs: &mut Exprs) -> Result<StateEdges> {
        let (table, state) = self.states.get(state);
        if *state == JsonState::End {
            return Ok(StateEdges { accepting: true, edges: Vec::new() });
        }
        let state = state.clone();
        self.tables.get(table, exprs)?.edges(&state, &mut self.states, exprs)
    }

    fn target(&mut self, state: StateId, edge: u32, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        let (table, state) = self.states.get(state);
        let state = state.clone();
        self.tables.get(table, exprs)?.target(&state, edge, tag, &mut self.states, exprs)
    }

    fn read(&mut self, state: StateId, byte: u8) -> Result<StateId> {
        let (table, state) = self.states.get(state);
        let JsonState::Reading(of, text) = *state else { return Ok(END) };
        let text = self.tables.made_mut(table).memory.read(text, byte)?;
        self.states.id(table, JsonState::Reading(of, text))
    }

    fn finish(&mut self, state: StateId, tag: Tag, exprs: &mut Exprs) -> Result<StateId> {
        let (table, state) = self.states.get(state);
        let JsonState::Reading(of, text) = *state else { return Ok(END) };
        let of = self.states.get(of).1.clone();
        self.tables.get(table, exprs)?.after_text(&of, Some(text), tag, &mut self.states, exprs)
    }

    fn finish_any(&mut self, state: StateId, tag: Tag, exprs: &mut Exprs) -> Result<(StateId, SameAfter)> {
        let (table, state) = self.states.get(state);
        let JsonState::Reading(of, text) = *state else { return Ok((END, SameAfter::All)) };
        let of = self.states.get(of).1.clone();
        let table = self.tables.get(table, exprs)?;
        let same = table.same_after(&of, text, exprs)?;
        Ok((table.after_text(&of, None, tag, &mut self.states, exprs)?, same))
    }

    fn is_same_lexeme(&self, state: StateId) -> bool {
        let (table, state) = self.states.get(state);
        let Some(table) = self.tables.made(table) else { return true };
        match state {
            JsonState::Reading(of, _) => table.is_same_lexeme(self.states.get(*of).1, true),
            state => table.is_same_lexeme(state, false),
        }
    }

    fn byte_size(&self) -> usize {
        self.states.0.byte_size() + self.tables.iter().map(RuleTable::byte_size).sum::<usize>()
    }

    fn describe(&self, state: StateId) -> String {
        let (table, state) = self.states.get(state);
        match self.tables.made(table) {
            Some(table) => table.describe(state),
            None => "the end of the value".into(),
        }
    }
}
