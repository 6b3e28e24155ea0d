//! Files as bytes: memory-mapped, so that only the pages that are read cost memory; or read whole, for formats that
//! borrow text from the buffer while they parse it.
#![allow(unsafe_code)]

use crate::{Error, ErrorKind, Result};
use std::fs::{File, Metadata};
use std::path::Path;

/// A file's bytes.
pub struct Mapped(Option<memmap2::Mmap>);

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
pub fn map(path: &Path) -> Result<Mapped> {
    map_file(&File::open(path).map_err(|e| cannot_read(path, e))?, path)
}

/// Maps a file that is open. Errors as in [`map`].
pub fn map_file(file: &File, path: &Path) -> Result<Mapped> {
    let failed = |e| cannot_read(path, e);
    let kind = file.metadata().and_then(not_a_directory).map_err(failed)?;
    if kind.is_file() && kind.len() == 0 {
        return Ok(Mapped(None));
    }
    // SAFETY: the map is read-only and private to this crate. A vocabulary's loader drops it before it returns; a
    // prefix index keeps it for the life of the index. As for every memory-mapped reader, it is the caller's part of
    // the contract that no process writes or truncates the file while the map lives. The crate relies on nothing that
    // such a write could break in the compiler's eyes: every read is bounds-checked against the mapped length, and no
    // `str` is kept over the bytes.
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(failed)?;
    Ok(Mapped(Some(map)))
}

/// What `parse` makes of the mapped file at `path`; its errors name the file.
pub(crate) fn load<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    parse(map(path)?.bytes()).map_err(|error| naming(path, error))
}

/// What `parse` makes of the file at `path`, read whole: text borrowed from it stays valid even if
/// another process writes the file meanwhile. Errors as in [`load`].
pub(crate) fn load_text<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let failed = |e| cannot_read(path, e);
    if !std::fs::metadata(path).and_then(not_a_directory).map_err(failed)?.is_file() {
        // A device or a pipe may never end.
        return Err(failed(std::io::Error::other("it is not a regular file")));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    parse(&bytes).map_err(|error| naming(path, error))
}

fn not_a_directory(kind: Metadata) -> std::io::Result<Metadata> {
    if kind.is_dir() {
        return Err(std::io::Error::other("it is a directory"));
    }
    Ok(kind)
}

/// The error with the file's name as its place, or before its place.
pub fn naming(path: &Path, mut error: Error) -> Error {
    error.message = format!("{}: {}", path.display(), error.message);
    error
}

/// The error of a file that cannot be read; its cause says whether there is none.
pub fn cannot_read(path: &Path, error: std::io::Error) -> Error {
    let message = format!("cannot read the file: {error}");
    Error::new(ErrorKind::Io, message).at(path.display().to_string()).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_equals_a_plain_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(map(&path).unwrap().bytes(), std::fs::read(&path).unwrap());
    }

    #[test]
    fn a_missing_file_or_a_directory_is_an_io_error() {
        for (path, why) in
            [("/nonexistent/file", "os error"), (env!("CARGO_MANIFEST_DIR"), "it is a directory")]
        {
            let path = Path::new(path);
            for error in [map(path).map(|_| ()).unwrap_err(), load_text(path, |_| Ok(())).unwrap_err()] {
                assert_eq!(error.kind, ErrorKind::Io, "{error}");
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                assert!(error.to_string().contains(why), "{error}");
            }
        }
    }

    #[test]
    fn a_device_that_never_ends_is_not_read() {
        if Path::new("/dev/zero").exists() {
            assert_eq!(load_text(Path::new("/dev/zero"), |_| Ok(())).unwrap_err().kind, ErrorKind::Io);
        }
    }
}
