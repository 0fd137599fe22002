//! `--mmaps`: the mappings of a task, printed below it like `perf report --mmaps`.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::terminal::escape::escape;

/// A mapping, or the part of it that no later mapping covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedRow {
    /// First address.
    #[serde(serialize_with = "hex")]
    pub start: u64,
    /// Address after the last one.
    #[serde(serialize_with = "hex")]
    pub end: u64,
    /// Protection and sharing, as in `/proc/PID/maps`.
    pub prot: String,
    /// Offset in the file.
    #[serde(serialize_with = "hex")]
    pub pgoff: u64,
    /// Identity of the file.
    #[serde(flatten)]
    pub file: MappedFile,
    /// Path of the file, or a name such as `[heap]`.
    pub path: String,
}

/// Identity of a mapped file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum MappedFile {
    /// Inode; 0 if there is none.
    #[serde(rename = "ino")]
    Inode(u64),
    /// Build ID.
    #[serde(rename = "build_id")]
    BuildId(String),
}

fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
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
