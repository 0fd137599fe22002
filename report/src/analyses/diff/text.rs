//! The comparison as text: the verdict, what changed, then what is large and did not.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use recrep_console::units::grouped;

use super::answer::{ComparedEvent, DiffAnswer};
use super::numbers::{change_cell, counted, length, percent, share, signed};
use super::words::{self, Headline};
use crate::compare::{Normalization, RowChange, Verdict};
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
    let Headline { total, word, text, notes } = Headline::of(event, &answer.asked.options);
    if let Some(total) = total {
        writeln!(out, "{total}")?;
    }
    let style = match comparison.verdict {
        Verdict::Changed => AnsiColor::Red,
        Verdict::Same => AnsiColor::Green,
        Verdict::TooFewSamples => AnsiColor::Yellow,
    };
    let word = painted(word, style.on_default().bold(), screen);
    writeln!(out, "{word}  {}", escape(&text))?;
    for note in &notes {
        writeln!(out, "{}", escape(note))?;
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
            format!("{name}: {}, {} samples", counted(runs.len(), "run"), grouped(total.samples));
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

/// A table of rows: those that changed, or those that did not.
struct TextTable {
    heads: Vec<String>,
    lines: Vec<TextLine>,
}

/// Cells of a row before its names.
struct TextLine {
    numbers: Vec<String>,
    names: String,
    style: Option<AnsiColor>,
}

/// Columns that only some comparisons have.
#[derive(Clone, Copy)]
struct TextColumns {
    has_time: bool,
    has_beyond: bool,
    /// The least change that would have been seen.
    has_least: bool,
}

fn rows(
    event: &ComparedEvent,
    answer: &DiffAnswer<'_>,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (comparison, options) = (&event.comparison, &answer.asked.options);
    let limit = answer.asked.limit;
    let listed = event.listed();
    let marked = listed.iter().copied().filter(|row| row.marked);
    let marked: Vec<&RowChange> = marked.take(limit.unwrap_or(usize::MAX)).collect();
    let most = limit.map_or(UNMARKED, |limit| limit.saturating_sub(marked.len()));
    let others = listed.into_iter().filter(|row| words::is_listed(row, comparison, options));
    let others: Vec<&RowChange> = others.take(most).collect();
    let columns = TextColumns {
        has_time: event.counts_time,
        has_beyond: comparison.mode == Normalization::Absolute && comparison.common.low.is_some(),
        has_least: false,
    };
    if !marked.is_empty() {
        TextTable::of(event, answer, &marked, columns).print(event.noun, screen, out)?;
    }
    if others.is_empty() {
        return Ok(());
    }
    let what = match comparison.has_enough_runs() {
        true => {
            "not marked, 5 % or more of the time (seen from: the least change that would have been seen)"
        }
        false => "too few runs to judge: intervals assume how much runs differ",
    };
    writeln!(out, "{}", cut(what, screen))?;
    let columns = TextColumns { has_least: comparison.has_enough_runs(), ..columns };
    let table = TextTable::of(event, answer, &others, columns);
    let lines = table.lines.into_iter().map(|line| TextLine { style: None, ..line }).collect();
    TextTable { lines, ..table }.print(event.noun, screen, out)
}

impl TextTable {
    fn of(
        event: &ComparedEvent,
        answer: &DiffAnswer<'_>,
        rows: &[&RowChange],
        columns: TextColumns,
    ) -> Self {
        let level = percent(1.0 - answer.asked.options.level);
        let heads = [
            (true, "impact".to_owned()),
            (columns.has_time, "a run".into()),
            (true, "change".into()),
            (true, format!("{level} interval")),
            (true, "base→new".into()),
            (columns.has_beyond, "beyond".into()),
            (columns.has_least, "seen from".into()),
        ];
        let heads = heads.into_iter().filter_map(|(is_shown, head)| is_shown.then_some(head));
        let lines = rows.iter().map(|row| line(event, answer, row, columns)).collect();
        Self { heads: heads.collect(), lines }
    }

    fn print(&self, noun: &str, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.heads.len()).map(|place| self.width(place)).collect();
        let heads = format!("{}   {noun}", aligned(&self.heads, &widths));
        writeln!(out, "{}", cut(&heads, screen))?;
        for line in &self.lines {
            let text = format!("{}   {}", aligned(&line.numbers, &widths), line.names);
            let text = cut(&text, screen);
            match line.style {
                Some(style) => writeln!(out, "{}", painted(&text, style.on_default(), screen))?,
                None => writeln!(out, "{text}")?,
            }
        }
        Ok(())
    }

    fn width(&self, place: usize) -> usize {
        let cells = self.lines.iter().filter_map(|line| line.numbers.get(place));
        cells.chain(self.heads.get(place)).map(|cell| columns(cell)).max().unwrap_or(0)
    }
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
fn cut(text: &str, screen: Screen) -> String {
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
    columns: TextColumns,
) -> TextLine {
    let beyond = row.beyond.map_or_else(String::new, change_cell);
    let cells = [
        (true, format!("{} %", signed(row.impact, 2))),
        (columns.has_time, a_run(event, answer, row.impact)),
        (true, words::relative(row)),
        (true, words::row_interval(row)),
        (true, format!("{:.1} → {}", row.base_share * 100.0, share(row.new_share))),
        (columns.has_beyond, beyond),
        (columns.has_least, percent(row.resolution)),
    ];
    let numbers = cells.into_iter().filter_map(|(is_shown, cell)| is_shown.then_some(cell));
    let labels = event.labels.rows.get(row.row);
    let texts = labels.into_iter().flat_map(|labels| labels.in_order(event.keys));
    let mut names = texts.map(|cell| escape(cell)).collect::<Vec<_>>().join("   ");
    names.push_str(&escape(&words::cause(event, row)));
    let style = if row.log > 0.0 { AnsiColor::Red } else { AnsiColor::Green };
    TextLine { numbers: numbers.collect(), names, style: Some(style) }
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
