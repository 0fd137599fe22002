//! Layouts whose bytes are written by hand, from `include/uapi/linux/perf_event.h` and perf's
//! `tools/lib/perf/include/perf/event.h`, `util/header.c` and `perf.data-file-format.txt`: what
//! reading and writing both get wrong shows here and in no round trip.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod attrs;
mod bundle;
mod features;
mod file;
mod kernel;
mod sample;
mod user;

use recrep_format::abi::RecordType;
use recrep_format::attr::{Attr, AttrEntry, AttrTable};
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::read::Frames;
use recrep_format::record::Record;

/// A record by hand: its byte order, its bytes field by field, the bytes behind it, and what it
/// says.
struct Case<'a> {
    endian: Endian,
    fields: &'a [&'a [u8]],
    payload: &'a [u8],
    record: Record<'a>,
}

/// Checks that the bytes are read as the record and the record is written as the bytes; which type
/// it has.
fn check(attr: &Attr, case: &Case<'_>) -> RecordType {
    let Case { endian, record, .. } = case;
    let bytes = case.fields.concat();
    let kind = record.body.kind();
    let stream = [&bytes, case.payload].concat();
    let raw = Frames::new(&stream, 0, *endian).next().unwrap().unwrap();
    assert_eq!((raw.bytes, raw.payload), (&bytes[..], case.payload), "{kind}");
    let entry = AttrEntry { attr: attr.clone(), ids: Vec::new(), name: None };
    assert_eq!(&AttrTable::new(vec![entry], *endian).decode(&raw).unwrap(), record, "{endian:?}");
    let mut e = Encoder::new(*endian);
    record.encode(&mut e).unwrap();
    assert_eq!(e.as_bytes(), bytes, "{endian:?} {record:?}");
    kind
}

/// A type that has a name and no bytes here is one that somebody forgot.
#[test]
fn every_named_type_is_written_by_hand() {
    let mut kinds = [kernel::all(), user::all(), vec![RecordType::SAMPLE]].concat();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, RecordType::NAMED);
}
