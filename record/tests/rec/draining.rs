//! How rings are drained and `/proc` is read: threads, and what is asked of them.

use super::common::{Recording, can_record_system, last_line, place, run, said};
use recrep_format::abi::{RecordType, misc};

/// Two shells that are busy.
const BUSY: &str = "b() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }; b & b; wait";

/// Counts samples, and holds the promise of FINISHED_ROUND: no sample after a mark is older than one before the mark before it.
fn samples_in_true_rounds(recording: &Recording) -> usize {
    let file = recording.file();
    let (mut samples, mut oldest_allowed, mut before_mark, mut youngest) = (0, 0, 0, 0);
    for raw in file.records().map(Result::unwrap) {
        if raw.header.kind == RecordType::FINISHED_ROUND {
            (oldest_allowed, before_mark) = (before_mark, youngest);
        }
        let Some((_, sample)) = file.attrs.sample(raw) else { continue };
        let time = sample.time().unwrap();
        assert!(time >= oldest_allowed, "a sample of {time} after the round of {oldest_allowed}");
        youngest = youngest.max(time);
        samples += 1;
    }
    samples
}

#[test]
fn threads_leave_a_file_like_any_other() {
    if !can_record_system() {
        return;
    }
    for words in [
        &["--threads"][..],
        &["--threads=numa", "-m", "16"],
        &["--threads=0/0"],
        &["--threads", "--mmap-flush=16K"],
        &["--threads=core", "-D", "20"],
        &["--threads", "-r", "1"],
    ] {
        let (_dir, path) = place();
        let asked = ["-e", "cpu-clock", "-F", "10000", "-a"];
        let output = run(&path, &[&asked, words, &["--", "sh", "-c", BUSY]].concat());
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        let recording = Recording::read(&path);
        let samples = samples_in_true_rounds(&recording);
        let [told, bytes, ..] = last_line(&output);
        assert_eq!((told, bytes), (samples as u64, std::fs::metadata(&path).unwrap().len()), "{words:?}");
        assert!(samples > 100, "{words:?}: {samples}");
        assert_eq!(recording.count(RecordType::FINISHED_INIT), 1);
    }
}

#[test]
fn threads_end_with_what_they_are_attached_to_and_at_sizes() {
    if !can_record_system() {
        return;
    }
    let mut child = std::process::Command::new("sleep").arg("0.3").spawn().unwrap();
    let (_dir, path) = place();
    let output = run(&path, &["--threads", "-e", "cpu-clock", "-p", &child.id().to_string()]);
    child.wait().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let (dir, path) = place();
    let asked = ["--threads", "-a", "-e", "cpu-clock", "-F", "10000", "--switch-output=64K", "--switch-max-files=3"];
    assert!(run(&path, &[&asked[..], &["--", "sh", "-c", BUSY]].concat()).status.success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    let (_dir, path) = place();
    let output =
        run(&path, &["--threads", "-a", "-e", "cpu-clock", "-F", "10000", "--max-size=64K", "--", "sleep", "60"]);
    assert!(said(&output).contains("as --max-size says"), "{}", said(&output));
}

#[test]
fn wrong_threads_are_refused() {
    let (_dir, path) = place();
    let output = run(&path, &["--threads=0", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--threads: '0' is none of"), "{}", said(&output));
}

#[test]
fn mappings_that_took_too_long_are_marked_and_told_of() {
    if !can_record_system() {
        return;
    }
    let (_dir, path) = place();
    let output = run(&path, &["-a", "-e", "cpu-clock", "--proc-map-timeout=0", "--", "true"]);
    assert!(said(&output).contains("--proc-map-timeout MS"), "{}", said(&output));
    let recording = Recording::read(&path);
    let marked = |misc: u16| misc & misc::PROC_MAP_PARSE_TIMEOUT != 0;
    let file = recording.file();
    let mmaps = file.records().map(Result::unwrap).filter(|raw| raw.header.kind == RecordType::MMAP2);
    assert!(mmaps.filter(|raw| marked(raw.header.misc)).count() > 0);
    let output = run(&path, &["-a", "-e", "cpu-clock", "--", "true"]);
    assert!(!said(&output).contains("--proc-map-timeout"), "{}", said(&output));
}
