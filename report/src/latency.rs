//! `rep mem`: what memory accesses cost. Loads and stores by level, or by any other sort keys, with percentiles of the
//! weight (of loads, usually the latency in cycles).
//!
//! Percentiles are exact: the histogram has a row for each distinct weight, so memory grows with these and not with
//! the samples. The p-th percentile is the least weight that at least p percent of the samples do not exceed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;

use anyhow::Context as _;
use indexmap::IndexMap;
use serde::Serialize;

use crate::derived::{self, percent};
use crate::profile::{EventTable, InputSummary};
use crate::query::{Column, Format, Query};
use crate::sort_key::{Mode, SortKey};
use crate::view::{CANNOT_WRITE, escape};
use crate::warning::Warning;

/// What was asked.
#[derive(Clone, Debug)]
pub struct MemQuery {
    query: Query,
    keys: Vec<Column>,
}

/// Reads a command line (with `rep mem` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(words: Vec<OsString>) -> Result<MemQuery, clap::Error> {
    let query = derived::parse(words, Mode::Memory)?;
    let by_level = [("op", SortKey::Op), ("mem", SortKey::Mem)];
    let keys = if derived::has_default_keys(&query) { derived::columns(&by_level) } else { query.columns.clone() };
    Ok(MemQuery { query, keys })
}

#[derive(Serialize)]
struct Answer<'p> {
    schema: &'static str,
    inputs: &'p [InputSummary],
    events: Vec<Event<'p>>,
    warnings: &'p [Warning],
}

#[derive(Serialize)]
struct Event<'p> {
    name: &'p str,
    samples: u64,
    sort: Vec<&'p str>,
    rows: Vec<Row>,
}

/// The accesses under one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    key: BTreeMap<String, String>,
    samples: u64,
    percent: f64,
    /// The sum of the weights.
    weight: u64,
    latency: Latency,
    #[serde(skip)]
    texts: Vec<String>,
}

/// What accesses cost each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The least.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// What nine in ten do not exceed.
    pub p90: u64,
    /// What 99 in a hundred do not exceed.
    pub p99: u64,
    /// The most.
    pub max: u64,
}

impl Latency {
    /// Of these weights and how often each was sampled.
    #[must_use]
    pub fn of(mut weights: Vec<(u64, u64)>) -> Self {
        weights.sort_unstable();
        let total: u64 = weights.iter().map(|(_, samples)| samples).sum();
        let at = |percent: u64| {
            let rank = total.saturating_mul(percent).div_ceil(100).max(1);
            let mut seen = 0;
            let reached = weights.iter().find(|(_, samples)| {
                seen += samples;
                seen >= rank
            });
            reached.map_or(0, |(weight, _)| *weight)
        };
        let (min, max) = (weights.first(), weights.last());
        let weight = |of: Option<&(u64, u64)>| of.map_or(0, |(weight, _)| *weight);
        Self { min: weight(min), p50: at(50), p90: at(90), p99: at(99), max: weight(max) }
    }
}

/// Answers.
///
/// # Errors
/// An input cannot be read, or the output cannot be written.
pub fn run(asked: &MemQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut columns = asked.keys.clone();
    columns.push(Column { typed: "local_weight".into(), key: SortKey::LocalWeight });
    let (profile, query) = derived::profile(&asked.query, columns)?;
    let tables = profile.tables(&query);
    let events: Vec<Event<'_>> = tables.iter().map(|table| event(table, asked)).collect();
    if asked.query.format == Format::Json {
        let answer = Answer { schema: "recrep-mem/1", inputs: &profile.inputs, events, warnings: &profile.warnings };
        derived::json(&answer, out).context(CANNOT_WRITE)?;
    } else {
        print(&events, asked, out).context(CANNOT_WRITE)?;
    }
    Ok(profile.warnings)
}

fn event<'p>(table: &EventTable<'p>, asked: &'p MemQuery) -> Event<'p> {
    let mut costs = IndexMap::<Vec<String>, Vec<(u64, u64)>>::new();
    for row in &table.rows {
        let Some((weight, texts)) = row.columns.split_last() else { continue };
        let texts = texts.iter().map(ToString::to_string).collect();
        costs.entry(texts).or_default().push((weight.parse().unwrap_or(0), row.count.samples));
    }
    let row = |(texts, weights): (Vec<String>, Vec<(u64, u64)>)| {
        let samples = weights.iter().map(|(_, samples)| samples).sum();
        Row {
            key: asked.keys.iter().map(|key| key.typed.clone()).zip(texts.iter().cloned()).collect(),
            samples,
            percent: percent(samples, table.total.samples),
            weight: weights.iter().fold(0, |sum: u64, (weight, n)| sum.saturating_add(weight.saturating_mul(*n))),
            latency: Latency::of(weights),
            texts,
        }
    };
    let mut rows: Vec<Row> = costs.into_iter().map(row).collect();
    rows.retain(|row| asked.query.percent_limit.is_none_or(|limit| row.percent >= limit));
    rows.sort_by(|a, b| {
        b.weight.cmp(&a.weight).then_with(|| b.samples.cmp(&a.samples)).then_with(|| a.texts.cmp(&b.texts))
    });
    rows.truncate(asked.query.limit.unwrap_or(usize::MAX));
    let sort = asked.keys.iter().map(|key| key.typed.as_str()).collect();
    Event { name: table.name, samples: table.total.samples, sort, rows }
}

fn print(events: &[Event<'_>], asked: &MemQuery, out: &mut impl Write) -> std::io::Result<()> {
    for event in events.iter().filter(|event| event.samples > 0) {
        writeln!(out, "# Accesses: {} of event '{}'\n#", event.samples, escape(event.name))?;
        let headings: Vec<&str> = asked.keys.iter().map(|key| key.key.heading().trim()).collect();
        writeln!(out, "#  Samples    Share      p50      p90      p99      Max  {}", headings.join("  "))?;
        for row in &event.rows {
            let Latency { p50, p90, p99, max, .. } = row.latency;
            let texts: Vec<_> = row.texts.iter().map(|text| escape(text)).collect();
            let (samples, share) = (row.samples, row.percent);
            let keys = texts.join("  ");
            writeln!(out, "{samples:>10}  {share:>6.2}%  {p50:>7}  {p90:>7}  {p99:>7}  {max:>7}  {keys}")?;
        }
        writeln!(out)?;
    }
    Ok(())
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
