//! Comment lines above tables: recording conditions, losses, totals. Below them: problems that make
//! the result less reliable, and remedies.

use std::io::{self, Write};
use std::time::SystemTime;

use recrep_console::units;

use crate::count::metrics::share;
use crate::profile::critical_path::WhatIfAnswer;
use crate::profile::recording::When;
use crate::profile::{InputSummary, Profile};
use crate::query::{Number, Query};
use crate::table::EventTable;
use crate::terminal::escape::escape;
use crate::terminal::style::Screen;
use crate::terminal::when::{ago, date};

/// Maximum number of files that are described one by one.
const MAX_DESCRIBED: usize = 4;

/// Prints the heading above all tables.
pub(super) fn print(profile: &Profile, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "#")?;
    let chosen =
        profile.inputs.iter().filter_map(|input| Some((&input.path, input.recording.when?)));
    for (path, when) in chosen {
        writeln!(out, "# {}, {}", escape(path), time_of(when, screen))?;
    }
    match profile.inputs.as_slice() {
        [input] => print_recording(input, "", out)?,
        inputs if inputs.len() <= MAX_DESCRIBED => {
            inputs.iter().try_for_each(|input| {
                print_recording(input, &format!("{}: ", escape(&input.path)), out)
            })?;
        }
        inputs => writeln!(out, "# Recorded: {} files", inputs.len())?,
    }
    for path in &profile.paths {
        writeln!(out, "# {}", escape(&path.described()))?;
        for answer in &path.what_if {
            writeln!(out, "# {}", what_if(answer))?;
        }
    }
    let lost_events = sum(profile, |input| input.lost_events);
    let filtered_samples = sum(profile, |input| input.filtered_samples);
    writeln!(out, "# Total Lost Samples: {}", sum(profile, |input| input.lost_samples))?;
    if filtered_samples > 0 {
        writeln!(out, "# Total Filtered Samples: {filtered_samples}")?;
    }
    if lost_events > 0 {
        writeln!(out, "# Total Lost Events: {lost_events}")?;
    }
    writeln!(out, "#")
}

/// Returns when a file was recorded or written; on a terminal also how long ago.
fn time_of(When { time, is_recorded }: When, screen: Screen) -> String {
    let what = if is_recorded { "recorded" } else { "written" };
    let date = date(time).unwrap_or_else(|| "at an unknown time".into());
    match screen.width {
        Some(_) => format!("{what} {} ({date})", ago(time, SystemTime::now())),
        None => format!("{what} {date}"),
    }
}

fn sum(profile: &Profile, of: fn(&InputSummary) -> u64) -> u64 {
    profile.inputs.iter().map(of).fold(0, u64::saturating_add)
}

fn print_recording(input: &InputSummary, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let recording = &input.recording;
    if let Some(command) = &recording.command {
        writeln!(out, "# {name}Recorded: {}", escape(command))?;
    }
    let length = recording.duration.map(length);
    let machine: Vec<String> =
        recording.machine.iter().map(|word| escape(word).into_owned()).chain(length).collect();
    if !machine.is_empty() {
        writeln!(out, "# {name}On: {}", machine.join(", "))?;
    }
    Ok(())
}

/// Prints the heading above the table of an event.
pub(super) fn event(table: &EventTable<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Samples: {} of event '{}'", table.total.samples, escape(table.name))?;
    writeln!(out, "# Event count (approx.): {}", count(table.total.period, table.counts_time))?;
    if table.lost_samples > 0 {
        writeln!(out, "# Lost samples: {}", table.lost_samples)?;
    }
    if table.filtered_samples > 0 {
        writeln!(out, "# Filtered samples: {}", table.filtered_samples)?;
    }
    writeln!(out, "#")
}

/// Says how much shorter a run would be.
fn what_if(answer: &WhatIfAnswer) -> String {
    let WhatIfAnswer { name, part, on_path, saved, first_order, length } = answer;
    let limit = match answer.is_limited() {
        true => format!("; {} if no other path became the longest", units::time(*first_order)),
        false => String::new(),
    };
    let percent = part * 100.0;
    let digits = if percent.fract() == 0.0 { 0 } else { 1 };
    format!(
        "If {} ({} on the path) were {percent:.digits$} % faster: {} ({:.0} %) shorter{limit}",
        escape(name),
        units::time(*on_path),
        units::time(*saved),
        share(*saved, *length)
    )
}

/// Formats a sum of periods.
pub(super) fn count(period: u64, is_time: bool) -> String {
    if is_time { units::time(period) } else { period.to_string() }
}

/// Returns the texts of the query's numbers, right-aligned in their columns.
pub(super) fn numbers(query: &Query, text: impl Fn(Number) -> String) -> String {
    let cells = query.numbers().map(|number| format!("{:>1$}", text(number), number.width()));
    cells.collect::<Vec<_>>().join("  ")
}

/// Prints one line per problem below all tables.
pub(super) fn advice(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let lost = sum(profile, |input| input.lost_samples);
    let throttled = sum(profile, |input| input.recording.throttled);
    let taken = profile.samples();
    let mut all = Vec::new();
    if lost > 0 {
        let percent = share(lost, lost.saturating_add(taken));
        all.push(format!("{percent:.1}% of the samples were lost: larger rings (-m) or a lower rate (-F) lose fewer"));
    }
    if throttled > 0 {
        let times = if throttled == 1 { "once" } else { &*format!("{throttled} times") };
        all.push(format!("The kernel throttled sampling {times}; lower the rate (-F)."));
    }
    if profile.events.iter().any(|event| event.is_of_waits && event.total.samples > 0) {
        let runs = profile.events.iter().any(|event| !event.is_of_waits && event.total.samples > 0);
        let none = if runs { "" } else { "No thread was sampled on a CPU. " };
        all.push(format!(
            "{none}Where threads waited, and how long: rep --off-cpu; both: rep --wall"
        ));
    }
    let cut = profile.inputs.iter().filter(|input| !input.complete);
    all.extend(cut.map(|input| {
        format!("{} is truncated; the report covers the part before the end", input.path)
    }));
    all.extend(profile.chain_ends.warnings().into_iter().map(|warning| warning.message));
    all.extend(profile.module_uses.footer());
    all.iter().try_for_each(|line| writeln!(out, "# {}", escape(line)))
}

/// Formats a duration in seconds, or in milliseconds if it is less than one second.
fn length(nanoseconds: u64) -> String {
    match nanoseconds {
        short if short < 1_000_000_000 => {
            format!("{}.{} ms", short / 1_000_000, short / 100_000 % 10)
        }
        long => format!("{}.{:03} s", long / 1_000_000_000, long / 1_000_000 % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn lengths_are_in_seconds_or_milliseconds() {
        assert_eq!(
            [length(1_501_999_999), length(449_999), length(999_999_999)],
            ["1.501 s", "0.4 ms", "999.9 ms"]
        );
    }
}
