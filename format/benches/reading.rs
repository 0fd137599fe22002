//! How fast records are found and their ips read, beside the library that others use.
//!
//! `cargo bench -p recrep-format` makes a file of 256 MiB in memory (samples with identifier, ip, tid, time, CPU, period and
//! a callchain of 30 frames, as `rec -a -g` leaves them) and reads it; `RECREP_BENCH_FILE=x.data` reads a real one.
//! The figures are in `docs/speed.md`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has nothing to say"
)]

use std::io::Cursor;
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::Attr;
use recrep_format::attrs::AttrEntry;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::read::File;
use recrep_format::record::{Body, Record, SampleFields};
use recrep_format::write::{FeatureWriter, FileWriter};

const FILE_BYTES: usize = 256 << 20;
const FRAMES: u64 = 30;

fn main() {
    divan::main();
}

fn made() -> Vec<u8> {
    use SampleType as S;
    let attr = Attr {
        size: 128,
        sample_type: S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU | S::PERIOD | S::CALLCHAIN,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::FREQ,
        ..Attr::default()
    };
    let entry = AttrEntry { attr, ids: vec![7], name: None };
    let mut e = Encoder::new(Endian::NATIVE);
    let chain: Vec<u8> = (0..FRAMES).flat_map(|i| (0x40_0000 + i * 64).to_ne_bytes()).collect();
    let mut time = 0;
    while e.len() < FILE_BYTES {
        time += 1000;
        let fields = SampleFields {
            identifier: Some(7),
            ip: Some(0x40_0000 + time % 4096),
            tid: Some([1, 1]),
            time: Some(time),
            cpu: Some([0, 0]),
            period: Some(1),
            callchain: Some(U64s::new(&chain, Endian::NATIVE)),
            ..SampleFields::default()
        };
        Record::new(2, Body::Sample(Box::new(fields))).encode(&mut e).unwrap();
    }
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), Endian::NATIVE, &[entry]).unwrap();
    writer.write(e.as_bytes()).unwrap();
    writer.finish(&FeatureWriter::new(Endian::NATIVE)).unwrap().into_inner()
}

fn file() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| std::env::var_os("RECREP_BENCH_FILE").map_or_else(made, |path| std::fs::read(path).unwrap()))
}

/// Measures `work` over the file, telling bytes and records for each second.
fn measure(bencher: Bencher<'_, '_>, work: impl Fn(&'static [u8]) -> u64 + Sync) {
    let bytes = file();
    let parsed = File::parse(bytes).unwrap();
    let records = parsed.records().filter(Result::is_ok).count();
    let data = parsed.data_bytes().len();
    bencher.counter(BytesCount::new(data)).counter(ItemsCount::new(records)).bench(|| work(bytes));
}

#[divan::bench(sample_count = 10)]
fn frames(bencher: Bencher<'_, '_>) {
    measure(bencher, |bytes| {
        let file = File::parse(bytes).unwrap();
        file.records().map_while(Result::ok).map(|raw| u64::from(raw.header.size)).sum()
    });
}

#[divan::bench(sample_count = 10)]
fn ips(bencher: Bencher<'_, '_>) {
    measure(bencher, |bytes| {
        let file = File::parse(bytes).unwrap();
        let samples = file.records().map_while(Result::ok).filter_map(|raw| file.attrs.sample(raw));
        samples.filter_map(|(_, sample)| sample.ip()).fold(0, u64::wrapping_add)
    });
}

#[divan::bench(sample_count = 10)]
fn every_field(bencher: Bencher<'_, '_>) {
    measure(bencher, |bytes| {
        let file = File::parse(bytes).unwrap();
        let samples = file.records().map_while(Result::ok).filter_map(|raw| file.attrs.sample(raw));
        samples
            .filter_map(|(_, sample)| sample.fields().ok()?.callchain)
            .map(|c| c.iter().fold(0, u64::wrapping_add))
            .sum()
    });
}

#[divan::bench(sample_count = 10)]
fn linux_perf_data_ips(bencher: Bencher<'_, '_>) {
    measure(bencher, |bytes| {
        let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(Cursor::new(bytes)).unwrap();
        let mut sum = 0u64;
        while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
            if let PerfFileRecord::EventRecord { record, .. } = record
                && record.record_type == linux_perf_data::linux_perf_event_reader::RecordType::SAMPLE
                && let linux_perf_data::linux_perf_event_reader::EventRecord::Sample(sample) = record.parse().unwrap()
            {
                sum = sum.wrapping_add(sample.ip.unwrap_or(0));
            }
        }
        sum
    });
}
