//! Pipe mode: a stream whose attrs and features come as records.
//!
//! ```text
//! | magic, size = 16 | ATTR … | FEATURE … | TRACING_DATA + data | BUILD_ID … | EVENT_UPDATE … | records … |
//! ```
//!
//! perf writes them first, but promises nothing; so the whole stream is walked once, headers only, and what a file
//! has in sections is picked out. A FEATURE record holds just what the section would, so it becomes one.

use super::Frames;
use super::header::{PIPE_HEADER_SIZE, Section};
use super::warning::Warning;
use crate::abi::RecordType;
use crate::attrs::{AttrEntry, AttrIndex, AttrTable};
use crate::bytes::U64s;
use crate::endian::Endian;
use crate::feature::FeatureId;
use crate::layout::{SampleIdLayout, SampleLayout};
use crate::record::{Body, Context, EventProperty, EventUpdate, HEADER_SIZE, RawRecord};

/// What the records of a pipe-mode stream say of the stream.
#[derive(Debug)]
pub(super) struct PipeParts {
    pub(super) attrs: AttrTable,
    pub(super) features: Vec<(FeatureId, Section)>,
    pub(super) warnings: Vec<Warning>,
}

impl PipeParts {
    /// Walks the stream and collects.
    pub(super) fn collect(bytes: &[u8], endian: Endian) -> Self {
        let mut entries = Vec::new();
        let mut names: Vec<(u64, String)> = Vec::new();
        let mut features = Vec::new();
        let mut warnings = Vec::new();
        let no_attr = SampleLayout::of(&crate::attr::Attr::default());
        let cx = Context { endian, sample: &no_attr, trailer: SampleIdLayout::NONE };
        let start = PIPE_HEADER_SIZE.min(bytes.len());
        let stream = bytes.get(start..).unwrap_or_default();
        // What ends the walk early is found again, and told, by whoever reads the records.
        for raw in Frames::new(stream, start as u64, endian).map_while(Result::ok) {
            match raw.header.kind {
                RecordType::ATTR | RecordType::EVENT_UPDATE | RecordType::FEATURE => {}
                RecordType::TRACING_DATA => {
                    let offset = raw.offset + u64::from(raw.header.size);
                    features.push((FeatureId::TRACING_DATA, Section { offset, size: raw.payload.len() as u64 }));
                    continue;
                }
                _ => continue,
            }
            match raw.decode(&cx).map(|record| record.body) {
                Ok(Body::HeaderAttr(attr)) => entries.push(entry(attr.attr, attr.ids)),
                Ok(Body::EventUpdate(update)) => names.extend(name_of(&update)),
                Ok(Body::HeaderFeature(feature)) => features.extend(section_of(&raw, feature.feat_id)),
                Ok(_) => {}
                Err(e) => warnings.push(Warning {
                    code: e.kind.code(),
                    message: format!("a record of type {} was left out: {e}", raw.header.kind),
                    offset: e.offset,
                }),
            }
        }
        let mut attrs = AttrTable::new(entries, endian);
        for (id, name) in names {
            // As perf does: the first event is meant by 0, and by any id where it is the only one.
            let is_first = id == 0 || attrs.entries().len() == 1;
            if let Some(index) = if is_first { Some(AttrIndex(0)) } else { attrs.by_id(id) } {
                attrs.set_name(index, name);
            }
        }
        Self { attrs, features, warnings }
    }
}

fn entry(attr: crate::attr::Attr, ids: U64s<'_>) -> AttrEntry {
    AttrEntry { attr, ids: ids.iter().collect(), name: None }
}

fn name_of(update: &EventUpdate<'_>) -> Option<(u64, String)> {
    match &update.property {
        EventProperty::Name(name) => Some((update.id, name.to_text().into_owned())),
        _ => None,
    }
}

/// The section that a FEATURE record stands for: what follows its header and number.
fn section_of(raw: &RawRecord<'_>, feat_id: u64) -> Option<(FeatureId, Section)> {
    let fixed = HEADER_SIZE as u64 + 8;
    let size = u64::from(raw.header.size).checked_sub(fixed)?;
    let id = FeatureId(u8::try_from(feat_id).ok()?);
    // perf ends the features with an empty one, under the number after its last.
    let is_end = size == 0 && id.name().is_none();
    (!is_end).then(|| (id, Section { offset: raw.offset + fixed, size }))
}

#[cfg(test)]
mod tests {
    use super::super::{File, Magic, Mode};
    use super::*;
    use crate::abi::SampleType;
    use crate::attr::Attr;
    use crate::bytes::Encoder;
    use crate::feature::{Feature, Hostname};
    use crate::record::{HeaderAttr, HeaderFeature, Record};
    use crate::wire::Text;

    #[test]
    fn a_stream_says_what_a_file_says() {
        for endian in [Endian::Little, Endian::Big] {
            let mut ids = Encoder::new(endian);
            ids.u64(7);
            let mut name = Encoder::new(endian);
            name.bytes(b"cycles:u\0");
            let mut host = Encoder::new(endian);
            Hostname::new("here").encode(&mut host).unwrap();
            let attr = Attr { size: 136, sample_type: SampleType::IP | SampleType::IDENTIFIER, ..Attr::default() };
            let bodies = [
                Body::HeaderAttr(HeaderAttr { attr: attr.clone(), ids: U64s::new(ids.as_bytes(), endian) }),
                Body::EventUpdate(EventUpdate { id: 7, property: EventProperty::Name(Text::found(name.as_bytes())) }),
                Body::HeaderFeature(HeaderFeature { feat_id: 3, data: host.as_bytes() }),
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
