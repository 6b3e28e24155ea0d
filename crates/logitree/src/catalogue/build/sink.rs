//! Bytes that are written once from beginning to end, and then read or renamed: in memory, or in a file that is removed
//! when it is dropped.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, ErrorKind, Result};

const BUFFER: usize = 1 << 18;

/// Where bytes go.
pub(in crate::catalogue) enum Room {
    Memory,
    Folder(PathBuf),
}

impl Room {
    /// In this folder, or the system's for temporary files.
    pub fn on_disk(folder: Option<&Path>) -> Room {
        Room::Folder(folder.map_or_else(std::env::temp_dir, Path::to_path_buf))
    }
}

/// Bytes on their way.
pub(in crate::catalogue) enum Sink {
    Memory(Vec<u8>),
    File { file: BufWriter<File>, path: Temporary },
}

/// A file that is removed when it is dropped.
pub(in crate::catalogue) struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may have been renamed, or its folder may be gone: nothing is left to do then.
        drop(std::fs::remove_file(&self.0));
    }
}

impl Sink {
    pub fn memory() -> Sink {
        Sink::Memory(Vec::new())
    }

    pub fn new(room: &Room) -> Result<Sink> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Room::Folder(folder) = room else { return Ok(Sink::memory()) };
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".logitree-{}-{number}.tmp", std::process::id()));
            let file = match File::options().read(true).write(true).create_new(true).open(&path) {
                // Left by another process that had this number and was killed.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                file => file.map_err(|error| cannot_write(&path, error))?,
            };
            let file = BufWriter::with_capacity(BUFFER, file);
            return Ok(Sink::File { file, path: Temporary(path) });
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::Memory(all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
            Sink::File { file, path } => file.write_all(bytes).map_err(|error| cannot_write(&path.0, error)),
        }
    }

    /// Writes over the first bytes.
    pub fn write_first(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::Memory(all) => {
                all[..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Sink::File { file, path } => file
                .seek(SeekFrom::Start(0))
                .and_then(|_| file.write_all(bytes))
                .map_err(|error| cannot_write(&path.0, error)),
        }
    }

    /// Calls `each` with all that was written, in pieces of `size` bytes, the last of which may be shorter.
    pub fn read(self, size: usize, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self {
            Sink::Memory(all) => all.chunks(size).try_for_each(each),
            Sink::File { file, path } => {
                let failed = |error| cannot_write(&path.0, error);
                let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.seek(SeekFrom::Start(0)).map_err(failed)?;
                let (mut file, mut piece) = (BufReader::with_capacity(BUFFER, file), vec![0; size]);
                loop {
                    let mut filled = 0;
                    while filled < size {
                        match file.read(&mut piece[filled..]).map_err(failed)? {
                            0 => break,
                            n => filled += n,
                        }
                    }
                    if filled == 0 {
                        return Ok(());
                    }
                    each(&piece[..filled])?;
                }
            }
        }
    }

    /// The bytes, of a sink in memory.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Sink::Memory(all) => all,
            Sink::File { .. } => Vec::new(),
        }
    }

    /// Renames the file to this name, replacing what was there.
    pub fn rename(self, to: &Path) -> Result<()> {
        let Sink::File { mut file, path } = self else { return Ok(()) };
        let done = file.flush().and_then(|()| file.get_ref().sync_data());
        done.and_then(|()| std::fs::rename(&path.0, to)).map_err(|error| cannot_write(to, error))
    }

    /// A file to be read from its beginning.
    pub fn into_reader(self) -> Result<(BufReader<File>, Temporary)> {
        let Sink::File { file, path } = self else {
            return Err(Error::new(ErrorKind::Io, "a run that is in no file"));
        };
        let failed = |error| cannot_write(&path.0, error);
        let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok((BufReader::with_capacity(BUFFER, file), path))
    }
}

pub(super) fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write the index: {error}"))
        .at(path.display().to_string())
        .help("is there room on the disk, and may the folder be written to?")
}
