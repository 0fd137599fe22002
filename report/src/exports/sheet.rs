//! Sheets: the tables of analyses, in each table format.
//!
//! An [`Analysis`] is JSON by its own fields, which scripts rely on. Its sheets are text and CSV:
//!
//! ```text
//!   column   heading, width  ─► text: numbers right-aligned, texts as long as they are
//!            name            ─► CSV: the heading of its column
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

/// A table.
#[derive(Default)]
pub(crate) struct Sheet<'a> {
    /// Lines above it in text.
    pub(crate) title: Vec<String>,
    pub(crate) columns: Vec<SheetColumn<'a>>,
    pub(crate) rows: Vec<SheetRow<'a>>,
}

/// A column. Text leaves it out without a heading, CSV without a name.
#[derive(Clone, Copy)]
pub(crate) struct SheetColumn<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) heading: Option<&'a str>,
    /// Width of numbers; 0 for texts.
    pub(crate) width: usize,
}

#[derive(Default)]
pub(crate) struct SheetRow<'a> {
    pub(crate) cells: Vec<Cell<'a>>,
    /// Lines below it in text.
    pub(crate) below: Vec<String>,
}

/// A cell of a sheet.
pub(crate) enum Cell<'a> {
    Text(Cow<'a, str>),
    Whole(u64),
    Percent(f64),
    /// A mean; text has one decimal.
    Mean(f64),
    /// Unknown: `-` in text.
    Unknown,
}

impl<'a> SheetColumn<'a> {
    /// Creates a column of numbers.
    pub(crate) fn number(name: &'a str, heading: &'a str, width: usize) -> Self {
        Self { name: Some(name), heading: Some(heading), width }
    }

    /// Creates a column of texts.
    pub(crate) fn text(name: &'a str, heading: &'a str) -> Self {
        Self::number(name, heading, 0)
    }

    /// Creates a column of CSV alone.
    pub(crate) fn unshown(name: &'a str) -> Self {
        Self { name: Some(name), heading: None, width: 0 }
    }

    /// Creates a column of text alone.
    pub(crate) fn shown(heading: &'a str) -> Self {
        Self { name: None, heading: Some(heading), width: 0 }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl Cell<'_> {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => escape(text),
            Self::Percent(percent) => format!("{percent:.2}%").into(),
            Self::Mean(mean) => format!("{mean:.1}").into(),
            Self::Unknown => "-".into(),
            other => other.csv(),
        }
    }

    fn csv(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.as_ref().into(),
            Self::Whole(number) => number.to_string().into(),
            Self::Percent(percent) => format!("{percent:.2}").into(),
            Self::Mean(mean) => mean.to_string().into(),
            Self::Unknown => "".into(),
        }
    }
}

impl Sheet<'_> {
    /// Iterates over the cells of a row that text shows, with their columns.
    fn shown<'s>(
        &'s self,
        row: &'s SheetRow<'_>,
    ) -> impl Iterator<Item = (&'s SheetColumn<'s>, &'s Cell<'s>)> {
        self.columns.iter().zip(&row.cells).filter(|(column, _)| column.heading.is_some())
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.title {
            writeln!(out, "{line}")?;
        }
        let heads = self.columns.iter().filter_map(|column| Some((column.heading?, column.width)));
        let heads: Vec<String> =
            heads.map(|(heading, width)| format!("{heading:>width$}")).collect();
        let heads = heads.join("  ");
        writeln!(out, "#{}", heads.strip_prefix(' ').unwrap_or(&heads))?;
        for row in &self.rows {
            let cells = self.shown(row).map(|(column, cell)| {
                let width = column.width;
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
        let heads: Vec<&str> = self.columns.iter().filter_map(|column| column.heading).collect();
        writeln!(out, "# {}", heads.join(separator))?;
        for row in &self.rows {
            let cells = self.shown(row).map(|(_, cell)| cell.text().replace(separator, "."));
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(separator))?;
        }
        writeln!(out)
    }
}

/// Writes an analysis as JSON, with the parts that all have.
pub(crate) fn write_json<A: Analysis>(
    analysis: &A,
    inputs: &impl Serialize,
    warnings: &[Warning],
    out: &mut dyn Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Whole<'p, I, A> {
        schema: &'p str,
        inputs: &'p I,
        #[serde(flatten)]
        analysis: &'p A,
        warnings: &'p [Warning],
    }
    json::write(&Whole { schema: A::SCHEMA, inputs, analysis, warnings }, out)
}

/// Writes the sheets of an analysis as CSV: all rows below the names of the columns.
pub(crate) fn write_csv<A: Analysis>(analysis: &A, out: &mut dyn Write) -> io::Result<()> {
    let sheets = analysis.sheets();
    let mut csv = csv::Writer::from_writer(out);
    if let Some(sheet) = sheets.first() {
        csv.write_record(sheet.columns.iter().filter_map(|column| column.name))?;
    }
    for sheet in &sheets {
        for row in &sheet.rows {
            let cells = sheet.columns.iter().zip(&row.cells);
            let named = cells.filter(|(column, _)| column.name.is_some());
            csv.write_record(named.map(|(_, cell)| cell.csv().into_owned()))?;
        }
    }
    csv.flush()
}
