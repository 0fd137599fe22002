//! Contents of files, mapped or copied; truncation of a file while it is mapped; a setting of the
//! allocator (all `unsafe` code of this package).
//!
//! ```text
//!   mapping:   [ page | page | page | page ]          the file is truncated to 1.5 pages
//!   reading:     ok     ok ½0   SIGBUS ─► handler: maps zero pages from here to the end, stores the offset
//! ```
//!
//! The kernel sends SIGBUS to a thread that touches a page of a mapping beyond the end of its file.
//! The handler in this module maps zero pages there, so that reading continues and soon stops: a
//! record of size 0 ends every walk. Results computed from such zeros are wrong, so callers check
//! [`Contents::lost`] after reading.
//!
//! Why files are mapped: on two cores with a warm page cache, one pass over 296 MB takes 0.04 to
//! 0.05 s with a mapping, and 0.25 to 0.33 s with a copy in memory. Mapped pages belong to the page
//! cache, so the kernel can reclaim them. Small files are copied: to unmap one interrupts all
//! cores, and with 980 files of 1.7 MB by ip it is a tenth of the time.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::ops::{Deref, Range};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use rayon::prelude::*;

/// Tells the allocator to use freed memory again and to ask for more at a time. glibc returns large
/// blocks to the kernel, which clears each page of the next one; that took 5 % of the time of a
/// flat histogram. Each time a thread's heap grows, page faults of all threads wait; by 128 KiB
/// that took 3 % of the time with call trees. For the beginning of a program: no other thread may
/// allocate meanwhile.
#[allow(unsafe_code, reason = "there is no safe way to set what the allocator does")]
pub(crate) fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (option, bytes) in [
        (libc::M_MMAP_THRESHOLD, 32 << 20),
        (libc::M_TRIM_THRESHOLD, 1 << 30),
        (libc::M_TOP_PAD, 4 << 20),
    ] {
        // SAFETY: mallopt(3) takes two numbers and sets the allocator's own limits, whatever they
        // are; a value that it does not accept changes nothing. There is one thread.
        unsafe { libc::mallopt(option, bytes) };
    }
}

/// Contents of a file. Those of its bytes that were truncated away since it was opened are zeros.
#[derive(Debug)]
pub(crate) struct Contents {
    held: Held,
    file: File,
    /// Of the file when it was opened: size and modification time change when it is written to.
    pub(crate) before: Metadata,
    is_read_whole: bool,
}

#[derive(Debug)]
enum Held {
    Mapped(Mmap, &'static Region),
    Copied(Vec<u8>),
}

/// Number of bytes up to which a file that is read whole is copied.
const SMALL: usize = 2 << 20;

impl Contents {
    /// Maps a whole file. If all of it will be read, it is copied if it is small; if not, all cores
    /// take part when it is dropped; the thread that drops it may do other work of the pool
    /// meanwhile, so it must not hold what that work waits for.
    pub(crate) fn new(file: File, is_read_whole: bool) -> io::Result<Self> {
        let before = file.metadata()?;
        let len = usize::try_from(before.len()).map_err(io::Error::other)?;
        let held = if is_read_whole && len <= SMALL {
            let mut bytes = Vec::with_capacity(len);
            (&file).take(before.len()).read_to_end(&mut bytes)?;
            bytes.resize(len, 0);
            Held::Copied(bytes)
        } else {
            handle_bus_errors()?;
            let map = map(&file, len)?;
            let region = Region::add(map.as_ptr().addr(), len);
            Held::Mapped(map, region)
        };
        Ok(Self { held, file, before, is_read_whole })
    }

    /// Returns the offset from which the bytes may differ from the file that was opened: where it
    /// was truncated, or 0 if it was rewritten. Appended bytes are no loss.
    pub(crate) fn lost(&self) -> Option<u64> {
        let missed = match &self.held {
            Held::Mapped(_, region) => {
                Some(region.missed.load(Ordering::SeqCst)).filter(|missed| *missed != usize::MAX)
            }
            Held::Copied(_) => None,
        };
        let missed = missed.map(|missed| missed as u64);
        let (before, now) = (&self.before, self.file.metadata());
        let changed = match now {
            Ok(now) if now.len() < before.len() => Some(now.len()),
            Ok(now) if now.len() > before.len() => None,
            Ok(now) if now.modified().ok() != before.modified().ok() => Some(0),
            _ => None,
        };
        missed.into_iter().chain(changed).min()
    }

    /// Takes the pages out of the address space on all cores: unmapping 300 MB takes one core 12
    /// ms. They are found again where they are read.
    #[allow(unsafe_code, reason = "memmap2 cannot know what the pages are")]
    fn release(&self) {
        /// Bytes at a time.
        const PART: usize = 4 << 20;
        let Held::Mapped(map, _) = &self.held else { return };
        let len = map.len();
        if len <= PART || !self.is_read_whole {
            return;
        }
        (0..len.div_ceil(PART)).into_par_iter().for_each(|part| {
            let at = part * PART;
            // If it fails, unmapping takes longer. SAFETY: the pages are those of a read-only
            // mapping of a file: a later read finds the file's bytes again.
            let _ = unsafe {
                map.unchecked_advise_range(UncheckedAdvice::DontNeed, at, PART.min(len - at))
            };
        });
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.held {
            Held::Mapped(map, _) => map,
            Held::Copied(bytes) => bytes,
        }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        if let Held::Mapped(_, region) = &self.held {
            // Before the memory is unmapped.
            region.is_mapped.store(false, Ordering::SeqCst);
        }
        self.release();
    }
}

#[allow(unsafe_code, reason = "mapping lets all cores read hundreds of megabytes at once")]
fn map(file: &File, len: usize) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and outlives every slice borrowed from it. Rust cannot rule
    // out that another process changes or truncates the file meanwhile. All parsing works on bytes,
    // is checked at each read and accepts every bit pattern, so changed bytes give a wrong answer,
    // which `Contents::lost` reports, and never break an invariant; truncated bytes read as zeros,
    // because of the handler below.
    unsafe { MmapOptions::new().len(len).map(file) }
}

/// Bytes in memory, or of a file. A clone shares them.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    Copied(Arc<Vec<u8>>),
    OfFile(Arc<Contents>, Range<usize>),
}

impl Bytes {
    /// Maps or copies a whole file ([`Contents::new`]).
    pub(crate) fn of_file(file: File, is_read_whole: bool) -> io::Result<Self> {
        let contents = Contents::new(file, is_read_whole)?;
        let all = 0..contents.len();
        Ok(Self::OfFile(Arc::new(contents), all))
    }

    /// Lets go of the memory of a file that was read whole, as far as it can be found again.
    pub(crate) fn release(&self) {
        if let Self::OfFile(contents, _) = self {
            contents.release();
        }
    }

    /// Returns the offset in the file from which the bytes may be others than those of the file
    /// that was opened.
    pub(crate) fn lost(&self) -> Option<u64> {
        match self {
            Self::Copied(_) => None,
            Self::OfFile(contents, _) => contents.lost(),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::OfFile(contents, range) => contents.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Copied(Arc::new(bytes))
    }
}

/// A mapping, as the signal handler sees it. Never freed, so that the handler may walk the list at
/// any moment.
#[derive(Debug)]
struct Region {
    start: usize,
    len: usize,
    is_mapped: AtomicBool,
    /// Offset of the first missing page that was read; `usize::MAX` if none was.
    missed: AtomicUsize,
    next: Option<&'static Region>,
}

/// Head of the list: the region that was added last.
static REGIONS: AtomicPtr<Region> = AtomicPtr::new(ptr::null_mut());
/// Lock held while a region is added.
static ADDING: Mutex<()> = Mutex::new(());
/// Page size in bytes; set before the handler is installed.
static PAGE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// While this thread is in [`tolerating`], whether a missing page was replaced there. Has a
    /// constant initial value and no destructor, so that the handler may use it.
    static TOLERATED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Calls `act`, which reads files that other code has mapped. Returns `None` if one of them was
/// truncated meanwhile, or if the handler cannot be installed.
pub(crate) fn tolerating<R>(act: impl FnOnce() -> R) -> Option<R> {
    if handle_bus_errors().is_err() {
        return None;
    }
    let before = TOLERATED.replace(Some(false));
    let outcome = act();
    (TOLERATED.replace(before) == Some(false)).then_some(outcome)
}

impl Region {
    fn add(start: usize, len: usize) -> &'static Self {
        let _guard = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let next = last_region();
        let (is_mapped, missed) = (AtomicBool::new(true), AtomicUsize::new(usize::MAX));
        let region = Box::leak(Box::new(Self { start, len, is_mapped, missed, next }));
        REGIONS.store(region, Ordering::SeqCst);
        region
    }
}

#[allow(unsafe_code, reason = "the handler cannot take a lock, so the list is a raw pointer")]
fn last_region() -> Option<&'static Region> {
    // SAFETY: null, or a region leaked by `add`: valid until the process ends, and only changed
    // through its atomics.
    unsafe { REGIONS.load(Ordering::SeqCst).as_ref() }
}

/// Installs the SIGBUS handler, once per process.
fn handle_bus_errors() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED.get_or_init(install_handler).map_err(io::Error::from_raw_os_error)
}

#[allow(unsafe_code, reason = "there is no safe way to handle SIGBUS")]
fn install_handler() -> Result<(), i32> {
    // SAFETY: returns a number and has no other effect.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::SeqCst);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask, SIG_DFL.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the action is initialized and outlives the call; the handler has the signature
    // that SA_SIGINFO requires, and is async-signal-safe (see its doc comment).
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

/// Maps zero pages over the missing pages of a mapped file. Any other SIGBUS ends the process, as
/// by default.
///
/// Interrupts the thread anywhere, so it takes no lock and allocates nothing: it uses atomics and a
/// thread-local that needs no initialization, and makes system calls (POSIX does not list `mmap` as
/// async-signal-safe, but glibc's and musl's are the bare system call: no lock, no state).
#[allow(unsafe_code, reason = "a signal handler gets raw pointers and makes system calls")]
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes a `siginfo_t` that is valid until the handler
    // returns (sigaction(2)).
    let info = unsafe { &*info };
    let code = info.si_code;
    // SAFETY: for SIGBUS this field is the address, unless a process sent it (see `code`); any bits
    // are a valid number.
    let address = unsafe { info.si_addr() }.addr();
    // Greater than 0: sent by the kernel because of an access (sigaction(2)).
    if code > 0 && replace_pages(address) {
        return;
    }
    // SAFETY: a system call. The access is repeated once the handler returns, and then ends the
    // process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    if code <= 0 {
        // SAFETY: a system call; the signal stays pending until the handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Maps zero pages at `address` if it is in a [`Region`] or this thread is in [`tolerating`];
/// returns whether it did.
fn replace_pages(address: usize) -> bool {
    let page = PAGE.load(Ordering::SeqCst);
    let start = address & !(page - 1);
    let mut regions = std::iter::successors(last_region(), |region| region.next);
    if let Some(region) = regions.find(|region| {
        region.is_mapped.load(Ordering::SeqCst)
            && address.checked_sub(region.start).is_some_and(|offset| offset < region.len)
    }) {
        // All pages after a missing one are missing too: one new mapping covers them.
        let len = (region.start + region.len).next_multiple_of(page) - start;
        region.missed.fetch_min(start - region.start, Ordering::SeqCst);
        return put_zeros(start, len);
    }
    if TOLERATED.get().is_none() {
        return false;
    }
    TOLERATED.set(Some(true));
    put_zeros(start, page)
}

#[allow(unsafe_code, reason = "there is no safe way to replace pages")]
fn put_zeros(start: usize, len: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let at = ptr::without_provenance_mut(start);
    // SAFETY: `start` is the beginning of a page whose read just failed, and the `len` bytes are in
    // the same mapping of a file: either a `Region`, which is read-only and stays mapped while it
    // is read, or a single page that is read in `tolerating`. Mapped files hold no memory of Rust's
    // own and are not written to, and the kernel replaces the pages atomically for all threads, so
    // each read gives the file's bytes or zeros.
    let put = unsafe { libc::mmap(at, len, libc::PROT_READ, flags, -1, 0) };
    put != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    const PAGES: usize = 5;

    fn page() -> usize {
        handle_bus_errors().unwrap();
        PAGE.load(Ordering::SeqCst)
    }

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn file_of_ones() -> File {
        file_of(&vec![1; PAGES * page()])
    }

    fn region(contents: &Contents) -> &'static Region {
        let Held::Mapped(_, region) = &contents.held else { panic!("it is mapped") };
        region
    }

    #[test]
    fn truncated_pages_read_as_zeros_and_are_reported() {
        let file = file_of_ones();
        let (other, page) = (Contents::new(file.try_clone().unwrap(), false).unwrap(), page());
        let mapped = Contents::new(file.try_clone().unwrap(), false).unwrap();
        assert_eq!((mapped[page], mapped.lost()), (1, None));
        file.set_len(page as u64 * 3 / 2).unwrap();
        // From several threads at once, the last page first.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!((2 * page..PAGES * page).rev().all(|at| mapped[at] == 0)));
            }
        });
        assert_eq!(mapped[page + page / 2 - 1], 1);
        assert_eq!(mapped.lost(), Some(page as u64 * 3 / 2));
        assert_eq!(
            region(&other).missed.load(Ordering::SeqCst),
            usize::MAX,
            "not read through this mapping"
        );
        assert_eq!(other.lost(), Some(page as u64 * 3 / 2), "the size of the file shows it");
    }

    #[test]
    fn a_loss_is_reported_after_the_file_grew_again() {
        let (file, page) = (file_of_ones(), page());
        let mapped = Contents::new(file.try_clone().unwrap(), false).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(mapped[4 * page + 1], 0);
        file.set_len((PAGES * page + 1) as u64).unwrap();
        assert_eq!(mapped.lost(), Some(4 * page as u64));
    }

    #[test]
    fn released_bytes_are_found_again() {
        let bytes: Vec<u8> = (0..9u32 << 18).flat_map(u32::to_le_bytes).collect();
        let mapped = Bytes::of_file(file_of(&bytes), true).unwrap();
        mapped.release();
        assert!(*mapped == *bytes);
        assert_eq!(mapped.lost(), None);
    }

    #[test]
    fn rewritten_bytes_are_lost_and_appended_bytes_are_not() {
        for is_read_whole in [false, true] {
            let mut file = file_of_ones();
            let contents = Contents::new(file.try_clone().unwrap(), is_read_whole).unwrap();
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(b"more").unwrap();
            assert_eq!(contents.lost(), None);
            file.set_len((PAGES * page()) as u64).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
            assert_eq!(contents.lost(), Some(0));
        }
    }

    #[test]
    fn small_files_are_copied() {
        let mut file = file_of_ones();
        file.rewind().unwrap();
        let copied = Contents::new(file.try_clone().unwrap(), true).unwrap();
        file.set_len(10).unwrap();
        assert!(*copied == vec![1; PAGES * page()]);
        assert_eq!(copied.lost(), Some(10));
    }

    #[test]
    #[allow(unsafe_code, reason = "maps a file without `Contents`")]
    fn truncation_of_other_mappings_is_tolerated_on_request() {
        let file = file_of_ones();
        // SAFETY: no other process uses this file.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        assert_eq!(tolerating(|| map[0]), Some(1));
        file.set_len(0).unwrap();
        assert_eq!(tolerating(|| map[2 * page()]), None);
        assert_eq!(tolerating(|| map[2 * page()]), Some(0), "the page was replaced before");
    }

    /// Runs in a child process of [`any_other_bus_error_ends_the_process`] and dies there.
    #[test]
    #[allow(unsafe_code, reason = "maps a file without `Contents`")]
    fn dies_if_asked_to() {
        if std::env::var_os("RECREP_TEST_DIES").is_none() {
            return;
        }
        let file = file_of_ones();
        // SAFETY: no other process uses this file.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        file.set_len(0).unwrap();
        std::process::exit(i32::from(map[page()]));
    }

    #[test]
    fn any_other_bus_error_ends_the_process() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "input::map::tests::dies_if_asked_to"])
            .env("RECREP_TEST_DIES", "yes");
        let ended = child.output().unwrap().status;
        assert_eq!(ended.signal(), Some(libc::SIGBUS), "{ended:?}");
    }
}
