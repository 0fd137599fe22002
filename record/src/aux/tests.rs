//! Tests of AUX areas with a fake kernel: every recorded byte is compared with the trace that the
//! kernel wrote.

use std::collections::BTreeMap;

use recrep_format::abi::{AuxtraceKind, Cpu, EventType, RecordType, SampleType, Tid};
use recrep_format::endian::Endian;
use recrep_format::feature::AuxtraceIndex;
use recrep_format::read::File;
use recrep_format::record::{Auxtrace, Body};
use recrep_format::write::FeatureWriter;

use super::{Areas, add_index};
use crate::drain::{Drain, Rounds};
use crate::event::{EventSpec, PmuUse};
use crate::kernel::Place;
use crate::kernel::counters::{self, Counters};
use crate::kernel::ring::{Clock, Ring};
use crate::machine::Machine;
use crate::messages::{Messages, Verbosity};
use crate::output::tally::{Counts, Tally};
use crate::output::{Layout, Output};
use crate::plan::config::Config;
use crate::testkit::fake_kernel::{FakeKernel, Step, Traced};

struct Recorded {
    bytes: Vec<u8>,
    counts: Counts,
    traced: Vec<(Place, Traced)>,
}

fn config(line: &str, pmu: &str) -> Config {
    let line = if line.contains("-t") { line.to_owned() } else { format!("-a {line}") };
    let mut config =
        crate::cli::parse(["rec"].into_iter().chain(line.split_whitespace()).map(Into::into))
            .unwrap();
    let mut event = EventSpec::numbered(&format!("{pmu}//"), EventType(8), 0);
    event.pmu = Some(PmuUse { name: pmu.to_owned(), has_aux: true, ..PmuUse::default() });
    config.events = vec![event];
    config
}

struct Session<'k> {
    kernel: &'k FakeKernel,
    path: std::path::PathBuf,
    counters: Counters,
    rings: Vec<Ring>,
    areas: Areas,
    output: Output,
    drain: Drain,
    _dir: tempfile::TempDir,
}

impl<'k> Session<'k> {
    fn open(mut config: Config, kernel: &'k FakeKernel) -> Self {
        let dir = tempfile::tempdir().unwrap();
        config.output.path = dir.path().join("x.data");
        let machine = Machine { online: vec![0, 3], privileged: true, ..Machine::default() };
        let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
        let plan = crate::plan::plan(&config, &machine).unwrap();
        let threads = [config.per_thread.then_some(7)];
        let mut counters = counters::open(
            kernel,
            &plan,
            &mut || threads.to_vec(),
            &config.target,
            &machine,
            &messages,
        )
        .unwrap();
        let rings = std::mem::take(&mut counters.rings);
        let areas = Areas::open(kernel, &config, &plan, &counters, &rings, &messages).unwrap();
        let attrs: Vec<_> = (0..counters.events.len())
            .map(|event| recrep_format::attr::AttrEntry {
                attr: counters.events[event].attr.clone(),
                ids: counters.ids(event),
                name: Some(counters.events[event].full_name()),
            })
            .collect();
        let layout = Layout { groups: Vec::new(), queue: 1 << 20, unwinding: None };
        let output =
            Output::create(&config.output, &attrs, &FeatureWriter::new(Endian::NATIVE), &layout)
                .unwrap();
        let drain = Drain::new(Tally::new(&attrs[0].attr));
        areas.write_head(&counters, &machine, &output).unwrap();
        counters.enable(kernel).unwrap();
        Self { kernel, path: config.output.path, counters, rings, areas, output, drain, _dir: dir }
    }

    fn round(&mut self) {
        self.areas.drain(self.kernel, &self.counters, &self.output).unwrap();
        self.drain.round(&mut self.rings, &mut Rounds::next(&self.output), false).unwrap();
    }

    fn snapshot(&mut self) {
        self.areas.snapshot(self.kernel, &self.counters, &self.output).unwrap();
    }

    fn end(mut self) -> Recorded {
        self.counters.disable(self.kernel).unwrap();
        self.areas.stop();
        self.areas.drain(self.kernel, &self.counters, &self.output).unwrap();
        if self.areas.snapshots() == Some(true) {
            self.snapshot();
        }
        self.drain.round(&mut self.rings, &mut Rounds::next(&self.output), false).unwrap();
        let mut features = FeatureWriter::new(Endian::NATIVE);
        let written = self.output.settle().unwrap();
        add_index(&mut features, &written.traces);
        self.output.finish(features).unwrap();
        let bytes = std::fs::read(&self.path).unwrap();
        Recorded { bytes, counts: written.counts, traced: self.kernel.traced() }
    }
}

/// Records until the fake kernel's scripts have ended; calls `between` after each round.
fn record(
    line: &str,
    pmu: &str,
    kernel: &FakeKernel,
    mut between: impl FnMut(&mut Session<'_>),
) -> Recorded {
    let mut session = Session::open(config(line, pmu), kernel);
    while !kernel.is_done() {
        session.round();
        between(&mut session);
        // The scripts continue only while their counters are enabled, so not during a snapshot.
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    session.end()
}

impl Recorded {
    fn file(&self) -> File<'_> {
        let file = File::parse(&self.bytes).unwrap();
        assert_eq!(file.warnings, []);
        file
    }

    /// Returns the AUXTRACE records with their offsets and their trace.
    fn auxtraces(&self) -> Vec<(u64, Auxtrace, Vec<u8>)> {
        let file = self.file();
        let records = file
            .records()
            .map(Result::unwrap)
            .filter(|raw| raw.header.kind == RecordType::AUXTRACE);
        records
            .map(|raw| {
                let Body::Auxtrace(aux) = file.attrs.decode(&raw).unwrap().body else {
                    panic!("an AUXTRACE record")
                };
                assert_eq!(aux.size, raw.payload.len() as u64);
                (raw.offset, aux, raw.payload.to_vec())
            })
            .collect()
    }

    /// Returns the joined trace of each CPU, and checks that each piece begins at the end of the
    /// previous one.
    fn by_cpu(&self) -> BTreeMap<u32, Vec<u8>> {
        let mut all: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (_, aux, trace) in self.auxtraces() {
            let before = all.entry(aux.cpu.0).or_default();
            assert_eq!(aux.offset, before.len() as u64, "of CPU {}", aux.cpu);
            before.extend(trace);
        }
        all
    }

    fn kinds(&self) -> Vec<RecordType> {
        self.file().records().map(|raw| raw.unwrap().header.kind).collect()
    }
}

/// Returns trace without repetitions, whose length is a multiple of 8, so that no piece needs
/// padding.
fn trace(seed: u64, words: u64) -> Vec<u8> {
    (0..words).flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed).to_ne_bytes()).collect()
}

fn seed(place: Place) -> u64 {
    u64::from(place.cpu.unwrap_or(77)) + 1
}

#[test]
fn every_byte_arrives_through_areas_that_wrap_many_times() {
    let kernel = FakeKernel::new(|_, place| {
        let pieces =
            (0..200u64).map(|n| Step::Trace(trace(seed(place) << 32 | n << 16, 8 * (1 + n % 90))));
        pieces.chain([Step::AwaitRead(8)]).collect()
    });
    let recorded = record("-m 8,2", "intel_pt", &kernel, |_| ());
    assert_eq!(recorded.traced.len(), 2);
    let by_cpu = recorded.by_cpu();
    for (place, traced) in &recorded.traced {
        assert!(traced.trace.len() > 40 * 8192, "{}", traced.trace.len());
        assert!(by_cpu[&place.cpu.unwrap()] == traced.trace, "CPU {:?}", place.cpu);
        assert_eq!((traced.lost, traced.lost_records), (0, 0));
    }
    let told: u64 = recorded.traced.iter().map(|(_, traced)| traced.records).sum();
    assert_eq!(recorded.counts.aux.records, told);
    assert_eq!(recorded.counts.aux.warnings(), [""; 0]);
    let (kinds, file) = (recorded.kinds(), recorded.file());
    assert_eq!(kinds.iter().filter(|kind| **kind == RecordType::ITRACE_START).count(), 2);
    assert_eq!(kinds[..2], [RecordType::ID_INDEX, RecordType::AUXTRACE_INFO]);
    let index: Vec<_> = file.feature::<AuxtraceIndex<'_>>().unwrap().unwrap().iter().collect();
    assert_eq!(index, recorded.auxtraces().iter().map(|(at, ..)| (*at, 48)).collect::<Vec<_>>());
}

#[test]
fn trace_stays_where_readers_find_it_when_the_rest_is_compressed() {
    let kernel = FakeKernel::new(|_, place| vec![Step::Trace(trace(seed(place), 9000))]);
    let recorded = record("-z -m 8,4", "intel_pt", &kernel, |_| ());
    let by_cpu = recorded.by_cpu();
    assert!(
        recorded.traced.iter().all(|(place, traced)| by_cpu[&place.cpu.unwrap()] == traced.trace)
    );
    assert!(recorded.kinds().contains(&RecordType::COMPRESSED));
}

#[test]
fn an_area_that_was_full_goes_on_after_it_was_read_and_what_is_lost_is_told() {
    // Every tenth piece is larger than the area.
    let words = |n| if n % 10 == 9 { 1200 } else { 700 };
    let kernel = FakeKernel::new(move |_, place| {
        (0..50).map(|n| Step::TraceOrStop(trace(seed(place) + n, words(n)))).collect()
    });
    let recorded = record("-m 8,2", "arm_spe_0", &kernel, |_| ());
    let by_cpu = recorded.by_cpu();
    for (place, traced) in &recorded.traced {
        let found = &by_cpu[&place.cpu.unwrap()];
        assert!(traced.lost > 0);
        assert!(
            found.starts_with(&traced.trace)
                && found.len() == traced.trace.len().next_multiple_of(8)
        );
    }
    assert!(recorded.counts.aux.truncated >= 10, "{:?}", recorded.counts.aux);
    assert!(recorded.counts.aux.warnings()[0].contains("cut short"));
}

#[test]
fn gaps_and_collisions_are_told() {
    let kernel = FakeKernel::new(|_, _| {
        vec![Step::Flagged(4, vec![1; 64]), Step::Flagged(0xc, vec![2; 64])]
    });
    let recorded = record("-m 8,2", "intel_pt", &kernel, |_| ());
    let aux = recorded.counts.aux;
    assert_eq!((aux.partial, aux.collisions, aux.truncated), (4, 2, 0));
    assert_eq!(aux.warnings().len(), 2);
}

#[test]
fn pieces_are_filled_up_to_words_and_branches_of_bts_stay_whole() {
    let kernel = FakeKernel::new(|_, _| vec![Step::Trace(vec![7; 13])]);
    let recorded = record("-m 8,2", "intel_pt", &kernel, |_| ());
    assert!(recorded.by_cpu().values().all(|trace| *trace == [&[7; 13][..], &[0; 3]].concat()));
    let kernel = FakeKernel::new(|_, _| vec![Step::Trace(vec![7; 24 * 3 + 8])]);
    let recorded = record("-t 7 --per-thread -m 8,2", "intel_bts", &kernel, |_| ());
    let (_, aux, _) = &recorded.auxtraces()[0];
    assert_eq!((aux.size, aux.cpu, aux.tid), (24 * 3, Cpu::ANY, Tid(7)));
}

#[test]
fn what_decoders_must_know() {
    let clock = Clock { shift: 31, mult: 9, zero: 5, cycles: 1, mask: u64::MAX, short: true };
    let kernel = FakeKernel::new(|_, _| vec![Step::Trace(vec![1; 8])]).with_clock(clock);
    let recorded = record("-m 8,2", "intel_pt", &kernel, |_| ());
    let file = recorded.file();
    let bodies: Vec<_> = file.records().map(Result::unwrap).take(3).collect();
    let bodies: Vec<_> = bodies.iter().map(|raw| file.attrs.decode(raw).unwrap().body).collect();
    let [Body::TimeConv(time), Body::IdIndex(ids), Body::AuxtraceInfo(info)] = bodies.as_slice()
    else {
        panic!("{bodies:?}")
    };
    assert_eq!((time.time_shift, time.time_mult, time.time_zero), (31, 9, 5));
    let short = time.short.as_ref().unwrap();
    assert_eq!((short.time_cycles, short.time_mask, short.cap_user_time_short), (1, u64::MAX, 1));
    assert_eq!(
        (info.kind, info.private.iter().take(5).collect::<Vec<_>>()),
        (AuxtraceKind::INTEL_PT, vec![8, 31, 9, 5, 1])
    );
    assert_eq!(info.private.get(9), Some(1), "an area for each CPU");
    // Id, ring, CPU, thread of each counter: the AUX event and the tracker on two CPUs.
    let places: Vec<_> = ids.iter().map(|entry| (entry.idx, entry.cpu.0, entry.tid)).collect();
    assert_eq!(places, [(0, 0, Tid::ANY), (1, 3, Tid::ANY), (0, 0, Tid::ANY), (1, 3, Tid::ANY)]);
}

/// Returns the last `length` bytes.
fn end(bytes: &[u8], length: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(length)..]
}

#[test]
fn a_snapshot_has_the_last_bytes_whatever_the_head_means() {
    // A part of the area, almost all of it, all of it, and several times its size.
    for words in [10, 2000, 2048, 2049, 5000, 20_000] {
        for growing in [false, true] {
            let kernel =
                FakeKernel::new(move |_, place| vec![Step::Trace(trace(seed(place), words))]);
            let kernel = if growing { kernel.with_growing_heads() } else { kernel };
            let recorded = record("-Se -m 8,4", "intel_pt", &kernel, |_| ());
            let found = recorded.auxtraces();
            assert_eq!(found.len(), 2);
            for ((place, traced), (_, _, bytes)) in recorded.traced.iter().zip(&found) {
                assert!(
                    bytes == end(&traced.trace, 4 * 4096),
                    "{place:?} {words} words, growing {growing}"
                );
            }
            assert_eq!(recorded.counts.aux.overwritten, 2);
        }
    }
}

#[test]
fn each_snapshot_has_what_is_new_up_to_its_size() {
    for (size, growing) in [("", false), ("", true), ("4096", false), ("4096", true)] {
        let kernel = FakeKernel::new(|_, place| {
            let lengths = [100u64, 0, 1500, 2047, 2048, 3000, 1, 700];
            let trace =
                |n: usize, words| Step::Trace(trace(seed(place) + ((n as u64) << 40), words));
            lengths
                .into_iter()
                .enumerate()
                .filter(|(_, words)| *words > 0)
                .map(|(n, words)| trace(n, words))
                .collect()
        });
        let kernel = if growing { kernel.with_growing_heads() } else { kernel };
        let recorded = record(&format!("-Se{size} -m 8,4"), "intel_pt", &kernel, |session| {
            session.snapshot();
        });
        let most = size.parse().unwrap_or(4 * 4096);
        let mut last: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (_, aux, bytes) in recorded.auxtraces() {
            assert!(bytes.len() <= most);
            last.entry(aux.cpu.0).or_default().extend(bytes);
        }
        for (place, traced) in &recorded.traced {
            // Overlapping snapshots repeat bytes, but the last bytes must be the newest.
            let found = &last[&place.cpu.unwrap()];
            assert!(end(found, 64) == end(&traced.trace, 64), "{size} {growing}");
        }
    }
}

#[test]
fn what_somebody_stopped_is_not_enabled_by_a_drain() {
    // More than fits into the area: the fake kernel continues when space was released and its
    // counter is enabled.
    let kernel = FakeKernel::new(|_, place| vec![Step::Trace(trace(seed(place), 4000))]);
    let mut session = Session::open(config("-m 8,2", "intel_pt"), &kernel);
    // The kernel never fills the last byte.
    let is_full = || kernel.traced().iter().all(|(_, traced)| traced.trace.len() == 8191);
    while !is_full() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    session.counters.set_enabled(&kernel, None, false).unwrap();
    session.areas.follow(false);
    session.round();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(is_full());
    session.counters.set_enabled(&kernel, None, true).unwrap();
    session.areas.follow(true);
    while !kernel.is_done() {
        session.round();
    }
    let recorded = session.end();
    let by_cpu = recorded.by_cpu();
    assert!(
        recorded.traced.iter().all(|(place, traced)| by_cpu[&place.cpu.unwrap()] == traced.trace)
    );
}

#[test]
fn areas_that_samples_are_taken_of_are_overwritten_and_not_written() {
    let mut config = config("--aux-sample=8192 -m 8,4", "intel_pt");
    let mut sampled = EventSpec::numbered("cycles", EventType::HARDWARE, 0);
    sampled.leader = Some(0);
    config.events.push(sampled);
    let kernel = FakeKernel::new(|_, place| vec![Step::Trace(trace(seed(place), 20_000))]);
    let mut session = Session::open(config, &kernel);
    // Nothing is drained, and the kernel does not wait for that.
    while !kernel.is_done() {
        std::thread::yield_now();
    }
    session.round();
    let attr = &session.counters.events[1].attr;
    assert_eq!((attr.aux_sample_size, attr.sample_type.contains(SampleType::AUX)), (8192, true));
    let recorded = session.end();
    assert!(recorded.auxtraces().is_empty());
    let aux = recorded.counts.aux;
    assert_eq!((aux.overwritten, aux.truncated, aux.warnings().len()), (aux.records, 0, 0));
    assert!(aux.records > 0 && recorded.kinds().contains(&RecordType::AUXTRACE_INFO));
}
