//! Forms of the answer. A view sees a [`Profile`] and knows nothing of files or samples.

mod escape;
mod json;
mod stats;
mod text;

use std::io::{self, Write};

use crate::profile::Profile;
use crate::query::{Format, Query};

pub use escape::escape;

/// Where a view writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// How many columns it has, where it is a terminal.
    pub width: Option<usize>,
}

/// Prints the profile as the query says.
///
/// # Errors
/// The output cannot be written.
pub fn print(profile: &Profile, query: &Query, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    match query.format {
        Format::Json => json::print(profile, query, out),
        Format::Text if query.stats => stats::print(profile, query, out),
        Format::Text => text::print(profile, query, screen, out),
    }
}
