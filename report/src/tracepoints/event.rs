//! A tracepoint that is ready to be printed: its format and its parsed print fmt.

use recrep_format::endian::Endian;
use recrep_format::feature::tracing::{EventField, EventFormat, RawFields};

use super::eval::{Kernel, LONGEST, Values};
use super::print_fmt::{self, Piece};
use super::raw_fields::write_field;

/// A tracepoint.
#[derive(Clone, Debug)]
pub struct Event {
    /// All fields; the common ones come first.
    pub(super) fields: Vec<EventField>,
    /// Number of the common fields.
    pub(super) common: usize,
    /// Number of leading bytes, those of the common fields, that the print fmt does not show.
    pub(super) hidden: usize,
    /// `None` if the print fmt uses something unsupported.
    print_fmt: Option<Vec<Piece>>,
    endian: Endian,
    long_size: usize,
}

impl Event {
    /// Parses the print fmt of `format`.
    pub fn new(format: EventFormat, endian: Endian, long_size: usize) -> Self {
        let EventFormat { common: mut fields, fields: own, print_fmt, .. } = format;
        let first_own = own.iter().map(|field| field.offset).min().unwrap_or(0);
        let hidden = if print_fmt.contains("common_") { 0 } else { first_own };
        let common = fields.len();
        fields.extend(own);
        let print_fmt = print_fmt::parse(&print_fmt, &fields, long_size);
        Self { fields, common, hidden, print_fmt, endian, long_size }
    }

    /// Returns the values in the sample that has these raw bytes.
    pub(super) fn values<'e>(&'e self, bytes: &'e [u8], kernel: &'e dyn Kernel) -> Values<'e> {
        let raw = RawFields { bytes, endian: self.endian };
        Values { fields: &self.fields, raw, kernel, long_size: self.long_size }
    }

    /// Returns the text that the kernel would print for the sample that has these raw bytes.
    pub fn text(&self, bytes: &[u8], kernel: &dyn Kernel) -> String {
        self.text_of(&self.values(bytes, kernel))
    }

    /// Returns the text that the kernel would print; if the print fmt is unsupported, the fields.
    pub(super) fn text_of(&self, values: &Values<'_>) -> String {
        match &self.print_fmt {
            Some(pieces) => written(|out| print_fmt::write(pieces, values, out)),
            None => format!("[FAILED TO PARSE]{}", self.fields_of(values)),
        }
    }

    /// Returns all fields but the common ones as ` name=value …`.
    pub(super) fn fields_of(&self, values: &Values<'_>) -> String {
        let mut from = 0;
        written(|out| {
            for (place, field) in self.fields.iter().enumerate().skip(self.common) {
                out.push(b' ');
                out.extend_from_slice(field.name.as_bytes());
                out.push(b'=');
                write_field(self.pieces(), place, &mut from, values, out);
            }
        })
    }

    /// Returns the text of one field.
    pub(super) fn field_of(&self, values: &Values<'_>, place: usize) -> String {
        written(|out| write_field(self.pieces(), place, &mut 0, values, out))
    }

    fn pieces(&self) -> &[Piece] {
        self.print_fmt.as_deref().unwrap_or_default()
    }
}

/// Returns what `write` appends, up to the longest text.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes.truncate(LONGEST);
    String::from_utf8_lossy(&bytes).into_owned()
}
