//! Times off CPUs and wall times, held against what a program measured of itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use recrep_fixtures::WAITS;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::report_of;
use recrep_tests::run::run;
use recrep_tests::{lock, needs};
use serde_json::Value;

/// Returns the periods of functions with their callees.
fn with_callees(file: &Path, flag: &str) -> BTreeMap<String, u64> {
    let outcome =
        run(rep().args(["--json", "--children", "--sort", "symbol", flag]).arg(file)).expect(0);
    let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let rows = answer["events"][0]["rows"].as_array().unwrap().iter();
    let row = |row: &Value| {
        (
            row["key"]["symbol"].as_str().unwrap().to_owned(),
            row["children"]["period"].as_u64().unwrap(),
        )
    };
    rows.map(row).collect()
}

/// Fails unless a time is within a percent of the truth, and half a millisecond, in which a
/// recorder's own work at a switch may be on either side, and the time in which its clocks could
/// differ from those of the truth.
#[track_caller]
fn assert_near(what: &str, time: u64, (truth, apart): (u64, u64)) {
    let most = truth / 100 + 500_000 + apart;
    assert!(time.abs_diff(truth) <= most, "{what}: {time} ns, in truth {truth} ns");
}

/// Returns the time for which a hypervisor has taken CPUs away, in nanoseconds: the eighth number
/// of `/proc/stat`, in hundredths of a second. No clock of this machine tells in which part of a
/// program that was.
fn stolen() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let numbers = stat.lines().next().unwrap().split_ascii_whitespace().skip(1);
    numbers
        .map(|number| number.parse::<u64>().unwrap())
        .nth(7)
        .map_or(0, |ticks| ticks * 10_000_000)
}

#[test]
fn times_are_those_that_the_program_measured() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("waits.data");
    let before = stolen();
    let outcome = record(&file, "--off-cpu -e cpu-clock", &workload("waits --ms 500"));
    let stolen = stolen() - before;
    let (off_cpu, wall) = (with_callees(&file, "--off-cpu"), with_callees(&file, "--wall"));
    for line in outcome.text().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [function, times @ ..] = words.as_slice() else { panic!("{line}") };
        let times: Vec<u64> = times.iter().map(|time| time.parse().unwrap()).collect();
        let [all, cpu, measuring] = times[..] else { panic!("{line}") };
        let apart = measuring + stolen;
        let of = |times: &BTreeMap<String, u64>| {
            times.get(&format!("{WAITS}::{function}")).copied().unwrap_or(0)
        };
        let off = of(&off_cpu);
        // A part is held to what it has most of: of a busy machine's hundreds of switches, each a
        // few microseconds long, one that burns has the rest.
        if cpu > all / 2 {
            assert_near(&format!("{function}, on its CPU"), all.saturating_sub(off), (cpu, apart));
        } else {
            assert_near(&format!("{function}, off its CPU"), off, (all - cpu, apart));
        }
        assert_near(&format!("{function}, all"), of(&wall), (all, apart));
    }
    // The first thread lives as long as the recording: from its exec to its exit.
    let threads = report_of(&file, &["--wall"], "tid,comm");
    let of = |flag: &str, key: &str| {
        let report = report_of(&file, &[flag], "tid,switch");
        let rows = report.events[0].rows.iter().filter(|row| row.key["switch"] == key);
        rows.map(|row| row.period).sum::<u64>()
    };
    assert_eq!(threads.events[0].name, "wall");
    assert_eq!(of("--wall", "waiting"), of("--off-cpu", "waiting"));
    let main = report_of(&file, &["--wall"], "tid").events[0]
        .rows
        .iter()
        .map(|row| row.period)
        .max()
        .unwrap();
    let listed = run(rep().args(["script", "-F", "time,event", "--ns"]).arg(&file)).expect(0);
    let times: Vec<f64> = listed
        .text()
        .lines()
        .filter_map(|line| line.split(':').next()?.trim().parse().ok())
        .collect();
    let length = times.last().unwrap() - times.first().unwrap();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a short recording"
    )]
    assert_near("the first thread", main, ((length * 1e9) as u64, stolen));
}

#[test]
fn without_samples_of_switches_times_stay_exact() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bare.data");
    // Waiting for the CPUs is no part of the recording.
    let cpus = lock::cpus();
    let start = Instant::now();
    let outcome = record(&file, "-e cpu-clock:u -g --switch-events", &workload("waits --ms 200"));
    let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap();
    drop(cpus);
    let off: u64 = outcome
        .text()
        .lines()
        .map(|line| {
            let numbers: Vec<u64> =
                line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
            numbers[0] - numbers[1]
        })
        .sum();
    let report = report_of(&file, &["--off-cpu"], "tid,symbol");
    let symbols: Vec<&str> =
        report.events[0].rows.iter().map(|row| row.key["symbol"].as_str()).collect();
    assert!(
        symbols.iter().all(|symbol| ["[nearest sample]", "[no sample]"].contains(symbol)),
        "{symbols:?}"
    );
    assert!(report.warnings.iter().any(|warning| warning.code == "unsampled-switches"));
    let mut threads = BTreeMap::<&str, u64>::new();
    report.events[0]
        .rows
        .iter()
        .for_each(|row| *threads.entry(&row.key["tid"]).or_default() += row.period);
    // The first thread was also off its CPU before and between the parts.
    let first = threads.values().copied().max().unwrap();
    assert!(
        first >= off - off / 100 && first <= elapsed,
        "{first} ns, in truth more than {off} and less than {elapsed} ns"
    );
}

/// Returns samples and periods by the number of threads that ran.
fn by_parallelism(file: &Path, flags: &[&str]) -> BTreeMap<u64, (u64, u64)> {
    let outcome = run(rep().args(["--json", "-s", "parallelism"]).args(flags).arg(file)).expect(0);
    let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let rows = answer["events"][0]["rows"].as_array().unwrap().iter();
    let number = |value: &Value| value.as_u64().unwrap();
    rows.map(|row| {
        let threads = row["key"]["parallelism"].as_str().unwrap().parse().unwrap();
        (threads, (number(&row["samples"]), number(&row["period"])))
    })
    .collect()
}

#[test]
fn latency_shares_each_sample_by_the_threads_that_ran() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hot.data");
    record(&file, "--latency -e cpu-clock", &workload("hot --threads 2 --ms 100"));
    let (own, shared) = (by_parallelism(&file, &[]), by_parallelism(&file, &["--latency"]));
    assert!(!own.is_empty() && own.keys().eq(shared.keys()), "{own:?} {shared:?}");
    for ((threads, (samples, period)), (_, latency)) in own.iter().zip(shared.values()) {
        // What a sample's share is short of a nanosecond.
        assert!(period / threads - latency <= *samples, "{own:?} {shared:?}");
    }
    // Nobody runs beside the main thread before it starts the others.
    assert!(own.contains_key(&1) || own.contains_key(&2), "{own:?}");
}
