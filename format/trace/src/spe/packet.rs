//! Packets of Arm SPE and their bytes.
//!
//! A header of one byte, or of two if it is extended; then a payload of 1, 2, 4 or 8 bytes, whose
//! size bits 5:4 of the last header byte say.

use std::fmt;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// A byte of padding.
    Pad,
    /// End of a record without a timestamp.
    End,
    /// Timestamp: ends a record.
    Timestamp,
    /// Events of the operation, a bit each.
    Events,
    /// Source of the data.
    Source,
    /// Context of an exception level.
    Context,
    /// Class and kind of the operation.
    Operation,
    /// An address.
    Address,
    /// A latency.
    Counter,
    /// Padding up to an aligned offset.
    Alignment,
}

/// Bits of a header.
struct Layout {
    kind: PacketKind,
    /// Bits that tell the kind, and their values.
    mask: u8,
    value: u8,
    /// Low bits that are an index.
    index: u8,
    /// `true` if the packet has a payload.
    has_payload: bool,
    /// `true` if the header may be extended, which gives the index two more bits.
    extends: bool,
}

/// The headers of all kinds of packets but [`PacketKind::Alignment`].
const LAYOUTS: [Layout; 9] = [
    fixed(PacketKind::Pad, 0x00, false),
    fixed(PacketKind::End, 0x01, false),
    fixed(PacketKind::Timestamp, 0x71, true),
    sized(PacketKind::Events, 0x42),
    sized(PacketKind::Source, 0x43),
    indexed(PacketKind::Context, 0x64, 0x03, false),
    indexed(PacketKind::Operation, 0x48, 0x03, false),
    indexed(PacketKind::Address, 0xb0, 0x07, true),
    indexed(PacketKind::Counter, 0x98, 0x07, true),
];

const fn fixed(kind: PacketKind, value: u8, has_payload: bool) -> Layout {
    Layout { kind, mask: 0xff, value, index: 0, has_payload, extends: false }
}

/// Size bits are free.
const fn sized(kind: PacketKind, value: u8) -> Layout {
    Layout { kind, mask: 0xcf, value, index: 0, has_payload: true, extends: false }
}

const fn indexed(kind: PacketKind, value: u8, index: u8, extends: bool) -> Layout {
    Layout { kind, mask: !index, value, index, has_payload: true, extends }
}

/// First byte of an extended header, but for its two low bits.
const EXTENDED: u8 = 0x20;
/// Bits of the index in the first byte of an extended header.
const EXTENDED_INDEX: u8 = 0x03;
/// Size bits of a header.
const SIZE: u8 = 0x30;

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The kind.
    pub kind: PacketKind,
    /// Number that tells addresses, counters, contexts and operations apart; the exponent of an
    /// alignment.
    pub index: u8,
    /// Logarithm of the payload's size in bytes. Events and sources may have any from 0 to 3.
    pub size: u8,
    /// The payload; 0 if there is none.
    pub payload: u64,
}

/// Reason for which bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// The bytes end within the packet.
    Incomplete,
    /// No packet has this header.
    Unknown,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "the bytes end within a packet",
            Self::Unknown => "no packet has this header",
        })
    }
}

impl std::error::Error for PacketError {}

impl Packet {
    /// Most bytes of a packet but an alignment.
    pub const MAX_LEN: usize = 10;

    /// Returns a packet, with the size that is usual for its kind.
    pub fn new(kind: PacketKind, index: u8, payload: u64) -> Self {
        let size = match kind {
            PacketKind::Events | PacketKind::Source => size_for(payload),
            kind => layout(kind).map_or(0, |layout| (layout.value & SIZE) >> 4),
        };
        Self { kind, index, size, payload }
    }

    /// Reads the packet at the beginning of these bytes, and returns its length, too; `offset` is
    /// that of the bytes, to which alignments refer.
    ///
    /// # Errors
    /// Returns an error if the bytes are no packet.
    #[inline]
    pub fn read(bytes: &[u8], offset: u64) -> Result<(Self, usize), PacketError> {
        let Some(&first) = bytes.first() else { return Err(PacketError::Incomplete) };
        let is_extended = first & !EXTENDED_INDEX == EXTENDED;
        let header = match is_extended {
            true => *bytes.get(1).ok_or(PacketError::Incomplete)?,
            false => first,
        };
        if is_extended && header == 0 {
            return Self::alignment(first, bytes.len(), offset);
        }
        let mut layouts = LAYOUTS.iter();
        let layout = layouts
            .find(|layout| header & layout.mask == layout.value && (layout.extends || !is_extended))
            .ok_or(PacketError::Unknown)?;
        let more = if is_extended { (first & EXTENDED_INDEX) << 3 } else { 0 };
        let index = header & layout.index | more;
        let head = 1 + usize::from(is_extended);
        if !layout.has_payload {
            return Ok((Self { kind: layout.kind, index, size: 0, payload: 0 }, head));
        }
        let size = (header & SIZE) >> 4;
        let len = 1 << size;
        let payload = bytes.get(head..head + len).ok_or(PacketError::Incomplete)?;
        let payload = payload.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        Ok((Self { kind: layout.kind, index, size, payload }, head + len))
    }

    /// Reads the padding up to an aligned offset.
    fn alignment(first: u8, available: usize, offset: u64) -> Result<(Self, usize), PacketError> {
        let exponent = (first & 0x0f) + 1;
        let unit = 1 << exponent;
        // At an aligned offset a whole unit is skipped, as in perf.
        let len = unit - (offset & (unit - 1));
        let packet = Self { kind: PacketKind::Alignment, index: exponent, size: 0, payload: 0 };
        match usize::try_from(len) {
            Ok(len) if len <= available => Ok((packet, len)),
            _ => Err(PacketError::Incomplete),
        }
    }

    /// Appends the bytes of the packet. An alignment refers to offsets in `into`.
    pub fn write(&self, into: &mut Vec<u8>) {
        let Some(layout) = layout(self.kind) else {
            let unit = 1_usize << self.index.clamp(1, 4);
            let len = unit - into.len() % unit;
            // The header takes two bytes; where one is left, it cannot be written.
            let len = if len < 2 { len + unit } else { len };
            let end = into.len() + len;
            into.extend([EXTENDED | (self.index.clamp(1, 4) - 1), 0]);
            into.resize(end, 0);
            return;
        };
        if layout.extends && self.index > layout.index {
            into.push(EXTENDED | self.index >> 3 & EXTENDED_INDEX);
        }
        let size = if layout.mask & SIZE == 0 { self.size << 4 & SIZE } else { 0 };
        into.push(layout.value | self.index & layout.index | size);
        if layout.has_payload {
            let len = 1 << ((layout.value | size) >> 4 & 3);
            into.extend(self.payload.to_le_bytes().iter().take(len));
        }
    }
}

fn layout(kind: PacketKind) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.kind == kind)
}

/// Returns the logarithm of the least number of bytes that hold a payload.
fn size_for(payload: u64) -> u8 {
    match payload {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xffff_ffff => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<(Packet, usize), PacketError> {
        Packet::read(bytes, 0)
    }

    #[test]
    fn headers_and_payloads_by_hand() {
        use PacketKind::*;
        for (bytes, kind, index, payload) in [
            (&[0x00][..], Pad, 0, 0),
            (&[0x01], End, 0, 0),
            (&[0x71, 1, 2, 3, 4, 5, 6, 7, 8], Timestamp, 0, 0x0807_0605_0403_0201),
            (&[0xb0, 1, 0, 0, 0, 0, 0, 0, 0xe0], Address, 0, 0xe000_0000_0000_0001),
            (&[0xb4, 2, 0, 0, 0, 0, 0, 0, 0], Address, 4, 2),
            (&[0x99, 0x34, 0x12], Counter, 1, 0x1234),
            (&[0x65, 7, 0, 0, 0], Context, 1, 7),
            (&[0x4a, 3], Operation, 2, 3),
            (&[0x42, 0x1e], Events, 0, 0x1e),
            (&[0x62, 4, 3, 2, 1], Events, 0, 0x0102_0304),
            (&[0x53, 0x0d, 0], Source, 0, 0x0d),
            (&[0x21, 0x9a, 5, 0], Counter, 10, 5),
            (&[0x23, 0xb7, 9, 0, 0, 0, 0, 0, 0, 0], Address, 31, 9),
        ] {
            let (packet, len) = read(bytes).unwrap();
            assert_eq!((packet.kind, packet.index, packet.payload), (kind, index, payload));
            assert_eq!(len, bytes.len(), "{packet:?}");
            let mut written = Vec::new();
            packet.write(&mut written);
            assert_eq!(written, bytes);
            for short in 1..len {
                assert_eq!(read(&bytes[..short]), Err(PacketError::Incomplete), "{packet:?}");
            }
        }
        for unknown in [0x02, 0x80, 0xff, 0x40] {
            assert_eq!(read(&[unknown; 16]), Err(PacketError::Unknown));
        }
        assert_eq!(read(&[0x20, 0x42, 0, 0]), Err(PacketError::Unknown));
    }

    #[test]
    fn alignments_end_where_they_say() {
        let bytes = [0x22, 0, 0, 0, 0, 0, 0, 0];
        let lens: Vec<_> = [0, 1, 6, 8].map(|at| Packet::read(&bytes, at).unwrap().1).into();
        assert_eq!(lens, [8, 7, 2, 8]);
        for index in 1..=4 {
            for before in 0..17 {
                let mut written = vec![0; before];
                let packet = Packet { kind: PacketKind::Alignment, index, size: 0, payload: 0 };
                packet.write(&mut written);
                let end = written.len();
                assert_eq!(end % (1 << index), 0);
                let (read, len) = Packet::read(&written[before..], before as u64).unwrap();
                assert_eq!(read, packet);
                assert!(before + len == end || written[before + len..].iter().all(|b| *b == 0));
            }
        }
    }
}
