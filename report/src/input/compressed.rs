//! Inputs that were compressed by hand (gzip, xz, zstd): unpacked into a temporary file without a
//! name, which is mapped as any other input.
//!
//! A few bytes can unpack to any number of them, so their number is limited, as that of compressed
//! records is.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};

use recrep_format::read::most_unpacked;

use crate::input::map::Bytes;

/// Compression of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Xz,
    Zstd,
}

/// An unpacked file.
#[derive(Debug)]
pub(super) struct UnpackedFile {
    pub bytes: Bytes,
    /// Reason for which what follows was not unpacked.
    pub torn: Option<String>,
}

/// Reason for which nothing was unpacked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UnpackError {
    #[error("its {0} data cannot be unpacked: {1}")]
    Damaged(&'static str, io::Error),
    #[error(
        "its {0} data unpacks to more than {1} bytes, which is unlike a recording; unpack it with \
         {2}"
    )]
    TooLarge(&'static str, usize, &'static str),
    #[error(
        "it cannot be unpacked into a temporary file: {0}; TMPDIR can name a directory with room"
    )]
    Temporary(io::Error),
}

impl Compression {
    /// Returns the compression of a file that begins with these bytes, if it has one.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the command that unpacks a file.
    fn command(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dk",
            Self::Xz => "xz -dk",
            Self::Zstd => "zstd -d",
        }
    }

    /// Unpacks a whole file. Of a damaged one, all that can be is.
    pub(super) fn unpack(self, packed: &[u8]) -> Result<UnpackedFile, UnpackError> {
        match self {
            Self::Gzip => self.copy(flate2::read::MultiGzDecoder::new(packed), packed.len()),
            Self::Xz => self.copy(lzma_rust2::XzReader::new(packed, true), packed.len()),
            Self::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(packed);
                self.copy(
                    decoder.map_err(|error| UnpackError::Damaged(self.name(), error))?,
                    packed.len(),
                )
            }
        }
    }

    fn copy(self, mut from: impl Read, packed: usize) -> Result<UnpackedFile, UnpackError> {
        let most = most_unpacked(packed);
        let mut to = BufWriter::new(tempfile::tempfile().map_err(UnpackError::Temporary)?);
        let (mut buffer, mut len) = (vec![0; 1 << 16], 0_usize);
        let torn = loop {
            let part = match from.read(&mut buffer) {
                Ok(0) => break None,
                Ok(part) => part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Some(error),
            };
            len = len.saturating_add(part);
            if len > most {
                return Err(UnpackError::TooLarge(self.name(), most, self.command()));
            }
            to.write_all(buffer.get(..part).unwrap_or_default()).map_err(UnpackError::Temporary)?;
        };
        if let (Some(error), 0) = (&torn, len) {
            return Err(UnpackError::Damaged(
                self.name(),
                io::Error::new(error.kind(), error.to_string()),
            ));
        }
        let mut file: File =
            to.into_inner().map_err(|error| UnpackError::Temporary(error.into_error()))?;
        file.rewind().map_err(UnpackError::Temporary)?;
        let bytes = Bytes::of_file(file, true).map_err(UnpackError::Temporary)?;
        let torn = torn.map(|error| {
            format!("its {} data can be unpacked to byte {len} only: {error}", self.name())
        });
        Ok(UnpackedFile { bytes, torn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns data in each compression.
    fn packed(data: &[u8]) -> Vec<Vec<u8>> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(data).unwrap();
        vec![gzip.finish().unwrap(), zstd::bulk::compress(data, 1).unwrap()]
    }

    /// Bytes that compress little.
    fn data(len: u32) -> Vec<u8> {
        (0..len).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn data_comes_back_whole_or_up_to_its_damage() {
        let data = data(300_000);
        for packed in packed(&data) {
            let compression = Compression::of(&packed).unwrap();
            let whole = compression.unpack(&packed).unwrap();
            assert!(*whole.bytes == *data && whole.torn.is_none(), "{compression:?}");
            let is_right = match compression.unpack(&packed[..packed.len() * 9 / 10]) {
                Ok(half) => data.starts_with(&half.bytes) && half.torn.is_some(),
                Err(error) => matches!(error, UnpackError::Damaged(..)),
            };
            assert!(is_right, "{compression:?}");
            let start = compression.unpack(&packed[..7]);
            assert!(matches!(start, Err(UnpackError::Damaged(..))), "{compression:?}");
        }
        assert_eq!(Compression::of(b"PERFILE2"), None);
    }

    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; 40 << 20];
        let packed = zstd::bulk::compress(&zeros, 1).unwrap();
        let unpacked = Compression::Zstd.unpack(&packed);
        assert!(matches!(unpacked, Err(UnpackError::TooLarge(..))), "{}", packed.len());
    }
}
