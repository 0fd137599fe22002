//! A compressed data section as the records that it stands for.
//!
//! COMPRESSED records hold pieces of one zstd stream. Here they are replaced by what they unpack to, in their place; a
//! record that one piece begins and a later one ends stands where it ends. Offsets that are told of such data
//! count in the unpacked section.

use recrep_format::abi::RecordType;
use recrep_format::attrs::AttrTable;
use recrep_format::error::{Error, Result};
use recrep_format::read::{Frames, Unpacker};
use recrep_format::record::Body;

/// How many times its own size a file may unpack to. zstd shrinks samples of one stack that carry 64 KiB of it each to a
/// seven-hundredth; a few bytes that claim to be gigabytes are no recording.
const MOST: usize = 1000;
/// To how much one container may unpack: recorders pack at most one ring into one, of which this is a large one.
const MOST_AT_ONCE: usize = 64 << 20;

/// The data section without its containers.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The records.
    pub bytes: Vec<u8>,
    /// How many COMPRESSED containers there were. perf's statistics have these, and not those of COMPRESSED2.
    pub containers: u64,
    /// Why it ends early.
    pub damage: Option<Error>,
}

/// Whether the data has compressed records. perf compresses from the first sample on, so this is found out soon; a
/// file without them is walked only by its headers up to its first sample.
#[must_use]
pub fn is_compressed(frames: Frames<'_>) -> bool {
    frames
        .flatten()
        .take_while(|raw| raw.header.kind != RecordType::SAMPLE)
        .any(|raw| matches!(raw.header.kind, RecordType::COMPRESSED | RecordType::COMPRESSED2))
}

/// Unpacks a data section.
#[must_use]
pub fn unpack(frames: Frames<'_>, attrs: &AttrTable) -> Unpacked {
    let mut unpacked = Unpacked::default();
    unpacked.damage = unpack_into(frames, attrs, &mut unpacked).err();
    unpacked
}

fn unpack_into(frames: Frames<'_>, attrs: &AttrTable, unpacked: &mut Unpacked) -> Result<()> {
    let out = &mut unpacked.bytes;
    let mut left = frames.left().len().saturating_mul(MOST).max(16 << 20);
    let (mut unpacker, mut pending) = (Unpacker::new()?, Vec::new());
    for raw in frames {
        let raw = raw?;
        let piece = match attrs.decode(&raw)?.body {
            Body::Compressed(piece) => {
                unpacked.containers += 1;
                piece.data
            }
            Body::Compressed2(piece) => piece.stream(),
            _ => {
                out.extend_from_slice(raw.bytes);
                out.extend_from_slice(raw.payload);
                continue;
            }
        };
        let before = pending.len();
        let outcome = unpacker.unpack(piece, raw.offset, left.min(MOST_AT_ONCE), &mut pending);
        left = left.saturating_sub(pending.len() - before);
        let whole: usize = Frames::new(&pending, 0, attrs.endian())
            .map_while(std::result::Result::ok)
            .map(|inner| inner.bytes.len() + inner.payload.len())
            .sum();
        out.extend(pending.drain(..whole));
        outcome?;
        if pending.len() > usize::from(u16::MAX) {
            // No record is as long as that: whoever walks them finds what is wrong, and need not have more of it.
            break;
        }
    }
    out.append(&mut pending);
    Ok(())
}
