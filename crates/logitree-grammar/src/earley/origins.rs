//! Interns origins: the callers that a callee resumes. Two callees with the same callers share one origin, in
//! whatever set they were entered, so that a loop returns to the set it started from. Callees that wait for
//! each other (left recursion) are interned together.

use rustc_hash::FxHashMap;

use super::close::Item;
use super::interner::SliceInterner;
use super::StateId;
use crate::{id, Result};

id!(
    /// An interned list of callers, or a callee of the set that is being closed (a local origin).
    pub(super) struct OriginId
);

/// The origin of the start: an item of it that accepts ends the whole text.
pub(super) const START: OriginId = OriginId(0);
/// The bit of local origins.
const LOCAL: u32 = 1 << 31;

impl OriginId {
    /// The origin of the callee at `index` of the set that is being closed.
    pub(super) fn local(index: usize) -> OriginId {
        OriginId(LOCAL | index as u32)
    }

    /// The index of a local origin in the set that is being closed.
    pub(super) fn as_local(self) -> Option<usize> {
        self.0.checked_sub(LOCAL).map(|index| index as usize)
    }
}

/// A state that was entered, and the items that wait for it.
pub(super) struct Callee {
    pub(super) state: StateId,
    pub(super) callers: Vec<Item>,
}

/// The origins by number.
pub(super) struct Origins {
    callers: Vec<Item>,
    /// Where each origin's callers end; they start where the previous ones end.
    ends: Vec<u32>,
    keys: SliceInterner<u32>,
    /// Key and rank within the group interned together.
    ids: FxHashMap<(u32, u32), OriginId>,
}

impl Origins {
    pub(super) fn new() -> Origins {
        Origins { callers: Vec::new(), ends: vec![0], keys: SliceInterner::new(), ids: FxHashMap::default() }
    }

    /// The items that resume when a callee of this origin accepts.
    pub(super) fn callers(&self, origin: OriginId) -> &[Item] {
        let origin = origin.index();
        let start = if origin == 0 { 0 } else { self.ends[origin - 1] };
        &self.callers[start as usize..self.ends[origin] as usize]
    }

    pub(super) fn byte_size(&self) -> usize {
        self.callers.len() * 8 + self.ends.len() * 20 + self.keys.byte_size()
    }

    /// Interns callees that refer to each other by local origins.
    pub(super) fn intern(&mut self, callees: &[Callee]) -> Result<Vec<OriginId>> {
        let mut known = vec![OriginId::local(0); callees.len()];
        for group in groups(callees) {
            self.intern_group(callees, group, &mut known)?;
        }
        Ok(known)
    }

    /// Interns a group of callees that wait for each other, or a single one. All other origins they refer to
    /// are resolved.
    fn intern_group(
        &mut self,
        callees: &[Callee],
        mut group: Vec<u32>,
        known: &mut [OriginId],
    ) -> Result<()> {
        group.sort_unstable_by_key(|&place| callees[place as usize].state);
        let ranks: FxHashMap<OriginId, u32> =
            group.iter().map(|&place| OriginId(LOCAL | place)).zip(0..).collect();
        let lists: Vec<Vec<Item>> = group
            .iter()
            .map(|&place| {
                let callers = callees[place as usize].callers.iter();
                sorted(callers.map(|caller| Item {
                    origin: match ranks.get(&caller.origin) {
                        Some(rank) => OriginId(LOCAL | rank),
                        None => resolve(caller.origin, known),
                    },
                    ..*caller
                }))
            })
            .collect();
        if let [list] = &lists[..] {
            if let Some(same) = self.unrolled(list) {
                known[group[0] as usize] = same;
                return Ok(());
            }
        }
        let mut key = Vec::new();
        for (list, &place) in lists.iter().zip(&group) {
            if group.len() > 1 {
                key.extend([callees[place as usize].state.0, list.len() as u32]);
            }
            key.extend(list.iter().flat_map(|caller| [caller.state.0, caller.origin.0]));
        }
        // An odd length distinguishes the key of a group from that of a single list.
        if group.len() > 1 {
            key.push(0);
        }
        let key = self.keys.intern(&key)?;
        let first = OriginId::new(self.ends.len());
        let ids: Vec<OriginId> = (0..lists.len() as u32)
            .map(|rank| *self.ids.entry((key, rank)).or_insert(OriginId(first.0 + rank)))
            .collect();
        for (&id, &place) in ids.iter().zip(&group) {
            known[place as usize] = id;
        }
        if ids[0] == first {
            for list in lists {
                let known =
                    list.iter().map(|caller| Item { origin: resolve(caller.origin, &ids), ..*caller });
                self.callers.extend(sorted(known));
                self.ends.push(self.callers.len() as u32);
            }
        }
        Ok(())
    }

    /// An origin whose next iteration this self-referring list is: replacing the self-reference by that
    /// origin gives that origin's list, so both have the same least solution. Without this, `s ::= s s | "a"`
    /// gets a new origin for each letter.
    fn unrolled(&self, list: &[Item]) -> Option<OriginId> {
        if !list.iter().any(|caller| caller.origin == OriginId(LOCAL)) {
            return None;
        }
        let mut others: Vec<OriginId> = list.iter().map(|caller| caller.origin).collect();
        others.sort_unstable_by(|a, b| b.cmp(a));
        others.dedup();
        others.into_iter().filter(|&other| other != OriginId(LOCAL)).take(CANDIDATES).find(|&other| {
            let round = list.iter().map(|&caller| match caller.origin {
                OriginId(LOCAL) => Item { origin: other, ..caller },
                _ => caller,
            });
            sorted(round) == self.callers(other)
        })
    }
}

/// How many origins are tried.
const CANDIDATES: usize = 8;

/// The callers, sorted and without duplicates.
fn sorted(callers: impl Iterator<Item = Item>) -> Vec<Item> {
    let mut callers: Vec<Item> = callers.collect();
    callers.sort_unstable();
    callers.dedup();
    callers
}

/// The interned id of an origin that may be local.
pub(super) fn resolve(origin: OriginId, known: &[OriginId]) -> OriginId {
    match origin.as_local() {
        Some(index) => known[index],
        None => origin,
    }
}

/// The strongly connected components of the callees, callers first (Tarjan 1972, with an explicit stack).
fn groups(callees: &[Callee]) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let mut low = vec![NEW; callees.len()];
    let mut index = vec![NEW; callees.len()];
    let (mut next, mut open, mut path, mut groups) = (0, Vec::new(), Vec::<(u32, usize)>::new(), Vec::new());
    for root in 0..callees.len() as u32 {
        if index[root as usize] == NEW {
            path.push((root, 0));
        }
        while let Some((place, seen)) = path.last_mut() {
            let at = *place as usize;
            if *seen == 0 {
                (index[at], low[at]) = (next, next);
                next += 1;
                open.push(*place);
            }
            let caller = callees[at].callers.get(*seen);
            *seen += 1;
            if let Some(caller) = caller {
                let Some(to) = caller.origin.as_local() else { continue };
                match index[to] {
                    NEW => path.push((to as u32, 0)),
                    // A finished component is no longer open: its `low` exceeds all.
                    _ => low[at] = low[at].min(low[to]),
                }
                continue;
            }
            path.pop();
            if let Some((above, _)) = path.last() {
                let above = *above as usize;
                low[above] = low[above].min(low[at]);
            }
            if low[at] == index[at] {
                let from = open.iter().rposition(|&other| other as usize == at).expect("it is open");
                let group: Vec<u32> = open.drain(from..).collect();
                group.iter().for_each(|&member| low[member as usize] = NEW);
                groups.push(group);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callee(state: u32, callers: &[(u32, OriginId)]) -> Callee {
        let callers = callers.iter().map(|&(state, origin)| Item { state: StateId(state), origin }).collect();
        Callee { state: StateId(state), callers }
    }

    #[test]
    fn those_with_the_same_callers_are_one() {
        let mut origins = Origins::new();
        let one = origins.intern(&[callee(5, &[(1, START)])]).unwrap();
        let other = origins.intern(&[callee(6, &[(2, START)]), callee(7, &[(1, START)])]).unwrap();
        assert_eq!(other[1], one[0]);
        assert_ne!(other[0], one[0]);
        assert_eq!(origins.callers(one[0]), [Item { state: StateId(1), origin: START }]);
    }

    #[test]
    fn those_that_wait_for_each_other_are_told_from_the_rest() {
        let mut origins = Origins::new();
        // 5 waits for itself and for the start; 6 is entered only by 5, 7 and 8 by each other.
        let set = |order: [usize; 4]| {
            let at = |n: usize| OriginId::local(order.iter().position(|&o| o == n).unwrap());
            let all = [
                callee(5, &[(1, START), (2, at(0))]),
                callee(6, &[(3, at(0))]),
                callee(7, &[(4, at(3))]),
                callee(8, &[(4, at(2)), (9, at(1))]),
            ];
            let mut all: Vec<Option<Callee>> = all.into_iter().map(Some).collect();
            order.map(|n| all[n].take().unwrap())
        };
        let a = origins.intern(&set([0, 1, 2, 3])).unwrap();
        let b = origins.intern(&set([3, 1, 0, 2])).unwrap();
        assert_eq!([a[0], a[1], a[2], a[3]], [b[2], b[1], b[3], b[0]]);
        assert_eq!(a.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert_eq!(
            origins.callers(a[0]),
            [Item { state: StateId(1), origin: START }, Item { state: StateId(2), origin: a[0] }]
        );
        assert_eq!(origins.callers(a[2]), [Item { state: StateId(4), origin: a[3] }]);
        // Without 7 and 8, the origins of 5 and 6 stay the same.
        let fewer = origins
            .intern(&[callee(5, &[(1, START), (2, OriginId(LOCAL))]), callee(6, &[(3, OriginId(LOCAL))])])
            .unwrap();
        assert_eq!(fewer, a[..2]);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let chain: Vec<Callee> =
            (0..200_000).map(|n| callee(n, &[(n, OriginId(LOCAL | ((n + 1) % 200_000)))])).collect();
        assert_eq!(groups(&chain).len(), 1);
        let open: Vec<Callee> = (0..200_000)
            .map(|n| callee(n, &[(n, if n == 0 { START } else { OriginId(LOCAL | (n - 1)) })]))
            .collect();
        assert_eq!(groups(&open).len(), 200_000);
    }
}
