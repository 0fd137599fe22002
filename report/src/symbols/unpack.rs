//! Compressed files: kernel modules as distributions ship them, and the small symbol table within a stripped program.
//!
//! What is unpacked may be a thousand times as large as what it comes from, so there is a limit that no real one reaches.

use std::io::Read;

use super::outcome::Refusal;

/// More than any kernel module or `.gnu_debugdata` unpacks to.
const LIMIT: u64 = 1 << 29;

/// What these bytes hold: unpacked if they begin as a file of xz, gzip or zstd does, else as they are.
pub(super) fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    match bytes.as_slice() {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => xz(&bytes),
        [0x1f, 0x8b, ..] => all_of("gzip", flate2::read::MultiGzDecoder::new(bytes.as_slice())),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = zstd::stream::read::Decoder::new(bytes.as_slice())?;
            all_of("zstd", decoder)
        }
        _ => Ok(bytes),
    }
}

/// What an xz file holds.
pub(super) fn xz(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    all_of("xz", lzma_rust2::XzReader::new(bytes, true))
}

fn all_of(kind: &str, from: impl Read) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    from.take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Refusal::Malformed(format!("it cannot be unpacked ({kind}): {error}")))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Refusal::Malformed(format!("it unpacks ({kind}) to more than {LIMIT} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn plain_and_packed() {
        let text = b"x".repeat(70_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let zstd = zstd::bulk::compress(&text, 1).unwrap();
        for packed in [text.clone(), gzip.finish().unwrap(), zstd] {
            assert_eq!(unpacked(packed).unwrap(), text);
        }
    }

    #[test]
    fn damaged_ones_are_refused() {
        for bytes in [&b"\xfd7zXZ\0\0\0"[..], b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd\xff"] {
            assert!(matches!(unpacked(bytes.to_vec()), Err(Refusal::Malformed(_))), "{bytes:?}");
        }
    }
}
