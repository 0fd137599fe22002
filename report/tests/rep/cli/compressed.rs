//! Compressed recordings: all commands have the same size limit and treat malformed records alike.

use super::common::{Place, codes, json, run, text, two_events};
use recrep_fixtures::build::{Event, Packing, SampleSpec, Stream};
use recrep_format::endian::Endian;
use recrep_format::record::{Body, Compressed};
use serde_json::Value;

/// Returns a file with 21 MB of records of an unknown type, mostly zeros, which compress to about a three-hundredth,
/// and their number.
fn far_expanding() -> (Vec<u8>, usize) {
    const LEN: usize = 65_520;
    let mut state = 1u32;
    let noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let noise: Vec<u8> = std::iter::repeat_with(noise).take(LEN).collect();
    let record = |fields: &[u8]| Stream::new(Endian::Little).unknown(900, fields).records()[0].clone();
    let records: Vec<_> = std::iter::once(record(&noise)).chain((1..320).map(|_| record(&[0; LEN]))).collect();
    let packed = zstd::bulk::compress(&records.concat(), 3).unwrap();
    let mut stream = Stream::new(Endian::Little).event(Event::new("cycles:u"));
    for data in packed.chunks(60_000) {
        stream = stream.record(0, Body::Compressed(Compressed { data }));
    }
    (stream.file(), records.len())
}

#[test]
fn a_dump_unpacks_as_much_as_a_report() {
    let (bytes, records) = far_expanding();
    let place = Place::new();
    let file = place.put("far.data", &bytes);
    assert!(bytes.len() * 40 < 16 << 20 && bytes.len() * 1000 > 32 << 20, "{} bytes", bytes.len());
    let answer = json(&[], &file);
    assert_eq!(answer["inputs"][0]["records"]["UNKNOWN_900"], records);
    assert_eq!(answer["warnings"], Value::Array(Vec::new()));
    let output = run(&["dump", "--no-raw"], &file);
    let text = String::from_utf8(output.stdout).unwrap();
    let shown = text.lines().filter(|line| line.starts_with("unpacked:") && line.contains("type 900"));
    assert_eq!((shown.count(), output.stderr.as_slice()), (records, &b""[..]));
}

#[test]
fn a_malformed_record_is_counted_and_skipped_in_any_container() {
    let place = Place::new();
    // A BUILD_ID is never packed, and longer than four bytes.
    let stream = two_events(Endian::Little, 2).unknown(67, &[1, 2, 3, 4]);
    let stream = stream.of(0).task(7, 7).at(6000).sample(SampleSpec::at(0x1010).period(1000)).round();
    let mut answers = Vec::new();
    for packing in [Packing::None, Packing::Compressed, Packing::Compressed2] {
        for bytes in [stream.packed_file(packing), stream.packed_pipe(packing)] {
            let file = place.put("x.data", &bytes);
            let answer = json(&["--sort", "comm,dso,cpu"], &file);
            assert_eq!(codes(&answer), ["bad-record"], "{packing:?}");
            answers.push((answer["events"].clone(), answer["inputs"][0]["records"]["SAMPLE"].clone()));
            let dump = text(&["dump", "--no-raw"], &file);
            let shown = dump.lines().filter(|line| line.contains("PERF_RECORD_SAMPLE"));
            assert_eq!(shown.count(), 7, "{packing:?}");
        }
    }
    assert_eq!(answers[0].1, 7);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
}
