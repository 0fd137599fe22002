//! `rep --json` on very many damaged files, and which rules it broke.
//!
//! The rules, of each run: it ends by itself within [`LIMIT`], with status 0 (and then what it
//! printed is JSON) or 1 (and then it says why); it does not panic; and its resident memory is at
//! most [`MEMORY`] and [`TIMES`] the file's size.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::de::IgnoredAny;

use crate::measured::{Measured, measure};
use crate::variants::{Kind, Original};

/// Maximum duration of a run.
pub const LIMIT: Duration = Duration::from_secs(10);

/// Maximum memory for any file, in bytes.
pub const MEMORY: u64 = 256 << 20;

/// Maximum memory beyond that, in multiples of the file's size.
pub const TIMES: u64 = 3;

/// Description of the runs.
#[derive(Debug)]
pub struct Campaign {
    /// The program.
    pub rep: PathBuf,
    /// The files, by name.
    pub originals: Vec<(String, Original)>,
    /// The numbers of the variants; number n is of file n modulo the files.
    pub numbers: std::ops::Range<u64>,
    /// Number of runs at once.
    pub jobs: usize,
    /// Folder for the variants that broke a rule.
    pub keep: Option<PathBuf>,
}

/// One broken rule.
#[derive(Debug)]
pub struct Broken {
    /// The variant's number.
    pub number: u64,
    /// The file that it was made of, and how.
    pub what: String,
    /// The rule, and what happened.
    pub how: String,
}

/// Result of all runs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Runs by kind of damage: status 0, status 1.
    pub ended: BTreeMap<Kind, [u64; 2]>,
    /// The slowest run.
    pub slowest: (Duration, String),
    /// The run with the most memory over what its file justifies: how much of what is allowed, in
    /// percent, and in bytes.
    pub largest: (u64, u64, String),
    /// Runs that broke a rule.
    pub broken: Vec<Broken>,
}

/// The files of a folder, without the folders in it and what is no perf.data file.
///
/// # Errors
/// The folder cannot be read.
pub fn originals(folder: &Path) -> std::io::Result<Vec<(String, Original)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path)?;
        if [&b"PERFILE2"[..], b"2ELIFREP", b"PERFFILE"].iter().any(|magic| bytes.starts_with(magic))
        {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, Original::new(bytes)));
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files)
}

impl Campaign {
    /// Runs all of it; `told` hears of every thousandth run.
    pub fn run(&self, told: impl Fn(u64) + Sync) -> Outcome {
        assert!(!self.originals.is_empty(), "there is nothing to be damaged");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (next, outcome) = (AtomicU64::new(self.numbers.start), Mutex::new(Outcome::default()));
        std::thread::scope(|scope| {
            for job in 0..self.jobs.max(1) {
                let file = folder.path().join(format!("{job}.data"));
                let (next, outcome, told) = (&next, &outcome, &told);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.numbers.end {
                            break;
                        }
                        self.one(number, &file, outcome);
                        if (number + 1).is_multiple_of(1000) {
                            told(number + 1);
                        }
                    }
                });
            }
        });
        let mut outcome = outcome.into_inner().expect("no run panicked");
        outcome.broken.sort_by_key(|broken| broken.number);
        outcome
    }

    fn one(&self, number: u64, file: &Path, outcome: &Mutex<Outcome>) {
        let count = self.originals.len() as u64;
        let (name, original) =
            &self.originals[usize::try_from(number % count).expect("less than a length")];
        let (kind, bytes) = original.variant(number / count);
        std::fs::write(file, &bytes).expect("a variant can be written");
        let measured = measure(Command::new(&self.rep).arg("--json").arg(file), LIMIT);
        let what = format!("{number}: {kind:?} of {name}");
        let broken = broken(&measured, bytes.len() as u64);
        if let (Some(keep), true) = (&self.keep, broken.is_some()) {
            let kept = keep.join(format!("{number}.data"));
            std::fs::write(&kept, &bytes)
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", kept.display()));
        }
        let share = measured.peak * 100 / (MEMORY + TIMES * bytes.len() as u64);
        let mut outcome = outcome.lock().expect("no run panicked");
        let ended = outcome.ended.entry(kind).or_default();
        ended[usize::from(measured.status.code() != Some(0))] += 1;
        if measured.wall > outcome.slowest.0 {
            outcome.slowest = (measured.wall, what.clone());
        }
        if share > outcome.largest.0 {
            outcome.largest = (share, measured.peak, what.clone());
        }
        outcome.broken.extend(broken.map(|how| Broken { number, what, how }));
    }
}

/// The rule that a run broke.
fn broken(run: &Measured, size: u64) -> Option<String> {
    let said: String = run.stderr.chars().take(500).collect();
    if run.timed_out {
        return Some(format!("it did not end in {LIMIT:?}"));
    }
    if let Some(signal) = run.signal() {
        return Some(format!("signal {signal}: {said}"));
    }
    if run.stderr.contains("panicked") {
        return Some(format!("a panic: {said}"));
    }
    match run.status.code() {
        Some(0) => {
            if let Err(error) = serde_json::from_slice::<IgnoredAny>(&run.stdout) {
                return Some(format!("what it printed is not JSON: {error}"));
            }
        }
        Some(1) if !run.stderr.trim().is_empty() => {}
        Some(1) => return Some("status 1 without a word".to_owned()),
        code => return Some(format!("status {code:?}: {said}")),
    }
    let allowed = MEMORY + TIMES * size;
    (run.peak > allowed)
        .then(|| format!("{} of memory, where {} are allowed", mib(run.peak), mib(allowed)))
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total =
            self.ended.values().fold([0, 0], |sum, ended| [sum[0] + ended[0], sum[1] + ended[1]]);
        writeln!(f, "{:<10}{:>10}{:>10}", "damage", "answered", "refused")?;
        for (kind, [answered, refused]) in &self.ended {
            writeln!(f, "{:<10}{answered:>10}{refused:>10}", format!("{kind:?}"))?;
        }
        writeln!(f, "{:<10}{:>10}{:>10}", "all", total[0], total[1])?;
        writeln!(f, "slowest run: {:.2} s ({})", self.slowest.0.as_secs_f64(), self.slowest.1)?;
        let (share, peak, what) = &self.largest;
        writeln!(f, "most memory: {}, {share} % of what its file allows ({what})", mib(*peak))?;
        for Broken { what, how, .. } in &self.broken {
            writeln!(f, "BROKEN {what}: {how}")?;
        }
        write!(f, "{} of {} runs broke a rule", self.broken.len(), total[0] + total[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruling(script: &str, size: u64) -> Option<String> {
        broken(&measure(Command::new("sh").args(["-c", script]), Duration::from_secs(1)), size)
    }

    #[test]
    fn each_rule_is_held() {
        assert_eq!(ruling("echo '{}'", 0), None);
        assert_eq!(ruling("echo no >&2; exit 1", 0), None);
        let broken = [
            ("exit 1", "without a word"),
            ("exit 2", "status Some(2)"),
            ("echo '{'", "not JSON"),
            ("echo '{}'; echo thread panicked >&2", "a panic"),
            ("kill -SEGV $$", "signal 11"),
            ("sleep 60", "did not end"),
        ];
        for (script, how) in broken {
            let ruling = ruling(script, 1 << 20);
            assert!(
                ruling.as_deref().is_some_and(|said| said.contains(how)),
                "{script}: {ruling:?}"
            );
        }
        let with = |peak| Measured { peak, ..measure(Command::new("echo").arg("{}"), LIMIT) };
        assert_eq!(super::broken(&with(MEMORY + 30), 10), None);
        assert!(
            super::broken(&with(MEMORY + 31), 10).is_some_and(|said| said.contains("are allowed"))
        );
    }
}
