//! Ends a command: messages on standard error, and the exit status.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use crate::query::{KeyError, Warning};
use crate::terminal::escape::escape;
use crate::view::CANNOT_WRITE;

/// Exit status if there is no answer, for instance because no input can be read.
const FAILED: u8 = 1;
/// Exit status of usage errors.
const USAGE: u8 = 2;

/// Standard output of a command that prints while it runs.
pub type Out = BufWriter<StdoutLock<'static>>;

/// Returns standard output. A pipe gets room for a megabyte, if the system allows it: with the usual 64 KiB, `rep` and the
/// reader wait for each other for a quarter of the time of `rep script`.
pub fn output() -> Out {
    let stdout = io::stdout().lock();
    let _size = rustix::pipe::fcntl_setpipe_size(&stdout, 1 << 20);
    BufWriter::with_capacity(1 << 16, stdout)
}

/// Runs a command that prints while it runs, and returns its exit status.
pub fn stream<Q>(
    query: Result<Q, clap::Error>,
    run: impl FnOnce(&Q, &mut Out) -> anyhow::Result<Vec<Warning>>,
) -> ExitCode {
    let query = match query {
        Ok(query) => query,
        Err(error) => return refused(&error),
    };
    let mut out = output();
    match run(&query, &mut out) {
        Ok(warnings) => {
            let status = written(out.flush());
            warn(&warnings);
            status
        }
        Err(error) => failed(&error),
    }
}

/// Prints a usage error or the requested help, and returns the exit status.
pub fn refused(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    ExitCode::from(if printed.is_ok() && !error.use_stderr() { 0 } else { USAGE })
}

/// Prints an error, and returns the exit status. A broken pipe is success: the reader wanted no more output.
pub fn failed(error: &anyhow::Error) -> ExitCode {
    if error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    say(&format!("rep: {}", escape(&format!("{error:#}"))));
    // Some sort keys (tracepoint fields) can be checked only after the file was read: still a usage error.
    ExitCode::from(if error.is::<KeyError>() { USAGE } else { FAILED })
}

/// Returns the exit status for the result of writing the output.
pub fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&anyhow::Error::new(error).context(CANNOT_WRITE)),
    }
}

/// Prints warnings to standard error.
pub fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let at = warning.offset.map(|offset| format!(" (at byte {offset})")).unwrap_or_default();
        say(&format!("rep: warning: {}{at}", escape(&warning.message)));
    }
}

/// Prints a line to standard error, and ignores write errors.
pub fn say(line: &str) {
    let _unwritten = writeln!(io::stderr(), "{line}");
}
