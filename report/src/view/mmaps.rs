//! `--mmaps`: the mappings of a task, printed below it like `perf report --mmaps`.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::terminal::escape::escape;

/// A mapping, or the part of it that no later mapping covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRow {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Protection and sharing, as in `/proc/PID/maps`.
    pub prot: String,
    /// Offset in the file.
    pub pgoff: u64,
    /// Identity of the file.
    pub file: MappedFile,
    /// Path of the file, or a name such as `[heap]`.
    pub path: String,
}

/// Identity of a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedFile {
    /// Inode; 0 if there is none.
    Inode(u64),
    /// Build ID.
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

/// Prints the mappings, indented to the column of the task's name.
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
