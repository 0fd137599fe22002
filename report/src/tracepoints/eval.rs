//! Evaluation of expressions for the raw bytes of one sample.
//!
//! Numbers are unsigned 64-bit, as in libtraceevent: a 32-bit field that holds -1 is 4294967295
//! until it is printed as an `int`. Outside the raw bytes numbers are 0, and strings and arrays are
//! cut short.

use recrep_format::feature::tracing::{EventField, RawFields};

use super::expr::lex::Token;
use super::expr::{CType, Expr, ctype};
use super::printf::{Spec, hex, list, words};

/// Maximum length of the text of one sample. Only damaged data gives more.
pub(super) const LONGEST: usize = 1 << 16;

/// Functions and strings of the recorded kernel.
pub(crate) trait KernelTexts {
    /// Returns the function that contains an address, and the offset in it.
    fn function(&self, address: u64) -> Option<(String, u64)>;
    /// Returns the string at an address.
    fn string(&self, address: u64) -> Option<&[u8]>;
}

/// Evaluates an event's expressions for one sample.
pub(super) struct FieldValues<'e> {
    pub(super) fields: &'e [EventField],
    pub(super) raw: RawFields<'e>,
    pub(super) kernel: &'e dyn KernelTexts,
    pub(super) long_size: usize,
}

impl FieldValues<'_> {
    /// Returns the value of `expr` as a number.
    pub(super) fn number(&self, expr: &Expr) -> u64 {
        match expr {
            Expr::Field(place) => match self.fields.get(*place) {
                Some(field) if !field.is_array => {
                    self.raw.number(field.offset, field.size).unwrap_or(0)
                }
                _ => 0,
            },
            Expr::Cast(ctype, inner) => {
                let value = self.number(inner);
                match (ctype.is_pointer, ctype.size) {
                    (false, size @ 1..=7) => value & ((1 << (8 * size)) - 1),
                    _ => value,
                }
            }
            Expr::Element(array, index) => self.element(array, self.number(index)),
            Expr::DynamicLen(place) => {
                self.fields.get(*place).map_or(0, |field| self.raw.location(field).1 as u64)
            }
            _ => expr.computed(false, |operand| Some(self.number(operand))).unwrap_or(0),
        }
    }

    fn element(&self, array: &Expr, index: u64) -> u64 {
        let (bytes, size) = self.array(array);
        let at = usize::try_from(index).ok().and_then(|index| index.checked_mul(size));
        at.and_then(|at| RawFields { bytes, ..self.raw }.number(at, size)).unwrap_or(0)
    }

    /// Returns the bytes of an array, and the size of an element.
    fn array(&self, array: &Expr) -> (&[u8], usize) {
        match array {
            Expr::Cast(CType { size, is_pointer: true }, inner) if *size > 0 => {
                (self.array(inner).0, *size)
            }
            Expr::Cast(_, inner) => self.array(inner),
            Expr::Field(place)
            | Expr::Dynamic(place)
            | Expr::Bitmask(place)
            | Expr::Cpumask(place) => {
                let Some(field) = self.fields.get(*place) else { return (&[], 1) };
                (self.raw.bytes_of(field), self.element_size(field))
            }
            _ => (&[], 1),
        }
    }

    /// Returns the size of an element of an array or of a `__data_loc type[]`.
    fn element_size(&self, field: &EventField) -> usize {
        if !field.is_dynamic() {
            return field.element_size();
        }
        let inner =
            field.type_name.split_whitespace().skip(1).map(|word| word.trim_end_matches("[]"));
        let words: Vec<_> = inner.filter(|word| !word.is_empty()).map(Token::Name).collect();
        ctype(&words, self.long_size).map(|ctype| ctype.size).filter(|size| *size > 0).unwrap_or(1)
    }

    /// Returns the bytes that the argument of `%pI4`, `%pM` and so on points to.
    pub(super) fn bytes(&self, expr: &Expr) -> &[u8] {
        self.array(expr).0
    }

    /// Writes `expr` as a string.
    pub(super) fn text(&self, expr: &Expr, spec: &Spec, out: &mut Vec<u8>) {
        if out.len() > LONGEST {
            return;
        }
        let text = match expr {
            Expr::Text(text) => return spec.text(text.as_bytes(), out),
            Expr::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                return self.text(if self.number(condition) != 0 { yes } else { no }, spec, out);
            }
            Expr::Cast(_, inner) => return self.text(inner, spec, out),
            Expr::Dynamic(_) => return spec.text(self.bytes(expr), out),
            Expr::Field(place) => return self.field(*place, spec, out),
            Expr::Flags(value, separator, table) => {
                return self.flags(self.number(value), separator, table, spec, out);
            }
            Expr::Symbol(value, table) => {
                let value = self.number(value);
                match table.iter().find(|(number, _)| number.cast_unsigned() == value) {
                    Some((_, name)) => return spec.text(name.as_bytes(), out),
                    None => format!("{value:#x}"),
                }
            }
            Expr::Hex(array, len, spaced) => {
                let bytes = self.bytes(array);
                let len = usize::try_from(self.number(len)).unwrap_or(usize::MAX).min(bytes.len());
                hex(bytes.get(..len).unwrap_or_default(), if *spaced { " " } else { "" })
            }
            Expr::Array(parts) => self.int_array(parts),
            Expr::Bitmask(_) => words(&self.longs(self.bytes(expr))),
            Expr::Cpumask(_) => list(&self.longs(self.bytes(expr))),
            _ => return,
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// Returns the longs of a bitmap, lowest first.
    pub(super) fn longs(&self, bytes: &[u8]) -> Vec<u64> {
        let longs = bytes.chunks_exact(self.long_size.max(1));
        longs
            .map(|long| {
                RawFields { bytes: long, ..self.raw }.number(0, self.long_size).unwrap_or(0)
            })
            .collect()
    }

    fn field(&self, place: usize, spec: &Spec, out: &mut Vec<u8>) {
        let Some(field) = self.fields.get(place) else { return };
        if !field.is_array && field.size == self.long_size {
            // The address of a string in the kernel.
            let address = self.raw.number(field.offset, field.size).unwrap_or(0);
            match self.kernel.string(address) {
                Some(text) => out.extend_from_slice(text),
                None => out.extend_from_slice(format!("{address:x}").as_bytes()),
            }
        } else {
            spec.text(self.raw.bytes_of(field), out);
        }
    }

    fn flags(
        &self,
        mut value: u64,
        separator: &str,
        table: &[(i64, String)],
        spec: &Spec,
        out: &mut Vec<u8>,
    ) {
        let mut between = "";
        for (bits, name) in table {
            let mask = bits.cast_unsigned();
            if value == 0 && *bits < 0 {
                return spec.text(name.as_bytes(), out);
            }
            if *bits > 0 && value & mask == mask {
                out.extend_from_slice(between.as_bytes());
                spec.text(name.as_bytes(), out);
                (value, between) = (value & !mask, separator);
            }
        }
        if value != 0 {
            out.extend_from_slice(format!("{between}{value:#x}").as_bytes());
        }
    }

    fn int_array(&self, parts: &[Expr; 3]) -> String {
        let [array, count, size] = parts;
        let size = usize::try_from(self.number(size)).unwrap_or(0);
        let bytes = self.bytes(array);
        let count = usize::try_from(self.number(count)).unwrap_or(usize::MAX);
        let elements = bytes.chunks_exact(size.max(1)).take(count).map(|bytes| {
            format!("{:#x}", RawFields { bytes, ..self.raw }.number(0, size).unwrap_or(0))
        });
        format!("{{{}}}", elements.collect::<Vec<_>>().join(","))
    }
}
