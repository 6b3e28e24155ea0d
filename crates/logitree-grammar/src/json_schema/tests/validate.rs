//! The plain validator: a whole value against a schema, keyword by keyword. It is the slow oracle of the compiler and
//! shares nothing with the normal form.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::super::decimal::Decimal;
use super::super::schema::{keywords, Keywords, NumberBound, Schema, SchemaNode, SubschemaId, TypeSet};
use crate::{Dfa, Regex};
use crate::{Error, ErrorKind, Result};

/// Subschemas that may wait for each other.
const MAX_DEPTH: u32 = 500;

/// Whether `value` is valid against `schema`.
///
/// # Errors
/// [`ErrorKind::Limit`] if schema and value nest too deep.
pub(super) fn is_valid(schema: &Schema, value: &Value) -> Result<bool> {
    Ok(Check { schema }.node(schema.root, value, MAX_DEPTH)?.is_some())
}

/// What the subschemas that hold spoke of.
#[derive(Debug, Default)]
struct Spoken {
    keys: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Spoken {
    fn add(&mut self, other: Spoken) {
        self.keys.extend(other.keys);
        self.items.extend(other.items);
    }
}

struct Check<'a> {
    schema: &'a Schema,
}

impl Check<'_> {
    /// What `node` speaks of if `value` is valid.
    fn node(&self, node: SubschemaId, value: &Value, depth: u32) -> Result<Option<Spoken>> {
        let Some(depth) = depth.checked_sub(1) else {
            let message = "a value and its schema nest too deep to be compared";
            return Err(Error::new(ErrorKind::Limit, message).at(self.schema.places.get(node)));
        };
        let k = match &self.schema.nodes[node.index()] {
            SchemaNode::True => return Ok(Some(Spoken::default())),
            SchemaNode::False => return Ok(None),
            SchemaNode::Keywords(keywords) => keywords,
        };
        let mut spoken = Spoken::default();
        keywords! { &**k;
            read values, types;
            leave digits_only, minimum, maximum, multiple_of, min_length, max_length, pattern, format,
                  items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, properties, pattern_properties, additional_properties,
                  unevaluated_properties, property_names, required, min_properties, max_properties,
                  dependent_required, dependent_schemas, all_of, any_of, one_of, not, conditional, reading
        }
        let listed = values.as_ref().is_none_or(|values| values.iter().any(|one| equal(one, value)));
        let typed = types.is_none_or(|types| types.0 & type_of(value).0 != 0);
        let fulfilled = listed
            && typed
            && match value {
                Value::Number(number) => number_holds(k, &number.to_string()) && spelled(k, number),
                Value::String(text) => string_holds(k, text),
                Value::Array(items) => self.array(k, items, &mut spoken, depth)?,
                Value::Object(object) => self.object(k, object, &mut spoken, depth)?,
                Value::Null | Value::Bool(_) => true,
            };
        if !fulfilled || !self.in_place(k, value, &mut spoken, depth)? {
            return Ok(None);
        }
        if !self.unevaluated(k, value, &mut spoken, depth)? {
            return Ok(None);
        }
        Ok(Some(spoken))
    }

    fn holds(&self, node: SubschemaId, value: &Value, depth: u32) -> Result<bool> {
        Ok(self.node(node, value, depth)?.is_some())
    }

    fn in_place(&self, k: &Keywords, value: &Value, spoken: &mut Spoken, depth: u32) -> Result<bool> {
        for &node in &k.all_of {
            match self.node(node, value, depth)? {
                Some(more) => spoken.add(more),
                None => return Ok(false),
            }
        }
        for (branches, exactly_one) in [(&k.any_of, false), (&k.one_of, true)] {
            let mut held = 0;
            for &node in branches {
                if let Some(more) = self.node(node, value, depth)? {
                    spoken.add(more);
                    held += 1;
                }
            }
            if !branches.is_empty() && (held == 0 || (exactly_one && held > 1)) {
                return Ok(false);
            }
        }
        if let Some(node) = k.not {
            if self.holds(node, value, depth)? {
                return Ok(false);
            }
        }
        if let Some((test, then, otherwise)) = k.conditional {
            let branch = match self.node(test, value, depth)? {
                Some(more) => {
                    spoken.add(more);
                    then
                }
                None => otherwise,
            };
            if let Some(branch) = branch {
                match self.node(branch, value, depth)? {
                    Some(more) => spoken.add(more),
                    None => return Ok(false),
                }
            }
        }
        for (key, node) in &k.dependent_schemas {
            if value.as_object().is_some_and(|object| object.contains_key(&**key)) {
                match self.node(*node, value, depth)? {
                    Some(more) => spoken.add(more),
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    fn unevaluated(&self, k: &Keywords, value: &Value, spoken: &mut Spoken, depth: u32) -> Result<bool> {
        if let (Some(node), Value::Object(object)) = (k.unevaluated_properties, value) {
            for (key, value) in object {
                if spoken.keys.insert(key.clone()) && !self.holds(node, value, depth)? {
                    return Ok(false);
                }
            }
        }
        if let (Some(node), Value::Array(items)) = (k.unevaluated_items, value) {
            for (place, item) in items.iter().enumerate() {
                if spoken.items.insert(place) && !self.holds(node, item, depth)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn array(&self, k: &Keywords, items: &[Value], spoken: &mut Spoken, depth: u32) -> Result<bool> {
        let count = items.len() as u64;
        if count < k.min_items || k.max_items.is_some_and(|max| count > max) {
            return Ok(false);
        }
        if let Some(said) = &k.items {
            for (place, item) in items.iter().enumerate() {
                if let Some(node) = said.prefix.get(place).copied().or(said.rest) {
                    spoken.items.insert(place);
                    if !self.holds(node, item, depth)? {
                        return Ok(false);
                    }
                }
            }
        }
        if let Some((node, min, max)) = k.contains {
            let mut found = 0;
            for (place, item) in items.iter().enumerate() {
                if self.holds(node, item, depth)? {
                    found += 1;
                    if k.contains_evaluates {
                        spoken.items.insert(place);
                    }
                }
            }
            if found < min || max.is_some_and(|max| found > max) {
                return Ok(false);
            }
        }
        let repeats = |place: usize| items[..place].iter().any(|other| equal(other, &items[place]));
        Ok(!k.unique_items || !(0..items.len()).any(repeats))
    }

    fn object(
        &self,
        k: &Keywords,
        object: &Map<String, Value>,
        spoken: &mut Spoken,
        depth: u32,
    ) -> Result<bool> {
        let count = object.len() as u64;
        let has = |key: &str| object.contains_key(key);
        let depends = |(key, needed): &(std::sync::Arc<str>, Vec<std::sync::Arc<str>>)| {
            !has(key) || needed.iter().all(|key| has(key))
        };
        if count < k.min_properties
            || k.max_properties.is_some_and(|max| count > max)
            || !k.required.iter().all(|key| has(key))
            || !k.dependent_required.iter().all(depends)
        {
            return Ok(false);
        }
        for (key, value) in object {
            let chars: Vec<char> = key.chars().collect();
            let named = k.properties.iter().filter(|(name, _)| **name == **key).map(|&(_, node)| node);
            let matching = k.pattern_properties.iter().filter(|(regex, _)| matches(regex, &chars));
            let mut nodes: Vec<SubschemaId> = named.chain(matching.map(|&(_, node)| node)).collect();
            if nodes.is_empty() {
                nodes.extend(k.additional_properties);
            }
            if !nodes.is_empty() {
                spoken.keys.insert(key.clone());
            }
            for node in nodes {
                if !self.holds(node, value, depth)? {
                    return Ok(false);
                }
            }
            if let Some(names) = k.property_names {
                if !self.holds(names, &Value::String(key.clone()), depth)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Whether a number is written in digits only where it has to be.
fn spelled(k: &Keywords, number: &Number) -> bool {
    !k.digits_only || number.to_string().bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

fn type_of(value: &Value) -> TypeSet {
    match value {
        Value::Null => TypeSet::NULL,
        Value::Bool(_) => TypeSet::BOOLEAN,
        Value::Number(number) if read(&number.to_string()).is_integer() => TypeSet::INTEGER,
        Value::Number(_) => TypeSet::FRACTION,
        Value::String(_) => TypeSet::STRING,
        Value::Array(_) => TypeSet::ARRAY,
        Value::Object(_) => TypeSet::OBJECT,
    }
}

/// Whether two values are equal: numbers by what they are worth, objects whatever their order.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => read(&a.to_string()) == read(&b.to_string()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

fn read(text: &str) -> Decimal {
    Decimal::read(text).unwrap_or_else(|| Decimal::read("0").expect("zero is a number"))
}

fn number_holds(k: &Keywords, text: &str) -> bool {
    let number = read(text);
    let above = |min: &NumberBound| match number.cmp(&read(&min.value)) {
        std::cmp::Ordering::Equal => !min.exclusive,
        order => order.is_gt(),
    };
    let below = |max: &NumberBound| match number.cmp(&read(&max.value)) {
        std::cmp::Ordering::Equal => !max.exclusive,
        order => order.is_lt(),
    };
    k.minimum.as_ref().is_none_or(above)
        && k.maximum.as_ref().is_none_or(below)
        && k.multiple_of.as_ref().is_none_or(|of| number.is_multiple(&read(of)))
}

fn string_holds(k: &Keywords, text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let count = chars.len() as u64;
    count >= k.min_length
        && k.max_length.is_none_or(|max| count <= max)
        && k.pattern.as_ref().is_none_or(|regex| matches(regex, &chars))
        && k.format.as_ref().is_none_or(|regex| matches(regex, &chars))
}

/// Whether all of `chars` match.
fn matches(regex: &Regex, chars: &[char]) -> bool {
    ends(regex, chars, 0).contains(&chars.len())
}

/// Where a match that starts at `from` may end.
fn ends(regex: &Regex, chars: &[char], from: usize) -> BTreeSet<usize> {
    let set = |yes: bool, to: usize| if yes { BTreeSet::from([to]) } else { BTreeSet::new() };
    match regex {
        Regex::Nothing => BTreeSet::new(),
        Regex::Empty => BTreeSet::from([from]),
        Regex::Set(of) => set(chars.get(from).is_some_and(|&c| of.contains(c)), from + 1),
        Regex::Text(text) => {
            let text: Vec<char> = text.chars().collect();
            set(chars[from..].starts_with(&text), from + text.len())
        }
        Regex::Concat(parts) => parts.iter().fold(BTreeSet::from([from]), |starts, part| {
            starts.into_iter().flat_map(|start| ends(part, chars, start)).collect()
        }),
        Regex::Or(parts) => parts.iter().flat_map(|part| ends(part, chars, from)).collect(),
        Regex::And(parts) => {
            let all: BTreeSet<usize> = (from..=chars.len()).collect();
            parts.iter().fold(all, |all, part| &all & &ends(part, chars, from))
        }
        Regex::Not(of) => &(from..=chars.len()).collect() - &ends(of, chars, from),
        Regex::Repeat { of, min, max } => repeated(of, *min, *max, chars, from),
        Regex::Automaton(dfa) => {
            let mut state = Some(Dfa::START);
            let mut found = BTreeSet::new();
            for to in from..=chars.len() {
                let Some(at) = state else { break };
                if dfa.is_accepting(at) {
                    found.insert(to);
                }
                let byte = chars.get(to).filter(|c| c.is_ascii()).map(|&c| c as u8);
                state = byte.and_then(|byte| dfa.next(at, byte));
            }
            found
        }
        Regex::Computed(_) => unreachable!("numbers have oracles of their own"),
    }
}

fn repeated(of: &Regex, min: u32, max: Option<u32>, chars: &[char], from: usize) -> BTreeSet<usize> {
    let mut starts = BTreeSet::from([from]);
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for times in 0..=max.unwrap_or(u32::MAX) {
        if times >= min {
            found.extend(starts.iter().copied());
        }
        // A set of positions that repeats after the minimum number of rounds would repeat forever.
        if starts.is_empty() || !seen.insert((times.min(min), starts.clone())) {
            break;
        }
        starts = starts.into_iter().flat_map(|start| ends(of, chars, start)).collect();
    }
    found
}
