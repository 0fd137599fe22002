//! Fetching what is missing: which modules are worth asking servers for, and what came of it.
//!
//! A module is worth it where at least a share of the samples (1 % unless told otherwise) has an address in it without a function: their
//! own, or a caller's where callchains are looked at. To know that, the samples are counted once more, before all else, by module and
//! function alone; then files are fetched ([`Resolver::fetch`]), and the question is answered as if they had been there. So every view
//! gets the same, and none has a word of servers in it. Where nobody asks for functions nothing is fetched.

use crate::pipeline::counted::{has_chains, module_uses};
use crate::pipeline::session::Session;
use crate::query::Servers;
use crate::query::sort_key::SortKey;
use crate::query::warning::Warning;
use crate::query::{ChainOptions, Column, Filters, KeyError, Query};
use crate::symbols::{Attempt, Module, Refusal, Resolver, Source};
use crate::table::module_use::{ModuleUse, ModuleUses};
use crate::terminal::progress;

/// Fetches what is missing to answer `query`, if servers may be asked; gives what could not be had.
pub(crate) fn fetch(query: &Query, session: &Session<'_>, resolver: &Resolver) -> Result<Vec<Warning>, KeyError> {
    let Some(servers) = query.symbol_sources.servers.as_ref().filter(|_| names_functions(query, session)) else {
        return Ok(Vec::new());
    };
    progress::expect(session.split.pieces.iter().map(|piece| piece.bytes.len() as u64).sum());
    let uses = module_uses(&by_function(query, session), session, resolver)?;
    let wanted = worth_it(&uses, servers, needs_lines(query));
    resolver.fetch(&wanted);
    let mut warnings: Vec<_> = wanted.iter().flat_map(|module| not_fetched(module, resolver)).collect();
    if servers.ignores_signatures && !wanted.is_empty() {
        let message = "DEBUGINFOD_URLS asks for signatures to be checked (ima:enforcing), which rep cannot: build IDs were checked";
        warnings.push(Warning::new("signatures-not-checked", message));
    }
    Ok(warnings)
}

/// The same samples by module and function.
fn by_function(query: &Query, session: &Session<'_>) -> Query {
    let column = |typed: &str, key| Column { typed: typed.into(), key };
    let columns = vec![column("dso", SortKey::Dso), column("symbol", SortKey::Symbol)];
    let counted = counts_chains(query, session);
    Query {
        columns,
        mode: query.mode,
        filters: Filters { symbols: None, symbol_part: None, resolved: false, ..query.filters.clone() },
        chains: ChainOptions { counted, most: query.chains.most, ..ChainOptions::default() },
        symbol_sources: query.symbol_sources.clone(),
        ..Query::default()
    }
}

/// Whether callchains are looked at.
fn counts_chains(query: &Query, session: &Session<'_>) -> bool {
    (query.chains.is_shown() || query.chains.is_asked_of()) && has_chains(session)
}

/// Whether functions are asked for.
fn names_functions(query: &Query, session: &Session<'_>) -> bool {
    counts_chains(query, session)
        || query.filters.by_symbol()
        || needs_lines(query)
        || query.columns.iter().any(|column| column.key.is_of_symbol())
}

/// Whether debug information is asked for, and not only names.
fn needs_lines(query: &Query) -> bool {
    let keys = [SortKey::Srcline, SortKey::Srcfile, SortKey::ToSrcline, SortKey::FromSrcline];
    query.chains.inlined || keys.into_iter().any(|key| query.has(key))
}

/// The modules that files are worth fetching for.
fn worth_it(uses: &ModuleUses, servers: &Servers, lines: bool) -> Vec<Module> {
    let (all, _) = uses.total();
    let is_hot = |samples: u64| {
        samples > 0 && samples.saturating_mul(10_000) >= all.samples.saturating_mul(servers.least.into())
    };
    let is_wanted = |(module, uses): (&Option<Module>, &ModuleUse)| {
        let has_no_lines = || lines && uses.loaded.as_ref().is_some_and(|loaded| !loaded.lines().is_known());
        let hot = (is_hot(uses.lacks() + uses.callers_lack) && lacks_symbols(uses))
            || (is_hot(uses.all.samples + uses.callers_lack) && has_no_lines());
        module.clone().filter(|_| hot)
    };
    let mut wanted: Vec<Module> = uses.modules.iter().filter_map(is_wanted).collect();
    wanted.sort();
    wanted
}

/// Whether a module's file keeps back most of its symbols: where it has a table of all of them, a debug file has no more.
fn lacks_symbols(uses: &ModuleUse) -> bool {
    uses.loaded.as_ref().is_none_or(|loaded| {
        let outcome = &loaded.outcome;
        loaded.table.is_empty() || outcome.dynamic_only || outcome.found().any(|at| at.source == Source::MiniDebugInfo)
    })
}

/// What each server said that was asked for a module's files and had none.
fn not_fetched(module: &Module, resolver: &Resolver) -> Vec<Warning> {
    let loaded = resolver.load(module);
    let refused = loaded.outcome.not_fetched();
    let told = |(attempt, why): (&Attempt, &Refusal)| {
        let message = format!("{}: {}: {why}", module.name(), attempt.path.display());
        Warning::new("not-fetched", message)
    };
    refused.map(told).collect()
}
