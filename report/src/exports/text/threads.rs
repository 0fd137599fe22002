//! `-T`: what the counters of each thread counted until its exit, as perf report prints it.

use std::io::{self, Write};

use crate::profile::Profile;
use crate::profile::counts::ThreadCounts;
use crate::terminal::escape::escape;

pub(super) fn print(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let events = profile.events().iter().enumerate();
    let events: Vec<_> = events.filter(|(_, event)| event.count.is_some()).collect();
    let value_of = |thread: &ThreadCounts, event: usize| {
        let values = thread.values.iter();
        values.filter(|(of, _)| *of == event).map(|(_, value)| *value).fold(0, u64::saturating_add)
    };
    let column = |(place, name): (usize, String)| {
        let values = profile.thread_counts.iter().map(|thread| value_of(thread, place));
        let widest = values.map(|value| value.to_string().len()).max().unwrap_or(0);
        (place, widest.max(name.chars().count()), name)
    };
    let named = events.iter().map(|(place, event)| (*place, escape(&event.name).into_owned()));
    let columns: Vec<(usize, usize, String)> = named.map(column).collect();
    write!(out, "# {:>5}  {:>5}", "PID", "TID")?;
    for (_, width, name) in &columns {
        write!(out, "  {name:>width$}")?;
    }
    writeln!(out)?;
    for thread in &profile.thread_counts {
        write!(out, "{:>7}  {:>5}", thread.pid, thread.tid)?;
        for (place, width, _) in &columns {
            write!(out, "  {:>width$}", value_of(thread, *place))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}
