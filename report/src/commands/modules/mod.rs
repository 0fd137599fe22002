//! `rep modules`: for each module the number of samples with a function, the places searched for symbols, the reason
//! why symbols are missing, and what would help.
//!
//! ```text
//!   report (by dso, symbol) ─► Profile::module_uses ─► Listing ─► text, JSON
//!   Session of each input ───► StackSummary ─────────────┘
//! ```

mod args;
mod listing;
mod stacks;
mod text;

use std::io::Write;

use anyhow::Context as _;

pub(crate) use args::{ModulesQuery, parse};
pub(crate) use stacks::StackSummary;

use crate::commands::derived;
use crate::query::Format;
use crate::query::warning::Warning;
use crate::view::{CANNOT_WRITE, write_json};
use listing::Listing;

/// Lists the modules, and returns warnings.
pub(crate) fn run(query: &ModulesQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let (profile, _, stacks) = derived::profile_with(&query.report, &query.report.columns, StackSummary::of)?;
    let stacks = stacks.into_iter().fold(StackSummary::default(), StackSummary::and);
    let listing = Listing::of(&profile, stacks, query.unresolved);
    match query.report.format {
        Format::Json => write_json(&listing, out),
        _ => text::print(&listing, out),
    }
    .context(CANNOT_WRITE)?;
    Ok(profile.warnings)
}
