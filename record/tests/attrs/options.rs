//! The table of options (`docs/options.md`) tells the truth: each option of perf record 7.0 has a
//! row, what is the same or different is taken, what is not is refused by name with advice, and
//! every option that rec has is told of.

use std::ffi::OsString;
use std::process::Command;

use super::machine::machine;
use recrep_record::cli;

const TABLE: &str = include_str!("../../docs/options.md");

/// The long names of perf record 7.0 (`tools/perf/builtin-record.c`); `-g` has none.
const PERF: &str = "event filter latency exclude-perf pid tid realtime no-buffering raw-samples all-cpus \
                    cpu count output no-inherit tail-synthesize overwrite no-bpf-event strict-freq \
                    freq mmap-pages mmap-flush g call-graph verbose quiet stat data phys-data \
                    data-page-size code-page-size sample-mem-info sample-cpu sample-identifier timestamp period \
                    no-samples no-buildid-cache no-buildid cgroup delay kcore uid branch-any \
                    branch-filter weight transaction per-thread intr-regs user-regs running-time \
                    clockid snapshot aux-sample proc-map-timeout namespaces all-cgroups \
                    switch-events all-kernel all-user kernel-callchains user-callchains vmlinux \
                    buildid-all buildid-mmap timestamp-filename timestamp-boundary switch-output \
                    switch-output-event switch-max-files dry-run aio affinity compression-level \
                    max-size num-thread-synthesize pfm-events control synth debuginfod threads \
                    off-cpu setup-filter off-cpu-thresh";

struct Row<'a> {
    names: Vec<&'a str>,
    answer: &'a str,
    why: &'a str,
    tried: &'a str,
}

/// The rows of the table that has four columns; that of perf stat is for `cli::stat`.
fn rows() -> Vec<Row<'static>> {
    let cells = |line: &'static str| -> Vec<&str> {
        line.trim_matches('|').split('|').map(str::trim).collect()
    };
    let recorded = TABLE.split("# The options of perf stat").next().unwrap_or(TABLE);
    let lines = recorded
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .filter(|cells| cells.len() == 4);
    let row = |cells: Vec<&'static str>| Row {
        names: cells[0].split(", ").map(|name| name.trim_matches('`')).collect(),
        answer: cells[1],
        why: cells[2],
        tried: cells[3].trim_matches('`'),
    };
    lines.map(row).collect()
}

impl Row<'_> {
    /// The long name, or the letter where there is none.
    fn long(&self) -> &str {
        self.names.last().unwrap().trim_start_matches('-')
    }
}

/// Parses the example as rec does: before a command, where it names no other target; where it is
/// about tracepoints, on a machine that is described.
fn parse(row: &Row<'_>) -> Result<(), String> {
    let attached = ["-a", "-p", "-t", "-C", "-u"].iter().any(|flag| row.tried.starts_with(flag));
    let command = if attached { "" } else { "x" };
    let machine = row.tried.contains("sched:").then(|| machine("x86"));
    let facts = machine.as_ref().map(|dir| dir.path().join("machine.json").into_os_string());
    let given = facts.into_iter().flat_map(|facts| ["--dry-run".into(), "--machine".into(), facts]);
    let words = row.tried.split(' ').chain(command.split_whitespace()).map(OsString::from);
    cli::parse([OsString::from("rec")].into_iter().chain(given).chain(words))
        .map(|_| ())
        .map_err(|refusal| refusal.to_string())
}

#[test]
fn every_option_of_perf_has_its_row() {
    let rows = rows();
    let told: Vec<_> = rows.iter().map(Row::long).collect();
    assert_eq!(told, PERF.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn at_least_four_in_five_are_the_same() {
    let rows = rows();
    let of = |answer: &str| rows.iter().filter(|row| row.answer == answer).count();
    assert_eq!(of("same") + of("different") + of("not"), rows.len());
    assert!(of("same") * 5 >= rows.len() * 4, "{} of {}", of("same"), rows.len());
}

#[test]
fn what_is_taken_is_and_what_is_not_is_refused_by_name_with_advice() {
    for row in rows() {
        let example = row.tried;
        assert!(
            row.names.iter().any(|name| example.contains(name.trim_start_matches('-'))),
            "{example}"
        );
        match (row.answer, parse(&row)) {
            ("not", Err(said)) => {
                let named =
                    format!("--{} is a flag of perf record that rec does not have: ", row.long());
                let (_, advice) =
                    said.split_once(&named).unwrap_or_else(|| panic!("{example}: {said}"));
                assert!(
                    advice.lines().next().unwrap().len() > 30 && row.why.len() > 30,
                    "{example}: {said}"
                );
            }
            ("not", Ok(())) => panic!("{example} is taken"),
            (_, Ok(())) => assert!(
                row.answer == "same" || row.why.len() > 30,
                "{example}: why is it different?"
            ),
            (_, Err(said)) => panic!("{example}: {said}"),
        }
    }
}

#[test]
fn every_option_of_rec_is_told_of() {
    let help = Command::new(env!("CARGO_BIN_EXE_rec")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    // What an example tells of rep is no option of rec.
    let lines = help.lines().map(|line| line.split(" rep -").next().unwrap_or(line));
    let words =
        lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "[=,.;)".contains(c)));
    let mut options: Vec<_> = words
        .filter(|word| {
            word.starts_with("--") && word.as_bytes().get(2).is_some_and(u8::is_ascii_lowercase)
        })
        .collect();
    options.sort_unstable();
    options.dedup();
    assert!(options.len() > 70, "{options:?}");
    for option in options.iter().filter(|option| !["--help", "--version"].contains(option)) {
        assert!(TABLE.contains(option), "{option} is not told of");
    }
}

#[test]
fn letters_are_those_of_perf() {
    for row in rows().iter().filter(|row| row.answer != "not" && row.names.len() == 2) {
        let (letter, long) = (row.names[0], row.long());
        let said = Command::new(env!("CARGO_BIN_EXE_rec")).arg("--help").output().unwrap();
        let help = String::from_utf8(said.stdout).unwrap();
        assert!(help.contains(&format!("{letter}, --{long}")), "{letter} is not --{long}");
    }
}
