//! A keyword's value as what it must be: a count, a flag, a number, texts, subschemas. What is something else is said
//! and left out. It refuses to know what keywords mean.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::decimal::Decimal;
use super::super::NodeId;
use super::dialect::{Dialect, Keyword, KEYWORD_COUNT};
use super::document::{At, Document, Kind};
use super::loader::{Loader, Site};
use super::problems::Fault;

/// Up to this many names are compared one by one when doubled ones are sought.
const FEW: usize = 12;

/// The keywords of one subschema.
pub(super) struct Fields<'l, 'd> {
    pub loader: &'l mut Loader<'d>,
    pub document: Arc<Document>,
    pub dialect: Dialect,
    pub site: Site,
    /// Where each keyword's value stands; 0, which is the root, for those that are absent.
    slots: [At; KEYWORD_COUNT],
}

impl<'l, 'd> Fields<'l, 'd> {
    /// The keywords of the object at `site`.
    pub fn new(loader: &'l mut Loader<'d>, site: Site) -> Fields<'l, 'd> {
        let document = loader.document(site);
        let dialect = loader.registry.resources[site.resource as usize].dialect;
        let mut slots = [0; KEYWORD_COUNT];
        for (key, value) in document.members(site.at) {
            if let Some(keyword) = dialect.keyword(document.text(key)) {
                slots[keyword as usize] = value;
            }
        }
        Fields { loader, document, dialect, site, slots }
    }

    /// Where the keyword's value stands.
    pub fn get(&self, keyword: Keyword) -> Option<At> {
        Some(self.slots[keyword as usize]).filter(|&at| at != 0)
    }

    /// Says that the value at `at` is not what the keyword needs.
    pub fn wrong(&mut self, keyword: Keyword, at: At, needed: &str) {
        let message = format!("`{}` is {}, not {needed}", keyword.name(), self.document.show(at));
        self.loader.problem(self.site, at, Fault::new(message));
    }

    /// The decimal at `at`; what has no use as a number is said.
    pub fn decimal(&mut self, keyword: Keyword, at: At) -> Option<Decimal> {
        if self.document.kind(at) != Kind::Number {
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
        let number = self.document.kind(at) == Kind::Number;
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
            Kind::True => true,
            Kind::False => false,
            _ => {
                self.wrong(keyword, at, "true or false");
                false
            }
        }
    }

    /// The strings of the array at `at`, each once.
    pub fn texts(&mut self, keyword: Keyword, at: At) -> Vec<Arc<str>> {
        let document = Arc::clone(&self.document);
        let fine = document.kind(at) == Kind::Array && document.elements(at).all(|e| document.is_string(e));
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
    pub fn map(&mut self, keyword: Keyword, at: At) -> Vec<(At, At)> {
        let document = Arc::clone(&self.document);
        if document.kind(at) != Kind::Object {
            self.wrong(keyword, at, "an object");
            return Vec::new();
        }
        let mut members: Vec<(At, At)> = Vec::with_capacity(document.len(at));
        let mut places: FxHashMap<&str, usize> = FxHashMap::default();
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
    pub fn schema(&mut self, at: At) -> NodeId {
        self.loader.child(self.site, at)
    }

    /// The keyword's subschema.
    pub fn subschema(&mut self, keyword: Keyword) -> Option<NodeId> {
        let at = self.get(keyword)?;
        Some(self.schema(at))
    }

    /// The keyword's subschema, left out where it says nothing and nobody asks what was evaluated.
    pub fn telling(&mut self, keyword: Keyword) -> Option<NodeId> {
        let id = self.subschema(keyword)?;
        (self.loader.keeps || !self.loader.is_true(id)).then_some(id)
    }

    /// The subschemas of the array at `at`.
    pub fn schemas(&mut self, keyword: Keyword, at: At, least: usize) -> Vec<NodeId> {
        let document = Arc::clone(&self.document);
        if document.kind(at) != Kind::Array {
            self.wrong(keyword, at, "an array of schemas");
            return Vec::new();
        }
        if document.len(at) < least {
            let message = format!("`{}` is empty: it needs a schema at least", keyword.name());
            self.loader.problem(self.site, at, Fault::new(message));
        }
        document.elements(at).map(|element| self.schema(element)).collect()
    }

    /// The named subschemas of a keyword.
    pub fn named(&mut self, keyword: Keyword) -> Vec<(Arc<str>, NodeId)> {
        let Some(at) = self.get(keyword) else { return Vec::new() };
        let members = self.map(keyword, at);
        let document = Arc::clone(&self.document);
        members.into_iter().map(|(key, value)| (document.text(key).into(), self.schema(value))).collect()
    }
}
