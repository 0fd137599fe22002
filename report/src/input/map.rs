//! Files in memory (all of this package's `unsafe`), and what happens where one is cut short while it is read.
//!
//! ```text
//!   mapping:   [ page | page | page | page ]          the file is cut to 1.5 pages
//!   reading:     ok     ok ½0   SIGBUS ─► handler: zero pages from here to the end, the byte is remembered
//! ```
//!
//! The kernel sends SIGBUS to whoever touches a page of a mapping that its file no longer has. The handler of this module puts
//! zero pages there, so that reading goes on and ends soon: a record of size 0 ends every walk. What was read then is
//! not an answer; [`Mapped::lost`] says so, and is asked after everything was read.
//!
//! Mapping instead of reading: on two cores with the page cache warm, one pass over 296 MB by mapping takes 0.04 to 0.05 s, and 0.25 to
//! 0.33 s with a copy in memory. The pages of a mapping are the page cache's, which the kernel can have back.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memmap2::{Mmap, MmapOptions};

/// A mapped file.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: Mmap,
    file: File,
    was: Stamp,
    region: &'static Region,
}

/// What tells that a file was written to.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    written: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self { len: meta.len(), written: (meta.mtime(), meta.mtime_nsec()) })
    }
}

impl Mapped {
    /// Maps a whole file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        handle_bus_errors()?;
        let was = Stamp::of(&file)?;
        let len = usize::try_from(was.len).map_err(io::Error::other)?;
        let map = map(&file, len)?;
        let region = Region::add(map.as_ptr().addr(), len);
        Ok(Self { map, file, was, region })
    }

    /// The bytes; zeros where the file was cut since.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The byte from which on what was read may not be what the file had: where it was cut, or its
    /// first if it was rewritten. What was only appended is no loss.
    pub(crate) fn lost(&self) -> Option<u64> {
        let missed = Some(self.region.missed.load(Ordering::SeqCst)).filter(|missed| *missed != usize::MAX);
        let missed = missed.map(|missed| missed as u64);
        let changed = match Stamp::of(&self.file) {
            Ok(now) if now.len < self.was.len => Some(now.len),
            Ok(now) if now.len == self.was.len && now != self.was => Some(0),
            _ => None,
        };
        missed.into_iter().chain(changed).min()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Before the memory is given back.
        self.region.is_mapped.store(false, Ordering::SeqCst);
    }
}

#[allow(unsafe_code, reason = "a mapped file is the way to read hundreds of megabytes on all cores at once")]
fn map(file: &File, len: usize) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and lives as long as the slice that is taken of it. What Rust cannot rule out is that
    // someone else changes or shortens the file meanwhile. All parsing is of bytes, checked at each read and valid for every bit
    // pattern, so changed bytes give a wrong answer, which `Mapped::lost` tells of, never undefined behaviour by a
    // broken invariant; what a shortened file has lost reads as zeros, by the handler below.
    unsafe { MmapOptions::new().len(len).map(file) }
}

/// A mapping as the handler finds it. Never freed, so that the handler may walk all of them at any moment.
#[derive(Debug)]
struct Region {
    start: usize,
    len: usize,
    is_mapped: AtomicBool,
    /// The first byte that the file no longer had when it was read; `usize::MAX` if there was none.
    missed: AtomicUsize,
    next: Option<&'static Region>,
}

/// The region that was added last.
static REGIONS: AtomicPtr<Region> = AtomicPtr::new(ptr::null_mut());
/// Held while a region is added.
static ADDING: Mutex<()> = Mutex::new(());
/// The length of a page; set before the handler is.
static PAGE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread is within [`tolerating`], and whether a page was missed there. Without a destructor and a
    /// constant at first, so that the handler may use it.
    static TOLERANCE: Cell<Tolerance> = const { Cell::new(Tolerance::None) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tolerance {
    None,
    Ready,
    Used,
}

/// Acts on files that others have mapped; `None` if one of them was cut short meanwhile.
pub(crate) fn tolerating<R>(act: impl FnOnce() -> R) -> Option<R> {
    if handle_bus_errors().is_err() {
        return None;
    }
    let before = TOLERANCE.replace(Tolerance::Ready);
    let outcome = act();
    let was_used = TOLERANCE.replace(before) == Tolerance::Used;
    (!was_used).then_some(outcome)
}

impl Region {
    fn add(start: usize, len: usize) -> &'static Self {
        let _one_at_a_time = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let next = last_region();
        let (is_mapped, missed) = (AtomicBool::new(true), AtomicUsize::new(usize::MAX));
        let region = Box::leak(Box::new(Self { start, len, is_mapped, missed, next }));
        REGIONS.store(region, Ordering::SeqCst);
        region
    }
}

#[allow(unsafe_code, reason = "the handler cannot lock what holds the regions")]
fn last_region() -> Option<&'static Region> {
    // SAFETY: null, or a region that `add` has leaked: valid for ever, and never written to but through its atomics.
    unsafe { REGIONS.load(Ordering::SeqCst).as_ref() }
}

/// Installs the handler once.
#[allow(unsafe_code, reason = "there is no safe way to handle SIGBUS")]
fn handle_bus_errors() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let install = || {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::SeqCst);
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        // SAFETY: all zeros is a `sigaction`: no flags, an empty mask, SIG_DFL.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the action is whole and outlives the call; the handler has the signature that SA_SIGINFO asks for, and
        // does only what a handler may (see there).
        match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        }
    };
    INSTALLED.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

/// Puts zero pages where a mapped file no longer has any. Any other SIGBUS has its default effect, the process's end.
///
/// Runs in whatever the thread was doing, so it takes no lock and allocates nothing: it loads atomics, reads a
/// thread-local constant, and makes system calls (`mmap` is one; POSIX does not list it as async-signal-safe, glibc's and musl's
/// are the bare call: no lock, no state).
#[allow(unsafe_code, reason = "a signal handler")]
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid `siginfo_t`, which is there until the handler returns (sigaction(2)).
    let info = unsafe { &*info };
    let code = info.si_code;
    // SAFETY: SIGBUS has an address there unless a process has sent it, which the code tells; any bits are an address.
    let address = unsafe { info.si_addr() }.addr();
    // Greater than 0: from the kernel, because of an access (sigaction(2)).
    if code > 0 && is_replaced(address) {
        return;
    }
    // SAFETY: a system call. An access comes again once this returns, and then ends the process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    if code <= 0 {
        // SAFETY: a system call; the signal waits until this returns.
        unsafe { libc::raise(signal) };
    }
}

/// Replaces what is missing at `address`, if that is in a mapped file of ours.
fn is_replaced(address: usize) -> bool {
    let page = PAGE.load(Ordering::SeqCst);
    let start = address & !(page - 1);
    let is_in = |region: &&Region| {
        region.is_mapped.load(Ordering::SeqCst)
            && address.checked_sub(region.start).is_some_and(|offset| offset < region.len)
    };
    if let Some(region) = std::iter::successors(last_region(), |region| region.next).find(is_in) {
        // What lies behind a missing page is missing too, and one mapping for all of it is one mapping more, however long it is.
        let len = (region.start + region.len).next_multiple_of(page) - start;
        region.missed.fetch_min(start - region.start, Ordering::SeqCst);
        return put_zeros(start, len);
    }
    if TOLERANCE.get() == Tolerance::None {
        return false;
    }
    TOLERANCE.set(Tolerance::Used);
    put_zeros(start, page)
}

#[allow(unsafe_code, reason = "there is no safe way to replace pages")]
fn put_zeros(start: usize, len: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let at = ptr::without_provenance_mut(start);
    // SAFETY: `start` is the beginning of a page that was just read in vain, and the pages up to `len` are in the same mapping of a
    // file: either one of `Region`, which is read-only and stays mapped while it is read, or, one page, of
    // whoever runs in `tolerating`. Nothing of Rust's own memory is in mapped files, nothing is written to these, and the kernel
    // replaces the pages at once for all threads, so each read gives the file's bytes or zeros.
    let put = unsafe { libc::mmap(at, len, libc::PROT_READ, flags, -1, 0) };
    put != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;

    const PAGES: usize = 5;

    fn page() -> usize {
        handle_bus_errors().unwrap();
        PAGE.load(Ordering::SeqCst)
    }

    fn file_of_ones(dir: &Path) -> File {
        fs::write(dir.join("x"), vec![1; PAGES * page()]).unwrap();
        File::options().read(true).write(true).open(dir.join("x")).unwrap()
    }

    #[test]
    fn what_is_cut_off_reads_as_zeros_and_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = file_of_ones(dir.path());
        let (other, page) = (Mapped::new(file.try_clone().unwrap()).unwrap(), page());
        let mapped = Mapped::new(file.try_clone().unwrap()).unwrap();
        assert_eq!((mapped.bytes()[page], mapped.lost()), (1, None));
        file.set_len(page as u64 * 3 / 2).unwrap();
        // From several threads at once, the last page first.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!((2 * page..PAGES * page).rev().all(|at| mapped.bytes()[at] == 0)));
            }
        });
        assert_eq!(mapped.bytes()[page + page / 2 - 1], 1);
        assert_eq!(mapped.lost(), Some(page as u64 * 3 / 2));
        assert_eq!(other.region.missed.load(Ordering::SeqCst), usize::MAX, "nobody read there");
        assert_eq!(other.lost(), Some(page as u64 * 3 / 2), "the file tells");
    }

    #[test]
    fn a_file_that_grows_again_has_still_lost_what_was_missed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, page) = (file_of_ones(dir.path()), page());
        let mapped = Mapped::new(file.try_clone().unwrap()).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(mapped.bytes()[4 * page + 1], 0);
        file.set_len((PAGES * page + 1) as u64).unwrap();
        assert_eq!(mapped.lost(), Some(4 * page as u64));
    }

    #[test]
    fn what_is_rewritten_is_lost_and_what_is_appended_is_not() {
        use std::io::{Seek, SeekFrom, Write};
        let dir = tempfile::tempdir().unwrap();
        let mut file = file_of_ones(dir.path());
        let mapped = Mapped::new(file.try_clone().unwrap()).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"more").unwrap();
        assert_eq!(mapped.lost(), None);
        file.set_len((PAGES * page()) as u64).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(mapped.lost(), Some(0));
    }

    #[test]
    #[allow(unsafe_code, reason = "a mapping of somebody else")]
    fn what_others_have_mapped_is_tolerated_where_it_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = file_of_ones(dir.path());
        // SAFETY: nobody else has this file.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        assert_eq!(tolerating(|| map[0]), Some(1));
        file.set_len(0).unwrap();
        assert_eq!(tolerating(|| map[2 * page()]), None);
        assert_eq!(tolerating(|| map[2 * page()]), Some(0), "it is replaced by now");
    }

    /// The test in which a child process of [`any_other_bus_error_ends_the_process`] dies.
    #[test]
    #[allow(unsafe_code, reason = "a mapping of somebody else")]
    fn dies_if_asked_to() {
        let Some(dir) = std::env::var_os("RECREP_TEST_DIES") else { return };
        let file = file_of_ones(Path::new(&dir));
        // SAFETY: nobody else has this file.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        file.set_len(0).unwrap();
        std::process::exit(i32::from(map[page()]));
    }

    #[test]
    fn any_other_bus_error_ends_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "input::map::tests::dies_if_asked_to"]).env("RECREP_TEST_DIES", dir.path());
        let ended = child.output().unwrap().status;
        assert_eq!(ended.signal(), Some(libc::SIGBUS), "{ended:?}");
    }
}
