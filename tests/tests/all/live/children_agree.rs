//! `rep --children` against `perf report --children`: what each function has gathered together with
//! all that it called.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "its numbers are small"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use recrep_tests::aliases::with_shortest_names;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::Row;
use recrep_tests::run::run;
use recrep_tests::table::is_plt;
use recrep_tests::{needs, perf};
use serde_json::Value;

/// Samples of the rows of each key: with callees, and their own. Functions of one name have a row
/// each.
type Rows = BTreeMap<Vec<String>, Vec<[u64; 2]>>;

/// Adds to a key. Addresses without a function are one: perf tells callers by their addresses in
/// the process, which are others in each run, and samples by those in the file; and versions before
/// 6.3 misname entries of linkage tables (see [`recrep_tests::table`]).
fn add(rows: &mut Rows, mut key: Vec<String>, counts: [u64; 2]) {
    if let Some(symbol) =
        key.iter_mut().find(|text| text.starts_with("[.] ") || text.starts_with("[k] "))
        && (symbol.contains("] 0") || symbol.split_once("] ").is_some_and(|(_, name)| is_plt(name)))
    {
        UNKNOWN.clone_into(symbol);
    }
    let key = key.iter().map(|text| with_shortest_names(text)).collect();
    rows.entry(key).or_default().push(counts);
}

/// What stands for addresses without a function.
const UNKNOWN: &str = "unknown";

/// perf tells shares to two decimals, and each sample stands for the same: up to 5,000 of them are
/// told apart.
fn theirs(file: &Path, sort: &str, samples: u64) -> Rows {
    assert!(samples < 5000, "{samples} samples cannot be told apart by their shares");
    let fields = format!("overhead_children,overhead,sample,{}", perf::perfs_names(sort));
    let mut perf = perf::perf();
    perf.args(["report", "--stdio", "--children", "-g", "none", "-t", "|", "-F", &fields, "-i"])
        .arg(file);
    let mut rows = Rows::new();
    for line in run(&mut perf)
        .expect(0)
        .text()
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let share: f64 = cells[0].trim_end_matches('%').parse().unwrap();
        let all = (share * samples as f64 / 100.0).round() as u64;
        let own = cells[2].parse().unwrap();
        add(&mut rows, cells[3..].iter().map(|&cell| cell.to_owned()).collect(), [all, own]);
    }
    rows
}

fn ours(file: &Path, sort: &str) -> (Rows, u64) {
    // perf does not check the kernel's chains, and infers no functions.
    let flags = ["--json", "--children", "--no-check-callchains", "--no-inferred", "-s", sort];
    let outcome = run(rep().args(flags).arg(file)).expect(0);
    let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let event = &report["events"][0];
    let mut rows = Rows::new();
    for row in event["rows"].as_array().unwrap() {
        let named: Row = serde_json::from_value(row.clone()).unwrap();
        let key = sort.split(',').map(|key| named.as_perf(key)).collect();
        let counts = [&row["children"]["samples"], &row["samples"]];
        add(&mut rows, key, counts.map(|count| count.as_u64().unwrap()));
    }
    (rows, event["samples"].as_u64().unwrap())
}

#[track_caller]
fn assert_agrees(file: &Path) {
    for sort in ["comm", "comm,dso", "comm,dso,sym", "sym", "tid,sym"] {
        let (ours, samples) = ours(file, sort);
        let theirs = theirs(file, sort, samples);
        let has_callers = theirs.values().flatten().any(|[all, own]| all > own);
        assert!(
            samples > 100 && (!sort.contains("sym") || has_callers),
            "{samples} samples: {theirs:?}"
        );
        for key in ours.keys().chain(theirs.keys()) {
            let [mut our, mut their] =
                [&ours, &theirs].map(|rows| rows.get(key).cloned().unwrap_or_default());
            // What has no function perf has in two rows: at its address in the file as what was
            // sampled, and at that in the process as what is in a chain.
            if key.iter().any(|text| text == UNKNOWN) {
                [our, their] = [our, their].map(|rows| {
                    let own = rows.iter().map(|[_, own]| own).sum();
                    vec![[own, own]]
                });
            }
            // Without the file, perf keeps functions of one name apart, and rep adds them up.
            if !sort.contains("dso")
                && let ([_], [_, _, ..]) = (&our[..], &their[..])
            {
                let sum = |place: usize| their.iter().map(|row| row[place]).sum();
                their = vec![[sum(0), sum(1)]];
            }
            our.sort_unstable();
            their.sort_unstable();
            assert_eq!(our, their, "{sort}: {}", key.join(" | "));
        }
    }
}

#[test]
fn totals_are_perfs_to_the_sample() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ls -l /usr/bin /usr/lib >/dev/null; seq \
                  40000 | sort -rn | md5sum; done";
    let commands = [
        workload("hot --ms 300 --threads 2 --forks 1 --children 1"),
        ["sh", "-c", script].map(str::to_owned).into(),
    ];
    for (number, command) in commands.iter().enumerate() {
        let file = dir.path().join(format!("{number}.data"));
        record(&file, "-e cpu-clock -F 1499 --call-graph fp", command);
        assert_agrees(&file);
    }
}

/// The C library's trampoline behind handlers has no size, and its last instruction calls the system.
#[test]
fn signals_return_as_perf_has_it() {
    const SOURCE: &str = "#include <signal.h>\n#include <unistd.h>\n\
        static void handle(int signal) { }\n\
        int main(void) { signal(SIGUSR1, handle);\n\
        for (int i = 0; i < 300000; i++) kill(getpid(), SIGUSR1);\nreturn 0; }\n";
    if !needs::perf_events() || !needs::commands("cc") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [source, program, file] = ["s.c", "s", "s.data"].map(|name| dir.path().join(name));
    std::fs::write(&source, SOURCE).unwrap();
    run(Command::new("cc").arg("-o").arg(&program).arg(&source)).expect(0);
    let command = [program.to_str().unwrap().to_owned()];
    record(&file, "-e cpu-clock -F 1499 --call-graph fp", &command);
    assert_agrees(&file);
}
