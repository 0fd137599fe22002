//! Records of Arm SPE: one sampled operation each.

use super::packet::{Packet, PacketKind};

/// Bits of [`Record::events`].
pub mod events {
    /// An exception was taken.
    pub const EXCEPTION: u64 = 1 << 0;
    /// The operation was retired.
    pub const RETIRED: u64 = 1 << 1;
    /// Access to the first level of the data cache.
    pub const L1D_ACCESS: u64 = 1 << 2;
    /// Refill of the first level of the data cache.
    pub const L1D_REFILL: u64 = 1 << 3;
    /// Access to the TLB.
    pub const TLB_ACCESS: u64 = 1 << 4;
    /// Walk of the page tables.
    pub const TLB_WALK: u64 = 1 << 5;
    /// A branch was not taken.
    pub const NOT_TAKEN: u64 = 1 << 6;
    /// A branch was mispredicted.
    pub const MISPREDICTED: u64 = 1 << 7;
    /// Access to the last level of the cache.
    pub const LLC_ACCESS: u64 = 1 << 8;
    /// Miss in the last level of the cache.
    pub const LLC_MISS: u64 = 1 << 9;
    /// Access to another socket.
    pub const REMOTE_ACCESS: u64 = 1 << 10;
    /// Misaligned access.
    pub const MISALIGNED: u64 = 1 << 11;
    /// Predicate of SVE that is partly empty.
    pub const PARTIAL_PREDICATE: u64 = 1 << 17;
    /// Predicate of SVE that is empty.
    pub const EMPTY_PREDICATE: u64 = 1 << 18;
}

/// Bits of [`Record::operations`].
pub mod operations {
    /// An operation other than those below.
    pub const OTHER: u8 = 1 << 0;
    /// A load, a store, or an atomic operation.
    pub const MEMORY: u8 = 1 << 1;
    /// A branch or a return from an exception.
    pub const BRANCH: u8 = 1 << 2;
    /// A load.
    pub const LOAD: u8 = 1 << 3;
    /// A store.
    pub const STORE: u8 = 1 << 4;
}

/// One sampled operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Address of the instruction; all ones in the highest byte if it is the kernel's.
    pub ip: u64,
    /// Target of the branch.
    pub target: u64,
    /// Virtual address of the data.
    pub virtual_address: u64,
    /// Physical address of the data.
    pub physical_address: u64,
    /// Value of the counter; `None` if the record has none.
    pub timestamp: Option<u64>,
    /// Total latency in cycles.
    pub latency: u16,
    /// Context: the thread, if the kernel writes it there.
    pub context: Option<u32>,
    /// Bits of [`operations`].
    pub operations: u8,
    /// Bits of [`events`].
    pub events: u64,
    /// Source of the data, as the CPU numbers it; 0 without a packet.
    pub source: u16,
}

/// Puts packets together to records.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordReader {
    record: Record,
    /// `true` if the record at hand has a packet.
    is_open: bool,
}

impl RecordReader {
    /// Returns whether a record has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Forgets the record at hand.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes the next packet; returns the record that it ends, if it does.
    #[inline]
    pub fn take(&mut self, packet: &Packet) -> Option<Record> {
        let record = &mut self.record;
        let payload = packet.payload;
        match packet.kind {
            PacketKind::Pad | PacketKind::Alignment => return None,
            PacketKind::End => return Some(std::mem::take(self).record),
            PacketKind::Timestamp => {
                record.timestamp = Some(payload);
                return Some(std::mem::take(self).record);
            }
            PacketKind::Address => match packet.index {
                0 => record.ip = code_address(payload),
                1 => record.target = code_address(payload),
                2 => record.virtual_address = data_address(payload),
                3 => record.physical_address = payload & ADDRESS,
                _ => {}
            },
            PacketKind::Counter if packet.index == 0 => {
                record.latency = (payload & 0xffff) as u16;
            }
            PacketKind::Counter => {}
            PacketKind::Context => record.context = Some((payload & 0xffff_ffff) as u32),
            PacketKind::Operation => record.operations |= operation(packet.index, payload),
            PacketKind::Events => record.events |= payload,
            PacketKind::Source => record.source = (payload & 0xffff) as u16,
        }
        self.is_open = true;
        None
    }
}

/// Bits of an address.
const ADDRESS: u64 = (1 << 56) - 1;
/// Highest byte of addresses of the kernel.
const KERNEL: u64 = 0xff << 56;

/// Returns the address of code: bits 62:61 are the exception level, bit 63 is set if the level is
/// not secure.
fn code_address(payload: u64) -> u64 {
    let is_kernel = payload >> 63 == 1 && matches!(payload >> 61 & 3, 1 | 2);
    payload & ADDRESS | if is_kernel { KERNEL } else { 0 }
}

/// Returns the address of data, without the tag in its highest byte.
fn data_address(payload: u64) -> u64 {
    let is_kernel = payload >> 52 & 0xf == 0xf;
    payload & ADDRESS | if is_kernel { KERNEL } else { 0 }
}

/// Returns the bits of an operation packet.
fn operation(class: u8, payload: u64) -> u8 {
    match class {
        0 => operations::OTHER,
        1 if payload & 1 == 1 => operations::MEMORY | operations::STORE,
        1 => operations::MEMORY | operations::LOAD,
        2 => operations::BRANCH,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_make_up_a_record() {
        let mut reader = RecordReader::default();
        let packets = [
            (PacketKind::Address, 0, 1 << 63 | 1 << 61 | 0x80_0000_1234),
            (PacketKind::Pad, 0, 0),
            (PacketKind::Events, 0, 0x212),
            (PacketKind::Operation, 1, 1),
            (PacketKind::Counter, 0, 300),
            (PacketKind::Counter, 1, 7),
            (PacketKind::Address, 2, 0xabf0_0000_0000_0010),
            (PacketKind::Address, 3, 1 << 63 | 0x77),
            (PacketKind::Context, 1, 42),
            (PacketKind::Source, 0, 0xd),
        ];
        for (kind, index, payload) in packets {
            assert_eq!(reader.take(&Packet::new(kind, index, payload)), None);
        }
        assert!(reader.is_open());
        let record = reader.take(&Packet::new(PacketKind::Timestamp, 0, 99)).unwrap();
        let expected = Record {
            ip: 0xff00_0080_0000_1234,
            target: 0,
            virtual_address: 0xfff0_0000_0000_0010,
            physical_address: 0x77,
            timestamp: Some(99),
            latency: 300,
            context: Some(42),
            operations: operations::MEMORY | operations::STORE,
            events: 0x212,
            source: 0xd,
        };
        assert_eq!(record, expected);
        assert!(!reader.is_open());
        let end = reader.take(&Packet::new(PacketKind::End, 0, 0));
        assert_eq!(end, Some(Record::default()), "nothing is left of the record before");
    }
}
