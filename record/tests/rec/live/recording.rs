//! Real recordings, read back with the format crate.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use recrep_console::units;

use crate::common::{
    Recording, Told, can_record, can_record_system, last_line, nobody_records_user_space, place,
    rec, run, run_as_nobody, said, skipped, wait_until,
};
use recrep_format::abi::{AttrFlags, RecordType, SampleType, misc};
use recrep_format::feature::{BuildIds, Cmdline, EventDesc, Hostname, SampleTime};
use recrep_format::record::{Body, SampleId};

/// A shell that is busy for a while, in itself and in a child.
const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; (i=0; while [ $i -lt 60000 \
                    ]; do i=$((i+1)); done); true";

#[test]
fn every_stream_describes_itself() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    assert!(run(&path, &["--", "true"]).status.success());
    let recording = Recording::read(&path);
    let file = recording.file();
    for entry in file.attrs.entries() {
        let always = SampleType::IDENTIFIER | SampleType::TID | SampleType::TIME | SampleType::CPU;
        assert!(entry.attr.sample_type.contains(always));
        assert!(entry.attr.flags.contains(AttrFlags::SAMPLE_ID_ALL));
        assert!(!entry.ids.is_empty());
    }
    assert!(file.feature::<Hostname<'_>>().is_some());
    assert!(file.feature::<EventDesc<'_>>().is_some());
    assert!(!file.feature::<BuildIds<'_>>().unwrap().unwrap().entries.is_empty());
    let cmdline = file.feature::<Cmdline<'_>>().unwrap().unwrap();
    assert_eq!(cmdline.args.0.last().unwrap().to_text(), "true");
}

#[test]
fn the_last_line_is_what_the_file_has() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    let output = run(&path, &["-e", "cpu-clock", "-F", "10000", "-g", "--", "sh", "-c", BUSY]);
    let recording = Recording::read(&path);
    let Told { samples, size, lost_events, lost_samples } = last_line(&output);
    assert!(samples > 20, "{}", said(&output));
    assert_eq!(samples, recording.count(RecordType::SAMPLE) as u64);
    assert_eq!(size, units::bytes(std::fs::metadata(&path).unwrap().len()));
    assert_eq!((lost_events, lost_samples), recording.lost());
}

#[test]
fn the_command_is_there_from_its_exec_on_with_its_children() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    assert!(
        run(&path, &["-e", "cpu-clock", "-F", "5000", "--", "sh", "-c", BUSY]).status.success()
    );
    let recording = Recording::read(&path);
    let records = recording.records();
    let exec = records.iter().find_map(|r| match &r.body {
        Body::Comm(comm) if r.misc & misc::COMM_EXEC != 0 => {
            Some((comm.pid, comm.comm.to_text().into_owned()))
        }
        _ => None,
    });
    let (pid, comm) = exec.unwrap();
    assert_eq!(comm, "sh");
    let pids: std::collections::BTreeSet<u32> =
        recording.sampled().iter().map(|(pid, _)| *pid).collect();
    assert!(pids.contains(&pid) && pids.len() == 2, "the shell {pid} and its child: {pids:?}");
    assert!(records.iter().any(|r| matches!(&r.body, Body::Fork(f) if f.ppid == pid)));
    assert!(records.iter().any(|r| matches!(&r.body, Body::Mmap2(m) if m.pid == pid)));
    assert_eq!(recording.count(RecordType::FINISHED_INIT), 1);
}

#[test]
fn sample_times_are_those_of_the_samples() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    assert!(
        run(&path, &["-e", "cpu-clock", "-F", "5000", "--", "sh", "-c", BUSY]).status.success()
    );
    let recording = Recording::read(&path);
    let file = recording.file();
    let raw: Vec<_> = file.records().map(Result::unwrap).collect();
    let times: Vec<u64> = raw.iter().filter_map(|raw| file.attrs.sample(*raw)?.1.time()).collect();
    let feature = file.feature::<SampleTime>().unwrap().unwrap();
    assert_eq!(
        (Some(&feature.first), Some(&feature.last)),
        (times.iter().min(), times.iter().max())
    );
}

#[test]
fn page_faults_are_exact_and_have_addresses() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    // A buffer of 64 pages that dd writes to: a fault for each.
    let output = run(
        &path,
        &[
            "-e",
            "page-faults",
            "-c",
            "1",
            "-d",
            "--",
            "dd",
            "if=/dev/zero",
            "of=/dev/null",
            "bs=256K",
            "count=1",
        ],
    );
    assert!(output.status.success());
    let recording = Recording::read(&path);
    let file = recording.file();
    let raw: Vec<_> = file.records().map(Result::unwrap).collect();
    let addresses: Vec<_> =
        raw.iter().filter_map(|raw| file.attrs.sample(*raw)?.1.addr()).collect();
    assert_eq!(addresses.len() as u64, last_line(&output).samples);
    assert!(addresses.iter().filter(|a| **a != 0).count() >= 64, "{} faults", addresses.len());
    assert_eq!(file.attrs.entries()[0].attr.frequency(), None);
}

#[test]
fn two_events_have_their_own_samples() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    assert!(run(&path, &["-e", "cpu-clock,page-faults", "--", "sh", "-c", BUSY]).status.success());
    let recording = Recording::read(&path);
    let file = recording.file();
    let raw: Vec<_> = file.records().map(Result::unwrap).collect();
    let mut by_event = [0; 2];
    raw.iter()
        .filter_map(|raw| file.attrs.sample(*raw))
        .for_each(|(event, _)| by_event[event.0] += 1);
    assert!(by_event.iter().all(|n| *n > 0), "{by_event:?}");
    let names: Vec<_> = file.attrs.entries().iter().map(|e| e.name.as_deref().unwrap()).collect();
    assert_eq!(
        names.iter().map(|n| n.split(':').next().unwrap()).collect::<Vec<_>>(),
        ["cpu-clock", "page-faults"]
    );
}

#[test]
fn losses_are_in_the_file_and_on_the_last_line() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    // Rings of one page, stopped readers: the workload stops rec for a moment while it goes on
    // itself.
    let script = format!("kill -STOP $PPID; {BUSY}; kill -CONT $PPID; {BUSY}");
    let output =
        run(&path, &["-e", "cpu-clock", "-m", "1", "-F", "20000", "-g", "--", "sh", "-c", &script]);
    assert!(output.status.success());
    let recording = Recording::read(&path);
    let (events, samples) = recording.lost();
    let told = last_line(&output);
    assert!(events > 0 && samples > 0, "{events} events, {samples} samples: {}", said(&output));
    assert_eq!((events, samples), (told.lost_events, told.lost_samples));
    let records = recording.records();
    let last = records.iter().rev().find(|r| matches!(r.body, Body::LostSamples(_))).unwrap();
    let counter = |t: &SampleId| (t.event_id(), t.cpu.unwrap()[0]);
    let mut samples = records.iter().filter_map(|r| match &r.body {
        Body::Sample(fields) => Some(counter(&fields.as_sample_id())),
        _ => None,
    });
    assert!(
        samples.any(|c| c == counter(&last.trailer)),
        "LOST_SAMPLES says of which counter: {:?}",
        last.trailer
    );
}

#[test]
fn a_signal_ends_the_recording_and_the_file_is_whole() {
    if !can_record() {
        return;
    }
    for (signal, status) in [("-INT", 143), ("-TERM", 143)] {
        let (dir, path) = place();
        let started = dir.path().join("started");
        let mut rec = rec();
        let rec = rec.arg("-o").arg(&path).args([
            "-e",
            "cpu-clock",
            "--",
            "sh",
            "-c",
            ": > \"$0\"; exec sleep 100",
        ]);
        let child = rec.arg(&started).stderr(Stdio::piped()).spawn().unwrap();
        wait_until(|| started.exists());
        assert!(
            std::process::Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        // The command was asked to end, and is gone.
        assert_eq!(output.status.code(), Some(status), "{signal}: {}", said(&output));
        assert!(Recording::read(&path).file().feature::<EventDesc<'_>>().is_some());
    }
}

#[test]
fn a_signal_before_the_command_is_started_leaves_it_alone() {
    if !can_record() {
        return;
    }
    let (dir, path) = place();
    std::fs::write(&path, "before").unwrap();
    let started = dir.path().join("started");
    // The signal waits until rec takes it, in the beginning; where it is ignored, as in background
    // jobs, bash would drop it.
    let script = "kill -INT $$; exec \"$@\"";
    let mut rec = std::process::Command::new("env");
    rec.args([
        "--default-signal=INT",
        "--block-signal=INT",
        "bash",
        "-c",
        script,
        "-",
        env!("CARGO_BIN_EXE_rec"),
    ]);
    let output =
        rec.arg("-o").arg(&path).args(["-e", "cpu-clock", "touch"]).arg(&started).output().unwrap();
    if said(&output).contains("unrecognized option") || output.status.code() == Some(127) {
        return skipped("needs bash, and env of coreutils 8.31");
    }
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(
        said(&output).contains("interrupted before the command was started"),
        "{}",
        said(&output)
    );
    assert!(!started.exists());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
}

#[test]
fn attached_to_a_process_until_it_ends() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    let mut sh = std::process::Command::new("sh");
    let mut target =
        sh.args(["-c", &format!("read line; {BUSY}")]).stdin(Stdio::piped()).spawn().unwrap();
    let pid = target.id().to_string();
    let mut rec = rec();
    let rec = rec.arg("-o").arg(&path).args(["-e", "cpu-clock", "-F", "5000", "-p", &pid]);
    let recorder = rec.stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| path.exists() && std::fs::metadata(&path).unwrap().len() > 500);
    std::thread::sleep(Duration::from_millis(100));
    target.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(target.wait().unwrap().success());
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let recording = Recording::read(&path);
    let sampled = recording.sampled();
    assert!(sampled.iter().any(|(p, _)| p.to_string() == pid), "{}", said(&output));
    assert!(
        sampled.iter().any(|(p, _)| p.to_string() != pid),
        "children that were born meanwhile are in"
    );
    let comm = recording
        .records()
        .iter()
        .any(|r| matches!(&r.body, Body::Comm(c) if c.pid.to_string() == pid));
    assert!(comm, "its name was synthesized");
}

#[test]
fn the_whole_system_with_tasks_that_were_there() {
    if !can_record_system() {
        return;
    }
    let (_dir, path) = place();
    let output = run(&path, &["-a", "-e", "cpu-clock", "--", "sh", "-c", BUSY]);
    assert!(output.status.success());
    let recording = Recording::read(&path);
    let records = recording.records();
    let me = std::process::id();
    assert!(records.iter().any(|r| matches!(&r.body, Body::Comm(c) if c.pid == me)));
    assert!(records.iter().any(|r| matches!(&r.body, Body::Mmap2(m) if m.pid == me)));
    let events: Vec<_> =
        recording.file().attrs.entries().iter().map(|e| e.name.clone().unwrap()).collect();
    assert_eq!(events, ["cpu-clock", "dummy:u"]);
}

#[test]
fn a_killed_rec_leaves_what_it_wrote() {
    if !can_record() {
        return;
    }
    let (_dir, path) = place();
    let mut rec = rec();
    // One-page rings, so that rounds come soon.
    let rec = rec.arg("-o").arg(&path).args([
        "-e",
        "cpu-clock",
        "-m",
        "1",
        "-F",
        "20000",
        "-g",
        "--",
        "sh",
        "-c",
        "while :; do :; done",
    ]);
    let mut child = rec.stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| std::fs::metadata(&path).is_ok_and(|m| m.len() > 20_000));
    child.kill().unwrap();
    child.wait().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = recrep_format::read::File::parse(&bytes).unwrap();
    let samples =
        file.records().filter_map(Result::ok).filter(|r| r.header.kind == RecordType::SAMPLE);
    assert!(samples.count() > 50);
    // The endless loop lost its parent, not its life.
    let pid = file
        .records()
        .filter_map(Result::ok)
        .find_map(|raw| file.attrs.sample(raw)?.1.pid())
        .unwrap();
    std::process::Command::new("kill").arg(pid.to_string()).status().unwrap();
}

#[test]
fn without_privilege_user_space_only_with_a_line_that_says_so() {
    if !nobody_records_user_space() {
        return;
    }
    let (_dir, path) = place();
    let output = run_as_nobody(&path, &["--", "sh", "-c", BUSY]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("sampling user space only (c"), "{}", said(&output));
    let recording = Recording::read(&path);
    let file = recording.file();
    assert!(file.attrs.entries()[0].attr.flags.contains(AttrFlags::EXCLUDE_KERNEL));
    assert!(file.attrs.entries()[0].name.as_deref().unwrap().ends_with(":u"));
    assert!(recording.count(RecordType::SAMPLE) > 5);
    let all = run_as_nobody(&path, &["-a", "--", "true"]);
    assert_eq!(all.status.code(), Some(125));
    assert!(said(&all).contains("perf_event_paranoid"), "{}", said(&all));
}

/// Two threads, of which the first ends at once, by itself (`SYS_exit`): its process goes on
/// without it.
const WITHOUT_FIRST_THREAD: &str = "\
import ctypes, platform, threading, time
def busy():
    end = time.time() + 1.5
    while time.time() < end: pass
threading.Thread(target=busy).start()
print(flush=True)
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
";

#[test]
fn a_process_whose_first_thread_ended_has_its_mappings() {
    let python = std::process::Command::new("python3")
        .args(["-c", WITHOUT_FIRST_THREAD])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = python else { return skipped("there is no python3") };
    if !can_record() {
        return;
    }
    let stat = format!("/proc/{}/stat", child.id());
    wait_until(|| std::fs::read_to_string(&stat).unwrap().contains(") Z "));
    let (_dir, path) = place();
    let pid = child.id();
    assert!(run(&path, &["-e", "cpu-clock", "-p", &pid.to_string()]).status.success());
    child.wait().unwrap();
    let recording = Recording::read(&path);
    let mapped = recording
        .records()
        .iter()
        .filter(|r| matches!(&r.body, Body::Mmap2(m) if m.pid == pid))
        .count();
    assert!(mapped > 3 && recording.count(RecordType::SAMPLE) > 0, "{mapped} mappings");
}
