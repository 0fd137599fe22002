//! Lists of branches against the log of a walk.

use std::io::{self, BufRead as _, BufReader, Lines};
use std::process::{ChildStdout, Command, Stdio};

use recrep_fixtures::trace::{Clocks, Logged};

/// What comparing a list with a log found.
#[derive(Clone, Debug, Default)]
pub struct WalkCheck {
    /// Number of branches of the log.
    pub branches: u64,
    /// Number of those that the list has otherwise, or not, and of those that it has beyond.
    pub differing: u64,
    /// The first of these.
    pub first: Option<String>,
    /// Ticks by which listed times are behind the true ones at most.
    pub latest: Option<i64>,
    /// Ticks by which they are before them at most, negative.
    pub earliest: Option<i64>,
}

impl WalkCheck {
    fn differs(&mut self, what: impl FnOnce() -> String) {
        self.differing += 1;
        self.first.get_or_insert_with(what);
    }

    /// Compares a branch of the log with a line of the list: `[SECONDS:] FROM => TO`.
    fn compare(&mut self, logged: &Logged, line: Option<&str>) {
        self.branches += 1;
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let (time, pair) = match words[..] {
            [time, from, "=>", to] => (Some(time), Some((from, to))),
            [from, "=>", to] => (None, Some((from, to))),
            _ => (None, None),
        };
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let found = pair.and_then(|(from, to)| Some((number(from)?, number(to)?)));
        if found != Some((logged.from, logged.to)) {
            let at = self.branches;
            self.differs(|| format!("branch {at}: {logged:x?}, listed: {line:?}"));
        }
        let digits = time.map(|time| time.replace(['.', ':'], ""));
        if let Some(time) = digits.and_then(|digits| digits.parse::<i64>().ok()) {
            let off = time.wrapping_sub(logged.tsc.cast_signed());
            self.latest = self.latest.max(Some(off));
            self.earliest = Some(self.earliest.map_or(off, |least| least.min(off)));
        }
    }
}

/// Runs a command that lists branches, and compares its lines, in order, with those that `walk` logs.
///
/// # Errors
/// Returns errors of running the command.
pub fn check(
    command: &mut Command,
    walk: impl FnOnce(&mut dyn FnMut(Logged)),
) -> io::Result<WalkCheck> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut check = WalkCheck::default();
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::with_capacity(1 << 20, stdout).lines();
        walk(&mut |logged| check.compare(&logged, next(&mut lines).as_deref()));
        while let Some(line) = next(&mut lines) {
            check.differs(|| format!("beyond the log: {line}"));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        check.differs(|| format!("{status}"));
    }
    Ok(check)
}

/// Returns the next line that is not empty.
fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<String> {
    lines.map_while(Result::ok).find(|line| !line.trim().is_empty())
}

/// Returns whether all listed times are within one MTC period of the true ones.
pub fn is_within_a_period(check: &WalkCheck) -> bool {
    let period = Clocks::MTC_PERIOD.cast_signed();
    check.earliest.is_some_and(|early| early >= -period)
        && check.latest.is_some_and(|late| late <= period)
}
