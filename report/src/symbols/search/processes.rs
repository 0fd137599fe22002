//! Processes that live now: files of the recorded ones that nothing but them leads to, and what
//! tells them from others.
//!
//! A file that was deleted, replaced or made in memory (memfd), or that is in a container, is still
//! mapped by its processes: `/proc/PID/map_files`, `/proc/PID/exe` and `/proc/PID/root` lead to it.
//! All mappings are listed once, when the first file is missed.
//!
//! A recording with `NAMESPACES` records has the inode of each process's mount namespace. As long
//! as any process lives in a namespace with that inode, its files are below that process's
//! `/proc/PID/root`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;

/// Suffix of the paths of deleted files.
const DELETED: &[u8] = b" (deleted)";

/// Maximum number of different files that are tried for one path.
const MAX_FILES: usize = 16;

/// Clock ticks in a second, in `/proc` (`USER_HZ`).
const TICKS: u64 = 100;

/// The processes that live now.
#[derive(Debug)]
pub(crate) struct Processes {
    /// `/proc`.
    proc: PathBuf,
    /// Mappings of code by path, one for each file.
    mapped: OnceLock<FxHashMap<Vec<u8>, Vec<LivingMapping>>>,
    /// Root directories by the inode of the mount namespace, without our own.
    roots: OnceLock<FxHashMap<u64, PathBuf>>,
}

/// A process that lives now.
#[derive(Clone, Debug)]
pub(crate) struct LivingProcess {
    pub(crate) started: SystemTime,
    /// Its users: real, effective, …
    pub(crate) users: Vec<u32>,
    /// Its pid in its own pid namespace.
    pub(crate) inner: i32,
    /// Inode of its mount namespace, if that may be known.
    pub(crate) mounts: Option<u64>,
    /// `true` if that is not our own.
    pub(crate) is_elsewhere: bool,
}

/// Mapping of a file by a living process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LivingMapping {
    process: PathBuf,
    /// Addresses, as `map_files` spells them.
    range: String,
    /// Device and inode, as `maps` spells them.
    file: String,
}

impl Processes {
    pub(crate) fn new(root: &Path) -> Self {
        Self { proc: root.join("proc"), mapped: OnceLock::new(), roots: OnceLock::new() }
    }

    /// Returns a process, if it lives.
    pub(crate) fn process(&self, pid: i32) -> Option<LivingProcess> {
        let process = self.proc.join(pid.to_string());
        let status = fs::read_to_string(process.join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let users =
            field("Uid:")?.split_whitespace().filter_map(|user| user.parse().ok()).collect();
        let inner = field("NSpid:")
            .and_then(|pids| pids.split_whitespace().next_back()?.parse().ok())
            .unwrap_or(pid);
        let started = started(&fs::read_to_string(process.join("stat")).ok()?)?;
        let mounts = namespace(&process);
        let is_elsewhere = mounts.is_some() && mounts != self.own_namespace();
        Some(LivingProcess { started, users, inner, mounts, is_elsewhere })
    }

    fn own_namespace(&self) -> Option<u64> {
        namespace(&self.proc.join("self"))
    }

    /// Returns the directories of all processes.
    fn all(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        entries
            .filter(|entry| {
                entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok())
            })
            .map(|entry| entry.path())
    }

    /// Returns the root directory of this mount namespace, if it exists and is not our own.
    pub(crate) fn root_of(&self, mounts: u64) -> Option<&Path> {
        let roots = self.roots.get_or_init(|| {
            let ours = self.own_namespace();
            let mut roots = FxHashMap::default();
            for process in self.all() {
                if let Some(mounts) = namespace(&process).filter(|mounts| Some(*mounts) != ours) {
                    roots.entry(mounts).or_insert_with(|| process.join("root"));
                }
            }
            roots
        });
        roots.get(&mounts).map(PathBuf::as_path)
    }

    /// Returns whether this mount namespace is neither our own nor that of a living process.
    pub(crate) fn is_gone(&self, mounts: u64) -> bool {
        self.own_namespace().is_some_and(|ours| ours != mounts) && self.root_of(mounts).is_none()
    }

    /// Returns the root directory of a process.
    pub(crate) fn root(&self, pid: i32) -> PathBuf {
        self.proc.join(pid.to_string()).join("root")
    }

    /// Returns whether a path leads through a process.
    pub(crate) fn is_below(&self, path: &Path) -> bool {
        path.starts_with(&self.proc)
    }

    /// Returns the paths by which living processes lead to the files that they have mapped from
    /// `path`.
    pub(crate) fn places(&self, path: &[u8]) -> Vec<PathBuf> {
        let live = path.strip_suffix(DELETED).unwrap_or(path);
        let below_root = OsStr::from_bytes(live.strip_prefix(b"/").unwrap_or(live));
        let mapped = self.mapped.get_or_init(|| self.list()).get(live);
        let mut places = Vec::new();
        for LivingMapping { process, range, .. } in mapped.into_iter().flatten() {
            places.push(process.join("map_files").join(range));
            let program = process.join("exe");
            let target = fs::read_link(&program).unwrap_or_default();
            let target = target.as_os_str().as_bytes();
            if target.strip_suffix(DELETED).unwrap_or(target) == live {
                places.push(program);
            }
            places.push(process.join("root").join(below_root));
        }
        places
    }

    fn list(&self) -> FxHashMap<Vec<u8>, Vec<LivingMapping>> {
        let mut mapped: FxHashMap<Vec<u8>, Vec<LivingMapping>> = FxHashMap::default();
        for process in self.all() {
            let Ok(maps) = fs::read(process.join("maps")) else { continue };
            for (path, range, file) in maps.split(|&byte| byte == b'\n').filter_map(code_in) {
                let mappings = mapped.entry(path.to_vec()).or_default();
                // A path means a file of its own in each container.
                if mappings.len() < MAX_FILES && !mappings.iter().any(|known| known.file == file) {
                    mappings.push(LivingMapping { process: process.clone(), range, file });
                }
            }
        }
        mapped
    }
}

/// Returns the inode of a process's mount namespace, if that may be known.
fn namespace(process: &Path) -> Option<u64> {
    fs::metadata(process.join("ns/mnt")).ok().map(|found| found.ino())
}

/// Returns the path (as if it was not deleted), the addresses and the device and inode of a file's
/// code in a line of `/proc/PID/maps`.
fn code_in(line: &[u8]) -> Option<(&[u8], String, String)> {
    let at = memchr::memchr(b'/', line)?;
    let (fields, path) = line.split_at_checked(at)?;
    let mut fields = std::str::from_utf8(fields).ok()?.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    let (_, device, inode) = (fields.next()?, fields.next()?, fields.next()?);
    let is_code = rights.contains('x') && inode != "0";
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    is_code.then(|| (path, range.to_owned(), format!("{device} {inode}")))
}

/// Returns the time at which a process was started, from its `/proc/PID/stat`.
fn started(stat: &str) -> Option<SystemTime> {
    // Field 22; the second one is a name in parentheses, which may have any characters.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let since_boot = Duration::from_millis(ticks.saturating_mul(1000) / TICKS);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    SystemTime::now().checked_sub(now.checked_sub(since_boot)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id().cast_signed();
        let processes = Processes::new(Path::new("/"));
        let process = processes.process(pid).unwrap();
        assert!(
            process.started.elapsed().unwrap() < Duration::from_secs(3600) && !process.is_elsewhere
        );
        assert!(process.users.contains(&fs::metadata("/proc/self").unwrap().uid()));
        assert!(processes.process(i32::MAX).is_none());
        assert_eq!(processes.root(7), Path::new("/proc/7/root"));
    }

    #[test]
    fn files_are_found_by_their_mappings() {
        let machine = tempfile::tempdir().unwrap();
        let at = |path: &str| machine.path().join("proc").join(path);
        for (process, maps) in [
            (
                "7",
                "10-20 r-xp 00000000 fe:00 55    /app/x (deleted)\n20-30 r--p 0 fe:00 55    \
                 /app/x (deleted)\n",
            ),
            ("8", "40-50 r-xp 00000000 fe:00 55    /app/x (deleted)\n"),
            ("9", "70-80 r-xp 00000000 fe:00 56    /app/x\n80-90 r-xp 0 00:00 0   [vdso]\n"),
            ("10", "70-80 r-xp 00000000 00:01 99    /memfd:tool (deleted)\n"),
            ("sys", "70-80 r-xp 00000000 fe:00 57    /app/x\n"),
        ] {
            fs::create_dir_all(at(process)).unwrap();
            fs::write(at(process).join("maps"), maps).unwrap();
        }
        std::os::unix::fs::symlink("/memfd:tool (deleted)", at("10/exe")).unwrap();
        let processes = Processes::new(machine.path());
        let places = |path: &str| {
            let mut places = processes.places(path.as_bytes());
            places.sort();
            places
        };
        let expected = ["9/map_files/70-80", "9/root/app/x"].map(at);
        let found = places("/app/x");
        assert!(
            expected.iter().all(|place| found.contains(place)) && found.len() == 4,
            "{found:?}"
        );
        assert_eq!(places("/app/x (deleted)"), found);
        let memory = ["10/exe", "10/map_files/70-80", "10/root/memfd:tool"].map(at);
        assert_eq!(places("/memfd:tool (deleted)"), memory);
        assert_eq!(places("/other"), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn a_process_is_found_by_its_mount_namespace() {
        let machine = tempfile::tempdir().unwrap();
        let at = |path: &str| machine.path().join("proc").join(path);
        for process in ["self", "7", "9"] {
            fs::create_dir_all(at(process).join("ns")).unwrap();
            fs::write(at(process).join("ns/mnt"), "").unwrap();
        }
        let inode = fs::metadata(at("9/ns/mnt")).unwrap().ino();
        let processes = Processes::new(machine.path());
        assert_eq!(processes.root_of(inode), Some(at("9/root").as_path()));
        let ours = fs::metadata(at("self/ns/mnt")).unwrap().ino();
        assert_eq!((processes.root_of(ours), processes.is_gone(ours)), (None, false));
        assert_eq!((processes.is_gone(inode), processes.is_gone(u64::MAX)), (false, true));
    }
}
