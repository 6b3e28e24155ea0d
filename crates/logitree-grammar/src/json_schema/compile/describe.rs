//! Describes states in words for error messages, without computing anything.

use super::super::normalize::{Facts, SchemaId, TRUE};
use super::super::schema::{SchemaNode, TypeSet};
use super::object::ObjectState;
use super::pairs::{Marker, PairState};
use super::rule_table::RuleTable;
use super::{JsonState, MemberLabel};

/// Maximum number of keys that are listed.
const MAX_KEYS: usize = 6;

impl RuleTable {
    /// What may come at `state`.
    pub(super) fn describe(&self, state: &JsonState) -> String {
        match state {
            JsonState::End => "the end of the value".into(),
            JsonState::Root => "a value".into(),
            JsonState::Document(schema) | JsonState::Value(schema) => {
                format!("a value{}", self.kind(*schema))
            }
            JsonState::Margin => "white space or the end of the value".into(),
            JsonState::Composite(_) => "an array or object".into(),
            JsonState::Member { schema, label, .. } => {
                let of = match label {
                    MemberLabel::Whole => "a value".into(),
                    MemberLabel::Key(id) => format!("the value of {:?}", self.forms.texts.text(*id)),
                    MemberLabel::OtherKey => "the value of the key".into(),
                    MemberLabel::Item => "an item".into(),
                };
                format!("{of}{}", self.kind(*schema))
            }
            JsonState::Either(_) => "a value".into(),
            JsonState::Object(s) => self.describe_object(s),
            JsonState::Array(s) if self.array_may_end(s) => "a comma or the end of the array".into(),
            JsonState::Array(_) => "a comma and the next item".into(),
            JsonState::Differing(..) => "an item that did not come yet".into(),
            JsonState::Remembered(place, schema) => {
                format!("{}{}", self.describe_place(*place), self.kind(*schema))
            }
            JsonState::RememberedPart(partial) => self.describe_partial(*partial),
            JsonState::Reading(..) => "a value".into(),
            JsonState::Paired(state) => self.describe_pairs(state),
        }
    }

    fn describe_pairs(&self, state: &PairState) -> String {
        match state {
            PairState::Only(_) => "an array or object".into(),
            PairState::Pairs(s) | PairState::Key(s) => self.describe_object(s),
            PairState::Items(..) | PairState::ItemKey(_) => "an item or the end of the array".into(),
            PairState::Middle(_) => "what follows the key".into(),
            PairState::Value(value, _) => format!("a value{}", self.kind(value.schema)),
            PairState::End(..) | PairState::Marker(Marker::End(..), ..) => "the end of the value".into(),
            PairState::Marker(..) => "what is around a key".into(),
        }
    }

    fn describe_object(&self, s: &ObjectState) -> String {
        let object = &self.objects[s.object as usize];
        let next = self.named_next(s);
        let mut keys: Vec<String> = next
            .iter()
            .take(MAX_KEYS)
            .map(|&key| format!("{:?}", self.forms.texts.text(object.keys[key as usize].id)))
            .collect();
        if next.len() > MAX_KEYS {
            keys.push("another named key".into());
        }
        if self.others_next(s) && !object.others.as_ref().is_some_and(|others| others.is_empty()) {
            keys.push("another key".into());
        }
        if self.object_may_end(s) {
            keys.push("the end of the object".into());
        }
        match keys.split_last() {
            None => "the end of the object".into(),
            Some((last, [])) => format!("a key: {last}"),
            Some((last, others)) => format!("a key: {} or {last}", others.join(", ")),
        }
    }

    /// The types of a schema in brackets, if they are known.
    fn kind(&self, schema: SchemaId) -> String {
        if schema == TRUE {
            return String::new();
        }
        let types = match self.forms.known(schema) {
            Some(normal) => normal.iter().fold(0, |types, facts: &Facts| types | facts.types.0),
            None => match self.forms.lone_node(schema).map(|node| &self.forms.schema.nodes[node.index()]) {
                Some(SchemaNode::Keywords(k)) => k.types.unwrap_or(TypeSet::ALL).0,
                _ => TypeSet::ALL.0,
            },
        };
        let names = [
            (TypeSet::NULL, "null"),
            (TypeSet::BOOLEAN, "true or false"),
            (TypeSet::NUMBER, "a number"),
            (TypeSet::INTEGER, "an integer"),
            (TypeSet::STRING, "a string"),
            (TypeSet::ARRAY, "an array"),
            (TypeSet::OBJECT, "an object"),
        ];
        let number = types & TypeSet::FRACTION.0 != 0;
        let said = names.iter().filter(|(of, _)| match *of {
            TypeSet::NUMBER => number,
            TypeSet::INTEGER => !number && types & of.0 != 0,
            _ => types & of.0 != 0,
        });
        let said: Vec<&str> = said.map(|&(_, name)| name).collect();
        if types == TypeSet::ALL.0 || said.is_empty() {
            return String::new();
        }
        format!(" ({})", said.join(" or "))
    }
}
