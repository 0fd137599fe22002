//! A disk that is full: what was written by then is a valid file, the message says so, and the
//! command goes on.
//!
//! Each test has a small tmpfs of its own, mounted for its time only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_console::units;
use recrep_tests::agreement::{Extent, assert_reads, assert_untroubled};
use recrep_tests::needs;
use recrep_tests::programs::{rec, workload};
use recrep_tests::record::record;
use recrep_tests::report::report;
use recrep_tests::run::{Outcome, run};

/// A small file system.
struct Small(tempfile::TempDir);

impl Small {
    /// None where the machine does not let us.
    #[track_caller]
    fn new(kib: u32) -> Option<Small> {
        if !needs::perf_events() || !needs::root() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "none"])
            .arg(dir.path()))
        .expect(0);
        Some(Small(dir))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn fill(&self) {
        // What cannot be written any more was written to the last byte before.
        let _ = fs::write(self.path("fill"), vec![1; 1 << 20]);
        assert!(fs::write(self.path("more"), [1; 5000]).is_err());
        fs::remove_file(self.path("more")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

/// Records more than there is room for, a command that says on standard output that it went on, and
/// ends with `status`.
fn overflowing(file: &Path, args: &str, status: u8) -> Outcome {
    let mut rec = rec();
    rec.arg("-o").arg(file).args(["-e", "cpu-clock", "-F", "20000"]).args(args.split_whitespace());
    let script = format!(
        "{} && echo went on; exit {status}",
        workload("hot --rounds 3000 --threads 2").join(" ")
    );
    run(rec.args(["--", "sh", "-c", &script]))
}

/// Returns the size of a system-wide recording that has little but the tasks that run already, in
/// whole pages: a tmpfs has no part of one.
fn side_band_kib() -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tasks.data");
    record(&file, "-a -e cpu-clock -F 1", &["true".to_owned()]);
    u32::try_from(fs::metadata(&file).unwrap().len().next_multiple_of(64 << 10) >> 10).unwrap()
}

/// What a recording that filled a disk has left there.
#[derive(Debug)]
struct Left {
    samples: u64,
    bytes: u64,
}

/// The command goes on, which rec says, and what its last line says of the file is true.
#[track_caller]
fn overflowed(small: &Small, args: &str, status: u8, code: i32) -> Left {
    let file = small.path("x.data");
    let outcome = overflowing(&file, args, status).expect(code);
    assert_eq!(outcome.text(), "went on\n", "{args}: {}", outcome.stderr);
    assert_eq!(
        outcome.stderr.matches("No space left on device").count(),
        1,
        "{args}: {}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("the records written so far can be read"),
        "{args}: {}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("the command goes on, but is no longer recorded"),
        "{}",
        outcome.stderr
    );
    let summary = outcome.stderr.lines().find(|line| line.starts_with("rec: recorded ")).unwrap();
    let extent = if args.contains("-a") { Extent::System(&["workload"]) } else { Extent::Command };
    let samples = assert_reads(&file, extent);
    let told = format!("rec: recorded {} samples in ", units::grouped(samples));
    assert!(summary.starts_with(&told), "{args}: {samples}, but {summary}");
    let bytes = fs::metadata(&file).unwrap().len();
    assert!(
        summary.contains(&format!("({})", units::bytes(bytes))),
        "{args}: {bytes}, but {summary}"
    );
    fs::remove_file(&file).unwrap();
    Left { samples, bytes }
}

/// Fills a small disk, of which half at least is used in one of several attempts, by samples: what
/// is packed is kept in whole batches, and on a busy machine one may be larger than the rest of the
/// disk.
#[track_caller]
fn assert_overflows(kib: impl Fn() -> u32, args: &str, status: u8, code: i32) {
    let mut all = Vec::new();
    let is_used = |_| {
        let kib = kib();
        let Some(small) = Small::new(kib) else { return true };
        let left = overflowed(&small, args, status, code);
        let disk = u64::from(kib) << 10;
        assert!(left.bytes <= disk, "{args}: {left:?} on {kib} KiB");
        let is_used = left.samples > 100 && left.bytes >= disk / 2;
        all.push(left);
        is_used
    };
    assert!((0..5).any(is_used), "{args}: {all:?}");
}

#[test]
fn what_was_written_is_valid_and_the_command_goes_on() {
    assert_overflows(|| 256, "-g -m 256K", 0, 125);
    assert_overflows(|| 256, "-g -m 256K", 7, 7);
    assert_overflows(|| 64, "-z -I -m 64K", 0, 125);
}

/// How much is written of the tasks that run already depends on the machine.
#[test]
fn everybodys_tasks_and_what_was_recorded_are_valid() {
    if needs::perf_events() && needs::root() {
        assert_overflows(|| side_band_kib() + 256, "-g -m 256K -a", 0, 125);
    }
}

#[test]
fn pieces_that_were_finished_stay_as_they_are() {
    // A piece has two rings of 64 KiB more at most.
    let Some(small) = Small::new(1024) else { return };
    let outcome = overflowing(&small.path("x.data"), "-g --switch-output=60K -m 16", 0).expect(125);
    let files: Vec<_> =
        fs::read_dir(small.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}: {}", outcome.stderr);
    for file in files {
        // perf warns of what the kernel lost: rings are small here.
        assert_untroubled(&report(&file, "comm"), Extent::Command);
    }
}

#[test]
fn a_disk_that_is_full_already_takes_nothing_away() {
    let Some(small) = Small::new(256) else { return };
    let file = small.path("x.data");
    fs::write(&file, "precious").unwrap();
    small.fill();
    for args in ["", "-z", "-a", "--switch-output=1s"] {
        let outcome = overflowing(&file, args, 0).expect(125);
        assert!(outcome.stderr.contains("No space left on device"), "{args}: {}", outcome.stderr);
        assert_eq!(outcome.text(), "", "{args}: nothing is run that cannot be recorded");
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious", "{args}");
        assert!(!small.path("x.data.old").exists(), "{args}");
    }
    // To standard output likewise.
    let mut shell = Command::new("sh");
    let script = "exec \"$0\" -o - -e cpu-clock -- echo ran > \"$1\"";
    let outcome =
        run(shell.args(["-c", script]).arg(rec().get_program()).arg(small.path("y.data")))
            .expect(125);
    assert!(outcome.stderr.contains("No space left on device"), "{}", outcome.stderr);
}

/// Room for the header and little else: what was recorded before the first round is not there, and
/// said so.
#[test]
fn a_disk_that_is_nearly_full() {
    let Some(small) = Small::new(256) else { return };
    let file = small.path("x.data");
    fs::write(small.path("fill"), vec![1; 232 << 10]).unwrap();
    for args in ["-g", "-z -g", "--tail-synthesize", "--overwrite"] {
        let outcome = overflowing(&file, args, 3);
        // What is packed, or overwritten, may just fit.
        let full = outcome.stderr.contains("No space left on device");
        assert!(full || args != "-g", "{args}: {}", outcome.stderr);
        assert_eq!(outcome.code(), 3, "{args}: {}", outcome.stderr);
        assert_reads(&file, Extent::Command);
        fs::remove_file(&file).unwrap();
    }
}
