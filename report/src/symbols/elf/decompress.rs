//! Decompression of kernel modules as distributions ship them, and of the symbol table in
//! `.gnu_debugdata`.
//!
//! Data can be a thousand times as large as its compressed form, so the size is limited, above what
//! real files need.

use std::io::Read;

use crate::symbols::outcome::Refusal;

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
    fn damaged_data_is_refused() {
        for bytes in [&b"\xfd7zXZ\0\0\0"[..], b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd\xff"] {
            assert!(
                matches!(decompressed(bytes.to_vec()), Err(Refusal::Malformed(_))),
                "{bytes:?}"
            );
        }
    }
}
