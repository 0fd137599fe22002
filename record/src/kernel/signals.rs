//! Signals as file descriptors to wait for: those that end the recording, SIGCHLD, and SIGUSR2, which requests a
//! snapshot or a new file.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::low_level::pipe;

use crate::kernel::sys;
use crate::messages::error::{Error, Result};

/// Handlers of rec's signals, from the creation of this value on.
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
    /// Installs the handlers, and unblocks signals that were blocked when rec was started. Leaves SIGHUP alone if it is
    /// ignored, as under nohup(1).
    ///
    /// # Errors
    /// Returns an error if the system refuses.
    pub fn install() -> Result<Self> {
        let stops = [Some(SIGINT), Some(SIGTERM), (!ignored(SIGHUP)).then_some(SIGHUP)];
        let install = || -> io::Result<Self> {
            let stop = receiver(stops.into_iter().flatten())?;
            // With a handler, a write beyond the file size limit fails with EFBIG. Unlike SIG_IGN, the command does not
            // inherit it.
            signal_hook::flag::register(SIGXFSZ, Arc::default())?;
            Ok(Self { stop, child: receiver([SIGCHLD])?, user: receiver([SIGUSR2])? })
        };
        install().map_err(|e| Error::io("cannot handle signals", e))
    }

    /// Returns the descriptor that becomes readable on a signal that ends the recording.
    #[must_use]
    pub fn stop(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Returns whether a signal that ends the recording has arrived.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default()))).is_ok_and(|ready| ready > 0)
    }

    /// Returns the descriptor that becomes readable when a child has ended.
    #[must_use]
    pub fn child(&self) -> BorrowedFd<'_> {
        self.child.as_fd()
    }

    /// Returns the descriptor that becomes readable on SIGUSR2.
    #[must_use]
    pub fn user(&self) -> BorrowedFd<'_> {
        self.user.as_fd()
    }

    /// Resets the descriptor of SIGCHLD.
    pub fn clear_child(&self) {
        clear(&self.child);
    }

    /// Resets the descriptor of SIGUSR2.
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

/// Returns whether this process was started with the signal ignored.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).is_some_and(|m| m >> (signal - 1) & 1 == 1)
}
