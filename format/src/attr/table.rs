//! The attrs of a stream, their ids and layouts, and which record belongs to which.
//!
//! Three things are easily confused, so each has its type or its word here: the *event id* that the
//! kernel gives each counter (a `u64` in records; one attr has many, one for each CPU and thread),
//! and the [`AttrIndex`], the attr's place in the file.
//!
//! How a record finds its attr (as perf does it): one attr: that one. Several: by the id, which
//! lies at the fixed place of IDENTIFIER, or at the place of ID, which must then be the same in all
//! attrs. An id of 0, as synthesized records have it, means the first attr; an id that no attr has
//! means none.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::Attr;
use crate::abi::RecordType;
use crate::endian::Endian;
use crate::error::Result;
use crate::layout::{SampleIdLayout, SampleLayout};
use crate::record::{Context, RawRecord, Record, Sample, SampleId};

/// The place of an attr in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttrIndex(pub usize);

/// An attr and what the file says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttrEntry {
    /// The event.
    pub attr: Attr,
    /// The ids of its counters.
    pub ids: Vec<u64>,
    /// Its name, where the file has one (EVENT_DESC, EVENT_UPDATE).
    pub name: Option<String>,
}

impl AttrEntry {
    /// Returns the event's name: the one that the recording gives it, else the attr's own.
    pub fn event_name(&self) -> Cow<'_, str> {
        self.name.as_deref().map_or_else(|| self.attr.event_name().into(), Cow::Borrowed)
    }
}

/// Number of ids that are found without hashing.
const NEAR: usize = 64;

/// The attrs of a stream.
/// ```
/// use recrep_format::abi::SampleType;
/// use recrep_format::attr::{Attr, AttrEntry, AttrIndex, AttrTable};
/// use recrep_format::endian::Endian;
/// use recrep_format::read::Frames;
///
/// let attr = Attr { sample_type: SampleType::IDENTIFIER | SampleType::IP, ..Attr::default() };
/// let event = |id: u64| AttrEntry { attr: attr.clone(), ids: vec![id], name: None };
/// let table = AttrTable::new(vec![event(7), event(8)], Endian::Little);
///
/// // A sample of 24 bytes: header, identifier, ip.
/// let words = [24 << 48 | 2 << 32 | 9, 8, 0x40_0123u64];
/// let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// for raw in Frames::new(&bytes, 0, Endian::Little).flatten() {
///     let (event, sample) = table.sample(raw).unwrap();
///     assert_eq!((event, sample.ip()), (AttrIndex(1), Some(0x40_0123)));
/// }
/// ```
#[derive(Clone, Debug)]
pub struct AttrTable {
    endian: Endian,
    entries: Vec<AttrEntry>,
    layouts: Vec<(SampleLayout, SampleIdLayout)>,
    by_id: FxHashMap<u64, AttrIndex>,
    /// Ids by their low bits, as far as they differ there: the kernel numbers them one after the
    /// other.
    near: [Option<(u64, AttrIndex)>; NEAR],
    fallback: SampleLayout,
    /// Offset of a sample's id in bytes from its start; the same for all attrs.
    sample_id_at: Option<usize>,
    /// Offset of a trailer's id in bytes before the record's end; the same for all attrs.
    trailer_id_at: Option<usize>,
}

impl AttrTable {
    /// Returns a table of these attrs.
    pub fn new(entries: Vec<AttrEntry>, endian: Endian) -> Self {
        let mut table = Self {
            endian,
            entries: Vec::with_capacity(entries.len()),
            layouts: Vec::with_capacity(entries.len()),
            by_id: FxHashMap::default(),
            near: [None; NEAR],
            fallback: SampleLayout::of(&Attr::default()),
            sample_id_at: None,
            trailer_id_at: None,
        };
        for entry in entries {
            table.push(entry);
        }
        table
    }

    /// Adds an attr.
    pub fn push(&mut self, entry: AttrEntry) {
        let (sample, trailer) = (SampleLayout::of(&entry.attr), SampleIdLayout::of(&entry.attr));
        let index = AttrIndex(self.entries.len());
        for id in &entry.ids {
            self.find_by(*id, index);
        }
        // The place of the ids counts only if it is the same for all attrs.
        let is_first = self.entries.is_empty();
        let common = |before: Option<usize>, here: Option<usize>| {
            if is_first || before == here { here } else { None }
        };
        self.sample_id_at =
            common(self.sample_id_at, sample.event_id().is_some().then(|| sample.event_id().at()));
        self.trailer_id_at = common(self.trailer_id_at, trailer.event_id);
        self.layouts.push((sample, trailer));
        self.entries.push(entry);
    }

    /// Adds an id that no attr has to the attr at `index`, if there is one.
    pub(crate) fn add_id(&mut self, index: AttrIndex, id: u64) {
        let is_new = self.by_id(id).is_none();
        if let Some(entry) = self.entries.get_mut(index.0).filter(|_| is_new) {
            entry.ids.push(id);
            self.find_by(id, index);
        }
    }

    /// Lets the attr be found by an id, unless another attr is.
    fn find_by(&mut self, id: u64, index: AttrIndex) {
        if id != 0 {
            self.by_id.entry(id).or_insert(index);
            if let Some(near) = self.near.get_mut(place(id)) {
                near.get_or_insert((id, index));
            }
        }
    }

    /// Returns the byte order of the stream.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the attrs in the file's order.
    pub fn entries(&self) -> &[AttrEntry] {
        &self.entries
    }

    /// Returns the attr at `index`.
    pub fn get(&self, index: AttrIndex) -> Option<&AttrEntry> {
        self.entries.get(index.0)
    }

    /// Sets the name of the attr at `index`.
    pub fn set_name(&mut self, index: AttrIndex, name: String) {
        if let Some(entry) = self.entries.get_mut(index.0) {
            entry.name = Some(name);
        }
    }

    /// Returns the attr that has the event id `id`.
    #[inline]
    pub fn by_id(&self, id: u64) -> Option<AttrIndex> {
        match self.near.get(place(id)) {
            Some(Some((near, index))) if *near == id => Some(*index),
            _ => self.by_id.get(&id).copied(),
        }
    }

    /// Returns the layout of the samples of an attr.
    #[inline]
    pub fn sample_layout(&self, index: AttrIndex) -> Option<&SampleLayout> {
        self.layouts.get(index.0).map(|(sample, _)| sample)
    }

    /// Returns the layout of the trailers of an attr.
    pub fn trailer_layout(&self, index: AttrIndex) -> SampleIdLayout {
        self.layouts.get(index.0).map_or(SampleIdLayout::NONE, |(_, trailer)| *trailer)
    }

    /// Returns the attr of a record: of a sample by its id, of others by the trailer's. `None`
    /// where there are no attrs, where the id is one that no attr has, or where perf's own records
    /// (64 and up) belong to no attr.
    #[inline]
    pub fn event_of(&self, raw: &RawRecord<'_>) -> Option<AttrIndex> {
        self.event(raw.header.kind, raw.bytes)
    }

    /// Like [`AttrTable::event_of`]. Two arguments need not be in memory, where a copy of the
    /// record that was just made would have to be waited for.
    #[inline]
    fn event(&self, kind: RecordType, bytes: &[u8]) -> Option<AttrIndex> {
        if !kind.is_kernel() {
            return None;
        }
        match self.layouts.len() {
            0 => return None,
            1 => return Some(AttrIndex(0)),
            _ => {}
        }
        let id = if kind == RecordType::SAMPLE {
            self.sample_id_at.and_then(|at| self.endian.u64_at(bytes, at))
        } else {
            self.trailer_id_at
                .and_then(|back| self.endian.u64_at(bytes, bytes.len().checked_sub(back)?))
        };
        match id {
            None | Some(0) => Some(AttrIndex(0)),
            Some(id) => self.by_id(id),
        }
    }

    /// Returns the record as a sample of its event; `None` where it is none or belongs to no attr.
    #[inline]
    pub fn sample<'a>(&self, raw: RawRecord<'a>) -> Option<(AttrIndex, Sample<'a, '_>)> {
        if raw.header.kind != RecordType::SAMPLE {
            return None;
        }
        let index = self.event(raw.header.kind, raw.bytes)?;
        Some((index, Sample::new(raw, self.sample_layout(index)?, self.endian)))
    }

    /// Returns the record's time in nanoseconds of the perf clock: a sample's TIME, the time in the
    /// trailer of any other. `None` where the stream has no times there.
    #[inline]
    pub fn time_of(&self, raw: &RawRecord<'_>) -> Option<u64> {
        let (sample, trailer) = self.layouts.get(self.event_of(raw)?.0)?;
        if raw.header.kind == RecordType::SAMPLE {
            self.endian.u64_at(raw.bytes, sample.time.at())
        } else {
            self.endian.u64_at(raw.bytes, raw.bytes.len().checked_sub(trailer.time?)?)
        }
    }

    /// Decodes the trailer of a record alone; a SAMPLE has none.
    ///
    /// # Errors
    /// Returns an error if the record is shorter than the trailer.
    #[inline]
    pub fn trailer(&self, raw: &RawRecord<'_>) -> Result<SampleId> {
        let layouts = self.event_of(raw).and_then(|index| self.layouts.get(index.0));
        let layout = layouts.map_or(SampleIdLayout::NONE, |(_, trailer)| *trailer);
        raw.trailer(layout, self.endian)
    }

    /// Decodes a record by the layouts of its event. A SAMPLE of an unknown event has no fields
    /// then; its bytes are [`Record::rest`].
    ///
    /// # Errors
    /// Returns an error if the record is too short for what it says.
    pub fn decode<'a>(&self, raw: &RawRecord<'a>) -> Result<Record<'a>> {
        let layouts = self.event_of(raw).and_then(|index| self.layouts.get(index.0));
        let (sample, trailer) = match layouts {
            Some((sample, trailer)) => (sample, *trailer),
            None => (&self.fallback, SampleIdLayout::NONE),
        };
        raw.decode(&Context { endian: self.endian, sample, trailer })
    }
}

/// Returns the place of an id among those that are found without hashing.
fn place(id: u64) -> usize {
    usize::try_from(id).unwrap_or(0) % NEAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{AttrFlags, SampleType};
    use crate::bytes::Encoder;
    use crate::read::Frames;
    use crate::record::{Body, Comm, SampleFields};
    use crate::wire::Text;

    fn entry(sample_type: SampleType, ids: &[u64]) -> AttrEntry {
        let attr = Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
        AttrEntry { attr, ids: ids.to_vec(), name: None }
    }

    #[test]
    fn several_events_are_told_apart_by_the_identifier() {
        let with_id = SampleType::IDENTIFIER | SampleType::IP;
        let table = AttrTable::new(
            vec![entry(with_id, &[7]), entry(with_id | SampleType::TIME, &[8, 9])],
            Endian::Little,
        );
        let mut e = Encoder::new(Endian::Little);
        for id in [9, 7, 0, 1234] {
            let fields = SampleFields {
                identifier: Some(id),
                ip: Some(0x1000),
                time: Some(5),
                ..SampleFields::default()
            };
            Record::new(2, Body::Sample(Box::new(fields))).encode(&mut e).unwrap();
        }
        let events: Vec<_> = Frames::new(e.as_bytes(), 0, Endian::Little)
            .map(|raw| table.event_of(&raw.unwrap()).map(|index| index.0))
            .collect();
        assert_eq!(events, [Some(1), Some(0), Some(0), None]);
    }

    #[test]
    fn ids_with_equal_low_bits_are_told_apart() {
        let near = NEAR as u64;
        let table = AttrTable::new(
            vec![entry(SampleType::ID, &[7, 8]), entry(SampleType::ID, &[7 + near])],
            Endian::Big,
        );
        let found = [7, 8, 7 + near, 8 + near, 0].map(|id| table.by_id(id).map(|index| index.0));
        assert_eq!(found, [Some(0), Some(0), Some(1), None, None]);
    }

    #[test]
    fn a_trailer_gives_event_and_time() {
        let bits = SampleType::IDENTIFIER | SampleType::TID | SampleType::TIME;
        let table = AttrTable::new(vec![entry(bits, &[7]), entry(bits, &[8])], Endian::Big);
        let trailer = SampleId {
            tid: Some([1, 2]),
            time: Some(77),
            identifier: Some(8),
            ..SampleId::default()
        };
        let record = Record::new(0, Body::Comm(Comm { pid: 1, tid: 2, comm: Text::new(b"ls") }))
            .with_trailer(trailer);
        let e = record.to_bytes(Endian::Big).unwrap();
        let raw = Frames::new(&e, 0, Endian::Big).next().unwrap().unwrap();
        assert_eq!(table.event_of(&raw), Some(AttrIndex(1)));
        assert_eq!(table.time_of(&raw), Some(77));
        assert_eq!(table.trailer(&raw).unwrap(), record.trailer);
        assert_eq!(table.decode(&raw).unwrap(), record);
        let cut = RawRecord { bytes: &raw.bytes[raw.bytes.len() - 24..], ..raw };
        assert!(table.trailer(&cut).is_err());
    }
}
