//! What rec asks of the kernel's perf events, as a trait: [`Perf`](crate::kernel::sys::Perf) is the real one, tests stand in others.

pub mod bpf;
pub mod counters;
pub mod fallback;
pub mod ring;
pub mod signals;
pub mod sys;

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use recrep_format::attr::Attr;
use rustix::io::Errno;

use crate::kernel::bpf::BpfProgram;
use crate::kernel::ring::{AuxRing, Ring};

/// Where a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The thread; none: whatever runs on the CPU.
    pub thread: Option<u32>,
    /// The CPU; none: whichever the thread runs on.
    pub cpu: Option<u32>,
    /// The descriptor of a cgroup's directory, to count its threads only.
    pub cgroup: Option<i32>,
}

/// Which ring the records of a counter go to: counters of one CPU share one, and where there is no CPU, of one thread. What
/// writes backwards has a ring of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RingKey {
    /// The CPU.
    pub cpu: Option<u32>,
    /// The thread, where there is no CPU.
    pub thread: Option<u32>,
    /// Whether it is overwritten.
    pub backward: bool,
}

impl Place {
    /// The ring of a counter here.
    #[must_use]
    pub fn ring(&self, backward: bool) -> RingKey {
        RingKey { cpu: self.cpu, thread: if self.cpu.is_none() { self.thread } else { None }, backward }
    }
}

/// perf_event_open(2) and what can be done with its file descriptors.
pub trait Kernel {
    /// Opens a counter, in the group of the counter `leader` if there is one.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn open(&self, attr: &Attr, place: Place, leader: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno>;

    /// The id that the counter's records carry.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn id(&self, counter: BorrowedFd<'_>) -> Result<u64, Errno>;

    /// Starts the counter, and those that children inherited.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn enable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Stops the counter, and those that children inherited.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn disable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Leaves out what does not pass the filter: of a tracepoint, by its fields; of a hardware tracer, by addresses.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn set_filter(&self, counter: BorrowedFd<'_>, filter: &CStr) -> Result<(), Errno>;

    /// Sends the counter's records to the ring of another one, on the same CPU.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn redirect(&self, counter: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Reads the counter: as many numbers as its `read_format` gives.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn read(&self, counter: BorrowedFd<'_>, numbers: &mut [u64]) -> Result<usize, Errno>;

    /// Stops the kernel writing to the counter's ring, or lets it go on: so that a ring that is overwritten can be read.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn pause(&self, counter: BorrowedFd<'_>, pause: bool) -> Result<(), Errno>;

    /// Maps the counter's ring, its data area this many pages long; `backward`: one that is overwritten.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn map(&self, counter: BorrowedFd<'_>, pages: usize, backward: bool) -> Result<Ring, Errno>;

    /// Returns the BPF programs that are loaded.
    ///
    /// # Errors
    /// The kernel's refusal: EPERM without CAP_SYS_ADMIN.
    fn bpf_programs(&self) -> Result<Vec<BpfProgram>, Errno>;

    /// Maps the AUX area of the counter that has this ring, this many pages long; `overwrite`: one that is overwritten.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn map_aux(&self, counter: BorrowedFd<'_>, ring: &Ring, pages: usize, overwrite: bool) -> Result<AuxRing, Errno> {
        ring.map_aux(counter, pages, overwrite)
    }
}
