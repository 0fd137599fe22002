//! Copies of recorded programs and libraries, so that a report has their names after the next
//! build.
//!
//! ```text
//!  build ID reader (a thread) ─▶ Keeper: owned by a package? ─▶ left where it is
//!                                        kept before?        ─▶ marked as used
//!                                        deleted, or of another mount namespace ─▶ stored at once
//!                                        else ─▶ held open ─▶ stored at the end of the recording
//!  store: DIR/xx/yy….elf by build ID ─▶ rep finds it there, and checks its build ID
//!  jit: the lists of JITs' code      ─▶ DIR/jit/….map, by recording and process
//! ```
//!
//! A file is cloned if the file system can share its blocks; else copied whole if that takes little
//! time beside the recording, so that its lines and inlined functions are kept too; else reduced to
//! names and call frames, which a longer recording replaces by the whole file. A hard link would
//! cost nothing either, but a build that writes the file in place would change it. Nothing of this
//! disturbs a recording: what cannot be kept is not kept.

mod jit;
mod store;

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use recrep_format::build_id::BuildId;

use jit::JitLists;
pub(crate) use jit::{is_dump, is_elsewhere, is_memory};
use store::Store;

/// Maximum number of files held open until the end.
const MAX_HELD: usize = 64;
/// Files of at most this size are always copied whole: nothing is gained by reducing them.
const SMALL: u64 = 128 << 10;
/// Size up to which a file that vanishes is copied whole.
const WHOLE_IF_VANISHING: u64 = 16 << 20;
/// Share of the recording's time that keeping may take at the end, as far as whole files are
/// concerned: a twenty-fifth.
const SHARE: u32 = 25;
/// Time that it may take after the shortest recording.
const UNNOTICED: Duration = Duration::from_millis(20);
/// Time after which no more files are stored at the end, not even reduced ones; more for long
/// recordings.
const PATIENCE: Duration = Duration::from_millis(200);
/// Bytes copied in a second, as long as it is not known how fast this machine is.
const USUAL_SPEED: u64 = 500_000_000;
/// Bytes from which on the speed is known.
const MEASURED: u64 = 1 << 20;
/// Part of a file that its reduced form has, as a rule: a tenth.
const REDUCED: u64 = 10;

/// Keeps files of recorded processes by their build IDs.
#[derive(Debug)]
pub struct Keeper {
    store: Store,
    start: Instant,
    state: Mutex<KeeperState>,
}

#[derive(Debug, Default)]
struct KeeperState {
    known: HashSet<BuildId>,
    held: Vec<HeldFile>,
    jits: JitLists,
    done: Kept,
}

#[derive(Debug)]
struct HeldFile {
    id: BuildId,
    file: File,
    /// Metadata at the time its build ID was read.
    metadata: Metadata,
}

impl HeldFile {
    fn size(&self) -> u64 {
        self.metadata.len()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of files that could not be kept.
    pub failed: u64,
    /// Time that it took.
    pub time: Duration,
}

/// Place of a file: the path by which a process maps it, and whether that process has this mount
/// namespace.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'p> {
    pub path: &'p [u8],
    /// `true` if the path may mean another file in this mount namespace.
    pub is_elsewhere: bool,
}

impl Keeper {
    /// Creates a keeper that stores below `directory` and leaves at most `limit` bytes there.
    pub fn new(directory: PathBuf, limit: u64) -> Self {
        Self { store: Store::new(directory, limit), start: Instant::now(), state: Mutex::default() }
    }

    /// Returns the directory where rep looks: `$XDG_CACHE_HOME/recrep/kept`, or
    /// `~/.cache/recrep/kept`.
    pub fn default_directory() -> Option<PathBuf> {
        let cache = directory_in("XDG_CACHE_HOME")
            .or_else(|| Some(directory_in("HOME")?.join(".cache")))?;
        Some(cache.join("recrep/kept"))
    }

    /// Takes a file that was found with this build ID.
    pub fn take(&self, id: BuildId, file: File, mapped: Mapped<'_>) {
        let Ok(metadata) = file.metadata() else { return };
        let mut state = self.lock();
        if is_owned(mapped, &metadata) || !state.known.insert(id) {
            return;
        }
        let vanishes = mapped.is_elsewhere || metadata.nlink() == 0;
        let found = HeldFile { id, file, metadata };
        if vanishes || state.held.len() >= MAX_HELD {
            let is_whole = found.size() <= WHOLE_IF_VANISHING;
            self.store(&mut state.done, &found, is_whole);
        } else {
            state.held.push(found);
        }
    }

    /// Remembers a process that has code in anonymous memory.
    pub fn open_jit(&self, pid: u32) {
        self.lock().jits.open(pid);
    }

    /// Takes the list of code that a process with a JIT mapped.
    pub fn take_dump(&self, pid: u32, dump: File) {
        let is_deleted = dump.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
        self.lock().jits.add_dump(pid, dump, is_deleted || is_elsewhere(pid));
    }

    /// Returns the size up to which the list of a JIT's code is copied that stays where it is: as
    /// much as can be copied in this share of the recording's time.
    fn largest_dump(&self) -> u64 {
        let time = (self.start.elapsed() / SHARE).as_nanos();
        let bytes = time * u128::from(USUAL_SPEED) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX).max(WHOLE_IF_VANISHING)
    }

    /// Copies the lists of a process that has ended.
    pub fn end_jit(&self, pid: u32) {
        let largest = self.largest_dump();
        self.lock().jits.end(pid, &self.store, largest);
    }

    /// Stores the lists of JITs for a file whose samples are from `first` to `last`.
    pub fn keep_jits(&self, first: u64, last: u64) {
        let (mut state, largest) = (self.lock(), self.largest_dump());
        let kept = state.jits.store(first, last, &self.store, largest);
        state.done.files += kept.files;
        state.done.bytes += kept.bytes;
        state.done.failed += kept.failed;
    }

    fn lock(&self) -> MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the files held open, and removes the oldest ones beyond the limit.
    pub fn finish(&self) -> Kept {
        let start = Instant::now();
        let mut state = self.lock();
        let elapsed = self.start.elapsed();
        let mut budget = Budget::new(UNNOTICED.max(elapsed / SHARE));
        let mut files = std::mem::take(&mut state.held);
        // Most files are small: their lines and inlined functions cost least.
        files.sort_unstable_by_key(HeldFile::size);
        let (kept, new): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|found| self.store.size_of(found.id) == Some(found.size()));
        let mut left: u64 = new.iter().map(HeldFile::size).sum();
        for found in kept {
            self.store(&mut state.done, &found, false);
        }
        for found in new {
            left -= found.size();
            let is_whole = found.size() <= SMALL
                || budget.allows(start.elapsed(), found.size() + left / REDUCED);
            if start.elapsed() > PATIENCE.max(elapsed / SHARE) {
                state.done.failed += 1;
                continue;
            }
            let (begun, before) = (Instant::now(), state.done.bytes);
            self.store(&mut state.done, &found, is_whole);
            budget.measure(state.done.bytes - before, begun.elapsed());
        }
        if state.done.files > 0 {
            self.store.trim();
        }
        state.done.time = start.elapsed();
        state.done
    }

    fn store(&self, done: &mut Kept, found: &HeldFile, is_whole: bool) {
        match self.store.put(found.id, &found.file, &found.metadata, is_whole) {
            Ok(bytes) => {
                done.files += u64::from(bytes > 0);
                done.bytes += bytes;
            }
            Err(_) => done.failed += 1,
        }
    }
}

fn directory_in(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Time that copying may take, and how long it takes on this machine.
#[derive(Debug)]
struct Budget {
    time: Duration,
    copied: u64,
    took: Duration,
}

impl Budget {
    fn new(time: Duration) -> Self {
        Self { time, copied: 0, took: Duration::ZERO }
    }

    fn measure(&mut self, bytes: u64, time: Duration) {
        self.copied += bytes;
        self.took += time;
    }

    /// Returns whether this many bytes can be copied within the time, of which some is over.
    fn allows(&self, over: Duration, bytes: u64) -> bool {
        let nanoseconds = match self.copied {
            MEASURED.. => self.took.as_nanos() * u128::from(bytes) / u128::from(self.copied),
            _ => 1_000_000_000 * u128::from(bytes) / u128::from(USUAL_SPEED),
        };
        over.as_nanos() + nanoseconds <= self.time.as_nanos()
    }
}

/// Directories that packages install into, whose files can be had again.
const OWNED: [&[u8]; 9] = [
    b"/usr/",
    b"/lib/",
    b"/lib32/",
    b"/lib64/",
    b"/libx32/",
    b"/bin/",
    b"/sbin/",
    b"/nix/store/",
    b"/gnu/store/",
];

/// Returns whether a file probably belongs to a package: it is root's, in a directory of packages,
/// and not replaced.
fn is_owned(mapped: Mapped<'_>, metadata: &Metadata) -> bool {
    let below = |directory: &[u8]| mapped.path.starts_with(directory);
    let is_installed = OWNED.iter().any(|directory| below(directory))
        && !below(b"/usr/local/")
        && !below(b"/usr/src/");
    is_installed && !mapped.is_elsewhere && metadata.uid() == 0 && metadata.nlink() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn id(byte: u8) -> BuildId {
        BuildId::new(&[byte; 20]).unwrap()
    }

    fn take(keeper: &Keeper, byte: u8, path: &Path, is_elsewhere: bool) {
        use std::os::unix::ffi::OsStrExt;
        keeper.take(
            id(byte),
            File::open(path).unwrap(),
            Mapped { path: path.as_os_str().as_bytes(), is_elsewhere },
        );
    }

    #[test]
    fn a_file_of_no_package_is_kept_at_the_end_and_only_once() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, program) = (directory.path().join("kept"), directory.path().join("app"));
        fs::write(&program, b"first build").unwrap();
        for expected in [1, 0] {
            let keeper = Keeper::new(kept.clone(), 1 << 20);
            take(&keeper, 0xab, &program, false);
            let done = keeper.finish();
            assert_eq!((done.files, done.failed), (expected, 0));
        }
        let copy = kept.join("ab").join(format!("{}.elf", "ab".repeat(19)));
        assert_eq!(fs::read(&copy).unwrap(), b"first build");
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_deleted_after_it_was_found_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, program) = (directory.path().join("kept"), directory.path().join("app"));
        fs::write(&program, b"build").unwrap();
        let keeper = Keeper::new(kept, 1 << 20);
        take(&keeper, 1, &program, false);
        fs::remove_file(&program).unwrap();
        assert_eq!(keeper.finish().files, 1);
    }

    #[test]
    fn a_file_written_to_after_its_build_id_was_read_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, program) = (directory.path().join("kept"), directory.path().join("app"));
        fs::write(&program, b"build").unwrap();
        let keeper = Keeper::new(kept.clone(), 1 << 20);
        take(&keeper, 1, &program, false);
        fs::write(&program, b"next build").unwrap();
        let done = keeper.finish();
        assert_eq!((done.files, done.failed), (0, 1));
        // Not even a temporary file.
        assert_eq!(fs::read_dir(kept.join("01")).unwrap().count(), 0);
    }

    #[test]
    fn large_files_are_reduced_unless_the_recording_was_long() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, me) = (directory.path().join("kept"), std::env::current_exe().unwrap());
        let copy = kept.join("07").join(format!("{}.elf", "07".repeat(19)));
        let whole = fs::metadata(&me).unwrap().len();
        assert!(whole > SMALL);
        let finish = |started: Instant| {
            let keeper = Keeper { start: started, ..Keeper::new(kept.clone(), 1 << 40) };
            take(&keeper, 7, &me, false);
            (keeper.finish().files, fs::metadata(&copy).unwrap().len())
        };
        // On a file system that shares blocks, each is whole.
        let (files, size) = finish(Instant::now());
        assert!(files == 1 && size <= whole);
        let is_cloned = size == whole;
        assert_eq!(finish(Instant::now()), (0, size), "it is not reduced again");
        let long_ago = Instant::now().checked_sub(Duration::from_secs(3600)).unwrap();
        assert_eq!(finish(long_ago), (u64::from(!is_cloned), whole), "it is replaced");
        assert_eq!(finish(Instant::now()), (0, whole), "it stays");
    }

    #[test]
    fn a_budget_goes_by_the_speed_of_the_machine() {
        let mut budget = Budget::new(Duration::from_millis(40));
        assert!(
            budget.allows(Duration::ZERO, USUAL_SPEED / 26)
                && !budget.allows(Duration::ZERO, USUAL_SPEED / 24)
        );
        assert!(!budget.allows(Duration::from_millis(10), USUAL_SPEED / 26));
        budget.measure(2 << 20, Duration::from_millis(20));
        assert!(
            budget.allows(Duration::from_millis(20), 2 << 20)
                && !budget.allows(Duration::from_millis(21), 2 << 20)
        );
    }

    #[test]
    fn files_of_packages_are_left() {
        let mine = File::open("/proc/self/exe").unwrap().metadata().unwrap();
        let roots = fs::metadata("/").unwrap();
        let is = |path: &str, is_elsewhere, of: &Metadata| {
            is_owned(Mapped { path: path.as_bytes(), is_elsewhere }, of)
        };
        assert!(is("/usr/lib/x.so", false, &roots) && is("/lib64/ld.so", false, &roots));
        assert!(!is("/usr/local/bin/x", false, &roots) && !is("/home/u/x", false, &roots));
        assert!(!is("/usr/lib/x.so", true, &roots));
        assert_eq!(is("/usr/bin/x", false, &mine), mine.uid() == 0);
    }

    #[test]
    fn the_oldest_files_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("kept");
        for byte in 1..=5 {
            let program = directory.path().join(format!("app{byte}"));
            fs::write(&program, vec![byte; 24_576]).unwrap();
            let keeper = Keeper::new(kept.clone(), 100_000);
            take(&keeper, byte, &program, false);
            assert_eq!(keeper.finish().files, 1);
            let old =
                std::time::SystemTime::now() - Duration::from_secs(1000 - 100 * u64::from(byte));
            let copy = kept.join(format!("{byte:02x}/{}.elf", format!("{byte:02x}").repeat(19)));
            File::options().write(true).open(copy).unwrap().set_modified(old).unwrap();
        }
        let left = |byte: u8| {
            kept.join(format!("{byte:02x}/{}.elf", format!("{byte:02x}").repeat(19))).exists()
        };
        assert_eq!([1, 2, 3, 4, 5].map(left), [false, true, true, true, true]);
    }
}
