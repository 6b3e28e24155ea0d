//! A vector whose copies share their elements: a copy costs nothing, and a change of one copies the few nodes that lead to
//! the changed element. It must equal a `Vec` that is cloned.

use std::sync::Arc;

/// Binary digits of an index that a node takes: it has up to 32 children or elements.
const BITS: u32 = 5;
const WIDE: usize = 1 << BITS;

#[derive(Clone)]
enum Node<T> {
    Inner(Vec<Arc<Node<T>>>),
    Leaf(Vec<T>),
}

/// The vector.
pub(super) struct SharedVec<T> {
    root: Arc<Node<T>>,
    len: usize,
    /// Levels of inner nodes.
    height: u32,
}

impl<T> Clone for SharedVec<T> {
    fn clone(&self) -> Self {
        SharedVec { root: Arc::clone(&self.root), ..*self }
    }
}

impl<T> Default for SharedVec<T> {
    fn default() -> Self {
        SharedVec { root: Arc::new(Node::Leaf(Vec::new())), len: 0, height: 0 }
    }
}

impl<T: Clone> SharedVec<T> {
    /// So many copies of one element, which share their nodes.
    pub fn filled(value: &T, len: usize) -> SharedVec<T> {
        let mut vec = SharedVec::default();
        let mut full = Arc::new(Node::Leaf(vec![value.clone(); WIDE]));
        let mut rest = Arc::new(Node::Leaf(vec![value.clone(); len % WIDE]));
        let (mut nodes, mut has_rest) = (len / WIDE, !len.is_multiple_of(WIDE));
        while nodes + usize::from(has_rest) > 1 {
            let mut last = vec![Arc::clone(&full); nodes % WIDE];
            last.extend(has_rest.then(|| Arc::clone(&rest)));
            has_rest = !last.is_empty();
            rest = Arc::new(Node::Inner(last));
            full = Arc::new(Node::Inner(vec![full; WIDE]));
            nodes /= WIDE;
            vec.height += 1;
        }
        vec.root = if nodes == 1 { full } else { rest };
        vec.len = len;
        vec
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, at: usize) -> Option<&T> {
        if at >= self.len {
            return None;
        }
        let mut node = &*self.root;
        for level in (1..=self.height).rev() {
            let Node::Inner(children) = node else { return None };
            node = children.get(at >> (BITS * level) & (WIDE - 1))?;
        }
        match node {
            Node::Leaf(elements) => elements.get(at & (WIDE - 1)),
            Node::Inner(_) => None,
        }
    }

    /// The element, which is this copy's own from then on.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        let mut node = Arc::make_mut(&mut self.root);
        for level in (1..=self.height).rev() {
            let Node::Inner(children) = node else { return None };
            node = Arc::make_mut(children.get_mut(at >> (BITS * level) & (WIDE - 1))?);
        }
        match node {
            Node::Leaf(elements) => elements.get_mut(at & (WIDE - 1)),
            Node::Inner(_) => None,
        }
    }

    pub fn push(&mut self, value: T) {
        if self.len == WIDE << (BITS * self.height) {
            self.root = Arc::new(Node::Inner(vec![Arc::clone(&self.root)]));
            self.height += 1;
        }
        let (at, mut level) = (self.len, self.height);
        self.len += 1;
        let mut node = Arc::make_mut(&mut self.root);
        loop {
            match node {
                Node::Leaf(elements) => return elements.push(value),
                Node::Inner(children) => {
                    let place = at >> (BITS * level) & (WIDE - 1);
                    level -= 1;
                    if place == children.len() {
                        let empty = if level == 0 { Node::Leaf(Vec::new()) } else { Node::Inner(Vec::new()) };
                        children.push(Arc::new(empty));
                    }
                    node = Arc::make_mut(&mut children[place]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_to_a_vector(
            first in prop_oneof![0usize..5, 0usize..3000, Just(1024), Just(32), Just(32 * 1024), Just(32 * 1024 + 1)],
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0usize..40), 0..60),
        ) {
            let (mut shared, mut plain) = (SharedVec::filled(&7u32, first), vec![7u32; first]);
            let mut copies = Vec::new();
            for (at, value, more) in changes {
                copies.push((shared.clone(), plain.clone()));
                for value in 0..more as u32 {
                    shared.push(value);
                    plain.push(value);
                }
                if let Some(place) = (!plain.is_empty()).then(|| at.index(plain.len())) {
                    *shared.get_mut(place).unwrap() = value;
                    plain[place] = value;
                }
            }
            copies.push((shared, plain));
            for (mut shared, plain) in copies {
                prop_assert_eq!(shared.len(), plain.len());
                prop_assert!((0..plain.len()).all(|at| shared.get(at) == Some(&plain[at])));
                prop_assert_eq!(shared.get(plain.len()), None);
                prop_assert_eq!(shared.get_mut(plain.len()), None);
            }
        }
    }
}
