//! `rep info` and `rep evlist`: description of a file and its events.
//!
//! ```text
//!   File ─► container: magic, byte order, mode, offsets of the sections
//!        ─► events: attr, ids          ─► text, in the words of the ABI and of `perf evlist -v`
//!        ─► features: decoded          ─► JSON, schema recrep-info/1
//!   Session ► records by type, first and last sample, losses, warnings
//! ```
//!
//! Everything is gathered into one [`Info`], from which text and JSON are printed. It has all that
//! `perf report --header-only` prints except "captured on", which is the file's modification time:
//! use `ls`.

mod attr;
mod evlist;
mod features;
mod gather;
mod value;

use std::io::{self, Write};

use anyhow::Context as _;
use clap::Parser;

use crate::cli::SourceArgs;
use crate::exports::write_json;
use crate::input::{Input, Keep, OpenedInput, retry_if_changed};
use crate::query::{Mode, Source, Warning};
use crate::samples::Session;
use crate::terminal::parts::CANNOT_WRITE;

pub(crate) use attr::text as attr_text;
pub(crate) use evlist::{EvlistQuery, run as run_evlist};
pub(crate) use features::{ranges, value as feature_value};
use gather::Info;
pub(crate) use value::{InfoValue, map, number};

/// Show the layout, events, header features and record counts of a file
#[derive(Debug, Parser)]
#[command(name = "rep info", version, long_about = None)]
pub(crate) struct InfoQuery {
    #[command(flatten)]
    source: SourceArgs,

    /// Print JSON, schema recrep-info/1
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(query: &InfoQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    print(&query.source.source(), query.json, out)
}

/// Prints the description of a file, and returns warnings.
pub(crate) fn print(
    source: &Source,
    is_json: bool,
    out: &mut impl Write,
) -> anyhow::Result<Vec<Warning>> {
    let (text, warnings) = retry_if_changed(std::slice::from_ref(source), || {
        let input = Input::open(source)?;
        input.unless_changed(described(&input, is_json))
    })?;
    out.write_all(&text).context(CANNOT_WRITE)?;
    Ok(warnings)
}

/// Returns the description of an input, and warnings.
fn described(input: &Input, is_json: bool) -> anyhow::Result<(Vec<u8>, Vec<Warning>)> {
    let opened = OpenedInput::new(input, Keep::Some)?;
    let session = Session::open(&opened, Mode::Samples, None);
    let (info, mut text) = (Info::gather(&session), Vec::new());
    if is_json { write_json(&info, &mut text) } else { gather::print(&info, &mut text) }?;
    Ok((text, info.warnings))
}

/// Prints the description of a file as text, with `#` in front of each line.
pub(crate) fn comment(source: &Source, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut text = Vec::new();
    let warnings = print(source, false, &mut text)?;
    commented(&text, out).context(CANNOT_WRITE)?;
    Ok(warnings)
}

/// Does the same as [`comment`], for an input whose session exists already.
pub(crate) fn comment_on(session: &Session<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    gather::print(&Info::gather(session), &mut text)?;
    commented(&text, out)
}

fn commented(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let mark: &[u8] = if line == b"\n" { b"#" } else { b"# " };
        out.write_all(mark)?;
        out.write_all(line)?;
    }
    Ok(())
}
