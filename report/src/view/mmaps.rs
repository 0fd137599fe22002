//! `--mmaps`: what a task had mapped, below it, as `perf report --mmaps` prints it.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::terminal::escape::escape;

/// A mapping, or the part of it that shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRow {
    /// Its first address.
    pub start: u64,
    /// The address after its last one.
    pub end: u64,
    /// Protection and sharing, as in `/proc/PID/maps`.
    pub prot: String,
    /// The offset in the file.
    pub pgoff: u64,
    /// Which file.
    pub file: MappedFile,
    /// Its path, or what is there instead of one.
    pub path: String,
}

/// Which file is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedFile {
    /// By inode; 0 where there is none.
    Inode(u64),
    /// By build ID.
    BuildId(String),
}

impl Serialize for MappedRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("start", &format_args!("{:#x}", self.start))?;
        map.serialize_entry("end", &format_args!("{:#x}", self.end))?;
        map.serialize_entry("prot", &self.prot)?;
        map.serialize_entry("pgoff", &format_args!("{:#x}", self.pgoff))?;
        match &self.file {
            MappedFile::Inode(ino) => map.serialize_entry("ino", ino)?,
            MappedFile::BuildId(id) => map.serialize_entry("build_id", id)?,
        }
        map.serialize_entry("path", &self.path)?;
        map.end()
    }
}

/// Prints the mappings, as far to the right as the task's name is.
pub(super) fn print(rows: &[MappedRow], indent: usize, out: &mut impl Write) -> io::Result<()> {
    for MappedRow { start, end, prot, pgoff, file, path } in rows {
        write!(out, "{:indent$}  {start:x}-{end:x} {prot} {pgoff:08x} ", "")?;
        match file {
            MappedFile::Inode(ino) => write!(out, "{ino}")?,
            MappedFile::BuildId(id) => write!(out, "{id}")?,
        }
        writeln!(out, " {}", escape(path))?;
    }
    Ok(())
}
