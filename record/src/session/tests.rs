//! Recordings from a kernel that is not there, from beginning to end.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use recrep_format::abi::EventType;
use recrep_format::feature::EventDesc;
use recrep_format::read::File;
use recrep_format::record::Body;
use rustix::io::Errno;

use super::*;
use crate::event::{EventSpec, PmuUse};
use crate::messages::Verbosity;
use crate::plan::config::Control;
use crate::testkit::fake_kernel::{FakeKernel, Step};

/// A directory, and the configuration of a recording into `x.data` in it.
fn config(words: &str) -> (tempfile::TempDir, Config) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.data");
    let words = format!("rec -o {} {words}", path.display());
    let config = crate::cli::parse(words.split_whitespace().map(Into::into)).unwrap();
    (dir, config)
}

fn recorded(config: &Config, kernel: &FakeKernel) -> Result<u8> {
    run(config, kernel, &Messages::to(Verbosity::Quiet, Box::new(std::io::sink())))
}

#[test]
fn a_recording_that_fails_leaves_a_file_with_its_features() {
    let (_dir, config) = config("-e cpu-clock true");
    let kernel = FakeKernel::new(|_, _| Vec::new()).with_unstoppable_counters(Errno::IO);
    let error = recorded(&config, &kernel).unwrap_err().to_string();
    assert_eq!(error, "cannot stop a counter: Input/output error");
    let bytes = std::fs::read(&config.output.path).unwrap();
    let file = File::parse(&bytes).unwrap();
    assert_eq!(file.warnings, []);
    assert!(file.feature::<EventDesc<'_>>().is_some());
}

fn intel_pt() -> EventSpec {
    let mut event = EventSpec::numbered("intel_pt//", EventType(8), 0);
    event.pmu = Some(PmuUse { name: "intel_pt".to_owned(), has_aux: true, ..PmuUse::default() });
    event
}

/// The places of the trace of each CPU in a file, and the length of what its AUX records tell of.
fn traced(bytes: &[u8]) -> BTreeMap<u32, (Vec<Range<u64>>, u64)> {
    let file = File::parse(bytes).unwrap();
    assert_eq!(file.warnings, []);
    let mut all: BTreeMap<u32, (Vec<Range<u64>>, u64)> = BTreeMap::new();
    for raw in file.records().map(std::result::Result::unwrap) {
        let record = file.attrs.decode(&raw).unwrap();
        match &record.body {
            Body::Auxtrace(aux) => {
                all.entry(aux.cpu.0).or_default().0.push(aux.offset..aux.offset + aux.size);
            }
            Body::Aux(aux) => {
                all.entry(record.trailer.cpu.unwrap()[0]).or_default().1 += aux.aux_size;
            }
            _ => {}
        }
    }
    all
}

#[test]
fn each_file_has_the_trace_that_its_records_tell_of() {
    let (dir, mut config) =
        config("-a -m 64,64 --switch-output=10K --control=fifo:commands -- sleep 600");
    let commands = dir.path().join("commands");
    rustix::fs::mkfifoat(rustix::fs::CWD, &commands, rustix::fs::Mode::RWXU).unwrap();
    config.control = Some(Control::Fifo { commands: commands.clone(), acks: None });
    config.events = vec![intel_pt()];
    let some = |n: u64| {
        [Step::Trace(vec![7; 2048]), Step::Trace(vec![8; 2048]), Step::AwaitRead(n * 4096)]
    };
    let kernel = FakeKernel::new(move |_, _| (1..=150).flat_map(some).collect());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !kernel.is_done() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::fs::write(&commands, "stop\n").unwrap();
        });
        assert_eq!(recorded(&config, &kernel).unwrap(), 143, "the command is asked to end");
    });
    std::fs::remove_file(commands).unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 1, "{files:?}");
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for file in &files {
        for (cpu, (written, told)) in traced(&std::fs::read(file).unwrap()) {
            assert_eq!(
                written.iter().map(|range| range.end - range.start).sum::<u64>(),
                told,
                "{}",
                file.display()
            );
            for range in written {
                assert_eq!(
                    ends.insert(cpu, range.end).unwrap_or(0),
                    range.start,
                    "{}",
                    file.display()
                );
            }
        }
    }
    assert!(!ends.is_empty() && ends.values().all(|end| *end == 150 * 4096), "{ends:?}");
}

#[test]
fn what_is_recorded_while_counters_are_started_is_drained() {
    let (_dir, mut config) = config("-a -m 64,64 -- true");
    config.events = vec![intel_pt()];
    // Each area fills up twice before the next counter is started.
    let kernel =
        FakeKernel::new(|_, _| vec![Step::Trace(vec![7; 512 << 10]), Step::AwaitRead(512 << 10)])
            .with_slow_start();
    assert_eq!(recorded(&config, &kernel).unwrap(), 0);
}

#[test]
fn throttled_events_are_told_even_if_quiet() {
    let (dir, mut config) = config("-a -m 64,64 -- true");
    config.events = vec![intel_pt()];
    let throttle = Body::Throttle(recrep_format::record::Throttle { time: 1, id: 0, stream_id: 0 });
    let kernel =
        FakeKernel::new(move |_, _| vec![Step::Record(throttle.clone()), Step::Trace(vec![7; 64])]);
    let said = dir.path().join("said");
    let messages = Messages::to(Verbosity::Quiet, Box::new(std::fs::File::create(&said).unwrap()));
    assert_eq!(run(&config, &kernel, &messages).unwrap(), 0);
    let said = std::fs::read_to_string(said).unwrap();
    assert!(said.starts_with("rec: the kernel throttled sampling "), "{said}");
}

#[test]
fn a_drain_that_fails_while_counters_are_started_leaves_what_it_wrote() {
    let (_dir, mut config) = config("-a -m 64,64 -- true");
    config.events = vec![intel_pt()];
    // Broken before the trace is read, the ring would leave nothing to be found.
    let kernel = FakeKernel::new(|_, _| {
        vec![Step::Trace(vec![7; 4096]), Step::AwaitRead(4096), Step::BreakHead]
    })
    .with_slow_start();
    let error = recorded(&config, &kernel).unwrap_err().to_string();
    assert!(error.starts_with("cannot read a ring any further"), "{error}");
    let bytes = std::fs::read(&config.output.path).unwrap();
    let file = File::parse(&bytes).unwrap();
    assert!(file.feature::<EventDesc<'_>>().is_some());
    assert!(!traced(&bytes).is_empty());
}

#[test]
fn processes_that_were_left_out_are_told_each_once() {
    let tasks: Vec<Task> =
        (1..=7).flat_map(|pid| [0, 100].map(|more| Task { pid, tid: pid + more })).collect();
    assert_eq!(left_out(&tasks, &BTreeSet::new()), None);
    let one = left_out(&tasks, &[2, 102].into()).unwrap();
    assert!(one.starts_with("1 of the user's processes") && one.contains("ptrace: 2;"), "{one}");
    let many = left_out(&tasks, &(101..=107).collect()).unwrap();
    assert!(many.starts_with("7 of") && many.contains(": 1, 2, 3, 4, 5, …;"), "{many}");
}

#[test]
fn bpf_programs_from_before_are_in_the_file() {
    use crate::kernel::bpf::{BpfFunction, BpfProgram};
    use recrep_format::record::Body;
    let function = BpfFunction { addr: 0xffff_0000_0000_1000, len: 64, tag: [0xab; 8] };
    let program = BpfProgram {
        id: 7,
        tag: [0xab; 8],
        name: b"f".to_vec(),
        has_btf: false,
        functions: vec![function],
    };
    for (flag, events) in [("--bpf-event", 1), ("--no-bpf-event", 0)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.data");
        let words = ["rec", "-a", "-e", "cpu-clock", flag, "-o", path.to_str().unwrap(), "true"];
        let config = crate::cli::parse(words.map(Into::into)).unwrap();
        let kernel =
            FakeKernel::new(|_, _| Vec::new()).with_bpf_programs(Ok(vec![program.clone()]));
        let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
        assert_eq!(run(&config, &kernel, &messages).unwrap(), 0);
        let bytes = std::fs::read(&path).unwrap();
        let file = File::parse(&bytes).unwrap();
        let raw: Vec<_> = file.records().map(std::result::Result::unwrap).collect();
        let records: Vec<_> = raw.iter().map(|raw| file.attrs.decode(raw).unwrap().body).collect();
        let is_symbol = |body: &Body<'_>| {
            let Body::KSymbol(symbol) = body else { return false };
            let name = symbol.name.as_bytes();
            (symbol.addr, symbol.len, name) == (function.addr, 64, b"bpf_prog_abababababababab_f")
        };
        assert_eq!(records.iter().filter(|body| is_symbol(body)).count(), 1, "{flag}");
        let is_event = |body: &Body<'_>| matches!(body, Body::BpfEvent(event) if event.id == 7);
        assert_eq!(records.iter().filter(|body| is_event(body)).count(), events, "{flag}");
    }
}
