//! `rep report --tasks` and `--mmaps`: the tasks at the end of a recording, each below its parent,
//! and their mappings.
//!
//! ```text
//!   Timeline (frozen) ─► last use of each thread ID ─► tree by parents ─► rows, depth first
//!                        parts of its address space ─► MMAP records of the side-band, by their offsets
//! ```
//!
//! The timeline keeps only what samples need of a mapping. Protection, inode and build ID are read
//! again from the MMAP record, which the file offset in the mapping's `Moment` finds.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Context as _;
use recrep_format::record::MmapIdentity;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::cli::args::ReportQuery;
use crate::exports::write_json;
use crate::input::{Input, Keep, OpenedInput, each, retry_if_changed};
use crate::listings::dump;
use crate::listings::info::{InfoValue, number};
use crate::query::{Inspection, Mode, Warning};
use crate::samples::Session;
use crate::terminal::escape::escape;
use crate::terminal::parts::CANNOT_WRITE;
use crate::timeline::{Life, Moment, VisiblePart, mapping_in};

/// Maximum depth of indentation.
const DEEPEST: usize = 100;

#[derive(Serialize)]
struct TaskList {
    path: String,
    /// Tasks, each after its parent.
    tasks: Vec<TaskRow>,
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
struct TaskRow {
    pid: i32,
    tid: i32,
    /// Thread that created it; -1 if unknown.
    ppid: i32,
    comm: String,
    /// Number of ancestors.
    depth: usize,
    /// Mappings at its end, by address; `None` if not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    mappings: Option<Vec<MappedRow>>,
}

/// A mapping, or the part of it that no later mapping covers.
#[derive(Serialize)]
struct MappedRow {
    #[serde(serialize_with = "hex")]
    start: u64,
    /// Address after the last one.
    #[serde(serialize_with = "hex")]
    end: u64,
    /// Protection and sharing, as in `/proc/PID/maps`.
    prot: String,
    #[serde(serialize_with = "hex")]
    pgoff: u64,
    /// Inode (`ino`; 0 if there is none) or build ID of the file (`build_id`).
    #[serde(flatten)]
    file: BTreeMap<&'static str, InfoValue>,
    /// Path of the file, or a name such as `[heap]`.
    path: String,
}

/// The answer as JSON.
#[derive(Serialize)]
struct Tasks<'l> {
    schema: &'static str,
    inputs: &'l [TaskList],
    warnings: &'l [Warning],
}

fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
}

/// Prints the tasks of each input and returns the warnings.
pub(crate) fn run(asked: &ReportQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let query = &asked.query;
    let with_mappings = query.inspection == Some(Inspection::Mmaps);
    let mut lists = Vec::new();
    let unreadable = each(&query.sources, |source| {
        lists.push(retry_if_changed(std::slice::from_ref(source), || {
            let input = Input::recording(source, "a list of tasks")?;
            input.unless_changed(read(&input, with_mappings))
        })?);
        Ok(Vec::new())
    })?;
    let printed = if asked.export.is_for_people() {
        print(&lists, out)
    } else {
        write_json(&Tasks { schema: "recrep-tasks/1", inputs: &lists, warnings: &unreadable }, out)
    };
    printed.context(CANNOT_WRITE)?;
    Ok(lists.into_iter().flat_map(|list| list.warnings).chain(unreadable).collect())
}

fn read(input: &Input, with_mappings: bool) -> anyhow::Result<TaskList> {
    let opened = OpenedInput::new(input, Keep::Some)?;
    let session = Session::open(&opened, Mode::Samples, None);
    Ok(list(&input.name, &session, with_mappings))
}

fn list(path: &str, session: &Session<'_>, with_mappings: bool) -> TaskList {
    let lives = session.timeline.last_lives();
    let rows = order(&lives).into_iter().filter_map(|(place, depth)| {
        let life = lives.get(place)?;
        let space = life.space.filter(|_| with_mappings);
        let parts = space.map(|space| session.timeline.shown(space)).unwrap_or_default();
        Some(TaskRow {
            pid: life.pid.unwrap_or(-1),
            tid: life.tid,
            ppid: life.parent.unwrap_or(-1),
            comm: session.timeline.comm(life.comm(Moment::END)).into_owned(),
            depth,
            mappings: with_mappings
                .then(|| parts.iter().map(|part| mapped(session, part)).collect()),
        })
    });
    TaskList { path: path.to_owned(), tasks: rows.collect(), warnings: session.warnings() }
}

/// Returns the row of a visible part of a mapping, with the details from its record.
fn mapped(session: &Session<'_>, part: &VisiblePart) -> MappedRow {
    let records = &session.split.side_band;
    let at = records.partition_point(|raw| raw.offset < part.since.offset());
    let map = records.get(at).and_then(|raw| {
        let record = session.file.attrs.decode(raw).ok()?;
        mapping_in(&record.body, record.misc)
    });
    let (pgoff, prot, flags) = map.map_or((0, 0, 0), |map| (map.pgoff, map.prot, map.flags));
    let file = match map.map(|map| map.identity) {
        Some(MmapIdentity::Inode(inode)) => ("ino", number(inode.ino)),
        Some(identity) => (
            "build_id",
            InfoValue::Text(identity.build_id().map(|id| id.to_string()).unwrap_or_default()),
        ),
        None => ("ino", number(0)),
    };
    let module =
        part.mapping.module.and_then(|id| session.side_band.modules.get_index(id.0 as usize));
    MappedRow {
        start: part.start,
        end: part.end,
        prot: dump::access_letters(prot, flags),
        pgoff: pgoff.wrapping_add(part.start - part.mapping.start),
        file: [file].into(),
        path: module.map_or_else(|| "[unknown]".into(), |module| module.long_name().into_owned()),
    }
}

fn print(lists: &[TaskList], out: &mut impl Write) -> io::Result<()> {
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
            // Indented to the column of the task's name.
            let indent = head.len();
            for MappedRow { start, end, prot, pgoff, file, path } in mappings.iter().flatten() {
                write!(out, "{:indent$}  {start:x}-{end:x} {prot} {pgoff:08x}", "")?;
                file.values().try_for_each(|id| write!(out, " {id}"))?;
                writeln!(out, " {}", escape(path))?;
            }
        }
    }
    Ok(())
}

/// Orders tasks, each below its parent, by thread ID. Returns indices into `lives` (sorted by
/// thread ID) with their depths, depth first. Tasks without a parent in the list have depth 0. If
/// parents form a cycle, as reused thread IDs can, its first task by thread ID has depth 0 too.
fn order(lives: &[&Life]) -> Vec<(usize, usize)> {
    let places: FxHashMap<i32, usize> =
        lives.iter().enumerate().map(|(place, life)| (life.tid, place)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lives.len()];
    let mut roots = Vec::new();
    for (place, life) in lives.iter().enumerate() {
        let parent = life.parent.and_then(|tid| places.get(&tid));
        match parent.and_then(|parent| children.get_mut(*parent)) {
            Some(siblings) => siblings.push(place),
            None => roots.push(place),
        }
    }
    let mut listed = vec![false; lives.len()];
    let mut order = Vec::with_capacity(lives.len());
    // Tasks that no root leads to are in a cycle, or below one.
    for root in roots.into_iter().chain(0..lives.len()) {
        let mut waiting = vec![(root, 0)];
        while let Some((place, depth)) = waiting.pop() {
            let Some(is_listed) = listed.get_mut(place).filter(|is_listed| !**is_listed) else {
                continue;
            };
            *is_listed = true;
            order.push((place, depth));
            let below = children.get(place).map(Vec::as_slice).unwrap_or_default();
            waiting.extend(below.iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(list: &[(i32, Option<i32>)]) -> Vec<(i32, usize)> {
        let life = |&(tid, parent)| Life {
            start: Moment::START,
            tid,
            pid: Some(tid),
            parent,
            space: None,
            names: Vec::new(),
        };
        let lives: Vec<Life> = list.iter().map(life).collect();
        let lives: Vec<&Life> = lives.iter().collect();
        order(&lives).into_iter().map(|(place, depth)| (list[place].0, depth)).collect()
    }

    #[test]
    fn children_follow_their_parents() {
        let list = [
            (0, None),
            (3, Some(9)),
            (5, None),
            (7, Some(5)),
            (8, Some(7)),
            (9, Some(5)),
            (10, Some(99)),
        ];
        assert_eq!(ordered(&list), [(0, 0), (5, 0), (7, 1), (8, 2), (9, 1), (3, 2), (10, 0)]);
    }

    #[test]
    fn a_cycle_is_listed_once() {
        let list = [(1, Some(2)), (2, Some(3)), (3, Some(1)), (4, Some(4))];
        assert_eq!(ordered(&list), [(1, 0), (3, 1), (2, 2), (4, 0)]);
    }
}
