//! Helpers for commands that collect what samples show of each other (`syscalls`, `waits`): common
//! options, and what is collected of all inputs.

use clap::Args;

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

/// Options that these commands share.
#[derive(Clone, Debug, Args)]
// What these show is no part of the answer.
#[command(mut_arg("source_paths", |arg| arg.hide(true)))]
pub(crate) struct CollectedArgs {
    /// Same as --format json
    #[arg(long)]
    json: bool,

    /// Print at most N entries of each table
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

impl CollectedArgs {
    /// Returns the output; `--json` takes precedence over `--format`.
    pub(super) fn output(&self) -> &'static Output {
        derived::output(self.json, self.format)
    }

    /// Builds a query from these options.
    pub(super) fn query(self) -> Result<Query, String> {
        Ok(Query {
            sources: self.sources.sources(),
            limit: self.limit,
            filters: Filters { samples: self.filters.filters(), ..Filters::default() },
            symbol_sources: self.symbols.options(true)?,
            ..Query::default()
        })
    }
}

/// What a command finds in one input, or in more.
pub(super) trait Findings: Default {
    /// Says that a recording without filters has none of these.
    const NOTHING: &'static str;

    /// Adds what was found in another input.
    fn add(&mut self, other: Self);

    /// Returns whether nothing was found.
    fn is_empty(&self) -> bool;
}

/// What was found in all inputs.
pub(super) struct Collected<F> {
    pub(super) found: F,
    pub(super) inputs: Vec<InputSummary>,
    pub(super) warnings: Vec<Warning>,
    filters: Vec<FilterValues>,
}

impl<F: Findings> Collected<F> {
    /// Collects what `of` finds in the session of each input, opened in this mode; starts again if an
    /// input changed meanwhile. `what` is what recordings have and profiles have not.
    pub(super) fn read(
        query: &Query,
        mode: Mode,
        what: &'static str,
        of: impl Fn(&Session<'_>, &Resolver) -> F,
    ) -> anyhow::Result<Self> {
        let resolver = Resolver::new(query.symbol_sources.clone());
        retry_if_changed(&query.sources, || {
            let (mut found, mut inputs, mut filters) = (F::default(), Vec::new(), Vec::new());
            let warnings = each(&query.sources, |source| {
                let input = Input::recording(source, what)?;
                let of_input = OfInput::read(query, mode, &input, &resolver, &of);
                let of_input = input.unless_changed(of_input)?;
                FilterValues::merge(&mut filters, of_input.filters);
                found.add(of_input.found);
                inputs.push(of_input.summary);
                Ok(of_input.warnings)
            })?;
            resolver.check_unchanged()?;
            Ok(Self { found, inputs, warnings, filters })
        })
    }

    /// Returns the number of samples of all inputs.
    pub(super) fn samples(&self) -> u64 {
        self.inputs.iter().map(|input| input.samples).sum()
    }

    /// Returns the number of records and samples that were lost.
    pub(super) fn lost(&self) -> u64 {
        self.inputs.iter().map(|input| input.lost_events.max(input.lost_samples)).sum()
    }

    /// Adds warnings of values of filters that nothing has.
    pub(super) fn warn_of_filters(&mut self) {
        if self.found.is_empty() && self.filters.is_empty() && self.samples() > 0 {
            self.warnings.push(Warning::new(Warning::NO_SAMPLES, F::NOTHING));
        } else if self.found.is_empty() {
            self.warnings.push(FilterValues::failure(&self.filters, self.samples()));
        } else {
            self.warnings.extend(FilterValues::partly(&self.filters));
        }
    }
}

/// What was found in one input.
struct OfInput<F> {
    found: F,
    filters: Vec<FilterValues>,
    summary: InputSummary,
    warnings: Vec<Warning>,
}

impl<F: Findings> OfInput<F> {
    fn read(
        query: &Query,
        mode: Mode,
        input: &Input,
        resolver: &Resolver,
        of: impl Fn(&Session<'_>, &Resolver) -> F,
    ) -> anyhow::Result<Self> {
        let opened = OpenedInput::new(input, Keep::Some)?;
        let session = &Session::open(&opened, mode, Some(resolver));
        let found = of(session, resolver);
        let symbol_sources = &query.symbol_sources;
        let recorded = RecordedSamples { session, resolver, symbol_sources, mode: query.mode };
        let filters = unmatched::filter_values(&query.filters, found.is_empty(), recorded)?;
        let (summary, warnings) = (summary(query, session), session.warnings());
        Ok(Self { found, filters, summary, warnings })
    }
}
