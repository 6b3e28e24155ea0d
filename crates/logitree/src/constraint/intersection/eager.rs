//! The intersection as a tree of its own: everything is looked at once. It refuses to know what is done with it.

use super::others::Others;
use super::way::{most, Way};
use crate::catalogue::{damaged, CatalogueSnapshot, SnapshotFilter};
use crate::constraint::Matcher;
use crate::{Result, TokenId};

/// Tokens that are tried between two looks at whether to go on.
const AT_ONCE: u64 = 1 << 12;

/// The same tree with only the items that all of `others` allow from where they stand. It costs a token offered to the
/// others for each way on from a place that they reach, and no memory but a bit an item of the index. It
/// may be empty. `go_on` is called every now and then: an error of it ends the walk.
///
/// # Errors
/// [`crate::ErrorKind::Constraint`] if there is no other; those of the others, of `go_on`, and as
/// [`CatalogueSnapshot::children`].
pub fn intersect(
    snapshot: &CatalogueSnapshot,
    others: Vec<Box<dyn Matcher>>,
    end: Option<TokenId>,
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<CatalogueSnapshot> {
    let mut others = Others::new(others)?;
    let (mut way, mut kept) = (Way::default(), SnapshotFilter::new(snapshot));
    // How deep the first of the kept items on the way is, and whether there was ever a second.
    let (mut above, mut nested) = (None, false);
    let (mut tried, mut read) = (0u64, 0u64);
    let mut next = Some(snapshot.root());
    loop {
        if let Some(state) = next.take() {
            let is_item = way.enter(snapshot, state)?;
            read += way.width() as u64;
            if read > most(snapshot) {
                return Err(damaged("more places than tokens"));
            }
            if is_item && others.are_complete(end)? {
                kept.keep(state)?;
                nested |= above.is_some();
                above = above.or(Some(way.len()));
            }
        }
        match way.next() {
            Some((token, state)) => {
                tried += 1;
                if tried.is_multiple_of(AT_ONCE) {
                    go_on()?;
                }
                next = others.take(token)?.then_some(state);
            }
            None => {
                above = above.filter(|&depth| depth < way.len());
                way.leave();
                if way.len() == 0 {
                    return Ok(kept.finish(nested));
                }
                others.back_to(way.len() - 1)?;
            }
        }
    }
}
