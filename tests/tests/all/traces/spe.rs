//! Arm SPE against perf: all fields of all samples, views, packets.

use std::path::Path;

use recrep_fixtures::build::Packing;
use recrep_fixtures::trace::spe::SpeTraces;
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::run::run;

use super::{assert_equal, json, lines, packets, samples, warnings, written};

/// All letters for which SPE has samples.
const LETTERS: &str = "--itrace=i1ibfmtaM";

/// Compares these fields of all samples with those of each perf. perf 6.1 has other values of
/// `data_src`.
#[track_caller]
fn agree(file: &Path, letters: &str, fields: &[&str]) {
    for (number, perf) in versions().iter().enumerate() {
        let known = fields.iter().filter(|field| number > 0 || **field != "data_src");
        let fields = known.copied().collect::<Vec<_>>().join(",");
        let args = ["script", "--no-inline", letters, "-F", &fields, "-i"];
        let perfs = lines(version(perf).args(args).arg(file));
        let ours = lines(rep().args(["script", letters, "-F", &fields]).arg(file));
        assert!(ours.len() > 500, "too few to mean anything");
        assert_equal(&ours, &perfs);
    }
}

const FIELDS: [&str; 11] = [
    "comm",
    "pid",
    "tid",
    "time",
    "event",
    "ip",
    "addr",
    "weight",
    "data_src",
    "phys_addr",
    "period",
];

#[test]
fn every_field_of_every_sample_is_perfs() {
    if !needs::commands("perf") {
        return;
    }
    let full = std::env::var_os("RECREP_FULL").is_some();
    let records = if full { 50_000 } else { 2000 };
    // perf takes packets that lie across two pieces for damage.
    let piece = usize::MAX;
    let (_dir, file) = written(&SpeTraces { records, piece, ..SpeTraces::default() }.stream());
    agree(&file, LETTERS, &FIELDS);
    agree(&file, "--itrace=tMi10i", &FIELDS);
}

#[test]
fn cpus_without_numbers_of_sources_have_events() {
    if !needs::commands("perf") {
        return;
    }
    let traces = SpeTraces { cpu_id: "0x00000000410fd030", ..SpeTraces::default() };
    let (_dir, file) = written(&traces.stream());
    agree(&file, LETTERS, &FIELDS);
}

#[test]
fn without_contexts_switches_tell_the_threads() {
    if !needs::commands("perf") {
        return;
    }
    let traces = SpeTraces { has_contexts: false, ..SpeTraces::default() };
    let (_dir, file) = written(&traces.stream());
    agree(&file, LETTERS, &FIELDS);
}

#[test]
fn records_without_timestamps_are_samples_too() {
    if !needs::commands("perf") {
        return;
    }
    let traces = SpeTraces { has_untimed: true, ..SpeTraces::default() };
    let (_dir, file) = written(&traces.stream());
    let fields: Vec<&str> = FIELDS.into_iter().filter(|field| *field != "time").collect();
    agree(&file, LETTERS, &fields);
}

#[test]
fn what_lies_across_pieces_is_joined() {
    let whole = written(&SpeTraces::default().stream());
    let count = |file: &Path| samples(&json(&[LETTERS], file));
    let expected = count(&whole.1);
    assert_eq!(expected["instructions"], 2000);
    for piece in [4096, 1000, 24, 8] {
        let (_dir, file) = written(&SpeTraces { piece, ..SpeTraces::default() }.stream());
        let answer = json(&[LETTERS], &file);
        assert_eq!(samples(&answer), expected, "{piece}");
        assert_eq!(warnings(&answer, "trace-gaps"), [""; 0], "{piece}");
    }
}

#[test]
fn every_container_gives_the_same() {
    let traces = SpeTraces { records: 400, piece: 2000, ..SpeTraces::default() };
    let stream = traces.stream();
    let (dir, file) = written(&stream);
    let counts = |file: &Path| {
        let answer = json(&[LETTERS, "-s", "comm,sym,mem,cpu"], file);
        assert_eq!(warnings(&answer, "trace-gaps"), [""; 0]);
        answer["events"].clone()
    };
    let expected = counts(&file);
    let late = SpeTraces { has_late_clock: true, ..traces }.stream();
    let files = [
        ("pipe", stream.pipe()),
        ("compressed", stream.packed_file(Packing::Compressed)),
        ("compressed2", stream.packed_pipe(Packing::Compressed2)),
        ("late", late.file()),
    ];
    for (name, bytes) in files {
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(counts(&file), expected, "{name}");
    }
    let folder = dir.path().join("threads");
    stream.directory(Packing::None, 2, &[0, 1, 1]).write(&folder).unwrap();
    assert_eq!(counts(&folder), expected, "directory");
}

#[test]
fn each_cpu_has_its_own_numbers_of_sources() {
    const LITTLE: u64 = 0x410f_d034;
    let sources = |midrs: &'static [u64], cpu: &str| {
        let (_dir, file) = written(&SpeTraces { midrs, ..SpeTraces::default() }.stream());
        let args = ["script", "--itrace=M", "-C", cpu, "-F", "data_src"];
        lines(rep().args(args).arg(&file))
    };
    const BIG: u64 = 0x413f_d0c1;
    let (of_one, of_both) = (sources(&[BIG, BIG], "1"), sources(&[BIG, LITTLE], "1"));
    assert!(of_one != of_both, "a CPU of the other kind");
    assert_eq!(sources(&[BIG, LITTLE], "0"), sources(&[], "0"));
}

#[test]
fn views_and_filters_have_the_samples() {
    let (_dir, file) = written(&SpeTraces::default().stream());
    let all = samples(&json(&[], &file));
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let usual = [
        "branch-miss",
        "l1d-access",
        "l1d-miss",
        "llc-access",
        "llc-miss",
        "memory",
        "remote-access",
        "tlb-access",
        "tlb-miss",
    ];
    assert_eq!(names, usual, "as in perf by default");
    let memory = json(&["--mem-mode", "-s", "mem,dso", "--itrace=M"], &file);
    assert_eq!(samples(&memory), [("memory".to_owned(), all["memory"])].into());
    let thread = json(&["--tid", "71", "-s", "comm,tid", "--itrace=M"], &file);
    let rows = thread["events"].as_array().unwrap().iter().flat_map(|event| {
        event["rows"].as_array().unwrap().iter().map(|row| row["key"]["comm"].clone())
    });
    assert_eq!(rows.collect::<Vec<_>>(), ["second"]);
    for view in [&["mem"][..], &["c2c"], &["timeline"]] {
        let outcome = run(rep().args(view).arg(&file)).expect(0);
        assert!(outcome.text().lines().count() >= 3, "{view:?}: {}", outcome.text());
    }
}

#[test]
fn letters_without_samples_are_named() {
    let (_dir, file) = written(&SpeTraces::default().stream());
    let told = warnings(&json(&["--itrace=ixM"], &file), "itrace-letter");
    let [instructions, transactions] = &told[..] else { panic!("{told:?}") };
    assert!(instructions.starts_with("--itrace: no instructions (`i`): "), "{instructions}");
    assert!(transactions.starts_with("--itrace: no transactions (`x`): "), "{transactions}");
    assert_eq!(warnings(&json(&[], &file), "itrace-letter"), [""; 0], "nothing was chosen");
    let undecoded = json(&["--no-itrace"], &file);
    assert!(samples(&undecoded).is_empty());
    assert_eq!(warnings(&undecoded, "aux-not-decoded").len(), 1);
}

#[test]
fn packets_are_those_of_perf() {
    if !needs::commands("perf") {
        return;
    }
    let (_dir, file) = written(&SpeTraces { has_untimed: true, ..SpeTraces::default() }.stream());
    let ours = run(rep().args(["dump", "--packets", "--type", "AUXTRACE"]).arg(&file)).expect(0);
    let list = |dump: &str| -> Vec<String> {
        packets(dump).map(|(at, words)| format!("{at} {}", words.join(" "))).collect()
    };
    let ours = list(ours.text());
    assert!(ours.len() > 10_000);
    // perf 6.1 knows fewer kinds of operations.
    let Some(perf) = versions().into_iter().nth(1) else { return };
    let perfs = run(version(&perf).args(["script", "-D", "-i"]).arg(&file)).expect(0);
    let perfs = list(perfs.text());
    assert_equal(&ours, &perfs);
}
