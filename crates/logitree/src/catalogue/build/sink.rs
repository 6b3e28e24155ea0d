//! Bytes that are written once from beginning to end, and then read or renamed: in memory, or in a file that is removed
//! when it is dropped.

use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

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

/// Bytes that are being written.
pub(in crate::catalogue) enum Sink {
    Memory(Vec<u8>),
    File(BufWriter<NamedTempFile>),
}

impl Sink {
    pub fn memory() -> Sink {
        Sink::Memory(Vec::new())
    }

    pub fn new(room: &Room) -> Result<Sink> {
        let Room::Folder(folder) = room else { return Ok(Sink::memory()) };
        let mut options = tempfile::Builder::new();
        options.prefix(".logitree-").suffix(".tmp");
        // Other users may read an index, as any file that a program writes; the umask applies.
        #[cfg(unix)]
        options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = options.tempfile_in(folder).map_err(|error| cannot_write(folder, error))?;
        Ok(Sink::File(BufWriter::with_capacity(BUFFER, file)))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::Memory(all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
            Sink::File(file) => {
                file.write_all(bytes).map_err(|error| cannot_write(file.get_ref().path(), error))
            }
        }
    }

    /// Writes over the first bytes.
    pub fn write_first(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::Memory(all) => {
                all[..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Sink::File(file) => file
                .seek(SeekFrom::Start(0))
                .and_then(|_| file.write_all(bytes))
                .map_err(|error| cannot_write(file.get_ref().path(), error)),
        }
    }

    /// Calls `each` with all that was written, in pieces of `size` bytes; the last may be shorter.
    pub fn read(self, size: usize, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self {
            Sink::Memory(all) => all.chunks(size).try_for_each(each),
            Sink::File(file) => {
                let (mut file, mut piece) = (rewound(file)?, vec![0; size]);
                loop {
                    let mut filled = 0;
                    while filled < size {
                        match file.read(&mut piece[filled..]) {
                            Ok(0) => break,
                            Ok(n) => filled += n,
                            Err(error) => return Err(cannot_write(file.get_ref().path(), error)),
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
            Sink::File(_) => Vec::new(),
        }
    }

    /// Renames the file to this name, replacing what was there.
    pub fn rename(self, to: &Path) -> Result<()> {
        let Sink::File(mut file) = self else { return Ok(()) };
        let written = file.flush().and_then(|()| file.get_ref().as_file().sync_data());
        let persisted = written.and_then(|()| Ok(file.into_inner()?.persist(to)?));
        persisted.map(drop).map_err(|error| cannot_write(to, error))
    }

    /// A file to be read from its beginning.
    pub fn into_reader(self) -> Result<BufReader<NamedTempFile>> {
        match self {
            Sink::File(file) => rewound(file),
            Sink::Memory(_) => Err(Error::new(ErrorKind::Io, "a run that is in no file")),
        }
    }
}

/// Reads what was written.
fn rewound(file: BufWriter<NamedTempFile>) -> Result<BufReader<NamedTempFile>> {
    let path = file.get_ref().path().to_path_buf();
    let file = file.into_inner().map_err(std::io::Error::from);
    let rewound = file.and_then(|mut file| file.rewind().map(|()| file));
    rewound.map(|file| BufReader::with_capacity(BUFFER, file)).map_err(|error| cannot_write(&path, error))
}

pub(super) fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write the index: {error}"))
        .at(path.display().to_string())
        .help("is there room on the disk, and may the folder be written to?")
}
