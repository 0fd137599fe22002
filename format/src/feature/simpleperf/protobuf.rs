//! Protocol buffers, as far as simpleperf's features need them: messages of numbers, bytes and
//! messages.
//!
//! ```text
//! field:  key (number << 3 | wire type) | 0: varint · 1: 8 bytes · 2: length, bytes · 5: 4 bytes
//! ```
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>.

use crate::bytes::{Cursor, Encoder};
use crate::error::{Error, Result};

const WHAT: &str = "a protocol buffer";

/// Item of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Number(u64),
    /// Bytes, a text, a message, or numbers in a row.
    Bytes(Cursor<'a>),
}

impl<'a> Item<'a> {
    /// Returns the number; 0 where the field has bytes.
    pub(super) fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { 0 }
    }

    /// Returns the bytes; none where the field has a number.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.message().map_or(&[], |mut bytes| bytes.rest())
    }

    /// Returns a cursor over the fields of a message.
    pub(super) fn message(self) -> Option<Cursor<'a>> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Reads the next field of a message: its number and value. `None` at the end.
pub(super) fn field<'a>(c: &mut Cursor<'a>) -> Result<Option<(u64, Item<'a>)>> {
    if c.is_empty() {
        return Ok(None);
    }
    let at = c.offset();
    let key = varint(c)?;
    let value = match key & 7 {
        0 => Item::Number(varint(c)?),
        1 => Item::Number(c.u64(WHAT)?),
        2 => {
            let len = varint(c)?;
            let at = c.offset();
            // No slice is as long as the largest length.
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Item::Bytes(Cursor::new(c.take(len, WHAT)?, at, c.endian()))
        }
        5 => Item::Number(c.u32(WHAT)?.into()),
        other => return Err(Error::invalid(at, WHAT, format!("a field of wire type {other}"))),
    };
    Ok(Some((key >> 3, value)))
}

/// Reads a number of variable length, at most 10 bytes.
pub(super) fn varint(c: &mut Cursor<'_>) -> Result<u64> {
    let at = c.offset();
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = c.u8(WHAT)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Error::invalid(at, WHAT, "a number of more than 64 bits"))
}

/// Appends a number of variable length.
pub(super) fn put_varint(e: &mut Encoder, mut number: u64) {
    loop {
        let [low, ..] = (number & 0x7f).to_le_bytes();
        number >>= 7;
        if number == 0 {
            return e.u8(low);
        }
        e.u8(low | 0x80);
    }
}

/// Appends a field with a number, which is left out if it is 0.
pub(super) fn put_number(e: &mut Encoder, field: u64, number: u64) {
    if number != 0 {
        put_varint(e, field << 3);
        put_varint(e, number);
    }
}

/// Appends a field with bytes or a message.
pub(super) fn put_bytes(e: &mut Encoder, field: u64, bytes: &[u8]) {
    put_varint(e, field << 3 | 2);
    put_varint(e, bytes.len() as u64);
    e.bytes(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, 1 << 63, u64::MAX] {
            let mut e = Encoder::new(Endian::Big);
            put_varint(&mut e, number);
            let mut c = Cursor::new(e.as_bytes(), 0, Endian::Big);
            assert_eq!((varint(&mut c).unwrap(), c.left()), (number, 0));
        }
        assert!(varint(&mut Cursor::new(&[0xff; 20], 0, Endian::Little)).is_err());
    }

    #[test]
    fn fields_of_all_wire_types_are_read() {
        let bytes =
            [0x08, 150, 1, 0x12, 2, b'h', b'i', 0x1d, 5, 0, 0, 0, 0x21, 6, 0, 0, 0, 0, 0, 0, 0];
        let mut c = Cursor::new(&bytes, 0, Endian::Little);
        let mut next = || {
            field(&mut c)
                .unwrap()
                .map(|(number, value)| (number, value.number(), value.bytes().to_vec()))
        };
        assert_eq!(next(), Some((1, 150, Vec::new())));
        assert_eq!(next(), Some((2, 0, b"hi".to_vec())));
        assert_eq!(next(), Some((3, 5, Vec::new())));
        assert_eq!(next(), Some((4, 6, Vec::new())));
        assert_eq!(next(), None);
        for bad in [
            &[0x0b][..],
            &[0x12, 9, 1],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x80],
        ] {
            assert!(field(&mut Cursor::new(bad, 0, Endian::Little)).is_err(), "{bad:?}");
        }
    }
}
