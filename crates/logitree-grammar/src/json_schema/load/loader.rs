//! From the root to all that it reaches: one node for each subschema and dynamic scope, made when something first
//! refers to it. It refuses to know what keywords mean.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::{NodeId, Options, Schema, SchemaNode};
use super::dialect::Keyword;
use super::document::{At, Document, Kind, Places};
use super::keywords;
use super::languages::Languages;
use super::problems::{Fault, Problem};
use super::registry::{Registry, Target};
use super::scope::{ScopeId, Scopes};
use super::{cycles, lenient};
use crate::{Error, ErrorKind, Result};

/// Subschemas of one schema. Each takes up to 600 bytes.
const MOST: usize = 400_000;

/// Stands for a reference that is being followed.
const FOLLOWED: NodeId = NodeId::MAX;

/// A subschema within its resource and dynamic scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub document: u32,
    pub at: At,
    pub resource: u32,
    pub scope: ScopeId,
}

impl Site {
    fn key(self) -> (u32, At, ScopeId) {
        (self.document, self.at, self.scope)
    }
}

/// What a subschema is at first sight.
enum Look {
    True,
    False,
    /// Nothing but a reference of this kind, whose text stands there.
    Reference(Keyword, At),
    Keywords,
    /// Not a schema at all.
    Wrong,
}

/// A schema that is being read.
pub(super) struct Loader<'d> {
    options: &'d Options,
    pub registry: Registry<'d>,
    pub languages: Languages,
    /// Whether something asks which properties or items were evaluated: then what allows everything still counts.
    pub keeps: bool,
    /// Nodes into which something was dropped.
    pub lossy: Vec<NodeId>,
    scopes: Scopes,
    nodes: Vec<Option<SchemaNode>>,
    sites: Vec<Site>,
    ids: FxHashMap<(u32, At, ScopeId), NodeId>,
    has_references: bool,
}

impl<'d> Loader<'d> {
    /// The loader of a schema's text.
    ///
    /// # Errors
    /// The text is not JSON, or too large.
    pub fn new(text: &str, options: &'d Options, documents: &'d [(String, String)]) -> Result<Loader<'d>> {
        let registry = Registry::new(text, options.draft, documents)?;
        let mut texts = documents.iter().map(|(_, text)| text.as_str()).chain([text]);
        let keeps = texts.any(|text| text.contains("unevaluated") || text.contains("\\u"));
        Ok(Loader {
            options,
            registry,
            languages: Languages::default(),
            keeps,
            lossy: Vec::new(),
            scopes: Scopes::default(),
            nodes: Vec::new(),
            sites: Vec::new(),
            ids: FxHashMap::default(),
            has_references: false,
        })
    }

    /// Everything that the root reaches.
    pub fn load(mut self) -> Result<Schema> {
        let scope = self.enter(0, 0);
        let root = self.intern(Site { document: 0, at: 0, resource: 0, scope });
        let mut next = 0;
        while next < self.nodes.len() {
            if self.nodes.len() > MOST {
                let message = format!("the schema reaches more than {MOST} subschemas");
                return Err(Error::new(ErrorKind::Limit, message));
            }
            if self.nodes[next].is_none() {
                let before = self.registry.problems.len();
                let site = self.sites[next];
                let node = keywords::read(&mut self, site);
                if self.registry.problems.len() > before {
                    self.lossy.push(next as NodeId);
                }
                self.nodes[next] = Some(node);
            }
            next += 1;
        }
        self.finish(root)
    }

    fn finish(self, root: NodeId) -> Result<Schema> {
        let mut nodes: Vec<SchemaNode> = self.nodes.into_iter().flatten().collect();
        let mut registry = self.registry;
        if self.has_references {
            for (node, message) in cycles::cut(&mut nodes)? {
                let Site { document, at, .. } = self.sites[node as usize];
                registry.problems.add(Problem { document, at, fault: Fault::new(message) });
            }
        }
        let problems = std::mem::take(&mut registry.problems);
        let mut warnings = Vec::new();
        if self.options.lenient {
            lenient::widen(&mut nodes, &self.lossy);
            warnings = problems.warnings(|document, at| registry.place(document, at));
        } else if let Some(error) = problems.error(|document, at| registry.place(document, at)) {
            return Err(error);
        }
        let at = self.sites.iter().map(|site| (site.document, site.at)).collect();
        let places = Places::new(registry.documents, at);
        Ok(Schema { nodes, places, root, options: self.options.clone(), warnings })
    }

    /// The document that a site is in.
    pub fn document(&self, site: Site) -> Arc<Document> {
        Arc::clone(self.registry.document(site.document))
    }

    /// Says that something at a value is wrong; it is left out.
    pub fn problem(&mut self, site: Site, at: At, fault: Fault) {
        self.registry.problems.add(Problem { document: site.document, at, fault });
    }

    fn enter(&mut self, scope: ScopeId, resource: u32) -> ScopeId {
        self.scopes.enter(scope, resource, &self.registry.resources[resource as usize].dynamic)
    }

    /// The subschema at `at`, which stands in `site`.
    pub fn child(&mut self, site: Site, at: At) -> NodeId {
        let resource = self.registry.resource_at(site.document, at, site.resource);
        let scope = if resource == site.resource { site.scope } else { self.enter(site.scope, resource) };
        self.intern(Site { document: site.document, at, resource, scope })
    }

    /// What a reference in `site` leads to; `None` where that is nothing, which is said.
    pub fn referred(&mut self, site: Site, keyword: Keyword, at: At) -> Option<NodeId> {
        let target = self.target(site, keyword, at)?;
        Some(self.intern(target))
    }

    /// Whether the node allows every value, as far as is known before it is read.
    pub fn is_true(&self, id: NodeId) -> bool {
        matches!(self.nodes[id as usize], Some(SchemaNode::True))
    }

    fn intern(&mut self, mut site: Site) -> NodeId {
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
                Look::True => break self.push(site, Some(SchemaNode::True)),
                Look::False => break self.push(site, Some(SchemaNode::False)),
                Look::Keywords => break self.push(site, None),
                Look::Reference(keyword, at) => {
                    self.ids.insert(site.key(), FOLLOWED);
                    followed.push(site);
                    match self.target(site, keyword, at) {
                        Some(target) => site = target,
                        None => break self.dropped(site),
                    }
                }
                Look::Wrong => {
                    let shown = self.document(site).show(site.at);
                    let message = format!("a schema is an object, true or false, not {shown}");
                    self.problem(site, site.at, Fault::new(message));
                    break self.dropped(site);
                }
            }
        };
        for site in followed {
            self.ids.insert(site.key(), id);
        }
        id
    }

    fn dropped(&mut self, site: Site) -> NodeId {
        let id = self.push(site, Some(SchemaNode::True));
        self.lossy.push(id);
        id
    }

    fn push(&mut self, site: Site, node: Option<SchemaNode>) -> NodeId {
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node);
        self.sites.push(site);
        self.ids.insert(site.key(), id);
        id
    }

    fn look(&self, site: Site) -> Look {
        let content = self.registry.document(site.document);
        match content.kind(site.at) {
            Kind::True => return Look::True,
            Kind::False => return Look::False,
            Kind::Object => {}
            _ => return Look::Wrong,
        }
        let dialect = self.registry.resources[site.resource as usize].dialect;
        let mut references = None;
        let mut others = false;
        for (key, value) in content.members(site.at) {
            match dialect.keyword(content.text(key)) {
                Some(Keyword::Ref) if dialect.ref_stands_alone() => {
                    return Look::Reference(Keyword::Ref, value)
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
            _ if others => Look::Keywords,
            Some((keyword, value)) => Look::Reference(keyword, value),
            None => Look::True,
        }
    }

    /// The site that a reference leads to.
    fn target(&mut self, site: Site, keyword: Keyword, at: At) -> Option<Site> {
        self.has_references = true;
        let content = self.document(site);
        let Some(text) = content.string(at) else {
            let message = format!("`{}` is {}, not a URI reference", keyword.name(), content.show(at));
            self.problem(site, at, Fault::new(message));
            return None;
        };
        match self.registry.resolve(site.resource, text) {
            Ok(target) => {
                let target = self.rebind(site, keyword, target);
                let scope = self.enter(site.scope, target.resource);
                let document = self.registry.resources[target.resource as usize].document;
                Some(Site { document, at: target.at, resource: target.resource, scope })
            }
            Err(fault) => {
                self.problem(site, at, fault);
                None
            }
        }
    }

    /// Where a dynamic reference leads instead, given the scope.
    fn rebind(&self, site: Site, keyword: Keyword, target: Target) -> Target {
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
            Some((resource, at)) => Target { resource, at, anchor: None },
            None => target,
        }
    }

    /// The fault of references that lead round to themselves and say nothing.
    fn round(followed: &[Site], again: Site) -> Fault {
        let from = followed.iter().position(|site| site.key() == again.key()).unwrap_or(0);
        let trail = followed[from..].iter().chain([&again]).take(6).map(|site| (site.document, site.at));
        Fault::new("references that lead round and say nothing:").trail(trail.collect())
    }
}
