//! Features that are a string, or a list of strings.

use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::{Value, shown};
use crate::wire::{List, Wire, wire};

/// A string in a feature (`struct perf_header_string`): a length, and that many bytes with NUL and
/// padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HeaderString<'a> {
    bytes: &'a [u8],
    /// The padded length to write; the bytes beyond `bytes` are zeroes.
    padded: usize,
}

impl<'a> HeaderString<'a> {
    /// perf pads strings to a multiple of this many bytes.
    const ALIGN: usize = 64;

    /// Returns a string to write, ended and padded as perf does.
    pub fn new(text: &'a str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// Makes a string that need not be UTF-8, such as a path in a command line.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        let bytes = bytes.split(|b| *b == 0).next().unwrap_or_default();
        Self { bytes, padded: (bytes.len() + 1).next_multiple_of(Self::ALIGN) }
    }

    /// Returns the string, without NUL and padding.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// Returns the string as text; what is not UTF-8 is replaced.
    pub fn to_text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

/// Returns the bytes without the zeroes at their end.
pub(super) fn unpadded(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..len).unwrap_or(bytes)
}

impl<'a> Wire<'a> for HeaderString<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let padded = c.u32(what)? as usize;
        Ok(Self { bytes: unpadded(c.take(padded, what)?), padded })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.length(self.padded, "the length of a string")?;
        e.padded(self.bytes, self.padded);
        Ok(())
    }
}

shown! {
    HeaderString<'_>: |text| Value::Text(text.as_bytes());
}

macro_rules! string_features {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(pub HeaderString<'a>);

        impl<'a> $name<'a> {
            /// Returns the feature with this text.
            pub fn new(text: &'a str) -> Self {
                Self(HeaderString::new(text))
            }
        }

        impl<'a> Wire<'a> for $name<'a> {
            fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
                HeaderString::decode(c, what).map(Self)
            }
            fn encode(&self, e: &mut Encoder) -> Result<()> {
                self.0.encode(e)
            }
        }

        shown! {
            $name<'_>: |text| text.0.value();
        }
    )*};
}

string_features! {
    /// The machine's name (`uname -n`).
    Hostname;
    /// The kernel's release (`uname -r`).
    OsRelease;
    /// The recorder's version.
    Version;
    /// The machine's architecture (`uname -m`).
    Arch;
    /// The CPU's description.
    CpuDesc;
    /// The CPU's exact type; on x86 vendor, family, model, stepping.
    CpuId;
}

wire! {
    /// The recorder's command line (`CMDLINE`): its words.
    pub owned struct Cmdline<'a> {
        /// The words.
        pub args: List<HeaderString<'a>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn strings_are_padded_as_perf_does_and_come_back() {
        let e = Hostname::new("here").to_bytes(Endian::Big).unwrap();
        assert_eq!(e.len(), 4 + 64);
        let back = Hostname::from_bytes(&e, Endian::Big).unwrap();
        assert_eq!(back.0.to_text(), "here");
        assert_eq!(back.to_bytes(Endian::Big).unwrap(), e);
    }

    #[test]
    fn a_command_line_is_its_words() {
        let words = ["rec", "-g", "--", "./a b"];
        let cmdline = Cmdline { args: List(words.iter().map(|w| HeaderString::new(w)).collect()) };
        let e = cmdline.to_bytes(Endian::Little).unwrap();
        let back = Cmdline::from_bytes(&e, Endian::Little).unwrap();
        assert!(back.args.0.iter().map(HeaderString::to_text).eq(words));
        let mut lying = Encoder::new(Endian::Little);
        lying.u32(u32::MAX);
        assert!(Cmdline::from_bytes(lying.as_bytes(), Endian::Little).is_err());
    }
}
