//! Output formats, a folder each. An export prints a finished profile; none reads files or counts
//! samples. What it needs of the profile it says by [`Needs`](crate::query::Needs).
//!
//! A new one is a folder with an [`Export`], a line in [`EXPORTS`], and a row in `docs/options.md`.

mod csv;
mod export;
mod folded;
mod json;
pub(crate) mod markdown;
pub(crate) mod pprof;
pub(crate) mod sheet;
mod text;

use std::io::{self, Write};

use crate::profile::Profile;
use crate::query::Query;
use crate::table;
use crate::terminal::style::Screen;

pub(crate) use export::{Answer, Export};
pub(crate) use folded::{FoldedSource, FoldedStack, folded_stacks};
pub(crate) use json::write as write_json;

/// The output formats; the first is the default.
pub(crate) static EXPORTS: &[&dyn Export] =
    &[&text::TextReport, &json::Json, &folded::Folded, &csv::Csv, &markdown::Markdown];

/// Returns the names of the output formats.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    EXPORTS.iter().map(|export| export.name())
}

/// Returns the help of the option `--format`.
pub(crate) fn help() -> String {
    let names: Vec<&str> = names().collect();
    match names.split_last() {
        Some((last, others)) => format!("Output format: {} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the output format with this name; the default one if there is none.
pub(crate) fn named(name: &str) -> &'static dyn Export {
    let found = EXPORTS.iter().find(|export| export.name() == name);
    found.copied().unwrap_or(&text::TextReport)
}

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
