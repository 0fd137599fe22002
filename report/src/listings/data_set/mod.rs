//! `rep export --format parquet`: samples as tables for data engines, a row for each.
//!
//! ```text
//!   pieces ─► all cores: samples ─► cells by column ─► encoded row groups ─┐ in the order of the file
//!                  └─► frames, chains ─► IDs                               ▼
//!                             └──────────────► frames, stacks        samples      recordings
//! ```
//!
//! Equal frames and stacks have one ID in all files (`stacks`), so a column of IDs is enough, and
//! tables of several recordings can be joined. Row groups are made of a fixed number of pieces, so
//! that the bytes do not depend on the number of threads. In memory are some encoded row groups, and
//! the distinct frames and chains. All workers share what is known of frames (`known_frames`): each
//! address is looked up once.

mod args;
mod cells;
mod columns;
mod groups;
mod input;
mod keys;
mod known_frames;
mod parts;
mod recordings;
mod samples;
mod stack_table;
mod stacks;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::bail;

pub(crate) use args::DataSetArgs;
use input::InputExport;
use keys::DataSetKeys;
use parts::PartPaths;

use crate::input::retry_if_changed;
use crate::input::several::each_merged;
use crate::query::{Column, FrameKey, Mode, Needs, Query, Source, Warning};
use crate::symbols::Resolver;

/// What becomes a data set, and where.
pub(crate) struct DataSetQuery {
    query: Query,
    keys: DataSetKeys,
    output: PathBuf,
}

/// Returns the query of a data set.
///
/// # Errors
/// Returns an error if no output is named, or by [`DataSetArgs`].
pub(crate) fn query(
    query: Query,
    args: &DataSetArgs,
    needs: Needs,
    output: Option<PathBuf>,
) -> Result<DataSetQuery, String> {
    let output = output
        .ok_or("--format parquet writes several files: name a directory, such as -o profiles/")?;
    let columns = Column::list("comm,pid,dso,symbol,cpumode", Mode::Samples);
    let mut query = Query { columns: columns.map_err(|error| error.to_string())?, needs, ..query };
    query.chains.most = Some(usize::MAX);
    if args.lines {
        query.chains.key = FrameKey::Srcline;
        query.symbol_sources.source_paths = true;
    }
    Ok(DataSetQuery { query, keys: args.keys()?, output })
}

impl DataSetQuery {
    pub(crate) fn query(&self) -> &Query {
        &self.query
    }
}

/// Writes the tables of all inputs, and returns warnings. If they are shared, their names, which may
/// be those of hosts, are not written.
pub(crate) fn run(
    asked: &DataSetQuery,
    sources: &[Source],
    are_shared: bool,
) -> anyhow::Result<Vec<Warning>> {
    let mut known = HashSet::new();
    if let Some(twice) = sources.iter().find(|source| !known.insert(source.name())) {
        bail!("{} is given twice", twice.name());
    }
    let is_partitioned = !asked.keys.partition.is_empty();
    let paths = &PartPaths::new(&asked.output, sources.len(), is_partitioned)?;
    let resolver = &Resolver::new(asked.query.symbol_sources.clone());
    let make = |source: &Source| {
        let number = sources.iter().position(|other| other == source).unwrap_or_default() + 1;
        let name = if are_shared { format!("shared-{number}") } else { source.stem() };
        let export = InputExport { query: &asked.query, keys: &asked.keys, paths, resolver };
        let attempt = || export.run(source, &name);
        let mut warnings = retry_if_changed(std::slice::from_ref(source), attempt)?;
        if sources.len() > 1 {
            for warning in &mut warnings {
                warning.message = format!("{}: {}", source.name(), warning.message);
            }
        }
        Ok(warnings)
    };
    let merge = |all: &mut Vec<Warning>, one: Vec<Warning>| all.extend(one);
    // Which names a file has must not depend on when another one's debug file was fetched.
    let side_by_side = asked.query.symbol_sources.servers.is_none();
    let (warnings, unreadable) = each_merged(sources, side_by_side, &make, &merge)?;
    resolver.check_unchanged()?;
    let readable = sources.len() - unreadable.len();
    let mut warnings: Vec<Warning> = warnings.into_iter().flatten().chain(unreadable).collect();
    let empty = warnings.iter().filter(|warning| warning.is_failure()).count();
    // What one of several inputs has is an answer.
    if empty < readable {
        for warning in warnings.iter_mut().filter(|warning| warning.is_failure()) {
            warning.code = EMPTY_INPUT;
        }
    }
    Ok(warnings)
}

/// Code of the warning about one of several inputs that has no samples.
const EMPTY_INPUT: &str = "empty-input";
