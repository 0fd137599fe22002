//! Interface to the kernel's perf events, as a trait: implemented by [`sys::Perf`], and in
//! tests by fakes (`record/testkit`).

pub(crate) mod bpf;
pub(crate) mod counters;
pub(crate) mod fallback;
pub(crate) mod moment;
pub(crate) mod probes;
pub(crate) mod ring;
pub(crate) mod signals;
pub(crate) mod sys;

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use recrep_format::attr::Attr;
use rustix::io::Errno;

use crate::kernel::bpf::BpfProgram;
use crate::kernel::ring::{AuxRing, Ring};

/// Thread, CPU and cgroup that a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Thread; `None` for everything that runs on the CPU.
    pub thread: Option<u32>,
    /// CPU; `None` for any CPU that the thread runs on.
    pub cpu: Option<u32>,
    /// Descriptor of a cgroup's directory, to count only its threads.
    pub cgroup: Option<i32>,
}

/// Identity of the ring for a counter's records. Counters of one CPU share a ring; without a CPU,
/// those of one thread. Counters that write backwards have separate rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RingKey {
    /// CPU of the ring.
    pub cpu: Option<u32>,
    /// Thread of the ring, if it has no CPU.
    pub thread: Option<u32>,
    /// `true` if the ring is overwritten.
    pub backward: bool,
}

impl Place {
    pub fn ring(&self, backward: bool) -> RingKey {
        RingKey {
            cpu: self.cpu,
            thread: if self.cpu.is_none() { self.thread } else { None },
            backward,
        }
    }
}

/// A moment by two clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMoment {
    /// Time of the wall clock, since 1970.
    pub wall_clock: u64,
    /// Time of the samples' clock.
    pub clock: u64,
}

/// perf_event_open(2), and the operations on its descriptors.
pub trait Kernel {
    /// Opens a counter, in the group of the counter `leader` if given.
    fn open(
        &self,
        attr: &Attr,
        place: Place,
        leader: Option<BorrowedFd<'_>>,
    ) -> Result<OwnedFd, Errno>;

    /// Returns the event id in the counter's records.
    fn id(&self, counter: BorrowedFd<'_>) -> Result<u64, Errno>;

    /// Starts the counter, and its inherited counters in children.
    fn enable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Stops the counter, and its inherited counters in children.
    fn disable(&self, counter: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Sets a filter: by fields for a tracepoint, by addresses for a hardware tracer.
    fn set_filter(&self, counter: BorrowedFd<'_>, filter: &CStr) -> Result<(), Errno>;

    /// Redirects the counter's records to the ring of another counter on the same CPU.
    fn redirect(&self, counter: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Reads the counter's numbers, as selected by its `read_format`. Returns their count.
    fn read(&self, counter: BorrowedFd<'_>, numbers: &mut [u64]) -> Result<usize, Errno>;

    /// Pauses or resumes the kernel's output to the counter's ring, so that an overwritten ring can
    /// be read.
    fn pause(&self, counter: BorrowedFd<'_>, pause: bool) -> Result<(), Errno>;

    /// Maps the counter's ring, with a data area of this many pages; `backward` for an overwritten
    /// one.
    fn map(&self, counter: BorrowedFd<'_>, pages: usize, backward: bool) -> Result<Ring, Errno>;

    /// Returns now, by the wall clock and by the samples' (`clock`: that of `-k`); `None` if the
    /// kernel does not say.
    fn now(&self, _clock: Option<i32>) -> Option<ClockMoment> {
        None
    }

    /// Returns the BPF programs that are loaded.
    ///
    /// # Errors
    /// The kernel's refusal: EPERM without CAP_SYS_ADMIN.
    fn bpf_programs(&self) -> Result<Vec<BpfProgram>, Errno>;

    /// Maps the AUX area of the counter that owns this ring, with this many pages; `overwrite` for
    /// an overwritten one.
    fn map_aux(
        &self,
        counter: BorrowedFd<'_>,
        ring: &Ring,
        pages: usize,
        overwrite: bool,
    ) -> Result<AuxRing, Errno> {
        ring.map_aux(counter, pages, overwrite)
    }
}
