//! Pipe mode: a stream whose attrs and features come as records.
//!
//! ```text
//! | magic, size = 16 | ATTR … | FEATURE … | TRACING_DATA + data | BUILD_ID … | EVENT_UPDATE … | records … |
//! ```
//!
//! perf writes them first, and reads them as they come: what a record says holds for the records
//! after it. A FEATURE record holds what the section of a file would.

use super::parts::Warning;
use crate::abi::RecordType;
use crate::attr::{AttrEntry, AttrIndex, AttrTable};
use crate::error::{Error, Result};
use crate::feature::FeatureId;
use crate::record::{Body, EventProperty, EventUpdate, HEADER_SIZE, RawRecord};

/// Maximum number of attrs of a stream.
const MAX_ATTRS: usize = 1 << 16;

/// A feature that a record holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldFeature<'a> {
    /// Its number.
    pub(super) id: FeatureId,
    /// Offset in the stream of its first byte.
    pub(super) offset: u64,
    /// Bytes that its section would have.
    pub(super) bytes: &'a [u8],
}

/// Takes what a record says about the stream: adds its attr or the name of an event to `attrs`, and
/// returns the feature that it holds.
pub(super) fn learn<'a>(
    raw: &RawRecord<'a>,
    attrs: &mut AttrTable,
) -> Result<Option<HeldFeature<'a>>> {
    match raw.header.kind {
        RecordType::ATTR | RecordType::EVENT_UPDATE | RecordType::FEATURE => {}
        RecordType::TRACING_DATA => {
            let formats = raw.tracing_data(attrs.endian());
            return Ok(formats.map(|(offset, bytes)| HeldFeature {
                id: FeatureId::TRACING_DATA,
                offset,
                bytes,
            }));
        }
        _ => return Ok(None),
    }
    match attrs.decode(raw)?.body {
        Body::HeaderAttr(_) if attrs.entries().len() >= MAX_ATTRS => {
            return Err(Error::invalid(raw.offset, "ATTR", format!("more than {MAX_ATTRS} attrs")));
        }
        Body::HeaderAttr(attr) => {
            attrs.push(AttrEntry { attr: attr.attr, ids: attr.ids.iter().collect(), name: None });
        }
        Body::EventUpdate(update) => set_name(&update, attrs),
        Body::HeaderFeature(feature) => return Ok(feature_in(raw, feature.feat_id)),
        _ => {}
    }
    Ok(None)
}

/// Takes what a record in a file of simpleperf says about the recording: adds the ids of counters
/// that were opened later, and returns the formats of tracepoints.
pub(super) fn learn_of_simpleperf<'a>(
    raw: &RawRecord<'a>,
    attrs: &mut AttrTable,
) -> Option<HeldFeature<'a>> {
    for (attr, id) in raw.later_ids(attrs.endian()) {
        attrs.add_id(AttrIndex(usize::try_from(attr).unwrap_or(usize::MAX)), id);
    }
    let (offset, bytes) = raw.tracing_data(attrs.endian())?;
    Some(HeldFeature { id: FeatureId::TRACING_DATA, offset, bytes })
}

/// Returns the warning about a record from which nothing could be learnt.
pub(super) fn left_out(kind: RecordType, error: &Error) -> Warning {
    let message = format!("a record of type {kind} was left out: {error}");
    Warning { code: error.kind.code(), message, offset: error.offset }
}

fn set_name(update: &EventUpdate<'_>, attrs: &mut AttrTable) {
    let EventProperty::Name(name) = &update.property else { return };
    // As perf does: the first event is meant by 0, and by any id where it is the only one.
    let is_first = update.id == 0 || attrs.entries().len() == 1;
    if let Some(index) = if is_first { Some(AttrIndex(0)) } else { attrs.by_id(update.id) } {
        attrs.set_name(index, name.to_text().into_owned());
    }
}

/// Returns what follows the header and the number of a FEATURE record.
fn feature_in<'a>(raw: &RawRecord<'a>, feat_id: u64) -> Option<HeldFeature<'a>> {
    const FIXED: usize = HEADER_SIZE + 8;
    let bytes = raw.bytes.get(FIXED..)?;
    let id = FeatureId(u8::try_from(feat_id).ok()?);
    // perf ends the features with an empty one, under the number after its last. Newer features have
    // contents.
    let is_end = bytes.is_empty() && (id.name().is_none() || id > FeatureId::PMU_CAPS);
    (!is_end).then(|| HeldFeature { id, offset: raw.offset + FIXED as u64, bytes })
}

#[cfg(test)]
mod tests {
    use super::super::{File, Magic, Mode};
    use super::*;
    use crate::abi::SampleType;
    use crate::attr::Attr;
    use crate::bytes::{Encoder, U64s};
    use crate::endian::Endian;
    use crate::feature::Hostname;
    use crate::record::{HeaderAttr, HeaderFeature, Record};
    use crate::wire::{Text, Wire};

    #[test]
    fn a_stream_says_what_a_file_says() {
        for endian in [Endian::Little, Endian::Big] {
            let mut ids = Encoder::new(endian);
            ids.u64(7);
            let mut name = Encoder::new(endian);
            name.bytes(b"cycles:u\0");
            let host = Hostname::new("here").to_bytes(endian).unwrap();
            let attr = Attr {
                size: 136,
                sample_type: SampleType::IP | SampleType::IDENTIFIER,
                ..Attr::default()
            };
            let bodies = [
                Body::HeaderAttr(HeaderAttr {
                    attr: attr.clone(),
                    ids: U64s::new(ids.as_bytes(), endian),
                }),
                Body::EventUpdate(EventUpdate {
                    id: 7,
                    property: EventProperty::Name(Text::found(name.as_bytes())),
                }),
                Body::HeaderFeature(HeaderFeature { feat_id: 3, data: &host }),
            ];
            let mut e = Encoder::new(endian);
            e.bytes(&Magic::bytes(endian));
            e.u64(16);
            for body in bodies {
                Record::new(0, body).encode(&mut e).unwrap();
            }
            let file = File::parse(e.as_bytes()).unwrap();
            assert_eq!(file.mode, Mode::Pipe);
            assert_eq!(file.attrs.entries()[0].attr, attr);
            assert_eq!(file.attrs.entries()[0].ids, [7]);
            assert_eq!(file.attrs.entries()[0].name.as_deref(), Some("cycles:u"));
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
            assert_eq!(file.records().filter(Result::is_ok).count(), 3);
        }
    }
}
