//! Answers a query; again, if an input changed meanwhile.

use super::gather::gather_rows;
use crate::input::several::retry_if_changed;
use crate::profile::Profile;
use crate::query::{ChainOptions, Inspection, Query};

/// Answers the query, by `trace` if no columns were named and the first input has only tracepoints;
/// returns the query that was answered, too.
///
/// # Errors
/// Returns an error if no input can be read, or if an input lacks data that the query asks for.
pub fn answer(query: &Query) -> anyhow::Result<(Profile, Query)> {
    retry_if_changed(&query.sources, || {
        if query.inspection == Some(Inspection::Stats) {
            // Only records and samples are counted: no columns, no callchains.
            let chains = ChainOptions::default();
            let counted =
                Query { columns: Vec::new(), chains, has_default_columns: false, ..query.clone() };
            return Ok((gather_rows(&counted)?.0, query.clone()));
        }
        gather_rows(query)
    })
}
