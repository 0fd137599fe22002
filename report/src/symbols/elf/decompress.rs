//! Decompression of kernel modules as distributions ship them, of the symbol table in
//! `.gnu_debugdata`, and of sections.
//!
//! Data can be a thousand times as large as its compressed form, so the size is limited, above what
//! real files need.

use std::io::Read;

use object::elf::{CompressionHeader32, CompressionHeader64, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};
use object::pod::Pod;
use object::read::elf::CompressionHeader;
use object::{Endianness, pod};

use crate::symbols::file::Refusal;

/// Maximum decompressed size in bytes: more than any kernel module or `.gnu_debugdata` has.
const LIMIT: u64 = 1 << 29;

/// Decompresses an xz, gzip or zstd file; returns other bytes unchanged.
pub(crate) fn decompressed(bytes: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    match bytes.as_slice() {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => xz(&bytes),
        [0x1f, 0x8b, ..] => {
            read_limited("gzip", flate2::read::MultiGzDecoder::new(bytes.as_slice()))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = zstd::stream::read::Decoder::new(bytes.as_slice())?;
            read_limited("zstd", decoder)
        }
        _ => Ok(bytes),
    }
}

/// Decompresses an xz file.
pub(crate) fn xz(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    read_limited("xz", lzma_rust2::XzReader::new(bytes, true))
}

/// Decompresses a section with the flag `SHF_COMPRESSED`, which begins with a header
/// (`Elf64_Chdr`).
pub(crate) fn section(bytes: &[u8], is_64: bool, endian: Endianness) -> Result<Vec<u8>, Refusal> {
    if is_64 {
        section_of::<CompressionHeader64<Endianness>>(bytes, endian)
    } else {
        section_of::<CompressionHeader32<Endianness>>(bytes, endian)
    }
}

fn section_of<H: CompressionHeader<Endian = Endianness> + Pod>(
    bytes: &[u8],
    endian: Endianness,
) -> Result<Vec<u8>, Refusal> {
    let (header, packed) = pod::from_bytes::<H>(bytes)
        .map_err(|()| Refusal::Malformed("a compressed section has no header".into()))?;
    match header.ch_type(endian) {
        ELFCOMPRESS_ZLIB => read_limited("zlib", flate2::read::ZlibDecoder::new(packed)),
        ELFCOMPRESS_ZSTD => read_limited("zstd", zstd::stream::read::Decoder::new(packed)?),
        _ => Err(Refusal::Malformed("a section is compressed in an unknown way".into())),
    }
}

/// Decompresses a section in the older format of GNU tools, in which its name begins with `.z`.
pub(crate) fn gnu_section(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    /// A magic, and the size.
    const HEAD: usize = 12;
    match bytes.split_at_checked(HEAD) {
        Some((head, packed)) if head.starts_with(b"ZLIB") => {
            read_limited("zlib", flate2::read::ZlibDecoder::new(packed))
        }
        _ => Err(Refusal::Malformed("a compressed section has no header".into())),
    }
}

fn read_limited(kind: &str, from: impl Read) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    from.take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Refusal::Malformed(format!("{kind} decompression failed: {error}")))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Refusal::Malformed(format!(
            "its {kind} data is larger than {LIMIT} bytes when decompressed"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn plain_and_compressed_bytes_are_read() {
        let text = b"x".repeat(70_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let zstd = zstd::bulk::compress(&text, 1).unwrap();
        for packed in [text.clone(), gzip.finish().unwrap(), zstd] {
            assert_eq!(decompressed(packed).unwrap(), text);
        }
    }

    #[test]
    fn sections_are_unpacked() {
        let text = b"rules".repeat(900);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&text).unwrap();
        let (zlib, zstd) = (zlib.finish().unwrap(), zstd::bulk::compress(&text, 1).unwrap());
        let with = |words: &[u32], packed: &[u8]| {
            let head = words.iter().flat_map(|word| word.to_le_bytes());
            head.chain(packed.iter().copied()).collect::<Vec<u8>>()
        };
        let of = |bytes: &[u8], is_64| section(bytes, is_64, Endianness::Little);
        assert_eq!(of(&with(&[1, 0, 4500, 0, 1, 0], &zlib), true).unwrap(), text);
        assert_eq!(of(&with(&[2, 0, 4500, 0, 1, 0], &zstd), true).unwrap(), text);
        assert_eq!(of(&with(&[1, 4500, 1], &zlib), false).unwrap(), text);
        assert_eq!(gnu_section(&[b"ZLIB\0\0\0\0\0\0\x11\x94", &*zlib].concat()).unwrap(), text);
        for damaged in
            [with(&[3, 0, 4500, 0, 1, 0], &zlib), with(&[1, 0], &[]), with(&[1; 6], &[7])]
        {
            assert!(of(&damaged, true).is_err());
        }
        assert!(gnu_section(b"ZLIB").is_err() && gnu_section(&zlib).is_err());
    }

    #[test]
    fn damaged_data_is_refused() {
        for bytes in [&b"\xfd7zXZ\0\0\0"[..], b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd\xff"] {
            assert!(
                matches!(decompressed(bytes.to_vec()), Err(Refusal::Malformed(_))),
                "{bytes:?}"
            );
        }
    }
}
