//! Intel PT: cycles, and instructions per cycle, against perf.

use std::path::Path;
use std::process::Command;

use recrep_fixtures::trace::{Clocks, Image, PtFile, Settings, Timing, Walk};
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;

use super::pt::{ADDRESS, LIBC};
use super::{assert_equal, json, lines, warnings, written};

/// Returns the lines of a listing, with the names of events as ours.
fn listed(command: &mut Command) -> Vec<String> {
    lines(command).into_iter().map(|line| line.replace(":u:", ":")).collect()
}

/// Walks, and lists letters with fields of their samples. Only 6.12 knows `y`.
#[test]
fn cycles_are_those_of_perf() {
    let Ok(image) = &Image::read(Path::new(LIBC), ADDRESS) else { return };
    let base = Settings { timing: Timing::Cyc, ..Settings::default() };
    let chosen = [
        (base, &[("i1i", "ip,ipc"), ("y1i", "event,ip,period,ipc")][..]),
        (Settings { fault_every: 50, ..base }, &[("y3i", "event,ip,period"), ("b", "ip,addr,ipc")]),
        (
            Settings { psb_every: 300, has_long_outcomes: true, ..base },
            &[("iy1i", "event,ip,period,ipc"), ("iy7iA", "event,ip,period,ipc")],
        ),
        (Settings { side_event_every: 40, ..base }, &[("bA", "ip,addr,ipc")]),
        (Settings { defers_targets: true, ..base }, &[("iby1i", "event,ip,period,ipc")]),
        (
            Settings { timing: Timing::Mtc, fault_every: 200, ..base },
            &[("iy5iA", "event,ip,period,ipc"), ("bA", "ip,addr,ipc")],
        ),
    ];
    for (settings, lists) in chosen {
        let Walk { trace, psbs, end, .. } = &Walk::through(image, settings, 3, 2_000, |_| {});
        let (_dir, file) = &written(&PtFile { image, settings, trace, psbs, end: *end }.stream());
        for (letters, fields) in lists {
            let knows_all = !letters.contains('y');
            let perfs: Vec<_> = versions().into_iter().skip((!knows_all).into()).collect();
            if perfs.is_empty() || !needs::commands("perf") {
                continue;
            }
            let itrace = format!("--itrace={letters}");
            let args = ["script", &itrace, "-F", fields];
            let ours = listed(rep().args(args).arg(file));
            let counted = ours.iter().filter(|line| line.contains("cycles:")).count();
            assert!(counted > 20 || knows_all, "{letters}: {counted}");
            for perf in perfs {
                let mut perf = version(&perf);
                let perfs = listed(perf.args(args).arg("--no-inline").arg("-i").arg(file));
                assert_equal(&ours, &perfs);
            }
        }
    }
}

#[test]
fn cycles_are_those_of_instructions() {
    let Ok(image) = &Image::read(Path::new(LIBC), ADDRESS) else { return };
    let settings = Settings { timing: Timing::Cyc, fault_every: 50, ..Settings::default() };
    let Walk { trace, psbs, end, .. } = &Walk::through(image, settings, 3, 2_000, |_| {});
    let (_dir, file) = &written(&PtFile { image, settings, trace, psbs, end: *end }.stream());
    let list = |letters| lines(rep().args(["script", letters, "-F", "ip,ipc"]).arg(file));
    let (cycles, mut instructions) = (list("--itrace=y1i"), list("--itrace=i1i"));
    instructions.retain(|line| line.contains("IPC:"));
    assert!(cycles.len() > 200, "{}", cycles.len());
    assert_equal(&cycles, &instructions);
}

/// Returns the periods of all samples of cycles, and how many samples there are.
fn total(itrace: &str, file: &Path) -> (u64, u64) {
    let answer = json(&[itrace, "-s", "comm"], file);
    let mut events = answer["events"].as_array().unwrap().iter();
    let cycles = events.find(|event| event["name"] == "cycles").unwrap();
    (cycles["period"].as_u64().unwrap(), cycles["samples"].as_u64().unwrap())
}

#[test]
fn cycles_are_counted_through_all_parts() {
    let Ok(image) = &Image::read(Path::new(LIBC), ADDRESS) else { return };
    let settings = Settings { timing: Timing::Cyc, ..Settings::default() };
    let Walk { trace, psbs, end, .. } = &Walk::through(image, settings, 3, 100_000, |_| {});
    assert!(trace.len() > 256 << 10, "one part only");
    let (_dir, file) = &written(&PtFile { image, settings, trace, psbs, end: *end }.stream());
    let ratio = [Clocks::RATIO.into(), u64::from(Clocks::RATES.non_turbo)];
    let all = (end - Clocks::START) * ratio[0] / ratio[1];
    // Those behind the last sample are of none.
    for (itrace, rest) in
        [("--itrace=y5us", 10_000 * ratio[0] / ratio[1]), ("--itrace=y30i", 2_000)]
    {
        let (cycles, samples) = total(itrace, file);
        assert!(
            samples > 30 && (all - rest..=all).contains(&cycles),
            "{itrace}: {cycles} of {all}"
        );
    }
}

#[test]
fn a_trace_without_cycles_says_so() {
    let Ok(image) = &Image::read(Path::new(LIBC), ADDRESS) else { return };
    let settings = Settings { timing: Timing::Tsc, ..Settings::default() };
    let Walk { trace, psbs, end, .. } = &Walk::through(image, settings, 3, 100, |_| {});
    let (_dir, file) = &written(&PtFile { image, settings, trace, psbs, end: *end }.stream());
    let told = warnings(&json(&["--itrace=by1i"], file), "itrace-letter");
    let expected =
        "--itrace: no cycles (`y`): the trace was recorded without them (cyc=1 or mtc=1)";
    assert_eq!(told, [expected]);
}
