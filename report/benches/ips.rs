//! The histogram by ip, compared with the minimum that any reader must do: walk the records and
//! hash the ips.
//!
//! `cargo bench -p recrep-report` creates and reads a file of 256 MiB (samples like those of
//! `rec -a -g`, at 20,000 addresses); `RECREP_BENCH_FILE=x.data` reads a real one. The results are
//! in `docs/speed.md`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run may panic"
)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{RecordType, SampleType};
use recrep_format::endian::Endian;
use recrep_format::read::File;
use recrep_report::testing::{Input, Source, answer, args};
use rustc_hash::FxHashMap;

const FRAMES: u64 = 30;
const SAMPLES: u64 = 880_000;
const PLACES: u64 = 20_000;

fn main() {
    divan::main();
}

/// Returns the path of the file, which is created on first use.
fn path() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let path = std::env::temp_dir().join(format!("recrep-bench-{}.data", std::process::id()));
        std::fs::write(&path, file_bytes()).unwrap();
        path
    };
    FILE.get_or_init(|| std::env::var_os("RECREP_BENCH_FILE").map_or_else(make, PathBuf::from))
}

fn file_bytes() -> Vec<u8> {
    let chain: Vec<u64> = (0..FRAMES).map(|frame| 0x40_0000 + frame * 64).collect();
    let event = Event::new("cpu-clock").sampling(SampleType::CALLCHAIN);
    let mut stream = Stream::new(Endian::NATIVE).event(event).task(1, 1).at(1).comm("bench");
    stream = stream.map("/nowhere/bench", 0x40_0000, 0x100_0000, 0);
    for number in 0..SAMPLES {
        let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let ip = 0x40_0000 + place % PLACES * 4;
        stream = stream.at(2 + number * 1000).sample(SampleSpec::at(ip).callchain(&chain));
    }
    stream.file()
}

/// Measures `work` over the file, and reports bytes and samples per second.
fn measure(bencher: Bencher<'_, '_>, work: impl Fn() -> u64 + Sync) {
    let bytes = std::fs::metadata(path()).unwrap().len();
    let samples = work();
    bencher.counter(BytesCount::new(bytes)).counter(ItemsCount::new(samples)).bench(work);
}

#[divan::bench(sample_count = 11)]
fn plain_loop(bencher: Bencher<'_, '_>) {
    let source = Source::Path(path().clone());
    measure(bencher, || {
        let input = Input::open(&source).unwrap();
        let file = File::parse(input.bytes()).unwrap();
        let mut histogram = FxHashMap::<u64, u64>::default();
        for raw in
            file.records().map_while(Result::ok).filter(|raw| raw.header.kind == RecordType::SAMPLE)
        {
            if let Some((_, sample)) = file.attrs.sample(raw) {
                *histogram.entry(sample.ip().unwrap_or(0)).or_default() += 1;
            }
        }
        histogram.values().sum()
    });
}

#[divan::bench(args = [1, 2], sample_count = 11)]
fn rep_by_ip_on_cores(bencher: Bencher<'_, '_>, cores: usize) {
    let query = args::parse(
        ["rep", "--json", "--sort", "ip"].map(OsString::from).into_iter().chain([path().into()]),
    )
    .unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
    measure(bencher, || {
        pool.install(|| {
            answer(&query).unwrap().0.events().iter().map(|event| event.total.samples).sum()
        })
    });
}
