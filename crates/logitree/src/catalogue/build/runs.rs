//! Sorted rows on disk, for when memory is too small for them.

use std::io::{BufReader, Read};

use tempfile::NamedTempFile;

use super::order::{Row, Sorted};
use super::sink::{Room, Sink};
use crate::{Error, ErrorKind, Result};

/// A run that was written.
pub(super) struct Run(Sink);

impl Run {
    /// Writes the rows.
    pub fn write(sorted: &Sorted, room: &Room) -> Result<Run> {
        let mut sink = Sink::new(room)?;
        let mut bytes = Vec::new();
        sorted.for_each(|row| {
            bytes.clear();
            bytes.extend_from_slice(&(row.tokens.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&(row.weights.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&row.item.to_le_bytes());
            row.tokens.iter().for_each(|token| bytes.extend_from_slice(&token.to_le_bytes()));
            row.weights.iter().for_each(|weight| bytes.extend_from_slice(&weight.to_le_bytes()));
            sink.write(&bytes)
        })?;
        Ok(Run(sink))
    }

    /// Reads it back.
    pub fn read(self) -> Result<Reader> {
        Ok(Reader { file: self.0.into_reader()? })
    }
}

/// A run that is read.
pub(super) struct Reader {
    file: BufReader<NamedTempFile>,
}

impl Reader {
    /// The next row, written over `row`; whether there was one.
    pub fn next(&mut self, row: &mut Row) -> Result<bool> {
        let failed = |error| Error::new(ErrorKind::Io, format!("cannot read a sorted run back: {error}"));
        let mut header = [0; 16];
        match self.file.read_exact(&mut header) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other.map_err(failed)?,
        }
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        row.item = u64::from(number(8)) | u64::from(number(12)) << 32;
        let mut four = [0; 4];
        row.tokens.clear();
        for _ in 0..number(0) {
            self.file.read_exact(&mut four).map_err(failed)?;
            row.tokens.push(u32::from_le_bytes(four));
        }
        row.weights.clear();
        for _ in 0..number(4) {
            self.file.read_exact(&mut four).map_err(failed)?;
            row.weights.push(f32::from_le_bytes(four));
        }
        Ok(true)
    }
}
