//! AUX areas, from a whole session of the recorder over a kernel that is not there to what perf and
//! rep say of the file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use recrep_format::abi::EventType;
use recrep_format::record::{AuxOutputHwId, Body};
use recrep_record::messages::{Messages, Verbosity};
use recrep_record::{EventSpec, PmuUse, cli, session};
use recrep_record_testkit::fake_kernel::{FakeKernel, Step, Traced};
use recrep_tests::perf::{perf, stats};
use recrep_tests::report::report;
use recrep_tests::run::run;

/// perf's list of AUX tracing in a file.
#[derive(Debug, Default)]
struct Listed {
    /// Of each AUXTRACE record: size, offset, CPU.
    traces: Vec<(u64, u64, u32)>,
    /// Of each AUX record: offset, size, flags.
    pieces: Vec<(u64, u64, u64)>,
    /// Other records by name.
    others: BTreeMap<String, u64>,
}

fn number(text: &str) -> u64 {
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .unwrap()
}

/// `perf script -D`, and what it warns of.
fn listed(file: &Path) -> (Listed, Vec<String>) {
    let outcome = run(perf().args(["script", "-D", "-i"]).arg(file)).expect(0);
    let warnings = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("AUX data"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        outcome.stderr.matches("Warning:").count(),
        Vec::len(&warnings),
        "{}",
        outcome.stderr
    );
    let mut listed = Listed::default();
    for line in outcome.text().lines() {
        let Some((_, record)) = line.split_once(": PERF_RECORD_") else { continue };
        let words: Vec<&str> = record.split_whitespace().collect();
        let field = |name: &str| {
            words.iter().position(|word| *word == name).map(|at| number(words[at + 1]))
        };
        match words[0] {
            "AUXTRACE" => listed.traces.push((
                field("size:").unwrap(),
                field("offset:").unwrap(),
                u32::try_from(field("cpu:").unwrap()).unwrap(),
            )),
            "AUX" => listed.pieces.push((
                field("offset:").unwrap(),
                field("size:").unwrap(),
                field("flags:").unwrap(),
            )),
            name => *listed.others.entry(name.to_owned()).or_default() += 1,
        }
    }
    (listed, warnings)
}

/// Records the whole machine, as far as the kernel's scripts go.
fn record(file: &Path, flags: &str, kernel: &FakeKernel) -> Vec<Traced> {
    let done = file.with_extension("done");
    let wait = "while ! [ -e \"$0\" ]; do sleep 0.01; done";
    let mut words: Vec<std::ffi::OsString> =
        vec!["rec".into(), "-q".into(), "-a".into(), "-o".into(), file.into()];
    words.extend(flags.split_whitespace().map(Into::into));
    words.extend(["--", "sh", "-c", wait].map(Into::into));
    words.push(done.clone().into());
    let mut config = cli::parse(words).unwrap();
    let mut event = EventSpec::numbered("intel_pt//", EventType(8), 0);
    event.pmu = Some(PmuUse { name: "intel_pt".to_owned(), has_aux: true, ..PmuUse::default() });
    config.events = vec![event];
    let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !kernel.is_done() {
                std::thread::sleep(Duration::from_millis(2));
            }
            std::fs::write(&done, "").unwrap();
        });
        assert_eq!(session::run(&config, kernel, &messages).unwrap(), 0);
    });
    kernel.traced().into_iter().map(|(_, traced)| traced).collect()
}

/// Packets of Processor Trace that mean nothing (PAD), after the one that decoders begin at (PSB).
fn packets(length: usize) -> Vec<u8> {
    [0x02, 0x82].repeat(8).into_iter().chain(std::iter::repeat(0)).take(length).collect()
}

#[test]
fn perf_and_rep_find_all_trace_of_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("aux.data");
    let kernel = FakeKernel::new(|_, _| {
        let trace = (0..100).map(|n| Step::Trace(packets(64 * (1 + n % 40))));
        let hw_id = Step::Record(Body::AuxOutputHwId(AuxOutputHwId { hw_id: 1 << 56 }));
        let flagged = [Step::Flagged(4, packets(64)), Step::TraceOrStop(packets(1 << 20))];
        [hw_id].into_iter().chain(trace).chain(flagged).collect()
    });
    let traced = record(&file, "-m 16,4", &kernel);
    let (listed, warnings) = listed(&file);
    let (all, n) = (listed.pieces.len(), traced.len());
    assert_eq!(
        warnings,
        [
            format!("AUX data lost {n} times out of {all}!"),
            format!("AUX data had gaps in it {n} times out of {all}!")
        ]
    );
    let written: usize = traced.iter().map(|traced| traced.trace.len().next_multiple_of(8)).sum();
    assert!(written > 200 << 10, "{written}");
    assert_eq!(listed.traces.iter().map(|(size, ..)| size).sum::<u64>(), written as u64);
    assert_eq!(listed.pieces.len() as u64, traced.iter().map(|traced| traced.records).sum::<u64>());
    assert_eq!(
        listed.pieces.iter().map(|(_, size, _)| size).sum::<u64>(),
        traced.iter().map(|traced| traced.trace.len() as u64).sum::<u64>()
    );
    let flagged = |flag| listed.pieces.iter().filter(|(.., flags)| *flags == flag).count();
    assert_eq!((flagged(1), flagged(4)), (traced.len(), traced.len()));
    for name in ["ITRACE_START", "AUX_OUTPUT_HW_ID"] {
        assert_eq!(listed.others.get(name), Some(&(traced.len() as u64)), "{name}");
    }
    assert_eq!(listed.others.get("AUXTRACE_INFO"), Some(&1));

    let by_perf = stats(&file);
    assert_eq!(by_perf.records["AUXTRACE"], listed.traces.len() as u64);
    let ours = report(&file, "comm");
    assert_eq!(ours.records(), by_perf.records);
    assert!(ours.input().complete);
}

#[test]
fn a_snapshot_at_the_end_is_one_piece_of_each_area() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("snapshot.data");
    let kernel = FakeKernel::new(|_, _| {
        vec![Step::Trace([0x02, 0x82].repeat(50_000)), Step::Trace(packets(64))]
    });
    let traced = record(&file, "-Se -m 16,4", &kernel);
    let (listed, warnings) = listed(&file);
    assert_eq!(warnings, [""; 0]);
    let area = 4 * rustix::param::page_size() as u64;
    assert_eq!(
        listed.traces.iter().map(|(size, ..)| *size).collect::<Vec<_>>(),
        vec![area; traced.len()]
    );
    assert!(listed.pieces.iter().all(|(.., flags)| *flags == 2), "{:?}", listed.pieces);
}
