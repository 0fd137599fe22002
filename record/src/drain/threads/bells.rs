//! Wakeups between threads.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::messages::error::{Error, Result};

/// Wakeup descriptors of a recording.
#[derive(Debug)]
pub(super) struct Bells {
    /// Tells all threads to end.
    pub(super) stop: Bell,
    pub(super) main: Bell,
    pub(super) own: Vec<Bell>,
}

impl Bells {
    pub(super) fn new(threads: usize) -> Result<Self> {
        let own = (0..threads).map(|_| Bell::new()).collect::<Result<_>>()?;
        Ok(Self { stop: Bell::new()?, main: Bell::new()?, own })
    }
}

/// Descriptor that is readable from `ring` until `clear`.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    fn new() -> Result<Self> {
        let made: Result<OwnedFd, Errno> =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        made.map(Self).map_err(|e| {
            Error::io("cannot create a descriptor for waking the threads that drain", e)
        })
    }

    pub(super) fn ring(&self) {
        // Fails only on overflow of its 64-bit counter.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        // Fails with EAGAIN if it was not rung.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
