//! A tracepoint that is ready to be printed: its format and its parsed print fmt.

use recrep_format::endian::Endian;
use recrep_format::feature::tracing::{EventField, EventFormat, RawFields};

use super::eval::{FieldValues, KernelTexts, LONGEST};
use super::expr::Expr;
use super::print_fmt::{self, FormatPiece};
use super::printf::hex;

#[derive(Clone, Debug)]
pub(crate) struct Tracepoint {
    /// All fields; the common ones come first.
    pub(super) fields: Vec<EventField>,
    /// Number of the common fields.
    pub(super) common: usize,
    /// Number of leading bytes, those of the common fields, that the print fmt does not show.
    pub(super) hidden: usize,
    /// `None` if the print fmt uses something unsupported.
    print_fmt: Option<Vec<FormatPiece>>,
    endian: Endian,
    long_size: usize,
}

impl Tracepoint {
    /// Parses the print fmt of `format`.
    pub(crate) fn new(format: EventFormat, endian: Endian, long_size: usize) -> Self {
        let EventFormat { common: mut fields, fields: own, print_fmt, .. } = format;
        let first_own = own.iter().map(|field| field.offset).min().unwrap_or(0);
        let hidden = if print_fmt.contains("common_") { 0 } else { first_own };
        let common = fields.len();
        fields.extend(own);
        let print_fmt = print_fmt::parse(&print_fmt, &fields, long_size);
        Self { fields, common, hidden, print_fmt, endian, long_size }
    }

    /// Returns the value of a field that is a number, in the sample that has these raw bytes, with
    /// as many bits as the field; `None` if the event lacks it.
    pub(crate) fn number(&self, name: &str, bytes: &[u8]) -> Option<u64> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        RawFields { bytes, endian: self.endian }.number(field.offset, field.size)
    }

    /// Returns the offset and size in bytes of a field that is a number.
    pub(crate) fn place(&self, name: &str) -> Option<(usize, usize)> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some((field.offset, field.size))
    }

    /// Returns the byte order of the fields.
    pub(crate) const fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the value of a field that is a text, in the sample that has these raw bytes.
    pub(crate) fn field_text<'e>(&self, name: &str, bytes: &'e [u8]) -> Option<&'e [u8]> {
        let field = self.fields.iter().find(|field| field.name == name && field.is_string())?;
        let text = RawFields { bytes, endian: self.endian }.bytes_of(field);
        text.split(|byte| *byte == 0).next()
    }

    /// Returns the values in the sample that has these raw bytes.
    pub(super) fn values<'e>(
        &'e self,
        bytes: &'e [u8],
        kernel: &'e dyn KernelTexts,
    ) -> FieldValues<'e> {
        let raw = RawFields { bytes, endian: self.endian };
        FieldValues { fields: &self.fields, raw, kernel, long_size: self.long_size }
    }

    /// Returns the text that the kernel would print for the sample that has these raw bytes.
    pub(crate) fn text(&self, bytes: &[u8], kernel: &dyn KernelTexts) -> String {
        self.text_of(&self.values(bytes, kernel))
    }

    /// Returns the text that the kernel would print; if the print fmt is unsupported, the fields.
    pub(super) fn text_of(&self, values: &FieldValues<'_>) -> String {
        match &self.print_fmt {
            Some(pieces) => written(|out| print_fmt::write(pieces, values, out)),
            None => format!("[FAILED TO PARSE]{}", self.fields_of(values)),
        }
    }

    /// Returns all fields but the common ones as ` name=value …`.
    pub(super) fn fields_of(&self, values: &FieldValues<'_>) -> String {
        let mut from = 0;
        written(|out| {
            for (place, field) in self.fields.iter().enumerate().skip(self.common) {
                out.push(b' ');
                out.extend_from_slice(field.name.as_bytes());
                out.push(b'=');
                self.write_field(place, &mut from, values, out);
            }
        })
    }

    /// Returns the text of one field.
    pub(super) fn field_of(&self, values: &FieldValues<'_>, place: usize) -> String {
        written(|out| self.write_field(place, &mut 0, values, out))
    }

    /// Writes one field: as the print fmt does if one of its arguments is just this field,
    /// otherwise by its type. The search for that argument starts at the piece `from`.
    fn write_field(
        &self,
        place: usize,
        from: &mut usize,
        values: &FieldValues<'_>,
        out: &mut Vec<u8>,
    ) {
        let Some(field) = self.fields.get(place) else { return };
        let pieces = self.print_fmt.as_deref().unwrap_or_default();
        // libtraceevent stops searching once it has reached the end.
        let is_searched = !field.is_array && *from < pieces.len();
        let mut places = (*from..pieces.len()).chain(0..*from).filter(|_| is_searched);
        let found = places.find_map(|at| match pieces.get(at)? {
            FormatPiece::Argument(argument) if is_alone(&argument.expr, place) => {
                Some((at, argument))
            }
            _ => None,
        });
        let Some((at, argument)) = found else { return write_raw(field, &values.raw, out) };
        let before = at.checked_sub(1).and_then(|before| pieces.get(before));
        if matches!(before, Some(FormatPiece::Literal(text)) if text.ends_with("0x")) {
            out.extend_from_slice(b"0x");
        }
        argument.write(values, out);
        *from = at + 1;
    }
}

/// Returns what `write` appends, up to the longest text.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes.truncate(LONGEST);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_alone(expr: &Expr, place: usize) -> bool {
    match expr {
        Expr::Field(field) => *field == place,
        Expr::Cast(_, inner) => is_alone(inner, place),
        _ => false,
    }
}

/// Writes a field by its type.
fn write_raw(field: &EventField, raw: &RawFields<'_>, out: &mut Vec<u8>) {
    if field.is_array {
        let bytes = raw.bytes_of(field);
        let len = bytes.iter().take_while(|byte| **byte != 0).count();
        let text = bytes.get(..len).unwrap_or_default();
        let is_printed =
            |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace() || *byte == 0x0b;
        if field.is_string() && text.iter().all(|byte| *byte == b' ' || is_printed(byte)) {
            return out.extend_from_slice(text);
        }
        out.extend_from_slice(format!("ARRAY[{}]", hex(bytes, ", ")).as_bytes());
    } else {
        let value = raw.number(field.offset, field.size).unwrap_or(0);
        out.extend_from_slice(number(field, value).as_bytes());
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the value has only as many bits as the field")]
fn number(field: &EventField, value: u64) -> String {
    if field.is_pointer() || field.is_long() && (!field.is_signed || field.size == 4) {
        return format!("0x{value:x}");
    }
    match (field.is_signed, field.size) {
        (true, 4) => (value as i32).to_string(),
        (true, 2) => format!("{:2}", value as i16),
        (true, 1) => (value as i8).to_string(),
        (true, _) => value.cast_signed().to_string(),
        (false, _) => value.to_string(),
    }
}
