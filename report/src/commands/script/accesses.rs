//! `rep mem -D`: memory accesses, one per line, as `perf mem report -D` prints them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::Context as _;
use clap::ValueEnum;
use recrep_format::abi::DataSrc;
use recrep_format::record::SampleFields;

use super::filter::SampleFilter;
use super::frames::Finder;
use super::order;
use super::query::{ScriptFilters, Symbols};
use super::sample::Found;
use super::values;
use crate::input::Input;
use crate::input::several::each;
use crate::input::streams::Keep;
use crate::pipeline::fetching;
use crate::pipeline::session;
use crate::pipeline::session::Session;
use crate::query::SymbolOptions;
use crate::query::sort_key::SortKey;
use crate::query::warning::Warning;
use crate::query::{Column, Query, Source};
use crate::symbols::Resolver;
use crate::terminal::escape::escape;
use crate::timeline::RecentSpans;
use crate::view::CANNOT_WRITE;

/// Kind of memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// Reads
    Load,
    /// Writes
    Store,
}

impl Access {
    /// Returns its name in the `op` column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "LOAD",
            Self::Store => "STORE",
        }
    }
}

/// Query of an access listing.
#[derive(Clone, Debug)]
pub struct AccessQuery {
    sources: Vec<Source>,
    symbol_sources: SymbolOptions,
    filters: ScriptFilters,
    kinds: Vec<Access>,
    physical: bool,
    page_size: bool,
    separator: Option<String>,
    limit: usize,
}

impl AccessQuery {
    /// Returns a query that lists the samples that the histogram `query` would count, with columns for physical
    /// addresses and page sizes if these flags are set.
    ///
    /// # Errors
    /// Returns a message if `query` has a filter that only histograms support.
    pub fn new(
        query: &Query,
        kinds: Vec<Access>,
        (physical, page_size): (bool, bool),
        separator: Option<String>,
    ) -> Result<Self, String> {
        let mut samples = query.filters.clone();
        let histogram_only = [
            (samples.symbol_part.is_some(), "--symbol-filter"),
            (samples.socket.is_some(), "--socket-filter"),
            (samples.events.is_some(), "--event"),
        ];
        if let Some((_, flag)) = histogram_only.into_iter().find(|(is_set, _)| *is_set) {
            return Err(format!("{flag} cannot be used with -D"));
        }
        let symbols = samples.symbols.take().map(|names| Symbols { names, ..Symbols::default() });
        let filters = ScriptFilters { samples, symbols, ..ScriptFilters::default() };
        let limit = query.limit.unwrap_or(usize::MAX);
        let (sources, symbol_sources) = (query.sources.clone(), query.symbol_sources.clone());
        Ok(Self { sources, symbol_sources, filters, kinds, physical, page_size, separator, limit })
    }
}

/// Prints the accesses of each input and returns the warnings.
pub fn list_accesses(query: &AccessQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let resolver = Resolver::new(query.symbol_sources.clone());
    let mut warnings = Vec::new();
    heading(query, out).context(CANNOT_WRITE)?;
    let unreadable = each(&query.sources, |source| {
        let input = Input::open(source)?;
        warnings.extend(session::on(&input, Keep::All, |session| {
            let symbol_sources = query.symbol_sources.clone();
            let columns = vec![Column { typed: "symbol".into(), key: SortKey::Symbol }];
            let not_fetched =
                fetching::fetch(&Query { columns, symbol_sources, ..Query::default() }, session, &resolver)?;
            let unproven = list(query, session, &resolver, out)?;
            let mut warnings = session.warnings();
            warnings.extend(not_fetched.into_iter().chain(unproven));
            Ok(warnings)
        })?);
        Ok(())
    })?;
    resolver.check_unchanged()?;
    warnings.extend(unreadable);
    Ok(warnings)
}

fn heading(query: &AccessQuery, out: &mut impl Write) -> io::Result<()> {
    let physical = if query.physical { "PHYS ADDR, " } else { "" };
    let page_size = if query.page_size { "DATA PAGE SIZE, " } else { "" };
    writeln!(out, "# PID, TID, IP, ADDR, {physical}{page_size}LOCAL WEIGHT, DSRC, SYMBOL")
}

/// Prints the accesses of one input and returns warnings about unproven names.
fn list(
    query: &AccessQuery,
    session: &Session<'_>,
    resolver: &Resolver,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let functions = session.functions(resolver);
    let mut finder = Finder::new(session, &functions, false);
    let filter = SampleFilter::new(&query.filters, session)?;
    let mut spans = RecentSpans::default();
    let positions = order::listed(session, &BTreeSet::new()).into_iter().flatten().enumerate();
    let lines = positions.filter_map(|(position, at)| {
        finder.now = position;
        let mut fields = SampleFields::default();
        let (_, found) = Found::of(session, &mut spans, order::record_at(session, at)?, &mut fields)?;
        line(query, &filter, &mut finder, &found)
    });
    for line in lines.take(query.limit) {
        writeln!(out, "{line}").context(CANNOT_WRITE)?;
    }
    Ok(Finder::doubts([finder], &functions).warnings("addresses"))
}

/// Returns the line of a sample, or `None` if it is filtered out.
fn line(query: &AccessQuery, filter: &SampleFilter<'_>, finder: &mut Finder<'_, '_>, s: &Found<'_>) -> Option<String> {
    let (fields, [pid, tid]) = (&s.fields, s.tid);
    let src = fields.data_src.unwrap_or(DataSrc::NONE.0);
    let is_wanted = |kind: &Access| kind.name() == DataSrc(src).op_name();
    if !query.kinds.is_empty() && !query.kinds.iter().any(is_wanted) {
        return None;
    }
    let place = finder.place_of(s);
    let function = finder.symbol(place).map(|function| finder.name(function.name));
    let is_named = |symbols: &Symbols| function.is_some_and(|name| symbols.names.contains(name));
    if !filter.passes(s, place.module)
        || (query.filters.samples.resolved && function.is_none())
        || !query.filters.symbols.as_ref().is_none_or(is_named)
    {
        return None;
    }
    let module = finder.long_dso(place).unwrap_or_else(|| "???".into());
    let function = function.unwrap_or("???");
    let (weight, addr) = (values::weight(fields), fields.addr.unwrap_or(0));
    let width = |columns: usize| if query.separator.is_none() { columns } else { 0 };
    let decimal = |text: String| format!("{text:>columns$}", columns = width(5));
    let hex = |number: u64, digits: usize| format!("0x{number:0digits$x}", digits = width(digits));
    let mut cells = vec![decimal(pid.to_string()), decimal(tid.to_string()), hex(s.ip(), 16), hex(addr, 16)];
    if query.physical {
        cells.push(format!("0x{:016x}", fields.phys_addr.unwrap_or(0)));
    }
    if query.page_size {
        cells.push(values::page_size(fields.data_page_size.unwrap_or(0)));
    }
    cells.extend([decimal(weight.to_string()), hex(src, 6), format!("{}:{function}", escape(&module))]);
    Some(cells.join(query.separator.as_deref().unwrap_or(" ")))
}
