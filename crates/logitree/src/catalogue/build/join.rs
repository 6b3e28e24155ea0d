//! Joins sections into one file: each at the beginning of a page, then the checksums of all pages, then the first page.

use xxhash_rust::xxh3::xxh3_64;

use super::super::format::checksum::PAGE;
use super::super::format::header::IndexHeader;
use super::sink::Sink;
use crate::Result;

/// Pages that are read at once.
const AT_ONCE: usize = 64;

/// Writes the whole file to `out`, which is empty.
pub(super) fn join(mut header: IndexHeader, sections: Vec<Sink>, out: &mut Sink) -> Result<()> {
    out.write(&[0; PAGE])?;
    let mut sums = Vec::new();
    for section in sections {
        section.read(AT_ONCE * PAGE, |piece| {
            for page in piece.chunks(PAGE) {
                let mut whole = [0; PAGE];
                whole[..page.len()].copy_from_slice(page);
                sums.extend_from_slice(&xxh3_64(&whole).to_le_bytes());
                out.write(&whole)?;
            }
            Ok(())
        })?;
    }
    header.sums = xxh3_64(&sums);
    out.write(&sums)?;
    out.write_first(&header.write())
}
