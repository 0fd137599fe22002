//! `rep mem`: the cost of memory accesses. Loads and stores by memory level, or by any other sort
//! keys, with percentiles of the weight (of loads, usually the latency in cycles).
//!
//! Percentiles are exact: the histogram has a row per distinct weight, so memory use grows with
//! distinct weights, not with samples. The p-th percentile is the smallest weight that at least p
//! percent of the samples do not exceed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Parser;
use indexmap::IndexMap;
use recrep_format::abi::DataSrc;
use serde::Serialize;

use crate::analyses::derived::{self, ViewArgs};
use crate::cli;
use crate::count::metrics::{rounded, share};
use crate::exports::outputs::Output;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::listings::script::{Access, AccessQuery, list_accesses};
use crate::query::{Column, Mode, TimeSteps, Warning, times};
use crate::table::{self, EventTable};
use crate::terminal::escape::escape;

/// Show the cost of memory accesses: samples by memory level, with percentiles of the weight
/// (usually the latency)
#[derive(Debug, Parser)]
#[command(name = "rep mem", version, long_about = None)]
#[command(args_override_self = true)]
pub struct MemArgs {
    /// Group by these keys (`rep help keys`)
    #[arg(short, long, value_name = "KEY[,KEY…]", default_value = "op,mem")]
    sort: String,

    /// Only accesses of these kinds
    #[arg(
        short = 't',
        long = "type",
        value_enum,
        value_delimiter = ',',
        value_name = "KIND[,KIND]"
    )]
    kinds: Vec<Access>,

    /// Group by physical addresses too; with -D, show them
    #[arg(short, long)]
    phys_data: bool,

    /// Group by page sizes of data addresses too; with -D, show them
    #[arg(long)]
    data_page_size: bool,

    /// Leave out rows below PERCENT of their event's accesses, counted after filters
    #[arg(long, value_name = "PERCENT")]
    percent_limit: Option<f64>,

    /// Leave out accesses without a known function, also from the totals
    #[arg(short = 'U', long)]
    hide_unresolved: bool,

    /// List every access on its own line
    #[arg(short = 'D', long, conflicts_with_all = ["json", "sort", "percent_limit", "format"])]
    dump_raw_samples: bool,

    /// Separate fields with SEP, without padding
    #[arg(short = 'x', long, value_name = "SEP", conflicts_with = "json")]
    field_separator: Option<String>,

    /// Resolution of the sort key `time`: a whole number with s, ms, us or ns
    #[arg(long, value_name = "LENGTH", default_value = "100ms", value_parser = times::quantum)]
    time_quantum: u64,

    /// Show times to the nanosecond
    #[arg(long)]
    ns: bool,

    #[command(flatten)]
    view: ViewArgs,
}

/// Query of `rep mem`, and the output of its answer.
pub struct MemQuery {
    accesses: AccessQuery,
    output: &'static Output,
}

/// Returns the query that the options mean.
pub fn query(args: MemArgs) -> Result<MemQuery, String> {
    cli::check(args.percent_limit, args.field_separator.as_deref())?;
    let output = args.view.output();
    let mut query = args.view.query(Mode::Memory)?;
    query.percent_limit = args.percent_limit;
    query.filters.resolved = args.hide_unresolved;
    query.steps = TimeSteps::Length(args.time_quantum);
    query.nanosecs = args.ns;
    let more = [(args.phys_data, "phys_daddr"), (args.data_page_size, "data_page_size")];
    let more = more.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, name)| name);
    let mut keys: Vec<Column> = Vec::new();
    for name in args.sort.split(',').map(str::trim).chain(more) {
        let column =
            Column::parse(name, Mode::Memory).map_err(|error| format!("--sort: {error}"))?;
        if keys.iter().all(|have| have.key != column.key) {
            keys.push(column);
        }
    }
    query.columns = Column::with_companions(keys, query.needs);
    let (kinds, separator, listed) = (args.kinds, args.field_separator, args.dump_raw_samples);
    // Filters that only histograms support.
    cli::refuse([
        (listed && query.filters.symbol_part.is_some(), "--symbol-filter cannot be used with -D"),
        (listed && query.filters.socket.is_some(), "--socket-filter cannot be used with -D"),
        (listed && query.filters.events.is_some(), "--event cannot be used with -D"),
    ])?;
    let (physical, page_size) = (args.phys_data, args.data_page_size);
    let accesses = AccessQuery { query, kinds, physical, page_size, separator, listed };
    Ok(MemQuery { accesses, output })
}

#[derive(Serialize)]
struct MemAnalysis<'p> {
    events: Vec<MemEvent<'p>>,
    #[serde(skip)]
    keys: &'p [Column],
    #[serde(skip)]
    separator: Option<&'p str>,
}

#[derive(Serialize)]
struct MemEvent<'p> {
    name: &'p str,
    samples: u64,
    sort: Vec<&'p str>,
    rows: Vec<LatencyRow>,
}

/// Accesses with one key.
#[derive(Serialize)]
struct LatencyRow {
    key: BTreeMap<String, String>,
    samples: u64,
    percent: f64,
    /// Sum of the weights.
    weight: u64,
    latency: Latency,
    #[serde(skip)]
    texts: Vec<String>,
}

/// Distribution of the weights of single accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Latency {
    min: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

impl Latency {
    /// Computes the distribution of `(weight, samples)` pairs.
    fn of(mut weights: Vec<(u64, u64)>) -> Self {
        weights.sort_unstable();
        let total: u64 = weights.iter().map(|(_, samples)| samples).sum();
        let [min, p50, p90, p99, max] = [0, 50, 90, 99, 100].map(|percent| {
            let rank = total.saturating_mul(percent).div_ceil(100).max(1);
            let mut sum = 0;
            let reached = weights.iter().find(|(_, samples)| {
                sum += samples;
                sum >= rank
            });
            reached.map_or(0, |(weight, _)| *weight)
        });
        Self { min, p50, p90, p99, max }
    }
}

pub(crate) fn run(asked: &MemQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let MemQuery { accesses: asked, output } = asked;
    if asked.listed {
        return list_accesses(asked, out);
    }
    let mut columns = asked.query.columns.clone();
    columns.extend(Column::list("op,local_weight", Mode::Memory)?);
    let (profile, query, _) = derived::profile(&asked.query, columns, |_| ())?;
    let tables = table::tables(&profile, &query);
    let mut warnings = profile.warnings.clone();
    let events = tables.iter().map(|table| event(table, asked)).collect();
    let (keys, separator) = (&asked.query.columns, asked.separator.as_deref());
    let answer = MemAnalysis { events, keys, separator };
    if answer.events.iter().all(|event| event.samples == 0) && !profile.is_without_rows() {
        warnings.push(asked.no_access());
    }
    derived::print(output, &profile.inputs, &answer, &warnings, out)
}

fn event<'p>(table: &EventTable<'p>, asked: &'p AccessQuery) -> MemEvent<'p> {
    let mut costs = IndexMap::<Vec<String>, Vec<(u64, u64)>>::new();
    let mut samples = 0;
    // The operation and the weight are the two columns after the keys.
    let keys = asked.query.columns.len();
    for row in table.rows() {
        let op = row.word(keys).map(DataSrc);
        let is_wanted = op.is_some_and(|op| asked.kinds.iter().any(|kind| kind.is_of(op)));
        if !asked.kinds.is_empty() && !is_wanted {
            continue;
        }
        samples += row.count().samples;
        let texts = row.texts().take(keys).map(Cow::into_owned).collect();
        costs.entry(texts).or_default().push((row.cell(keys + 1), row.count().samples));
    }
    let total = samples;
    let rows = costs.into_iter().map(|(texts, weights)| {
        let samples = weights.iter().map(|(_, samples)| samples).sum();
        LatencyRow {
            key: asked
                .query
                .columns
                .iter()
                .map(|key| key.typed.clone())
                .zip(texts.iter().cloned())
                .collect(),
            samples,
            percent: rounded(share(samples, total)),
            weight: weights
                .iter()
                .fold(0, |sum: u64, (weight, n)| sum.saturating_add(weight.saturating_mul(*n))),
            latency: Latency::of(weights),
            texts,
        }
    });
    let mut rows: Vec<LatencyRow> = rows.collect();
    rows.retain(|row| asked.query.percent_limit.is_none_or(|limit| row.percent >= limit));
    rows.sort_by(|a, b| {
        b.weight
            .cmp(&a.weight)
            .then_with(|| b.samples.cmp(&a.samples))
            .then_with(|| a.texts.cmp(&b.texts))
    });
    rows.truncate(asked.query.limit.unwrap_or(usize::MAX));
    MemEvent { name: table.name, samples: total, sort: asked.query.sort().collect(), rows }
}

/// A row, and the event that it is of.
#[derive(Clone, Copy)]
struct LatencyOfEvent<'a> {
    event: &'a str,
    row: &'a LatencyRow,
}

type RowColumn<'a> = SheetColumn<'a, LatencyOfEvent<'a>>;

/// Returns the columns of text and CSV: numbers, then the keys.
fn columns(keys: &[Column]) -> Vec<RowColumn<'_>> {
    let mut columns = vec![
        RowColumn::unshown("event", |of| of.event.into()),
        RowColumn::number("samples", "Samples", 10, |of| of.row.samples.into()),
        RowColumn::number("percent", "Share", 7, |of| SheetCell::Percent(of.row.percent)),
        RowColumn::unshown("weight", |of| of.row.weight.into()),
        RowColumn::unshown("min", |of| of.row.latency.min.into()),
        RowColumn::number("p50", "p50", 7, |of| of.row.latency.p50.into()),
        RowColumn::number("p90", "p90", 7, |of| of.row.latency.p90.into()),
        RowColumn::number("p99", "p99", 7, |of| of.row.latency.p99.into()),
        RowColumn::number("max", "Max", 7, |of| of.row.latency.max.into()),
    ];
    for (number, key) in keys.iter().enumerate() {
        columns.push(RowColumn::text(&key.typed, key.heading().trim(), move |of| {
            of.row.texts.get(number).into()
        }));
    }
    columns
}

impl Analysis for MemAnalysis<'_> {
    const SCHEMA: &'static str = "recrep-mem/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let columns = columns(self.keys);
        let mut sheets = Vec::new();
        for event in self.events.iter().filter(|event| event.samples > 0) {
            let title = format!("# Accesses: {} of event '{}'", event.samples, escape(event.name));
            let rows = event.rows.iter().map(|row| LatencyOfEvent { event: event.name, row });
            sheets.push(Sheet::new(vec![title, "#".into()], &columns, rows));
        }
        sheets
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        for sheet in self.sheets() {
            match self.separator {
                Some(separator) => sheet.print_separated(separator, out)?,
                None => {
                    sheet.print(out)?;
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_weights_that_were_sampled() {
        let each = (1..=100).map(|weight| (weight, 1)).collect();
        assert_eq!(Latency::of(each), Latency { min: 1, p50: 50, p90: 90, p99: 99, max: 100 });
        let few = Latency::of(vec![(7, 1), (3, 2)]);
        assert_eq!(few, Latency { min: 3, p50: 3, p90: 7, p99: 7, max: 7 });
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
