//! Sheets: the tables of an analysis, for each output that prints tables.
//!
//! An [`Analysis`] is JSON by its own fields, whose order and nesting scripts rely on. Each column of
//! its tables is stated once, by a [`SheetColumn`]:
//!
//! ```text
//!   heading, width  ─► text: numbers right-aligned, texts as long as they are; Markdown
//!   name            ─► CSV
//!   cell            ─► what a row has in the column
//! ```

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::json;
use crate::query::Warning;
use crate::terminal::escape::escape;

/// What an analysis found.
pub(crate) trait Analysis: Serialize {
    /// Name of the JSON schema.
    const SCHEMA: &'static str;

    /// Returns the tables. All have the same names of columns.
    fn sheets(&self) -> Vec<Sheet<'_>>;

    /// Prints the analysis for people.
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.sheets().iter().try_for_each(|sheet| sheet.print(out))
    }
}

/// An answer that outputs print as tables.
pub(crate) trait Tables {
    /// Prints it for people.
    fn print_text(&self, out: &mut dyn Write) -> io::Result<()>;

    fn print_json(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Returns the tables. All have the same names of columns.
    fn sheets(&self) -> Vec<Sheet<'_>>;
}

/// An analysis with what the JSON of all analyses has.
pub(crate) struct Analyzed<'a, I, A> {
    pub(crate) inputs: &'a I,
    pub(crate) analysis: &'a A,
    pub(crate) warnings: &'a [Warning],
}

impl<I: Serialize, A: Analysis> Tables for Analyzed<'_, I, A> {
    fn print_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.analysis.print(out)
    }

    fn print_json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct AnalysisJson<'p, I, A> {
            schema: &'p str,
            inputs: &'p I,
            #[serde(flatten)]
            analysis: &'p A,
            warnings: &'p [Warning],
        }
        let Self { inputs, analysis, warnings } = *self;
        json::write(&AnalysisJson { schema: A::SCHEMA, inputs, analysis, warnings }, out)
    }

    fn sheets(&self) -> Vec<Sheet<'_>> {
        self.analysis.sheets()
    }
}

/// A column of rows `R`. Text leaves it out without a heading, CSV without a name.
pub(crate) struct SheetColumn<'a, R> {
    head: SheetHead<'a>,
    cell: Box<dyn Fn(R) -> SheetCell<'a> + 'a>,
}

/// What is above the cells of a column.
#[derive(Clone, Copy)]
pub(crate) struct SheetHead<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) heading: Option<&'a str>,
    /// Width of numbers; 0 for texts.
    pub(super) width: usize,
}

impl<'a, R> SheetColumn<'a, R> {
    /// Creates a column of numbers.
    pub(crate) fn number(
        name: &'a str,
        heading: &'a str,
        width: usize,
        cell: impl Fn(R) -> SheetCell<'a> + 'a,
    ) -> Self {
        let head = SheetHead { name: Some(name), heading: Some(heading), width };
        Self { head, cell: Box::new(cell) }
    }

    /// Creates a column of texts.
    pub(crate) fn text(
        name: &'a str,
        heading: &'a str,
        cell: impl Fn(R) -> SheetCell<'a> + 'a,
    ) -> Self {
        Self::number(name, heading, 0, cell)
    }

    /// Creates a column of CSV alone.
    pub(crate) fn unshown(name: &'a str, cell: impl Fn(R) -> SheetCell<'a> + 'a) -> Self {
        let head = SheetHead { name: Some(name), heading: None, width: 0 };
        Self { head, cell: Box::new(cell) }
    }

    /// Creates a column of text alone.
    pub(crate) fn shown(
        heading: &'a str,
        width: usize,
        cell: impl Fn(R) -> SheetCell<'a> + 'a,
    ) -> Self {
        let head = SheetHead { name: None, heading: Some(heading), width };
        Self { head, cell: Box::new(cell) }
    }

    /// Returns the width of its numbers in text, 0 for texts; `None` if text leaves it out.
    pub(crate) fn shown_width(&self) -> Option<usize> {
        self.head.heading.map(|_| self.head.width)
    }

    /// Leaves the column out of text unless `is_shown`.
    pub(crate) fn shown_if(mut self, is_shown: bool) -> Self {
        self.head.heading = self.head.heading.filter(|_| is_shown);
        self
    }
}

/// A table.
#[derive(Default)]
pub(crate) struct Sheet<'a> {
    /// Lines above it in text.
    pub(crate) title: Vec<String>,
    pub(crate) heads: Vec<SheetHead<'a>>,
    pub(crate) rows: Vec<SheetRow<'a>>,
}

#[derive(Default)]
pub(crate) struct SheetRow<'a> {
    pub(crate) cells: Vec<SheetCell<'a>>,
    /// Lines below it in text.
    pub(crate) below: Vec<String>,
}

/// A cell of a sheet.
pub(crate) enum SheetCell<'a> {
    Text(Cow<'a, str>),
    Whole(u64),
    Percent(f64),
    /// Any other number; text has one decimal.
    Float(f64),
    /// Unknown: `-` in text.
    Unknown,
}

impl<'a> From<&'a str> for SheetCell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a String> for SheetCell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for SheetCell<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for SheetCell<'_> {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl<'a, T: Into<SheetCell<'a>>> From<Option<T>> for SheetCell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unknown, Into::into)
    }
}

impl SheetCell<'_> {
    /// Returns a cell with a number; unknown if there is none.
    pub(crate) fn float(number: Option<f64>) -> Self {
        number.filter(|number| number.is_finite()).map_or(Self::Unknown, Self::Float)
    }

    /// Returns a cell with a percentage; unknown if there is none.
    pub(crate) fn percent(percent: Option<f64>) -> Self {
        percent.map_or(Self::Unknown, Self::Percent)
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => escape(text),
            _ => self.plain(),
        }
    }

    /// Returns the text without escapes.
    pub(super) fn plain(&self) -> Cow<'_, str> {
        match self {
            Self::Percent(percent) => format!("{percent:.2}%").into(),
            Self::Float(number) => format!("{number:.1}").into(),
            Self::Unknown => "-".into(),
            other => other.csv(),
        }
    }

    fn csv(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.as_ref().into(),
            Self::Whole(number) => number.to_string().into(),
            Self::Percent(percent) => format!("{percent:.2}").into(),
            Self::Float(number) => number.to_string().into(),
            Self::Unknown => "".into(),
        }
    }
}

impl<'a> Sheet<'a> {
    /// Creates a table of these rows.
    pub(crate) fn new<R: Copy>(
        title: Vec<String>,
        columns: &[SheetColumn<'a, R>],
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let heads = columns.iter().map(|column| column.head).collect();
        let rows = rows.into_iter().map(|row| SheetRow {
            cells: columns.iter().map(|column| (column.cell)(row)).collect(),
            below: Vec::new(),
        });
        Self { title, heads, rows: rows.collect() }
    }

    /// Iterates over the cells of a row that text shows, with their heads.
    fn shown<'s>(
        &'s self,
        row: &'s SheetRow<'_>,
    ) -> impl Iterator<Item = (&'s SheetHead<'s>, &'s SheetCell<'s>)> {
        self.heads.iter().zip(&row.cells).filter(|(head, _)| head.heading.is_some())
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.title {
            writeln!(out, "{line}")?;
        }
        let heads = self.heads.iter().filter_map(|head| Some((head.heading?, head.width)));
        let heads: Vec<String> =
            heads.map(|(heading, width)| format!("{heading:>width$}")).collect();
        let heads = heads.join("  ");
        writeln!(out, "#{}", heads.strip_prefix(' ').unwrap_or(&heads))?;
        for row in &self.rows {
            let cells = self.shown(row).map(|(head, cell)| {
                let width = head.width;
                format!("{:>width$}", cell.text())
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("  "))?;
            for line in &row.below {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// Prints without padding, for other programs. A separator inside a text becomes a dot.
    pub(crate) fn print_separated(&self, separator: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.title {
            writeln!(out, "{line}")?;
        }
        let heads: Vec<&str> = self.heads.iter().filter_map(|head| head.heading).collect();
        writeln!(out, "# {}", heads.join(separator))?;
        for row in &self.rows {
            let cells = self.shown(row).map(|(_, cell)| cell.text().replace(separator, "."));
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(separator))?;
        }
        writeln!(out)
    }
}

/// Writes sheets as CSV: all rows below the names of the columns.
pub(crate) fn write_csv(sheets: &[Sheet<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    if let Some(sheet) = sheets.first() {
        csv.write_record(sheet.heads.iter().filter_map(|head| head.name))?;
    }
    for sheet in sheets {
        for row in &sheet.rows {
            let cells = sheet.heads.iter().zip(&row.cells);
            let named = cells.filter(|(head, _)| head.name.is_some());
            csv.write_record(named.map(|(_, cell)| cell.csv().into_owned()))?;
        }
    }
    csv.flush()
}
