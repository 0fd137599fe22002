//! `rec list`: the events that this machine has, under the names that `-e` takes.
//!
//! ```text
//!  event::known()  ── asked of the kernel, one by one ─┐
//!  EventSources: PMUs, their named events and terms ──────────┼─▶ Entry … ──▶ text, or JSON (recrep-list/1)
//!  EventSources: tracefs, and the fields of a tracepoint ─────┘      ▲
//!                                       hw sw cache pmu tracepoint, patterns
//! ```

mod entries;
mod print;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Parser;

use super::selection;
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};

/// List the events that this machine has.
#[derive(Debug, Parser)]
#[command(
    name = "rec list",
    bin_name = "rec list",
    after_help = "A program that is called list is recorded by: rec -- list"
)]
struct Flags {
    /// What to list: hw, sw, cache, pmu, tracepoint, or patterns of names, such as 'sched:*' or '*fault*'; a tracepoint's whole
    /// name lists its fields too [default: everything]
    #[arg(value_name = "KIND|PATTERN")]
    what: Vec<String>,
    /// Take the names of the CPU's own events from perf's tables in DIR (tools/perf/pmu-events/arch of the source of Linux)
    #[arg(long, value_name = "DIR")]
    event_tables: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Whether the command line, the program's name first, asks for a list.
#[must_use]
pub fn is_asked_for(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "list")
}

/// Prints the list that the command line asks for. Gives the exit status.
///
/// # Errors
/// Nothing to list; an output that cannot be written.
pub fn run<K: Kernel>(args: &[OsString], kernel: &K) -> Result<u8> {
    let flags = match Flags::try_parse_from(args.iter().skip(1)) {
        Ok(flags) => flags,
        Err(refusal) => {
            // Nothing can be said about an output that does not take what is said.
            let _ = refusal.print();
            return Ok(u8::try_from(refusal.exit_code()).unwrap_or(2));
        }
    };
    let machine = Machine::read()?;
    let machine = if flags.event_tables.is_some() { machine.with_cpuid() } else { machine };
    let sources = selection::sources(&machine, flags.event_tables.as_deref()).map_err(Error::Failed)?;
    let found = entries::find(&flags.what, &sources, &|event| entries::is_there(kernel, event));
    let (entries, notes) = found.map_err(Error::Failed)?;
    let text = if flags.json { print::json(&entries) } else { print::text(&entries) };
    let written = io::stdout().lock().write_all(text.as_bytes());
    for note in notes {
        // As above.
        let _ = writeln!(io::stderr(), "rec: {note}");
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::unwritable("cannot print the list", error))
        }
        _ => Ok(0),
    }
}
