//! `rec list`: the events of this machine, under the names that `-e` takes.
//!
//! ```text
//!  event::known(), each tried with the kernel ────────────────┐
//!  EventSources: PMUs, their named events and terms ──────────┼─▶ ListEntry … ──▶ text, or JSON (recrep-list/1)
//!  EventSources: tracefs, and the fields of a tracepoint ─────┘      ▲
//!  EventSources: metrics of event tables, their groups ───────┘      │
//!                                       hw sw cache pmu tracepoint metric metricgroup, patterns
//! ```

mod entries;
mod metrics;
mod print;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{CommandFactory as _, Parser};
use recrep_console::pager::Output;

use super::refusal::{name_nearest, sentence_with};
use super::selection;
use crate::event::KnownEvent;
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::messages::error::{Error, Result};

/// List the events of this machine.
#[derive(Debug, Parser)]
#[command(
    name = "rec list",
    bin_name = "rec list",
    after_help = "To record a program named list: rec -- list"
)]
pub(super) struct ListFlags {
    /// List these kinds (hw, sw, cache, pmu, tracepoint, metric, metricgroup) or names
    /// ('sched:*', '*fault*') only; a tracepoint's full name also lists its fields
    #[arg(value_name = "KIND|PATTERN")]
    what: Vec<String>,
    /// Take the names of the CPU's own events, and its metrics, from perf's tables in DIR
    /// (tools/perf/pmu-events/arch of the source of Linux)
    #[arg(long, value_name = "DIR")]
    event_tables: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not show long output on a terminal in a pager ($REC_PAGER, else $PAGER, else less -FRX)
    #[arg(long)]
    no_pager: bool,
}

/// Returns whether the command line, which begins with the program's name, is `rec list`.
pub fn is_asked_for(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "list")
}

/// Prints the list of events, and returns the exit status.
pub fn run<K: Kernel>(args: &[OsString], kernel: &K) -> Result<u8> {
    let flags = match ListFlags::try_parse_from(args.iter().skip(1)) {
        Ok(flags) => flags,
        Err(error) => {
            let error = name_nearest(error, &mut ListFlags::command());
            if error.use_stderr() {
                return Err(Error::Usage(sentence_with(&error, "rec list --help")));
            }
            // If the output cannot be written, there is no place left to report that.
            let _ = error.print();
            return Ok(0);
        }
    };
    let machine = Machine::read()?;
    let machine = if flags.event_tables.is_some() { machine.with_cpuid() } else { machine };
    let sources =
        selection::sources(&machine, flags.event_tables.as_deref()).map_err(Error::Failed)?;
    let found = entries::find(
        &flags.what,
        &sources,
        &|event: &KnownEvent| entries::is_there(kernel, event),
        metrics::entries(&sources),
    );
    let (entries, notes) = found.map_err(Error::Failed)?;
    let text = if flags.json { print::json(&entries) } else { print::text(&entries) };
    let mut out = Output::new("REC_PAGER", !flags.no_pager && !flags.json);
    let written = out.write_all(text.as_bytes()).and(out.finish());
    for note in notes {
        // If it cannot be written, there is no place left to report that.
        let _ = writeln!(io::stderr(), "rec: {note}");
    }
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::unwritable("cannot print the list", error))
        }
        _ => Ok(0),
    }
}
