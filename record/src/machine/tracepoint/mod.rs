//! Tracepoints: which there are, and what the file says of those that are recorded.
//!
//! ```text
//!  tracefs/events/sched/sched_switch/id       372: perf_event_attr.config
//!  tracefs/events/sched/sched_switch/format   the fields of a sample's raw bytes ──▶ the feature TRACING_DATA   data
//! ```
//!
//! tracefs is found where it is mounted; rec mounts nothing itself.

mod data;
mod tracefs;

use std::path::Path;

use crate::messages::error::{Error, Result};

pub use tracefs::{Field, Tracefs, Unreadable};

/// What to say where there is none.
pub const NOT_MOUNTED: &str = "tracepoints are told by tracefs, which is not mounted; as root: \
                               mount -t tracefs nodev /sys/kernel/tracing";

/// The contents of the feature TRACING_DATA for tracepoints with these names; none where there are none.
///
/// # Errors
/// Formats that cannot be read.
pub fn formats(names: &[&str], tracefs: Option<&Path>, page_size: usize) -> Result<Option<Vec<u8>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let tracefs = tracefs.map(|root| Tracefs::at(root.to_owned())).ok_or_else(|| {
        Error::Failed("tracefs is not mounted any more: the formats of tracepoints cannot be read".to_owned())
    })?;
    data::tracing_data(&tracefs, names.iter().copied(), page_size).map(Some).map_err(Error::Failed)
}
