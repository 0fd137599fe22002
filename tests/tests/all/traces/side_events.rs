//! Intel PT: events beside the flow of control, against perf.

use std::path::Path;

use recrep_fixtures::trace::{Image, PtFile, Settings, Timing, Walk};
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::Value;

use super::pt::{ADDRESS, LIBC};
use super::{json, samples, written};

/// A line of a listing: event, its values and the address.
#[derive(Debug, PartialEq)]
struct Line {
    text: String,
    ip: u64,
}

fn lines(listing: &str) -> Vec<Line> {
    let of_line = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // Branches have two addresses: FROM => TO. What perf prints in front of that of others was not sampled.
        let is_branch = words.contains(&"=>");
        if !is_branch {
            words.remove(words.len() - 2);
        }
        let at = words.len() - if is_branch { 3 } else { 1 };
        let ip = u64::from_str_radix(words[at], 16).unwrap();
        let mut text = [&words[..at], &words[at + 1..]].concat().join(" ");
        if let Some((name, rest)) = text.split_once(":u:") {
            text = format!("{name}:{rest}");
        }
        Line { text, ip }
    };
    listing.lines().filter(|line| !line.trim().is_empty()).map(of_line).collect()
}

/// Addresses that events have while nothing is traced are those of the last branch in perf's lists, and none in ours.
/// Without CBR, perf lists a ratio of 0 first.
fn as_ours(perfs: Vec<Line>) -> Vec<Line> {
    let mut is_off = false;
    let mut lines = Vec::new();
    for mut line in perfs {
        if line.text.starts_with("branches:") {
            is_off = line.text.ends_with(" 0");
        } else if is_off && !has_address(&line.text) {
            line.ip = 0;
        }
        // Where tracing begins, perf has the change of the flag first, at the same time.
        let is_begin = line.text.starts_with("branches:") && line.ip == 0;
        let is_behind = lines.last().is_some_and(|last: &Line| {
            is_begin && last.ip == 0 && last.text.ends_with("via branch")
        });
        if is_behind {
            lines.insert(lines.len() - 1, line);
        } else if !line.text.starts_with("cbr: cbr: 0 ") {
            lines.push(line);
        }
    }
    lines
}

fn has_address(text: &str) -> bool {
    text.contains("IP: 1") || text.starts_with("psb")
}

#[test]
fn events_beside_the_flow_are_those_of_perf() {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    let base = Settings { side_event_every: 40, fault_every: 100, ..Settings::default() };
    for timing in [Timing::None, Timing::Mtc] {
        let settings = Settings { timing, psb_every: 1_000, ..base };
        let Walk { trace, psbs, end, .. } = &Walk::through(&image, settings, 3, 12_000, |_| {});
        let (_dir, file) =
            &written(&PtFile { image: &image, settings, trace, psbs, end: *end }.stream());
        let args = ["script", "--itrace=bwpxI", "-F", "event,ip,addr,synth"];
        let ours = lines(run(rep().args(args).arg(file)).expect(0).text());
        let names = [
            "branches:",
            "cbr:",
            "evt:",
            "exstop:",
            "iflag:",
            "mwait:",
            "psb:",
            "ptwrite:",
            "pwre:",
            "pwrx:",
            "transactions:",
        ];
        for name in names {
            let count = ours.iter().filter(|line| line.text.starts_with(name)).count();
            assert!(count >= 20, "{name} {count}");
        }
        if needs::commands("perf") {
            for perf in versions() {
                let mut perf = version(&perf);
                let perfs = run(perf.args(args).arg("--no-inline").arg("-i").arg(file)).expect(0);
                let perfs = as_ours(lines(perfs.text()));
                let first = ours.iter().zip(&perfs).position(|(ours, perfs)| ours != perfs);
                assert_eq!(first.map(|at| (&ours[at], &perfs[at])), None);
                assert_eq!(ours.len(), perfs.len());
            }
        }
        // Reports count them: those that need no order, too.
        let counted = samples(&json(&["--itrace=bw", "-s", "symbol"], file));
        let written = ours.iter().filter(|line| line.text.starts_with("ptwrite:")).count();
        assert_eq!(counted["ptwrite"], written as u64);
    }
}

#[test]
fn values_of_events_have_names_in_json() {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    let settings = Settings { side_event_every: 20, ..Settings::default() };
    let Walk { trace, psbs, end, .. } = &Walk::through(&image, settings, 3, 500, |_| {});
    let (_dir, file) =
        &written(&PtFile { image: &image, settings, trace, psbs, end: *end }.stream());
    let listed = run(rep().args(["script", "--itrace=w", "--json"]).arg(file)).expect(0);
    let rows = listed.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let values: Vec<Value> = rows.filter(|row| row["event"] == "ptwrite").collect();
    assert!(!values.is_empty());
    for row in values {
        let payload = row["synth"]["payload"].as_str().unwrap();
        assert!(payload.starts_with("0x") && row["synth"]["IP"].is_string(), "{row}");
    }
}
