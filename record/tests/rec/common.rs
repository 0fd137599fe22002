//! Running `rec` and reading what it wrote.

use std::fs::File as StdFile;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use recrep_format::abi::RecordType;
use recrep_format::read::File;
use recrep_format::record::{Body, Record};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Columns of a [`terminal`].
pub(crate) const COLUMNS: u16 = 40;

/// The program under test.
pub(crate) fn rec() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rec"))
}

/// A directory for a test's files, and a file in it.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.data");
    (dir, path)
}

/// Runs `rec -o PATH` with these words after it.
pub(crate) fn run(path: &Path, words: &[&str]) -> Output {
    rec().arg("-o").arg(path).args(words).output().unwrap()
}

/// The same as nobody, who may not look into the directory of the build: by a copy beside the file.
pub(crate) fn run_as_nobody(path: &Path, words: &[&str]) -> Output {
    let dir = path.parent().unwrap();
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = dir.join("rec");
    // Another program writes: what this one had open to be written, a child that another test forks
    // meanwhile would have open, too, and such a file is too busy to be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_rec")).arg(&program).status();
    assert!(copied.unwrap().success());
    Command::new(program).arg("-o").arg(path).args(words).uid(65534).gid(65534).output().unwrap()
}

/// Returns rec's standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns whether the kernel lets this user count anything at all. Where not, the test is skipped;
/// with `CI=true` it fails. It is asked by live tests only.
pub(crate) fn can_record() -> bool {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or("live::");
    assert!(test.contains("live::"), "{test} records, but is in no module `live`");
    let (_dir, path) = place();
    let output = run(&path, &["-e", "cpu-clock", "--", "true"]);
    if output.status.success() {
        return true;
    }
    skipped(&said(&output));
    false
}

/// Returns whether this user may record everything; as above where not.
pub(crate) fn can_record_system() -> bool {
    if !can_record() {
        return false;
    }
    let (_dir, path) = place();
    let output = run(&path, &["-a", "-e", "cpu-clock", "--", "true"]);
    if output.status.success() {
        return true;
    }
    skipped(&said(&output));
    false
}

/// Returns whether a test may become nobody, who may record user space but not the kernel; as above
/// where not.
pub(crate) fn nobody_records_user_space() -> bool {
    if !rustix::process::geteuid().is_root() {
        skipped("needs root, to become somebody else");
        return false;
    }
    let paranoid =
        std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim() != "2" {
        skipped("needs kernel.perf_event_paranoid to be 2");
        return false;
    }
    can_record()
}

/// Says why a test is skipped, or fails where `CI=true`.
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "cannot be tested here: {why}");
    eprintln!("SKIPPED: {why}");
}

/// Waits for something that comes soon.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A recording, decoded.
pub(crate) struct Recording {
    bytes: Vec<u8>,
}

impl Recording {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Self {
        Self { bytes: std::fs::read(path).unwrap() }
    }

    /// The file, which must be whole.
    pub(crate) fn file(&self) -> File<'_> {
        let file = File::parse(&self.bytes).unwrap();
        assert_eq!(file.warnings, [], "a whole file");
        file
    }

    /// All its records.
    pub(crate) fn records(&self) -> Vec<Record<'_>> {
        let file = self.file();
        let raw: Vec<_> = file.records().map(Result::unwrap).collect();
        raw.iter().map(|raw| file.attrs.decode(raw).unwrap()).collect()
    }

    /// Returns the number of records of a type.
    pub(crate) fn count(&self, kind: RecordType) -> usize {
        self.file().records().filter(|r| r.as_ref().unwrap().header.kind == kind).count()
    }

    /// The pids and tids of the samples.
    pub(crate) fn sampled(&self) -> Vec<(u32, u32)> {
        let file = self.file();
        let raw: Vec<_> = file.records().map(Result::unwrap).collect();
        let samples = raw.iter().filter_map(|raw| file.attrs.sample(*raw));
        samples.map(|(_, sample)| (sample.pid().unwrap(), sample.tid().unwrap())).collect()
    }

    /// Returns the sums of LOST and of LOST_SAMPLES records.
    pub(crate) fn lost(&self) -> (u64, u64) {
        self.records().iter().fold((0, 0), |(events, samples), record| match &record.body {
            Body::Lost(lost) => (events + lost.lost, samples),
            Body::LostSamples(lost) => (events, samples + lost.lost),
            _ => (events, samples),
        })
    }
}

/// What rec's last line tells.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) samples: u64,
    /// Size with its unit, as printed.
    pub(crate) size: String,
    pub(crate) lost_events: u64,
    pub(crate) lost_samples: u64,
}

/// Reads rec's last line: `rec: recorded 6,992 samples in 2.0 s (388 KiB), 1 lost event, 3 lost
/// samples: …`.
pub(crate) fn last_line(output: &Output) -> Told {
    let all = said(output);
    let line = all.lines().last().unwrap();
    let number = |what: &str| {
        let (before, _) = line.split_once(what)?;
        let digits: String =
            before.rsplit(' ').next()?.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let size = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let lost = |what| if line.contains(", none lost: ") { Some(0) } else { number(what) };
    let told = || {
        let (samples, size) = (number(" sample")?, size?.0.to_owned());
        Some(Told {
            samples,
            size,
            lost_events: lost(" lost event")?,
            lost_samples: lost(" lost sample")?,
        })
    };
    told().unwrap_or_else(|| panic!("not all is told in: {line}"))
}

/// A terminal of so many columns: what is written to it can be read, and the end that programs
/// have.
pub(crate) fn terminal() -> (StdFile, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let end = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })
        .unwrap();
    (StdFile::from(master), end)
}

/// All that is written until nobody can write any more; at each piece of it `seen` is called.
pub(crate) fn read(mut master: StdFile, mut seen: impl FnMut(&str)) -> String {
    let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
    // The kernel says EIO where a file would end.
    while let Ok(count @ 1..) = master.read(&mut bytes) {
        all.extend(&bytes[..count]);
        seen(&String::from_utf8_lossy(&all));
    }
    String::from_utf8(all).unwrap()
}
