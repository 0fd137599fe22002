//! What the fixtures themselves promise: cases for everything, containers and directories that hold
//! their streams.

use std::collections::{BTreeMap, BTreeSet};

use recrep_fixtures::build::{Event, Packing, SampleSpec, Stream};
use recrep_fixtures::manifest::{DIRECTORIES, Form, cases};
use recrep_format::abi::{RecordType, SampleType};
use recrep_format::endian::Endian;
use recrep_format::feature::{DirFormat, FeatureId};
use recrep_format::read::{File, Frames, Unpacked};

#[test]
fn names_are_unique_and_purposes_are_sentences() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        assert!(seen.insert(case.name), "{} is there twice", case.name);
        assert!(
            case.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            case.name
        );
        assert!(case.purpose.ends_with('.') && case.purpose.len() > 15, "{}", case.name);
        assert!(case.perf.iter().all(|difference| difference.why.ends_with('.')), "{}", case.name);
    }
}

#[test]
fn every_record_type_is_in_a_case() {
    let held: BTreeSet<RecordType> = cases()
        .iter()
        .flat_map(|case| Form::all().flat_map(|form| case.counts(form)))
        .map(|(kind, _)| kind)
        .collect();
    let packed = [RecordType::COMPRESSED, RecordType::COMPRESSED2];
    let missing: Vec<_> = RecordType::NAMED
        .iter()
        .filter(|kind| !held.contains(kind) && !packed.contains(kind))
        .collect();
    assert!(missing.is_empty(), "no fixture holds {missing:?}");
}

#[test]
fn every_feature_is_in_a_case() {
    let mut held = BTreeSet::new();
    for case in cases() {
        let files = case.forms().filter(|form| !form.container.is_pipe());
        let Some(bytes) = files.last().map(|form| case.bytes(form)) else { continue };
        held.extend(File::parse(&bytes).unwrap().features.iter().map(|(id, _)| *id));
    }
    for (_, bytes) in
        DIRECTORIES.iter().flat_map(|case| case.directory(Endian::Little).files).take(1)
    {
        held.extend(File::parse(&bytes).unwrap().features.iter().map(|(id, _)| *id));
    }
    // Those of simpleperf and of bundles have tests of their own: perf, which reads all cases, has
    // no name for them.
    let perfs = FeatureId::NAMED.iter().filter(|id| id.0 < FeatureId::SIMPLEPERF_FILE.0);
    let missing: Vec<_> = perfs.filter(|id| !held.contains(id)).collect();
    assert!(missing.is_empty(), "no fixture has {missing:?}");
}

#[test]
fn every_sample_bit_is_in_a_case() {
    let held = cases().iter().fold(SampleType::empty(), |bits, case| {
        bits | (case.make)(Endian::Little).stream.sampled_bits()
    });
    let missing: Vec<_> =
        SampleType::all().iter_names().filter(|(_, bit)| !held.contains(*bit)).collect();
    assert!(missing.is_empty(), "no fixture samples {missing:?}");
}

#[test]
fn the_files_together_hold_the_stream() {
    for case in DIRECTORIES {
        assert!(case.purpose.ends_with('.'), "{}", case.name);
        for endian in [Endian::Little, Endian::Big] {
            let directory = case.directory(endian);
            let control = File::parse(&directory.files[0].1).unwrap();
            assert_eq!(control.feature::<DirFormat>().unwrap().unwrap().version, 1);
            let mut counts = BTreeMap::new();
            assert_eq!(directory.files.len(), case.files + 1);
            let others = directory
                .files
                .iter()
                .skip(1)
                .map(|(_, bytes)| Unpacked::of_frames(Frames::new(bytes, 0, endian)));
            for stream in std::iter::once(control.unpacked()).chain(others) {
                for record in stream.records() {
                    *counts.entry(record.unwrap().header.kind).or_insert(0) += 1;
                }
            }
            assert_eq!(counts, case.counts(endian), "{} {endian:?}", case.name);
        }
    }
}

fn stream(endian: Endian) -> Stream {
    let event = Event::new("cycles:u").sampling(SampleType::CALLCHAIN);
    let stream = Stream::new(endian).event(event).task(7, 7).comm("ls").map(
        "/usr/bin/ls",
        0x40_0000,
        0x1000,
        0,
    );
    let stream = stream.round().auxtrace_info(1, &[1, 2]).aux_data(0, 0, b"payload");
    (0..200)
        .fold(stream.at(10), |s, i| s.sample(SampleSpec::at(0x40_0000 + i).callchain(&[1, 2, i])))
        .round()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let (file, mut out) = (File::parse(bytes).unwrap(), Vec::new());
    for raw in file.unpacked().records() {
        let raw = raw.unwrap();
        match raw.header.kind {
            kind if (64..68).contains(&kind.0) => {}
            RecordType::EVENT_UPDATE | RecordType::FEATURE => {}
            _ => out.extend([raw.bytes, raw.payload].concat()),
        }
    }
    assert_eq!(file.warnings, []);
    out
}

#[test]
fn every_container_gives_the_same_records() {
    for endian in [Endian::Little, Endian::Big] {
        let stream = stream(endian);
        let plain = stream.records().concat();
        for packing in [Packing::None, Packing::Compressed, Packing::Compressed2] {
            assert!(unpacked(&stream.packed_file(packing)) == plain, "{endian:?} file {packing:?}");
            assert!(unpacked(&stream.packed_pipe(packing)) == plain, "{endian:?} pipe {packing:?}");
        }
    }
}

#[test]
fn the_counts_are_those_of_the_stream() {
    let stream = stream(Endian::Little);
    let mut counts = BTreeMap::new();
    for raw in Frames::new(&stream.records().concat(), 0, Endian::Little) {
        *counts.entry(raw.unwrap().header.kind).or_insert(0) += 1;
    }
    assert_eq!(counts, stream.counts());
    assert_eq!(counts[&RecordType::SAMPLE], 200);
}
