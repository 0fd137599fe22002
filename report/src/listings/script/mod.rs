//! `rep script`: samples one by one, in time order, as text, JSON or CSV.
//!
//! Fields and formats are those of `perf script`:
//!
//! ```text
//!    comm     pid/tid      cpu   time        period event: trace addr data_src weight   ip sym (dso) brstack phys_addr
//! ```
//!
//! If `ip` is printed and the event has callchains, each frame has its own line, and an empty line
//! follows. To sort samples and the other printed records, only the moment and the position of each
//! are kept (24 bytes).
//!
//! Callchains have the same sources as in a report (`callchain::ChainSources`): the recorded
//! callchain or, for its user part, the hardware's call stack, frames unwound from a copied stack,
//! or a record after the sample that has the deferred part. The first pass over all record headers
//! has found the deferred parts; of each, `callchain::Deferred` has the position in the file, by
//! thread and cookie. So no sample waits for a later record, and deferred parts take memory only
//! for their positions.

mod accesses;
mod args;
mod branches;
mod chain;
mod field_values;
mod fields;
mod filter;
mod frames;
mod line;
mod outputs;
mod records;
mod row;
mod sample;
mod source;
mod start;
mod style;
mod synth;
mod values;

pub(crate) use accesses::list_accesses;
pub use accesses::{Access, AccessQuery};
use args::ScriptFilters;
pub use args::{ScriptQuery, query};
pub(crate) use fields::names as field_names;
use fields::{Fields, OutputField, fields_of};

use std::io::{self, Write};
use std::ops::ControlFlow;

use crate::callchain::ChainLimit;
use crate::count::{CounterTimes, LOWER_VALUES, times};
use crate::decode::{self, WantedTraces};
use crate::engine::unmatched::{self, RecordedSamples};
use crate::engine::{fetching, multiplexed};
use crate::exports::outputs::SampleForm;
use crate::input::{Input, Keep};
use crate::listings::dump::{self, DumpOptions};
use crate::listings::info;
use crate::profile::modules::Doubts;
use crate::query::{
    ChainOptions, Column, FilterValues, Filters, Mode, Query, SortKey, Source, Warning,
};
use crate::samples::{ChainSetup, RecordPosition, Session, positions, record_at};
use crate::symbols::Resolver;
use crate::terminal::parts::{CANNOT_WRITE, Workers, batch, in_order};
use crate::tracepoints::Formats;
use anyhow::Context as _;
use frames::Finder;
use line::{Printer, ScriptListing};
use outputs::Outputs;

/// Returns the query of a histogram that needs the same functions and source lines as the fields.
fn symbol_query(query: &ScriptQuery, session: &Session<'_>) -> Query {
    let shown: Vec<Fields> = session
        .file
        .attrs
        .entries()
        .iter()
        .map(|entry| fields_of(&query.fields, &entry.attr))
        .collect();
    let any = |fields: &[OutputField]| {
        shown.iter().any(|of_event| fields.iter().any(|field| of_event.has(*field)))
    };
    let mut columns = Vec::new();
    if any(&[OutputField::Sym, OutputField::BrStackSym]) || query.filters.symbols.is_some() {
        columns.push(Column { typed: "symbol".into(), key: SortKey::Symbol });
    }
    if any(&[OutputField::SrcLine, OutputField::SrcCode]) {
        columns.push(Column { typed: "srcline".into(), key: SortKey::Srcline });
    }
    let children = !query.look.hide_call_graph && !columns.is_empty() && any(&[OutputField::Ip]);
    let look = &query.look;
    let chains = ChainOptions {
        children,
        inlined: look.inlined(),
        most: Some(look.max_stack),
        ..Default::default()
    };
    Query { columns, chains, symbol_sources: query.symbol_sources.clone(), ..Query::default() }
}

pub(crate) fn run(query: &ScriptQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let source = query.source.source();
    if query.dump_raw_trace {
        let limit = query.limit.map(|limit| limit as u64);
        return dump::print(&source, &DumpOptions { limit, ..DumpOptions::default() }, out);
    }
    let input = Input::recording(&source, "a list of samples")?;
    input.unless_changed(list(query, &source, &input, out))
}

/// Lists the samples of an input.
fn list(
    query: &ScriptQuery,
    source: &Source,
    input: &Input,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let resolver = Resolver::new(query.symbol_sources.clone());
    let traces = WantedTraces::each(&query.filters.samples.itrace);
    let has_ipc = query.fields.iter().any(|rule| rule.adds(OutputField::Ipc));
    let traces = WantedTraces { has_ipc, ..traces };
    let opened = decode::open(input, Keep::All, traces, &resolver)?;
    let session = &Session::open(&opened, Mode::Samples, Some(&resolver));
    if query.header.is_asked() || query.header_only {
        info::comment_on(session, out).context(CANNOT_WRITE)?;
    }
    if query.header_only {
        return Ok(session.warnings());
    }
    let not_fetched = fetching::fetch(&symbol_query(query, session), session, &resolver)?;
    let formats = Formats::read(session.file);
    let functions = session.functions(&resolver);
    let most = ChainLimit { frames: query.look.max_stack, outermost: false };
    let chains = ChainSetup {
        unwinding: session.unwinding(&resolver),
        functions: Some(&functions),
        names_callers: true,
        ..ChainSetup::new(session, &session.timeline, most)
    };
    let listing = ScriptListing::new(session, query, &functions, &formats, chains)?;
    let event_files = match source {
        Source::Path(path) if query.per_event_dump => Some(&**path),
        _ => None,
    };
    if query.form() == SampleForm::Csv {
        listing.columns.write_heading(out).context(CANNOT_WRITE)?;
    }
    let mut outputs = Outputs::new(out, event_files, &session.events)
        .context("cannot write the files of --per-event-dump")?;
    let PrintedSamples { samples, doubts, lower_values, times } =
        print(&listing, &mut outputs).context(CANNOT_WRITE)?;
    outputs.finish().context(CANNOT_WRITE)?;
    resolver.check_unchanged()?;
    let mut warnings = session.warnings();
    warnings.extend(not_fetched);
    warnings.extend(listing.missing.iter().cloned());
    warnings.extend(doubts.warnings("addresses"));
    warnings.extend(Warning::counted(lower_values, "counter-reset", LOWER_VALUES));
    warnings.extend(multiplexed::warnings(session, &times, &listing.counters.scales));
    if listing.has(OutputField::Trace) {
        warnings.extend(formats.warnings.iter().cloned());
    }
    warnings.extend(unmatched(&listing, samples, &resolver)?);
    Ok(warnings)
}

/// Returns the reason if no sample is listed, otherwise warnings about values of filters that no
/// sample has.
fn unmatched(
    listing: &ScriptListing<'_>,
    printed: usize,
    resolver: &Resolver,
) -> anyhow::Result<Vec<Warning>> {
    let ScriptListing { session, query, .. } = listing;
    let ScriptFilters { samples, symbols, switches, .. } = &query.filters;
    // Functions by address are not looked for by name.
    let symbols = symbols.as_ref().filter(|symbols| symbols.are_names());
    let filters = Filters {
        samples: samples.clone(),
        symbols: symbols.map(|symbols| symbols.names.clone()),
        ..Filters::default()
    };
    let is_without_samples =
        printed == 0 && query.limit != Some(0) && query.records.kinds().is_empty();
    let recorded = RecordedSamples {
        session,
        resolver,
        symbol_sources: &query.symbol_sources,
        mode: Mode::Samples,
    };
    let all = unmatched::filter_values(&filters, is_without_samples, recorded)?;
    let samples = session.samples();
    if !is_without_samples {
        return Ok(FilterValues::partly(&all).collect());
    }
    let has_other_filters = switches.switch_on.is_some() || query.filters.symbols.is_some();
    if samples > 0 && all.is_empty() {
        let message = "no sample passes --symbols, --switch-on and --switch-off";
        return Ok(has_other_filters
            .then(|| Warning::new(Warning::NO_MATCH, message))
            .into_iter()
            .collect());
    }
    Ok(vec![FilterValues::failure(&all, samples)])
}

/// What was printed.
struct PrintedSamples {
    samples: usize,
    doubts: Doubts,
    /// Number of counter values that are lower than the one before.
    lower_values: u64,
    /// Times of the counters that samples read, by event.
    times: Vec<CounterTimes>,
}

/// Number of records that a worker prints at a time.
const CHUNK: usize = 256;

/// Loads the modules that a few of the samples hit, all at once.
fn preload(listing: &ScriptListing<'_>, listed: &[RecordPosition]) {
    /// Enough to meet what takes most of the time.
    const SAMPLES: usize = 4096;
    if listing.is_ordered() || !listing.has(OutputField::Sym) {
        return;
    }
    listing.functions.preload(|| {
        let (mut printer, mut hits) =
            (Printer::new(listing), vec![0; listing.session.side_band.modules.len()]);
        for position in listed.iter().step_by(listed.len().div_ceil(SAMPLES).max(1)) {
            let sample = record_at(listing.session, *position);
            let module = sample.and_then(|raw| hits.get_mut(printer.module(raw)?.0 as usize));
            module.into_iter().for_each(|hits| *hits += 1);
        }
        hits
    });
}

/// Prints all that is listed.
fn print<'s>(
    listing: &'s ScriptListing<'s>,
    outputs: &mut Outputs<'_, impl Write>,
) -> io::Result<PrintedSamples> {
    let (session, workers, buffers) =
        (listing.session, Workers::default(), Workers::<outputs::OutputLines>::default());
    let files = if listing.query.per_event_dump { session.events.len() } else { 0 };
    let listed = positions(session, &listing.query.records.kinds());
    preload(listing, &listed);
    let text = |(number, chunk): (usize, &[RecordPosition])| {
        workers.with(
            || Printer::new(listing),
            |printer: &mut Printer<'s>| {
                let mut lines = buffers.take(Default::default);
                lines.clear(files);
                let positions = (number * CHUNK..).zip(chunk);
                for (position, raw) in
                    positions.filter_map(|(at, listed)| Some((at, record_at(session, *listed)?)))
                {
                    if printer.is_done() {
                        return Ok((lines, ControlFlow::Break(())));
                    }
                    printer.print(raw, position, &mut lines)?;
                }
                Ok((lines, ControlFlow::Continue(())))
            },
        )
    };
    in_order(
        listed.chunks(CHUNK).enumerate(),
        batch(listing.is_ordered()),
        text,
        |text: io::Result<_>| {
            let (lines, flow) = text?;
            outputs.write(&lines)?;
            buffers.put(lines);
            Ok::<_, io::Error>(flow)
        },
    )?;
    let printers = workers.finish();
    let lower_values = printers.iter().map(|printer| printer.lower_values).sum();
    let readings = printers.iter().flat_map(|printer| &printer.readings);
    let of_event = readings.filter_map(|(counter, reading)| {
        Some((session.file.attrs.by_id(counter.id)?.0, counter.thread, *reading))
    });
    let times = times(of_event);
    let samples = printers.iter().map(|printer| printer.lines).sum();
    let finders = printers.into_iter().map(|printer| printer.chains.finder);
    Ok(PrintedSamples {
        samples,
        doubts: Finder::doubts(finders, listing.functions),
        lower_values,
        times,
    })
}
