//! State that the command must inherit as rec was started with it: signals and standard
//! descriptors that rec, or the runtime of its language, changes for itself.
//!
//! | what | who changes it | what the command would have |
//! |---|---|---|
//! | signals that rec handles | rec | their default action, where they were ignored (nohup, a shell's background) |
//! | blocked signals | rec unblocks those that it handles | the same |
//! | SIGPIPE | the runtime ignores it; the standard library restores its default for commands | its default, where it was ignored |
//! | descriptors 0 to 2 that were closed | the runtime opens `/dev/null` in their place | `/dev/null` |
//!
//! The runtime's part happens before `main`, so a function that the loader calls before that looks
//! first.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// Signals that rec handles, and SIGPIPE.
const CHANGED: [libc::c_int; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGXFSZ,
    libc::SIGCHLD,
    libc::SIGUSR2,
    libc::SIGPIPE,
];

/// State before the runtime began: descriptors that were closed, by their bits, and
/// [`PIPE_IGNORED`].
static AT_START: AtomicU8 = AtomicU8::new(0);
const PIPE_IGNORED: u8 = 1 << 3;

/// Called by the loader before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = note_state;

extern "C" fn note_state() {
    let mut found = 0;
    for descriptor in 0..3 {
        // SAFETY: F_GETFD takes a number and touches no memory of ours.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            found |= 1 << descriptor;
        }
    }
    if is_ignored(libc::SIGPIPE) {
        found |= PIPE_IGNORED;
    }
    AT_START.store(found, Ordering::Relaxed);
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a sigaction is plain data, for which all zeroes are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the current action to `action`, which lives through it; nothing is
    // changed.
    let read = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    read == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Signals and descriptors as they were before rec changed them.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    mask: libc::sigset_t,
    /// For each of [`CHANGED`], whether it was ignored.
    ignored: [bool; CHANGED.len()],
    /// The closed ones of descriptors 0 to 2, by their bits.
    closed: u8,
}

impl Inherited {
    /// Looks, before rec handles signals.
    pub(crate) fn now() -> Self {
        let at_start = AT_START.load(Ordering::Relaxed);
        // SAFETY: a sigset_t is plain bits, for which all zeroes are valid.
        let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: the call writes the current mask to `mask`, which lives through it; nothing is
        // changed. It cannot fail.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask) };
        let ignored = CHANGED.map(|signal| match signal {
            libc::SIGPIPE => at_start & PIPE_IGNORED != 0,
            other => is_ignored(other),
        });
        Self { mask, ignored, closed: at_start & 7 }
    }

    /// Leaves a closed standard output alone: the command's goes elsewhere.
    pub(super) fn with_output(self) -> Self {
        Self { closed: self.closed & !(1 << 1), ..self }
    }

    /// Gives this process what there was, between fork and exec: it makes system calls only, which
    /// are async-signal-safe, and neither allocates nor takes locks.
    pub(super) fn restore(&self) -> io::Result<()> {
        for (signal, ignored) in CHANGED.into_iter().zip(self.ignored) {
            // SAFETY: both actions are none of our functions.
            if unsafe { libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) }
                == libc::SIG_ERR
            {
                return Err(io::Error::last_os_error());
            }
        }
        for descriptor in (0..3).filter(|descriptor| self.closed >> descriptor & 1 == 1) {
            // SAFETY: the runtime opened it in the place of one that was closed; nothing in this
            // process uses it.
            unsafe { libc::close(descriptor) };
        }
        // SAFETY: `mask` is a valid set that lives through the call; the old one is not asked for.
        match unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, std::ptr::null_mut())
        } {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
