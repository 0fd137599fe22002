//! [`constants`]: newtypes of numbers that print their own names.

/// Declares newtypes of numbers with named values.
///
/// Each has its values as associated constants, `NAMED` (all of them in the order given), `name`, a
/// `Display` that prints `UNKNOWN_<number>` for a number without a name, and its place in a layout
/// ([`Wire`](crate::wire::Wire)).
macro_rules! constants {
    ($(
        $(#[$meta:meta])*
        pub struct $type:ident($int:ident) {
            $( $(#[$value_meta:meta])* $name:ident = $number:expr; )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub $int);

        impl $type {
            $( $(#[$value_meta])* pub const $name: Self = Self($number); )*

            /// All named values, in the order of their numbers.
            pub const NAMED: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name of the value; `None` for a number without a name.
            pub const fn name(self) -> Option<&'static str> {
                $( if self.0 == Self::$name.0 {
                    return Some(stringify!($name));
                } )*
                None
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&format!("UNKNOWN_{}", self.0)),
                }
            }
        }

        impl<'a> $crate::wire::Wire<'a> for $type {
            fn decode(
                c: &mut $crate::bytes::Cursor<'a>,
                what: &'static str,
            ) -> $crate::error::Result<Self> {
                <$int as $crate::wire::Wire<'a>>::decode(c, what).map(Self)
            }
            fn encode(&self, e: &mut $crate::bytes::Encoder) -> $crate::error::Result<()> {
                $crate::wire::Wire::encode(&self.0, e)
            }
        }

        $crate::fields::shown! {
            $type: |constant| $crate::fields::Value::Named(constant.0.into(), constant.name());
        }
    )*};
}

/// Gives sets of bits their place in a layout. Bits without a name are kept.
macro_rules! wire_bits {
    ($($type:ident($int:ident);)*) => {$(
        impl<'a> $crate::wire::Wire<'a> for $type {
            fn decode(
                c: &mut $crate::bytes::Cursor<'a>,
                what: &'static str,
            ) -> $crate::error::Result<Self> {
                <$int as $crate::wire::Wire<'a>>::decode(c, what).map(Self::from_bits_retain)
            }
            fn encode(&self, e: &mut $crate::bytes::Encoder) -> $crate::error::Result<()> {
                $crate::wire::Wire::encode(&self.bits(), e)
            }
        }

        $crate::fields::shown! {
            $type: |set| $crate::fields::bits(set);
        }
    )*};
}

pub(crate) use constants;
pub(super) use wire_bits;
