//! The intersection as a tree of its own: everything is looked at once.

use super::peers::Peers;
use super::position::{most, WalkPosition};
use crate::catalogue::{damaged, CatalogueSnapshot, SnapshotFilter};
use crate::constraint::Matcher;
use crate::{Result, TokenId};

/// Tokens that are tried between two checks for cancellation.
const AT_ONCE: u64 = 1 << 12;

/// The same tree with only the items that all of `peers` allow from their current states. It costs a token offered to the
/// peers for each position on from a place that they reach, and no memory but a bit an item of the index. It
/// may be empty. `go_on` is called every now and then: an error of it ends the walk.
///
/// # Errors
/// [`crate::ErrorKind::Constraint`] if there is no other; those of the peers, of `go_on`, and as
/// [`CatalogueSnapshot::children`].
pub fn intersect(
    snapshot: &CatalogueSnapshot,
    peers: Vec<Box<dyn Matcher>>,
    end: Option<TokenId>,
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<CatalogueSnapshot> {
    let mut peers = Peers::new(peers)?;
    let (mut position, mut kept) = (WalkPosition::default(), SnapshotFilter::new(snapshot));
    // How deep the first of the kept items on the position is, and whether there was ever a second.
    let (mut above, mut nested) = (None, false);
    let (mut tried, mut read) = (0u64, 0u64);
    let mut next = Some(snapshot.root());
    loop {
        if let Some(state) = next.take() {
            let is_item = position.enter(snapshot, state)?;
            read += position.width() as u64;
            if read > most(snapshot) {
                return Err(damaged("more places than tokens"));
            }
            if is_item && peers.are_complete(end)? {
                kept.keep(state)?;
                nested |= above.is_some();
                above = above.or(Some(position.len()));
            }
        }
        match position.next() {
            Some((token, state)) => {
                tried += 1;
                if tried.is_multiple_of(AT_ONCE) {
                    go_on()?;
                }
                next = peers.take(token)?.then_some(state);
            }
            None => {
                above = above.filter(|&depth| depth < position.len());
                position.leave();
                if position.len() == 0 {
                    return Ok(kept.finish(nested));
                }
                peers.back_to(position.len() - 1)?;
            }
        }
    }
}
