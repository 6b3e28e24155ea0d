//! Files as bytes: memory-mapped, so that a model of gigabytes costs only the pages that are read. It refuses
//! to know what is in them.
#![allow(unsafe_code)]

use crate::{Error, ErrorKind, Result};
use std::fs::File;
use std::path::Path;

/// A file's bytes.
pub(super) struct Mapped(Option<memmap2::Mmap>);

impl Mapped {
    /// The bytes; empty for an empty file, which cannot be mapped.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}

/// Maps the file at `path`.
///
/// # Errors
/// [`ErrorKind::Io`] if it cannot be opened or mapped (a folder, no permission).
pub(super) fn map(path: &Path) -> Result<Mapped> {
    let failed = |e: std::io::Error| {
        Error::new(ErrorKind::Io, format!("cannot read the file: {e}")).at(path.display().to_string())
    };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?;
    if length.is_dir() {
        return Err(failed(std::io::Error::other("it is a folder")));
    }
    if length.is_file() && length.len() == 0 {
        return Ok(Mapped(None));
    }
    // SAFETY: the map is private to this crate, read-only, and dropped before the loader returns. Its bytes may
    // change under us if another process writes the file meanwhile: every read is bounds-checked against the
    // length that was mapped and nothing read is trusted, so changed bytes are at worst a wrong vocabulary. A
    // file cut short by another process while it is being read raises SIGBUS, as for every mapped reader.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
    Ok(Mapped(Some(map)))
}

/// What `parse` makes of the file at `path`; its errors name the file.
pub(super) fn load<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let mapped = map(path)?;
    parse(mapped.bytes()).map_err(|mut error| {
        error.message = format!("{}: {}", path.display(), error.message);
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_equals_a_plain_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(map(&path).unwrap().bytes(), std::fs::read(&path).unwrap());
    }

    #[test]
    fn what_is_no_file_is_an_io_error() {
        for (path, why) in [("/nonexistent/file", "os error"), (env!("CARGO_MANIFEST_DIR"), "it is a folder")]
        {
            let error = map(Path::new(path)).map(|_| ()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Io, "{error}");
            assert!(error.to_string().contains(path) && error.to_string().contains(why), "{error}");
        }
    }
}
