//! Walks from the root to every reachable subschema; makes one node for each pair of subschema and dynamic scope.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::super::{Schema, SchemaNode, SchemaOptions, SubschemaId};
use super::dialect::Keyword;
use super::document::{Document, SchemaPlaces, ValueId, ValueKind, ROOT};
use super::keywords;
use super::languages::StringLanguages;
use super::problems::{self, SchemaFault, SchemaProblem};
use super::registry::{ReferenceTarget, SchemaRegistry};
use super::scope::{ScopeId, Scopes};
use super::{cycles, lenient};
use crate::{Error, ErrorKind, Result};

/// Maximum number of subschemas of one schema. Each takes up to 600 bytes.
const MAX: usize = 400_000;

/// Marks a reference that is being followed.
const FOLLOWED: SubschemaId = SubschemaId(u32::MAX);

/// A subschema within its resource and dynamic scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubschemaSite {
    pub document: u32,
    pub at: ValueId,
    pub resource: u32,
    pub scope: ScopeId,
}

impl SubschemaSite {
    fn key(self) -> (u32, ValueId, ScopeId) {
        (self.document, self.at, self.scope)
    }
}

/// What a subschema is at first sight.
enum FirstLook {
    True,
    False,
    /// Only a reference of this kind, with its text at this value.
    Reference(Keyword, ValueId),
    Keywords,
    /// Not a schema at all.
    Wrong,
}

/// A schema that is being read.
pub(super) struct SchemaLoader<'d> {
    pub options: &'d SchemaOptions,
    pub registry: SchemaRegistry<'d>,
    pub languages: StringLanguages,
    /// Whether an `unevaluated*` may occur: then keywords that allow everything still matter.
    pub keeps: bool,
    /// Nodes into which something was dropped.
    pub lossy: Vec<SubschemaId>,
    /// Values with schemas of an object that has other keys than they name: those of `dependentSchemas`.
    pub open: FxHashSet<(u32, ValueId)>,
    scopes: Scopes,
    nodes: Vec<Option<SchemaNode>>,
    sites: Vec<SubschemaSite>,
    ids: FxHashMap<(u32, ValueId, ScopeId), SubschemaId>,
    has_references: bool,
}

impl<'d> SchemaLoader<'d> {
    /// The loader of a schema's text.
    ///
    /// # Errors
    /// The text is not JSON, or too large.
    pub fn new(
        text: &str,
        options: &'d SchemaOptions,
        documents: &'d [(String, String)],
    ) -> Result<SchemaLoader<'d>> {
        let registry = SchemaRegistry::new(text, options.draft, documents)?;
        let mut texts = documents.iter().map(|(_, text)| text.as_str()).chain([text]);
        let keeps = texts.any(|text| text.contains("unevaluated") || text.contains("\\u"));
        // About one value in sixteen is a subschema.
        let size = registry.document(0).nodes.len() / 16;
        Ok(SchemaLoader {
            options,
            registry,
            languages: StringLanguages::default(),
            keeps,
            lossy: Vec::new(),
            open: FxHashSet::default(),
            scopes: Scopes::default(),
            nodes: Vec::with_capacity(size),
            sites: Vec::with_capacity(size),
            ids: FxHashMap::with_capacity_and_hasher(size, FxBuildHasher),
            has_references: false,
        })
    }

    /// Everything that the root reaches.
    pub fn load(mut self) -> Result<Schema> {
        let scope = self.enter(ScopeId(0), 0);
        let root = self.intern(SubschemaSite { document: 0, at: ROOT, resource: 0, scope });
        let mut next = 0;
        while next < self.nodes.len() {
            if self.nodes.len() > MAX {
                let message = format!("the schema reaches more than {MAX} subschemas");
                return Err(Error::new(ErrorKind::Limit, message));
            }
            if self.nodes[next].is_none() {
                let before = self.registry.problems.len();
                let site = self.sites[next];
                let node = keywords::read(&mut self, site);
                if self.registry.problems.len() > before {
                    self.lossy.push(SubschemaId::new(next));
                }
                self.nodes[next] = Some(node);
            }
            next += 1;
        }
        self.finish(root)
    }

    fn finish(self, root: SubschemaId) -> Result<Schema> {
        let mut nodes: Vec<SchemaNode> = self.nodes.into_iter().flatten().collect();
        let mut registry = self.registry;
        if self.has_references {
            for (node, message) in cycles::cut(&mut nodes)? {
                let SubschemaSite { document, at, .. } = self.sites[node.index()];
                registry.problems.push(SchemaProblem { document, at, fault: SchemaFault::new(message) });
            }
        }
        let found = std::mem::take(&mut registry.problems);
        let mut warnings = Vec::new();
        if self.options.lenient {
            lenient::widen(&mut nodes, &self.lossy);
            warnings = problems::warnings(found, |document, at| registry.place(document, at));
        } else if let Some(error) = problems::error(found, |document, at| registry.place(document, at)) {
            return Err(error);
        }
        let at = self.sites.iter().map(|site| (site.document, site.at)).collect();
        let places = SchemaPlaces::new(registry.documents, at);
        Ok(Schema { nodes, places, root, options: self.options.clone(), warnings })
    }

    /// The document that a site is in.
    pub fn document(&self, site: SubschemaSite) -> Arc<Document> {
        Arc::clone(self.registry.document(site.document))
    }

    /// Reports a problem at a value, which is left out.
    pub fn problem(&mut self, site: SubschemaSite, at: ValueId, fault: SchemaFault) {
        self.registry.problems.push(SchemaProblem { document: site.document, at, fault });
    }

    fn enter(&mut self, scope: ScopeId, resource: u32) -> ScopeId {
        self.scopes.enter(scope, resource, &self.registry.resources[resource as usize].dynamic)
    }

    /// The subschema at `at`, which is inside `site`.
    pub fn child(&mut self, site: SubschemaSite, at: ValueId) -> SubschemaId {
        let resource = self.registry.resource_at(site.document, at, site.resource);
        let scope = if resource == site.resource { site.scope } else { self.enter(site.scope, resource) };
        self.intern(SubschemaSite { document: site.document, at, resource, scope })
    }

    /// The target of a reference in `site`; `None` if there is none, which is reported.
    pub fn referred(&mut self, site: SubschemaSite, keyword: Keyword, at: ValueId) -> Option<SubschemaId> {
        let target = self.target(site, keyword, at)?;
        Some(self.intern(target))
    }

    /// Whether the node allows every value, as far as is known before it is read.
    pub fn is_true(&self, id: SubschemaId) -> bool {
        matches!(self.nodes[id.index()], Some(SchemaNode::True))
    }

    fn intern(&mut self, mut site: SubschemaSite) -> SubschemaId {
        let mut followed = Vec::new();
        let id = loop {
            match self.ids.get(&site.key()) {
                Some(&FOLLOWED) => {
                    let round = Self::round(&followed, site);
                    self.problem(site, site.at, round);
                    break self.dropped(site);
                }
                Some(&id) => break id,
                None => {}
            }
            match self.look(site) {
                FirstLook::True => break self.push(site, Some(SchemaNode::True)),
                FirstLook::False => break self.push(site, Some(SchemaNode::False)),
                FirstLook::Keywords => break self.push(site, None),
                FirstLook::Reference(keyword, at) => {
                    self.ids.insert(site.key(), FOLLOWED);
                    followed.push(site);
                    match self.target(site, keyword, at) {
                        Some(target) => site = target,
                        None => break self.dropped(site),
                    }
                }
                FirstLook::Wrong => {
                    let shown = self.document(site).show(site.at);
                    let message = format!("a schema is an object, true or false, not {shown}");
                    self.problem(site, site.at, SchemaFault::new(message));
                    break self.dropped(site);
                }
            }
        };
        for site in followed {
            self.ids.insert(site.key(), id);
        }
        id
    }

    /// A node inside of `site` that allows nothing.
    pub fn nothing(&mut self, site: SubschemaSite) -> SubschemaId {
        let id = SubschemaId::new(self.nodes.len());
        self.nodes.push(Some(SchemaNode::False));
        self.sites.push(site);
        id
    }

    fn dropped(&mut self, site: SubschemaSite) -> SubschemaId {
        let id = self.push(site, Some(SchemaNode::True));
        self.lossy.push(id);
        id
    }

    fn push(&mut self, site: SubschemaSite, node: Option<SchemaNode>) -> SubschemaId {
        let id = SubschemaId::new(self.nodes.len());
        self.nodes.push(node);
        self.sites.push(site);
        self.ids.insert(site.key(), id);
        id
    }

    fn look(&self, site: SubschemaSite) -> FirstLook {
        let content = self.registry.document(site.document);
        match content.kind(site.at) {
            ValueKind::True => return FirstLook::True,
            ValueKind::False => return FirstLook::False,
            ValueKind::Object => {}
            _ => return FirstLook::Wrong,
        }
        let dialect = self.registry.resources[site.resource as usize].dialect;
        let mut references = None;
        let mut others = false;
        for (key, value) in content.members(site.at) {
            match dialect.keyword(content.text(key)) {
                Some(Keyword::Ref) if dialect.ref_stands_alone() => {
                    return FirstLook::Reference(Keyword::Ref, value)
                }
                Some(reference @ (Keyword::Ref | Keyword::DynamicRef | Keyword::RecursiveRef)) => {
                    others |= references.is_some();
                    references = Some((reference, value));
                }
                Some(_) => others = true,
                None => {}
            }
        }
        match references {
            _ if others => FirstLook::Keywords,
            Some((keyword, value)) => FirstLook::Reference(keyword, value),
            None => FirstLook::True,
        }
    }

    /// The site that a reference leads to.
    fn target(&mut self, site: SubschemaSite, keyword: Keyword, at: ValueId) -> Option<SubschemaSite> {
        self.has_references = true;
        let content = self.document(site);
        let Some(text) = content.string(at) else {
            let message = format!("`{}` is {}, not a URI reference", keyword.name(), content.show(at));
            self.problem(site, at, SchemaFault::new(message));
            return None;
        };
        match self.registry.resolve(site.resource, text) {
            Ok(target) => {
                let target = self.rebind(site, keyword, target);
                let scope = self.enter(site.scope, target.resource);
                let document = self.registry.resources[target.resource as usize].document;
                Some(SubschemaSite { document, at: target.at, resource: target.resource, scope })
            }
            Err(fault) => {
                self.problem(site, at, fault);
                None
            }
        }
    }

    /// Where a dynamic reference leads instead, given the scope.
    fn rebind(&self, site: SubschemaSite, keyword: Keyword, target: ReferenceTarget) -> ReferenceTarget {
        let name = match keyword {
            Keyword::DynamicRef => target.anchor.as_deref(),
            Keyword::RecursiveRef => Some(""),
            _ => None,
        };
        let dynamic = &self.registry.resources[target.resource as usize].dynamic;
        let found = name
            .filter(|name| dynamic.iter().any(|(anchor, at)| anchor == name && *at == target.at))
            .and_then(|name| self.scopes.find(site.scope, name));
        match found {
            Some((resource, at)) => ReferenceTarget { resource, at, anchor: None },
            None => target,
        }
    }

    /// The fault of references that only refer to each other.
    fn round(followed: &[SubschemaSite], again: SubschemaSite) -> SchemaFault {
        let from = followed.iter().position(|site| site.key() == again.key()).unwrap_or(0);
        let trail = followed[from..].iter().chain([&again]).take(6).map(|site| (site.document, site.at));
        SchemaFault {
            trail: trail.collect(),
            ..SchemaFault::new("references that only refer to each other:")
        }
    }
}
