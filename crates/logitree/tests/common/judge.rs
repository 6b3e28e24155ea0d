//! Whether a JSON value satisfies a schema that was read, by the plain words of the specification: slow, obvious, and
//! what everything faster must agree with. It knows neither documents nor how values are written.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use logitree::grammar::json::{Bound, Keywords, NodeId, Schema, SchemaNode, TypeSet};
use logitree::grammar::Regex;
use serde_json::{Map, Value};

/// What keywords looked at in a value, for `unevaluated*`.
#[derive(Default)]
struct Seen {
    keys: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn take(&mut self, other: Seen) {
        self.keys.extend(other.keys);
        self.items.extend(other.items);
    }
}

/// A judge of one schema.
pub struct Judge<'s> {
    pub schema: &'s Schema,
    /// Whether `format` asserts.
    pub formats: bool,
}

impl Judge<'_> {
    /// Whether the value satisfies the schema.
    pub fn accepts(&self, value: &Value) -> bool {
        self.look(self.schema.root, value).is_some()
    }

    fn look(&self, id: NodeId, value: &Value) -> Option<Seen> {
        let keywords = match &self.schema.nodes[id as usize] {
            SchemaNode::True => return Some(Seen::default()),
            SchemaNode::False => return None,
            SchemaNode::Keywords(keywords) => keywords,
        };
        let listed = keywords.values.as_ref().is_none_or(|all| all.iter().any(|v| equal(v, value)));
        if !listed || !keywords.types.is_none_or(|types| types.has(type_of(value))) {
            return None;
        }
        let mut seen = Seen::default();
        let fine = match value {
            Value::Number(number) => numbers(keywords, &number.to_string()),
            Value::String(text) => self.strings(keywords, text),
            Value::Array(items) => self.arrays(keywords, items, &mut seen),
            Value::Object(members) => self.objects(keywords, members, &mut seen),
            _ => true,
        };
        if !fine || !self.logic(keywords, value, &mut seen) || !self.dependent(keywords, value, &mut seen) {
            return None;
        }
        self.unevaluated(keywords, value, &mut seen).then_some(seen)
    }

    fn is(&self, id: NodeId, value: &Value) -> bool {
        self.look(id, value).is_some()
    }

    fn strings(&self, k: &Keywords, text: &str) -> bool {
        let length = text.chars().count() as u64;
        length >= k.min_length
            && k.max_length.is_none_or(|most| length <= most)
            && k.pattern.as_ref().is_none_or(|regex| matches(regex, text))
            && (!self.formats || k.format.as_ref().is_none_or(|regex| matches(regex, text)))
    }

    fn arrays(&self, k: &Keywords, items: &[Value], seen: &mut Seen) -> bool {
        let length = items.len() as u64;
        let mut fine = length >= k.min_items && k.max_items.is_none_or(|most| length <= most);
        if k.unique_items {
            fine &= (0..items.len()).all(|i| items[..i].iter().all(|other| !equal(other, &items[i])));
        }
        if let Some(places) = &k.items {
            for (at, item) in items.iter().enumerate() {
                if let Some(&id) = places.prefix.get(at).or(places.rest.as_ref()) {
                    fine &= self.is(id, item);
                    seen.items.insert(at);
                }
            }
        }
        if let Some((id, least, most)) = k.contains {
            let found: Vec<usize> = (0..items.len()).filter(|&at| self.is(id, &items[at])).collect();
            let count = found.len() as u64;
            fine &= count >= least && most.is_none_or(|most| count <= most);
            if k.contains_evaluates {
                seen.items.extend(found);
            }
        }
        fine
    }

    fn objects(&self, k: &Keywords, members: &Map<String, Value>, seen: &mut Seen) -> bool {
        let count = members.len() as u64;
        let mut fine = count >= k.min_properties && k.max_properties.is_none_or(|most| count <= most);
        fine &= k.required.iter().all(|name| members.contains_key(&**name));
        for (name, value) in members {
            let named = k.properties.iter().filter(|(known, _)| **known == **name).map(|(_, id)| *id);
            let patterned =
                k.pattern_properties.iter().filter(|(regex, _)| matches(regex, name)).map(|(_, id)| *id);
            let mut ids: Vec<NodeId> = named.chain(patterned).collect();
            if ids.is_empty() {
                ids.extend(k.additional_properties);
            }
            fine &= ids.iter().all(|&id| self.is(id, value));
            if !ids.is_empty() {
                seen.keys.insert(name.clone());
            }
            fine &= k.property_names.is_none_or(|id| self.is(id, &Value::String(name.clone())));
        }
        fine
    }

    fn dependent(&self, k: &Keywords, value: &Value, seen: &mut Seen) -> bool {
        let Value::Object(members) = value else { return true };
        let lists = k.dependent_required.iter().filter(|(name, _)| members.contains_key(&**name));
        let mut fine = lists.into_iter().all(|(_, names)| names.iter().all(|n| members.contains_key(&**n)));
        for (_, id) in k.dependent_schemas.iter().filter(|(name, _)| members.contains_key(&**name)) {
            match self.look(*id, value) {
                Some(more) => seen.take(more),
                None => fine = false,
            }
        }
        fine
    }

    fn logic(&self, k: &Keywords, value: &Value, seen: &mut Seen) -> bool {
        for &id in &k.all_of {
            let Some(more) = self.look(id, value) else { return false };
            seen.take(more);
        }
        let any: Vec<Seen> = k.any_of.iter().filter_map(|&id| self.look(id, value)).collect();
        let one: Vec<Seen> = k.one_of.iter().filter_map(|&id| self.look(id, value)).collect();
        if any.is_empty() && !k.any_of.is_empty() || one.len() != 1 && !k.one_of.is_empty() {
            return false;
        }
        any.into_iter().chain(one).for_each(|more| seen.take(more));
        if k.not.is_some_and(|id| self.is(id, value)) {
            return false;
        }
        if let Some((test, then, otherwise)) = k.conditional {
            let tested = self.look(test, value);
            let branch = if tested.is_some() { then } else { otherwise };
            tested.into_iter().for_each(|more| seen.take(more));
            if let Some(id) = branch {
                let Some(more) = self.look(id, value) else { return false };
                seen.take(more);
            }
        }
        true
    }

    fn unevaluated(&self, k: &Keywords, value: &Value, seen: &mut Seen) -> bool {
        match value {
            Value::Object(members) => k.unevaluated_properties.is_none_or(|id| {
                let left: Vec<&String> = members.keys().filter(|name| !seen.keys.contains(*name)).collect();
                let fine = left.iter().all(|name| self.is(id, &members[*name]));
                seen.keys.extend(left.into_iter().cloned());
                fine
            }),
            Value::Array(items) => k.unevaluated_items.is_none_or(|id| {
                let fine =
                    (0..items.len()).filter(|at| !seen.items.contains(at)).all(|at| self.is(id, &items[at]));
                seen.items.extend(0..items.len());
                fine
            }),
            _ => true,
        }
    }
}

fn type_of(value: &Value) -> TypeSet {
    match value {
        Value::Null => TypeSet::NULL,
        Value::Bool(_) => TypeSet::BOOLEAN,
        Value::Number(number) if Decimal::new(&number.to_string()).scale <= 0 => TypeSet::INTEGER,
        Value::Number(_) => TypeSet::FRACTION,
        Value::String(_) => TypeSet::STRING,
        Value::Array(_) => TypeSet::ARRAY,
        Value::Object(_) => TypeSet::OBJECT,
    }
}

/// Equality of JSON values: numbers by value, objects without order.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Decimal::new(&a.to_string()) == Decimal::new(&b.to_string()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

fn numbers(k: &Keywords, text: &str) -> bool {
    let number = Decimal::new(text);
    let within = |bound: &Option<Bound>, outside: Ordering| {
        bound.as_ref().is_none_or(|bound| match number.compare(&Decimal::new(&bound.value)) {
            Ordering::Equal => !bound.exclusive,
            order => order != outside,
        })
    };
    within(&k.minimum, Ordering::Less)
        && within(&k.maximum, Ordering::Greater)
        && k.multiple_of.as_ref().is_none_or(|step| number.is_multiple_of(&Decimal::new(step)))
}

/// `digits * 10^-scale`, the digits without zeros at either end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    scale: i64,
}

impl Decimal {
    fn new(text: &str) -> Decimal {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let digits = all.trim_end_matches('0').trim_start_matches('0');
        if digits.is_empty() {
            return Decimal { negative: false, digits: String::new(), scale: 0 };
        }
        let zeros = (all.len() - all.trim_end_matches('0').len()) as i64;
        let scale = fraction.len() as i64 - zeros - exponent.parse::<i64>().unwrap();
        Decimal { negative: whole.starts_with('-'), digits: digits.into(), scale }
    }

    /// Both as digits of one scale, the shorter one with zeros before it.
    fn aligned(&self, other: &Decimal) -> [String; 2] {
        let scale = self.scale.max(other.scale);
        let long = [self, other].map(|d| format!("{}{}", d.digits, "0".repeat((scale - d.scale) as usize)));
        let length = long[0].len().max(long[1].len());
        long.map(|digits| format!("{digits:0>length$}"))
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let sign = |d: &Decimal| i8::from(!d.digits.is_empty()) * if d.negative { -1 } else { 1 };
        let [a, b] = self.aligned(other);
        let sizes = if self.negative { b.cmp(&a) } else { a.cmp(&b) };
        sign(self).cmp(&sign(other)).then(sizes)
    }

    /// By long division; the step's digits must be few.
    fn is_multiple_of(&self, step: &Decimal) -> bool {
        let [number, step] = self.aligned(step);
        let step: u128 = step.parse().expect("steps in tests are small");
        number.bytes().fold(0, |rest: u128, digit| (rest * 10 + u128::from(digit - b'0')) % step) == 0
    }
}

/// Whether the whole text is in the language.
pub fn matches(regex: &Regex, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    ends(regex, &text, 0).contains(&text.len())
}

/// Where matches that begin at `from` end.
fn ends(regex: &Regex, text: &[char], from: usize) -> BTreeSet<usize> {
    match regex {
        Regex::Nothing => BTreeSet::new(),
        Regex::Empty => [from].into(),
        Regex::Set(set) => {
            text.get(from).filter(|&&c| set.contains(c)).map(|_| from + 1).into_iter().collect()
        }
        Regex::Text(word) => {
            let word: Vec<char> = word.chars().collect();
            text[from..].starts_with(&word).then_some(from + word.len()).into_iter().collect()
        }
        Regex::Concat(parts) => parts.iter().fold([from].into(), |at, part| after(part, text, &at)),
        Regex::Or(parts) => parts.iter().flat_map(|part| ends(part, text, from)).collect(),
        Regex::And(parts) => {
            let all: Vec<BTreeSet<usize>> = parts.iter().map(|part| ends(part, text, from)).collect();
            (from..=text.len()).filter(|end| all.iter().all(|ends| ends.contains(end))).collect()
        }
        Regex::Not(part) => {
            let inside = ends(part, text, from);
            (from..=text.len()).filter(|end| !inside.contains(end)).collect()
        }
        Regex::Repeat { of, min, max } => {
            let mut at: BTreeSet<usize> = [from].into();
            // Where the same places come again, more rounds change nothing.
            for _ in 0..*min {
                let next = after(of, text, &at);
                if next == at {
                    break;
                }
                at = next;
            }
            let mut all = at.clone();
            for _ in *min..max.unwrap_or(u32::MAX) {
                at = after(of, text, &at).difference(&all).copied().collect();
                if at.is_empty() {
                    break;
                }
                all.extend(&at);
            }
            all
        }
    }
}

fn after(part: &Regex, text: &[char], from: &BTreeSet<usize>) -> BTreeSet<usize> {
    from.iter().flat_map(|&at| ends(part, text, at)).collect()
}
