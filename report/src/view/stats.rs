//! `--stats`: number of records by type.

use std::io::{self, Write};

use crate::query::Query;
use crate::table::profile::Profile;

use crate::terminal::escape::escape;

/// Prints the record counts of each input, then the sample counts of each event.
#[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(super) fn print(profile: &Profile, query: &Query, out: &mut impl Write) -> io::Result<()> {
    for input in &profile.inputs {
        let total: u64 = input.records.values().sum();
        writeln!(out, "\n{} stats:", escape(&input.path))?;
        writeln!(out, "{:>16} events: {total:>10}", "TOTAL")?;
        for (kind, count) in &input.records {
            let share = *count as f64 * 100.0 / total as f64;
            writeln!(out, "{kind:>16} events: {count:>10}  ({share:4.1}%)")?;
        }
    }
    for table in profile.tables(query) {
        writeln!(out, "{} stats:", escape(table.name))?;
        writeln!(out, "{:>16} events: {:>10}", "SAMPLE", table.total.samples)?;
        if table.lost_samples > 0 {
            writeln!(out, "{:>16} events: {:>10}", "LOST_SAMPLES", table.lost_samples)?;
        }
        if table.filtered_samples > 0 {
            writeln!(out, "{:>16} events: {:>10}", "LOST_SAMPLES (BPF)", table.filtered_samples)?;
        }
    }
    Ok(())
}
