//! Signals as file descriptors to wait for: those that end the recording, SIGCHLD, and SIGUSR2,
//! which requests a snapshot or a new file.
//!
//! Keys of a terminal (Ctrl-C, Ctrl-\) and its end send their signals to rec and to the recorded
//! command alike; they are distinguished from those that are sent to rec alone.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR2, SIGXFSZ};
use signal_hook::low_level::pipe;

use crate::kernel::sys;
use crate::messages::error::{Error, Result};

/// Handlers of rec's signals, from the creation of this value on.
#[derive(Debug)]
pub(crate) struct Signals {
    /// SIGINT, SIGTERM and SIGHUP.
    stop: UnixStream,
    /// SIGCHLD.
    child: UnixStream,
    /// SIGUSR2.
    user: UnixStream,
    /// `true` if a terminal sent a signal that ends the recording.
    by_terminal: Arc<AtomicBool>,
}

/// Event that ended [`Signals::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// A signal that ends the recording.
    Stop,
    /// A child has ended, or another signal has arrived.
    Other,
    /// The time is over.
    Nothing,
}

impl Signals {
    /// Installs the handlers, and unblocks signals that were blocked when rec was started. Leaves
    /// SIGHUP alone if it is ignored, as under nohup(1).
    pub(crate) fn install() -> Result<Self> {
        let stops = [Some(SIGINT), Some(SIGTERM), (!ignored(SIGHUP)).then_some(SIGHUP)];
        Self::handle(stops).map_err(|e| Error::io("cannot handle signals", e))
    }

    fn handle(stops: [Option<libc::c_int>; 3]) -> io::Result<Self> {
        let by_terminal = Arc::<AtomicBool>::default();
        for signal in stops.into_iter().flatten() {
            sys::note_terminal_signal(signal, Arc::clone(&by_terminal))?;
        }
        let stop = receiver(stops.into_iter().flatten())?;
        // With a handler, a write beyond the file size limit fails with EFBIG. Unlike SIG_IGN, the
        // command does not inherit it.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        Ok(Self { stop, child: receiver([SIGCHLD])?, user: receiver([SIGUSR2])?, by_terminal })
    }

    /// Leaves Ctrl-\ (SIGQUIT) to the recorded command, which may go on after it: a Java machine
    /// prints its threads.
    pub(crate) fn leave_quit_to_command() -> Result<()> {
        sys::ignore_terminal_signal(SIGQUIT).map_err(|e| Error::io("cannot handle signals", e))
    }

    /// Returns whether a signal that ends the recording came from a terminal, which sends it to the
    /// command, too.
    pub(crate) fn is_from_terminal(&self) -> bool {
        self.by_terminal.load(Ordering::Relaxed)
    }

    /// Waits for a signal that ends the recording or the end of a child, with a limit or without.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Arrived {
        let mut fds =
            [PollFd::new(&self.stop, PollFlags::IN), PollFd::new(&self.child, PollFlags::IN)];
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        // An interrupted poll is no error: the next one finds the reason.
        let ready = poll(&mut fds, limit.as_ref());
        match fds.first() {
            Some(stop) if !stop.revents().is_empty() => Arrived::Stop,
            _ if ready == Ok(0) => Arrived::Nothing,
            _ => Arrived::Other,
        }
    }

    /// Returns the descriptor that becomes readable on a signal that ends the recording.
    pub(crate) fn stop(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Returns whether a signal that ends the recording has arrived.
    pub(crate) fn is_stopped(&self) -> bool {
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))
            .is_ok_and(|ready| ready > 0)
    }

    /// Returns the descriptor that becomes readable when a child has ended.
    pub(crate) fn child(&self) -> BorrowedFd<'_> {
        self.child.as_fd()
    }

    /// Returns the descriptor that becomes readable on SIGUSR2.
    pub(crate) fn user(&self) -> BorrowedFd<'_> {
        self.user.as_fd()
    }

    /// Resets the descriptor of signals that end the recording.
    pub(crate) fn clear_stop(&self) {
        clear(&self.stop);
    }

    /// Resets the descriptor of SIGCHLD.
    pub(crate) fn clear_child(&self) {
        clear(&self.child);
    }

    /// Resets the descriptor of SIGUSR2.
    pub(crate) fn clear_user(&self) {
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
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .is_some_and(|m| m >> (signal - 1) & 1 == 1)
}
