//! Records: the items of the data stream.
//!
//! ```text
//! type u32 | misc u16 | size u16 | body … | trailer (struct sample_id) | [payload: AUXTRACE, TRACING_DATA]
//! '-------- header, 8 bytes -----'                                     ^ size ends here
//! ```
//!
//! [`RawRecord`] is what framing finds: a header and bytes, nothing believed beyond the size. [`RawRecord::decode`]
//! makes it a typed [`Record`] that borrows from the bytes, and [`Record::encode`] writes the same bytes back:
//! what a record has beyond the fields known here is kept in [`Record::rest`].
//!
//! One file for each family of records; samples, which are many and hot, are read lazily by [`Sample`].

mod auxtrace;
mod body;
mod lost;
mod mmap;
mod other;
mod sample;
mod sample_fields;
mod task;
mod trailer;
mod user;

pub use auxtrace::{Auxtrace, AuxtraceError, AuxtraceInfo};
pub use body::Body;
pub use lost::{Lost, LostSamples, Throttle};
pub use mmap::{Inode, Mmap, Mmap2, MmapBuildId, MmapIdentity};
pub use other::{
    Aux, AuxOutputHwId, BpfEvent, CallchainDeferred, Cgroup, ItraceStart, KSymbol, Namespace, Namespaces, ReadRecord,
    SwitchCpuWide, TextPoke,
};
pub use sample::Sample;
pub use sample_fields::{BranchStack, Counter, ReadValues, Regs, SampleFields, StackUser};
pub use task::{Comm, Task};
pub use trailer::Trailer;
pub use user::{
    BpfMetadata, Compressed, Compressed2, CpuMap, EventUpdate, HeaderAttr, HeaderBuildId, HeaderEventType,
    HeaderFeature, HeaderTracingData, IdIndex, IdIndexEntry, Stat, StatConfig, StatRound, ThreadMap, TimeConv,
    TimeConvShort,
};

use zerocopy::byteorder::{BigEndian, ByteOrder, LittleEndian, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::abi::{CpuMode, RecordType};
use crate::bytes::{Cursor, Encoder};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::layout::{SampleLayout, TrailerLayout};

/// How long a record's header is.
pub const HEADER_SIZE: usize = 8;

/// `struct perf_event_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The record's type.
    pub kind: RecordType,
    /// Bits whose meaning depends on the type ([`crate::abi::misc`]); the low three are the CPU mode.
    pub misc: u16,
    /// The record's length with this header, in bytes.
    pub size: u16,
}

/// The header as it lies in a stream of one byte order: the one declaration for reading and writing it.
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
    #[must_use]
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

    /// What the CPU was doing.
    #[inline]
    #[must_use]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::of(self.misc)
    }
}

/// A record as framing finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its header.
    pub header: RecordHeader,
    /// Where it begins in the file.
    pub offset: u64,
    /// All its bytes, header included.
    pub bytes: &'a [u8],
    /// The bytes that follow the record and belong to it (AUXTRACE, TRACING_DATA); mostly empty.
    pub payload: &'a [u8],
}

/// What must be known of the stream to decode one record.
#[derive(Clone, Copy, Debug)]
pub struct Context<'l> {
    /// The byte order.
    pub endian: Endian,
    /// The layout of samples, and of READ, of the record's event.
    pub sample: &'l SampleLayout,
    /// The layout of its trailer.
    pub trailer: TrailerLayout,
}

impl<'a> RawRecord<'a> {
    /// The bytes after the header.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_SIZE..).unwrap_or_default()
    }

    /// Decodes the record.
    ///
    /// # Errors
    /// The record is shorter than its type's fixed fields and the trailer.
    pub fn decode(&self, cx: &Context<'_>) -> Result<Record<'a>> {
        let body = self.body();
        let at = self.offset + HEADER_SIZE as u64;
        let trailer = if self.header.kind.is_kernel() && self.header.kind != RecordType::SAMPLE {
            cx.trailer
        } else {
            TrailerLayout::NONE
        };
        let short = || Error::truncated(at, "sample_id trailer", trailer.size as u64, body.len() as u64);
        let split = body.len().checked_sub(trailer.size).ok_or_else(short)?;
        let (own, tail) = body.split_at_checked(split).ok_or_else(short)?;
        let mut c = Cursor::new(own, at, cx.endian);
        let decoded = Body::decode(&mut c, self.header, cx)?;
        let rest = c.rest();
        let trailer = Trailer::decode(&mut Cursor::new(tail, at + split as u64, cx.endian), &trailer)?;
        Ok(Record { misc: self.header.misc, body: decoded, rest, trailer })
    }
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The header's `misc`.
    pub misc: u16,
    /// The fields of its type.
    pub body: Body<'a>,
    /// Bytes after the fields known here and before the trailer, as found.
    pub rest: &'a [u8],
    /// Who, when, which event; empty where the stream has no `sample_id_all`.
    pub trailer: Trailer,
}

impl<'a> Record<'a> {
    /// A record to write, with nothing beyond its fields and no trailer.
    #[must_use]
    pub fn new(misc: u16, body: Body<'a>) -> Self {
        Self { misc, body, rest: &[], trailer: Trailer::default() }
    }

    /// The same record with this trailer.
    #[must_use]
    pub fn with_trailer(mut self, trailer: Trailer) -> Self {
        self.trailer = trailer;
        self
    }

    /// Appends the record to `e`; the size in its header is what it takes.
    ///
    /// # Errors
    /// The record takes more than the 65,535 bytes that a header can say; nothing is left written then.
    pub fn encode(&self, e: &mut Encoder) -> Result<()> {
        let start = e.len();
        RecordHeader { kind: self.body.kind(), misc: self.misc, size: 0 }.encode(e);
        self.body.encode(e);
        e.bytes(self.rest);
        self.trailer.encode(e);
        let len = e.len() - start;
        match u16::try_from(len) {
            Ok(size) => {
                e.patch_u16(start + 6, size);
                Ok(())
            }
            Err(_) => {
                e.truncate(start);
                Err(Error::invalid(start as u64, "record", format!("{len} bytes, more than a header can say (65535)")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
