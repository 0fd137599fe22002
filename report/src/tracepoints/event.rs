//! A tracepoint that is ready to be printed: its format and its parsed print fmt.

use recrep_format::endian::Endian;
use recrep_format::feature::tracing::{EventField, EventFormat, RawFields};

use super::eval::{Kernel, LONGEST, Values};
use super::print_fmt::{self, Piece};
use super::raw_fields::{write_field, write_fields};

/// A tracepoint.
#[derive(Clone, Debug)]
pub struct Event {
    format: EventFormat,
    /// `None` if the print fmt uses something unsupported.
    print_fmt: Option<Vec<Piece>>,
    endian: Endian,
    long_size: usize,
}

impl Event {
    /// Parses the print fmt of `format`.
    pub fn new(format: EventFormat, endian: Endian, long_size: usize) -> Self {
        let fields: Vec<&EventField> = format.common.iter().chain(&format.fields).collect();
        let print_fmt = print_fmt::parse(&format.print_fmt, &fields, long_size);
        Self { format, print_fmt, endian, long_size }
    }

    /// Returns the format.
    pub fn format(&self) -> &EventFormat {
        &self.format
    }

    /// Returns a field's index among all fields; the common fields come first.
    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.fields().iter().position(|field| field.name == name)
    }

    fn fields(&self) -> Vec<&EventField> {
        self.format.common.iter().chain(&self.format.fields).collect()
    }

    /// Returns the sample that has these raw bytes.
    pub(super) fn sample<'e>(&'e self, bytes: &'e [u8], kernel: &'e dyn Kernel) -> RawSample<'e> {
        let raw = RawFields { bytes, endian: self.endian };
        RawSample { event: self, values: Values { fields: self.fields(), raw, kernel, long_size: self.long_size } }
    }

    /// Returns the text that the kernel would print.
    pub fn text(&self, bytes: &[u8], kernel: &dyn Kernel) -> String {
        self.sample(bytes, kernel).text()
    }
}

/// The raw bytes of a sample, with the event that decodes them.
pub(super) struct RawSample<'e> {
    event: &'e Event,
    values: Values<'e>,
}

impl RawSample<'_> {
    /// Returns the text that the kernel would print; if the print fmt is unsupported, the fields.
    pub(super) fn text(&self) -> String {
        match &self.event.print_fmt {
            Some(pieces) => written(|out| print_fmt::write(pieces, &self.values, out)),
            None => format!("[FAILED TO PARSE]{}", self.fields()),
        }
    }

    /// Returns all fields but the common ones as ` name=value …`.
    pub(super) fn fields(&self) -> String {
        let common = self.event.format.common.len();
        written(|out| write_fields(self.pieces(), common, &self.values, out))
    }

    /// Returns the text of one field.
    pub(super) fn field(&self, place: usize) -> String {
        written(|out| write_field(self.pieces(), place, &mut 0, &self.values, out))
    }

    /// Returns the name of a field.
    pub(super) fn name(&self, place: usize) -> &str {
        self.values.fields.get(place).map_or("", |field| field.name.as_str())
    }

    /// Returns all fields but the common ones as `name=value …`, with the values that `value` gives.
    pub(super) fn each_field(&self, value: impl Fn(usize, &str) -> String) -> String {
        let one = |(place, field): (usize, &&EventField)| format!("{}={}", field.name, value(place, &field.name));
        let own = self.values.fields.iter().enumerate().skip(self.event.format.common.len());
        own.map(one).collect::<Vec<_>>().join(" ")
    }

    fn pieces(&self) -> &[Piece] {
        self.event.print_fmt.as_deref().unwrap_or_default()
    }
}

/// Returns what `write` appends, up to the longest text.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes.truncate(LONGEST);
    String::from_utf8_lossy(&bytes).into_owned()
}
