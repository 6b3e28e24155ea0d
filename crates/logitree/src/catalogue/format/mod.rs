//! The index file: its header, and the checksums of its pages.

pub(super) mod checksum;
pub(super) mod header;
