//! Forms of the answer. A view sees a [`Profile`] and knows nothing of files or samples.

mod escape;
mod json;
mod screen;
mod stats;
mod text;

use std::io::{self, Write};

use crate::profile::Profile;
use crate::query::{Format, Query};

pub use escape::escape;
pub use screen::Screen;

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
