//! `rep mem -D`: memory accesses, one per line, as `perf mem report -D` prints them.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};

use anyhow::Context as _;
use clap::ValueEnum;
use recrep_format::abi::DataSrc;
use recrep_format::record::SampleFields;

use super::args::Switches;
use super::filter::ListingFilter;
use super::frames::Finder;
use super::sample::ScriptSample;
use super::values;
use crate::decode::{self, WantedTraces};
use crate::engine::fetching;
use crate::engine::unmatched::{self, RecordedSamples};
use crate::input::{Input, Keep, each};
use crate::query::{Column, FilterValues, Mode, Query, SortKey, Warning};
use crate::samples::{Session, TaskFinder, positions, record_at};
use crate::symbols::{Module, Resolver};
use crate::terminal::escape::escape;
use crate::terminal::parts::CANNOT_WRITE;

/// Kind of memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// Reads
    Load,
    /// Writes
    Store,
}

impl Access {
    /// Returns whether a data source has only this kind.
    pub(crate) fn is_of(self, source: DataSrc) -> bool {
        source.op_name() == self.name()
    }

    /// Returns its name in the `op` column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "LOAD",
            Self::Store => "STORE",
        }
    }
}

/// Query of `rep mem`.
#[derive(Clone, Debug)]
pub struct AccessQuery {
    pub(crate) query: Query,
    /// Kinds of accesses to count; all if empty.
    pub(crate) kinds: Vec<Access>,
    /// `true` if listed accesses have physical addresses.
    pub(crate) physical: bool,
    /// `true` if listed accesses have page sizes.
    pub(crate) page_size: bool,
    /// Separator between fields, in place of padding. The query has none: its addresses would be
    /// those of perf.
    pub(crate) separator: Option<String>,
    /// `true` if single accesses are listed in place of the table (`-D`).
    pub(crate) listed: bool,
}

impl AccessQuery {
    /// Returns the reason if there are accesses, but none of the kinds that were asked for.
    pub(crate) fn no_access(&self) -> Warning {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        Warning::new(
            Warning::NO_MATCH,
            format!("no access is a {}; --type selects by kind", kinds.join(" or ")),
        )
    }
}

/// What was listed of one input.
struct ListedAccesses {
    accesses: usize,
    samples: u64,
    filters: Vec<FilterValues>,
    warnings: Vec<Warning>,
}

pub(crate) fn list_accesses(
    asked: &AccessQuery,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let query = &asked.query;
    let resolver = Resolver::new(query.symbol_sources.clone());
    heading(asked, out).context(CANNOT_WRITE)?;
    let (mut filters, mut accesses, mut samples) = (Vec::new(), 0, 0);
    let mut warnings = each(&query.sources, |source| {
        let input = Input::recording(source, "a list of accesses")?;
        let listed = input.unless_changed(list_input(asked, &input, &resolver, out))?;
        FilterValues::merge(&mut filters, listed.filters);
        accesses += listed.accesses;
        samples += listed.samples;
        Ok(listed.warnings)
    })?;
    resolver.check_unchanged()?;
    if accesses > 0 || query.limit == Some(0) {
        warnings.extend(FilterValues::partly(&filters));
    } else if samples > 0 && filters.is_empty() && !asked.kinds.is_empty() {
        warnings.push(asked.no_access());
    } else {
        warnings.push(FilterValues::failure(&filters, samples));
    }
    Ok(warnings)
}

fn heading(asked: &AccessQuery, out: &mut impl Write) -> io::Result<()> {
    let physical = if asked.physical { "PHYS ADDR, " } else { "" };
    let page_size = if asked.page_size { "DATA PAGE SIZE, " } else { "" };
    writeln!(out, "# PID, TID, IP, ADDR, {physical}{page_size}LOCAL WEIGHT, DSRC, SYMBOL")
}

/// Prints the accesses of one input.
fn list_input(
    asked: &AccessQuery,
    input: &Input,
    resolver: &Resolver,
    out: &mut impl Write,
) -> anyhow::Result<ListedAccesses> {
    let (query, mut warnings) = (&asked.query, Vec::new());
    let traces = WantedTraces::each(&query.filters.samples.itrace);
    let opened = decode::open(input, Keep::All, traces, resolver)?;
    let session = &Session::open(&opened, Mode::Samples, Some(resolver));
    let symbol_sources = query.symbol_sources.clone();
    let columns = vec![Column { typed: "symbol".into(), key: SortKey::Symbol }];
    let by_function = Query { columns, symbol_sources, ..Query::default() };
    let not_fetched = fetching::fetch(&by_function, session, resolver)?;
    let (accesses, unproven) = list(asked, session, resolver, out)?;
    warnings.extend(session.warnings());
    warnings.extend(not_fetched.into_iter().chain(unproven));
    let symbol_sources = &query.symbol_sources;
    let recorded = RecordedSamples { session, resolver, symbol_sources, mode: query.mode };
    let filters = unmatched::filter_values(&query.filters, accesses == 0, recorded)?;
    Ok(ListedAccesses { accesses, samples: session.samples(), filters, warnings })
}

/// Prints the accesses of a file; returns their number, and warnings about unproven names.
fn list(
    asked: &AccessQuery,
    session: &Session<'_>,
    resolver: &Resolver,
    out: &mut impl Write,
) -> anyhow::Result<(usize, Vec<Warning>)> {
    let functions = session.functions(resolver);
    let mut finder = Finder::new(session, &functions, false);
    let filter = ListingFilter::new(&asked.query.filters.samples, &Switches::default(), session)?;
    let mut tasks = TaskFinder::new(&session.timeline, None);
    let positions = positions(session, &BTreeSet::new()).into_iter().enumerate();
    let lines = positions.filter_map(|(position, at)| {
        finder.now = position;
        let mut fields = SampleFields::default();
        let found = ScriptSample::of(session, &mut tasks, record_at(session, at)?, &mut fields)?;
        line(asked, &filter, &mut finder, &found)
    });
    let mut accesses = 0;
    for line in lines.take(asked.query.limit.unwrap_or(usize::MAX)) {
        writeln!(out, "{line}").context(CANNOT_WRITE)?;
        accesses += 1;
    }
    Ok((accesses, Finder::doubts([finder], &functions).warnings("addresses")))
}

/// Returns the line of a sample, or `None` if it is filtered out.
fn line(
    asked: &AccessQuery,
    filter: &ListingFilter<'_>,
    finder: &mut Finder<'_>,
    s: &ScriptSample<'_>,
) -> Option<String> {
    let (fields, [pid, tid]) = (&s.fields, s.who.tid);
    let src = fields.data_src.unwrap_or(DataSrc::NONE.0);
    if !asked.kinds.is_empty() && !asked.kinds.iter().any(|kind| kind.is_of(DataSrc(src))) {
        return None;
    }
    let filters = &asked.query.filters;
    let place = finder.place_of(s);
    let function = finder.symbol(place).map(|function| function.name);
    let is_named =
        |names: &HashSet<String>| function.as_deref().is_some_and(|name| names.contains(name));
    if !filter.samples.takes(s.who.time, s.who.cpu, &s.task, tid, place.module)
        || (filters.resolved && function.is_none())
        || !filters.symbols.as_ref().is_none_or(is_named)
    {
        return None;
    }
    let module = finder.module(place.module).map_or_else(|| "???".into(), Module::long_name);
    let function = function.as_deref().unwrap_or("???");
    let (weight, addr) = (values::weight(fields), fields.addr.unwrap_or(0));
    let separator = asked.separator.as_deref();
    let width = |columns: usize| if separator.is_none() { columns } else { 0 };
    let decimal = |text: String| format!("{text:>columns$}", columns = width(5));
    let hex = |number: u64, digits: usize| format!("0x{number:0digits$x}", digits = width(digits));
    let mut cells =
        vec![decimal(pid.to_string()), decimal(tid.to_string()), hex(s.ip(), 16), hex(addr, 16)];
    if asked.physical {
        cells.push(format!("0x{:016x}", fields.phys_addr.unwrap_or(0)));
    }
    if asked.page_size {
        cells.push(values::page_size(fields.data_page_size.unwrap_or(0)));
    }
    cells.extend([
        decimal(weight.to_string()),
        hex(src, 6),
        format!("{}:{function}", escape(&module)),
    ]);
    Some(cells.join(separator.unwrap_or(" ")))
}
