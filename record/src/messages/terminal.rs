//! The terminal behind standard error.

use std::io::{IsTerminal as _, stderr};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// The width where the terminal does not know its own.
const USUAL_COLUMNS: usize = 80;

/// Returns whether there is one that can write over a line.
pub(super) fn is_there() -> bool {
    let named = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    named && stderr().is_terminal()
}

/// Returns how wide it is. `None` while a line would be out of place, or would make rec wait: rec
/// runs in the background, or the terminal is stopped (Ctrl-S).
pub(super) fn columns() -> Option<usize> {
    let terminal = stderr();
    // A terminal that does not control this process has no foreground for it.
    let in_background = tcgetpgrp(&terminal).is_ok_and(|foreground| foreground != getpgrp());
    let mut fds = [PollFd::new(&terminal, PollFlags::OUT)];
    let takes = poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    (takes && !in_background).then(|| {
        let columns = tcgetwinsize(&terminal).map_or(0, |size| usize::from(size.ws_col));
        if columns == 0 { USUAL_COLUMNS } else { columns }
    })
}
