//! The values of a tracepoint's fields in its raw bytes.

use super::{EventField, EventFormat};
use crate::endian::Endian;

/// The raw bytes of a tracepoint's sample
/// ([`SampleFields::raw`](crate::record::SampleFields::raw)).
///
/// Outside the bytes numbers are missing, and arrays are cut short: old kernels and damaged files
/// have both.
#[derive(Clone, Copy, Debug)]
pub struct RawFields<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Their byte order: that of the file.
    pub endian: Endian,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// A number without a sign, or an address.
    Unsigned(u64),
    /// A number with a sign.
    Signed(i64),
    /// An array of characters, up to its first NUL.
    Text(&'a [u8]),
    /// An array of numbers.
    Numbers(FieldNumbers<'a>),
    /// Anything else: a structure, or a number of an odd size.
    Bytes(&'a [u8]),
}

/// The numbers in an array.
#[derive(Clone, Copy, Debug)]
pub struct FieldNumbers<'a> {
    raw: RawFields<'a>,
    size: usize,
    is_signed: bool,
}

impl<'a> FieldNumbers<'a> {
    /// Returns the numbers in order: [`FieldValue::Unsigned`] or [`FieldValue::Signed`].
    pub fn iter(&self) -> impl Iterator<Item = FieldValue<'a>> + use<'a> {
        let Self { raw, size, is_signed } = *self;
        let places = (0..raw.bytes.len()).step_by(size.max(1));
        places.map_while(move |at| {
            raw.number(at, size).map(|value| FieldValue::number(value, size, is_signed))
        })
    }
}

impl PartialEq for FieldNumbers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for FieldNumbers<'_> {}

impl FieldValue<'_> {
    fn number(value: u64, size: usize, is_signed: bool) -> Self {
        // The sign is the highest of the field's bits.
        let unused = u64::BITS.saturating_sub(u32::try_from(size).unwrap_or(8).saturating_mul(8));
        if is_signed {
            Self::Signed(value.wrapping_shl(unused).cast_signed() >> unused)
        } else {
            Self::Unsigned(value)
        }
    }
}

impl<'a> RawFields<'a> {
    /// Returns the number of 1, 2, 4 or 8 bytes at `offset`; `None` for other sizes and outside the
    /// bytes.
    #[inline]
    pub fn number(&self, offset: usize, size: usize) -> Option<u64> {
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        match *bytes {
            [byte] => Some(byte.into()),
            [a, b] => Some(self.endian.u16([a, b]).into()),
            [a, b, c, d] => Some(self.endian.u32([a, b, c, d]).into()),
            _ => bytes.try_into().ok().map(|bytes| self.endian.u64(bytes)),
        }
    }

    /// Returns `len` bytes at `offset`, fewer at the end.
    pub fn slice(&self, offset: usize, len: usize) -> &'a [u8] {
        let from = self.bytes.get(offset..).unwrap_or_default();
        from.get(..len).unwrap_or(from)
    }

    /// Returns offset and length of a field's bytes, also if they lie elsewhere (`__data_loc`,
    /// `__rel_loc`).
    pub fn location(&self, field: &EventField) -> (usize, usize) {
        if !field.is_dynamic() {
            return (field.offset, field.size);
        }
        let word = self.number(field.offset, field.size).unwrap_or(0);
        let [offset, len] = [word, word >> 16].map(|half| usize::from((half & 0xffff) as u16));
        let base = if field.is_relative() { field.offset.saturating_add(field.size) } else { 0 };
        (base.saturating_add(offset), len)
    }

    /// Returns a field's bytes, also if they lie elsewhere.
    pub fn bytes_of(&self, field: &EventField) -> &'a [u8] {
        let (offset, len) = self.location(field);
        self.slice(offset, len)
    }

    /// Returns the value of a field; `None` for a number outside the bytes.
    pub fn value(&self, field: &EventField) -> Option<FieldValue<'a>> {
        let bytes = self.bytes_of(field);
        let is_text =
            |name: &str| name.split_whitespace().any(|word| word.trim_end_matches("[]") == "char");
        if field.is_string() && is_text(&field.type_name) && !field.type_name.contains("unsigned") {
            return Some(FieldValue::Text(
                bytes.split(|byte| *byte == 0).next().unwrap_or_default(),
            ));
        }
        let size = if field.is_array { field.array_element_size() } else { field.size };
        match (field.is_array, size) {
            (true, 1 | 2 | 4 | 8) => {
                let raw = RawFields { bytes, endian: self.endian };
                Some(FieldValue::Numbers(FieldNumbers { raw, size, is_signed: field.is_signed }))
            }
            (false, 1 | 2 | 4 | 8) => self
                .number(field.offset, size)
                .map(|value| FieldValue::number(value, size, field.is_signed)),
            _ => Some(FieldValue::Bytes(bytes)),
        }
    }
}

impl EventFormat {
    /// Returns the value of a field by name, from the raw bytes of one of the event's samples;
    /// `None` if the event lacks the field, or the bytes do.
    ///
    /// ```
    /// use recrep_format::endian::Endian;
    /// use recrep_format::feature::tracing::{EventFormat, FieldValue};
    ///
    /// # fn main() -> recrep_format::error::Result<()> {
    /// let text = b"name: sched_stat\nID: 7\nformat:\n\
    ///     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    ///     \tfield:int delta;\toffset:4;\tsize:4;\tsigned:1;\n";
    /// let event = EventFormat::parse("sched", text, 0)?;
    /// let raw = [7, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff];
    /// assert_eq!(event.value("delta", &raw, Endian::Little), Some(FieldValue::Signed(-2)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn value<'a>(&self, name: &str, raw: &'a [u8], endian: Endian) -> Option<FieldValue<'a>> {
        self.field(name).and_then(|field| RawFields { bytes: raw, endian }.value(field))
    }

    /// Returns all fields with their values, those that all events have first. Numbers outside the
    /// bytes are left out.
    pub fn values<'a>(
        &self,
        raw: &'a [u8],
        endian: Endian,
    ) -> impl Iterator<Item = (&EventField, FieldValue<'a>)> {
        let raw = RawFields { bytes: raw, endian };
        self.common
            .iter()
            .chain(&self.fields)
            .filter_map(move |field| Some((field, raw.value(field)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> EventFormat {
        let field = |text: &str, offset, size, signed| {
            format!("\tfield:{text};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
        };
        let fields = [
            field("unsigned short common_type", 0, 2, 0),
            String::from("\n"),
            field("s16 small", 2, 2, 1),
            field("unsigned int count", 4, 4, 0),
            field("char comm[4]", 8, 4, 0),
            field("short pair[2]", 12, 4, 1),
            field("u8 mac[2]", 10, 2, 0),
            field("__data_loc char[] name", 16, 4, 0),
            field("__rel_loc u32[] list", 20, 4, 0),
            field("struct thing thing", 24, 3, 0),
            field("u64 late", 64, 8, 0),
        ];
        EventFormat::parse(
            "s",
            format!("name: e\nID: 7\nformat:\n{}", fields.concat()).as_bytes(),
            0,
        )
        .unwrap()
    }

    /// `name` is 3 bytes at 27, `list` 8 bytes at 6 after its own end at 24, so at 30.
    const LITTLE: [u8; 38] = [
        7, 0, 0xfe, 0xff, 1, 2, 0, 0, b'l', b's', 0, b'x', 0xff, 0xff, 3, 0, 27, 0, 3, 0, 6, 0, 8,
        0, 1, 2, 3, b'a', b'b', 0, 5, 0, 0, 0, 6, 0, 0, 0,
    ];
    const BIG: [u8; 38] = [
        0, 7, 0xff, 0xfe, 0, 0, 2, 1, b'l', b's', 0, b'x', 0xff, 0xff, 0, 3, 0, 3, 0, 27, 0, 8, 0,
        6, 1, 2, 3, b'a', b'b', 0, 0, 0, 0, 5, 0, 0, 0, 6,
    ];

    #[test]
    fn values_by_name_in_both_byte_orders() {
        use FieldValue::{Bytes, Signed, Text, Unsigned};
        let event = event();
        for (raw, endian) in [(LITTLE, Endian::Little), (BIG, Endian::Big)] {
            let value = |name| event.value(name, &raw, endian);
            assert_eq!(value("common_type"), Some(Unsigned(7)));
            assert_eq!(value("small"), Some(Signed(-2)));
            assert_eq!((value("count"), value("comm")), (Some(Unsigned(0x201)), Some(Text(b"ls"))));
            assert_eq!(value("name"), Some(Text(b"ab")));
            assert_eq!(value("thing"), Some(Bytes(&[1, 2, 3])));
            assert_eq!((value("late"), value("nope")), (None, None));
            let numbers = |name| match value(name) {
                Some(FieldValue::Numbers(numbers)) => numbers.iter().collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            };
            assert_eq!(numbers("pair"), [Signed(-1), Signed(3)]);
            assert_eq!(numbers("mac"), [Unsigned(0), Unsigned(u64::from(b'x'))]);
            assert_eq!(numbers("list"), [Unsigned(5), Unsigned(6)]);
            let names: Vec<_> =
                event.values(&raw, endian).map(|(field, _)| field.name.as_str()).collect();
            assert_eq!(
                names,
                ["common_type", "small", "count", "comm", "pair", "mac", "name", "list", "thing"]
            );
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_bytes() {
        let event = event();
        for len in 0..LITTLE.len() {
            assert!(event.values(&LITTLE[..len], Endian::Little).count() <= 9);
        }
        let raw = RawFields { bytes: &LITTLE, endian: Endian::Little };
        assert_eq!([raw.number(0, 3), raw.number(37, 2), raw.number(usize::MAX, 8)], [None; 3]);
        assert_eq!((raw.slice(36, 9), raw.slice(99, 1)), (&[0, 0][..], &[][..]));
    }
}
