//! `--stats`: number of records by type.

use std::io::{self, Write};

use crate::count::metrics::share;
use crate::profile::Profile;
use crate::query::Query;
use crate::table;

use crate::terminal::escape::escape;

/// Prints the record counts of each input, then the sample counts of each event.
pub(super) fn print(profile: &Profile, query: &Query, out: &mut dyn Write) -> io::Result<()> {
    for input in &profile.inputs {
        let total: u64 = input.records.values().sum();
        writeln!(out, "\n{} stats:", escape(&input.path))?;
        writeln!(out, "{:>16} events: {total:>10}", "TOTAL")?;
        for (kind, count) in &input.records {
            writeln!(out, "{kind:>16} events: {count:>10}  ({:4.1}%)", share(*count, total))?;
        }
    }
    for table in table::tables(profile, query) {
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
