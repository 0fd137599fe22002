//! Output formats. Views print finished data, often a [`Profile`]; none reads files or samples.
//! `text` cuts lines to the width of the terminal.

mod csv;
mod folded;
mod group;
mod heading;
mod heat;
mod hierarchy;
mod json;
mod parts;
mod stats;
mod text;
mod tree;

use std::io::{self, Write};

use crate::query::{Format, Inspection, Query};
use crate::table::profile::Profile;
use crate::terminal::style::Screen;

pub(crate) use json::write as write_json;
pub(crate) use parts::{Workers, in_order};

/// Error context for a failed write of the output.
pub(crate) const CANNOT_WRITE: &str = "cannot write the answer";

/// Prints the profile in the query's format.
pub(crate) fn print(
    profile: &Profile,
    query: &Query,
    screen: Screen,
    out: &mut impl Write,
) -> io::Result<()> {
    let query = &Query { shown: profile.shown(query), ..query.clone() };
    match query.format {
        Format::Json => json::print(profile, query, out),
        Format::Folded => folded::print(profile, query, out),
        Format::Csv => csv::print(profile, query, out),
        _ if query.inspection == Some(Inspection::Stats) => stats::print(profile, query, out),
        Format::Text | Format::Bolt => text::print(profile, query, screen, out),
    }
}
