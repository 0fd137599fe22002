//! Draining of rings and reading of `/proc`: threads, and what is asked of them.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use recrep_console::units;
use recrep_format::abi::{RecordType, misc};
use recrep_format::feature::DirFormat;
use recrep_format::read::{File, Frames, Unpacked};

use crate::common::{
    Recording, Told, can_record, can_record_system, last_line, place, rec, run, run_as_nobody,
    said, skipped, wait_until,
};

/// Two shells that are busy.
const BUSY: &str = "b() { i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; }; b & b; wait";

/// Counts samples, and holds the promise of FINISHED_ROUND: no sample after a mark is older than
/// one before the mark before it.
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

/// Counts the samples and the bytes of a directory; each ring's file has its samples in order of
/// time, and no rounds.
fn samples_in_order(dir: &Path) -> (u64, u64) {
    let mut files: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let bytes: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let (data, rings) = bytes.split_first().unwrap();
    assert!(
        rings.len() > 1 && files[0].ends_with("data") && files[1].ends_with("data.0"),
        "{files:?}"
    );
    let file = File::parse(data).unwrap();
    let mut streams = vec![file.unpacked()];
    streams.extend(rings.iter().map(|ring| Unpacked::of_frames(Frames::new(ring, 0, file.endian))));
    let mut samples = 0;
    for stream in &streams {
        let mut newest = 0;
        for raw in stream.records().map(Result::unwrap) {
            assert_ne!(raw.header.kind, RecordType::FINISHED_ROUND);
            // A record of another type may have got its time before the interrupt that took a
            // sample.
            if raw.header.kind != RecordType::SAMPLE {
                continue;
            }
            let time = file.attrs.time_of(&raw).unwrap();
            assert!(time >= newest, "a sample of {time} after one of {newest}");
            newest = time;
            samples += 1;
        }
    }
    assert_eq!(file.feature::<DirFormat>().unwrap().unwrap().version, 1);
    (samples, bytes.iter().map(|bytes| bytes.len() as u64).sum())
}

#[test]
fn threads_leave_a_directory() {
    if !can_record_system() {
        return;
    }
    for words in [
        &["--threads"][..],
        &["--threads=numa", "-m", "16"],
        &["--threads=0/0", "-z"],
        &["--threads", "--mmap-flush=16K"],
        &["--threads=core", "-D", "20"],
        &["--threads", "-r", "1"],
    ] {
        let (_dir, path) = place();
        let asked = ["-e", "cpu-clock", "-F", "10000", "-a"];
        let output = run(&path, &[&asked, words, &["--", "sh", "-c", BUSY]].concat());
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        let (samples, length) = samples_in_order(&path);
        let told = last_line(&output);
        assert_eq!((told.samples, told.size), (samples, units::bytes(length)), "{words:?}");
        assert!(samples > 100, "{words:?}: {samples}");
    }
}

#[test]
fn threads_leave_a_stream_like_any_other() {
    if !can_record_system() {
        return;
    }
    for words in [&["--threads"][..], &["--threads", "-m", "16"]] {
        let asked = ["-e", "cpu-clock", "-F", "10000", "-a"];
        let words = [&asked, words, &["--", "sh", "-c", BUSY]].concat();
        let (_dir, path) = place();
        let output = run(Path::new("-"), &words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        std::fs::write(&path, &output.stdout).unwrap();
        let samples = samples_in_true_rounds(&Recording::read(&path));
        let told = last_line(&output);
        let size = units::bytes(output.stdout.len() as u64);
        assert_eq!((told.samples, told.size), (samples as u64, size), "{words:?}");
        assert!(samples > 100, "{words:?}: {samples}");
    }
}

/// Nobody reads while the command runs: the pipe holds 64 KiB, and the rings 64 KiB each, a
/// fraction of what is recorded in half a second, however fast the machine is.
#[test]
fn a_slow_reader_costs_nothing_while_the_queue_has_room() {
    if !can_record_system() {
        return;
    }
    let busy = "timeout 0.5 sh -c 'while :; do :; done'";
    let record = |more: &[&str]| {
        let asked = ["-o", "-", "-e", "cpu-clock", "-F", "20000", "-g", "-m", "16", "-a"];
        let mut rec = rec();
        let (dir, path) = place();
        let [started, ended] = ["started", "ended"].map(|name| dir.path().join(name));
        let script = format!(": > \"$0\"; {busy}; : > \"$1\"; sleep 0.1");
        rec.args(asked).args(more).args(["--", "sh", "-c", &script]).args([&started, &ended]);
        let mut child = rec.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let (mut bytes, mut some) = (Vec::new(), [0; 4096]);
            // What is written before the command starts may be more than the queue holds.
            while !started.exists() {
                let length = stdout.read(&mut some).unwrap();
                bytes.extend_from_slice(&some[..length]);
            }
            wait_until(|| ended.exists());
            stdout.read_to_end(&mut bytes).map(|_| bytes).unwrap()
        });
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        std::fs::write(&path, reader.join().unwrap()).unwrap();
        let samples = samples_in_true_rounds(&Recording::read(&path)) as u64;
        assert_eq!(last_line(&output).samples, samples);
        output
    };
    for more in [&[][..], &["--threads"]] {
        let output = record(more);
        let Told { samples, lost_samples: lost, .. } = last_line(&output);
        // A machine that is busy with other tests may be too late for rings that are so small.
        assert!(samples > 4 * lost && !said(&output).contains("--queue-size"), "{}", said(&output));
    }
    let output = record(&["--queue-size=64K"]);
    let Told { samples, lost_samples: lost, .. } = last_line(&output);
    assert!(
        lost > 0 && samples > 0 && said(&output).contains("the queue of records to write was full"),
        "{}",
        said(&output)
    );
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
    let asked = [
        "--threads",
        "-a",
        "-e",
        "cpu-clock",
        "-F",
        "10000",
        "--switch-output=64K",
        "--switch-max-files=3",
    ];
    let long = format!("{BUSY}; {BUSY}; {BUSY}; {BUSY}");
    assert!(run(&path, &[&asked[..], &["--", "sh", "-c", &long]].concat()).status.success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    let (_dir, path) = place();
    let output = run(
        &path,
        &[
            "--threads",
            "-a",
            "-e",
            "cpu-clock",
            "-F",
            "10000",
            "--max-size=64K",
            "--",
            "sleep",
            "60",
        ],
    );
    assert!(said(&output).contains("stopped at"), "{}", said(&output));
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
    let mmaps =
        file.records().map(Result::unwrap).filter(|raw| raw.header.kind == RecordType::MMAP2);
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
    let rec = rec.args([
        "-q",
        "-a",
        "-e",
        "cpu-clock",
        "-o",
        "-",
        &format!("--nice={asked}"),
        "--",
        "cat",
    ]);
    let mut child = rec.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stream = child.stdout.take().unwrap();
    // What there was before does not fit into this, so that rec waits before the first round.
    rustix::pipe::fcntl_setpipe_size(&stream, 4096).unwrap();
    wait_until(|| rustix::io::ioctl_fionread(&stream).unwrap() > 0);
    for _ in 0..10 {
        assert_eq!(niceness(child.id()), usual, "while /proc is read");
        std::thread::sleep(Duration::from_millis(5));
    }
    let reader =
        std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()).unwrap());
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
    let words = ["-e", "cpu-clock", "--nice=-20", "touch", started.to_str().unwrap()];
    let output = run_as_nobody(&path, &words);
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(
        said(&output).contains("cannot run with niceness -20 (--nice; less than"),
        "{}",
        said(&output)
    );
    assert!(!started.exists() && !path.exists());
}
