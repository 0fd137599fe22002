//! The `rep` command.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use recrep_report::args;
use recrep_report::profile::Profile;
use recrep_report::query::Query;
use recrep_report::report;
use recrep_report::view::{self, Screen, escape};

/// The input cannot be answered.
const FAILED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let query = match args::parse(std::env::args_os()) {
        Ok(query) => query,
        Err(error) => {
            let printed = error.print();
            return ExitCode::from(if printed.is_ok() && !error.use_stderr() { 0 } else { USAGE });
        }
    };
    match report::run(&query) {
        Ok(profile) => finish(&profile, &query),
        Err(error) => {
            say(&format!("rep: {}", escape(&format!("{error:#}"))));
            ExitCode::from(FAILED)
        }
    }
}

fn finish(profile: &Profile, query: &Query) -> ExitCode {
    for warning in &profile.warnings {
        let at = warning.offset.map(|offset| format!(" (at byte {offset})")).unwrap_or_default();
        say(&format!("rep: warning: {}{at}", escape(&warning.message)));
    }
    let stdout = io::stdout();
    let width = if stdout.is_terminal() { terminal_size::terminal_size() } else { None };
    let screen = Screen { width: width.map(|(columns, _)| usize::from(columns.0)) };
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let written = view::print(profile, query, screen, &mut out).and_then(|()| out.flush());
    match written {
        // Who reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("rep: cannot write the answer: {error}"));
            ExitCode::from(FAILED)
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// A line on standard error; where nobody listens there is nobody to tell.
fn say(line: &str) {
    let _unheard = writeln!(io::stderr(), "{line}");
}
