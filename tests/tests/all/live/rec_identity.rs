//! Proofs that a file is the one that was recorded: in each kind of recording there are build IDs,
//! with their CPU modes, device and inode of mappings, and the features that tell of the machine.
//! Every version of perf reads them without a warning.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use recrep_format::abi::CpuMode;
use recrep_format::build_id::BuildId;
use recrep_format::feature::{BuildIdEvent, BuildIds};
use recrep_format::read::{File, Mode};
use recrep_format::record::{Body, MmapIdentity};
use recrep_tests::needs;
use recrep_tests::perf::{perf, recorder, version, versions};
use recrep_tests::programs::{programs, rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;

/// Features that files and streams alike must have, as perf prints them.
const TOLD: [&str; 11] = [
    "hostname",
    "os release",
    "perf version",
    "arch",
    "nrcpus online",
    "nrcpus avail",
    "cpudesc",
    "total memory",
    "cmdline",
    "time of first sample",
    "time of last sample",
];

const PACKED_STREAM: &str = "-o - -z";

/// A recording by these arguments; the first file of several.
#[track_caller]
fn recorded(dir: &Path, args: &str) -> PathBuf {
    let stream = args.contains("-o -");
    let file = dir.join("x.data");
    let to = if stream { Path::new("-") } else { &file };
    let command = workload("hot --ms 100 --threads 2");
    let outcome = record(to, &format!("-e cpu-clock {}", args.replace("-o -", "")), &command);
    if stream {
        fs::write(&file, &outcome.stdout).unwrap();
    }
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.swap_remove(0)
}

/// The build IDs of a file's table or of a stream's records, by mode and name.
fn build_ids(file: &File<'_>) -> BTreeMap<(u16, String), BuildId> {
    let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let table = file.feature::<BuildIds<'_>>().transpose().unwrap();
    let of_entry = |entry: &BuildIdEvent<'_>| {
        ((entry.cpu_mode().bits(), name(entry.name())), entry.build_id().unwrap())
    };
    let table: Vec<_> = table.iter().flat_map(|table| table.entries.iter().map(of_entry)).collect();
    let records = file.records().filter_map(|raw| {
        let raw = raw.unwrap();
        let Ok(Body::HeaderBuildId(entry)) = file.attrs.decode(&raw).map(|record| record.body)
        else {
            return None;
        };
        let id = BuildId::new(&entry.raw[..usize::from(entry.raw[20])]).unwrap();
        Some(((raw.header.cpu_mode().bits(), name(entry.filename.as_bytes())), id))
    });
    let records: Vec<_> = records.collect();
    assert!(table.is_empty() || records.is_empty());
    let count = table.len() + records.len();
    let all: BTreeMap<_, _> = table.into_iter().chain(records).collect();
    assert_eq!(all.len(), count, "each is told once");
    all
}

/// Returns the identities in the records of the workload's mappings: the inode, or else the build
/// ID. Which device a file system says that it is on may differ (overlayfs, btrfs).
fn identities(file: &File<'_>, name: &str) -> Vec<Result<u64, String>> {
    let records = file.records().filter_map(|raw| {
        let raw = raw.unwrap();
        match file.attrs.decode(&raw).map(|record| record.body) {
            Ok(Body::Mmap2(mmap)) if mmap.filename.as_bytes() == name.as_bytes() => {
                Some(match mmap.identity {
                    MmapIdentity::Inode(inode) => Ok(inode.ino),
                    MmapIdentity::BuildId(_) => Err(mmap.identity.build_id().unwrap().to_string()),
                })
            }
            _ => None,
        }
    });
    records.collect()
}

/// Returns the build ID that perf finds: that of the running kernel, or of a file.
fn by_perf(args: &[&str]) -> String {
    run(perf().arg("buildid-list").args(args)).expect(0).text().trim().to_owned()
}

/// Returns what each version of perf says of the recording's machine, and the build IDs that it
/// lists.
#[track_caller]
fn perf_says(file: &Path, args: &str) -> Vec<[Vec<String>; 3]> {
    let questions =
        [&["report", "--header-only"][..], &["buildid-list"], &["script", "-F", "comm,ip,sym,dso"]];
    let read = |name| {
        questions.map(|question| {
            // This command of perf's leaves out the feature that unpacking needs, in its own
            // streams too.
            if question == ["buildid-list"] && args == PACKED_STREAM {
                return Vec::new();
            }
            let outcome = run(version(name).args(question).arg("-i").arg(file)).expect(0);
            assert_eq!(outcome.stderr, "", "{args}: {name:?} {question:?}");
            let mut lines: Vec<_> = outcome.text().lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        })
    };
    versions().iter().map(|name| read(name)).collect()
}

#[test]
fn every_kind_of_recording_has_proofs() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let kernel = by_perf(&["--kernel"]);
    let program = &programs().workload;
    let id_of_program = by_perf(&["-i", program.to_str().unwrap()]);
    let found = fs::metadata(program).unwrap();
    let name = program.to_str().unwrap().to_owned();
    for args in [
        "",
        "-z",
        "--overwrite",
        "--switch-output=1s",
        "-a",
        "--tail-synthesize",
        "--no-buildid-mmap",
        "-o -",
        PACKED_STREAM,
        "-o - --overwrite",
        "-o - -a",
        "-o - -a --tail-synthesize",
        "-o - --no-buildid-mmap",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = recorded(dir.path(), args);
        let bytes = fs::read(&path).unwrap();
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.mode == Mode::Pipe, args.contains("-o -"), "{args}");
        let ids = build_ids(&file);
        let id = |mode: CpuMode, name: &str| {
            ids.get(&(mode.bits(), name.to_owned())).map(ToString::to_string)
        };
        assert_eq!(
            id(CpuMode::Kernel, "[kernel.kallsyms]"),
            Some(kernel.clone()),
            "{args}: {ids:?}"
        );
        assert!(id(CpuMode::User, "[vdso]").is_some(), "{args}: {ids:?}");
        assert_eq!(id(CpuMode::User, &name), Some(id_of_program.clone()), "{args}: {ids:?}");
        if !args.contains("-z") {
            let in_mmap = !args.contains("--no-buildid-mmap");
            let identities = identities(&file, &name);
            assert!(!identities.is_empty(), "{args}");
            let expected = if in_mmap { Err(id_of_program.clone()) } else { Ok(found.ino()) };
            assert!(
                identities.iter().all(|identity| *identity == expected),
                "{args}: {identities:?}"
            );
        }
        let said = perf_says(&path, args);
        for said in &said {
            for told in TOLD {
                let line = format!("# {told} : ");
                assert_eq!(
                    said[0].iter().filter(|l| l.starts_with(&line)).count(),
                    1,
                    "{args}: {told}: {:?}",
                    said[0]
                );
            }
            let listed =
                |id: &str, end: &str| said[1].iter().any(|l| l.starts_with(id) && l.ends_with(end));
            let both = listed(&kernel, "[kernel.kallsyms]") && listed(&id_of_program, &name);
            assert!(both || args == PACKED_STREAM, "{args}: {:?}", said[1]);
            // Not each build of perf demangles names of Rust.
            let named =
                |parts: &[&str]| said[2].iter().any(|l| parts.iter().all(|part| l.contains(part)));
            assert!(named(&["workload", "burn", "hot_three_quarters"]), "{args}");
            assert!(named(&["([kernel.kallsyms])"]), "{args}");
        }
    }
}

/// A stream's reader can tell the kernel's samples before they come.
#[test]
fn the_kernel_is_identified_before_the_first_sample() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    for (args, early) in [("-o -", 1), ("-o - -a", 3)] {
        let dir = tempfile::tempdir().unwrap();
        let bytes = fs::read(recorded(dir.path(), args)).unwrap();
        let file = File::parse(&bytes).unwrap();
        let kinds: Vec<_> = file.records().map(|raw| raw.unwrap().header.kind).collect();
        let first =
            kinds.iter().position(|kind| *kind == recrep_format::abi::RecordType::SAMPLE).unwrap();
        let before = kinds[..first]
            .iter()
            .filter(|kind| **kind == recrep_format::abi::RecordType::BUILD_ID)
            .count();
        assert!(before >= early, "{args}: {before} of {} records", kinds.len());
    }
}

#[test]
fn without_build_ids_there_are_none() {
    if !needs::perf_events() {
        return;
    }
    for args in ["-B", "-o - -B", "--switch-output=1s -B"] {
        let dir = tempfile::tempdir().unwrap();
        let bytes = fs::read(recorded(dir.path(), args)).unwrap();
        assert_eq!(build_ids(&File::parse(&bytes).unwrap()), BTreeMap::new(), "{args}");
    }
}

/// Linux marks the inodes of another recording at the same time as build IDs, too.
#[test]
fn a_recording_beside_one_with_build_ids_has_its_inodes() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner.data");
    let mut perf = recorder();
    perf.args(["-B", "-N", "-e", "cpu-clock", "-o"])
        .arg(&inner)
        .arg("--")
        .args(workload("hot --ms 200"));
    let words = std::iter::once(perf.get_program()).chain(perf.get_args());
    let command: Vec<_> = words.map(|word| word.to_str().unwrap().to_owned()).collect();
    record(&dir.path().join("outer.data"), "-a -e cpu-clock", &command);
    let bytes = fs::read(&inner).unwrap();
    let program = &programs().workload;
    let found = identities(&File::parse(&bytes).unwrap(), program.to_str().unwrap());
    assert!(!found.is_empty());
    let inode = Ok(fs::metadata(program).unwrap().ino());
    assert!(found.iter().all(|identity| *identity == inode), "{found:?} {inode:?}");
    let answer = run(rep().args(["--sort", "sym"]).arg(&inner)).expect(0);
    assert!(answer.text().contains("hot_three_quarters"), "{} {}", answer.text(), answer.stderr);
}
