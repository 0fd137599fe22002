//! `rep waits`: what threads waited for, where, and who ended it.
//!
//! ```text
//!   samples of switches and wakes ─► what is waited for, where (places)    all cores, one pass
//!   lives of threads (timeline::waits): stretches and their wakes ─┐
//!                       grouped (--by), times sorted (found) ◀─────┴─► rows ─► text, JSON, CSV
//! ```
//!
//! The kind of a wait is that of the innermost function of the kernel that is in a table
//! (`timeline::wait_kinds`);
//! the object comes from the registers of the switch, which in a system call are its arguments.

mod answer;
mod found;
pub(crate) mod listed;
mod places;
mod stacks;

use std::io::Write;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use self::answer::WaitsAnalysis;
use self::found::FoundWaits;
use crate::analyses::collected::{Collected, CollectedArgs};
use crate::analyses::derived;
use crate::exports::outputs::Output;
use crate::query::{Mode, Query, Warning};

/// Show what threads waited for, where, how long, and who ended it
#[derive(Debug, Parser)]
#[command(name = "rep waits", version, long_about = None, args_override_self = true)]
#[command(
    after_help = "Record with rec --waits -- ./app; files of rec --off-cpu have waits without \
                        wakers. A thread that spins is running, and waits for nothing"
)]
#[command(mut_arg("limit", |arg| arg.help("Print at most N rows")))]
pub(crate) struct WaitsArgs {
    /// Group waits by these alone [default: kind, object and function]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT[,WHAT]")]
    by: Vec<WaitsBy>,

    #[command(flatten)]
    collected: CollectedArgs,
}

/// What waits are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum WaitsBy {
    /// Kind, and what is waited for: futex, descriptor, child
    Object,
    /// Innermost function outside of the C library and of the language's lock code
    Site,
    /// Thread or interrupt that ended the wait
    Waker,
    /// Thread that waits
    Thread,
}

/// Which waits are shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct WaitsQuery {
    query: Query,
    by: Vec<WaitsBy>,
    output: &'static Output,
}

pub(crate) fn query(args: WaitsArgs) -> Result<WaitsQuery, String> {
    let output = args.collected.output();
    Ok(WaitsQuery { query: args.collected.query()?, by: args.by, output })
}

pub(crate) fn run(asked: &WaitsQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut all = Collected::read(
        &asked.query,
        Mode::CriticalPath,
        "single switches of threads",
        |session, resolver| FoundWaits::of(session, asked, resolver),
    )?;
    if !all.found.is_recorded {
        anyhow::bail!(
            "no switches of threads (SWITCH records with times) were recorded, so it is not known \
             when they waited; record with rec --waits, or rec --off-cpu"
        );
    }
    all.warn_of_filters();
    let lost = all.lost();
    let Collected { found, inputs, mut warnings, .. } = all;
    warnings.extend(missing(&found, lost));
    let answer = WaitsAnalysis::of(found, asked, lost);
    derived::print(asked.output, &inputs, &answer, &warnings, out)
}

/// Returns a warning of records that were lost.
fn missing(found: &FoundWaits, lost: u64) -> Option<Warning> {
    let of_records = ["record was lost", "records were lost"].map(|were| {
        format!(
            "{were}, as rings were full: waits may be missing or have the wrong length, and {} have no \
             waker (larger rings, -m, lose fewer)",
            found.without_waker
        )
    });
    Warning::counted(lost, "lost-records", of_records.each_ref().map(String::as_str))
}
