//! Dynamic scopes: the anchor that each dynamic name refers to. Only the outermost anchor of a name counts, so a scope is a
//! small set of bindings; equal sets are interned.

use rustc_hash::FxHashMap;

use super::document::ValueId;
use crate::id;

id!(
    /// The number of a scope.
    pub(super) struct ScopeId
);

/// A dynamic name and the place of its outermost anchor: resource and value. The empty name is `$recursiveAnchor`.
type Binding = (String, u32, ValueId);

/// All scopes seen so far; 0 is the empty one.
#[derive(Debug)]
pub(super) struct Scopes {
    all: Vec<Vec<Binding>>,
    numbers: FxHashMap<Vec<Binding>, ScopeId>,
    entered: FxHashMap<(ScopeId, u32), ScopeId>,
}

impl Default for Scopes {
    fn default() -> Self {
        let numbers = FxHashMap::from_iter([(Vec::new(), ScopeId(0))]);
        Scopes { all: vec![Vec::new()], numbers, entered: FxHashMap::default() }
    }
}

impl Scopes {
    /// The scope after entering a resource with these dynamic anchors.
    pub fn enter(&mut self, scope: ScopeId, resource: u32, anchors: &[(String, ValueId)]) -> ScopeId {
        if anchors.is_empty() {
            return scope;
        }
        if let Some(&known) = self.entered.get(&(scope, resource)) {
            return known;
        }
        let mut bindings = self.all[scope.index()].clone();
        for (name, at) in anchors {
            if !bindings.iter().any(|(bound, ..)| bound == name) {
                bindings.push((name.clone(), resource, *at));
            }
        }
        bindings.sort();
        let next = ScopeId::new(self.all.len());
        let number = *self.numbers.entry(bindings.clone()).or_insert(next);
        if number == next {
            self.all.push(bindings);
        }
        self.entered.insert((scope, resource), number);
        number
    }

    /// Where a dynamic name leads: resource and value.
    pub fn find(&self, scope: ScopeId, name: &str) -> Option<(u32, ValueId)> {
        self.all[scope.index()]
            .iter()
            .find(|(bound, ..)| bound == name)
            .map(|&(_, resource, at)| (resource, at))
    }
}
