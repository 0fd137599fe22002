//! All that rep says of a file, held against perf: the records, and the samples and periods under every key.
//!
//! In a recording of the whole machine there are samples of programs that no test knows. In some of these perf finds no
//! symbol where there is one (it searches a tree of ranges, which symbols that overlap lead astray: the compiler's own libraries are
//! full of them). There the functions are compared for the threads of the command that was run, all else for everybody.

use std::path::Path;

use crate::perf::{self, Stats};
use crate::report::{Report, report};
use crate::table::{Table, assert_same};

/// Whose samples a file has.
#[derive(Clone, Copy, Debug)]
pub enum Extent<'a> {
    /// Those of a command.
    Command,
    /// Those of everybody, among them the threads of a command by these names.
    System(&'a [&'a str]),
}

/// The sort keys of which each is compared; perf's own recordings have the `cpu` only where it was asked for.
const SORTS: [&str; 6] = ["comm", "dso", "cpu", "comm,dso", "comm,dso,symbol", "comm,symbol"];

/// Fails where rep and perf differ, or perf has something to warn of; gives what both count.
#[track_caller]
pub fn assert_agrees(file: &Path, extent: Extent<'_>) -> Stats {
    let stats = perf::stats(file);
    assert_eq!(stats.warnings, "");
    for sort in SORTS {
        let ours = report(file, sort);
        assert_eq!(ours.records(), stats.records, "records");
        assert_untroubled(&ours);
        let (mut ours, mut perfs) = (ours.tables(), perf::tables(file, sort));
        if let (Extent::System(comms), true) = (extent, sort.contains("symbol")) {
            let known = |table: &Table| table.rows_where(|key| comms.contains(&key[0].as_str()));
            (ours, perfs) = (ours.iter().map(known).collect(), perfs.iter().map(known).collect());
        }
        assert_same(sort, &ours, &perfs);
    }
    stats
}

/// Fails where rep calls the file incomplete or warns of it.
#[track_caller]
pub fn assert_untroubled(report: &Report) {
    assert!(report.input().complete, "not complete");
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}
