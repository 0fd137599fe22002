//! Speed of reading, beside the library that others use.
//!
//! `cargo bench -p recrep-format` makes two files of 256 MiB in memory and reads them: samples
//! without callchains (56 bytes: identifier, ip, tid, time, CPU, period) and with callchains of 30
//! frames (304 bytes, as `rec -a -g` leaves them), of four CPUs in rounds.
//! `RECREP_BENCH_FILE=x.data` reads a real file. The figures are in `docs/speed.md`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has nothing to say"
)]

use std::fmt;
use std::io::Cursor;
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use linux_perf_data::linux_perf_event_reader::{EventRecord, RecordType as TheirType};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::read::File;
use recrep_format::record::{Body, Record, SampleFields};
use recrep_format::write::{FeatureWriter, FileWriter};

const FILE_BYTES: usize = 256 << 20;
const CPUS: u64 = 4;
/// Number of samples that each CPU has in a round.
const RING: u64 = 500;

fn main() {
    divan::main();
}

/// A file to read.
#[derive(Clone, Copy, Debug)]
enum Input {
    Plain,
    Callchains,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

const INPUTS: [Input; 2] = [Input::Plain, Input::Callchains];

fn made(frames: u64) -> Vec<u8> {
    use SampleType as S;
    let chains = if frames > 0 { S::CALLCHAIN } else { S::empty() };
    let attr = Attr {
        size: 128,
        sample_type: S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU | S::PERIOD | chains,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::FREQ,
        ..Attr::default()
    };
    let entry = AttrEntry { attr, ids: vec![7], name: None };
    let mut e = Encoder::new(Endian::NATIVE);
    let chain: Vec<u8> = (0..frames).flat_map(|i| (0x40_0000 + i * 64).to_ne_bytes()).collect();
    let mut round = 0;
    while e.len() < FILE_BYTES {
        for (cpu, n) in (0..CPUS).flat_map(|cpu| (0..RING).map(move |n| (cpu, n))) {
            let time = (round * RING + n) * 1000 + cpu * 77 + 1;
            let fields = SampleFields {
                identifier: Some(7),
                ip: Some(0x40_0000 + time % 4096),
                tid: Some([1, 1]),
                time: Some(time),
                cpu: Some([u32::try_from(cpu).unwrap(), 0]),
                period: Some(1),
                callchain: (frames > 0).then(|| U64s::new(&chain, Endian::NATIVE)),
                ..SampleFields::default()
            };
            Record::new(2, Body::Sample(Box::new(fields))).encode(&mut e).unwrap();
        }
        Record::new(0, Body::FinishedRound).encode(&mut e).unwrap();
        round += 1;
    }
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), Endian::NATIVE, &[entry]).unwrap();
    writer.write(e.as_bytes()).unwrap();
    writer.finish(&FeatureWriter::new(Endian::NATIVE)).unwrap().into_inner()
}

fn file(input: Input) -> &'static [u8] {
    static FILES: [OnceLock<Vec<u8>>; 2] = [const { OnceLock::new() }; 2];
    FILES[input as usize].get_or_init(|| match std::env::var_os("RECREP_BENCH_FILE") {
        Some(path) => std::fs::read(path).unwrap(),
        None => made(if matches!(input, Input::Plain) { 0 } else { 30 }),
    })
}

/// Measures `work` over a file, in bytes and records a second.
fn measure(bencher: Bencher<'_, '_>, input: Input, work: impl Fn(&'static [u8]) -> u64 + Sync) {
    let bytes = file(input);
    let parsed = File::parse(bytes).unwrap();
    let records = parsed.records().filter(Result::is_ok).count();
    let data = parsed.data_bytes().len();
    bencher.counter(BytesCount::new(data)).counter(ItemsCount::new(records)).bench(|| work(bytes));
}

/// Headers only, of a file in memory.
#[divan::bench(sample_count = 10, args = INPUTS)]
fn frames(bencher: Bencher<'_, '_>, input: Input) {
    measure(bencher, input, |bytes| {
        let file = File::parse(bytes).unwrap();
        file.records().map_while(Result::ok).map(|raw| u64::from(raw.header.size)).sum()
    });
}

/// Events and ips, of a file in memory.
#[divan::bench(sample_count = 10, args = INPUTS)]
fn frames_ips(bencher: Bencher<'_, '_>, input: Input) {
    measure(bencher, input, |bytes| {
        let file = File::parse(bytes).unwrap();
        let samples = file.records().map_while(Result::ok).filter_map(|raw| file.attrs.sample(raw));
        samples.filter_map(|(_, sample)| sample.ip()).fold(0, u64::wrapping_add)
    });
}

#[divan::bench(sample_count = 10, args = INPUTS)]
fn every_field(bencher: Bencher<'_, '_>, input: Input) {
    measure(bencher, input, |bytes| {
        let file = File::parse(bytes).unwrap();
        let samples = file.records().map_while(Result::ok).filter_map(|raw| file.attrs.sample(raw));
        let sum = |words: U64s<'_>| words.iter().fold(0, u64::wrapping_add);
        samples
            .filter_map(|(_, sample)| sample.fields().ok())
            .map(|all| all.callchain.map_or(0, sum))
            .sum()
    });
}

/// Events and ips in order of time, by linux-perf-data, which knows no other.
#[divan::bench(sample_count = 10, args = INPUTS)]
fn linux_perf_data_ips(bencher: Bencher<'_, '_>, input: Input) {
    measure(bencher, input, |bytes| {
        let PerfFileReader { mut perf_file, mut record_iter } =
            PerfFileReader::parse_file(Cursor::new(bytes)).unwrap();
        let mut sum = 0u64;
        while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
            if let PerfFileRecord::EventRecord { record, .. } = record
                && record.record_type == TheirType::SAMPLE
                && let EventRecord::Sample(sample) = record.parse().unwrap()
            {
                sum = sum.wrapping_add(sample.ip.unwrap_or(0));
            }
        }
        sum
    });
}
