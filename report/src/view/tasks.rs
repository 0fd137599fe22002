//! `--tasks`: the tree of tasks, as `perf report --tasks` prints it; and the same as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::mmaps::{self, MappedRow};
use crate::query::warning::Warning;
use crate::terminal::escape::escape;

/// Deeper tasks are not moved further to the right.
const DEEPEST: usize = 100;

/// The tasks of an input.
#[derive(Clone, Debug, Serialize)]
pub struct TaskList {
    /// The input's name.
    pub path: String,
    /// The tasks, each after the one that it comes from.
    pub tasks: Vec<TaskRow>,
    /// What is wrong with the input.
    pub warnings: Vec<Warning>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRow {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The thread that it comes from; -1 where nothing says it.
    pub ppid: i32,
    /// Its last name.
    pub comm: String,
    /// How many tasks it is below.
    pub depth: usize,
    /// What it had mapped at its end, by address; nothing where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<MappedRow>>,
}

/// Prints the tasks of each input, with their mappings where they have any.
///
/// # Errors
/// The output cannot be written.
pub fn print(lists: &[TaskList], with_mappings: bool, out: &mut impl Write) -> io::Result<()> {
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
            if with_mappings {
                mmaps::print(mappings.as_deref().unwrap_or_default(), head.len(), out)?;
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

/// Prints them as JSON, schema `recrep-tasks/1`, with what is wrong with inputs that are left out.
///
/// # Errors
/// The output cannot be written.
pub fn json(lists: &[TaskList], warnings: &[Warning], out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Lists { schema: "recrep-tasks/1", inputs: lists, warnings })?;
    out.write_all(b"\n")
}
