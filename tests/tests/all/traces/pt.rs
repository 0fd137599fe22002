//! Intel PT: random walks through the C library, against their logs and perf.

use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_fixtures::trace::{Clocks, Image, PtFile, Settings, Timing, Walk};
use recrep_tests::forms::is_full;
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use recrep_tests::walking::{check, is_within_a_period};
use tempfile::TempDir;

use super::{assert_equal, json, lines, packets, samples, warnings, written};

pub(super) const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
pub(super) const ADDRESS: u64 = 0x7f12_3456_7000;

/// A recording of a walk.
struct Recording {
    _dir: TempDir,
    file: PathBuf,
    /// Lines of the branches, as scripts print them.
    log: Vec<String>,
    walk: Walk,
    image: Image,
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
    Some(Recording { _dir, file, log, walk, image })
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
    // Its ticks are nanoseconds.
    assert_eq!(count("--itrace=i10000t"), (timed, total));
    assert_eq!(samples(&json(&["--itrace=b", "-s", "comm"], file))["branches"], walk.branches);
}

/// Reports that need no order count blocks of code; with a filter by time they read each sample.
#[test]
fn sums_of_samples_are_those_of_each_sample() {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    // Several parts, in a full run.
    let (branches, views) = if is_full() { (600_000, &VIEWS[..]) } else { (4_000, &VIEWS[..2]) };
    for timing in [Timing::Tsc, Timing::Mtc, Timing::Cyc] {
        let settings = Settings { timing, fault_every: 1_000, ..Settings::default() };
        let Walk { trace, psbs, end, .. } = &Walk::through(&image, settings, 5, branches, |_| {});
        let mut stream = PtFile { image: &image, settings, trace, psbs, end: *end }.stream();
        // The thread takes other names, mostly between two PSBs.
        for (name, part) in ["walk", "run", "stroll"].into_iter().cycle().zip(1..40) {
            let time = Clocks::START + (end - Clocks::START) * part / 40;
            stream = stream.at(time).comm(name);
        }
        let (_dir, file) = written(&stream);
        for args in views {
            let expected = answer(args, &["--time", "0,"], &file, "1");
            assert!(expected.lines().count() > 3, "{args}: {expected}");
            for threads in if is_full() { &["1", "2", "3"][..] } else { &["2"] } {
                let found = answer(args, &[], &file, threads);
                let differing = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
                assert_eq!(differing, None, "{timing:?}, {args}, {threads} threads");
                assert_eq!(found.len(), expected.len());
            }
        }
    }
}

/// Views and filters.
const VIEWS: [&str; 6] = [
    "--itrace=b -s comm,dso,symbol",
    "--itrace=i1i -s ip,comm --limit 50",
    "--itrace=br -s ip --format csv",
    "--itrace=bc -s pid,tid,comm,cpu --comm run",
    "--itrace=b -s symbol -F overhead,sample,period --comm walk,stroll",
    "--itrace=b --stats",
];

/// Returns what rep prints with these arguments on so many threads.
fn answer(args: &str, more: &[&str], file: &Path, threads: &str) -> String {
    let mut rep = rep();
    rep.args(args.split(' ')).args(more).arg(file).env("RAYON_NUM_THREADS", threads);
    run(&mut rep).expect(0).text().to_owned()
}

/// The true clock is known here. Without cycles, times are those of the last step of the crystal clock, as in perf.
#[test]
fn times_with_cycles_are_within_a_step_of_the_true_clock() {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    let settings = Settings { timing: Timing::Cyc, ..Settings::default() };
    let mut log = Vec::new();
    let walk = &Walk::through(&image, settings, 7, 4_000, |branch| log.push(branch));
    let Walk { trace, psbs, end, .. } = walk;
    let (_dir, file) =
        &written(&PtFile { image: &image, settings, trace, psbs, end: *end }.stream());
    let mut list = rep();
    list.args(["script", "--itrace=b", "-F", "time,ip,addr", "--ns"]).arg(file);
    let check = check(&mut list, |each| log.into_iter().for_each(each)).unwrap();
    assert!(check.differing == 0 && is_within_a_period(&check), "{check:?}");
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

/// Of traces made here, and of those of real processors in the corpus.
#[test]
fn packets_are_those_of_perf() {
    if !needs::commands("perf") {
        return;
    }
    let base = Settings::default();
    let made = [
        Settings { timing: Timing::Mtc, fault_every: 50, psb_every: 300, ..base },
        Settings { timing: Timing::Cyc, has_long_outcomes: true, ..base },
    ];
    let made: Vec<Recording> = made.into_iter().filter_map(|way| recorded(way, 2_000)).collect();
    let mut files: Vec<PathBuf> = made.iter().map(|recording| recording.file.clone()).collect();
    if let Some(folder) = needs::corpus() {
        let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.extend(all.filter(|file| file.to_string_lossy().contains("intel_pt")));
    }
    for file in &files {
        let args = ["dump", "--packets", "--type", "AUXTRACE"];
        let ours = described(run(rep().args(args).arg(file)).expect(0).text());
        assert!(ours.len() > 500, "{}: {} packets", file.display(), ours.len());
        for perf in versions() {
            let perfs = run(version(&perf).args(["script", "-D", "-i"]).arg(file)).expect(0);
            assert_equal(&ours, &described(perfs.text()));
        }
    }
}

/// Returns offsets and meanings of packets but padding, which perf shows as a part of the packet before.
fn described(dump: &str) -> Vec<String> {
    let is_byte = |word: &&&str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
    let described = packets(dump).map(|(at, words)| {
        let bytes = words.iter().take_while(is_byte).count();
        format!("{at} {}", words[bytes..].join(" "))
    });
    described.filter(|packet| !packet.ends_with(" PAD")).collect()
}

/// Returns the addresses that scripts print in each line: perf has names behind those of callchains,
/// and more flags of branches. Some versions print offsets in the file, at which `image` is mapped.
fn addresses(text: &str, image: &Image) -> Vec<String> {
    let of_word = |word: &str| {
        if word.starts_with("0x") {
            return word.split('/').take(2).collect::<Vec<_>>().join(" => ");
        }
        let printed = u64::from_str_radix(word, 16).unwrap();
        let mapped = if printed >> 32 == 0 { image.address - image.offset } else { 0 };
        format!("{:x}", printed + mapped)
    };
    let of_line = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().enumerate();
        words
            .filter(|(at, word)| *at == 0 || word.starts_with("0x"))
            .map(|(_, w)| of_word(w))
            .collect()
    };
    text.lines().map(of_line).map(|words| words.join(" ")).collect()
}

#[test]
fn callchains_and_last_branches_are_those_of_perf() {
    let base = Settings::default();
    let chosen = [
        (Settings { fault_every: 50, ..base }, "i77ig"),
        (Settings { timing: Timing::Mtc, psb_every: 300, ..base }, "i300ig3l"),
        (Settings { defers_targets: true, fault_every: 1000, ..base }, "bi500igl7"),
        (Settings { timing: Timing::Cyc, fault_every: 50, ..base }, "y9igl4"),
    ];
    for (settings, itrace) in chosen {
        let Some(Recording { file, image, .. }) = &recorded(settings, 20_000) else { return };
        let itrace = format!("--itrace={itrace}");
        let fields = if itrace.contains('l') { "ip,brstack" } else { "ip" };
        let args = ["script", &itrace, "-F", fields];
        let ours = addresses(run(rep().args(args).arg(file)).expect(0).text(), image);
        assert!(ours.len() > 500, "{}", ours.len());
        if needs::commands("perf") {
            // 6.1 does not know `y`.
            for perf in versions().into_iter().skip(itrace.contains('y').into()) {
                let mut perf = version(&perf);
                let perfs = perf.args(args).arg("--no-inline").arg("-i").arg(file);
                let perfs = addresses(run(perfs).expect(0).text(), image);
                let first = ours.iter().zip(&perfs).position(|(ours, perfs)| ours != perfs);
                assert_eq!(first.map(|at| (&ours[at], &perfs[at])), None, "{itrace}");
                assert_eq!(ours.len(), perfs.len());
            }
        }
    }
}

#[test]
fn callchains_go_on_through_all_parts() {
    let settings = Settings { fault_every: 500, ..Settings::default() };
    let Some(Recording { file, walk, image, .. }) = &recorded(settings, 300_000) else { return };
    assert!(walk.trace.len() > 256 << 10, "one part only");
    let args = ["script", "--itrace=i5000ig64l64", "-F", "ip,brstack"];
    let listed = |threads| {
        let mut command = rep();
        command.args(args).arg(file).env("RAYON_NUM_THREADS", threads);
        run(&mut command).expect(0).text().to_owned()
    };
    let ours = listed("1");
    assert_eq!(ours, listed("3"));
    if needs::commands("perf") {
        let mut perf = recrep_tests::perf::perf();
        let perfs = perf.args(args).arg("--no-inline").arg("-i").arg(file);
        let perfs = addresses(run(perfs).expect(0).text(), image);
        let ours = addresses(&ours, image);
        let first = ours.iter().zip(&perfs).position(|(ours, perfs)| ours != perfs);
        assert_eq!(first.map(|at| (&ours[at], &perfs[at])), None);
        assert_eq!(ours.len(), perfs.len());
    }
    // Reports have them without more ado, and names: what was mapped last, without times.
    let children = json(&["--itrace=i5000ig", "--children", "-s", "symbol"], file);
    let rows = children["events"][1]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["samples"] == 0), "callers that are no samples themselves");
    let folded = run(rep().args(["--itrace=i5000ig", "--format", "folded"]).arg(file)).expect(0);
    let named = folded.text().lines().filter(|line| line.contains("libc_message;__fortify_fail"));
    assert!(named.count() > 10, "{}", folded.text());
    assert!(!folded.text().contains("[callers unknown]"), "{}", folded.text());
    let pairs = json(&["--itrace=i5000il", "-b", "-s", "symbol_from,symbol_to"], file);
    assert!(pairs["events"][1]["rows"].as_array().unwrap().len() > 100);
}

#[test]
fn the_first_samples_are_left_out() {
    let settings = Settings { timing: Timing::Mtc, fault_every: 100, ..Settings::default() };
    let Some(Recording { file, .. }) = &recorded(settings, 2_500) else { return };
    let listed = |letters: &str, command: &mut Command| {
        let args = ["script", letters, "-F", "ip,time", "--ns"];
        run(command.args(args).arg(file)).expect(0).text().to_owned()
    };
    for (letters, skipped) in [("--itrace=i7ib", 999), ("--itrace=bc", 40)] {
        let all = listed(letters, &mut rep());
        let ours = listed(&format!("{letters}s{skipped}"), &mut rep());
        let rest: Vec<&str> = all.lines().skip(skipped).collect();
        assert!(rest.len() > 100 && rest == ours.lines().collect::<Vec<_>>(), "{letters}");
        let counted = samples(&json(&[&format!("{letters}s{skipped}"), "-s", "comm"], file));
        assert_eq!(counted.values().sum::<u64>(), rest.len() as u64, "{letters}");
    }
    let none = run(rep().args(["script", "--itrace=bs9999999"]).arg(file)).expect(1);
    assert!(none.stderr.contains("no samples"), "{}", none.stderr);
    if needs::commands("perf") {
        for perf in versions() {
            let args = ["script", "--itrace=i7ibs999", "-F", "ip"];
            let ours = lines(rep().args(args).arg(file));
            assert_equal(&ours, &lines(version(&perf).args(args).arg("-i").arg(file)));
        }
    }
}
