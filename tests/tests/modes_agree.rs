//! `rep -b` and `rep --mem-mode` against perf's: on every fixture that has branches or memory accesses, in both byte
//! orders, under every key.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use recrep_fixtures::manifest::{Case, Container, Fate, cases};
use recrep_format::abi::SampleType;
use recrep_format::endian::Endian;
use recrep_tests::report::report_of;
use recrep_tests::table::assert_same;
use recrep_tests::{needs, perf};

/// The whole cases that perf 6.1 reads as we do and whose samples have one of these fields.
fn cases_with(fields: SampleType) -> Vec<Case> {
    let has = |case: &Case| (case.make)(Endian::Little).stream.sampled_bits().intersects(fields);
    let found: Vec<Case> =
        cases().into_iter().filter(|c| c.fate == Fate::Whole && c.perf.is_empty() && has(c)).collect();
    assert!(!found.is_empty());
    found
}

/// Compares under each of these lists of keys; how many rows were compared.
fn compare(fields: SampleType, flags: &[&str], sorts: &[&str]) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for case in cases_with(fields) {
        for form in case.forms().filter(|form| form.container == Container::File) {
            let path = dir.path().join(format!("{}.{form}.data", case.name));
            std::fs::write(&path, case.bytes(form)).unwrap();
            for sort in sorts {
                let what = format!("{}, {form}, {sort}", case.name);
                let perfs = perf::tables_of(&path, flags, sort);
                let ours: Vec<_> = report_of(&path, flags, sort).tables();
                if perfs.is_empty() {
                    assert!(ours.is_empty(), "{what}: perf has no rows");
                    continue;
                }
                assert_same(&what, &ours, &perfs);
                compared += perfs.iter().map(|table| table.rows.len()).sum::<usize>();
            }
        }
    }
    compared
}

#[test]
fn branches() {
    if !needs::perf_events() {
        return;
    }
    let sorts = ["dso_from,dso_to,mispredict", "comm,symbol_from,symbol_to,cycles", "in_tx,abort", "comm,dso"];
    let compared = compare(SampleType::BRANCH_STACK, &["-b"], &sorts);
    println!("{compared} rows of branches are perf's");
    assert!(compared > 50);
}

#[test]
fn memory_accesses() {
    if !needs::perf_events() {
        return;
    }
    let sorts = [
        "mem,tlb,snoop,locked,blocked",
        "local_weight,local_ins_lat,local_p_stage_cyc",
        "weight,ins_lat,p_stage_cyc",
        "comm,dso,symbol,dso_daddr",
        "phys_daddr",
    ];
    // perf's mode is there only for samples with a data source.
    let compared = compare(SampleType::DATA_SRC, &["--mem-mode"], &sorts);
    println!("{compared} rows of memory accesses are perf's");
    assert!(compared > 50);
}
