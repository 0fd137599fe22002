//! Lines of fields below a record: `name: value, name: value`, indented by two spaces.

use std::fmt::{self, Display};
use std::io::Write;

use crate::commands::info::Value;

pub(super) struct Lines<'w> {
    out: &'w mut Vec<u8>,
    /// Text before the next field of the current line; `None` if the line is empty.
    separator: Option<&'static str>,
}

impl<'w> Lines<'w> {
    pub(super) fn new(out: &'w mut Vec<u8>) -> Self {
        Self { out, separator: None }
    }

    /// Writes a field to the current line.
    pub(super) fn field(&mut self, name: &str, value: impl Display) -> &mut Self {
        let before = self.separator.replace(", ").unwrap_or("  ");
        self.write(format_args!("{before}{name}: {value}"))
    }

    /// Writes a field if it has a value.
    pub(super) fn maybe(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Begins a line with a word that names the group of its fields.
    pub(super) fn begin(&mut self, word: &str) -> &mut Self {
        self.end().write(format_args!("  {word}"));
        self.separator = Some(" ");
        self
    }

    /// Writes an item of the group on a line of its own, indented further.
    pub(super) fn item(&mut self, item: impl Display) -> &mut Self {
        self.end().write(format_args!("    {item}\n"))
    }

    /// Ends the current line, if there is one.
    pub(super) fn end(&mut self) -> &mut Self {
        let end = if self.separator.take().is_some() { "\n" } else { "" };
        self.write(format_args!("{end}"))
    }

    fn write(&mut self, text: fmt::Arguments<'_>) -> &mut Self {
        let outcome = self.out.write_fmt(text);
        debug_assert!(outcome.is_ok(), "a vector takes everything");
        self
    }
}

/// Formats a number with its name, if it has one.
pub(super) fn named(number: impl Display, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{number} {name}"),
        None => number.to_string(),
    }
}

/// Returns the text in a field of fixed length, up to its NUL.
pub(super) fn fixed(bytes: &[u8]) -> Value {
    Value::text(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}
