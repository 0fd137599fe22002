//! The profile of one input.
//!
//! ```text
//!   Session ─► checks ─► fetching ─► counted ─► unmatched ─► counts ─► described
//! ```

use recrep_format::abi::AttrFlags;

use super::checks::check;
use super::counted::{NameSources, Purpose, histogram, profile_events};
use super::counts::RecordedCounts;
use super::described::describe;
use super::{fetching, unmatched, what_if};
use crate::profile::Profile;
use crate::query::{Query, Warning};
use crate::samples::Session;

/// Returns the profile of an input.
pub(super) fn profile(
    query: &Query,
    session: &Session<'_>,
    names: NameSources<'_>,
) -> anyhow::Result<Profile> {
    check(query, session)?;
    let not_fetched = fetching::fetch(query, session, names.resolver)?;
    let mut profile = Profile::of_events(profile_events(session, query.mode));
    let dropped = histogram(&mut profile, query, session, names, Purpose::Rows)?;
    if let Some(path) = profile.paths.last_mut() {
        path.what_if = what_if::answers(query, session, names.resolver)?;
    }
    if query.inspection.is_none() {
        let recorded = unmatched::RecordedSamples {
            session,
            resolver: names.resolver,
            symbol_sources: &query.symbol_sources,
            mode: query.mode,
        };
        profile.filter_values =
            unmatched::filter_values(&query.filters, profile.is_without_rows(), recorded)?;
    }
    if let Some(counts) = RecordedCounts::of(session).filter(|_| query.mode.event().is_none()) {
        for (event, count) in counts.totals().into_iter().enumerate() {
            profile.add_count(event, count);
        }
        profile.thread_counts = counts.threads();
        profile.warnings.extend(counts.warnings);
    }
    if query.threads && profile.thread_counts.is_empty() {
        profile.warnings.push(no_thread_counts(session));
    }
    describe(&mut profile, query, session, not_fetched, dropped);
    Ok(profile)
}

/// Returns the reason why there are no counts of threads.
fn no_thread_counts(session: &Session<'_>) -> Warning {
    let mut entries = session.file.attrs.entries().iter();
    let message = match entries.any(|entry| entry.attr.flags.contains(AttrFlags::INHERIT_STAT)) {
        true => {
            "no counts of threads were recorded: the kernel writes them where a program with \
             several threads or processes is recorded; of one alone, see rec stat"
        }
        false => "no counts of threads were recorded; record with -s",
    };
    Warning::new("no-thread-counts", message)
}
