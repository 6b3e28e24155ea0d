//! States in words. It refuses to compute anything: what is not known yet is not said.

use super::super::normal::{Facts, GoalId, TRUE};
use super::super::schema::{SchemaNode, TypeSet};
use super::board::Board;
use super::object::ObjectState;
use super::{Label, State};

/// Keys that are listed at most.
const MOST_KEYS: usize = 6;

impl Board {
    /// What stands at `state`.
    pub(super) fn describe(&self, state: &State) -> String {
        match state {
            State::End => "the end of the value".into(),
            State::Value(goal) => format!("a value{}", self.kind(*goal)),
            State::Composite(_) => "an array or object".into(),
            State::Slot { goal, label, .. } => {
                let of = match label {
                    Label::Key(id) => format!("the value of {:?}", self.forms.texts.text(*id)),
                    Label::OtherKey => "the value of the key".into(),
                    Label::Item => "an item".into(),
                };
                format!("{of}{}", self.kind(*goal))
            }
            State::Either(_) => "a value".into(),
            State::Object(s) => self.describe_object(s),
            State::Array(s) if self.array_may_end(s) => "a comma or the end of the array".into(),
            State::Array(_) => "a comma and the next item".into(),
            State::Differing(..) => "an item that did not come yet".into(),
        }
    }

    fn describe_object(&self, s: &ObjectState) -> String {
        let object = &self.objects[s.object as usize];
        let next = self.named_next(s);
        let mut keys: Vec<String> = next
            .iter()
            .take(MOST_KEYS)
            .map(|&key| format!("{:?}", self.forms.texts.text(object.keys[key as usize].id)))
            .collect();
        if next.len() > MOST_KEYS {
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

    /// The types of a goal in brackets, if they are known.
    fn kind(&self, goal: GoalId) -> String {
        if goal == TRUE {
            return String::new();
        }
        let types = match self.forms.known(goal) {
            Some(normal) => normal.iter().fold(0, |types, facts: &Facts| types | facts.types.0),
            None => match self.forms.lone_node(goal).map(|node| &self.forms.schema.nodes[node as usize]) {
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
