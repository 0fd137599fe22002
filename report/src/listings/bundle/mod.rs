//! `rep bundle`: a recording with the names of its addresses, in one file, for readers that have
//! neither the recorded machine nor its files.
//!
//! ```text
//!   samples ─► addresses of each module ─► functions, inlined frames, lines ─┐
//!   recording, as it is ─────────────────────────────────────────────────────┴► file with the feature BUNDLE
//! ```
//!
//! Names are looked up as for a report, by the same proofs; what has none here has none in the
//! bundle. The records are copied as they are, so perf reads the bundle, too.

mod addresses;
mod pack;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;
use recrep_format::feature::Bundle;
use recrep_format::write::{FeatureWriter, copy_with};

use crate::callchain::ChainLimit;
use crate::cli::outcome::replace_file;
use crate::cli::{SourceArgs, SymbolArgs};
use crate::input::{Input, Keep, OpenedInput};
use crate::query::{Mode, Source, SymbolOptions, Warning};
use crate::samples::{ChainSetup, Session};
use crate::symbols::Resolver;
use addresses::addresses;
use pack::{ModuleAddresses, Totals};

/// Level of compression: names shrink to a third, and higher levels gain little.
const LEVEL: i32 = 9;

/// Write a recording with all its names into one file, to be read anywhere
#[derive(Debug, Parser)]
#[command(name = "rep bundle", version, long_about = None)]
pub(crate) struct BundleQuery {
    #[command(flatten)]
    source: SourceArgs,

    /// File to write; an existing one is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

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
    let input = Input::recording(&source, "a bundle")?;
    if !input.is_one_file() {
        bail!(
            "{} is a directory of several files (rec --threads); a bundle is made of one file",
            input.name
        );
    }
    input.unless_changed(bundle(query, &input, out))
}

/// Writes the bundle of an input and returns warnings.
fn bundle(
    query: &BundleQuery,
    input: &Input,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let resolver = Resolver::new(query.symbol_sources.clone());
    let opened = OpenedInput::new(input, Keep::All)?;
    let session = &Session::open(&opened, Mode::Samples, Some(&resolver));
    let all = ChainLimit { frames: usize::MAX, outermost: false };
    let chains = ChainSetup {
        unwinding: session.unwinding(&resolver),
        ..ChainSetup::new(session, &session.timeline, all)
    };
    let modules = session.side_band.modules.iter().zip(addresses(session, &chains));
    let modules =
        modules.map(|(module, addresses)| ModuleAddresses { module, addresses }).collect();
    let named = pack::named(modules, &resolver, chains.unwinding.is_some());
    let (body, totals) = pack::body(&named, session.file.endian)?;
    resolver.check_unchanged()?;
    let size = write(&query.output, session, &body)
        .with_context(|| format!("cannot write {}", query.output.display()))?;
    let Totals { modules, functions, places } = totals;
    writeln!(
        out,
        "{}: {size} bytes; {functions} functions and {places} source lines of {modules} modules",
        query.output.display()
    )?;
    Ok(session.warnings())
}

/// Writes the recording with the body of a bundle, and returns its size in bytes.
fn write(path: &Path, session: &Session<'_>, body: &[u8]) -> anyhow::Result<u64> {
    let packed = zstd::bulk::compress(body, LEVEL)?;
    let mut more = FeatureWriter::new(session.file.endian);
    more.add(&Bundle::of(&packed, body));
    Ok(replace_file(path, |out| copy_with(session.file, out, &more).map(drop))?)
}

fn is_same_file(path: &Path, other: &Path) -> bool {
    matches!((path.canonicalize(), other.canonicalize()), (Ok(path), Ok(other)) if path == other)
}
