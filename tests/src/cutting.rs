//! Files that are cut short or rewritten while `rep` reads them, and which rules it broke.
//!
//! The rules, of each run: it ends by itself within a time limit, with status 0 or 1 and never by a
//! signal; with 1 it says why, with 0 its answer is that of the whole file, or that of the file
//! that was written in its place, or it has a warning.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::read_back;

/// Maximum duration of a run.
const LIMIT: Duration = Duration::from_secs(120);

/// Views that `rep` is asked for: tables, which are made before anything is printed, and listings.
const VIEWS: [&[&str]; 8] = [
    &["--json", "--sort", "comm,dso"],
    &["--json", "--stats"],
    &["--json", "--tasks"],
    &["info", "--json"],
    &["timeline", "--json"],
    &["modules", "--json"],
    &["script"],
    &["dump", "--no-raw", "--type", "COMM,MMAP2"],
];

/// Description of the runs.
#[derive(Debug)]
pub struct Cutting {
    /// The program.
    pub rep: PathBuf,
    /// The file; what is cut is a copy.
    pub original: PathBuf,
    /// Folder of the copy.
    pub folder: PathBuf,
    /// Number of times that it is cut.
    pub times: u64,
}

/// Result of all runs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Runs by view: the answer of the whole file, of what was left with a warning, of what was
    /// written anew; status 1.
    pub ended: BTreeMap<String, [u64; 4]>,
    /// Descriptions of the runs that broke a rule.
    pub broken: Vec<String>,
}

/// Result of a run.
struct Run {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
    wall: Duration,
}

/// Way of cutting a file.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// To a length.
    To(u64),
    /// To nothing, and another recording is written into it.
    Rewritten,
}

impl Cutting {
    /// Runs all of it; `told` hears of every fiftieth run.
    pub fn run(&self, told: impl Fn(u64)) -> Outcome {
        let mut outcome = Outcome::default();
        let file = self.folder.join("cut.data");
        fs::copy(&self.original, &file).expect("the file can be copied");
        let whole: Vec<Run> = VIEWS.iter().map(|view| self.rep(view, &file, None)).collect();
        let len = fs::metadata(&file).expect("the copy is there").len();
        let (half, other) = (self.folder.join("half.data"), self.folder.join("other.data"));
        write_half(&file, &half, len);
        let anew: Vec<Run> = VIEWS
            .iter()
            .map(|view| {
                fs::rename(&file, &other).expect("a file can be renamed");
                fs::copy(&half, &file).expect("a file can be copied");
                let run = self.rep(view, &file, None);
                fs::rename(&other, &file).expect("a file can be renamed");
                run
            })
            .collect();
        let mut draws = Draws(1);
        for number in 0..self.times {
            let place = usize::try_from(number).expect("a small number") % VIEWS.len();
            let (view, whole, anew) = (VIEWS[place], &whole[place], &anew[place]);
            let cut = match draws.below(4) {
                0 => Cut::To(0),
                1 => Cut::To(draws.below(len)),
                2 => Cut::To(draws.below(len) & !4095),
                _ => Cut::Rewritten,
            };
            let micros = u64::try_from(whole.wall.as_micros()).expect("a short time");
            let after = Duration::from_micros(draws.below(micros + micros / 10));
            let run = self.rep(view, &file, Some((cut, after, &half)));
            let what = format!("{number}: {cut:?} after {after:?} of {view:?}");
            match ruling(&run, whole, anew) {
                Ok(kind) => outcome.ended.entry(view.join(" ")).or_default()[kind] += 1,
                Err(how) => outcome.broken.push(format!("{what}: {how}")),
            }
            restore(&self.original, &file, cut);
            if (number + 1).is_multiple_of(50) {
                told(number + 1);
            }
        }
        outcome
    }

    fn rep(&self, view: &[&str], file: &Path, cut: Option<(Cut, Duration, &Path)>) -> Run {
        let [stdout, stderr] =
            [(); 2].map(|()| tempfile::tempfile().expect("a temporary file can be made"));
        let copy = |file: &File| file.try_clone().expect("a descriptor can be copied");
        let begin = Instant::now();
        let mut command = Command::new(&self.rep);
        command
            .args(view)
            .arg(file)
            .stdin(Stdio::null())
            .stdout(copy(&stdout))
            .stderr(copy(&stderr));
        let mut child = command.spawn().expect("rep can be run");
        if let Some((cut, after, half)) = cut {
            std::thread::sleep(after);
            apply(cut, file, half);
        }
        let status = ended(&mut child, begin);
        let (stdout, stderr) =
            (read_back(&stdout), String::from_utf8_lossy(&read_back(&stderr)).into_owned());
        Run { status, stdout, stderr, wall: begin.elapsed() }
    }
}

/// Waits for the end, which is a kill if it does not come in time.
fn ended(child: &mut Child, begin: Instant) -> ExitStatus {
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if begin.elapsed() > LIMIT {
            child.kill().expect("a child can be killed");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A recording that ends in the middle, which is one of its own.
fn write_half(file: &Path, half: &Path, len: u64) {
    fs::copy(file, half).expect("a file can be copied");
    File::options()
        .write(true)
        .open(half)
        .and_then(|file| file.set_len(len / 2))
        .expect("a file can be cut");
}

fn apply(cut: Cut, file: &Path, half: &Path) {
    let open = || File::options().write(true).open(file);
    match cut {
        Cut::To(len) => open().and_then(|file| file.set_len(len)),
        // As cp does: truncated first, then written.
        Cut::Rewritten => fs::copy(half, file).map(drop),
    }
    .expect("the file can be cut");
}

/// Gives the file back what it had.
fn restore(original: &Path, file: &Path, cut: Cut) {
    let from = match cut {
        Cut::To(len) => len,
        Cut::Rewritten => 0,
    };
    let copied = File::open(original).and_then(|mut original| {
        let mut file = File::options().write(true).open(file)?;
        original.seek(SeekFrom::Start(from))?;
        file.seek(SeekFrom::Start(from))?;
        io::copy(&mut original, &mut file)
    });
    copied.expect("the file can be restored");
}

/// Returns the number of the answer that it is, or the rule that was broken.
fn ruling(run: &Run, whole: &Run, anew: &Run) -> Result<usize, String> {
    let said: String = run.stderr.chars().take(500).collect();
    if let Some(signal) = run.status.signal() {
        return Err(format!("signal {signal}: {said}"));
    }
    if run.stderr.contains("panicked") {
        return Err(format!("a panic: {said}"));
    }
    match run.status.code() {
        Some(1) if !said.trim().is_empty() => Ok(3),
        Some(0) if run.stdout == whole.stdout => Ok(0),
        Some(0) if run.stdout == anew.stdout => Ok(2),
        Some(0) if said.contains("warning") || warns(&run.stdout) => Ok(1),
        Some(0) => Err("neither the answer of the whole file nor a warning".to_owned()),
        code => Err(format!("status {code:?}: {said}")),
    }
}

/// Returns whether there is a warning in what was printed as JSON.
fn warns(stdout: &[u8]) -> bool {
    fn any(value: &Value) -> bool {
        match value {
            Value::Object(map) => map.iter().any(|(key, value)| {
                (key == "warnings" && value.as_array().is_some_and(|all| !all.is_empty()))
                    || any(value)
            }),
            Value::Array(all) => all.iter().any(any),
            _ => false,
        }
    }
    serde_json::from_slice(stdout).is_ok_and(|value| any(&value))
}

/// Numbers that look random, the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 20) % count.max(1)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<42}{:>8}{:>8}{:>8}{:>8}", "view", "whole", "warned", "anew", "refused")?;
        for (view, [whole, warned, anew, refused]) in &self.ended {
            writeln!(f, "{view:<42}{whole:>8}{warned:>8}{anew:>8}{refused:>8}")?;
        }
        for broken in &self.broken {
            writeln!(f, "BROKEN {broken}")?;
        }
        let runs = self.ended.values().flatten().sum::<u64>() + self.broken.len() as u64;
        write!(f, "{} of {runs} runs broke a rule", self.broken.len())
    }
}
