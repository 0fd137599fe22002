//! Filters that leave out everything, or of whose lists some values match nothing: looks for what
//! samples have.
//!
//! This reads the samples again. It happens where nothing passed, and where a list names several
//! values.

use crate::engine::counted::{NameSources, Purpose, histogram, profile_events};
use crate::profile::Profile;
use crate::profile::names::SharedNames;
use crate::query::word_text::cpu_number;
use crate::query::{
    ChainOptions, Column, FilterBy, FilterValues, Filters, KeyError, Mode, Query, SymbolOptions,
};
use crate::samples::Session;
use crate::symbols::Resolver;
use crate::table::{self, EventTable, Row};

/// The samples of a file, with what their names depend on.
#[derive(Clone, Copy)]
pub(crate) struct RecordedSamples<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) resolver: &'s Resolver,
    pub(crate) symbol_sources: &'s SymbolOptions,
    pub(crate) mode: Mode,
}

/// Returns the filters with the values that no sample of a file has. With `nothing_passed` they are
/// looked for in all filters, otherwise in lists.
pub(crate) fn filter_values(
    filters: &Filters,
    nothing_passed: bool,
    recorded: RecordedSamples<'_>,
) -> Result<Vec<FilterValues>, KeyError> {
    let mut all = FilterValues::all(filters);
    for filter in &mut all {
        let is_list = filter.by.is_list_of_names() && filter.asked.len() > 1;
        if nothing_passed || is_list {
            recorded.look_up(filter, filters)?;
        }
    }
    Ok(all)
}

impl RecordedSamples<'_> {
    /// Sets the values of a filter that are missing, and those that samples have.
    fn look_up(self, filter: &mut FilterValues, filters: &Filters) -> Result<(), KeyError> {
        let by = filter.by;
        let found = match by.sort_key(&filter.asked) {
            Some(key) => self.values(by, key)?,
            None => Vec::new(),
        };
        for (value, samples) in &found {
            // A negative number is one that was not recorded.
            if !(by.is_number() && value.starts_with('-')) {
                filter.count(value, *samples);
            }
        }
        if by == FilterBy::Time
            && let Some((first, last)) = self.session.sample_times()
        {
            filter.count(&format!("{} to {} s", seconds(first), seconds(last)), 1);
        }
        // Numbers are what they read; names may match in ways of their own (paths, parts,
        // modifiers).
        let mut missing = Vec::new();
        for value in &filter.asked {
            let is_shown = filter.found.iter().any(|(have, _)| have == value);
            if !is_shown
                && (by.is_number() || !self.any_passes(FilterValues::alone(by, value, filters))?)
            {
                missing.push(value.clone());
            }
        }
        filter.missing = missing;
        match by {
            FilterBy::Function if !filter.missing.is_empty() => {
                filter.callers = self.callers(&filter.missing)?;
            }
            // The kernel names the file that a link leads to.
            FilterBy::Module => {
                for name in &filter.missing {
                    if self.any_passes(FilterValues::alone(FilterBy::Comm, name, filters))? {
                        filter.programs.push(name.clone());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns those of the functions that are callers, with the numbers of samples below them.
    fn callers(self, functions: &[String]) -> Result<Vec<(String, u64)>, KeyError> {
        let columns = Column::list("symbol", self.counted_mode())?;
        let chains = ChainOptions { children: true, ..ChainOptions::default() };
        let query = Query { columns, chains, ..self.query(Filters::default()) };
        let profile = self.profile(&query)?;
        let mut found = Vec::new();
        for row in table::tables(&profile, &query).iter().flat_map(EventTable::rows) {
            let name = value(FilterBy::Function, row);
            if let Some((count, _)) = row.children()
                && functions.contains(&name)
            {
                found.push((name, count.samples));
            }
        }
        Ok(found)
    }

    /// Returns the values that samples have of a sort key, as the option takes them, with the
    /// numbers of samples.
    fn values(self, by: FilterBy, key: &str) -> Result<Vec<(String, u64)>, KeyError> {
        let mode = self.counted_mode();
        // An address without a function is no function.
        let filters = Filters { resolved: key == "symbol", ..Filters::default() };
        let query = Query { columns: Column::list(key, mode)?, ..self.query(filters) };
        let profile = self.profile(&query)?;
        let tables = table::tables(&profile, &query);
        let rows = tables.iter().flat_map(EventTable::rows);
        Ok(rows.map(|row| (value(by, row), row.count().samples)).collect())
    }

    /// Returns whether any sample passes these filters.
    fn any_passes(self, filters: Filters) -> Result<bool, KeyError> {
        // A key that costs nothing: all samples of an event have one row.
        let columns = Column::list(
            if filters.by_symbol() { "symbol" } else { "event" },
            self.counted_mode(),
        )?;
        Ok(!self.profile(&Query { columns, ..self.query(filters) })?.is_without_rows())
    }

    /// Branches are filtered by their samples.
    fn counted_mode(self) -> Mode {
        if self.mode.is_of_time() { self.mode } else { Mode::Samples }
    }

    fn query(self, filters: Filters) -> Query {
        Query {
            mode: self.counted_mode(),
            chains: ChainOptions::default(),
            symbol_sources: self.symbol_sources.clone(),
            filters,
            ..Query::default()
        }
    }

    fn profile(self, query: &Query) -> Result<Profile, KeyError> {
        let shared = SharedNames::default();
        let mut profile = Profile::of_events(profile_events(self.session, query.mode));
        let names = NameSources { resolver: self.resolver, shared: &shared };
        histogram(&mut profile, query, self.session, names, Purpose::Rows)?;
        profile.names = shared.into_names();
        profile.settle();
        Ok(profile)
    }
}

/// Returns the value of a row's only column, as the option takes it.
fn value(by: FilterBy, row: Row<'_>) -> String {
    match row.task(0) {
        Some(id) => id.to_string(),
        None if by == FilterBy::Cpu => cpu_number(row.cell(0)).to_string(),
        None => row.text(0).trim().to_owned(),
    }
}

/// Formats nanoseconds as `--time` takes them.
fn seconds(time: u64) -> String {
    format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}
