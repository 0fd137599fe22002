//! The first bytes of a file: its magic, byte order and where its parts are.

use crate::bytes::Cursor;
use crate::endian::Endian;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::{Wire, wire};

/// Size of the header of a file in bytes.
pub const FILE_HEADER_SIZE: usize = 104;
/// Size of the header of a pipe-mode stream in bytes.
pub const PIPE_HEADER_SIZE: usize = 16;

wire! {
    /// A part of a file (`struct perf_file_section`).
    pub struct Section {
        /// Offset in the file.
        pub offset: u64,
        /// Size in bytes.
        pub size: u64,
    }

    /// The header of a file (`struct perf_file_header`).
    pub struct FileHeader {
        /// `PERFILE2` in the file's byte order.
        pub magic: [u8; 8],
        /// Size of this header: 104.
        pub size: u64,
        /// Size of each entry of the attrs section: an attr and the section of its ids.
        pub attr_size: u64,
        /// The attrs.
        pub attrs: Section,
        /// The records.
        pub data: Section,
        /// Names of tracepoints (deprecated).
        pub event_types: Section,
        /// A bit for each feature whose section follows the data.
        pub features: [u64; 4],
    }
}

impl Wire<'_> for [u64; 4] {
    fn decode(c: &mut Cursor<'_>, what: &'static str) -> Result<Self> {
        Ok([c.u64(what)?, c.u64(what)?, c.u64(what)?, c.u64(what)?])
    }
    fn encode(&self, e: &mut crate::bytes::Encoder) -> Result<()> {
        self.iter().for_each(|v| e.u64(*v));
        Ok(())
    }
}

impl FileHeader {
    /// Returns the header that a pipe-mode stream stands for: its data, of `size` bytes, follows
    /// the short header.
    pub(super) fn of_pipe(endian: Endian, size: u64) -> Self {
        let empty = Section { offset: 0, size: 0 };
        let data = Section { offset: PIPE_HEADER_SIZE as u64, size };
        let (magic, size) = (Magic::bytes(endian), PIPE_HEADER_SIZE as u64);
        Self { magic, size, attr_size: 0, attrs: empty, data, event_types: empty, features: [0; 4] }
    }
}

impl Section {
    /// Length of a section's place and size in a file, in bytes.
    pub(crate) const SIZE: usize = 16;

    /// Returns the bytes of the section in `file`; `None` where the file ends before it does.
    pub fn of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let end = start.checked_add(usize::try_from(self.size).ok()?)?;
        file.get(start..end)
    }
}

/// Version and byte order, by the first eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magic {
    /// `PERFILE2`: the format since 2012, in this byte order.
    V2(Endian),
    /// `PERFFILE`: the old one; its byte order shows in the sizes.
    V1,
}

impl Magic {
    /// `PERFILE2` as a little-endian machine writes it.
    pub const V2_BYTES: [u8; 8] = *b"PERFILE2";
    const V2_SWAPPED: [u8; 8] = *b"2ELIFREP";
    const V1_BYTES: [u8; 8] = *b"PERFFILE";

    /// Reads the magic at the start of `bytes`.
    ///
    /// # Errors
    /// Returns an error if they do not begin with a magic.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        match bytes.first_chunk::<8>() {
            Some(&Self::V2_BYTES) => Ok(Self::V2(Endian::Little)),
            Some(&Self::V2_SWAPPED) => Ok(Self::V2(Endian::Big)),
            Some(&Self::V1_BYTES) => Ok(Self::V1),
            _ => Err(Error::new(0, ErrorKind::Magic)),
        }
    }

    /// Returns the magic of a file written in `endian`: perf writes the number, so a big-endian
    /// machine's bytes are reversed.
    pub const fn bytes(endian: Endian) -> [u8; 8] {
        match endian {
            Endian::Little => Self::V2_BYTES,
            Endian::Big => Self::V2_SWAPPED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_104_bytes() {
        let section = Section { offset: 1, size: 2 };
        let header = FileHeader {
            magic: Magic::V2_BYTES,
            size: 104,
            attr_size: 152,
            attrs: section,
            data: section,
            event_types: section,
            features: [1, 2, 3, 4],
        };
        let e = header.to_bytes(Endian::Little).unwrap();
        assert_eq!(e.len(), FILE_HEADER_SIZE);
        let back = FileHeader::from_bytes(&e, Endian::Little).unwrap();
        assert_eq!(back, header);
    }

    #[test]
    fn a_section_is_never_outside_its_file() {
        let file = [0u8; 10];
        assert_eq!(Section { offset: 2, size: 8 }.of(&file).map(<[u8]>::len), Some(8));
        assert!(Section { offset: 2, size: 9 }.of(&file).is_none());
        assert!(Section { offset: u64::MAX, size: 9 }.of(&file).is_none());
    }

    #[test]
    fn magics() {
        assert_eq!(Magic::read(b"PERFILE2..."), Ok(Magic::V2(Endian::Little)));
        assert_eq!(Magic::read(&Magic::bytes(Endian::Big)), Ok(Magic::V2(Endian::Big)));
        assert!(Magic::read(b"PERF").is_err());
        assert!(Magic::read(b"\x7fELF....").is_err());
    }
}
