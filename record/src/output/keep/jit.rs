//! The lists of JITs' code: `/tmp/perf-PID.map` and `jit-PID.dump`, kept for reports after the
//! process or its container.
//!
//! ```text
//!  first code in anonymous memory ─▶ open: /proc/PID/root/tmp, the pid in its own namespace, its start, its users
//!  EXIT                           ─▶ copied at once, under a temporary name; the directory is closed
//!  end of a file of the recording ─▶ DIR/jit/FIRST-LAST-PID.map: the times of the first and last sample, in hexadecimal
//! ```
//!
//! A directory that is open can be read when nothing else of a container is left. A map counts only
//! if it was written to since the process began, by one of its users: another process may have had
//! the pid before. What a pid was used for twice is not kept.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;
use rustix::fs::{Mode, OFlags};

use super::store::Store;

/// Larger maps are not kept: that of a large JVM has 20 MB.
const LARGEST_MAP: u64 = 256 << 20;
/// Maximum number of processes whose directories are open.
const MAX_OPEN: usize = 256;
/// Precision of the times in `/proc` and of those of files.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct JitLists {
    processes: FxHashMap<u32, Process>,
}

/// A process with a JIT.
#[derive(Debug)]
enum Process {
    Living(Lists),
    /// The copies that were made when it ended, by suffix.
    Ended(Vec<(&'static str, PathBuf)>),
    /// Another process had the same pid.
    Reused,
}

/// Lists of a living process.
#[derive(Debug, Default)]
struct Lists {
    /// Place of its map; `None` if it had ended before that could be found.
    map: Option<MapPlace>,
    dump: Option<MappedDump>,
}

/// Place of a process's map.
#[derive(Debug)]
struct MapPlace {
    /// `/tmp` as the process sees it.
    directory: OwnedFd,
    /// Name of the map, after the pid in the process's own namespace.
    name: String,
    started: SystemTime,
    users: Vec<u32>,
}

/// The dump that a process mapped.
#[derive(Debug)]
struct MappedDump {
    file: File,
    /// `true` if nothing but this open file leads to it later.
    vanishes: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptLists {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) failed: u64,
}

impl JitLists {
    /// Opens what is needed of a process to read its map at its end.
    pub(super) fn open(&mut self, pid: u32) {
        let has_room = self.processes.len() < MAX_OPEN;
        match self.processes.get_mut(&pid) {
            None if has_room => {
                if let Some(map) = MapPlace::of(pid) {
                    let lists = Lists { map: Some(map), dump: None };
                    self.processes.insert(pid, Process::Living(lists));
                }
            }
            Some(process @ Process::Ended(_)) => {
                process.discard();
                *process = Process::Reused;
            }
            None | Some(Process::Living(_) | Process::Reused) => {}
        }
    }

    /// Takes the dump that a process mapped. `vanishes`: nothing else leads to it later.
    pub(super) fn add_dump(&mut self, pid: u32, file: File, vanishes: bool) {
        self.open(pid);
        if self.processes.len() < MAX_OPEN {
            // The process may have ended already.
            self.processes.entry(pid).or_insert_with(|| Process::Living(Lists::default()));
        }
        if let Some(Process::Living(lists)) = self.processes.get_mut(&pid) {
            lists.dump = Some(MappedDump { file, vanishes });
        }
    }

    /// Copies the lists of a process that has ended; of dumps that may stay where they are, those
    /// of at most `largest` bytes.
    pub(super) fn end(&mut self, pid: u32, store: &Store, largest: u64) {
        if let Some(process) = self.processes.get_mut(&pid)
            && let Process::Living(lists) = process
        {
            let copies = lists.copy(store, true, largest);
            *process = Process::Ended(copies);
        }
    }

    /// Stores the lists for the file of a recording whose samples are from `first` to `last`. Lists
    /// of processes that have ended are in no later file. `largest`: as for [`JitLists::end`].
    pub(super) fn store(
        &mut self,
        first: u64,
        last: u64,
        store: &Store,
        largest: u64,
    ) -> KeptLists {
        let mut kept = KeptLists::default();
        for (pid, process) in &mut self.processes {
            let copies = match process {
                Process::Living(lists) => lists.copy(store, false, largest),
                Process::Ended(copies) => std::mem::take(copies),
                Process::Reused => Vec::new(),
            };
            for (suffix, copy) in copies {
                match store.name_list(&copy, &format!("{first:x}-{last:x}-{pid}.{suffix}")) {
                    Ok(bytes) => {
                        kept.files += 1;
                        kept.bytes += bytes;
                    }
                    Err(_) => kept.failed += 1,
                }
            }
        }
        self.processes.retain(|_, process| matches!(process, Process::Living(_)));
        kept
    }
}

impl Process {
    /// Removes copies that are not needed.
    fn discard(&mut self) {
        if let Self::Ended(copies) = self {
            for (_, copy) in std::mem::take(copies) {
                // It is removed as an old temporary file otherwise.
                let _ = fs::remove_file(copy);
            }
        }
    }
}

impl Drop for JitLists {
    fn drop(&mut self) {
        for process in self.processes.values_mut() {
            process.discard();
        }
    }
}

impl MappedDump {
    fn size(&self) -> u64 {
        self.file.metadata().map_or(u64::MAX, |metadata| metadata.len())
    }
}

impl Lists {
    /// Copies what there is. Of a process that goes on, the last line may be incomplete.
    fn copy(&self, store: &Store, has_ended: bool, largest: u64) -> Vec<(&'static str, PathBuf)> {
        let map = self.map.as_ref().and_then(MapPlace::read).map(|mut map| {
            if !has_ended {
                map.truncate(map.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
            }
            map
        });
        let map = map.filter(|map| !map.is_empty()).and_then(|map| store.add_list(&map).ok());
        let dump = self.dump.as_ref().filter(|dump| dump.vanishes || dump.size() <= largest);
        let dump = dump.and_then(|dump| store.add_dump(&dump.file).ok());
        map.map(|map| ("map", map)).into_iter().chain(dump.map(|dump| ("dump", dump))).collect()
    }
}

impl MapPlace {
    fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let users =
            field("Uid:")?.split_whitespace().filter_map(|user| user.parse().ok()).collect();
        // Kernels without pid namespaces have no such line.
        let inner = field("NSpid:")
            .and_then(|pids| pids.split_whitespace().next_back()?.parse().ok())
            .unwrap_or(pid);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path: &str| rustix::fs::open(path, flags, Mode::empty()).ok();
        let own = open(&format!("/proc/{pid}/root/tmp"));
        let directory = own.or_else(|| if is_elsewhere(pid) { None } else { open("/tmp") })?;
        Some(Self { directory, name: format!("perf-{inner}.map"), started: started(pid)?, users })
    }

    /// Reads the map if it is the process's own.
    fn read(&self) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Through its entry, so that nothing but a regular file is ever opened.
        let place = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place =
            File::from(rustix::fs::openat(&self.directory, &self.name, place, Mode::empty()).ok()?);
        let found = place.metadata().ok()?;
        let is_own = self.users.contains(&found.uid()) || found.uid() == 0;
        if !found.is_file()
            || !is_own
            || found.len() > LARGEST_MAP
            || found.modified().ok()? + TICK < self.started
        {
            return None;
        }
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        let file =
            File::from(rustix::fs::open(link, flags - OFlags::NOFOLLOW, Mode::empty()).ok()?);
        let mut text = Vec::new();
        file.take(LARGEST_MAP).read_to_end(&mut text).ok()?;
        Some(text)
    }
}

/// Returns whether a process lives in another mount namespace than rec.
pub(crate) fn is_elsewhere(pid: u32) -> bool {
    let theirs = mount_namespace(&pid.to_string());
    theirs.is_some() && theirs != mount_namespace("self")
}

fn mount_namespace(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/mnt")).ok().map(|found| found.ino())
}

/// Returns the time at which a process was started.
fn started(pid: u32) -> Option<SystemTime> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22; the second one is a name in parentheses, which may have any characters.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let since_boot = Duration::from_millis(
        ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1),
    );
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    SystemTime::now().checked_sub(now.checked_sub(since_boot)?)
}

/// Returns whether code in a mapping of this name may be a JIT's.
pub(crate) fn is_memory(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 7] =
        [b"//anon", b"[anon:", b"/dev/zero", b"/anon_hugepage", b"[stack", b"/SYSV", b"[heap]"];
    name.is_empty() || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a file has the form `jit-PID.dump`.
pub(crate) fn is_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

impl Store {
    /// Writes a list under a temporary name.
    fn add_list(&self, text: &[u8]) -> io::Result<PathBuf> {
        self.add_temporary(text.len() as u64, |out| io::Write::write_all(&mut &*out, text))
    }

    /// Clones or copies a dump under a temporary name.
    fn add_dump(&self, dump: &File) -> io::Result<PathBuf> {
        let size = dump.metadata()?.len();
        self.add_temporary(size, |out| self.copy_dump(dump, out, size))
    }

    /// Gives a copy its name; returns its size.
    fn name_list(&self, copy: &Path, name: &str) -> io::Result<u64> {
        fs::rename(copy, self.lists().join(name))?;
        Ok(fs::metadata(self.lists().join(name))?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the map of this process, written before or after its start.
    fn kept(modified: SystemTime, name: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let mut lists = JitLists::default();
        lists.open(pid);
        let tmp = directory.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let Some(Process::Living(of_process)) = lists.processes.get_mut(&pid) else {
            panic!("{pid} is not open")
        };
        let place = of_process.map.as_mut().unwrap();
        place.directory = rustix::fs::open(&tmp, flags, Mode::empty()).unwrap();
        fs::write(tmp.join(name), "1000 10 f\n2000 10 incompl").unwrap();
        File::options().write(true).open(tmp.join(name)).unwrap().set_modified(modified).unwrap();
        let store = Store::new(directory.path().join("kept"), 1 << 20);
        lists.store(0x10, 0x20, &store, 0);
        lists.end(pid, &store, 0);
        lists.store(0x30, 0x40, &store, 0);
        drop(lists);
        let mut files: Vec<_> =
            fs::read_dir(store.lists()).into_iter().flatten().flatten().collect();
        files.sort_by_key(fs::DirEntry::file_name);
        let shown = |file: fs::DirEntry| {
            format!("{}: {}", file.file_name().display(), fs::read_to_string(file.path()).unwrap())
        };
        files.into_iter().map(shown).collect()
    }

    #[test]
    fn the_map_of_a_process_is_kept_for_each_file_of_the_recording() {
        let pid = std::process::id();
        let expected = [
            format!("10-20-{pid}.map: 1000 10 f\n"),
            format!("30-40-{pid}.map: 1000 10 f\n2000 10 incompl"),
        ];
        assert_eq!(kept(SystemTime::now(), &format!("perf-{pid}.map")), expected);
    }

    #[test]
    fn a_map_from_before_the_process_is_not_its_own() {
        let name = format!("perf-{}.map", std::process::id());
        assert_eq!(kept(SystemTime::now() - Duration::from_secs(86_400), &name), [""; 0]);
        assert_eq!(kept(SystemTime::now(), "perf-1.map"), [""; 0]);
    }

    #[test]
    fn of_a_pid_that_was_used_twice_nothing_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("kept"), 1 << 20);
        let copy = store.add_list(b"1000 10 f\n").unwrap();
        let mut lists = JitLists::default();
        lists.processes.insert(7, Process::Ended(vec![("map", copy.clone())]));
        lists.open(7);
        assert_eq!((lists.store(1, 2, &store, 0).files, copy.exists()), (0, false));
    }

    #[test]
    fn dumps_are_kept_unless_they_are_large_and_stay() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("kept"), 1 << 20);
        // No process that lives.
        let pid = u32::MAX - 1;
        let kept = |largest: u64, vanishes: bool| {
            let path = directory.path().join("jit-1.dump");
            fs::write(&path, b"JiTD").unwrap();
            let mut lists = JitLists::default();
            lists.add_dump(pid, File::open(&path).unwrap(), vanishes);
            lists.end(pid, &store, largest);
            fs::remove_file(path).unwrap();
            lists.store(largest, 1, &store, largest).files
        };
        assert_eq!((kept(4, false), kept(3, false), kept(3, true)), (1, 0, 1));
        let copy = store.lists().join(format!("4-1-{pid}.dump"));
        assert_eq!(fs::read(copy).unwrap(), b"JiTD");
    }

    #[test]
    fn processes_began_before_now() {
        let age = started(std::process::id()).unwrap().elapsed().unwrap();
        assert!(age < Duration::from_secs(3600), "{age:?}");
        assert_eq!(started(u32::MAX), None);
        assert!(!is_elsewhere(std::process::id()) && !is_elsewhere(u32::MAX));
    }

    #[test]
    fn names_of_memory_and_dumps() {
        assert!(
            is_memory(b"//anon")
                && is_memory(b"[anon:v8]")
                && !is_memory(b"[vdso]")
                && !is_memory(b"/bin/x")
        );
        assert!(is_dump(b"/tmp/.debug/jit/a/jit-12.dump") && is_dump(b"/jit-1.dump (deleted)"));
        assert!(!is_dump(b"/tmp/jit-.dump") && !is_dump(b"/tmp/jit-1.dump.gz"));
    }
}
