//! `rep export`: the profile of each input as a file of another format, for other programs, or to
//! be kept: it needs neither the recording nor the recorded programs.
//!
//! Several inputs are several files in a directory: each is a run of its own, and what reads them
//! can merge them, but nothing can take a sum apart.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;

use crate::cli::outcome::replace_file;
use crate::cli::{self, FilterArgs, SourcesArgs, SymbolArgs};
use crate::engine::facts::{RecordingFacts, facts};
use crate::engine::gather::gather;
use crate::engine::schedule::Schedule;
use crate::exports::FileExport;
use crate::exports::outputs::Output;
use crate::input::{Input, each, retry_if_changed};
use crate::listings::bundle::SharedInputs;
#[cfg(feature = "parquet")]
use crate::listings::data_set::{self, DataSetArgs, DataSetQuery};
use crate::query::{ChainOptions, Column, Filters, Mode, Query, Source, Warning};

/// Write profiles as files of another format, which need no recording and no programs
#[derive(Debug, Parser)]
#[command(name = "rep export", version, long_about = None)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    sources: SourcesArgs,

    /// Format of the files: pprof (go tool pprof, and rep itself), speedscope, firefox (Firefox
    /// Profiler), perfetto, otlp (OpenTelemetry), or parquet (samples as tables for data engines)
    #[arg(
        long, hide_possible_values = true, default_value = "pprof", help_heading = "Output",
        value_parser = cli::output_parser(Output::is_of_files)
    )]
    format: &'static Output,

    /// File to write, an existing one is replaced; of several inputs, and of parquet, a directory
    /// [default: standard output, unless that is a terminal]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Leave out what is private, as rep bundle --share does
    #[arg(long, help_heading = "Output")]
    share: bool,

    /// Labels of the samples: sort keys, or none [default: comm]
    #[arg(long, value_name = "KEY[,KEY…]", help_heading = "Output")]
    labels: Option<String>,

    /// Write inlined functions as frames of their own (default; needs debug information)
    #[arg(long, overrides_with = "no_inline", help_heading = "Callchains")]
    inline: bool,

    /// Write inlined functions as the functions that contain them
    #[arg(long, overrides_with = "inline", help_heading = "Callchains")]
    no_inline: bool,

    #[cfg(feature = "parquet")]
    #[command(flatten)]
    data_set: DataSetArgs,

    #[command(flatten)]
    filters: FilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,
}

/// What is exported, and where to.
pub(crate) struct ExportQuery {
    kind: ExportKind,
    share: bool,
}

enum ExportKind {
    Files(FilesQuery),
    #[cfg(feature = "parquet")]
    DataSet(DataSetQuery),
}

/// A file for each input.
struct FilesQuery {
    query: Query,
    export: &'static dyn FileExport,
    output: Option<PathBuf>,
}

impl ExportKind {
    fn query(&self) -> &Query {
        match self {
            Self::Files(asked) => &asked.query,
            #[cfg(feature = "parquet")]
            Self::DataSet(asked) => asked.query(),
        }
    }
}

pub(crate) fn query(args: ExportArgs) -> Result<ExportQuery, String> {
    let mut query = Query {
        sources: args.sources.sources(),
        filters: args.filters.filters(false),
        chains: ChainOptions {
            counted: true,
            inlined: Some(!args.no_inline),
            ..ChainOptions::default()
        },
        symbol_sources: args.symbols.options(true)?,
        ..Query::default()
    };
    #[cfg(feature = "parquet")]
    if let Some(needs) = args.format.data_set {
        if args.labels.is_some() {
            return Err("--labels is of profiles; a data set has columns, and --label".into());
        }
        let asked = data_set::query(query, &args.data_set, needs, args.output)?;
        return Ok(ExportQuery { kind: ExportKind::DataSet(asked), share: args.share });
    }
    #[cfg(feature = "parquet")]
    if let Some(option) = args.data_set.given() {
        return Err(format!("{option} is of --format parquet"));
    }
    let Some(export) = args.format.file else {
        return Err(format!("--format {} writes no files", args.format.name));
    };
    if args.labels.is_some() && export.shows_time() {
        let message = "has processes, threads and CPUs in its own way; it takes no --labels";
        return Err(format!("--format {} {message}", args.format.name));
    }
    query.columns = match args.labels.as_deref().unwrap_or("comm") {
        "none" => Vec::new(),
        names => {
            Column::list(names, Mode::Samples).map_err(|error| format!("--labels: {error}"))?
        }
    };
    if let Some(column) = query.columns.iter().find(|column| column.key.is_of_trace()) {
        return Err(format!("--labels: {} is not a sort key of all samples", column.typed));
    }
    export.complete(&mut query);
    let files = FilesQuery { query, export, output: args.output };
    Ok(ExportQuery { kind: ExportKind::Files(files), share: args.share })
}

/// Writes the files and returns warnings.
pub(crate) fn run(asked: &ExportQuery, _: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let query = asked.kind.query();
    let mut sources = Input::all_sources(&query.sources)?;
    let shared = match asked.share {
        true => Some(SharedInputs::of(&sources, &query.symbol_sources)?),
        false => None,
    };
    if let Some(shared) = &shared {
        sources.clone_from(&shared.sources);
    }
    match &asked.kind {
        ExportKind::Files(asked) => export_files(asked, &sources),
        #[cfg(feature = "parquet")]
        ExportKind::DataSet(query) => data_set::run(query, &sources, asked.share),
    }
}

/// Writes a file for each input, and returns warnings.
fn export_files(asked: &FilesQuery, sources: &[Source]) -> anyhow::Result<Vec<Warning>> {
    let output = asked.output.as_deref();
    let is_directory = output
        .is_some_and(|path| path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/"));
    match output {
        None if sources.len() == 1 && io::stdout().is_terminal() => {
            bail!("this would write a binary file to the terminal; name a file with -o")
        }
        None | Some(_) if sources.len() > 1 && !is_directory => bail!(
            "{} inputs make as many files: name a directory for them, such as -o profiles/",
            sources.len()
        ),
        Some(directory) if is_directory => std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?,
        _ => {}
    }
    let mut taken = HashSet::new();
    each(sources, |source| {
        let path = match output {
            Some(directory) if is_directory => {
                Some(directory.join(free_name(source, asked.export.extension(), &mut taken)))
            }
            output => output.map(Path::to_owned),
        };
        export(asked, source, path.as_deref())
    })
}

/// Exports one input, to standard output without a path, and returns warnings.
fn export(
    asked: &FilesQuery,
    source: &Source,
    path: Option<&Path>,
) -> anyhow::Result<Vec<Warning>> {
    let query = Query { sources: vec![source.clone()], ..asked.query.clone() };
    // What threads do at other times is not asked for then.
    let has_schedule = asked.export.shows_time() && query.filters == Filters::default();
    let (profile, query, facts) = retry_if_changed(&query.sources, || {
        gather(&query, |session| match has_schedule {
            true => RecordingFacts { schedule: Schedule::read(session), ..facts(session) },
            false => facts(session),
        })
    })?;
    let failure = profile.warnings.iter().find(|warning| warning.is_failure());
    if let Some(failure) = failure {
        bail!("{}", failure.message);
    }
    for facts in &facts {
        match path {
            Some(path) => {
                replace_file(path, |out| asked.export.write(&profile, &query, facts, out))
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => asked.export.write(&profile, &query, facts, &mut io::stdout().lock())?,
        }
    }
    Ok(profile.warnings)
}

/// Returns the name of an input's file in a directory: that of the input, with a number if another
/// input has it.
fn free_name(source: &Source, extension: &str, taken: &mut HashSet<String>) -> String {
    let stem = source.stem();
    let mut name = format!("{stem}.{extension}");
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{stem}-{number}.{extension}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_one_name_are_several_files() {
        let mut taken = HashSet::new();
        let mut name = |path: &str| free_name(&Source::Path(path.into()), "pb.gz", &mut taken);
        assert_eq!(name("a/run.1.data"), "run.1.pb.gz");
        assert_eq!(name("b/run.1.data"), "run.1-2.pb.gz");
        assert_eq!(name("b/x.pb.gz"), "x.pb.gz");
        assert_eq!(free_name(&Source::Stdin, "pb.gz", &mut taken), "stdin.pb.gz");
    }
}
