//! Tables that are not one row after the other: `--group` (a column per event) and `--hierarchy` (a
//! level per sort key).

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::heading::{count, numbers};
use super::tree::{Trees, trees};
use crate::profile::Profile;
use crate::query::Query;
use crate::table::EventTable;
use crate::table::group::{self, GroupRow};
use crate::table::hierarchy::{Level, levels};
use crate::terminal::escape::{cut, escape};
use crate::terminal::style::Screen;

pub(super) fn group(
    tables: &[EventTable<'_>],
    query: &Query,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names: Vec<_> = tables.iter().map(|table| escape(table.name)).collect();
    let samples: u64 = tables.iter().map(|table| table.total.samples).sum();
    let period = tables.iter().fold(0u64, |sum, table| sum.wrapping_add(table.total.period));
    if !query.style.quiet {
        writeln!(out, "# Samples: {samples} of events '{}'", names.join(", "))?;
        let are_times = tables.iter().all(|table| table.counts_time);
        writeln!(out, "# Event count (approx.): {}\n#", count(period, are_times))?;
        let keys: Vec<&str> = query.columns.iter().map(|column| column.heading().trim()).collect();
        // One heading spans the numbers of all events.
        let heads = numbers(query, |number| {
            let width = (number.width() + 1) * tables.len() - 1;
            format!("{:>width$}", query.heading(number))
        });
        writeln!(out, "# {heads}  {}\n#", keys.join("  "))?;
    }
    for GroupRow { texts, members, .. } in group::rows(tables, query) {
        let cells = numbers(query, |number| {
            let each = members.iter().zip(tables);
            let texts = each.map(|(member, table)| {
                format!(
                    "{:>1$}",
                    member.value(number, table.total.period).to_string(),
                    number.width()
                )
            });
            texts.collect::<Vec<_>>().join(" ")
        });
        let texts: Vec<_> = texts.iter().map(|text| escape(text)).collect();
        writeln!(out, "  {}  {}", cells, texts.join("  "))?;
    }
    writeln!(out, "\n")
}

pub(super) fn hierarchy(
    profile: &Profile,
    table: &EventTable<'_>,
    query: &Query,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !query.style.quiet {
        let keys: Vec<&str> = query.columns.iter().map(|column| column.heading().trim()).collect();
        let keys = keys.join(" / ");
        writeln!(out, "# {}  {keys}", numbers(query, |number| query.heading(number).to_owned()))?;
        let dots = numbers(query, |number| ".".repeat(number.width()));
        writeln!(out, "# {dots}  {}\n#", ".".repeat(keys.width()))?;
    }
    let trees = trees(profile, table, query, screen);
    let total = table.total.period;
    Levels { query, total, trees: &trees, screen }.print(&levels(table, query), 0, out)
}

/// What all lines of a hierarchy depend on.
struct Levels<'q> {
    query: &'q Query,
    /// Period of the event.
    total: u64,
    trees: &'q Trees,
    screen: Screen,
}

impl Levels<'_> {
    fn print(&self, levels: &[Level<'_>], depth: usize, out: &mut dyn Write) -> io::Result<()> {
        for level in levels {
            let mut line = String::from("  ");
            for number in self.query.numbers() {
                let value = level.metrics.value(number, self.total).to_string();
                line.push_str(&format!("{value:>0$}  ", number.width()));
            }
            line.push_str(&format!("{:1$}{2}", "", depth * 2, escape(&level.value)));
            writeln!(out, "{}", cut(&line, self.screen.width.unwrap_or(usize::MAX)))?;
            if let Some(tree) = level.place.and_then(|place| self.trees.get(&place)) {
                write!(out, "{tree}")?;
            }
            self.print(&level.rows, depth + 1, out)?;
        }
        Ok(())
    }
}
