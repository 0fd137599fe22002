//! `rep info` and `rep evlist`: what a file is.
//!
//! ```text
//!   File ─► container: magic, byte order, mode, where the parts are
//!        ─► events: attr, ids          ─► text for people, in the words of the ABI and of `perf evlist -v`
//!        ─► features: decoded          ─► JSON, schema recrep-info/1
//!   Session ► records by type, first and last sample, what was lost, what is wrong
//! ```
//!
//! Everything is metrics into one [`Info`], from which both forms are printed. All that `perf report --header-only` tells
//! of the header is there; the moment that perf calls "captured on" is the file's modification time, which is no part of
//! it, and is left to `ls`.

mod args;
mod attr;
mod evlist;
mod features;
mod gather;
mod query;
mod text;
mod value;

use std::io::{self, Write};

use anyhow::Context as _;

use crate::input::Input;
use crate::input::several::settled;
use crate::pipeline::session;
use crate::pipeline::session::Session;
use crate::query::warning::Warning;
use crate::query::{Format, Source};
use crate::view::CANNOT_WRITE;

pub use args::{parse, parse_evlist};
pub use attr::text as attr_text;
pub use evlist::run as run_evlist;
pub use features::value as feature_value;
pub use gather::{Container, EventInfo, FeatureInfo, Info, Part, StreamInfo, TimeRange};
pub use query::{EventDetail, EvlistQuery, InfoQuery};
pub use value::Value;

/// What asks for all that a file's header says, as text.
#[must_use]
pub fn whole(source: &Source) -> InfoQuery {
    InfoQuery { source: source.clone(), format: Format::Text }
}

/// The same as [`run`], as lines that begin with `#`.
///
/// # Errors
/// As [`run`].
pub fn comment(query: &InfoQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let mut text = Vec::new();
    let warnings = run(query, &mut text)?;
    commented(&text, out).context(CANNOT_WRITE)?;
    Ok(warnings)
}

/// Tells of the file; gives what is wrong with it.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub fn run(query: &InfoQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let info = settled(std::slice::from_ref(&query.source), || {
        let input = Input::open(&query.source)?;
        session::on(&input, |session| Ok(Info::gather(&input, session)))
    })?;
    match query.format {
        Format::Text => text::print(&info, out),
        _ => json(&info, out),
    }
    .context(CANNOT_WRITE)?;
    Ok(info.warnings)
}

/// The same of an input whose session is set.
///
/// # Errors
/// The output cannot be written.
pub fn comment_on(input: &Input, session: &Session<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    text::print(&Info::gather(input, session), &mut text)?;
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

fn json(info: &Info, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, info)?;
    out.write_all(b"\n")
}
