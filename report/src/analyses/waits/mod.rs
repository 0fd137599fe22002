//! `rep waits`: what threads waited for, where, and who ended it.
//!
//! ```text
//!   samples of switches and wakes ─► what is waited for, where (places)    all cores, one pass
//!   lives of threads (timeline::waits): stretches and their wakes ─┐
//!                       grouped (--by), times sorted (found) ◀─────┴─► rows ─► text, JSON, CSV
//! ```
//!
//! The kind of a wait is that of the innermost function of the kernel that is in a table (`kinds`);
//! the object comes from the registers of the switch, which in a system call are its arguments.

mod answer;
mod found;
mod kinds;
mod places;

use std::io::Write;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use self::answer::WaitsAnalysis;
use self::found::FoundWaits;
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

/// Show what threads waited for, where, how long, and who ended it
#[derive(Debug, Parser)]
#[command(name = "rep waits", version, long_about = None, args_override_self = true)]
#[command(
    after_help = "Record with rec --waits -- ./app; files of rec --off-cpu have waits without \
                        wakers. A thread that spins is running, and waits for nothing"
)]
// What these show is no part of the answer.
#[command(mut_arg("source_paths", |arg| arg.hide(true)))]
pub(crate) struct WaitsArgs {
    /// Group waits by these alone [default: kind, object and function]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT[,WHAT]")]
    by: Vec<WaitsBy>,

    /// Same as --format json
    #[arg(long)]
    json: bool,

    /// Print at most N rows
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
    let output = derived::output(args.json, args.format);
    let filters = Filters { samples: args.filters.filters(), ..Filters::default() };
    let query = Query {
        sources: args.sources.sources(),
        limit: args.limit,
        filters,
        symbol_sources: args.symbols.options(true)?,
        ..Query::default()
    };
    Ok(WaitsQuery { query, by: args.by, output })
}

pub(crate) fn run(asked: &WaitsQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let query = &asked.query;
    let resolver = Resolver::new(query.symbol_sources.clone());
    let (found, inputs, filters, mut warnings) = retry_if_changed(&query.sources, || {
        let (mut found, mut inputs, mut filters) = (FoundWaits::default(), Vec::new(), Vec::new());
        let warnings = each(&query.sources, |source| {
            let input = Input::recording(source, "single switches of threads")?;
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
    if !found.is_recorded {
        anyhow::bail!(
            "no switches of threads (SWITCH records with times) were recorded, so it is not known \
             when they waited; record with rec --waits, or rec --off-cpu"
        );
    }
    if found.waits.is_empty() {
        warnings.push(FilterValues::failure(&filters, samples));
    } else {
        warnings.extend(FilterValues::partly(&filters));
    }
    let lost: u64 = inputs.iter().map(|input| input.lost_events.max(input.lost_samples)).sum();
    warnings.extend(missing(&found, lost));
    let answer = WaitsAnalysis::of(found, asked, lost);
    derived::print(asked.output, &inputs, &answer, &warnings, out)
}

/// The waits of one input.
struct InputWaits {
    found: FoundWaits,
    filters: Vec<FilterValues>,
    summary: InputSummary,
    warnings: Vec<Warning>,
}

/// Reads the waits of an input.
fn read(asked: &WaitsQuery, input: &Input, resolver: &Resolver) -> anyhow::Result<InputWaits> {
    let query = &asked.query;
    let opened = OpenedInput::new(input, Keep::Some)?;
    let session = &Session::open(&opened, Mode::CriticalPath, Some(resolver));
    let found = FoundWaits::of(session, asked, resolver);
    let symbol_sources = &query.symbol_sources;
    let recorded = RecordedSamples { session, resolver, symbol_sources, mode: query.mode };
    let filters = unmatched::filter_values(&query.filters, found.waits.is_empty(), recorded)?;
    let (summary, warnings) = (summary(query, session), session.warnings());
    Ok(InputWaits { found, filters, summary, warnings })
}

/// Returns warnings of what the recording lacks.
fn missing(found: &FoundWaits, lost: u64) -> impl Iterator<Item = Warning> + use<> {
    let of_records = ["record was lost", "records were lost"].map(|were| {
        format!(
            "{were}, as rings were full: waits may be missing or have the wrong length, and {} have no \
             waker (larger rings, -m, lose fewer)",
            found.without_waker
        )
    });
    let of_targets = [
        "wake is of a thread whose number in the recorder's namespace is not known",
        "wakes are of threads whose numbers in the recorder's namespace are not known",
    ];
    [
        Warning::counted(lost, "lost-records", of_records.each_ref().map(String::as_str)),
        Warning::counted(found.unknown_targets, "unknown-targets", of_targets),
    ]
    .into_iter()
    .flatten()
}
