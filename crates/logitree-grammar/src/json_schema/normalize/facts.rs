//! One alternative of a normal form: which types a value may have, and the constraints on values of each type.

use std::sync::Arc;

use super::super::schema::{NumberBound, TypeSet};
use super::{LanguageId, PropertyRulesId, ScalarId, SchemaId};

/// One alternative of a normal form: a value of one of the types that meets the constraints of its type. `None` is no
/// constraint. Constraints of a type that is not in `types` are always `None`, so that equal facts compare equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Facts {
    /// The types it may have.
    pub types: TypeSet,
    /// Which of false (1) and true (2) it may be.
    pub bools: u8,
    /// Of a number.
    pub number: Option<Arc<NumberFacts>>,
    /// Of a string.
    pub string: Option<Arc<StringFacts>>,
    /// Of an array.
    pub array: Option<Arc<ArrayFacts>>,
    /// Of an object.
    pub object: Option<Arc<ObjectFacts>>,
    /// What the valid subschemas evaluated; kept only where an `unevaluated*` depends on it.
    pub evaluated: Option<Arc<Evaluated>>,
}

impl Facts {
    /// Any value of these types.
    pub(crate) fn of(types: TypeSet) -> Facts {
        let bools = if types.has(TypeSet::BOOLEAN) { 3 } else { 0 };
        Facts { types, bools, number: None, string: None, array: None, object: None, evaluated: None }
    }

    /// Objects that fulfil this.
    pub(crate) fn object(object: ObjectFacts) -> Facts {
        Facts { object: Some(Arc::new(object)), ..Facts::of(TypeSet::OBJECT) }
    }

    /// Arrays that fulfil this.
    pub(crate) fn array(array: ArrayFacts) -> Facts {
        Facts { array: Some(Arc::new(array)), ..Facts::of(TypeSet::ARRAY) }
    }

    /// Numbers that fulfil this.
    pub(crate) fn number(types: TypeSet, number: NumberFacts) -> Facts {
        Facts { number: Some(Arc::new(number)), ..Facts::of(types) }
    }

    /// Strings that fulfil this.
    pub(crate) fn string(string: StringFacts) -> Facts {
        Facts { string: Some(Arc::new(string)), ..Facts::of(TypeSet::STRING) }
    }

    /// Whether any value of one of `types` is possible as far as types go.
    pub(crate) fn any_of(&self, types: TypeSet) -> bool {
        self.types.0 & types.0 != 0
    }

    /// Without these types.
    pub(crate) fn drop_types(&mut self, types: TypeSet) {
        self.types = TypeSet(self.types.0 & !types.0);
        if !self.types.has(TypeSet::BOOLEAN) {
            self.bools = 0;
        }
        if !self.any_of(TypeSet::NUMBER) {
            self.number = None;
        }
        if !self.any_of(TypeSet::STRING) {
            self.string = None;
        }
        if !self.any_of(TypeSet::ARRAY) {
            self.array = None;
        }
        if !self.any_of(TypeSet::OBJECT) {
            self.object = None;
        }
    }

    /// The same without arrays and objects, only its arrays, and only its objects.
    fn split(&self) -> [Facts; 3] {
        let only = |types: u8| {
            let mut facts = self.clone();
            facts.drop_types(TypeSet(!types));
            facts
        };
        [only(!COMPOSITE), only(TypeSet::ARRAY.0), only(TypeSet::OBJECT.0)]
    }

    /// Also the values of `other`, which are all single.
    fn add_singles(&mut self, other: &Facts) {
        self.bools |= other.bools;
        let one = |facts: &Facts| (facts.types.0 & TypeSet::NUMBER.0, facts.number.clone());
        self.number = either_number(one(self), one(other));
        self.string = match (self.any_of(TypeSet::STRING), other.any_of(TypeSet::STRING)) {
            (_, false) => self.string.take(),
            (false, true) => other.string.clone(),
            (true, true) => either_string(self.string.take(), other.string.clone()),
        };
        self.types = TypeSet(self.types.0 | other.types.0);
    }

    /// Also the values of `other`, which is of arrays only or of objects only, if that makes no further alternative.
    fn add_composites(&mut self, other: &Facts) -> bool {
        if self.any_of(other.types) {
            return self.evaluated == other.evaluated
                && if other.any_of(TypeSet::ARRAY) {
                    self.array == other.array
                } else {
                    self.object == other.object
                };
        }
        if self.types.0 & COMPOSITE != 0 && self.evaluated != other.evaluated {
            return false;
        }
        self.evaluated.clone_from(&other.evaluated);
        self.types = TypeSet(self.types.0 | other.types.0);
        self.array = self.array.take().or_else(|| other.array.clone());
        self.object = self.object.take().or_else(|| other.object.clone());
        true
    }

    /// Adds an alternative to `found`. Those of single values never make another one; an array's or an object's does,
    /// unless it is there already.
    pub(super) fn join(&self, found: &mut Vec<Facts>) {
        /// Alternatives that a new one is compared with: comparing with all would be quadratic.
        const COMPARED: usize = 64;
        let Some(first) = found.first_mut() else { return found.push(self.clone()) };
        if self == first {
            return;
        }
        let [singles, array, object] = self.split();
        if singles.types.0 != 0 {
            first.add_singles(&singles);
        }
        for part in [array, object] {
            let from = found.len().saturating_sub(COMPARED);
            if part.types.0 != 0 && !found[from..].iter_mut().any(|other| other.add_composites(&part)) {
                found.push(part);
            }
        }
    }
}

/// Arrays and objects.
const COMPOSITE: u8 = TypeSet::ARRAY.0 | TypeSet::OBJECT.0;

/// A number of these types that fulfils one or the other.
fn either_number(
    a: (u8, Option<Arc<NumberFacts>>),
    b: (u8, Option<Arc<NumberFacts>>),
) -> Option<Arc<NumberFacts>> {
    if a.0 == 0 || a == b {
        return b.1;
    }
    if b.0 == 0 || a.1 == b.1 {
        return a.1;
    }
    let covers = |a: &(u8, Option<Arc<NumberFacts>>), b: u8| a.1.is_none() && a.0 & b == b;
    if covers(&a, b.0) || covers(&b, a.0) {
        return None;
    }
    if let (Some(x), Some(y)) = (&a.1, &b.1) {
        if let (Some(one), Some(other), true) = (&x.only, &y.only, x.digits_only == y.digits_only) {
            let (only, digits_only) = (Some(joined(one, other)), x.digits_only);
            return Some(Arc::new(NumberFacts { only, digits_only, ..NumberFacts::default() }));
        }
    }
    let mut ways = Vec::new();
    for (types, facts) in [a, b] {
        let mut add = |way: &NumberFacts| {
            let types = if way.types == 0 { types } else { types & way.types };
            if types != 0 {
                ways.push(Arc::new(NumberFacts { types, ..way.clone() }));
            }
        };
        match &facts {
            Some(facts) if facts.is_choice() => facts.choices[0].iter().for_each(|way| add(way)),
            facts => add(facts.as_deref().unwrap_or(&NumberFacts::default())),
        }
    }
    ways.dedup();
    Some(Arc::new(NumberFacts { choices: vec![ways.into()], ..NumberFacts::default() }))
}

/// A string that fulfils one or the other.
fn either_string(a: Option<Arc<StringFacts>>, b: Option<Arc<StringFacts>>) -> Option<Arc<StringFacts>> {
    let (a, b) = (a?, b?);
    if a == b {
        return Some(a);
    }
    if let (Some(x), Some(y)) = (&a.only, &b.only) {
        return Some(Arc::new(StringFacts { only: Some(joined(x, y)), ..StringFacts::default() }));
    }
    let mut ways = Vec::new();
    for facts in [a, b] {
        if facts.is_choice() {
            ways.extend(facts.choices[0].iter().cloned());
        } else {
            ways.push(facts);
        }
    }
    Some(Arc::new(StringFacts { choices: vec![ways.into()], ..StringFacts::default() }))
}

fn joined(a: &[ScalarId], b: &[ScalarId]) -> Arc<[ScalarId]> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// What a number must fulfil.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct NumberFacts {
    /// Only these; the rest is then empty, because it was asked of each. How they are written stays.
    pub only: Option<Arc<[ScalarId]>>,
    /// Whether it is written in digits only.
    pub digits_only: bool,
    /// The least.
    pub min: Option<NumberBound>,
    /// The greatest.
    pub max: Option<NumberBound>,
    /// What it is a multiple of, sorted.
    pub multiples: Vec<String>,
    /// What it is no multiple of, sorted.
    pub not_multiples: Vec<String>,
    /// None of these, sorted.
    pub not: Vec<ScalarId>,
    /// Of each of these lists one must hold.
    pub choices: Vec<Arc<[Arc<NumberFacts>]>>,
    /// In a list of choices: the types, as a [`TypeSet`]. 0 elsewhere, where [`Facts::types`] has them.
    pub types: u8,
}

impl NumberFacts {
    /// Whether it is one list of choices and nothing else.
    fn is_choice(&self) -> bool {
        self.choices.len() == 1
            && *self == NumberFacts { choices: self.choices.clone(), ..NumberFacts::default() }
    }
}

/// What a string must fulfil.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct StringFacts {
    /// Only these; the rest is then empty, because it was asked of each.
    pub only: Option<Arc<[ScalarId]>>,
    /// Languages it is in (true) or not in (false), sorted.
    pub languages: Vec<(LanguageId, bool)>,
    /// Code points at least.
    pub min: u64,
    /// Code points at most.
    pub max: Option<u64>,
    /// None of these, sorted.
    pub not: Vec<ScalarId>,
    /// Of each of these lists one must hold.
    pub choices: Vec<Arc<[Arc<StringFacts>]>>,
}

impl StringFacts {
    /// Whether it is one list of choices and nothing else.
    fn is_choice(&self) -> bool {
        self.choices.len() == 1
            && *self == StringFacts { choices: self.choices.clone(), ..StringFacts::default() }
    }
}

/// What an array must fulfil.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ArrayFacts {
    /// What the first items fulfil.
    pub prefix: Vec<SchemaId>,
    /// What every item after them fulfils.
    pub rest: SchemaId,
    /// Items at least.
    pub min: u64,
    /// Items at most.
    pub max: Option<u64>,
    /// Items with bounds on their number.
    pub contains: Vec<Contains>,
    /// Whether no two items are equal.
    pub unique: bool,
}

impl ArrayFacts {
    /// Every array.
    pub(crate) fn any() -> ArrayFacts {
        let rest = super::TRUE;
        ArrayFacts { prefix: Vec::new(), rest, min: 0, max: None, contains: Vec::new(), unique: false }
    }

    /// What the item at `place` fulfils.
    pub(crate) fn item(&self, place: u64) -> SchemaId {
        usize::try_from(place).ok().and_then(|place| self.prefix.get(place)).copied().unwrap_or(self.rest)
    }
}

/// Of the items from a place on, at least and at most so many fulfil a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Contains {
    /// The first place that counts.
    pub from: u64,
    /// What they fulfil.
    pub schema: SchemaId,
    /// How many at least.
    pub min: u64,
    /// How many at most.
    pub max: Option<u64>,
}

/// What an object must fulfil.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectFacts {
    /// Descriptions of all keys. Each holds.
    pub parts: Vec<PropertyRulesId>,
    /// What the values of single keys fulfil besides, sorted by key.
    pub keys: Vec<(ScalarId, SchemaId)>,
    /// What keys fulfil, as strings.
    pub names: SchemaId,
    /// Keys that must be there, sorted.
    pub required: Vec<ScalarId>,
    /// Keys at least.
    pub min: u64,
    /// Keys at most.
    pub max: Option<u64>,
    /// Where the first key is, the second must be; sorted.
    pub dependent: Vec<(ScalarId, ScalarId)>,
    /// Some key of a language must be there, with a value that fulfils a schema.
    pub exists: Vec<Exists>,
}

impl ObjectFacts {
    /// Every object.
    pub(crate) fn any() -> ObjectFacts {
        ObjectFacts {
            parts: Vec::new(),
            keys: Vec::new(),
            names: super::TRUE,
            required: Vec::new(),
            min: 0,
            max: None,
            dependent: Vec::new(),
            exists: Vec::new(),
        }
    }
}

/// Some key of `keys` must be there, and its value fulfil `schema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Exists {
    /// Which keys.
    pub keys: KeyClass,
    /// What the value fulfils.
    pub schema: SchemaId,
}

/// A class of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum KeyClass {
    /// Those of a language.
    Matching(LanguageId),
    /// Keys that these rules neither name nor match by a pattern, and that none of the rules they build on covers.
    Uncovered(PropertyRulesId),
    /// Those that fulfil no such schema, as strings.
    Unlike(SchemaId),
}

/// A description of all keys of an object, as `properties`, `patternProperties` and `additionalProperties` give it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct PropertyRules {
    /// What the values of named keys fulfil, in the document's order.
    pub named: Vec<(ScalarId, SchemaId)>,
    /// What the values of keys that match fulfil.
    pub patterns: Vec<(LanguageId, SchemaId)>,
    /// Parts that cover keys in place of this one.
    pub covers: Vec<PropertyRulesId>,
    /// What the values of all other keys fulfil; a part without it does not cover them.
    pub additional: Option<SchemaId>,
}

/// How exactly the evaluated parts are tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Track {
    /// Not tracked: no `unevaluated*` depends on it.
    Nothing,
    /// An alternative may record less than its values evaluate, if another alternative has the same values with more.
    Enough,
    /// An alternative records exactly what all its values evaluate.
    Exactly,
}

/// The parts of a value that valid subschemas evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Evaluated {
    /// Keys that these parts cover.
    pub parts: Vec<PropertyRulesId>,
    /// The first items.
    pub prefix: u64,
    /// Every item.
    pub all_items: bool,
    /// Items that fulfil one of these.
    pub items: Vec<SchemaId>,
}

impl Evaluated {
    /// What either evaluated.
    pub(crate) fn join(&self, other: &Evaluated) -> Evaluated {
        let mut joined = self.clone();
        joined.parts.extend(&other.parts);
        joined.parts.sort_unstable();
        joined.parts.dedup();
        joined.prefix = joined.prefix.max(other.prefix);
        joined.all_items |= other.all_items;
        joined.items.extend(&other.items);
        joined.items.sort_unstable();
        joined.items.dedup();
        joined
    }

    /// Whether nothing was evaluated.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.prefix == 0 && !self.all_items && self.items.is_empty()
    }
}
