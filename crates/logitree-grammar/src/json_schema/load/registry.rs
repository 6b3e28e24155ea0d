//! Documents, schema resources, and the resolution of references: base URIs, identifiers, anchors, pointers. Nothing is
//! fetched.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::Draft;
use super::dialect::{self, Dialect, KeywordGroup};
use super::document::{shorten, Document, ValueId, ValueKind, ROOT};
use super::parse::parse;
use super::problems::{SchemaFault, SchemaProblem};
use super::{meta_schemas, uri};
use crate::Result;

/// Containers with more children than this get an index when a pointer goes through them.
const LINEAR: usize = 32;

/// Maximum length of a chain of meta-schemas.
const META_DEPTH: usize = 8;

/// Maximum length of a URI in bytes; every reference is resolved against one.
const LONGEST_URI: usize = 8192;

/// A schema with its own URI: a document's root, or a subschema with an identifier.
#[derive(Debug)]
pub(super) struct Resource {
    pub document: u32,
    pub root: ValueId,
    pub uri: String,
    pub dialect: Dialect,
    /// Names and places of dynamic anchors; the empty name is `$recursiveAnchor`.
    pub dynamic: Vec<(String, ValueId)>,
}

/// What a reference leads to.
#[derive(Debug, Clone)]
pub(super) struct ReferenceTarget {
    pub resource: u32,
    pub at: ValueId,
    /// The fragment, where it is an anchor's name.
    pub anchor: Option<String>,
}

/// All documents and resources that were needed so far.
#[derive(Debug)]
pub(super) struct SchemaRegistry<'d> {
    given: &'d [(String, String)],
    /// Which of the given documents were read, or tried.
    added: Vec<bool>,
    /// The given documents by the URI they came with, and by their identifiers once one was sought so.
    given_uris: FxHashMap<&'d str, usize>,
    given_ids: Option<FxHashMap<String, usize>>,
    draft: Draft,
    /// URI (empty for the schema itself) and content.
    pub documents: Vec<(String, Arc<Document>)>,
    pub resources: Vec<Resource>,
    /// The resource of each document's root.
    wholes: Vec<u32>,
    by_uri: FxHashMap<String, u32>,
    anchors: FxHashMap<(u32, String), ValueId>,
    inner: FxHashMap<(u32, ValueId), u32>,
    /// Where references led to and an identifier was looked for.
    sought: FxHashSet<(u32, ValueId)>,
    indexes: FxHashMap<(u32, ValueId), FxHashMap<Box<str>, ValueId>>,
    dialects: FxHashMap<String, Option<Dialect>>,
    pub problems: Vec<SchemaProblem>,
}

impl<'d> SchemaRegistry<'d> {
    /// The registry that begins with the schema's own text, as resource 0.
    ///
    /// # Errors
    /// The text is not JSON, or too large.
    pub fn new(text: &str, draft: Draft, given: &'d [(String, String)]) -> Result<SchemaRegistry<'d>> {
        let mut registry = SchemaRegistry {
            given,
            added: vec![false; given.len()],
            given_uris: given.iter().enumerate().rev().map(|(at, (uri, _))| (bare(uri), at)).collect(),
            given_ids: None,
            draft,
            documents: Vec::new(),
            resources: Vec::new(),
            wholes: Vec::new(),
            by_uri: FxHashMap::default(),
            anchors: FxHashMap::default(),
            inner: FxHashMap::default(),
            sought: FxHashSet::default(),
            indexes: FxHashMap::default(),
            dialects: FxHashMap::default(),
            problems: Vec::new(),
        };
        registry.add("", parse(text)?);
        Ok(registry)
    }

    /// The document of that number.
    pub fn document(&self, document: u32) -> &Arc<Document> {
        &self.documents[document as usize].1
    }

    /// The place of a value, for messages.
    pub fn place(&self, document: u32, at: ValueId) -> String {
        let (uri, content) = &self.documents[document as usize];
        format!("{uri}#{}", content.pointer(at))
    }

    /// The resource that a value is in, given its parent's.
    pub fn resource_at(&self, document: u32, at: ValueId, parent: u32) -> u32 {
        if self.inner.is_empty() {
            return parent;
        }
        self.inner.get(&(document, at)).copied().unwrap_or(parent)
    }

    /// Adds a document under the URI it was given by; its root's resource.
    fn add(&mut self, uri: &str, content: Document) -> u32 {
        let document = self.documents.len() as u32;
        let content = Arc::new(content);
        self.documents.push((uri.into(), Arc::clone(&content)));
        let dialect = self.dialect_at(document, ROOT, Dialect::of(self.draft));
        let mut base = uri.to_string();
        let id = content.get_string(ROOT, dialect.id());
        if let Some(id) = id.filter(|_| !dialect.ref_stands_alone() || content.get(ROOT, "$ref").is_none()) {
            base = self.identifier(document, ROOT, uri, id).unwrap_or(base);
        }
        let resource =
            self.resource(Resource { document, root: ROOT, uri: base, dialect, dynamic: Vec::new() });
        self.wholes.push(resource);
        self.by_uri.entry(uri.into()).or_insert(resource);
        self.index(document, ROOT, resource);
        resource
    }

    /// The URI that an identifier names; `None`, which is reported, if it is too long.
    fn identifier(&mut self, document: u32, at: ValueId, base: &str, id: &str) -> Option<String> {
        let uri = if id.len() > LONGEST_URI { id.into() } else { uri::resolve(base, id) };
        if uri.len() <= LONGEST_URI {
            return Some(uri);
        }
        let fault =
            SchemaFault::new(format!("the identifier {} is longer than {LONGEST_URI} bytes", shorten(id)));
        self.problems.push(SchemaProblem { document, at, fault });
        None
    }

    fn resource(&mut self, resource: Resource) -> u32 {
        let number = self.resources.len() as u32;
        self.by_uri.entry(resource.uri.clone()).or_insert(number);
        self.resources.push(resource);
        number
    }

    /// Finds identifiers and anchors in the subschemas from `at` down.
    fn index(&mut self, document: u32, at: ValueId, resource: u32) {
        let content = Arc::clone(self.document(document));
        let mut open = vec![(at, resource)];
        while let Some((at, mut resource)) = open.pop() {
            if at != self.resources[resource as usize].root {
                resource = self.identify(&content, at, resource);
            }
            self.name(&content, at, resource);
            if content.names_inner {
                subschemas(&content, at, |child| open.push((child, resource)));
            }
        }
    }

    /// The resource that begins at `at`, or the one that contains it.
    fn identify(&mut self, content: &Document, at: ValueId, parent: u32) -> u32 {
        let Resource { document, dialect, ref uri, .. } = self.resources[parent as usize];
        if content.get_string(at, "$id").or_else(|| content.get_string(at, "id")).is_none() {
            return parent;
        }
        let base = uri.clone();
        let dialect = self.dialect_at(document, at, dialect);
        let Some(id) = content.get_string(at, dialect.id()) else { return parent };
        if dialect.ref_stands_alone() && content.get(at, "$ref").is_some() {
            return parent;
        }
        let (reference, fragment) = uri::split(id);
        let mut resource = parent;
        if !reference.is_empty() {
            let uri = self.identifier(document, at, &base, reference);
            if let Some(uri) = uri.filter(|uri| *uri != base) {
                resource = self.resource(Resource { document, root: at, uri, dialect, dynamic: Vec::new() });
                self.inner.insert((document, at), resource);
            }
        }
        if dialect.ref_stands_alone() && !fragment.is_empty() {
            self.anchors.entry((resource, fragment.into())).or_insert(at);
        }
        resource
    }

    /// Takes the anchors of one subschema.
    fn name(&mut self, content: &Document, at: ValueId, resource: u32) {
        let Resource { dialect, root, .. } = self.resources[resource as usize];
        if dialect.draft < Draft::Draft2019 {
            return;
        }
        for (key, value) in content.members(at) {
            let name = content.text(key);
            let dynamic = name == "$dynamicAnchor" && dialect.draft == Draft::Draft2020;
            if dynamic || name == "$anchor" {
                let Some(anchor) = content.string(value) else { continue };
                self.anchors.entry((resource, anchor.into())).or_insert(at);
                if dynamic {
                    self.resources[resource as usize].dynamic.push((anchor.into(), at));
                }
            } else if name == "$recursiveAnchor"
                && dialect.draft == Draft::Draft2019
                && at == root
                && content.kind(value) == ValueKind::True
            {
                self.resources[resource as usize].dynamic.push((String::new(), at));
            }
        }
    }

    /// The dialect that a schema's `$schema` names; `inherited` where it names none, or none that is known.
    fn dialect_at(&mut self, document: u32, at: ValueId, inherited: Dialect) -> Dialect {
        let content = Arc::clone(self.document(document));
        let Some(value) = content.get(at, "$schema") else { return inherited };
        let found = match content.string(value) {
            Some(uri) => self.dialect(uri, META_DEPTH),
            None => Err(SchemaFault::new(format!("`$schema` is {}, not a URI", content.show(value)))),
        };
        found.unwrap_or_else(|fault| {
            self.problems.push(SchemaProblem { document, at: value, fault });
            inherited
        })
    }

    fn dialect(&mut self, schema: &str, depth: usize) -> Result<Dialect, SchemaFault> {
        let name = bare(schema);
        if let Some(draft) = dialect::draft(name) {
            return Ok(Dialect::of(draft));
        }
        if matches!(name, "http://json-schema.org/schema" | "https://json-schema.org/schema") {
            return Ok(Dialect::of(self.draft));
        }
        let fault = || {
            SchemaFault::new(format!("`$schema` names a dialect that is not known: {}", shorten(schema)))
                .help(
                    "drafts 4, 6, 7, 2019-09 and 2020-12 are known; give another meta-schema in `documents`",
                )
        };
        if let Some(&known) = self.dialects.get(name) {
            return known.ok_or_else(fault);
        }
        let found = self.custom(name, depth).unwrap_or_else(|| Err(fault()));
        self.dialects.insert(name.into(), found.as_ref().ok().copied());
        found
    }

    /// The dialect of a meta-schema that was given; `None` where it was not.
    fn custom(&mut self, name: &str, depth: usize) -> Option<Result<Dialect, SchemaFault>> {
        let depth = depth.checked_sub(1)?;
        let given = match self.given_uris.get(name) {
            Some(&given) => given,
            None => *self.given_ids().get(name)?,
        };
        let content = parse(&self.given[given].1).ok()?;
        let of = match content.get_string(ROOT, "$schema").filter(|of| bare(of) != name) {
            Some(of) => self.dialect(of, depth),
            None => Ok(Dialect::of(self.draft)),
        };
        Some(of.and_then(|of| vocabularies(&content, of)))
    }

    /// The given documents by the identifiers of their roots.
    fn given_ids(&mut self) -> &FxHashMap<String, usize> {
        let given = self.given;
        self.given_ids.get_or_insert_with(|| {
            let id = |(at, (_, text)): (usize, &(String, String))| {
                Some((bare(parse(text).ok()?.get_string(ROOT, "$id")?).to_string(), at))
            };
            given.iter().enumerate().rev().filter_map(id).collect()
        })
    }

    /// The resource of a URI (without fragment): known, or in a document that was given or is built in.
    fn find(&mut self, name: &str) -> Result<Option<u32>, SchemaFault> {
        if let Some(&known) = self.by_uri.get(name) {
            return Ok(Some(known));
        }
        if let Some(&at) = self.given_uris.get(name) {
            return self.add_given(at).map(Some);
        }
        if let Some(text) = meta_schemas::find(name) {
            return self.add_text(name, text).map(Some);
        }
        for at in 0..self.given.len() {
            if !self.added[at] {
                self.add_given(at)?;
            }
        }
        Ok(self.by_uri.get(name).copied())
    }

    fn add_given(&mut self, at: usize) -> Result<u32, SchemaFault> {
        let (uri, text) = &self.given[at];
        if std::mem::replace(&mut self.added[at], true) {
            return Err(SchemaFault::new(format!("the document {} is not JSON", shorten(uri))));
        }
        self.add_text(bare(uri), text)
    }

    fn add_text(&mut self, uri: &str, text: &str) -> Result<u32, SchemaFault> {
        match parse(text) {
            Ok(content) => Ok(self.add(uri, content)),
            Err(error) => Err(SchemaFault::new(format!(
                "the document {}: {} at {}",
                shorten(uri),
                error.message,
                error.place
            ))),
        }
    }

    /// What `reference` leads to, read within `resource`.
    pub fn resolve(&mut self, resource: u32, reference: &str) -> Result<ReferenceTarget, SchemaFault> {
        let (locator, fragment) = uri::split(reference);
        let mut resource = resource;
        if !locator.is_empty() {
            let whole = uri::resolve(&self.resources[resource as usize].uri, locator);
            resource = self.find(&whole)?.ok_or_else(|| {
                SchemaFault::new(format!(
                    "`{}` leads to {}, which is not at hand",
                    shorten(reference),
                    shorten(&whole)
                ))
                .help("give that document in `documents`: its URI and its JSON")
            })?;
        }
        let fragment = match fragment.contains('%') {
            true => uri::decode(fragment),
            false => Some(fragment.to_string()),
        };
        let fragment = fragment.ok_or_else(|| {
            SchemaFault::new(format!("`{}` has a wrong percent escape", shorten(reference)))
        })?;
        if fragment.is_empty() || fragment.starts_with('/') {
            let Resource { document, root, dialect, .. } = self.resources[resource as usize];
            let found = self.follow(resource, &fragment, reference);
            // Before 2019-09 many took an inner identifier for a name only, and wrote pointers from the document's root.
            if found.is_ok() || root == ROOT || !dialect.ref_stands_alone() {
                return found;
            }
            return self.follow(self.wholes[document as usize], &fragment, reference).or(found);
        }
        let Some(&at) = self.anchors.get(&(resource, fragment.clone())) else {
            return Err(SchemaFault::new(format!(
                "`{}` leads to an anchor that is not there",
                shorten(reference)
            )));
        };
        let document = self.resources[resource as usize].document;
        Ok(ReferenceTarget { resource: self.resource_at(document, at, resource), at, anchor: Some(fragment) })
    }

    /// Follows a JSON pointer from a resource's root.
    fn follow(
        &mut self,
        mut resource: u32,
        pointer: &str,
        reference: &str,
    ) -> Result<ReferenceTarget, SchemaFault> {
        let Resource { document, root, .. } = self.resources[resource as usize];
        let mut at = root;
        for token in pointer.split('/').skip(1) {
            let token = match token.contains('~') {
                true => Cow::Owned(token.replace("~1", "/").replace("~0", "~")),
                false => Cow::Borrowed(token),
            };
            at = self.step(document, at, &token).ok_or_else(|| {
                let message =
                    format!("`{}` leads nowhere: there is no {:?}", shorten(reference), shorten(&token));
                SchemaFault { trail: vec![(document, at)], ..SchemaFault::new(format!("{message} in")) }
            })?;
            resource = self.resource_at(document, at, resource);
        }
        // An identifier where no subschema was expected: found only now that a reference makes it one.
        if self.document(document).names_inner && at != root && self.sought.insert((document, at)) {
            if self.inner.contains_key(&(document, at)) {
                return Ok(ReferenceTarget { resource, at, anchor: None });
            }
            let content = Arc::clone(self.document(document));
            resource = self.identify(&content, at, resource);
            if resource as usize + 1 == self.resources.len() && self.resources[resource as usize].root == at {
                self.index(document, at, resource);
            }
        }
        Ok(ReferenceTarget { resource, at, anchor: None })
    }

    fn step(&mut self, document: u32, at: ValueId, token: &str) -> Option<ValueId> {
        let content = Arc::clone(self.document(document));
        if content.kind(at) == ValueKind::Object {
            if content.len(at) <= LINEAR {
                return content.get(at, token);
            }
            let index = self.indexes.entry((document, at)).or_insert_with(|| {
                content.members(at).map(|(key, value)| (content.text(key).into(), value)).collect()
            });
            return index.get(token).copied();
        }
        let plain = token == "0" || !token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit());
        let place: usize = token.parse().ok().filter(|_| plain)?;
        if content.len(at) <= LINEAR {
            return content.elements(at).nth(place);
        }
        let index = self.indexes.entry((document, at)).or_insert_with(|| {
            content.elements(at).enumerate().map(|(n, e)| (n.to_string().into(), e)).collect()
        });
        index.get(token).copied()
    }
}

/// A URI without the empty fragment that some write.
fn bare(uri: &str) -> &str {
    uri.strip_suffix('#').unwrap_or(uri)
}

/// The dialect of a meta-schema's `$vocabulary`, `of` where it has none.
fn vocabularies(meta: &Document, of: Dialect) -> Result<Dialect, SchemaFault> {
    let Some(list) = meta.get(ROOT, "$vocabulary").filter(|_| of.draft >= Draft::Draft2019) else {
        return Ok(of);
    };
    let mut groups = vec![KeywordGroup::Core];
    for (key, needed) in meta.members(list) {
        match dialect::vocabulary(meta.text(key)) {
            Some(group) => groups.extend(group),
            None if meta.kind(needed) == ValueKind::True => {
                let message =
                    format!("the meta-schema needs a vocabulary that is not known: {}", meta.show(key));
                return Err(SchemaFault::new(message));
            }
            None => {}
        }
    }
    // 2019-09 has no vocabulary of its own for what is unevaluated.
    if of.draft == Draft::Draft2019 && groups.contains(&KeywordGroup::Applicator) {
        groups.push(KeywordGroup::Unevaluated);
    }
    Ok(Dialect::with(of.draft, |group| groups.contains(&group)))
}

/// Calls `each` for every value right below `at` that is a subschema in some draft.
fn subschemas(content: &Document, at: ValueId, mut each: impl FnMut(ValueId)) {
    for (key, value) in content.members(at) {
        match content.text(key) {
            "additionalItems"
            | "additionalProperties"
            | "not"
            | "contains"
            | "propertyNames"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => each(value),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => content.elements(value).for_each(&mut each),
            "items" if content.kind(value) == ValueKind::Array => content.elements(value).for_each(&mut each),
            "items" => each(value),
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependencies"
            | "dependentSchemas" => {
                content.members(value).for_each(|(_, value)| each(value));
            }
            _ => {}
        }
    }
}
