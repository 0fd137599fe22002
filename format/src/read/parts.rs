//! Parts of a file, found by its header: attrs with their ids, data, features.

use super::header::{FILE_HEADER_SIZE, FileHeader, Magic, PIPE_HEADER_SIZE, Section};
use crate::attr::{Attr, AttrEntry};
use crate::bytes::{Cursor, U64s};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::feature::FeatureId;
use crate::wire::Wire;

/// Something about the input that its reader should know, with a stable code for scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// A short stable word, such as `truncated`.
    pub code: &'static str,
    /// A sentence: what is wrong, and what was done about it.
    pub message: String,
    /// Offset in the file.
    pub offset: u64,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, at byte {}", self.message, self.offset)
    }
}

/// Returns the number of bytes from `offset` to the end of the file.
fn left_from(file: &[u8], offset: u64) -> u64 {
    (file.len() as u64).saturating_sub(offset)
}

/// Returns a cursor at `offset` in the file, at its end if the offset lies outside.
fn cursor(file: &[u8], offset: u64, endian: Endian) -> Cursor<'_> {
    let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..));
    Cursor::new(rest.unwrap_or_default(), offset, endian)
}

/// Returns the byte order of a file, by its first 16 bytes.
pub(super) fn endian_of(head: &[u8]) -> Result<Endian> {
    // The old magic reads the same in both orders, so the header's size must tell.
    let plausible = |endian: Endian| endian.u64_at(head, 8).is_some_and(|size| size <= 4096);
    Ok(match Magic::read(head)? {
        Magic::V2(endian) => endian,
        Magic::V1 if !plausible(Endian::Little) && plausible(Endian::Big) => Endian::Big,
        Magic::V1 => Endian::Little,
    })
}

/// Returns whether a stream is in pipe mode: its header is magic and size only.
pub(super) fn is_pipe(head: &[u8], endian: Endian) -> bool {
    endian.u64_at(head, 8) == Some(PIPE_HEADER_SIZE as u64)
}

/// Reads the attrs and their ids.
pub(super) fn attrs(file: &[u8], header: &FileHeader, endian: Endian) -> Result<Vec<AttrEntry>> {
    let at = header.attrs.offset;
    let all = header.attrs.of(file).ok_or_else(|| {
        Error::truncated(at, "the attrs section", header.attrs.size, left_from(file, at))
    })?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let entry_size = usize::try_from(header.attr_size).unwrap_or(usize::MAX);
    if entry_size < Attr::MIN_SIZE + Section::SIZE || entry_size > all.len() {
        let detail =
            format!("each entry has {} bytes, the section {}", header.attr_size, header.attrs.size);
        return Err(Error::invalid(at, "the attrs section", detail));
    }
    let mut entries = Vec::with_capacity(all.len() / entry_size);
    let mut c = Cursor::new(all, at, endian);
    // Attrs do not share ids, so all ids together are never longer than the file.
    let mut left = file.len();
    while c.left() >= entry_size {
        let attr = Attr::decode(&mut c, entry_size - Section::SIZE)?;
        let section = Section::decode(&mut c, "the ids section of an attr")?;
        let bytes = section.of(file).ok_or_else(|| {
            Error::truncated(
                section.offset,
                "the ids of an attr",
                section.size,
                left_from(file, section.offset),
            )
        })?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let detail = "the attrs have more ids together than the file has bytes";
            Error::invalid(section.offset, "the ids of an attr", detail)
        })?;
        entries.push(AttrEntry {
            attr,
            ids: U64s::new(bytes, endian).iter().collect(),
            name: None,
        });
    }
    Ok(entries)
}

/// Returns whether the header gives no size of the data because the recorder did not finish, and
/// not because there are no records: then the feature table, and not a record, is where the data
/// would begin.
pub(super) fn is_unfinished(file: &[u8], header: &FileHeader, endian: Endian) -> bool {
    let Section { offset, size } = header.data;
    size == 0
        && offset >= FILE_HEADER_SIZE as u64
        && left_from(file, offset) > 0
        && !is_finished_empty(file, header, endian)
}

fn is_finished_empty(file: &[u8], header: &FileHeader, endian: Endian) -> bool {
    let ids = feature_ids(header, endian).count();
    let behind = header.data.offset.saturating_add((Section::SIZE * ids) as u64);
    let mut c = cursor(file, header.data.offset, endian);
    // Read as a number of either byte order, the header of a record is larger: it has a type and a
    // size.
    let places = behind..1 << 32;
    ids > 0
        && (0..ids).all(|_| {
            Section::decode(&mut c, "the feature table")
                .is_ok_and(|section| places.contains(&section.offset))
        })
}

/// Returns the features that the header has.
///
/// The bitmap is an array of the recorder's `unsigned long`: a 32-bit big-endian machine leaves the
/// halves of each word the other way round. HOSTNAME, which perf always writes, tells.
fn feature_ids(header: &FileHeader, endian: Endian) -> impl Iterator<Item = FeatureId> {
    let has_host =
        |words: [u64; 4]| FeatureId::in_bitmap(words).any(|id| id == FeatureId::HOSTNAME);
    let halves = header.features.map(|word| word.rotate_left(32));
    let swapped = endian == Endian::Big && !has_host(header.features) && has_host(halves);
    FeatureId::in_bitmap(if swapped { halves } else { header.features })
}

/// Returns the warning about a header without the size of the data.
pub(super) fn unfinished() -> Warning {
    Warning {
        code: "no-data-size",
        message: "the header gives no data size: the recorder did not finish; reading all that \
                  follows as records"
            .into(),
        offset: 48,
    }
}

/// Returns the warning about a data section of which only `there` bytes are in a file of `len`
/// bytes.
pub(super) fn cut_data(size: u64, there: u64, len: u64) -> Warning {
    Warning {
        code: "truncated",
        message: format!(
            "the data section has {size} bytes by the header, and {there} are in the file"
        ),
        offset: len,
    }
}

/// Finds the sections of the features. Their table follows the data.
pub(super) fn features(
    file: &[u8],
    header: &FileHeader,
    endian: Endian,
    warnings: &mut Vec<Warning>,
) -> Vec<(FeatureId, Section)> {
    let Some(table) = header.data.offset.checked_add(header.data.size) else { return Vec::new() };
    if header.data.size == 0 && !is_finished_empty(file, header, endian) {
        return Vec::new();
    }
    let mut c = cursor(file, table, endian);
    let mut found = Vec::new();
    // Features do not share bytes, so all of them together are never longer than the file.
    let mut left = file.len() as u64;
    for id in feature_ids(header, endian) {
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
                message: format!(
                    "the feature {id} lies outside the file or on others, and is left out"
                ),
                offset: section.offset,
            });
        }
    }
    found
}
