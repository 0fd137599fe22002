//! Reading front to back.

use std::io::Read;

use super::header::{FileHeader, PIPE_HEADER_SIZE};
use super::parts::{self, FilePart, Warning};
use super::pipe;
use super::record_ref::RecordRef;
use super::stream::{Found, HeldRecord, Stream};
use super::window::sealed::Bytes as _;
use super::window::{Input, Memory, Reader};
use super::{FILE_HEADER_SIZE, File, Mode};
use crate::attr::AttrTable;
use crate::bytes::Cursor;
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::feature::{Feature, FeatureId};
use crate::record::RawRecord;
use crate::wire::Wire;

/// A recording that is read front to back, from anything that can be read: a file, a pipe, a
/// socket, bytes in memory.
///
/// One record with its payload is held, and the features, so memory does not grow with the
/// recording; large blocks are read, so a `BufReader` gains nothing. Bytes that are in memory are
/// not copied. Compressed records are decompressed on the way, with the crate's feature `zstd`;
/// without it they are returned as they are.
///
/// The header of a file is known from the start. Its features follow the records: they, and the
/// names of events, are known when all records were read; of [bytes in memory](Recording::of_bytes)
/// they are known from the start. In pipe mode attrs, names and features come as records, and are
/// known once these were read.
/// ```
/// use recrep_format::read::Recording;
///
/// fn count_samples(input: impl std::io::Read) -> recrep_format::error::Result<u64> {
///     let mut recording = Recording::new(input)?;
///     let mut samples = 0;
///     while let Some(record) = recording.next_record() {
///         samples += u64::from(record?.sample().is_some());
///     }
///     Ok(samples)
/// }
/// # assert!(count_samples(&b"PERFILE2"[..]).is_err());
/// # assert_eq!(count_samples(&b"PERFILE2\x10\0\0\0\0\0\0\0"[..]), Ok(0));
/// ```
#[derive(Debug)]
pub struct Recording<I> {
    /// The data, then the files beside it.
    streams: Vec<Stream<I>>,
    current: usize,
    head: Head,
}

/// Header, attrs and features of a recording.
#[derive(Debug)]
struct Head {
    endian: Endian,
    mode: Mode,
    header: FileHeader,
    attrs: AttrTable,
    features: Vec<(FeatureId, Vec<u8>)>,
    warnings: Vec<Warning>,
    /// `true` if the features of a file were read.
    has_tail: bool,
}

impl<R: Read> Recording<Reader<R>> {
    /// Begins to read a recording in file mode or in pipe mode.
    ///
    /// # Errors
    /// Returns an error if it is not a perf.data file, if its header or its attrs cannot be
    /// decoded, or if the input fails; also if the attrs follow the records, as `perf inject`
    /// writes them from a pipe: [`of_bytes`](Recording::of_bytes) can read that.
    pub fn new(input: R) -> Result<Self> {
        Self::with_streams(input, [])
    }

    /// Begins to read the recording of a directory: its file `data`, and `data.0`, `data.1`, … in
    /// their order, which hold records only.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    pub fn with_streams(data: R, beside: impl IntoIterator<Item = R>) -> Result<Self> {
        let mut input = Reader::new(data);
        let mut head = Head::begin(&mut input)?;
        let len =
            if head.mode == Mode::Pipe { u64::MAX } else { head.read_file_header(&mut input)? };
        Ok(Self::of_streams(head, input, len, beside.into_iter().map(Reader::new)))
    }
}

impl<'a> Recording<Memory<'a>> {
    /// Begins to read a recording in memory, in file mode or in pipe mode. No record is copied but
    /// those that are decompressed; a file's features, and with them the names of events, are known
    /// from the start.
    ///
    /// # Errors
    /// Returns an error if it is not a perf.data file, or if its header or its attrs cannot be
    /// decoded.
    pub fn of_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::of_bytes_with_streams(bytes, [])
    }

    /// Begins to read the recording of a directory whose files are in memory, as
    /// [`with_streams`](Recording::with_streams) does.
    ///
    /// # Errors
    /// Returns the errors of [`of_bytes`](Self::of_bytes).
    pub fn of_bytes_with_streams(
        data: &'a [u8],
        beside: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self> {
        let mut input = Memory::new(data);
        let mut head = Head::begin(&mut input)?;
        let len = if head.mode == Mode::Pipe {
            u64::MAX
        } else {
            head.take_file(File::parse(data)?, &mut input)
        };
        Ok(Self::of_streams(head, input, len, beside.into_iter().map(Memory::new)))
    }
}

impl<I: Input> Recording<I> {
    fn of_streams(head: Head, data: I, len: u64, beside: impl Iterator<Item = I>) -> Self {
        let beside = beside.map(|input| Stream::new(input, u64::MAX));
        Self {
            streams: std::iter::once(Stream::new(data, len)).chain(beside).collect(),
            current: 0,
            head,
        }
    }

    /// Returns the next record, in the order of the file; `None` at the end. The record is there
    /// until the next call.
    ///
    /// After an error the reading goes on with the next file of a directory, or ends.
    pub fn next_record(&mut self) -> Option<Result<RecordRef<'_>>> {
        while self.current < self.streams.len() {
            match self.advance(self.current) {
                Ok(Some(found)) => return Some(self.found(self.current, found)),
                Ok(None) => self.current += 1,
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// Returns the byte order.
    pub fn endian(&self) -> Endian {
        self.head.endian
    }

    /// Returns whether the recording is in file mode or in pipe mode.
    pub fn mode(&self) -> Mode {
        self.head.mode
    }

    /// Returns the header. In pipe mode the size of the data is not known, and 0.
    pub fn header(&self) -> &FileHeader {
        &self.head.header
    }

    /// Returns the attrs that are known so far.
    pub fn attrs(&self) -> &AttrTable {
        &self.head.attrs
    }

    /// Returns what was wrong with the recording so far and could be mended; more may follow until
    /// all records were read.
    pub fn warnings(&self) -> &[Warning] {
        &self.head.warnings
    }

    /// Returns the features that are known so far, and the bytes of their sections.
    pub fn features(&self) -> impl Iterator<Item = (FeatureId, &[u8])> {
        self.head.features.iter().map(|(id, bytes)| (*id, bytes.as_slice()))
    }

    /// Returns a feature, decoded; `None` if the recording does not have it, or not yet.
    pub fn feature<'r, F: Feature<'r>>(&'r self) -> Option<Result<F>> {
        self.head.feature()
    }

    /// Returns the number of streams: one, and one for each further file of a directory.
    pub(super) fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Returns whether a stream has no more records.
    #[inline]
    pub(super) fn is_done(&self, number: usize) -> bool {
        self.streams.get(number).is_none_or(Stream::is_done)
    }

    /// Finds the next record of a stream. At the end of the data of a file, its features are read.
    #[inline]
    pub(super) fn advance(&mut self, number: usize) -> Result<Option<Found>> {
        let Some(stream) = self.streams.get_mut(number) else { return Ok(None) };
        let Some(found) = stream.advance(self.head.endian)? else {
            if number == 0 && !std::mem::replace(&mut self.head.has_tail, true) {
                self.head.read_tail(stream)?;
            }
            return Ok(None);
        };
        if !found.header.kind.is_kernel() {
            match self.head.mode {
                Mode::Pipe => self.head.learn(&stream.record(found)),
                Mode::File => self.head.learn_of_simpleperf(&stream.record(found)),
            }
        }
        Ok(Some(found))
    }

    /// Returns the record that was found last in a stream.
    #[inline]
    pub(super) fn found(&self, number: usize, found: Found) -> Result<RecordRef<'_>> {
        let raw = self.stream(number, found.offset)?.record(found);
        Ok(RecordRef { raw, attrs: &self.head.attrs, stream: number })
    }

    /// Holds the record that was found last in a stream.
    #[inline]
    pub(super) fn hold(&mut self, number: usize, found: Found) -> Option<HeldRecord> {
        Some(self.streams.get_mut(number)?.hold(found))
    }

    /// Returns a held record of a stream.
    #[inline]
    pub(super) fn held(&self, number: usize, held: HeldRecord) -> Result<RecordRef<'_>> {
        let raw = self.stream(number, held.offset)?.held(held, self.head.endian)?;
        Ok(RecordRef { raw, attrs: &self.head.attrs, stream: number })
    }

    /// Releases a held record of a stream.
    pub(super) fn release(&mut self, number: usize, held: HeldRecord) {
        if let Some(stream) = self.streams.get_mut(number) {
            stream.release(held);
        }
    }

    /// Returns the number of bytes that held records keep in memory.
    #[inline]
    pub(super) fn pinned(&self) -> usize {
        self.streams.iter().map(Stream::pinned).sum()
    }

    #[inline]
    fn stream(&self, number: usize, offset: u64) -> Result<&Stream<I>> {
        self.streams.get(number).ok_or_else(|| Error::truncated(offset, "a record", 0, 0))
    }
}

impl Head {
    /// Number of warnings about the records of a pipe, of which there may be very many.
    const MAX_WARNINGS: usize = 100;

    /// Finds byte order and mode, and reads the header of a pipe.
    fn begin(input: &mut impl Input) -> Result<Self> {
        input.fill(PIPE_HEADER_SIZE as u64)?;
        let endian = parts::endian_of(input.bytes())?;
        let is_pipe = parts::is_pipe(input.bytes(), endian);
        let mode = if is_pipe { Mode::Pipe } else { Mode::File };
        if is_pipe {
            input.consume(PIPE_HEADER_SIZE);
        }
        let (attrs, header) = (AttrTable::new(Vec::new(), endian), FileHeader::of_pipe(endian, 0));
        Ok(Self {
            endian,
            mode,
            header,
            attrs,
            features: Vec::new(),
            warnings: Vec::new(),
            has_tail: is_pipe,
        })
    }

    /// Takes what a file in memory says before and behind its records; returns the length of the
    /// data.
    fn take_file(&mut self, file: File<'_>, input: &mut Memory<'_>) -> u64 {
        let sections = file
            .features
            .iter()
            .filter_map(|(id, section)| Some((*id, section.of(file.bytes())?.to_vec())));
        self.features = sections.collect();
        (self.header, self.attrs, self.warnings, self.has_tail) =
            (file.header, file.attrs, file.warnings, true);
        input.consume(usize::try_from(file.data.offset).unwrap_or(usize::MAX));
        // A header without size: the recorder did not finish.
        if self.header.data.size == 0 && file.data.size > 0 {
            u64::MAX
        } else {
            self.header.data.size
        }
    }

    /// Reads the header of a file, the attrs and all else before its records; returns the length of
    /// the data.
    fn read_file_header(&mut self, input: &mut impl Input) -> Result<u64> {
        input.fill(FILE_HEADER_SIZE as u64)?;
        self.header = FileHeader::decode(
            &mut Cursor::new(input.bytes(), 0, self.endian),
            "perf.data header",
        )?;
        let before = self.header.data.offset;
        if self.header.attrs.size > 0 && self.header.attrs.offset >= before {
            let detail = "it follows the records, as perf inject writes it from a pipe; only \
                          bytes in memory can be read so";
            return Err(Error::invalid(self.header.attrs.offset, "the attrs section", detail));
        }
        // The feature table of a recording without records is looked at, too.
        let table = parts::feature_table_len(&self.header, self.endian);
        input.fill(before.saturating_add(table.max(1)))?;
        let part = FilePart { bytes: input.bytes(), offset: 0 };
        let head = FilePart { bytes: first(part.bytes, before), offset: 0 };
        let entries = parts::attrs(head, &self.header, self.endian)?;
        self.attrs = AttrTable::new(entries, self.endian);
        let is_unfinished = parts::is_unfinished(part, &self.header, self.endian);
        if is_unfinished {
            self.warnings.push(parts::unfinished());
        }
        input.consume(usize::try_from(before).unwrap_or(usize::MAX));
        Ok(if is_unfinished { u64::MAX } else { self.header.data.size })
    }

    /// Reads what follows the data of a file: its features.
    fn read_tail(&mut self, stream: &mut Stream<impl Input>) -> Result<()> {
        stream.skip()?;
        let is_cut = stream.is_cut();
        let input = &mut stream.input;
        if is_cut {
            let end = input.offset();
            let (begin, size) = (self.header.data.offset, self.header.data.size);
            self.warnings.push(parts::cut_data(size, end.saturating_sub(begin), end));
        }
        input.fill(parts::feature_table_len(&self.header, self.endian))?;
        let table = FilePart { bytes: input.bytes(), offset: input.offset() };
        let len = parts::features_len(table, &self.header, self.endian);
        input.fill(len)?;
        let part = FilePart { bytes: first(input.bytes(), len), offset: input.offset() };
        for (id, section) in parts::features(part, &self.header, self.endian, &mut self.warnings) {
            self.features.extend(part.section(section).map(|bytes| (id, bytes.to_vec())));
        }
        self.name_events();
        Ok(())
    }

    /// Takes what a record of a pipe says about the recording.
    #[cold]
    fn learn(&mut self, raw: &RawRecord<'_>) {
        match pipe::learn(raw, &mut self.attrs) {
            Ok(Some(held)) if self.features.iter().all(|(id, _)| *id != held.id) => {
                self.features.push((held.id, held.bytes.to_vec()));
                if matches!(held.id, FeatureId::EVENT_DESC | FeatureId::TRACING_DATA) {
                    self.name_events();
                }
            }
            Ok(_) => {}
            // Enough to see that there are many.
            Err(_) if self.warnings.len() >= Self::MAX_WARNINGS => {}
            Err(error) => self.warnings.push(pipe::left_out(raw.header.kind, &error)),
        }
    }

    /// Takes what a record in a file says about the recording, if simpleperf wrote it: its features
    /// follow the records.
    #[cold]
    fn learn_of_simpleperf(&mut self, raw: &RawRecord<'_>) {
        if raw.header.kind.is_simpleperf() {
            let _formats = pipe::learn_of_simpleperf(raw, &mut self.attrs);
        }
    }

    fn feature<'r, F: Feature<'r>>(&'r self) -> Option<Result<F>> {
        let (_, bytes) = self.features.iter().find(|(id, _)| *id == F::ID)?;
        Some(F::of_section(&mut Cursor::new(bytes, 0, self.endian)))
    }

    fn name_events(&mut self) {
        let mut attrs = std::mem::replace(&mut self.attrs, AttrTable::new(Vec::new(), self.endian));
        let (desc, tracing, meta) = (self.feature(), self.feature(), self.feature());
        attrs.take_names(desc.and_then(Result::ok).as_ref(), tracing.and_then(Result::ok).as_ref());
        attrs.take_simpleperf_names(meta.and_then(Result::ok).as_ref());
        self.attrs = attrs;
    }
}

/// Returns the first `len` bytes, or all if there are fewer: how many are held depends on how the
/// input came.
fn first(bytes: &[u8], len: u64) -> &[u8] {
    usize::try_from(len).ok().and_then(|len| bytes.get(..len)).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::window::sealed::Bytes as _;
    use super::*;
    use crate::abi::RecordType;
    use crate::attr::{Attr, AttrEntry};
    use crate::bytes::Encoder;
    use crate::record::RecordHeader;
    use crate::write::{FeatureWriter, FileWriter};

    fn file(records: &[u8]) -> Vec<u8> {
        let entry = AttrEntry { attr: Attr::default(), ids: vec![7], name: None };
        let mut writer =
            FileWriter::new(io::Cursor::new(Vec::new()), Endian::Little, &[entry]).unwrap();
        writer.write(records).unwrap();
        writer.finish(&FeatureWriter::new(Endian::Little)).unwrap().into_inner()
    }

    #[test]
    fn attrs_behind_the_records_are_refused_by_name() {
        let mut bytes = file(&[68, 0, 0, 0, 0, 0, 8, 0]);
        let end = bytes.len() as u64;
        let attrs = bytes[112..].to_vec();
        // The attrs once more, behind the data.
        bytes.extend(&attrs[..attrs.len() - 8]);
        bytes[24..32].copy_from_slice(&end.to_le_bytes());
        assert_eq!(File::parse(&bytes).unwrap().attrs.entries().len(), 1);
        let error = Recording::new(&bytes[..]).unwrap_err();
        assert_eq!(error.offset, end);
        assert!(error.to_string().contains("it follows the records"), "{error}");
        let mut recording = Recording::of_bytes(&bytes).unwrap();
        assert_eq!(recording.attrs().entries().len(), 1);
        assert_eq!(recording.next_record().unwrap().unwrap().kind(), RecordType::FINISHED_ROUND);
        assert!(recording.next_record().is_none());
    }

    #[test]
    fn a_payload_beyond_the_data_is_not_waited_for() {
        let mut e = Encoder::new(Endian::Little);
        RecordHeader { kind: RecordType::AUXTRACE, misc: 0, size: 48 }.encode(&mut e);
        e.u64(1 << 40);
        e.padded(&[], 32);
        let mut records = e.into_bytes();
        records.resize(8 << 20, 0);
        let bytes = file(&records);
        let mut recording = Recording::new(&bytes[..]).unwrap();
        let error = recording.next_record().unwrap().unwrap_err();
        let all = File::parse(&bytes).unwrap().records().next().unwrap().unwrap_err();
        assert_eq!(error, all);
        assert!(recording.streams[0].input.bytes().len() <= super::super::blocks::Blocks::LEN);
        assert!(recording.next_record().is_none());
    }

    #[test]
    fn warnings_of_a_pipe_are_not_without_end() {
        let mut bytes = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
        (0..1000).for_each(|_| bytes.extend([64, 0, 0, 0, 0, 0, 8, 0]));
        let mut recording = Recording::new(&bytes[..]).unwrap();
        let mut records = 0;
        while let Some(record) = recording.next_record() {
            record.unwrap();
            records += 1;
        }
        assert_eq!((records, recording.warnings().len()), (1000, Head::MAX_WARNINGS));
    }
}
