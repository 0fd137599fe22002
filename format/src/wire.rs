//! Structures that are declared once, for reading and writing.
//!
//! In this crate a macro, `wire!`, declares a struct whose fields are named in the order in which
//! they lie in the file, and gives it [`Wire`]: `decode` reads the fields in that order, `encode`
//! writes them in that order. So a layout is stated once, and cannot be read one way and written
//! another.

use smallvec::SmallVec;

use crate::bytes::{Cursor, Encoder, U64s};
use crate::endian::Endian;
use crate::error::Result;

/// A value that has a place in the file.
pub trait Wire<'a>: Sized {
    /// Reads the value; `what` names it in the error.
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self>;
    /// Writes the value.
    ///
    /// # Errors
    /// Returns an error if the format cannot represent the value; what was written before stays in
    /// `e`.
    fn encode(&self, e: &mut Encoder) -> Result<()>;

    /// Reads the value from the beginning of `bytes`.
    ///
    /// # Errors
    /// Returns an error if they do not hold it.
    fn from_bytes(bytes: &'a [u8], endian: Endian) -> Result<Self> {
        Self::decode(&mut Cursor::new(bytes, 0, endian), "a value")
    }

    /// Returns the bytes of the value.
    ///
    /// # Errors
    /// Returns an error if the format cannot represent the value.
    fn to_bytes(&self, endian: Endian) -> Result<Vec<u8>> {
        let mut e = Encoder::new(endian);
        self.encode(&mut e)?;
        Ok(e.into_bytes())
    }
}

macro_rules! wire_number {
    ($($type:ty, $method:ident;)*) => {$(
        impl<'a> Wire<'a> for $type {
            #[inline]
            fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
                c.$method(what)
            }
            #[inline]
            fn encode(&self, e: &mut Encoder) -> Result<()> {
                e.$method(*self);
                Ok(())
            }
        }
    )*};
}

wire_number! { u8, u8; u16, u16; u32, u32; u64, u64; }

impl<'a> Wire<'a> for i32 {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        c.u32(what).map(u32::cast_signed)
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u32(self.cast_unsigned());
        Ok(())
    }
}

impl<'a, const N: usize> Wire<'a> for [u8; N] {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        c.array(what)
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.bytes(self);
        Ok(())
    }
}

/// All the bytes that are left.
impl<'a> Wire<'a> for &'a [u8] {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        Ok(c.rest())
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.bytes(self);
        Ok(())
    }
}

impl Wire<'_> for SmallVec<[u8; 0]> {
    fn decode(c: &mut Cursor<'_>, _: &'static str) -> Result<Self> {
        Ok(Self::from_slice(c.rest()))
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.bytes(self);
        Ok(())
    }
}

/// All the whole 64-bit numbers that are left.
impl<'a> Wire<'a> for U64s<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        c.take_u64s((c.left() / 8) as u64, what)
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u64s(self);
        Ok(())
    }
}

/// A list: a 32-bit count, and so many items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<'a, T: Wire<'a>> Wire<'a> for List<T> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let count = c.u32(what)?;
        items(c, count.into(), what).map(Self)
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.length(self.0.len(), "the length of a list")?;
        self.0.iter().try_for_each(|item| item.encode(e))
    }
}

/// Reads so many items. Each takes at least a byte, so the file bounds the list.
pub(crate) fn items<'a, T: Wire<'a>>(
    c: &mut Cursor<'a>,
    count: u64,
    what: &'static str,
) -> Result<Vec<T>> {
    (0..count).map(|_| T::decode(c, what)).collect()
}

/// A part that newer writers append: there where anything is left.
impl<'a, T: Wire<'a>> Wire<'a> for Option<T> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        if c.is_empty() { Ok(None) } else { T::decode(c, what).map(Some) }
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.iter().try_for_each(|value| value.encode(e))
    }
}

/// A name that fills the rest of a record: its bytes, and what pads it.
///
/// The kernel ends a name with a NUL and pads it with zeroes to a multiple of 8 bytes; recorders
/// have written other padding too, so it is kept as it was found and written back as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    name: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Text<'a> {
    /// Makes a name to write, ended and padded as the kernel does (`ALIGN(len + 1, 8)`).
    pub fn new(name: &'a [u8]) -> Self {
        Self::padded(name, 8)
    }

    /// Makes a name that takes a multiple of `align` bytes with its NUL; `align` is at most 64.
    pub(crate) fn padded(name: &'a [u8], align: usize) -> Self {
        const ZEROES: &[u8] = &[0; 64];
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        let tail = (name.len() + 1).next_multiple_of(align) - name.len();
        Self { name, tail: ZEROES.get(..tail).unwrap_or(ZEROES) }
    }

    /// Returns the name in `bytes`, which hold it and its padding.
    pub fn found(bytes: &'a [u8]) -> Self {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let (name, tail) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
        Self { name, tail }
    }

    /// Returns the name, without its NUL. It need not be UTF-8.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.name
    }

    /// Returns the length of the name with its NUL and its padding, in bytes.
    pub(crate) fn padded_len(&self) -> usize {
        self.name.len() + self.tail.len()
    }

    /// Returns the name as text; what is not UTF-8 is replaced.
    pub fn to_text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

impl<'a> Wire<'a> for Text<'a> {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        Ok(Self::found(c.rest()))
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.bytes(self.name);
        e.bytes(self.tail);
        Ok(())
    }
}

/// Declares a struct whose fields lie in the file in the order given, with its [`Wire`] and its
/// [`Fields`](crate::fields::Fields). The fields must be `pub` and documented; a struct that owns
/// lists is a `pub owned struct`, and not `Copy`. What follows a type says how the field is shown.
///
/// ```text
/// wire! {
///     /// A part of a file.
///     pub struct Section {
///         /// Its first byte.
///         pub offset: u64 => hex,
///         /// Its length, in bytes.
///         pub size: u64,
///     }
/// }
/// ```
macro_rules! wire {
    ($($(#[$meta:meta])* pub struct $name:ident $(<$life:lifetime>)? { $($body:tt)* })*) => {$(
        $crate::fields::named! {
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name $(<$life>)? { $($body)* }
        }
        $crate::wire!(@wire $name $(<$life>)?, $($life,)? { $($body)* });
    )*};
    ($(
        $(#[$meta:meta])* pub owned struct $name:ident $(<$life:lifetime>)? { $($body:tt)* }
    )*) => {$(
        $crate::fields::named! {
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name $(<$life>)? { $($body)* }
        }
        $crate::wire!(@wire $name $(<$life>)?, $($life,)? { $($body)* });
    )*};
    (@wire $name:ident, $body:tt) => { $crate::wire!(@wire $name, 'wire, $body); };
    (@wire $name:ident $(<$own:lifetime>)?, $life:lifetime, {
        $(
            $(#[$fmeta:meta])*
            pub $field:ident: $type:ty $(=> $($shown:literal)? $($how:ident)?)?,
        )*
    }) => {
        impl<$life> $crate::wire::Wire<$life> for $name $(<$own>)? {
            fn decode(
                c: &mut $crate::bytes::Cursor<$life>,
                _: &'static str,
            ) -> $crate::error::Result<Self> {
                $( let $field = <$type as $crate::wire::Wire<$life>>::decode(
                    c, concat!(stringify!($name), ".", stringify!($field)))?; )*
                Ok(Self { $($field,)* })
            }
            fn encode(&self, e: &mut $crate::bytes::Encoder) -> $crate::error::Result<()> {
                $( $crate::wire::Wire::encode(&self.$field, e)?; )*
                Ok(())
            }
        }
    };
}

pub(crate) use wire;

#[cfg(test)]
mod tests {
    use super::*;

    wire! {
        /// Numbers and bytes.
        #[allow(unreachable_pub, reason = "the macro declares what is public")]
        pub struct Several {
            /// Two bytes.
            pub short: u16,
            /// Eight bytes.
            pub long: u64,
            /// As they are.
            pub bytes: [u8; 2],
        }
    }

    #[test]
    fn fields_lie_in_the_order_of_their_declaration() {
        let several = Several { short: 0x0102, long: 0x03, bytes: [4, 5] };
        for (endian, bytes) in [
            (Endian::Little, [2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 4, 5]),
            (Endian::Big, [1, 2, 0, 0, 0, 0, 0, 0, 0, 3, 4, 5]),
        ] {
            assert_eq!(several.to_bytes(endian).unwrap(), bytes);
            assert_eq!(Several::from_bytes(&bytes, endian).unwrap(), several);
            let error =
                Several::decode(&mut Cursor::new(&bytes[..5], 100, endian), "").unwrap_err();
            assert_eq!(error, crate::error::Error::truncated(102, "Several.long", 8, 3));
        }
    }

    #[test]
    fn names_are_padded_as_the_kernel_does() {
        for (name, total) in [("", 8), ("sleep", 8), ("1234567", 8), ("12345678", 16)] {
            let text = Text::new(name.as_bytes());
            let e = text.to_bytes(Endian::Little).unwrap();
            assert_eq!(e.len(), total, "{name}");
            assert_eq!(Text::found(&e), text);
        }
    }

    #[test]
    fn odd_padding_survives() {
        let bytes = b"ls\0garbage";
        let text = Text::found(bytes);
        assert_eq!(text.as_bytes(), b"ls");
        assert_eq!(text.to_bytes(Endian::Little).unwrap(), bytes);
        assert_eq!(Text::found(b"no end").as_bytes(), b"no end");
    }

    #[test]
    fn a_nul_inside_ends_the_name() {
        assert_eq!(Text::new(b"a\0b").as_bytes(), b"a");
    }
}
