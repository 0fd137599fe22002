//! Text table, laid out like `perf report --stdio`.
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

use crate::count::metrics::{MetricValue, Metrics};
use crate::profile::Profile;
use crate::query::{Column, Field, Query, SortKey, TableColumn};
use crate::table::{self, EventTable, Row};

use super::tree::trees;
use super::{heading, heat, nested, threads};
use crate::terminal::escape::{columns, cut, escape};
use crate::terminal::parts::{PART, in_parts};
use crate::terminal::style::Screen;

pub(super) fn print(
    profile: &Profile,
    query: &Query,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !query.style.quiet {
        heading::print(profile, screen, out)?;
    }
    let mut tables = table::tables(profile, query);
    // Who names the event wants its table.
    let hides_waits = query.filters.events.is_none();
    tables.retain(|table| table.total.samples > 0 && !(table.is_of_waits && hides_waits));
    if query.group && !tables.is_empty() {
        nested::group(&tables, query, out)?;
        tables.clear();
    }
    for table in &tables {
        if !query.style.quiet {
            heading::event(table, out)?;
        }
        match &query.separator {
            Some(separator) => separated(profile, table, query, separator, out)?,
            None if query.hierarchy => nested::hierarchy(profile, table, query, screen, out)?,
            None => aligned(profile, table, query, screen, out)?,
        }
        writeln!(out, "\n")?;
    }
    if query.threads && !profile.thread_counts.is_empty() {
        threads::print(profile, out)?;
    }
    if query.style.quiet { Ok(()) } else { heading::advice(profile, out) }
}

/// Returns for each column its heading, its minimum width, and whether it is a number.
fn heads(query: &Query) -> Vec<(&str, usize, bool)> {
    let heads = query.shown.iter().map(|shown| match shown {
        TableColumn::Number(number) => (query.heading(*number), number.width(), true),
        TableColumn::Key(place) => {
            let heading = query.columns.get(*place).map_or("", |column| column.heading());
            (heading, columns(heading), false)
        }
    });
    heads.collect()
}

/// Makes the texts of rows, one row after the other.
struct CellTexts<'q> {
    query: &'q Query,
    /// Widths of labels that need no escaping ([`label_widths`]).
    labels: &'q [Option<u32>],
    /// Total period of the event.
    total: u64,
    /// Metrics of the row before, and their texts: rows are sorted by period, so successive ones
    /// often have equal numbers.
    metrics: Option<Metrics>,
    numbers: Vec<NumberText>,
}

/// Text of a number.
struct NumberText {
    text: String,
    /// The number, if it is a percentage.
    percent: Option<f64>,
}

/// Text of a row in a column.
struct CellText<'t> {
    /// Number of the column among those that are shown.
    column: usize,
    text: &'t str,
    width: usize,
    percent: Option<f64>,
}

impl<'q> CellTexts<'q> {
    fn new(query: &'q Query, labels: &'q [Option<u32>], table: &EventTable<'_>) -> Self {
        Self { query, labels, total: table.total.period, metrics: None, numbers: Vec::new() }
    }

    /// Calls `act` with the row's text in each column that is shown.
    fn each(&mut self, row: Row<'_>, mut act: impl FnMut(CellText<'_>)) {
        if self.metrics.as_ref() != Some(row.metrics) {
            self.metrics = Some(row.metrics.clone());
            self.numbers.clear();
            for number in self.query.numbers() {
                let value = row.metrics.value(number, self.total);
                self.numbers.push(NumberText { text: value.to_string(), percent: value.percent() });
            }
        }
        let mut numbers = self.numbers.iter();
        let query = self.query;
        for (column, shown) in query.shown.iter().enumerate() {
            match shown {
                TableColumn::Number(_) => {
                    let Some(NumberText { text, percent }) = numbers.next() else { continue };
                    act(CellText { column, text, width: text.len(), percent: *percent });
                }
                TableColumn::Key(place) => self.key(row, *place, |text, width| {
                    act(CellText { column, text, width, percent: None });
                }),
            }
        }
    }

    /// Calls `act` with the row's text in this key's column and its width.
    fn key(&self, row: Row<'_>, place: usize, act: impl FnOnce(&str, usize)) {
        let text = row.text(place);
        if let Some(Some(width)) = row.label(place).and_then(|label| self.labels.get(label)) {
            return act(&text, *width as usize);
        }
        let text = escape(&text);
        // perf right-aligns the numbers of threads.
        let has_threads =
            || self.query.columns.get(place).is_some_and(|column| column.key.needs(Field::Thread));
        match row.task(place) {
            Some(tid) if has_threads() => {
                let margin = 7_usize.saturating_sub(tid.to_string().len());
                let text = format!("{:margin$}{text}", "");
                act(&text, columns(&text));
            }
            _ => act(&text, columns(&text)),
        }
    }

    /// Returns the widths of the columns in these rows, at least `widths`.
    fn widest<'r>(
        &self,
        rows: impl Iterator<Item = Row<'r>>,
        mut widths: Vec<usize>,
    ) -> Vec<usize> {
        let mut largest = vec![None; widths.len()];
        for row in rows {
            for ((width, largest), shown) in
                widths.iter_mut().zip(&mut largest).zip(&self.query.shown)
            {
                match shown {
                    // The larger a number, the longer its text.
                    TableColumn::Number(number) => {
                        let value = Some(row.metrics.value(*number, self.total));
                        if value > *largest {
                            *largest = value;
                        }
                    }
                    TableColumn::Key(place) => {
                        self.key(row, *place, |_, taken| *width = taken.max(*width));
                    }
                }
            }
        }
        let numbers =
            widths.iter_mut().zip(largest).filter_map(|(width, largest)| Some((width, largest?)));
        numbers.for_each(|(width, largest): (_, MetricValue)| {
            *width = largest.to_string().len().max(*width);
        });
        widths
    }
}

/// Returns the widths of the labels that need no escaping; none if the table shows only few of
/// them, or threads, whose labels are aligned.
fn label_widths(profile: &Profile, table: &EventTable<'_>, query: &Query) -> Vec<Option<u32>> {
    if query.needs(Field::Thread) || table.len() * query.columns.len() < profile.names.labels() {
        return Vec::new();
    }
    let widths = (0..profile.names.labels()).into_par_iter().map(|label| {
        let text = table.label_text(label)?;
        let is_plain = matches!(escape(text), Cow::Borrowed(_));
        u32::try_from(columns(text)).ok().filter(|_| is_plain)
    });
    widths.collect()
}

fn aligned(
    profile: &Profile,
    table: &EventTable<'_>,
    query: &Query,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let trees = trees(profile, table, query, screen);
    let heads = heads(query);
    let headings: Vec<&str> = heads.iter().map(|(heading, ..)| *heading).collect();
    let least: Vec<usize> = heads.iter().map(|(_, least, _)| *least).collect();
    let labels = label_widths(profile, table, query);
    let starts = (0..table.len()).into_par_iter().step_by(PART);
    let of_parts = starts.map(|start| {
        let rows =
            (start..(start + PART).min(table.len())).filter_map(|index| table.any_row(index));
        CellTexts::new(query, &labels, table).widest(rows, least.clone())
    });
    let mut widths: Vec<usize> = of_parts
        .reduce(|| least.clone(), |a, b| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect());
    for (width, wanted) in widths.iter_mut().zip(query.style.widths.iter().flatten()) {
        if *wanted > 0 {
            *width = *wanted;
        }
    }
    if let Some(width) = screen.width {
        narrow(&mut widths, &purposes(query), width);
    }
    let are_numbers = heads.iter().map(|(.., is_number)| *is_number);
    let lines = Aligned { columns: widths.iter().copied().zip(are_numbers).collect(), screen };
    if !query.style.quiet {
        let mut head = String::new();
        lines.heads(&headings, &mut head);
        let last = widths.len().saturating_sub(1);
        let rules = widths.iter().enumerate().map(|(place, width)| {
            ".".repeat(if place == last { (*width).min(LONGEST_RULE) } else { *width })
        });
        let dots: Vec<String> = rules.collect();
        lines.heads(&dots, &mut head);
        writeln!(out, "{head}#")?;
    }
    in_parts(
        table.len(),
        |rows| {
            let (mut text, mut texts) = (String::new(), CellTexts::new(query, &labels, table));
            for row in table.rows_in(rows) {
                lines.line("  ", &mut text, |cell| texts.each(row, cell));
                text.extend(trees.get(&row.place).map(String::as_str));
            }
            Ok(text)
        },
        out,
    )
}

/// What a column is for a narrow terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnPurpose {
    /// A number, or a column whose width the user set: it keeps its width.
    Fixed,
    /// A function, or the last column of a table without functions: it gets half of the line, or at
    /// least a third, if it needs that.
    Main,
    /// Shortened first.
    Other,
}

fn is_of_functions(column: &Column) -> bool {
    matches!(column.key, SortKey::Symbol | SortKey::FromSymbol | SortKey::ToSymbol)
}

/// Returns the purpose of each column.
fn purposes(query: &Query) -> Vec<ColumnPurpose> {
    let has_functions = query.columns.iter().any(is_of_functions);
    let mut set = query.style.widths.iter().flatten().map(|width| *width > 0);
    let last = query.shown.len().saturating_sub(1);
    let mut purposes = Vec::with_capacity(query.shown.len());
    for (column, shown) in query.shown.iter().enumerate() {
        let is_set = set.next() == Some(true);
        purposes.push(match shown {
            TableColumn::Number(_) => ColumnPurpose::Fixed,
            TableColumn::Key(_) if is_set => ColumnPurpose::Fixed,
            TableColumn::Key(place) => {
                let is_of_function = query.columns.get(*place).is_some_and(is_of_functions);
                let is_main = is_of_function || !has_functions && column == last;
                if is_main { ColumnPurpose::Main } else { ColumnPurpose::Other }
            }
        });
    }
    purposes
}

/// Shortens columns that are not the main ones, the widest first, until a line fits in `width`
/// columns of the terminal. First the main columns have half of it at most, and no other one less
/// than a name of the kernel takes; if that is too much, they have a third.
fn narrow(widths: &mut [usize], purposes: &[ColumnPurpose], width: usize) {
    const KERNEL: usize = "[kernel.kallsyms]".len();
    /// No column is made narrower than this.
    const LEAST: usize = 6;
    shorten(widths, purposes, width, width / 2, KERNEL);
    shorten(widths, purposes, width, width / 3, LEAST);
}

/// Shortens other columns down to `least` until a line fits in `width` columns, of which the main
/// ones have `main` at most.
fn shorten(
    widths: &mut [usize],
    purposes: &[ColumnPurpose],
    width: usize,
    main: usize,
    least: usize,
) {
    loop {
        // Two spaces before each column.
        let mut line = 2 * widths.len().min(purposes.len());
        for (taken, purpose) in widths.iter().zip(purposes) {
            line += if *purpose == ColumnPurpose::Main { (*taken).min(main) } else { *taken };
        }
        let others = widths
            .iter_mut()
            .zip(purposes)
            .filter(|(taken, purpose)| **purpose == ColumnPurpose::Other && **taken > least);
        match others.map(|(taken, _)| taken).max() {
            Some(widest) if line > width => *widest -= 1,
            _ => return,
        }
    }
}

/// Maximum number of dots below the last heading: one long name must not make a line of thousands.
const LONGEST_RULE: usize = 60;

struct Aligned {
    /// Widths of the columns, and whether they are numbers, which are right-aligned. Longer text,
    /// which there is only where the user set the width, is cut.
    columns: Vec<(usize, bool)>,
    screen: Screen,
}

impl Aligned {
    /// Appends a line above the rows.
    fn heads(&self, texts: &[impl AsRef<str>], lines: &mut String) {
        self.line("# ", lines, |cell| {
            for (column, text) in texts.iter().map(AsRef::as_ref).enumerate() {
                cell(CellText { column, text, width: columns(text), percent: None });
            }
        });
    }

    /// Appends a line of the texts that `cells` passes on.
    fn line(
        &self,
        margin: &str,
        lines: &mut String,
        cells: impl FnOnce(&mut dyn FnMut(CellText<'_>)),
    ) {
        // The start, end and style of the coloured parts.
        let (start, mut painted) = (lines.len(), Vec::new());
        lines.push_str(margin);
        cells(&mut |CellText { column, text: cell, width: taken, percent }| {
            let (width, is_number) = self.columns.get(column).copied().unwrap_or_default();
            let cell = if taken > width { cut(cell, width) } else { cell };
            let pad = width.saturating_sub(if taken > width { columns(cell) } else { taken });
            let (before, after) = if is_number { (pad, 0) } else { (0, pad) };
            push_spaces(lines, if column > 0 { 2 } else { 0 } + before);
            let at = lines.len() - start;
            lines.push_str(cell);
            if let Some(style) = percent.filter(|_| self.screen.colour).and_then(heat::style) {
                painted.push((at, at + cell.len(), style));
            }
            // The last column is not padded: one row may have ten thousand characters in it.
            let is_last = column + 1 == self.columns.len();
            push_spaces(lines, if is_last { 0 } else { after });
        });
        if let (Some(width), Some(line)) = (self.screen.width, lines.get(start..)) {
            let fits = cut(line, width).len();
            lines.truncate(start + fits);
        }
        lines.push('\n');
        heat::paint(lines, start, &painted);
    }
}

fn push_spaces(text: &mut String, mut spaces: usize) {
    const SPACES: &str = "                                                                ";
    while spaces > 0 {
        let part = spaces.min(SPACES.len());
        text.push_str(SPACES.get(..part).unwrap_or_default());
        spaces -= part;
    }
}

fn separated(
    profile: &Profile,
    table: &EventTable<'_>,
    query: &Query,
    separator: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let trees = trees(profile, table, query, Screen::default());
    if !query.style.quiet {
        let headings: Vec<&str> = heads(query).iter().map(|(heading, ..)| heading.trim()).collect();
        writeln!(out, "# {}", headings.join(separator))?;
    }
    in_parts(
        table.len(),
        |rows| {
            let (mut lines, mut texts) = (String::new(), CellTexts::new(query, &[], table));
            for row in table.rows_in(rows) {
                texts.each(row, |CellText { column, text, .. }| {
                    lines.push_str(if column > 0 { separator } else { "" });
                    lines.push_str(&text.trim().replace(separator, "."));
                });
                lines.push('\n');
                lines.extend(trees.get(&row.place).map(String::as_str));
            }
            Ok(lines)
        },
        out,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    #[test]
    fn narrow_terminals_shorten_what_is_no_function_first() {
        use ColumnPurpose::{Fixed, Main, Other};
        let narrowed = |widths: [usize; 4], width| {
            let mut widths = widths;
            narrow(&mut widths, &[Fixed, Other, Other, Main], width);
            widths
        };
        assert_eq!(narrowed([8, 15, 20, 18], 80), [8, 15, 20, 18], "it fits");
        assert_eq!(narrowed([8, 15, 20, 18], 60), [8, 13, 13, 18], "the widest first");
        assert_eq!(narrowed([8, 7, 20, 300], 80), [8, 7, 17, 300], "modules keep their names");
        assert_eq!(
            narrowed([8, 15, 20, 300], 60),
            [8, 12, 12, 300],
            "a third of the line is the function's"
        );
        assert_eq!(narrowed([8, 15, 20, 300], 30), [8, 6, 6, 300], "the line is cut then");
        assert_eq!(narrowed([8, 3, 4, 300], 20), [8, 3, 4, 300]);
    }

    #[test]
    fn functions_are_the_main_columns() {
        use ColumnPurpose::{Fixed, Main, Other};
        let of = |line: &str| purposes(&args::parse(line.split(' ').map(Into::into)).unwrap());
        assert_eq!(of("rep"), [Fixed, Other, Other, Main]);
        assert_eq!(of("rep -s symbol,dso"), [Fixed, Main, Other]);
        assert_eq!(of("rep -s comm,dso"), [Fixed, Other, Main]);
        assert_eq!(of("rep -w 0,7"), [Fixed, Fixed, Other, Main]);
    }
}
