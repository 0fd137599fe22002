//! Tracepoints of the machine, and the formats of the recorded ones for the file.
//!
//! ```text
//!  tracefs/events/sched/sched_switch/id       372: perf_event_attr.config
//!  tracefs/events/sched/sched_switch/format   the fields of a sample's raw bytes ──▶ the feature TRACING_DATA   data
//! ```
//!
//! rec uses a mounted tracefs, and does not mount it.

mod data;
mod tracefs;

use std::path::Path;

use crate::messages::error::{Error, Result};

pub(crate) use tracefs::{Tracefs, Unreadable};

pub(crate) const NOT_MOUNTED: &str = "tracepoints require tracefs, which is not mounted; as root: \
                               mount -t tracefs nodev /sys/kernel/tracing";

/// Returns the contents of the feature TRACING_DATA for the named tracepoints; `None` without
/// tracepoints.
pub(crate) fn formats(
    names: &[&str],
    tracefs: Option<&Path>,
    page_size: usize,
) -> Result<Option<Vec<u8>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let tracefs = tracefs.map(|root| Tracefs::at(root.to_owned())).ok_or_else(|| {
        Error::Failed(
            "cannot read the formats of tracepoints: tracefs has been unmounted; mount it again"
                .to_owned(),
        )
    })?;
    data::tracing_data(&tracefs, names.iter().copied(), page_size).map(Some).map_err(Error::Failed)
}
