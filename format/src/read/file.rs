//! A file and its parts: header, attrs with their ids, data, features.
//!
//! ```text
//! | header 104 | ids … | attrs: (attr, ids section) … | data: records … | feature table | features … |
//!                 ^-----------'         the table: one section for each set feature bit, in bit order
//! ```
//!
//! Nothing is believed that the file's true size does not bear. What can be mended is, with a [`Warning`]: a data section
//! that reaches past the end (a copy that was cut), a data size of 0 (a recorder that was killed before it
//! could write it), features past the end.

use rustc_hash::FxHashMap;

use super::header::{FILE_HEADER_SIZE, FileHeader, Magic, PIPE_HEADER_SIZE, Section};
use super::pipe::PipeParts;
use super::warning::Warning;
use crate::abi::EventType;
use crate::attr::Attr;
use crate::attrs::{AttrEntry, AttrIndex, AttrTable};
use crate::bytes::Cursor;
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::feature::tracing::Tracing;
use crate::feature::{EventDesc, Feature, FeatureId};
use crate::read::Frames;
use crate::wire::Wire;

/// How the parts of a stream are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the header at the start (seekable).
    File,
    /// As records (streamed).
    Pipe,
}

/// A perf.data file, in file mode or in pipe mode.
/// ```
/// use recrep_format::feature::Hostname;
/// use recrep_format::read::File;
///
/// fn describe(bytes: &[u8]) -> recrep_format::error::Result<()> {
///     let file = File::parse(bytes)?;
///     for entry in file.attrs.entries() {
///         println!("{:?} samples {:?}", entry.name, entry.attr.sample_type);
///     }
///     if let Some(host) = file.feature::<Hostname<'_>>() {
///         println!("recorded on {}", host?.0.to_text());
///     }
///     for raw in file.records() {
///         let raw = raw?;
///         println!("{:#x} {} {:?}", raw.offset, raw.header.kind, file.attrs.decode(&raw)?.body);
///     }
///     for warning in &file.warnings {
///         println!("byte {}: {}", warning.offset, warning.message);
///     }
///     Ok(())
/// }
/// # assert!(describe(b"PERFILE2").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct File<'a> {
    bytes: &'a [u8],
    /// The byte order of the whole file.
    pub endian: Endian,
    /// File mode or pipe mode.
    pub mode: Mode,
    /// The header as it stands; in pipe mode as if the data were one section.
    pub header: FileHeader,
    /// The attrs.
    pub attrs: AttrTable,
    /// The data section as far as it is really there.
    pub data: Section,
    /// The features that are wholly there: which, and where.
    pub features: Vec<(FeatureId, Section)>,
    /// What was wrong and mended.
    pub warnings: Vec<Warning>,
}

impl<'a> File<'a> {
    /// Reads the parts of a file; no record is looked at.
    ///
    /// # Errors
    /// Not a perf.data file, or a header or attrs that cannot be read.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let endian = match Magic::read(bytes)? {
            Magic::V2(endian) => endian,
            Magic::V1 => v1_endian(bytes),
        };
        if is_pipe(bytes, endian) {
            return Ok(Self::of_pipe(bytes, endian));
        }
        let header = FileHeader::decode(&mut Cursor::new(bytes, 0, endian), "perf.data header")?;
        let mut warnings = Vec::new();
        let entries = read_attrs(bytes, &header, endian)?;
        let data = data_section(bytes, &header, endian, &mut warnings);
        let features = feature_sections(bytes, &header, endian, &mut warnings);
        let attrs = AttrTable::new(entries, endian);
        let mut file = Self { bytes, endian, mode: Mode::File, header, attrs, data, features, warnings };
        file.name_events();
        Ok(file)
    }

    /// A pipe-mode stream as a file whose data section is all that follows its short header.
    fn of_pipe(bytes: &'a [u8], endian: Endian) -> Self {
        let PipeParts { attrs, features, warnings } = PipeParts::collect(bytes, endian);
        let empty = Section { offset: 0, size: 0 };
        let start = (PIPE_HEADER_SIZE as u64).min(bytes.len() as u64);
        let data = Section { offset: start, size: bytes.len() as u64 - start };
        let header = FileHeader {
            magic: Magic::bytes(endian),
            size: PIPE_HEADER_SIZE as u64,
            attr_size: 0,
            attrs: empty,
            data,
            event_types: empty,
            features: [0; 4],
        };
        let mut file = Self { bytes, endian, mode: Mode::Pipe, header, attrs, data, features, warnings };
        file.name_events();
        file
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of the data section.
    #[must_use]
    pub fn data_bytes(&self) -> &'a [u8] {
        self.data.of(self.bytes).unwrap_or_default()
    }

    /// The records of the data section, in file order.
    #[must_use]
    pub fn records(&self) -> Frames<'a> {
        Frames::new(self.data_bytes(), self.data.offset, self.endian)
    }

    /// A cursor over the section of a feature; `None` where the file does not have it.
    #[must_use]
    pub fn feature_cursor(&self, id: FeatureId) -> Option<Cursor<'a>> {
        let (_, section) = self.features.iter().find(|(have, _)| *have == id)?;
        Some(Cursor::new(section.of(self.bytes)?, section.offset, self.endian))
    }

    /// A feature, decoded; `None` where the file does not have it.
    #[must_use]
    pub fn feature<F: Feature<'a>>(&self) -> Option<Result<F>> {
        self.feature_cursor(F::ID).map(|mut c| F::decode(&mut c, F::ID.name().unwrap_or("a feature")))
    }

    /// Takes the events' names from EVENT_DESC: by id where there are ids, else by place. Tracepoints that it does not name
    /// have the names in TRACING_DATA.
    fn name_events(&mut self) {
        if let Some(Ok(desc)) = self.feature::<EventDesc<'_>>() {
            for (place, event) in desc.events.iter().enumerate().filter(|(_, event)| !event.name.as_bytes().is_empty())
            {
                let by_id = event.ids.iter().find_map(|id| self.attrs.by_id(id));
                self.attrs.set_name(by_id.unwrap_or(AttrIndex(place)), event.name.to_text().into_owned());
            }
        }
        let is_unnamed = |entry: &AttrEntry| entry.name.is_none() && entry.attr.kind == EventType::TRACEPOINT;
        if !self.attrs.entries().iter().any(is_unnamed) {
            return;
        }
        let Some(Ok(tracing)) = self.feature::<Tracing<'_>>() else { return };
        let names: FxHashMap<_, _> =
            tracing.events().flatten().map(|event| (event.id, format!("{}:{}", event.system, event.name))).collect();
        for place in 0..self.attrs.entries().len() {
            let index = AttrIndex(place);
            if let Some(entry) = self.attrs.get(index).filter(|entry| is_unnamed(entry))
                && let Some(name) = names.get(&entry.attr.config)
            {
                self.attrs.set_name(index, name.clone());
            }
        }
    }
}

/// Whether the stream is in pipe mode: its header is only magic and size.
#[must_use]
pub(crate) fn is_pipe(bytes: &[u8], endian: Endian) -> bool {
    endian.u64_at(bytes, 8) == Some(PIPE_HEADER_SIZE as u64)
}

/// The old magic reads the same in both orders, so the header's size must tell.
fn v1_endian(bytes: &[u8]) -> Endian {
    let plausible = |endian: Endian| endian.u64_at(bytes, 8).is_some_and(|size| size <= 4096);
    if !plausible(Endian::Little) && plausible(Endian::Big) { Endian::Big } else { Endian::Little }
}

fn read_attrs(file: &[u8], header: &FileHeader, endian: Endian) -> Result<Vec<AttrEntry>> {
    const IDS_SECTION: usize = 16;
    let at = header.attrs.offset;
    let all = header.attrs.of(file).ok_or_else(|| {
        Error::truncated(at, "the attrs section", header.attrs.size, (file.len() as u64).saturating_sub(at))
    })?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let entry_size = usize::try_from(header.attr_size).unwrap_or(usize::MAX);
    if entry_size < Attr::MIN_SIZE + IDS_SECTION || entry_size > all.len() {
        let detail = format!("each entry has {} bytes, the section {}", header.attr_size, header.attrs.size);
        return Err(Error::invalid(at, "the attrs section", detail));
    }
    let mut entries = Vec::with_capacity(all.len() / entry_size);
    let mut c = Cursor::new(all, at, endian);
    // Attrs do not share ids, so all ids together are never longer than the file.
    let mut left = file.len();
    while c.left() >= entry_size {
        let attr = Attr::decode(&mut c, entry_size - IDS_SECTION)?;
        let section = Section::decode(&mut c, "the ids section of an attr")?;
        let bytes = section.of(file).ok_or_else(|| {
            let left = (file.len() as u64).saturating_sub(section.offset);
            Error::truncated(section.offset, "the ids of an attr", section.size, left)
        })?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let detail = "the attrs have more ids together than the file has bytes";
            Error::invalid(section.offset, "the ids of an attr", detail.to_owned())
        })?;
        let ids = crate::bytes::U64s::new(bytes, endian).iter().collect();
        entries.push(AttrEntry { attr, ids, name: None });
    }
    Ok(entries)
}

fn data_section(file: &[u8], header: &FileHeader, endian: Endian, warnings: &mut Vec<Warning>) -> Section {
    let len = file.len() as u64;
    let Section { offset, size } = header.data;
    let there = len.saturating_sub(offset);
    let unfinished = size == 0 && there > 0 && !finished_empty(file, header, endian);
    if unfinished && offset >= FILE_HEADER_SIZE as u64 {
        warnings.push(Warning {
            code: "no-data-size",
            message: "the header gives no data size: the recorder did not finish; reading all that follows as records"
                .into(),
            offset: 48,
        });
        return Section { offset, size: there };
    }
    if size > there {
        warnings.push(Warning {
            code: "truncated",
            message: format!("the data section has {size} bytes by the header, and {there} are in the file"),
            offset: len,
        });
    }
    Section { offset: offset.min(len), size: size.min(there) }
}

/// Whether a file without data was finished: then its feature table, and not records, is where the data would begin.
fn finished_empty(file: &[u8], header: &FileHeader, endian: Endian) -> bool {
    let ids = FeatureId::in_bitmap(feature_words(header, endian)).count();
    let start = usize::try_from(header.data.offset).unwrap_or(usize::MAX);
    let behind = header.data.offset.saturating_add(16 * ids as u64);
    let mut c = Cursor::new(file.get(start..).unwrap_or_default(), header.data.offset, endian);
    let told = |section: Section| section.offset >= behind && section.of(file).is_some();
    ids > 0 && (0..ids).all(|_| Section::decode(&mut c, "the feature table").is_ok_and(told))
}

/// The bitmap of the features. It is an array of the recorder's `unsigned long`: a 32-bit big-endian machine leaves
/// the halves of each word the other way round. HOSTNAME, which perf always writes, tells.
fn feature_words(header: &FileHeader, endian: Endian) -> [u64; 4] {
    let has_host = |words: [u64; 4]| FeatureId::in_bitmap(words).any(|id| id == FeatureId::HOSTNAME);
    let halves = header.features.map(|word| word.rotate_left(32));
    let swapped = endian == Endian::Big && !has_host(header.features) && has_host(halves);
    if swapped { halves } else { header.features }
}

/// Finds the sections of the features: their table follows the data.
fn feature_sections(
    file: &[u8],
    header: &FileHeader,
    endian: Endian,
    warnings: &mut Vec<Warning>,
) -> Vec<(FeatureId, Section)> {
    let Some(table) = header.data.offset.checked_add(header.data.size) else { return Vec::new() };
    if header.data.size == 0 && !finished_empty(file, header, endian) {
        return Vec::new();
    }
    let rest = usize::try_from(table).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    let mut c = Cursor::new(rest, table, endian);
    let mut found = Vec::new();
    // Features do not share bytes, so all of them together are never longer than the file.
    let mut left = file.len() as u64;
    for id in FeatureId::in_bitmap(feature_words(header, endian)) {
        let Ok(section) = Section::decode(&mut c, "the feature table") else {
            warnings.push(Warning {
                code: "truncated",
                message: format!("the file ends before its features ({id} and what follows it)"),
                offset: c.offset(),
            });
            break;
        };
        if section.of(file).is_some() && section.size <= left {
            left -= section.size;
            found.push((id, section));
        } else {
            warnings.push(Warning {
                code: "truncated",
                message: format!("the feature {id} lies outside the file or on others, and is left out"),
                offset: section.offset,
            });
        }
    }
    found
}
