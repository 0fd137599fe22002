//! How rings are drained and `/proc` is read: threads, and what is asked of them.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use super::common::{Recording, can_record, can_record_system, last_line, place, rec, run, said, skipped, wait_until};
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

/// The niceness of a process's first thread.
fn niceness(pid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(16).unwrap().parse().unwrap()
}

#[test]
fn niceness_is_for_draining_only() {
    if !can_record_system() {
        return;
    }
    let usual = niceness(std::process::id());
    let asked = usual + 1;
    let mut rec = rec();
    let rec = rec.args(["-q", "-a", "-e", "cpu-clock", "-o", "-", &format!("--nice={asked}"), "--", "cat"]);
    let mut child = rec.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stream = child.stdout.take().unwrap();
    // What there was before does not fit into this, so that rec waits before the first round.
    rustix::pipe::fcntl_setpipe_size(&stream, 4096).unwrap();
    wait_until(|| rustix::io::ioctl_fionread(&stream).unwrap() > 0);
    for _ in 0..10 {
        assert_eq!(niceness(child.id()), usual, "while /proc is read");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let reader = std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()).unwrap());
    wait_until(|| niceness(child.id()) == asked);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(reader.join().unwrap() > 4096);
}

#[test]
fn niceness_that_this_user_may_not_have_is_refused_before_anything_runs() {
    if !rustix::process::geteuid().is_root() || !can_record() {
        return skipped("needs root, to become somebody else");
    }
    let (dir, path) = place();
    let started = dir.path().join("started");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = dir.path().join("rec");
    std::fs::copy(env!("CARGO_BIN_EXE_rec"), &program).unwrap();
    let mut rec = std::process::Command::new(&program);
    let rec = rec.arg("-o").arg(&path).args(["-e", "cpu-clock", "--nice=-20", "touch"]).arg(&started);
    let output = rec.uid(65534).gid(65534).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("cannot run with niceness -20 (--nice; less than"), "{}", said(&output));
    assert!(!started.exists() && !path.exists());
}
