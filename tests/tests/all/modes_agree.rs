//! `rep -b` and `rep --mem-mode` against perf's, under every key and in both byte orders.
#![allow(clippy::cast_possible_truncation, reason = "its numbers are small")]

use std::path::Path;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_fixtures::manifest::{Container, Fate, cases};
use recrep_format::abi::SampleType;
use recrep_format::endian::Endian;
use recrep_tests::report::report_of;
use recrep_tests::table::{Table, assert_same};
use recrep_tests::{needs, perf};

/// Compares under each of these lists of keys; how many rows were compared.
#[track_caller]
fn compare(file: &Path, flags: &[&str], sorts: &[&str]) -> usize {
    let rows = |sort: &&str| {
        let what = format!("{}, {sort}", file.display());
        let perfs: Vec<Table> =
            perf::tables_of(file, flags, sort).into_iter().map(with_whole_cycles).collect();
        let ours = report_of(file, flags, sort).tables();
        assert_same(&what, &ours, &perfs);
        perfs.iter().map(|table| table.rows.len()).sum::<usize>()
    };
    sorts.iter().map(rows).sum()
}

/// perf prints the 16 bits of `cycles` as a number with a sign.
fn with_whole_cycles(table: Table) -> Table {
    let mut whole = Table::new(&table.event);
    for (mut key, counts) in table.rows {
        for cell in &mut key {
            if let Ok(cycles @ ..0) = cell.parse::<i16>() {
                *cell = cycles.cast_unsigned().to_string();
            }
        }
        whole.add(key, counts.samples, counts.period);
    }
    whole
}

#[test]
fn branches() {
    if !needs::perf_events() {
        return;
    }
    let sorts = [
        "dso_from,dso_to,mispredict",
        "comm,symbol_from,symbol_to,cycles",
        "in_tx,abort",
        "comm,dso",
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for case in cases().into_iter().filter(|case| case.fate == Fate::Whole && case.perf.is_empty())
    {
        let bits = (case.make)(Endian::Little).stream.sampled_bits();
        for form in case
            .forms()
            .filter(|f| f.container == Container::File && bits.contains(SampleType::BRANCH_STACK))
        {
            let path = dir.path().join(format!("{}.{form}.data", case.name));
            std::fs::write(&path, case.bytes(form)).unwrap();
            compared += compare(&path, &["-b"], &sorts);
        }
    }
    println!("{compared} rows of branches are perf's");
    assert!(compared > 40);
}

/// Accesses of a program: hits and misses of all levels that perf 6.1 names, with other parts that
/// go round.
fn accesses(endian: Endian, weight: SampleType) -> Stream {
    const TEXT: u64 = 0x40_0000;
    let fields = SampleType::DATA_SRC | SampleType::ADDR | SampleType::PHYS_ADDR | weight;
    let mut stream = Stream::new(endian).event(Event::new("loads:u").sampling(fields));
    stream = stream.task(10, 10).comm("accessor").map("/usr/bin/accessor", TEXT, 0x4000, 0).map(
        "/usr/lib/data.so",
        0x7f00_0000,
        0x10_0000,
        0,
    );
    for turn in 0..120u64 {
        let (level, hit) = (3 + turn % 11, 1 + turn / 11 % 2);
        let lvl = (1 << level | 1 << hit) << 5;
        let snoop = 1 << (19 + turn % 5);
        let lock = (turn % 3) << 24;
        let tlb = (1 << (3 + turn % 4) | 1 << (1 + turn % 2)) << 26;
        let blocked = (turn % 5 % 4) << 41;
        let spec =
            SampleSpec::at(TEXT + turn % 7 * 16).data_src(2 | lvl | snoop | lock | tlb | blocked);
        let spec = spec.addr(0x7f00_0000 + turn * 64).phys_addr((turn % 9) << 12);
        stream = stream.sample(match weight {
            SampleType::WEIGHT => spec.weight(turn % 13 * 3),
            _ => spec.weights((turn % 13 * 3) as u32, (turn % 4) as u16, (turn % 3) as u16),
        });
    }
    stream
}

#[test]
fn memory_accesses() {
    if !needs::perf_events() {
        return;
    }
    let sorts = [
        "mem,tlb,snoop,locked,blocked",
        "local_weight,local_ins_lat",
        "weight,ins_lat",
        "comm,dso,symbol,dso_daddr",
        "phys_daddr",
        "locked",
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for endian in [Endian::Little, Endian::Big] {
        for weight in [SampleType::WEIGHT, SampleType::WEIGHT_STRUCT] {
            let path = dir.path().join(format!("{endian:?}{}.data", weight.bits()));
            std::fs::write(&path, accesses(endian, weight).file()).unwrap();
            compared += compare(&path, &["--mem-mode"], &sorts);
        }
    }
    println!("{compared} rows of memory accesses are perf's");
    assert!(compared > 500);
}

#[test]
fn what_was_not_recorded_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain.data");
    let stream = Stream::new(Endian::NATIVE).event(Event::new("loads:u")).sample(SampleSpec::at(1));
    std::fs::write(&path, stream.file()).unwrap();
    for (flag, advice) in [
        ("-b", "record with rec -b"),
        ("--mem-mode", "record with rec mem (rec c2c, or -d and -W)"),
    ] {
        let outcome =
            recrep_tests::run::run(recrep_tests::programs::rep().arg(flag).arg(&path)).expect(1);
        assert!(outcome.stderr.contains(advice), "{}", outcome.stderr);
    }
}

#[test]
fn by_sample_a_file_with_branches_is_reported_with_a_hint() {
    let case = recrep_fixtures::manifest::case("lbr").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lbr.data");
    let form = case.forms().find(|form| form.container == Container::File).unwrap();
    std::fs::write(&path, case.bytes(form)).unwrap();
    let said = |flags: &[&str]| {
        recrep_tests::run::run(recrep_tests::programs::rep().args(flags).arg(&path))
            .expect(0)
            .stderr
    };
    assert!(said(&[]).contains("-b counts the branches"));
    assert!(!said(&["-b"]).contains("hint"));
}
