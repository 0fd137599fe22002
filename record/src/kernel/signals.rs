//! Signals as file descriptors to wait on: those that end the recording, the death of a child, and SIGUSR2, which asks for a
//! snapshot or for another file.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::low_level::pipe;

use crate::kernel::sys;
use crate::messages::error::{Error, Result};

/// Signals, from when this is made on; before, they had their usual effect.
#[derive(Debug)]
pub struct Signals {
    /// SIGINT, SIGTERM and SIGHUP.
    stop: UnixStream,
    /// SIGCHLD.
    child: UnixStream,
    /// SIGUSR2.
    user: UnixStream,
}

impl Signals {
    /// Takes the signals over, also those that were blocked when rec was started. SIGHUP only where it is not ignored, as nohup(1) has it.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn install() -> Result<Self> {
        let stops = [Some(SIGINT), Some(SIGTERM), (!ignored(SIGHUP)).then_some(SIGHUP)];
        let install = || -> io::Result<Self> {
            let stop = receiver(stops.into_iter().flatten())?;
            // A file that may not grow is an error of the write then. A handler, unlike SIG_IGN, is not inherited by the command.
            signal_hook::flag::register(SIGXFSZ, Arc::default())?;
            Ok(Self { stop, child: receiver([SIGCHLD])?, user: receiver([SIGUSR2])? })
        };
        install().map_err(|e| Error::io("cannot handle signals", e))
    }

    /// Readable when a signal came that ends the recording.
    #[must_use]
    pub fn stop(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Whether such a signal came already.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default()))).is_ok_and(|ready| ready > 0)
    }

    /// Readable when a child died.
    #[must_use]
    pub fn child(&self) -> BorrowedFd<'_> {
        self.child.as_fd()
    }

    /// Readable when SIGUSR2 came.
    #[must_use]
    pub fn user(&self) -> BorrowedFd<'_> {
        self.user.as_fd()
    }

    /// Forgets the children's deaths that were seen.
    pub fn clear_child(&self) {
        clear(&self.child);
    }

    /// Forgets the SIGUSR2 that were seen.
    pub fn clear_user(&self) {
        clear(&self.user);
    }
}

fn clear(mut stream: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!(stream.read(&mut bytes), Ok(n) if n > 0) {}
}

fn receiver(signals: impl IntoIterator<Item = i32>) -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    receiver.set_nonblocking(true)?;
    for signal in signals {
        pipe::register(signal, sender.try_clone()?)?;
        sys::unblock(signal)?;
    }
    Ok(receiver)
}

/// Whether this process was started with the signal ignored.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).is_some_and(|m| m >> (signal - 1) & 1 == 1)
}
