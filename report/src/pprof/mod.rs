//! pprof's profiles: the messages of `profile.proto`, for reading and for writing, and the facts
//! that rep keeps in a field of its own, which other readers skip: they print comments.
//!
//! ```text
//!   Profile ─┬─ sample_type    a name and a unit for each value of a sample
//!            ├─ sample         locations, innermost first; values; labels
//!            ├─ location       address in a mapping; lines, of inlined functions first
//!            ├─ mapping        range of addresses, file, build ID
//!            ├─ function       name, name as the file spells it, source file
//!            ├─ string_table   all texts; the others are numbers of these
//!            ├─ comment        the recorder's command line
//!            └─ facts          of rep ([`Facts`])
//! ```
//!
//! Source: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

mod facts;
mod room;

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

pub(crate) use facts::{EventFacts, Facts};
pub(crate) use room::{KERNEL, Room, is_kernel, page_after, page_of};

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
    #[prost(string, tag = "7267")]
    pub(crate) facts: String,
}

/// Number of the field that has the facts, far above those of `profile.proto`.
pub(crate) const FACTS: u32 = 7267;

/// Name and unit of values.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) name: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// Samples with one stack and the same labels.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofSample {
    /// Numbers of locations, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<PprofLabel>,
}

/// Label of samples: a text or a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub(crate) struct PprofLabel {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) text: i64,
    #[prost(int64, tag = "3")]
    pub(crate) number: i64,
    #[prost(int64, tag = "4")]
    pub(crate) unit: i64,
}

/// A file, or other code, in a range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct PprofMapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) start: u64,
    /// Address after the last.
    #[prost(uint64, tag = "3")]
    pub(crate) limit: u64,
    /// Offset in the file of the first address.
    #[prost(uint64, tag = "4")]
    pub(crate) offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// An address.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// Number of its mapping; 0 for none.
    #[prost(uint64, tag = "2")]
    pub(crate) mapping: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    /// Inlined functions, innermost first, then the one that contains them.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<PprofLine>,
}

/// Function and source line.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct PprofLine {
    #[prost(uint64, tag = "1")]
    pub(crate) function: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct PprofFunction {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    /// Name as the file spells it.
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
    /// Line at which it begins; 0 if unknown.
    #[prost(int64, tag = "5")]
    pub(crate) start_line: i64,
}

/// Field of a profile as it lies in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RawField<'a> {
    Number(u64),
    /// A message, a text, or numbers in a row.
    Bytes(&'a [u8]),
}

/// Reads the fields of a profile one after another, each with its number: a profile that is decoded
/// whole takes up to a hundred times its size.
#[derive(Clone, Debug)]
pub(crate) struct RawFields<'a> {
    left: &'a [u8],
}

impl<'a> RawFields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Reads the next field; `None` if it is damaged.
    fn field(&mut self) -> Option<(u32, RawField<'a>)> {
        let (tag, kind) = decode_key(&mut self.left).ok()?;
        let len = match kind {
            WireType::Varint => {
                return Some((tag, RawField::Number(decode_varint(&mut self.left).ok()?)));
            }
            WireType::LengthDelimited => decode_varint(&mut self.left).ok()?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        let (bytes, left) = self.left.split_at_checked(usize::try_from(len).ok()?)?;
        self.left = left;
        Some((tag, RawField::Bytes(bytes)))
    }
}

impl<'a> Iterator for RawFields<'a> {
    /// A field with its number; an error for a damaged one, behind which nothing can be read.
    type Item = Result<(u32, RawField<'a>), DamagedField>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let before = self.left.len();
        let field = self.field().ok_or(DamagedField { left: before });
        if field.is_err() {
            self.left = &[];
        }
        Some(field)
    }
}

/// A field that is no field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DamagedField {
    /// Number of bytes from its beginning to the end of the profile.
    pub(crate) left: usize,
}

/// Returns whether the bytes are a profile, as far as their first fields tell.
pub(crate) fn is_profile(bytes: &[u8]) -> bool {
    let mut has_types = false;
    for (read, field) in RawFields::new(bytes).enumerate() {
        match field {
            Ok((1, RawField::Bytes(kind))) => {
                has_types = true;
                if ValueType::decode(kind).is_err() {
                    return false;
                }
            }
            Ok((2..=7, RawField::Bytes(_)) | (7..=10 | 12..=15, RawField::Number(_))) => {}
            Ok((11 | 13 | FACTS, RawField::Bytes(_))) => {}
            // A profile that was cut is one.
            Err(_) => return has_types && read > 2,
            _ => return false,
        }
        if read > ENOUGH {
            break;
        }
    }
    has_types
}

/// Number of fields that tell a profile from other files.
const ENOUGH: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_one_after_another() {
        let profile = PprofProfile {
            sample_type: vec![ValueType { name: 1, unit: 2 }],
            string_table: vec![String::new(), "cpu".into()],
            time_nanos: 7,
            ..PprofProfile::default()
        };
        let bytes = profile.encode_to_vec();
        let fields: Vec<_> = RawFields::new(&bytes).collect::<Result<_, _>>().unwrap();
        let tags: Vec<u32> = fields.iter().map(|(tag, _)| *tag).collect();
        assert_eq!(tags, [1, 6, 6, 9]);
        assert!(matches!(fields[3].1, RawField::Number(7)));
        assert!(is_profile(&bytes));
        let cut: Vec<_> = RawFields::new(&bytes[..bytes.len() - 1]).collect();
        assert!(matches!(cut[..], [Ok(_), Ok(_), Ok(_), Err(DamagedField { left: 1 })]));
    }

    #[test]
    fn other_files_are_no_profiles() {
        for other in [
            &b""[..],
            b"\x7fELF\x02\x01",
            b"PERFILE2",
            b"a text",
            b"{}",
            &[0; 64],
            &[0x0a, 4, 9, 9],
        ] {
            assert!(!is_profile(other), "{other:?}");
        }
    }
}
