//! Intel PT: random walks through the C library, against their logs and perf.

use std::path::Path;

use recrep_fixtures::trace::{Image, PtFile, Settings, Timing, Walk};
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use tempfile::TempDir;

use super::{assert_equal, json, lines, samples, warnings, written};

const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const ADDRESS: u64 = 0x7f12_3456_7000;

/// A recording of a walk.
struct Recording {
    _dir: TempDir,
    file: std::path::PathBuf,
    /// Lines of the branches, as scripts print them.
    log: Vec<String>,
    walk: Walk,
}

/// Returns the recording of a walk; `None` where there is no C library at the usual place.
fn recorded(settings: Settings, branches: u64) -> Option<Recording> {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else {
        println!("skipped: there is no {LIBC}");
        return None;
    };
    let mut log = Vec::new();
    let walk = Walk::through(&image, settings, 11, branches, |branch| {
        log.push(format!("{:x} => {:x}", branch.from, branch.to));
    });
    log.sort();
    let Walk { trace, psbs, end, .. } = &walk;
    let (_dir, file) =
        written(&PtFile { image: &image, settings, trace, psbs, end: *end }.stream());
    Some(Recording { _dir, file, log, walk })
}

#[test]
fn branches_are_those_of_the_log_and_of_perf() {
    let base = Settings::default();
    let variants = [
        Settings { fault_every: 100, defers_targets: true, psb_every: 300, ..base },
        Settings { compresses_returns: false, has_long_outcomes: true, ..base },
        Settings { timing: Timing::Tsc, ..base },
        Settings { timing: Timing::Mtc, ..base },
        Settings { timing: Timing::Cyc, fault_every: 1000, ..base },
    ];
    for settings in variants {
        let Some(Recording { file, log, .. }) = &recorded(settings, 20_000) else { return };
        let args = ["script", "--itrace=b", "-F", "ip,addr"];
        let ours = lines(rep().args(args).arg(file));
        assert_equal(&ours, log);
        let timed = ["script", "--itrace=b", "-F", "comm,pid,tid,time,ip,addr", "--ns"];
        if !needs::commands("perf") || settings.timing != Timing::Tsc {
            continue;
        }
        let ours = lines(rep().args(timed).arg(file));
        for perf in versions() {
            let perfs = lines(version(&perf).args(timed).arg("--no-inline").arg("-i").arg(file));
            assert_equal(&ours, &perfs);
        }
    }
}

#[test]
fn instructions_are_counted_through_all_parts() {
    let settings = Settings { timing: Timing::Tsc, ..Settings::default() };
    let Some(Recording { file, walk, .. }) = &recorded(settings, 300_000) else { return };
    assert!(walk.trace.len() > 256 << 10, "one part only");
    let count = |itrace: &str| {
        let answer = json(&[itrace, "-s", "comm"], file);
        assert_eq!(warnings(&answer, "trace-gaps"), [""; 0]);
        let counted = samples(&answer);
        let mut events = answer["events"].as_array().unwrap().iter();
        let instructions = events.find(|event| event["name"] == "instructions").unwrap();
        let total: u64 = instructions["period"].as_u64().unwrap();
        (counted["instructions"], total)
    };
    let thousands = walk.instructions / 1000;
    assert_eq!(count("--itrace=i1000i"), (thousands, thousands * 1000));
    let (timed, total) = count("--itrace=i10us");
    // Each stretch from one TSC to the next is one time.
    assert!(timed > 10 && total <= walk.instructions, "{timed} samples, {total} instructions");
    assert_eq!(samples(&json(&["--itrace=b", "-s", "comm"], file))["branches"], walk.branches);
}

#[test]
fn calls_and_returns_are_branches_of_their_kind() {
    let settings = Settings { fault_every: 200, ..Settings::default() };
    let Some(Recording { file, .. }) = &recorded(settings, 20_000) else { return };
    for letter in ["c", "r", "cr"] {
        let itrace = format!("--itrace=b{letter}");
        let args = ["script", &itrace, "-F", "ip,addr"];
        let ours = lines(rep().args(args).arg(file));
        assert!(!ours.is_empty());
        if needs::commands("perf") {
            for perf in versions() {
                assert_equal(&ours, &lines(version(&perf).args(args).arg("-i").arg(file)));
            }
        }
    }
}

#[test]
fn code_that_is_in_no_file_is_a_gap() {
    let Ok(mut image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    image.path = "/nonexistent/libc.so.6".into();
    // Nor is there a copy of it.
    image.build_id = [0xee; 20];
    let settings = Settings::default();
    let Walk { trace, psbs, end, .. } = &Walk::through(&image, settings, 11, 2_000, |_| {});
    let (_dir, file) =
        written(&PtFile { image: &image, settings, trace, psbs, end: *end }.stream());
    let told = warnings(&json(&["--itrace=b"], &file), "trace-gaps");
    assert!(told.iter().any(|gap| gap.contains("in no file of this machine")), "{told:?}");
}
