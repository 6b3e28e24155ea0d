//! Files as bytes: memory-mapped, so that a model of gigabytes costs only the pages that are read; or read whole,
//! for the formats whose text stays borrowed while it is parsed. It refuses to know what is in them.
#![allow(unsafe_code)]

use crate::{Error, ErrorKind, Result};
use std::fs::{File, Metadata};
use std::path::Path;

/// A file's bytes.
pub(crate) struct Mapped(Option<memmap2::Mmap>);

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
pub(crate) fn map(path: &Path) -> Result<Mapped> {
    let failed = |e| cannot_read(path, e);
    let file = File::open(path).map_err(failed)?;
    let kind = file.metadata().and_then(no_folder).map_err(failed)?;
    if kind.is_file() && kind.len() == 0 {
        return Ok(Mapped(None));
    }
    // SAFETY: the map is private to this crate, read-only, and dropped before the loader returns. As for every
    // mapped reader, nobody may write or cut the file meanwhile: that is the caller's part of the contract. Every
    // read is bounds-checked against the length that was mapped, and no `str` is kept over the bytes.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
    Ok(Mapped(Some(map)))
}

/// What `parse` makes of the mapped file at `path`; its errors name the file.
pub(crate) fn load<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    parse(map(path)?.bytes()).map_err(|error| naming(path, error))
}

/// What `parse` makes of the file at `path`, read whole: text borrowed from it stays what it was checked to be,
/// whoever writes the file meanwhile. Errors as in [`load`].
pub(crate) fn load_text<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let failed = |e| cannot_read(path, e);
    if !std::fs::metadata(path).and_then(no_folder).map_err(failed)?.is_file() {
        // A device or a pipe may never end.
        return Err(failed(std::io::Error::other("it is no regular file")));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    parse(&bytes).map_err(|error| naming(path, error))
}

fn no_folder(kind: Metadata) -> std::io::Result<Metadata> {
    if kind.is_dir() {
        return Err(std::io::Error::other("it is a folder"));
    }
    Ok(kind)
}

pub(crate) fn naming(path: &Path, mut error: Error) -> Error {
    error.message = format!("{}: {}", path.display(), error.message);
    error
}

fn cannot_read(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read the file: {error}")).at(path.display().to_string())
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
            let path = Path::new(path);
            for error in [map(path).map(|_| ()).unwrap_err(), load_text(path, |_| Ok(())).unwrap_err()] {
                assert_eq!(error.kind, ErrorKind::Io, "{error}");
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                assert!(error.to_string().contains(why), "{error}");
            }
        }
    }

    #[test]
    fn what_never_ends_is_not_read() {
        if Path::new("/dev/zero").exists() {
            assert_eq!(load_text(Path::new("/dev/zero"), |_| Ok(())).unwrap_err().kind, ErrorKind::Io);
        }
    }
}
