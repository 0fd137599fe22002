//! A file written again from what was read of it.
//!
//! Every record that decodes is encoded anew, what does not is copied as it is, so the data section comes back byte by byte.
//! What stands around it may lie elsewhere in the copy: attrs are as long as the longest, header and features are where
//! [`FileWriter`] puts them. One feature tells places in the file, the index of AUXTRACE records; it moves with the data.

use std::io::{self, Write};

use super::file::{FeatureWriter, FileWriter};
use crate::bytes::{Encoder, U64s};
use crate::feature::{AuxtraceIndex, Feature, FeatureId};
use crate::read::{File, Magic, Mode, PIPE_HEADER_SIZE, Section};
use crate::record::RawRecord;

/// Writes all of a file again: attrs, ids, records and features, in file mode or in pipe mode as it was, and in its byte order. Gives
/// back the output and the final header, which belongs at byte 0.
///
/// What is wrong with the file is not copied: the data of a killed recorder gets its size, features outside the file are left
/// out.
///
/// ```
/// use recrep_format::read::File;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use recrep_format::{attr::Attr, attrs::AttrEntry, endian::Endian, write::{FeatureWriter, FileWriter}};
/// # let entry = AttrEntry { attr: Attr::default(), ids: vec![7], name: None };
/// # let writer = FileWriter::new(Vec::new(), Endian::Big, &[entry])?;
/// # let (mut original, header) = writer.finish(&FeatureWriter::new(Endian::Big))?;
/// # original[..header.len()].copy_from_slice(&header);
/// let file = File::parse(&original)?;
/// let (mut again, header) = recrep_format::write::copy(&file, Vec::new())?;
/// again[..header.len()].copy_from_slice(&header);
/// assert_eq!(again, original);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// What writing gives.
pub fn copy<W: Write>(file: &File<'_>, out: W) -> io::Result<(W, Vec<u8>)> {
    match file.mode {
        Mode::File => copy_file(file, out),
        Mode::Pipe => copy_pipe(file, out),
    }
}

fn copy_file<W: Write>(file: &File<'_>, out: W) -> io::Result<(W, Vec<u8>)> {
    let mut writer = FileWriter::new(out, file.endian, file.attrs.entries())?;
    writer.magic(file.header.magic);
    let begin = writer.position();
    records(file, |bytes| writer.write(bytes))?;
    let mut features = FeatureWriter::new(file.endian);
    for (id, section) in &file.features {
        let Some(bytes) = section.of(file.bytes()) else { continue };
        let moved = (*id == FeatureId::AUXTRACE).then(|| moved_index(file, begin)).flatten();
        features.add_bytes(*id, moved.unwrap_or_else(|| bytes.to_vec()));
    }
    if let Some(types) = file.header.event_types.of(file.bytes()) {
        writer.event_types(types);
    }
    writer.finish(&features)
}

fn copy_pipe<W: Write>(file: &File<'_>, mut out: W) -> io::Result<(W, Vec<u8>)> {
    let mut e = Encoder::new(file.endian);
    e.bytes(&Magic::bytes(file.endian));
    e.u64(PIPE_HEADER_SIZE as u64);
    out.write_all(e.as_bytes())?;
    records(file, |bytes| out.write_all(bytes))?;
    out.flush()?;
    Ok((out, e.into_bytes()))
}

/// The data section, record by record, and what follows the last whole one.
fn records(file: &File<'_>, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut e = Encoder::new(file.endian);
    let mut frames = file.records();
    let mut rest = frames.left();
    while let Some(Ok(raw)) = frames.next() {
        e.clear();
        write(encoded(file, &raw, &mut e))?;
        write(raw.payload)?;
        rest = frames.left();
    }
    write(rest)
}

/// A record through its typed form; one without one as it is.
fn encoded<'e>(file: &File<'_>, raw: &RawRecord<'e>, e: &'e mut Encoder) -> &'e [u8] {
    match file.attrs.decode(raw).map(|record| record.encode(e)) {
        Ok(Ok(())) => e.as_bytes(),
        _ => raw.bytes,
    }
}

/// The index of AUXTRACE records when the data begins at `begin`; `None` where it cannot be read.
fn moved_index(file: &File<'_>, begin: u64) -> Option<Vec<u8>> {
    let mut c = file.feature_cursor(FeatureId::AUXTRACE)?;
    let index = AuxtraceIndex::decode(&mut c).ok()?;
    let Section { offset: old, size } = file.data;
    let entries = usize::try_from(index.total).ok()?;
    let mut words = Encoder::new(file.endian);
    for (place, word) in index.words.iter().enumerate() {
        let is_offset = place % 2 == 0 && place / 2 < entries && (old..=old.saturating_add(size)).contains(&word);
        words.u64(if is_offset { word - old + begin } else { word });
    }
    let mut e = Encoder::new(file.endian);
    AuxtraceIndex { words: U64s::new(words.as_bytes(), file.endian), ..index }.encode(&mut e).ok()?;
    e.bytes(c.rest());
    Some(e.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{Cpu, RecordType, Tid};
    use crate::attr::Attr;
    use crate::attrs::AttrEntry;
    use crate::endian::Endian;
    use crate::record::{Auxtrace, Body, Record};

    #[test]
    fn the_index_moves_with_the_data() {
        for endian in [Endian::Little, Endian::Big] {
            // An attr of its own length, so that the data begins elsewhere in the copy.
            let entry = AttrEntry { attr: Attr { size: 96, ..Attr::default() }, ids: vec![7], name: None };
            let mut writer = FileWriter::new(Vec::new(), endian, &[entry]).unwrap();
            let mut e = Encoder::new(endian);
            let aux = Auxtrace { size: 8, offset: 0, reference: 1, idx: 0, tid: Tid(1), cpu: Cpu(0), reserved: 0 };
            Record::new(0, Body::Auxtrace(aux)).encode(&mut e).unwrap();
            e.bytes(b"payload!");
            let places = [writer.position(), writer.position() + e.len() as u64];
            writer.write(&e.as_bytes().repeat(2)).unwrap();
            let mut words = Encoder::new(endian);
            for word in [places[0], 48, places[1], 48, places[0]] {
                words.u64(word);
            }
            let mut features = FeatureWriter::new(endian);
            features.add(&AuxtraceIndex { total: 2, words: U64s::new(words.as_bytes(), endian) });
            let (mut bytes, header) = writer.finish(&features).unwrap();
            bytes[..header.len()].copy_from_slice(&header);

            let mut file = File::parse(&bytes).unwrap();
            // As a recorder with longer attrs would have left it.
            let longer = AttrEntry { attr: Attr { size: 136, ..Attr::default() }, ids: vec![7, 8], name: None };
            file.attrs = crate::attrs::AttrTable::new(vec![longer], endian);
            let (mut again, header) = copy(&file, Vec::new()).unwrap();
            again[..header.len()].copy_from_slice(&header);
            let copied = File::parse(&again).unwrap();
            assert_ne!(copied.data.offset, file.data.offset);
            let index = copied.feature::<AuxtraceIndex<'_>>().unwrap().unwrap();
            let found: Vec<_> = copied.records().map(|raw| raw.unwrap().offset).collect();
            assert_eq!(index.iter().collect::<Vec<_>>(), found.iter().map(|at| (*at, 48)).collect::<Vec<_>>());
            assert_eq!(index.words.get(4), Some(places[0]), "a word that is no entry stays as it is");
            assert!(copied.records().all(|raw| raw.unwrap().header.kind == RecordType::AUXTRACE));
        }
    }

    #[test]
    fn names_of_tracepoints_are_kept() {
        let mut writer = FileWriter::new(Vec::new(), Endian::Little, &[]).unwrap();
        writer.event_types(b"some names");
        writer.write(&[68, 0, 0, 0, 0, 0, 8, 0]).unwrap();
        let (mut bytes, header) = writer.finish(&FeatureWriter::new(Endian::Little)).unwrap();
        bytes[..header.len()].copy_from_slice(&header);
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.header.event_types.of(&bytes), Some(&b"some names"[..]));
        let (mut again, header) = copy(&file, Vec::new()).unwrap();
        again[..header.len()].copy_from_slice(&header);
        assert_eq!(again, bytes);
    }

    #[test]
    fn what_follows_the_last_record_is_kept() {
        let mut pipe = Magic::bytes(Endian::Little).to_vec();
        pipe.extend(16u64.to_le_bytes());
        pipe.extend([68, 0, 0, 0, 0, 0, 8, 0, 1, 2, 3]);
        let (again, header) = copy(&File::parse(&pipe).unwrap(), Vec::new()).unwrap();
        assert_eq!((again.as_slice(), header.as_slice()), (&pipe[..], &pipe[..16]));
    }
}
