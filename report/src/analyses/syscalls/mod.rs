//! `rep syscalls`: system calls by name, with errors and the distribution of their latencies.
//!
//! ```text
//!   samples of raw_syscalls:*, syscalls:* ─► crossings of each thread    all cores, each worker its pieces
//!                     paired (pair) ─► calls                             all cores, each thread for itself
//!     grouped (--by), latencies sorted     ─► rows ─► text, JSON, CSV
//! ```
//!
//! Samples of a call that stand together are paired while they are collected; a thread whose samples
//! are in the rings of several CPUs is paired once they are sorted. Latencies are kept whole, 8 bytes a call: percentiles are exact. The p-th
//! percentile is the smallest latency that at least p percent of the calls do not exceed.

mod answer;
mod calls;
mod crossings;
mod exec;
mod key;
mod names;
mod pair;
mod tables;

use std::io::Write;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use self::answer::SyscallsAnalysis;
use self::calls::{FoundCalls, OneSided};
use crate::analyses::collected::{Collected, CollectedArgs};
use crate::analyses::derived;
use crate::exports::outputs::Output;
use crate::query::{Mode, Query, Warning};

/// Show system calls: how many, which errors, how long they took
#[derive(Debug, Parser)]
#[command(name = "rep syscalls", version, long_about = None, args_override_self = true)]
#[command(after_help = "Record them with rec trace -- ./app, or with perf record -e \
                        'raw_syscalls:*'")]
pub(crate) struct SyscallsArgs {
    /// Show the calls of each of these apart
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT[,WHAT]")]
    by: Vec<SplitBy>,

    /// Same as --by thread
    #[arg(long)]
    per_thread: bool,

    /// Order of the rows, largest first
    #[arg(short, long, value_enum, value_name = "KEY", default_value = "total")]
    sort: SortBy,

    #[command(flatten)]
    collected: CollectedArgs,
}

/// What calls are told apart by, besides their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum SplitBy {
    /// Process
    Process,
    /// Thread
    Thread,
    /// Innermost function outside of the C library; needs callchains
    Caller,
}

/// Order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortBy {
    /// Time of all calls
    Total,
    /// Number of calls
    Calls,
    /// Number of calls that failed
    Errors,
    /// Time of the longest call
    Max,
    /// Time of the average call
    Mean,
    /// Name, in alphabetical order
    Name,
}

/// Which calls are shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct SyscallsQuery {
    query: Query,
    by: Vec<SplitBy>,
    sort: SortBy,
    output: &'static Output,
}

pub(crate) fn query(args: SyscallsArgs) -> Result<SyscallsQuery, String> {
    let output = args.collected.output();
    let mut by = args.by;
    if args.per_thread {
        by.push(SplitBy::Thread);
    }
    Ok(SyscallsQuery { query: args.collected.query()?, by, sort: args.sort, output })
}

pub(crate) fn run(asked: &SyscallsQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut all = Collected::read(
        &asked.query,
        Mode::Samples,
        "single system calls",
        |session, resolver| FoundCalls::of(session, asked, resolver),
    )?;
    let found = &all.found;
    if !found.is_recorded && all.samples() > 0 {
        anyhow::bail!(
            "no system calls were recorded: no input has samples of raw_syscalls:* or \
             syscalls:sys_* with their formats; record with rec trace"
        );
    }
    if asked.by.contains(&SplitBy::Caller) && !found.has_callers && found.is_recorded {
        anyhow::bail!(
            "no callchains were recorded, so callers are unknown; record with rec trace -g, or \
             leave --by caller out"
        );
    }
    all.warn_of_filters();
    let lost = all.lost();
    let Collected { found, inputs, mut warnings, .. } = all;
    warnings.extend(found.warnings.iter().cloned());
    warnings.extend(missing(lost, found.one_sided));
    let answer = SyscallsAnalysis::of(found, asked);
    derived::print(asked.output, &inputs, &answer, &warnings, out)
}

/// Returns warnings of calls that are missing.
fn missing(lost: u64, one_sided: OneSided) -> impl Iterator<Item = Warning> {
    let of_records = ["record was lost", "records were lost"].map(|lost| {
        format!(
            "{lost}, as rings were full: calls are missing, and those around gaps may have the \
             wrong latency (larger rings, -m, lose fewer; so do callchains without copies of \
             stacks: rec trace --call-graph fp)"
        )
    });
    let of_entries = [
        "call lacks the sample of its entry, so its latency is unknown",
        "calls lack the sample of their entry, so their latency is unknown",
    ];
    let of_exits = [
        "call lacks the sample of its exit, and is left out",
        "calls lack the sample of their exit, and are left out",
    ];
    [
        Warning::counted(lost, "lost-records", of_records.each_ref().map(String::as_str)),
        Warning::counted(one_sided.without_entry, "without-entry", of_entries),
        Warning::counted(one_sided.without_exit, "without-exit", of_exits),
    ]
    .into_iter()
    .flatten()
}
