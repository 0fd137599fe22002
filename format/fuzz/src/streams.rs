// Compressed data, unpacked record by record, against the bytes of its zstd stream.

use recrep_format::read::{Decompressor, File, Frames, Unpacked, is_compressed, most_unpacked};
use recrep_format::record::RawRecord;

/// A record: its bytes, with its payload.
fn bytes(raw: &RawRecord<'_>) -> Vec<u8> {
    [raw.bytes, raw.payload].concat()
}

/// The data has all records that are not compressed, in order, and all bytes that are; data without
/// compressed records is as it stands.
pub(crate) fn unpacked(data: &[u8]) {
    let Ok(file) = File::parse(data) else { return };
    let (frames, unpacked) = (file.records(), file.unpacked());
    if !is_compressed(frames.clone()) {
        assert!(frames.eq(unpacked.records()), "nothing is to be unpacked");
        return;
    }
    let mut ends = unpacked.records().skip_while(Result::is_ok);
    let damage = ends.next();
    assert!(ends.next().is_none(), "an error is the end");
    let found: Vec<_> = unpacked.records().flatten().map(|raw| bytes(&raw)).collect();
    let mut left = found.iter();
    let (mut plain, mut packed) = (0, Vec::new());
    let mut decompressor = Decompressor::new().expect("memory");
    for raw in frames.map_while(Result::ok) {
        match raw.compressed_piece(file.endian) {
            // The records between the containers keep their order.
            None => {
                let own = bytes(&raw);
                plain += own.len();
                let is_found = left.any(|found| *found == own);
                assert!(is_found || damage.is_some(), "a record is gone");
            }
            Some(piece) => {
                let Ok(piece) = piece else { break };
                let limit = most_unpacked(data.len());
                if decompressor.decompress(piece, raw.offset, limit, &mut packed).is_err() {
                    break;
                }
            }
        }
    }
    let len: usize = found.iter().map(Vec::len).sum();
    assert!(len <= plain + packed.len(), "more than there is");
    assert!(damage.is_some() || len == plain + packed.len(), "less than there is");
    beside(&file, &found);
}

/// The same records in a file of their own, as the further files of a directory have them.
fn beside(file: &File<'_>, expected: &[Vec<u8>]) {
    let own = Unpacked::of_frames(Frames::new(file.data_bytes(), 0, file.endian));
    assert!(own.records().flatten().map(|raw| bytes(&raw)).eq(expected.iter().cloned()));
}
