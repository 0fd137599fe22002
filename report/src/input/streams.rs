//! The record streams of an input: its data section and, for a directory, the files beside it.
//!
//! Records have positions that continue from one stream to the next, so that any two can be
//! compared; messages name the file and the offset in it instead:
//!
//! ```text
//!   data     data.0        data.1             files
//!   ├────────┼─────────────┼──────────┤       positions
//! ```

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use recrep_format::abi::RecordType;
use recrep_format::endian::Endian;
use recrep_format::read::{File, Frames, is_compressed};

use crate::input::split::{Skimmed, Split};
use crate::input::unpack::{
    self, DecodedPart, MIN_SECTION, RecordSource, UnpackBuffer, Unpacked, UnpackedPart,
};
use crate::input::{Input, OpenError};
use crate::query::Warning;

/// An input, parsed and unpacked.
#[derive(Debug)]
pub(crate) struct OpenedInput<'i> {
    pub(crate) input: &'i Input,
    pub(crate) file: File<'i>,
    pub(crate) streams: Streams<'i>,
}

impl<'i> OpenedInput<'i> {
    /// Parses and unpacks an input, with as much in memory as asked for.
    ///
    /// # Errors
    /// Returns an error if it is not a perf.data file.
    pub(crate) fn new(input: &'i Input, keep: Keep) -> Result<Self, OpenError> {
        let file = input.parsed()?;
        let streams = Streams::of(input, &file, keep);
        Ok(Self { input, file, streams })
    }
}

/// All streams of an input.
#[derive(Debug)]
pub(crate) struct Streams<'f> {
    all: Vec<UnpackedStream<'f>>,
    keep: Keep,
    /// Sources of decoded records.
    decoded: Vec<Arc<dyn RecordSource + 'f>>,
}

#[derive(Debug)]
struct UnpackedStream<'f> {
    /// Name of its file; `None` for the data section.
    file: Option<&'f str>,
    /// Position of its first byte.
    begin: u64,
    /// File offset of its first byte.
    offset: u64,
    unpacked: Unpacked<'f, Skimmed>,
}

impl UnpackedStream<'_> {
    /// Returns the position after its last byte.
    fn end(&self) -> u64 {
        self.begin + self.unpacked.parts.iter().map(UnpackedPart::span).sum::<u64>()
    }
}

/// How much of unpacked streams stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All of it, to be read in any order.
    All,
    /// 16 MiB; what is more is unpacked again each time that it is read.
    Some,
}

/// Number of unpacked bytes that [`Keep::Some`] keeps.
const KEPT: usize = 16 << 20;

impl<'f> Streams<'f> {
    /// Returns the streams of `input`, unpacked; `file` is its parsed form.
    fn of(input: &'f Input, file: &File<'f>, keep: Keep) -> Self {
        let mut all = vec![(None, file.data_bytes(), file.data.offset)];
        all.extend(input.streams().iter().map(|of| (Some(of.name.as_str()), &*of.bytes, 0)));
        let kept = AtomicUsize::new(0);
        let skim = |bytes: &[u8]| {
            let is_kept =
                keep == Keep::All || kept.fetch_add(bytes.len(), Ordering::Relaxed) < KEPT;
            (!is_kept).then(|| Skimmed::of(bytes, file.endian))
        };
        let unpacked = all.par_iter().map(|&(file_name, packed, offset)| {
            let frames = Frames::new(packed, offset, file.endian);
            if is_compressed(frames.clone()) {
                let unpacked = unpack::unpack(frames, file.endian, MIN_SECTION, skim);
                // Messages give the offset in the unpacked stream.
                return UnpackedStream { file: file_name, begin: 0, offset: 0, unpacked };
            }
            let parts = vec![UnpackedPart::Kept(packed.into())];
            let unpacked = Unpacked { parts, ..Unpacked::default() };
            UnpackedStream { file: file_name, begin: offset, offset, unpacked }
        });
        let mut all: Vec<UnpackedStream<'f>> = unpacked.collect();
        let mut begin = all.first().map_or(0, |first| first.begin);
        for stream in &mut all {
            stream.begin = begin;
            begin = stream.end();
        }
        Self { all, keep, decoded: Vec::new() }
    }

    /// Adds records that are decoded from others, with positions after those of all streams.
    pub(crate) fn add_decoded(&mut self, source: Arc<dyn RecordSource + 'f>) {
        let parts = DecodedPart::all(&source);
        self.decoded.push(source);
        let parts = match self.keep {
            Keep::Some => parts.into_iter().map(UnpackedPart::Decoded).collect(),
            Keep::All => {
                let records = parts.par_iter().map(|part| {
                    let mut buffer = UnpackBuffer::default();
                    part.decode(&mut buffer).to_vec()
                });
                records.map(|bytes| UnpackedPart::Kept(bytes.into())).collect()
            }
        };
        let begin = self.all.last().map_or(0, UnpackedStream::end);
        let unpacked = Unpacked { parts, ..Unpacked::default() };
        self.all.push(UnpackedStream { file: None, begin, offset: begin, unpacked });
    }

    /// Returns the sources of decoded records.
    pub(crate) fn decoded(&self) -> impl Iterator<Item = &(dyn RecordSource + 'f)> {
        self.decoded.iter().map(|source| &**source)
    }

    /// Returns whether each record of an event stands for several samples; STREAM_ID is their number.
    pub(crate) fn are_sums(&self, event: usize) -> bool {
        self.decoded().any(|source| source.summed_events().contains(&event))
    }

    /// Returns the number of decoded samples, as far as they are not among the records in memory.
    pub(crate) fn decoded_samples(&self) -> u64 {
        match self.keep {
            Keep::Some => self.decoded().map(RecordSource::samples).sum(),
            Keep::All => 0,
        }
    }

    /// Returns bytes at a position of a stream, if they are those of the input itself.
    pub(crate) fn borrowed(&self, position: u64, len: usize) -> Option<&'f [u8]> {
        let stream = self.all.iter().rev().find(|stream| stream.begin <= position)?;
        let mut begin = stream.begin;
        for part in &stream.unpacked.parts {
            let end = begin + part.span();
            if position < end {
                let UnpackedPart::Kept(Cow::Borrowed(bytes)) = part else { return None };
                let at = usize::try_from(position - begin).ok()?;
                return bytes.get(at..at.checked_add(len)?);
            }
            begin = end;
        }
        None
    }

    /// Walks all streams and cuts them into pieces.
    pub(crate) fn split(&self, endian: Endian) -> Split<'_> {
        let mut split = Split::default();
        let decoded = self.all.len() - self.decoded.len();
        split.decoded_from = self.all.get(decoded).map(|stream| stream.begin);
        for stream in &self.all {
            split.walk(&stream.unpacked.parts, stream.begin, endian);
            if stream.unpacked.containers > 0 {
                *split.counts.entry(RecordType::COMPRESSED).or_default() +=
                    stream.unpacked.containers;
            }
        }
        split
    }

    /// Returns a warning for each stream that could not be unpacked completely.
    pub(crate) fn unpacking(&self) -> impl Iterator<Item = Warning> {
        self.all.iter().filter_map(|stream| {
            let error = stream.unpacked.damage.as_ref()?;
            Some(in_file(stream.file, Warning::from(error)))
        })
    }

    /// Replaces the position in a warning by the offset in the file, and names the file if it is
    /// not the data section's.
    pub(crate) fn located(&self, warning: Warning) -> Warning {
        let Some(position) = warning.offset else { return warning };
        match self.all.iter().rev().find(|stream| stream.begin <= position) {
            Some(stream) => {
                let offset = Some(position - stream.begin + stream.offset);
                in_file(stream.file, Warning { offset, ..warning })
            }
            None => warning,
        }
    }
}

fn in_file(file: Option<&str>, warning: Warning) -> Warning {
    match file {
        Some(file) => Warning { message: format!("{file}: {}", warning.message), ..warning },
        None => warning,
    }
}
