//! `--tasks` and `--mmaps`: the tree of tasks, with their mappings, as text like that of `perf report`, or as JSON.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::json;
use crate::query::warning::Warning;
use crate::terminal::escape::escape;

/// Maximum depth of indentation.
const DEEPEST: usize = 100;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct TaskList {
    pub path: String,
    /// Tasks, each after its parent.
    pub tasks: Vec<TaskRow>,
    pub warnings: Vec<Warning>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TaskRow {
    pub pid: i32,
    pub tid: i32,
    /// Thread that created it; -1 if unknown.
    pub ppid: i32,
    pub comm: String,
    /// Number of ancestors.
    pub depth: usize,
    /// Mappings at its end, by address; `None` if not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<MappedRow>>,
}

/// A mapping, or the part of it that no later mapping covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MappedRow {
    #[serde(serialize_with = "hex")]
    pub start: u64,
    /// Address after the last one.
    #[serde(serialize_with = "hex")]
    pub end: u64,
    /// Protection and sharing, as in `/proc/PID/maps`.
    pub prot: String,
    #[serde(serialize_with = "hex")]
    pub pgoff: u64,
    #[serde(flatten)]
    pub file: MappedFile,
    /// Path of the file, or a name such as `[heap]`.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum MappedFile {
    /// Inode; 0 if there is none.
    #[serde(rename = "ino")]
    Inode(u64),
    #[serde(rename = "build_id")]
    BuildId(String),
}

fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
}

/// Prints the tasks of each input.
pub(crate) fn print(lists: &[TaskList], out: &mut impl Write) -> io::Result<()> {
    for list in lists {
        if lists.len() > 1 {
            writeln!(out, "# {}", escape(&list.path))?;
        }
        writeln!(out, "# {:>8} {:>8} {:>8}  comm", "pid", "tid", "ppid")?;
        for task in &list.tasks {
            let TaskRow { pid, tid, ppid, comm, depth, mappings } = task;
            let depth = (*depth).min(DEEPEST);
            let head = format!("  {pid:>8} {tid:>8} {ppid:>8} |{:depth$}", "");
            writeln!(out, "{head}{}", escape(comm))?;
            if let Some(mappings) = mappings {
                print_mappings(mappings, head.len(), out)?;
            }
        }
    }
    Ok(())
}

/// Prints the mappings, indented to the column of the task's name.
fn print_mappings(rows: &[MappedRow], indent: usize, out: &mut impl Write) -> io::Result<()> {
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

#[derive(Serialize)]
struct Lists<'l> {
    schema: &'static str,
    inputs: &'l [TaskList],
    warnings: &'l [Warning],
}

/// Prints the tasks as JSON, schema `recrep-tasks/1`. `warnings` are those about inputs that cannot be read.
pub(crate) fn json(lists: &[TaskList], warnings: &[Warning], out: &mut impl Write) -> io::Result<()> {
    json::write(&Lists { schema: "recrep-tasks/1", inputs: lists, warnings }, out)
}
