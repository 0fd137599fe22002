//! Fetches missing debug files: decides for which modules debuginfod servers are asked, and warns
//! about failures.
//!
//! Servers are asked for a module if at least a share of the samples (by default 1 %) have an
//! address in it without a function: their own, or a caller's if callchains are used. To find out,
//! the samples are first counted by module and function alone; then files are fetched
//! ([`Resolver::fetch`]), and the query is answered as if they had been there before. So all views
//! get the same names, and none needs code for servers. If the query needs no functions, nothing is
//! fetched.

use recrep_format::abi::SampleType;

use crate::engine::counted::module_uses;
use crate::profile::modules::{ModuleUse, ModuleUses};
use crate::query::{ChainOptions, Column, Filters, KeyError, Query, Servers, Warning};
use crate::samples::Session;
use crate::symbols::{Attempt, Module, Refusal, Resolver, Source};
use crate::terminal::progress;

/// Fetches the debug files that `query` lacks, if it allows to ask servers; returns warnings about
/// those not fetched.
pub(crate) fn fetch(
    query: &Query,
    session: &Session<'_>,
    resolver: &Resolver,
) -> Result<Vec<Warning>, KeyError> {
    let Some(servers) =
        query.symbol_sources.servers.as_ref().filter(|_| names_functions(query, session))
    else {
        return Ok(Vec::new());
    };
    progress::expect(session.split.pieces.iter().map(|piece| piece.size as u64).sum());
    let uses = module_uses(&by_function(query, session)?, session, resolver)?;
    let wanted = worth_fetching(&uses, servers, needs_lines(query));
    resolver.fetch(&wanted);
    let mut warnings: Vec<_> =
        wanted.iter().flat_map(|module| not_fetched(module, resolver)).collect();
    if servers.ignores_signatures && !wanted.is_empty() {
        let message = "DEBUGINFOD_URLS asks to check signatures (ima:enforcing), which rep \
                       cannot: only build IDs are checked";
        warnings.push(Warning::new("signatures-not-checked", message));
    }
    Ok(warnings)
}

/// Returns a query for the same samples by module and function.
fn by_function(query: &Query, session: &Session<'_>) -> Result<Query, KeyError> {
    let counted = counts_chains(query, session);
    Ok(Query {
        columns: Column::list("dso,symbol", query.mode)?,
        mode: query.mode,
        filters: Filters {
            symbols: None,
            symbol_part: None,
            resolved: false,
            ..query.filters.clone()
        },
        // Inlined functions have no say in which modules lack functions.
        chains: ChainOptions {
            counted,
            most: query.chains.most,
            inlined: Some(false),
            as_recorded: query.chains.as_recorded,
            ..ChainOptions::default()
        },
        symbol_sources: query.symbol_sources.clone(),
        ..Query::default()
    })
}

/// Returns whether the query uses callchains and samples have them.
fn counts_chains(query: &Query, session: &Session<'_>) -> bool {
    (query.chains.is_shown() || query.chains.used_unshown())
        && session.samples_have(SampleType::CALLCHAIN)
}

/// Returns whether the query needs functions.
fn names_functions(query: &Query, session: &Session<'_>) -> bool {
    counts_chains(query, session)
        || query.filters.by_symbol()
        || needs_lines(query)
        || query.needs_symbols()
}

/// Returns whether the query needs debug information, not only names.
fn needs_lines(query: &Query) -> bool {
    query.chains.inlined == Some(true) || query.needs_lines()
}

/// Returns the modules for which files are to be fetched.
fn worth_fetching(uses: &ModuleUses, servers: &Servers, lines: bool) -> Vec<Module> {
    let (all, _) = uses.total();
    let is_hot = |samples: u64| {
        samples > 0
            && samples.saturating_mul(10_000) >= all.samples.saturating_mul(servers.least.into())
    };
    let is_wanted = |(module, uses): (&Option<Module>, &ModuleUse)| {
        let has_no_lines =
            || lines && uses.loaded.as_ref().is_some_and(|loaded| !loaded.lines().is_known());
        let hot = (is_hot(uses.lacks() + uses.unresolved_callers) && lacks_symbols(uses))
            || (is_hot(uses.all.samples + uses.unresolved_callers) && has_no_lines());
        module.clone().filter(|_| hot)
    };
    let mut wanted: Vec<Module> = uses.modules.iter().filter_map(is_wanted).collect();
    wanted.sort();
    wanted
}

/// Returns whether a module's file lacks most of its symbols. If it has a full symbol table, a
/// debug file has no more.
fn lacks_symbols(uses: &ModuleUse) -> bool {
    uses.loaded.as_ref().is_none_or(|loaded| {
        let outcome = &loaded.outcome;
        loaded.table.is_empty()
            || outcome.dynamic_only
            || outcome.found().any(|at| at.source == Source::MiniDebugInfo)
    })
}

/// Returns a warning for each failed request for a module's files.
fn not_fetched(module: &Module, resolver: &Resolver) -> Vec<Warning> {
    let loaded = resolver.load(module);
    let refused = loaded.outcome.not_fetched();
    let warning = |(attempt, why): (&Attempt, &Refusal)| {
        let message = format!("{}: {}: {why}", module.name(), attempt.path.display());
        Warning::new("not-fetched", message)
    };
    refused.map(warning).collect()
}
