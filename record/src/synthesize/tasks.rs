//! Existing tasks, from `/proc`: FORK and COMM for each thread, MMAP2 for each mapping of a
//! process.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::time::{Duration, Instant};

use super::writer::Synthesizer;
use crate::messages::error::Result;
use crate::output::build_ids::MapsLine;
use crate::tasks::Task;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// These tasks, and the processes that they belong to.
    These(Vec<Task>),
    /// A child before its exec: only its comm, as the exec replaces everything else.
    Child(u32),
}

/// Bytes of mappings to read between two checks of the time limit.
const PIECE: u64 = 4 << 10;
/// `PF_KTHREAD`: a kernel thread, which has no mappings.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Fields of `/proc/PID/task/TID/stat`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat<'a> {
    pub(super) comm: &'a [u8],
    /// A letter: `R` if the thread runs or could, `Z` or `X` if it has ended.
    pub(super) state: u8,
    parent: u32,
    pub(super) kernel_thread: bool,
    /// CPU on which it ran last.
    pub(super) cpu: u32,
}

impl<'a> Stat<'a> {
    /// Parses `1 (name with ) and spaces) S ppid pgrp session tty tpgid flags … cpu …`: the name
    /// ends at the last parenthesis.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|b| *b == b'(')?;
        let close = line.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let cpu = fields.nth(29).and_then(|cpu| cpu.parse().ok()).unwrap_or(0);
        Some(Self {
            comm: line.get(open + 1..close)?,
            state,
            parent,
            kernel_thread: flags & KERNEL_THREAD != 0,
            cpu,
        })
    }

    /// Returns whether the thread waits.
    pub(super) fn is_waiting(&self) -> bool {
        !matches!(self.state, b'R' | b'Z' | b'X')
    }
}

/// Reader for files of `/proc` that reuses one buffer.
#[derive(Debug, Default)]
pub(super) struct Proc {
    path: String,
    bytes: Vec<u8>,
}

impl Proc {
    /// Reads a file; `None` if the task has ended.
    pub(super) fn read(&mut self, path: std::fmt::Arguments<'_>) -> Option<&[u8]> {
        self.path.clear();
        self.path.write_fmt(path).ok()?;
        self.bytes.clear();
        File::open(&self.path).ok()?.read_to_end(&mut self.bytes).ok()?;
        Some(&self.bytes)
    }

    /// Reads the lines of a file that can be read within the time limit. Also returns whether that
    /// is the whole file.
    fn read_within(
        &mut self,
        path: std::fmt::Arguments<'_>,
        limit: Duration,
    ) -> Option<(&[u8], bool)> {
        self.path.clear();
        self.path.write_fmt(path).ok()?;
        self.bytes.clear();
        let mut file = File::open(&self.path).ok()?;
        let start = Instant::now();
        // The kernel returns one page at a time, so the time can be checked only between pages.
        while (&mut file).take(PIECE).read_to_end(&mut self.bytes).ok()? > 0 {
            if start.elapsed() > limit {
                let whole =
                    self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                return Some((self.bytes.get(..whole)?, false));
            }
        }
        Some((&self.bytes, true))
    }
}

/// Writes records for existing tasks, and for the mappings of their processes. Tasks that end
/// meanwhile are skipped.
pub(crate) fn tasks(to: &mut Synthesizer<'_>, scope: &Scope) -> Result<()> {
    if !to.wants_tasks() {
        return Ok(());
    }
    let mut proc = Proc::default();
    match scope {
        Scope::Child(pid) => {
            let stat = proc.read(format_args!("/proc/{pid}/task/{pid}/stat"));
            let comm = stat.and_then(Stat::parse).map(|s| s.comm.to_vec());
            comm.map_or(Ok(()), |comm| to.comm([*pid, *pid], &comm))
        }
        Scope::All => numbers("/proc").into_iter().try_for_each(|pid| {
            let tids = numbers(&format!("/proc/{pid}/task"));
            process(to, &mut proc, pid, &tids)
        }),
        Scope::These(tasks) => tasks.chunk_by(|a, b| a.pid == b.pid).try_for_each(|group| {
            let tids: Vec<_> = group.iter().map(|t| t.tid).collect();
            group.first().map_or(Ok(()), |task| process(to, &mut proc, task.pid, &tids))
        }),
    }
}

/// Writes a process: its first thread and its mappings, then its other threads.
fn process(to: &mut Synthesizer<'_>, proc: &mut Proc, pid: u32, tids: &[u32]) -> Result<()> {
    if thread(to, proc, pid, pid)? == Some(TaskKind::User) && to.wants_mappings() {
        mappings(to, proc, pid, tids)?;
    }
    for tid in tids.iter().filter(|tid| **tid != pid) {
        thread(to, proc, pid, *tid)?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskKind {
    User,
    Kernel,
}

fn thread(
    to: &mut Synthesizer<'_>,
    proc: &mut Proc,
    pid: u32,
    tid: u32,
) -> Result<Option<TaskKind>> {
    let stat = proc.read(format_args!("/proc/{pid}/task/{tid}/stat"));
    let Some(stat) = stat.and_then(Stat::parse) else { return Ok(None) };
    // Like perf, take the first thread as the parent of the others, as /proc does not have their
    // parent.
    let parent = if tid == pid { stat.parent } else { pid };
    to.fork([pid, tid], [parent, parent])?;
    let comm = stat.comm;
    let kernel_thread = stat.kernel_thread;
    to.comm([pid, tid], comm)?;
    if to.wants_namespaces() {
        to.namespaces([pid, tid], &namespaces(pid, tid))?;
    }
    Ok(Some(if kernel_thread { TaskKind::Kernel } else { TaskKind::User }))
}

/// Returns device and inode of each namespace of a thread, in the kernel's order; zeroes if they
/// are hidden.
fn namespaces(pid: u32, tid: u32) -> [[u64; 2]; 7] {
    use std::os::unix::fs::MetadataExt as _;
    ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"].map(|kind| {
        let found = fs::metadata(format!("/proc/{pid}/task/{tid}/ns/{kind}"));
        found.map_or([0, 0], |namespace| [namespace.dev(), namespace.ino()])
    })
}

fn mappings(to: &mut Synthesizer<'_>, proc: &mut Proc, pid: u32, tids: &[u32]) -> Result<()> {
    // The first thread may have ended before the others; it has no memory then.
    let limit = to.map_timeout();
    for tid in std::iter::once(&pid).chain(tids) {
        let Some((maps, whole)) =
            proc.read_within(format_args!("/proc/{pid}/task/{tid}/maps"), limit)
        else {
            continue;
        };
        if maps.is_empty() {
            continue;
        }
        let mut lines = maps.split(|b| *b == b'\n').filter_map(MapsLine::parse).peekable();
        while let Some(mapping) = lines.next() {
            let cut = !whole && lines.peek().is_none();
            to.mmap(pid, &mapping, cut)?;
        }
        return Ok(());
    }
    Ok(())
}

/// Returns the entries of a directory whose names are numbers.
pub(super) fn numbers(dir: &str) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_anything_in_them() {
        let line = b"7 (a) (b c) S 1 7 7 0 -1 4194304 100 0\n";
        assert_eq!(
            Stat::parse(line),
            Some(Stat { comm: b"a) (b c", state: b'S', parent: 1, kernel_thread: false, cpu: 0 })
        );
        let fields = "2 (kthreadd) I 0 0 0 0 -1 2129984".to_owned() + &" 0".repeat(29) + " 7 0";
        assert_eq!(
            Stat::parse(fields.as_bytes()),
            Some(Stat { comm: b"kthreadd", state: b'I', parent: 0, kernel_thread: true, cpu: 7 })
        );
        assert_eq!(Stat::parse(b"7 (x"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn this_process_is_there() {
        let me = std::process::id();
        assert!(numbers("/proc").contains(&me));
        let mut proc = Proc::default();
        let line = proc.read(format_args!("/proc/{me}/task/{me}/stat")).unwrap();
        assert!(!Stat::parse(line).unwrap().kernel_thread);
        assert!(proc.read(format_args!("/proc/0/stat")).is_none());
    }

    #[test]
    fn mappings_are_cut_at_the_end_of_a_line_when_they_take_too_long() {
        let mut proc = Proc::default();
        let lines: String =
            (0..2000).map(|n| format!("{n:08x}-{:08x} r-xp 00000000 00:00 0\n", n + 1)).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &lines).unwrap();
        let mut read = |limit| {
            let (bytes, whole) =
                proc.read_within(format_args!("{}", file.path().display()), limit).unwrap();
            (String::from_utf8(bytes.to_vec()).unwrap(), whole)
        };
        let (cut, whole) = read(Duration::ZERO);
        assert!(
            !whole
                && cut.ends_with('\n')
                && cut.len() > 2000
                && cut.len() < lines.len()
                && lines.starts_with(&cut)
        );
        assert_eq!(read(Duration::from_secs(60)), (lines.clone(), true));
    }
}
