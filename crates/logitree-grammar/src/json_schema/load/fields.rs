//! Typed access to the keywords of one subschema; reports values of the wrong type.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::super::decimal::Decimal;
use super::super::SubschemaId;
use super::dialect::{Dialect, Keyword, KEYWORD_COUNT};
use super::document::{Document, ValueId, ValueKind, ROOT};
use super::loader::{SchemaLoader, SubschemaSite};
use super::problems::SchemaFault;

/// Up to this many names are compared one by one when doubled ones are sought.
const FEW: usize = 12;

/// The keywords of one subschema.
pub(super) struct Fields<'l, 'd> {
    pub loader: &'l mut SchemaLoader<'d>,
    pub document: Arc<Document>,
    pub dialect: Dialect,
    pub site: SubschemaSite,
    /// Where the subschemas are written that apply to the value itself.
    pub in_place: Vec<(ValueId, SubschemaId)>,
    /// Whether a keyword beside `type` occurs.
    pub says_more: bool,
    /// The value of each keyword; the root for absent ones.
    slots: [ValueId; KEYWORD_COUNT],
}

impl<'l, 'd> Fields<'l, 'd> {
    /// The keywords of the object at `site`.
    pub fn new(loader: &'l mut SchemaLoader<'d>, site: SubschemaSite) -> Fields<'l, 'd> {
        let document = loader.document(site);
        let dialect = loader.registry.resources[site.resource as usize].dialect;
        let (mut slots, mut says_more) = ([ROOT; KEYWORD_COUNT], false);
        for (key, value) in document.members(site.at) {
            if let Some(keyword) = dialect.keyword(document.text(key)) {
                slots[keyword as usize] = value;
                says_more |= keyword != Keyword::Type;
            }
        }
        Fields { loader, document, dialect, site, in_place: Vec::new(), says_more, slots }
    }

    /// The keyword's value.
    pub fn get(&self, keyword: Keyword) -> Option<ValueId> {
        Some(self.slots[keyword as usize]).filter(|&at| at != ROOT)
    }

    /// Reports that the value at `at` is not what the keyword needs.
    pub fn wrong(&mut self, keyword: Keyword, at: ValueId, needed: &str) {
        let message = format!("`{}` is {}, not {needed}", keyword.name(), self.document.show(at));
        self.loader.problem(self.site, at, SchemaFault::new(message));
    }

    /// The decimal at `at`; any other value is reported.
    pub fn decimal(&mut self, keyword: Keyword, at: ValueId) -> Option<Decimal> {
        if self.document.kind(at) != ValueKind::Number {
            self.wrong(keyword, at, "a number");
            return None;
        }
        let decimal = Decimal::read(self.document.text(at)).filter(|decimal| !decimal.is_extreme());
        if decimal.is_none() {
            self.wrong(keyword, at, "a number of at most 1000 digits and places");
        }
        decimal
    }

    /// A whole number of at least 0.
    pub fn count(&mut self, keyword: Keyword) -> Option<u64> {
        let at = self.get(keyword)?;
        let number = self.document.kind(at) == ValueKind::Number;
        let count = Decimal::read(self.document.text(at)).filter(|_| number).and_then(|d| d.count());
        if count.is_none() {
            self.wrong(keyword, at, "a whole number of at least 0");
        }
        count
    }

    /// A count that is the least: 0 where it is absent.
    pub fn least(&mut self, keyword: Keyword) -> u64 {
        self.count(keyword).unwrap_or(0)
    }

    /// A count that is the most: none where it is absent, or past everything.
    pub fn most(&mut self, keyword: Keyword) -> Option<u64> {
        self.count(keyword).filter(|&most| most < u64::MAX)
    }

    /// True or false.
    pub fn flag(&mut self, keyword: Keyword) -> bool {
        let Some(at) = self.get(keyword) else { return false };
        match self.document.kind(at) {
            ValueKind::True => true,
            ValueKind::False => false,
            _ => {
                self.wrong(keyword, at, "true or false");
                false
            }
        }
    }

    /// The strings of the array at `at`, each once.
    pub fn texts(&mut self, keyword: Keyword, at: ValueId) -> Vec<Arc<str>> {
        let document = Arc::clone(&self.document);
        let fine =
            document.kind(at) == ValueKind::Array && document.elements(at).all(|e| document.is_string(e));
        if !fine {
            self.wrong(keyword, at, "an array of strings");
            return Vec::new();
        }
        let mut texts: Vec<Arc<str>> = Vec::with_capacity(document.len(at));
        let mut seen = FxHashSet::default();
        for text in document.elements(at).map(|e| document.text(e)) {
            let new = match document.len(at) <= FEW {
                true => !texts.iter().any(|known| **known == *text),
                false => seen.insert(text),
            };
            if new {
                texts.push(text.into());
            }
        }
        texts
    }

    /// The members of the object at `at`: where a key is doubled, the last value in the first place.
    pub fn map(&mut self, keyword: Keyword, at: ValueId) -> Vec<(ValueId, ValueId)> {
        let document = Arc::clone(&self.document);
        if document.kind(at) != ValueKind::Object {
            self.wrong(keyword, at, "an object");
            return Vec::new();
        }
        let mut members: Vec<(ValueId, ValueId)> = Vec::with_capacity(document.len(at));
        let mut places: FxHashMap<&str, usize> = FxHashMap::default();
        places.reserve(if document.len(at) <= FEW { 0 } else { document.len(at) });
        for (key, value) in document.members(at) {
            let name = document.text(key);
            let known = match document.len(at) <= FEW {
                true => members.iter().position(|&(known, _)| document.text(known) == name),
                false => places.insert(name, members.len()),
            };
            match known {
                Some(place) => {
                    members[place].1 = value;
                    places.insert(name, place);
                }
                None => members.push((key, value)),
            }
        }
        members
    }

    /// The subschema at `at`.
    pub fn schema(&mut self, at: ValueId) -> SubschemaId {
        self.loader.child(self.site, at)
    }

    /// The keyword's subschema.
    pub fn subschema(&mut self, keyword: Keyword) -> Option<SubschemaId> {
        let at = self.get(keyword)?;
        Some(self.schema(at))
    }

    /// The keyword's subschema, left out where it allows everything and no `unevaluated*` depends on it.
    pub fn telling(&mut self, keyword: Keyword) -> Option<SubschemaId> {
        let id = self.subschema(keyword)?;
        (self.loader.keeps || !self.loader.is_true(id)).then_some(id)
    }

    /// The subschemas of the array at `at`.
    pub fn schemas(&mut self, keyword: Keyword, at: ValueId, least: usize) -> Vec<SubschemaId> {
        let document = Arc::clone(&self.document);
        if document.kind(at) != ValueKind::Array {
            self.wrong(keyword, at, "an array of schemas");
            return Vec::new();
        }
        if document.len(at) < least {
            let message = format!("`{}` is empty: it needs a schema at least", keyword.name());
            self.loader.problem(self.site, at, SchemaFault::new(message));
        }
        document.elements(at).map(|element| self.schema(element)).collect()
    }

    /// The named subschemas of a keyword.
    pub fn named(&mut self, keyword: Keyword) -> Vec<(Arc<str>, SubschemaId)> {
        let Some(at) = self.get(keyword) else { return Vec::new() };
        let members = self.map(keyword, at);
        let document = Arc::clone(&self.document);
        members.into_iter().map(|(key, value)| (document.text(key).into(), self.schema(value))).collect()
    }
}

/// The values that `enum` and `const` both allow; `None` if neither is present. Equal JSON values count once.
pub(super) fn values(fields: &mut Fields<'_, '_>) -> Option<Arc<[Value]>> {
    let document = Arc::clone(&fields.document);
    let only = fields.get(Keyword::Const);
    let mut all: Vec<ValueId> = Vec::new();
    match fields.get(Keyword::Enum) {
        Some(at) if document.kind(at) == ValueKind::Array => {
            all.extend(document.elements(at));
            if let Some(only) = only {
                let form = form_of(&document, only);
                all.retain(|&value| form_of(&document, value) == form);
            }
        }
        Some(at) => {
            fields.wrong(Keyword::Enum, at, "an array of values");
            all.push(only?);
        }
        None => all.push(only?),
    }
    if all.len() > 1 {
        distinct(&document, &mut all);
    }
    Some(all.into_iter().map(|at| document.value(at)).collect())
}

/// Keeps the first of equal values. What is written alike is found before anything is brought into one form, which numbers
/// need only where not all are integers without a fraction or an exponent.
fn distinct(document: &Document, all: &mut Vec<ValueId>) {
    let is_number = |at: &ValueId| document.kind(*at) == ValueKind::Number;
    let has_one_form = all.iter().filter(|at| is_number(at)).all(|&at| is_plain_integer(document.text(at)));
    let mut texts = FxHashSet::default();
    let mut forms = FxHashSet::default();
    all.retain(|&at| match document.kind(at) {
        ValueKind::Plain | ValueKind::Escaped => texts.insert((true, document.text(at))),
        ValueKind::Number => {
            texts.insert((false, document.text(at))) && (has_one_form || forms.insert(form_of(document, at)))
        }
        _ => forms.insert(form_of(document, at)),
    });
}

/// Whether a JSON number is an integer that can be written without a fraction and an exponent in one way only.
fn is_plain_integer(number: &str) -> bool {
    number != "-0" && number.bytes().skip(1).all(|byte| byte.is_ascii_digit())
}

/// One text for all ways to write the value. Nesting is bounded by the parser, so recursion is too.
fn form_of(document: &Document, at: ValueId) -> String {
    let mut form = String::new();
    write(document, at, &mut form);
    form
}

fn write(document: &Document, at: ValueId, out: &mut String) {
    match document.kind(at) {
        ValueKind::Null => out.push('n'),
        ValueKind::False => out.push('f'),
        ValueKind::True => out.push('t'),
        ValueKind::Number => match Decimal::read(document.text(at)) {
            Some(decimal) => out.push_str(&format!("#{}", decimal.canonical())),
            None => out.push_str(document.text(at)),
        },
        ValueKind::Plain | ValueKind::Escaped => {
            let text = document.text(at);
            out.push_str(&format!("\"{}:", text.len()));
            out.push_str(text);
        }
        ValueKind::Array => {
            out.push('[');
            document.elements(at).for_each(|element| write(document, element, out));
            out.push(']');
        }
        ValueKind::Object => {
            let mut members: Vec<(&str, ValueId)> =
                document.members(at).map(|(key, value)| (document.text(key), value)).collect();
            // Stable, so that of doubled keys the last stays last: it is the one that counts.
            members.sort_by_key(|&(name, _)| name);
            out.push('{');
            for (n, &(name, value)) in members.iter().enumerate() {
                if members.get(n + 1).is_none_or(|&(next, _)| next != name) {
                    out.push_str(&format!("{}:{name}", name.len()));
                    write(document, value, out);
                }
            }
            out.push('}');
        }
    }
}
