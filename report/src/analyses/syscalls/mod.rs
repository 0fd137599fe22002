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
use crate::analyses::derived;
use crate::cli::{self, SourcesArgs, SymbolArgs, TaskFilterArgs};
use crate::engine::described::summary;
use crate::engine::unmatched::{self, RecordedSamples};
use crate::exports::outputs::Output;
use crate::input::{Input, Keep, OpenedInput, each, retry_if_changed};
use crate::profile::InputSummary;
use crate::query::{FilterValues, Filters, Mode, Query, Warning};
use crate::samples::Session;
use crate::symbols::Resolver;

/// Show system calls: how many, which errors, how long they took
#[derive(Debug, Parser)]
#[command(name = "rep syscalls", version, long_about = None, args_override_self = true)]
#[command(after_help = "Record them with rec trace -- ./app, or with perf record -e \
                        'raw_syscalls:*'")]
// What these show is no part of the answer.
#[command(mut_arg("source_paths", |arg| arg.hide(true)))]
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

    /// Same as --format json
    #[arg(long)]
    json: bool,

    /// Print at most N entries of each table
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Output format
    #[arg(long, default_value = "text", value_parser = cli::tables_parser())]
    format: &'static Output,

    #[command(flatten)]
    sources: SourcesArgs,

    #[command(flatten)]
    filters: TaskFilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,
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
    let output = derived::output(args.json, args.format);
    let mut by = args.by;
    if args.per_thread {
        by.push(SplitBy::Thread);
    }
    let filters = Filters { samples: args.filters.filters(), ..Filters::default() };
    let query = Query {
        sources: args.sources.sources(),
        limit: args.limit,
        filters,
        symbol_sources: args.symbols.options(true)?,
        ..Query::default()
    };
    Ok(SyscallsQuery { query, by, sort: args.sort, output })
}

pub(crate) fn run(asked: &SyscallsQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let query = &asked.query;
    let resolver = Resolver::new(query.symbol_sources.clone());
    let (found, inputs, filters, mut warnings) = retry_if_changed(&query.sources, || {
        let (mut found, mut inputs, mut filters) = (FoundCalls::default(), Vec::new(), Vec::new());
        let warnings = each(&query.sources, |source| {
            let input = Input::recording(source, "single system calls")?;
            let of_input = input.unless_changed(read(asked, &input, &resolver))?;
            FilterValues::merge(&mut filters, of_input.filters);
            found.add(of_input.found);
            inputs.push(of_input.summary);
            Ok(of_input.warnings)
        })?;
        resolver.check_unchanged()?;
        Ok((found, inputs, filters, warnings))
    })?;
    let samples: u64 = inputs.iter().map(|input| input.samples).sum();
    if !found.is_recorded && samples > 0 {
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
    if found.calls.is_empty() {
        warnings.push(FilterValues::failure(&filters, samples));
    } else {
        warnings.extend(FilterValues::partly(&filters));
    }
    warnings.extend(found.warnings.iter().cloned());
    warnings.extend(lost(&inputs, found.one_sided));
    let answer = SyscallsAnalysis::of(found, asked);
    derived::print(asked.output, &inputs, &answer, &warnings, out)
}

/// The calls of one input.
struct InputCalls {
    found: FoundCalls,
    filters: Vec<FilterValues>,
    summary: InputSummary,
    warnings: Vec<Warning>,
}

/// Reads the calls of an input.
fn read(asked: &SyscallsQuery, input: &Input, resolver: &Resolver) -> anyhow::Result<InputCalls> {
    let query = &asked.query;
    let opened = OpenedInput::new(input, Keep::Some)?;
    let session = &Session::open(&opened, Mode::Samples, Some(resolver));
    let found = FoundCalls::of(session, asked, resolver);
    let symbol_sources = &query.symbol_sources;
    let recorded = RecordedSamples { session, resolver, symbol_sources, mode: query.mode };
    let filters = unmatched::filter_values(&query.filters, found.calls.is_empty(), recorded)?;
    let (summary, warnings) = (summary(query, session), session.warnings());
    Ok(InputCalls { found, filters, summary, warnings })
}

/// Returns warnings of calls that are missing.
fn lost(inputs: &[InputSummary], one_sided: OneSided) -> impl Iterator<Item = Warning> {
    let lost = inputs.iter().map(|input| input.lost_events.max(input.lost_samples)).sum();
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
