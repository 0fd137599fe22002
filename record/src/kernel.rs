//! What rec asks of the kernel's perf events, as a trait: [`Perf`](crate::sys::Perf) is the real one, tests stand in others.

use std::os::fd::{BorrowedFd, OwnedFd};

use recrep_format::attr::Attr;
use rustix::io::Errno;

use crate::ring::Ring;

/// Where a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The thread; none: whatever runs on the CPU.
    pub thread: Option<u32>,
    /// The CPU.
    pub cpu: u32,
}

/// perf_event_open(2) and what can be done with its file descriptors.
pub trait Kernel {
    /// Opens a counter.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn open(&self, attr: &Attr, place: Place) -> Result<OwnedFd, Errno>;

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

    /// Maps the counter's ring, its data area this many pages long.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn map(&self, counter: BorrowedFd<'_>, pages: usize) -> Result<Ring, Errno>;
}
