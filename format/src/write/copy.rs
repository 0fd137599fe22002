//! Copies a recording, with all of its records or some.
//!
//! Records go through as they are, byte by byte, whether their types are known here or not. What
//! stands around them may lie elsewhere in the copy: attrs are as long as the longest, header and
//! features are where [`FileWriter`] puts them. One feature holds places in the file, the index of
//! AUXTRACE records; it follows its records.

use std::io::{self, Seek, Write};
use std::ops::Range;

use super::file::{FeatureWriter, FileWriter, with_header};
use super::pipe::put_header;
use crate::abi::RecordType;
use crate::bytes::{Encoder, U64s};
use crate::feature::{AuxtraceIndex, EventDesc, FeatureId};
use crate::read::{File, Mode};
use crate::record::RawRecord;
use crate::wire::Wire;

/// Copies a recording, in file mode or in pipe mode as it is and in its byte order, with the
/// records for which `keep` returns true. Returns the output, flushed and at its end.
///
/// `keep` is asked once for each record of the data section, in file order; [`RawRecord::payload`]
/// goes with its record. It is not asked for records that stand for attrs, ids or features (ATTR,
/// EVENT_TYPE, EVENT_UPDATE, FEATURE, TRACING_DATA, BUILD_ID): those are kept. Records inside of
/// COMPRESSED ones are not seen: to choose among them, unpack them first. In a directory
/// (`perf record --threads`) each data file has its own records, which this does not touch.
///
/// Attrs, ids and features are kept; entries of the AUXTRACE index follow the records that they
/// point to and go with them. SAMPLE_TIME stays as it was, even if the first or last sample goes. A
/// data section that was cut short, or whose recorder was killed, gets its true size, and ends in
/// what follows its last whole record; features outside the file are left out.
///
/// ```
/// use std::io::Cursor;
///
/// use recrep_format::abi::RecordType;
/// use recrep_format::read::File;
/// use recrep_format::write::copy;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use recrep_format::{endian::Endian, write::{FeatureWriter, FileWriter}};
/// # let mut writer = FileWriter::new(Cursor::new(Vec::new()), Endian::Little, &[])?;
/// # writer.write(&[68, 0, 0, 0, 0, 0, 8, 0].repeat(3))?;
/// # let bytes = writer.finish(&FeatureWriter::new(Endian::Little))?.into_inner();
/// let file = File::parse(&bytes)?;
/// assert_eq!(file.records().count(), 3);
/// let whole = copy(&file, Cursor::new(Vec::new()), |_| true)?.into_inner();
/// assert_eq!(whole, bytes);
///
/// let no_rounds = copy(&file, Cursor::new(Vec::new()), |raw| {
///     raw.header.kind != RecordType::FINISHED_ROUND
/// })?;
/// assert_eq!(File::parse(no_rounds.get_ref())?.records().count(), 0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns I/O errors from the output.
pub fn copy<W: Write + Seek>(
    file: &File<'_>,
    out: W,
    keep: impl FnMut(&RawRecord<'_>) -> bool,
) -> io::Result<W> {
    let (out, header) = copy_unseekable(file, out, keep)?;
    match header {
        Some(header) => with_header(out, &header),
        None => Ok(out),
    }
}

/// Copies as [`copy`] does, into an output that cannot seek, such as a pipe or a buffer in front of
/// a network. Returns the output, flushed, and in file mode the final header, which the caller puts
/// at byte 0.
///
/// # Errors
/// Returns I/O errors from the output.
pub fn copy_unseekable<W: Write>(
    file: &File<'_>,
    out: W,
    keep: impl FnMut(&RawRecord<'_>) -> bool,
) -> io::Result<(W, Option<Vec<u8>>)> {
    match file.mode {
        Mode::File => {
            let keep = asking_for_records(keep);
            copy_file(file, out, &FeatureWriter::new(file.endian), keep)
                .map(|(out, header)| (out, Some(header)))
        }
        Mode::Pipe => copy_pipe(file, out, keep).map(|out| (out, None)),
    }
}

/// Copies a recording, whole, as a file with these features besides its own, in its byte order. A
/// recording in pipe mode becomes one in file mode: its records of attrs and features become
/// sections. Returns the output, flushed and at its end.
///
/// # Errors
/// Returns I/O errors from the output, and an error for a feature that could not be encoded.
pub fn copy_with<W: Write + Seek>(file: &File<'_>, out: W, more: &FeatureWriter) -> io::Result<W> {
    const SECTIONS: [RecordType; 3] =
        [RecordType::ATTR, RecordType::FEATURE, RecordType::TRACING_DATA];
    let (out, header) = copy_file(file, out, more, |raw| {
        file.mode == Mode::File || !SECTIONS.contains(&raw.header.kind)
    })?;
    with_header(out, &header)
}

fn copy_file<W: Write>(
    file: &File<'_>,
    out: W,
    more: &FeatureWriter,
    keep: impl FnMut(&RawRecord<'_>) -> bool,
) -> io::Result<(W, Vec<u8>)> {
    more.check(file.endian)?;
    let mut writer = FileWriter::new(out, file.endian, file.attrs.entries())?;
    if file.mode == Mode::File {
        writer.magic(file.header.magic);
    }
    let has_index = file.feature_cursor(FeatureId::AUXTRACE).is_some();
    let mut moves = Vec::new();
    kept_runs(file, keep, |from, bytes| {
        if has_index {
            moves.push(Move { from: from..from + bytes.len() as u64, to: writer.position() });
        }
        writer.write(bytes)
    })?;
    let mut features = FeatureWriter::new(file.endian);
    for (id, section) in &file.features {
        let Some(bytes) = section.of(file.bytes()) else { continue };
        let moved = (*id == FeatureId::AUXTRACE).then(|| moved_index(file, &moves)).flatten();
        features.add_bytes(*id, moved.unwrap_or_else(|| bytes.to_vec()));
    }
    if file.mode == Mode::Pipe && file.feature_cursor(FeatureId::EVENT_DESC).is_none() {
        features.add(&EventDesc::of(file.attrs.entries()).map_err(io::Error::other)?);
    }
    for (id, bytes) in more.parts() {
        features.add_bytes(id, bytes.to_vec());
    }
    if let Some(types) = file.header.event_types.of(file.bytes()) {
        writer.event_types(types);
    }
    writer.finish_unseekable(&features)
}

fn copy_pipe<W: Write>(
    file: &File<'_>,
    mut out: W,
    keep: impl FnMut(&RawRecord<'_>) -> bool,
) -> io::Result<W> {
    let mut e = Encoder::new(file.endian);
    put_header(&mut e);
    out.write_all(e.as_bytes())?;
    kept_runs(file, asking_for_records(keep), |_, bytes| out.write_all(bytes))?;
    out.flush()?;
    Ok(out)
}

/// Returns `keep` that is not asked about records that stand for what a file has in sections: they
/// are kept.
fn asking_for_records(
    mut keep: impl FnMut(&RawRecord<'_>) -> bool,
) -> impl FnMut(&RawRecord<'_>) -> bool {
    move |raw| is_section(raw.header.kind) || keep(raw)
}

/// Returns whether a record stands for what a file has in sections.
fn is_section(kind: RecordType) -> bool {
    use RecordType as T;
    [T::ATTR, T::EVENT_TYPE, T::EVENT_UPDATE, T::FEATURE, T::TRACING_DATA, T::BUILD_ID]
        .contains(&kind)
}

/// Gives `write` each run of records that are kept, with its place in the file; the last has what
/// follows the last whole record.
fn kept_runs(
    file: &File<'_>,
    mut keep: impl FnMut(&RawRecord<'_>) -> bool,
    mut write: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let data = file.data_bytes();
    let mut write = |run: Range<usize>| match data.get(run.clone()) {
        Some(bytes) if !bytes.is_empty() => write(file.data.offset + run.start as u64, bytes),
        _ => Ok(()),
    };
    let mut frames = file.records();
    let (mut start, mut at) = (0, 0);
    while let Some(Ok(raw)) = frames.next() {
        let end = at + raw.bytes.len() + raw.payload.len();
        if !keep(&raw) {
            write(start..at)?;
            start = end;
        }
        at = end;
    }
    write(start..data.len())
}

/// A run of records: its places in the file and where it begins in the copy.
struct Move {
    from: Range<u64>,
    to: u64,
}

/// Returns the index of AUXTRACE records after these moves, without the entries of records that are
/// gone; `None` if it cannot be read.
fn moved_index(file: &File<'_>, moves: &[Move]) -> Option<Vec<u8>> {
    let mut c = file.feature_cursor(FeatureId::AUXTRACE)?;
    let index = AuxtraceIndex::decode(&mut c, "AUXTRACE").ok()?;
    let data = file.data.offset..file.data.offset.saturating_add(file.data.size);
    let (mut words, mut total, mut entries) = (Encoder::new(file.endian), index.total, 0);
    for (at, size) in index.iter() {
        entries += 1;
        let run = moves
            .get(moves.partition_point(|run| run.from.end <= at))
            .filter(|run| run.from.contains(&at));
        match run {
            Some(run) => words.u64(at - run.from.start + run.to),
            None if data.contains(&at) => {
                total -= 1;
                continue;
            }
            // It never pointed into the data.
            None => words.u64(at),
        }
        words.u64(size);
    }
    index.words.iter().skip(2 * entries).for_each(|word| words.u64(word));
    let mut e = Encoder::new(file.endian);
    AuxtraceIndex { total, words: U64s::new(words.as_bytes(), file.endian) }.encode(&mut e).ok()?;
    e.bytes(c.rest());
    Some(e.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::abi::{Cpu, Tid};
    use crate::attr::{Attr, AttrEntry};
    use crate::endian::Endian;
    use crate::feature::{BodyCompression, Bundle, Hostname};
    use crate::read::Magic;
    use crate::record::{Auxtrace, Body, HeaderAttr, HeaderFeature, Record};

    fn copied(file: &File<'_>, keep: impl FnMut(&RawRecord<'_>) -> bool) -> Vec<u8> {
        copy(file, Cursor::new(Vec::new()), keep).unwrap().into_inner()
    }

    fn finished(writer: FileWriter<Cursor<Vec<u8>>>, features: &FeatureWriter) -> Vec<u8> {
        writer.finish(features).unwrap().into_inner()
    }

    fn begun(endian: Endian, entries: &[AttrEntry]) -> FileWriter<Cursor<Vec<u8>>> {
        FileWriter::new(Cursor::new(Vec::new()), endian, entries).unwrap()
    }

    /// Returns an AUXTRACE record of 48 bytes with 8 bytes of payload.
    fn auxtrace(endian: Endian, tid: u32) -> Vec<u8> {
        let mut e = Encoder::new(endian);
        let aux = Auxtrace {
            size: 8,
            offset: 0,
            reference: 1,
            idx: 0,
            tid: Tid(tid),
            cpu: Cpu(0),
            reserved: 0,
        };
        Record::new(0, Body::Auxtrace(aux)).encode(&mut e).unwrap();
        e.bytes(b"payload!");
        e.into_bytes()
    }

    /// Three AUXTRACE records and an index with an entry for each, one that points elsewhere, and a
    /// word that is no entry.
    fn with_index(endian: Endian) -> Vec<u8> {
        // An attr of its own length, so that the data begins elsewhere in a copy with a longer one.
        let entry =
            AttrEntry { attr: Attr { size: 96, ..Attr::default() }, ids: vec![7], name: None };
        let mut writer = begun(endian, &[entry]);
        let mut words = Encoder::new(endian);
        for tid in 1..=3 {
            words.u64(writer.position());
            words.u64(48);
            writer.write(&auxtrace(endian, tid)).unwrap();
        }
        let first = writer.position() - 3 * 56;
        [8, 48, first].into_iter().for_each(|word| words.u64(word));
        let mut features = FeatureWriter::new(endian);
        features.add(&AuxtraceIndex { total: 4, words: U64s::new(words.as_bytes(), endian) });
        finished(writer, &features)
    }

    #[test]
    fn the_index_follows_its_records() {
        for endian in [Endian::Little, Endian::Big] {
            let bytes = with_index(endian);
            let mut file = File::parse(&bytes).unwrap();
            assert_eq!(copied(&file, |_| true), bytes);
            // As a recorder with longer attrs would have left it.
            let longer = AttrEntry {
                attr: Attr { size: 136, ..Attr::default() },
                ids: vec![7, 8],
                name: None,
            };
            file.attrs = crate::attr::AttrTable::new(vec![longer], endian);
            let first = file.data.offset;
            let tid = |raw: &RawRecord<'_>| endian.u32_at(raw.bytes, 36).unwrap();
            for (kept, dropped) in [(vec![1, 2, 3], 0), (vec![1, 3], 2), (vec![3], 1), (vec![], 9)]
            {
                let again = copied(&file, |raw| kept.contains(&tid(raw)));
                let again = File::parse(&again).unwrap();
                assert_ne!(again.data.offset, first);
                let records: Vec<_> = again.records().map(Result::unwrap).collect();
                assert_eq!(records.iter().map(tid).collect::<Vec<_>>(), kept, "without {dropped}");
                assert!(records.iter().all(|raw| raw.payload == b"payload!"));
                let index = again.feature::<AuxtraceIndex<'_>>().unwrap().unwrap();
                let expected: Vec<_> =
                    records.iter().map(|raw| (raw.offset, 48)).chain([(8, 48)]).collect();
                assert_eq!(index.total, expected.len() as u64);
                assert_eq!(index.iter().collect::<Vec<_>>(), expected);
                assert_eq!(
                    index.words.iter().last(),
                    Some(first),
                    "a word that is no entry stays as it is"
                );
            }
        }
    }

    #[test]
    fn names_of_tracepoints_are_kept() {
        let mut writer = begun(Endian::Little, &[]);
        writer.event_types(b"some names");
        writer.write(&[68, 0, 0, 0, 0, 0, 8, 0]).unwrap();
        let bytes = finished(writer, &FeatureWriter::new(Endian::Little));
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.header.event_types.of(&bytes), Some(&b"some names"[..]));
        assert_eq!(copied(&file, |_| true), bytes);
    }

    #[test]
    fn unknown_records_and_what_follows_the_last_one_are_kept() {
        let mut pipe = Magic::bytes(Endian::Little).to_vec();
        pipe.extend(16u64.to_le_bytes());
        // A type that nobody knows, with bytes that no decoder has seen.
        pipe.extend([0xff, 0xff, 0, 0, 9, 9, 12, 0, 1, 2, 3, 4]);
        pipe.extend([68, 0, 0, 0, 0, 0, 8, 0, 1, 2, 3]);
        let file = File::parse(&pipe).unwrap();
        let (again, header) = copy_unseekable(&file, Vec::new(), |_| true).unwrap();
        assert_eq!((again, header), (pipe.clone(), None));
        let dropped = copied(&file, |raw| raw.header.kind != RecordType::FINISHED_ROUND);
        assert_eq!(dropped, [&pipe[..28], &[1, 2, 3]].concat());
    }

    #[test]
    fn a_stream_becomes_a_file_with_more_features() {
        for endian in [Endian::Little, Endian::Big] {
            let mut e = Encoder::new(endian);
            put_header(&mut e);
            let host = Hostname::new("here").to_bytes(endian).unwrap();
            let mut ids = Encoder::new(endian);
            ids.u64(7);
            let attr = Attr { size: 136, ..Attr::default() };
            for body in [
                Body::HeaderAttr(HeaderAttr {
                    attr: attr.clone(),
                    ids: U64s::new(ids.as_bytes(), endian),
                }),
                Body::HeaderFeature(HeaderFeature { feat_id: 3, data: &host }),
                Body::FinishedRound,
            ] {
                Record::new(0, body).encode(&mut e).unwrap();
            }
            let stream = File::parse(e.as_bytes()).unwrap();
            let mut more = FeatureWriter::new(endian);
            more.add(&Bundle {
                version: 1,
                compression: BodyCompression::STORED,
                size: 4,
                body: &[0; 4],
            });
            let bytes = copy_with(&stream, Cursor::new(Vec::new()), &more).unwrap().into_inner();
            let file = File::parse(&bytes).unwrap();
            assert_eq!((file.mode, file.warnings.len()), (Mode::File, 0));
            assert_eq!(&file.attrs.entries()[0].attr, &attr);
            assert_eq!(&file.attrs.entries()[0].ids, &vec![7]);
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
            assert_eq!(file.feature::<Bundle<'_>>().unwrap().unwrap().body, [0; 4]);
            let kinds: Vec<_> = file.records().map(|raw| raw.unwrap().header.kind).collect();
            assert_eq!(kinds, [RecordType::FINISHED_ROUND]);
        }
    }

    #[test]
    fn attrs_and_features_of_a_stream_are_not_asked_for() {
        let mut e = Encoder::new(Endian::Big);
        put_header(&mut e);
        let host = Hostname::new("here").to_bytes(Endian::Big).unwrap();
        for body in [
            Body::FinishedRound,
            Body::HeaderFeature(HeaderFeature { feat_id: 3, data: &host }),
            Body::Switch,
        ] {
            Record::new(0, body).encode(&mut e).unwrap();
        }
        let mut asked = Vec::new();
        let again = copied(&File::parse(e.as_bytes()).unwrap(), |raw| {
            asked.push(raw.header.kind);
            false
        });
        assert_eq!(asked, [RecordType::FINISHED_ROUND, RecordType::SWITCH]);
        let again = File::parse(&again).unwrap();
        assert_eq!(again.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
        assert_eq!(again.records().count(), 1);
    }
}
