//! `rep bundle`: a recording with the names of its addresses, in one file, for readers that have
//! neither the recorded machine nor its files.
//!
//! ```text
//!   samples ─► addresses of each module ─► functions, inlined frames, lines ─┐
//!   recording, as it is ─────────────────────────────────────────────────────┴► file with the feature BUNDLE
//! ```
//!
//! Names are looked up as for a report, by the same proofs; what has none here has none in the
//! bundle. The records are copied as they are, so perf reads the bundle, too. With `--share` they are
//! rewritten (`share`).

mod addresses;
mod pack;
mod share;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;
use recrep_format::write::{FeatureWriter, copy_with};
use tempfile::TempDir;

use crate::callchain::ChainLimit;
use crate::cli::outcome::{replace_file, say};
use crate::cli::{SourceArgs, SymbolArgs};
use crate::input::{Input, Keep, OpenedInput};
use crate::query::{Mode, Source, SymbolOptions, Warning};
use crate::samples::{ChainSetup, Session};
use crate::symbols::Resolver;
use addresses::addresses;
use pack::{ModuleAddresses, Totals};
use share::Removed;

/// Write a recording with all its names into one file, to be read anywhere
#[derive(Debug, Parser)]
#[command(name = "rep bundle", version, long_about = None)]
pub(crate) struct BundleQuery {
    #[command(flatten)]
    source: SourceArgs,

    /// File to write; an existing one is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Leave out what is private: the host's name, the command line, directories, addresses,
    /// registers, stacks, fields of tracepoints
    #[arg(long)]
    share: bool,

    #[command(flatten)]
    symbols: SymbolArgs,

    /// What `symbols` ask for.
    #[arg(skip)]
    symbol_sources: SymbolOptions,
}

pub(crate) fn query(asked: BundleQuery) -> Result<BundleQuery, String> {
    // Names are packed as the symbol tables have them.
    let symbol_sources = asked.symbols.clone().options(true)?;
    Ok(BundleQuery { symbol_sources, ..asked })
}

/// Writes the bundle and returns warnings.
pub(crate) fn run(query: &BundleQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let source = query.source.source();
    if let Source::Path(path) = &source
        && is_same_file(path, &query.output)
    {
        bail!("{} is the recording itself; name another file with -o", path.display());
    }
    let written = write(&source, &query.symbol_sources, query.share, &query.output)?;
    let WrittenBundle { size, totals, removed, warnings } = written;
    let Totals { modules, functions, places } = totals;
    writeln!(
        out,
        "{}: {size} bytes; {functions} functions and {places} source lines of {modules} modules",
        query.output.display()
    )?;
    if let Some(removed) = removed {
        writeln!(out, "{removed}")?;
    }
    Ok(warnings)
}

/// Recordings in a temporary directory, without what is private.
pub(crate) struct SharedInputs {
    _directory: TempDir,
    pub(crate) sources: Vec<Source>,
}

impl SharedInputs {
    /// Writes them, under the names of the inputs without that of the host, and says what was taken
    /// out.
    pub(crate) fn of(sources: &[Source], symbols: &SymbolOptions) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
        let mut shared = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let name = match source {
                Source::Path(path) => path.file_name().unwrap_or("recording".as_ref()),
                Source::Stdin => "stdin".as_ref(),
            };
            let inside = directory.path().join(number.to_string());
            std::fs::create_dir(&inside)?;
            let written = inside.join("written");
            let WrittenBundle { removed, .. } = write(source, symbols, true, &written)?;
            let Some(removed) = removed else { continue };
            say(&format!("rep: {}: {removed}", name.display()));
            let path = inside.join(removed.without_host(&name.to_string_lossy()));
            std::fs::rename(&written, &path)?;
            shared.push(Source::Path(path));
        }
        Ok(Self { _directory: directory, sources: shared })
    }
}

/// What became of a bundle.
struct WrittenBundle {
    size: u64,
    totals: Totals,
    /// What was taken out, if it is shared.
    removed: Option<Removed>,
    warnings: Vec<Warning>,
}

/// Writes the bundle of a recording; if it `is_shared`, without what is private.
fn write(
    source: &Source,
    symbols: &SymbolOptions,
    is_shared: bool,
    path: &Path,
) -> anyhow::Result<WrittenBundle> {
    let input = Input::recording(source, "a bundle")?;
    if !input.is_one_file() {
        bail!(
            "{} is a directory of several files (rec --threads); a bundle is made of one file",
            input.name
        );
    }
    input.unless_changed(bundle(&input, symbols, is_shared, path))
}

fn bundle(
    input: &Input,
    symbols: &SymbolOptions,
    is_shared: bool,
    path: &Path,
) -> anyhow::Result<WrittenBundle> {
    let resolver = Resolver::new(symbols.clone());
    let opened = OpenedInput::new(input, Keep::All)?;
    let session = &Session::open(&opened, Mode::Samples, Some(&resolver));
    let all = ChainLimit { frames: usize::MAX, outermost: false };
    let chains = ChainSetup {
        unwinding: session.unwinding(&resolver),
        // Where callers are missing, a rewritten chain ends.
        as_recorded: !is_shared,
        ..ChainSetup::new(session, &session.timeline, all)
    };
    let modules = session.side_band.modules.iter().zip(addresses(session, &chains));
    let modules =
        modules.map(|(module, addresses)| ModuleAddresses { module, addresses }).collect();
    // Stacks are unwound where the bundle is read, unless they are left out.
    let has_stacks = chains.unwinding.is_some() && !is_shared;
    let named = pack::named(modules, &resolver, has_stacks);
    let (body, totals) = pack::body(&named, session.file.endian)?;
    resolver.check_unchanged()?;
    let mut removed = None;
    let size = replace_file(path, |out| {
        if is_shared {
            removed = Some(share::write(session, &chains, &body, out)?);
            return Ok(());
        }
        let mut more = FeatureWriter::new(session.file.endian);
        pack::add_section(&body, &mut more)?;
        copy_with(session.file, out, &more).map(drop)
    })
    .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(WrittenBundle { size, totals, removed, warnings: session.warnings() })
}

fn is_same_file(path: &Path, other: &Path) -> bool {
    matches!((path.canonicalize(), other.canonicalize()), (Ok(path), Ok(other)) if path == other)
}
