//! The comparison as text: the verdict, what changed, then what is large and did not.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use recrep_console::units::grouped;

use super::answer::{ComparedEvent, DiffAnswer};
use super::numbers::{counted, interval, length, percent, share, signed};
use super::words;
use crate::compare::{Normalization, RowChange, Status, Verdict};
use crate::terminal::escape::{columns, escape};
use crate::terminal::style::Screen;

/// Most rows that are printed though none is marked, unless a limit is asked for.
const UNMARKED: usize = 20;

pub(super) fn print(
    answer: &DiffAnswer<'_>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (number, event) in answer.events.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        self::event(event, answer, screen, out)?;
    }
    Ok(())
}

fn event(
    event: &ComparedEvent,
    answer: &DiffAnswer<'_>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let comparison = &event.comparison;
    writeln!(out, "{}", heading(event, answer))?;
    let style = match comparison.verdict {
        Verdict::Changed => AnsiColor::Red,
        Verdict::Same => AnsiColor::Green,
        Verdict::TooFewSamples => AnsiColor::Yellow,
    };
    let word = words::verdict(comparison.verdict);
    let word = painted(word, style.on_default().bold(), screen);
    let sentence = words::sentence(event, answer);
    writeln!(out, "{word}  {} {}", escape(&sentence), words::mode(comparison))?;
    if let Some(order) = words::order(comparison) {
        writeln!(out, "{order}")?;
    }
    if words::tells_loop(comparison) {
        writeln!(out, "To record in turn:\n{}", words::LOOP)?;
    }
    rows(event, answer, screen, out)
}

/// Returns the line above: runs and samples of the sides, their order, the event.
fn heading(event: &ComparedEvent, answer: &DiffAnswer<'_>) -> String {
    let mut parts = Vec::new();
    for ((name, runs), total) in ["base", "new"].iter().zip(&answer.runs).zip(&event.totals) {
        let mut part =
            format!("{name} {}, {} samples", counted(runs.len(), "run"), grouped(total.samples));
        if event.counts_time {
            part.push_str(&format!(" ({})", seconds(total.period)));
        }
        parts.push(part);
    }
    parts.push(words::recorded(&event.comparison));
    let unit = if event.by_samples { "samples" } else { "periods" };
    parts.push(format!("event {}, {unit}", escape(&event.name)));
    parts.join("   ")
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn seconds(nanoseconds: u64) -> String {
    length(nanoseconds as f64 / 1e9)
}

fn painted(text: &str, style: Style, screen: Screen) -> String {
    match screen.colour {
        true => format!("{}{text}{}", style.render(), style.render_reset()),
        false => text.to_owned(),
    }
}

/// Cells of a row before its names.
struct TextLine {
    numbers: Vec<String>,
    names: String,
    style: Option<AnsiColor>,
}

fn rows(
    event: &ComparedEvent,
    answer: &DiffAnswer<'_>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let comparison = &event.comparison;
    let limit = answer.asked.limit;
    let listed = event.listed();
    let marked: Vec<&RowChange> = listed.iter().copied().filter(|row| row.marked).collect();
    let marked = marked.get(..marked.len().min(limit.unwrap_or(usize::MAX))).unwrap_or(&marked);
    let others = listed.into_iter().filter(|row| words::is_listed(row, comparison));
    let most = limit.map_or(UNMARKED, |limit| limit.saturating_sub(marked.len()));
    let others: Vec<&RowChange> = others.take(most).collect();
    let level = percent(1.0 - answer.asked.options.level);
    let mut heads = vec!["impact".to_owned()];
    let has_time = event.counts_time;
    heads.extend(has_time.then(|| "a run".to_owned()));
    heads.extend(["change".into(), format!("{level} interval"), "base".into(), "new".into()]);
    let has_beyond = comparison.mode == Normalization::Absolute && comparison.common.low.is_some();
    heads.extend(has_beyond.then(|| "beyond".to_owned()));
    let lines: Vec<TextLine> =
        marked.iter().chain(&others).map(|row| line(event, answer, row, has_beyond)).collect();
    let widths: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(place, head)| {
            let cells = lines.iter().filter_map(|line| line.numbers.get(place));
            cells.chain([head]).map(|cell| columns(cell)).max().unwrap_or(0)
        })
        .collect();
    let mut put = |text: &str, style: Option<AnsiColor>| {
        let text = within(text, screen);
        match style {
            Some(style) => writeln!(out, "{}", painted(&text, style.on_default(), screen)),
            None => writeln!(out, "{text}"),
        }
    };
    let (of_marked, of_others) = lines.split_at(marked.len().min(lines.len()));
    if !of_marked.is_empty() {
        put(&format!("{}   {}", aligned(&heads, &widths), event.noun), None)?;
    }
    for line in of_marked {
        put(&format!("{}   {}", aligned(&line.numbers, &widths), line.names), line.style)?;
    }
    if of_others.is_empty() {
        return Ok(());
    }
    let what = match comparison.has_enough_runs() {
        true => "not marked, 5 % or more of the time",
        false => "not judged, by impact; intervals assume how much runs differ",
    };
    put(&format!("{what}; last column: a change that would have been seen"), None)?;
    if of_marked.is_empty() {
        put(&format!("{}   {}", aligned(&heads, &widths), event.noun), None)?;
    }
    for (line, row) in of_others.iter().zip(&others) {
        let seen = percent(row.resolution);
        put(&format!("{}   {}   {seen}", aligned(&line.numbers, &widths), line.names), None)?;
    }
    Ok(())
}

/// Returns cells right-aligned in columns of these widths.
fn aligned(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| {
        let padding = width.saturating_sub(columns(cell));
        format!("  {}{cell}", " ".repeat(padding))
    });
    cells.collect()
}

/// Returns a line as wide as the terminal, if it is one.
fn within(text: &str, screen: Screen) -> String {
    let Some(width) = screen.width else { return text.to_owned() };
    let mut shown = String::new();
    for next in text.chars() {
        shown.push(next);
        if columns(&shown) > width {
            shown.pop();
            break;
        }
    }
    shown
}

fn line(
    event: &ComparedEvent,
    answer: &DiffAnswer<'_>,
    row: &RowChange,
    has_beyond: bool,
) -> TextLine {
    let change = row.change;
    let mut numbers = vec![format!("{} %", signed(row.impact, 2))];
    if event.counts_time {
        numbers.push(a_run(event, answer, row.impact));
    }
    numbers.push(words::relative(row));
    numbers.push(interval(change.low, change.high));
    numbers.extend([row.base_share, row.new_share].map(share));
    if has_beyond {
        numbers.push(row.beyond.map_or_else(String::new, |part| format!("{} %", signed(part, 1))));
    }
    let names = event.rows.get(row.row).map_or_else(String::new, |texts| {
        let cells = texts.in_order(event.keys).map(|cell| escape(cell).into_owned());
        let mut names = cells.collect::<Vec<String>>().join("   ");
        if row.status == Status::Renamed {
            names.push_str(&format!("   was {}", escape(texts.names.first().map_or("", |n| n))));
        }
        names.push_str(&escape(&words::cause(event, row.row)));
        names
    });
    let style = if row.log > 0.0 { AnsiColor::Red } else { AnsiColor::Green };
    TextLine { numbers, names, style: Some(style) }
}

/// Returns an impact as time of a run of the base side.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn a_run(event: &ComparedEvent, answer: &DiffAnswer<'_>, impact: f64) -> String {
    let [total, _] = event.totals;
    let [base, _] = &answer.runs;
    let seconds = impact * total.period as f64 / base.len().max(1) as f64 / 1e9;
    let sign = if seconds < 0.0 { "−" } else { "+" };
    match seconds.abs() {
        short if short < 1.0 => format!("{sign}{:.1} ms", short * 1e3),
        long => format!("{sign}{long:.2} s"),
    }
}
