//! How a command ends: its exit status, and what standard error says.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use crate::query::KeyError;
use crate::query::warning::Warning;
use crate::terminal::escape::escape;

/// Exit status if the input cannot be answered.
const FAILED: u8 = 1;
/// Exit status if the command line is wrong.
const USAGE: u8 = 2;

/// Standard output of a command that prints as it goes.
pub type Out = BufWriter<StdoutLock<'static>>;

/// Runs a command that prints as it goes, and returns its exit status.
pub fn stream<Q>(
    query: Result<Q, clap::Error>,
    run: impl FnOnce(&Q, &mut Out) -> anyhow::Result<Vec<Warning>>,
) -> ExitCode {
    let query = match query {
        Ok(query) => query,
        Err(error) => return refused(&error),
    };
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match run(&query, &mut out) {
        Ok(warnings) => {
            let status = written(out.flush());
            warn(&warnings);
            status
        }
        Err(error) => failed(&error),
    }
}

/// Prints what is wrong with the command line, or the help that it asks for.
#[must_use]
pub fn refused(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    ExitCode::from(if printed.is_ok() && !error.use_stderr() { 0 } else { USAGE })
}

/// Prints why there is no answer. A reader that closed the pipe has seen enough: that is success.
#[must_use]
pub fn failed(error: &anyhow::Error) -> ExitCode {
    if error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    say(&format!("rep: {}", escape(&format!("{error:#}"))));
    // Some names only the file can refuse.
    ExitCode::from(if error.is::<KeyError>() { USAGE } else { FAILED })
}

/// Returns the exit status after the answer was written with this result.
#[must_use]
pub fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&anyhow::Error::new(error).context("cannot write the answer")),
    }
}

fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Prints warnings to standard error.
pub fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let at = warning.offset.map(|offset| format!(" (at byte {offset})")).unwrap_or_default();
        say(&format!("rep: warning: {}{at}", escape(&warning.message)));
    }
}

/// Prints a line to standard error, if it can be written.
pub fn say(line: &str) {
    let _unwritten = writeln!(io::stderr(), "{line}");
}
