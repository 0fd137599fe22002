//! How threads wake each other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::messages::error::{Error, Result};

/// Those of a recording.
#[derive(Debug)]
pub(super) struct Bells {
    /// Ends all threads.
    pub(super) stop: Bell,
    /// Wakes the main thread.
    pub(super) main: Bell,
    /// Wakes one thread.
    pub(super) own: Vec<Bell>,
}

impl Bells {
    /// For so many threads.
    pub(super) fn new(threads: usize) -> Result<Self> {
        let own = (0..threads).map(|_| Bell::new()).collect::<Result<_>>()?;
        Ok(Self { stop: Bell::new()?, main: Bell::new()?, own })
    }
}

/// A descriptor that is readable after it was rung, until it is cleared.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    fn new() -> Result<Self> {
        let made: Result<OwnedFd, Errno> = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        made.map(Self).map_err(|e| Error::io("cannot make a descriptor to wake threads with", e))
    }

    pub(super) fn ring(&self) {
        // It cannot fail but by having been rung 2⁶⁴ times.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        // Where it was not rung there is nothing to read.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
