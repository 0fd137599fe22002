//! A whole file, read and written again: perf says the same of both. Where both have the same bytes
//! it is not asked.
//!
//! What perf tells of the container itself is left out: where data and features lie, and when the
//! file was written. Its words on standard error are compared where nothing is wrong with the
//! original; in a copy nothing is.

use std::io::Cursor;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use recrep_fixtures::manifest::{Case, Container, Fate, cases};
use recrep_fixtures::recorded;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::read::File;
use recrep_format::write::copy;
use recrep_tests::campaign::originals;
use recrep_tests::needs;
use recrep_tests::perf::{self, perf};
use recrep_tests::programs::workload;
use recrep_tests::record::record;
use recrep_tests::run::run;

/// Questions to perf.
const QUESTIONS: [&[&str]; 4] = [
    &["report", "--stats"],
    &["script", "--no-inline", "--no-itrace", "--show-task-events", "--show-mmap-events"],
    &["evlist", "-v"],
    &["report", "--header-only", "-I"],
];

/// perf's status, output and complaints about the file `x.data` in `dir`.
///
/// perf takes as many bytes of a pipe's attr as its own struct has, also where the attr is shorter.
/// `evlist -v` then prints what its heap held before, pointers among it. The C library fills new
/// memory, so that this is the same in each run.
fn answer(dir: &Path, question: &[&str]) -> (i32, String, String) {
    let mut perf = perf();
    let outcome = run(perf
        .args(question)
        .args(["-i", "x.data"])
        .current_dir(dir)
        .env("MALLOC_PERTURB_", "1"));
    let places = ["# captured on", "# data offset", "# feat offset"];
    let text = String::from_utf8_lossy(&outcome.stdout);
    let lines = text.lines().filter(|line| !places.iter().any(|place| line.starts_with(place)));
    (outcome.code(), lines.collect::<Vec<_>>().join("\n"), outcome.stderr)
}

/// The file written again, each record that decodes through its typed form.
fn rewritten(file: &File<'_>) -> Vec<u8> {
    let mut e = Encoder::new(file.endian);
    let copied = copy(file, Cursor::new(Vec::new()), |raw| {
        e.clear();
        if let Ok(record) = file.attrs.decode(raw) {
            record.encode(&mut e).unwrap();
            assert_eq!(e.as_bytes(), raw.bytes, "{} at byte {}", raw.header.kind, raw.offset);
        }
        true
    });
    copied.unwrap().into_inner()
}

/// Compares perf's answers on the file and on its copy. Returns the number of lines that it printed
/// of the file, if the copy has other bytes, or the first difference.
fn differences(name: &str, bytes: &[u8]) -> Result<Option<usize>, String> {
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let file = File::parse(bytes).map_err(|error| format!("{name}: {error}"))?;
    let again = rewritten(&file);
    if again == bytes {
        return Ok(None);
    }
    std::fs::write(old.path().join("x.data"), bytes).unwrap();
    std::fs::write(new.path().join("x.data"), &again).unwrap();
    let mut lines = 0;
    for question in QUESTIONS {
        let (mut of_old, mut of_new) = (answer(old.path(), question), answer(new.path(), question));
        if !file.warnings.is_empty() {
            (of_old.2, of_new.2) = (String::new(), String::new());
        }
        if of_old != of_new {
            let first = of_old.1.lines().zip(of_new.1.lines()).find(|(one, other)| one != other);
            let ends = [(of_old.0, of_old.2), (of_new.0, of_new.2)];
            return Err(format!("{name}: perf {}: {first:?} {ends:?}", question.join(" ")));
        }
        lines += of_old.1.lines().count();
    }
    Ok(Some(lines))
}

/// Compares every file, two at once.
#[track_caller]
fn assert_same(files: &[(String, Vec<u8>)]) {
    let (next, same, lines) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((name, bytes)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match differences(name, bytes) {
                        Ok(None) => drop(same.fetch_add(1, Ordering::Relaxed)),
                        Ok(Some(printed)) => drop(lines.fetch_add(printed, Ordering::Relaxed)),
                        Err(difference) => wrong.lock().unwrap().push(difference),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let (same, lines) = (same.into_inner(), lines.into_inner());
    println!(
        "{same} of {} copies have the same bytes; {lines} lines of perf's about the others \
         compared",
        files.len()
    );
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn of_fixtures() {
    if !needs::perf_events() {
        return;
    }
    let plain = |container| {
        matches!(container, Container::File | Container::Pipe | Container::CompressedFile)
    };
    let mut files: Vec<_> =
        recorded::ALL.iter().map(|file| (file.name.to_owned(), file.bytes.to_vec())).collect();
    // The copy of what a killed recorder left is finished: perf reads it otherwise.
    let finished = |case: &Case| !matches!(case.fate, Fate::Killed | Fate::KilledInRecord);
    for case in cases().into_iter().filter(finished) {
        // Packed records are copied as they are, so one byte order is enough for them.
        let forms = case.forms().filter(|form| plain(form.container));
        let forms = forms.filter(|form| {
            form.container != Container::CompressedFile || form.endian == Endian::Little
        });
        files.extend(forms.map(|form| (format!("{} as {form}", case.name), case.bytes(form))));
    }
    assert_same(&files);
}

#[test]
fn of_a_corpus() {
    let Some(folder) = needs::corpus() else { return };
    if !needs::perf_events() {
        return;
    }
    let files: Vec<_> =
        originals(&folder).unwrap().into_iter().map(|(name, file)| (name, file.bytes)).collect();
    assert_same(&files);
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn of_recordings() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for args in ["-e cpu-clock -g", "-e cpu-clock,page-faults -d", "-e cpu-clock -z"] {
            for (who, recorder) in
                [("perf", perf::record as fn(&Path, &str, &[String]) -> _), ("rec", record)]
            {
                // rec does not pack.
                if who == "rec" && args.contains("-z") {
                    continue;
                }
                let file = dir.path().join(format!("{who}{args}"));
                recorder(&file, args, &workload("hot --ms 100 --threads 2"));
                files.push((format!("{who} {args}"), std::fs::read(&file).unwrap()));
            }
        }
        assert_same(&files);
    }
}
