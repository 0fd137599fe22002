// What each fuzz target does with its bytes: also run by `tests/replay`, over the seeds and over
// damaged variants of them, so that CI needs no fuzzer. Each function panics when something is
// wrong, and returns when nothing is.

use std::io;

use recrep_format::abi::{BranchSampleType, DataSrc, ReadFormat, RecordType, SampleType};
use recrep_format::attr::{Attr, AttrEntry, AttrTable};
use recrep_format::bytes::{Cursor, Encoder};
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::Tracing;
use recrep_format::feature::{FeatureBody, FeatureId};
use recrep_format::layout::SampleLayout;
use recrep_format::read::{Decompressor, File, Frames};
use recrep_format::record::{Body, CallchainItems, HEADER_SIZE, RawRecord, RecordHeader, Sample};
use recrep_format::wire::Wire;
use recrep_format::write::{FeatureWriter, FileWriter, copy};

#[path = "streams.rs"]
pub(crate) mod streams;
#[path = "twin.rs"]
mod twin;

/// Function that takes the fuzzer's bytes.
pub(crate) type Target = fn(&[u8]);

/// Every target: its name, the folder of its seeds, its function.
pub(crate) const TARGETS: &[(&str, &str, Target)] = &[
    ("file", "file", file),
    ("unpacked", "file", streams::unpacked),
    ("rewrite", "rewrite", rewrite),
    ("records", "records", records),
    ("sample", "sample", sample),
    ("features", "features", features),
    ("attr", "attr", attr),
    ("decompress", "decompress", decompress),
];

/// A whole file: its parts, every record, every feature.
pub(crate) fn file(bytes: &[u8]) {
    let Ok(file) = File::parse(bytes) else { return };
    for raw in file.records().map_while(Result::ok) {
        record(&file.attrs, &raw);
    }
    for (id, _) in &file.features {
        if let Some(c) = file.feature_cursor(*id) {
            every_feature(c);
        }
    }
}

/// A whole file, written again from its parts, reads as the same; a copy of it has the records that
/// are kept.
pub(crate) fn rewrite(bytes: &[u8]) {
    let Ok(file) = File::parse(bytes) else { return };
    let mut features = FeatureWriter::new(file.endian);
    for (id, section) in &file.features {
        features
            .add_bytes(*id, section.of(bytes).expect("features that are told are there").to_vec());
    }
    let out = io::Cursor::new(Vec::new());
    let mut writer =
        FileWriter::new(out, file.endian, file.attrs.entries()).expect("memory takes all");
    writer.write(file.data_bytes()).expect("memory takes all");
    let again = writer.finish(&features).expect("memory takes all").into_inner();
    // As many bytes, but for attrs that are filled up to the longest, and the head and table of
    // what was a pipe.
    assert!(again.len() <= bytes.len() + 4096 + file.attrs.entries().len() * 4096);
    let again = File::parse(&again).expect("what was written is read");
    if !file.data_bytes().is_empty() {
        assert!(again.data_bytes() == file.data_bytes(), "the data changed");
    }
    let parts = |file: &File<'_>| {
        let part = |entry: &AttrEntry| {
            let attr = Attr { size: 0, extra: Default::default(), ..entry.attr.clone() };
            (attr, entry.ids.clone())
        };
        file.attrs.entries().iter().map(part).collect::<Vec<_>>()
    };
    assert_eq!(parts(&again), parts(&file));
    copied(&file);
}

/// Every second record is kept, and its payload with it; then the copy has what `keep` was told,
/// and that in order.
fn copied(file: &File<'_>) {
    let (mut kept, mut asked) = (Vec::new(), 0);
    let out = copy(file, io::Cursor::new(Vec::new()), |raw| {
        asked += 1;
        let keep = asked % 2 == 0;
        kept.extend(keep.then(|| (raw.bytes.to_vec(), raw.payload.to_vec())));
        keep
    });
    let bytes = out.expect("memory takes all").into_inner();
    if asked == 0 {
        return;
    }
    let copied = File::parse(&bytes).expect("what was written is read");
    assert_eq!(copied.mode, file.mode);
    let mut records = copied.records().map_while(Result::ok);
    // Between them are those that nobody was asked for.
    for (bytes, payload) in kept {
        assert!(
            records.any(|raw| raw.bytes == bytes && raw.payload == payload),
            "a record is gone or changed"
        );
    }
}

/// Records of events with any two attrs: 8 bytes of choice, two attrs of 144 bytes, then the
/// stream.
pub(crate) fn records(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first_chunk::<8>() else { return };
    let endian = endian_of(choice[0]);
    let mut c = Cursor::new(rest, 0, endian);
    let (Ok(first), Ok(second)) = (Attr::decode(&mut c, 144), Attr::decode(&mut c, 144)) else {
        return;
    };
    let entry = |attr, id: u8| AttrEntry { attr, ids: vec![u64::from(id)], name: None };
    let mut entries = vec![entry(first, choice[1]), entry(second, choice[2])];
    entries.truncate(usize::from(choice[3] % 3));
    let table = AttrTable::new(entries, endian);
    for raw in Frames::new(c.rest(), 0, endian).map_while(Result::ok) {
        record(&table, &raw);
    }
}

/// A sample against a naive twin of its decoder: a byte of choice, the words of the attr that lay
/// it out, then its body.
pub(crate) fn sample(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let endian = endian_of(*choice);
    let mut c = Cursor::new(rest, 0, endian);
    let mut word = || c.u64("the attr's words");
    let (Ok(bits), Ok(read), Ok(branches), Ok(user), Ok(intr)) =
        (word(), word(), word(), word(), word())
    else {
        return;
    };
    let attr = Attr {
        // Bits without a decoder are an error for all samples of the event; they are left out here.
        sample_type: SampleType::from_bits_retain(bits & ((1 << 25) - 1)),
        read_format: ReadFormat::from_bits_retain(read),
        branch_sample_type: BranchSampleType::from_bits_retain(branches),
        sample_regs_user: user,
        sample_regs_intr: intr,
        ..Attr::default()
    };
    let body = c.rest();
    let Ok(size) = u16::try_from(body.len() + HEADER_SIZE) else { return };
    let mut e = Encoder::new(endian);
    RecordHeader { kind: RecordType::SAMPLE, misc: 2, size }.encode(&mut e);
    e.bytes(body);
    let raw = Frames::new(e.as_bytes(), 0, endian).next().expect("a record").expect("a whole one");
    let layout = SampleLayout::of(&attr);
    let decoded = Sample::new(raw, &layout, endian).fields();
    match (twin::naive(&attr, body, endian), &decoded) {
        (Some((expected, _)), Ok(fields)) => assert_eq!(twin::real(fields), expected, "{attr:?}"),
        (None, Err(_)) => {}
        (expected, _) => panic!("{attr:?}: by the twin {expected:?}, decoded {decoded:?}"),
    }
}

/// One section, read as every feature.
pub(crate) fn features(bytes: &[u8]) {
    let Some((choice, section)) = bytes.split_first() else { return };
    every_feature(Cursor::new(section, 0, endian_of(*choice)));
}

/// An attr of any length.
pub(crate) fn attr(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let endian = endian_of(*choice);
    if let Ok(attr) = Attr::decode(&mut Cursor::new(bytes, 0, endian), bytes.len()) {
        let mut e = Encoder::new(endian);
        attr.encode(&mut e, bytes.len()).expect("what was read fits");
        assert_eq!(e.as_bytes(), bytes);
        let _ = format!("{attr:?}");
    }
}

/// A zstd stream in pieces.
pub(crate) fn decompress(bytes: &[u8]) {
    const LIMIT: usize = 1 << 20;
    let Ok(mut decompressor) = Decompressor::new() else { return };
    let mut out = Vec::new();
    for piece in bytes.chunks(1000) {
        let before = out.len();
        let outcome = decompressor.decompress(piece, 0, LIMIT, &mut out);
        assert!(out.len() - before <= LIMIT);
        if outcome.is_err() {
            break;
        }
        out.clear();
    }
}

fn endian_of(byte: u8) -> Endian {
    if byte & 1 == 0 { Endian::Little } else { Endian::Big }
}

/// Whatever decodes must encode to the same bytes, and must not depend on how it is asked.
fn record(table: &AttrTable, raw: &RawRecord<'_>) {
    let _ = table.time_of(raw);
    if let Some((_, sample)) = table.sample(*raw) {
        let lazy = [
            sample.event_id(),
            sample.ip(),
            sample.time(),
            sample.addr(),
            sample.stream_id(),
            sample.period(),
        ];
        if let Ok(all) = sample.fields() {
            let whole =
                [all.identifier.or(all.id), all.ip, all.time, all.addr, all.stream_id, all.period];
            assert_eq!(lazy, whole);
            assert_eq!(sample.callchain().ok().flatten(), all.callchain);
            all.read.iter().for_each(|read| assert!(read.counters().count() as u64 <= read.nr()));
            for regs in [all.regs_user, all.regs_intr].into_iter().flatten() {
                assert!(regs.iter().all(|(number, value)| regs.get(number) == Some(value)));
            }
            let items = all.callchain.map(|words| CallchainItems::new(words.iter()).count());
            assert!(items.unwrap_or(0) <= raw.bytes.len());
            all.branch_stack
                .iter()
                .for_each(|stack| assert!(stack.entries().count() <= raw.bytes.len()));
            all.data_src.iter().for_each(|src| drop(DataSrc(*src).to_string()));
        }
    }
    let Ok(decoded) = table.decode(raw) else { return };
    match &decoded.body {
        Body::CpuMap(map) => {
            assert!(map.cpus().is_none_or(|cpus| cpus.count() <= 8 * raw.bytes.len() + (1 << 16)));
        }
        Body::ThreadMap(map) => assert!(map.entries.len() <= raw.bytes.len()),
        Body::StatConfig(config) => assert!(config.iter().count() <= raw.bytes.len()),
        Body::BpfMetadata(metadata) => assert!(metadata.iter().count() <= raw.bytes.len()),
        Body::Sample(fields) => {
            let lazy = table.sample(*raw).map(|(_, sample)| sample.fields().ok());
            assert!(
                lazy.is_none_or(|lazy| lazy.as_ref() == Some(&**fields)),
                "{raw:?}: {fields:?}"
            );
        }
        Body::CallchainDeferred(chain) => assert!(chain.items().count() <= raw.bytes.len()),
        Body::IdIndex(index) => assert!(index.iter().count() <= raw.bytes.len()),
        Body::Namespaces(namespaces) => assert!(namespaces.iter().count() <= raw.bytes.len()),
        Body::Compressed2(packed) => assert!(packed.stream().len() <= raw.bytes.len()),
        _ => {}
    }
    let _ = format!("{decoded:?}");
    let mut e = Encoder::new(table.endian());
    // A record may end in half a number where words are expected; those bytes are `rest`, so all of
    // it comes back.
    decoded.encode(&mut e).expect("what fitted a record fits one again");
    let same_sample = raw.header.kind != RecordType::SAMPLE || e.as_bytes() == raw.bytes;
    assert!(same_sample, "a sample changed: {raw:?} {:?}", e.as_bytes());
    assert_eq!(e.as_bytes(), raw.bytes, "{raw:?}");
}

fn every_feature(c: Cursor<'_>) {
    let endian = c.endian();
    let comes_back = |left: Cursor<'_>, e: &Encoder, what: &dyn std::fmt::Debug| {
        let mut ahead = c;
        let used = ahead.left() - left.left();
        assert_eq!(
            e.as_bytes(),
            ahead.take(used, "what was used").expect("what was used is there"),
            "{what:?}"
        );
    };
    for id in FeatureId::NAMED {
        let (mut left, mut e) = (c, Encoder::new(endian));
        let Ok(feature) = FeatureBody::decode(*id, &mut left) else { continue };
        feature.encode(&mut e).expect("what was read fits");
        comes_back(left, &e, &feature);
        if let FeatureBody::CpuTopology(topology) = &feature {
            let _ = topology.tail.cpus(4);
            let _ = topology.tail.dies(4);
        }
    }
    let (mut left, mut e) = (c, Encoder::new(endian));
    if let Ok(tracing) = Tracing::decode(&mut left, "TRACING_DATA") {
        tracing.encode(&mut e).expect("what was read fits");
        comes_back(left, &e, &tracing);
        let _ = (tracing.events().count(), tracing.strings().count());
    }
}
