//! The examples of `recrep-format`: what they write, perf reads, with the counts that they mean.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use recrep_format::read::File;
use recrep_tests::needs;
use recrep_tests::perf::{self, versions};
use recrep_tests::programs::{examples, workload};
use recrep_tests::run::run;

/// The lines of `perf script -F FIELDS` after its own selection.
#[track_caller]
fn script(perf: &OsStr, file: &Path, fields: &str, select: &[&str]) -> Vec<String> {
    let mut perf = perf::version(perf);
    let outcome =
        run(perf.args(["script", "-F", fields]).args(select).arg("-i").arg(file)).expect(0);
    assert!(!outcome.stderr.contains("Error"), "{}: {}", outcome.command, outcome.stderr);
    outcome.text().lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_made_file_has_the_samples_that_were_written() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("made.data");
    run(Command::new(&examples().synthesize).arg(&file)).expect(0);
    for perf in versions() {
        let mut report = perf::version(&perf);
        report.args([
            "report",
            "--stdio",
            "-n",
            "--no-children",
            "-t",
            ";",
            "-F",
            "sample,comm,dso,sym",
            "-i",
        ]);
        let outcome = run(report.arg(&file)).expect(0);
        assert!(outcome.text().contains("of event 'made-up'"), "{}", outcome.text());
        let rows = outcome.text().lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows: Vec<Vec<&str>> =
            rows.map(|line| line.split(';').map(str::trim).take(4).collect()).collect();
        let expected = [
            ["60", "parser", "parser", "[.] 0x0000000000001000"],
            ["25", "parser", "parser", "[.] 0x0000000000002000"],
            ["10", "tokenizer", "parser", "[.] 0x0000000000003000"],
            ["5", "tokenizer", "parser", "[.] 0x0000000000001000"],
        ];
        assert_eq!(rows, expected, "{}", perf.display());
        assert_eq!(script(&perf, &file, "ip", &[]).len(), 100);
    }
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn a_cut_file_has_the_samples_of_its_process_or_time() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (file, cut) = (dir.path().join("whole.data"), dir.path().join("cut.data"));
        perf::record(&file, "-e cpu-clock -F 2000", &workload("hot --ms 100 --forks 2"));
        let default = versions().swap_remove(0);
        let fields = "comm,pid,ip,sym,dso";
        let mut pids = script(&default, &file, "pid", &[]);
        pids.sort();
        pids.dedup();
        assert_eq!(pids.len(), 3, "a parent and two children");
        let whole = std::fs::read(&file).unwrap();
        let samples = |bytes: &[u8]| {
            let file = File::parse(bytes).unwrap();
            file.records().filter(|raw| file.attrs.sample(*raw.as_ref().unwrap()).is_some()).count()
        };
        let mut sum = 0;
        for pid in &pids {
            run(Command::new(&examples().cut).args([&file, &cut]).args(["--pid", pid])).expect(0);
            let kept = samples(&std::fs::read(&cut).unwrap());
            for perf in versions() {
                let lines = script(&perf, &cut, fields, &[]);
                assert_eq!(lines.len(), kept, "{}", perf.display());
                // Names, modules and symbols come from the side-band, the parent's too.
                assert_eq!(
                    lines,
                    script(&perf, &file, fields, &["--pid", pid]),
                    "{}",
                    perf.display()
                );
            }
            sum += kept;
        }
        assert_eq!(sum, samples(&whole));

        let parsed = File::parse(&whole).unwrap();
        let times = parsed.records().filter_map(|raw| parsed.attrs.sample(raw.ok()?)?.1.time());
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        let (from, to) = (times[times.len() / 4], times[times.len() / 2]);
        let inside = times.iter().filter(|time| (from..=to).contains(time)).count();
        let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        for range in [format!("{from}ns..{to}ns"), format!("{}..{}", seconds(from), seconds(to))] {
            run(Command::new(&examples().cut).args([&file, &cut]).args(["--time", &range]))
                .expect(0);
            assert_eq!(samples(&std::fs::read(&cut).unwrap()), inside, "{range}");
            for perf in versions() {
                let lines = script(&perf, &cut, fields, &[]);
                assert_eq!(lines.len(), inside, "{range} {}", perf.display());
                assert!(!lines.iter().any(|line| line.contains("([unknown])")), "{lines:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (file, cut) = (dir.path().join("packed.data"), dir.path().join("cut.data"));
        perf::record(&file, "-e cpu-clock -z", &["true".to_owned()]);
        let refused =
            run(Command::new(&examples().cut).args([&file, &cut]).args(["--pid", "1"])).expect(1);
        assert!(refused.stderr.contains("compressed"), "{}", refused.stderr);
        assert!(!cut.exists());
    }
}
