//! `--tasks`: the tree of tasks, as text like `perf report --tasks`, or as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::json;
use super::mmaps::{self, MappedRow};
use crate::query::warning::Warning;
use crate::terminal::escape::escape;

/// Maximum depth of indentation.
const DEEPEST: usize = 100;

/// Tasks of an input.
#[derive(Clone, Debug, Serialize)]
pub struct TaskList {
    /// Name of the input.
    pub path: String,
    /// Tasks, each after its parent.
    pub tasks: Vec<TaskRow>,
    /// Problems with the input.
    pub warnings: Vec<Warning>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Thread that created it; -1 if unknown.
    pub ppid: i32,
    /// Last comm.
    pub comm: String,
    /// Number of ancestors.
    pub depth: usize,
    /// Mappings at its end, by address; `None` if not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<MappedRow>>,
}

/// Prints the tasks of each input.
pub fn print(lists: &[TaskList], out: &mut impl Write) -> io::Result<()> {
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
                mmaps::print(mappings, head.len(), out)?;
            }
        }
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
pub fn json(lists: &[TaskList], warnings: &[Warning], out: &mut impl Write) -> io::Result<()> {
    json::write(&Lists { schema: "recrep-tasks/1", inputs: lists, warnings }, out)
}
