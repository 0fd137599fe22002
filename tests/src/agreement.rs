//! All that rep says of a file, held against perf: the records, and the samples and periods under
//! every key.
//!
//! In a recording of the whole machine there are samples of programs that no test knows, and perf
//! reads some of their symbols wrongly (see [`Form::Strangers`](crate::listing::Form::Strangers)).
//! A table has no addresses by which the modules could tell who is right, so there the functions
//! are compared for the threads of the command that was run, all else for everybody.

use std::path::Path;

use crate::perf::{self, Stats, perf};
use crate::report::{Report, report};
use crate::run::run;
use crate::table::{Table, assert_same};

/// Whose samples a file has.
#[derive(Clone, Copy, Debug)]
pub enum Extent<'a> {
    /// Those of a command.
    Command,
    /// Those of everybody, among them the threads of a command by these names.
    System(&'a [&'a str]),
    /// Those of another machine, or of none.
    Foreign,
}

/// The sort keys of which each is compared; perf's own recordings have the `cpu` only where it was
/// asked for.
const SORTS: [&str; 7] =
    ["comm", "dso", "cpu", "tid", "comm,dso", "comm,dso,symbol", "comm,symbol"];

/// All of these. Of the rows under them perf's are added up: it is asked once for a file, not seven
/// times.
const ALL: [&str; 5] = ["comm", "dso", "cpu", "tid", "symbol"];

/// Fails where rep and perf differ, or perf has something to warn of; gives what both count.
#[track_caller]
pub fn assert_agrees(file: &Path, extent: Extent<'_>) -> Stats {
    let stats = perf::stats(file);
    assert_eq!(perf::without_loss(&stats.warnings, &stats.records), "");
    let all = perf::tables(file, &ALL.join(","));
    for sort in SORTS {
        let ours = report(file, sort);
        assert_eq!(ours.records(), stats.records, "records");
        assert_untroubled(&ours, extent);
        let places = sort
            .split(',')
            .map(|key| ALL.iter().position(|one| *one == key).expect("it is one of all"));
        let places: Vec<usize> = places.collect();
        let (mut ours, mut perfs) =
            (ours.tables(), all.iter().map(|table| table.by(&places)).collect::<Vec<_>>());
        if let (Extent::System(comms), true) = (extent, sort.contains("symbol")) {
            let known = |table: &Table| table.rows_where(|key| comms.contains(&key[0].as_str()));
            (ours, perfs) = (ours.iter().map(known).collect(), perfs.iter().map(known).collect());
        }
        assert_same(sort, &ours, &perfs);
    }
    stats
}

/// Commands that perf does with any recording, samples or not; of each, standard error must be
/// empty.
const READS: [&[&str]; 3] =
    [&["script", "--no-inline"], &["evlist", "-v"], &["report", "--header-only"]];

/// Fails where perf cannot read a file, or warns of it, or rep counts other records and samples;
/// gives the samples.
///
/// Under the keys only a command is compared: whoever else ran may have ended before the end, where
/// a flight recorder looks.
#[track_caller]
pub fn assert_reads(file: &Path, extent: Extent<'_>) -> u64 {
    let sort = "comm,dso,symbol";
    let ours = report(file, sort);
    assert_untroubled(&ours, extent);
    // A ring that is overwritten stands still while it is read, and a busy machine may be too slow
    // for any.
    let lost = ours.records().get("LOST").copied().unwrap_or(0);
    assert_eq!(ours.input().lost_events > 0, lost > 0, "lost events by {lost} records");
    for read in READS {
        let outcome = run(perf().args(read).arg("-i").arg(file)).expect(0);
        let warnings = perf::without_loss(&outcome.stderr, &ours.records());
        assert!(warnings.is_empty(), "perf {read:?} of {}: {warnings}", file.display());
    }
    let stats = perf::stats(file);
    let warnings = perf::without_loss(&stats.warnings, &stats.records);
    // What unpacking needs is in a feature, which this view of perf's does not read from a stream.
    if !warnings.contains("Couldn't decompress data") {
        assert_eq!(
            (warnings, &ours.records()),
            ("", &stats.records),
            "records of {}",
            file.display()
        );
    }
    let samples = ours.records().get("SAMPLE").copied().unwrap_or(0);
    // Without samples there is no table: perf calls that an error.
    if samples > 0 {
        let known = |table: &Table| match extent {
            Extent::Command | Extent::Foreign => table.clone(),
            Extent::System(comms) => table.rows_where(|key| comms.contains(&key[0].as_str())),
        };
        let [ours, perfs] = [ours.tables(), perf::tables_apart(file, sort)];
        let [mut ours, mut perfs] =
            [ours, perfs].map(|tables| tables.iter().map(known).collect::<Vec<_>>());
        // On a busy machine an event of a piece of a recording may have nothing of the commands.
        if matches!(extent, Extent::System(_)) && ours.len() == perfs.len() {
            let both = ours.into_iter().zip(perfs);
            (ours, perfs) = both
                .filter(|(a, b)| a.samples() > 0 || b.samples() > 0 || a.event != b.event)
                .unzip();
        }
        assert_same(sort, &ours, &perfs);
    }
    samples
}

/// Warnings of names that nothing proves. Of a command there may be none; of the whole machine,
/// others replace and delete their programs.
const NAMES: [&str; 3] = ["unproven-names", "contradicted-names", "judged-names"];

/// Fails where rep calls the file incomplete or warns of more than that it has no samples.
#[track_caller]
pub fn assert_untroubled(report: &Report, extent: Extent<'_>) {
    assert!(report.input().complete, "not complete");
    let is_of_others = |code: &str| matches!(extent, Extent::System(_)) && NAMES.contains(&code);
    let has_samples = report.events.iter().any(|event| event.samples > 0);
    let troubles = report
        .warnings
        .iter()
        .filter(|warning| warning.code != "no-samples" || has_samples)
        .filter(|warning| !is_of_others(&warning.code));
    assert_eq!(troubles.count(), 0, "{:?}", report.warnings);
}
