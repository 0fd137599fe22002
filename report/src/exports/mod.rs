//! Outputs, a folder each, and their registry ([`outputs`]). An export prints a finished profile; none
//! reads files or counts samples. What it needs of the profile it says by
//! [`Needs`](crate::query::Needs).
//!
//! A new one is a folder with an [`Export`] or a [`FileExport`], a row in [`outputs`], and a row in
//! `docs/options.md`.

mod csv;
mod export;
#[cfg(feature = "firefox")]
mod firefox;
mod folded;
mod frames;
mod json;
mod losses;
pub(crate) mod markdown;
mod otlp;
pub(crate) mod outputs;
mod perfetto;
mod pprof;
pub(crate) mod sheet;
mod speedscope;
mod text;
mod timed;
#[cfg(feature = "firefox")]
mod weights;

use std::io::{self, Write};

use crate::profile::Profile;
use crate::query::Query;
use crate::table;
use crate::terminal::style::Screen;

pub(crate) use export::{Answer, Export, FileExport};
pub(crate) use folded::{FoldedName, FoldedSource, FoldedStack, folded_stacks};
pub(crate) use json::write as write_json;

/// Prints the profile.
pub(crate) fn print(
    export: &dyn Export,
    profile: &Profile,
    query: &Query,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let query = &Query { shown: table::shown(profile, query), ..query.clone() };
    export.write(&Answer { profile, query, screen }, out)
}
