//! Fields by their names in the ABI, for programs that print every field.
//!
//! The macros that declare structures give them [`Fields`]: a printer names no field itself, and a
//! field that is added here is printed there. A declaration says how a field is shown where its
//! type does not: `pub kind: u32 => "type"` gives the ABI's name, `pub addr: u64 => hex` the base.
//!
//! ```
//! use recrep_format::fields::{Fields as _, Value};
//! use recrep_format::record::Lost;
//!
//! let mut shown = Vec::new();
//! Lost { id: 7, lost: 3 }.each(&mut |name, value| {
//!     if let Value::Number(number) = value {
//!         shown.push(format!("{name}: {number}"));
//!     }
//! });
//! assert_eq!(shown, ["id: 7", "lost: 3"]);
//! ```

use std::fmt::Debug;

use smallvec::SmallVec;

use crate::bytes::U64s;
use crate::wire::{List, Text};

/// A structure whose fields have names.
pub trait Fields: Debug {
    /// Calls `visit` with name and value of each field, in the order of the declaration.
    fn each<'v>(&'v self, visit: &mut dyn FnMut(&'static str, Value<'v>));
}

/// The value of a field, by how it is shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value<'v> {
    /// A number.
    Number(i128),
    /// A number to show in hexadecimal, such as an address.
    Hex(u64),
    /// A factor.
    Real(f64),
    /// A number that stands for something, and its name if it is known.
    Named(u64, Option<&'static str>),
    /// A set of bits: those with a name, and the others.
    Bits(Vec<(&'static str, u64)>, u64),
    /// Text, without its NUL. It need not be UTF-8.
    Text(&'v [u8]),
    /// Bytes.
    Bytes(&'v [u8]),
    /// An array of 64-bit numbers.
    Words(U64s<'v>),
    /// Fields of their own.
    Fields(&'v dyn Fields),
    /// A list.
    List(Vec<Self>),
    /// No value: the field is not there, or is not for people.
    Absent,
}

/// How declarations say that a value is shown.
impl Value<'_> {
    /// Returns a number to show in hexadecimal.
    pub(crate) fn hex(self) -> Self {
        match self {
            Self::Number(number) => u64::try_from(number).map_or(self, Self::Hex),
            other => other,
        }
    }

    /// Returns a 32-bit number as a signed one: -1 for all ones.
    pub(crate) fn signed(self) -> Self {
        match self {
            Self::Number(number) => {
                u32::try_from(number).map_or(self, |bits| Self::Number(bits.cast_signed().into()))
            }
            other => other,
        }
    }

    /// Returns bytes as text, up to its NUL.
    pub(crate) fn text(self) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Text(Text::found(bytes).as_bytes()),
            other => other,
        }
    }

    /// Returns the number of the items of a list.
    pub(crate) fn count(self) -> Self {
        match self {
            Self::List(items) => Self::Number(items.len() as i128),
            other => other,
        }
    }

    /// Returns the value of a field that is not for people.
    pub(crate) fn hidden(self) -> Self {
        Self::Absent
    }
}

/// The type of a field.
pub trait Field {
    /// Returns the value to show.
    fn value(&self) -> Value<'_>;
}

impl<T: Fields> Field for T {
    fn value(&self) -> Value<'_> {
        Value::Fields(self)
    }
}

/// Returns the value of a set of bits.
pub(crate) fn bits<B: bitflags::Flags<Bits: Into<u64>>>(set: &B) -> Value<'static> {
    let mut names = set.iter_names();
    let known = names.by_ref().map(|(name, bit)| (name, bit.bits().into())).collect();
    Value::Bits(known, names.remaining().bits().into())
}

/// Declares how values of types are shown.
macro_rules! shown {
    ($($type:ty $(where [$($generic:tt)*])?: |$this:ident| $value:expr;)*) => {$(
        impl $(<$($generic)*>)? $crate::fields::Field for $type {
            fn value(&self) -> $crate::fields::Value<'_> {
                let $this = self;
                $value
            }
        }
    )*};
}

shown! {
    u8: |number| Value::Number((*number).into());
    u16: |number| Value::Number((*number).into());
    u32: |number| Value::Number((*number).into());
    u64: |number| Value::Number((*number).into());
    i32: |number| Value::Number((*number).into());
    &[u8]: |bytes| Value::Bytes(bytes);
    [u8; N] where [const N: usize]: |bytes| Value::Bytes(bytes);
    [&[u8]; N] where [const N: usize]: |all| Value::List(all.iter().map(Field::value).collect());
    SmallVec<[u8; 0]>: |bytes| Value::Bytes(bytes);
    [u64; N] where [const N: usize]: |words| Value::List(words.iter().map(Field::value).collect());
    [u32; N] where [const N: usize]: |words| Value::List(words.iter().map(Field::value).collect());
    Text<'_>: |text| Value::Text(text.as_bytes());
    U64s<'_>: |words| Value::Words(*words);
    Option<T> where [T: Field]: |value| value.as_ref().map_or(Value::Absent, Field::value);
    Vec<T> where [T: Field]: |list| Value::List(list.iter().map(Field::value).collect());
    List<T> where [T: Field]: |list| list.0.value();
}

/// Declares structures with [`Fields`]. After a field's type may follow `=>`, the name in the ABI
/// where it is another than the field's, and a method of [`Value`] that says how it is shown.
macro_rules! named {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident $(<$life:lifetime>)? { $(
            $(#[$fmeta:meta])*
            pub $field:ident: $type:ty $(=> $($shown:literal)? $($how:ident)?)?,
        )* }
    )*) => {$(
        $(#[$meta])*
        pub struct $name $(<$life>)? {
            $( $(#[$fmeta])* pub $field: $type, )*
        }

        impl $(<$life>)? $crate::fields::Fields for $name $(<$life>)? {
            fn each<'v>(&'v self, visit: &mut dyn FnMut(&'static str, $crate::fields::Value<'v>)) {
                $( visit(
                    $crate::fields::named!(@name $field $($($shown)?)?),
                    $crate::fields::named!(@value self.$field, $($($how)?)?),
                ); )*
            }
        }
    )*};
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $shown:literal) => { $shown };
    (@value $value:expr,) => { $crate::fields::Field::value(&$value) };
    (@value $value:expr, $how:ident) => { $crate::fields::Field::value(&$value).$how() };
}

pub(crate) use {named, shown};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{AuxFlags, BpfEventType};
    use crate::record::{Aux, Body, BpfEvent, Comm, IdIndexEntry, Namespace};

    #[track_caller]
    fn check(fields: &dyn Fields, expected: &str) {
        let mut shown = Vec::new();
        fields.each(&mut |name, value| shown.push(format!("{name} {value:?}")));
        assert_eq!(shown.join(", "), expected);
    }

    #[test]
    fn a_declaration_says_how_its_fields_are_shown() {
        let comm = Comm { pid: u32::MAX, tid: 7, comm: Text::new(b"ls") };
        check(&comm, "pid Number(-1), tid Number(7), comm Text([108, 115])");
        check(&Body::Comm(comm), "pid Number(-1), tid Number(7), comm Text([108, 115])");
        check(&Namespace { dev: 4, inode: 16 }, "dev Number(4), ino Hex(16)");
        let flags = AuxFlags::from_bits_retain(1 | 1 << 40);
        check(
            &Aux { aux_offset: 0, aux_size: 1, flags },
            "aux_offset Hex(0), aux_size Hex(1), flags Bits([(\"TRUNCATED\", 1)], 1099511627776)",
        );
        let bpf = BpfEvent { event_type: BpfEventType(1), flags: 0, id: 3, tag: [7; 8] };
        check(
            &bpf,
            "type Named(1, Some(\"PROG_LOAD\")), flags Hex(0), id Number(3), \
             tag Bytes([7, 7, 7, 7, 7, 7, 7, 7])",
        );
        let entry = IdIndexEntry {
            id: 1,
            idx: 2,
            cpu: crate::abi::Cpu::ANY,
            tid: crate::abi::Tid(9),
            guest: None,
        };
        check(&entry, "id Number(1), idx Number(2), cpu Number(-1), tid Number(9), guest Absent");
        check(&Body::Switch, "");
        check(&Body::Other(crate::abi::RecordType(99), b"!"), "not_decoded Bytes([33])");
    }
}
