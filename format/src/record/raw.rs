//! A record as framing finds it, and as it is when decoded.

use crate::abi::RecordType;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::layout::SampleIdLayout;
use crate::wire::Wire;

use super::body::Body;
use super::header::{Context, HEADER_SIZE, RecordHeader};
use super::sample_id::SampleId;
use super::user::{Compressed, Compressed2};

/// A record as framing finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its header.
    pub header: RecordHeader,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// All its bytes, header included.
    pub bytes: &'a [u8],
    /// The bytes that follow the record and belong to it (AUXTRACE, TRACING_DATA, long records of
    /// simpleperf); mostly empty.
    pub payload: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Returns the bytes after the header.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_SIZE..).unwrap_or_default()
    }

    /// Returns the piece of a zstd stream that a COMPRESSED or COMPRESSED2 record holds; `None` for
    /// other types.
    ///
    /// # Errors
    /// Returns an error if the record is too short.
    pub fn compressed_piece(&self, endian: Endian) -> Option<Result<&'a [u8]>> {
        let mut c = Cursor::new(self.body(), self.offset + HEADER_SIZE as u64, endian);
        match self.header.kind {
            RecordType::COMPRESSED => {
                Some(Compressed::decode(&mut c, "COMPRESSED").map(|piece| piece.data))
            }
            RecordType::COMPRESSED2 => {
                Some(Compressed2::decode(&mut c, "COMPRESSED2").map(|piece| piece.stream()))
            }
            _ => None,
        }
    }

    /// Returns the offset and the bytes of the formats of tracepoints in a TRACING_DATA record or
    /// in simpleperf's; `None` for other types.
    pub fn tracing_data(&self, endian: Endian) -> Option<(u64, &'a [u8])> {
        match self.header.kind {
            RecordType::TRACING_DATA if !self.payload.is_empty() => {
                Some((self.offset + self.bytes.len() as u64, self.payload))
            }
            RecordType::TRACING_DATA | RecordType::SIMPLEPERF_TRACING_DATA => {
                self.simpleperf_data(endian)
            }
            _ => None,
        }
    }

    /// Returns the text of `/proc/kallsyms` that simpleperf recorded; `None` for other types.
    pub fn kallsyms(&self, endian: Endian) -> Option<&'a [u8]> {
        let is_list = self.header.kind == RecordType::SIMPLEPERF_KERNEL_SYMBOL;
        is_list.then(|| self.simpleperf_data(endian))?.map(|(_, text)| text)
    }

    /// Returns the numbers of attrs and the ids in a record of simpleperf about counters that were
    /// opened later; none for other types.
    pub(crate) fn later_ids(&self, endian: Endian) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let is_list = self.header.kind == RecordType::SIMPLEPERF_EVENT_ID;
        let words = U64s::new(if is_list { self.after_header().1 } else { &[] }, endian);
        let count = words.get(0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        (0..count.min(words.len() / 2))
            .map_while(move |at| Some((words.get(1 + 2 * at)?, words.get(2 + 2 * at)?)))
    }

    /// Returns the offset and the bytes of a block in a record of simpleperf: a length of 32 bits,
    /// and so many bytes.
    fn simpleperf_data(&self, endian: Endian) -> Option<(u64, &'a [u8])> {
        let (at, body) = self.after_header();
        let (len, data) = body.split_first_chunk()?;
        Some((at + 4, data.get(..endian.u32(*len) as usize)?))
    }

    /// Returns the offset and the bytes after the header, those of a long record of simpleperf,
    /// too.
    fn after_header(&self) -> (u64, &'a [u8]) {
        (
            self.offset + HEADER_SIZE as u64,
            if self.payload.is_empty() { self.body() } else { self.payload },
        )
    }

    /// Decodes the record.
    ///
    /// # Errors
    /// Returns an error if the record is shorter than its type's fixed fields and the trailer.
    pub fn decode(&self, cx: &Context<'_>) -> Result<Record<'a>> {
        let at = self.offset + HEADER_SIZE as u64;
        let (own, trailer) = self.split_trailer(cx.trailer, cx.endian)?;
        let mut c = Cursor::new(own, at, cx.endian);
        let decoded = Body::decode(&mut c, self.header, cx)?;
        let rest = c.rest();
        Ok(Record { misc: self.header.misc, body: decoded, rest, trailer })
    }

    /// Decodes the trailer alone.
    ///
    /// # Errors
    /// Returns an error if the record is shorter than the trailer.
    pub(crate) fn trailer(&self, layout: SampleIdLayout, endian: Endian) -> Result<SampleId> {
        self.split_trailer(layout, endian).map(|(_, trailer)| trailer)
    }

    /// Returns the bytes between the header and the trailer, and the trailer.
    #[inline]
    fn split_trailer(
        &self,
        layout: SampleIdLayout,
        endian: Endian,
    ) -> Result<(&'a [u8], SampleId)> {
        let body = self.body();
        let at = self.offset + HEADER_SIZE as u64;
        let trailer = if self.header.kind.is_kernel() && self.header.kind != RecordType::SAMPLE {
            layout
        } else {
            SampleIdLayout::NONE
        };
        let short =
            || Error::truncated(at, "sample_id trailer", trailer.size as u64, body.len() as u64);
        let split = body.len().checked_sub(trailer.size).ok_or_else(short)?;
        let (own, tail) = body.split_at_checked(split).ok_or_else(short)?;
        let mut c = Cursor::new(tail, at + split as u64, endian);
        Ok((own, SampleId::decode(&mut c, &trailer)?))
    }
}

/// A decoded record.
/// ```
/// use recrep_format::attr::AttrTable;
/// use recrep_format::bytes::Encoder;
/// use recrep_format::endian::Endian;
/// use recrep_format::read::Frames;
/// use recrep_format::record::{Body, Comm, Record};
/// use recrep_format::wire::Text;
///
/// # fn main() -> recrep_format::error::Result<()> {
/// let comm = Record::new(0, Body::Comm(Comm { pid: 7, tid: 7, comm: Text::new(b"ls") }));
/// let mut e = Encoder::new(Endian::Big);
/// comm.encode(&mut e)?;
///
/// // Without attrs there are no trailers.
/// let attrs = AttrTable::new(Vec::new(), Endian::Big);
/// for raw in Frames::new(e.as_bytes(), 0, Endian::Big) {
///     assert_eq!(attrs.decode(&raw?)?, comm);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The header's `misc`.
    pub misc: u16,
    /// The fields of its type.
    pub body: Body<'a>,
    /// Bytes after the fields known here and before the trailer, as found.
    pub rest: &'a [u8],
    /// Thread, time and event; empty where the stream has no `sample_id_all`.
    pub trailer: SampleId,
}

impl<'a> Record<'a> {
    /// Returns a record to write, with nothing beyond its fields and no trailer.
    pub fn new(misc: u16, body: Body<'a>) -> Self {
        Self { misc, body, rest: &[], trailer: SampleId::default() }
    }

    /// Returns the same record with this trailer.
    #[must_use]
    pub fn with_trailer(mut self, trailer: SampleId) -> Self {
        self.trailer = trailer;
        self
    }

    /// Appends the record to `e`; the size in its header is what it takes.
    ///
    /// # Errors
    /// Returns an error if the record takes more than the 65,535 bytes that a header can say, or
    /// has a field that its layout cannot represent. Nothing is left written then.
    pub fn encode(&self, e: &mut Encoder) -> Result<()> {
        let start = e.len();
        let outcome = self.encode_at(e, start);
        if outcome.is_err() {
            e.truncate(start);
        }
        outcome
    }

    /// Returns the bytes of the record.
    ///
    /// # Errors
    /// Returns the errors of [`encode`](Self::encode).
    pub fn to_bytes(&self, endian: Endian) -> Result<Vec<u8>> {
        let mut e = Encoder::new(endian);
        self.encode(&mut e)?;
        Ok(e.into_bytes())
    }

    fn encode_at(&self, e: &mut Encoder, start: usize) -> Result<()> {
        RecordHeader { kind: self.body.kind(), misc: self.misc, size: 0 }.encode(e);
        self.body.encode(e, self.misc)?;
        e.bytes(self.rest);
        self.trailer.encode(e)?;
        let len = e.len() - start;
        let size = u16::try_from(len).map_err(|_| {
            Error::invalid(
                start as u64,
                "record",
                format!("{len} bytes, more than a header can say (65535)"),
            )
        })?;
        e.patch_u16(start + 6, size);
        Ok(())
    }
}
