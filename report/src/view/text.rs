//! A table for people, in the reading order of `perf report --stdio`.
//!
//! ```text
//!   # Samples: 13 of event 'cycles:u'
//!   # Event count (approx.): 140126
//!   #
//!   # Overhead  Command  Shared Object     Symbol
//!   # ........  .......  ................  ..........
//!   #
//!       14.29%  ls       libc.so.6         [.] strlen
//! ```

use std::borrow::Cow;
use std::io::{self, Write};

use rayon::prelude::*;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::calls::Wanted;
use crate::fields::Shown;
use crate::graph::Shape;
use crate::profile::{EventTable, Profile, Row};
use crate::query::Query;
use crate::sort_key::SortKey;

use super::escape::escape;
use super::screen::Screen;
use super::tree::Drawing;
use super::{group, hierarchy};

/// Prints all tables.
pub(super) fn print(profile: &Profile, query: &Query, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    let lost_samples: u64 = profile.inputs.iter().map(|i| i.lost_samples).sum();
    let lost_events: u64 = profile.inputs.iter().map(|i| i.lost_events).sum();
    writeln!(out, "#")?;
    writeln!(out, "# Total Lost Samples: {lost_samples}")?;
    if lost_events > 0 {
        writeln!(out, "# Total Lost Events: {lost_events}")?;
    }
    writeln!(out, "#")?;
    let mut tables = profile.tables(query);
    tables.retain(|table| table.total.samples > 0);
    if query.group && !tables.is_empty() {
        return group::print(&tables, query, out);
    }
    for table in &tables {
        let samples = table.total.samples;
        writeln!(out, "# Samples: {samples} of event '{}'", escape(table.name))?;
        writeln!(out, "# Event count (approx.): {}", table.total.period)?;
        if table.lost_samples > 0 {
            writeln!(out, "# Lost samples: {}", table.lost_samples)?;
        }
        writeln!(out, "#")?;
        match &query.separator {
            Some(separator) => separated(profile, table, query, separator, out)?,
            None if query.hierarchy => hierarchy::print(table, query, out)?,
            None => aligned(profile, table, query, screen, out)?,
        }
        writeln!(out, "\n")?;
    }
    if let Some(footer) = profile.module_uses.footer() {
        writeln!(out, "# {}", escape(&footer))?;
    }
    Ok(())
}

/// A column of the table: its heading, how wide it is at least, and whether it is a number.
struct Head {
    heading: &'static str,
    least: usize,
    is_number: bool,
}

fn heads(query: &Query) -> Vec<Head> {
    let head = |shown: &Shown| match shown {
        Shown::Number(number) => Head { heading: query.heading(*number), least: number.width(), is_number: true },
        Shown::Key(place) => {
            let heading = query.columns.get(*place).map_or("", |column| column.key.heading());
            Head { heading, least: heading.width(), is_number: false }
        }
    };
    query.shown.iter().map(head).collect()
}

/// The text of a row's columns.
fn cells<'r>(row: &'r Row<'_>, total: u64, query: &Query) -> Vec<Cow<'r, str>> {
    let cell = |shown: &Shown| match shown {
        Shown::Number(number) => row.gathered.value(*number, total).to_string().into(),
        Shown::Key(place) => {
            let text = row.columns.get(*place).map_or("".into(), |text| escape(text));
            // perf right-aligns the number before the colon.
            let is_thread = query.columns.get(*place).is_some_and(|c| matches!(c.key, SortKey::Pid | SortKey::Tid));
            match text.split_once(':') {
                Some((tid, comm)) if is_thread => format!("{tid:>7}:{comm}").into(),
                _ => text,
            }
        }
    };
    query.shown.iter().map(cell).collect()
}

fn aligned(
    profile: &Profile,
    table: &EventTable<'_>,
    query: &Query,
    screen: Screen,
    out: &mut impl Write,
) -> io::Result<()> {
    let trees = trees(profile, table, query);
    let heads = heads(query);
    let headings: Vec<&str> = heads.iter().map(|head| head.heading).collect();
    let least: Vec<usize> = heads.iter().map(|head| head.least).collect();
    let rows: Vec<Vec<Cow<'_, str>>> = table.rows.par_iter().map(|row| cells(row, table.total.period, query)).collect();
    let widest = |a: Vec<usize>, b: Vec<usize>| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect();
    let widths = |row: &Vec<Cow<'_, str>>| row.iter().map(|cell| cell.width()).collect();
    let widths: Vec<usize> = rows.par_iter().map(widths).reduce(|| least.clone(), widest);
    let table = Aligned { widths: &widths, heads: &heads, screen };
    let mut head = String::new();
    table.line("# ", &headings, &mut head);
    let last = widths.len().saturating_sub(1);
    let rule =
        |(place, width): (usize, &usize)| ".".repeat(if place == last { (*width).min(LONGEST_RULE) } else { *width });
    let dots: Vec<String> = widths.iter().enumerate().map(rule).collect();
    table.line("# ", &dots, &mut head);
    writeln!(out, "{head}#")?;
    let part = |(number, rows): (usize, &[Vec<Cow<'_, str>>])| {
        let mut lines = String::new();
        for (place, row) in rows.iter().enumerate() {
            table.line("  ", row, &mut lines);
            lines.push_str(trees.get(number * PART + place).map_or("", String::as_str));
        }
        lines
    };
    let parts: Vec<String> = rows.par_chunks(PART).enumerate().map(part).collect();
    parts.iter().try_for_each(|lines| out.write_all(lines.as_bytes()))
}

/// Under the last heading: one long name need not make a line of thousands of dots.
const LONGEST_RULE: usize = 60;

/// How many lines a core makes at a time.
const PART: usize = 4096;

struct Aligned<'t> {
    widths: &'t [usize],
    /// Numbers are right-aligned.
    heads: &'t [Head],
    screen: Screen,
}

impl Aligned<'_> {
    fn line(&self, margin: &str, cells: &[impl AsRef<str>], lines: &mut String) {
        let start = lines.len();
        lines.push_str(margin);
        for (place, (cell, width)) in cells.iter().zip(self.widths).enumerate() {
            let cell = cell.as_ref();
            let pad = width.saturating_sub(cell.width());
            let is_number = self.heads.get(place).is_some_and(|head| head.is_number);
            let (before, after) = if is_number { (pad, 0) } else { (0, pad) };
            lines.extend(std::iter::repeat_n(' ', if place > 0 { 2 } else { 0 } + before));
            lines.push_str(cell);
            // What comes last may be ten thousand characters wide in one row; the others need not follow.
            let is_last = place + 1 == cells.len();
            lines.extend(std::iter::repeat_n(' ', if is_last { 0 } else { after }));
        }
        if let (Some(width), Some(line)) = (self.screen.width, lines.get(start..)) {
            let fits = cut(line, width).len();
            lines.truncate(start + fits);
        }
        lines.push('\n');
    }
}

/// The beginning of a line that fits in `width` columns.
fn cut(line: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return line.get(..at).unwrap_or(line);
        }
    }
    line
}

fn separated(
    profile: &Profile,
    table: &EventTable<'_>,
    query: &Query,
    separator: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let trees = trees(profile, table, query);
    let headings: Vec<&str> = heads(query).iter().map(|head| head.heading.trim()).collect();
    writeln!(out, "# {}", headings.join(separator))?;
    for (place, row) in table.rows.iter().enumerate() {
        let cells: Vec<String> =
            cells(row, table.total.period, query).iter().map(|c| c.trim().replace(separator, ".")).collect();
        writeln!(out, "{}", cells.join(separator))?;
        write!(out, "{}", trees.get(place).map_or("", String::as_str))?;
    }
    Ok(())
}

/// The trees below the rows, from the first on; rows without one may be missing at the end.
fn trees(profile: &Profile, table: &EventTable<'_>, query: &Query) -> Vec<String> {
    let Some(graph) = query.chains.graph.filter(|_| !profile.calls.is_empty()) else { return Vec::new() };
    let total = table.total.period;
    let fractal = graph.shape == Shape::Fractal;
    let least = if fractal { 0 } else { graph.least(total) };
    let weight = |row: &Row<'_>| row.children.map_or(row.count.period, |(count, _)| count.period);
    // Rows go by their weight, and a tree has no part that is larger than its row.
    let rows: &[Row<'_>] = table.rows.get(..table.rows.partition_point(|row| weight(row) >= least)).unwrap_or_default();
    let places: Vec<_> = rows.iter().map(|row| (table.place, row.place)).collect();
    let wanted = Wanted { least, share: if fractal { graph.percent / 100.0 } else { 0.0 } };
    let trees = profile.calls.trees(&places, profile.children, wanted, query.chains.from_caller());
    let skip_first = query.columns.first().is_some_and(|column| column.typed.starts_with("sym"));
    let drawing = Drawing { calls: &profile.calls, graph: &graph, total, skip_first };
    let draw = |(nodes, row): (&Vec<_>, &Row<'_>)| {
        let mut text = String::new();
        drawing.draw(nodes, weight(row), &mut text);
        text
    };
    trees.par_iter().zip(rows).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_terminal_ends() {
        assert_eq!(cut("abcdef", 4), "abcd");
        assert_eq!(cut("日本語", 5), "日本");
        assert_eq!(cut("abc", 4), "abc");
    }
}
