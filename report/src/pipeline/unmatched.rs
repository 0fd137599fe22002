//! Filters that no sample passes: says which value no sample has, and which values there are.

use crate::pipeline::counted::histogram;
use crate::pipeline::session::Session;
use crate::query::nearest::near;
use crate::query::{ChainOptions, Column, Filters, Format, KeyError, Query, Warning};
use crate::symbols::Resolver;
use crate::symbols::labels::AnswerLabels;
use crate::table::profile::Profile;

/// Most values that a message lists.
const MOST: usize = 5;

/// Returns the reason why no sample of a file made a row: it has none, or filters leave out all.
pub(super) fn reason(query: &Query, session: &Session<'_>, resolver: &Resolver) -> Result<Warning, KeyError> {
    let any = values(query, session, resolver, "event")?;
    if any.is_empty() {
        return Ok(Warning::new(Warning::NO_SAMPLES, "there are no samples in the recording"));
    }
    for (noun, key, wanted) in asked(&query.filters) {
        let found = if noun == "event" { any.clone() } else { values(query, session, resolver, key)? };
        let fits = |value: &str, wanted: &String| {
            value == wanted || noun == "event" && value.split(':').next() == Some(wanted.as_str())
        };
        let has = |wanted: &String| found.iter().any(|value| fits(value, wanted));
        if let Some(missing) = wanted.first().filter(|_| !wanted.iter().any(has)) {
            let message = format!("no sample has {noun} '{missing}'{}", there_are(noun, missing, &found));
            return Ok(Warning::new(Warning::NO_MATCH, message));
        }
    }
    let message = match &query.filters.symbol_part {
        Some(part) => format!("no sample passes all filters; is there a function whose name contains '{part}'?"),
        None => "no sample passes all filters (names, numbers, times, callers) together; leave one out".into(),
    };
    Ok(Warning::new(Warning::NO_MATCH, message))
}

/// Returns the lists that a sample's value must be in: what the values are, their sort key, and the list in order.
fn asked(filters: &Filters) -> Vec<(&'static str, &'static str, Vec<String>)> {
    let mut all = Vec::new();
    let mut add = |noun, key, list: Option<Vec<String>>| {
        if let Some(mut list) = list {
            list.sort();
            all.push((noun, key, list));
        }
    };
    let samples = &filters.samples;
    let is_path = |names: &Vec<String>| names.iter().any(|name| name.contains('/'));
    let dsos = samples.dsos.as_ref().map(|list| list.iter().cloned().collect::<Vec<_>>());
    add("event", "event", filters.events.clone());
    add("comm", "comm", samples.comms.as_ref().map(|list| list.iter().cloned().collect()));
    add("dso", if dsos.as_ref().is_some_and(is_path) { "dso_path" } else { "dso" }, dsos);
    add("pid", "process", samples.pids.as_ref().map(|list| list.iter().map(ToString::to_string).collect()));
    add("tid", "tid", samples.tids.as_ref().map(|list| list.iter().map(ToString::to_string).collect()));
    add("CPU", "cpu", samples.cpus.as_ref().map(|list| list.iter().map(ToString::to_string).collect()));
    add("socket", "socket", filters.socket.map(|socket| vec![socket.to_string()]));
    add("symbol", "symbol", filters.symbols.as_ref().map(|list| list.iter().cloned().collect()));
    all
}

/// Returns the values that the samples of a file have of a sort key, the most frequent first.
fn values(query: &Query, session: &Session<'_>, resolver: &Resolver, key: &str) -> Result<Vec<String>, KeyError> {
    let query = Query {
        columns: Column::list(key, query.mode)?,
        mode: query.mode,
        format: Format::Json,
        chains: ChainOptions::default(),
        symbol_sources: query.symbol_sources.clone(),
        ..Query::default()
    };
    let labels = AnswerLabels::default();
    let mut profile = Profile::of_events(&session.events_of(query.mode));
    histogram(&mut profile, &query, session, (resolver, &labels), false)?;
    profile.labels = labels.cells.into_inner();
    profile.settle();
    let tables = profile.tables(&query);
    let mut rows: Vec<(u64, String)> = Vec::new();
    for row in tables.iter().flat_map(|table| table.rows()) {
        let text = row.text(0);
        let text = match key {
            "tid" => text.split(':').next().unwrap_or_default(),
            "cpu" => text.trim_start_matches('0'),
            _ => &*text,
        };
        let text = if key == "cpu" && text.is_empty() { "0" } else { text.trim() };
        match rows.iter_mut().find(|(_, have)| have == text) {
            Some((samples, _)) => *samples += row.count().samples,
            None => rows.push((row.count().samples, text.to_owned())),
        }
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    Ok(rows.into_iter().map(|(_, text)| text).collect())
}

/// Returns the end of a message: values near to the missing one, else the most frequent ones.
fn there_are(noun: &str, missing: &str, found: &[String]) -> String {
    let near = near(missing, found.iter().map(String::as_str), MOST);
    if !near.is_empty() {
        return format!("; near {noun}s are: {}", near.join(", "));
    }
    let first: Vec<&str> = found.iter().take(MOST).map(String::as_str).collect();
    let more = if found.len() > MOST { ", …" } else { "" };
    format!("; {noun}s are: {}{more}", first.join(", "))
}
