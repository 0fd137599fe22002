//! Every further sort key and filter of `rep` against perf's, on a file that has all that they
//! need.
#![allow(clippy::cast_possible_truncation, reason = "its numbers are small")]

use std::path::Path;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{BranchSampleType, SampleType};
use recrep_format::endian::Endian;
use recrep_tests::programs::rep;
use recrep_tests::report::{answered, report_of};
use recrep_tests::run::run;
use recrep_tests::table::assert_same;
use recrep_tests::{needs, perf};

const TEXT: u64 = 0x40_0000;
const DATA: u64 = 0x7f00_0000;

/// Samples that differ in everything that a key can be made of.
fn rich(endian: Endian) -> Stream {
    let fields = SampleType::ADDR
        | SampleType::WEIGHT_STRUCT
        | SampleType::DATA_SRC
        | SampleType::TRANSACTION
        | SampleType::PHYS_ADDR
        | SampleType::CGROUP
        | SampleType::DATA_PAGE_SIZE
        | SampleType::CODE_PAGE_SIZE;
    let mut stream =
        Stream::new(endian).event(Event::new("loads:u").sampling(fields)).task(10, 10).comm("keys");
    stream = stream.cgroup(7, "/system.slice/keys.service").map("/usr/bin/keys", TEXT, 0x4000, 0);
    stream = stream.map("/usr/lib/data.so", DATA, 0x10_0000, 0);
    stream = stream.namespaces(&[[3, 1], [3, 2], [3, 3], [3, 4], [3, 5], [3, 6], [4, 0xabc]]);
    for turn in 0..90u64 {
        let spec =
            SampleSpec::at(TEXT + turn % 5 * 16).addr(DATA + turn % 7 * 40).period(1 + turn % 3);
        let spec = spec
            .transaction([0, 0b11, 0xff_0000_0026, 8][turn as usize % 4])
            .cgroup([0, 7, 8][turn as usize % 3]);
        let spec = spec
            .data_page_size([0, 4096, 2 << 20][turn as usize % 3])
            .code_page_size(4096 << (turn % 2 * 4));
        let spec =
            spec.weights(turn as u32 % 11, turn as u16 % 5, turn as u16 % 3).phys_addr(turn << 12);
        stream = stream.at(1_000_000_000 + turn * 7_654_321).sample(spec);
    }
    stream
}

fn written(dir: &Path, endian: Endian) -> std::path::PathBuf {
    let path = dir.join(format!("{endian:?}.data"));
    std::fs::write(&path, rich(endian).file()).unwrap();
    path
}

#[test]
fn every_key_reads_as_perfs() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let plain = [
        "transaction",
        "cgroup",
        "cgroup_id",
        "code_page_size",
        "dso,dso_size",
        "symbol_size",
        "socket",
        "time",
    ];
    let of_memory = ["data_page_size", "symbol_daddr", "dcacheline", "symbol_daddr,cgroup,time"];
    for endian in [Endian::Little, Endian::Big] {
        let path = written(dir.path(), endian);
        for (flags, sorts) in [(&[][..], &plain[..]), (&["--mem-mode"], &of_memory)] {
            for sort in sorts {
                let ours = report_of(&path, flags, sort).tables();
                assert_same(
                    &format!("{endian:?} {sort}"),
                    &ours,
                    &perf::tables_of(&path, flags, sort),
                );
            }
        }
        for flags in [&["--time-quantum", "10ms"][..], &["--ns", "--time-quantum", "1ns"]] {
            let ours = report_of(&path, flags, "time").tables();
            assert_same(&format!("{flags:?}"), &ours, &perf::tables_of(&path, flags, "time"));
        }
    }
}

#[test]
fn stretches_of_time_are_perfs() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), Endian::Little);
    for time in ["1.1,1.2", ",1.3", "1.3,", "1.0,1.1 1.4,1.5"] {
        let ours = report_of(&path, &["--time", time], "comm,symbol").tables();
        let mut perfs = perf::tables_of(&path, &["--time", time], "comm,symbol");
        // perf names the stretches behind the event.
        perfs.iter_mut().for_each(|table| table.event.truncate("loads:u".len()));
        assert_same(time, &ours, &perfs);
    }
    let samples = |time: &str| report_of(&path, &["--time", time], "comm").events[0].samples;
    // 90 samples at equal distances; a slice ends before the next one begins.
    assert_eq!([samples("50%"), samples("10%/1,10%/10"), samples("0%-100%")], [45, 18, 90]);
}

#[test]
fn filters_leave_out_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), Endian::NATIVE);
    let kept = |flags: &[&str]| {
        let outcome = answered(run(rep().arg("--json").args(flags).arg(&path)));
        let json: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let rows = json["events"][0]["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["samples"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(kept(&["--event", "loads"]), 90);
    assert_eq!(kept(&["--event", "stores"]), 0);
    assert_eq!([kept(&["--socket-filter", "0"]), kept(&["--symbol-filter", "main"])], [0, 0]);
    assert_eq!([kept(&["--comm", "keys"]), kept(&["--comm", "other"])], [90, 0]);
    for (flags, word) in [
        (["--time", "x"], "--time"),
        (["--time-quantum", "0"], "--time-quantum"),
        (["-F", "nope"], "nope"),
    ] {
        let outcome = run(rep().args(flags).arg(&path)).expect(2);
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
}

#[test]
fn fields_and_levels_are_shown_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), Endian::NATIVE);
    let text = |flags: &[&str]| run(rep().args(flags).arg(&path)).expect(0).text().to_owned();
    let table = text(&["-F", "comm,overhead,sample,weight1,overhead_us"]);
    assert!(table.contains("# Command  Overhead       Samples   Weight1       usr\n"), "{table}");
    assert!(table.contains("  keys      100.00%            90         4   100.00%\n"), "{table}");
    let tree = text(&["--hierarchy", "-s", "comm,dso"]);
    assert!(tree.contains("   100.00%  keys\n   100.00%    keys\n"), "{tree}");
    let branches = Event::new("branches:u").branches(BranchSampleType::USER);
    let two = Stream::new(Endian::NATIVE)
        .event(Event::new("a:u"))
        .event(branches)
        .task(1, 1)
        .comm("both");
    let two = two
        .of(0)
        .sample(SampleSpec::at(TEXT))
        .sample(SampleSpec::at(TEXT))
        .of(1)
        .sample(SampleSpec::at(TEXT));
    std::fs::write(&path, two.file()).unwrap();
    let group = text(&["--group", "-s", "comm", "-n"]);
    assert!(group.contains("# Samples: 3 of events 'a:u, branches:u'\n"), "{group}");
    assert!(group.contains("   100.00%  100.00%             2            1  both\n"), "{group}");
}
