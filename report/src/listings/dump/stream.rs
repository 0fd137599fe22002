//! The walk over the records, and into the compressed ones; the text of each.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use recrep_format::abi::RecordType;
use recrep_format::error::Error;
use recrep_format::read::{Frames, Unpacking};

use super::DumpOptions;
use super::packets;
use super::record::{FileFacts, RecordLines, hex_dump};
use crate::query::Warning;

/// Number of bytes of records that a worker prints at a time.
const CHUNK: usize = 64 << 10;

/// A run of whole records.
pub(super) struct Chunk<'f> {
    /// Text before the offsets of its records.
    name: Arc<str>,
    bytes: Cow<'f, [u8]>,
    offset: u64,
}

/// Walks the records of all streams in order and cuts them into chunks. Compressed records are
/// unpacked here, one after another, since each piece continues the one before.
pub(super) struct Walk<'f, 'q> {
    known: &'q FileFacts<'f>,
    options: &'q DumpOptions,
    /// Streams that have not ended.
    streams: VecDeque<RecordStream<'f>>,
    /// Chunks that are ready, behind the one that was returned last.
    unpacked: VecDeque<Chunk<'f>>,
    /// What ended streams.
    pub(super) warnings: Vec<Warning>,
    /// Number of records that are still to be printed.
    left: u64,
}

/// A stream, and the state of the unpacking of its compressed records.
struct RecordStream<'f> {
    records: Frames<'f>,
    name: Arc<str>,
    unpacked_name: Arc<str>,
    bytes: usize,
    unpacking: Option<Unpacking>,
}

impl<'f, 'q> Walk<'f, 'q> {
    /// Returns the walk over these streams, each with the text that stands before its offsets.
    pub(super) fn new(
        known: &'q FileFacts<'f>,
        options: &'q DumpOptions,
        streams: impl IntoIterator<Item = (Frames<'f>, String)>,
    ) -> Self {
        let streams = streams.into_iter().map(|(records, name)| RecordStream {
            bytes: records.left().len(),
            records,
            unpacked_name: format!("{name}unpacked:").into(),
            name: name.into(),
            unpacking: None,
        });
        Self {
            known,
            options,
            streams: streams.collect(),
            unpacked: VecDeque::new(),
            warnings: Vec::new(),
            left: options.limit.unwrap_or(u64::MAX),
        }
    }

    /// Counts a record that is to be printed, and returns whether the listing goes on with it.
    fn count(&mut self, kind: RecordType) -> bool {
        if !self.options.prints(kind) {
            return true;
        }
        let goes_on = self.left > 0;
        self.left = self.left.saturating_sub(1);
        goes_on
    }

    /// Walks a chunk of a stream, and returns whether the stream goes on.
    fn chunk(&mut self, stream: &mut RecordStream<'f>) -> (Chunk<'f>, bool) {
        let (bytes, offset) = (stream.records.left(), stream.records.offset());
        let (mut len, mut goes_on) = (0, true);
        while len < CHUNK && goes_on && self.unpacked.is_empty() {
            goes_on = match stream.records.next() {
                Some(Ok(raw)) if self.count(raw.header.kind) => {
                    len += raw.bytes.len() + raw.payload.len();
                    match raw.compressed_piece(self.known.file.endian) {
                        Some(Ok(piece)) => self.inner(piece, raw.offset, stream),
                        Some(Err(error)) => self.end(&error, &stream.name),
                        None => true,
                    }
                }
                Some(Ok(_)) => {
                    // What is left of compressed records is not damage.
                    stream.unpacking = None;
                    false
                }
                Some(Err(error)) => self.end(&error, &stream.name),
                None => false,
            };
        }
        let bytes = bytes.get(..len).unwrap_or(bytes).into();
        (Chunk { name: stream.name.clone(), bytes, offset }, goes_on)
    }

    /// Unpacks the records that a piece of the compressed stream completes, and returns whether the
    /// stream goes on.
    fn inner(&mut self, piece: &[u8], offset: u64, stream: &mut RecordStream<'_>) -> bool {
        let mut unpacking = match stream.unpacking.take() {
            Some(begun) => begun,
            None => Unpacking::new(stream.bytes, self.known.file.endian),
        };
        let outcome = unpacking.feed(piece, offset);
        let (mut lens, mut goes_on) = (Vec::new(), true);
        for raw in unpacking.records().map_while(Result::ok) {
            goes_on = self.count(raw.header.kind);
            if !goes_on {
                break;
            }
            let len = raw.bytes.len() + raw.payload.len();
            match lens.last_mut().filter(|last| **last < CHUNK) {
                Some(last) => *last += len,
                None => lens.push(len),
            }
        }
        let mut offset = unpacking.records().offset();
        // Taken at once: each take moves what is left.
        let mut bytes = unpacking.take(lens.iter().sum());
        for len in lens {
            let bytes = bytes.by_ref().take(len).collect::<Vec<_>>().into();
            self.unpacked.push_back(Chunk { name: stream.unpacked_name.clone(), bytes, offset });
            offset += len as u64;
        }
        drop(bytes);
        if !goes_on {
            return false;
        }
        let is_stuck = unpacking.is_stuck();
        stream.unpacking = Some(unpacking);
        match outcome {
            Err(error) => self.end(&error, &stream.name),
            Ok(()) => !is_stuck,
        }
    }

    fn end(&mut self, error: &Error, name: &str) -> bool {
        self.warnings.push(located(error, name));
        false
    }
}

impl<'f> Iterator for Walk<'f, '_> {
    type Item = Chunk<'f>;

    fn next(&mut self) -> Option<Chunk<'f>> {
        if let Some(chunk) = self.unpacked.pop_front() {
            return Some(chunk);
        }
        let mut stream = self.streams.pop_front()?;
        let (chunk, goes_on) = self.chunk(&mut stream);
        if goes_on {
            self.streams.push_front(stream);
        } else if let Some(Err(error)) =
            stream.unpacking.as_ref().and_then(|unpacking| unpacking.records().next())
        {
            // The compressed records leave one unfinished.
            self.end(&error, &stream.unpacked_name);
        }
        Some(chunk)
    }
}

/// The text of a chunk, the number of its records that cannot be decoded, and what is wrong with
/// the first.
pub(super) type Printed = (Vec<u8>, Option<(u64, Warning)>);

/// Prints the records of a chunk in place of the text in `out`.
pub(super) fn print(
    known: &FileFacts<'_>,
    options: &DumpOptions,
    chunk: &Chunk<'_>,
    out: Vec<u8>,
) -> Printed {
    let mut lines = RecordLines::new(known, out);
    let mut malformed = None;
    let name = &*chunk.name;
    for raw in Frames::new(&chunk.bytes, chunk.offset, known.file.endian).map_while(Result::ok) {
        if !options.prints(raw.header.kind) {
            continue;
        }
        lines.head(&raw, name);
        if !options.no_raw {
            hex_dump(raw.bytes, usize::MAX, &mut lines.out);
        }
        let decoded = known.file.attrs.decode(&raw);
        match &decoded {
            Ok(record) => lines.record(&raw, record),
            Err(error) => {
                lines.write(format_args!("  malformed: {error}\n"));
                malformed.get_or_insert_with(|| (0, located(error, name))).0 += 1;
            }
        }
        if !raw.payload.is_empty() {
            let at = raw.offset + raw.bytes.len() as u64;
            lines.write(format_args!("  payload: {} bytes at {name}{at:#x}\n", raw.payload.len()));
            hex_dump(raw.payload, options.payload, &mut lines.out);
            if let Some(kind) = known.trace
                && let Ok(record) = &decoded
            {
                packets::print(&mut lines, kind, record, raw.payload);
            }
        }
    }
    (lines.out, malformed)
}

/// Returns a warning of an error in the stream with this name.
fn located(error: &Error, name: &str) -> Warning {
    let warning = Warning::from(error);
    let name = if name.is_empty() { String::new() } else { format!("{name} ") };
    Warning { message: format!("{name}{}", warning.message), ..warning }
}
