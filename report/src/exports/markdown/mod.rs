//! Markdown, for the summary of a CI job or a comment on a change: a table for each event.
//!
//! ```text
//!   **cycles:u**, 13 samples
//!
//!   | Overhead | Command | Symbol |
//!   | ---: | --- | --- |
//!   | 14.29% | ls | `strlen` |
//! ```

use std::borrow::Cow;
use std::io::{self, Write};

use super::export::{Answer, Export};
use super::sheet::{Sheet, SheetCell};
use crate::query::{Needs, TableColumn};
use crate::table::{self, EventTable, Row};

pub(super) struct Markdown;

impl Export for Markdown {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut tables = table::tables(answer.profile, answer.query);
        tables.retain(|table| table.total.samples > 0);
        for (number, table) in tables.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            writeln!(out, "**{}**, {} samples\n", code(table.name), table.total.samples)?;
            write_table(answer, table, out)?;
        }
        Ok(())
    }
}

fn write_table(answer: &Answer<'_>, table: &EventTable<'_>, out: &mut dyn Write) -> io::Result<()> {
    let query = answer.query;
    let (mut head, mut rule) = (String::from("|"), String::from("|"));
    for shown in &query.shown {
        let (heading, mark) = match shown {
            TableColumn::Number(number) => (query.heading(*number), " ---: |"),
            TableColumn::Key(place) => {
                (query.columns.get(*place).map_or("", |column| column.heading()), " --- |")
            }
        };
        head.push_str(&format!(" {} |", plain(heading.trim())));
        rule.push_str(mark);
    }
    writeln!(out, "{head}\n{rule}")?;
    for row in table.rows() {
        write_row(answer, table, row, out)?;
    }
    Ok(())
}

fn write_row(
    answer: &Answer<'_>,
    table: &EventTable<'_>,
    row: Row<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "|")?;
    for shown in &answer.query.shown {
        match shown {
            TableColumn::Number(number) => {
                let value = row.metrics.value(*number, table.total.period);
                write!(out, " {} |", value.to_string().trim())?;
            }
            TableColumn::Key(place) => write!(out, " {} |", code(&row.text(*place)))?,
        }
    }
    writeln!(out)
}

/// Writes a table for each sheet: the columns of its text, else all that have names.
pub(super) fn write_sheets(sheets: &[Sheet<'_>], out: &mut dyn Write) -> io::Result<()> {
    for (number, sheet) in sheets.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        for line in sheet.title.iter().map(|line| line.trim_start_matches(['#', ' '])) {
            if !line.is_empty() {
                writeln!(out, "{}\n", escape_marks(line))?;
            }
        }
        write_sheet(sheet, out)?;
    }
    Ok(())
}

fn write_sheet(sheet: &Sheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let has_headings = sheet.heads.iter().any(|head| head.heading.is_some());
    let names: Vec<Option<&str>> = match has_headings {
        true => sheet.heads.iter().map(|head| head.heading).collect(),
        false => sheet.heads.iter().map(|head| head.name).collect(),
    };
    let (mut head, mut rule) = (String::from("|"), String::from("|"));
    for (column, name) in sheet.heads.iter().zip(&names) {
        let Some(name) = name else { continue };
        head.push_str(&format!(" {} |", plain(name)));
        rule.push_str(if column.width > 0 { " ---: |" } else { " --- |" });
    }
    writeln!(out, "{head}\n{rule}")?;
    for row in &sheet.rows {
        write!(out, "|")?;
        for (_, cell) in names.iter().zip(&row.cells).filter(|(name, _)| name.is_some()) {
            match cell {
                SheetCell::Text(text) => write!(out, " {} |", code(text))?,
                SheetCell::Unknown => write!(out, "  |")?,
                number => write!(out, " {} |", number.plain())?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Returns a sentence without what Markdown would take for marks.
pub(crate) fn escape_marks(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for next in text.chars() {
        if "\\`*_[]<>|".contains(next) {
            shown.push('\\');
        }
        shown.push(next);
    }
    shown
}

/// Returns a text of a heading, without what Markdown would take for marks.
fn plain(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns a text of a file as code, which shows names such as `vector<int>` and `__init__` as they
/// are.
pub(crate) fn code(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.is_empty() {
        return Cow::Borrowed("");
    }
    // Within a table a bar ends the cell even in code. A text with backticks needs a longer mark.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let mark = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    let text = text.replace('|', "\\|").replace(['\n', '\r'], " ");
    format!("{mark}{space}{text}{space}{mark}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_as_they_are() {
        for (name, shown) in [
            ("", ""),
            ("main", "`main`"),
            ("f<int>::operator||", r"`f<int>::operator\|\|`"),
            ("a`b", "`` a`b ``"),
            ("a\nb", "`a b`"),
        ] {
            assert_eq!(code(name), shown);
        }
    }
}
