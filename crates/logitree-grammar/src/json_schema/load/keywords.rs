//! Reads the keywords of one subschema into the form that all drafts share.

use std::sync::Arc;

use super::super::decimal::Decimal;
use super::super::format::content;
use super::super::{Draft, ItemsKeyword, Keywords, NumberBound, SchemaNode, SubschemaId, TypeSet};
use super::dialect::Keyword;
use super::document::{ValueId, ValueKind, ROOT};
use super::fields::{values, Fields};
use super::loader::{SchemaLoader, SubschemaSite};
use super::problems::SchemaFault;
use crate::Regex;

/// What may name keys of an object, beside its own `properties`.
const NAMING: [Keyword; 8] = [
    Keyword::Ref,
    Keyword::DynamicRef,
    Keyword::RecursiveRef,
    Keyword::AllOf,
    Keyword::AnyOf,
    Keyword::OneOf,
    Keyword::PatternProperties,
    Keyword::UnevaluatedProperties,
];

/// Reads the object at `site`.
pub(super) fn read(loader: &mut SchemaLoader<'_>, site: SubschemaSite) -> SchemaNode {
    let mut fields = Fields::new(loader, site);
    let mut out = Box::<Keywords>::default();
    out.types = fields.types().filter(|&types| types != TypeSet::ALL);
    let integers = |types: TypeSet| types.has(TypeSet::INTEGER) && !types.has(TypeSet::FRACTION);
    out.digits_only = fields.dialect.draft == Draft::Draft4 && out.types.is_some_and(integers);
    // Most subschemas say their type and no more.
    if fields.says_more || fields.is_whole() {
        fields.scalars(&mut out);
        fields.arrays(&mut out);
        fields.objects(&mut out);
        fields.logic(&mut out);
        fields.dependent(&mut out);
        out.reading = fields.reading();
    }
    if out.types.is_none() && *out == Keywords::default() {
        SchemaNode::True
    } else {
        SchemaNode::Keywords(out)
    }
}

impl Fields<'_, '_> {
    fn scalars(&mut self, out: &mut Keywords) {
        out.values = values(self);
        out.minimum = self.bound(Keyword::Minimum, Keyword::ExclusiveMinimum);
        out.maximum = self.bound(Keyword::Maximum, Keyword::ExclusiveMaximum);
        if let Some(at) = self.get(Keyword::MultipleOf) {
            match self.decimal(Keyword::MultipleOf, at) {
                Some(step) if step.is_positive() => out.multiple_of = Some(self.document.text(at).into()),
                Some(_) => self.wrong(Keyword::MultipleOf, at, "a number above 0"),
                None => {}
            }
        }
        out.min_length = self.least(Keyword::MinLength);
        out.max_length = self.most(Keyword::MaxLength);
        let document = Arc::clone(&self.document);
        if let Some(at) = self.get(Keyword::Pattern) {
            match document.string(at) {
                Some(text) => out.pattern = self.pattern(text, at),
                None => self.wrong(Keyword::Pattern, at, "a regular expression"),
            }
        }
        if let Some(at) = self.get(Keyword::Format) {
            match document.string(at) {
                Some(name) => out.format = self.loader.languages.format(name, self.dialect.draft),
                None => self.wrong(Keyword::Format, at, "a format's name"),
            }
        }
        if let Some(content) = self.content() {
            out.format = Some(match out.format.take() {
                Some(format) => Arc::new(Regex::and([(*format).clone(), (*content).clone()])),
                None => content,
            });
        }
    }

    /// The language of `contentEncoding` and `contentMediaType`, which assert in draft 7 only.
    fn content(&mut self) -> Option<Arc<Regex>> {
        let document = Arc::clone(&self.document);
        let mut names = [None; 2];
        for (name, keyword) in names.iter_mut().zip([Keyword::ContentEncoding, Keyword::ContentMediaType]) {
            if let Some(at) = self.get(keyword) {
                match document.string(at) {
                    Some(text) => *name = Some(text),
                    None => self.wrong(keyword, at, "a string"),
                }
            }
        }
        let [encoding, media] = names;
        let encoded = encoding.is_some_and(|encoding| !content::is_plain(encoding));
        if let (true, true, Some(at)) =
            (encoded, media.is_some_and(content::is_json), self.get(Keyword::ContentMediaType))
        {
            let message = "whether a string is JSON in another encoding is not regular";
            let help = "leave contentMediaType out";
            self.loader.problem(self.site, at, SchemaFault::new(message).help(help));
        }
        match (encoding, media) {
            (Some(encoding), _) if encoded => content::encoded(encoding),
            (_, Some(media)) => content::of_media(media),
            _ => None,
        }
    }

    fn pattern(&mut self, text: &str, at: ValueId) -> Option<Arc<Regex>> {
        match self.loader.languages.pattern(text) {
            Ok(regex) => Some(regex),
            Err(message) => {
                self.loader.problem(self.site, at, SchemaFault::new(message));
                None
            }
        }
    }

    fn types(&mut self) -> Option<TypeSet> {
        let at = self.get(Keyword::Type)?;
        let document = Arc::clone(&self.document);
        let single = document.is_string(at);
        if !single && (document.kind(at) != ValueKind::Array || document.len(at) == 0) {
            self.wrong(Keyword::Type, at, "a type's name or an array of such");
            return None;
        }
        let mut all = TypeSet(0);
        for name in document.elements(at).chain(single.then_some(at)) {
            all.0 |= match document.string(name) {
                Some("null") => TypeSet::NULL,
                Some("boolean") => TypeSet::BOOLEAN,
                Some("integer") => TypeSet::INTEGER,
                Some("number") => TypeSet::NUMBER,
                Some("string") => TypeSet::STRING,
                Some("array") => TypeSet::ARRAY,
                Some("object") => TypeSet::OBJECT,
                _ => {
                    let names = "one of null, boolean, integer, number, string, array, object";
                    self.wrong(Keyword::Type, name, names);
                    return None;
                }
            }
            .0;
        }
        Some(all)
    }

    /// The stricter one of a bound and its exclusive form, which is a flag in draft 4.
    fn bound(&mut self, plain: Keyword, exclusive: Keyword) -> Option<NumberBound> {
        let mut flag = false;
        let mut bounds: Vec<(Decimal, NumberBound)> = Vec::new();
        for (keyword, exclusive) in [(exclusive, true), (plain, false)] {
            let Some(at) = self.get(keyword) else { continue };
            if exclusive && matches!(self.document.kind(at), ValueKind::True | ValueKind::False) {
                flag = self.document.kind(at) == ValueKind::True;
            } else if let Some(decimal) = self.decimal(keyword, at) {
                let value = self.document.text(at).into();
                bounds.push((decimal, NumberBound { value, exclusive: exclusive || flag }));
            }
        }
        // The exclusive one comes first and stays where both are equal.
        let below = plain == Keyword::Minimum;
        let stricter = |a: &Decimal, b: &Decimal| if below { a > b } else { a < b };
        let best =
            bounds.into_iter().reduce(|best, next| if stricter(&next.0, &best.0) { next } else { best });
        best.map(|(_, bound)| bound)
    }

    fn arrays(&mut self, out: &mut Keywords) {
        out.items = self.items();
        out.min_items = self.least(Keyword::MinItems);
        out.max_items = self.most(Keyword::MaxItems);
        out.unique_items = self.flag(Keyword::UniqueItems);
        if let Some(id) = self.subschema(Keyword::Contains) {
            let least = self.count(Keyword::MinContains).unwrap_or(1);
            let most = self.most(Keyword::MaxContains);
            if least > 0 || most.is_some() || self.loader.keeps {
                out.contains = Some((id, least, most));
                out.contains_evaluates = self.loader.keeps && self.dialect.draft == Draft::Draft2020;
            }
        }
        out.unevaluated_items = self.telling(Keyword::UnevaluatedItems);
    }

    fn items(&mut self) -> Option<ItemsKeyword> {
        let items = self.get(Keyword::ItemsKeyword);
        // An array of schemas means nothing else in 2020-12, so it is read there as it was.
        let listed = items.filter(|&at| self.document.kind(at) == ValueKind::Array);
        let (prefix, rest) = match (self.get(Keyword::PrefixItems), listed) {
            (Some(prefix), _) => (Some((Keyword::PrefixItems, prefix)), items),
            (None, Some(listed)) => {
                (Some((Keyword::ItemsKeyword, listed)), self.get(Keyword::AdditionalItems))
            }
            (None, None) => (None, items),
        };
        let mut read = ItemsKeyword::default();
        if let Some((keyword, at)) = prefix {
            read.prefix = self.schemas(keyword, at, 0);
        }
        read.rest = rest.map(|at| self.schema(at));
        if !self.loader.keeps {
            read.rest = read.rest.filter(|&id| !self.loader.is_true(id));
            if read.rest.is_none() {
                let informative =
                    read.prefix.iter().rposition(|&id| !self.loader.is_true(id)).map_or(0, |at| at + 1);
                read.prefix.truncate(informative);
            }
        }
        (read != ItemsKeyword::default()).then_some(read)
    }

    /// Whether this is the root of the schema's own document.
    fn is_whole(&self) -> bool {
        self.site.document == 0 && self.site.at == ROOT
    }

    /// Whether an object has no keys but those that are named, although the schema does not say so.
    fn is_closed(&self) -> bool {
        let options = self.loader.options;
        let is_named_only = options.pairs.as_ref().is_some_and(|form| form.named_only);
        let is_set = |&keyword: &Keyword| self.get(keyword).is_some();
        !is_set(&Keyword::AdditionalProperties)
            && (options.closed
                && is_set(&Keyword::Properties)
                && !self.loader.open.contains(&(self.site.document, self.site.at))
                || is_named_only && self.is_whole() && !NAMING.iter().any(is_set))
    }

    fn objects(&mut self, out: &mut Keywords) {
        out.properties = self.named(Keyword::Properties);
        let mut unread = false;
        if let Some(at) = self.get(Keyword::PatternProperties) {
            let document = Arc::clone(&self.document);
            for (key, value) in self.map(Keyword::PatternProperties, at) {
                match self.pattern(document.text(key), key) {
                    Some(regex) => {
                        let id = self.schema(value);
                        out.pattern_properties.push((regex, id));
                    }
                    None => unread = true,
                }
            }
        }
        // Where it is not known which keys the patterns take, it is not known which ones are left.
        if !unread {
            out.additional_properties = match self.is_closed() {
                true => Some(self.loader.nothing(self.site)),
                false => self.telling(Keyword::AdditionalProperties),
            };
            out.unevaluated_properties = self.telling(Keyword::UnevaluatedProperties);
        }
        out.property_names = self.subschema(Keyword::PropertyNames).filter(|&id| !self.loader.is_true(id));
        if let Some(at) = self.get(Keyword::Required) {
            out.required = self.texts(Keyword::Required, at);
        }
        out.min_properties = self.least(Keyword::MinProperties);
        out.max_properties = self.most(Keyword::MaxProperties);
    }

    fn dependent(&mut self, out: &mut Keywords) {
        for keyword in [Keyword::DependentRequired, Keyword::DependentSchemas, Keyword::Dependencies] {
            let Some(at) = self.get(keyword) else { continue };
            let document = Arc::clone(&self.document);
            for (key, value) in self.map(keyword, at) {
                let name: Arc<str> = document.text(key).into();
                let lists = document.kind(value) == ValueKind::Array && keyword != Keyword::DependentSchemas;
                if keyword == Keyword::DependentRequired || lists {
                    let texts = self.texts(keyword, value);
                    if !texts.is_empty() {
                        out.dependent_required.push((name, texts));
                    }
                } else {
                    self.loader.open.insert((self.site.document, value));
                    let id = self.schema(value);
                    if !self.loader.is_true(id) {
                        self.in_place.push((value, id));
                        out.dependent_schemas.push((name, id));
                    }
                }
            }
        }
    }

    fn logic(&mut self, out: &mut Keywords) {
        for keyword in [Keyword::Ref, Keyword::DynamicRef, Keyword::RecursiveRef] {
            let Some(at) = self.get(keyword) else { continue };
            let referred = self.loader.referred(self.site, keyword, at);
            self.in_place.extend(referred.map(|id| (at, id)));
            out.all_of.extend(referred);
        }
        out.all_of.extend(self.branches(Keyword::AllOf));
        out.all_of.retain(|&id| !self.loader.is_true(id));
        out.any_of = self.branches(Keyword::AnyOf);
        if !self.loader.keeps && out.any_of.iter().any(|&id| self.loader.is_true(id)) {
            out.any_of.clear();
        }
        out.one_of = self.branches(Keyword::OneOf);
        out.not = self.subschema(Keyword::Not);
        if self.get(Keyword::If).is_some() {
            let then = self.branch(Keyword::Then);
            let otherwise = self.branch(Keyword::Else);
            if then.is_some() || otherwise.is_some() || self.loader.keeps {
                out.conditional = self.subschema(Keyword::If).map(|test| (test, then, otherwise));
            }
            let test = out.conditional.map(|(test, ..)| test);
            for (keyword, id) in [(Keyword::If, test), (Keyword::Then, then), (Keyword::Else, otherwise)] {
                self.in_place.extend(self.get(keyword).zip(id));
            }
        }
    }

    /// The subschemas of a list.
    fn branches(&mut self, keyword: Keyword) -> Vec<SubschemaId> {
        let Some(at) = self.get(keyword) else { return Vec::new() };
        let branches = self.schemas(keyword, at, 1);
        self.in_place.extend(branches.iter().map(|&id| (at, id)));
        branches
    }

    /// [`Keywords::reading`]. The keywords about parts are where `properties` is, or the first of the others.
    fn reading(&mut self) -> Vec<Option<SubschemaId>> {
        if self.in_place.is_empty() {
            return Vec::new();
        }
        let others = [Keyword::PatternProperties, Keyword::PrefixItems, Keyword::ItemsKeyword];
        let first = others.into_iter().filter_map(|keyword| self.get(keyword)).min();
        let own = self.get(Keyword::Properties).or(first).unwrap_or(ROOT);
        let in_place = self.in_place.drain(..).map(|(at, id)| (at, Some(id)));
        let mut met: Vec<_> = std::iter::once((own, None)).chain(in_place).collect();
        if met.is_sorted_by_key(|&(at, _)| at) {
            return Vec::new();
        }
        met.sort_by_key(|&(at, _)| at);
        met.into_iter().map(|(_, id)| id).collect()
    }

    fn branch(&mut self, keyword: Keyword) -> Option<SubschemaId> {
        self.subschema(keyword).filter(|&id| !self.loader.is_true(id))
    }
}
