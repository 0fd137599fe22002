//! The header, with which every record begins, and what decoding one needs to know beside its
//! bytes.

use zerocopy::byteorder::{BigEndian, ByteOrder, LittleEndian, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::abi::{CpuMode, RecordType};
use crate::bytes::Encoder;
use crate::endian::Endian;
use crate::layout::{SampleIdLayout, SampleLayout};

/// Size of a record's header in bytes.
pub const HEADER_SIZE: usize = 8;

/// `struct perf_event_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The record's type.
    pub kind: RecordType,
    /// Bits whose meaning depends on the type ([`crate::abi::misc`]); the low three are the CPU
    /// mode.
    pub misc: u16,
    /// The record's length with this header, in bytes.
    pub size: u16,
}

/// The header as it lies in a stream of one byte order: the one declaration for reading and writing
/// it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HeaderBytes<O: ByteOrder> {
    kind: U32<O>,
    misc: U16<O>,
    size: U16<O>,
}

impl<O: ByteOrder> From<HeaderBytes<O>> for RecordHeader {
    #[inline]
    fn from(h: HeaderBytes<O>) -> Self {
        Self { kind: RecordType(h.kind.get()), misc: h.misc.get(), size: h.size.get() }
    }
}

impl<O: ByteOrder> From<RecordHeader> for HeaderBytes<O> {
    fn from(h: RecordHeader) -> Self {
        Self { kind: U32::new(h.kind.0), misc: U16::new(h.misc), size: U16::new(h.size) }
    }
}

impl RecordHeader {
    /// Reads a header.
    #[inline]
    pub fn read(bytes: [u8; HEADER_SIZE], endian: Endian) -> Self {
        match endian {
            Endian::Little => {
                let header: HeaderBytes<LittleEndian> = zerocopy::transmute!(bytes);
                header.into()
            }
            Endian::Big => {
                let header: HeaderBytes<BigEndian> = zerocopy::transmute!(bytes);
                header.into()
            }
        }
    }

    /// Writes the header.
    pub fn encode(&self, e: &mut Encoder) {
        match e.endian() {
            Endian::Little => e.bytes(HeaderBytes::<LittleEndian>::from(*self).as_bytes()),
            Endian::Big => e.bytes(HeaderBytes::<BigEndian>::from(*self).as_bytes()),
        }
    }

    /// Returns the length of the record in bytes, without data that follows it: its size, but for a
    /// long record of simpleperf, whose data is taken to follow the header.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.simpleperf_data_len() > 0 { HEADER_SIZE } else { usize::from(self.size) }
    }

    /// Returns the length of the data behind the header of a record of simpleperf whose size takes
    /// more than 16 bits; 0 for all other records.
    #[inline]
    pub(crate) fn simpleperf_data_len(&self) -> u64 {
        let is_long = self.kind.is_simpleperf() && self.misc > 0;
        let size = u64::from(self.misc) << 16 | u64::from(self.size);
        if is_long { size - HEADER_SIZE as u64 } else { 0 }
    }

    /// Returns the CPU mode.
    #[inline]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::of(self.misc)
    }
}

/// Facts about the stream that decoding a record needs.
#[derive(Clone, Copy, Debug)]
pub struct Context<'l> {
    /// The byte order.
    pub endian: Endian,
    /// The layout of samples, and of READ, of the record's event.
    pub sample: &'l SampleLayout,
    /// The layout of its trailer.
    pub trailer: SampleIdLayout,
}
