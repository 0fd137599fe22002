//! `rep dump`: every record, where it is, whole; held against `perf report -D`, against
//! `rep report`, and against damage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use recrep_fixtures::manifest::{Fact, Fate, Number, cases};
use recrep_fixtures::recorded;
use recrep_format::abi::RecordType;
use recrep_tests::forms::is_full;
use recrep_tests::programs::rep;
use recrep_tests::run::{Outcome, run};
use recrep_tests::variants::Original;
use recrep_tests::{needs, perf};

fn dumped(file: &Path, args: &[&str]) -> Outcome {
    run(rep().arg("dump").args(args).arg(file))
}

/// The line that begins a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    /// Text before the place.
    stream: String,
    offset: u64,
    size: u64,
    kind: String,
}

fn heads(text: &str) -> Vec<Head> {
    let begins = text.lines().filter(|line| !line.starts_with(' '));
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let head = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (stream, offset) = words[0].rsplit_once(':').unwrap_or(("", words[0]));
        let size = hex(words[1].trim_matches(['[', ']']));
        let kind = words[2].trim_start_matches("PERF_RECORD_").to_owned();
        Head { stream: stream.to_owned(), offset: hex(offset), size, kind }
    };
    begins.map(head).collect()
}

/// Returns perf's dump: place, size and type of each record, in the order of their places.
fn perfs(file: &Path) -> Option<Vec<(u64, u64, String)>> {
    let outcome = run(perf::perf().args(["report", "-D", "-i"]).arg(file));
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let one = |line: &str| {
        // 0x108@NAME [0x50]: event: 69
        let (at, rest) = line.split_once('@')?;
        let (_, rest) = rest.rsplit_once(" [")?;
        let (size, kind) = rest.split_once("]: event: ")?;
        Some((hex(at)?, hex(size)?, RecordType(kind.trim().parse().ok()?).to_string()))
    };
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut all: Vec<_> = text.lines().filter_map(one).collect();
    all.sort();
    all.dedup();
    (outcome.code() == 0 && !all.is_empty()).then_some(all)
}

#[test]
fn each_record_of_a_fixture_is_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut records) = (0, 0);
    for case in cases() {
        for form in case.forms() {
            let path = dir.path().join(format!("{}.{form}", case.name));
            std::fs::write(&path, case.bytes(form)).unwrap();
            let outcome = dumped(&path, &["--no-raw"]).expect(0);
            let heads = heads(outcome.text());
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            heads.iter().for_each(|head| *counts.entry(head.kind.clone()).or_default() += 1);
            // The manifest counts what is in the containers, not them.
            counts.retain(|kind, _| !kind.starts_with("COMPRESSED"));
            let expected =
                case.counts(form).into_iter().map(|(kind, count)| (kind.to_string(), count));
            assert_eq!(counts, expected.collect(), "{}", path.display());
            files += 1;
            records += heads.len();
            if case.fate == Fate::Whole {
                facts(&(case.make)(form.endian).facts, outcome.text(), &path);
            }
        }
    }
    println!("{files} files, {records} records");
}

/// The ips that the manifest tells of are printed, in that order.
#[track_caller]
fn facts(facts: &[Fact], text: &str, path: &Path) {
    for fact in facts {
        let Fact::Numbers(Number::Ip, numbers) = fact else { continue };
        let ips = text.lines().filter_map(|line| {
            line.strip_prefix("  ")?.split(", ").find_map(|field| field.strip_prefix("ip: 0x"))
        });
        let ips: Vec<u64> = ips.map(|ip| u64::from_str_radix(ip, 16).unwrap()).collect();
        assert_eq!(&ips, numbers, "{}", path.display());
    }
}

#[test]
fn records_follow_each_other_without_a_gap_and_with_all_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    for file in recorded::ALL {
        let path = dir.path().join(file.name);
        std::fs::write(&path, file.bytes).unwrap();
        let outcome = dumped(&path, &[]).expect(0);
        let mut next: BTreeMap<&str, u64> = BTreeMap::new();
        let heads = heads(outcome.text());
        for head in &heads {
            if let Some(expected) = next.insert(&head.stream, head.offset + head.size) {
                assert_eq!(head.offset, expected, "{}", file.name);
            }
        }
        let bytes: u64 = heads.iter().map(|head| head.size).sum();
        let shown = outcome.text().lines().filter(|line| line.starts_with("  0")).map(|line| {
            line[8..56]
                .split_whitespace()
                .filter(|word| u8::from_str_radix(word, 16).is_ok())
                .count() as u64
        });
        assert_eq!(shown.sum::<u64>(), bytes, "{}", file.name);
    }
}

#[test]
fn perf_dumps_the_same_records() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for file in recorded::ALL.iter().filter(|file| !file.is_pipe) {
        let path = dir.path().join(file.name);
        std::fs::write(&path, file.bytes).unwrap();
        paths.push(path);
    }
    if let Some(folder) = needs::corpus() {
        let found = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(found.filter(|path| path.is_file()));
    }
    let (mut files, mut records) = (0, 0);
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        // perf counts the places of a pipe from elsewhere, and prints only some of what is
        // compressed.
        let comparable = recrep_format::read::File::parse(&bytes)
            .is_ok_and(|file| file.mode == recrep_format::read::Mode::File);
        if !comparable {
            continue;
        }
        let Some(theirs) = perfs(&path) else { continue };
        let outcome = dumped(&path, &["--no-raw"]).expect(0);
        let heads = heads(outcome.text());
        let compressed = heads.iter().any(|head| head.kind == "COMPRESSED");
        let ours: BTreeSet<_> =
            heads.into_iter().map(|head| (head.offset, head.size, head.kind)).collect();
        if compressed {
            continue;
        }
        let missing: Vec<_> = theirs.iter().filter(|their| !ours.contains(their)).take(3).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", path.display());
        assert_eq!(ours.len(), theirs.len(), "{}", path.display());
        files += 1;
        records += ours.len();
    }
    println!("{files} files, {records} records");
    assert!(records > 20);
}

#[test]
fn damaged_files_are_dumped_as_far_as_they_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged");
    for file in recorded::ALL {
        let original = Original::new(file.bytes.to_vec());
        for number in 0..if is_full() { 60 } else { 15 } {
            std::fs::write(&path, original.variant(number).1).unwrap();
            for view in ["dump", "info", "evlist", "script"] {
                let outcome = run(rep().arg(view).arg(&path));
                assert!([0, 1].contains(&outcome.code()), "{} {number}: {outcome:?}", file.name);
                assert!(
                    !outcome.stderr.contains("panicked"),
                    "{} {number}: {}",
                    file.name,
                    outcome.stderr
                );
            }
        }
    }
}

#[test]
fn what_is_asked_for_alone_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flat");
    std::fs::write(&path, recorded::ALL[0].bytes).unwrap();
    let all = heads(dumped(&path, &["--no-raw"]).expect(0).text());
    let some = heads(dumped(&path, &["--no-raw", "--type", "MMAP2,3"]).expect(0).text());
    let wanted: Vec<_> = all
        .iter()
        .filter(|head| ["MMAP2", "COMM"].contains(&head.kind.as_str()))
        .cloned()
        .collect();
    assert!(!wanted.is_empty());
    assert_eq!(some, wanted);
    let first = heads(dumped(&path, &["--no-raw", "--limit", "2"]).expect(0).text());
    assert_eq!(first, all[..2]);
    let wrong = dumped(&path, &["--type", "SAMPEL"]).expect(2);
    assert!(wrong.stderr.contains("SAMPEL"), "{}", wrong.stderr);
}
