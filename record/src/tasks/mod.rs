//! Targets of recordings, and parsers for lists of pids, tids and CPUs.

pub(crate) mod cgroup;
pub(crate) mod usage;
pub(crate) mod workload;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::messages::error::{Error, Result, why_words};

/// Name of the process that removes rec's probes at its end. It is rec's own, so it is nobody's
/// target.
pub(crate) const GUARD: &str = "rec-probe-guard";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The command, with its threads and children.
    #[default]
    Command,
    /// All processes on the CPUs (`-a`, `-C`); a command only determines the duration.
    System,
    /// Existing processes (`-p`), with their later threads and children.
    Processes(Vec<u32>),
    /// Existing threads (`-t`).
    Threads(Vec<u32>),
    /// All existing processes of a user (`-u`), with their later threads and children.
    User(u32),
}

/// An existing thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
}

impl Target {
    pub fn is_attached(&self) -> bool {
        matches!(self, Self::Processes(_) | Self::Threads(_) | Self::User(_))
    }

    /// Returns the current threads of the target's processes or threads; empty for the other
    /// targets.
    pub fn tasks(&self) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        match self {
            Self::Command | Self::System => {}
            Self::Processes(pids) => {
                for pid in pids {
                    tasks.extend(threads_of(*pid)?);
                }
            }
            Self::Threads(tids) => {
                for tid in tids {
                    tasks.push(Task { pid: process_of(*tid)?, tid: *tid });
                }
            }
            Self::User(uid) => {
                tasks = tasks_of_user(*uid);
                if tasks.is_empty() {
                    return Err(Error::Failed(format!(
                        "cannot record user {uid} (-u): it has no running processes; start one \
                         first"
                    )));
                }
            }
        }
        tasks.sort_unstable();
        tasks.dedup();
        Ok(tasks)
    }
}

/// Returns a descriptor that becomes readable at the end of a process or a thread; before
/// Linux 6.9, of the thread's process. `None`: it ended already.
pub(crate) fn end(task: Task, thread: bool) -> Result<Option<OwnedFd>> {
    // PIDFD_THREAD is O_EXCL.
    let of_thread = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());
    let found = if thread { open_pidfd(task.tid, of_thread) } else { Err(Errno::INVAL) };
    match found.or_else(|errno| {
        if errno == Errno::INVAL { open_pidfd(task.pid, PidfdFlags::empty()) } else { Err(errno) }
    }) {
        Ok(end) => Ok(Some(end)),
        Err(Errno::SRCH) => Ok(None),
        Err(errno) => Err(Error::io(
            format!("cannot wait for the end of process {} (pidfd_open)", task.pid),
            errno,
        )),
    }
}

fn open_pidfd(id: u32, flags: PidfdFlags) -> Result<OwnedFd, Errno> {
    Pid::from_raw(id.cast_signed()).ok_or(Errno::SRCH).and_then(|pid| pidfd_open(pid, flags))
}

fn threads_of(pid: u32) -> Result<Vec<Task>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(|why| {
        Error::Failed(match why.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no process {pid} (-p {pid}); it may have ended already")
            }
            _ => {
                let why = why_words(&why);
                format!("cannot list the threads of process {pid} (-p {pid}): {why}")
            }
        })
    })?;
    let tids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    Ok(tids.map(|tid| Task { pid, tid }).collect())
}

/// Returns all threads of a user's processes, without rec's own. Threads that end meanwhile are
/// skipped.
fn tasks_of_user(uid: u32) -> Vec<Task> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        (entry.metadata().ok()?.uid() == uid && pid != std::process::id() && !is_guard(pid))
            .then_some(pid)
    };
    entries.filter_map(pid).filter_map(|pid| threads_of(pid).ok()).flatten().collect()
}

/// Returns whether a process waits for the end of a rec, to remove its probes.
fn is_guard(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).next() == Some(GUARD.as_bytes())
}

fn process_of(tid: u32) -> Result<u32> {
    let status =
        fs::read_to_string(format!("/proc/{tid}/status")).map_err(|why| match why.kind() {
            std::io::ErrorKind::NotFound => Error::Failed(format!(
                "there is no thread {tid} (-t {tid}); it may have ended already"
            )),
            _ => Error::io(format!("cannot read the status of thread {tid} (-t {tid})"), why),
        })?;
    let tgid = status.lines().find_map(|l| l.strip_prefix("Tgid:"));
    Ok(tgid.and_then(|t| t.trim().parse().ok()).unwrap_or(tid))
}

/// Parses a user: an ID, or a name in `/etc/passwd`.
pub(crate) fn parse_user(text: &str) -> Result<u32, String> {
    if let Some(uid) = number(text) {
        return Ok(uid);
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    user_of(&passwd, text).ok_or_else(|| {
        format!(
            "there is no user '{text}' in /etc/passwd; for users defined elsewhere, give the \
                 ID (id -u {text})"
        )
    })
}

fn user_of(passwd: &str, name: &str) -> Option<u32> {
    let mut users = passwd.lines().map(|line| line.split(':'));
    users.find_map(|mut fields| {
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

/// Parses `1,2,3`.
pub(crate) fn parse_ids(list: &str) -> Result<Vec<u32>, String> {
    list.split(',')
        .map(|item| number(item).filter(|n| *n > 0).ok_or_else(|| wrong(item, list)))
        .collect()
}

/// Parses the process IDs of `-p`.
pub(crate) fn parse_pids(list: &str) -> Result<Vec<u32>, String> {
    parse_ids(list).map_err(|why| {
        let Some(name) =
            list.split(',').map(str::trim).find(|item| number(item).is_none() && !item.is_empty())
        else {
            return why;
        };
        let found: Vec<String> = processes_called(name).iter().map(u32::to_string).collect();
        match found.is_empty() {
            true => format!("'{name}' is no process ID, and no process has that name"),
            false => {
                format!("'{name}' is no process ID; processes called {name}: {}", found.join(", "))
            }
        }
    })
}

/// Returns the processes with this comm, in the order of their IDs; rec itself aside.
fn processes_called(name: &str) -> Vec<u32> {
    // A comm has 15 bytes at most.
    let comm = name.as_bytes().get(..15).unwrap_or(name.as_bytes());
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = pids
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim_ascii_end() == comm)
        })
        .filter(|pid| *pid != std::process::id())
        .collect();
    found.sort_unstable();
    found
}

/// Parses `0-3,8`, the form of `-C` and of the kernel's lists. Returns each CPU once, sorted.
pub(crate) fn parse_cpus(list: &str) -> Result<Vec<u32>, String> {
    /// Limit above any kernel's number of CPUs, so that a mistyped range does not exhaust the
    /// memory.
    const MOST: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for item in list.trim().split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last && last < MOST => cpus.extend(first..=last),
            _ => return Err(wrong(item, list)),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Writes sorted CPUs as `0-3,8`.
pub(crate) fn ranges(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).filter_map(|run| run.first().zip(run.last()));
    let texts: Vec<_> =
        runs.map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    texts.join(",")
}

fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn wrong(item: &str, list: &str) -> String {
    format!("'{}' in '{}' is not a number", item.trim(), list.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse_ids("1,22"), Ok(vec![1, 22]));
        assert_eq!(parse_ids("1,x"), Err("'x' in '1,x' is not a number".to_owned()));
        assert!(parse_ids("0").is_err());
        assert!(parse_ids("").is_err());
        assert!(parse_ids("-1").is_err());
        assert_eq!(parse_cpus("0-2,1,5\n"), Ok(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpus("0"), Ok(vec![0]));
        for bad in ["", "2-1", "a", "1-", "0-99999999"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_in_the_place_of_a_process_id() {
        assert_eq!(parse_pids("1,2"), Ok(vec![1, 2]));
        assert!(
            parse_pids("no-such-name-anywhere").unwrap_err().contains("no process has that name")
        );
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().to_string();
        let told = || parse_pids("sleep").unwrap_err();
        // Its comm changes when it is executed.
        let is_told = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            told().starts_with("'sleep' is no process ID; processes called sleep: ")
                && told().contains(&pid)
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_told, "{}", told());
    }

    #[test]
    fn this_process_has_its_threads() {
        let me = std::process::id();
        let tasks = Target::Processes(vec![me, me]).tasks().unwrap();
        assert_eq!(tasks.iter().filter(|t| t.tid == me).count(), 1);
        assert_eq!(Target::Threads(vec![me]).tasks().unwrap(), [Task { pid: me, tid: me }]);
        assert!(Target::System.tasks().unwrap().is_empty());
    }

    #[test]
    fn users_by_name_and_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/:\nbroken\n";
        assert_eq!((user_of(passwd, "daemon"), user_of(passwd, "root")), (Some(1), Some(0)));
        assert_eq!((user_of(passwd, "broken"), user_of(passwd, "x")), (None, None));
        assert_eq!(parse_user("1234"), Ok(1234));
        assert!(parse_user("no such user").unwrap_err().contains("id -u"));
        let me = std::process::id();
        let uid = fs::metadata(format!("/proc/{me}")).unwrap().uid();
        assert!(tasks_of_user(uid).iter().all(|task| task.pid != me));
        assert!(Target::User(0xffff_fff0).tasks().unwrap_err().to_string().contains("-u"));
    }

    #[test]
    fn a_process_that_is_gone_is_a_sentence() {
        let message = Target::Processes(vec![0x7fff_fff0]).tasks().unwrap_err().to_string();
        assert!(message.contains("there is no process"), "{message}");
        let message = Target::Threads(vec![0x7fff_fff0]).tasks().unwrap_err().to_string();
        assert!(message.contains("there is no thread"), "{message}");
    }
}
