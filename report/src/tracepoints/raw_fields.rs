//! Fields formatted by their types, as `name=value`, without the print fmt.

use recrep_format::feature::tracing::{EventField, RawFields};

use super::eval::{Values, hex};
use super::expr::Expr;
use super::print_fmt::Piece;

/// Writes one field: as the print fmt with these `pieces` does if one of its arguments is just this field, otherwise by
/// its type. The search for that argument starts at the piece `from`.
pub(super) fn write_field(pieces: &[Piece], place: usize, from: &mut usize, values: &Values<'_>, out: &mut Vec<u8>) {
    let Some(field) = values.fields.get(place) else { return };
    let count = pieces.len();
    let argument = |at| match pieces.get(at)? {
        Piece::Argument(argument) if is_alone(&argument.expr, place) => Some((at, argument)),
        _ => None,
    };
    // libtraceevent stops searching once it has reached the end.
    let is_searched = !field.is_array && *from < count;
    let found = if is_searched { (*from..count).chain(0..*from).find_map(argument) } else { None };
    let Some((at, argument)) = found else { return raw_field(field, &values.raw, out) };
    let before = at.checked_sub(1).and_then(|before| pieces.get(before));
    if matches!(before, Some(Piece::Literal(text)) if text.ends_with("0x")) {
        out.extend_from_slice(b"0x");
    }
    argument.write(values, out);
    *from = at + 1;
}

fn is_alone(expr: &Expr, place: usize) -> bool {
    match expr {
        Expr::Field(field) => *field == place,
        Expr::Cast(_, inner) => is_alone(inner, place),
        _ => false,
    }
}

/// Writes a field by its type.
fn raw_field(field: &EventField, raw: &RawFields<'_>, out: &mut Vec<u8>) {
    if field.is_array {
        let bytes = raw.bytes_of(field);
        let len = bytes.iter().take_while(|byte| **byte != 0).count();
        let text = bytes.get(..len).unwrap_or_default();
        let is_printed = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace() || *byte == 0x0b;
        if field.is_string() && text.iter().all(|byte| *byte == b' ' || is_printed(byte)) {
            return out.extend_from_slice(text);
        }
        out.extend_from_slice(b"ARRAY[");
        hex(bytes, ", ", out);
        out.push(b']');
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
