//! Output formats, a folder each. An export prints a finished profile; none reads files or counts
//! samples. What it needs of the profile it says by [`Needs`].
//!
//! A new one is a folder with an [`Export`], a line in [`EXPORTS`], and a row in `docs/options.md`.

mod csv;
mod folded;
mod json;
mod text;

use std::io::{self, Write};

use crate::query::{Needs, Query};
use crate::table::profile::Profile;
use crate::terminal::style::Screen;

pub(crate) use json::write as write_json;

/// An output format.
pub(crate) trait Export: Sync {
    /// Returns its name as the value of `--format`.
    fn name(&self) -> &'static str;

    fn needs(&self) -> Needs;

    /// Returns the sort keys if none are asked for; `None` for those of the mode.
    fn default_keys(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether it is for people: it has headings, colours, column widths and separators.
    fn is_for_people(&self) -> bool {
        false
    }

    /// Returns whether it prints plain tables only: no hierarchy, no group, no statistics.
    fn is_plain(&self) -> bool {
        false
    }

    /// Returns whether it says something of a recording without samples, such as the numbers of
    /// other records.
    fn has_other_records(&self) -> bool {
        false
    }

    /// Writes the answer to a query.
    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()>;
}

/// What an export prints.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'p> {
    pub(crate) profile: &'p Profile,
    /// Its query, with the columns that are shown.
    pub(crate) query: &'p Query,
    pub(crate) screen: Screen,
}

/// The output formats; the first is the default.
pub(crate) const EXPORTS: [&dyn Export; 4] = [&text::Text, &json::Json, &folded::Folded, &csv::Csv];

/// Returns the output format with this name; the default one if there is none.
pub(crate) fn named(name: &str) -> &'static dyn Export {
    let found = EXPORTS.iter().find(|export| export.name() == name);
    *found.unwrap_or(&EXPORTS[0])
}

/// Prints the profile.
pub(crate) fn print(
    export: &dyn Export,
    profile: &Profile,
    query: &Query,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let query = &Query { shown: profile.shown(query), ..query.clone() };
    export.write(&Answer { profile, query, screen }, out)
}
